"""ROW_NUMBER within one unit: the first rows of each person, chosen by these alone."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.shop import Shop, data, questions

from dalenius.errors import QuestionRefusedError

FIRST = "SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) AS k FROM orders"


@pytest.mark.parametrize(
    "question",
    questions(
        f"""
SELECT COUNT(*) FROM ({FIRST}) t WHERE k = 1 AND status = 'open'
;
SELECT SUM(amount) FROM ({FIRST} WHERE region <> 'n') t WHERE k <= 2
;
SELECT SUM(amount) FROM ({FIRST.replace("day", "amount DESC NULLS FIRST, day DESC")}) t WHERE 1 = k
;
SELECT SUM(k) FROM ({FIRST}) t WHERE k BETWEEN 2 AND 3
;
SELECT SUM(amount) FROM ({FIRST}) t WHERE k IN (1, 3)
;
SELECT SUM(amount) FROM (SELECT * FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day DESC) = 1) t
;
SELECT SUM(amount) FROM (SELECT DISTINCT ON (user_id) amount, day FROM orders ORDER BY user_id, day DESC) t
;
SELECT COUNT(*) FROM (SELECT DISTINCT ON (user_id, status) * FROM orders) t
;
WITH f AS ({FIRST.replace("user_id ORDER", "user_id, region ORDER")}) SELECT SUM(amount) FROM f WHERE k = 1
;
SELECT COUNT(*) FROM people p JOIN ({FIRST}) o ON o.user_id = p.user_id WHERE o.k = 1 AND o.region = p.region
;
SELECT COUNT(*) FROM people p LEFT JOIN ({FIRST}) o ON o.user_id = p.user_id AND o.k = 2 WHERE o.day IS NULL
;
SELECT COUNT(*) FROM people WHERE user_id IN (SELECT user_id FROM ({FIRST}) f WHERE k = 1 AND status = 'open')
;
SELECT COUNT(*) FROM orders a JOIN ({FIRST}) b ON a.user_id = b.user_id WHERE b.k = 2 AND a.amount > b.amount
;
SELECT SUM(n) FROM (SELECT user_id, COUNT(*) AS n FROM ({FIRST}) t WHERE k < 3 GROUP BY user_id) x
;
SELECT SUM(q) FROM (SELECT i.quantity AS q, ROW_NUMBER() OVER (PARTITION BY o.user_id ORDER BY o.day, i.price DESC,
  i.quantity) AS k FROM orders o JOIN items i ON i.order_id = o.order_id) t WHERE k = 1
"""
    ),
)
def test_rows_chosen_within_a_unit_are_those_of_plain_sql(shop, question):
    plan, ((found,),) = shop.plan(question), shop.exact(question)
    ((expected,),) = shop.plain(question)
    assert float(found * plan.measures[0].step) == pytest.approx(float(expected or 0), abs=1e-6)


def test_the_first_n_rows_are_a_limit_of_rows(shop):
    assert shop.plan(f"SELECT COUNT(*) FROM ({FIRST}) t WHERE k = 1").table.policy.contribution.rows == 1
    assert shop.plan(f"SELECT COUNT(*) FROM ({FIRST}) t WHERE k < 4").table.policy.contribution.rows == 3
    assert shop.plan(f"SELECT COUNT(*) FROM ({FIRST}) t WHERE k > 4").table.policy.contribution.rows == 1000
    by = FIRST.replace("user_id ORDER", "user_id, region ORDER")
    assert shop.plan(f"SELECT COUNT(*) FROM ({by}) t WHERE k = 1").table.policy.contribution.rows == 1000


def test_numbers_past_the_limit_of_rows_are_absent(narrow):
    rows = narrow.plan(f"SELECT k, COUNT(*) FROM ({FIRST}) t GROUP BY k")
    assert len(rows.cells) == 7


@pytest.mark.parametrize("turned", [False, True])
def test_of_rows_that_tie_it_is_not_the_place_in_the_file_that_decides(tmp_path, turned):
    tables = data()
    orders = tables["orders"].to_pydict()
    orders["day"] = [orders["day"][0]] * 30  # all tie
    table = pa.table(orders)
    tables["orders"] = table.take(list(range(29, -1, -1))) if turned else table
    shop = Shop.protected(tmp_path, tables)
    ((found,),) = shop.exact(f"SELECT SUM(amount) FROM ({FIRST}) t WHERE k = 1")
    first = {row["user_id"]: row["amount"] or 0 for row in table.to_pylist()[::-1] if row["user_id"] is not None}
    # of each person the least order, since keys come first among the columns of the table
    assert float(found) / 2 == pytest.approx(sum(first.values()), abs=1e-9)


@pytest.mark.parametrize("number", ["", ", ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) AS k"])
def test_zero_has_one_spelling_where_rows_are_stacked_or_numbered(shop, number):
    """Rows that differ in it alone tie where they are put in order, and other people's rows would decide."""
    held = f"SELECT user_id, CASE WHEN status = 'open' THEN -amount * 0 ELSE 0 END AS m{number} FROM orders"
    source = held if number else f"{held} UNION ALL {held}"
    question = f"SELECT COUNT(*) FILTER (WHERE CAST(m AS VARCHAR) LIKE '-%') FROM ({source}) s"
    assert shop.exact(question) == [[0]]


def test_the_same_choice_in_other_words_is_the_same_question(shop):
    one = f"SELECT COUNT(*) FROM ({FIRST}) t WHERE k = 1 AND status = 'open'"
    other = f"WITH f AS ({FIRST}) SELECT COUNT(*) AS n FROM f WHERE f.status = 'open' AND 1 = f.k"
    assert shop.key(one) == shop.key(other)
    assert shop.key(one) != shop.key(one.replace("day", "day DESC"))
    assert shop.key(one) != shop.key(one.replace("k = 1", "k = 2"))


@pytest.mark.parametrize("asked", ["SUM(DISTINCT amount)", "AVG(LN(amount))", "MODE(region)"])
def test_notes_name_what_was_typed(shop, asked):
    question = f"SELECT {asked} FROM ({FIRST}) t WHERE k = 1"
    ana = shop.ana
    for notes in (ana.ask(question, epsilon=0.01).notes, ana.preview(question).notes, ana.explain(question).notes):
        assert not any("numbered" in each or "c2" in each for each in notes)


def test_a_value_brought_between_bounds_is_named_as_it_was_typed(shop):
    plan = shop.plan("SELECT SUM(1 / amount) FROM orders WHERE amount > 2")
    assert any(each.startswith("1 / amount is brought between") for each in plan.notes)


_K = "ROW_NUMBER() OVER (PARTITION BY {} ORDER BY day) AS k"
UNSAFE = {
    f"SELECT COUNT(*) FROM (SELECT {_K.replace('PARTITION BY {} ', '')} FROM orders) WHERE k = 1": "several people",
    f"SELECT COUNT(*) FROM (SELECT {_K.format('region')} FROM orders) WHERE k = 1": "several people",
    f"SELECT COUNT(*) FROM (SELECT {_K.format('user_id').replace('ROW_NUMBER', 'RANK')} FROM orders) WHERE k = 1": (
        "A window function over rows"
    ),
    "SELECT COUNT(*) FROM (SELECT DISTINCT ON (region) * FROM orders) t": "DISTINCT ON over rows of several people",
    "SELECT COUNT(*) FROM (SELECT * FROM orders QUALIFY amount > 1) t": "QUALIFY takes a row number",
    f"SELECT COUNT(*) FROM (SELECT COUNT(*), {_K.format('user_id')} FROM orders GROUP BY user_id, day) t": (
        "beside GROUP BY"
    ),
    f"SELECT COUNT(*) FROM (SELECT {_K.format('user_id')}, {_K.format('user_id, status')}2 FROM orders) t": (
        "in one way"
    ),
    f"SELECT {_K.format('user_id')}, COUNT(*) FROM orders GROUP BY k": "A window function over rows",
    f"SELECT COUNT(*) FROM orders WHERE {_K.format('user_id').removesuffix(' AS k')} = 1": (
        "A window function over rows"
    ),
    "SELECT COUNT(*) FROM (SELECT code, ROW_NUMBER() OVER (PARTITION BY code) AS k FROM regions) JOIN people "
    "ON region = code WHERE k = 1": "A window function over rows",
    f"SELECT COUNT(*) FROM (SELECT {_K.format('o.user_id')} FROM people p LEFT JOIN orders o "
    "ON o.user_id = p.user_id) t WHERE k = 1": "several people",
}


@pytest.mark.parametrize("question", UNSAFE)
def test_what_would_be_about_several_people_or_leave_is_refused(shop, question):
    error = shop.error(question)
    assert isinstance(error, QuestionRefusedError)
    assert UNSAFE[question] in error.message
    assert any(each in error.fix for each in ("unit", "user_id", "GROUP BY", "subquery"))
