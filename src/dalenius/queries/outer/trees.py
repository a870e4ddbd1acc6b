"""Parts of a syntax tree, as sqlglot has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def sources_of(select: Any) -> list[Any]:
    """What stands in FROM, from left to right."""
    from_ = select.args.get("from_")
    return [*([from_.this] if from_ is not None else []), *(each.this for each in select.args.get("joins") or [])]


def values_in(node: Any) -> Iterator[Any]:
    """The outermost queries in a part of a SELECT that stand for values; of a join, those of its condition."""
    from sqlglot import exp

    if isinstance(node, exp.Query):
        yield node
        return
    for part, value in node.args.items():
        if not (isinstance(node, exp.Join | exp.From) and part == "this"):
            for each in listed(value):
                yield from values_in(each)


def ended_apart(subquery: Any) -> Any:
    """`(SELECT …) ORDER BY n LIMIT 2` as `SELECT * FROM (SELECT …) ORDER BY n LIMIT 2`; any other as it is."""
    from sqlglot import exp

    ends = {part: subquery.args[part] for part in ("order", "limit", "offset") if subquery.args.get(part)}
    if not ends or subquery.alias:
        return subquery
    inner = subquery.copy()
    for part in (*ends, "with_"):
        inner.set(part, None)
    inner.set("alias", exp.TableAlias(this=exp.to_identifier("parenthesis", quoted=True)))
    found = exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner))
    for part, value in ends.items():
        found.set(part, value.copy())
    return found


def listed(value: Any) -> list[Any]:
    """An argument of a node, as nodes."""
    from sqlglot import exp

    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, exp.Expr)]


def speaks_of(tree: Any, name: str) -> bool:
    """Whether a table in it is called so."""
    from sqlglot import exp

    return any(each.name.lower() == name.lower() for each in tree.find_all(exp.Table))


def is_plain(table: Any) -> bool:
    """Whether it is a name alone."""
    from sqlglot import exp

    return isinstance(table.this, exp.Identifier) and not table.args.get("db") and not table.args.get("catalog")
