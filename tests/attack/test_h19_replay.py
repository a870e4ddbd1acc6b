"""H19: the same question in other words, again, or page by page: the same stored answer for nothing.

A question that means something else, however near, is a new charge.
"""

from __future__ import annotations

import pytest
from tests.attack.hostile import integers_of, people, plan_of, protected, state
from tests.conftest import LONG

from dalenius import Curator

BASE = "SELECT region, COUNT(*) AS n FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY region"
SAME = [
    "select region, count(*) as n from visits where age >= 18 and smoker and amount < 800 group by region",
    "  SELECT\n\tregion ,\r\n COUNT ( * )\nFROM visits WHERE age>=18 AND smoker AND amount<800 GROUP BY region ; ",
    "SELECT region, COUNT(*) /* 1 */ FROM visits -- 2\n WHERE age >= 18 AND smoker AND amount < 800 GROUP BY region",
    "SELECT Region AS r, Count(*) AS other FROM Visits WHERE AGE >= 18 AND SMOKER AND Amount < 800 GROUP BY REGION",
    'SELECT "region", COUNT(*) FROM "visits" WHERE "age" >= 18 AND "smoker" AND "amount" < 800 GROUP BY "region"',
    "SELECT v.region, COUNT(*) FROM visits AS v WHERE v.age >= 18 AND v.smoker AND v.amount < 800 GROUP BY v.region",
    "SELECT visits.region, COUNT(*) FROM visits WHERE visits.age >= 18 AND smoker AND amount < 800 GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE amount < 800 AND smoker AND age >= 18 GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE (smoker AND (amount < 800 AND (age >= 18))) GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE age > 17 AND smoker AND amount < 800 GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE 17 < age AND smoker AND 800 > amount GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE age >= 17.5 AND smoker AND amount < 800.0 GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE NOT age < 18 AND smoker AND NOT amount >= 800 GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE NOT (age < 18 OR NOT smoker OR amount >= 800) GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE age >= 9 + 9 AND smoker AND amount < 8e2 GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE age >= 18 AND smoker = TRUE AND TRUE AND amount < 800 GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE age >= 18 AND smoker AND smoker AND amount < 800 GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE age >= '18' AND smoker AND amount < '800' GROUP BY region",
    "SELECT COUNT(*), region FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY region",
    "SELECT COUNT(*), COUNT(*), region FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY region",
    "SELECT region, COUNT(1) FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY region",
    "SELECT region, COUNT() FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY region",
    "SELECT region, SUM(1) FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY 1",
    "SELECT region AS x, COUNT(*) FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY x",
    "SELECT region, COUNT(*) FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY ALL",
    "SELECT region, COUNT(*) FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY region, region",
    "SELECT UPPER(region), 2 * COUNT(*) FROM visits WHERE age >= 18 AND smoker AND amount < 800 GROUP BY region",
    f"{BASE} HAVING COUNT(*) > 10",
    f"{BASE} ORDER BY n DESC",
    f"{BASE} ORDER BY 2, region DESC NULLS LAST",
    f"{BASE} LIMIT 1",
    f"{BASE} ORDER BY region LIMIT 2 OFFSET 1",
    "FROM visits SELECT region, COUNT(*) WHERE age >= 18 AND smoker AND amount < 800 GROUP BY region",
]
SAME_COUNT = [  # one number, as a condition or as an argument
    "SELECT COUNT_IF(region IN ('north', 'south') AND age BETWEEN 20 AND 40) FROM visits",
    "SELECT COUNT_IF(age BETWEEN 20 AND 40 AND region IN ('south', 'north', 'north')) FROM visits",
    "SELECT COUNT_IF(age >= 20 AND age <= 40 AND (region = 'north' OR region = 'south')) FROM visits",
    "SELECT COUNT_IF(age > 19 AND age < 41 AND ('south' = region OR region IN ('north'))) FROM visits",
    "SELECT COUNT(*) FILTER (WHERE region IN ('north', 'south') AND age BETWEEN 20 AND 40) FROM visits",
    "SELECT COUNT(*) FILTER (age BETWEEN 20 AND 40 AND region IN ('south', 'north')) FROM visits",
    "SELECT SUM(CASE WHEN region IN ('north', 'south') AND age BETWEEN 20 AND 40 THEN 1 ELSE 0 END) FROM visits",
    "SELECT SUM(CASE WHEN region IN ('north', 'south') AND age BETWEEN 20 AND 40 THEN 1 END) FROM visits",
    "SELECT SUM(IF(region IN ('north', 'south') AND age BETWEEN 20 AND 40, 1, 0)) FROM visits",
    "SELECT COUNT(CASE WHEN region IN ('north', 'south') AND age BETWEEN 20 AND 40 THEN 1 END) FROM visits",
    "SELECT SUM(region IN ('north', 'south') AND age BETWEEN 20 AND 40) FROM visits",
]
OTHER = [
    BASE.replace("18", "19"),
    BASE.replace(">= 18", "<= 18"),
    BASE.replace("< 800", "<= 800"),
    BASE.replace("< 800", "< 800.01"),
    BASE.replace("smoker AND", "smoker OR"),
    BASE.replace("smoker", "NOT smoker"),
    BASE.replace("amount", "age"),
    BASE.replace("age >= 18 AND ", ""),
    BASE.replace("smoker AND", "smoker IS NOT NULL AND"),
    BASE.replace("COUNT(*)", "COUNT(DISTINCT user_id)"),
    BASE.replace("COUNT(*)", "SUM(age)"),
    BASE.replace("COUNT(*)", "COUNT(*) + AVG(age)"),
    BASE.replace("COUNT(*)", "COUNT(note)"),
    BASE.replace("GROUP BY region", "GROUP BY region, smoker"),
    BASE.replace("SELECT region, ", "SELECT ").replace(" GROUP BY region", ""),
    BASE.replace("SELECT region", "SELECT smoker").replace("BY region", "BY smoker"),
    f"{BASE} HAVING SUM(amount) > 0",
    f"{BASE} ORDER BY AVG(amount)",
]


@pytest.fixture
def curator(tmp_path):
    return protected(tmp_path, people(victim=True), analysts={"eve": 3.0, "mallory": 3.0})


def by_region(release):
    """The counts by region, whatever the other columns are."""
    at = release.keys.index(True)
    number = release.keys.index(False)
    return {str(row[at]).lower(): row[number] for row in release.rows}


def test_other_wordings_get_the_stored_answer_for_nothing(curator):
    eve = curator.analyst("eve")
    first = eve.ask(BASE, epsilon=0.5)
    assert not first.free
    before, told = state(curator), by_region(first)
    assert len(SAME) >= 25
    for question in SAME:
        again = eve.ask(question, epsilon=0.5)
        assert again.free and again.charge == {"epsilon": 0, "delta": 0, "rho": 0}, question
        factor = 2 if "2 *" in question else 1
        shown = by_region(again)
        assert shown == {region: factor * told[region] for region in shown}, question
        assert state(curator) == before, question


def test_conditions_as_filters_sums_and_cases_get_the_stored_answer_for_nothing(curator):
    eve = curator.analyst("eve")
    first = eve.ask(SAME_COUNT[0], epsilon=0.5)
    before = state(curator)
    for question in SAME_COUNT[1:]:
        again = eve.ask(question, epsilon=0.5)
        assert (again.value, again.free) == (first.value, True), question
        assert state(curator) == before, question


def test_all_wordings_have_the_same_exact_integers(curator):
    """The stored answer is the right one for each of them, not only an answer."""
    for wordings in ([BASE, *SAME], SAME_COUNT):
        found = [integers_of(curator, question) for question in wordings]
        assert all(each == found[0] for each in found)
        keys = {plan_of(curator, question).key(1) for question in wordings}
        assert len(keys) == 1


def test_near_misses_are_new_questions(curator):
    """Teeth: what the tests above call the same is not said of everything."""
    keys = {plan_of(curator, question).key(1) for question in (BASE, *OTHER)}
    assert len(keys) == 1 + len(OTHER)
    eve = curator.analyst("eve")
    eve.ask(BASE, epsilon=0.1)
    for question in OTHER:
        before = state(curator)
        release = eve.ask(question, epsilon=0.1)
        if release.free:  # it is not the stored answer, but follows from several, and says so
            assert any("it follows from" in note for note in release.notes), question
        else:
            assert state(curator) != before, question


def test_strict_and_weak_comparisons_of_numbers_that_are_not_whole_are_two_questions(curator):
    one, other = "SELECT COUNT(*) FROM visits WHERE amount > 17", "SELECT COUNT(*) FROM visits WHERE amount >= 18"
    assert plan_of(curator, one).key(1) != plan_of(curator, other).key(1)


def test_less_accuracy_is_free_and_more_is_a_new_charge_with_new_noise(curator):
    eve = curator.analyst("eve")
    first = eve.ask(BASE, epsilon=0.3)
    for price in (0.3, 0.2, 1e-6):
        again = eve.ask(BASE, epsilon=price)
        assert again.free and again.rows == first.rows
    before = state(curator)
    more = eve.ask(BASE, epsilon=0.31)
    assert not more.free and state(curator) != before
    assert more.charge["epsilon"] == 0.31
    assert eve.ask(BASE, epsilon=0.3).rows in (first.rows, more.rows)


def test_other_confidence_is_the_same_answer(curator):
    eve = curator.analyst("eve")
    first = eve.ask(BASE, epsilon=0.3)
    again = eve.ask(BASE, epsilon=0.3, confidence=0.5)
    assert again.free and again.rows == first.rows
    assert all(a[1] < b[1] for a, b in zip(again.noise_error, first.noise_error, strict=True))


def test_pages_come_from_one_draw(curator):
    eve = curator.analyst("eve")
    question = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    whole = eve.ask(question, epsilon=0.5)
    before = state(curator)
    for order in ("", " ORDER BY age", " ORDER BY n DESC, age", " ORDER BY n, age DESC"):
        all_rows = eve.ask(question + order, epsilon=0.5).rows
        assert sorted(all_rows) == sorted(whole.rows)
        for size in (1, 7, 30) if LONG or not order else (7, 30):
            pages = []
            for start in range(0, len(all_rows) + size, size):
                page = eve.ask(f"{question}{order} LIMIT {size} OFFSET {start}", epsilon=0.5)
                assert page.free
                pages += page.rows
            assert tuple(pages) == all_rows
    assert state(curator) == before


def test_a_page_asked_first_is_the_whole_charged_once(curator):
    eve = curator.analyst("eve")
    question = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    page = eve.ask(f"{question} LIMIT 3", epsilon=0.5)
    whole = eve.ask(question, epsilon=0.5)
    assert not page.free and whole.free and whole.rows[:3] == page.rows
    nothing = eve.ask(f"{question} LIMIT 0", epsilon=0.5)
    assert nothing.rows == () and nothing.free


def test_a_retry_after_restart_is_free(curator):
    first = curator.analyst("eve").ask(BASE, epsilon=0.5)
    before = state(curator)
    again = Curator(curator.home)
    assert again.analyst("eve").ask(SAME[7], epsilon=0.5).rows == first.rows
    assert state(again) == before


def test_other_limits_are_another_question(curator):
    from dalenius.measuring.plan import Limits

    eve = curator.analyst("eve")
    eve.ask(BASE, epsilon=0.1)
    assert not eve.ask(BASE, epsilon=0.1, limits=Limits(rows=5)).free
    assert eve.ask(BASE, epsilon=0.1, limits=Limits(rows=5)).free
    assert eve.ask(BASE, epsilon=0.1, limits=Limits(rows=10**6)).free  # not lower than the policy's


def test_another_analyst_sees_one_draw_that_is_made_from_the_first(curator, monkeypatch):
    curator.analyst("eve").ask(BASE, epsilon=0.5)
    before = curator.ledger.balance("visits").spent
    monkeypatch.setattr("dalenius.queries.answering.measure_plan", lambda *_: pytest.fail("looked"))
    mallory = curator.analyst("mallory")
    first = mallory.ask(BASE, epsilon=0.5)
    assert not first.free
    for question in (BASE, *SAME[5:10]):
        again = mallory.ask(question, epsilon=0.5)
        assert again.free and by_region(again) == by_region(first)
    assert curator.ledger.balance("visits").spent == before


def test_a_failed_question_is_not_answered_twice_with_two_draws(curator, monkeypatch):
    """Asked again after a failure in the engine, it is answered once, under the charge that was paid."""
    from dalenius.errors import DaleniusError
    from dalenius.measuring.engines.duckdb.connections import DuckDB

    eve = curator.analyst("eve")
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "run", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
        with pytest.raises((DaleniusError, MemoryError)):
            eve.ask(BASE, epsilon=0.5)
    charges = curator.ledger.balance("visits").charges
    assert charges == 1
    rows = {eve.ask(question, epsilon=0.5).rows for question in (BASE, BASE, SAME[0])}
    assert len(rows) == 1
