"""Real rows, rows held out and synthetic rows as codes of one domain. Raw rows: for the owner's process alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.accounting import parameters
from dalenius.errors import InputError, NotAllowedError, SourceUnavailableError
from dalenius.measuring._exact import exact_batches
from dalenius.measuring.batches import MOST_ROWS, UnitRows
from dalenius.measuring.engines.sources import schema
from dalenius.measuring.expressions import TRUE
from dalenius.owner.protect import inspect
from dalenius.releasing.snapshot import texts_of
from dalenius.synthesis.modelled import MOST_KEYS, Modelled
from dalenius.synthesis.policy_domain import PolicyDomain
from dalenius.synthesis.position_classes import Classes
from dalenius.tables.policy import Kind
from dalenius.tables.sources.homes import check_sources

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.engines.sources import Engines
    from dalenius.measuring.plan import Table
    from dalenius.synthesis.domain import Codes
    from dalenius.tables.policy import Column as Declared

_UNITS = 2**15
_SECONDS = 3600.0  # the owner waits
PARTS = 10_000  # of which a share is held out
CLASSES = 32  # of a column whose policy does not settle them


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Rows of units, as codes (columns × rows); for each row 64 bits of its unit's keyed hash."""

    codes: Codes
    tags: NDArray[np.uint64]

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.codes.shape[1])

    def split(self, share: float) -> tuple[People, People]:
        """Without a part of the units, and that part: the same one each time, by the keyed hash."""
        held = self.tags % np.uint64(PARTS) < np.uint64(round(share * PARTS))
        return self.kept(~held), self.kept(held)

    def kept(self, which: NDArray[Any]) -> People:
        """Some of the rows."""
        return People(np.ascontiguousarray(self.codes[:, which]), self.tags[which])

    def sampled(self, rows: int, rng: np.random.Generator) -> People:
        """At most so many rows."""
        return self if self.rows <= rows else self.kept(rng.choice(self.rows, rows, replace=False))

    def one_of_each(self, units: int, rng: np.random.Generator) -> Codes:
        """One row of each of at most so many units."""
        order = rng.permutation(self.rows)
        _, first = np.unique(self.tags[order], return_index=True)
        chosen = order[first]
        found: Codes = self.codes[:, chosen if len(chosen) <= units else rng.choice(chosen, units, replace=False)]
        return found

    def rows_of_units(self) -> NDArray[np.int64]:
        """For each row how many its unit has."""
        _, where, count = np.unique(self.tags, return_inverse=True, return_counts=True)
        found: NDArray[np.int64] = count[where]
        return found

    def __repr__(self) -> str:
        return "People(…)"  # into a traceback goes nothing


def read_people(table: Table, domain: PolicyDomain, engine: Engine, salt: str) -> People:
    """All rows of a table, cleaned as questions have them; positions where classes are sought."""
    reading = UnitRows(table, domain.expressions, MOST_ROWS, TRUE)
    kind = np.int64 if any(each.sought for each in domain.columns) else np.int32
    codes, tags = [np.zeros((len(domain.columns), 0), kind)], [np.zeros(0, np.uint64)]
    for batch in exact_batches(reading, engine, salt, units=_UNITS, seconds=_SECONDS):
        columns = zip(domain.columns, batch.values, batch.absent, strict=True)
        codes.append(np.stack([column.codes(*values).astype(kind) for column, *values in columns]))
        tags.append(np.repeat(batch.tags, np.diff(batch.starts)))
    return People(np.concatenate(codes, axis=1), np.concatenate(tags))


def read_held_out(table: Table, domain: PolicyDomain, engines: Engines, salt: str, file: Path) -> People:
    """The rows of a file of the same form as the table's source: people who were not in it."""
    if not table.direct:
        raise NotAllowedError(
            "Rows of this table cannot be held out as a file.",
            why="Whose they are is told by other tables.",
            fix="Hold out a share of the people: --held-out 20%.",
        )
    _check_there(file)
    policy = replace(table.policy, source=(str(file.absolute()),))
    found = inspect(policy)
    other = replace(table, policy=policy, found=None, texts=texts_of(found))
    return read_people(other, domain, engines.of(found), salt)


def read_synthetic(file: Path, domain: PolicyDomain, declared: Mapping[str, Declared]) -> tuple[PolicyDomain, Codes]:
    """The rows of a file of synthetic rows, and the columns of the table that they have.

    Keys and classes that the policy does not settle are those of the synthetic rows.
    """
    _check_there(file)
    form = "parquet" if file.suffix.lower() in {".parquet", ".pq"} else "csv"
    names = {name for name, _ in schema([file], form)}
    columns = tuple(each for each in domain.columns if each.name in names)
    if not columns:
        raise InputError(
            f"{file.name} has no column of the table.",
            why="Rows are compared column by column, by their names.",
            fix="Name a file of rows that are like the table's.",
        )
    read = _columns(file, form, columns)
    settled, codes = list[Modelled](), list[NDArray[np.int32]]()
    for each in columns:
        values, absent = _cleaned(each, read[each.name], file, declared[each.name].default)
        settled.append(_settled(each, values, absent))
        codes.append(settled[-1].codes(values, absent).astype(np.int32))
    return PolicyDomain(tuple(settled)), np.stack(codes)


def _settled(column: Modelled, values: NDArray[Any], absent: NDArray[np.bool_]) -> Modelled:
    """With the keys that these values have, or with classes of about as many of them each, where they are sought."""
    if not column.sought:
        return column
    known = values[~absent]
    if column.grid is None:
        found, counts = np.unique(known.astype(str), return_counts=True)
        return column.with_keys(tuple(found[np.sort(np.argsort(-counts, kind="stable")[:MOST_KEYS])].tolist()))
    positions = column.grid.positions(known)
    if not len(positions):
        return column.with_classes(Classes.equal(column.grid.size, CLASSES))
    cuts = np.quantile(positions, np.arange(1, CLASSES) / CLASSES, method="lower")
    edges = np.unique(np.concatenate([[0, column.grid.size], cuts]))
    return column.with_classes(Classes(tuple((int(low), int(high) - 1) for low, high in pairwise(edges))))


def claimed(file: Path, table: str) -> float | None:
    """The ε that a file of our own says its rows cost; None: it says nothing, or is about another table."""
    if file.suffix.lower() not in {".parquet", ".pq"}:
        return None
    from pyarrow import parquet

    about = (parquet.read_schema(file).metadata or {}).get(b"dalenius")
    try:
        found = json.loads(about or b"{}")
        return parameters.epsilon(found["guarantee"]["epsilon"]) if found["table"] == table else None
    except (ValueError, KeyError, TypeError, RecursionError, InputError):  # whoever made the file wrote that too
        return None


def _columns(file: Path, form: str, columns: Sequence[Modelled]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv, parquet

    names = [each.name for each in columns]
    try:
        if form == "parquet":
            return parquet.read_table(file, columns=names)
        texts = {name: pa.string() for name in names}
        options = csv.ConvertOptions(column_types=texts, include_columns=names, strings_can_be_null=True)
        return csv.read_csv(file, convert_options=options)
    except (pa.ArrowInvalid, OSError):
        raise SourceUnavailableError(
            f"{file.name} cannot be read.", why="It is no CSV or Parquet file.", fix="Name a file of rows."
        ) from None


def _cleaned(
    column: Modelled, values: pa.ChunkedArray, file: Path, default: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values of a column as the engine gives them, and which are absent; what is missing is its default, if any."""
    import pyarrow as pa

    try:
        typed = _typed(column, values).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        raise InputError(
            f"Column {column.name!r} of {file.name} has other values than the table's.",
            why=f"The policy says that they are of the type {column.kind.value}.",
            fix="Name a file of rows that are like the table's.",
        ) from None
    if default is not None:
        typed = typed.fill_null(float(default) if column.kind in {Kind.INTEGER, Kind.NUMBER} else default)
    absent = typed.is_null().to_numpy(zero_copy_only=False)
    filled = typed.fill_null(_FILLED[column.kind]) if absent.any() else typed
    found = filled.to_numpy(zero_copy_only=False)
    return found.astype(_PLAIN.get(column.kind, found.dtype)), absent


def _typed(column: Modelled, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """As the policy's type has them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.kind in {Kind.INTEGER, Kind.NUMBER}:
        return pc.cast(values, pa.float64())
    if column.kind is Kind.BOOLEAN and pa.types.is_string(values.type):
        return pc.cast(pc.utf8_lower(values), pa.bool_())
    if column.kind is Kind.DATETIME and pa.types.is_string(values.type):
        return pc.cast(pc.replace_substring(values, "T", " "), pa.timestamp("us"))
    return pc.cast(values, column.arrow)


_FILLED: dict[Kind, Any] = {
    Kind.INTEGER: 0.0,
    Kind.NUMBER: 0.0,
    Kind.BOOLEAN: False,
    Kind.DATE: date.fromisoformat("1970-01-01"),
    Kind.DATETIME: datetime.fromisoformat("1970-01-01"),
    Kind.CATEGORY: "",
    Kind.TEXT: "",
}
_PLAIN: dict[Kind, Any] = {Kind.DATE: "datetime64[D]", Kind.DATETIME: "datetime64[us]", Kind.BOOLEAN: bool}


def _check_there(file: Path) -> None:
    check_sources([file])
    if not file.is_file():
        raise SourceUnavailableError(f"{file.name} is not there.", why="It is read.", fix="Name a file of rows.")
