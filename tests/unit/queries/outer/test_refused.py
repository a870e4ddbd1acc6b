# ruff: noqa: E501 (one shape, one line)
"""What is not computed from a release is refused, for nothing, and the words say what was typed and what works."""

from __future__ import annotations

import pytest

from dalenius.errors import NOTHING, DaleniusError

GROUPED = "SELECT region, COUNT(*) AS n FROM orders GROUP BY region"
PER_PERSON = "SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id"


# (the question, words that the refusal must have)
def doubled(steps, times):
    tables = [
        f"t{at + 1} AS (SELECT * FROM {', '.join(f't{at} x{one}' for one in range(times))})" for at in range(steps)
    ]
    return f"WITH t0 AS ({GROUPED}), {', '.join(tables)} SELECT 1 FROM t{steps}"


def chained(steps, first=GROUPED, last="n"):
    tables = [f"t{at + 1} AS (SELECT * FROM t{at})" for at in range(steps)]
    return f"WITH t0 AS ({first}), {', '.join(tables)} SELECT {last} FROM t{steps}"


UNSAFE = {
    "raw rows": ("SELECT amount, region FROM orders", "'amount' stands outside"),
    "all columns of rows": ("SELECT * FROM orders", "SELECT * is not supported"),
    "rows in order, a few": ("SELECT amount FROM orders ORDER BY amount DESC LIMIT 1", ""),
    "a row beside a count": ("SELECT amount, COUNT(*) FROM orders", "'amount' stands outside"),
    "who somebody is": ("SELECT user_id FROM people", ""),
    "row numbers over everybody": (
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY amount) AS k FROM orders) t WHERE k = 1",
        "ROW_NUMBER over rows of several people"),
    "row numbers within groups of many": (
        "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY region ORDER BY day) AS k FROM orders) WHERE k = 1",
        "ROW_NUMBER over rows of several people"),
    "the first row of each group": (
        "SELECT SUM(amount) FROM (SELECT DISTINCT ON (region) * FROM orders ORDER BY amount) t", "DISTINCT ON over rows"),
    "a rank among others": (
        "SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY user_id ORDER BY day) AS k FROM orders) t WHERE k = 1",
        "window function over rows"),
    "QUALIFY by everybody's rows": (
        "SELECT COUNT(*) FROM (SELECT * FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY status) = 1)",
        "ROW_NUMBER over rows of several people"),
    "a person's numbered rows that leave": (
        "SELECT amount, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) AS k FROM orders", "ROW_NUMBER over rows"),
    "keys that nobody declared": (
        "SELECT note FROM people GROUP BY note", "SELECT note, COUNT(*) FROM people GROUP BY note"),
    "rows of others by a join": (
        "SELECT COUNT(*) FROM people p JOIN orders o ON o.region = p.region", "about the same unit"),
    "rows of others by EXISTS": (
        "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.region = p.region)",
        "about the same unit"),
    "an average of all, row by row": (
        "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)", "scalar subquery"),
    "a correlated average": (
        "SELECT COUNT(*) FROM orders o WHERE amount > (SELECT AVG(amount) FROM orders i WHERE i.region = o.region)",
        "correlated subquery"),
    "a window over rows": ("SELECT region, ROW_NUMBER() OVER (ORDER BY amount) FROM orders", "ROW_NUMBER over rows"),
    "a sum over rows": ("SELECT SUM(amount) OVER () FROM orders", "window function SUM over rows"),
    "a running sum over rows": ("SELECT day, SUM(amount) OVER (ORDER BY day) FROM orders", "SUM over rows"),
    "LAG over rows": ("SELECT LAG(amount) OVER (PARTITION BY user_id ORDER BY day) FROM orders", "LAG over rows"),
    "a window per person that leaves": (
        "SELECT MAX(amount) OVER (PARTITION BY user_id) FROM orders", "window function MAX over rows"),
    "QUALIFY on rows": ("SELECT amount FROM orders QUALIFY ROW_NUMBER() OVER (ORDER BY day) = 1", "QUALIFY on rows"),
    "QUALIFY before aggregation": (
        "SELECT SUM(amount) FROM (SELECT amount FROM orders QUALIFY RANK() OVER (ORDER BY amount) = 1)",
        "window function over rows"),
    "a window before aggregation": (
        "SELECT SUM(r) FROM (SELECT RANK() OVER (ORDER BY amount) AS r FROM orders)", "window function over rows"),
    "a window in WHERE's subquery": (
        "SELECT COUNT(*) FROM orders WHERE amount IN (SELECT MAX(amount) OVER () FROM orders)", "over rows"),
    "a raw column in a window": ("SELECT region, SUM(amount) OVER () FROM orders GROUP BY region", "'amount' stands outside"),
    "a raw column to order by": (
        "SELECT region, RANK() OVER (ORDER BY day) FROM orders GROUP BY region", "'day' stands outside"),
    "a raw column to part by": (
        "SELECT region, SUM(COUNT(*)) OVER (PARTITION BY note) FROM orders GROUP BY region", "'note' stands outside"),
    "a raw column beside a window": (
        "SELECT amount, COUNT(*), RANK() OVER (ORDER BY COUNT(*)) FROM orders", "'amount' stands outside"),
    "a raw column in QUALIFY": (
        "SELECT region, COUNT(*) FROM orders GROUP BY region QUALIFY amount > RANK() OVER (ORDER BY COUNT(*))",
        "'amount' stands outside"),
    "groups of one person each": (
        "SELECT user_id, RANK() OVER (ORDER BY COUNT(*)) FROM orders GROUP BY user_id", "'user_id' names the units"),
    "an outer SELECT over persons": (f"SELECT user_id, n FROM ({PER_PERSON})", "user_id"),
    "a value of each person": (f"SELECT n FROM ({PER_PERSON}) t", "user_id"),
    "the largest of persons, by order": (f"SELECT n FROM ({PER_PERSON}) t ORDER BY n DESC LIMIT 1", "user_id"),
    "a window over persons": (f"SELECT RANK() OVER (ORDER BY n) FROM ({PER_PERSON}) t", "user_id"),
    "a person's row in WITH": (f"WITH t AS ({PER_PERSON}) SELECT * FROM t WHERE n > 3", "user_id"),
    "UNION ALL of rows": ("SELECT amount FROM orders UNION ALL SELECT age FROM people", "UNION of rows"),
    "UNION of rows with a count": ("SELECT COUNT(*) FROM orders UNION SELECT amount FROM orders", "UNION of rows"),
    "EXCEPT of rows": ("SELECT user_id FROM people EXCEPT SELECT user_id FROM orders", "EXCEPT of rows"),
    "INTERSECT of rows": ("SELECT note FROM people INTERSECT SELECT note FROM orders", "INTERSECT of rows"),
    "LIMIT in a subquery of rows": (
        "SELECT SUM(amount) FROM (SELECT amount FROM orders LIMIT 3)", "LIMIT in a subquery"),
    "LIMIT of rows in UNION": (
        f"{GROUPED} UNION ALL (SELECT region, amount FROM orders LIMIT 1)", "LIMIT on rows"),
    "DISTINCT of rows": ("SELECT DISTINCT note FROM orders", "SELECT note, COUNT(*) FROM orders GROUP BY note"),
    "DISTINCT of rows in UNION": (f"{GROUPED} UNION ALL SELECT DISTINCT note, 1 FROM orders", "SELECT DISTINCT of rows"),
    "a correlated query of rows": (
        f"SELECT region, (SELECT MAX(amount) FROM orders o WHERE o.region = t.region) FROM ({GROUPED}) t", "'t'"),
    "a correlated count": (
        f"SELECT region FROM ({GROUPED}) t WHERE n > (SELECT COUNT(*) FROM people p WHERE p.region = t.region)", "'t'"),
    "a query of rows as a value": (f"SELECT n, (SELECT amount FROM orders) FROM ({GROUPED}) t", "shows rows"),
    "EXISTS over rows": (
        f"SELECT region FROM ({GROUPED}) t WHERE EXISTS (SELECT 1 FROM people WHERE age > n)", "shows rows"),
    "IN over rows": (f"SELECT n FROM ({GROUPED}) t WHERE n IN (SELECT amount FROM orders)", "shows rows"),
    "rows joined with a release": (
        f"SELECT o.amount, t.n FROM orders o JOIN ({GROUPED}) t ON o.region = t.region", "no aggregate"),
    "rows counted by a release": (
        f"SELECT COUNT(*) FROM orders o JOIN ({GROUPED}) t ON o.region = t.region WHERE t.n > 3", "not within one unit"),
    "a lateral query": (f"SELECT * FROM ({GROUPED}) t, LATERAL (SELECT t.n) x", "LATERAL"),
    "a limit from a table": (f"SELECT n FROM ({GROUPED}) t LIMIT (SELECT MIN(age) FROM people)", "LIMIT takes a number"),
    "the clock": (f"SELECT CURRENT_DATE, n FROM ({GROUPED}) t", "cannot be used here"),
    "the time": ("SELECT region, NOW(), RANK() OVER (ORDER BY COUNT(*)) FROM orders GROUP BY region", "cannot be used"),
    "chance": (f"SELECT n + RANDOM() FROM ({GROUPED}) t", "cannot be used here"),
    "a sample": (f"SELECT n FROM ({GROUPED}) t USING SAMPLE 1", "TABLESAMPLE cannot be used here"),
    "a file": (f"SELECT n, content FROM ({GROUPED}) t, read_text('/etc/passwd') f", "files and functions are never read"),
    "a file as a table": (f"SELECT * FROM ({GROUPED}) t JOIN '/etc/passwd' f ON true", ""),
    "a system table": (f"SELECT t.n FROM ({GROUPED}) t JOIN duckdb_settings() s ON true", ""),
    "another schema": (f"SELECT t.n FROM ({GROUPED}) t JOIN main.orders o ON true", ""),
    "a setting": (f"SELECT current_setting('threads'), n FROM ({GROUPED}) t", "current_setting cannot be used here"),
    "a variable": (f"SELECT getvariable('copy'), n FROM ({GROUPED}) t", "getvariable cannot be used here"),
    "SQL in a text": (f"SELECT * FROM ({GROUPED}) t, query('SELECT 1') q", "files and functions are never read"),
    "a recursive query": (
        "WITH RECURSIVE t AS (SELECT COUNT(*) AS n FROM orders UNION ALL SELECT n - 1 FROM t WHERE n > 0) SELECT * FROM t",
        "RECURSIVE"),
    "two names alike": (
        f"WITH t AS ({GROUPED}) SELECT * FROM (WITH t AS (SELECT 1 AS n) SELECT n FROM t) x, t", "named 't'"),
    "a release by its hidden name": (f'SELECT * FROM ({GROUPED}) t JOIN "release 0" r ON true', ""),
    "copies by their hidden name": (f'SELECT * FROM ({GROUPED}) t JOIN "release 0 copies" r ON true', ""),
    "a table that is not there": (f"WITH t AS ({GROUPED}) SELECT n FROM tt", "no table 'tt'"),
    "a join with nothing": (f"WITH t AS ({GROUPED}) SELECT n NATURAL JOIN t", "cannot stand here"),
    "a pivot": (f"SELECT * FROM ({GROUPED}) t PIVOT (SUM(n) FOR region IN (SELECT 'n'))", "PIVOT cannot be used here"),
    "a column that is not there": (f"SELECT nn FROM ({GROUPED}) t", "There is no column 'nn'. It is not among what is released and joined here: region, n."),
    "a column of another table": (f"SELECT t.amount FROM ({GROUPED}) t", "There is no column 'amount'"),
    "a function of the wrong type": (f"SELECT MONTH(n) FROM ({GROUPED}) t", "engine does not take this question"),
    "different numbers of columns": (f"{GROUPED} UNION ALL SELECT COUNT(*) FROM orders", "different numbers of columns"),
    "columns that double": (doubled(12, 2), "more than 500 columns"),
    "columns that double, many times": (doubled(7, 4), "more than 500 columns"),
    "many wide queries": (
        f"WITH t0 AS ({GROUPED}), " + ", ".join(f"t{at + 1} AS (SELECT * FROM t{at} x, t{at} y)" for at in range(6)) +
        " SELECT 1 FROM (" + " UNION ALL ".join(["SELECT * FROM t6 a, t6 b"] * 40) + ")", "too long once it is written out"),
    "columns by a pattern": (f"SELECT COLUMNS('n') FROM ({GROUPED}) t", "COLUMNS and numbers of columns"),
    "all columns by a pattern": (f"SELECT COLUMNS(*) + 1 FROM (SELECT n FROM ({GROUPED})) t", "COLUMNS and numbers of columns"),
    "a column by its number": (f"SELECT #1 FROM ({GROUPED}) t", "COLUMNS and numbers of columns"),
    "UNION BY NAME of other names": (
        f"WITH t AS ({GROUPED}) SELECT region, n FROM t UNION ALL BY NAME SELECT n, region AS r FROM t",
        "UNION BY NAME have different columns"),
    "a row as a value": (f"WITH t AS ({GROUPED}) SELECT t FROM t", "There is no column 't'"),
    "a row in a function": (f"WITH t AS ({GROUPED}) SELECT region, COUNT(t) FROM t GROUP BY region", "There is no column 't'"),
    "a row in a value": (f"WITH t AS ({GROUPED}) SELECT (SELECT COUNT(u) FROM t u) FROM t", "There is no column 'u'"),
    "a row around a value": (
        f"WITH t AS ({GROUPED}) SELECT (SELECT COUNT(*) FROM regions WHERE t IS NULL) FROM t", "There is no column 't'"),
    "a name that is only around a value": (
        f"WITH t AS ({GROUPED}) SELECT (SELECT MAX(tax) FROM regions WHERE tax > n) FROM t",
        "write t.x for a column x of a table t around it"),
    "a number of no column": (f"SELECT n FROM ({GROUPED}) t ORDER BY 2", "ORDER BY 2 means no column"),
    "a number of no column, of groups": (f"SELECT n FROM ({GROUPED}) t GROUP BY 1, 3", "GROUP BY 3 means no column"),
    "a number of no column, of UNION": (
        f"SELECT n FROM ({GROUPED}) t UNION ALL SELECT n FROM ({GROUPED}) t ORDER BY 2", "ORDER BY 2 means no column"),
    "a number of no column, beside a window": (
        "SELECT region, RANK() OVER (ORDER BY COUNT(*)) FROM orders GROUP BY region ORDER BY 3", "ORDER BY 3 means no"),
    "what tells rows apart": (f'SELECT n FROM ({GROUPED}) t ORDER BY "row id"', "no column 'row id'"),
    "FETCH WITH TIES": (f"SELECT n FROM ({GROUPED}) t ORDER BY n FETCH FIRST 2 ROWS WITH TIES", "QUALIFY RANK() OVER"),
    "FETCH PERCENT": (f"SELECT n FROM ({GROUPED}) t ORDER BY n FETCH FIRST 50 PERCENT ROWS ONLY", "LIMIT 50 PERCENT"),
    "a clause in a later part": (
        f"{GROUPED} UNION ALL SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 2) status, COUNT(*) FROM orders GROUP BY 1",
        "later part of UNION"),
    "bounds of a window": (
        "SELECT region, SUM(SUM(amount), contribution_bounds_per_group => (0, 9)) OVER () FROM orders GROUP BY region",
        "contribution_bounds_per_group has no place here"),
    "a name of WITH for another, 400 times": (chained(400), "nested too deeply"),
    "a name of rows for another, 400 times": (chained(400, "SELECT * FROM orders", "COUNT(*)"), "nested too deeply"),
    "a name in two sources": (f"SELECT n FROM ({GROUPED}) a JOIN ({GROUPED}) b USING (region)", "Write a.n"),
    "a table that is not in FROM": (f"SELECT a.n FROM ({GROUPED}) b", "no table 'a' in this FROM"),
    "a window in WHERE": (f"SELECT n FROM ({GROUPED}) t WHERE RANK() OVER (ORDER BY n) = 1", "cannot stand in WHERE"),
    "a window's name in HAVING": (
        "SELECT region, RANK() OVER (ORDER BY COUNT(*)) AS r FROM orders GROUP BY region HAVING r = 1", "Write QUALIFY"),
    "a window function alone": (f"SELECT ROW_NUMBER() FROM ({GROUPED}) t", "ROW_NUMBER stands without OVER"),
    "QUALIFY without a window": (f"SELECT n FROM ({GROUPED}) t QUALIFY n > 3", "QUALIFY stands without a window"),
    "a lambda": (f"SELECT list_transform([n], lambda x: x + 1) FROM ({GROUPED}) t", "lambda is not supported"),
    "a column that is not grouped": (f"SELECT region, SUM(n) FROM ({GROUPED}) t", "neither grouped nor aggregated"),
    "a function of whole numbers, of an average": (
        "SELECT region, AVG(amount) << 1, RANK() OVER (ORDER BY region) FROM orders GROUP BY region",
        "engine does not take this question"),
    "a function of whole numbers, of halves": (
        "SELECT region, s << 1 FROM (SELECT region, SUM(amount) AS s FROM orders GROUP BY region)",
        "engine does not take this question"),
    "an error that is good enough": (f"SELECT MAX(n) FROM ({GROUPED}) t", "error cannot be asked for"),
}  # fmt: skip


def test_there_are_as_many_unsafe_shapes_as_were_promised():
    assert len(UNSAFE) >= 64


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", UNSAFE)
def test_it_is_refused_for_nothing(shop, charged, name):
    question, words = UNSAFE[name]
    before = charged()
    options = {"error": 5.0} if "good enough" in name else {"epsilon": 0.7}
    with pytest.raises(DaleniusError) as caught:
        shop.ana.ask(question, **options)
    assert charged() == before and caught.value.charge == NOTHING
    assert words in str(caught.value), str(caught.value)
    assert "released " not in caught.value.message


@pytest.mark.usefixtures("inside")
def test_the_words_say_what_works(shop):
    with pytest.raises(DaleniusError, match="Aggregate first: GROUP BY with COUNT") as caught:
        shop.ana.ask("SELECT region, ROW_NUMBER() OVER (ORDER BY amount) FROM orders", epsilon=0.7)
    assert caught.value.at is not None and (caught.value.at.line, caught.value.at.column) == (1, 16)
