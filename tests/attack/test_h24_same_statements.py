"""H24: the same statements run on neighbours, in the same order and with the same success, index and general way.

The neighbour fuzzer compares them on every pair that it draws (`test_neighbour_fuzzer`, `test_joined_fuzzer`): more
than 20,000 pairs in the long form. Here every pair has an index, and the bugs that must be seen are planted.
"""

from __future__ import annotations

import pytest
from tests.conftest import LONG

from dalenius.audit import fuzz as fuzzer
from dalenius.audit.fuzzing import traces
from dalenius.errors import EngineFailedError
from dalenius.measuring.engines.duckdb.connections import public
from dalenius.measuring.engines.duckdb.rendering import double
from dalenius.measuring.engines.duckdb.statements import sums
from dalenius.measuring.engines.duckdb.statements.indexed_sums import PlainSums
from dalenius.measuring.engines.recording import Ran, note, recorded

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
