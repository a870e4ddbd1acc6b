"""Dates as texts: TO_CHAR, FORMAT, DATE_FORMAT, FORMAT_DATE and names of days and months, by STRFTIME and CASE."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dalenius.queries.rules.spelling.choices import case

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_NAMED = re.compile(r"(%[AaBb])")
_MOST_NAMES = 4  # of days and months in one format: each is a CASE of its own
_SHORT = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S"}
# The words of a format, longest first, each as STRFTIME has it.
_POSTGRES = {
    "YYYY": "%Y",
    "YY": "%y",
    "MM": "%m",
    "DDD": "%j",
    "DD": "%d",
    "HH24": "%H",
    "MI": "%M",
    "SS": "%S",
    "FMMonth": "%B",
    "FMDay": "%A",
    "Month": "%B",
    "Mon": "%b",
    "Day": "%A",
    "Dy": "%a",
}
_DOTNET = {
    "yyyy": "%Y",
    "yy": "%y",
    "MMMM": "%B",
    "MMM": "%b",
    "MM": "%m",
    "dddd": "%A",
    "ddd": "%a",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
}
_MYSQL = {"%i": "%M", "%s": "%S", "%M": "%B", "%W": "%A", "%T": "%H:%M:%S"}


def day_name(moment: Any) -> Any:
    """The name of a day of the week."""
    from sqlglot import exp

    return _name(exp.Extract(this=exp.var("dow"), expression=moment), DAYS, 0)


def month_name(moment: Any) -> Any:
    """The name of a month."""
    from sqlglot import exp

    return _name(exp.Extract(this=exp.var("month"), expression=moment), MONTHS, 1)


def _name(number: Any, names: tuple[str, ...], first: int) -> Any:
    from sqlglot import exp

    pairs = [(exp.Literal.number(at), exp.Literal.string(each)) for at, each in enumerate(names, first)]
    return case(number, pairs)


def name_day(node: Any, _: Known) -> Any:
    """DAYNAME(d) → English names, by CASE."""
    return day_name(node.this)


def name_month(node: Any, _: Known) -> Any:
    """MONTHNAME(d) → English names, by CASE."""
    return month_name(node.this)


def formatted(moment: Any, format_: str) -> Any:
    """STRFTIME(d, format), with names of days and months put together from CASE; None where there are many of them."""
    from sqlglot import exp

    for short, long in _SHORT.items():
        format_ = format_.replace(short, long)
    if len(_NAMED.findall(format_)) > _MOST_NAMES:
        return None
    found: Any = None
    for part in filter(None, _NAMED.split(format_)):
        match part:
            case "%A":
                piece = day_name(moment.copy())
            case "%B":
                piece = month_name(moment.copy())
            case "%a":
                piece = _shortened(day_name(moment.copy()))
            case "%b":
                piece = _shortened(month_name(moment.copy()))
            case _:
                piece = exp.TimeToStr(this=moment.copy(), format=exp.Literal.string(part))
        found = piece if found is None else exp.DPipe(this=found, expression=piece, safe=True)
    return exp.Paren(this=found) if isinstance(found, exp.DPipe) else found


def _shortened(named: Any) -> Any:
    from sqlglot import exp

    for each in named.args["ifs"]:
        each.set("true", exp.Literal.string(each.args["true"].name[:3]))
    return named


def format_time(node: Any, _: Known) -> Any:
    """STRFTIME with names, or with its arguments the other way round."""
    from sqlglot import exp

    moment, said = node.this, node.args.get("format")
    if isinstance(moment, exp.Literal) and moment.is_string and not isinstance(said, exp.Literal):
        moment, said = said, moment
    elif not _is_text(said) or not (_NAMED.search(said.name) or any(each in said.name for each in _SHORT)):
        return None
    return formatted(moment, said.name) if moment is not None else None


def to_char(node: Any, _: Known) -> Any:
    """TO_CHAR(d, 'YYYY-MM') → STRFTIME(d, '%Y-%m'); names of days and months have no blanks behind them."""
    format_ = format_of_text(node)
    return None if format_ is None else formatted(node.this, format_)


def format_of_text(node: Any) -> str | None:
    """The format of TO_CHAR in STRFTIME's words; None where it has no meaning there."""
    said = node.args.get("format")
    return _translated(said.name, _POSTGRES, ignore_case=True) if _is_text(said) else None


def to_format(node: Any, _: Known) -> Any:
    """FORMAT(d, 'yyyy-MM') → STRFTIME(d, '%Y-%m')."""
    if len(node.expressions) != 1 or not _is_text(node.expressions[0]):
        return None
    format_ = _translated(node.expressions[0].name, _DOTNET)
    return None if format_ is None else formatted(node.this, format_)


def format_date(node: Any, _: Known) -> Any:
    """FORMAT_DATE('%Y-%m', d) and its likes → STRFTIME(d, '%Y-%m')."""
    if not _is_text(node.expressions[0]):
        return None
    return formatted(node.expressions[1], node.expressions[0].name)


def date_format(node: Any, _: Known) -> Any:
    """DATE_FORMAT(d, '%Y-%m'), DATE_FORMAT(d, 'yyyy-MM') → STRFTIME(d, '%Y-%m')."""
    if not _is_text(node.expressions[1]):
        return None
    moment, said = node.expressions
    if "%" not in said.name:
        format_ = _translated(said.name, _DOTNET)
        return None if format_ is None else formatted(moment, format_)
    return formatted(moment, re.sub("%.", lambda found: _MYSQL.get(found[0], found[0]), said.name))


def _translated(said: str, words: Mapping[str, str], *, ignore_case: bool = False) -> str | None:
    """A format in STRFTIME's words; None where a letter means nothing."""
    exact = "|".join(sorted(words, key=len, reverse=True))
    found, at = "", 0
    for match in re.finditer(rf'({exact})|"([^"]*)"|([^A-Za-z%"]+)', said):
        if match.start() != at or "%" in (match[2] or ""):
            return None
        at = match.end()
        found += words[match[1]] if match[1] else (match[2] or match[3] or "")
    if at != len(said):
        return _translated(said.upper(), words) if ignore_case and said != said.upper() and said.islower() else None
    return found


def _is_text(node: Any) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Literal) and bool(node.is_string)
