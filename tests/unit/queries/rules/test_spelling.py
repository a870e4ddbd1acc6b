"""What people type elsewhere is read as what it means here: both have one plan."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from dalenius.errors import QuestionRefusedError, SqlSyntaxError
from dalenius.queries.rules.spelling.quoting import requote

P, O = "FROM people", "FROM orders"  # noqa: E741 (two letters would break the lines)
CLAUSES = {
    "SELECT COUNT(*) FROM main.people": f"SELECT COUNT(*) {P}",
    "SELECT COUNT(*) FROM a.b.people p WHERE p.age > 3": f"SELECT COUNT(*) {P} WHERE age > 3",
    "SELECT main.people.region, COUNT(*) FROM main.people GROUP BY main.people.region": f"SELECT region, COUNT(*) {P} "
    "GROUP BY region",
    "SELECT COUNT(*) FROM `people`": f"SELECT COUNT(*) {P}",
    "SELECT COUNT(*) FROM `proj-1.shop.people`": f"SELECT COUNT(*) {P}",
    "SELECT COUNT(*) AS [how many] FROM [main].[people]": f'SELECT COUNT(*) AS "how many" {P}',
    f"SELECT TOP 2 region, COUNT(*) AS n {P} GROUP BY region ORDER BY n": f"SELECT region, COUNT(*) AS n {P} "
    "GROUP BY region ORDER BY n LIMIT 2",
    f"SELECT TOP (2) region, COUNT(*) {P} GROUP BY region": f"SELECT region, COUNT(*) {P} GROUP BY region LIMIT 2",
    f"SELECT region, COUNT(*) {P} GROUP BY region FETCH FIRST 2 ROWS ONLY": f"SELECT region, COUNT(*) {P} "
    "GROUP BY region LIMIT 2",
    "SELECT COUNT(*) FROM (people p JOIN orders o ON p.user_id = o.user_id)": "SELECT COUNT(*) FROM people p "
    "JOIN orders o ON p.user_id = o.user_id",
    "SELECT COUNT(*) FROM people p JOIN (orders o JOIN regions r ON o.region = r.code) ON p.user_id = o.user_id": (
        "SELECT COUNT(*) FROM people p JOIN orders o ON p.user_id = o.user_id JOIN regions r ON o.region = r.code"
    ),
    "SELECT COUNT(*) FROM orders NATURAL JOIN people": "SELECT COUNT(*) FROM orders JOIN people "
    "USING (user_id, region, note)",
    f"SELECT region, smoker, COUNT(*) {P} GROUP BY region, smoker WITH ROLLUP": f"SELECT region, smoker, COUNT(*) {P} "
    "GROUP BY ROLLUP (region, smoker)",
    "SELECT COUNT(*) FROM people WITH (NOLOCK)": f"SELECT COUNT(*) {P}",
    f"SELECT region, AVG(age) AS age {P} GROUP BY region HAVING age > 3": f"SELECT region, AVG(age) AS age {P} "
    "GROUP BY region HAVING AVG(age) > 3",
}
ITEMS = {  # of SELECT, over people
    "COUNT(user_id)": "COUNT(*)",
    "COUNT_BIG(*)": "COUNT(*)",
    "COUNT(DISTINCT CASE WHEN age > 3 THEN user_id END)": "COUNT(DISTINCT user_id) FILTER (WHERE age > 3)",
    "COUNT(DISTINCT IF(age > 3, user_id, NULL))": "COUNT(DISTINCT user_id) FILTER (WHERE age > 3)",
    "APPROX_COUNT_DISTINCT(age)": "COUNT(DISTINCT age)",
    "VAR(age)": "VAR_SAMP(age)",
    "STDEVP(age)": "STDDEV_POP(age)",
    "ANON_SUM(age)": "SUM(age)",
    "ANON_COUNT(DISTINCT user_id)": "COUNT(DISTINCT user_id)",
    "APPROX_QUANTILES(age, 4)[OFFSET(1)]": "QUANTILE_CONT(age, 0.25)",
    "SUM(ZEROIFNULL(age))": "SUM(COALESCE(age, 0))",
    "SUM(NULLIFZERO(age))": "SUM(NULLIF(age, 0))",
    "SAFE_DIVIDE(SUM(age), COUNT(*))": "SUM(age) / COUNT(*)",
    "SUM(DIV(age, 10))": "SUM(age // 10)",
    "SUM(TRUNC(age / 3, 1))": "SUM(TRUNC(age / 3 * 10) / 10)",
    "SUM(SQUARE(age))": "SUM(POWER(age, 2))",
    "SAFE.SUM(age)": "SUM(age)",
    "REGR_COUNT(age, age)": "COUNT(age)",
}
CONDITIONS = {  # over orders
    "smoker = 1": "smoker = TRUE",
    "smoker <> 0": "smoker <> FALSE",
    "smoker IN (1, 0)": "smoker IN (TRUE, FALSE)",
}
VALUES = {  # keys of orders
    "ISNULL(note, 'x')": "COALESCE(note, 'x')",
    "NVL2(note, 'a', 'b')": "CASE WHEN note IS NULL THEN 'b' ELSE 'a' END",
    "DECODE(status, 'open', 1, 2)": "CASE WHEN status = 'open' THEN 1 ELSE 2 END",
    "DECODE(status, NULL, 1, 2)": "CASE WHEN status IS NULL THEN 1 ELSE 2 END",
    "CHOOSE(MONTH(day), 'a', 'b')": "CASE MONTH(day) WHEN 1 THEN 'a' WHEN 2 THEN 'b' END",
    "RANGE_BUCKET(MONTH(day), [3, 6])": "CASE WHEN MONTH(day) < 3 THEN 0 WHEN MONTH(day) < 6 THEN 1 "
    "WHEN MONTH(day) >= 6 THEN 2 END",
    "DATE_TRUNC(day, MONTH)": "DATE_TRUNC('month', day)",
    "DATE_TRUNC(orders.day, ISOWEEK)": "DATE_TRUNC('week', day)",
    "DATE_DIFF(day, DATE '2025-01-01', MONTH)": "DATE_DIFF('month', DATE '2025-01-01', day)",
    "DATEDIFF(month, '2025-01-01', day)": "DATE_DIFF('month', DATE '2025-01-01', day)",
    "DATE_ADD(day, INTERVAL 1 MONTH)": "day + INTERVAL 1 MONTH",
    "DATE_SUB(day, INTERVAL 1 MONTH)": "day - INTERVAL 1 MONTH",
    "DATEADD(mm, -1, day)": "day - INTERVAL 1 MONTH",
    "DATEPART(yyyy, day)": "YEAR(day)",
    "DATEPART(weekday, day)": "EXTRACT(dow FROM day) + 1",
    "DATENAME(year, day)": "CAST(YEAR(day) AS VARCHAR)",
    "EXTRACT(ISOYEAR FROM day)": "YEAR(DATE_TRUNC('week', day) + INTERVAL 3 DAY)",
    "LAST_DAY(day)": "DATE_TRUNC('month', day) + INTERVAL 1 MONTH - INTERVAL 1 DAY",
    "EOMONTH(day)": "LAST_DAY(day)",
    "TO_CHAR(day, 'YYYY-MM')": "STRFTIME(day, '%Y-%m')",
    "TO_CHAR(day, 'Mon')": "STRFTIME(day, '%b')",
    "FORMAT(day, 'dd.MM.yyyy')": "STRFTIME(day, '%d.%m.%Y')",
    "FORMAT_DATE('%Y-%m', day)": "STRFTIME(day, '%Y-%m')",
    "DATE_FORMAT(day, '%Y-%m')": "STRFTIME(day, '%Y-%m')",
    "STRFTIME('%Y', day)": "STRFTIME(day, '%Y')",
    "day = MAKE_DATE(2025, 2, 3)": "day = DATE '2025-02-03'",
    "day = DATE(2025, 2, 3)": "day = DATE '2025-02-03'",
    "CONVERT(varchar, day)": "CAST(day AS VARCHAR)",
    "note LIKE '5!%%' ESCAPE '!'": "STARTS_WITH(note, '5%')",
    "note LIKE '%!_%' ESCAPE '!'": "CONTAINS(note, '_')",
    "note NOT LIKE '%!_' ESCAPE '!'": "NOT ENDS_WITH(note, '_')",
    "note LIKE 'a_b' ESCAPE '!'": "note LIKE 'a_b'",
    "status = ANY (ARRAY['open', 'x'])": "status IN ('open', 'x')",
    "(status, region) IN (('open', 'n'))": "status = 'open' AND region = 'n'",
    "status IN UNNEST(['open'])": "status IN ('open')",
    "BTRIM(note)": "TRIM(note)",
    "INITCAP(status)": "CASE WHEN status = 'open' THEN 'Open' WHEN status = 'done' THEN 'Done' ELSE status END",
    "INITCAP(status, 'e')": "CASE WHEN status = 'open' THEN 'OpeN' WHEN status = 'done' THEN 'Done' ELSE status END",
    "note = N'x'": "note = 'x'",
    "status || YEAR(day)": "status || CAST(YEAR(day) AS VARCHAR)",
    "CONCAT(status, 1)": "CONCAT(status, '1')",
    "status + '/' + region": "status || '/' || region",
}


@pytest.mark.parametrize(("typed", "meant"), CLAUSES.items(), ids=list(CLAUSES))
def test_a_clause_in_other_words_is_the_same_question(shop, typed, meant):
    assert shop.key(typed) == shop.key(meant)


@pytest.mark.parametrize(("typed", "meant"), ITEMS.items(), ids=list(ITEMS))
def test_an_aggregate_in_other_words_is_the_same_question(shop, typed, meant):
    assert shop.key(f"SELECT {typed} {P}") == shop.key(f"SELECT {meant} {P}")


@pytest.mark.parametrize(("typed", "meant"), CONDITIONS.items(), ids=list(CONDITIONS))
def test_a_condition_in_other_words_is_the_same_question(shop, typed, meant):
    assert shop.key(f"SELECT COUNT(*) {P} WHERE {typed}") == shop.key(f"SELECT COUNT(*) {P} WHERE {meant}")


@pytest.mark.parametrize(("typed", "meant"), VALUES.items(), ids=list(VALUES))
def test_a_value_in_other_words_is_the_same_question(shop, typed, meant):
    asked, understood = (f"SELECT {each} AS k, COUNT(*) {O} GROUP BY k" for each in (typed, meant))
    assert shop.plan(asked).question.keys == shop.plan(understood).question.keys


@pytest.mark.parametrize(
    ("asked", "words"),
    {
        f"SELECT TOP 2 WITH TIES region, COUNT(*) {P} GROUP BY region": "WITH TIES",
        f"SELECT TOP 50 PERCENT region, COUNT(*) {P} GROUP BY region": "PERCENT",
        "WITH people AS (SELECT * FROM people WHERE age > 3) SELECT COUNT(*) FROM main.people": "schema",
        f"SELECT COUNT(*) {O} WHERE day = MAKE_DATE(YEAR(day), 1, 1)": "MAKE_DATE",
        "SELECT COUNT(*) FROM products NATURAL JOIN regions": "NATURAL",
    }.items(),
)
def test_what_would_mean_something_else_is_not_rewritten(shop, asked, words):
    error = shop.error(asked)
    assert isinstance(error, QuestionRefusedError | SqlSyntaxError), error
    assert words in f"{error.message} {error.fix}"


def test_a_mistake_is_still_pointed_at_where_it_stands(shop):
    error = shop.error("SELECT [region], COUNT(*) FROM `people`\nWHERE [amuont] > 3 GROUP BY 1")
    assert error.at == (2, 7)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT '[a] `b`'",
        'SELECT "[a]"',
        "SELECT 1 -- [a] `b`",
        "SELECT x[y]",
        "SELECT [1]",
        "SELECT $$[a]$$",
        "SELECT e'\\'[a]'",
        "/* /* */ ' */ SELECT '[a]'",
    ],
)
def test_texts_names_and_remarks_keep_their_quotes(text):
    assert requote(text) == text


def test_weeks_that_begin_on_another_day_are_not_taken_for_ours(shop):
    assert shop.error(f"SELECT DATE_TRUNC(day, WEEK) AS w, COUNT(*) {O} GROUP BY w").message


def test_units_of_time_in_quotes_are_never_taken_for_columns(shop):
    """DATE_TRUNC('day', month), where month is a name of a subquery and day a column."""
    inner = f"(SELECT user_id, day, DATE_TRUNC('month', day) AS month {O}) t"
    truncated = shop.plan(f"SELECT DATE_TRUNC('day', month) AS k, COUNT(*) FROM {inner} GROUP BY k").question.keys
    assert (
        truncated
        == shop.plan(f"SELECT DATE_TRUNC('day', t.month) AS k, COUNT(*) FROM {inner} GROUP BY k").question.keys
    )
    asked = f"SELECT DATE_DIFF('day', day, month) AS k, COUNT(*) FROM {inner} GROUP BY k"
    assert shop.plan(asked).question.keys == shop.plan(asked.replace("day, month", "t.day, t.month")).question.keys


def test_texts_of_digits_are_added_as_numbers(shop):
    assert shop.key(f"SELECT COUNT(*) {P} WHERE age > '5' + '3'") == shop.key(f"SELECT COUNT(*) {P} WHERE age > 8")


def test_a_name_in_a_subquery_of_having_is_a_column(shop):
    public = "(SELECT tax FROM regions WHERE code = 'n')"
    asked = f"SELECT region, COUNT(*) AS tax {P} GROUP BY region HAVING COUNT(*) > {public}"
    assert shop.plan(asked).question.having == shop.plan(asked.replace("AS tax", "AS n")).question.having


def test_texts_that_are_joined_are_read_once(shop):
    started = time.perf_counter()
    shop.plan(f"SELECT {' || '.join(['LEFT(note, 1)'] * 25)} = 'x' AS k, COUNT(*) FROM orders GROUP BY k")
    assert time.perf_counter() - started < 5


def test_a_format_with_many_names_is_refused(shop):
    started = time.perf_counter()
    for format_ in ("%A" * 60, "%A%B%a%b%A"):
        error = shop.error(f"SELECT STRFTIME(day, '{format_}') AS k, COUNT(*) FROM orders GROUP BY k")
        assert error.fix
    assert time.perf_counter() - started < 2
    assert shop.plan("SELECT STRFTIME(day, '%A, %d %B') AS k, COUNT(*) FROM orders GROUP BY k").keys


GROWING = {
    "CBRT": "CBRT(" * 30 + "age" + ")" * 30,
    "LPAD": "LPAD(" * 15 + "note" + ", 3, '0')" * 15,
    "AGE": "YEAR(AGE(CAST(" * 8 + "day" + " AS VARCHAR), day))" * 8,
    "CONCAT_WS": "CONCAT_WS('-', " * 15 + "note" + ", note)" * 15,
    "DECODE": "DECODE(" * 8 + "age" + ", 1, 2, 3, 4, 5, 6, 7)" * 8,
    "RANGE_BUCKET": f"RANGE_BUCKET({' + '.join(['age'] * 50)}, [{', '.join(map(str, range(2000)))}])",
    "IN": f"(({' + '.join(['age'] * 50)}, note) IN ({', '.join(['(1, 2)'] * 2000)}))",
}


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_by_being_put_in_other_words_is_refused_at_once(shop, name):
    started = time.perf_counter()
    error = shop.error(f"SELECT COUNT(*) FROM people, orders WHERE {GROWING[name]} = 3")
    assert time.perf_counter() - started < 1
    assert error.fix
    if name in {"CBRT", "IN", "RANGE_BUCKET"}:
        assert "too involved" in error.message


def test_an_alias_that_having_names_often_is_not_put_in_without_end(shop):
    summed, named = " + ".join(["SUM(age)"] * 50), " AND ".join(["age > 1"] * 60)
    question = f"SELECT region, {summed} AS age FROM people GROUP BY region HAVING {named}"
    assert "too involved" in shop.error(question).message


KEPT = {  # columns of HAVING that are keys, or in one, though an aggregate has their name
    "SELECT age // 10 AS d, AVG(age) AS age FROM people GROUP BY age // 10 HAVING age // 10 > 3": "d > 3",
    "SELECT age // 10 AS d, AVG(age) AS age FROM people GROUP BY d HAVING age // 10 > 3": "d > 3",
    "SELECT age // 10 AS d, AVG(age) AS age FROM people GROUP BY 1 HAVING age // 10 > 3": "d > 3",
    "SELECT age // 10 AS d, AVG(age) AS age FROM people GROUP BY ALL HAVING age // 10 > 3": "d > 3",
}


@pytest.mark.parametrize("typed", KEPT)
def test_a_column_of_a_key_is_left_alone_in_having(shop, typed):
    start = typed.partition(" HAVING")[0]
    assert shop.plan(typed).question == shop.plan(f"{start} HAVING {KEPT[typed]}").question


def test_a_column_of_a_key_is_left_alone_in_having_with_subtotals(shop):
    start = "SELECT smoker, COUNT(*) AS region FROM people GROUP BY {} HAVING region = 'north'"
    for keys in ("ROLLUP (region, smoker)", "CUBE (region, smoker)", "GROUPING SETS ((region, smoker), (region))"):
        question = start.format(keys)
        other = shop.plan(question.replace("AS region", "AS n"))
        assert shop.plan(question).question.having == other.question.having


def test_a_name_of_a_subquery_is_no_unit_of_time(shop):
    inner = "(SELECT day AS month, note AS day FROM orders) o"
    found = shop.plan(f"SELECT DATE_TRUNC(day, month) AS k, COUNT(*) FROM {inner} GROUP BY k")
    quoted = shop.plan(f"SELECT DATE_TRUNC('day', month) AS k, COUNT(*) FROM {inner} GROUP BY k")
    assert replace(found.question, places={}) == replace(quoted.question, places={})
    month = shop.plan("SELECT DATE_TRUNC(day, MONTH) AS month, COUNT(*) FROM orders GROUP BY month")
    known = shop.plan("SELECT DATE_TRUNC('month', day) AS month, COUNT(*) FROM orders GROUP BY month")
    assert replace(month.question, places={}) == replace(known.question, places={})


REFUSED = {
    "CONVERT(varchar(30), day, 999) = 'x'": "FORMAT(d, 'yyyy-MM-dd')",
    "CAST(at AS TIME)::VARCHAR = 'x'": "STRFTIME(t, '%H:%M')",
    "YEAR(AGE(at, TIMESTAMP '2024-01-01 12:00:00')) > 1": "CAST(t AS DATE)",
    "YEAR(AGE(day, '2024-01-01 12:00:00')) > 1": "CAST(t AS DATE)",
}


@pytest.mark.parametrize("condition", REFUSED)
def test_what_would_be_counted_otherwise_is_refused_with_a_way(shop, condition):
    assert REFUSED[condition] in shop.error(f"SELECT COUNT(*) FROM orders WHERE {condition}").fix


def test_a_place_in_a_list_says_where_it_counts_from(shop):
    assert "[OFFSET(1)]" in shop.error(f"SELECT APPROX_QUANTILES(age, 4)[1] {P}").fix
    assert shop.error(f"SELECT APPROX_QUANTILES(age, 4)[OFFSET()] {P}").fix


@pytest.mark.parametrize(
    "condition",
    [
        "note || 1e3 = 'x'",
        "note || 007 = 'x'",
        "CONCAT(note, 1e3) = 'x'",
        "day > MAKE_DATE(20240, 1, 1)",
        "day > MAKE_DATE(2024, 12345, 1)",
        "TO_CHAR(day, 'YYYY\"%Y\"') = 'x'",
        "TRUNC(LENGTH(note), 1, 2) > 1",
    ],
)
def test_what_would_mean_another_thing_is_refused(shop, condition):
    assert shop.error(f"SELECT COUNT(*) FROM orders WHERE {condition}").fix


def test_a_schema_in_backquotes_before_a_name_of_with_is_refused(shop):
    start = "WITH people AS (SELECT * FROM orders) SELECT COUNT(*) FROM"
    for table in ("main.people", "`main.people`", "`a.b.people`"):
        assert "name of WITH" in shop.error(f"{start} {table}").message
    assert shop.key("SELECT COUNT(*) FROM `a.b.people`") == shop.key(f"SELECT COUNT(*) {P}")
