"""Asking end to end: one price, one answer, one allotment per analyst, one budget per period."""

from __future__ import annotations

import hashlib
import random
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kept import laid

from dalenius import Curator
from dalenius.errors import (
    BudgetError,
    Charge,
    DaleniusError,
    EngineFailedError,
    InputError,
    NotAllowedError,
    QuestionRefusedError,
    SourceChangedError,
    UnknownTableError,
)
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.plan import Limits
from dalenius.releasing.pacing import Pacer

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 3.0
{budget}
[analysts.ana]
epsilon = 1.0
[analysts.ben]
epsilon = 2.0
[columns.age]
type = "integer"
bounds = [18, 90]
[columns.region]
type = "category"
keys = ["north", "south"]
[columns.when]
type = "date"
bounds = ["2025-01-01", "2025-04-30"]
[contribution]
rows = 2
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"


def protected(folder, budget="delta = 1e-6"):
    chance = random.Random(4)
    days = [date(2025, 1, 1) + timedelta(days=chance.randrange(120)) for _ in range(600)]
    table = {
        "user_id": [at // 2 for at in range(600)],
        "age": [chance.randint(10, 99) for _ in range(600)],
        "region": [chance.choice(["north", "south", "mars", None]) for _ in range(600)],
        "when": pa.array(days, pa.date32()),
    }
    pq.write_table(pa.table(table), folder / "visits.parquet")
    (folder / "visits.toml").write_text(POLICY.replace("{budget}", budget))
    curator = Curator(folder / "home")
    curator.protect(folder / "visits.toml")
    return curator


@pytest.fixture
def tmp_path(place):
    return place


@pytest.fixture
def curator(tmp_path):
    return laid(tmp_path, "test_analyst", protected)


@pytest.fixture
def ana(curator):
    return curator.analyst("ana")


def spent(curator, analyst="", period=""):
    return curator.ledger.balance("visits", analyst, period).spent


def runs(monkeypatch):
    """How often the engine was asked."""
    seen: list[str] = []
    run = DuckDB.run

    def counted(self, sql, **rest):
        seen.append(sql)
        return run(self, sql, **rest)

    monkeypatch.setattr(DuckDB, "run", counted)
    return seen


# --- asking


def test_an_answer_is_charged_and_carries_its_guarantee(ana, curator):
    release = ana.ask(COUNT, epsilon=0.5)
    assert release.columns == ("n",) and not release.free
    # σ is about 20 at C = 2; 12σ has a chance far below 1e-6
    assert abs(release.value - 600) < 250
    assert release.guarantee == {
        "kind": "approx",
        "epsilon": 0.5,
        "delta": 1e-6,
        "unit": "user_id",
        "neighbors": "add-remove",
    }
    assert release.charge["epsilon"] == 0.5 and release.charge["rho"] > 0
    assert release.receipt["analyst"] == "ana" and release.question == COUNT
    assert release.remaining["analyst"]["epsilon"] < 1.0 and release.remaining["dataset"]["epsilon"] < 3.0
    assert spent(curator).rho == pytest.approx(release.charge["rho"], rel=1e-9)


@pytest.mark.parametrize(
    "again",
    [
        COUNT,
        "select count(*) from Visits",
        "SELECT COUNT(1) * 2 AS twice FROM visits v WHERE TRUE",
        "SELECT COUNT(*) FROM visits LIMIT 1",
    ],
)
def test_the_same_question_again_is_free_whatever_its_words(again, ana, curator, monkeypatch):
    first = ana.ask(COUNT, epsilon=0.4)
    before = spent(curator)
    seen = runs(monkeypatch)
    release = ana.ask(again, epsilon=0.4)
    assert release.free and release.charge["epsilon"] == 0 and not seen
    assert release.value in {first.value, 2.0 * first.value}
    assert spent(curator) == before
    assert release.receipt == first.receipt


def test_less_accuracy_is_free_and_more_is_a_new_charge(ana):
    first = ana.ask(COUNT, epsilon=0.4)
    less = ana.ask(COUNT, epsilon=0.1)
    assert less.free and less.value == first.value and less.guarantee["epsilon"] == 0.4
    more = ana.ask(COUNT, epsilon=0.5)
    assert not more.free and more.noise_error[0][0] < first.noise_error[0][0]


def test_another_analyst_pays_from_the_own_allotment_only(ana, curator, monkeypatch):
    first = ana.ask(COUNT, epsilon=0.4)
    total = spent(curator)
    seen = runs(monkeypatch)
    release = curator.analyst("ben").ask(COUNT, epsilon=0.4)
    assert not release.free and not seen
    assert release.noise_error[0][0] > 1.3 * first.noise_error[0][0]  # that of both noises: √2 times
    assert spent(curator) == total
    assert spent(curator, "ben").rho == pytest.approx(first.charge["rho"], rel=1e-9)
    assert spent(curator, "ana").rho == pytest.approx(first.charge["rho"], rel=1e-9)
    assert curator.analyst("ben").ask(COUNT, epsilon=0.4).free


def test_what_does_not_fit_is_refused_before_the_data_is_touched(ana, curator, monkeypatch):
    ana.ask(COUNT, epsilon=0.9)
    before = spent(curator)
    seen = runs(monkeypatch)
    with pytest.raises(BudgetError) as caught:
        ana.ask("SELECT SUM(age) FROM visits", epsilon=0.9)
    assert not seen and spent(curator) == before
    assert caught.value.exit_code == 4
    fits = ana.budget()["visits"].remaining_epsilon
    assert not ana.ask("SELECT SUM(age) FROM visits", epsilon=fits).free  # all that is left passes


def test_a_failure_after_the_charge_is_not_refunded(ana, curator, monkeypatch):
    def broken(self, sql, *, seconds=60.0):
        raise EngineFailedError("It failed.", why="Because.", fix="Again.")

    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "run", broken)
        with pytest.raises(EngineFailedError):
            ana.ask(COUNT, epsilon=0.3)
    assert spent(curator).rho > 0
    before = spent(curator)
    assert ana.ask(COUNT, epsilon=0.3).rows  # and asking again is a charge of its own
    assert spent(curator).rho == pytest.approx(2 * before.rho)


def test_an_allotment_that_ends_meanwhile_does_not_hide_the_charge(curator):
    ledger = curator.ledger
    pacer = Pacer(1, fixed=False).telling(lambda _: ledger.end_allotment("visits", "ana"))
    with pytest.raises(NotAllowedError) as caught:
        curator.analyst("ana", pacer=pacer).ask(COUNT, epsilon=0.2)
    assert caught.value.charge == Charge(0.2, 0.0) and ledger.balance("visits").charges == 1
    ledger.set_allotment("visits", "ana", 1.0)
    assert curator.analyst("ana").ask(COUNT, epsilon=0.2).free  # nothing is lost


def test_changed_files_stop_a_question_before_it_is_charged(ana, curator, tmp_path):
    pq.write_table(pa.table({"user_id": [1], "age": [20]}), tmp_path / "visits.parquet")
    with pytest.raises(SourceChangedError):
        ana.ask(COUNT, epsilon=0.3)
    assert spent(curator).rho == 0


@pytest.mark.parametrize("epsilon", [-1, 0, -0.0, float("nan"), float("inf"), True, "1"])
def test_a_bad_epsilon_is_refused(epsilon, ana, curator):
    with pytest.raises(InputError):
        ana.ask(COUNT, epsilon=epsilon)
    assert spent(curator).rho == 0


@pytest.mark.parametrize("confidence", [0, 0.49, 0.99995, 1, 2, -0.95, float("nan"), True, "0.95", None])
def test_a_bad_confidence_is_refused(confidence, ana, curator):
    for way in (ana.ask, ana.preview):
        with pytest.raises(InputError):
            way(COUNT, epsilon=0.1, confidence=confidence)
    assert spent(curator).rho == 0


@pytest.mark.parametrize("delta", [-1, float("nan"), 1, 2])
def test_a_bad_delta_is_refused(delta, ana):
    with pytest.raises(InputError):
        ana.ask(COUNT, epsilon=0.1, delta=delta)


def test_confidence_only_widens_the_error(ana):
    narrow = ana.ask(COUNT, epsilon=0.2, confidence=0.5)
    wide = ana.ask(COUNT, epsilon=0.2, confidence=0.99)
    assert wide.free and wide.value == narrow.value and wide.noise_error[0][0] > narrow.noise_error[0][0]


def test_tighter_limits_are_another_question_with_less_noise(ana):
    loose = ana.ask(COUNT, epsilon=0.2)
    tight = ana.ask(COUNT, epsilon=0.2, limits=Limits(rows=1))
    assert not tight.free and tight.noise_error[0][0] < loose.noise_error[0][0]


def test_without_a_price_the_preview_is_the_answer(ana, curator):
    with pytest.raises(InputError) as caught:
        ana.ask(COUNT)
    assert "ε = 0.05: n ±" in str(caught.value) and spent(curator).rho == 0


def test_a_refused_question_costs_nothing(ana, curator):
    for sql, kind in (
        ("SELECT FIRST(age) FROM visits", QuestionRefusedError),
        ("SELECT COUNT(*) FROM x", UnknownTableError),
    ):
        with pytest.raises(kind):
            ana.ask(sql, epsilon=0.1)
    assert spent(curator).rho == 0 and not ana.history()


def test_who_has_no_allotment_learns_nothing(curator):
    for way in ("ask", "preview"):
        with pytest.raises(NotAllowedError):
            getattr(curator.analyst("eve"), way)(COUNT, epsilon=0.1)
    assert curator.analyst("eve").budget() == {} and curator.analyst("eve").history() == []


# --- looking back


def test_history_and_budget_tell_what_was_paid(ana, curator):
    ana.ask(COUNT, epsilon=0.2)
    ana.ask(COUNT, epsilon=0.2)
    ana.ask("SELECT SUM(age) FROM visits", epsilon=0.3)
    ben = curator.analyst("ben")
    ben.ask(COUNT, epsilon=0.2)
    # the ledger keeps the hash of a question
    asked = [hashlib.sha256(each.encode()).hexdigest() for each in (COUNT, "SELECT SUM(age) FROM visits")]
    assert [(each["question"], each["charge"]["epsilon"]) for each in ana.history()] == list(
        zip(asked, (0.2, 0.3), strict=True)
    )
    assert [each["charge"]["epsilon"] for each in ben.history()] == [0.2]
    assert all(each["dataset"] == "visits" and each["charge"]["rho"] > 0 for each in ana.history())
    (balance,) = ana.budget().values()
    assert balance.epsilon == 1.0 and 0 < balance.remaining_epsilon < 1.0


def test_a_preview_tells_the_error_that_the_answer_has(ana, curator, monkeypatch):
    seen = runs(monkeypatch)
    preview = ana.preview(COUNT, epsilon=0.25)
    assert not seen and spent(curator).rho == 0
    release = ana.ask(COUNT, epsilon=0.25)
    assert preview.choices[0].noise_error[0] == release.noise_error[0][0]
    assert preview.choices[0].rho == release.charge["rho"]


def test_under_pure_dp_epsilon_adds(tmp_path):
    curator = protected(tmp_path, 'accounting = "pure"')
    ana = curator.analyst("ana")
    release = ana.ask(COUNT, epsilon=0.25)
    assert release.guarantee["kind"] == "pure" and release.charge["rho"] is None
    ana.ask("SELECT SUM(age) FROM visits", epsilon=0.5)
    assert spent(curator, "ana").epsilon == pytest.approx(0.75)
    with pytest.raises(DaleniusError):
        ana.ask("SELECT AVG(age) FROM visits", epsilon=0.26)
    assert ana.ask("SELECT AVG(age) FROM visits", epsilon=0.25).rows


# --- budgets per period


def test_a_monthly_budget_charges_every_month_that_is_read(tmp_path):
    curator = protected(tmp_path, 'delta = 1e-6\nperiod = { column = "when", every = "month" }')
    ana = curator.analyst("ana")
    months = ("2025-01", "2025-02", "2025-03", "2025-04")

    def charged():
        return [spent(curator, "ana", month).rho > 0 for month in months]

    narrow = ana.ask(f"{COUNT} WHERE \"when\" >= '2025-02-10' AND \"when\" < '2025-03-01'", epsilon=0.9)
    assert charged() == [False, True, False, False]
    assert narrow.guarantee["unit"] == "user_id, month"
    # the rest of the year has its own budget
    assert ana.ask(f"{COUNT} WHERE \"when\" >= '2025-03-01'", epsilon=0.9).rows
    assert charged() == [False, True, True, True]
    with pytest.raises(BudgetError):  # February has not enough for all months
        ana.ask(COUNT, epsilon=0.9)
    assert charged() == [False, True, True, True]
    assert ana.ask(f"{COUNT} WHERE \"when\" < '2025-02-01'", epsilon=0.9).rows
    assert charged() == [True, True, True, True]


def test_rows_outside_of_the_charged_months_are_not_read(tmp_path):
    curator = protected(tmp_path, 'delta = 1e-6\nperiod = { column = "when", every = "month" }')
    days = pq.read_table(tmp_path / "visits.parquet")["when"].to_pylist()
    release = curator.analyst("ben").ask(f"{COUNT} WHERE \"when\" BETWEEN '2025-03-01' AND '2025-03-31'", epsilon=1.9)
    truth = sum(each.month == 3 for each in days)
    assert truth < 250
    # σ is about 5 at ε = 1.9: 60 is 12σ, and far from the 600 rows of all months
    assert abs(release.value - truth) < 60


# --- quantiles

QUANTILES = "SELECT MEDIAN(age) AS m, QUANTILE_CONT(age, 0.9) AS q, MIN(age) AS low, MAX(age) AS high FROM visits"


@pytest.mark.parametrize("budget", ["delta = 1e-6", 'accounting = "pure"'])
def test_quantiles_of_a_column_cost_once_and_others_are_free(tmp_path, budget):
    curator = protected(tmp_path, budget)
    ana = curator.analyst("ana")
    release = ana.ask(QUANTILES, epsilon=0.9)
    paid = spent(curator)
    ((median, ninth, low, high),) = release.rows
    assert low <= median <= ninth and median <= high and low >= 18 and high <= 90
    assert [note.split(" is ")[0] for note in release.notes] == ["MIN(age)", "MAX(age)"]
    other = ana.ask("SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) FROM visits", epsilon=0.9)
    assert other.free and other.value <= median and not other.notes and spent(curator) == paid


def test_the_median_of_many_rows_is_near_the_true_one(tmp_path):
    curator = protected(tmp_path)
    chance = random.Random(9)
    table = {
        "user_id": [at // 2 for at in range(40_000)],
        "age": [chance.randint(18, 90) for _ in range(40_000)],
        "region": [chance.choice(["north", "south"]) for _ in range(40_000)],
        "when": pa.array([date(2025, 2, 1)] * 40_000, pa.date32()),
    }
    pq.write_table(pa.table(table), tmp_path / "many.parquet")
    policy = (tmp_path / "visits.toml").read_text()
    for old, new in (("visits.parquet", "many.parquet"), ('name = "visits"', 'name = "many"')):
        policy = policy.replace(old, new)
    (tmp_path / "many.toml").write_text(policy)
    curator.protect(tmp_path / "many.toml")
    release = curator.analyst("ana").ask("SELECT region, MEDIAN(age) FROM many GROUP BY region", epsilon=0.9)
    # σ of a rank is about 30 rows, and a year holds 270: 2 years are 9 deviations and more, a chance far below 1e-6.
    for region, median in release.rows:
        ages = sorted(age for age, there in zip(table["age"], table["region"], strict=True) if there == region)
        assert abs(median - ages[len(ages) // 2]) <= 2


def test_quantiles_by_group_beside_other_aggregates(ana, monkeypatch):
    seen = runs(monkeypatch)
    sql = """SELECT region, COUNT(*) AS n, MEDIAN(age) FILTER (WHERE age > 20) AS m, MAX(age) - MIN(age) AS spread
             FROM visits WHERE "when" < DATE '2025-04-01' GROUP BY region ORDER BY region"""
    release = ana.ask(sql, epsilon=0.9)
    assert [row[0] for row in release.rows] == ["north", "south"]
    assert len([each for each in seen if "weighed" in each]) == 1
    assert len([each for each in release.notes if "private extreme" in each]) == 2
    for row, interval in zip(release.rows, release.interval, strict=True):
        assert row[2] is None or interval[2][0] <= row[2] <= interval[2][1]
    again = ana.ask(sql.replace("MEDIAN(age)", "QUANTILE_CONT(age, 0.1)"), epsilon=0.9)
    assert again.free and [row[:2] for row in again.rows] == [row[:2] for row in release.rows]


def test_an_empty_selection_gives_no_quantile(ana):
    release = ana.ask("SELECT MEDIAN(age), MAX(age) FROM visits WHERE age > 200", epsilon=0.5)
    # The number of rows would have to seem clearly positive: 2.5% of the time, and then it is some value within bounds.
    for value, interval in zip(release.rows[0], release.interval[0], strict=True):
        assert interval == (18.0, 90.0) if value is None else 18 <= value <= 90


def test_a_quantile_is_priced_by_its_error_and_unit_level_ones_are_cheaper(ana):
    sql = "SELECT MEDIAN(age) AS m FROM visits"
    rows, units = (ana.preview(sql, error=5, limits=limits).choices[0] for limits in (None, Limits(rows=1)))
    assert units.epsilon < rows.epsilon and rows.noise_error[0] <= 5
    finer = ana.preview(sql, error={"m": 2}).choices[0]
    assert finer.epsilon > rows.epsilon and finer.noise_error[0] <= 2
    assert "m ±" in str(ana.preview(sql, epsilon=0.5)) and "rows" in str(ana.preview(sql, epsilon=0.5))
    assert "tree of values of age" in ana.preview(sql, epsilon=0.5).plan
