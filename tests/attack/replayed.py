"""Synthetic tables on two neighbours, with the same answers on both sides.

All that leaves the rows passes a mechanism: noisy tables and scores, choices, keys that are found. On the first side
these draw their noise; on the second they say again what they said on the first, whatever they are shown. What is asked
may follow from answers, so it must be the same on both; if it is not, something else of the rows decided about it. Four
things must hold:

rows    what one unit adds to the table of all columns at once is within the limit (every table is a margin of it)
calls   each call's exact integers move by no more than its mechanism claims, and by nothing if the unit is nobody
price   the claims of all calls add up to no more than what was charged
model   the bytes of the model are the same: nothing reached it but answers
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.seeded_noise import seeded_noise

from dalenius.audit.fuzzing.data_sets import NeighbouringData, TableRows, draw_table_rows, shuffle_rows
from dalenius.audit.fuzzing.engines import SALT, open_data, open_publics
from dalenius.audit.fuzzing.schemas import NAME, draw_table
from dalenius.errors import DaleniusError
from dalenius.ledger.budgets import Accounting
from dalenius.measuring.engines.duckdb.backend import DuckDBPool
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.exponential import Exponential
from dalenius.mechanisms.key_selection import WEIGHT, KeySelection
from dalenius.releasing.leaving import Look
from dalenius.synthesis.kind import Planned
from dalenius.synthesis.methods import METHODS
from dalenius.synthesis.request import SynthesisAsk
from dalenius.synthesis.rows import read_rows
from dalenius.synthesis.seeking import key_places

HEAVY, THOUSAND = 0.3, 1000  # the share of victims with so many rows that are all the same
FORMS = ("memory",) * 18 + ("parquet", "csv")
PRICES = (0.1, 1.0, 10.0)
USUAL = ("tree", "tree", "tree", *METHODS)
DELTA, SECONDS, SEED = 1e-6, 60.0, 24


@dataclass(frozen=True)
class Broken:
    """A promise that did not hold."""

    kind: str
    claimed: float
    seen: float
    case: str


@dataclass
class Report:
    """What a run did."""

    cases: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    broken: list[Broken] = field(default_factory=list)


class OtherwiseError(Exception):
    """On the second side something else was asked."""


@dataclass
class Transcript:
    """What was shown to the mechanisms of one side, and what they said.

    Attributes:
        calls: (mechanism, exact integers, answer), one after another.
        weights: Of all keys, for each column whose keys are sought: cells and weights as the engine gives them.
        rows: What the rows weigh, by their values in all columns.
        content: The model.
    """

    calls: list[tuple[Any, Any, Any]] = field(default_factory=list)
    weights: list[tuple[Any, Any]] = field(default_factory=list)
    rows: Counter[bytes] = field(default_factory=Counter)
    content: bytes = b""


class _Engine:
    """The engine of one side; on the second, keys that are sought are those of the first."""

    def __init__(self, engine: Any, own: Transcript, first: Transcript | None) -> None:
        self._engine, self._own, self._first = engine, own, first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def weights(self, *parts: Any, **named: Any) -> Any:
        found = self._engine.weights(*parts, **named)
        self._own.weights.append(found)
        return found if self._first is None else self._first.weights[len(self._own.weights) - 1]


@contextmanager
def _listening(own: Transcript, first: Transcript | None) -> Iterator[None]:
    """Notes all that the mechanisms are shown; after a first side they say what they said there."""
    with pytest.MonkeyPatch.context() as patch:
        for each in (DiscreteGaussian, Exponential, KeySelection):
            patch.setattr(each, "release", _released(each.release, own, first))
        fresh = np.random.default_rng

        def noted(*parts: Any) -> Any:
            codes, weights = read_rows(*parts)
            for row, weight in zip(np.ascontiguousarray(codes.T), weights.tolist(), strict=True):
                own.rows[row.tobytes()] += weight
            return codes, weights

        patch.setattr("dalenius.synthesis.kind.read_rows", noted)
        # what is drawn for the fit is no noise: the same on both sides
        patch.setattr(np.random, "default_rng", lambda seed=SEED: fresh(seed))
        yield


def _released(release: Any, own: Transcript, first: Transcript | None) -> Any:
    def said(mechanism: Any, exact: Any, **more: Any) -> Any:
        if first is None:
            answer = release(mechanism, exact, **more)
        else:
            if len(own.calls) >= len(first.calls):
                raise OtherwiseError("one call more")
            before, shown, answer = first.calls[len(own.calls)]
            if before != mechanism or np.shape(shown) != np.shape(exact):
                raise OtherwiseError(f"{mechanism} after {before}")
        own.calls.append((mechanism, np.array(exact, dtype=object), answer))
        return answer

    return said


# --- cases


def draw(number: int) -> tuple[NeighbouringData, Random]:
    """A table and its neighbour; some victims have a thousand rows that are all the same."""
    random = Random(f"synthetic {SEED} {number}")
    made = draw_table_rows(random, draw_table(random, random.choice(FORMS)))
    while made.schema.first.budget.accounting is Accounting.PURE:  # is refused, as another test says
        made = draw_table_rows(random, draw_table(random, made.schema.form))
    for part in ("victim", "instead"):
        rows = getattr(made, part)[NAME]
        if rows and random.random() < HEAVY:
            made = made.with_rows(part, NAME, (random.choice(rows),) * THOUSAND)
    return made, random


def run(cases: int, folder: Path, start: int = 0) -> Report:
    """So many cases; stops at the first that breaks a promise."""
    report = Report()
    for number in range(start, start + cases):
        if report.broken:
            break
        report.cases += 1
        made, random = draw(number)
        table = made.schema.first
        ask = SynthesisAsk(
            NAME, random.choice(PRICES), random.choice(USUAL), rows_per_unit=random.choice((None, 1, 3, 40, 2000))
        )
        try:
            planned = Planned.of(table, ask)
        except DaleniusError as error:
            report.refused[error.code] += 1
            continue
        report.drawn.update(_features(made, planned))
        found = check(made, planned, random, folder / str(number))
        if found is not None:
            about = f"case {number}, {ask}\n{table.policy.text}\n{made.schema.storages}"
            report.broken.append(replace(found, case=about))
    return report


def _features(made: NeighbouringData, planned: Planned) -> list[str]:
    columns = planned.domain.columns
    named = {
        "heavy": len(made.victim[NAME]) >= THOUSAND,
        "nobody": made.nobody,
        "keys are found": bool(key_places(planned.domain)),
        "classes are found": any(each.sought and each.grid is not None for each in columns),
        "absent": any(each.absent for each in columns),
        "period": planned.table.budget.period is not None,
    }
    kinds = [each.kind.value for each in columns]
    return [*(name for name, held in named.items() if held), *kinds, planned.method.name, planned.limit.neighbors.value]


def check(made: NeighbouringData, planned: Planned, random: Random, folder: Path) -> Broken | None:
    """The first promise that does not hold on two neighbours."""
    rho, delta = Fraction(planned.cost(planned.ask.epsilon).rho), DELTA if key_places(planned.domain) else 0.0
    first, second = Transcript(), Transcript()
    publics, _ = open_publics(made.schema, {}, folder)

    def fit(rows: TableRows, own: Transcript, before: Transcript | None) -> None:
        name = "first" if before is None else "second"
        engine = open_data(made.schema, rows, folder / name, publics, DuckDBPool()).of(planned.table)
        look = Look(_Engine(engine, own, before), planned.ask.epsilon, delta, SALT, SECONDS)
        with _listening(own, before), seeded_noise(random.getrandbits(32)):
            own.content = planned.fitted(look, rho, delta).content()

    fit(made.first, first, None)
    try:
        fit(shuffle_rows(random, made.second), second, first)
    except OtherwiseError as error:
        return Broken("calls", 0, 1, str(error))
    exact = _compare_rows(made, planned, first, second) or _compare_weights(made, first, second)
    return exact or _compare_calls(made, first, second, rho) or _compare_models(first, second)


def _compare_rows(made: NeighbouringData, planned: Planned, first: Transcript, second: Transcript) -> Broken | None:
    length = planned.limit.length
    moved = [first.rows[each] - second.rows[each] for each in first.rows.keys() | second.rows.keys()]
    added, gone = sum(each for each in moved if each > 0), -sum(each for each in moved if each < 0)
    if made.nobody and any(moved):
        return Broken("rows", 0, max(map(abs, moved)), "")
    most = (length, length if made.substitutes else 0)
    if added > most[0] or gone > most[1]:
        return Broken("rows", length, max(added, gone), "")
    return None


def _compare_weights(made: NeighbouringData, first: Transcript, second: Transcript) -> Broken | None:
    for (cells, weights), (others, there) in zip(first.weights, second.weights, strict=True):
        here, other = dict(zip(cells, weights, strict=True)), dict(zip(others, there, strict=True))
        moved = sum((int(here.get(key, 0)) - int(other.get(key, 0))) ** 2 for key in here.keys() | other.keys())
        claimed = 0 if made.nobody else WEIGHT**2 * (2 if made.substitutes else 1)
        if moved > claimed:
            return Broken("calls", claimed, moved, "")
    return None


def _compare_calls(made: NeighbouringData, first: Transcript, second: Transcript, rho: Fraction) -> Broken | None:
    price = Fraction(0)
    if len(second.calls) < len(first.calls):
        return Broken("calls", len(first.calls), len(second.calls), "fewer calls")
    for (mechanism, shown, _), (_, other, _) in zip(first.calls, second.calls, strict=True):
        moved = shown - other
        if isinstance(mechanism, Exponential):
            price += Fraction(mechanism.epsilon) ** 2 / 8
            claimed, seen = mechanism.sensitivity, max(map(abs, moved.tolist()), default=0)
        else:
            price += Fraction(mechanism.rho)
            claimed, seen = mechanism.squared_sensitivity, sum(each * each for each in moved.tolist())
        if seen > (0 if made.nobody else claimed):
            return Broken("calls", claimed, seen, str(mechanism))
    return Broken("price", float(rho), float(price), "") if price > rho else None


def _compare_models(first: Transcript, second: Transcript) -> Broken | None:
    return None if first.content == second.content else Broken("model", 0, 1, "")
