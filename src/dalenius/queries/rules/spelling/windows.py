"""DISTINCT over windows that all have one PARTITION BY, as people type it for GROUP BY.

`SELECT DISTINCT region, COUNT(*) OVER (PARTITION BY region) FROM people` gives every row its region's count, and then
one row of each: what `SELECT region, COUNT(*) FROM people GROUP BY region` gives. Each row of a partition has the same
values, so one row of each partition is left, or fewer, where partitions have equal values; DISTINCT stays for these.
"""

from __future__ import annotations

from typing import Any

from dalenius.queries.rules.aggregated import is_aggregate

_OTHERS = ("group", "having", "qualify", "windows")  # with any of these it means something else


def regroup(tree: Any) -> Any:
    """The question with GROUP BY in place of its windows, where it means the same; otherwise as it is."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select):
        return tree
    distinct = tree.args.get("distinct")
    if distinct is None or distinct.args.get("on") is not None or any(tree.args.get(each) for each in _OTHERS):
        return tree
    parts = [*tree.expressions, *((tree.args.get("order") or exp.Order()).expressions)]
    windows = [each for part in parts for each in part.find_all(exp.Window)]
    keys = _keys(windows[0]) if windows else None
    if keys is None or not all(_is_plain(each) and _keys(each) == keys for each in windows):
        return tree
    items = [each.unalias() for each in tree.expressions]
    if not all(_is_of(each, keys) for each in items):
        return tree
    found = tree.copy()
    for each in list(found.find_all(exp.Window)):
        each.replace(each.this)
    by = [each.copy() for each in windows[0].args.get("partition_by") or ()]
    if by:
        found.set("group", exp.Group(expressions=by))
    if keys <= {_text(each) for each in items}:
        found.set("distinct", None)
    return found


def _is_plain(window: Any) -> bool:
    """Whether a window is an aggregate over all rows of its partition."""
    from sqlglot import exp

    function = window.this.this if isinstance(window.this, exp.Filter) else window.this
    whole = not any(window.args.get(each) for each in ("order", "spec", "alias", "first"))
    return whole and is_aggregate(function)


def _keys(window: Any) -> frozenset[str]:
    return frozenset(_text(each) for each in window.args.get("partition_by") or ())


def _is_of(node: Any, keys: frozenset[str]) -> bool:
    """Whether an item is made of keys, windows and constants alone."""
    from sqlglot import exp

    if isinstance(node, exp.Window) or _text(node) in keys:
        return True
    if isinstance(node, exp.Column | exp.Star | exp.Query):
        return False
    return all(_is_of(each, keys) for each in node.iter_expressions())


def _text(node: Any) -> str:
    return str(node.sql(dialect="duckdb", comments=False)).lower()
