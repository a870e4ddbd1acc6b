"""Rows that a question lists in other words: SELECT 'a' UNION ALL SELECT 'b', SELECT UNNEST(['a', 'b']), series."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from dalenius.measuring.listed import MOST_LISTED

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known

_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def list_rows(node: Any, _: Known) -> Any:
    """FROM (SELECT 'a' AS x UNION ALL SELECT 'b') t → FROM (VALUES ('a'), ('b')) AS t(x); SELECT UNNEST(…) likewise."""
    from sqlglot import exp

    if not isinstance(node.parent, exp.Subquery | exp.CTE) or node.args.get("with_") or node.args.get("with"):
        return None
    found = _unnested(node) if isinstance(node, exp.Select) else None
    found = _constants(node) if found is None else found
    if found is None:
        return None
    names, rows = found
    values = exp.Values(
        expressions=[exp.Tuple(expressions=row) for row in rows],
        alias=exp.TableAlias(this=exp.to_identifier("_values"), columns=[exp.to_identifier(each) for each in names]),
    )
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=values))


def list_series(node: Any, _: Known) -> Any:
    """FROM GENERATE_SERIES(1, 12) AS t(m) → FROM (VALUES (1), …) AS t(m); also within UNNEST."""
    from sqlglot import exp

    if isinstance(node, exp.Table):
        inner, name = node.this, "generate_series"
        if isinstance(inner, exp.GenerateSeries) and inner.args.get("is_end_exclusive"):
            name = "range"
    else:
        inner, name = node.expressions[0] if len(node.expressions) == 1 else None, node.alias or "unnest"
    values = _series(inner)
    if values is None or node.args.get("offset"):
        return None
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    if not alias.args.get("columns"):
        # DuckDB names the column by the table's name where that is given
        alias.set("columns", [exp.to_identifier(node.alias or name)])
    return exp.Values(expressions=[exp.Tuple(expressions=[each]) for each in values], alias=alias)


def match_values(node: Any, _: Known) -> Any:
    """x IN (VALUES ('a'), ('b')) → x IN ('a', 'b')."""
    from sqlglot import exp

    given = node.expressions
    if len(given) != 1 or not isinstance(given[0], exp.Values) or isinstance(node.this, exp.Tuple):
        return None
    rows = given[0].expressions
    if any(len(each.expressions) != 1 for each in rows):
        return None
    return exp.In(this=node.this, expressions=[each.expressions[0] for each in rows])


def _unnested(node: Any) -> tuple[list[str], list[list[Any]]] | None:
    from sqlglot import exp

    if not _bare(node) or len(node.expressions) != 1:
        return None
    item = node.expressions[0]
    inner = item.this if isinstance(item, exp.Alias) else item
    if not isinstance(inner, exp.Explode):
        return None
    values = inner.this.expressions if isinstance(inner.this, exp.Array) else _series(inner.this)
    return None if values is None else ([item.alias or "unnest"], [[each] for each in values])


def _constants(node: Any) -> tuple[list[str], list[list[Any]]] | None:
    """The names and rows of SELECTs of constants, one below another."""
    from sqlglot import exp

    parts, waiting = [], [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, exp.Union) and not each.args.get("distinct") and not each.args.get("by_name"):
            if any(each.args.get(part) for part in ("order", "limit", "offset")):
                return None
            waiting += [each.expression, each.this]
        elif isinstance(each, exp.Subquery) and not each.args.get("alias"):
            waiting.append(each.this)
        elif isinstance(each, exp.Select) and _bare(each):
            parts.append(each)
        else:
            return None
    names = [item.alias for item in parts[0].expressions]
    if not names or not all(names) or len({each.lower() for each in names}) < len(names):
        return None
    rows = [[each.this if isinstance(each, exp.Alias) else each for each in part.expressions] for part in parts]
    return names, rows


def _bare(node: Any) -> bool:
    """Whether a SELECT has items alone, which read no table."""
    from sqlglot import exp

    if any(value for part, value in node.args.items() if part not in {"expressions", "kind"}):
        return False
    return not any(each.find(exp.Column, exp.Star, exp.Query) for each in node.expressions)


def _series(node: Any) -> list[Any] | None:
    """The values of a series of whole numbers or of days; None: it is none, or too long."""
    from sqlglot import exp

    if (
        isinstance(node, exp.Anonymous)
        and str(node.this).upper() == "GENERATE_ARRAY"
        and 2 <= len(node.expressions) <= 3
    ):
        start, end, step = (*node.expressions, None)[:3]
        last = True
    elif isinstance(node, exp.GenerateSeries | exp.GenerateDateArray):
        start, end, step = node.args.get("start"), node.args.get("end"), node.args.get("step")
        last = not node.args.get("is_end_exclusive")
    else:
        return None
    days = _day(start), _day(end)
    if days[0] is not None and days[1] is not None:
        found, end_day = _days(days[0], days[1], step), days[1]
        moments = isinstance(node, exp.GenerateSeries)  # as DuckDB has them
        shown = None if found is None else (_written_day(each, moments) for each in found if last or each < end_day)
        return None if shown is None else _taken(shown)
    ends = _whole(start), _whole(end), 1 if step is None else _whole(step)
    if None in ends or not ends[2]:
        return None
    one, two, by = (int(each) for each in ends if each is not None)
    stop = two + (1 if by > 0 else -1) if last else two
    return _taken(_written_number(each) for each in range(one, stop, by))


def _taken(values: Iterator[Any]) -> list[Any] | None:
    found: list[Any] = []
    for each in values:
        if len(found) == MOST_LISTED:
            return None
        found.append(each)
    return found or None


def _days(start: date, end: date, step: Any) -> Iterator[date] | None:
    from sqlglot import exp

    count = _whole(step.this) if isinstance(step, exp.Interval) else 1 if step is None else None
    unit = "DAY" if step is None else str(step.args.get("unit") or "").upper() if isinstance(step, exp.Interval) else ""
    if count is None or count < 1 or unit not in {*_DAYS, *_MONTHS}:
        return None
    if unit in _MONTHS and start.day > 28:  # which days come after the end of a month differs between databases
        return None
    return _stepped(start, end, count, unit)


def _stepped(start: date, end: date, count: int, unit: str) -> Iterator[date]:
    at, day = 0, start
    while day <= end:
        yield day
        at += count
        try:
            day = start + timedelta(days=at * _DAYS[unit]) if unit in _DAYS else _later(start, at * _MONTHS[unit])
        except (OverflowError, ValueError):
            return


def _later(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    return day.replace(year=day.year + years, month=month + 1)


def _day(node: Any) -> date | None:
    from sqlglot import exp

    inner = node.this if isinstance(node, exp.Cast) and node.to.is_type("date") else node
    if not isinstance(inner, exp.Literal) or not inner.is_string:
        return None
    try:
        return date.fromisoformat(inner.name)
    except ValueError:
        return None


def _whole(node: Any) -> int | None:
    from sqlglot import exp

    if isinstance(node, exp.Neg):
        inner = _whole(node.this)
        return None if inner is None else -inner
    if not isinstance(node, exp.Literal) or not node.name.isdecimal() or not node.name.isascii() or len(node.name) > 12:
        return None
    return int(node.name)


def _written_number(value: int) -> Any:
    from sqlglot import exp

    shown = exp.Literal.number(abs(value))
    return exp.Neg(this=shown) if value < 0 else shown


def _written_day(value: date, moment: bool) -> Any:
    from sqlglot import exp

    type_ = exp.DataType.build("timestamp" if moment else "date")
    return exp.Cast(this=exp.Literal.string(value.isoformat()), to=type_)
