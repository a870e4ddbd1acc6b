"""What the attacks of a hostile analyst share: tables that differ in one victim, protected, and ways to look on.

The victim owns `VICTIM_ROWS` rows, all of them with values that nobody else has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.accounting.neighbors import Neighbors
from dalenius.analyst import Analyst
from dalenius.curator import Curator
from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.plan import Plan, require
from dalenius.mechanisms.key_selection import KeySelection
from dalenius.queries.rules import plan_question
from dalenius.releasing.opened import tables_of

VICTIM = 7777
VICTIM_ROWS = 500
RARE = "a rare word"
REGIONS = ("north", "south", "east", "west")

POLICY = """
[table]
name = "{name}"
source = "{source}"
unit = "user_id"
neighbors = "{neighbors}"
{more}
[budget]
epsilon = {epsilon}
delta = {delta}
accounting = "{accounting}"
{analysts}
[columns.age]
type = "integer"
bounds = [18, 90]
[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.01
[columns.day]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
[columns.smoker]
type = "boolean"
[columns.note]
type = "text"
[contribution]
rows = 20
groups = 3
totals = {{ amount = 20000 }}
"""


def people(*, victim: bool, units: int = 120, rows: int = 480, keys: int = 1) -> pa.Table:
    """Rows of ordinary people, and those of the victim or not; the victim's notes and amounts are ``keys`` kinds."""
    found: dict[str, list[Any]] = {
        "user_id": [at % units for at in range(rows)],
        "age": [18 + (7 * at) % 60 for at in range(rows)],
        "region": [REGIONS[at % 3] for at in range(rows)],  # nobody lives in the west
        "amount": [float((37 * at) % 900) for at in range(rows)],
        "day": [date(2025, 1, 1) + timedelta(days=at % 300) for at in range(rows)],
        "smoker": [at % 4 == 0 for at in range(rows)],
        "note": [f"word {at % 5}" for at in range(rows)],
    }
    if victim:
        more = VICTIM_ROWS
        rare = {
            "user_id": VICTIM,
            "age": 90,
            "region": "west",
            "amount": 5000.0,
            "day": date(2025, 12, 31),
            "smoker": None,
            "note": RARE,
        }
        for name, value in rare.items():
            found[name] += [value] * more
        if keys > 1:
            found["note"][-more:] = [f"{RARE} {at % keys}" for at in range(more)]
            found["amount"][-more:] = [5000.0 - at % keys for at in range(more)]
    return pa.table(found)


def protected(
    folder: Path,
    table: pa.Table,
    *,
    name: str = "visits",
    epsilon: float = 3.0,
    delta: float = 1e-6,
    analysts: Mapping[str, float] | None = None,
    accounting: str = "zcdp",
    neighbors: str = "add-remove",
    policy: str = POLICY,
    more: str = "",
) -> Curator:
    """The table as a file in the folder, protected, under a home in the same folder."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}.parquet"
    pq.write_table(table, source)
    shown = "\n".join(f"[analysts.{who}]\nepsilon = {each}" for who, each in (analysts or {"eve": epsilon}).items())
    text = policy.format(
        name=name,
        source=source.name,
        neighbors=neighbors,
        epsilon=epsilon,
        delta=0.0 if accounting == "pure" else delta,
        accounting=accounting,
        analysts=shown,
        more=more,
    )
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    curator = Curator(folder / "home")
    curator.protect(folder / f"{name}.toml")
    return curator


def plan_of(curator: Curator, question: str, analyst: str = "eve") -> Plan:
    """The plan that `ask` would run."""
    asker = curator.analyst(analyst)._asker
    return plan_question(question, tables_of(asker, asker.registry.current()))


def integers_of(curator: Curator, question: str) -> list[list[int]]:
    """The plan's integers before noise. The hash that chooses groups has the same key everywhere here."""
    return integers_by(curator, plan_of(curator, question))


def integers_by(curator: Curator, plan: Plan) -> list[list[int]]:
    """The same of a plan that is there already."""
    return exact(plan, curator.engines.of(curator.tables()[0].fingerprint), "one salt for both")


def weights_of(curator: Curator, question: str) -> dict[tuple[Any, ...], int]:
    """The weight of every key that occurs, before noise, where keys have to be found."""
    engine = curator.engines.of(curator.tables()[0].fingerprint)
    cells, found = engine.weights(plan_of(curator, question), "one salt for both")
    return dict(zip(cells, found, strict=True))


def found_on(curator: Curator, question: str, cells: Sequence[tuple[Any, ...]]) -> list[list[int]]:
    """The plan's integers before noise, had these groups been found."""
    engine = curator.engines.of(curator.tables()[0].fingerprint)
    return exact(replace(plan_of(curator, question), cells=tuple(cells)), engine, "one salt for both")


def weighs_too_much(plan: Plan, one: Mapping[Any, int], other: Mapping[Any, int]) -> list[str]:
    """What is wrong with the weights of keys on two tables that differ in one unit: nothing, or words for it."""
    found = []
    change = sum((one.get(key, 0) - other.get(key, 0)) ** 2 for key in one.keys() | other.keys())
    if change > KeySelection(1, 1e-6, 1, plan.neighbors).squared_sensitivity:
        found.append(f"Σ(w − w')² = {change}")
    for here, there in ((one, other), (other, one)):
        lone = [weight for key, weight in here.items() if key not in there]
        if lone and (len(lone) > require(plan.selection).cap or max(lone) > KeySelection.weight(len(lone))):
            found.append(f"{len(lone)} keys of one unit weigh up to {max(lone)}")
    return found


def moved(plan: Plan, one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> list[bool]:
    """For each measure: does it move by no more than the plan says?"""
    found = []
    for measure, before, after in zip(plan.measures, one, other, strict=True):
        steps = [abs(a - b) for a, b in zip(before, after, strict=True)]
        change = sum(steps) if plan.norm == "l1" else sum(each * each for each in steps)
        found.append(change <= measure.sensitivity)
    assert plan.neighbors is Neighbors.ADD_REMOVE
    return found


@dataclass(frozen=True)
class State:
    """What of a ledger must stay as it is when nothing is charged."""

    entries: int
    spent: tuple[Any, ...]


def state(curator: Curator) -> State:
    """Number of entries, and what every budget and allotment has spent."""
    ledger = curator.ledger
    spent = []
    for dataset in ledger.datasets():
        for who in ("", *sorted(ledger.allotments(dataset))):
            balance = ledger.balance(dataset, who)
            spent.append((dataset, who, str(balance.spent), balance.charges))
    return State(ledger.head.count, tuple(spent))


@contextmanager
def nothing_charged(curator: Curator) -> Iterator[None]:
    """What happens inside costs nothing and leaves no entry."""
    before = state(curator)
    yield
    assert state(curator) == before


def ran(monkeypatch: Any) -> list[str]:
    """From now on, every statement that an engine with files runs."""
    seen: list[str] = []
    run = DuckDB.run

    def spied(self: DuckDB, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        seen.append(sql)
        return run(self, sql, seconds=seconds)

    monkeypatch.setattr(DuckDB, "run", spied)
    return seen


def files_under(folder: Path) -> dict[str, bytes]:
    """Every file with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def until_refused(analyst: Analyst, questions: Iterator[str], epsilon: float, most: int = 1000) -> list[Any]:
    """Asks one question after another until the budget says no."""
    from dalenius.errors import BudgetError

    found: list[Any] = []
    for _ in range(most):
        try:
            found.append(analyst.ask(next(questions), epsilon=epsilon))
        except BudgetError:
            return found
    raise AssertionError("the budget never said no")
