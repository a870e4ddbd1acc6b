"""Random data sets, with all that policies can say: one table, or several of the same people and public ones.

Of several tables, some belong to people by paths of keys; and each has a column ``region`` or ``grade``, or both, that
public tables have too, so that joins find something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from dalenius.audit.fuzzing.columns import KEYS, STEPS, STORAGES, draw_column, draw_valid
from dalenius.ledger.budgets import Accounting, Budget
from dalenius.measuring.plan import Found, Table
from dalenius.tables.policy import Contribution, Policy
from dalenius.tables.reading import read_tree

NAME = "made"  # of a single table
DATASET = "people"  # of several
MOST_ROWS = 40  # of one unit in one of several tables: what is drawn never has more
# Some names are those that our own statements use.
_NAMES: Sequence[str] = (
    *("x", "y", "Age", "select", "größe", "two words", 'quo"te', "from", "amount", "k1", "w0", "seed"),
    *("n", "m", "key", "c0", "u1", "t0"),
)
_JOINED_NAMES: Sequence[str] = (
    *("x", "y", "Age", "select", "two words", 'quo"te', "u0", "c0", "k0", "a0", "unit 0", "t0", "größe", "seed"),
    *("person0", "who0", "key as it is", "person0 as it is", "u1"),
)
_TABLES = ("persons", "Orders", "items", "clean", "source", "s0_0", "t0", "kept")
_UNITS = ("BIGINT", "BIGINT", "VARCHAR", "VARCHAR", "DOUBLE", "DOUBLE", "DOUBLE", "DATE", "TIMESTAMP")
_JOINED_UNITS = ("BIGINT", "BIGINT", "VARCHAR", "VARCHAR", "DOUBLE", "DOUBLE", "DATE", "TIMESTAMP")
_JOINED_KEYS = ("BIGINT", "BIGINT", "VARCHAR", "DOUBLE", "TIMESTAMP")
_SIMPLE = {"integer": ("BIGINT", "DOUBLE", "VARCHAR"), "category": ("VARCHAR",), "text": ("VARCHAR",)}
_INTEGERS = ((0, 1), (0, 100), (-10, 10), (-5, -1), (0, 2**31))
_PERIODS = ("week", "month", "quarter", "year")


@dataclass(frozen=True)
class Schema:
    """The tables of a data set as questions see them, and how their columns lie in files.

    Attributes:
        tables: By name; those that a path goes through stand before the ones that go through them.
        storages: The types of each table's columns, in the order of its rows' values: those of the unit first.
        keys: The column of a table that tells its rows apart, where paths lead through it.
        publics: The types of each public table's columns.
        unique: Whether keys are unique, as they must be; where not, `protect` has to refuse the tables.
        form: "memory", or "parquet" or "csv": real files, as a protected table would be.
        indexed: Whether its one table gets a contribution index.
    """

    tables: Mapping[str, Table]
    storages: Mapping[str, Mapping[str, str]]
    keys: Mapping[str, str]
    publics: Mapping[str, Mapping[str, str]]
    unique: bool = True
    form: str = "memory"
    indexed: bool = False

    @property
    def first(self) -> Table:
        """The table that carries the budget; or the only one."""
        return next(iter(self.tables.values()))

    @property
    def wide(self) -> Schema:
        """The same with limits that no unit reaches: every row counts in full."""
        return self.with_policies(
            {name: replace(each.policy, contribution=Contribution(MOST_ROWS)) for name, each in self.tables.items()}, {}
        )

    def with_policies(self, policies: Mapping[str, Policy], found: Mapping[str, Found | None]) -> Schema:
        """The same with other policies, and limits that were found."""
        made = dict[str, Table]()
        for name, policy in policies.items():
            through = {hop.table: made[hop.table] for hop in policy.path}
            made[name] = replace(self.tables[name], policy=policy, found=found.get(name), through=through)
        return replace(self, tables=made)

    def without(self, table: str, column: str) -> Schema:
        """The same with one column less in a policy; it stays in the file."""
        policies = {name: each.policy for name, each in self.tables.items()}
        columns = {name: each for name, each in policies[table].columns.items() if name != column}
        policies[table] = replace(policies[table], columns=columns)
        return self.with_policies(policies, {name: each.found for name, each in self.tables.items()})

    def is_ambiguous(self, name: str) -> bool:
        """Whether a column that says who somebody is may also be asked about: then it has two meanings."""
        policy = self.tables[name].policy
        return bool({*policy.owner, self.keys.get(name, "")} & policy.columns.keys())


# --- one table


def draw_table(random: Random, form: str = "memory", *, indexed: bool = False) -> Schema:
    """A data set of one table, with columns of all kinds."""
    return draw_valid(lambda: _draw_table(random, form, indexed))


def _draw_table(random: Random, form: str, indexed: bool) -> Schema:
    unit = ("person", "household")[: random.choice((1, 1, 2))]
    columns = {name: draw_column(random) for name in random.sample(_NAMES, random.randint(2, 6))}
    budget = _budget(random.choice(("zcdp", "pure")))
    dated = [name for name, each in columns.items() if each["type"] in {"date", "datetime"} and "bounds" in each]
    if dated and random.random() < 0.15:
        budget["period"] = {"column": random.choice(dated), "every": random.choice(_PERIODS)}
    neighbors = random.choice(("add-remove", "substitute"))
    policy = _read(NAME, form, list(unit), neighbors, columns, _contribution(random, columns, _LIMITS), budget=budget)
    storages = {name: random.choice(_UNITS) for name in unit}
    storages |= {name: random.choice(STORAGES[each.kind.value]) for name, each in policy.columns.items()}
    if form == "csv":
        storages = dict.fromkeys(storages, "VARCHAR")
    spec = policy.budget
    table = Table(policy, _ledger_budget(policy, ", ".join(policy.unit)), spec.period if spec is not None else None)
    return Schema({NAME: table}, {NAME: storages}, {}, {}, form=form, indexed=indexed)


# --- several tables


def draw_tables(random: Random, form: str = "memory", *, unique: bool = True) -> Schema:
    """A data set of two to four tables."""
    return draw_valid(lambda: _draw_tables(random, form, unique))


def _draw_tables(random: Random, form: str, unique: bool) -> Schema:
    count = random.choice((2, 2, 3, 3, 4))
    names = random.sample(_TABLES, count)
    paths = not unique or random.random() < 0.75
    parts = 1 if paths else random.choice((1, 1, 2))
    types = random.sample(_JOINED_UNITS, parts)
    neighbors, accounting = random.choice(("add-remove", "substitute")), random.choice(("zcdp", "zcdp", "pure"))
    policies, storages, keys = dict[str, Policy](), dict[str, dict[str, str]](), dict[str, str]()
    for at, name in enumerate(names):
        onward = random.choice(names[:at]) if at and paths and (random.random() < 0.75 or not unique) else None
        key = random.choice(("key", "Key", "id", f"{name}_key"))
        columns = _joined_columns(random)
        held: dict[str, str] = {}
        if onward is None:
            own = tuple(random.choice((f"person{part}", f"person{part}", f"who{part}")) for part in range(parts))
            held |= dict(zip(own, types, strict=True))
            unit: Any = list(own)
        else:
            reference = random.choice(("ref", "key of", f"{onward}_key"))
            if reference == key:
                reference = "ref"
            held[reference] = storages[onward][keys[onward]]
            unit = {"path": _path(reference, onward, policies, keys)}
        if paths:
            keys[name] = key
            held[key] = random.choice(_JOINED_KEYS)
        columns = {each: spec for each, spec in columns.items() if each not in held}
        if random.random() < 0.1:  # who somebody is may be asked about as well
            listed = random.choice(list(held))
            columns |= {listed: {"type": "text"} if held[listed] == "VARCHAR" else {"type": "integer"}}
            if held[listed] in {"DATE", "TIMESTAMP"}:
                columns[listed] = {"type": "date"}
        limits = _contribution(random, columns, _JOINED_LIMITS)
        budget = _budget(accounting) if at == 0 else None
        policies[name] = _read(name, form, unit, neighbors, columns, limits, budget=budget, dataset=DATASET)
        storages[name] = held | {
            each: random.choice(_SIMPLE.get(column.kind.value, STORAGES[column.kind.value]))
            for each, column in policies[name].columns.items()
            if each not in held
        }
    used = {hop.table: hop.key for policy in policies.values() for hop in policy.path}
    found = {name: _found(random) for name, each in policies.items() if each.contribution.rows is None}
    tables = {name: Table(each, _ledger_budget(policies[names[0]], "person")) for name, each in policies.items()}
    publics = {name: _public(random) for name in random.sample(("regions", "Codes", "w0"), random.choice((0, 1, 1, 2)))}
    return Schema(tables, storages, used, publics, unique, form).with_policies(policies, found)


def _path(reference: str, onward: str, policies: Mapping[str, Policy], keys: Mapping[str, str]) -> str:
    """From a column to the key of a table, and on as that table's own unit does."""
    steps, policy = f"{reference} -> {onward}.{keys[onward]}", policies[onward]
    while policy.path:
        hop = policy.path[0]
        steps += f" -> {policy.name}.{hop.column} -> {hop.table}.{hop.key}"
        policy = policies[hop.table]
    return f"{steps} -> {policy.name}.{policy.unit[0]}"


def _joined_columns(random: Random) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if random.random() < 0.7:
        columns["region"] = {"type": random.choice(("category", "text"))}
        if random.random() < 0.6:
            columns["region"]["keys"] = random.sample(KEYS, random.randint(2, 6))
        if random.random() < 0.15:
            columns["region"]["default"] = random.choice(columns["region"].get("keys", KEYS))
    if not columns or random.random() < 0.5:
        columns["grade"] = {"type": "integer", "bounds": [0, random.choice((3, 5))]}
    for name in random.sample(_JOINED_NAMES, random.randint(1, 3)):
        if random.random() < 0.6:
            columns[name] = {"type": "integer", "bounds": list(random.choice(_INTEGERS))}
            columns[name] |= {"default": columns[name]["bounds"][0]} if random.random() < 0.2 else {}
        else:
            columns[name] = draw_column(random)
    return columns


def _found(random: Random) -> Found:
    """Limits as `protect` would have found them."""
    return Found(random.choice((1, 2, 3, 5)), {}, units=random.randint(1, 9), row_count=random.randint(1, 30))


def _public(random: Random) -> dict[str, str]:
    found = {"region": "VARCHAR"} if random.random() < 0.7 else {"code": "VARCHAR"}
    if random.random() < 0.6:
        found["grade"] = random.choice(("BIGINT", "DOUBLE"))
    more: Sequence[tuple[str, str]] = (
        ("factor", "DOUBLE"),
        ("label", "VARCHAR"),
        ("flag", "BOOLEAN"),
        ("since", "DATE"),
        ("u0", "BIGINT"),
    )
    return found | dict(random.sample(more, random.randint(1, 3)))


# --- policies


@dataclass(frozen=True)
class _Limits:
    """How often a policy limits rows, groups and totals, to what, and totals of which kinds of columns."""

    rows: float
    most_rows: tuple[int, ...]
    groups: float
    most_groups: int
    totals: float
    kinds: frozenset[str]


_LIMITS = _Limits(0.97, (1, 2, 3, 5, 7, 13, 20), 0.6, 5, 0.25, frozenset({"integer", "number"}))
_JOINED_LIMITS = _Limits(0.85, (1, 1, 2, 3, 5, 13), 0.4, 4, 0.2, frozenset({"integer"}))


def _contribution(random: Random, columns: Mapping[str, Mapping[str, Any]], limits: _Limits) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if random.random() < limits.rows:
        found["rows"] = random.choice(limits.most_rows)
    if random.random() < limits.groups:
        found["groups"] = random.randint(1, limits.most_groups)
    totals = {
        name: random.choice((1, 10, 999)) if each["type"] == "integer" else Decimal(random.choice(STEPS))
        for name, each in columns.items()
        if each["type"] in limits.kinds and "bounds" in each and random.random() < limits.totals
    }
    return found | ({"totals": totals} if totals else {})


def _budget(accounting: str) -> dict[str, Any]:
    return {"epsilon": 3, "accounting": accounting} | ({"delta": Decimal("1e-6")} if accounting == "zcdp" else {})


def _read(
    name: str,
    form: str,
    unit: Any,
    neighbors: str,
    columns: Mapping[str, Any],
    contribution: Mapping[str, Any],
    *,
    budget: Mapping[str, Any] | None,
    dataset: str = "",
) -> Policy:
    source = f"{name}.{'parquet' if form == 'memory' else form}"
    table = {"name": name, "source": source, "unit": unit, "neighbors": neighbors}
    table |= {"dataset": dataset} if dataset else {}
    tree = {"table": table} | ({"budget": budget} if budget else {})
    return read_tree(tree | {"columns": columns, "contribution": contribution}, Path("/"))


def _ledger_budget(policy: Policy, unit: str) -> Budget:
    spec = policy.budget
    assert spec is not None  # noqa: S101 (drawn above)
    every = spec.period.every if spec.period is not None else None
    return Budget(spec.epsilon, spec.delta, Accounting(spec.accounting), unit, policy.neighbors, every, spec.selection)
