"""Drawings of many shares at once: bars that lie, and a grid of pairs. SVG that we write ourselves, without script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dalenius.app.report.elements import text

_WIDTH, _BAR, _LABEL, _NUMBER = 380, 17, 172, 46
_LONGEST = 25  # characters of a label
_CELL, _MARGIN = 22, 118


def lying_bars(name: str, rows: Sequence[tuple[str, float]]) -> str:
    """One bar for each value, longest where most rows are."""
    most = max((share for _, share in rows), default=0.0) or 1.0
    room, inside = _WIDTH - _LABEL - _NUMBER, ""
    for at, (label, share) in enumerate(rows):
        y = at * _BAR
        inside += f'<text x="{_LABEL - 6}" y="{y + 13}" text-anchor="end">{text(_cut(label))}</text>'
        inside += f'<rect class="mark" x="{_LABEL}" y="{y + 3}" width="{room * share / most:.1f}" height="{_BAR - 5}"/>'
        x = _LABEL + room * share / most + 4
        inside += f'<text x="{x:.1f}" y="{y + 13}">{text(_percent(share))}</text>'
    return _drawing(name, _WIDTH, _BAR * max(1, len(rows)), inside, "bars")


def grid(name: str, names: Sequence[str], values: Mapping[tuple[int, int], float]) -> str:
    """A square for each pair of columns, darker where the value is larger; the value stands in its title."""
    most = max(values.values(), default=0.0) or 1.0
    inside = ""
    for at, label in enumerate(names):
        y = at * _CELL
        inside += f'<text x="{_MARGIN - 6}" y="{y + 15}" text-anchor="end">{text(_cut(label, 17))}</text>'
        for other in range(at):
            value = values.get((other, at))
            if value is None:
                continue
            told = f"{names[other]}, {label}: {max(0.0, value):.3f}"
            inside += (
                f'<rect class="mark" x="{_MARGIN + other * _CELL}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" '
                f'fill-opacity="{0.06 + 0.94 * max(0.0, value) / most:.2f}"><title>{text(told)}</title></rect>'
            )
    for at, label in enumerate(names[:-1]):  # the last column stands in rows alone
        x, y = _MARGIN + at * _CELL + 14, len(names) * _CELL + 6
        inside += f'<text transform="translate({x} {y}) rotate(-60)" text-anchor="end">{text(_cut(label, 17))}</text>'
    return _drawing(name, _MARGIN + len(names) * _CELL, len(names) * _CELL + 100, inside, "grid")


def _drawing(name: str, width: float, height: float, inside: str, kind: str) -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {width:.0f} {height:.0f}" style="max-width: {width:.0f}px" role="img" '
        f'aria-label="{text(name)}"><title>{text(name)}</title>{inside}</svg>'
    )


def _cut(label: str, most: int = _LONGEST) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"


def _percent(share: float) -> str:
    return "0%" if share <= 0 else f"{share:.1%}" if share >= 0.001 else "<0.1%"
