"""Conditions: what is read, what is refused and where, and what NULL does to them."""

from __future__ import annotations

import itertools
from datetime import date, datetime
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import DaleniusError, InputError, UnknownColumnError
from dalenius.tables.condition_reading import read_condition
from dalenius.tables.conditions import (
    Absent,
    Among,
    Columns,
    Compare,
    Condition,
    Either,
    Every,
    Negated,
    allowing,
    columns_of,
    compared,
    holding,
)
from dalenius.tables.policy import Kind

TYPES = {
    "age": Kind.INTEGER,
    "sex": Kind.CATEGORY,
    "begins": Kind.DATETIME,
    "ends": Kind.DATETIME,
    "bmi": Kind.NUMBER,
    "smoker": Kind.BOOLEAN,
    "Patient ID": Kind.TEXT,
    "date": Kind.DATE,
}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("60 <= age", Compare("age", ">=", 60)),
        ("AGE <> -3", Compare("age", "<>", -3)),
        ("begins <= ends", Columns("begins", "<=", "ends")),
        ("\"patient id\" = 'it''s'", Compare("Patient ID", "=", "it's")),
        ("smoker", Compare("smoker", "=", True)),
        ("not smoker", Negated(Compare("smoker", "=", True))),
        ("date > DATE '2025-01-31'", Compare("date", ">", date(2025, 1, 31))),
        ("begins = '2025-01-31'", Compare("begins", "=", datetime.fromisoformat("2025-01-31T00:00:00"))),
        ("sex NOT IN ('f', 'm')", Among("sex", ("f", "m"), False)),
        ("sex is not null", Absent("sex", False)),
        ("age between 18 and 65", Every((Compare("age", ">=", 18), Compare("age", "<=", 65)))),
        (
            "age > 1 or age < 0 and smoker",
            Either((Compare("age", ">", 1), Every((Compare("age", "<", 0), Compare("smoker", "=", True))))),
        ),
    ],
)
def test_it_is_read_as_sql_writes_it(text: str, meant: Condition):
    assert read_condition(text, TYPES) == meant


@pytest.mark.parametrize(
    ("text", "word", "column"),
    [
        ("sex = 1", "holds text", 7),
        ("age = 'old'", "holds whole numbers", 7),
        ("agee = 1", "agee", 1),
        ("lower(sex) = 'f'", "lower", 1),
        ("age + 1 = 2", "stands alone", 5),
        ("age =", "ends too early", 6),
        ("age = NULL", "equal to NULL", 7),
        ("sex LIKE 'f%'", "LIKE", 5),
        ("sex < 'm'", "no order", 10),
        ("(age = 1", "not closed", 9),
        ("age = 1 smoker", "near smoker", 9),
        ("age", "stands alone", 4),
        ("sex = age", "cannot be compared", 10),
        ("age = age", "cannot be compared", 10),
        ("date = '2025-02-30'", "holds dates", 8),
        ("begins = '2025-01-01T00:00:00+01:00'", "holds dates", 10),
        ("age IN ()", "near )", 9),
        ("", "too early", 1),
        ("age = 1; DROP TABLE visits", "near ;", 8),
        (f"{'(' * 60}age = 1{')' * 60}", "too deep", 52),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place_and_costs_nothing(text: str, word: str, column: int):
    with pytest.raises(DaleniusError) as refused:
        read_condition(text, TYPES)
    error = refused.value
    assert isinstance(error, InputError | UnknownColumnError) and error.charge.epsilon == 0
    assert word in error.message and error.fix
    assert error.at is not None and (error.at.line, error.at.column) == (1, column)


def test_a_condition_that_is_too_long_is_not_read():
    with pytest.raises(InputError, match="too long"):
        read_condition("age = 1 OR " * 3000 + "age = 1", TYPES)


# --- NULL, as a database has it

_NAMES = ("a", "b", "c")
_ATOMS = st.one_of(
    st.builds(Compare, st.sampled_from(_NAMES), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.integers(0, 2)),
    st.builds(Among, st.sampled_from(_NAMES), st.tuples(st.integers(0, 2), st.integers(0, 2)), st.booleans()),
    st.builds(Absent, st.sampled_from(_NAMES), st.booleans()),
    st.builds(Columns, st.just("a"), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.sampled_from(["b", "c"])),
)
_CONDITIONS = st.recursive(
    _ATOMS,
    lambda some: st.one_of(
        st.builds(Negated, some),
        st.builds(Every, st.tuples(some, some)),
        st.builds(Either, st.tuples(some, some)),
    ),
    max_leaves=6,
)


def _sql(condition: Condition) -> str:
    match condition:
        case Negated(part):
            return f"(NOT {_sql(part)})"
        case Every(parts):
            return "(" + " AND ".join(map(_sql, parts)) + ")"
        case Either(parts):
            return "(" + " OR ".join(map(_sql, parts)) + ")"
        case Absent(column, absent):
            return f"({column} IS {'' if absent else 'NOT '}NULL)"
        case Compare(column, op, value):
            return f"({column} {op} {value})"
        case Among(column, values, inside):
            return f"({column} {'' if inside else 'NOT '}IN ({', '.join(map(str, values))}))"
        case Columns(first, op, second):
            return f"({first} {op} {second})"


def _plainly(condition: Condition, row: dict[str, Any]) -> bool:
    """What holds, where nothing is negated any more and a comparison with an absent value is false."""
    match condition:
        case Every(parts):
            return all(_plainly(each, row) for each in parts)
        case Either(parts):
            return any(_plainly(each, row) for each in parts)
        case Absent(column, absent):
            return (row[column] is None) == absent
        case Compare(column, op, value):
            return row[column] is not None and compared(row[column], op, value)
        case Among(column, values, inside):
            return row[column] is not None and (row[column] in values) == inside
        case Columns(first, op, second):
            return None not in {row[first], row[second]} and compared(row[first], op, row[second])
        case Negated():
            raise AssertionError("negations come out")


ROWS = [dict(zip(_NAMES, values, strict=True)) for values in itertools.product((None, 0, 1, 2), repeat=3)]


@given(_CONDITIONS)
def test_a_database_finds_the_same_rows_true_and_the_same_rows_not_false(condition: Condition):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [tuple(row.values()) for row in ROWS])
    found = connection.execute(f"SELECT {_sql(condition)} FROM t ORDER BY rowid").fetchall()
    assert [_plainly(holding(condition), row) for row in ROWS] == [value is True for (value,) in found]
    assert [_plainly(allowing(condition), row) for row in ROWS] == [value is not False for (value,) in found]
    assert columns_of(holding(condition)) == columns_of(condition)
