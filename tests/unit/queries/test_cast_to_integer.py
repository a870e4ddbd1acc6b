"""CAST(… AS INTEGER) rounds as DuckDB does, by type: in rows, in keys that are listed, and after the aggregation."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from tests.unit.queries.test_postprocess import shown
from tests.whole import exact_steps

CONSTANTS = [
    *("2.5", "-2.5", "0.5", "3.5", "25 / 10.0", "-25 / 10.0", "35 / 10.0", "25e-1", "CAST(2.5 AS DOUBLE)", "'2.5'"),
    *("5 * 0.5", "-(5 * 0.5)", "CAST(5 AS DOUBLE) * 0.5", "7 / 2", "5 / 2", "17", "1e15 + 0.5", "ABS(-2.5)"),
    *("CASE WHEN 1 / 2 > 0 THEN 2.5 ELSE 1 END", "CASE WHEN TRUE THEN 5 / 2 ELSE 2.5 END", "GREATEST(1, 2.5)"),
]
AMOUNTS = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 4.49, 4.5, 4.51, 1000.5, 4999.5]
OF_COLUMNS = [
    "amount",
    "amount / 2",
    "amount * 0.5",
    "age * 0.5",
    "age / 2",
    "age",
    "-change",
    "change",
    "ROUND(amount)",
]


def by_duckdb(expression, table=None):
    rows = table if table is not None else pa.table({"place": [0]})
    with duckdb.connect() as connection:
        connection.register("visits", rows)
        return [row[0] for row in connection.execute(f"SELECT CAST({expression} AS BIGINT) FROM visits").fetchall()]


def rows():
    numbers = len(AMOUNTS)
    return pa.table(
        {
            "user_id": pa.array(range(numbers), pa.int64()),
            "amount": pa.array(AMOUNTS, pa.float64()),
            "age": pa.array(range(21, 21 + numbers), pa.int64()),
            "change": pa.array([at / 2 - 3 for at in range(numbers)], pa.float64()),
        }
    )


def test_a_double_rounds_to_even_and_a_decimal_away_from_zero():
    assert by_duckdb("25 / 10.0") == [2] and by_duckdb("2.5") == [3]  # else this file tests against something else


@pytest.mark.parametrize("expression", CONSTANTS)
def test_a_constant_is_what_duckdb_says_before_and_after_aggregation(expression, visits, memory):
    (expected,) = by_duckdb(expression)
    plan = visits.plan(f"SELECT COUNT(*) FROM visits WHERE CAST({expression} AS BIGINT) = {expected}")
    assert exact_steps(plan, memory(rows()), "salt")[0][0] == len(AMOUNTS)
    found = shown(visits, f"SELECT COUNT(*), CAST({expression} AS BIGINT) AS e FROM visits", [[7]])
    assert found.rows == ((7, expected),)


@pytest.mark.parametrize("expression", OF_COLUMNS)
def test_every_row_is_in_the_group_that_duckdb_puts_it_in(expression, visits, memory):
    expected = by_duckdb(expression, rows())
    plan = visits.plan(f"SELECT COUNT(*) FROM visits GROUP BY CAST({expression} AS INTEGER)")
    counts = dict(zip((cell[0] for cell in plan.cells), exact_steps(plan, memory(rows()), "salt")[0], strict=True))
    assert {value: count for value, count in counts.items() if count} == {
        float(each): expected.count(each) for each in expected
    }


@pytest.mark.parametrize(("aggregate", "value"), [("AVG(age)", 2.5), ("COUNT(*) / 2", 5), ("COUNT(*) * 0.5", 5)])
def test_what_was_released_rounds_alike(aggregate, value, visits):
    found = shown(visits, f"SELECT CAST({aggregate} AS INTEGER) AS e FROM visits", [[value]])
    assert found.rows == ((3 if "0.5" in aggregate else 2,),)


def test_questions_whose_meaning_is_the_same_keep_their_stored_answers(visits):
    for expression, written in (
        ("age", "to_integer(age)"),
        ("note", "finite(to_integer(note))"),
        ("age * 0.5", "to_integer(mul(0.5, age))"),
        ("amount", "round_even(amount)"),  # meant another number for halves
    ):
        asked = f"SELECT COUNT(*) FROM visits WHERE CAST({expression} AS INTEGER) > 30"
        assert f"where le(31, {written})" in visits.plan(asked).canonical()
