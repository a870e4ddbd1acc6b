"""A second kind of release, made up here, in one class: charged, paced, stored, asked again, listed, served as a job.

It is a histogram of ages with one price: nothing in src knows it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.attack.hostile import people, protected, state
from tests.opened import duckdb_of

from dalenius.app.http.jobs import JobRequest
from dalenius.app.http.service import Service
from dalenius.app.http.settings import Settings
from dalenius.app.views.history import details
from dalenius.curator import Curator
from dalenius.errors import (
    BudgetError,
    DaleniusError,
    EngineTimeoutError,
    InputError,
    NotAllowedError,
    UnknownReceiptError,
)
from dalenius.ledger.requests import Answered
from dalenius.ledger.tokens import Role, Tokens
from dalenius.ledger.verification import verify
from dalenius.measuring.pace import Times
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.releasing.kinds import Kind, kind_of, known, names
from dalenius.releasing.leaving import Asker, Leaving, Look
from dalenius.releasing.opened import tables_of
from dalenius.releasing.pacing import Pace, Pacer
from dalenius.releasing.snapshot import Snapshot
from dalenius.releasing.stored import read_release

LIMIT = 20  # rows of one unit that count


@dataclass(frozen=True)
class Bars:
    """What the asker gets."""

    counts: list[int]
    free: bool
    charge: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"counts": self.counts, "free": self.free, "charge": dict(self.charge)}


class Histogram(Kind):
    """Rows below and above an age."""

    name: ClassVar[str] = "histogram"
    verb: ClassVar[str] = "drew a histogram of"

    def __init__(self) -> None:
        self.looks = 0
        self.wait = threading.Event()
        self.wait.set()
        self.times = Times(0.2, 1.0)

    def prepare(self, asker: Asker, request: Mapping[str, Any]) -> Leaving:
        if set(request) != {"table", "age", "epsilon"}:
            raise InputError("A histogram needs a table, an age and an epsilon.", why="It is made of them.", fix="Say.")
        versions = asker.registry.current()
        table, age = tables_of(asker, versions)[request["table"]], int(request["age"])
        rho = table.budget.filter().price(request["epsilon"], 0.0).rho
        variance = Fraction(LIMIT**2) / (2 * Fraction(rho)) * Fraction(1 + 1e-12)
        mechanism = DiscreteGaussian(variance, squared_sensitivity=LIMIT**2, dimension=2)

        def look(charged: Look) -> bytes:
            self.looks += 1
            self.wait.wait(10)
            engine = duckdb_of(charged.engine)
            numbered = "row_number() OVER (PARTITION BY user_id ORDER BY age) AS n"
            within = f"SELECT age < {age} AS young, {numbered} FROM {engine.scan}"
            sql = f"SELECT count(*) FILTER (young), count(*) FILTER (NOT young) FROM ({within}) WHERE n <= {LIMIT}"
            rows = engine.run(sql, seconds=charged.seconds)
            return json.dumps(mechanism.release(list(rows[0])).value.tolist()).encode()

        snapshot = Snapshot.of(table, versions)
        key = f"{request['table']} {age} {snapshot.data_version}"
        return Leaving(
            self.name, snapshot, key, request["epsilon"], mechanism.event, Pace(lambda _: self.times), look, asked=key
        )

    def show(self, asker: Asker, request: Mapping[str, Any], leaving: Leaving, answered: Answered) -> Bars:
        return Bars(json.loads(answered.content), answered.free, answered.receipt.charge)

    def read(self, content: bytes) -> dict[str, Any]:
        return {"counts": json.loads(content)}


WISH = {"table": "visits", "age": 40, "epsilon": 0.5}


@pytest.fixture
def kind() -> Iterator[Histogram]:
    found = Histogram()
    with known(found):
        yield found


@pytest.fixture
def curator(tmp_path: Path) -> Curator:
    return protected(tmp_path, people(victim=True), analysts={"eve": 1.0, "bob": 1.0})


def test_it_is_charged_once_stored_and_free_again(kind, curator):
    eve = curator.analyst("eve")
    first, again = eve.obtain("histogram", WISH), eve.obtain("histogram", WISH)
    assert again.to_dict()["counts"] == first.to_dict()["counts"] and kind.looks == 1
    assert (first.to_dict()["free"], again.to_dict()["free"]) == (False, True)
    assert first.to_dict()["charge"]["epsilon"] == 0.5
    assert verify(curator.ledger).releases == 1


def test_it_is_looked_at_after_the_charge_and_a_failure_is_not_refunded(kind, curator, monkeypatch):
    eve, charges = curator.analyst("eve"), list[int]()
    prepare = kind.prepare

    def broken(asker, request):
        leaving = prepare(asker, request)

        def look(_):
            charges.append(curator.ledger.balance("visits", "eve").charges)
            raise ZeroDivisionError

        object.__setattr__(leaving, "look", look)
        return leaving

    monkeypatch.setattr(kind, "prepare", broken)
    with pytest.raises(ZeroDivisionError):
        eve.obtain("histogram", WISH)
    assert charges == [1] and curator.ledger.balance("visits", "eve").charges == 1


def test_a_budget_that_does_not_cover_it_refuses_it_and_nobody_looks(kind, curator):
    before = state(curator)
    with pytest.raises(BudgetError):
        curator.analyst("eve").obtain("histogram", {**WISH, "epsilon": 2.0})
    assert kind.looks == 0 and state(curator) == before


def test_another_analyst_pays_for_an_own_look(kind, curator):
    curator.analyst("eve").obtain("histogram", WISH)
    assert curator.analyst("bob").obtain("histogram", WISH).to_dict()["free"] is False
    assert kind.looks == 2


def test_it_leaves_at_its_own_time_and_a_late_one_is_refused(kind, curator):
    eve = curator.analyst("eve", pacer=Pacer(1))
    kind.times = Times(0.05, 1.0)
    kind.wait.clear()
    threading.Timer(0.5, kind.wait.set).start()  # long after it began to look, on a busy machine too
    with pytest.raises(EngineTimeoutError):
        eve.obtain("histogram", WISH)
    alarms = [each.data["alarm"] for each in curator.ledger.records(("note",)) if "alarm" in each.data]
    assert alarms == ["late"]


def test_the_same_key_is_charged_once_and_only_for_the_same_request(kind, curator):
    eve = curator.analyst("eve")
    eve.obtain("histogram", WISH, idempotency_key="k")
    assert eve.obtain("histogram", WISH, idempotency_key="k").to_dict()["free"] is True
    with pytest.raises(InputError):
        eve.obtain("histogram", {**WISH, "age": 41}, idempotency_key="k")


def test_history_and_lists_know_its_kind(kind, curator):
    eve = curator.analyst("eve")
    eve.obtain("histogram", WISH)
    eve.ask("SELECT COUNT(*) FROM visits", epsilon=0.1)
    assert [each.kind for each in curator.releases()] == ["histogram", "question"]
    assert [each["kind"] for each in eve.history()] == ["histogram", "question"]
    told = [details(each) for each in curator.ledger.records(("charge",))]
    assert told[0].startswith("eve drew a histogram of visits") and told[1].startswith("eve asked visits")
    ((mine, _),) = [eve.releases()]
    found = read_release(curator.ledger, mine.id, "eve")
    assert found["kind"] == "histogram" and len(found["content"]["counts"]) == 2
    with pytest.raises(UnknownReceiptError):
        read_release(curator.ledger, mine.id, "bob")


def ended(job):
    assert job.future is not None
    return job.future.result(timeout=60)


def test_a_server_serves_it_as_a_job_that_survives_a_restart(kind, curator, tmp_path):
    token, _ = Tokens(curator.ledger).create(Role.ANALYST, "eve")
    service = Service(curator.home, Settings(), speed=1.0)
    try:
        holder = service.tokens.check(token)
        wanted = JobRequest("histogram", WISH, "a key")
        job = service.obtain(holder, wanted)
        service.jobs.write(job, wanted)
        first = ended(job)
        other = Service(curator.home, Settings(), speed=1.0)
        try:
            again = other.resume(holder, job.id)
            assert again is not None
            assert ended(again).to_dict()["counts"] == first.to_dict()["counts"]
        finally:
            other.close()
    finally:
        service.close()
    assert kind.looks == 1


def test_names_of_kinds_are_taken_once_and_unknown_ones_are_refused(kind):
    assert names() == [
        "comparison",
        "histogram",
        "joint",
        "limits",
        "model",
        "publication",
        "question",
        "related",
        "score",
        "synthetic",
        "workload",
    ]
    with pytest.raises(InputError), known(Histogram()):
        pass
    with pytest.raises(InputError, match="There is no kind"):
        kind_of("no such thing")


def test_limits_are_a_kind_that_nobody_asks_for(curator):
    with pytest.raises(NotAllowedError):
        curator.analyst("eve").obtain("limits", {})


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"question": 1},
        {"question": "SELECT COUNT(*) FROM visits", "epsilon": "much"},
        {"question": "SELECT COUNT(*) FROM visits", "epsilon": [1]},
        {"question": "SELECT COUNT(*) FROM visits", "epsilon": 0.1, "delta": {}},
        {"question": "SELECT COUNT(*) FROM visits", "epsilon": 0.1, "confidence": None},
        {"question": "SELECT COUNT(*) FROM visits", "error": [1]},
        {"question": "SELECT COUNT(*) FROM visits", "error": {"n": "x"}},
        {"question": "SELECT COUNT(*) AS n FROM visits", "error": {"n": None}},
        {"question": "SELECT COUNT(*) FROM visits", "epsilon": 0.1, "limits": 3},
        {"question": "SELECT COUNT(*) FROM visits", "epsilon": 0.1, "limits": {"totals": {"amount": "1/0"}}},
        {"question": "SELECT COUNT(*) FROM visits", "epsilon": 0.1, "limits": {"rows": "many"}},
        {"question": "SELECT COUNT(*) FROM visits", "epsilon": 0.1, "sql": "SELECT 1"},
        [],
        "SELECT 1",
    ],
)
def test_a_question_that_is_none_is_refused_and_costs_nothing(curator, request_):
    before = state(curator)
    with pytest.raises(DaleniusError) as caught:
        curator.analyst("eve").obtain("question", request_)
    assert caught.value.code != "internal" and state(curator) == before
