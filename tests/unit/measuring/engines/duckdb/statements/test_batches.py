"""Rows of units in batches: whole units, so many rows of each, in an order that no other unit moves."""

from __future__ import annotations

import time
from collections import Counter
from datetime import date, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from dalenius.errors import EngineFailedError, EngineTimeoutError, NotAllowedError
from dalenius.measuring._exact import exact_batches
from dalenius.measuring.batches import UnitRows
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.engines.duckdb.statements import batches
from dalenius.measuring.engines.engine import recorded, within
from dalenius.measuring.expressions import TRUE, Call, Column, Type, number, text
from dalenius.tables.sources.fingerprint import fingerprint

SALT = "salt"
AGE, FREE, AMOUNT = (Column(name, Type.NUMBER) for name in ("age", "free", "amount"))
REGION, NOTE = (Column(name, Type.TEXT) for name in ("region", "note"))
SMOKER, WHEN, AT = Column("smoker", Type.BOOLEAN), Column("when", Type.DATE), Column("at", Type.DATETIME)

Unit = tuple[int, tuple[tuple[Any, ...], ...]]  # its tag and its rows


def read(engine, table, columns=(FREE,), rows=3, units=4, salt=SALT, where=TRUE, **options) -> list[Unit]:
    """All units in their order, each with its rows, after a look at the bounds of every batch."""
    asked = UnitRows(table, columns, rows, where)
    found: list[Unit] = []
    sizes = []
    for batch in exact_batches(asked, engine, salt, units=units, **options):
        sizes.append(len(batch.tags))
        held = np.diff(batch.starts)
        assert 0 < len(batch.tags) <= units and batch.starts[0] == 0 and len(batch.starts) == len(batch.tags) + 1
        assert held.min() >= 1 and held.max() <= rows
        for values, absent in zip(batch.values, batch.absent, strict=True):
            assert len(values) == len(absent) == batch.starts[-1] == len(batch.owners)
        shown = [
            [None if gone else each for each, gone in zip(values.tolist(), absent.tolist(), strict=True)]
            for values, absent in zip(batch.values, batch.absent, strict=True)
        ]
        lines = list(zip(*shown, strict=True))
        for at, tag in enumerate(batch.tags.tolist()):
            found.append((tag, tuple(lines[batch.starts[at] : batch.starts[at + 1]])))
    assert all(size == units for size in sizes[:-1])
    assert [tag for tag, _ in found] == sorted(tag for tag, _ in found)
    return found


def made(memory, rows: list[tuple[Any, Any]], types=None):
    """An engine over rows of unit and `free`."""
    who, what = zip(*rows, strict=True) if rows else ((), ())
    return memory(
        pa.table({"user_id": pa.array(who, pa.int64()), "free": pa.array(what, pa.float64())}),
        types or {"user_id": "BIGINT", "free": "DOUBLE"},
    )


# Few units, values and rows, so that equal rows, equal units and full units are common.
ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 6)),
        st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, float("nan"), float("inf")])),
    ),
    max_size=40,
)


def held_by(rows) -> dict[int, Counter[tuple[Any, ...]]]:
    """What each unit has: what is no finite number is no value, and a row of nobody is gone."""
    found: dict[int, Counter[tuple[Any, ...]]] = {}
    for who, what in rows:
        if who is not None:
            clean = None if what is None or what - what != 0 else what + 0.0
            found.setdefault(who, Counter())[(clean,)] += 1
    return found


def check_neighbours(memory, table, rows, most=3, units=4, passes=1) -> None:
    """The promise: exactly one unit's rows vanish with it; the rows of others, their order and their tags stay."""
    options = {"rows": most, "units": units, "passes": passes}
    found, held = read(made(memory, rows), table, **options), held_by(rows)
    assert len(found) == len(held)
    for who in list(held)[:3]:
        without = read(made(memory, [each for each in rows if each[0] != who]), table, **options)
        places = [at for at in range(len(found)) if found[:at] + found[at + 1 :] == without]
        assert len(places) == 1
        own = Counter(found[places[0]][1])
        assert own <= held[who] and own.total() == min(most, held[who].total())


@given(rows=ROWS, most=st.integers(1, 5), units=st.integers(1, 4), passes=st.integers(1, 3), fetched=st.integers(1, 9))
@settings(max_examples=examples(100) // 2)
def test_removing_a_unit_leaves_the_rows_and_the_order_of_all_others(
    memory, visits, rows, most, units, passes, fetched
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_FETCHED", fetched)  # units go on from one fetch to the next
        check_neighbours(memory, visits.table, rows, most, units, passes)


@given(rows=ROWS, most=st.integers(1, 5), passes=st.integers(1, 5), chance=st.randoms(use_true_random=False))
@settings(max_examples=examples(100) // 2)
def test_neither_the_order_of_rows_nor_how_they_are_fetched_changes_anything(
    memory, visits, rows, most, passes, chance
):
    first = read(made(memory, rows), visits.table, rows=most, units=2)
    moved = list(rows)
    chance.shuffle(moved)
    assert read(made(memory, moved), visits.table, rows=most, units=3, passes=passes) == first


# --- which rows


def test_a_unit_with_ten_thousand_rows_gives_as_many_as_are_wanted(memory, visits):
    rows = [(1, float(at)) for at in range(10_000)] + [(2, 5.0), (3, 6.0)]
    found = read(made(memory, rows), visits.table, rows=7)
    assert sorted(len(lines) for _, lines in found) == [1, 1, 7]
    (many,) = (lines for _, lines in found if len(lines) == 7)
    assert len(set(many)) == 7


def test_equal_rows_keep_their_share_to_within_one(memory, visits):
    rows = [(who, float(at % 10 == 0)) for who in range(30) for at in range(100)]
    for _, lines in read(made(memory, rows), visits.table, rows=25):
        assert len(lines) == 25 and Counter(lines)[(1.0,)] in {2, 3}


def test_of_equal_rows_and_one_other_the_one_is_seldom_chosen(memory, visits):
    """By a hash of what is in them it would be one of two. Here 1,000 units choose one of 20 rows: 50 ± 7 of them."""
    rows = [(who, float(at == 0)) for who in range(1000) for at in range(20)]
    found = read(made(memory, rows), visits.table, rows=1, units=1000)
    assert 10 < sum(lines == ((1.0,),) for _, lines in found) < 90


def check_salt(memory, table) -> None:
    """Another salt gives another order and other rows; the same one the same."""
    engine = made(memory, [(who, float(at)) for who in range(40) for at in range(10)])
    first, again, other = (read(engine, table, salt=salt) for salt in (SALT, SALT, "another"))
    assert first == again
    assert {tag for tag, _ in first}.isdisjoint({tag for tag, _ in other})
    assert Counter(lines for _, lines in first) != Counter(lines for _, lines in other)


def test_the_salt_decides_the_order_and_which_rows_are_read(memory, visits):
    check_salt(memory, visits.table)


def test_units_that_are_equal_are_one_however_they_are_written(memory, visits):
    check_spelling(memory, visits.table)


def test_the_order_of_units_is_not_that_of_their_names(memory, visits):
    found = read(made(memory, [(who, float(who)) for who in range(200)]), visits.table)
    places = [int(lines[0][0]) for _, lines in found]
    assert sorted(places) == list(range(200))
    assert 40 < sum(one < other for one, other in pairwise(places)) < 160


def check_spelling(memory, table) -> None:
    """0.0 and −0.0 are one unit, in one place, in any number of passes."""
    who = pa.array([0.0, -0.0, 0.0, 1.0, float("nan"), None])
    rows = pa.table({"user_id": who, "free": pa.array([float(at) for at in range(6)])})
    engine = memory(rows, {"user_id": "DOUBLE", "free": "DOUBLE"})
    for passes in (1, 7):
        found = read(engine, table, rows=2, passes=passes)
        assert sorted(len(lines) for _, lines in found) == [1, 2]


def test_units_of_several_columns_are_told_apart(asker, memory):
    who = asker(unit='["a", "b"]')
    table = pa.table({"a": ["x|y", "x", "x", None], "b": ["z", "y|z", "y|z", "z"], "free": [1.0, 2.0, 3.0, 4.0]})
    found = read(memory(table, {"a": "VARCHAR", "b": "VARCHAR", "free": "DOUBLE"}), who.table)
    assert {tuple(sorted(lines)) for _, lines in found} == {((1.0,),), ((2.0,), (3.0,))}


def test_with_budgets_per_period_a_unit_is_a_person_in_one(asker, memory):
    who = asker(period='period = { column = "when", every = "month" }')
    days = [date(2025, 1, 3), date(2025, 1, 9), date(2025, 2, 1), None]
    table = pa.table({"user_id": [1, 1, 1, 1], "when": days, "free": [1.0, 2.0, 3.0, 4.0]})
    found = read(memory(table, {"user_id": "BIGINT", "when": "DATE", "free": "DOUBLE"}), who.table)
    assert {tuple(sorted(lines)) for _, lines in found} == {((1.0,), (2.0,)), ((3.0,),)}
    assert len({tag for tag, _ in found}) == 2


# --- what is in them


def test_values_are_cleaned_as_in_questions(visits, tmp_path):
    """CSV: all text. What cannot be read is absent, what is out of bounds is moved to them, and keys are declared."""
    file = tmp_path / "visits.csv"
    file.write_text(
        "user_id,age,free,child,region,smoker,when,at,note\n"
        "7000001,17,1e300,1,north,true,2024-01-01,2025-02-01 10:00:00,a long word\n"
        "7000002,abc,nan,7,nowhere,maybe,soon,never,\n"
        "7000003,91.2,-inf,,south,false,2025-06-01,2025-02-01 10:00:00,b\n"
        ",20,1,1,north,true,2025-06-01,2025-02-01 10:00:00,c\n"
    )
    engine = DuckDB(fingerprint([str(file)]), threads=1)
    child = Column("child", Type.NUMBER)
    found = read(engine, visits.table, (AGE, FREE, child, REGION, SMOKER, WHEN, AT, NOTE))
    engine.close()
    moment = datetime.fromisoformat("2025-02-01 10:00:00")
    assert {lines[0] for _, lines in found} == {
        (18.0, 1e300, 1.0, "north", True, date(2025, 1, 1), moment, "a long word"),
        (None, None, 0.0, None, None, None, None, None),
        (90.0, None, 0.0, "south", False, date(2025, 6, 1), moment, "b"),
    }


def test_arrays_hold_nothing_that_is_not_finite_even_where_a_value_is_absent(memory, visits):
    rows = [(1, float("nan")), (2, float("inf")), (3, None), (4, 1e200), (5, -0.0)]
    square = Call("mul", (FREE, FREE), Type.NUMBER)  # not made total: 1e400
    asked = UnitRows(visits.table, (FREE, square), 2)
    (batch,) = exact_batches(asked, made(memory, rows), SALT, units=10)
    for values in batch.values:
        assert values.dtype == np.float64 and np.isfinite(values).all() and not np.signbit(values).any()
    assert [each.sum() for each in batch.absent] == [3, 4]


def test_each_type_has_its_array(memory, visits):
    table = pa.table(
        {
            "user_id": [1, 2],
            "age": [20, None],
            "region": ["north", None],
            "smoker": [True, None],
            "when": [date(2025, 3, 1), None],
            "at": [datetime.fromisoformat("2025-02-01"), None],
        }
    )
    names = ("BIGINT", "BIGINT", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP")
    types = dict(zip(table.column_names, names, strict=True))
    asked = UnitRows(visits.table, (AGE, REGION, SMOKER, WHEN, AT), 1)
    (batch,) = exact_batches(asked, memory(table, types), SALT, units=2)
    kinds = [str(each.dtype) for each in batch.values]
    assert kinds == ["float64", "object", "bool", "datetime64[D]", "datetime64[us]"]
    (gone,) = np.flatnonzero(batch.absent[0])
    assert [each[gone] for each in batch.values[:3]] == [0.0, "", False]
    assert not np.isnat(batch.values[3]).any() and not np.isnat(batch.values[4]).any()


def test_only_rows_that_count_are_read(memory, visits):
    rows = [(who, float(at)) for who in range(5) for at in range(4)] + [(9, 0.0)]
    few = Call("lt", (number(1.5), FREE), Type.BOOLEAN)
    found = read(made(memory, rows), visits.table, where=few)
    assert [set(lines) for _, lines in found] == [{(2.0,), (3.0,)}] * 5
    none = Call("eq", (FREE, number(77)), Type.BOOLEAN)
    assert read(made(memory, rows), visits.table, where=none) == []


def test_an_expression_is_read_of_each_row(memory, visits):
    long = Call("case", (Call("lt", (number(1.5), FREE), Type.BOOLEAN), text("much"), text("little")), Type.TEXT)
    found = read(made(memory, [(1, 1.0), (2, 2.0)]), visits.table, (long,))
    assert {lines for _, lines in found} == {(("much",),), (("little",),)}


def test_the_names_of_units_are_in_no_array(memory, visits):
    rows = [(7_000_000 + who, float(who)) for who in range(20)]
    for batch in exact_batches(UnitRows(visits.table, (FREE,), 2), made(memory, rows), SALT, units=6):
        shown = [batch.tags, batch.starts, batch.owners, *batch.values]
        assert not {float(who) for who, _ in rows} & {float(each) for array in shown for each in array}


# --- how it runs


@pytest.fixture
def engine(tmp_path):
    """`engine(rows)`: files, as protected tables have them."""
    opened: list[DuckDB] = []

    def made_of(rows):
        who, what = zip(*rows, strict=True)
        file = tmp_path / f"{len(opened)}.parquet"
        pq.write_table(pa.table({"user_id": who, "free": what}), file)
        opened.append(DuckDB(fingerprint([str(file)]), threads=1))
        return opened[-1]

    yield made_of
    for each in opened:
        each.close()


def test_the_same_statements_run_whoever_is_there(engine, visits):
    """With one unit more that has most rows, and in one more batch."""
    rows = [(who, float(who)) for who in range(8)]
    texts = []
    for one in (engine(rows), engine([*rows, *((99, float(at)) for at in range(500))])):
        with recorded() as ran:
            read(one, visits.table, units=4, passes=2)
        assert [each.outcome for each in ran] == ["done", "done"]
        texts.append([each.text.replace(one.scan, "scan") for each in ran])
    assert texts[0] == texts[1]


def test_who_leaves_early_leaves_nothing_running(engine, visits):
    one = engine([(who, float(who)) for who in range(50)])
    with recorded() as ran:
        found = exact_batches(UnitRows(visits.table, (FREE,), 1), one, SALT, units=1)
        assert not ran and len(next(found).tags) == 1
        del found
    assert [each.outcome for each in ran] == ["left"]
    assert one.run(f"SELECT count(*) FROM {one.scan}") == [(50,)]


def test_time_passes_while_the_engine_works_and_no_longer(engine, visits, monkeypatch):
    monkeypatch.setattr(batches, "_FETCHED", 100)
    one = engine([(who, float(who)) for who in range(500)])
    asked = UnitRows(visits.table, (FREE,), 1)
    found = exact_batches(asked, one, SALT, units=100, seconds=20.0)
    assert len(next(found).tags) == 100
    monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic: now() + 100)  # somebody looks at it for long
    assert len(list(found)) == 4
    with within(0.0), recorded() as ran, pytest.raises(EngineTimeoutError):
        list(exact_batches(asked, one, SALT, units=100))
    assert [each.outcome for each in ran] == ["late"]


def test_a_failure_says_nothing_of_the_rows(engine):
    one = engine([(1, "7 of hearts")])
    with recorded() as ran, pytest.raises(EngineFailedError) as caught:
        list(one.stream(f"SELECT CAST(free AS INTEGER) FROM {one.scan}", rows=10))
    assert "hearts" not in str(caught.value) and caught.value.__context__ is None
    assert [each.outcome for each in ran] == ["failed"]


def test_an_engine_that_only_adds_up_says_so(visits):
    class Adding(Measuring):
        scan, columns, index = "rows", {}, None

        def run(self, sql, *, seconds=60.0):
            return []

    with pytest.raises(NotAllowedError):
        exact_batches(UnitRows(visits.table, (FREE,), 1), Adding(), SALT, units=1)


# --- planted bugs


def unkeyed(self, salt):
    return f"SELECT *, CAST(hash({', '.join(self.units)}) AS UBIGINT) AS tag FROM kept"


def by_text(self, salt):
    """Equal units with two spellings get two tags."""
    return f"SELECT *, md5_number_upper('{salt}' || CAST(u0 AS VARCHAR)) AS tag FROM kept"


def by_rank(self):
    """Units are counted through: what comes before a unit decides about it."""
    return f"SELECT *, {self.quota()} AS quota, dense_rank() OVER (ORDER BY tag) % held AS start FROM laid"


FULL = [(who, float(at)) for who in range(7) for at in range(9)]
BUGS: dict[str, tuple[str, Any, Any]] = {
    "no limit": ("quota", lambda self: "held", lambda memory, table: check_neighbours(memory, table, FULL)),
    "others decide": ("spread", by_rank, lambda memory, table: check_neighbours(memory, table, FULL)),
    "no salt": ("tagged", unkeyed, check_salt),
    "units by spelling": ("tagged", by_text, check_spelling),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug, memory, visits, monkeypatch):
    step, planted, check = BUGS[bug]
    check(memory, visits.table)
    monkeypatch.setattr(batches.RowCompiler, step, planted)
    with pytest.raises(AssertionError):
        check(memory, visits.table)
