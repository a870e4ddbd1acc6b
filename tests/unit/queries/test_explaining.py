"""What a question was understood to mean: in plain words, for nothing, and in no names of our own."""

from __future__ import annotations

import json
import os
import re

import pytest
from tests import typed
from tests.shop import Shop

from dalenius.errors import DaleniusError
from dalenius.queries.explaining import Explanation

LONG = os.environ.get("DALENIUS_LONG") == "1"
# What only plans call things: sources, columns of subqueries and of releases, functions.
INTERNAL = re.compile(
    r"per unit|union\.c\d|#\d|\b[akc]\d+\b|\breleased? \d|query \d|subquery \d|copies|USERDEFINED"
    r"|\b(le|lt|eq|ne|and|or|not|finite|is_null|date_part|intdiv|nullif|to_[a-z]+|round_even|starts_with)\("
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return typed.protected(tmp_path_factory.mktemp("explained"))


def lines(shop: Shop, sql: str, **how: object) -> dict[str, tuple[str, ...]]:
    return dict(shop.ana.explain(sql, **how).sections())  # type: ignore[arg-type]


def test_one_table_is_told_with_rows_groups_limits_and_what_comes_after(shop):
    found = lines(
        shop,
        "SELECT region, ROUND(AVG(age), 1) AS mean FROM people WHERE 'f' = sex AND NOT age < 18 GROUP BY region "
        "HAVING COUNT(*) > 3 ORDER BY 2 DESC LIMIT 2",
        epsilon=0.5,
    )
    assert "each person_id" in found["Protected"][0] and found["Tables"] == ("people (protected)",)
    assert found["Rows that count"] == ("sex = 'f'", "age >= 18")
    assert found["Groups"][:2] == ("by region", "4 groups, all public: each is answered, also if it is empty")
    assert "age counts from 0 to 110; what lies beyond counts as the bound" in found["Limits"]
    assert any(each.startswith("one person_id counts for at most 1 row") for each in found["Limits"])
    assert found["Measured, with noise"][0] == "AVG(age), from: count rows where age IS NOT NULL; sum of age"
    after = found["Computed from what is released, which is free"]
    assert after[0] == "mean = ROUND(AVG(age), 1)" and "only groups with COUNT(*) > 3" in after
    assert "ordered by ROUND(AVG(age), 1) DESC" in after and any("at most 2 rows" in each for each in after)
    assert found["Price"][0].startswith("ε = 0.5 for the whole question (ρ = ")


def test_joins_are_told_in_the_names_that_were_typed(shop):
    found = lines(
        shop,
        "SELECT COUNT(*) FROM people p JOIN orders o USING (person_id) LEFT JOIN regions r ON p.region = r.code "
        "WHERE o.amount > 3 AND p.person_id NOT IN (SELECT person_id FROM orders x WHERE x.gift)",
    )
    assert found["Tables"] == (
        "people as p (protected)",
        "joined with orders as o (protected)",
        "beside each row those of regions as r (public) with p.region = r.code; rows without any stay",
    )
    assert "o.amount > 3" in found["Rows that count"]
    assert any("there is no row in orders as x (protected)" in each for each in found["Rows that count"])
    assert found["Public"][0] == "Public tables, read as they are: regions."


def test_a_subquery_of_one_unit_is_told_by_what_it_adds_up(shop):
    found = lines(shop, "SELECT AVG(s) FROM (SELECT person_id, SUM(amount) AS s FROM orders GROUP BY 1) WHERE s > 10")
    assert found["Tables"] == ("one row for each person_id, of orders (protected)",)
    assert found["Rows that count"] == ("(SUM(amount) of each person_id) > 10",)


def test_rows_of_union_all_keep_their_typed_names(shop):
    sql = "SELECT SUM(x) FROM (SELECT person_id, age AS x FROM people UNION ALL SELECT person_id, quantity FROM orders)"
    found = lines(shop, sql + " WHERE x > 3")
    assert found["Tables"][0].startswith("one below another: ") and found["Rows that count"] == ("x >= 4",)


def test_an_outer_part_is_told_as_computed_from_the_release(shop):
    found = lines(
        shop,
        "SELECT region, COUNT(*) AS n, n * 1.0 / SUM(n) OVER () AS share FROM people GROUP BY region QUALIFY n > 2",
    )
    assert found["Measured, with noise"] == ("COUNT(*), from: count rows",)
    after = found["Computed from what is released, which is free"]
    assert after == ("share = n * 1.0 / SUM(n) OVER ()", "QUALIFY n > 2")


def test_several_parts_share_one_price_and_public_questions_have_none(shop):
    several = shop.ana.explain(
        "SELECT sex, COUNT(*) FROM people GROUP BY 1 UNION ALL SELECT status, COUNT(*) FROM orders GROUP BY 1",
        epsilon=0.5,
    )
    assert len(several.parts) == 2 and "shared by 2 parts" in several.price
    assert "UNION ALL of 2 SELECTs" in several.after
    public = shop.ana.explain("SELECT country, COUNT(*) FROM regions GROUP BY 1")
    assert public.parts == () and "free" in public.price and "regions" in public.public[0]


def test_groups_that_are_found_say_so_and_how_many_units_they_need(shop):
    found = lines(shop, "SELECT note, COUNT(*) FROM orders GROUP BY note", epsilon=1.0)
    assert any("found privately" in each for each in found["Groups"])
    assert any(re.search(r"needs about \d+ units", each) for each in found["Groups"])
    assert "δ = " in found["Price"][0]


def test_typed_limits_are_told_and_nothing_is_spent(shop):
    from dalenius.measuring.plan import Limits

    before = shop.ana.budget()
    found = lines(shop, "SELECT COUNT(*) FROM orders", limits=Limits(rows=2))
    assert found["Limits"] == ("one person_id counts for at most 2 rows",)
    assert shop.ana.budget() == before and shop.ana.history() == []


def test_no_name_of_our_own_is_told_of_any_typed_question(shop):
    asked = [each for each in typed.typed() if not each.later and not each.words]
    for each in asked if LONG else asked[::6]:
        try:
            found = shop.ana.preview(each.text, epsilon=1.0)
        except DaleniusError:  # its planning is tested elsewhere
            continue
        assert found.explanation is not None
        said = f"{found.explanation}\n{found.plan}"
        hit = INTERNAL.search(said)
        assert hit is None or hit[0].lower() in each.text.lower(), (each.text, said)
        data = json.loads(json.dumps(found.explanation.to_dict(), allow_nan=False))
        assert Explanation.from_dict(data) == found.explanation


def test_long_expressions_are_cut(shop):
    wide = " OR ".join(f"age = {at} AND height > {at} AND balance < {at}" for at in range(60))
    (rows,) = lines(shop, f"SELECT COUNT(*) FROM people WHERE {wide}")["Rows that count"]
    assert "…" in rows and len(rows) < 10_000
