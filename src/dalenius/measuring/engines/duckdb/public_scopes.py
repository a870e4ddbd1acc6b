"""Which names in a question over public tables are names of a WITH, where they stand, and which are tables.

A name that a WITH gives holds inside of it only: in what follows it in the list, and in the query that it belongs to.
Anywhere else the same name is a table; and for a name that is none DuckDB looks for a file of that name. So a name is
taken for one of a WITH only where that WITH is in sight, and otherwise it must be a public table. Where DuckDB is more
generous than what is said here, a question is refused; it must never be the other way round.

Both readers of a question are looked at with the same rules: sqlglot's tree (`queries.public_questions`), and here what
DuckDB's own parser made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_ASCII = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_NONE: frozenset[str] = frozenset()


def folded(name: str) -> str:
    """A name as DuckDB compares it: A to Z in lower case, and nothing else; `lower` would take K (Kelvin) for k."""
    return name.translate(_ASCII)


def nodes_of(tree: Any) -> Iterator[tuple[Mapping[str, Any], frozenset[str]]]:
    """All nodes of what DuckDB's parser made, each with the names that a WITH in sight gives."""
    waiting: list[tuple[Any, frozenset[str]]] = [(tree, _NONE)]
    while waiting:
        node, seen = waiting.pop()
        if isinstance(node, list):
            waiting += [(each, seen) for each in node]
        if not isinstance(node, dict):
            continue
        yield node, seen
        for entry in (node.get("cte_map") or {}).get("map", ()):
            waiting.append((entry["value"], seen))
            seen |= {folded(str(entry["key"]))}
        # Where the node itself is a WITH, its name holds in one part of it.
        inside = {"RECURSIVE_CTE_NODE": "right", "CTE_NODE": "child"}.get(str(node.get("type")))
        itself = folded(str(node.get("cte_name") or node.get("ctename") or ""))
        for key, value in node.items():
            if key != "cte_map":
                waiting.append((value, seen | {itself} if key == inside and itself else seen))
