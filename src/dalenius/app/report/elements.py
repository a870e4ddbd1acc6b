"""What the report is written with: headings, paragraphs, tables, numbers for people, and drawings.

Every text is escaped. Drawings are SVG that we write ourselves, without script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from math import ceil, exp, floor, log10

from dalenius.app.views import readable

LONG = 500  # rows of a table, the newest
_WIDTH, _HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 16, 20, 30
_APART = 20  # from one label to the next


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


def meter(share: float) -> str:
    """A bar for a share between 0 and 1; decoration beside a number."""
    width = 100 * min(1.0, max(0.0, share))
    return (
        '<svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="rail" width="100" height="8"/><rect class="mark" width="{width:.2f}" height="8"/></svg>'
    )


def steps(name: str, line: Sequence[tuple[str, float]], caps: Sequence[tuple[str, float]], end: str) -> str:
    """What was spent over time, as steps, below what was promised at each moment."""
    begin = _seconds(min(caps[0][0], *(when for when, _ in line[:1]), end))
    last = max(_seconds(end), begin + 60.0)
    top = 1.08 * max(value for _, value in (*line, *caps))

    def path(points: Sequence[tuple[str, float]], first: float | None) -> str:
        before = first
        drawn = [f"M{_x(begin, begin, last):.1f} {_y(first, top):.1f}"] if first is not None else []
        for when, value in points:
            x = _x(_seconds(when), begin, last)
            if before is None:
                drawn.append(f"M{x:.1f} {_y(value, top):.1f}")
            else:
                drawn.append(f"L{x:.1f} {_y(before, top):.1f}L{x:.1f} {_y(value, top):.1f}")
            before = value
        if before is not None:
            drawn.append(f"L{_x(last, begin, last):.1f} {_y(before, top):.1f}")
        return "".join(drawn)

    spent, promised = line[-1][1] if line else 0.0, caps[-1][1]
    low, high = _y(spent, top), _y(promised, top)
    inside = _grid(top) + f'<path class="cap" d="{path(caps, None)}"/><path class="line" d="{path(line, 0.0)}"/>'
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        when = begin + share * (last - begin)
        inside += _label(_x(when, begin, last), _HEIGHT - 8, _day(when, last - begin), anchor)
    inside += _label(_WIDTH - _RIGHT, high - 5, f"promised: ε = {promised:g}", "end")
    if spent:  # below the line where above it the other label stands
        under = abs(low - high) < _APART or low < high
        inside += _label(_WIDTH - _RIGHT, low + 14 if under else low - 5, f"spent: ε = {rounded_up(spent)}", "end")
    told = f"Privacy loss of {readable(name)} over time: {rounded_up(spent)} of {promised:g} at the end."
    return _drawing(told, inside)


def bars(name: str, rows: Sequence[tuple[str, float]], cap: float) -> str:
    """What was spent in each period, as bars, below what was promised for each."""
    top = 1.08 * max(cap, *(value for _, value in rows))
    slot = (_WIDTH - _LEFT - _RIGHT) / len(rows)
    inside = _grid(top)
    every = -(-len(rows) // 8)  # labels that do not run together
    for place, (period, value) in enumerate(rows):
        x, y = _LEFT + slot * (place + 0.15), _y(value, top)
        inside += f'<rect class="mark" x="{x:.1f}" y="{y:.1f}" width="{0.7 * slot:.1f}" height="{_y(0, top) - y:.1f}"/>'
        if place % every == 0:
            inside += _label(x + 0.35 * slot, _HEIGHT - 8, period, "middle")
    height = _y(cap, top)
    inside += f'<path class="cap" d="M{_LEFT} {height:.1f}H{_WIDTH - _RIGHT}"/>'
    inside += _label(_WIDTH - _RIGHT, height - 5, f"promised for each: ε = {cap:g}", "end")
    return _drawing(f"Privacy loss of {readable(name)} in each period.", inside)


def paired_bars(name: str, rows: Sequence[tuple[str, float, float]], names: tuple[str, str], unit: str) -> str:
    """Two bars for each row, the first one faint: before and after."""
    top = 1.08 * max(1.0, *(value for _, *values in rows for value in values))
    slot = (_WIDTH - _LEFT - _RIGHT) / len(rows)
    inside = _grid(top, unit)
    for place, (label, *values) in enumerate(rows):
        for at, (value, kind) in enumerate(zip(values, ("rail", "mark"), strict=True)):
            x, y = _LEFT + slot * (place + 0.12 + 0.39 * at), _y(value, top)
            height = _y(0, top) - y
            inside += f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{0.37 * slot:.1f}" height="{height:.1f}"/>'
        inside += _label(_LEFT + slot * (place + 0.5), _HEIGHT - 8, label, "middle")
    for at, (word, kind) in enumerate(zip(names, ("rail", "mark"), strict=True)):
        x = _WIDTH - _RIGHT - 150 + 80 * at
        inside += f'<rect class="{kind}" x="{x}" y="6" width="10" height="10"/>' + _label(x + 15, 15, word, "start")
    return _drawing(name, inside)


def _drawing(told: str, inside: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{text(told)}">'
        f"<title>{text(told)}</title>{inside}</svg>"
    )


def _grid(top: float, unit: str = "ε") -> str:
    step = _step(top)
    drawn, value = "", 0.0
    while value <= top:
        y = _y(value, top)
        drawn += f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>'
        drawn += _label(_LEFT - 8, y + 4, f"{value:,g}" if value < 1e6 else f"{value:.2g}", "end")
        value = round(value + step, 12)
    return drawn + _label(_LEFT - 8, _TOP - 8, unit, "end")


def _step(top: float) -> float:
    """A round step that gives three to six lines."""
    unit = 10.0 ** floor(log10(top / 3))
    return next(unit * each for each in (5, 2, 1) if top / (unit * each) >= 3)


def _x(when: float, begin: float, last: float) -> float:
    share = min(1.0, max(0.0, (when - begin) / (last - begin)))
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float, top: float) -> float:
    return _TOP + (1 - min(value, top) / top) * (_HEIGHT - _TOP - _BOTTOM)


def _label(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(words)}</text>'


def _seconds(when: str) -> float:
    return datetime.fromisoformat(when).timestamp()


def _day(when: float, span: float) -> str:
    form = "%Y-%m-%d" if span > 4 * 86400 else "%m-%d %H:%M" if span > 86400 else "%H:%M:%S"
    return datetime.fromtimestamp(when, UTC).strftime(form)
