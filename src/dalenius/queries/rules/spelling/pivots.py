"""PIVOT with listed values, as GROUP BY with one aggregate for each value.

`PIVOT t ON x IN ('a', 'b') USING SUM(y) GROUP BY z` is `SELECT z, SUM(y) FILTER (WHERE x = 'a') AS a, … GROUP BY z`.
Which columns there are must not depend on rows, so the values are listed; and by which the rest is grouped must be
said, by GROUP BY or by a subquery that selects it. Any other PIVOT stays as it is, to be refused by name.
"""

from __future__ import annotations

from typing import Any

from dalenius.queries.rules.spelling.growth import check_copies

_MOST = 100  # columns that are made


def write_pivots(tree: Any) -> Any:
    """The statement with each PIVOT written out where that can be."""
    from sqlglot import exp

    if isinstance(tree, exp.Pivot):
        found = _statement(tree)
        return tree if found is None else found
    for node in list(tree.find_all(exp.Subquery, exp.CTE, exp.Table)):
        pivots: list[Any] = node.args.get("pivots") or []
        if len(pivots) == 1:
            _written_below(node, pivots[0])
        elif isinstance(node, exp.Subquery | exp.CTE) and isinstance(node.this, exp.Pivot):
            inner = _statement(node.this)
            if inner is not None:
                node.set("this", inner)
    return tree


def _statement(pivot: Any) -> Any:
    """PIVOT t ON x IN ('a', 'b') USING SUM(y) GROUP BY z."""
    from sqlglot import exp

    ons, using = pivot.expressions, pivot.args.get("using") or [exp.Count(this=exp.Star(), big_int=True)]
    source = pivot.this
    if pivot.args.get("unpivot") or len(ons) != 1 or not isinstance(source, exp.Table | exp.Subquery):
        return None
    if any(pivot.args.get(part) for part in ("with", "with_", "into", "alias")) or source.args.get("joins"):
        return None
    return _grouped(source, ons[0], using, pivot.args.get("group"))


def _written_below(node: Any, pivot: Any) -> None:
    """FROM t PIVOT (SUM(y) FOR x IN ('a', 'b') GROUP BY z) → FROM (SELECT z, … GROUP BY z)."""
    from sqlglot import exp

    fields: list[Any] = pivot.args.get("fields") or []
    if pivot.args.get("unpivot") or len(fields) != 1 or node.args.get("joins"):
        return
    source, alias = node.copy(), pivot.args.get("alias")
    source.set("pivots", None)
    found = _grouped(source, fields[0], pivot.expressions, pivot.args.get("group"))
    if found is not None and (alias is None or not alias.args.get("columns")):
        node.replace(exp.Subquery(this=found, alias=alias.copy() if alias is not None else None))


def _grouped(source: Any, on: Any, aggregates: list[Any], group: Any) -> Any:
    from sqlglot import exp

    if not isinstance(on, exp.In) or not isinstance(on.this, exp.Column) or on.args.get("query") or not aggregates:
        return None
    values = [found for each in on.expressions if (found := _value(each)) is not None]
    if not values or len(values) < len(on.expressions) or len(values) * len(aggregates) > _MOST:
        return None
    plain = [each.this if isinstance(each, exp.Alias) else each for each in aggregates]
    if not all(isinstance(each, exp.AggFunc) for each in plain):
        return None
    keys = _keys(source, on.this, plain, group)
    if keys is None:
        return None
    items: list[Any] = [each.copy() for each in keys]
    for name, value in values:
        for aggregate, inner in zip(aggregates, plain, strict=True):
            check_copies(inner, len(values))
            chosen = exp.Where(this=exp.EQ(this=on.this.copy(), expression=value.copy()))
            shown = (
                name if len(aggregates) == 1 and not aggregate.alias else f"{name}_{aggregate.alias or _shown(inner)}"
            )
            filtered = exp.Filter(this=inner.copy(), expression=chosen)
            items.append(exp.alias_(filtered, shown, quoted=True, copy=False))
    grouped = exp.Group(expressions=[each.copy() for each in keys]) if keys else None
    return exp.Select(expressions=items, from_=exp.From(this=source), group=grouped)


def _value(node: Any) -> tuple[str, Any] | None:
    """The name and the value of one column."""
    from sqlglot import exp

    name = ""
    if isinstance(node, exp.Alias):  # PivotAlias is one
        name, node = str(node.args["alias"].name), node.this
    return (name or node.name, node) if isinstance(node, exp.Literal) and node.name else None


def _keys(source: Any, on: Any, aggregates: list[Any], group: Any) -> list[Any] | None:
    """What the rest is grouped by: what is said, or all other columns of a subquery; None: that is not plain."""
    from sqlglot import exp

    if group is not None:
        said = group.expressions
        return list(said) if said and all(isinstance(each, exp.Column) for each in said) else None
    select = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(select, exp.Select) or not all(each.alias_or_name for each in select.expressions):
        return None
    used = {on.name.lower(), *(each.name.lower() for one in aggregates for each in one.find_all(exp.Column))}
    names = [each.alias_or_name for each in select.expressions if not isinstance(each, exp.Star)]
    if len(names) < len(select.expressions) or not used <= {each.lower() for each in names}:
        return None
    return [exp.column(exp.to_identifier(each)) for each in names if each.lower() not in used]


def _shown(aggregate: Any) -> str:
    """What DuckDB calls an aggregate."""
    from sqlglot import exp

    if isinstance(aggregate, exp.Count) and isinstance(aggregate.this, exp.Star):
        return "count_star()"
    return str(aggregate.sql(dialect="duckdb")).lower()
