"""Questions that a table can answer, made from its policy."""

from __future__ import annotations

from typing import Any, NamedTuple

from dalenius.queries.rules.parse import as_written

_NUMBERS = {"integer", "number"}


class Example(NamedTuple):
    """A question, in words and in SQL."""

    words: str
    sql: str


def examples(table: dict[str, Any]) -> list[Example]:
    r"""A few, the first of which gives a chart where the policy names keys.

    >>> table = {"name": "visits", "columns": {"region": {"type": "category", "keys": ["n", "s"]}}}
    >>> examples(table)[0]
    Example(words='Rows by region', sql='SELECT region, COUNT(*) AS n\nFROM visits\nGROUP BY region')
    """
    columns = table["columns"]
    keyed = [each for each, spec in columns.items() if spec.get("keys")]
    numbers = [each for each, spec in columns.items() if spec.get("type") in _NUMBERS and spec.get("bounds")]
    found = [Example(f"Rows by {key}", _written(table["name"], "COUNT(*) AS n", key)) for key in keyed[:1]]
    found.append(Example("How many rows?", _written(table["name"], "COUNT(*) AS n")))
    for number in numbers[:1]:
        average = f"AVG({as_written(number)}) AS average"
        found.append(Example(f"Average {number}", _written(table["name"], average)))
        found += [Example(f"Average {number} by {key}", _written(table["name"], average, key)) for key in keyed[:1]]
    return found


def _written(table: str, measure: str, key: str = "") -> str:
    if not key:
        return f"SELECT {measure}\nFROM {as_written(table)}"
    return f"SELECT {as_written(key)}, {measure}\nFROM {as_written(table)}\nGROUP BY {as_written(key)}"
