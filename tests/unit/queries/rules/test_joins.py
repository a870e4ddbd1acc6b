"""Joins: the same integers as plain SQL where limits are wide; refused where rows would meet other people's."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from tests.shop import BUDGET, Shop, data, questions

from dalenius.errors import InputError, NotAllowedError, PolicyInvalidError, QuestionRefusedError, UnknownColumnError
from dalenius.measuring.plan import Limits

PLAIN = """
unit = "user_id"
dataset = "d"
{more}
[columns.x]
type = "integer"
bounds = [0, 10]
[contribution]
rows = 10
"""


@pytest.mark.parametrize(
    "question",
    questions(
        """
SELECT COUNT(*) FROM people p JOIN orders o ON p.user_id = o.user_id
;
SELECT COUNT(*) FROM people JOIN orders USING (user_id) WHERE age > 40 OR amount > 20
;
SELECT COUNT(*) FROM people p, orders o WHERE p.user_id = o.user_id AND p.region = o.region
;
SELECT COUNT(*) FROM people p, orders o WHERE p.user_id = o.user_id AND p.region <> o.region
;
SELECT COUNT(*) FROM people p CROSS JOIN orders o WHERE o.user_id = p.user_id AND o.amount IS NULL
;
SELECT COUNT(*) FROM orders o JOIN items i ON i.order_id = o.order_id
;
SELECT COUNT(*) FROM orders o JOIN items i ON i.order_id = o.order_id AND o.day > '2025-03-01'
;
SELECT COUNT(*) FROM people JOIN orders USING (user_id) JOIN items USING (order_id) WHERE quantity > 2
;
SELECT COUNT(*) FROM orders a JOIN orders b ON a.user_id = b.user_id AND a.day < b.day
;
SELECT COUNT(*) FROM orders a JOIN orders b USING (user_id) JOIN orders c ON b.order_id = c.order_id WHERE a.day < c.day
;
SELECT COUNT(*) FROM orders a JOIN orders b ON a.order_id = b.order_id
;
SELECT SUM(r.tax) FROM people p JOIN regions r ON p.region = r.code
;
SELECT COUNT(*) FROM people p JOIN regions r ON p.region = r.code AND r.tax > 1 WHERE r.name LIKE '%o%'
;
SELECT COUNT(*) FROM items JOIN products USING (sku)
;
SELECT COUNT(*) FROM items i, products q, orders o, regions r WHERE i.sku = q.sku AND o.order_id = i.order_id AND
  r.code = o.region AND q.cost > r.tax
;
SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) JOIN regions r ON r.code = p.region AND r.code =
  o.region
;
SELECT COUNT(*) FROM people p LEFT JOIN orders o ON p.user_id = o.user_id
;
SELECT COUNT(*) FROM people p LEFT JOIN orders o ON p.user_id = o.user_id WHERE o.user_id IS NULL
;
SELECT COUNT(o.amount) FROM people p LEFT JOIN orders o ON p.user_id = o.user_id AND o.status = 'open'
;
SELECT COUNT(*) FROM people p LEFT JOIN orders o USING (user_id) WHERE COALESCE(o.amount, 0) < 5
;
SELECT COUNT(*) FROM people p LEFT JOIN regions r ON p.region = r.code AND r.tax > 2 WHERE r.tax IS NULL
;
SELECT COUNT(r.tax) FROM people p LEFT JOIN orders o USING (user_id) LEFT JOIN regions r ON r.code = o.region
;
SELECT COUNT(*) FROM people p LEFT JOIN (SELECT * FROM orders WHERE amount > 10) o USING (user_id) WHERE o.status
  IS NULL
;
SELECT COUNT(*) FROM orders o LEFT JOIN items i USING (order_id) WHERE i.sku IS NULL
;
SELECT COUNT(*) FROM people orders JOIN orders people ON people.user_id = orders.user_id WHERE people.amount > 9
;
SELECT COUNT(*) FROM people "Ä b" JOIN orders "SELECT" ON "Ä b".user_id = "SELECT".user_id WHERE "Ä b".age > 25
;
SELECT COUNT(*) FROM PEOPLE P JOIN Orders O ON p.USER_ID = o.User_Id WHERE P.Age > 30
;
SELECT COUNT(*) FROM people p, orders o WHERE (p.user_id = o.user_id AND p.age > 40) OR (o.user_id = p.user_id AND
  o.amount > 20)
"""
    ),
)
def test_a_join_gives_the_integers_of_plain_sql(shop, question):
    plan, ((found,),) = shop.plan(question), shop.exact(question)
    assert plan.measures[0].step == 1
    assert found == shop.plain(question)[0][0]
    assert found > 0 or "IS NULL" in question


@pytest.mark.parametrize(
    "question",
    questions(
        """
SELECT p.region, COUNT(*) FROM people p JOIN orders o USING (user_id) GROUP BY p.region
;
SELECT o.region, p.smoker, COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE p.smoker IS NOT NULL AND
  p.user_id <> 5 OR FALSE GROUP BY 1, 2
;
SELECT name, COUNT(*) FROM regions JOIN orders ON code = region GROUP BY name
"""
    ),
)
def test_groups_are_those_of_plain_sql(shop, question):
    if "<> 5" in question:
        with pytest.raises(NotAllowedError, match="says who somebody is"):
            shop.plan(question)
        return
    plan, (counts,) = shop.plan(question), shop.exact(question)
    truth = {row[:-1]: row[-1] for row in shop.plain(question)}
    found = {cell: count for cell, count in zip(plan.cells, counts, strict=True) if count}
    assert found == truth


def test_a_default_stands_in_the_table_and_not_where_left_join_found_nothing(shop):
    """smoker has the default false: NULL in the file is false, a missing row is NULL."""
    joined = "FROM orders o LEFT JOIN people p ON p.user_id = o.user_id AND p.age > 40"
    assert shop.count(f"SELECT COUNT(p.smoker) {joined}") == shop.plain(f"SELECT COUNT(p.age) {joined}")[0][0]
    assert shop.count(f"SELECT COUNT(*) {joined} WHERE p.smoker IS NULL") == 27 - shop.count(
        f"SELECT COUNT(p.smoker) {joined}"
    )
    inner = "FROM people p JOIN orders o USING (user_id)"
    truth = shop.plain(f"SELECT COUNT(*) {inner} WHERE NOT COALESCE(p.smoker, FALSE)")[0][0]
    assert shop.count(f"SELECT COUNT(*) {inner} WHERE NOT p.smoker") == truth


def test_rows_without_a_unit_and_paths_that_dangle_belong_to_nobody(shop):
    assert shop.count("SELECT COUNT(*) FROM orders") == 27  # of 30
    assert shop.count("SELECT COUNT(*) FROM items") == len(shop.plain("SELECT 1 FROM items")) < 52
    for question in (
        "SELECT COUNT(*) FROM people p LEFT JOIN orders o ON p.user_id = o.user_id",  # NULL = NULL is no match
        "SELECT COUNT(*) FROM orders o LEFT JOIN people p ON p.user_id = o.user_id",
        "SELECT COUNT(*) FROM items i LEFT JOIN orders o USING (order_id)",
    ):
        assert shop.count(question) == shop.plain(question)[0][0]


def test_what_a_file_says_of_a_unit_is_compared_not_what_a_policy_makes_of_it(tmp_path):
    """Listed among the columns, with bounds that clip: two people must not become one."""
    listed = PLAIN + '[columns.user_id]\ntype = "integer"\nbounds = [0, 2]\n'
    ids = pa.table({"user_id": [1, 2, 3, 4], "x": [1, 2, 3, 4]})
    shop = Shop.of(tmp_path, {"a": (ids, listed.replace("{more}", BUDGET)), "b": (ids, listed.replace("{more}", ""))})
    assert shop.count("SELECT COUNT(*) FROM a JOIN b ON a.user_id = b.user_id") == 4
    assert shop.count("SELECT COUNT(*) FROM a JOIN b USING (user_id) WHERE a.user_id = b.user_id") == 4


# --- limits


@pytest.mark.parametrize(
    ("joined", "clip"),
    [
        ("people p JOIN orders o USING (user_id)", 7),
        ("people p JOIN orders o USING (user_id) JOIN items i USING (order_id)", 7),  # its order's key is unique
        ("orders o JOIN items i USING (order_id)", 7),
        ("orders a JOIN orders b USING (user_id)", 49),
        ("orders a JOIN orders b USING (order_id)", 7),
        ("orders a JOIN orders b USING (user_id) JOIN orders c ON b.order_id = c.order_id", 49),  # not tied to a
        ("people a JOIN people b USING (user_id)", 1),
        ("people p JOIN regions r ON p.region = r.code", 1),
        ("items i JOIN products q USING (sku)", 14),  # 'a' is there twice
        ("items i JOIN products q ON q.sku = i.sku AND q.kind = i.sku", 7),  # sku and kind together are unique
        ("orders o LEFT JOIN people p USING (user_id)", 7),
        ("people p LEFT JOIN orders o USING (user_id)", 7),
        ("orders o JOIN (SELECT user_id, MAX(day) AS d FROM orders GROUP BY user_id) t USING (user_id)", 7),
    ],
)
def test_the_limit_of_rows_is_multiplied_by_how_often_a_join_repeats_them(narrow, joined, clip):
    question = f"SELECT COUNT(*) FROM {joined}"
    plan = narrow.plan(question)
    assert plan.measures[0].clip == clip
    assert plan.measures[0].sensitivity == clip**2
    assert narrow.plan(question, Limits(rows=2, search=0)).measures[0].clip == min(2, clip)


def test_a_unit_is_clipped_to_the_limit_whatever_the_join_makes_of_its_rows(tmp_path):
    """One person with 100 orders: a self-join has 10,000 rows, of which the limit counts."""
    tables = data()
    tables["orders"] = pa.table(
        {
            "order_id": list(range(100)),
            "user_id": [1] * 100,
            "amount": [50.0] * 100,
            "status": ["open"] * 100,
            "region": ["n"] * 100,
            "day": tables["orders"]["day"].to_pylist()[:1] * 100,
            "note": ["x"] * 100,
        }
    )
    shop = Shop.protected(tmp_path, tables, rows=5)
    assert shop.count("SELECT COUNT(*) FROM orders a JOIN orders b USING (user_id)") == 25
    assert shop.count("SELECT COUNT(*) FROM people p JOIN orders b USING (user_id)") == 5
    assert (
        shop.count("SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id)")
        == 1
    )
    assert shop.count("SELECT COUNT(*) FROM orders a JOIN orders b USING (user_id)", Limits(rows=3, search=0)) == 3


def test_the_total_of_a_column_is_multiplied_as_the_rows_are(tmp_path):
    shop = Shop.protected(tmp_path, rows=50)
    once = shop.plan("SELECT SUM(o.amount) FROM people p JOIN orders o USING (user_id)").measures[0]
    assert once.clip * once.step == 1000  # the total that the policy gives, which is less than 50 rows of 100
    for column in ("a", "b"):
        many = shop.plan(f"SELECT SUM({column}.amount) FROM orders a JOIN orders b USING (user_id)").measures[0]
        assert many.clip * many.step == 1000 * 50


def test_a_join_never_uses_the_contribution_index(shop):
    for question in ("SELECT COUNT(*) FROM people JOIN orders USING (user_id)", "SELECT COUNT(*) FROM items"):
        _, reading = shop.planned(question)
        assert reading.engine(shop.curator.engines).index is None


# --- refusals

UNTIED = "does not say that they are about the same unit"


@pytest.mark.parametrize(
    ("joined", "words", "column"),
    [
        ("people p CROSS JOIN orders o", UNTIED, 42),
        ("people p, orders o", UNTIED, 32),
        ("people p JOIN orders o ON p.region = o.region", UNTIED, 36),
        ("people p JOIN orders o ON p.age = o.amount", UNTIED, 36),
        ("people p JOIN orders o ON p.user_id = o.order_id", None, 53),
        ("people p JOIN orders o ON p.user_id = o.user_id OR p.age > 3", None, 48),
        ("people p JOIN orders o USING (user_id) JOIN items i ON i.sku = p.note", UNTIED, 66),
        ("orders a JOIN orders b ON a.user_id = a.user_id", UNTIED, 36),
        ("orders a JOIN orders b ON NOT a.user_id = b.user_id", UNTIED, 36),
        ("people p LEFT JOIN orders o ON p.region = o.region", UNTIED, 41),
        ("people p LEFT JOIN orders o ON TRUE WHERE p.user_id = o.user_id", UNTIED, 41),
        ("people p JOIN regions r ON TRUE", "Nothing ties public table 'regions'", 36),
        ("people p, regions r WHERE r.tax > 3", "Nothing ties public table 'regions'", 32),
        ("people p JOIN regions r ON p.age > r.tax", "Nothing ties public table 'regions'", 36),
        ("people p JOIN regions r ON r.code = 'n'", "Nothing ties public table 'regions'", 36),
        ("regions r LEFT JOIN people p ON p.region = r.code", "counts rows of r that nobody meets", 8),
        (
            "(SELECT p.user_id, COUNT(*) AS n FROM regions r LEFT JOIN people p ON p.region = r.code GROUP BY 1) t",
            "rows of 'regions' that belong to nobody",
            60,
        ),
    ],
)
def test_a_join_of_people_with_others_is_refused(shop, joined, words, column):
    error = shop.error(f"SELECT COUNT(*) FROM {joined}")
    if words is None:
        assert isinstance(error, QuestionRefusedError | NotAllowedError)
    else:
        assert isinstance(error, QuestionRefusedError) and words in error.message
        assert error.at == (1, column)
    assert error.why and error.fix


def test_names_that_could_be_two_columns_are_refused(shop):
    error = shop.error("SELECT region, COUNT(*) FROM people p JOIN orders o USING (user_id) GROUP BY region")
    assert isinstance(error, InputError) and "in several tables of FROM" in error.message
    assert error.at == (1, 8) and "p.region" in error.fix
    error = shop.error("SELECT COUNT(*) FROM people p JOIN people P USING (user_id)")
    assert "two tables 'P' in FROM" in error.message and error.at == (1, 36)
    error = shop.error("SELECT COUNT(*) FROM people JOIN orders USING (age)")
    assert "USING (age) needs that column once on both sides" in error.message
    error = shop.error("SELECT SUM(o.aeg) FROM people p JOIN orders o USING (user_id)")
    assert isinstance(error, UnknownColumnError) and "'age'" in error.fix and error.at == (1, 12)
    error = shop.error("SELECT SUM(q.age) FROM people p JOIN orders o USING (user_id)")
    assert "no table 'q' in FROM" in error.message and "p, o" in error.why


@pytest.mark.parametrize(
    "question",
    questions(
        """
SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE p.user_id = 3
;
SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE o.order_id > 110
;
SELECT COUNT(*) FROM people p JOIN orders o ON p.user_id = o.user_id + 1
;
SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE p.user_id IN (1, 2)
;
SELECT SUM(o.order_id) FROM people p JOIN orders o USING (user_id)
;
SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE CAST(p.user_id AS VARCHAR) LIKE '1%'
;
SELECT COUNT(*) FROM people p JOIN regions r ON r.tax = p.user_id
;
SELECT COUNT(DISTINCT o.order_id) FROM people p JOIN orders o USING (user_id)
"""
    ),
)
def test_the_value_of_a_unit_or_a_key_is_not_open(shop, question):
    error = shop.error(question)
    assert isinstance(error, NotAllowedError) and "says who somebody is" in error.message
    assert error.at is not None and "compared with its like" in error.fix


@pytest.mark.parametrize("key", ["p.user_id", "o.order_id", "user_id"])
def test_groups_that_are_about_one_unit_are_refused(shop, key):
    error = shop.error(f"SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) GROUP BY {key}")
    assert isinstance(error, QuestionRefusedError) and "about one user_id each" in error.message


def test_units_can_be_counted(shop):
    question = "SELECT COUNT(DISTINCT p.user_id) FROM people p JOIN orders o USING (user_id) WHERE o.amount > 10"
    assert shop.count(question) == shop.plain(question)[0][0] > 0


# --- types


@pytest.mark.parametrize(
    ("one", "other", "fits"),
    [
        (pa.int64(), pa.int64(), True),
        (pa.int32(), pa.int64(), True),
        (pa.int8(), pa.int64(), True),
        (pa.string(), pa.string(), True),
        (pa.int64(), pa.string(), False),
        (pa.int64(), pa.float64(), False),
        (pa.uint64(), pa.int64(), True),
        (pa.decimal128(38, 0), pa.decimal128(38, 30), False),
        (pa.date32(), pa.timestamp("us"), False),
        (pa.timestamp("us"), pa.timestamp("ns"), False),
    ],
    ids=str,
)
def test_units_of_different_types_are_refused_at_protect(tmp_path, one, other, fits):
    """Compared as they lie, a conversion could fail on somebody's row."""

    def column(type_):
        if pa.types.is_decimal(type_):
            return pa.array([Decimal(1), Decimal(2)], type_)
        return pa.array([1, 2], pa.int32()).cast(pa.int64() if pa.types.is_temporal(type_) else type_).cast(type_)

    def column_of(type_):
        return pa.array([1, 2], pa.int32()).cast(type_) if type_ == pa.date32() else column(type_)

    tables = {
        "a": (pa.table({"user_id": column_of(one), "x": [1, 2]}), PLAIN.replace("{more}", BUDGET)),
        "b": (pa.table({"user_id": column_of(other), "x": [1, 2]}), PLAIN.replace("{more}", "")),
    }
    if not fits:
        with pytest.raises(PolicyInvalidError, match="of different types") as refusal:
            Shop.of(tmp_path, tables)
        assert "one type" in refusal.value.fix
        return
    shop = Shop.of(tmp_path, tables)
    for question in (
        "SELECT COUNT(*) FROM a JOIN b USING (user_id)",
        "SELECT COUNT(*) FROM a LEFT JOIN b USING (user_id)",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.user_id = a.user_id)",
        "SELECT COUNT(*) FROM a WHERE user_id NOT IN (SELECT user_id FROM b)",
        "SELECT COUNT(*) FROM (SELECT user_id, x FROM a UNION ALL SELECT user_id, x FROM b) u",
        "SELECT COUNT(*) FROM a JOIN (SELECT user_id, SUM(x) AS s FROM b GROUP BY user_id) t USING (user_id)",
        "SELECT COUNT(*) FROM (SELECT a.user_id, SUM(b.x) AS s FROM a, b WHERE a.user_id = b.user_id GROUP BY 1) t",
    ):
        assert shop.exact(question)


def test_a_key_compared_with_a_unit_is_refused_before_any_charge(tmp_path):
    tables = data()
    order_ids = pa.array([f"o{each}" for each in tables["orders"]["order_id"].to_pylist()])
    tables["orders"] = tables["orders"].set_column(0, "order_id", order_ids)
    items = [None if each is None else f"o{each}" for each in tables["items"]["order_id"].to_pylist()]
    tables["items"] = tables["items"].set_column(1, "order_id", pa.array(items))
    shop = Shop.protected(tmp_path, tables)
    assert shop.count("SELECT COUNT(*) FROM orders o JOIN items i USING (order_id)") > 0
    question = "SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE p.user_id = o.order_id"
    with pytest.raises(NotAllowedError, match="says who somebody is"):
        shop.ana.ask(question, epsilon=0.1)


# --- data sets and periods


def test_tables_of_two_data_sets_do_not_join(tmp_path):
    ids = pa.table({"user_id": [1, 2], "x": [1, 2]})
    more = pa.table({"user_id": [1, 2], "x": [3, 4]})
    other = PLAIN.replace('"d"', '"e"')
    shop = Shop.of(
        tmp_path, {"a": (ids, PLAIN.replace("{more}", BUDGET)), "b": (more, other.replace("{more}", BUDGET))}
    )
    for question in (
        "SELECT COUNT(*) FROM a JOIN b ON a.user_id = b.user_id",
        "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.user_id = b.user_id)",
        "SELECT COUNT(*) FROM (SELECT user_id FROM a UNION ALL SELECT user_id FROM b) u",
        "SELECT COUNT(*) FROM a JOIN (SELECT user_id, COUNT(*) AS n FROM b GROUP BY user_id) t USING (user_id)",
    ):
        error = shop.error(question)
        assert isinstance(error, NotAllowedError) and "not of one data set" in error.message, question
        assert error.at is not None


PERIOD = """
unit = "user_id"
dataset = "d"
{more}
[columns.x]
type = "integer"
bounds = [0, 10]
[columns.region]
type = "category"
keys = ["n", "s"]
[columns.day]
type = "date"
bounds = ["2025-01-01", "2025-03-31"]
[contribution]
rows = 10
[public]
tables = { regions = "regions.csv" }
"""


def test_budgets_per_period_join_with_public_tables_only(tmp_path):
    from datetime import date

    days = [date(2025, 1, 5), date(2025, 2, 5), date(2025, 2, 7), date(2025, 3, 5)]
    table = pa.table({"user_id": [1, 1, 2, 2], "x": [1, 2, 3, 4], "region": ["n", "s", "n", "s"], "day": days})
    budget = BUDGET.replace("[analysts", 'period = { column = "day", every = "month" }\n[analysts')
    (tmp_path / "regions.csv").write_text("code,name\nn,North\ns,South\n")
    shop = Shop.of(
        tmp_path, {"a": (table, PERIOD.replace("{more}", budget)), "b": (table, PERIOD.replace("{more}", ""))}
    )
    question = "SELECT name, COUNT(*) FROM a JOIN regions ON region = code WHERE day >= '2025-02-01' GROUP BY name"
    plan = shop.plan(question)
    assert [each[:7] for each in plan.periods] == ["2025-02", "2025-03"]
    assert sorted(shop.exact(question)[0]) == [1, 2]
    assert not shop.ana.ask(question, epsilon=1).free
    for joined in ("a JOIN b USING (user_id)", "a WHERE EXISTS (SELECT 1 FROM b WHERE b.user_id = a.user_id)"):
        error = shop.error(f"SELECT COUNT(*) FROM {joined}")
        assert isinstance(error, NotAllowedError) and "per period cannot be joined" in error.message


def test_a_column_may_have_any_name(tmp_path):
    """Names of ours inside the statement (u0, raw …, column …) are never taken for the owner's."""
    names = [
        "u0",
        "u1",
        "c0",
        "k0",
        "a0",
        "t0",
        "s0_0",
        "raw user_id",
        "column x",
        "x.y",
        'q"uote',
        "unit 0",
        "{scan}",
        "1",
    ]
    text = PLAIN
    for name in names:
        shown = name.replace('"', '\\"')
        text += f'[columns."{shown}"]\ntype = "integer"\nbounds = [0, 10]\n'
    table = pa.table({"user_id": [7, 8, 9, 7], "x": [1, 2, 3, 4], **{name: [1, 2, 3, 4] for name in names}})
    shop = Shop.of(tmp_path, {"a": (table, text.replace("{more}", BUDGET)), "b": (table, text.replace("{more}", ""))})
    for name in names:
        one = '"' + name.replace('"', '""') + '"'
        assert shop.count(f"SELECT SUM(a.{one}) FROM a JOIN b USING (user_id) WHERE b.{one} > 1") == 10, name
        inside = f"SELECT user_id, {one}, SUM({one}) AS z FROM a GROUP BY user_id, {one}"
        assert shop.count(f"SELECT SUM(z) FROM ({inside}) t WHERE {one} > 1") == 9, name
        both = f"SELECT user_id, {one} FROM a UNION ALL SELECT user_id, {one} FROM b"
        there = f"EXISTS (SELECT 1 FROM b WHERE b.user_id = t.user_id AND b.{one} > 2)"
        assert shop.count(f"SELECT SUM({one}) FROM ({both}) t WHERE {there}") == 16, name


def test_too_many_tables_are_refused(shop):
    joined = "people p0 " + " ".join(f"JOIN people p{at} ON p{at}.user_id = p0.user_id" for at in range(1, 21))
    assert "reads too many tables" in shop.error(f"SELECT COUNT(*) FROM {joined}").message
