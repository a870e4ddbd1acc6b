"""What attack tests share: a table and its neighbour behind real curators, and what an analyst sees of either."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dalenius import Curator, Release
from dalenius.errors import DaleniusError
from dalenius.measuring._exact import exact
from dalenius.measuring.plan import Plan
from dalenius.queries.ask import Ask
from dalenius.queries.planning import plan_ask

EVE = "eve"
POLICY = """
[table]
name = "{name}"
source = "{name}.parquet"
unit = "id"
neighbors = "{neighbors}"
[budget]
epsilon = {epsilon}
{delta}
accounting = "{accounting}"
[analysts.eve]
epsilon = {epsilon}
[analysts.bob]
epsilon = {epsilon}
{columns}
{contribution}
"""


def policy(
    columns: str,
    *,
    name: str = "t",
    contribution: str = "rows = 3",
    epsilon: float = 50.0,
    accounting: str = "zcdp",
    neighbors: str = "add-remove",
    delta: float = 1e-6,
) -> str:
    """A policy; ``columns`` is its TOML below the budget, ``contribution`` that of its section."""
    return POLICY.format(
        name=name,
        columns=columns,
        contribution=f"[contribution]\n{contribution}" if contribution else "",
        epsilon=epsilon,
        accounting=accounting,
        delta=f"delta = {delta}" if accounting == "zcdp" else "",
        neighbors=neighbors,
    )


def curator_of(folder: Path, table: pa.Table, columns: str, *, name: str = "t", **more: Any) -> Curator:
    """A curator in ``folder`` whose one table is ``table``, with room for many questions of eve and bob."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / f"{name}.parquet")
    (folder / f"{name}.toml").write_text(policy(columns, name=name, **more))
    curator = Curator(folder / "home")
    curator.protect(folder / f"{name}.toml")
    return curator


def neighbours(folder: Path, table: pa.Table, victim: pa.Table, columns: str, **more: Any) -> tuple[Curator, Curator]:
    """Curators of ``table`` without the victim's rows and with them."""
    without = curator_of(folder / "without", table, columns, **more)
    return without, curator_of(folder / "with", pa.concat_tables([table, victim]), columns, **more)


@dataclass(frozen=True)
class Outcome:
    """All that an analyst sees of a question and that is not noise: equal on neighbours, or it tells them apart."""

    status: str
    charge: tuple[float, ...]
    left: tuple[float, ...]
    shape: tuple[Any, ...] = ()
    keys: tuple[Any, ...] = ()
    text: str = ""


def outcome(
    curator: Curator,
    question: str,
    epsilon: float = 0.01,
    analyst: str = EVE,
    releases: list[Release] | None = None,
) -> Outcome:
    """Asks, and keeps what is not noise; all of it goes to ``releases``. Only an error of ours may be raised."""
    eve = curator.analyst(analyst)
    try:
        release = eve.ask(question, epsilon=epsilon)
    except DaleniusError as error:
        return Outcome(error.code, tuple(error.charge), _left(curator, analyst), text=str(error))
    if releases is not None:
        releases.append(release)
    places = [at for at, key in enumerate(release.keys) if key]
    # Limits chosen from noisy counts are noise too, and so is what is said of what they cut off.
    own = ("found its own limit", "looked for a lower limit", "adds was capped")
    notes = tuple(each for each in release.notes if not any(words in each for words in own))
    return Outcome(
        "answered",
        tuple(value for value in release.charge.values() if value is not None),
        _left(curator, analyst),
        (release.columns, release.keys, len(release.rows), release.confidence, release.free, notes),
        tuple(tuple(row[at] for at in places) for row in release.rows),
        repr((release.guarantee, release.remaining)),
    )


def _left(curator: Curator, analyst: str) -> tuple[float, ...]:
    (dataset,) = curator.ledger.datasets()
    balances = [curator.ledger.balance(dataset, who) for who in (analyst, "")]
    return tuple(value for each in balances for value in (each.remaining_epsilon, each.remaining_delta, each.charges))


def plan_of(curator: Curator, question: str, analyst: str = EVE) -> Plan:
    """The plan that the curator would run."""
    return plan_ask(curator.analyst(analyst)._asker, Ask(question)).plan


def integers_of(curator: Curator, question: str, salt: str = "salt") -> list[list[int]]:
    """The exact integers that noise would be added to."""
    return integers_by(curator, plan_of(curator, question), salt)


def integers_by(curator: Curator, plan: Plan, salt: str = "salt") -> list[list[int]]:
    """The same by a plan that is there already: neighbours have one policy, so their plans are the same."""
    (version,) = curator.tables()
    return exact(plan, curator.engines.of(version.fingerprint), salt)


def too_far(plan: Plan, one: Iterable[Iterable[int]], other: Iterable[Iterable[int]]) -> list[str]:
    """The measures whose integers differ by more than the plan claims that one unit can change."""
    found = []
    for measure, left, right in zip(plan.measures, one, other, strict=True):
        moved = [a - b for a, b in zip(left, right, strict=True)]
        distance = sum(each * each for each in moved) if plan.norm == "l2" else sum(map(abs, moved))
        if distance > measure.sensitivity:
            found.append(f"{measure.kind}: {distance} > {measure.sensitivity}")
    return found
