"""Charts in files, and a release as one, with error bars. Needs the extra `plot`.

Figures are made without pyplot, so that nothing is shared between two of them. Keys and questions are text from
outside and are never read as markup.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dalenius._extras import require_extra
from dalenius.errors import InputError
from dalenius.queries.release import shown
from dalenius.releasing.targets import unwritable

if TYPE_CHECKING:
    from dalenius.queries.release import Release

_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#222255")  # Tol's, bright
_INK, _FAINT, _LINE = "#333333", "#666666", "#aaaaaa"
_PANELS, _BARS, _GROUPS, _POINTS = 6, 40, 12, 2_000
_LABEL, _TITLE = 28, 88


class _Point(NamedTuple):
    """One noisy cell: its keys, its value, and how far the interval reaches down and up."""

    keys: tuple[Any, ...]
    value: float
    down: float
    up: float


def save(drawing: Any, target: Path) -> None:
    """Writes a figure, png or svg by the file's ending."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")  # a box for a letter that the font lacks will do
            drawing.savefig(target, dpi=150)
    except OSError as error:
        raise unwritable(target, error) from None


@contextmanager
def axes_in(target: Path, height: float = 4.4) -> Iterator[Any]:
    """Axes to draw on, so many inches high; saved when the block ends."""
    from matplotlib.figure import Figure

    drawing: Any = Figure(figsize=(7.2, height), layout="constrained")
    axes = drawing.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, alpha=0.25)
    yield axes
    save(drawing, target)


def figure(release: Release) -> Any:
    """The chart of a release: what is on its axes follows from its keys.

    No key: a bar for each column. One: bars, or points on a line where the key is a date or a number. Two: the same,
    grouped by the key with fewer values. More: bars, named by all keys together.

    Raises:
        InputError: There is no number to draw.
    """
    require_extra("plot", "matplotlib")
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    keys = [place for place, key in enumerate(release.keys) if key]
    columns = [place for place, key in enumerate(release.keys) if not key]
    if not any(_points(release, keys, column) for column in columns):
        raise InputError(
            "This release has nothing to draw.",
            why="A chart needs at least one number, and a noise that leaves something of it.",
            fix="Print the release instead.",
        )
    drawing: Any = Figure(layout="constrained")
    drawing.get_layout_engine().set(w_pad=0.1, h_pad=0.07)
    left_out: list[str] = []
    if len(columns) > _PANELS and keys:
        left_out.append(f"{len(columns) - _PANELS:,} more columns")
        columns = columns[:_PANELS]
    if not keys:
        _single(drawing, release, columns)
    elif len(keys) == 2:
        left_out += _grouped(drawing, release, keys, columns)
    else:
        left_out += _by_key(drawing, release, keys, columns)
    title = " ".join(release.question.split())
    drawing.suptitle(_text(title, _TITLE), x=0.012, ha="left", fontsize=10, color=_INK)
    notes = [
        f"error bars: {_bars_mean(release, columns)}",
        *([f"not drawn: {', '.join(left_out)}"] if left_out else []),
    ]
    drawing.supxlabel("\n".join(_text(note) for note in notes), x=0.012, ha="left", fontsize=7.5, color=_FAINT)
    for text in drawing.findobj(Text):
        # whatever the user's settings are: `_text` counts on them
        text.set_usetex(False)
        text.set_parse_math(True)
    return drawing


def _bars_mean(release: Release, columns: Sequence[int]) -> str:
    """What error bars show, and the guarantee."""
    told = any(row[column] for row in release.total_interval for column in columns)
    off = "range, with what limits cut off (estimated)" if told else "margin for the added noise"
    return f"{release.confidence * 100:.10g}% {off} · {release.promise.partition(' · ')[2]}"


def _single(drawing: Any, release: Release, columns: Sequence[int]) -> None:
    """No key: one bar per column, in panels of their own where scales differ."""
    points = [
        point._replace(keys=(release.columns[column],)) for column in columns for point in _points(release, (), column)
    ][:_BARS]
    sizes = [abs(point.value) + max(point.up, point.down) for point in points]
    alike = max(sizes) <= 20 * min(sizes)
    panels = [points] if alike or len(points) > _PANELS else [[point] for point in points]
    drawing.set_size_inches(7.2, 1.1 + sum(0.3 + 0.35 * len(panel) for panel in panels))
    axes = drawing.subplots(len(panels), 1, squeeze=False, height_ratios=[len(panel) for panel in panels])[:, 0]
    for ax, panel in zip(axes, panels, strict=True):
        _style(ax, values="x")
        _bars(ax, panel, range(len(panel)), 0.6, _COLORS[0], across=True)
        _names(ax, [point.keys for point in panel], "", across=True)


def _by_key(drawing: Any, release: Release, keys: Sequence[int], columns: Sequence[int]) -> Iterable[str]:
    """One key, or many taken as one."""
    panels = [_points(release, keys, column) for column in columns]
    if len(keys) == 1 and _ordered(row[keys[0]] for row in release.rows):
        for ax, panel in zip(_stack(drawing, release, columns), panels, strict=True):
            _line(ax, panel, _COLORS[0])
            _key_axis(ax, release, keys[0])
        return _missing(panels)
    groups = list(dict.fromkeys(tuple(row[key] for key in keys) for row in release.rows))
    places = {group: place for place, group in enumerate(groups[:_BARS])}
    lengths = [len(_name(group)) for group in places]
    across = len(places) > 8 or max(lengths) > 12 or sum(lengths) > 64
    if across:
        drawing.set_size_inches(max(7.2, 2.4 + 2.4 * len(columns)), 1.5 + 0.24 * max(len(places), 4))
        axes = drawing.subplots(1, len(columns), squeeze=False, sharey=True)[0, :]
        for ax, column in zip(axes, columns, strict=True):
            _style(ax, values="x")
            ax.set_xlabel(_text(release.columns[column], _LABEL), color=_INK)
    else:
        axes = _stack(drawing, release, columns)
    for ax, panel in zip(axes, panels, strict=True):
        inside = [point for point in panel if point.keys in places]
        _bars(ax, inside, [places[point.keys] for point in inside], 0.66, _COLORS[0], across=across)
    name = " · ".join(_text(release.columns[key], _LABEL) for key in keys)
    _names(axes[0] if across else axes[-1], list(places), name, across=across)
    return _rest(groups, _BARS, "groups")


def _grouped(drawing: Any, release: Release, keys: Sequence[int], columns: Sequence[int]) -> Iterable[str]:
    """Two keys: the one without order, or with fewer values, is told by colour."""
    values = {key: list(dict.fromkeys(row[key] for row in release.rows)) for key in keys}
    order = {key: _ordered(values[key]) for key in keys}
    outer, inner = sorted(keys, key=lambda key: (order[key], len(values[key])), reverse=True)
    series = values[inner][: len(_COLORS)]
    places = {group: place for place, group in enumerate(values[outer][:_GROUPS])}
    width = 0.8 / len(series)
    axes = _stack(drawing, release, columns)
    handles: list[Any] = []
    panels: list[list[_Point]] = []
    for ax, column in zip(axes, columns, strict=True):
        points = _points(release, (outer, inner), column)
        panels = [[point for point in points if point.keys[1] == each] for each in series]
        handles = []
        for place, (panel, color) in enumerate(zip(panels, _COLORS, strict=False)):
            if order[outer]:
                handles.append(_line(ax, panel, color))
                continue
            inside = [point for point in panel if point.keys[0] in places]
            aside = (place - (len(series) - 1) / 2) * width
            centres = [places[point.keys[0]] + aside for point in inside]
            handles.append(_bars(ax, inside, centres, 0.92 * width, color, across=False))
        if order[outer]:
            _key_axis(ax, release, outer)
    # placeholders first: matplotlib leaves out labels that begin with "_"
    legend = drawing.legend(handles, ["x"] * len(handles), loc="outside right upper", frameon=False, fontsize=8)
    legend.set_title(_text(release.columns[inner], _LABEL), prop={"size": 8})
    for text, each in zip(legend.get_texts(), series, strict=True):
        text.set_text(_text(each, _LABEL))
    left_out = _rest(values[inner], len(_COLORS), "colours")
    if order[outer]:
        return [*left_out, *_missing(panels)]
    _names(axes[-1], [(group,) for group in places], _text(release.columns[outer], _LABEL), across=False)
    return [*left_out, *_rest(values[outer], _GROUPS, "groups")]


def _points(release: Release, keys: Sequence[int], column: int) -> list[_Point]:
    """The cells of a column that can be drawn."""
    points = []
    for at, row in enumerate(release.rows):
        value = row[column]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            continue
        low, high = release.ends(at, column) or (value, value)
        down, up = max(0.0, float(value - low)), max(0.0, float(high - value))
        points.append(_Point(tuple(row[key] for key in keys), float(value), down, up))
    return points


def _stack(drawing: Any, release: Release, columns: Sequence[int]) -> Any:
    """Panels one above the other, one for each column, over one axis of keys."""
    drawing.set_size_inches(7.2, 1.4 + 2.6 * len(columns) ** 0.8)
    axes = drawing.subplots(len(columns), 1, squeeze=False, sharex=True)[:, 0]
    for ax, column in zip(axes, columns, strict=True):
        _style(ax, values="y")
        ax.set_ylabel(_text(release.columns[column], _LABEL), color=_INK)
    return axes


def _style(ax: Any, *, values: str) -> None:
    """A quiet frame; the grid runs across the axis of the values."""
    from matplotlib.ticker import FuncFormatter

    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(_LINE)
    ax.grid(visible=True, axis=values, alpha=0.25)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8.5, color=_LINE, labelcolor=_INK)
    axis = ax.yaxis if values == "y" else ax.xaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _bars(ax: Any, points: Sequence[_Point], places: Iterable[float], width: float, color: str, *, across: bool) -> Any:
    errors = [[point.down for point in points], [point.up for point in points]]
    style = {"ecolor": _INK, "elinewidth": 1.1, "capthick": 1.1, "capsize": min(3.0, 9 * width)}
    draw, side = (ax.barh, "xerr") if across else (ax.bar, "yerr")
    (ax.axvline if across else ax.axhline)(0, color=_LINE, linewidth=0.8)
    error = {side: errors, "error_kw": style} if points else {}
    return draw(list(places), [point.value for point in points], width, color=color, alpha=0.85, **error)


def _line(ax: Any, points: Sequence[_Point], color: str) -> Any:
    placed = sorted((point for point in points if point.keys[0] is not None), key=lambda point: point.keys[0])
    placed = placed[:_POINTS]
    few = len(placed) <= 60
    return ax.errorbar(
        [point.keys[0] for point in placed],
        [point.value for point in placed],
        yerr=[[point.down for point in placed], [point.up for point in placed]],
        fmt="o-" if few else "-",
        color=color,
        markersize=4.5,
        linewidth=1.0,
        elinewidth=1.1,
        capsize=3 if few else 0,
    )


def _names(ax: Any, groups: Sequence[tuple[Any, ...]], name: str, *, across: bool) -> None:
    """The names of the groups along their axis."""
    labels = [_text(_name(group), _LABEL) for group in groups]
    if across:
        ax.set_yticks(range(len(labels)), labels)
        ax.set_ylim(len(labels) - 0.4, -0.6)  # the first on top
        ax.set_ylabel(name, color=_INK)
        return
    turned = sum(map(len, labels)) > 72
    ax.set_xticks(range(len(labels)), labels, rotation=30 if turned else 0, ha="right" if turned else "center")
    ax.set_xlim(-0.6, len(labels) - 0.4)
    ax.set_xlabel(name, color=_INK)


def _key_axis(ax: Any, release: Release, key: int) -> None:
    """Ticks where dates and whole numbers want them."""
    dates: Any = import_module("matplotlib.dates")
    ticker: Any = import_module("matplotlib.ticker")
    ax.set_xlabel(_text(release.columns[key], _LABEL), color=_INK)
    ax.label_outer()
    keys = [row[key] for row in release.rows if row[key] is not None]
    if isinstance(keys[0], date):
        locator = dates.AutoDateLocator(minticks=3, maxticks=9)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    elif all(isinstance(each, int) for each in keys):
        ax.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))


def _missing(panels: Sequence[Sequence[_Point]]) -> list[str]:
    """What a line has no place for."""
    homeless = ["the group NULL"] if any(point.keys[0] is None for panel in panels for point in panel) else []
    return [*homeless, *_rest(max(panels, key=len), _POINTS, "groups")]


def _rest(things: Sequence[Any], most: int, word: str) -> list[str]:
    return [f"{len(things) - most:,} more {word}"] if len(things) > most else []


def _ordered(keys: Iterable[Any]) -> bool:
    """Whether the keys lie on a line: all dates or all numbers, and more than two.

    >>> _ordered([1, 2.5, 7]), _ordered([True, False, None]), _ordered(["1", "2", "3"])
    (True, False, False)
    """
    known = {key for key in keys if key is not None}
    kinds = {
        next((kind for kind in (bool, datetime, date, int, float) if isinstance(key, kind)), None) for key in known
    }
    return len(known) > 2 and (kinds <= {int, float} or kinds in ({date}, {datetime}))


def _name(group: tuple[Any, ...]) -> str:
    return " · ".join(map(shown, group))


def _text(value: Any, width: int | None = None) -> str:
    r"""Text that matplotlib shows as it is: nothing between two dollars is mathematics.

    >>> _text(r"$\frac{"), _text("SELECT count(*)", 8)
    ('\\$\\frac{', 'SELECT …')
    """
    return shown(value, width).replace("$", r"\$")
