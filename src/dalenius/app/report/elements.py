"""What the report is written with: headings, paragraphs, tables, and numbers for people; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from html import escape
from math import ceil, exp

from dalenius.app.balances import readable
from dalenius.app.report.model import Report

LONG = 500  # rows of a table, the newest


@dataclass(frozen=True)
class Page:
    """One rendering: of what, and on which level its first heading stands."""

    report: Report
    level: int

    def heading(self, step: int, words: str, name: str = "") -> str:
        """A heading, ``step`` 1 being the title of the report."""
        tag = f"h{self.level + step - 1}"
        mark = f' id="{name}"' if name else ""
        return f'<{tag} class="t{step}"{mark}>{text(words)}</{tag}>'


def text(value: object) -> str:
    """Any text as HTML that shows it: what a browser would obey, or what is invisible, is made visible."""
    return escape(readable(value), quote=True)


class Html(str):
    """HTML that was made here, of texts that were escaped."""

    __slots__ = ()


_CLASSES = {"n": "n", "w": "w", "x": "long"}


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], kinds: str) -> str:
    """A table; of each column, ``kinds`` says: n number, w one line, x long, h head of its row, l anything else."""
    marks = [f' class="{_CLASSES[kind]}"' if kind in _CLASSES else "" for kind in kinds]
    head = "".join(f'<th scope="col"{mark}>{text(each)}</th>' for each, mark in zip(columns, marks, strict=True))
    lines = []
    for row in rows:
        cells = ""
        for cell, kind, mark in zip(row, kinds, marks, strict=True):
            shown = cell if isinstance(cell, Html) else text(cell)
            cells += f'<th scope="row">{shown}</th>' if kind == "h" else f"<td{mark}>{shown}</td>"
        lines.append(f"<tr>{cells}</tr>")
    inside = f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return wide(caption, f"<table>{inside}</table>")


def wide(name: str, inside: str) -> str:
    """What may be wider than a phone: it scrolls by itself, also from the keyboard."""
    return f'<div class="wide" tabindex="0" role="group" aria-label="{text(name)}">{inside}</div>'


def cut(count: int) -> str:
    """That a table was cut, if it was."""
    return p(f"The newest {LONG} of {count:,}; the ledger has all.", "soft small") if count > LONG else ""


def p(words: str, classes: str = "") -> str:
    """A paragraph."""
    return f'<p class="{classes}">{text(words)}</p>' if classes else f"<p>{text(words)}</p>"


def percent(share: float) -> str:
    """A share, for people."""
    return "under 1%" if 0 < share < 0.01 else f"{100 * share:.0f}%"


def times(count: int) -> str:
    """How often."""
    return "Once" if count == 1 else f"{count:,} times"


def when(time: str) -> str:
    """A time, to the minute."""
    return time[:16].replace("T", " ")


def rounded_up(value: float) -> str:
    """Three digits, rounded up: never less than what was spent."""
    return f"{Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(value)).normalize():f}"


def chance(value: float) -> str:
    """A small probability, two digits, rounded up."""
    return f"{Context(prec=2, rounding=ROUND_CEILING).create_decimal(repr(value)):g}" if value else "0"


def factor(epsilon: float) -> str:
    """e^ε, rounded up, for people.

    >>> factor(3), factor(0.01), factor(8), factor(50)
    ('20.1', '1.02', '2,981', 'more than a million')
    """
    if epsilon > 13.8:
        return "more than a million"
    found = exp(epsilon)
    return f"{ceil(found):,}" if found >= 100 else rounded_up(found)
