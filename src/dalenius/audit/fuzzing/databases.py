"""Rows for all tables of a data set, and a neighbour: one unit's rows in every table are gone, or another's instead.

Whose a row is follows from the rows alone (`owners`): by its own column, or by the row that its path leads to. A row
with no unit, and one whose path leads nowhere, is nobody's. So the rows of somebody who leaves may stay where a path
made them his: they dangle then, and must not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from dalenius.accounting.neighbors import Neighbors
from dalenius.audit.fuzzing.policies import KEYS
from dalenius.audit.fuzzing.schemas import MOST_ROWS, Schema
from dalenius.audit.fuzzing.tables import POOLS, Row, array, palette, spelled

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Mapping[str, tuple[Row, ...]]
_ROWS = 30  # of the others in one table
_FEW = (1, 1, 2, 3, 5)
_VICTIM = (0, 1, 1, 2, 3, 6, 12)


@dataclass(frozen=True)
class Neighbours:
    """A data set and its neighbour: some rows in both, the victim's in the first, ``instead`` in the second.

    Attributes:
        loose: Rows of the victim by a path that stay in the second, where the path leads to nobody, or to somebody
            who took the victim's place.
        publics: The rows of public tables.
        nobody: The victim has no unit: its rows belong to nobody, and must change nothing.
    """

    schema: Schema
    others: Rows
    victim: Rows
    instead: Rows
    loose: Rows
    publics: Rows
    nobody: bool = False

    @property
    def first(self) -> Rows:
        """All rows with the victim."""
        return _added(self.others, self.victim)

    @property
    def second(self) -> Rows:
        """Those of its neighbour."""
        return _added(self.others, self.instead, self.loose)

    def with_rows(self, part: str, table: str, rows: tuple[Row, ...]) -> Neighbours:
        """The same with other rows of one table in one part."""
        changes: dict[str, Any] = {part: {**getattr(self, part), table: rows}}
        return replace(self, **changes)


def neighbours(random: Random, schema: Schema) -> Neighbours:
    """A data set and its neighbour."""
    drawn = _Drawn(random, schema)
    nobody = schema.unique and random.random() < 0.15
    people = drawn.people(9)
    others = drawn.rows(people[2], _FEW)
    for person in people[3 : random.randint(3, 8)]:
        others = _added(others, drawn.rows(person, _FEW))
    others = {name: rows[:_ROWS] for name, rows in others.items()}
    if random.random() < 0.3:
        others = _added(others, drawn.rows(drawn.no_one(), _FEW))
    if random.random() < 0.4:
        others = _added(others, drawn.dangling())
    if not schema.unique:
        drawn.repeat(others)
    victim = drawn.rows(drawn.no_one() if nobody else people[0], _VICTIM)
    if nobody and random.random() < 0.5:
        victim = _added(victim, drawn.dangling())
    instead: Rows = {}
    if schema.first.neighbors is Neighbors.SUBSTITUTE and not nobody:
        if random.random() < 0.4:
            drawn.reuse(victim)
        instead = drawn.rows(people[1], _VICTIM)
    loose = {
        name: tuple(row for row in rows if random.random() < 0.5)
        for name, rows in victim.items()
        if schema.unique and schema.tables[name].policy.path and random.random() < 0.3
    }
    publics = {name: _public(random, types) for name, types in schema.publics.items()}
    return Neighbours(schema, others, victim, instead, loose, publics, nobody)


def owners(schema: Schema, rows: Rows) -> dict[str, list[tuple[Any, ...] | None]]:
    """Whose each row is, table by table; None: nobody's."""
    found: dict[str, list[tuple[Any, ...] | None]] = {}
    by_key: dict[str, dict[Any, tuple[Any, ...] | None]] = {}
    for name, table in schema.tables.items():
        policy, names, held = table.policy, list(schema.storages[name]), rows.get(name, ())
        if policy.path:
            hop, at = policy.path[0], names.index(policy.path[0].column)
            found[name] = [None if row[at] is None else by_key[hop.table].get(plain(row[at])) for row in held]
        else:
            found[name] = [_unit(row[: len(policy.unit)]) for row in held]
        if name in schema.keys:
            at = names.index(schema.keys[name])
            keyed = zip(held, found[name], strict=True)
            by_key[name] = {plain(row[at]): owner for row, owner in keyed if row[at] is not None}
    return found


def arrow_tables(storages: Mapping[str, Mapping[str, str]], rows: Rows) -> dict[str, pa.Table]:
    """All tables in memory, by name."""
    import pyarrow as pa

    found = {}
    for name, types in storages.items():
        held = rows.get(name, ())
        columns: Sequence[Sequence[Any]] = list(zip(*held, strict=True)) if held else [()] * len(types)
        found[name] = pa.table(
            {each: array(values, type_) for (each, type_), values in zip(types.items(), columns, strict=True)}
        )
    return found


def shuffled_rows(random: Random, rows: Rows) -> Rows:
    """The rows in another order."""
    return {name: tuple(random.sample(each, len(each))) for name, each in rows.items()}


def plain(value: Any) -> Any:
    """A value as DuckDB compares it: NaN is NaN, and zero is zero."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def _unit(values: Row) -> tuple[Any, ...] | None:
    if any(each is None or (isinstance(each, float) and math.isnan(each)) for each in values):
        return None
    return tuple(map(plain, values))


def _added(*parts: Rows) -> Rows:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: tuple(row for part in parts for row in part.get(name, ())) for name in names}


@dataclass
class _Drawn:
    """Draws rows of one person after the other, with keys that nobody had before."""

    random: Random
    schema: Schema
    values: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    fresh: dict[str, list[Any]] = field(default_factory=dict)
    given: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, table in self.schema.tables.items():
            held = self.schema.storages[name]
            self.values[name] = {
                each: palette(self.random, column, held[each]) for each, column in table.policy.columns.items()
            }
            if name in self.schema.keys:
                self.fresh[name] = _keys(self.random, held[self.schema.keys[name]])

    def people(self, count: int) -> list[Row]:
        """Different units; of two columns one may be shared."""
        names = self.schema.first.unit
        types = [self.schema.storages[self.schema.first.name][name] for name in names]
        drawn = [self.random.sample(POOLS[each], count) for each in types]
        if len(drawn) > 1 and self.random.random() < 0.5:
            drawn[1] = [drawn[1][0]] * count
        return list(zip(*drawn, strict=True))

    def no_one(self) -> Row:
        """NULL, or NaN, in a part of the unit."""
        found: list[Any] = list(self.people(1)[0])
        at = self.random.randrange(len(found))
        found[at] = math.nan if isinstance(found[at], float) and self.random.random() < 0.6 else None
        return tuple(found)

    def rows(self, person: Row, amounts: Sequence[int]) -> Rows:
        """The rows of one person in all tables; those by a path lead to his own."""
        found: dict[str, tuple[Row, ...]] = {}
        for name, table in self.schema.tables.items():
            policy, amount = table.policy, self.random.choice(amounts)
            if not policy.path:
                made = [self.row(name, spelled(self.random, person)) for _ in range(amount)]
            else:
                hop = policy.path[0]
                at = list(self.schema.storages[hop.table]).index(hop.key)
                there = [row[at] for row in found[hop.table] if row[at] is not None]
                made = [
                    self.row(name, spelled(self.random, (self.random.choice(there),))) for _ in range(amount) if there
                ]
            found[name] = tuple(made)[:MOST_ROWS]
        return found

    def dangling(self) -> Rows:
        """Rows whose path leads nowhere."""
        found = {}
        for name, table in self.schema.tables.items():
            if table.policy.path and self.random.random() < 0.7:
                before = table.policy.path[0].table
                free = [None, self.fresh[before].pop() if self.fresh[before] else None]
                found[name] = tuple(self.row(name, (self.random.choice(free),)) for _ in range(3))
        return found

    def row(self, name: str, owner: Row) -> Row:
        """One row, with a new key where the table has one."""
        held, key = self.schema.storages[name], self.schema.keys.get(name)
        values = dict(zip(held, owner, strict=False))
        for each in held:
            if each in values:
                continue
            if each == key:
                values[each] = None if self.random.random() < 0.05 or not self.fresh[name] else self.fresh[name].pop()
            else:
                known = self.values[name].get(each)
                values[each] = self.random.choice(known) if known else None
        return tuple(values[each] for each in held)

    def reuse(self, rows: Rows) -> None:
        """The next who comes gets the keys that somebody had."""
        for name, key in self.schema.keys.items():
            at = list(self.schema.storages[name]).index(key)
            self.fresh[name] += [row[at] for row in rows.get(name, ()) if row[at] is not None]

    def repeat(self, rows: Rows) -> None:
        """The next who comes gets keys that somebody else has as well, which no data set may hold."""
        self.reuse(rows)


def _keys(random: Random, storage: str) -> list[Any]:
    """Different keys, odd ones among them, to be taken from the end."""
    odd: dict[str, list[Any]] = {
        "BIGINT": [0, -1, 2**63 - 1, -(2**63), 2**53, 2**53 + 1],
        "VARCHAR": ["", " ", "NULL", "nan", "ü", "x" * 700, "o'x"],
        "DOUBLE": [0.0, math.nan, math.inf, -math.inf, 5e-324, 2.0**53, 1e308],
        "TIMESTAMP": [0, -1, 2**63 - 1, -(2**63) + 1, 2**63 - 2],
    }
    made: dict[str, Callable[[int], Any]] = {"BIGINT": int, "VARCHAR": "k{}".format, "DOUBLE": float, "TIMESTAMP": int}
    more = [made[storage](each + 100) for each in range(300)]
    random.shuffle(more)
    last = odd[storage] + more[:12]
    random.shuffle(last)
    return [*more[12:], *last]


def _public(random: Random, types: Mapping[str, str]) -> tuple[Row, ...]:
    """A few rows; keys come once, or more often."""
    count, unique = random.randint(1, 8), random.random() < 0.5
    keyed: dict[str, Sequence[Any]] = {
        "region": random.sample(KEYS, count) if unique else [random.choice(KEYS[:4]) for _ in range(count)],
        "grade": random.sample(range(9), count) if unique else [random.randint(0, 3) for _ in range(count)],
    }
    keyed["code"] = keyed["region"]
    values: dict[str, Sequence[Any]] = {
        "factor": (0.5, 2.0, -1.0, 0.0, -0.0, math.nan, math.inf, 1e300, None, 3.25),
        "label": ("a", "b", "", None, "o'x"),
        "flag": (True, False, None),
        "since": (0, 18_000, 18_500, None, -719_162),
        "u0": (1, 2, 3, None, 2**40),
    }
    rows = []
    for at in range(count):
        row = [
            (None if random.random() < 0.08 else keyed[name][at]) if name in keyed else random.choice(values[name])
            for name in types
        ]
        rows.append(
            tuple(float(v) if t == "DOUBLE" and v is not None else v for v, t in zip(row, types.values(), strict=True))
        )
    return tuple(rows)
