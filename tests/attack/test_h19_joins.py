"""H19, through joins: the same question over several tables in other words is the same stored answer, for nothing.

A question that means something else, however near, is a new charge; so is one whose public table changed.
"""

from __future__ import annotations

import pytest
from tests.attack.hostile import state
from tests.attack.joined import shop_of
from tests.kept import laid
from tests.shop import BUDGET, REGIONS, Shop, questions

from dalenius import Curator
from dalenius.measuring.plan import Limits

# The first is the question.
SAME = questions(
    """
SELECT r.name, COUNT(*) AS n FROM people p JOIN orders o ON o.user_id = p.user_id JOIN regions r ON r.code = p.region
  WHERE o.amount >= 10 AND p.age > 25 GROUP BY r.name
;
SELECT r.name, COUNT(*) FROM regions r, orders o, people p WHERE p.age > 25 AND o.user_id = p.user_id
  AND r.code = p.region AND 10 <= o.amount GROUP BY r.name
;
SELECT x.name AS a, COUNT(*) AS b FROM orders y JOIN people z USING (user_id) JOIN regions x ON z.region = x.code
  WHERE y.amount >= 10.0 AND NOT z.age <= 25 GROUP BY a ORDER BY b DESC
;
WITH big AS (SELECT * FROM orders WHERE amount >= 10), old AS (SELECT * FROM people WHERE age >= 26)
  SELECT name, COUNT(*) FROM big JOIN old ON big.user_id = old.user_id JOIN regions ON code = old.region GROUP BY name
;
SELECT name, COUNT(*) FROM (SELECT p.user_id, r.name FROM people p JOIN regions r ON r.code = p.region WHERE age > 25) t
  JOIN (SELECT user_id FROM orders WHERE amount >= 10) o USING (user_id) GROUP BY 1 HAVING COUNT(*) > 0
;
select R.Name, count(1) /* again */ from PEOPLE p inner join Orders o using (USER_ID) cross join regions R
  where R.code = p.region and p.age > 25 and o.amount >= '10' group by R.name limit 3
"""
)
BASE = SAME[0]
OTHER = [
    BASE.replace(">= 10", "> 10"),
    BASE.replace("> 25", "> 26"),
    BASE.replace("p.region", "o.region"),
    BASE.replace("r.name", "r.code"),
    BASE.replace("JOIN orders", "LEFT JOIN orders"),
    BASE.replace("JOIN regions", "LEFT JOIN regions"),
    BASE.replace("COUNT(*)", "COUNT(DISTINCT p.user_id)"),
    BASE.replace("COUNT(*)", "SUM(o.amount)"),
    BASE.replace("WHERE", "WHERE EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.order_id) AND"),
    BASE.replace("WHERE", "WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.order_id) AND"),
    BASE.replace("JOIN regions", "JOIN orders b ON b.user_id = p.user_id JOIN regions"),
    BASE.replace("JOIN regions", "JOIN orders b ON b.order_id = o.order_id JOIN regions"),
]


@pytest.fixture
def shop(place):
    budget = BUDGET + "[analysts.eve]\nepsilon = 50.0\n"
    return Shop(laid(place, "test_h19_joins", lambda there: shop_of(there, victim=True, budget=budget).curator), place)


def by_name(release):
    return {row[0]: row[1] for row in release.rows}


def test_other_wordings_of_a_join_get_the_stored_answer_for_nothing(shop):
    first = shop.ana.ask(BASE, epsilon=0.5)
    told, before = by_name(first), state(shop.curator)
    assert not first.free
    for question in SAME[1:]:
        again = shop.ana.ask(question, epsilon=0.5)
        assert again.free and again.charge == {"epsilon": 0, "delta": 0, "rho": 0}, question
        shown = by_name(again)
        assert shown == {name: told[name] for name in shown}, question
        assert state(shop.curator) == before, question


def test_near_misses_are_new_charges(shop):
    keys = {shop.key(question) for question in (BASE, *OTHER)}
    assert len(keys) == 1 + len(OTHER)
    shop.ana.ask(BASE, epsilon=0.1)
    for question in OTHER:
        before = state(shop.curator)
        assert not shop.ana.ask(question, epsilon=0.1).free, question
        assert state(shop.curator) != before, question


def test_the_stored_answer_is_that_of_the_meaning(shop):
    """All wordings have one key because they have one meaning, not the other way round."""
    integers = [shop.exact(question) for question in SAME]
    assert all(each == integers[0] for each in integers)
    assert any(shop.exact(question) != integers[0] for question in OTHER)


def test_a_retry_after_restart_sees_the_same_draw_and_another_analyst_one_made_from_it(shop, monkeypatch):
    first = by_name(shop.ana.ask(BASE, epsilon=0.5))
    spent = shop.curator.ledger.balance("shop").spent
    again = Curator(shop.curator.home)
    assert by_name(again.analyst("ana").ask(SAME[3], epsilon=0.5)) == first
    monkeypatch.setattr("dalenius.queries.answering.measure_plan", lambda *_: pytest.fail("looked"))
    other = again.analyst("eve").ask(SAME[1], epsilon=0.5)
    assert not other.free and by_name(again.analyst("eve").ask(SAME[2], epsilon=0.5)) == by_name(other)
    assert again.ledger.balance("shop").spent == spent


def test_pages_of_a_join_come_from_one_draw(shop):
    whole = shop.ana.ask(BASE, epsilon=0.5)
    pages = [shop.ana.ask(f"{BASE} LIMIT 1 OFFSET {at}", epsilon=0.5) for at in range(len(whole.rows))]
    assert all(page.free for page in pages)
    assert tuple(row for page in pages for row in page.rows) == whole.rows


def test_more_accuracy_and_other_limits_are_new_charges(shop):
    shop.ana.ask(BASE, epsilon=0.3)
    assert shop.ana.ask(SAME[2], epsilon=0.2).free
    assert not shop.ana.ask(SAME[2], epsilon=0.4).free
    assert not shop.ana.ask(BASE, epsilon=0.3, limits=Limits(rows=2)).free


def test_a_public_table_that_changed_makes_it_another_question(shop):
    """Its rows are part of what is asked: the old answer would be about other regions."""
    before = shop.key(BASE)
    shop.ana.ask(BASE, epsilon=0.3)
    (shop.folder / "regions.csv").write_text(REGIONS.replace("North", "Nord"))
    shop.curator.protect(shop.folder / "people.toml", yes=True, reason="r")
    assert shop.key(BASE) != before
    assert not shop.ana.ask(BASE, epsilon=0.3).free


def test_the_two_sides_of_a_table_with_itself_are_not_exchanged(shop):
    """Which occurrence is first does not matter; which one is summed does."""
    one = "SELECT SUM({0}.amount) FROM orders a JOIN orders b USING (user_id) WHERE a.day < b.day"
    other = "SELECT SUM({0}.amount) FROM orders b JOIN orders a USING (user_id) WHERE b.day > a.day"
    assert shop.key(one.format("a")) == shop.key(other.format("a"))
    assert shop.key(one.format("b")) == shop.key(other.format("b"))
    assert shop.key(one.format("a")) != shop.key(one.format("b"))
