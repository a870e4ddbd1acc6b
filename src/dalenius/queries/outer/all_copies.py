"""A query of the outer part over all copies of the releases at once: in each window, group and join, one copy's rows.

One statement for all copies takes a tenth of the time that one for each would. Where a copy number in windows, groups
and joins is not enough to keep copies apart (LIMIT, DISTINCT, subqueries that stand for values), there is no such form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalenius.queries.outer.cutting import aggregates, column_of, named, table_named
from dalenius.queries.outer.sources import COPY, Source

_MIXING = ("limit", "offset", "distinct")  # of all rows, whichever copy they are of


def over_copies(select: Any, sources: Sequence[Source]) -> Any:
    """The SELECT over copies, with their number as its last column; None: it has no such form.

    Args:
        select: A SELECT over these sources, in which each is a name.
        sources: What stands in its FROM, from left to right.
    """
    from sqlglot import exp

    if not sources or not sources[0].copies or any(each.copies is None for each in sources):
        return None
    found = select.copy()
    inner = any(isinstance(each, exp.Query) and each is not found for each in found.walk())
    if inner or any(found.args.get(each) for each in _MIXING):
        return None
    found.set("order", None)
    copy = column_of(sources[0].alias, COPY)
    joins = found.args.get("joins") or []
    if not all(_join(join, source, copy) for join, source in zip(joins, sources[1:], strict=True)):
        return None
    found.args["from_"].set("this", _table(found.args["from_"].this, sources[0]))
    for each in found.find_all(exp.Window):
        if not each.args.get("alias"):  # else it follows the one that it names
            each.set("partition_by", [copy.copy(), *(each.args.get("partition_by") or [])])
    group = found.args.get("group")
    if aggregates(found):
        keys = [] if group is None else group.expressions
        sets = any(isinstance(each, exp.GroupingSets | exp.Rollup | exp.Cube) for each in keys)
        if sets or (group is not None and group.args.get("all")):
            return None
        found.set("group", exp.Group(expressions=[*keys, copy.copy()]))
    found.set("expressions", [*found.expressions, named(copy, COPY)])
    return found


def _join(join: Any, source: Source, copy: Any) -> bool:
    """Joins a source copy by copy; False where that cannot be."""
    from sqlglot import exp

    if source.copies == "":
        return not join.args.get("side") or join.side == "LEFT"
    if join.args.get("method") or join.side not in {"", "LEFT"} or join.kind not in {"", "INNER", "OUTER", "CROSS"}:
        return False
    join.set("this", _table(join.this, source))
    if join.args.get("using"):
        join.set("using", [*join.args["using"], exp.to_identifier(COPY, quoted=True)])
        return True
    same = exp.EQ(this=column_of(source.alias, COPY), expression=copy.copy())
    before = join.args.get("on")
    join.set("kind", None if join.kind == "CROSS" else join.args.get("kind"))
    join.set("on", same if before is None else exp.And(this=exp.Paren(this=before), expression=same))
    return True


def _table(node: Any, source: Source) -> Any:
    """A source in FROM, by the name of its copies."""
    found = table_named(source.copies or "", source.alias)
    columns = node.args["alias"].args.get("columns") if node.args.get("alias") else None
    if columns:
        found.args["alias"].set("columns", columns)
    return found
