"""A question over public tables, as DuckDB's own parser sees it: only what is on the lists may run.

The text was parsed by sqlglot, checked and written anew; this looks at the same statement a second time, through the
eyes of the engine that will run it, so that two parsers would have to be misled in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from dalenius.measuring.engines.duckdb.public_functions import ARGUMENTS, FUNCTIONS, SESSION
from dalenius.measuring.engines.duckdb.public_scopes import folded, nodes_of

_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_SOURCES = {"BASE_TABLE", "SUBQUERY", "JOIN", "EMPTY", "EXPRESSION_LIST", "TABLE_FUNCTION"}
_ENDS = {"ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"}
_ORDERS = {"ORDER_DEFAULT", "ASCENDING", "DESCENDING"}
_TYPES = _NODES | _SOURCES | _ENDS | _ORDERS
_CLASSES = {
    "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "LAMBDA",
    "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW",
}  # fmt: skip
_SYSTEM = ("duckdb_", "pg_", "pragma_", "sqlite_")  # how DuckDB's own tables are called


def refused(tree: Any, tables: Collection[str], columns: Collection[str]) -> str | None:
    """What of a statement may not run, in words; None: all of it may.

    Args:
        tree: What `json_serialize_sql` gives for it.
        tables: The public tables that it may read, in lower case.
        columns: All of their columns, in lower case.
    """
    if tree.get("error") or len(tree.get("statements", ())) != 1:
        return "a statement that is not one SELECT"
    nodes = list(nodes_of(tree["statements"][0]["node"]))
    own = {folded(name) for node, _ in nodes for name in _common(node)}
    system = sorted(name for name in own if name.startswith(_SYSTEM))
    if system:  # outside its scope the name would mean DuckDB's table
        return f"the name {system[0]}"
    for node, seen in nodes:
        words = _refused(node, seen | set(tables), columns)
        if words is not None:
            return words
    return None


def _refused(node: Mapping[str, Any], tables: Collection[str], columns: Collection[str]) -> str | None:
    kind = node.get("class")
    if kind is not None:
        return _refused_expression(node, str(kind), columns)
    if node.get("sample") or node.get("at_clause"):
        return "a sample of a table" if node.get("sample") else "AT"
    type_ = node.get("type")
    if isinstance(type_, str) and type_ not in _TYPES and _means_a_part(node):
        return type_.removesuffix("_NODE").removesuffix("_REF").replace("_", " ")
    if type_ == "BASE_TABLE":
        qualified = node.get("schema_name") or node.get("catalog_name") or _has_more_names(node)
        if qualified or folded(str(node.get("table_name"))) not in tables:
            return "a table that is not public"
    if type_ == "TABLE_FUNCTION" and _name(node.get("function") or {}) != "unnest":
        return f"the table function {_name(node.get('function') or {})}"
    return None


def _refused_expression(node: Mapping[str, Any], kind: str, columns: Collection[str]) -> str | None:
    if kind not in _CLASSES:
        return kind.lower().replace("_", " ")
    if kind in {"FUNCTION", "WINDOW"}:
        if _name(node) not in FUNCTIONS or node.get("export_state"):
            return f"the function {_name(node)}"
        given = node.get("arguments") or node.get("children") or ()  # as newer and older versions of DuckDB call them
        if len(given) < ARGUMENTS.get(_name(node), 0):
            return f"without its second argument the function {_name(node)}"
        if node.get("schema") or node.get("catalog") or _has_more_names(node):
            return f"a name before the function {_name(node)}"
    elif kind == "COLUMN_REF":
        name = str((node.get("column_names") or [""])[-1]).lower()
        if name in SESSION and name not in columns:
            return name.upper()
    elif kind == "TYPE" and (node.get("schema") or node.get("catalog")):
        return "a type with a schema"
    return None


def _means_a_part(node: Mapping[str, Any]) -> bool:
    """Whether "type" says which part of a statement this is; in the description of a value it does not."""
    return "id" not in node and "kind" not in node and not str(node["type"]).endswith("_TYPE_INFO")


def _name(node: Mapping[str, Any]) -> str:
    return str(node.get("function_name", "")).lower()


def _has_more_names(node: Mapping[str, Any]) -> bool:
    """Whether something stands before a name, by how newer versions of DuckDB spell it."""
    path = (node.get("qualified_name") or {}).get("path")
    return path is not None and len(path) != 1


def _common(node: Mapping[str, Any]) -> Iterator[str]:
    """The names that a WITH gives."""
    for entry in (node.get("cte_map") or {}).get("map", ()):
        yield str(entry["key"])
    if node.get("type") in {"RECURSIVE_CTE_NODE", "CTE_NODE"}:
        yield str(node.get("cte_name") or node.get("ctename") or "")
