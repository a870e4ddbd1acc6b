"""H6 and H7, through joins: no row makes a condition fail, wherever it stands; what takes too long is charged."""

from __future__ import annotations

import pytest
from tests.attack.hostile import moved, state
from tests.attack.joined import shop_of
from tests.conftest import LONG

from dalenius.errors import QuestionRefusedError

# On the victim's rows (amount 100, a note that is no number, the last day) each of these fails in plain SQL, or may.
FAULTS = {
    "a zero divisor": "1 / (o.amount - 100) < 3",
    "a whole zero divisor": "7 // (o.amount - 100) < 3",
    "a zero remainder": "7 % (o.amount - 100) < 3",
    "a logarithm of nothing": "LN(100 - o.amount) < 3",
    "a root of what is below nothing": "SQRT(99 - o.amount) < 3",
    "an overflow": "EXP(o.amount * 1000) > 3",
    "a power that overflows": "POWER(o.amount, 1000) > 3",
    "a product that overflows": "o.amount * 1e307 > 3",
    "a text that is no number": "CAST(o.note AS INTEGER) < 3",
    "a text that is no decimal": "CAST(o.note AS DECIMAL(4, 2)) < 3",
    "a text that is no date": "CAST(o.note AS DATE) < '2025-01-01'",
    "a text that is no moment": "CAST(o.note AS TIMESTAMP) < '2025-01-01'",
    "a text that is no truth": "CAST(o.note AS BOOLEAN)",
    "a number that is no small one": "CAST(o.amount * 1e18 AS TINYINT) < 3",
    "a date beyond the calendar": "o.day + INTERVAL 100 YEAR > '2030-01-01'",
}
OWN = "o.user_id = p.user_id"
PLACES = {
    "ON": f"people p JOIN orders o ON {OWN} AND {{}}",
    "LEFT ON": f"people p LEFT JOIN orders o ON {OWN} AND {{}} WHERE o.amount IS NOT NULL",
    "EXISTS": f"people p WHERE EXISTS (SELECT 1 FROM orders o WHERE {OWN} AND {{}})",
    "NOT EXISTS": f"people p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE {OWN} AND {{}})",
    "IN": "people p WHERE p.user_id IN (SELECT user_id FROM orders o WHERE {})",
    "a FILTER within a unit": "(SELECT user_id, COUNT_IF({}) AS n FROM orders o GROUP BY 1) x WHERE n > 0",
    "a WHERE within a unit": "(SELECT user_id, COUNT(*) AS n FROM orders o WHERE {} GROUP BY user_id) x",
    "a key within a unit": "(SELECT user_id, {} AS k FROM orders o GROUP BY 1, 2) x WHERE k",
    "UNION ALL": "(SELECT user_id, {} AS c FROM orders o UNION ALL SELECT user_id, smoker FROM people) u WHERE c",
    "with a public table": "orders o JOIN regions r ON r.code = o.region AND ({} OR r.tax > 9)",
    "a CASE of the victim": f"people p JOIN orders o ON {OWN} WHERE CASE WHEN o.amount = 100 THEN {{}} ELSE TRUE END",
    "a subquery": "(SELECT o.user_id, {} AS c FROM orders o) x JOIN people USING (user_id) WHERE c",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return shop_of(tmp_path_factory.mktemp("h06"), victim=True)


@pytest.fixture(scope="module")
def neighbour(tmp_path_factory):
    return shop_of(tmp_path_factory.mktemp("h06-without"), victim=False)


@pytest.mark.parametrize("fault", FAULTS)
def test_no_row_makes_a_condition_fail_wherever_it_stands(shop, neighbour, fault):
    # In the short form each fault in a third of the places, and each place with a third of the faults.
    for place in PLACES if LONG else list(PLACES)[list(FAULTS).index(fault) % 3 :: 3]:
        question = f"SELECT COUNT(*) FROM {PLACES[place].format(FAULTS[fault])}"
        one, other = shop.planned(question), neighbour.planned(question)
        assert all(moved(one[0], shop.integers(*one), neighbour.integers(*other))), place
        assert other[0].canonical() == one[0].canonical(), place


@pytest.mark.parametrize(
    "value",
    [
        "SUM(CASE WHEN o.amount = 100 THEN LEAST(GREATEST(1 / (o.amount - 100), 0), 9) ELSE 1 END)",
        "SUM(LEAST(GREATEST(CAST(o.note AS DOUBLE), 0), 9))",
        "MAX(EXP(o.amount * 1000))",
        "MIN(CAST(o.note AS INTEGER))",
        "AVG(LEAST(GREATEST(LN(100 - o.amount), 0), 9))",
        "COUNT(DISTINCT CAST(o.note AS INTEGER))",
    ],
)
def test_no_row_makes_a_sum_within_a_unit_fail(shop, neighbour, value):
    question = (
        f"SELECT COUNT(v), COUNT(*) FROM (SELECT o.user_id, {value} AS v FROM orders o GROUP BY 1) x WHERE v < 1e9"
    )
    plan = shop.plan(question)
    assert all(moved(plan, shop.exact(question), neighbour.exact(question)))


def test_plain_sql_would_fail_on_most_of_them(shop):
    """Teeth: the faults are faults."""
    import duckdb

    failed = 0
    for fault in FAULTS.values():
        try:
            shop.plain(f"SELECT COUNT(*) FROM orders o WHERE {fault}")
        except duckdb.Error:
            failed += 1
    assert failed >= 7


def test_a_join_that_would_blow_up_is_refused_whoever_is_there(tmp_path):
    """500⁵ rows of one person would take hours, which would tell of that person: so the shape is refused."""
    said = set()
    for victim in (True, False):
        (tmp_path / str(victim)).mkdir()
        shop = shop_of(tmp_path / str(victim), victim=victim)
        joined = " ".join(
            f"JOIN orders o{at} ON o{at}.user_id = o0.user_id AND o{at}.amount > o0.amount - 1" for at in range(1, 5)
        )
        question = f"SELECT COUNT(*) FROM orders o0 {joined}"
        before = state(shop.curator)
        with pytest.raises(QuestionRefusedError, match="repeats rows too often") as refusal:
            shop.ana.ask(question, epsilon=0.5)
        assert state(shop.curator) == before and refusal.value.charge.epsilon == 0
        said.add(str(refusal.value))
    assert len(said) == 1
