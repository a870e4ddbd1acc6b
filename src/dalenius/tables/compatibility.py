"""A policy against the schema of its source: the columns are there, and of types that can be read as declared."""

from __future__ import annotations

from collections.abc import Iterable

from dalenius.errors import PolicyInvalidError
from dalenius.tables.mistakes import invalid, nearest
from dalenius.tables.policy import Kind, Policy

_WHOLE = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
}  # fmt: skip
_REAL = {"FLOAT", "DOUBLE", "DECIMAL"}
_STAMP = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_ZONED = "TIMESTAMP WITH TIME ZONE"

# DuckDB types → the kinds they can be read as. A text can hold anything; what fails to cast counts as absent.
FITTING: dict[Kind, set[str]] = {
    Kind.INTEGER: _WHOLE | _REAL | {"VARCHAR"},
    Kind.NUMBER: _WHOLE | _REAL | {"VARCHAR"},
    Kind.BOOLEAN: _WHOLE | {"BOOLEAN", "VARCHAR"},
    Kind.CATEGORY: {"VARCHAR", "ENUM", "UUID"},
    Kind.TEXT: {"VARCHAR", "ENUM", "UUID"},
    Kind.DATE: _STAMP | {"DATE", "VARCHAR"},
    Kind.DATETIME: _STAMP | {_ZONED, "DATE", "VARCHAR"},
}


def base_type(declared: str) -> str:
    """A DuckDB type without its parameters; nested types are all NESTED.

    >>> base_type("DECIMAL(10,2)"), base_type("INTEGER[]"), base_type("ENUM('a', 'b')")
    ('DECIMAL', 'NESTED', 'ENUM')
    """
    base = declared.split("(", 1)[0].strip()
    return "NESTED" if declared.endswith("]") or base in {"STRUCT", "MAP", "UNION"} else base


def comparable(one: str, other: str) -> bool:
    """Whether values of two DuckDB types can be compared without a conversion that could fail or lose something.

    >>> comparable("INTEGER", "BIGINT"), comparable("VARCHAR", "BIGINT"), comparable("DECIMAL(38,0)", "DECIMAL(38,9)")
    (True, False, False)
    """
    wide = {"HUGEINT", "UHUGEINT"}  # these two meet in DOUBLE
    return one == other or (one in _WHOLE and other in _WHOLE and not wide <= {one, other})


def kind_of_type(declared: str) -> Kind | None:
    """The kind that suits a DuckDB type best; None for types that cannot be asked about."""
    base = base_type(declared)
    if base in _WHOLE:
        return Kind.INTEGER
    if base in _REAL:
        return Kind.NUMBER
    if base in _STAMP or base == _ZONED:
        return Kind.DATETIME
    return {"BOOLEAN": Kind.BOOLEAN, "DATE": Kind.DATE, "VARCHAR": Kind.TEXT, "ENUM": Kind.CATEGORY}.get(base)


def check_columns(policy: Policy, schema: Iterable[tuple[str, str]]) -> None:
    """Refuses a policy whose columns are not in the source, or cannot be read as it says."""
    types = dict(schema)
    for name in policy.owner:
        if name not in types:
            raise _missing("table.unit", name, types)
        if base_type(types[name]) == "NESTED":
            raise invalid(
                "table.unit", f"{name!r} is nested.", why="A unit is a plain value.", fix="Name another column."
            )
    for name, column in policy.columns.items():
        place = f"columns.{name}"
        if name not in types:
            raise _missing(place, name, types)
        base = base_type(types[name])
        if base not in FITTING[column.kind]:
            better = kind_of_type(types[name])
            raise invalid(
                f"{place}.type",
                f"the column is {base} in the source.",
                why=f"That cannot be read as {column.kind.value}.",
                fix=f'Write type = "{better.value}".' if better else "Remove the column from the policy.",
            )
        if base == _ZONED and column.zone is None:
            raise invalid(
                f"{place}.zone",
                "this is missing.",
                why="The source holds points in time; days and hours depend on where.",
                fix='Write zone = "Europe/Berlin", or "UTC".',
            )


def _missing(place: str, name: str, types: Iterable[str]) -> PolicyInvalidError:
    # Only a name close to the one in the policy is shown: the header of a file without one is a row.
    meant = nearest(name, types)
    return invalid(
        place,
        f"the source has no column {name!r}.",
        why="Names are compared letter by letter.",
        fix=f"Did you mean {meant!r}?" if meant else "Correct the name, or the source.",
    )
