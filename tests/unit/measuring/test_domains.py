"""Groups are known without a row: all values that a key can have, and no question about the rest."""

from __future__ import annotations

import random
import re
from datetime import date, datetime, time, timedelta

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.unit.conftest import POLICY
from tests.whole import in_steps

from dalenius.errors import QuestionRefusedError
from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.connections import public
from dalenius.measuring.engines.duckdb.rendering import Renderer, identifier
from dalenius.measuring.engines.duckdb.statements.source import clean
from dalenius.measuring.expressions import columns_of
from dalenius.measuring.function_values import MOST_CELLS
from dalenius.tables.policy import Kind

REGIONS = ["north", "south", "east", "west"]


def day(text):
    return date.fromisoformat(text)


def moment(text):
    return datetime.fromisoformat(text)


def cells(visits, keys):
    return list(visits.plan(f"SELECT COUNT(*) FROM visits GROUP BY {keys}").cells)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("region", REGIONS),  # in the order of the policy
        ("smoker", [False, True]),
        ("child", [0.0, 1.0, 2.0]),
        ("age", [float(each) for each in range(18, 91)]),
        ('"odd name"', [float(each) for each in range(-3, 4)]),
        ('"when"', [day("2025-01-01") + timedelta(days=each) for each in range(365)]),
        ("age > 50", [False, True]),
        ("note = 'x'", [False, True]),
        ("note IS NULL", [False, True]),
        ("UPPER(region)", sorted(each.upper() for each in REGIONS)),
        ("LEFT(region, 1)", ["e", "n", "s", "w"]),
        ("LENGTH(region)", [4.0, 5.0]),
        ("COALESCE(region, 'unknown')", sorted([*REGIONS, "unknown"])),
        ("CASE WHEN age < 30 THEN 'young' WHEN amount > 3 THEN 'rich' ELSE 'other' END", ["other", "rich", "young"]),
        ("CASE WHEN note = 'x' THEN 'x' END", ["x"]),
        ("IF(smoker, region, 'none')", sorted([*REGIONS, "none"])),
        ("FLOOR(age / 10)", [float(each) for each in range(1, 10)]),
        ("FLOOR(amount / 1000)", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("CAST(change AS INTEGER)", [float(each) for each in range(-10, 11)]),
        ('ABS("odd name")', [0.0, 1.0, 2.0, 3.0]),
        ("child + 1", [1.0, 2.0, 3.0]),
        ('MONTH("when")', [float(each) for each in range(1, 13)]),
        ('YEAR("when")', [2025.0]),
        ('YEAR("at")', [2025.0]),
        ("CASE WHEN change > 0 THEN child ELSE -1 END", [-1.0, 0.0, 1.0, 2.0]),
        ("DATE_TRUNC('quarter', \"when\")", [date(2025, month, 1) for month in (1, 4, 7, 10)]),
        ("STRFTIME(\"when\", '%Y-%m')", [f"2025-{month:02}" for month in range(1, 13)]),
        ("DATE_TRUNC('month', \"at\")", [moment(f"2025-0{month}-01") for month in (1, 2, 3)]),
        ("DATE_TRUNC('week', \"at\")", [moment("2025-01-27") + timedelta(days=7 * each) for each in range(5)]),
        ('CAST("at" AS DATE)', [day("2025-01-30") + timedelta(days=each) for each in range(32)]),
        ('HOUR("at")', [float(each) for each in range(24)]),
        ("FLOOR(amount / 1000) * 1000", [0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0]),
        ("FLOOR(amount / 1000) * 1000 + 500", [500.0, 1500.0, 2500.0, 3500.0, 4500.0, 5500.0]),
        ("1 - FLOOR(amount / 2500)", [-1.0, 0.0, 1.0]),
        ("FLOOR(change / 2.5) * 0.1", [each * 0.1 for each in range(-4, 5)]),  # as doubles multiply
        ("amount // 2000 * 2000", [0.0, 2000.0, 4000.0]),
        ("CEIL(amount / 2500) * 2500", [0.0, 2500.0, 5000.0]),
        ("FLOOR(amount / 1000) % 3", [0.0, 1.0, 2.0]),
        ("ROUND(amount, -3)", [0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0]),
        ("ROUND(change, -1)", [-10.0, 0.0, 10.0]),
        ("ROUND(age, -1)", [20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]),
        ("ROUND(change / 20, 1)", [each / 10 for each in range(-5, 6)]),
        ("ROUND(change / 4)", [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]),  # a half rounds away from zero
        ("ROUND(FLOOR(amount / 1000) * 2.5)", [0.0, 3.0, 5.0, 8.0, 10.0, 13.0]),
        ("amount - amount % 1000", [0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0]),
        ("change - change % 4", [-8.0, -4.0, 0.0, 4.0, 8.0]),
        ("change - MOD(change, -0.7)", [each * 0.7 for each in range(-14, 15)]),
        ("age - age % 10", [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]),
        ("WIDTH_BUCKET(amount, 0, 5000, 5)", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ("WIDTH_BUCKET(amount, 1000, 2000, 2)", [0.0, 1.0, 2.0, 3.0]),
        ("WIDTH_BUCKET(amount, -1, 5001, 2)", [1.0, 2.0]),
        ("WIDTH_BUCKET(age, 0, 100, 4)", [1.0, 2.0, 3.0, 4.0]),
        ("WIDTH_BUCKET(free, 0, 1, 3)", [0.0, 1.0, 2.0, 3.0, 4.0]),
        ("CAST(FLOOR(amount / 2500) AS VARCHAR) || 'k'", ["0k", "1k", "2k"]),
        ("CASE WHEN amount < 0 THEN 'debt' WHEN amount >= 5001 THEN 'rich' ELSE 'other' END", ["other"]),
        ('TIME_BUCKET(INTERVAL 1 MONTH, "at")', [moment(f"2025-0{month}-01") for month in (1, 2, 3)]),
        ("TIME_BUCKET(INTERVAL '3 months', \"when\")", [date(2025, month, 1) for month in (1, 4, 7, 10)]),
        ("TIME_BUCKET(INTERVAL '7 days', \"at\")", [moment("2025-01-27") + timedelta(days=7 * at) for at in range(5)]),
        ("DATE_TRUNC('month', \"at\") + INTERVAL 1 MONTH", [moment(f"2025-0{month}-01") for month in (2, 3, 4)]),
    ],
)
def test_the_values_of_a_key_are_known(key, values, visits):
    assert cells(visits, key) == [(value,) for value in values]


def test_without_keys_there_is_one_group(visits):
    assert visits.plan("SELECT COUNT(*) FROM visits").cells == ((),)


def test_keys_of_different_columns_are_combined_in_order(visits):
    found = cells(visits, "region, smoker")
    assert found == [(region, smoker) for region in REGIONS for smoker in (False, True)]
    assert cells(visits, "smoker, region") == [(smoker, region) for smoker in (False, True) for region in REGIONS]


def test_keys_of_one_column_are_combined_only_as_it_can_be(visits):
    found = cells(visits, 'YEAR("when"), MONTH("when"), QUARTER("when")')
    assert found == [(2025.0, float(month), float((month + 2) // 3)) for month in range(1, 13)]
    assert len(cells(visits, 'MONTH("when"), region, QUARTER("when")')) == 12 * 4
    assert len(cells(visits, "region, UPPER(region)")) == 4


def test_a_hour_of_a_datetime_counts_every_hour_between_its_bounds(visits):
    found = [each[0] for each in cells(visits, "DATE_TRUNC('hour', \"at\")")]
    assert found[0] == moment("2025-01-30 10:00:00") and found[-1] == moment("2025-03-02 09:00:00")
    assert found == sorted(found) and len(found) == len(set(found)) == (31 * 24)


@pytest.mark.parametrize(
    ("keys", "advice"),
    [
        ("note", 'declare keys or bounds for "note"'),
        ("free", "FLOOR(free / 100)"),
        ("FLOOR(free)", "FLOOR(free / 100)"),
        ("amount", "FLOOR(amount / 100)"),
        ('"at"', "DATE_TRUNC('month', at)"),
        ("UPPER(note)", "declare keys"),
        ("COALESCE(note, 'x')", "declare keys"),
        ("CASE WHEN smoker THEN note ELSE 'x' END", "declare keys"),
        ("region, note", "declare keys"),
    ],
)
def test_values_that_nobody_declared_are_not_shown(keys, advice, asker, visits):
    question = f"SELECT COUNT(*) FROM visits GROUP BY {keys}"
    error = asker(accounting="pure").error(question)
    assert isinstance(error, QuestionRefusedError)
    assert "are not public" in str(error) and advice in str(error)
    # under zCDP they are found, once that is paid for
    assert visits.plan(question).selection is not None and visits.plan(question).cells == ()


@pytest.mark.parametrize("keys", ['"when", age, region', 'age, "when", child, smoker', "DATE_TRUNC('second', \"at\")"])
def test_too_many_groups_are_refused_before_anything_is_charged(keys, asker, visits):
    question = f"SELECT COUNT(*) FROM visits GROUP BY {keys}"
    error = asker(accounting="pure").error(question)
    assert isinstance(error, QuestionRefusedError)
    assert f"{MOST_CELLS:,}" in str(error) or "not public" in str(error)
    assert visits.plan(question).selection is not None and visits.plan(question).cells == ()


# --- every value that rows can produce is among the cells

KEYS = [
    "region",
    "child",
    "smoker",
    "age > 40",
    "FLOOR(age / 7)",
    "CEIL(amount / 500)",
    "ROUND(change)",
    "TRUNC(change)",
    "CAST(change AS INTEGER)",
    "CAST(change / 4 AS INTEGER)",
    "FLOOR(change)",
    "age % 7",
    '"odd name" * child',
    '"odd name" // 2',
    'ABS("odd name") - child',
    "SIGN(change)",
    'GREATEST("odd name", child)',
    "LEAST(age, 40)",
    "NULLIF(child, 1)",
    "COALESCE(region, 'x')",
    'COALESCE("odd name", 99)',
    "CASE WHEN change > 0 THEN child WHEN smoker THEN age ELSE -1 END",
    "CASE WHEN smoker THEN region END",
    "IF(note LIKE 'a%', 'a', COALESCE(region, 'none'))",
    "CONCAT(region, '-', CAST(child AS VARCHAR))",
    "SUBSTRING(region, 2, 2)",
    "DATE_TRUNC('month', \"when\")",
    "DATE_TRUNC('week', \"at\")",
    "DATE_TRUNC('day', \"at\")",
    "DATE_TRUNC('hour', \"at\")",
    "DATE_TRUNC('quarter', \"at\")",
    'CAST("at" AS DATE)',
    'EXTRACT(dow FROM "at")',
    'WEEK("when")',
    '"when" + 3',
    "STRFTIME(\"when\", '%j')",
    "CAST(smoker AS INTEGER)",
    "POWER(child, 2) = 4",
    "FLOOR(amount / 100) * 100",
    "FLOOR(change / 0.7) * 0.7 + 0.1",
    "-FLOOR(change * 3) / 3",
    "ROUND(amount, -2)",
    "ROUND(change, 1)",
    "ROUND(change / 3, 1) * 3",
    "CEIL(change / 0.3) * 0.3",
    "amount - amount % 60",
    "change - change % 0.3",
    "WIDTH_BUCKET(change, -10, 10, 7)",
    "WIDTH_BUCKET(amount, 0.1, 4999.9, 30)",
    "WIDTH_BUCKET(free, -1e5, 1e5, 9)",
    "COALESCE(WIDTH_BUCKET(change, -1, 1, 3), -1)",
    "CAST(FLOOR(change / 3) * 0.1 AS VARCHAR)",
    'TIME_BUCKET(INTERVAL 1 HOUR, "at")',
    "STRFTIME(DATE_TRUNC('day', \"at\"), '%j')",
    "STRFTIME(\"at\", '%Y-%m-%d')",
    "STRFTIME(\"at\", '%m %H')",
    'CONCAT(YEAR("at"), \'-Q\', QUARTER("at"))',
    "YEAR(\"at\") || '-' || LPAD(CAST(WEEK(\"at\") AS VARCHAR), 2, '0')",
]


def rows():
    chance = random.Random(17)
    return [made(at, chance) for at in range(400)]


def made(at, chance):
    return {
        "user_id": at,
        "age": chance.choice([None, 18.0, 90.0, 17.0, 200.0, float(chance.randint(18, 90)), 33.5]),
        "child": chance.choice([None, 0.0, 1.0, 2.0, 7.0]),
        "region": chance.choice([None, *REGIONS, "mars"]),
        "amount": chance.choice([None, 0.0, 5000.0, -1.0, chance.uniform(0, 5000)]),
        "change": chance.choice([None, -10.0, 10.0, -2.5, 2.5, -0.5, 0.5, chance.uniform(-11, 11)]),
        "free": chance.gauss(0, 1e6),
        "smoker": chance.choice([None, True, False]),
        "when": chance.choice([None, day("2024-12-31"), day("2025-01-01") + timedelta(chance.randrange(400))]),
        "at": chance.choice(
            [
                None,
                moment("2025-01-30 10:00:00"),
                moment("2025-03-02 09:30:00"),
                moment("2020-01-01"),
                moment("2025-01-30") + timedelta(seconds=chance.randrange(32 * 86400)),
            ]
        ),
        "note": chance.choice([None, "", "a", "abc"]),
        "odd name": chance.choice([None, *map(float, range(-5, 6))]),
    }


ARROW = {Kind.BOOLEAN: pa.bool_(), Kind.DATE: pa.date32(), Kind.DATETIME: pa.timestamp("us")}


def table(visits):
    kinds = {name: each.kind for name, each in visits.table.policy.columns.items()}
    numeric = {Kind.INTEGER, Kind.NUMBER}
    types = {name: pa.float64() if kind in numeric else ARROW.get(kind, pa.string()) for name, kind in kinds.items()}
    return pa.Table.from_pylist(rows(), pa.schema([("user_id", pa.int64()), *types.items()]))


@settings(max_examples=examples(120))
@given(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True))
def test_every_key_that_rows_can_have_is_among_the_groups(asker, keys):
    visits = asker(accounting="pure")
    try:
        plan = visits.plan(f"SELECT COUNT(*) FROM visits GROUP BY {', '.join(keys)}")
    except QuestionRefusedError:
        event("refused")
        return
    policy = visits.table.policy.columns
    cleaned = ", ".join(f"{clean(each, identifier(name))} AS {identifier(name)}" for name, each in policy.items())
    integers = frozenset(name for name, each in policy.items() if each.kind is Kind.INTEGER)
    renderer = Renderer({name: identifier(name) for name in policy}, integers)
    sql = f"SELECT DISTINCT {', '.join(map(renderer.sql, plan.keys))} FROM (SELECT {cleaned} FROM t)"
    known = set(plan.cells)
    for found in public().run(sql, {"t": table(visits)}):
        assert None in found or tuple(found) in known


@pytest.mark.parametrize("key", KEYS)
def test_each_of_these_keys_can_be_asked_for_alone(key, visits):
    assert len(cells(visits, key)) < 1000


def test_rows_outside_of_the_groups_are_not_lost_from_others(visits, memory):
    plan = visits.plan("SELECT COUNT(*) FROM visits GROUP BY COALESCE(region, 'none')")
    found = dict(zip(plan.cells, in_steps(plan, exact(plan, memory(table(visits)), "salt"))[0], strict=True))
    regions = [each["region"] for each in rows()]
    assert found[("none",)] == sum(each in {None, "mars"} for each in regions)
    assert found[("north",)] == regions.count("north")


def test_a_time_of_day_is_no_hole_in_the_last_day(visits):
    # the upper bound is half past nine: that day is a group, and so is its ninth hour
    assert cells(visits, "DATE_TRUNC('day', \"at\")")[-1] == (datetime.combine(date(2025, 3, 2), time()),)


# --- groups that the question rules out


def left(visits, keys, where):
    return list(visits.plan(f"SELECT COUNT(*) FROM visits WHERE {where} GROUP BY {keys}").cells)


@pytest.mark.parametrize(
    ("keys", "where", "groups"),
    [
        ("region", "region = 'west'", [("west",)]),
        ("region", "region IN ('west', 'north') AND amount > 3", [("north",), ("west",)]),  # as the policy orders them
        ("region", "region <> 'west' AND LEFT(region, 1) < 'n'", [("east",)]),
        ("region", "region = 'west' OR age > 30", [(each,) for each in REGIONS]),
        ("region", "age > 30", [(each,) for each in REGIONS]),
        ("region, child", "region = 'west' AND child > 0", [("west", 1.0), ("west", 2.0)]),
        (
            "region, child",
            "(region = 'west' AND child = 0) OR (region = 'east' AND child = 2)",
            [("east", 2.0), ("west", 0.0)],
        ),
        ('MONTH("when")', "\"when\" BETWEEN DATE '2025-03-05' AND DATE '2025-05-01'", [(3.0,), (4.0,), (5.0,)]),
        ("age", "age BETWEEN 30 AND 32", [(30.0,), (31.0,), (32.0,)]),
        ("COALESCE(region, 'none')", "region IS NULL", [("none",)]),
        ("region", "region = 'nowhere'", [(each,) for each in REGIONS]),  # not one is left: then all
    ],
)
def test_groups_that_no_row_can_be_in_are_left_out(visits, keys, where, groups):
    assert left(visits, keys, where) == groups


@pytest.mark.parametrize(
    "where", ["region <> 'west'", "child = 1 OR region = 'east'", "region IS NULL OR child > 0", "child <= 1"]
)
def test_what_is_left_out_had_no_rows(visits, memory, where):
    chance = random.Random(4)
    rows = pa.table(
        {
            "user_id": list(range(300)),
            "region": [chance.choice([*REGIONS, None]) for _ in range(300)],
            "child": [chance.choice([0, 1, 2, None]) for _ in range(300)],
        }
    )
    grouped = visits.plan(f"SELECT COUNT(*) FROM visits WHERE {where} GROUP BY region, child")
    alone = visits.plan(f"SELECT COUNT(*) FROM visits WHERE ({where}) AND region IS NOT NULL")
    (counts,), (total,) = (in_steps(plan, exact(plan, memory(rows), "salt")) for plan in (grouped, alone))
    assert sum(counts) == total[0] > 0
    assert len(grouped.cells) < 12


# --- groups of a datetime that the question rules out


@pytest.mark.parametrize(
    ("key", "where", "groups"),
    [
        ("DATE_TRUNC('day', \"at\")", "\"at\" >= '2025-02-03' AND \"at\" < '2025-02-05'", ["2025-02-03", "2025-02-04"]),
        (
            "DATE_TRUNC('day', \"at\")",
            "\"at\" BETWEEN '2025-02-03' AND '2025-02-05'",
            ["2025-02-03", "2025-02-04", "2025-02-05"],
        ),
        (
            "DATE_TRUNC('day', \"at\")",
            "\"at\" > '2025-02-03 23:59:59.999999' AND \"at\" < '2025-02-05'",
            ["2025-02-04"],
        ),
        ("DATE_TRUNC('day', \"at\")", "\"at\" = '2025-02-03 17:00:00'", ["2025-02-03"]),
        ("DATE_TRUNC('day', \"at\")", "\"at\" IN ('2025-02-03 17:00:00', '2025-02-09')", ["2025-02-03", "2025-02-09"]),
        ("DATE_TRUNC('day', \"at\")", "CAST(\"at\" AS DATE) = DATE '2025-02-07'", ["2025-02-07"]),
        ("DATE_TRUNC('day', \"at\")", "CAST(\"at\" AS DATE) < '2025-02-01'", ["2025-01-30", "2025-01-31"]),
        ("DATE_TRUNC('day', \"at\")", "DATE_TRUNC('month', \"at\") = '2025-03-01'", ["2025-03-01", "2025-03-02"]),
        ("DATE_TRUNC('day', \"at\")", 'EXTRACT(month FROM "at") = 3', ["2025-03-01", "2025-03-02"]),
        ("DATE_TRUNC('day', \"at\")", "\"at\" >= DATE '2025-03-03' - INTERVAL 2 DAY", ["2025-03-01", "2025-03-02"]),
        ("DATE_TRUNC('day', \"at\")", "NOT (\"at\" >= '2025-02-01' OR \"at\" < '2025-01-31')", ["2025-01-31"]),
        ("DATE_TRUNC('month', \"at\")", "\"at\" >= '2025-02-10' AND \"at\" < '2025-03-01'", ["2025-02-01"]),
        ("DATE_TRUNC('month', \"at\")", "\"at\" <= '2025-02-01'", ["2025-01-01", "2025-02-01"]),
        ("DATE_TRUNC('week', \"at\")", "\"at\" >= '2025-02-26'", ["2025-02-24"]),
        ("DATE_TRUNC('hour', \"at\")", "\"at\" < '2025-01-30 11:30:00'", ["2025-01-30 10:00", "2025-01-30 11:00"]),
        (
            "DATE_TRUNC('second', \"at\")",
            "\"at\" BETWEEN '2025-02-01 10:00:00' AND '2025-02-01 10:00:00.7'",
            ["2025-02-01 10:00"],
        ),
    ],
)
def test_a_condition_on_a_datetime_leaves_only_the_groups_that_it_allows(visits, key, where, groups):
    assert left(visits, key, where) == [(moment(each),) for each in groups]


def test_days_of_a_datetime_are_narrowed_as_those_of_a_date_are(visits):
    where = "\"{0}\" >= '2025-02-03' AND \"{0}\" < '2025-02-10'"
    days = [(day("2025-02-03") + timedelta(days=at),) for at in range(7)]
    assert (
        left(visits, 'CAST("at" AS DATE)', where.format("at")) == left(visits, '"when"', where.format("when")) == days
    )


def test_one_month_of_two_years_has_the_days_of_a_month(asker):
    two_years = 'bounds = ["2023-01-01 00:00:00", "2024-12-31 23:59:59"]\nzone = "Europe/Berlin"'
    who = asker(POLICY.replace('bounds = ["2025-01-30 10:00:00", "2025-03-02 09:30:00"]', two_years))
    march = "\"at\" >= '2024-03-01' AND \"at\" < '2024-04-01'"
    for key in ("DATE_TRUNC('day', \"at\")", 'CAST("at" AS DATE)'):
        assert len(cells(who, key)) == 731 and len(left(who, key, march)) == 31
        assert len(left(who, f"{key}, region", march)) == 31 * 4
    assert left(who, "DATE_TRUNC('month', \"at\")", march) == [(moment("2024-03-01"),)]
    # what was too fine to be listed for two years is not, for a day
    minutes = "DATE_TRUNC('minute', \"at\")"
    assert who.plan(f"SELECT COUNT(*) FROM visits GROUP BY {minutes}").selection is not None
    assert len(left(who, minutes, "CAST(\"at\" AS DATE) = '2024-03-31'")) == 24 * 60


@pytest.mark.parametrize(
    "where", ["TRUE", "note = 'x'", 'DATE_DIFF(\'day\', "at", "when") < 3', "\"at\" < '2020-01-01'"]
)
def test_what_says_nothing_of_a_datetime_leaves_its_groups_as_they_were(visits, where):
    for key in ("DATE_TRUNC('day', \"at\")", 'HOUR("at"), DATE_TRUNC(\'week\', "at")'):
        assert left(visits, key, where) == cells(visits, key)


LOW, HIGH = moment("2025-01-30 10:00:00"), moment("2025-03-02 09:30:00")  # of the policy
MOMENTS = st.one_of(
    st.sampled_from(
        [LOW, HIGH, moment("2025-02-01"), moment("2025-02-28 23:59:59.999999"), moment("2025-02-03 10:15:30")]
    ),
    st.integers(-90_000, 2_800_000).map(lambda seconds: LOW + timedelta(seconds=seconds)),
)
COMPARED = [
    '"at"',
    'CAST("at" AS DATE)',
    *(f"DATE_TRUNC('{unit}', \"at\")" for unit in ("week", "month", "day", "hour")),
]


@st.composite
def conditions(draw, depth=2):
    """Conditions on a datetime, alone and with other columns."""
    kind = draw(st.integers(0, 9))
    if depth and kind < 4:
        one, other = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        return f"({one} {draw(st.sampled_from(['AND', 'AND', 'OR']))} {other})"
    if depth and kind == 4:
        return f"NOT ({draw(conditions(depth - 1))})"
    given_ = draw(MOMENTS)
    if kind == 5:
        return draw(st.sampled_from(['"at" IS NULL', "region = 'north'", 'HOUR("at") < 7', 'DAYOFWEEK("at") = 1']))
    if kind == 6:
        return f"\"at\" IN ('{given_}', '{draw(MOMENTS)}')"
    subject, sign = draw(st.sampled_from(COMPARED)), draw(st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]))
    return f"{subject} {sign} '{given_.date() if 'DATE)' in subject else given_}'"


OF_MOMENTS = [*COMPARED[1:], "DATE_TRUNC('quarter', \"at\")", 'HOUR("at")', 'MONTH("at")', "region"]
OF_MOMENTS += ["COALESCE(CAST(\"at\" AS DATE), DATE '2020-01-01')", "\"at\" < '2025-02-14 12:00:00'"]


@settings(max_examples=examples(60))
@given(conditions(), st.lists(st.sampled_from(OF_MOMENTS), min_size=1, max_size=2, unique=True))
def test_a_group_is_left_out_exactly_where_no_moment_could_be_in_it(visits, where, keys):
    """Against all quarters of an hour, and the microseconds around every constant of the question."""
    plan = visits.plan(f"SELECT COUNT(*) FROM visits WHERE {where} GROUP BY {', '.join(keys)}")
    said = [moment(each) for each in re.findall(r"'(\d{4}-\d\d-\d\d[^']*)'", where + " ".join(keys))]
    tried = {LOW + timedelta(minutes=15 * at) for at in range(4 * 24 * 32)}
    tried |= {each + timedelta(microseconds=by) for each in [*said, LOW, HIGH] for by in (-1, 0, 1)}
    tried |= {datetime.combine(each.date(), time()) for each in tried}
    moments = [*(each for each in sorted(tried) if LOW <= each <= HIGH), None]
    rows = pa.table({"at": pa.array(moments, pa.timestamp("us"))})
    regions = pa.table({"region": pa.array([*REGIONS, None])})
    renderer = Renderer({name: identifier(name) for name in ("at", "region")})
    shown = ", ".join(map(renderer.sql, plan.keys))
    sql = f"SELECT DISTINCT {shown} FROM t, r WHERE {renderer.sql(plan.where)}"
    possible = {tuple(row) for row in public().run(sql, {"t": rows, "r": regions}) if None not in row}
    assert set(plan.cells) >= possible, "a group that a row could be in is missing"
    read = frozenset().union(*map(columns_of, plan.keys))
    if possible and "at" in columns_of(plan.where) <= read:  # what is about other columns is no reason
        assert set(plan.cells) == possible, "a group is left that no row could be in"
        event("exactly")
