"""Rows of units where several tables are one: joined, along a path, per unit, stacked. A row is its unit's alone."""

from __future__ import annotations

from collections import Counter, defaultdict

import pyarrow.compute as pc
import pytest
from tests.shop import Shop, data

from dalenius.measuring._exact import exact_batches
from dalenius.measuring.batches import UnitRows
from dalenius.measuring.engines.engine import recorded
from dalenius.measuring.expressions import Column, Type

# A question that makes the relation; the columns that are read of it; the same rows in plain SQL, with their units.
RELATIONS = {
    "a path": (
        "SELECT SUM(quantity) FROM items",
        ("quantity", "price"),
        "SELECT o.user_id, i.quantity, i.price FROM items i JOIN orders o USING (order_id)",
    ),
    "a join": (
        "SELECT SUM(p.age), SUM(o.amount) FROM people p JOIN orders o ON o.user_id = p.user_id WHERE o.status = 'open'",
        ("people.age", "orders.amount"),
        "SELECT p.user_id, p.age, o.amount FROM people p JOIN orders o USING (user_id) WHERE o.status = 'open'",
    ),
    "a public table": (
        "SELECT SUM(o.amount), SUM(r.tax) FROM orders o LEFT JOIN regions r ON r.code = o.region",
        ("orders.amount", "regions.tax"),
        "SELECT o.user_id, o.amount, r.tax FROM orders o LEFT JOIN regions r ON r.code = o.region",
    ),
    "a CTE per unit": (
        "WITH t AS (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) SELECT SUM(n) FROM t",
        ("per unit.a0",),
        "SELECT user_id, count(*) FROM orders GROUP BY user_id",
    ),
    "EXISTS": (
        "SELECT SUM(age) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id)",
        ("people.age",),
        "SELECT user_id, age FROM people WHERE user_id IN (SELECT user_id FROM orders)",
    ),
    "UNION ALL": (
        "SELECT SUM(x) FROM (SELECT user_id, age AS x FROM people UNION ALL SELECT user_id, amount FROM orders) s",
        ("union.c1",),
        "SELECT user_id, age FROM people UNION ALL SELECT user_id, amount FROM orders",
    ),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return Shop.protected(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def smaller(tmp_path_factory):
    """The same without one person, who has most of everything that people have."""
    tables = {
        name: table.filter(pc.or_kleene(pc.is_null(table["user_id"]), pc.not_equal(table["user_id"], 3)))
        for name, table in data().items()
        if name != "items"
    }
    items = data()["items"]
    tables["items"] = items.filter(pc.is_in(items["order_id"], tables["orders"]["order_id"]))
    return Shop.protected(tmp_path_factory.mktemp("smaller"), tables)


def read(shop: Shop, name: str, rows: int = 1000) -> dict[int, tuple[tuple[object, ...], ...]]:
    """The rows of each unit, by tag, in order."""
    sql, columns, _ = RELATIONS[name]
    plan, reading = shop.planned(sql)
    asked = UnitRows(plan.table, tuple(Column(each, Type.NUMBER) for each in columns), rows, plan.where)
    found = {}
    for batch in exact_batches(asked, reading.engine(shop.curator.engines), "a salt", units=4):
        shown = zip(
            *(
                [None if gone else each for each, gone in zip(values, absent, strict=True)]
                for values, absent in zip(batch.values, batch.absent, strict=True)
            ),
            strict=True,
        )
        lines = list(shown)
        for at, tag in enumerate(batch.tags.tolist()):
            found[tag] = tuple(lines[batch.starts[at] : batch.starts[at + 1]])
    return found


@pytest.mark.parametrize("name", RELATIONS)
def test_units_have_the_rows_that_plain_sql_gives_them(name, shop):
    units: defaultdict[int, Counter[tuple[object, ...]]] = defaultdict(Counter)
    for who, *values in shop.plain(RELATIONS[name][2]):
        units[who][tuple(values)] += 1
    found = [Counter(lines) for lines in read(shop, name).values()]
    assert len(found) == len(units) and all(each in found for each in units.values())


@pytest.mark.parametrize("name", RELATIONS)
def test_a_person_who_is_not_there_takes_own_rows_along_and_nothing_else(name, shop, smaller):
    with recorded() as ran:
        whole = read(shop, name, rows=2)
    with recorded() as again:
        without = read(smaller, name, rows=2)
    assert [each for each in whole if each in without] == list(without)
    assert len(whole) == len(without) + 1 and all(whole[each] == lines for each, lines in without.items())
    assert max(map(len, whole.values())) <= 2
    texts = [
        [each.text.replace(str(one.folder), "") for each in each_ran if "tagged" in each.text]
        for one, each_ran in ((shop, ran), (smaller, again))
    ]
    assert texts[0] == texts[1] and len(texts[0]) == 1
