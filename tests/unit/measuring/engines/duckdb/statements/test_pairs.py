"""Pairs of unit and key that are counted in memory: the same integers as by SQL, for both looks and for the index."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb import indexing
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.duckdb.index import IndexFiles
from dalenius.measuring.engines.duckdb.indexing import build_index
from dalenius.measuring.engines.duckdb.measuring import selects_of
from dalenius.measuring.engines.duckdb.statements import keys, pairs, sums
from dalenius.measuring.plan import Limits
from dalenius.queries.answering import Answer, measure_plan
from dalenius.queries.rules.price import price_plan
from dalenius.tables.sources.fingerprint import fingerprint

SALT = "salt"
QUESTION = "SELECT note, COUNT(*) FROM visits GROUP BY note"
POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 3
delta = 1e-6
[columns.note]
type = "category"
[contribution]
rows = 5
"""
UNITS = {
    "BIGINT": (pa.int64(), lambda who: (who * 0x9E3779B97F4A7C15) % 2**64 - 2**63),  # far apart, of both signs
    "UBIGINT": (pa.uint64(), lambda who: 2**64 - 1 - who),
    "TINYINT": (pa.int8(), lambda who: who - 40),
    "VARCHAR": (pa.string(), lambda who: "" if who == 3 else f"user {who} ß"),
}


def drawn(unit: str = "BIGINT", users: int = 80, notes: int = 40) -> pa.Table:
    """Some units with one row, some with many of one key, some with nearly all keys; some rows have no unit or key."""
    chance = Random(5)
    type_, named = UNITS[unit]
    held: list[tuple[Any, int | None]] = []
    for user in range(users):
        often = chance.choice((1, 2, 9, 200))
        few = chance.choice((1, 3, notes))
        held += [(named(user), chance.randrange(few)) for _ in range(chance.randrange(1, often + 1))]
    held += [(None, 1)] * 9 + [(named(1), None)] * 9
    chance.shuffle(held)
    who, what = zip(*held, strict=True)
    return pa.table(
        {
            "user_id": pa.array(who, type_),
            "note": pa.array([None if each is None else f"n{each}" for each in what], pa.string()),
            "free": pa.array([None if each is None else (each - 2) * 0.1 if each != 2 else -0.0 for each in what]),
            "day": pa.array([None if each is None else date(2020, 1, 1 + each % 20) for each in what]),
            "age": pa.array([20 + (each or 0) for each in what], pa.int64()),
            "amount": pa.array([float(at % 50) for at in range(len(what))]),
        }
    )


@pytest.fixture
def engine(tmp_path):
    """`engine(table)`: an engine over it in a file."""

    def made(table: pa.Table) -> DuckDB:
        pq.write_table(table, tmp_path / "visits.parquet")
        return DuckDB(fingerprint([str(tmp_path / "visits.parquet")]), threads=1)

    return made


@pytest.fixture(params=[1, 3], ids=["one block", "three blocks"])
def blocks(request, monkeypatch):
    """Rows in one block, or in some."""
    monkeypatch.setattr(pairs, "_FEW", 1)
    monkeypatch.setattr(pairs, "_cores", lambda: request.param)


def plan_of(asker, sql=QUESTION, groups=None, rows=10):
    return asker(contribution=f"rows = {rows}").plan(sql, None if groups is None else Limits(groups=groups))


def same_both_ways(plan, engine) -> tuple[dict[Any, int], list[list[int]]]:
    """Weights and counts by pairs, after a comparison with the statements."""
    general = engine.run(keys.statement(plan, engine.scan, engine.columns, SALT))
    held = pairs.HeldPairs(plan, engine, SALT, 60.0)
    assert held.pairs is not None
    cells, weights = keys.weights(plan, engine, SALT, 60.0, held)
    weighed = dict(zip(cells, weights, strict=True))
    assert len(weighed) == len(cells) and weighed == {tuple(row[:-1]): row[-1] for row in general}
    plan = replace(plan, cells=(*cells, *((None,) * len(plan.keys),)))
    counts = exact(plan, engine, SALT, held=held)
    assert counts == [each for part in selects_of(plan) for each in sums.run(plan, part, engine, SALT, 60.0)]
    return weighed, counts


# --- the same integers


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("cap", [1, 2, 7, 39, 100])
def test_weights_are_those_of_the_statement(unit, cap, asker, engine, blocks):
    weighed, _ = same_both_ways(plan_of(asker, groups=cap), engine(drawn(unit)))
    assert len(weighed) > 20 or cap < 7


@pytest.mark.parametrize("clip", [1, 2, 10, 100, 1000, 10**9])
def test_counts_are_clipped_as_by_the_statement(clip, asker, engine, blocks):
    found = engine(drawn())
    plan = plan_of(asker, rows=clip)
    assert plan.groups is None and plan.measures[0].clip == clip
    _, ((*counts, nothing),) = same_both_ways(plan, found)
    ((rows,),) = found.run(f"SELECT count(*) FROM {found.scan} WHERE user_id IS NOT NULL AND note IS NOT NULL")
    assert nothing == 0 < sum(counts) and (sum(counts) == rows << plan.measures[0].bits) == (clip >= 1000)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT free, COUNT(*) FROM visits GROUP BY free",
        "SELECT FLOOR(free), COUNT(*) FROM visits GROUP BY 1",
        "SELECT note, free, COUNT(*) FROM visits GROUP BY note, free",
        "SELECT note = 'n1', note, COUNT(*) FROM visits WHERE age > 22 GROUP BY 1, 2",
        "SELECT note, COUNT(*) FROM visits WHERE age > 1000 GROUP BY note",
    ],
)
def test_any_keys_and_conditions_will_do(sql, asker, engine, blocks):
    same_both_ways(plan_of(asker, sql), engine(drawn()))


def test_units_and_keys_may_be_too_many_for_32_bits(asker, engine):
    size = 70_000
    numbers = pa.array(range(size), pa.int64())
    notes = pa.array([f"{at}" for at in range(size)])
    table = pa.table({"user_id": pa.concat_arrays([numbers] * 2), "note": pa.concat_arrays([notes, notes[::-1]])})
    weighed, (counts,) = same_both_ways(plan_of(asker), engine(table))
    assert len(weighed) == size and set(counts) == {0, 2 << plan_of(asker).measures[0].bits}


def test_rounding_does_not_matter_where_lengths_are_whole(asker, engine):
    """Σn² = 25 = 5² is no longer than 5, and 26 is: scaled by 5/√26, in parts of a row."""
    held = [(1, "a")] * 3 + [(1, "b")] * 4 + [(2, "a")] * 3 + [(2, "b")] * 4 + [(2, "c")]
    who, what = zip(*held, strict=True)
    table = pa.table({"user_id": pa.array(who, pa.int64()), "note": what})
    plan = plan_of(asker, rows=5)
    _, (counts,) = same_both_ways(plan, engine(table))
    parts = 2 ** plan.measures[0].bits
    k = math.isqrt(26 * parts * parts) + 1
    assert sum(counts) == 7 * parts + sum(each * parts * 5 * parts // k for each in (3, 4, 1))
    assert sum(counts) / parts == pytest.approx(7 + 8 * 5 / math.sqrt(26), rel=1e-5)


# --- when they are counted


def test_a_question_counts_pairs_once(asker, engine, monkeypatch):
    found = engine(drawn())
    ran: list[str] = []

    def noted(name, run):
        def noting(*what, **more):
            ran.append(name)
            return run(*what, **more)

        monkeypatch.setattr(found, name, noting)

    noted("run", found.run)
    noted("arrow", found.arrow)

    def ask(sql):
        plan = plan_of(asker, sql)
        ran.clear()
        return Answer.read(plan, measure_plan(plan, price_plan(plan, 40.0, 1e-4), found, SALT, 60.0), 0.95).table().rows

    found.extent("user_id")  # looked up once, whatever is asked
    # keys, rows, the choice of units with too many keys, and what clipping takes
    assert ask(QUESTION) and ran == ["arrow"] * 4
    assert ask("SELECT note, COUNT(*), SUM(age) FROM visits GROUP BY note") and ran == ["arrow"] * 3 + ["run"]


@pytest.mark.parametrize("why", ["floats", "several columns", "too many rows", "long texts", "other kinds of keys"])
def test_what_is_unusual_goes_the_general_way(why, asker, engine, monkeypatch):
    table, unit = drawn("VARCHAR" if why == "long texts" else "BIGINT"), '["user_id"]'
    if why == "floats":
        table = table.set_column(0, "user_id", table["user_id"].cast(pa.float64(), safe=False))
    elif why == "several columns":
        unit = '["user_id", "day"]'
    else:
        name, value = {
            "too many rows": ("MOST_ROWS", 10),
            "long texts": ("MOST_BYTES", 10),
            "other kinds of keys": ("_KEYS", set()),
        }[why]
        monkeypatch.setattr(pairs, name, value)
    plan, found = asker(unit=unit, contribution="rows = 10").plan(QUESTION), engine(table)
    assert pairs.count_pairs(plan, found, SALT, 60.0) is None
    general = found.run(keys.statement(plan, found.scan, found.columns, SALT))
    assert dict(zip(*keys.weights(plan, found, SALT, 60.0), strict=True)) == {row[:-1]: row[-1] for row in general}


def test_periods_go_the_general_way(asker, engine):
    who = asker(period='period = { column = "when", every = "month" }', contribution="rows = 10")
    table = drawn().rename_columns(["user_id", "note", "free", "when", "age", "amount"])
    plan = who.plan("SELECT note, COUNT(*) FROM visits WHERE \"when\" < DATE '2025-03-01' GROUP BY note")
    assert pairs.count_pairs(plan, engine(table), SALT, 60.0) is None


# --- the index


@pytest.mark.parametrize("unit", UNITS)
def test_an_index_holds_the_same_either_way(unit, asker, engine, tmp_path, monkeypatch, blocks):
    table, found, held = asker(POLICY).table, engine(drawn(unit)), []
    monkeypatch.setattr(indexing, "FEW_KEYS", 3)
    for most, name in ((pairs.MOST_ROWS, "pairs"), (0, "general")):
        monkeypatch.setattr(pairs, "MOST_ROWS", most)
        layout = IndexFiles(tmp_path / name, table, found.fingerprint)
        build_index(layout, found)
        files = [each for each in layout.files if each.column == "note"]
        assert {each.kind for each in files} == {"keys", "pairs", "weights"}
        held.append({each.kind: pq.read_table(each.path) for each in files})
    for kind, one in held[0].items():
        other = held[1][kind]
        assert one.schema.equals(other.schema) and one.num_rows > 0
        assert sorted(one.to_pylist(), key=repr) == sorted(other.to_pylist(), key=repr)
