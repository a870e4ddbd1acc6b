"""H8: NULL, NaN and infinities count as absent, or as the declared default; never as a bound, never as an error."""

from __future__ import annotations

import math
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.attack.curators import curator_of, integers_by, integers_of, neighbours, outcome, plan_of, too_far
from tests.conftest import LONG

from dalenius import Curator, Release
from dalenius.measuring.engines.duckdb.statements import source
from dalenius.measuring.engines.duckdb.statements.sums import Compiler

SPECIAL = {"null": None, "nan": math.nan, "inf": math.inf, "-inf": -math.inf}
COLUMNS = """
[columns.x]
type = "number"
bounds = [-20, 100]
step = 0.01
{x}
[columns.n]
type = "integer"
bounds = [0, 50]
{n}
[columns.g]
type = "category"
keys = ["a", "b"]
{g}
[columns.b]
type = "boolean"
{b}
[columns.d]
type = "date"
bounds = ["2024-01-01", "2024-12-31"]
{d}
"""
DEFAULTS = {"x": 7.25, "n": 3, "g": '"b"', "b": "true", "d": '"2024-06-01"'}
SCHEMA = pa.schema(
    {"id": pa.float64(), "x": pa.float64(), "n": pa.float64(), "g": pa.string(), "b": pa.bool_(), "d": pa.date32()}
)
AGGREGATES = [
    "COUNT(*)",
    "COUNT(x)",
    "COUNT(g)",
    "COUNT(DISTINCT id)",
    "COUNT_IF(b)",
    "SUM(x)",
    "SUM(n * x)",
    "SUM(x) FILTER (WHERE n > 1 OR d > '2024-03-01')",
    "AVG(x)",
    "AVG(n)",
    "VAR_POP(x)",
    "VAR_SAMP(n)",
    "STDDEV_POP(x)",
    "STDDEV(n)",
    "COUNT(DISTINCT x)",
    "COUNT(DISTINCT g)",
    "COVAR_POP(x, n)",
    "CORR(x, n)",
]
GROUPINGS = ["", "g", "FLOOR(n / 10)"] + (["b", "MONTH(d)", "WIDTH_BUCKET(x, 1, 20, 4)"] if LONG else [])
CROWD = pa.table(
    {
        "id": [float(at) for at in range(40)],
        "x": [float(at) for at in range(40)],
        "n": [float(at) for at in range(40)],
        "g": ["a", "b"] * 20,
        "b": [True, False] * 20,
        "d": pa.array([19723 + at for at in range(40)], pa.int32()).cast(pa.date32()),
    },
    schema=SCHEMA,
)


def question(aggregate: str, grouping: str) -> str:
    keys = f"{grouping} AS k, " if grouping else ""
    return f"SELECT {keys}{aggregate} FROM t" + (" GROUP BY k" if grouping else "")


QUESTIONS = [question(", ".join(AGGREGATES), grouping) for grouping in GROUPINGS]
QUESTIONS += [question(aggregate, "") for aggregate in ("COUNT(*)", "SUM(x)", "VAR_SAMP(n)")]


def columns(default: bool) -> str:
    return COLUMNS.format(**{name: f"default = {value}" if default else "" for name, value in DEFAULTS.items()})


def row(value: Any, *, times: int = 1, unit: float = 999.0) -> pa.Table:
    """One unit's rows with a special value wherever a column can hold it, else NULL."""
    cells: dict[str, Any] = {"id": unit, "x": value, "n": value, "g": None, "b": None, "d": None}
    return pa.table({name: [cell] * times for name, cell in cells.items()}, schema=SCHEMA)


# A default stands for whatever is absent: in the short form for what is no value, and for what is no number.
CASES = [*((each, False) for each in SPECIAL), *((each, True) for each in (SPECIAL if LONG else ("null", "inf")))]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{'default' if case[1] else 'absent'}")
def case(request):
    return request.param


@pytest.fixture(scope="module")
def pair(case, tmp_path_factory):
    value, default = case
    return neighbours(tmp_path_factory.mktemp("h8"), CROWD, row(SPECIAL[value]), columns(default), epsilon=1000.0)


@pytest.fixture(scope="module")
def plains(tmp_path_factory):
    """The same with the default written out in the row, or NULL where there is none."""
    written = {"id": [999.0], "x": [7.25], "n": [3.0], "g": ["b"], "b": [True], "d": [date(2024, 6, 1)]}
    rows = {False: row(None), True: pa.table(written, schema=SCHEMA)}
    folder = tmp_path_factory.mktemp("plain")
    return {default: with_row(folder / str(default), there, default) for default, there in rows.items()}


@pytest.fixture(scope="module")
def crowds(tmp_path_factory):
    """The crowd alone, without defaults and with them."""
    folder = tmp_path_factory.mktemp("crowd")
    return {default: curator_of(folder / str(default), CROWD, columns(default)) for default in (False, True)}


@pytest.fixture(scope="module")
def plan(crowds):
    """`plan(question, default)`: a plan depends on the policy and not on the rows, so one serves all tables here."""
    return cache(lambda question, default: plan_of(crowds[default], question))


@pytest.fixture(scope="module")
def alone(crowds, plan):
    """`alone(question, default)`: the integers of the crowd, which are the same for each test."""
    return cache(lambda question, default: integers_by(crowds[default], plan(question, default)))


@pytest.fixture(scope="module")
def written(plains, plan):
    """`written(question, default)`: those of the crowd and a row in which the default, or NULL, is written out."""
    return cache(lambda question, default: integers_by(plains[default], plan(question, default)))


def with_row(folder: Path, there: pa.Table, default: bool) -> Curator:
    return curator_of(folder, pa.concat_tables([CROWD, there]), columns(default))


def test_exact_integers_move_by_at_most_the_sensitivity_and_as_an_absent_value_does(case, pair, alone, written, plan):
    default = case[1]
    for each in QUESTIONS:
        found = integers_by(pair[1], plan(each, default))
        assert too_far(plan(each, default), alone(each, default), found) == []
        assert found == written(each, default), each  # not otherwise than by an absent or default value


def test_nothing_but_noise_tells_that_the_row_is_there_and_answers_are_finite(case, pair):
    # In the short form each case a third of the questions, by turns: the test above has all of them.
    for each in QUESTIONS if LONG else QUESTIONS[CASES.index(case) % 3 :: 3]:
        releases: list[Release] = []
        without, with_ = (outcome(curator, each, 2.0, releases=releases) for curator in pair)
        assert without == with_ and with_.status == "answered"
        release = releases[-1]
        numbers = [cell for cells in (*release.rows, *release.noise_error) for cell in cells if cell is not None]
        numbers += [end for ends in release.interval for cell in ends if cell is not None for end in cell]
        assert all(math.isfinite(value) for value in numbers if isinstance(value, int | float))


@pytest.mark.parametrize("unit", [None, math.nan], ids=["null", "nan"])
def test_a_row_of_nobody_counts_nowhere(tmp_path, unit, alone, plan):
    nobody = with_row(tmp_path, row(50.0, unit=unit, times=30), default=True)
    for each in QUESTIONS:
        assert alone(each, True) == integers_by(nobody, plan(each, True))


@pytest.mark.parametrize("value", SPECIAL.values(), ids=SPECIAL)
def test_a_unit_of_very_many_such_rows_is_clipped(tmp_path, value, alone, plan):
    # In the short form each value with a default or without, by turns.
    for default in (False, True) if LONG else (value not in (None, math.inf),):
        there = with_row(tmp_path / str(default), row(value, times=5000), default)
        for each in QUESTIONS:
            assert too_far(plan(each, default), alone(each, default), integers_by(there, plan(each, default))) == []


# --- the checks reject planted weaknesses


def test_a_value_pinned_to_its_bound_is_noticed(tmp_path, monkeypatch, written):
    """Without a look for infinities, clipping alone makes them a bound: within the sensitivity, and wrong."""
    clean = source.clean

    def pinned(column: Any, name: str) -> str:
        return clean(column, name).replace(f"isfinite({name})", "true")

    expected = [written(each, False) for each in QUESTIONS[-3:]]
    monkeypatch.setattr(source, "clean", pinned)
    for value in (math.inf, -math.inf, math.nan):
        there = with_row(tmp_path / str(value), row(value), default=False)
        assert [integers_by(there, plan_of(there, each)) for each in QUESTIONS[-3:]] != expected


def test_a_default_that_is_not_clipped_is_noticed(tmp_path, monkeypatch, crowds):
    monkeypatch.setattr(Compiler, "truncated", lambda _, value, *__: value)
    pair = (crowds[True], with_row(tmp_path, row(math.nan, times=5000), default=True))
    asked = question("SUM(x)", "")
    assert too_far(plan_of(pair[0], asked), *(integers_of(curator, asked) for curator in pair))
