"""Releases and previews on a terminal. Names and keys are text from outside: shown, never obeyed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from dalenius.queries.preview import KNOWN
from dalenius.queries.release import FREE, shown, shown_error, with_error

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.queries.explaining import Explanation
    from dalenius.queries.preview import Choice, Preview
    from dalenius.queries.release import Release

SHOWN = 50  # rows; the rest is for -o and --json
_KEY_WIDTH = 40
_LINE = 4000  # characters of a line in words
_BARS = 30
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_MORE = 1.05  # times the noise error: a total error below that is not worth a word


def print_release(
    console: Console, release: Release, *, chart: bool = False, true: Sequence[Sequence[Any]] | None = None
) -> None:
    """The table, what it promises and what it cost.

    Args:
        console: Where.
        release: What.
        chart: Draw a bar beside each row, where there is one key and one number.
        true: The true cells, of made-up data only.
    """
    rows = release.rows[:SHOWN]
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    columns: list[list[Text]] = []
    for place, (name, key) in enumerate(zip(release.columns, release.keys, strict=True)):
        left = key and not (release.public and _numbers(row[place] for row in rows))
        table.add_column(Text(shown(name)), justify="left" if left else "right", overflow="fold")
        if key:
            columns.append([Text(shown(row[place], _KEY_WIDTH)) for row in rows])
            continue
        noisy = _noisy(release, place)
        columns.append(noisy)
        ends = [Text(release.in_all(at, place)) for at in range(len(rows))]
        if any(ends):
            table.add_column("in all", justify="right", style="dim")
            columns.append(ends)
        if true is not None:
            table.add_column("true", justify="right", style="cyan")
            columns.append([Text(shown(_near(row[place], each))) for row, each in zip(true, noisy, strict=True)])
    drawn = [] if not chart else _bars(console, release, columns)
    if drawn:
        table.add_column("", no_wrap=True)
        columns.append(drawn)
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    console.print(table)
    if len(release.rows) > SHOWN:
        console.print(Text(f"… {len(release.rows) - SHOWN:,} more; -o FILE and --json have all of them", "dim"))
    if not release.rows:
        console.print(Text("no rows", "dim"))
    for line in (release.summary, *map(shown, release.notes)):
        console.print(Text(line, "dim"))


def print_preview(console: Console, preview: Preview) -> None:
    """The error of each column at each price, and whether it can be paid, or is free."""
    from dalenius.ledger.budgets import rounded_down

    if preview.public:
        console.print(Text(", ".join(map(shown, preview.columns))))
        for line in (FREE, *map(shown, preview.notes)):
            console.print(Text(line, "dim"))
        return
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("ε", justify="right")
    noisy = [
        place
        for place in range(len(preview.columns))
        if any(each.noise_error[place] is not None for each in preview.choices)
    ]
    for place in noisy:
        table.add_column(Text(shown(preview.columns[place])), justify="right", overflow="fold")
    left = {who: rounded_down(each["epsilon"]) for who, each in preview.remaining.items()}
    most = min(each["epsilon"] for each in preview.remaining.values())
    if any(choice.known or choice.epsilon > most for choice in preview.choices):
        table.add_column("")
    for choice in preview.choices:
        cells = [Text(expected_error(choice, place) or "–") for place in noisy]
        said = [Text("more than is left", "yellow")] if choice.epsilon > most else []
        said = [Text(KNOWN, "green")] if choice.known else said
        table.add_row(Text(f"{choice.epsilon:g}"), *cells, *said)
    console.print(table)
    about = f"{preview.confidence * 100:.10g}% of answers are at most so far off"
    about += ": by the noise, and in all with what limits cut off" if preview.tells_totals else ", from the noise alone"
    for line in (
        f"{preview.size('row')} · {about} · left: you ε ≤ {left['analyst']:g}, data set ε ≤ {left['dataset']:g}",
        *map(shown, preview.notes),
    ):
        console.print(Text(line, "dim"))


def print_explanation(console: Console, explanation: Explanation) -> None:
    """What a question was understood to mean: titles, and what stands below them."""
    for title, lines in explanation.sections():
        console.print(Text(title, "bold"))
        for line in lines:
            console.print(Text(f"  {shown(line, _LINE)}"), soft_wrap=True)


def expected_error(choice: Choice, place: int) -> str:
    """What is expected of one column: ± from the noise, and in all where clipping is known; empty for keys."""
    told = choice.told(place)
    if told.noise_error is None:
        return ""
    said = f"± {'at most ' if told.at_most else ''}{shown_error(told.noise_error)}"
    if told.total_error is not None and told.total_error > _MORE * told.noise_error:
        said += f" (in all {shown_error(told.total_error)})"
    return said


def _noisy(release: Release, place: int) -> list[Text]:
    """Value ± error, each to the digits that the error justifies, aligned."""
    pairs = [
        with_error(row[place], errors[place])
        for row, errors in zip(release.rows[:SHOWN], release.noise_error, strict=False)
    ]
    wide = max((len(error) for _, error in pairs), default=0)
    return [Text.assemble((value, "bold"), f" ± {error:>{wide}}" if error else "") for value, error in pairs]


def _numbers(cells: Iterable[Any]) -> bool:
    return all(isinstance(each, int | float | Decimal | None) and not isinstance(each, bool) for each in cells)


def _near(true: Any, private: Text) -> str:
    """A true number with as many decimals as the private one has."""
    _, point, decimals = private.plain.split(" ")[0].partition(".")
    return f"{true:,.{len(decimals) if point else 0}f}" if isinstance(true, int | float) else str(true)


def _bars(console: Console, release: Release, columns: Sequence[Sequence[Text]]) -> list[Text]:
    """One bar per row, in what is left of the line."""
    noisy = [place for place, key in enumerate(release.keys) if not key]
    values = [row[noisy[0]] for row in release.rows] if len(noisy) == 1 else []
    if (
        sum(release.keys) != 1
        or not 2 <= len(values) <= SHOWN
        or any(not isinstance(each, int | float) for each in values)
    ):
        return []
    taken = sum(3 + max(each.cell_len for each in column) for column in columns)
    width = min(_BARS, console.width - taken - 12)
    if width < 8:
        return []
    return [Text(bar(float(value), float(max(values)), width), "cyan") for value in values]


def bar(value: float, top: float, width: int) -> str:
    """One bar, ``width`` characters long for ``top``, an eighth of a character fine.

    >>> bar(3, 8, 4), bar(-1, 8, 4)
    ('█▌', '▏')
    """
    eighths = round(8 * width * max(value, 0.0) / top) if top > 0 else 0
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "") or "▏"
