"""A question whose conditions leave few of very many possible groups answers those alone."""

from __future__ import annotations

import pytest
from tests import typed
from tests.shop import Shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return typed.protected(tmp_path_factory.mktemp("narrowed"))


ORDERS = "SELECT order_id, COUNT(*) FROM orders WHERE {} GROUP BY order_id"
LEFT = {
    ORDERS.format("order_id IN (105, 100, 2.5)"): [(100,), (105,)],
    ORDERS.format("order_id = 7 OR 9 = order_id"): [(7,), (9,)],
    ORDERS.format("order_id BETWEEN 10 AND 20 AND order_id % 5 = 0"): [(10,), (15,), (20,)],
    ORDERS.format("order_id > 999997 AND order_id <= 999999.5"): [(999998,), (999999,)],
    ORDERS.format("5 > order_id AND 2 < order_id"): [(3,), (4,)],
    "SELECT FLOOR(order_id / 10) AS b, COUNT(*) FROM orders WHERE order_id >= 100 AND order_id < 130 GROUP BY b": (
        [(10,), (11,), (12,)]
    ),
    "SELECT name, COUNT(*) FROM people WHERE name IN ('Zoë', 'Ann') AND age > 3 GROUP BY name": [("Ann",), ("Zoë",)],
    "SELECT LOWER(name), COUNT(*) FROM people WHERE name = 'ANN' OR name IN ('ann', 'BOB') GROUP BY 1": (
        [("ann",), ("bob",)]
    ),
    "SELECT order_id, sex, COUNT(*) FROM orders o JOIN people p ON p.person_id = o.person_id "
    "WHERE order_id = 3 AND sex <> 'x' GROUP BY order_id, sex": [(3, "f"), (3, "m")],
}


@pytest.mark.parametrize("question", LEFT)
def test_only_what_the_conditions_leave_is_answered(shop, question):
    plan = shop.plan(question)
    assert plan.selection is None
    assert list(plan.cells) == LEFT[question]


@pytest.mark.parametrize(
    "condition",
    [
        "order_id <> 5",
        "order_id > 5 OR gift",
        "order_id = 5 OR gift",
        "order_id IN (0, -1)",  # nothing would be left, and whether rows are there is not said by that
        "order_id < 200000",  # still too many
        "NOT order_id = 5",
        "order_id > order_id - 1",
    ],
)
def test_other_keys_are_still_to_be_found(shop, condition):
    assert shop.plan(ORDERS.format(condition)).selection is not None


def test_a_condition_on_what_left_join_may_leave_out_narrows_no_other_column(shop):
    question = (
        "SELECT o.order_id, COUNT(*) FROM people p LEFT JOIN orders o ON o.person_id = p.person_id AND o.order_id = 5 "
        "GROUP BY o.order_id"
    )
    assert shop.plan(question).selection is not None  # ON says nothing of rows without an order
