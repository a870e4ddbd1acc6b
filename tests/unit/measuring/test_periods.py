"""Budgets per period: a question is charged to every period that it reads, and reads no other."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pyarrow as pa
import pytest

from dalenius.errors import NotAllowedError
from dalenius.measuring._exact import exact
from dalenius.measuring.expressions import TRUE, written
from dalenius.tables.policy import Bounds

MONTHS = tuple(f"2025-{month:02}" for month in range(1, 13))


@pytest.fixture(scope="module")
def monthly(asker):
    return asker(period='period = { column = "when", every = "month" }')


def periods(who, condition):
    return who.plan(f"SELECT COUNT(*) FROM visits WHERE {condition}").periods


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("TRUE", MONTHS),
        ("\"when\" >= '2025-11-15'", MONTHS[10:]),
        ("\"when\" > '2025-10-31'", MONTHS[10:]),
        ("\"when\" < '2025-03-01'", MONTHS[:2]),
        ("\"when\" <= '2025-03-01'", MONTHS[:3]),
        ("\"when\" = '2025-05-17'", ("2025-05",)),
        ("\"when\" BETWEEN '2025-02-10' AND '2025-04-01'", MONTHS[1:4]),
        ("\"when\" >= '2025-02-10' AND smoker AND '2025-03-05' > \"when\"", MONTHS[1:3]),
        ("\"when\" >= '2024-01-01'", MONTHS),  # bounds hold anyway
        # what is no plain comparison narrows nothing
        ("\"when\" < '2025-03-01' OR smoker", MONTHS),
        ("NOT \"when\" = '2025-03-01'", MONTHS),
        ('MONTH("when") = 3', MONTHS),
        ("\"at\" < '2025-02-01'", MONTHS),
        ("\"when\" IN ('2025-03-01', '2025-03-02')", MONTHS),
    ],
)
def test_where_says_which_months_are_charged(condition, expected, monthly):
    assert periods(monthly, condition) == expected


@pytest.mark.parametrize(
    ("every", "condition", "expected"),
    [
        ("year", "TRUE", ("2025",)),
        ("quarter", "\"when\" > '2025-03-31'", ("2025-Q2", "2025-Q3", "2025-Q4")),
        ("week", "\"when\" BETWEEN '2025-01-05' AND '2025-01-06'", ("2024-12-30", "2025-01-06")),
        ("day", "\"when\" BETWEEN '2025-02-27' AND '2025-03-01'", ("2025-02-27", "2025-02-28", "2025-03-01")),
    ],
)
def test_periods_have_names_that_sort(every, condition, expected, asker):
    who = asker(period=f'period = {{ column = "when", every = "{every}" }}')
    assert periods(who, condition) == expected
    assert list(expected) == sorted(expected)


def test_a_datetime_tells_the_period_too(asker):
    who = asker(period='period = { column = "at", every = "month" }')
    assert periods(who, "TRUE") == ("2025-01", "2025-02", "2025-03")
    assert periods(who, "\"at\" < '2025-02-01 00:00:01'") == ("2025-01", "2025-02")
    assert written(who.plan("SELECT COUNT(*) FROM visits WHERE \"at\" >= '2025-02-03'").where).endswith(
        "lt(at, datetime '2025-04-01T00:00:00'))"
    )


def test_without_periods_there_is_one_that_has_no_name(visits):
    plan = visits.plan("SELECT COUNT(*) FROM visits WHERE \"when\" > '2025-10-31'")
    assert plan.periods == ("",)
    assert visits.plan("SELECT COUNT(*) FROM visits").where == TRUE


def table(rows):
    return pa.table(
        {
            "user_id": pa.array([each[0] for each in rows], pa.int64()),
            "when": pa.array([each[1] for each in rows], pa.date32()),
            "age": pa.array([40.0] * len(rows)),
        }
    )


def test_rows_outside_of_the_charged_periods_are_not_read(monthly, memory):
    # Out of bounds is clipped to them: January and December, and nothing else.
    rows = [(1, date(2025, 3, 5)), (1, date(2025, 4, 5)), (2, date(2025, 3, 31)), (3, date(2030, 1, 1)), (4, None)]
    engine = memory(table(rows))

    def count(condition):
        return exact(monthly.plan(f"SELECT COUNT(*) FROM visits WHERE {condition}"), engine, "salt")[0][0]

    assert count("\"when\" BETWEEN '2025-03-01' AND '2025-03-31'") == 2
    assert count("TRUE") == 4  # nobody knows when the last one was
    assert count("\"when\" >= '2025-12-01'") == 1


def test_each_person_has_a_limit_per_period(monthly, memory):
    # 30 rows in each of three months: 10 of each count
    rows = [(1, date(2025, month, 1) + timedelta(days=at % 28)) for month in (1, 2, 3) for at in range(30)]
    plan = monthly.plan("SELECT COUNT(*), COUNT(DISTINCT user_id) FROM visits")
    assert [vector[0] for vector in exact(plan, memory(table(rows)), "salt")] == [30, 3]
    assert any("counts twice" in note for note in plan.notes)


def test_a_condition_that_no_row_meets_is_charged_to_one_period(monthly):
    assert len(periods(monthly, "\"when\" < '2025-03-01' AND \"when\" > '2025-06-01'")) == 1


def test_a_table_without_the_column_cannot_be_asked(asker):
    who = asker(period='period = { column = "when", every = "month" }')
    columns = {name: each for name, each in who.table.policy.columns.items() if name != "when"}
    other = replace(who, table=replace(who.table, policy=replace(who.table.policy, columns=columns)))
    assert isinstance(other.error("SELECT COUNT(*) FROM visits"), NotAllowedError)
    bare = {**who.table.policy.columns, "when": replace(who.table.policy.columns["when"], bounds=None)}
    unbounded = replace(who, table=replace(who.table, policy=replace(who.table.policy, columns=bare)))
    error = unbounded.error("SELECT COUNT(*) FROM visits")
    assert isinstance(error, NotAllowedError) and "no bounds" in str(error)


def test_a_thousand_periods_are_the_most(asker):
    who = asker(period='period = { column = "when", every = "day" }')
    wide = replace(who.table.policy.columns["when"], bounds=Bounds(date(2000, 1, 1), date(2025, 1, 1)))
    policy = replace(who.table.policy, columns={**who.table.policy.columns, "when": wide})
    other = replace(who, table=replace(who.table, policy=policy))
    assert "more than 1000 periods" in str(other.error("SELECT COUNT(*) FROM visits"))
    assert len(periods(other, "\"when\" >= '2024-12-01'")) == 32
