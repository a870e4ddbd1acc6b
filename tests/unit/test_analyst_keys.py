"""Asking about groups that have to be found, end to end: what is charged, kept, shown and refused."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kept import laid

from dalenius import Curator
from dalenius.accounting.events import Zcdp
from dalenius.errors import BudgetError, InputError, QuestionRefusedError
from dalenius.ledger import Request
from dalenius.ledger.key_delta import Left, default_delta
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.plan import Limits

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
{table}
[budget]
epsilon = 30.0
{budget}
[analysts.ana]
epsilon = 20.0
[analysts.ben]
epsilon = 20.0
[columns.product]
type = "category"
[columns.region]
type = "category"
keys = ["north", "south"]
[columns.when]
type = "date"
bounds = ["2025-01-01", "2025-02-28"]
[contribution]
rows = 2
groups = 2
{contribution}
"""
PRODUCTS = "SELECT product, COUNT(*) AS n FROM visits GROUP BY product"


def protected(folder, budget="delta = 1e-5", table="", contribution=""):
    """2,000 people with two rows each; three products that many buy, and one each that nobody else does."""
    chance = random.Random(9)
    people, shared = 2000, ["apple", "pear", "plum"]
    columns: dict[str, Any] = {"user_id": [], "product": [], "region": [], "when": []}
    for who in range(people):
        for product in (shared[who % 3], f"only {who}"):
            columns["user_id"].append(who)
            columns["product"].append(product)
            columns["region"].append(chance.choice(["north", "south"]))
            columns["when"].append(date(2025, 1, 1) + timedelta(days=chance.randrange(59)))
    pq.write_table(pa.table(columns), folder / "visits.parquet")
    text = POLICY.replace("{budget}", budget).replace("{table}", table).replace("{contribution}", contribution)
    (folder / "visits.toml").write_text(text)
    curator = Curator(folder / "home")
    curator.protect(folder / "visits.toml")
    return curator


@pytest.fixture
def tmp_path(place):
    return place


@pytest.fixture
def curator(tmp_path):
    return laid(tmp_path, "test_analyst_keys", protected)


@pytest.fixture
def ana(curator):
    return curator.analyst("ana")


def spent(curator, analyst=""):
    balance = curator.ledger.balance("visits", analyst)
    return balance.spent.rho, balance.spent.delta


def test_what_many_share_is_found_counted_and_charged(ana, curator):
    release = ana.ask(PRODUCTS, epsilon=3)
    assert release.columns == ("product", "n") and release.keys == (True, False)
    # about 14 units are needed and 667 there are, each weighing 0.7: far above chance
    assert [row[0] for row in release.rows] == ["apple", "pear", "plum"]
    assert all(abs(row[1] - 667) < 150 for row in release.rows)  # σ is about 6
    assert release.charge["delta"] == 5.47e-8 and release.charge["epsilon"] == 3  # half of ρ(3)/ρ(30), of 5e-6
    assert spent(curator) == (pytest.approx(release.charge["rho"]), pytest.approx(5.47e-8))
    assert release.receipt["charge"]["delta"] == release.charge["delta"]
    assert "charged ε = 3, δ = 5.47e-08" in str(release)
    assert release.remaining["dataset"]["delta"] == pytest.approx(0.5e-5 - 5.47e-8)
    declared, note = release.notes
    assert note.startswith("Keys were found privately") and "units" in note
    assert declared.startswith("The owner declared how much one") and declared.endswith("not in ±.")


def test_the_same_question_is_free_with_less_delta_and_charged_with_more(ana, curator, monkeypatch):
    first = ana.ask(PRODUCTS, epsilon=3, delta=1e-7)
    before = spent(curator)
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
        for delta in (1e-7, 1e-8):
            again = ana.ask(PRODUCTS + " ORDER BY n DESC", epsilon=2, delta=delta)
            assert again.free and sorted(again.rows) == sorted(first.rows)
    assert spent(curator) == before
    more = ana.ask(PRODUCTS, epsilon=3, delta=2e-7)
    assert not more.free and more.charge["delta"] == 2e-7
    assert spent(curator)[1] == pytest.approx(3e-7)


def test_what_a_preview_says_of_delta_is_what_is_charged(ana, curator):
    for number, epsilon in enumerate((3, 0.2, 1, 6, 0.01)):
        question = f"{PRODUCTS} HAVING COUNT(*) > {number}".replace("FROM visits", f"FROM visits WHERE {number} < 9")
        before = ana.preview(question, epsilon=epsilon)
        release = ana.ask(question, epsilon=epsilon)
        assert not release.free
        assert before.delta == before.choices[0].delta == release.charge["delta"] == release.receipt["charge"]["delta"]
    several = ana.preview(PRODUCTS)  # at three prices, each with its own δ
    alone = [ana.preview(PRODUCTS, epsilon=each.epsilon).delta for each in several.choices]
    assert [each.delta for each in several.choices] == alone
    assert several.delta == alone[0]
    assert [each["delta"] for each in several.to_dict()["choices"]] == alone


def test_what_was_asked_before_is_free_though_it_would_take_more_delta_now(ana, curator, monkeypatch):
    first = ana.ask(PRODUCTS, epsilon=1)
    for number in range(3):  # over public keys: ρ goes, δ stays, and the same ε is a larger part of what is left
        ana.ask(f"SELECT COUNT(*) FROM visits WHERE product <> '{number}'", epsilon=9)
    assert ana.preview(PRODUCTS, epsilon=1).delta > 1.3 * first.charge["delta"]
    before = spent(curator)
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
        for epsilon in (1, 0.5):
            again = ana.ask(PRODUCTS + " ORDER BY n", epsilon=epsilon)
            assert again.free and sorted(again.rows) == sorted(first.rows)
    assert spent(curator) == before


def test_it_is_free_when_nothing_is_left_and_anything_else_is_refused(ana, curator):
    first = ana.ask(PRODUCTS, epsilon=2)
    left = ana.budget()["visits"].remaining_delta
    ana.ask(PRODUCTS + " HAVING COUNT(*) > 0", epsilon=3, delta=left)
    assert ana.budget()["visits"].remaining_delta < 1e-20
    again = ana.ask(PRODUCTS, epsilon=2)
    assert again.free and len(again.rows) == len(first.rows) == 3
    with pytest.raises(BudgetError, match="δ") as caught:
        ana.ask(PRODUCTS.replace("FROM visits", "FROM visits WHERE region = 'north'"), epsilon=1)
    assert "declared keys" in caught.value.fix


def test_a_request_that_is_sent_again_is_charged_once_at_the_delta_of_the_first_time(ana, curator):
    first = ana.ask(PRODUCTS, epsilon=1, idempotency_key="k")
    ana.ask("SELECT COUNT(*) FROM visits", epsilon=9)
    before = spent(curator)
    again = ana.ask(PRODUCTS, epsilon=1, idempotency_key="k")
    assert again.free and again.receipt == first.receipt and spent(curator) == before


def test_what_it_takes_follows_from_what_the_asker_was_shown(ana, curator):
    """Whatever another analyst asked: two histories after which `remaining` is the same give the same δ."""
    ben = curator.analyst("ben")
    for question in (PRODUCTS, "SELECT COUNT(*) FROM visits", PRODUCTS + " HAVING COUNT(*) > 1"):
        ben.ask(question, epsilon=4)
        preview = ana.preview(PRODUCTS, epsilon=1)
        budget = curator.ledger.budget("visits")
        assert preview.delta == default_delta(budget, 1, Left.of(preview.remaining))


def test_a_life_has_two_hundred_questions_that_find_their_keys(tmp_path, monkeypatch):
    """Of which δ once allowed twenty. Every twentieth is asked; to save time, the others are only charged."""
    text = POLICY.replace("epsilon = 30.0", "epsilon = 3.0").replace("epsilon = 20.0", "epsilon = 3.0")
    monkeypatch.setitem(globals(), "POLICY", text)
    curator = protected(tmp_path)
    ana, ledger, budget = curator.analyst("ana"), curator.ledger, curator.ledger.budget("visits")
    for number in range(200):
        if number % 20:
            balance = ledger.balance("visits", "ana")  # who has been allotted all there is
            delta = default_delta(budget, 0.15, Left(balance.remaining_epsilon, balance.remaining_delta))
            ledger.charge(Request("visits", "ana", f"question {number}", 0.15, Zcdp(1e-9, delta), delta))
        else:
            question = f"SELECT product, COUNT(*) FROM visits WHERE region <> '{number}' GROUP BY product"
            release = ana.ask(question, epsilon=0.15)  # 667 bought apples, and some 300 are needed
            assert not release.free and {row[0] for row in release.rows} == {"apple", "pear", "plum"}
    balance = ana.budget()["visits"]
    assert balance.charges == 200 and 0 < balance.spent.delta < 5e-6
    assert ana.ask(question, epsilon=0.15).free


def test_another_analysts_found_keys_are_a_fresh_charge_of_epsilon_and_delta(ana, curator):
    """What was chosen from the data for one is never made over for another."""
    ana.ask(PRODUCTS, epsilon=3, delta=1e-7)
    total = spent(curator)
    again = curator.analyst("ben").ask(PRODUCTS, epsilon=3, delta=1e-7)
    assert not again.free and spent(curator)[1] == pytest.approx(2 * total[1])
    assert spent(curator, "ben")[1] == pytest.approx(1e-7)


def test_when_no_delta_is_left_the_refusal_says_what_fits(ana, curator, monkeypatch):
    ana.ask(PRODUCTS, epsilon=1, delta=4.7e-6)  # of 5e-6
    before = spent(curator)
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
        with pytest.raises(BudgetError) as caught:
            ana.ask(PRODUCTS, epsilon=1.5, delta=1e-6)
    assert spent(curator) == before and caught.value.exit_code == 4
    assert "δ = 1e-06" in str(caught.value) and "--delta" in caught.value.fix
    fits = float(caught.value.why.removeprefix("δ ≤ ").split(" ")[0])
    assert 2.9e-7 < fits <= 3e-7
    assert not ana.ask(PRODUCTS, epsilon=1.5, delta=fits).free
    # over public keys nothing of it is needed
    assert not ana.ask("SELECT region, COUNT(*) FROM visits GROUP BY region", epsilon=1).free
    with pytest.raises(BudgetError) as caught:
        ana.ask(PRODUCTS + " HAVING COUNT(*) > 3", epsilon=2, delta=1e-6)
    assert "declared keys" in caught.value.fix


def test_where_nothing_is_found_the_answer_says_why_and_is_charged(ana, curator):
    question = "SELECT product, region, COUNT(*) FROM visits WHERE product LIKE 'only%' GROUP BY ALL"
    release = ana.ask(question, epsilon=1)
    assert release.rows == () and release.charge["epsilon"] == 1
    (note,) = release.notes
    assert note.startswith("No key was found: at ε = 1 and δ = 7.37e-09 a key needs about ")
    assert "larger ε or δ" in note and note in str(release)
    assert release.to_dict()["rows"] == [] and release.to_arrow().num_rows == 0
    assert ana.ask(question, epsilon=1).free


def test_a_least_number_of_units_can_be_asked_for(ana):
    assert ana.ask(PRODUCTS, epsilon=3, limits=Limits(units=5000)).rows == ()
    assert len(ana.ask(PRODUCTS, epsilon=3, limits=Limits(units=100)).rows) == 3


def test_a_policy_can_demand_it(tmp_path):
    ana = protected(tmp_path, contribution="units = 5000").analyst("ana")
    assert ana.ask(PRODUCTS, epsilon=3, limits=Limits(units=100)).rows == ()


@pytest.mark.parametrize("delta", [0, 0.0, 1e-200])
def test_keys_cannot_be_found_without_any_delta(delta, ana, curator):
    with pytest.raises(InputError, match="delta"):
        ana.ask(PRODUCTS, epsilon=1, delta=delta)
    assert spent(curator) == (0, 0)


def test_under_pure_they_are_refused(tmp_path):
    curator = protected(tmp_path, budget='accounting = "pure"')
    with pytest.raises(QuestionRefusedError, match="not public"):
        curator.analyst("ana").ask(PRODUCTS, epsilon=1)
    assert curator.ledger.balance("visits", "").charges == 0


def test_exchanged_units_are_found_with_more_noise(tmp_path):
    ana = protected(tmp_path, table='neighbors = "substitute"').analyst("ana")
    release = ana.ask(PRODUCTS, epsilon=4)
    assert [row[0] for row in release.rows] == ["apple", "pear", "plum"]
    assert release.guarantee["neighbors"] == "substitute"


def test_every_period_that_is_read_pays_the_delta(tmp_path):
    curator = protected(tmp_path, budget='delta = 1e-5\nperiod = { column = "when", every = "month" }')
    release = curator.analyst("ana").ask(PRODUCTS, epsilon=3, delta=1e-7)
    assert [row[0] for row in release.rows] == ["apple", "pear", "plum"]
    for period in ("2025-01", "2025-02"):
        assert curator.ledger.balance("visits", "", period).spent.delta == pytest.approx(1e-7)


def test_a_preview_tells_delta_and_error_without_looking(ana, curator, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
        preview = ana.preview(PRODUCTS, epsilon=3, delta=1e-7)
        assert ana.preview(PRODUCTS).delta == 2.5e-9
    assert preview.groups is None and preview.delta == 1e-7 and "groups found privately, δ = 1e-07" in str(preview)
    release = ana.ask(PRODUCTS, epsilon=3, delta=1e-7)
    assert {row[1] for row in release.noise_error} == {preview.choices[0].noise_error[1]}


def test_an_error_can_be_the_price(ana):
    release = ana.ask(PRODUCTS, error=20)
    assert all(0.95 * 20 < row[1] <= 20 for row in release.noise_error) and release.rows
