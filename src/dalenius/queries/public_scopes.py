"""Which names in a question over public tables are tables, in sqlglot's tree; as `measuring.engines.public_scopes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.public_checks import folded

if TYPE_CHECKING:
    from sqlglot import exp

_NONE: frozenset[str] = frozenset()


def is_plain(table: exp.Table) -> bool:
    """Whether it is a name alone: no function, no text, nothing before it."""
    from sqlglot import exp

    return isinstance(table.this, exp.Identifier) and not table.args.get("db") and not table.args.get("catalog")


def tables_of(tree: exp.Expr) -> Iterator[exp.Table]:
    """The tables in sqlglot's tree that no WITH in sight gives: they must be public ones."""
    from sqlglot import exp

    waiting: list[tuple[exp.Expr, frozenset[str], str]] = [(tree, _NONE, "")]
    while waiting:
        node, seen, itself = waiting.pop()
        if isinstance(node, exp.Table) and not (is_plain(node) and folded(node.name) in seen):
            yield node
        for value in node.args.values():
            if isinstance(value, exp.With):
                parts, seen = _given(value, seen)
                waiting += parts
        # Of a WITH RECURSIVE, the part after UNION may speak of itself; the one before it may not.
        recursive = itself if isinstance(node, exp.SetOperation) else ""
        for key, value in node.args.items():
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, exp.Expr) and not isinstance(child, exp.With):
                    more = {recursive} if recursive and key == "expression" else _NONE
                    waiting.append((child, seen | more, ""))


def _given(with_: exp.With, seen: frozenset[str]) -> tuple[list[tuple[exp.Expr, frozenset[str], str]], frozenset[str]]:
    """The parts of a WITH, each with what it sees; and what is seen after it."""
    from sqlglot import exp

    parts: list[tuple[exp.Expr, frozenset[str], str]] = []
    for each in with_.iter_expressions():
        if not isinstance(each, exp.CTE):
            parts.append((each, seen, ""))
            continue
        name = folded(each.alias)
        itself = name if with_.args.get("recursive") else ""
        parts += [(child, seen, itself if child is each.this else "") for child in each.iter_expressions()]
        seen |= {name}
    return parts, seen
