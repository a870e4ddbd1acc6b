"""Where questions compete: many dull people, and one whose rows cost as much as rows can.

Two tables of one data set: ``visits`` with many rows, ``people`` with a row for each person. The neighbours are the
same but for the rows of one person, the victim, who has at most one row in a hundred: there, or not there, or somebody
dull in his place. The dull have short values, so that nothing hides what the victim's take; the victim's are what a
question can single out (his name), and whatever is slow to read, to compare, to cast, to group or to keep.

An arena is a victim, with or without an index; its tables come in several sizes, and are made when they are needed.
"""

from __future__ import annotations

import shutil
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.audit.fuzzing.columns import arrow_array
from dalenius.audit.fuzzing.meters import MeteredSide
from dalenius.ledger.budgets import Accounting, Budget
from dalenius.measuring.plan import Found, Table
from dalenius.tables.reading import read_tree

if TYPE_CHECKING:
    import pyarrow as pa

NAME, VICTIM = "visits", "victim"
SHARE = 100  # one row in so many is the victim's, at most
ROWS = 4  # of each other person
LONGEST = 2000  # characters of a text, more than functions get to see
_PERSON = 0  # the victim's number
STORAGES: Mapping[str, Mapping[str, str]] = {
    NAME: {
        "person": "BIGINT",
        "name": "VARCHAR",
        "note": "VARCHAR",
        "raw": "VARCHAR",
        "city": "VARCHAR",
        "code": "VARCHAR",
        "amount": "DOUBLE",
        "salary": "INTEGER",
        "level": "INTEGER",
        "born": "DATE",
        "seen": "TIMESTAMP",
        "flag": "BOOLEAN",
    },
    "people": {"person": "BIGINT", "title": "VARCHAR", "grade": "INTEGER"},
}
CITIES = ("north", "south", "east", "west")
_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    NAME: {
        "name": {"type": "text"},
        "note": {"type": "text"},
        "raw": {"type": "text"},
        "city": {"type": "category", "keys": list(CITIES)},
        "code": {"type": "category"},
        "amount": {"type": "number", "bounds": [0, 5000], "step": 1},
        "salary": {"type": "integer", "bounds": [0, 200_000]},
        "level": {"type": "integer", "bounds": [0, 20]},
        "born": {"type": "date"},
        "seen": {"type": "datetime"},
        "flag": {"type": "boolean"},
    },
    "people": {"title": {"type": "text"}, "grade": {"type": "integer", "bounds": [0, 5]}},
}
_DAY = 86_400_000_000
_KEPT = 20_000_000  # rows of made tables that stay on disk


@dataclass(frozen=True, eq=False)
class Victim:
    """How the victim's rows are, and what stands there instead.

    Attributes:
        name: What this one is about.
        values: For some columns what his rows hold, in turn; all others are as dull as the others'.
        single: He has one row only.
        spread: His rows lie among the others', not after them.
        replaced: The neighbour has somebody dull in his place; else nobody.
        alone: All others hold the same in every column, and he alone something else.
    """

    name: str
    values: Mapping[str, Sequence[Any]]
    single: bool = False
    spread: bool = True
    replaced: bool = False
    alone: bool = False


def _texts(text: str) -> dict[str, Sequence[str]]:
    """Long texts, each another one, so that no file keeps them as a few numbers."""
    different = [f"{at:04}{text}"[:LONGEST] for at in range(97)]
    return {"note": different, "raw": different, "title": different}


_EXTREMES = (1e308, -1e308, 5e-324, -0.0, float("nan"), float("inf"), 4999.5, 1e15)
_INTEGERS = (200_000, 2**31 - 1, -(2**31), 199_999, 0)
_DAYS = (2**31 - 2, -(2**31) + 2, 2_932_896, -719_162, 0)
_MOMENTS = (2**63 - 2, -(2**63) + 2, 253_402_300_799_999_999, -62_135_596_800_000_001, 0)
# Beside the middle of two doubles, where a parser of numbers has to look at every digit.
_BESIDE = ("2.470328229206232720882843e-324", "12345678901234567890e288", "9007199254740993" + "0" * 180 + "1")
_NUMBERED = (
    *("1e308", "-0.000000000000000000000000000001", "9" * 300, "2021-05-06 07:08:09.5", "5877642-06-25 (BC)"),
    *("2.2250738585072011e-308", "90071992547409930000000000000001"),
    *_BESIDE,
)
VICTIMS: Sequence[Victim] = (
    Victim("long texts", _texts("a" * LONGEST)),
    Victim("long texts of wide characters", _texts("ä😀" * LONGEST), replaced=True),
    Victim("extreme values", {"amount": _EXTREMES, "salary": _INTEGERS, "born": _DAYS, "seen": _MOMENTS}),
    Victim("texts to cast", {"raw": _NUMBERED, "note": (*_NUMBERED, " " * 300, "%_" * 500)}, spread=False),
    Victim("a key in each row", {"code": [f"key {at}" for at in range(1_000)], "level": range(21)}, replaced=True),
    Victim("nothing at all", {name: (None,) for name in STORAGES[NAME] if name not in {"person", "name"}}),
    Victim("a single row", _texts("ä😀" * LONGEST), single=True),
    Victim("alone in not being like all others", {}, alone=True),
)


@cache
def arena_tables(rows: int) -> Mapping[str, Table]:
    """The tables as questions see them; so many rows are what `protect` would have told."""
    found: dict[str, Table] = {}
    for name, columns in _COLUMNS.items():
        tree: dict[str, Any] = {
            "table": {"name": name, "source": f"{name}.parquet", "unit": ["person"], "dataset": "made"},
            "columns": columns,
            "contribution": {"rows": 8, "groups": 8} if name == NAME else {"rows": 1},
        }
        if name == NAME:
            tree["budget"] = {"epsilon": 3, "delta": Decimal("1e-6"), "accounting": "zcdp"}
        policy = read_tree(tree, Path("/"))
        budget = Budget(3.0, 1e-6, Accounting.ZCDP, "person", policy.neighbors, None)
        number = rows if name == NAME else rows // ROWS
        texts = frozenset(column for column, type_ in STORAGES[name].items() if type_ == "VARCHAR")
        known = Found(8, {}, units=rows // ROWS, row_count=number)
        found[name] = Table(policy, budget, found=known, texts=texts)
    return found


def make_neighbours(victim: Victim, rows: int, seed: int) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """The tables with the victim, and their neighbours, each by name."""
    found: tuple[dict[str, pa.Table], dict[str, pa.Table]] = ({}, {})
    for name, storages in STORAGES.items():
        count = rows if name == NAME else rows // ROWS
        owned = 1 if victim.single or name != NAME else count // SHARE
        others = _dull(name, count - owned, seed, first=1)
        others = _alike(others) if victim.alone else others
        instead = _dull(name, owned, seed + 1, first=_PERSON, each=owned)
        # What is not his own is as it is in the neighbour's rows: only his values make the difference.
        own = instead | {
            column: arrow_array(_turns(victim.values[column], owned), storages[column])
            for column in storages
            if column in victim.values
        }
        own |= {"name": arrow_array([VICTIM] * owned, "VARCHAR")} if name == NAME else {}
        places = _places(count, owned, spread=victim.spread)
        found[0][name] = _together(others, own, places)
        found[1][name] = _together(others, instead if victim.replaced else None, places)
    return found


def _turns(values: Sequence[Any], count: int) -> list[Any]:
    return [values[at % len(values)] for at in range(count)]


def _dull(name: str, count: int, seed: int, *, first: int, each: int = ROWS) -> dict[str, Any]:
    """Columns of people who are all alike."""
    import numpy as np
    import pyarrow as pa

    chance = np.random.default_rng(seed)  # made-up values, no noise

    def integers(low: int, high: int, type_: Any = np.int32) -> Any:
        return chance.integers(low, high, count, dtype=type_)

    def one_of(values: Sequence[str]) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array(integers(0, len(values))), pa.array(values)).cast(pa.string())

    persons = first + np.arange(count, dtype=np.int64) // (each if name == NAME else 1)
    if name != NAME:
        return {
            "person": pa.array(persons),
            "title": one_of(("Ms", "Mr", "Dr")),
            "grade": pa.array(integers(0, 6)),
        }
    return {
        "person": pa.array(persons),
        "name": one_of([f"n{at}" for at in range(200)]),
        "note": one_of(["", "ok", "a b", "none", "x"]),
        "raw": one_of([str(at) for at in range(50)]),
        "city": one_of(CITIES),
        "code": one_of([f"c{at}" for at in range(30)]),
        "amount": pa.array(integers(0, 500).astype(np.float64)),
        "salary": pa.array(integers(0, 1000)),
        "level": pa.array(integers(0, 21)),
        "born": pa.array(integers(3650, 18_000)).view(pa.date32()),
        "seen": pa.array(integers(18_000, 19_000, np.int64) * _DAY).view(pa.timestamp("us")),
        "flag": pa.array(integers(0, 2).astype(bool)),
    }


def _alike(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The same people, all of whom say what the first one says."""
    import pyarrow as pa

    return {name: each if name == "person" else pa.repeat(each[0], len(each)) for name, each in columns.items()}


def _places(count: int, owned: int, *, spread: bool) -> Any:
    """The order of the rows, of which the victim's come last to begin with."""
    import numpy as np

    if not spread:
        return np.arange(count)
    keys = np.concatenate([np.arange(count - owned), np.linspace(0, count - owned, owned)])
    return np.argsort(keys, kind="stable")


def _together(others: Mapping[str, Any], own: Mapping[str, Any] | None, places: Any) -> pa.Table:
    import pyarrow as pa

    table = pa.table(dict(others))
    if own is None:
        return table
    both = pa.concat_tables([table, pa.table({name: own[name].cast(table[name].type) for name in others})])
    return both.take(pa.array(places))


# --- where they lie


@dataclass(frozen=True, eq=False)
class Arena:
    """Neighbouring tables but for their size."""

    number: int
    victim: Victim
    indexed: bool

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.victim.name}{', with an index' if self.indexed else ''}"


ARENAS = tuple(
    Arena(at, victim, indexed)
    for at, (victim, indexed) in enumerate((victim, indexed) for indexed in (False, True) for victim in VICTIMS)
)


class Places:
    """The pairs of tables that were made, the least recently used of which are dropped.

    Args:
        folder: Where they lie.
        seed: Decides what the dull rows hold.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed
        self._made: OrderedDict[tuple[Arena, int], tuple[MeteredSide, MeteredSide]] = OrderedDict()
        self._nothing: dict[Arena, MeteredSide] = {}

    def pair(self, arena: Arena, rows: int) -> tuple[MeteredSide, MeteredSide]:
        """The table with the victim, and its neighbour."""
        key = (arena, rows)
        if key not in self._made:
            both = make_neighbours(arena.victim, rows, self._seed)
            made = [self._side(arena, f"{rows}-{at}", rows, each) for at, each in enumerate(both)]
            self._made[key] = (made[0], made[1])
        self._made.move_to_end(key)
        while len(self._made) > 1 and sum(size for _, size in self._made) > _KEPT // 2:
            (old, size), sides = self._made.popitem(last=False)
            for at, side in enumerate(sides):
                side.close()
                shutil.rmtree(self._folder / f"{old.number}-{size}-{at}")
        return self._made[key]

    def nothing(self, arena: Arena, rows: int) -> MeteredSide:
        """Tables without rows: what a question takes there it takes anywhere."""
        if arena not in self._nothing:
            empty = {name: each.slice(0, 0) for name, each in make_neighbours(arena.victim, 400, self._seed)[0].items()}
            self._nothing[arena] = self._side(arena, "nothing", rows, empty)
        return self._nothing[arena]

    def _side(self, arena: Arena, name: str, rows: int, made: Mapping[str, pa.Table]) -> MeteredSide:
        indexed = {NAME: arena_tables(rows)[NAME]} if arena.indexed else {}
        return MeteredSide(self._folder / f"{arena.number}-{name}", made, indexed)
