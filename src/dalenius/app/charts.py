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
        eighths = round(8 * width * max(row.value, 0.0) / top) if top > 0 else 0
        bar = "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
        chart.add_row(row.label, Text.assemble((bar or "▏", row.style), f" {row.sign}{row.value:,.{row.digits}f}"))
    return chart
