"""What the report is written with: headings, paragraphs, tables, and numbers for people; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from math import ceil, exp

from dalenius.app.balances import readable

LONG = 500  # rows of a table, the newest


def heading(step: int, words: str, name: str = "") -> str:
    """A heading, 1 being the title of the report or of the page that it is part of."""
    mark = f' id="{name}"' if name else ""
    return f'<h{step} class="t{step}"{mark}>{text(words)}</h{step}>'


def text(value: object) -> str:
    """Any text as HTML that shows it: what a browser would obey, or what is invisible, is made visible."""
    return escape(readable(value), quote=True)


class Html(str):
    """HTML that was made here, of texts that were escaped."""

    __slots__ = ()


_CLASSES = {"n": "n", "w": "w", "x": "long", "l": "l"}
_SHORT = 10  # rows that paper keeps together


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], kinds: str) -> str:
    """A table; of each column, ``kinds`` says: n number, w one line, x long, h head of its row, l anything else.

    A column in which nothing stands is left out.
    """
    lines = list(rows)
    used = [place for place in range(len(columns)) if not lines or any(row[place] for row in lines)]
    head = "".join(f'<th scope="col"{_mark(kinds[place])}>{text(columns[place])}</th>' for place in used)
    inside = "".join(f"<tr>{''.join(_cell(row[place], kinds[place]) for place in used)}</tr>" for row in lines)
    about = f"<caption><span>{text(caption)}</span></caption>"
    short = ' class="short"' if len(lines) <= _SHORT else ""
    return wide(caption, f"<table{short}>{about}<thead><tr>{head}</tr></thead><tbody>{inside}</tbody></table>")


def _cell(cell: str, kind: str) -> str:
    shown = cell if isinstance(cell, Html) else text(cell)
    return f'<th scope="row">{shown}</th>' if kind == "h" else f"<td{_mark(kind)}>{shown}</td>"


def _mark(kind: str) -> str:
    return f' class="{_CLASSES[kind]}"' if kind in _CLASSES else ""


def pairs(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and what they are."""
    cells = "".join(f'<tr><th scope="row">{text(name)}</th><td>{text(is_)}</td></tr>' for name, is_ in rows)
    about = f"<caption><span>{text(caption)}</span></caption>"
    return wide(caption, f'<table class="pairs short">{about}<tbody>{cells}</tbody></table>')


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


def many(count: int, one: str, more: str) -> str:
    """So many of a thing.

    >>> many(1, "question was", "questions were"), many(2000, "question was", "questions were")
    ('1 question was', '2,000 questions were')
    """
    return f"{count:,} {one if count == 1 else more}"


def when(time: str) -> str:
    """A time, to the minute."""
    return time[:16].replace("T", " ")


def rounded_up(value: float) -> str:
    """Three digits, rounded up: never less than what was spent.

    >>> rounded_up(0.12301), rounded_up(10 * 0.1), rounded_up(1.0000000000000002)
    ('0.124', '1', '1')
    """
    return f"{_up(value, 3):f}"


def _up(value: float, digits: int) -> Decimal:
    """Up to so many digits; what is in the last bits of a double is no reason to."""
    plain = Context(prec=12).create_decimal(repr(value))
    return Context(prec=digits, rounding=ROUND_CEILING).create_decimal(plain).normalize()


def chance(value: float) -> str:
    """A small probability, two digits, rounded up.

    >>> chance(1e-6), chance(8.39e-6), chance(0.00341), chance(0)
    ('1e-6', '8.4e-6', '0.0035', '0')
    """
    found = _up(value, 2)
    return f"{found:f}" if found >= Decimal("0.001") or not found else f"{found:e}"


def factor(epsilon: float) -> str:
    """e^ε, rounded up, for people.

    >>> factor(3), factor(0.01), factor(8), factor(50)
    ('20.1', '1.02', '2,981', 'more than a million')
    """
    if epsilon > 13.8:
        return "more than a million"
    found = exp(epsilon)
    return f"{ceil(found):,}" if found >= 100 else rounded_up(found)
