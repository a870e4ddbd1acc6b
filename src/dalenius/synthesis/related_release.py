"""Two synthetic tables whose rows belong together, as who asked for them gets them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.synthesis.allowed import Places, places_of
from dalenius.synthesis.drawing import Drawing
from dalenius.synthesis.related import CHILD, COUNT, PARENT
from dalenius.synthesis.release import write_table
from dalenius.synthesis.stored import StoredModel, check_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.synthesis.domain import Codes

FORMAT = "related 1"
_SPARE = 2.0  # children that are drawn for each that is wanted, so that nearly all parents find theirs


@dataclass(frozen=True, eq=False)
class RelatedModels:
    """The models of both tables.

    Attributes:
        parents: Of parents, with the number of their children.
        children: Of children, with some columns of their parents.
        column: What children call their parent.
        key: What a parent is called by.
        matched: The parents' columns by which children are given to them.
    """

    parents: StoredModel
    children: StoredModel
    column: str
    key: str
    matched: tuple[str, ...]

    def draw(self, rows: int | None = None, seed: int | None = None) -> tuple[dict[str, pa.Array], dict[str, pa.Array]]:
        """So many parents, and all their children, as columns of values.

        A parent has as many children as its row says. They are drawn from the children's model, of those whose
        parent's columns are like its own.
        """
        import pyarrow as pa

        rng = np.random.default_rng(seed)
        rows = self.parents.rows if rows is None else rows
        check_rows(rows)
        drawn_parents, units = Drawing(self.parents).rows(rows, rng)
        codes = drawn_parents.codes
        parents = self._values(self.parents, drawn_parents.places, PARENT, rng)
        place = self.parents.domain.place(COUNT)
        count = self.parents.domain.columns[place]
        counts = count.at(drawn_parents.places[:, place], rng).fill_null(0).to_numpy()
        check_rows(int(counts.sum()))  # before there are so many
        whose = np.repeat(np.arange(rows), counts)
        drawn = self._given(codes[whose], rng)
        numbers = np.arange(1, rows + 1)
        own = {} if self.parents.units is None else {self.parents.units.name: pa.array(units)}
        places = places_of(self.children.domain.columns, drawn, {}, rng)
        children = self._values(self.children, places, CHILD, rng)
        return {self.key: pa.array(numbers)} | own | parents, {self.column: pa.array(numbers[whose])} | children

    def _given(self, parents: Codes, rng: np.random.Generator) -> Codes:
        """A child for each row of parents."""
        wanted = len(parents)
        spare = self.children.model.sample(int(_SPARE * wanted) + 1, rng) if wanted else np.zeros((0, 0), np.int32)
        if not wanted:
            return spare.reshape(0, len(self.children.domain.columns))
        like, have = (
            _profiles(table, [model.domain.place(f"{PARENT}.{name}") for name in self.matched], self._sizes)
            for table, model in ((parents, self.parents), (spare, self.children))
        )
        return spare[matched_rows(like, have, rng)]

    @property
    def _sizes(self) -> list[int]:
        columns = self.parents.domain.domain
        return [columns.sizes[columns.place(f"{PARENT}.{name}")] for name in self.matched]

    def _values(self, model: StoredModel, places: Places, of: str, rng: np.random.Generator) -> dict[str, pa.Array]:
        return {
            each.name.removeprefix(f"{of}."): each.at(places[:, at], rng)
            for at, each in enumerate(model.domain.columns)
            if each.name.startswith(f"{of}.")
        }

    def to_json(self) -> dict[str, Any]:
        """The stored tree."""
        return {
            "format": FORMAT,
            "parents": self.parents.to_json(),
            "children": self.children.to_json(),
            "column": self.column,
            "key": self.key,
            "matched": list(self.matched),
        }

    def content(self) -> bytes:
        """The stored bytes."""
        return json.dumps(self.to_json(), separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> RelatedModels:
        """As `to_json` wrote it."""
        if data.get("format") != FORMAT:
            raise InputError(
                "These synthetic tables cannot be read.",
                why=f"They are not of the format {FORMAT!r}; a newer dalenius may have written them.",
                fix="Use the version that made them.",
            )
        parents, children = (StoredModel.of_json(data[each]) for each in ("parents", "children"))
        return cls(parents, children, data["column"], data["key"], tuple(data["matched"]))

    @classmethod
    def read(cls, content: bytes) -> RelatedModels:
        """As `content` wrote it."""
        return cls.of_json(json.loads(content.decode("utf-8", "surrogatepass")))


def _profiles(codes: Codes, places: list[int], sizes: list[int]) -> NDArray[np.int64]:
    """One number for the values of some columns together; 0 of none."""
    found = np.zeros(len(codes), np.int64)
    for place, size in zip(places, sizes, strict=True):
        found = found * size + codes[:, place]
    return found


def matched_rows(wanted: NDArray[np.int64], spare: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """For each that is wanted the place of a spare row with the same profile, each once; else of what is left.

    >>> matched_rows(np.array([5, 5, 7]), np.array([7, 5, 5, 9]), np.random.default_rng(0)).tolist()
    [2, 1, 0]
    """
    found = np.full(len(wanted), -1, np.int64)
    first, second = (np.lexsort((rng.random(len(each)), each)) for each in (wanted, spare))
    # the how-many-eth of its profile each one is
    ranks = [np.arange(len(each)) - np.searchsorted(each, each) for each in (wanted[first], spare[second])]
    held = np.searchsorted(spare[second], wanted[first]) + ranks[0]
    there = held < len(spare)
    there[there] = spare[second][held[there]] == wanted[first][there]
    found[first[there]] = second[held[there]]
    left = np.setdiff1d(np.arange(len(spare)), found[found >= 0])
    lacking = np.flatnonzero(found < 0)
    found[lacking] = rng.permutation(left)[: len(lacking)]
    return found


@dataclass(frozen=True, eq=False)
class RelatedTables:
    """Models of two tables, with their guarantee and what they cost. Rows from them are free.

    Attributes:
        models: Both.
        left_out: Columns that could not be modelled, each with what must be declared.
        guarantee: `kind`, `epsilon`, `delta`, `unit`, `neighbors`: of both together.
        charge: `epsilon`, `delta`, `rho`, as charged.
        remaining: What is left to spend.
        free: Paid for before.
        receipt: Proof of the charge.
        notes: What the reader should know besides.
    """

    models: RelatedModels
    left_out: Mapping[str, str]
    guarantee: Mapping[str, Any]
    charge: Mapping[str, Any]
    remaining: Mapping[str, Any]
    free: bool
    receipt: Mapping[str, Any] | None
    notes: tuple[str, ...] = ()

    def to_arrow(self, rows: int | None = None, *, seed: int | None = None) -> tuple[pa.Table, pa.Table]:
        """So many parents (as many as there are, by noisy count), and all their children."""
        import pyarrow as pa

        parents, children = self.models.draw(rows, seed)
        return pa.table(parents), pa.table(children)

    def write(
        self, parents: Path | str, children: Path | str, rows: int | None = None, *, seed: int | None = None
    ) -> tuple[int, int]:
        """Writes both as csv or parquet, by the files' endings; returns how many rows each has."""
        first, second = self.to_arrow(rows, seed=seed)
        return write_table(first, Path(parents)), write_table(second, Path(children))

    def to_dict(self) -> dict[str, Any]:
        """The shape in which it leaves as JSON, with the models."""
        return {
            "left_out": dict(self.left_out),
            "guarantee": dict(self.guarantee),
            "charge": dict(self.charge),
            "remaining": self.remaining,
            "free": self.free,
            "receipt": self.receipt,
            "notes": list(self.notes),
            "models": self.models.to_json(),
        }
