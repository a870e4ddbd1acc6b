"""H24: which statements run must not depend on a row.

A statement with a contribution index whose integers were too narrow failed if and only if somebody's value was large;
the general way was then tried, which takes three times as long. So every type has to follow from public bounds, and
a statement that fails ends the question.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.curator import Curator
from dalenius.errors import EngineFailedError
from dalenius.measuring._exact import exact, exact_lengths
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.duckdb.statements import pairs
from dalenius.measuring.engines.duckdb.statements.sums import Compiler
from dalenius.measuring.expressions import Column, Type
from dalenius.measuring.pace import Times
from dalenius.measuring.plan import Limits
from dalenius.queries.rules import plan_question
from dalenius.releasing.opened import tables_of
from dalenius.releasing.pacing import Pacer

POLICY = """
[table]
name = "staff"
source = "staff.parquet"
unit = "person"
[budget]
epsilon = 50.0
delta = 1e-6
accounting = "{accounting}"
[analysts.eve]
epsilon = 50.0
[columns.salary]
type = "integer"
bounds = [0, 200000]
[columns.exact]
type = "number"
bounds = [0, 200000]
step = 0.01
[columns.far]
type = "integer"
bounds = [1000000000000, 1000000200000]
[columns.wide]
type = "integer"
bounds = [-4000000000000000000, 4000000000000000000]
[columns.gain]
type = "integer"
bounds = [0, 1500000000]
[columns.loss]
type = "integer"
bounds = [0, 1500000000]
[columns.place]
type = "integer"
bounds = [0, 999]
[columns.team]
type = "category"
keys = ["a", "b", "c"]
[columns.word]
type = "category"
[contribution]
rows = 2
totals = {{ wide = 1000000 }}
"""
QUESTIONS = (
    "SELECT COUNT(*) FROM staff",
    "SELECT SUM(salary), SUM(exact), SUM(far) FROM staff",
    "SELECT SUM(wide) FROM staff",
    "SELECT VARIANCE(salary) FROM staff",
    "SELECT STDDEV(exact) FROM staff",
    "SELECT VARIANCE(far) FROM staff",
    "SELECT VARIANCE(salary) FILTER (WHERE team = 'a') FROM staff",
    "SELECT CORR(salary, exact) FROM staff",
    "SELECT COVAR_POP(exact, salary) FROM staff",
    "SELECT CORR(far, salary), CORR(far, exact) FROM staff",
    "SELECT team, VARIANCE(salary), CORR(salary, exact) FROM staff GROUP BY team",
    "SELECT team, AVG(exact), COUNT(*) FROM staff GROUP BY team",
    "SELECT team, MEDIAN(salary) FROM staff GROUP BY team",
    "SELECT team, COUNT(DISTINCT salary) FROM staff GROUP BY team",
    "SELECT VARIANCE(salary * 3), AVG(wide) FROM staff",
)


def staff(*, victim: bool) -> pa.Table:
    """Forty people of moderate pay, and the victim or not, whose one row has the largest values that are allowed."""
    people = list(range(40))
    found: dict[str, list[Any]] = {
        "person": people,
        "salary": [100 + each for each in people],
        "exact": [100.0 + each for each in people],
        "far": [10**12 + each for each in people],
        "wide": people.copy(),
        "gain": people.copy(),
        "loss": people.copy(),
        "place": people.copy(),
        "team": ["abc"[each % 3] for each in people],
        "word": ["abc"[each % 3] for each in people],
    }
    if victim:
        rare = {"person": 777, "salary": 200000, "exact": 200000.0, "far": 10**12 + 200000, "wide": 4 * 10**18}
        rare |= {"gain": 1_500_000_000, "loss": 1_500_000_000, "place": 999}
        for name, value in {**rare, "team": "b", "word": "b"}.items():
            found[name].append(value)
    return pa.table(found)


def protected(folder, *, victim, accounting="zcdp", table=None):
    folder.mkdir(parents=True)
    pq.write_table(staff(victim=victim) if table is None else table, folder / "staff.parquet")
    policy = POLICY.format(accounting=accounting)
    (folder / "staff.toml").write_text(policy.replace("1e-6", "0") if accounting == "pure" else policy)
    curator = Curator(folder / "home")
    (made,) = curator.protect(folder / "staff.toml")
    assert (made.index or {})["state"] == "built"
    return curator


def asked_of(curator):
    """The plan's table, the engine with the index, and one without."""
    eve = curator.analyst("eve")
    tables = tables_of(eve._asker, eve._asker.registry.current())
    fingerprint = curator.tables()[0].fingerprint
    return tables, curator.engines.of(fingerprint, tables["staff"]), DuckDB(fingerprint, threads=1)


@contextmanager
def traced(engine):
    """Every statement that an engine runs, and whether it succeeded."""
    seen = []

    def watching(run):
        def watched(sql, *more, **options):
            seen.append([sql.replace(str(engine.fingerprint.paths[0].parent), "…"), "failed"])
            rows = run(sql, *more, **options)
            seen[-1][1] = "ran"
            return rows

        return watched

    engine.run, engine.arrow = watching(engine.run), watching(engine.arrow)
    try:
        yield seen
    finally:
        del engine.run, engine.arrow


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_the_same_statements_run_whoever_is_in_the_table_and_give_the_same_integers_as_without_an_index(
    tmp_path, accounting
):
    sides = [asked_of(protected(tmp_path / str(each), victim=each, accounting=accounting)) for each in (False, True)]
    for question in QUESTIONS:
        traces = []
        for tables, indexed, plain in sides:
            plan = plan_question(question, tables, Limits(search=0))
            with traced(indexed) as trace:
                found = exact(plan, indexed, "salt")
            assert found == exact(plan, plain, "salt"), question
            traces.append(trace)
        # The name of an index file has a hash of the place in it, which the two folders do not share.
        one, other = ([(sql.split("home")[0], how) for sql, how in trace] for trace in traces)
        assert one == other, question
        assert all(how == "ran" for _, how in one), question


def test_lengths_come_from_the_index_whatever_single_units_hold(tmp_path):
    """A total past 2³¹ steps in a key did not fit the index, and the whole question then went the general way."""
    counts, mine = [], pa.table({name: [value, value] for name, value in staff(victim=True).to_pylist()[-1].items()})
    for victim in (False, True):
        table = pa.concat_tables([staff(victim=False), *([mine] if victim else [])])
        tables, indexed, plain = asked_of(protected(tmp_path / str(victim), victim=victim, table=table))
        plan = plan_question("SELECT team, SUM(gain), COUNT(*) FROM staff GROUP BY team", tables, Limits(search=0.1))
        assert plan.searched
        with traced(indexed) as trace:
            found = exact_lengths(plan, indexed, "salt")
        assert found == exact_lengths(plan, plain, "salt")
        counts.append([how for _, how in trace])
    assert counts[0] == counts[1]


def test_how_pairs_are_counted_does_not_depend_on_how_many_rows_a_question_leaves(tmp_path, monkeypatch):
    """One row more than a threshold had the source read in more blocks, or the pairs not counted this way at all."""
    monkeypatch.setattr(pairs, "_cores", lambda: 4)
    monkeypatch.setattr(pairs, "_FEW", 30)
    monkeypatch.setattr(pairs, "MOST_ROWS", 100)
    traces = []
    tables, indexed, _ = asked_of(protected(tmp_path / "one", victim=True))
    indexed.extent("person")  # which is looked up once
    for most in (28, 29, 30):  # rows 29, 30 and 31 of a table that has 41
        plan = plan_question(f"SELECT word, COUNT(*) FROM staff WHERE salary <= {100 + most} GROUP BY word", tables)
        with traced(indexed) as trace:
            pairs.count_pairs(plan, indexed, "salt", 60.0)
        traces.append([how for _, how in trace])
    assert traces[0] == traces[1] == traces[2]


def test_a_type_follows_from_bounds_alone(tmp_path):
    from dalenius.measuring.engines.duckdb.statements.sums import integer_type

    tables, _, _ = asked_of(protected(tmp_path / "one", victim=False))
    plan = plan_question("SELECT VARIANCE(salary), VARIANCE(far), SUM(wide) FROM staff", tables, Limits(search=0))
    for measure in plan.measures:
        if measure.value is None:
            continue
        fits = 2**63 - 1 if integer_type(measure) == "BIGINT" else 2**127 - 1
        ends = (measure.low, measure.high)
        assert max(abs(end + measure.centre) for end in ends) <= fits
        power = 2 if measure.kind == "square" else 1
        assert max(abs(end) for end in ends) ** power <= fits
        assert isinstance(measure.value, Column) and measure.value.type is Type.NUMBER


def test_lengths_that_are_sums_over_groups_fit_when_they_are_multiplied_by_a_limit(tmp_path):
    tables, _, _ = asked_of(protected(tmp_path / "one", victim=True, accounting="pure"))
    question = "SELECT place, CORR(gain, loss) FROM staff GROUP BY place"
    plan = plan_question(question, tables, Limits(search=0, rows=2))
    longest = Compiler(plan).most * len(plan.cells)  # in L1, every entry as large as it can be
    assert plan.norm == "l1" and longest * max(each.clip for each in plan.measures) < 2**127


# --- an index that fails


class Quick(Pacer):
    """Answers leave after half a second."""

    def times(self, _plan):
        return Times(0.5, 5.0)


def spoiled(curator):
    """An index whose file of rows and totals says what it should, but cannot be read."""
    _, engine, _ = asked_of(curator)
    file = engine.index.layout.files[0].path
    content = bytearray(file.read_bytes())
    content[4:200] = b"\xff" * 196
    file.write_bytes(content)


@pytest.mark.parametrize("paced", [True, False])
def test_an_index_that_cannot_be_read_ends_the_question_charged_and_alarmed(tmp_path, paced):
    table = pa.concat_tables([staff(victim=True)] * 3)  # everybody has a row too many, so the index is read
    home = protected(tmp_path / "one", victim=True, table=table).home
    pacer = Quick(1) if paced else None
    curator = Curator(home)
    spoiled(curator)
    eve = curator.analyst("eve", pacer=pacer)
    with pytest.raises(EngineFailedError) as caught:
        eve.ask("SELECT COUNT(*) FROM staff WHERE salary > 7", epsilon=0.5)
    assert caught.value.charge.epsilon == 0.5
    notes = [entry.data for entry in curator.ledger.records(("note",)) if "alarm" in entry.data]
    assert [note["alarm"] for note in notes] == ["index failed"]


def test_protecting_again_builds_a_spoiled_index_anew(tmp_path):
    curator = protected(tmp_path / "one", victim=True)
    spoiled(curator)
    (again,) = curator.protect(tmp_path / "one" / "staff.toml")
    assert (again.index or {})["state"] == "built"
    curator.analyst("eve").ask("SELECT COUNT(*) FROM staff WHERE salary > 7", epsilon=0.5)
    (kept,) = curator.protect(tmp_path / "one" / "staff.toml")
    assert (kept.index or {})["state"] == "kept"


def test_integers_of_a_heavy_unit_with_the_largest_values_agree(tmp_path):
    """Clipped one by one beside the plain sums: squares, products and their sums in both."""
    rng = np.random.default_rng(3)
    size = 300
    table = pa.table(
        {
            "person": rng.integers(0, 30, size),
            "salary": rng.choice([0, 46341, 65536, 199999, 200000, 10**9], size),
            "exact": rng.choice([0.0, 21474836.48, 199999.99, 463.41, 1e300], size),
            "far": rng.choice([0, 10**12, 10**12 + 199999, 2**62], size),
            "wide": rng.choice([-(2**63), -1, 0, 2**31, 2**62, 2**63 - 1], size),
            "gain": rng.choice([0, 46341, 1_500_000_000], size),
            "loss": rng.choice([0, 46341, 1_500_000_000], size),
            "place": rng.integers(0, 999, size),
            "team": rng.choice(["a", "b", "c", "d"], size),
            "word": rng.choice(["a", "b", "c", "d"], size),
        }
    )
    tables, indexed, plain = asked_of(protected(tmp_path / "one", victim=True, table=table))
    for question in QUESTIONS:
        plan = plan_question(question, tables, Limits(search=0))
        assert exact(plan, indexed, "salt") == exact(plan, plain, "salt"), question
