"""Values that stand in a question itself, as a public table: VALUES and UNNEST.

They belong to nobody, and who asks has written them: a table of them is public by what it is, and everything that
holds for public tables in a join (how often rows are repeated, which groups there are) holds for it. It has no files.
Its name says what is in it, so that a stored answer is found for the same values only.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

from dalenius.measuring.engines.sources import reference
from dalenius.measuring.expressions import Literal, Type, written
from dalenius.measuring.public import looked_up
from dalenius.tables.sources.fingerprint import Fingerprint

if TYPE_CHECKING:
    from dalenius.measuring.public import PublicTable

MOST_LISTED = 2000  # rows of one list
MOST_COLUMNS = 16  # each is looked up when a question is planned
_KEPT = 64
_TYPES = {Type.TEXT: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DATE: "DATE", Type.DATETIME: "TIMESTAMP"}
_NO_FILES = Fingerprint("csv", ())


@lru_cache(maxsize=_KEPT)
def listed_table(names: tuple[str, ...], rows: tuple[tuple[Literal, ...], ...]) -> PublicTable:
    """The table of some rows; each column is of one type and has a value in every row."""
    rows = tuple(sorted(rows, key=lambda row: tuple(map(written, row))))
    types = {name: _type([row[at] for row in rows]) for at, name in enumerate(names)}
    text = repr((names, [tuple(map(written, row)) for row in rows]))
    name = f"values-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    return looked_up(name, _NO_FILES, reference().listed(types, [tuple(each.value for each in row) for row in rows]))


def is_listed(table: PublicTable) -> bool:
    """Whether a table's rows stand in the question."""
    return table.fingerprint == _NO_FILES


def _type(values: list[Literal]) -> str:
    kind = values[0].type
    if kind is not Type.NUMBER:
        return _TYPES[kind]
    whole = all(
        isinstance(each.value, float) and each.value.is_integer() and abs(each.value) < 2**53 for each in values
    )
    return "BIGINT" if whole else "DOUBLE"
