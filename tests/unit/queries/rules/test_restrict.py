"""The second pass: an allow-list. What is in it can be asked; all else is refused by name."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from dalenius.errors import QuestionRefusedError
from dalenius.queries.rules import Stage
from dalenius.queries.rules.restrict import _ALLOWED, _PARTS, _REFUSED, _allowed, restrict_tree

TWO = "SELECT COUNT(DISTINCT (user_id, day)) FROM visits"
ALLOWED = [
    "SELECT region AS r, COUNT(*) AS n FROM visits AS v WHERE (v.age > 20) GROUP BY r HAVING n > 1",
    "SELECT region AS r, COUNT(*) AS n FROM visits GROUP BY r ORDER BY n DESC NULLS FIRST LIMIT 3 OFFSET 1",
    "SELECT COUNT_IF(smoker), SUM(age) FILTER (WHERE TRUE), AVG(age), VARIANCE(age), VAR_POP(age) FROM visits",
    "SELECT COUNT(DISTINCT user_id), STDDEV(age), STDDEV_SAMP(age), STDDEV_POP(age) FROM visits",
    "SELECT MIN(age), MAX(age), MEDIAN(age), QUANTILE(age, 0.1), APPROX_QUANTILE(age, 0.1) FROM visits",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age), QUANTILE_DISC(age, 0.2) FROM visits",
    "SELECT QUANTILE_CONT(age, [0.1, 0.9]), APPROX_QUANTILES(age, 4), SKEWNESS(age), KURTOSIS(age) FROM visits",
    "SELECT MODE(region), SUM(DISTINCT age), AVG(DISTINCT age) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE age = 1 OR age <> 2 AND NOT age < 3 OR age <= 4 OR age >= 5",
    "SELECT COUNT(*) FROM visits WHERE age BETWEEN 1 AND 2 OR age IN (1, 2) OR age IS NULL OR note LIKE 'x%'",
    "SELECT COUNT(*) FROM visits WHERE age IS NOT DISTINCT FROM 3 OR age IS DISTINCT FROM 4 OR note ILIKE 'x%'",
    "SELECT COUNT(*) FROM visits WHERE CONTAINS(note, 'x') OR STARTS_WITH(note, 'x') OR ENDS_WITH(note, 'x')",
    "SELECT COUNT(*) FROM visits WHERE CASE age WHEN 1 THEN 2 ELSE 3 END = 2 OR IF(smoker, 1, 2) = 1",
    "SELECT COUNT(*) FROM visits WHERE COALESCE(age, NULL, 1) = 1 OR NULLIF(age, 1) = 1",
    "SELECT SUM(age + 1 - 2 * 3), SUM(age / 2), SUM(age // 2), SUM(age % 2), SUM(-age), SUM(ABS(age)) FROM visits",
    "SELECT SUM(SIGN(age)), SUM(FLOOR(age)), SUM(CEIL(age)), SUM(ROUND(age, 1)), SUM(TRUNC(age)) FROM visits",
    "SELECT SUM(SIN(age)), SUM(COS(age)), SUM(ATAN(age)), SUM(ATAN2(age, amount)) FROM visits",
    "SELECT SUM(ASIN(age / 100)), SUM(ACOS(age / 100)), COUNT_IF(TAN(age) > 1) FROM visits",
    "SELECT COUNT_IF(REGEXP_MATCHES(note, 'x', 'i')), COUNT_IF(REGEXP_FULL_MATCH(note, 'x+')) FROM visits",
    "SELECT COUNT_IF(note SIMILAR TO 'x.*'), COUNT_IF(note ~* 'x') FROM visits",
    "SELECT COUNT_IF(STRPOS(note, 'x') > 1), COUNT_IF(SPLIT_PART(note, 'x', 1) = 'y') FROM visits",
    "SELECT INITCAP(region), COUNT(*) FROM visits GROUP BY 1",
    "SELECT SUM(SQRT(age)), SUM(LN(age)), SUM(LOG(age)), SUM(LOG(2, age)), SUM(LOG2(age)), SUM(LOG10(age)) FROM visits",
    "SELECT SUM(EXP(age / 100)), SUM(POWER(age, 2)), SUM(LEAST(age, 3)), SUM(GREATEST(age, 3)) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE LOWER(note) || UPPER(note) = TRIM(note) OR TRIM(LEADING FROM note) = 'x'",
    "SELECT COUNT(*) FROM visits WHERE LENGTH(note) = 2 OR LEFT(note, 1) = RIGHT(note, 1) OR CONCAT(note, note) = 'x'",
    "SELECT COUNT(*) FROM visits WHERE SUBSTRING(note, 1, 2) = REPLACE(note, 'a', 'b')",
    "SELECT COUNT(*) FROM visits WHERE EXTRACT(year FROM \"when\") = 1 OR DATE_TRUNC('month', \"at\") = '2025-01-01'",
    "SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('month', CAST(note AS DATE)) = '2025-01-01'",
    'SELECT COUNT(*) FROM visits WHERE DATEDIFF(\'day\', "when", "at") = 1 OR "when" + INTERVAL 1 DAY = \'2025-01-01\'',
    'SELECT COUNT(*) FROM visits WHERE STRFTIME("when", \'%Y\') = \'2025\' OR YEAR("when") = 1 OR QUARTER("when") = 1',
    'SELECT COUNT(*) FROM visits WHERE MONTH("when") = 1 OR WEEK("when") = 1 OR DAY("when") = 1',
    'SELECT COUNT(*) FROM visits WHERE DAYOFMONTH("when") = 1 OR DAYOFWEEK("when") = 1 OR ISODOW("when") = 1',
    'SELECT COUNT(*) FROM visits WHERE DAYOFYEAR("when") = 1 OR HOUR("at") = 1 OR MINUTE("at") = SECOND("at")',
    "SELECT COUNT(*) FROM visits WHERE TRY_CAST(note AS DECIMAL(10, 2)) = 1 OR STRLEN(note) = 1",
    "SELECT region, COUNT(*) FROM visits GROUP BY ALL ORDER BY ALL",
    "SELECT COVAR_POP(age, amount), COVAR_SAMP(age, amount), CORR(age, amount), COUNT(DISTINCT note) FROM visits",
    "WITH a AS (SELECT * FROM visits) SELECT COUNT(*) FROM a JOIN visits b ON a.user_id = b.user_id",
    "SELECT COUNT(*) FROM (SELECT user_id FROM visits UNION ALL SELECT user_id FROM visits) u",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.user_id = v.user_id)",
    "SELECT COUNT(*) FROM visits GROUP BY WIDTH_BUCKET(amount, 0, 100, 4), TIME_BUCKET(INTERVAL 1 WEEK, at)",
    "SELECT GROUPING(region), GROUPING_ID(region, age), COUNT(*) FROM visits GROUP BY ROLLUP (region, age)",
    "SELECT COUNT(*) FROM visits JOIN (VALUES (1)) t(a) ON age = a JOIN UNNEST([1, 2]) u(b) ON age = b",
    "SELECT COUNT(*) FROM visits GROUP BY GROUPING SETS ((region, age), CUBE (region, smoker), ())",
]


def asked(what):
    return f"SELECT {what} FROM visits"


def where(condition):
    return f"SELECT COUNT(*) FROM visits WHERE {condition}"


REFUSED = {
    "Lateral": "SELECT COUNT(*) FROM visits LATERAL VIEW explode(x) t AS y",
    "Window": asked("SUM(age) OVER ()"),
    "Qualify": "SELECT COUNT(*) FROM visits QUALIFY age > 1",
    "ArgMax": asked("ARG_MAX(age, amount)"),
    "ArgMin": asked("ARG_MIN(age, amount)"),
    "First": asked("FIRST(age)"),
    "Last": asked("LAST(age)"),
    "AnyValue": asked("ANY_VALUE(age)"),
    "ArrayAgg": asked("ARRAY_AGG(age)"),
    "GroupConcat": asked("STRING_AGG(region, ',')"),
    "Intersect": "SELECT COUNT(*) FROM (SELECT user_id FROM visits INTERSECT SELECT user_id FROM visits) v",
    "Except": "SELECT COUNT(*) FROM (SELECT user_id FROM visits EXCEPT SELECT user_id FROM visits) v",
    "Any": where("age > ANY (SELECT age FROM visits)"),
    "All": where("age > ALL (SELECT age FROM visits)"),
    "TableSample": "SELECT COUNT(*) FROM visits USING SAMPLE 10%",
    "Rand": where("RANDOM() < 0.5"),
    "Pivot": "SELECT COUNT(*) FROM visits PIVOT (COUNT(*) FOR region IN ('north'))",
    "GenerateSeries": "SELECT COUNT(*) FROM visits JOIN generate_series(1, 9999) t(a) ON age = a",
    "Lock": "SELECT COUNT(*) FROM visits FOR UPDATE",
    "Into": "SELECT COUNT(*) INTO t FROM visits",
    "Placeholder": where("age > ?"),
    "CurrentDate": where('"when" < CURRENT_DATE'),
    "CurrentTimestamp": where('"at" < CURRENT_TIMESTAMP'),
}


def nodes(sql):
    return {type(each).__name__ for each in sqlglot.parse_one(sql, dialect="duckdb").walk()}


@pytest.mark.parametrize("name", _REFUSED)
def test_what_is_refused_by_name_is_named(name, visits):
    sql = REFUSED[name]
    assert name in nodes(sql)
    error = visits.error(sql)
    assert isinstance(error, QuestionRefusedError)
    assert error.message.startswith(f"{_REFUSED[name][0]} is not supported")
    assert error.why and error.fix and "No budget was spent." in str(error)


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_is_allowed_can_be_asked(sql, visits):
    assert visits.plan(sql).measures


def test_every_allowed_node_can_be_reached(asker):
    assert asker(unit='["user_id", "day"]').plan(TWO).measures
    reached = frozenset().union(*map(nodes, [*ALLOWED, TWO]))
    assert {cls.__name__ for cls in _allowed()} <= reached
    assert all(hasattr(exp, name) for name in [*_ALLOWED, *_REFUSED])


def test_every_node_of_sqlglot_that_is_not_in_the_list_is_refused(visits):
    """Whatever the parser may come to produce: a tree with one node more does not get through."""
    tried = 0
    for name in dir(exp):
        cls = getattr(exp, name)
        if not (isinstance(cls, type) and issubclass(cls, exp.Expression)) or cls in _allowed():
            continue
        tree = sqlglot.parse_one("SELECT COUNT(*) FROM visits WHERE age > 3", dialect="duckdb")
        try:
            strange = cls()
        except TypeError:
            continue
        number = tree.find(exp.Literal)
        assert number is not None and isinstance(tree, exp.Select)
        number.replace(strange)
        if not any(each is strange for each in tree.walk()):
            continue
        with pytest.raises(QuestionRefusedError):
            restrict_tree(Stage("SELECT COUNT(*) FROM visits WHERE age > 3", {"visits": visits.table}, tree=tree))
        tried += 1
    assert tried > 300


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT COUNT(*) FROM visits WINDOW w AS (ORDER BY age)", "A window function over rows"),
        ("WITH visits AS (FROM visits) SELECT COUNT(*) FROM x.visits", "A schema or catalog before a name of WITH"),
        ("SELECT COUNT(*) FROM visits TABLESAMPLE 10%", "Sampling"),
    ],
)
def test_a_part_that_is_not_understood_is_refused(sql, what, visits):
    assert visits.error(sql).message.startswith(f"{what} is not supported")
    assert any(entry[0] == what for entry in _PARTS.values())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM read_csv('secrets.csv')",
        "SELECT COUNT(*) FROM 'secrets.parquet'",
        "SELECT COUNT(*) FROM visits WHERE read_text('x') = 'y'",
        "SELECT getenv('HOME'), COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM duckdb_settings()",
        "SELECT COUNT(*) FROM information_schema.tables",
        "SELECT COUNT(*) FROM visits WHERE note SIMILAR TO 'a%'",
        "SELECT COUNT(*) FROM visits WHERE [x FOR x IN [1]] = [1]",
        "SELECT COUNT(*) FROM visits WHERE {'a': 1}.a = 1",
        "SELECT COUNT(*) FROM visits WHERE (x -> x + 1)(age) = 3",
        "SELECT COUNT(*) FROM visits WHERE COLUMNS('age') > 3",
        "SELECT * EXCLUDE (age), COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits ORDER BY COUNT(*) COLLATE nocase",
        "SELECT COUNT(*) FROM visits LIMIT 10%",
        "SELECT SUM(age ORDER BY amount) FROM visits",
        "SELECT VAR_POP(DISTINCT age) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE age > ANY (SELECT 1)",
        "SELECT COUNT(*) FROM visits AS OF TIMESTAMP '2020-01-01'",
        "SELECT COUNT(*) FROM visits WHERE note GLOB 'x*'",
        "SELECT COUNT(*) FROM visits WHERE age | 1 = 1",
        "SELECT COUNT(*) FROM visits WHERE note LIKE 'x%!_y%z' ESCAPE '!'",
        "SELECT COUNT(*) FROM visits v(a, b)",
        "SELECT COUNT(*) FROM visits WHERE error('x') = 'x'",
    ],
)
def test_engine_specific_constructs_never_reach_the_engine(sql, visits):
    error = visits.error(sql)
    assert error.exit_code in {2, 3}
