"""H11: every shape of SQL that could carry a person's value out is refused before any charge, with a way out.

What is not refused (HAVING, ORDER BY, LIMIT …) passes the neighbour test with a victim of 500 rows: the integers before
noise move by at most what the plan says, and the rest is computed from noisy numbers only.
"""

from __future__ import annotations

import pytest
from tests.attack.hostile import (
    found_on,
    integers_by,
    integers_of,
    moved,
    nothing_charged,
    people,
    plan_of,
    protected,
    weighs_too_much,
    weights_of,
)

from dalenius.errors import NOTHING, DaleniusError, NotAllowedError, QuestionRefusedError, SqlSyntaxError
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.queries.answering import Answer

# Shapes that are refused as such: sql.refused, exit 3.
REFUSED = {
    "a raw column": "SELECT age FROM visits",
    "all columns": "SELECT * FROM visits",
    "all columns of the table": "SELECT v.* FROM visits v",
    "all but one": "SELECT * EXCLUDE (age) FROM visits",
    "columns by pattern": "SELECT COLUMNS('a.*') FROM visits",
    "from first": "FROM visits",
    "a raw column beside a count": "SELECT age, COUNT(*) FROM visits",
    "a raw column in arithmetic": "SELECT COUNT(*) + age FROM visits",
    "a raw column in HAVING": "SELECT region, COUNT(*) FROM visits GROUP BY region HAVING age > 3",
    "a raw column in ORDER BY": "SELECT region, COUNT(*) FROM visits GROUP BY region ORDER BY age",
    "a raw column in ORDER BY, without groups": "SELECT COUNT(*) FROM visits ORDER BY amount",
    "a function of no key": "SELECT UPPER(note), COUNT(*) FROM visits GROUP BY region",
    "no aggregate": "SELECT note FROM visits GROUP BY note",
    "only constants": "SELECT 1 FROM visits",
    "ARG_MAX": "SELECT ARG_MAX(note, amount) FROM visits",
    "ARG_MIN": "SELECT ARG_MIN(note, amount) FROM visits",
    "FIRST": "SELECT FIRST(note) FROM visits",
    "LAST": "SELECT LAST(note) FROM visits",
    "ANY_VALUE": "SELECT ANY_VALUE(note) FROM visits",
    "MODE": "SELECT MODE(note) FROM visits",
    "LIST": "SELECT LIST(note) FROM visits",
    "ARRAY_AGG": "SELECT ARRAY_AGG(note) FROM visits",
    "STRING_AGG": "SELECT STRING_AGG(note, ',') FROM visits",
    "GROUP_CONCAT": "SELECT GROUP_CONCAT(note) FROM visits",
    "HISTOGRAM": "SELECT HISTOGRAM(note) FROM visits",
    "BOOL_OR": "SELECT BOOL_OR(smoker) FROM visits",
    "BIT_XOR": "SELECT BIT_XOR(age) FROM visits",
    "PRODUCT": "SELECT PRODUCT(age) FROM visits",
    "ENTROPY": "SELECT ENTROPY(age) FROM visits",
    "a scalar subquery of rows": "SELECT COUNT(*), (SELECT age FROM visits) FROM visits",
    "a scalar subquery in WHERE": "SELECT COUNT(*) FROM visits WHERE age = (SELECT MAX(age) FROM visits)",
    "a correlated subquery": "SELECT COUNT(*) FROM visits v WHERE 1 < (SELECT SUM(1) FROM visits w WHERE age = v.age)",
    "EXISTS": "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.age = v.age + 1)",
    "IN with a subquery": "SELECT COUNT(*) FROM visits WHERE age IN (SELECT age FROM visits)",
    "ANY with a subquery": "SELECT COUNT(*) FROM visits WHERE age > ANY (SELECT age FROM visits)",
    "ALL with a subquery": "SELECT COUNT(*) FROM visits WHERE age > ALL (SELECT age FROM visits)",
    "a subquery in FROM with a limit": "SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 1) v",
    "a subquery in LIMIT": "SELECT COUNT(*) FROM visits LIMIT (SELECT MIN(age) FROM visits)",
    "a subquery in OFFSET": "SELECT COUNT(*) FROM visits LIMIT 1 OFFSET (SELECT MIN(age) FROM visits)",
    "a CTE with a window": "WITH v AS (SELECT COUNT(*) OVER () AS n FROM visits) SELECT SUM(n) FROM v",
    "a recursive CTE": "WITH RECURSIVE v AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM v) SELECT COUNT(*) FROM v",
    "a window": "SELECT COUNT(*) OVER () FROM visits",
    "a window with order": "SELECT SUM(amount) OVER (ORDER BY day) FROM visits",
    "a window by name": "SELECT COUNT(*) OVER w FROM visits WINDOW w AS (PARTITION BY age)",
    "ROW_NUMBER": "SELECT ROW_NUMBER() OVER (ORDER BY age), COUNT(*) FROM visits",
    "LAG": "SELECT LAG(age) OVER (ORDER BY day) FROM visits",
    "QUALIFY": "SELECT age FROM visits QUALIFY ROW_NUMBER() OVER () = 1",
    "UNION": "SELECT COUNT(*) FROM visits UNION SELECT age FROM visits",
    "UNION ALL": "SELECT COUNT(*) FROM visits UNION ALL SELECT age FROM visits",
    "INTERSECT": "SELECT COUNT(*) FROM visits INTERSECT SELECT age FROM visits",
    "EXCEPT": "SELECT COUNT(*) FROM visits EXCEPT SELECT age FROM visits",
    "a self-join": "SELECT COUNT(*) FROM visits a JOIN visits b ON a.age = b.age",
    "a comma join": "SELECT COUNT(*) FROM visits a, visits b",
    "a cross join": "SELECT COUNT(*) FROM visits CROSS JOIN visits b",
    "a natural full join": "SELECT COUNT(*) FROM visits NATURAL FULL JOIN visits b",
    "a semi join": "SELECT COUNT(*) FROM visits SEMI JOIN visits b USING (age)",
    "an anti join": "SELECT COUNT(*) FROM visits ANTI JOIN visits b USING (age)",
    "a positional join": "SELECT COUNT(*) FROM visits POSITIONAL JOIN visits b",
    "an ASOF join": "SELECT COUNT(*) FROM visits a ASOF JOIN visits b ON a.day >= b.day",
    "LATERAL": "SELECT COUNT(*) FROM visits v, LATERAL (SELECT v.age) w",
    "UNNEST": "SELECT COUNT(*) FROM UNNEST([1, 2])",
    "UNNEST in SELECT": "SELECT UNNEST([1, 2]), COUNT(*) FROM visits",
    "VALUES": "SELECT COUNT(*) FROM (VALUES (1), (2)) v(x)",
    "bare VALUES": "VALUES (1)",
    "SELECT DISTINCT": "SELECT DISTINCT note FROM visits",
    "SELECT DISTINCT ON": "SELECT DISTINCT ON (region) region, age FROM visits",
    "COUNT DISTINCT of a pair": "SELECT COUNT(DISTINCT (user_id, note)) FROM visits",
    "VARIANCE of DISTINCT": "SELECT VAR_POP(DISTINCT amount) FROM visits",
    "COUNT DISTINCT of two values": "SELECT COUNT(DISTINCT (age, note)) FROM visits",
    "a bucket with ends from a column": "SELECT WIDTH_BUCKET(amount, 0, age, 3), COUNT(*) FROM visits GROUP BY 1",
    "a bucket of days": "SELECT TIME_BUCKET(INTERVAL 10 DAY, day), COUNT(*) FROM visits GROUP BY 1",
    "a bucket from an origin": "SELECT TIME_BUCKET(INTERVAL 1 DAY, day, day), COUNT(*) FROM visits GROUP BY 1",
    "too many grouping sets": "SELECT COUNT(*) FROM visits GROUP BY CUBE (region, smoker, age, day, note, amount, 1)",
    "GROUPING of what is no key": "SELECT region, GROUPING(note), COUNT(*) FROM visits GROUP BY ROLLUP (region)",
    "GROUPING in WHERE": "SELECT COUNT(*) FROM visits WHERE GROUPING(note) = 0 GROUP BY ROLLUP (note)",
    "an aggregate in WHERE": "SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3",
    "an aggregate in FILTER": "SELECT COUNT(*) FILTER (WHERE COUNT(*) > 3) FROM visits",
    "an alias of an aggregate in WHERE": "SELECT COUNT(*) AS n FROM visits WHERE SUM(age) > 3 AND smoker",
    "an aggregate as key": "SELECT COUNT(*) FROM visits GROUP BY COUNT(*)",
    "an aggregate in an aggregate": "SELECT SUM(COUNT(*)) FROM visits",
    "PIVOT": "SELECT COUNT(*) FROM visits PIVOT (COUNT(*) FOR note IN ('a', 'b'))",
    "PIVOT as statement": "PIVOT visits ON note USING COUNT(*)",
    "UNPIVOT": "SELECT COUNT(*) FROM visits UNPIVOT (x FOR y IN (age, amount))",
    "TABLESAMPLE": "SELECT COUNT(*) FROM visits TABLESAMPLE 1 ROWS",
    "USING SAMPLE": "SELECT COUNT(*) FROM visits USING SAMPLE 10%",
    "RANDOM": "SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.5",
    "a table function": "SELECT COUNT(*) FROM range(10)",
    "a table function of a file": "SELECT COUNT(*) FROM read_parquet('visits.parquet')",
    "time travel": "SELECT COUNT(*) FROM visits AT (VERSION => 1)",
    "a schema beside a subquery of that name": "WITH visits AS (SELECT * FROM visits WHERE age > 3) "
    "SELECT COUNT(*) FROM main.visits",
    "a limit that is computed": "SELECT COUNT(*) FROM visits LIMIT 1 + 1",
    "a limit in per cent": "SELECT COUNT(*) FROM visits LIMIT 10%",
    "FETCH": "SELECT COUNT(*) FROM visits FETCH FIRST 1 ROWS WITH TIES",
    "TOP": "SELECT TOP 1 WITH TIES region, COUNT(*) FROM visits GROUP BY region",
    "FOR UPDATE": "SELECT COUNT(*) FROM visits FOR UPDATE",
    "INTO": "SELECT COUNT(*) INTO other FROM visits",
    "a parameter": "SELECT COUNT(*) FROM visits WHERE age = ?",
    "a regular expression of one's own": "SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(note, region)",
    "a regular expression that texts make slow": "SELECT COUNT(*) FROM visits WHERE note ~ 'a.{15}b'",
    "SIMILAR TO of two meanings": "SELECT COUNT(*) FROM visits WHERE note SIMILAR TO 'a%'",
    "a pattern from a column": "SELECT COUNT(*) FROM visits WHERE note LIKE region",
    "an order inside an aggregate": "SELECT SUM(age ORDER BY day) FROM visits",
    "a lambda": "SELECT COUNT(*) FROM visits WHERE LIST_CONTAINS(LIST_TRANSFORM([1], x -> x + age), 3)",
    "a list": "SELECT COUNT(*) FROM visits WHERE [age][1] = 3",
    "a struct": "SELECT {'a': COUNT(*)} FROM visits",
    "a tuple": "SELECT COUNT(*) FROM visits WHERE (age, age) = (1, 2)",
    "the current date": "SELECT COUNT(*) FROM visits WHERE day < CURRENT_DATE",
    "the current time": "SELECT COUNT(*) FROM visits WHERE day < NOW()",
    "an unknown function": "SELECT COUNT(*) FROM visits WHERE ERROR('x') IS NULL",
    "COLLATE": "SELECT COUNT(*) FROM visits WHERE note = 'A' COLLATE NOCASE",
    "GLOB": "SELECT COUNT(*) FROM visits WHERE note GLOB 'a*'",
    "ROW": "SELECT COUNT(*) FROM visits WHERE ROW(age) = ROW(3)",
    "a cast to a list": "SELECT COUNT(*) FROM visits WHERE CAST(note AS INTEGER[]) IS NULL",
    "DESCRIBE": "DESCRIBE visits",
    "SUMMARIZE": "SUMMARIZE visits",
    "EXPLAIN": "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits",
    "SHOW": "SHOW TABLES",
}
# Refused by policy, or not SQL: other codes, just as early.
OTHERWISE = {
    "the unit as a column": ("SELECT user_id FROM visits", NotAllowedError),
    "the unit in WHERE": ("SELECT COUNT(*) FROM visits WHERE user_id = 7777", NotAllowedError),
    "the unit as a key": ("SELECT user_id, COUNT(*) FROM visits GROUP BY user_id", NotAllowedError),
    "the unit in a sum": ("SELECT SUM(user_id) FROM visits", NotAllowedError),
    "rowid": ("SELECT COUNT(*) FROM visits WHERE rowid = 3", DaleniusError),
    "the file's name": ("SELECT COUNT(*) FROM visits WHERE filename = 'x'", DaleniusError),
    "another table": ("SELECT COUNT(*) FROM information_schema", DaleniusError),
    "half a statement": ("SELECT COUNT(* FROM visits", SqlSyntaxError),
}
# Groups that are not public: found privately, or refused where that cannot be (pure).
FOUND = {
    "a float key": "SELECT amount, COUNT(*) FROM visits GROUP BY amount",
    "a function of a float as key": "SELECT amount * 1.5, COUNT(*), COUNT(DISTINCT user_id) FROM visits GROUP BY 1",
    "a text key": "SELECT note, COUNT(*), SUM(amount), AVG(age) FROM visits GROUP BY note HAVING COUNT(*) > 3",
    "a part of a text as key": "SELECT LEFT(note, 1), COUNT(*) FROM visits GROUP BY ALL",
    "a text and a declared key": "SELECT region, note, COUNT(*) FROM visits WHERE age > 20 GROUP BY ALL",
    "a text by FILTER": "SELECT note, COUNT(*) FILTER (WHERE age > 80) FROM visits GROUP BY note ORDER BY 2 LIMIT 1",
    "too many groups": "SELECT age, day, region, COUNT(*) FROM visits GROUP BY ALL",
    "a text in a grouping set": "SELECT note, COUNT(*) FROM visits GROUP BY GROUPING SETS (note, (note, region))",
    "a text that is made": "SELECT note || CAST(amount AS VARCHAR), COUNT(DISTINCT user_id) FROM visits GROUP BY 1",
}
NO_PLACE = {"bare VALUES", "PIVOT as statement", "DESCRIBE", "SUMMARIZE"}
NO_PLACE |= {"EXPLAIN", "SHOW"}  # it is the whole statement


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    return protected(tmp_path_factory.mktemp("h11"), people(victim=True))


@pytest.fixture(scope="module")
def neighbour(tmp_path_factory):
    return protected(tmp_path_factory.mktemp("h11-without"), people(victim=False))


@pytest.mark.parametrize("shape", REFUSED)
def test_a_shape_that_could_carry_a_value_out_is_refused_before_any_charge(curator, monkeypatch, shape):
    monkeypatch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
    eve = curator.analyst("eve")
    for call in (eve.ask, eve.preview):
        with nothing_charged(curator), pytest.raises(QuestionRefusedError) as refusal:
            call(REFUSED[shape], epsilon=0.1)
        error = refusal.value
        assert (error.code, error.exit_code, error.charge) == ("sql.refused", 3, NOTHING)
        assert error.why and error.fix
        assert (error.at is not None) == (shape not in NO_PLACE)


@pytest.mark.parametrize("shape", OTHERWISE)
def test_what_is_no_open_name_is_refused_before_any_charge(curator, monkeypatch, shape):
    monkeypatch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
    question, kind = OTHERWISE[shape]
    with nothing_charged(curator), pytest.raises(kind) as refusal:
        curator.analyst("eve").ask(question, epsilon=0.1)
    assert refusal.value.exit_code in (2, 3) and refusal.value.charge == NOTHING
    assert refusal.value.at is not None


PASSED = [
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*), COUNT(DISTINCT user_id), SUM(amount), AVG(amount), STDDEV(age) FROM visits",
    "SELECT region, COUNT(*), COUNT(DISTINCT user_id) FROM visits GROUP BY region HAVING COUNT(*) > 100",
    "SELECT region, SUM(amount) AS s FROM visits GROUP BY region ORDER BY s DESC LIMIT 1",
    "SELECT region, AVG(amount) FROM visits GROUP BY region ORDER BY COUNT(*) LIMIT 2 OFFSET 1",
    "SELECT age, COUNT(*) FROM visits GROUP BY age HAVING age > 80 ORDER BY 2 DESC LIMIT 3",
    "SELECT smoker, region, VAR_POP(amount) FROM visits GROUP BY ALL HAVING VAR_POP(amount) > 0",
    "SELECT DATE_TRUNC('month', day) AS m, SUM(amount * 2 - age) FROM visits GROUP BY m ORDER BY m",
    "SELECT FLOOR(amount / 1000) AS c, COUNT(*) FROM visits GROUP BY c",
    "SELECT CASE WHEN age > 50 THEN 'old' ELSE 'young' END AS g, COUNT(*) FROM visits GROUP BY g",
    "SELECT SUM(CASE WHEN note = 'a rare word' THEN -amount ELSE amount END) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE note = 'a rare word'",
    "SELECT COUNT(*) FROM visits WHERE note <> 'a rare word' OR smoker IS NULL",
    "SELECT COUNT(*) FILTER (WHERE region = 'west') * 1.0 / COUNT(*) FROM visits",
    "SELECT COUNT_IF(LN(amount - 4999) = 0) FROM visits",
    "SELECT MIN(age) FROM visits",
    "SELECT MAX(age), MAX(amount) FROM visits",
    "SELECT COUNT(*) FROM visits HAVING MAX(age) > 80",
    "SELECT region, COUNT(*) FROM visits GROUP BY region ORDER BY MIN(age)",
    "SELECT MEDIAN(age), QUANTILE_CONT(amount, 0.999) FILTER (WHERE note = 'a rare word') FROM visits",
    "SELECT region, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY amount) FROM visits GROUP BY region",
    "SELECT APPROX_QUANTILE(amount - age, 1) FROM visits WHERE smoker",
    "SELECT COUNT(DISTINCT note) FROM visits",
    "SELECT SUM(DISTINCT age), AVG(DISTINCT amount) FILTER (WHERE smoker) FROM visits",
    "SELECT SKEWNESS(amount), KURTOSIS(age), MODE(region), QUANTILE_CONT(age, [0.1, 0.9]) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(note, 'rare|w[a-z]rd')",
    "SELECT COUNT(DISTINCT amount), COUNT(DISTINCT age) FILTER (WHERE smoker), COUNT(DISTINCT region) FROM visits",
    "SELECT region, COUNT(DISTINCT note), COUNT(DISTINCT day), COUNT(*) FROM visits GROUP BY region",
    "SELECT CORR(age, amount), COVAR_POP(age, amount), COVAR_SAMP(-amount, age % 7) FROM visits",
    "SELECT region, CORR(amount, age) FROM visits GROUP BY region HAVING CORR(amount, age) > 0",
    "SELECT FLOOR(amount / 500) * 500 AS b, COUNT(*), COUNT(DISTINCT note) FROM visits GROUP BY b",
    "SELECT WIDTH_BUCKET(amount, 100, 4000, 7) AS b, SUM(amount) FROM visits GROUP BY b",
    "SELECT ROUND(amount, -3) AS b, amount - amount % 700 AS c, COUNT(*) FROM visits GROUP BY ALL",
    "SELECT COUNT(*) FROM (SELECT * FROM visits) v",
    "WITH v AS (SELECT * FROM visits WHERE note = 'a rare word') SELECT COUNT(*), SUM(amount) FROM v",
    "SELECT TIME_BUCKET(INTERVAL 1 MONTH, day) AS m, COUNT(DISTINCT age) FROM visits GROUP BY m",
    "SELECT region, COUNT(*), COUNT(DISTINCT user_id), AVG(amount) FROM visits GROUP BY ROLLUP (region)",
    "SELECT region, smoker, SUM(amount), COUNT(DISTINCT note), MEDIAN(age) FROM visits GROUP BY CUBE (region, smoker)",
    "SELECT age, COUNT(*) FROM visits GROUP BY GROUPING SETS (age, region, age, ()) HAVING GROUPING(age) = 1",
]


@pytest.mark.parametrize("question", PASSED)
def test_what_is_answered_moves_by_no_more_than_the_plan_says(curator, neighbour, question):
    plan, twin = plan_of(curator, question), plan_of(neighbour, question)
    assert all(moved(plan, integers_by(curator, plan), integers_by(neighbour, twin)))
    assert twin.canonical() == plan.canonical()


@pytest.fixture(scope="module")
def many_keys(tmp_path_factory):
    """The victim's 500 rows have 500 keys that nobody else has."""
    return protected(tmp_path_factory.mktemp("h11-keys"), people(victim=True, keys=500))


@pytest.fixture(scope="module")
def pure(tmp_path_factory):
    return protected(tmp_path_factory.mktemp("h11-pure"), people(victim=True), accounting="pure")


@pytest.mark.parametrize("shape", FOUND)
def test_groups_that_have_to_be_found_move_by_no_more_than_the_plan_says(curator, many_keys, neighbour, shape):
    question = FOUND[shape]
    plan = plan_of(curator, question)
    assert plan.selection is not None and plan.cells == ()
    without = weights_of(neighbour, question)
    for each in (curator, many_keys):
        assert plan_of(each, question).canonical() == plan_of(neighbour, question).canonical() == plan.canonical()
        weights = weights_of(each, question)
        assert weights.keys() - without.keys()  # the victim has keys of its own, and no more than count
        assert weighs_too_much(plan, weights, without) == []
        cells = sorted(weights.keys() | without.keys(), key=repr)
        assert all(moved(plan, found_on(each, question, cells), found_on(neighbour, question, cells)))


def test_the_neighbour_test_sees_weights_that_are_too_large(curator, many_keys, neighbour, monkeypatch):
    """Teeth: a unit that adds 2²⁰ to every key of its, as if its groups were other people's."""
    from dalenius.mechanisms.key_selection import WEIGHT, KeySelection

    question = FOUND["a text key"]
    plan, without = plan_of(curator, question), weights_of(neighbour, question)
    assert len(weights_of(many_keys, question)) - len(without) == 3  # of 500 keys those that count
    weight = KeySelection.weight
    monkeypatch.setattr(KeySelection, "weight", staticmethod(lambda keys: WEIGHT))
    heavy = weights_of(many_keys, question)
    monkeypatch.setattr(KeySelection, "weight", staticmethod(weight))
    assert len(weighs_too_much(plan, heavy, without)) == 2


@pytest.mark.parametrize("shape", FOUND)
def test_under_pure_groups_that_are_not_public_are_refused_before_any_charge(pure, monkeypatch, shape):
    monkeypatch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
    eve = pure.analyst("eve")
    for call in (eve.ask, eve.preview):
        with nothing_charged(pure), pytest.raises(QuestionRefusedError, match=r"not public|too many groups") as refusal:
            call(FOUND[shape], epsilon=0.1)
        assert refusal.value.at is not None and refusal.value.fix


@pytest.mark.parametrize("shape", FOUND)
def test_the_victims_own_keys_do_not_leave(curator, shape):
    """δ is at most 2.5e-8 here: a victim's key that is seen is no accident."""
    from tests.attack.hostile import RARE

    release = curator.analyst("eve").ask(FOUND[shape], epsilon=0.3)
    assert 0 < release.charge["delta"] <= 1e-6 / 40
    shown = {value for row in release.rows for value in row}
    assert not shown & {RARE, 5000.0, 7500.0, f"{RARE}5000.0"}


def test_a_quotient_without_bounds_is_refused(curator):
    with nothing_charged(curator), pytest.raises(DaleniusError, match="no bounds"):
        curator.analyst("eve").ask("SELECT SUM(amount / (90 - age)) FROM visits", epsilon=0.1)


def test_the_neighbour_test_sees_an_unclipped_victim(curator, neighbour):
    """Teeth: the victim's 500 rows, not clipped to 20, would move the count by 500."""
    question = "SELECT COUNT(*) FROM visits"
    plan = plan_of(curator, question)
    assert not all(moved(plan, [[980]], [[480]]))
    one, other = integers_of(curator, question), integers_of(neighbour, question)
    assert one[0][0] - other[0][0] == 20  # and the victim does count, up to its limit


@pytest.mark.parametrize("question", [each for each in PASSED if "HAVING" in each or "LIMIT" in each])
def test_having_order_and_limit_see_noisy_numbers_only(curator, neighbour, question):
    """The same stored numbers give the same rows, whatever the table holds."""
    from dalenius.queries.answering import measure_plan
    from dalenius.queries.rules.price import price_plan

    plan, twin = plan_of(curator, question), plan_of(neighbour, question)
    engine = curator.engines.of(curator.tables()[0].fingerprint)
    content = measure_plan(plan, price_plan(plan, 0.5), engine, "salt", 60.0)
    one, other = Answer.read(plan, content, 0.95).table(), Answer.read(twin, content, 0.95).table()
    assert one == other


def test_having_and_limit_do_change_what_is_shown(curator):
    """Teeth for the test above: other numbers give other rows."""
    import json

    question = "SELECT region, COUNT(*) FROM visits GROUP BY region HAVING COUNT(*) > 100 ORDER BY 2 DESC LIMIT 2"
    plan = plan_of(curator, question)

    def stored(*values):
        law = {"gaussian": "4"}
        body = {"format": 1, "epsilon": 1, "rho": 1, "measures": [{"law": law, "values": [str(v) for v in values]}]}
        return Answer.read(plan, json.dumps(body).encode(), 0.95).table().rows

    assert stored(101, 300, 200, 100) == (("south", 300), ("east", 200))
    assert stored(100, 90, 80, 101) == (("west", 101),)


def test_every_declared_group_is_answered_even_where_nobody_is(curator, neighbour):
    for each in (curator, neighbour):
        release = each.analyst("eve").ask("SELECT region, COUNT(*) FROM visits GROUP BY region", epsilon=0.1)
        assert [row[0] for row in release.rows] == ["north", "south", "east", "west"]


@pytest.mark.parametrize("shape", ["a raw column", "ARG_MAX", "a window", "a CTE with a window", "UNION", "SHOW"])
def test_the_command_refuses_them_too(curator, capsys, shape):
    from dalenius.app.cli import build, run

    home = ["--home", str(curator.home), "--analyst", "eve", "--json"]
    with nothing_charged(curator):
        assert run(build(), ["ask", REFUSED[shape], "--epsilon=0.1", *home]) == 3
    assert '"code": "sql.refused"' in capsys.readouterr().out
