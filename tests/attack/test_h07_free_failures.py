"""H7: a question that reached the data is charged in full, also when it fails; there is no second look for nothing."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.attack.curators import curator_of

from dalenius.errors import (
    NOTHING,
    BudgetError,
    Charge,
    DaleniusError,
    EngineFailedError,
    EngineTimeoutError,
    LedgerUnavailableError,
    NotAllowedError,
    SourceChangedError,
)
from dalenius.ledger import charging
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.laplace import Laplace

COLUMNS = """
[columns.x]
type = "integer"
bounds = [0, 10]
"""
QUESTION = "SELECT COUNT(*), SUM(x) FROM t"
EPSILON = 0.3
TABLE = pa.table({"id": list(range(50)), "x": [5] * 50})


@pytest.fixture(params=["zcdp", "pure"])
def curator(request, tmp_path):
    return curator_of(tmp_path, TABLE, COLUMNS, accounting=request.param, epsilon=2.0)


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    """By accounting: what is left after one such question that went well, on a twin of the curator."""
    found = {}
    for accounting in ("zcdp", "pure"):
        twin = curator_of(tmp_path_factory.mktemp("twin"), TABLE, COLUMNS, accounting=accounting, epsilon=2.0)
        twin.analyst("eve").ask(QUESTION, epsilon=EPSILON)
        found[accounting] = left(twin)
    return found


@pytest.fixture
def price(prices, curator):
    return prices[curator.ledger.budget("t").accounting.value]


def left(curator):
    balances = [curator.ledger.balance("t", who) for who in ("eve", "")]
    return [(each.remaining_epsilon, each.remaining_delta, each.spent, each.charges) for each in balances]


def kinds(curator):
    return [entry.kind for entry in curator.ledger.entries() if entry.kind in {"charge", "failure", "answer", "grant"}]


def ours(kind):
    return kind("It failed.", why="The test made it.", fix="Nothing.")


FAILURES = [ours(EngineFailedError), ours(EngineTimeoutError), MemoryError(), ValueError("odd"), KeyboardInterrupt()]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda each: type(each).__name__)
def test_an_engine_that_fails_costs_what_one_that_answers_does(curator, price, monkeypatch, failure):
    def run(*_, **__):
        raise failure

    monkeypatch.setattr(DuckDB, "run", run)
    with pytest.raises(type(failure)) as caught:
        curator.analyst("eve").ask(QUESTION, epsilon=EPSILON)
    assert left(curator) == price
    assert kinds(curator) == ["charge", "failure"]
    if isinstance(caught.value, DaleniusError):
        assert caught.value.charge == Charge(EPSILON)
        assert f"It cost epsilon = {EPSILON:g}" in str(caught.value)
    assert [each["charge"]["epsilon"] for each in curator.analyst("eve").history()] == [EPSILON]


def test_the_engine_s_real_time_limit_is_charged_too(curator, price, monkeypatch):
    endless = "SELECT sum(a.range * b.range) FROM range(1000000000) a, range(1000000000) b WHERE a.range <> b.range"
    run = DuckDB.run
    monkeypatch.setattr(DuckDB, "run", lambda self, _, seconds: run(self, endless, seconds=0.05))
    with pytest.raises(EngineTimeoutError) as caught:
        curator.analyst("eve").ask(QUESTION, epsilon=EPSILON)
    assert caught.value.charge == Charge(EPSILON) and left(curator) == price


@pytest.mark.parametrize("where", ["noise", "store"])
def test_failing_after_the_look_is_charged_and_shows_nothing(curator, price, monkeypatch, where):
    def fails(*_, **__):
        raise ours(LedgerUnavailableError)

    if where == "noise":
        monkeypatch.setattr(DiscreteGaussian, "release", fails)
        monkeypatch.setattr(Laplace, "release", fails)
    else:
        monkeypatch.setattr(charging, "answer", fails)
    with pytest.raises(LedgerUnavailableError) as caught:
        curator.analyst("eve").ask(QUESTION, epsilon=EPSILON)
    assert caught.value.charge == Charge(EPSILON) and left(curator) == price


def test_a_file_replaced_between_the_charge_and_the_look_is_charged_and_not_answered(
    curator, price, monkeypatch, tmp_path
):
    file, run = tmp_path / "t.parquet", DuckDB.run
    before = file.read_bytes()
    seen = []

    def replaced(self, sql, *, seconds=60.0):
        pq.write_table(pa.table({"id": [1], "x": [9]}), file)
        seen.append(run(self, sql, seconds=seconds))
        return seen[-1]

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", replaced)
        with pytest.raises(SourceChangedError) as caught:
            curator.analyst("eve").ask(QUESTION, epsilon=EPSILON)
    assert len(seen) == 1 and caught.value.charge == Charge(EPSILON)
    assert left(curator) == price and kinds(curator) == ["charge", "failure"]
    with pytest.raises(SourceChangedError) as caught:
        curator.analyst("eve").ask(QUESTION, epsilon=EPSILON)
    assert caught.value.charge == NOTHING and left(curator) == price  # seen before anything was read
    file.write_bytes(before)
    assert not curator.analyst("eve").ask(QUESTION, epsilon=EPSILON).free
    assert kinds(curator) == ["charge", "failure", "charge", "answer"]


def test_a_retry_is_a_new_charge_and_then_the_stored_answer(curator, monkeypatch):
    eve = curator.analyst("eve")
    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", _failing([]))
        with pytest.raises(EngineFailedError):
            eve.ask(QUESTION, epsilon=EPSILON)
    after_failure = left(curator)
    first = eve.ask(QUESTION, epsilon=EPSILON)
    paid = left(curator)
    assert not first.free and first.charge["epsilon"] == EPSILON
    assert all(now[3] == before[3] + 1 and now[0] < before[0] for now, before in zip(paid, after_failure, strict=True))
    again = eve.ask(QUESTION, epsilon=EPSILON)
    assert again.free and again.rows == first.rows and left(curator) == paid
    assert kinds(curator) == ["charge", "failure", "charge", "answer"]


def test_failures_run_out_of_budget_as_answers_do(curator, monkeypatch):
    """One look for each charge: an index that fails is a failure, and nothing else is tried."""
    looks: list[str] = []
    monkeypatch.setattr(DuckDB, "run", _failing(looks))
    eve = curator.analyst("eve")
    errors: list[DaleniusError] = []
    while len(errors) < 200 and not (errors and isinstance(errors[-1], BudgetError)):
        with pytest.raises((EngineFailedError, BudgetError)) as caught:
            eve.ask(QUESTION, epsilon=EPSILON)
        errors.append(caught.value)
    assert isinstance(errors[-1], BudgetError)
    assert [each.charge for each in errors] == [Charge(EPSILON)] * (len(errors) - 1) + [NOTHING]
    assert len(looks) == kinds(curator).count("charge")
    assert kinds(curator).count("charge") == curator.ledger.balance("t", "eve").charges > 1


def test_another_process_sees_the_charge_before_the_engine_starts(curator, price, monkeypatch):
    """What is on disk at the moment of the look is what a crash would leave."""
    from dalenius import Curator

    found = []

    def looking(*_, **__):
        other = Curator(curator.home)
        found.append((left(other), kinds(other)))
        raise ours(EngineFailedError)

    monkeypatch.setattr(DuckDB, "run", looking)
    with pytest.raises(EngineFailedError):
        curator.analyst("eve").ask(QUESTION, epsilon=EPSILON)
    assert found == [(price, ["charge"])]


@pytest.mark.parametrize("question", ["SELECT COUNT(* FROM t", "SELECT FIRST(x) FROM t", "SELECT COUNT(*) FROM u"])
def test_what_never_reached_the_data_costs_nothing(curator, monkeypatch, question):
    looks: list[str] = []
    monkeypatch.setattr(DuckDB, "run", _failing(looks))
    with pytest.raises(DaleniusError) as caught:
        curator.analyst("eve").ask(question, epsilon=EPSILON)
    with pytest.raises(NotAllowedError):
        curator.analyst("nobody").ask(QUESTION, epsilon=EPSILON)
    assert caught.value.charge == NOTHING and looks == [] and kinds(curator) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_found_before_the_charge(curator, tmp_path):
    (tmp_path / "t.parquet").chmod(0)
    with pytest.raises(DaleniusError) as caught:
        curator.analyst("eve").ask(QUESTION, epsilon=EPSILON)
    assert caught.value.charge == NOTHING and kinds(curator) == []


def _failing(looks):
    def run(self, sql, *, seconds=60.0):
        looks.append(sql)
        raise ours(EngineFailedError)

    return run
