"""A synthetic table, as who asked for it gets it: a model, and as many rows from it as wanted."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius._fields import Fields
from dalenius.errors import InputError
from dalenius.releasing.targets import check_target, unwritable
from dalenius.synthesis.sound import check_facts
from dalenius.synthesis.stored import StoredModel
from dalenius.tables.policy import Facts

if TYPE_CHECKING:
    import pyarrow as pa

FILES = (".csv", ".parquet")


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """A model of a table, with its guarantee and what it cost. Rows from it are free, and anybody may have them.

    Attributes:
        stored: The model.
        columns: The names of its columns, in the order in which they were asked for.
        left_out: Columns that could not be modelled, each with what must be declared.
        guarantee: `kind`, `epsilon`, `delta`, `unit`, `neighbors`.
        charge: `epsilon`, `delta`, `rho`, as charged.
        remaining: What is left to spend.
        free: Paid for before.
        receipt: Proof of the charge.
        notes: What the reader should know besides.
        facts: What everybody knows of all rows, by the policy in force: rows that are drawn keep to it.
    """

    stored: StoredModel
    columns: tuple[str, ...]
    left_out: Mapping[str, str]
    guarantee: Mapping[str, Any]
    charge: Mapping[str, Any]
    remaining: Mapping[str, Any]
    free: bool
    receipt: Mapping[str, Any] | None
    notes: tuple[str, ...] = ()
    facts: Facts = field(default_factory=Facts)

    @property
    def rows(self) -> int:
        """How many rows the table has, by noisy count, or by known totals."""
        return self.stored.rows if not self.facts.totals else self.rows_where(None)

    def rows_where(self, where: str | None) -> int:
        """For how many of them a condition holds, by the model: as many are drawn where nobody says how many."""
        from dalenius.synthesis.drawing import Drawing

        return Drawing(self.stored, self.facts, where).expected

    def to_arrow(self, rows: int | None = None, *, seed: int | None = None, where: str | None = None) -> pa.Table:
        """Rows drawn from the model.

        Args:
            rows: How many; as many as the table has, by noisy count.
            seed: The same seed gives the same rows.
            where: A condition that holds for all of them, such as ``age >= 60 AND sex = 'f'``. Rows are drawn as the
                model has them given that; so few rows of a table may become as many as wanted.

        Raises:
            InputError: The condition cannot be read, or the model has no such rows.
        """
        import pyarrow as pa

        units = self.stored.units
        whose = () if units is None else (units.name,)
        drawn = self.stored.draw(rows, seed, where=where, facts=self.facts)
        return pa.table(drawn).select([*whose, *self.columns])

    def write(
        self, target: Path | str, rows: int | None = None, *, seed: int | None = None, where: str | None = None
    ) -> int:
        """Writes rows as csv or parquet, by the file's ending; returns how many. A file that is there is replaced."""
        target = Path(target)
        check_target(target, FILES)
        table = self.to_arrow(rows, seed=seed, where=where)
        return write_table(table.replace_schema_metadata({"dalenius": json.dumps(self._told)}), target)

    @property
    def _told(self) -> dict[str, Any]:
        """What a file says of itself. Anybody may have it: it does not say who asked, or what is left to spend."""
        told = ("table", "method", "columns", "rows_per_unit", "units", "guarantee")
        return {name: self._about[name] for name in told} | {"release": (self.receipt or {}).get("id")}

    @cached_property
    def _about(self) -> dict[str, Any]:
        units = self.stored.units
        return {
            "table": self.stored.table,
            "method": self.stored.method,
            "columns": list(self.columns),
            "left_out": dict(self.left_out),
            "rows": self.rows,
            "rows_per_unit": self.stored.limit,
            "units": None if units is None else {"column": units.name, "count": round(units.count)},
            "guarantee": dict(self.guarantee),
            "charge": dict(self.charge),
            "remaining": self.remaining,
            "free": self.free,
            "receipt": self.receipt,
            "notes": list(self.notes),
            "facts": self.facts.to_json(),
        }

    def to_dict(self) -> dict[str, Any]:
        """The shape in which it leaves as JSON, with the model."""
        return {**self._about, "model": self.stored.to_json()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SyntheticTable:
        """As `to_dict` wrote it."""
        found = Fields(data, "synthetic")
        stored, columns = StoredModel.of_json(found.mapping("model")), found.texts("columns")
        if sorted(columns) != sorted(stored.names):
            raise found.wrong("columns")
        return cls(
            stored,
            columns,
            found.mapping("left_out"),
            found.mapping("guarantee"),
            found.mapping("charge"),
            found.mapping("remaining"),
            found.flag("free"),
            found.mapping("receipt") if "receipt" in found else None,
            found.texts("notes"),
            _facts(found, stored),
        )


def _facts(found: Fields, stored: StoredModel) -> Facts:
    if "facts" not in found:
        return Facts()
    try:
        facts = Facts.of_json(found.mapping("facts"))
        check_facts(facts, stored)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise found.wrong("facts") from None
    return facts


def content_of(table: pa.Table, form: str) -> bytes:
    """Rows as the bytes of a file: csv or parquet."""
    from pyarrow import BufferOutputStream

    stream = BufferOutputStream()
    _put(table, stream, form)
    return stream.getvalue().to_pybytes()  # type: ignore[no-any-return]


def write_table(table: pa.Table, target: Path) -> int:
    """Writes rows as csv or parquet, by the file's ending; returns how many."""
    check_target(target, FILES)
    try:
        _write(table, target)
    except OSError as error:
        raise unwritable(target, error) from None
    return int(table.num_rows)


def release_id(release: SyntheticTable | str) -> str:
    """The number of a release: its own, or that of a synthetic table."""
    if isinstance(release, str):
        return release
    if release.receipt is None:
        raise InputError(
            "This synthetic table has no receipt.", why="It was not asked for here.", fix="Give the id of its receipt."
        )
    return str(release.receipt["id"])


def _write(table: pa.Table, target: Path) -> None:
    """All of it or nothing: into a file beside it, which then takes its name."""
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        with beside.open("xb") as file:
            _put(table, file, target.suffix.lower().removeprefix("."))
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _put(table: pa.Table, stream: Any, form: str) -> None:
    from pyarrow import csv, parquet

    if form == "csv":
        csv.write_csv(table, stream, csv.WriteOptions(quoting_style="needed"))
    else:
        parquet.write_table(table, stream)
