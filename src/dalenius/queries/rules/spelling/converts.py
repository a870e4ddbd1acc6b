"""CONVERT(varchar(7), d, 120), as SQL Server writes dates as texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.queries.rules.spelling.dates import is_day

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known

# Those of CONVERT in SQL Server; the second list has a time, which a date has not.
_STYLES = {1: "%m/%d/%y", 3: "%d/%m/%y", 4: "%d.%m.%y", 12: "%y%m%d", 23: "%Y-%m-%d", 101: "%m/%d/%Y", 102: "%Y.%m.%d"}
_STYLES |= {103: "%d/%m/%Y", 104: "%d.%m.%Y", 105: "%d-%m-%Y", 108: "%H:%M:%S", 110: "%m-%d-%Y", 111: "%Y/%m/%d"}
_STYLES |= {112: "%Y%m%d"}
_TIMED_STYLES = frozenset({20, 21, 120, 121, 126, 127})
_ALL = (*sorted(_STYLES), 20, 120)


def convert_text(node: Any, known: Known) -> Any:
    """CONVERT(varchar(7), d, 120) → LEFT(STRFTIME(d, …), 7); without a style it is a cast."""
    from sqlglot import exp

    size, value, *styles = node.expressions
    if not all(isinstance(each, exp.Literal) and each.name.isdigit() for each in (size, *styles)):
        return None
    length = int(size.name)
    if not styles:
        found: Any = exp.Cast(this=value, to=exp.DataType.build("VARCHAR", dialect="duckdb"))
    else:
        format_ = _styled(int(styles[0].name), length, day=is_day(value, known))
        if format_ is None:
            raise QuestionRefusedError(
                f"CONVERT with style {styles[0].name} is not supported.",
                why=f"Of its styles, those are read here that have whole seconds: {', '.join(map(str, _ALL))}.",
                fix="Write one of them, FORMAT(d, 'yyyy-MM-dd') or CAST(d AS DATE).",
            )
        found = exp.TimeToStr(this=value, format=exp.Literal.string(format_))
    if not length:
        return found
    return exp.Left(this=found, expression=exp.Literal.number(length))


def _styled(style: int, length: int, *, day: bool) -> str | None:
    """A style of SQL Server's; of those with parts of a second only what comes before them."""
    if style in _TIMED_STYLES:
        if day or 0 < length <= len("2024-02-29"):
            return "%Y-%m-%d"
        whole = style in {20, 120} or 0 < length <= len("2024-02-29T12:00:00")
        return ("%Y-%m-%dT%H:%M:%S" if style in {126, 127} else "%Y-%m-%d %H:%M:%S") if whole else None
    return _STYLES.get(style)
