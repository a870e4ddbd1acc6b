"""Random data sets: two to four tables of the same people, some of them by paths of keys, and public tables.

Every table has a column ``region`` or ``grade``, or both, that public tables have too, so that joins find something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from dalenius.audit.fuzzing.policies import KEYS, STORAGES, column_spec
from dalenius.errors import PolicyInvalidError
from dalenius.ledger.budgets import Accounting, Budget
from dalenius.measuring.plan import Found, Table
from dalenius.tables.policy import Contribution, Policy
from dalenius.tables.reading import read_tree

if TYPE_CHECKING:
    from fractions import Fraction

DATASET = "people"
MOST_ROWS = 40  # of one unit in one table: what is drawn never has more
# Some as our own statements call things.
_TABLES = ("persons", "Orders", "items", "clean", "source", "s0_0", "t0", "kept")
_NAMES: tuple[str, ...] = (
    "x",
    "y",
    "Age",
    "select",
    "two words",
    'quo"te',
    "u0",
    "c0",
    "k0",
    "a0",
    "unit 0",
    "t0",
    "größe",
    "seed",
)
_NAMES += ("person0", "who0", "key as it is", "person0 as it is", "u1")
_UNITS = ("BIGINT", "BIGINT", "VARCHAR", "VARCHAR", "DOUBLE", "DOUBLE", "DATE", "TIMESTAMP")
_KEYS = ("BIGINT", "BIGINT", "VARCHAR", "DOUBLE", "TIMESTAMP")
_SIMPLE = {"integer": ("BIGINT", "DOUBLE", "VARCHAR"), "category": ("VARCHAR",), "text": ("VARCHAR",)}
_INTEGERS = ((0, 1), (0, 100), (-10, 10), (-5, -1), (0, 2**31))


@dataclass(frozen=True)
class Schema:
    """The tables of a data set as questions see them, and how their columns lie in files.

    Attributes:
        tables: By name; those that a path goes through stand before the ones that go through them.
        storages: The types of each table's columns, in the order of its rows' values.
        keys: The column of a table that tells its rows apart, where paths lead through it.
        publics: The types of each public table's columns.
        unique: Whether keys are unique, as they must be; where not, `protect` has to refuse the tables.
        form: "memory", or "parquet": real files, as a protected table would be.
    """

    tables: Mapping[str, Table]
    storages: Mapping[str, Mapping[str, str]]
    keys: Mapping[str, str]
    publics: Mapping[str, Mapping[str, str]]
    unique: bool = True
    form: str = "memory"

    @property
    def first(self) -> Policy:
        """The policy that carries the budget."""
        return next(iter(self.tables.values())).policy

    @property
    def wide(self) -> Schema:
        """The same with limits that no unit reaches: every row counts in full."""
        return self.with_(
            {name: replace(each.policy, contribution=Contribution(MOST_ROWS)) for name, each in self.tables.items()}, {}
        )

    def with_(self, policies: Mapping[str, Policy], found: Mapping[str, Found]) -> Schema:
        """The same with other policies, and limits that were found."""
        made = dict[str, Table]()
        for name, policy in policies.items():
            through = {hop.table: made[hop.table] for hop in policy.path}
            made[name] = replace(self.tables[name], policy=policy, found=found.get(name), through=through)
        return replace(self, tables=made)

    def opaque(self, name: str) -> bool:
        """Whether a column that says who somebody is may also be asked about: then it has two meanings."""
        policy = self.tables[name].policy
        return bool({*policy.owner, self.keys.get(name, "")} & policy.columns.keys())


def schema(random: Random, form: str = "memory", *, unique: bool = True) -> Schema:
    """A data set whose policies their reader accepts."""
    while True:
        try:
            return _schema(random, form, unique)
        except PolicyInvalidError:  # a step that does not fit its bounds, and the like: drawn again
            continue


def _schema(random: Random, form: str, unique: bool) -> Schema:
    count = random.choice((2, 2, 3, 3, 4))
    names = random.sample(_TABLES, count)
    paths = not unique or random.random() < 0.75
    parts = 1 if paths else random.choice((1, 1, 2))
    types = random.sample(_UNITS, parts)
    neighbors, accounting = random.choice(("add-remove", "substitute")), random.choice(("zcdp", "zcdp", "pure"))
    policies, storages, keys = dict[str, Policy](), dict[str, dict[str, str]](), dict[str, str]()
    for at, name in enumerate(names):
        onward = random.choice(names[:at]) if at and paths and (random.random() < 0.75 or not unique) else None
        key = random.choice(("key", "Key", "id", f"{name}_key"))
        columns = _columns(random)
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
            held[key] = random.choice(_KEYS)
        columns = {each: spec for each, spec in columns.items() if each not in held}
        if random.random() < 0.1:  # who somebody is may be asked about as well
            listed = random.choice(list(held))
            columns |= {listed: {"type": "text"} if held[listed] == "VARCHAR" else {"type": "integer"}}
            if held[listed] in {"DATE", "TIMESTAMP"}:
                columns[listed] = {"type": "date"}
        tree = _tree(random, name, unit, columns, neighbors, form)
        if at == 0:
            tree["budget"] = {"epsilon": 3, "accounting": accounting}
            tree["budget"] |= {"delta": Decimal("1e-6")} if accounting == "zcdp" else {}
        policies[name] = read_tree(tree, Path("/"))
        storages[name] = held | {
            each: random.choice(_SIMPLE.get(column.kind.value, STORAGES[column.kind.value]))
            for each, column in policies[name].columns.items()
            if each not in held
        }
    used = {hop.table: hop.key for policy in policies.values() for hop in policy.path}
    found = {name: _found(random) for name, each in policies.items() if each.contribution.rows is None}
    tables = {name: Table(each, _budget(policies[names[0]])) for name, each in policies.items()}
    publics = {name: _public(random) for name in random.sample(("regions", "Codes", "w0"), random.choice((0, 1, 1, 2)))}
    return Schema(tables, storages, used, publics, unique, form).with_(policies, found)


def _path(reference: str, onward: str, policies: Mapping[str, Policy], keys: Mapping[str, str]) -> str:
    """From a column to the key of a table, and on as that table's own unit does."""
    steps, policy = f"{reference} -> {onward}.{keys[onward]}", policies[onward]
    while policy.path:
        hop = policy.path[0]
        steps += f" -> {policy.name}.{hop.column} -> {hop.table}.{hop.key}"
        policy = policies[hop.table]
    return f"{steps} -> {policy.name}.{policy.unit[0]}"


def _tree(
    random: Random, name: str, unit: Any, columns: dict[str, Any], neighbors: str, form: str
) -> dict[str, dict[str, Any]]:
    contribution: dict[str, Any] = {}
    if random.random() < 0.85:
        contribution["rows"] = random.choice((1, 1, 2, 3, 5, 13))
    if random.random() < 0.4:
        contribution["groups"] = random.randint(1, 4)
    summable = [each for each, spec in columns.items() if spec["type"] == "integer" and "bounds" in spec]
    totals = {each: random.choice((1, 10, 999)) for each in summable if random.random() < 0.2}
    return {
        "table": {
            "name": name,
            "source": f"{name}.{'parquet' if form == 'memory' else form}",
            "unit": unit,
            "neighbors": neighbors,
            "dataset": DATASET,
        },
        "columns": columns,
        "contribution": contribution | ({"totals": totals} if totals else {}),
    }


def _columns(random: Random) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if random.random() < 0.7:
        columns["region"] = {"type": random.choice(("category", "text"))}
        if random.random() < 0.6:
            columns["region"]["keys"] = random.sample(KEYS, random.randint(2, 6))
        if random.random() < 0.15:
            columns["region"]["default"] = random.choice(columns["region"].get("keys", KEYS))
    if not columns or random.random() < 0.5:
        columns["grade"] = {"type": "integer", "bounds": [0, random.choice((3, 5))]}
    for name in random.sample(_NAMES, random.randint(1, 3)):
        if random.random() < 0.6:
            columns[name] = {"type": "integer", "bounds": list(random.choice(_INTEGERS))}
            columns[name] |= {"default": columns[name]["bounds"][0]} if random.random() < 0.2 else {}
        else:
            columns[name] = column_spec(random)
    return columns


def _found(random: Random) -> Found:
    """Limits as `protect` would have found them."""
    rows, totals = random.choice((1, 2, 3, 5)), dict[str, "Fraction"]()
    return Found(rows, totals, units=random.randint(1, 9), row_count=random.randint(1, 30))


def _budget(policy: Policy) -> Budget:
    spec = policy.budget
    assert spec is not None  # noqa: S101 (drawn above)
    return Budget(spec.epsilon, spec.delta, Accounting(spec.accounting), "person", policy.neighbors, None)


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
