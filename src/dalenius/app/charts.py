"""Charts in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

_EIGHTHS = " ▏▎▍▌▋▊▉█"


class Bar(NamedTuple):
    """One bar of a chart."""

    label: str
    value: float
    sign: str = ""
    style: str = "cyan"
    digits: int = 1


def bars(rows: Sequence[Bar], width: int = 48) -> Table:
    """Horizontal bars to scale, an eighth of a character fine; negative values are drawn empty."""
    top = max((row.value for row in rows), default=0.0)
    chart = Table.grid(padding=(0, 1))
    chart.add_column(justify="right", style="dim")
    chart.add_column(no_wrap=True)
    for row in rows:
        drawn = (bar(row.value, top, width), row.style)
        chart.add_row(row.label, Text.assemble(drawn, f" {row.sign}{row.value:,.{row.digits}f}"))
    return chart


def bar(value: float, top: float, width: int) -> str:
    """One bar, ``width`` characters long for ``top``.

    >>> bar(3, 8, 4), bar(-1, 8, 4)
    ('█▌', '▏')
    """
    eighths = round(8 * width * max(value, 0.0) / top) if top > 0 else 0
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "") or "▏"
