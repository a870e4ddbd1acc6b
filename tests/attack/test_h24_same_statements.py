"""H24: the same statements run on neighbours, in the same order and with the same success, index and general way.

The neighbour fuzzer compares them on every pair that it draws (`test_neighbour_fuzzer`, `test_joined_fuzzer`): more
than 20,000 pairs in the long form. Here every pair has an index, and the bugs that must be seen are planted.
"""

from __future__ import annotations

from datetime import date
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import LONG

from dalenius.audit import fuzz as fuzzer
from dalenius.audit.fuzzing import traces
from dalenius.errors import EngineFailedError
from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.connections import DuckDB, public
from dalenius.measuring.engines.duckdb.index import IndexFiles
from dalenius.measuring.engines.duckdb.indexing import build_index
from dalenius.measuring.engines.duckdb.rendering import double
from dalenius.measuring.engines.duckdb.statements import sums, valid_index
from dalenius.measuring.engines.duckdb.statements.indexed_sums import PlainSums
from dalenius.measuring.engines.engine import Ran, note, recorded
from dalenius.measuring.plan import Table, require
from dalenius.owner.protect import budget_of
from dalenius.queries.rules import plan_question
from dalenius.tables.reading import read_text
from dalenius.tables.sources.fingerprint import fingerprint

SEED = 1977
NEAR = 40  # cases, from where the bug was last seen


@pytest.fixture(autouse=True)
def unshrunk(monkeypatch):
    monkeypatch.setattr(fuzzer, "shrink", lambda made, _: made)


def test_neighbours_run_the_same_statements_each_with_its_own_index():
    report = fuzzer.fuzz(cases=800 if LONG else 24, seed=24, indexed=1.0)
    assert not report.violations, report.violations[0]
    assert report.compared > 0.7 * report.cases
    assert report.drawn["indexed"] == report.compared


def squares_of_32_bits(monkeypatch):
    """As in the index path once: whatever fits in 32 bits is squared and multiplied there."""
    scaled = PlainSums.scaled

    def narrow(self, measure, value):
        if not self._short(measure):
            return scaled(self, measure, value)
        rounded = f"CAST(floor({value} / {double(float(measure.step))} + 0.5e0) AS INTEGER)"
        return f"({rounded} - {measure.centre})"

    monkeypatch.setattr(PlainSums, "scaled", narrow)


def one_more_statement_for_some_sums(monkeypatch):
    run = sums.run

    def curious(plan, part, engine, salt, seconds):
        found = run(plan, part, engine, salt, seconds)
        if any(value % 2 for vector in found for value in vector):
            engine.run("SELECT 1", seconds=seconds)
        return found

    monkeypatch.setattr(sums, "run", curious)


PLANTED = {squares_of_32_bits: (12, 1.0), one_more_statement_for_some_sums: (0, 0.0)}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_difference_of_statements_is_found(plant, monkeypatch):
    plant(monkeypatch)
    start, indexed = PLANTED[plant]
    report = fuzzer.fuzz(cases=NEAR, seed=SEED, start=start, indexed=indexed)
    if not report.violations:  # should another generator draw other tables by now
        report = fuzzer.fuzz(cases=1000, seed=SEED, indexed=indexed)
    assert report.violations, f"not seen in {report.cases} cases"
    assert report.violations[0].kind in {"statements", "engine"}


# --- the record


def test_a_record_has_what_ran_and_what_failed_in_order_and_nothing_else():
    note("nobody watches", "done")
    with recorded() as ran:
        public().run("SELECT 1")
        with pytest.raises(EngineFailedError):
            public().run("SELECT error('no')")
    public().run("SELECT 2")
    assert ran == [Ran("SELECT 1", "done"), Ran("SELECT error('no')", "failed")]


def test_a_swallowed_failure_is_a_difference_even_where_both_sides_fail():
    failed = (Ran("a", "failed"), Ran("b", "done"))
    assert "failed" in (traces.trace_difference(failed, failed) or "")
    assert "1 statements" in (traces.trace_difference((Ran("b", "done"),), (Ran("b", "done"),) * 2) or "")
    assert "differs" in (traces.trace_difference((Ran("b", "done"),), (Ran("c", "done"),)) or "")
    assert traces.trace_difference(failed[1:], failed[1:]) is None


def test_files_are_not_part_of_a_trace():
    _, trace = traces.trace(lambda: note("SELECT 'x' FROM read_parquet(['/a/it''s.parquet', '/b.parquet'])", "done"))
    assert trace == (Ran("SELECT 'x' FROM read_parquet(['file', 'file'])", "done"),)


# --- rows without a period

BY_QUARTER = """
[table]
name = "visits"
source = "/data/visits.parquet"
unit = "person"
[budget]
epsilon = 3.0
delta = 1e-6
period = { column = "seen", every = "quarter" }
[columns.seen]
type = "date"
bounds = ["2024-01-01", "2024-06-30"]
[columns.value]
type = "integer"
bounds = [0, 10]
[contribution]
rows = 2
"""
ROWS = [(unit, date(2024, 1 + unit % 6, 1 + unit), unit % 10) for unit in range(20)]


@pytest.mark.parametrize("what", ["SUM(value)", "COUNT(*), MEDIAN(value)"])
def test_somebody_without_any_period_changes_no_statement(what, tmp_path):
    """Rows without a period are left out, and are a person's all the same; the index knows whether there are any."""
    policy = read_text(BY_QUARTER)
    table = Table(policy, require(budget_of(policy)), require(policy.budget).period)
    plan = plan_question(f"SELECT {what} FROM visits", {"visits": table})
    found = []
    for name, rows in (("with", [*ROWS, (99, None, 4)]), ("without", ROWS)):
        person, seen, value = zip(*rows, strict=True)
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"person": person, "seen": pa.array(seen, pa.date32()), "value": value}), path)
        plain = DuckDB(fingerprint([str(path)]), threads=1)
        layout = IndexFiles(tmp_path / name, table, plain.fingerprint)
        build_index(layout, plain)
        engine = DuckDB(plain.fingerprint, threads=1, layout=layout)
        assert valid_index(table, engine) is not None
        found.append(traces.trace(partial(exact, plan, engine, "salt")))
    (first, ran), (second, others) = found
    assert first == second
    assert traces.trace_difference(ran, others) is None
