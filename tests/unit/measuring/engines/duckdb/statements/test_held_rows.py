"""All rows, each with how many its unit has: a unit that is gone takes its own along, and changes nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.shop import Shop
from tests.unit.measuring.engines.duckdb.statements.test_batches import (
    AGE,
    AT,
    FREE,
    NOTE,
    REGION,
    ROWS,
    SALT,
    SMOKER,
    WHEN,
    made,
)
from tests.unit.measuring.engines.duckdb.statements.test_joined_batches import RELATIONS

from dalenius.errors import InputError, NotAllowedError
from dalenius.measuring._exact import exact_batches, exact_rows
from dalenius.measuring.batches import UnitRows
from dalenius.measuring.engines.duckdb.statements import held_rows
from dalenius.measuring.engines.engine import recorded
from dalenius.measuring.expressions import TRUE, Call, Column, Type, number
from dalenius.measuring.held_rows import HeldRows

Found = Counter[tuple[Any, ...]]  # rows, each with how many its unit has as its last value


def read(engine, table, columns=(FREE,), where=TRUE) -> Found:
    found: Found = Counter()
    for batch in exact_rows(HeldRows(table, columns, where), engine, SALT):
        shown = []
        for values, absent, places in zip(batch.values, batch.absent, batch.places, strict=True):
            each = [None if gone else value for value, gone in zip(values.tolist(), absent.tolist(), strict=True)]
            shown.append(each if places is None else [each[place] for place in places])
        found.update(zip(*shown, batch.held.tolist(), strict=True))
    return found


def in_batches(engine, table, columns, where=TRUE) -> Found:
    """The same by the other way of reading."""
    found: Found = Counter()
    for batch in exact_batches(UnitRows(table, columns, 1000, where), engine, SALT, units=5):
        held = np.repeat(np.diff(batch.starts), np.diff(batch.starts))
        shown = [
            [None if gone else each for each, gone in zip(values.tolist(), absent.tolist(), strict=True)]
            for values, absent in zip(batch.values, batch.absent, strict=True)
        ]
        found.update(zip(*shown, held.tolist(), strict=True))
    return found


def check_neighbours(memory, table, rows) -> None:
    found = read(made(memory, rows), table)
    for who in {who for who, _ in rows if who is not None}:
        own = [each for each in rows if each[0] == who]
        without = read(made(memory, [each for each in rows if each[0] != who]), table)
        gone = found - without
        assert found == without + gone and gone.total() == len(own)
        assert {held for *_, held in gone} == {len(own)}


@given(rows=ROWS, fetched=st.integers(1, 9))
@settings(max_examples=examples(60))
def test_a_unit_that_is_gone_takes_its_rows_along_and_no_other_row_changes(memory, visits, rows, fetched):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_rows, "_FETCHED", fetched)
        check_neighbours(memory, visits.table, rows)


def test_a_number_of_rows_that_is_not_of_the_unit_alone_is_caught(memory, visits, monkeypatch):
    shown = held_rows.HeldCompiler.shown
    monkeypatch.setattr(
        held_rows.HeldCompiler, "shown", lambda each: shown(each).replace("PARTITION BY u0", "PARTITION BY k0")
    )
    with pytest.raises(AssertionError):
        check_neighbours(memory, visits.table, [(1, 0.0), (2, 0.0), (2, 1.0)])


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return Shop.protected(tmp_path_factory.mktemp("shop"))


@pytest.mark.parametrize("name", RELATIONS)
def test_several_tables_that_are_one_have_the_rows_that_batches_have(name, shop):
    plan, reading = shop.planned(RELATIONS[name][0])
    columns = tuple(Column(each, Type.NUMBER) for each in RELATIONS[name][1])
    engine = reading.engine(shop.curator.engines)
    found = read(engine, plan.table, columns, plan.where)
    assert found and found == in_batches(engine, plan.table, columns, plan.where)


def test_equal_units_are_one_however_they_are_written(memory, visits):
    who = pa.array([0.0, -0.0, 0.0, 1.0, float("nan"), float("nan"), None])
    rows = pa.table({"user_id": who, "free": pa.array([float(at) for at in range(7)])})
    engine = memory(rows, {"user_id": "DOUBLE", "free": "DOUBLE"})
    assert read(engine, visits.table) == in_batches(engine, visits.table, (FREE,))


def test_with_budgets_per_period_a_unit_is_a_person_in_one(asker, memory):
    who = asker(period='period = { column = "when", every = "month" }')
    days = [date(2025, 1, 3), date(2025, 1, 9), date(2025, 2, 1), None]
    table = pa.table({"user_id": [1, 1, 1, 1], "when": days, "free": [1.0, 2.0, 3.0, 4.0]})
    found = read(memory(table, {"user_id": "BIGINT", "when": "DATE", "free": "DOUBLE"}), who.table)
    assert found == Counter([(1.0, 2), (2.0, 2), (3.0, 1)])


def test_only_rows_that_count_are_read_and_counted(memory, visits):
    rows = [(who, float(at)) for who in range(3) for at in range(4)]
    few = Call("lt", (number(1.5), FREE), Type.BOOLEAN)
    assert read(made(memory, rows), visits.table, where=few) == Counter({(2.0, 2): 3, (3.0, 2): 3})
    none = Call("eq", (FREE, number(77)), Type.BOOLEAN)
    assert read(made(memory, rows), visits.table, where=none) == Counter()


def test_each_type_comes_as_in_batches_and_texts_once_each(memory, visits):
    table = pa.table(
        {
            "user_id": [1, 2, 2],
            "age": [20, None, 33],
            "region": ["north", None, "north"],
            "smoker": [True, None, False],
            "when": [date(2025, 3, 1), None, date(2025, 3, 2)],
            "at": [datetime.fromisoformat("2025-02-01"), None, datetime.fromisoformat("2025-02-02")],
            "note": ["a", "b", ""],
        }
    )
    names = ("BIGINT", "BIGINT", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "VARCHAR")
    engine = memory(table, dict(zip(table.column_names, names, strict=True)))
    columns = (AGE, REGION, SMOKER, WHEN, AT, NOTE)
    (batch,) = exact_rows(HeldRows(visits.table, columns), engine, SALT)
    kinds = [str(each.dtype) for each in batch.values]
    assert kinds == ["float64", "object", "bool", "datetime64[D]", "datetime64[us]", "object"]
    assert [each is None for each in batch.places] == [True, False, False, True, True, False]
    assert batch.values[1].tolist() == ["north", ""] and batch.absent[1].tolist() == [False, True]
    assert read(engine, visits.table, columns) == in_batches(engine, visits.table, columns)
    asked = defaultdict[str, int](int)

    def code(values, absent):
        asked["texts"] += len(values)
        return np.where(absent, -1, 7)

    assert batch.coded(1, code).tolist() == [7, -1, 7] and asked["texts"] == 2


def test_the_same_statements_run_whoever_is_there(memory, visits):
    texts = []
    for more in ([], [(99, float(at)) for at in range(500)]):
        engine = made(memory, [(who, float(who)) for who in range(8)] + more)
        with recorded() as ran:
            read(engine, visits.table)
        texts.append([(each.text, each.outcome) for each in ran])
    assert texts[0] == texts[1] and len(texts[0]) == 1


def test_what_says_who_somebody_is_cannot_be_read(visits):
    with pytest.raises(NotAllowedError):
        HeldRows(visits.table, (AGE, Column("user_id", Type.NUMBER)))
    with pytest.raises(InputError):
        HeldRows(visits.table, ())


def test_a_batch_shows_nothing_in_a_traceback(memory, visits):
    (batch,) = exact_rows(HeldRows(visits.table, (FREE,)), made(memory, [(1, 77.0)]), SALT)
    assert repr(batch) == str(batch) == "RowBatch(…)"
