"""VALUES and UNNEST in FROM: rows that the question lists itself, as a public table (`measuring.listed`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import Literal, Type
from dalenius.measuring.listed import MOST_COLUMNS, MOST_LISTED, listed_table

if TYPE_CHECKING:
    from dalenius.measuring.public import PublicTable
    from dalenius.queries.rules.scope import SelectScope

_ALONE = frozenset({Type.TEXT, Type.NUMBER, Type.BOOLEAN, Type.DATE, Type.DATETIME})
_KEYS = "(VALUES ('a'), ('b')) AS k(x)"


def is_list(node: Any) -> bool:
    """Whether an item of FROM lists rows itself."""
    from sqlglot import exp

    return isinstance(node, exp.Values | exp.Unnest)


def read_list(reader: SelectScope, node: Any) -> PublicTable:
    """The rows of VALUES or UNNEST; all are constants."""
    rows = _rows(reader, node)
    if not 1 <= len(rows) <= MOST_LISTED:
        raise reader.refused(
            node, f"A list has 1 to {MOST_LISTED:,} rows here.", "List fewer.", "It stands in every statement."
        )
    if len({len(row) for row in rows}) > 1:
        raise reader.invalid(
            node, "Rows of VALUES differ in length.", "Each has a value for each column.", "Correct it."
        )
    if len(rows[0]) > MOST_COLUMNS:
        raise reader.refused(
            node, f"A list has at most {MOST_COLUMNS} columns here.", "List fewer.", "Each is looked up."
        )
    names = _names(reader, node, len(rows[0]))
    columns = [_column(reader, node, [row[at] for row in rows]) for at in range(len(names))]
    return listed_table(names, tuple(zip(*columns, strict=True)))


def _rows(reader: SelectScope, node: Any) -> list[list[Any]]:
    from sqlglot import exp

    if isinstance(node, exp.Values):
        return [list(each.expressions) if isinstance(each, exp.Tuple) else [each] for each in node.expressions]
    lists = node.expressions
    if len(lists) != 1 or not isinstance(lists[0], exp.Array) or node.args.get("offset"):
        raise reader.refused(
            node,
            "UNNEST takes one list of values.",
            f"Write the values themselves: UNNEST(['a', 'b']) AS k, or {_KEYS}.",
            "Columns hold no lists here.",
        )
    return [[each] for each in lists[0].expressions]


def _names(reader: SelectScope, node: Any, count: int) -> tuple[str, ...]:
    """The columns' names as the question has them; else those of DuckDB, and of UNNEST that of the list."""
    from sqlglot import exp

    alias = node.args.get("alias")
    given = [each.name for each in (alias.args.get("columns") if alias is not None else None) or ()]
    if len(given) > count or len({each.lower() for each in given}) < len(given):
        raise reader.invalid(node, f"{len(given)} names do not fit.", f"It has {count} columns.", "Correct it.")
    if isinstance(node, exp.Unnest):
        return tuple(given) or (node.alias or "unnest",)
    return (*given, *(f"col{at}" for at in range(len(given), count)))


def _column(reader: SelectScope, node: Any, parts: list[Any]) -> list[Literal]:
    """The values of one column: constants of one type."""
    from sqlglot import exp

    found = []
    for each in parts:
        if each.find(exp.Column, exp.Select):
            raise reader.refused(each, "A list holds constants alone.", f"Write the values themselves: {_KEYS}.")
        value = reader.expression(each)
        if not isinstance(value, Literal) or value.type not in _ALONE:
            what = "NULL" if isinstance(value, Literal) else "What is computed"
            why = "A row without a key is in no group." if what == "NULL" else "Lists hold constants alone."
            raise reader.refused(each, f"{what} cannot stand in a list.", f"Write the values themselves: {_KEYS}.", why)
        found.append(value)
    other = next((each for each in found if each.type is not found[0].type), None)
    if other is not None:
        raise reader.invalid(
            node,
            "A column of a list holds values of two types.",
            f"One is a {found[0].type.value}, another a {other.type.value}.",
            "Write all of them alike.",
        )
    return found
