"""The third pass: names, types, aliases, groups and order, all in the policy's own terms."""

from __future__ import annotations

import pytest

from dalenius.errors import InputError, NotAllowedError, QuestionRefusedError, UnknownColumnError, UnknownTableError
from dalenius.measuring.expressions import NULL, TRUE, Aggregate, Column, Key, Type, written


def where(condition):
    return f"SELECT COUNT(*) FROM visits WHERE {condition}"


# --- names


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(age) FROM visits",
        "SELECT SUM(AGE) FROM VISITS",
        'SELECT SUM("Age") FROM "Visits"',
        "SELECT SUM(visits.age) FROM visits",
        "SELECT SUM(Visits.AGE) FROM visits",
        "SELECT SUM(v.age) FROM visits v",
        'SELECT SUM(V."age") FROM visits AS v',
    ],
)
def test_names_are_found_whatever_their_case_and_quotes(sql, visits):
    (output,) = visits.question(sql).outputs
    assert output.expression == Aggregate("sum", Column("age", Type.NUMBER), TRUE)


def test_a_name_with_a_space_is_quoted(visits):
    question = visits.question('SELECT SUM("odd name") FROM visits')
    assert question.outputs[0].expression == Aggregate("sum", Column("odd name", Type.NUMBER), TRUE)


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        ("SELECT COUNT(*) FROM visit", UnknownTableError, "Did you mean 'visits'?"),
        ("SELECT COUNT(*) FROM payroll", UnknownTableError, "dalenius tables"),
        ("SELECT SUM(agee) FROM visits", UnknownColumnError, "Did you mean 'age'?"),
        ("SELECT SUM(amuont) FROM visits", UnknownColumnError, "Did you mean 'amount'?"),
        ("SELECT SUM(zzz) FROM visits", UnknownColumnError, "dalenius tables visits"),
        (where("regoin = 'north'"), UnknownColumnError, "Did you mean 'region'?"),
        ("SELECT SUM(other.age) FROM visits", QuestionRefusedError, "no table 'other'"),
        ("SELECT COUNT(*)", QuestionRefusedError, "names no table"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_known_one(sql, kind, said, visits):
    error = visits.error(sql)
    assert type(error) is kind and said in str(error)


def test_an_unknown_column_is_pointed_at(visits):
    error = visits.error("SELECT COUNT(*)\nFROM visits\nWHERE amuont > 3")
    assert error.at is not None and (error.at.line, error.at.column) == (3, 7)


def test_columns_that_no_policy_lists_do_not_exist(visits):
    assert isinstance(visits.error("SELECT SUM(salary) FROM visits"), UnknownColumnError)


# --- the unit


@pytest.mark.parametrize("sql", [where("user_id = 3"), "SELECT user_id, COUNT(*) FROM visits GROUP BY user_id"])
def test_the_unit_column_is_not_open_to_questions(sql, visits):
    error = visits.error(sql)
    assert isinstance(error, NotAllowedError) and "COUNT(DISTINCT user_id)" in str(error)


def test_units_are_counted(visits, asker):
    for sql in ("SELECT COUNT(DISTINCT user_id) FROM visits", "SELECT count(distinct USER_ID) FROM visits"):
        assert visits.question(sql).outputs[0].expression == Aggregate("units", None, TRUE)
    two = asker(unit='["user_id", "day"]')
    for columns in ("user_id, day", "day, user_id", "(user_id, day)", "(DAY, user_id)"):
        question = two.question(f"SELECT COUNT(DISTINCT {columns}) FROM visits")
        assert question.outputs[0].expression == Aggregate("units", None, TRUE)


@pytest.mark.parametrize("what", ["(user_id, age)", "user_id, user_id, age", "age, region"])
def test_several_values_are_not_counted_distinct_together(what, visits):
    error = visits.error(f"SELECT COUNT(DISTINCT {what}) FROM visits")
    assert isinstance(error, QuestionRefusedError) and "COUNT(DISTINCT user_id)" in str(error)


@pytest.mark.parametrize("what", ["user_id", "day", "user_id + 1", "(user_id, age)"])
def test_half_a_unit_is_not_a_unit(what, asker):
    error = asker(unit='["user_id", "day"]').error(f"SELECT COUNT(DISTINCT {what}) FROM visits")
    assert isinstance(error, NotAllowedError | QuestionRefusedError) and "COUNT(DISTINCT " in str(error)


def test_distinct_values_are_counted(visits):
    age, note = Column("age", Type.NUMBER), Column("note", Type.TEXT)
    smokes = Column("smoker", Type.BOOLEAN)
    for what, found in (
        ("age", Aggregate("distinct", age, TRUE)),
        ("(age)", Aggregate("distinct", age, TRUE)),
        ("CASE WHEN smoker THEN note END", Aggregate("distinct", note, smokes)),
    ):
        assert visits.question(f"SELECT COUNT(DISTINCT {what}) FROM visits").outputs[0].expression == found


@pytest.mark.parametrize("function", ["COVAR_POP", "COVAR_SAMP", "CORR"])
def test_aggregates_of_two_arguments_do_not_care_which_comes_first(function, visits):
    one, other = (
        visits.question(f"SELECT {function}({pair}) FILTER (WHERE smoker) FROM visits").outputs[0].expression
        for pair in ("age, amount", "amount, age")
    )
    assert one == other and (one.value.name, one.other.name) == ("age", "amount")
    assert isinstance(visits.error(f"SELECT {function}(age, region) FROM visits"), InputError)
    assert isinstance(visits.error(f"SELECT {function}(age, COUNT(*)) FROM visits"), QuestionRefusedError)


# --- groups


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region, COUNT(*) FROM visits GROUP BY region",
        "SELECT region, COUNT(*) FROM visits GROUP BY 1",
        "SELECT region, COUNT(*) FROM visits GROUP BY ALL",
        "SELECT region AS r, COUNT(*) FROM visits GROUP BY r",
        "SELECT region AS r, COUNT(*) FROM visits GROUP BY R",
        "SELECT region AS r, COUNT(*) FROM visits GROUP BY region, r, 1",
        "SELECT v.region, COUNT(*) FROM visits v GROUP BY v.region",
    ],
)
def test_a_group_is_named_numbered_or_all(sql, visits):
    question = visits.question(sql)
    assert question.keys == (Column("region", Type.TEXT),)
    assert question.outputs[0].expression == Key(0, Type.TEXT)


def test_a_column_goes_before_an_alias_in_group_by(visits):
    # as in DuckDB: `age` is the column, not the item that is called so
    error = visits.error("SELECT FLOOR(age / 10) AS age, COUNT(*) FROM visits GROUP BY age HAVING region = 'x'")
    assert "region" in str(error)
    question = visits.question("SELECT region AS age, COUNT(*) FROM visits GROUP BY age, region")
    assert question.keys == (Column("age", Type.NUMBER), Column("region", Type.TEXT))


def test_a_function_of_a_key_may_be_shown(visits):
    question = visits.question("SELECT UPPER(region) AS u, COUNT(*) FROM visits GROUP BY region")
    assert written(question.outputs[0].expression) == "upper(key 1)"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT age, COUNT(*) FROM visits GROUP BY region", "'age' stands outside an aggregate"),
        ("SELECT age FROM visits", "'age' stands outside an aggregate"),
        ("SELECT region FROM visits GROUP BY region", "asks for no aggregate"),
        ("SELECT 1 FROM visits", "asks for no aggregate"),
        ("SELECT * FROM visits", "SELECT * is not supported"),
        ("SELECT visits.* FROM visits", "SELECT * is not supported"),
        ("SELECT COUNT(*) FROM visits GROUP BY COUNT(*)", "aggregate cannot be a key"),
        ("SELECT COUNT(*) FROM visits GROUP BY 1", "aggregate cannot be a key"),
        ("SELECT COUNT(*) FROM visits GROUP BY 2", "no column 2"),
        ("SELECT COUNT(*) FROM visits GROUP BY 0", "no column 0"),
        ("SELECT COUNT(*) FROM visits GROUP BY region HAVING age > 3", "'age' stands outside"),
        ("SELECT COUNT(*) FROM visits ORDER BY age", "'age' stands outside"),
        ("SELECT SUM(COUNT(*)) FROM visits", "aggregate inside an aggregate"),
        ("SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3", "aggregate cannot stand in WHERE"),
    ],
)
def test_values_of_single_people_never_stand_outside_an_aggregate(sql, said, visits):
    assert said in str(visits.error(sql))


# --- order and limit


@pytest.mark.parametrize("term", ["n", "2", "COUNT(*)", "N", "count( * )"])
def test_an_order_is_named_numbered_or_spelled_out(term, visits):
    question = visits.question(f"SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY {term} DESC")
    (order,) = question.order
    assert order.expression == Aggregate("count", None, TRUE) and order.descending and not order.nulls_first


def test_order_by_all_takes_every_column(visits):
    question = visits.question("SELECT region, COUNT(*) FROM visits GROUP BY region ORDER BY ALL DESC")
    assert [each.expression for each in question.order] == [each.expression for each in question.outputs]
    assert all(each.descending for each in question.order)


def test_nulls_come_last_unless_asked_otherwise(visits):
    sql = "SELECT region, AVG(age) a FROM visits GROUP BY region ORDER BY "
    first = [
        visits.question(sql + each).order[0].nulls_first for each in ("a", "a DESC", "a NULLS FIRST", "a NULLS LAST")
    ]
    assert first == [False, False, True, False]


def test_limit_and_offset_are_whole_numbers(visits):
    question = visits.question("SELECT region, COUNT(*) FROM visits GROUP BY region LIMIT 2 OFFSET 1")
    assert (question.limit, question.offset) == (2, 1)
    assert visits.question("SELECT COUNT(*) FROM visits").limit is None
    for wrong in ("LIMIT -1", "LIMIT 1.5", "LIMIT 'x'", "LIMIT age", "OFFSET -3"):
        assert visits.error(f"SELECT COUNT(*) FROM visits {wrong}").exit_code in {2, 3}


# --- types


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("age > 'x'", "text stands where a number belongs"),
        ("region = 3", "number stands where a text belongs"),
        ("smoker = 3", "number stands where a boolean belongs"),
        ("\"when\" > '2025-13-01'", "is no date"),
        ('"when" > 3', "number stands where a date belongs"),
        ("age = region", "stands where"),
        ("age", "WHERE needs a condition"),
        ("NOT age", "number stands where a boolean belongs"),
        ("smoker AND age", "number stands where a boolean belongs"),
        ("LOWER(age) = 'x'", "number stands where a text belongs"),
        ("ABS(region) = 1", "text stands where a number belongs"),
        ("YEAR(age) = 1", "needs a date"),
        ("YEAR(region) = 1", "needs a date"),
        ("CASE WHEN smoker THEN 1 ELSE 'x' END = 1", "stands where"),
        ("COALESCE(age, 'x') = 1", "stands where"),
        ("age IN (1, 'x')", "stands where"),
        ("CAST(age AS DATE) = '2025-01-01'", "stands where"),
        ('CAST("when" AS DOUBLE) = 1', "stands where"),
        ("LEFT(note, 1.5) = 'x'", "whole number"),
        ("ROUND(amount, 99) = 1", "whole number"),
        ("age > 1e999", "cannot be read"),
    ],
)
def test_types_that_do_not_fit_are_told(condition, said, visits):
    error = visits.error(where(condition))
    assert isinstance(error, InputError) and said in str(error) and error.at is not None


@pytest.mark.parametrize("aggregate", ["SUM(region)", "AVG(note)", 'STDDEV("when")', "AVG(smoker)", "SUM(NULL)"])
def test_only_numbers_are_added_up(aggregate, visits):
    assert "belongs" in str(visits.error(f"SELECT {aggregate} FROM visits"))


@pytest.mark.parametrize(
    ("condition", "form"),
    [
        ("\"when\" = '2025-03-01'", "eq(date '2025-03-01', when)"),
        ("\"when\" < '2025-03-01'", "le(when, date '2025-02-28')"),
        ("\"at\" = '2025-03-01'", "eq(at, datetime '2025-03-01T00:00:00')"),
        ("\"at\" < '2025-02-01 10:30'", "lt(at, datetime '2025-02-01T10:30:00')"),
        ("\"when\" = '2025-03-01 10:00'", "eq(datetime '2025-03-01T10:00:00', to_datetime(when))"),
        (
            "\"when\" BETWEEN '2025-01-01' AND '2025-01-31'",
            "and(le(date '2025-01-01', when), le(when, date '2025-01-31'))",
        ),
        ("\"when\" IN ('2025-01-01', '2025-01-02')", "in(when, date '2025-01-01', date '2025-01-02')"),
        ("age > '30'", "le(31, age)"),
        ("smoker = 'true'", "smoker"),
        ("smoker IS TRUE", "coalesce(smoker, false)"),
        ("\"when\" + 1 = '2025-01-02'", "eq(date '2025-01-02', date_add('day', when, 1))"),
        ("\"when\" - DATE '2025-01-01' > 3", "le(4, date_diff('day', date '2025-01-01', when))"),
        ("\"when\" - INTERVAL 2 WEEKS = '2025-01-02'", "eq(date '2025-01-02', date_add('week', when, -2))"),
        ('EXTRACT(dow FROM "when") = 0', "eq(0, date_part('dow', when))"),
        ("LOG(amount) > 1", "lt(1, log10(amount))"),
        ("CONCAT(note, 'x') = 'y'", "eq('y', concat(coalesce(note, ''), 'x'))"),
        ("age = NULL", "eq(age, null)"),
    ],
)
def test_a_constant_takes_the_type_of_what_it_is_compared_with(condition, form, visits):
    assert written(visits.question(where(condition)).where) == form


# --- aggregates


@pytest.mark.parametrize(
    ("sql", "aggregate"),
    [
        ("COUNT(*)", Aggregate("count", None, TRUE)),
        ("COUNT(1)", Aggregate("count", None, TRUE)),
        ("COUNT()", Aggregate("count", None, TRUE)),
        ("COUNT(child)", Aggregate("count", None, TRUE)),
        ("VARIANCE(age)", Aggregate("var_samp", Column("age", Type.NUMBER), TRUE)),
        ("STDDEV_POP(age)", Aggregate("stddev_pop", Column("age", Type.NUMBER), TRUE)),
        ("SUM(CASE WHEN smoker THEN 1 ELSE 0 END)", Aggregate("count", None, Column("smoker", Type.BOOLEAN))),
        (
            "AVG(age) FILTER (WHERE smoker)",
            Aggregate("avg", Column("age", Type.NUMBER), Column("smoker", Type.BOOLEAN)),
        ),
    ],
)
def test_an_aggregate_is_read(sql, aggregate, visits):
    assert visits.question(f"SELECT {sql} FROM visits").outputs[0].expression == aggregate


def test_counting_null_counts_nothing(visits):
    assert written(visits.question("SELECT COUNT(NULL) FROM visits").aggregates[0].where) == "false"
    assert NULL.type is Type.NOTHING


def test_each_aggregate_is_asked_once(visits):
    question = visits.question("SELECT COUNT(*), COUNT(*) * 2 FROM visits HAVING COUNT(*) > 1 ORDER BY COUNT(*)")
    assert len(question.aggregates) == 1


def test_columns_of_the_answer_have_names(visits):
    sql = 'SELECT region, COUNT(*), SUM(age) AS "Total Age", AVG(amount) FROM visits GROUP BY region'
    assert [each.name for each in visits.question(sql).outputs] == ["region", "count(*)", "Total Age", "avg(amount)"]


def test_at_most_a_hundred_columns(visits):
    assert "At most 100" in str(visits.error(f"SELECT {', '.join(['COUNT(*)'] * 101)} FROM visits"))


@pytest.mark.parametrize(
    "call",
    [
        "foo(age)",
        "LENGTH(note, note)",
        "LN(age, 2)",
        "LOG(age, 3)",
        "date_part('century', \"when\")",
        'EXTRACT(millennium FROM "when")',
        "DATE_TRUNC('decade', \"when\")",
        "STRFTIME(\"when\", '%Z')",
        "CAST(note AS BLOB)",
        "CAST(note AS INTERVAL)",
        "REPLACE(note, region, 'x')",
    ],
)
def test_functions_outside_of_the_list_are_refused_with_a_place(call, visits):
    error = visits.error(where(f"{call} = {call}"))
    assert error.exit_code in {2, 3} and error.at is not None and error.at.line == 1


# --- earlier items


def test_an_item_can_name_an_earlier_one(visits):
    question = visits.question("SELECT COUNT(*) AS n, SUM(age) AS s, s / n AS mean FROM visits")
    again = visits.question("SELECT COUNT(*) AS n, SUM(age) AS s, SUM(age) / COUNT(*) AS mean FROM visits")
    assert question.outputs == again.outputs


@pytest.mark.parametrize("item", ["a{0} + a{0}", "SQRT(a{0} * a{0})", "COALESCE(a{0}, a{0} + 1)"])
def test_items_that_name_one_another_cannot_grow_without_end(item, visits):
    items = ["COUNT(*) AS a0", *(f"{item.format(at)} AS a{at + 1}" for at in range(90))]
    error = visits.error(f"SELECT {', '.join(items)} FROM visits")
    assert "too involved" in str(error)
