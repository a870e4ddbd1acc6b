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
from typing import Any

from dalenius.accounting.neighbors import Neighbors
from dalenius.audit.fuzzing.columns import KEYS, UNITS, Row, draw_values
from dalenius.audit.fuzzing.schemas import MOST_ROWS, Schema
from dalenius.measuring.work import LONGEST_BYTES

TableRows = Mapping[str, tuple[Row, ...]]  # by table
_ROWS = 30  # of the others in one of several tables
_FEW = (1, 1, 2, 3, 5)
_VICTIM = (0, 1, 1, 2, 3, 6, 12)
_ALONE = (1, 1, 2, 3, 5, 8, 20, 20, 60, 250)  # of the victim's rows, with one table
_CSV_UNITS = ["u1", "u 2", ",", "o'x", "NaN", "ü", 'q"q', "1", "1.0", "null"]


@dataclass(frozen=True)
class NeighbouringData:
    """A data set and its neighbour: some rows in both, the victim's in the first, ``instead`` in the second.

    Attributes:
        loose: Rows of the victim by a path that stay in the second, where the path leads to nobody, or to somebody
            who took the victim's place.
        publics: The rows of public tables.
        nobody: The victim has no unit: its rows belong to nobody, and must change nothing.
    """

    schema: Schema
    others: TableRows
    victim: TableRows
    instead: TableRows
    loose: TableRows = field(default_factory=dict)
    publics: TableRows = field(default_factory=dict)
    nobody: bool = False

    @property
    def first(self) -> TableRows:
        """All rows with the victim."""
        return _add(self.others, self.victim)

    @property
    def second(self) -> TableRows:
        """Those of its neighbour."""
        return _add(self.others, self.instead, self.loose)

    @property
    def substitutes(self) -> bool:
        """Whether neighbours have another unit in the victim's place."""
        return self.schema.first.policy.neighbors is Neighbors.SUBSTITUTE

    def with_rows(self, part: str, table: str, rows: tuple[Row, ...]) -> NeighbouringData:
        """The same with other rows of one table in one part."""
        changes: dict[str, Any] = {part: {**getattr(self, part), table: rows}}
        return replace(self, **changes)


def draw_table_rows(random: Random, schema: Schema) -> NeighbouringData:
    """A table and its neighbour."""
    drawer, (name, table) = _Drawer(random, schema), next(iter(schema.tables.items()))
    people, spec = drawer.people(8), table.policy.budget
    # In a budget per period the unit is the person-period: all rows of one share the value that tells it.
    period = spec.period.column if spec is not None and spec.period is not None else None
    single = {period: random.choice(drawer.values[name][period])} if period is not None else {}

    def no_one() -> Row:
        at = random.randrange(len(table.policy.unit))
        return drawer.without_unit(drawer.people(1)[0], at, {float: math.nan, str: "x" * 3000})

    nobody = random.random() < 0.15
    victim = drawer.own_rows(name, no_one() if nobody else people[0], random.choice(_ALONE), single)
    others = [
        row
        for person in people[2 : random.randint(2, 7)]
        for row in drawer.own_rows(name, person, random.randint(1, 6))
    ]
    if random.random() < 0.2:
        others += drawer.own_rows(name, no_one(), 3)
    made = NeighbouringData(schema, {}, {name: victim}, {name: ()}, nobody=nobody)
    if made.substitutes and not nobody:
        made = made.with_rows("instead", name, drawer.own_rows(name, people[1], random.choice(_ALONE), single))
    random.shuffle(others)
    return made.with_rows("others", name, tuple(others))


def draw_joined_rows(random: Random, schema: Schema) -> NeighbouringData:
    """Several tables and their neighbours."""
    drawer = _Drawer(random, schema)
    nobody = schema.unique and random.random() < 0.15
    people = drawer.people(9)
    others = drawer.rows(people[2], _FEW)
    for person in people[3 : random.randint(3, 8)]:
        others = _add(others, drawer.rows(person, _FEW))
    others = {name: rows[:_ROWS] for name, rows in others.items()}
    if random.random() < 0.3:
        others = _add(others, drawer.rows(drawer.no_one(), _FEW))
    if random.random() < 0.4:
        others = _add(others, drawer.dangling())
    if not schema.unique:  # the next who comes gets keys that somebody else has as well, which no data set may hold
        drawer.reuse_keys(others)
    victim = drawer.rows(drawer.no_one() if nobody else people[0], _VICTIM)
    if nobody and random.random() < 0.5:
        victim = _add(victim, drawer.dangling())
    made = NeighbouringData(schema, others, victim, {}, nobody=nobody)
    if made.substitutes and not nobody:
        if random.random() < 0.4:
            drawer.reuse_keys(victim)
        made = replace(made, instead=drawer.rows(people[1], _VICTIM))
    loose = {
        name: tuple(row for row in rows if random.random() < 0.5)
        for name, rows in victim.items()
        if schema.unique and schema.tables[name].policy.path and random.random() < 0.3
    }
    publics = {name: _draw_public(random, types) for name, types in schema.publics.items()}
    return replace(made, loose=loose, publics=publics)


def owners(schema: Schema, rows: TableRows) -> dict[str, list[Row | None]]:
    """Whose each row is, table by table; None: nobody's."""
    found: dict[str, list[Row | None]] = {}
    by_key: dict[str, dict[Any, Row | None]] = {}
    for name, table in schema.tables.items():
        policy, names, held = table.policy, list(schema.storages[name]), rows.get(name, ())
        if policy.path:
            hop, at = policy.path[0], names.index(policy.path[0].column)
            found[name] = [None if row[at] is None else by_key[hop.table].get(_plain(row[at])) for row in held]
        else:
            found[name] = [_unit(row[: len(policy.unit)]) for row in held]
        if name in schema.keys:
            at = names.index(schema.keys[name])
            keyed = zip(held, found[name], strict=True)
            by_key[name] = {_plain(row[at]): owner for row, owner in keyed if row[at] is not None}
    return found


def shuffle_rows(random: Random, rows: TableRows) -> TableRows:
    """The rows in another order."""
    return {name: tuple(random.sample(each, len(each))) for name, each in rows.items()}


def _plain(value: Any) -> Any:
    """A value as DuckDB compares it: NaN is NaN, and zero is zero."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def _unit(values: Row) -> Row | None:
    """Who somebody is; nobody where a part is NULL, no number, or a text without measure."""
    for each in values:
        if each is None or (isinstance(each, float) and math.isnan(each)):
            return None
        if isinstance(each, str) and len(each.encode()) > LONGEST_BYTES:
            return None
    return tuple(map(_plain, values))


def _add(*parts: TableRows) -> TableRows:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: tuple(row for part in parts for row in part.get(name, ())) for name in names}


@dataclass
class _Drawer:
    """Draws rows of one person after the other, with keys that nobody had before."""

    random: Random
    schema: Schema
    values: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    fresh: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, table in self.schema.tables.items():
            held = self.schema.storages[name]
            self.values[name] = {
                each: draw_values(self.random, column, held[each]) for each, column in table.policy.columns.items()
            }
            if name in self.schema.keys:
                self.fresh[name] = _draw_keys(self.random, held[self.schema.keys[name]])

    def people(self, count: int) -> list[Row]:
        """Different units; two columns may share a value, never both."""
        policy = self.schema.first.policy
        types = [self.schema.storages[policy.name][name] for name in policy.unit]
        known = {**UNITS, "VARCHAR": _CSV_UNITS} if self.schema.form == "csv" else UNITS
        drawn = [self.random.sample(known[each], count) for each in types]
        if len(drawn) > 1 and self.random.random() < 0.5:
            drawn[1] = [drawn[1][0]] * count
        return list(zip(*drawn, strict=True))

    def no_one(self) -> Row:
        """A unit that is none, in one of its parts."""
        person = self.people(1)[0]
        return self.without_unit(person, self.random.randrange(len(person)), {float: math.nan})

    def without_unit(self, person: Row, at: int, odd: Mapping[type, Any]) -> Row:
        """NULL in a part of the unit; or something odd, by its type."""
        value = odd.get(type(person[at]))
        value = value if value is not None and self.random.random() < 0.6 else None
        return (*person[:at], value, *person[at + 1 :])

    def rows(self, person: Row, amounts: Sequence[int]) -> TableRows:
        """The rows of one person in all tables; those by a path lead to his own."""
        found: dict[str, tuple[Row, ...]] = {}
        for name, table in self.schema.tables.items():
            policy, amount = table.policy, self.random.choice(amounts)
            if not policy.path:
                found[name] = self.own_rows(name, person, amount)
                continue
            hop = policy.path[0]
            at = list(self.schema.storages[hop.table]).index(hop.key)
            there = [row[at] for row in found[hop.table] if row[at] is not None]
            made = [self.row(name, self.spell((self.random.choice(there),))) for _ in range(amount) if there]
            found[name] = tuple(made)[:MOST_ROWS]
        return found

    def own_rows(self, name: str, person: Row, amount: int, fixed: Mapping[str, Any] | None = None) -> tuple[Row, ...]:
        """Rows of one person in one table that says whose they are; some columns may have a fixed value."""
        return tuple(self.row(name, self.spell(person), fixed) for _ in range(amount))

    def spell(self, person: Row) -> Row:
        """The unit as a row may hold it: zero has two forms."""
        zeros = (0.0, -0.0)
        return tuple(self.random.choice(zeros) if isinstance(each, float) and each == 0 else each for each in person)

    def dangling(self) -> TableRows:
        """Rows whose path leads nowhere."""
        found = {}
        for name, table in self.schema.tables.items():
            if table.policy.path and self.random.random() < 0.7:
                before = table.policy.path[0].table
                free = [None, self.fresh[before].pop() if self.fresh[before] else None]
                found[name] = tuple(self.row(name, (self.random.choice(free),)) for _ in range(3))
        return found

    def row(self, name: str, owner: Row, fixed: Mapping[str, Any] | None = None) -> Row:
        """One row, with a new key where the table has one."""
        held, key = self.schema.storages[name], self.schema.keys.get(name)
        values = {**dict(zip(held, owner, strict=False)), **(fixed or {})}
        for each in held:
            if each in values:
                continue
            if each == key:
                values[each] = None if self.random.random() < 0.05 or not self.fresh[name] else self.fresh[name].pop()
            else:
                known = self.values[name].get(each)
                values[each] = self.random.choice(known) if known else None
        return tuple(values[each] for each in held)

    def reuse_keys(self, rows: TableRows) -> None:
        """The next who comes gets the keys that somebody had."""
        for name, key in self.schema.keys.items():
            at = list(self.schema.storages[name]).index(key)
            self.fresh[name] += [row[at] for row in rows.get(name, ()) if row[at] is not None]


def _draw_keys(random: Random, storage: str) -> list[Any]:
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


def _draw_public(random: Random, types: Mapping[str, str]) -> tuple[Row, ...]:
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
