"""Keys that a question lists itself, and public rows that LEFT JOIN keeps: groups that are there, whoever has them."""

from __future__ import annotations

from typing import Any

import pytest
from tests import typed
from tests.shop import Shop
from tests.typed import Typed

from dalenius.errors import InputError, NotAllowedError, QuestionRefusedError
from dalenius.measuring.expressions import Literal, Type, number, text
from dalenius.measuring.listed import MOST_LISTED, is_listed, listed_table
from dalenius.queries.ask import Ask
from dalenius.queries.planning import plan_ask

KEPT = "FROM regions r LEFT JOIN people p ON p.region = r.code"
LISTED = "FROM (VALUES ('n'), ('s')) AS k(r) JOIN people p ON p.region = k.r"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return typed.protected(tmp_path_factory.mktemp("listed"))


def rows(shop: Shop, question: str) -> list[tuple[Any, ...]]:
    return [tuple(each) for each in shop.ana.ask(question, epsilon=1e15).rows]


def canonical(shop: Shop, question: str) -> str:
    return plan_ask(shop.ana._asker, Ask(question)).plan.canonical()


def test_each_listed_key_is_answered_also_where_nobody_has_it(shop):
    found = rows(
        shop,
        "SELECT k.r, COUNT(p.age) FROM (VALUES ('n'), ('zz')) k(r) LEFT JOIN people p ON p.region = k.r GROUP BY k.r",
    )
    assert found == [("n", 6), ("zz", 0)]


def test_a_value_that_is_listed_twice_repeats_rows_as_in_sql(shop):
    found = rows(
        shop, "SELECT k.r, COUNT(*) FROM people p JOIN UNNEST(['n', 'n']) AS k(r) ON p.region = k.r GROUP BY k.r"
    )
    assert found == [("n", 12)]


def test_what_is_listed_twice_multiplies_what_one_unit_adds(shop):
    once, twice = (
        plan_ask(
            shop.ana._asker, Ask(f"SELECT COUNT(*) FROM people p JOIN (VALUES {each}) k(r) ON p.region = k.r")
        ).plan
        for each in ("('n')", "('n'), ('n')")
    )
    assert (once.statistics[0].measures[0].clip, twice.statistics[0].measures[0].clip) == (1, 2)


def test_the_order_of_a_list_does_not_matter_but_what_is_in_it_does(shop):
    first = canonical(shop, f"SELECT COUNT(*) {LISTED}")
    assert first == canonical(shop, f"SELECT COUNT(*) {LISTED}".replace("('n'), ('s')", "('s'), ('n')"))
    assert first != canonical(shop, f"SELECT COUNT(*) {LISTED}".replace("('n'), ('s')", "('n'), ('e')"))


def test_a_list_is_a_public_table_without_files():
    table = listed_table(("a", "b"), ((number(1), text("x")), (number(2), text("x"))))
    assert is_listed(table)
    assert table.rows == 2
    assert (table.multiplicity(["a"]), table.multiplicity(["b"])) == (1, 2)
    assert table.columns["b"].keys == ("x",)
    assert table.types == {"a": "BIGINT", "b": "VARCHAR"}
    assert listed_table(("a",), ((number(1.5),),)).types == {"a": "DOUBLE"}
    assert listed_table(("a",), ((Literal(True, Type.BOOLEAN),),)).types == {"a": "BOOLEAN"}


def test_quotes_in_names_and_values_stay_what_they_are(shop):
    found = rows(
        shop,
        """SELECT k."x"" y", COUNT(*) FROM people p JOIN (VALUES ('n'';--'), ('s')) k("x"" y")
        ON p.region = k."x"" y" GROUP BY 1""",
    )
    assert found == [("n';--", 0), ("s", 5)]


@pytest.mark.parametrize(
    ("aggregate", "answered"),
    [
        ("COUNT(p.person_id)", True),
        ("COUNT(DISTINCT p.person_id)", True),
        ("SUM(CASE WHEN p.age > 30 THEN 1 ELSE 0 END)", True),
        ("COUNT_IF(p.age > 30)", True),
        ("COUNT(*) FILTER (WHERE p.age > 30)", True),
        ("COUNT(*) FILTER (WHERE NOT p.age IS NULL)", True),
        ("SUM(COALESCE(p.age, 0))", True),
        ("COUNT(NULLIF(p.sex, p.sex))", False),
        ("COUNT(*)", False),
        ("COUNT(1)", False),
        ("COUNT(r.code)", False),
        ("COUNT(COALESCE(p.age, 0))", False),
        ("SUM(COALESCE(p.age, 1))", False),
        ("SUM(r.population)", False),
        ("COUNT(*) FILTER (WHERE p.age IS NULL)", False),
        ("COUNT(*) FILTER (WHERE p.age > 3 OR r.country = 'A')", False),
        ("COUNT(CASE WHEN r.country = 'A' THEN p.age ELSE 1 END)", False),
    ],
)
def test_rows_that_nobody_meets_add_nothing_or_the_question_is_refused(shop, aggregate, answered):
    question = f"SELECT r.code, {aggregate} {KEPT} GROUP BY r.code"
    if not answered:
        with pytest.raises(QuestionRefusedError, match="nobody meets") as caught:
            rows(shop, question)
        assert "COUNT(p.person_id)" in (caught.value.fix or "")
    else:
        expected = {key: value or 0 for key, value in typed.plain(Typed("duckdb", 0, question))}
        assert {key: round(value, 3) for key, value in rows(shop, question)} == expected


@pytest.mark.parametrize(
    "where", ["p.age > 30", "p.age IS NOT NULL", "p.sex = 'f' AND r.country = 'A'", "r.code = p.region"]
)
def test_a_condition_that_rows_of_nulls_never_pass_makes_it_an_inner_join(shop, where):
    inner = KEPT.replace("LEFT ", "")
    asked = [f"SELECT r.code, COUNT(*) {each} WHERE {where} GROUP BY r.code" for each in (KEPT, inner)]
    assert canonical(shop, asked[0]) == canonical(shop, asked[1])


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("WHERE p.person_id IS NULL GROUP BY r.code", "A condition on p"),
        ("WHERE COALESCE(p.age, 0) < 5 GROUP BY r.code", "A condition on p"),
        ("WHERE p.age > 3 OR r.country = 'A' GROUP BY r.code", "A condition on p"),
        ("WHERE EXISTS (SELECT 1 FROM orders o WHERE o.person_id = p.person_id) GROUP BY r.code", "A condition on p"),
        ("AND r.country = 'A' GROUP BY r.code", "about r alone"),
        ("GROUP BY r.code, p.sex", "GROUP BY holds a column of p"),
        ("GROUP BY p.sex", "GROUP BY holds a column of p"),
    ],
)
def test_what_would_tell_it_from_an_inner_join_is_refused(shop, rest, said):
    with pytest.raises(QuestionRefusedError, match=said):
        rows(shop, f"SELECT COUNT(p.person_id) {KEPT} {rest}")


def test_the_first_right_join_is_a_left_join_the_other_way_round(shop):
    asked = [
        f"SELECT r.name, COUNT(p.age) FROM {each} ON p.region = r.code GROUP BY r.name"
        for each in ("regions r LEFT JOIN people p", "people p RIGHT JOIN regions r")
    ]
    assert canonical(shop, asked[0]) == canonical(shop, asked[1])
    everybody = "SELECT COUNT(*) FROM {} ON p.region = r.code"
    turned = [everybody.format(each) for each in ("people p LEFT JOIN regions r", "regions r RIGHT JOIN people p")]
    assert canonical(shop, turned[0]) == canonical(shop, turned[1])
    with pytest.raises(QuestionRefusedError, match="RIGHT JOIN"):
        rows(
            shop,
            "SELECT COUNT(age) FROM people p JOIN orders USING (person_id) RIGHT JOIN regions r ON p.region = r.code",
        )


@pytest.mark.parametrize(
    ("listed", "error"),
    [
        ("(VALUES (1), (2)) AS k(region)", InputError),  # a number is no text
        ("(VALUES ('n'), (2)) AS k(region)", InputError),
        ("(VALUES ('n'), ('s', 's')) AS k(region)", InputError),
        ("(VALUES ('n')) AS k(region, more)", InputError),
        ("(VALUES (NULL)) AS k(region)", QuestionRefusedError),
        ("(VALUES (p.region)) AS k(region)", QuestionRefusedError),
        ("(VALUES (lower('N'))) AS k(region)", QuestionRefusedError),
        ("(VALUES ((SELECT MAX(region) FROM people))) AS k(region)", QuestionRefusedError),
        (f"(VALUES ({', '.join('1' * 17)})) AS k(region)", QuestionRefusedError),
        ("UNNEST(p.name) AS k(region)", QuestionRefusedError),
        ("UNNEST([]) AS k(region)", QuestionRefusedError),
        ("UNNEST([['n']]) AS k(region)", QuestionRefusedError),
        (f"UNNEST([{','.join(['1'] * (MOST_LISTED + 1))}]) AS k(region)", QuestionRefusedError),
        ("range(1000000000000) AS k(region)", QuestionRefusedError),
        ("generate_series(DATE '0001-01-01', DATE '9999-12-31', INTERVAL 1 DAY) AS k(region)", QuestionRefusedError),
    ],
)
def test_lists_hold_constants_of_one_type(shop, listed, error):
    with pytest.raises(error):
        rows(shop, f"SELECT COUNT(*) FROM people p JOIN {listed} ON p.region = k.region")


def test_nobody_is_looked_up_by_a_list(shop):
    for join in ("ON p.person_id = k.person_id", "USING (person_id)"):
        with pytest.raises(NotAllowedError, match="who somebody is"):
            rows(shop, f"SELECT COUNT(*) FROM people p JOIN (VALUES (1), (2)) k(person_id) {join}")


def test_a_question_says_that_its_lists_are_public(shop):
    said = str(shop.ana.explain(f"SELECT k.r, COUNT(*) {LISTED} GROUP BY k.r"))
    assert "a list of 2 rows in the question, as k (public)" in said
    assert "values-" not in said
