"""Tables and questions at the edge: sensible answers, charged as typed, or clear refusals for nothing.

Each odd table is asked every aggregate: plain, by public keys and by keys that have to be found; with limits that are
declared and that were found; from Parquet, which has a contribution index, and from CSV, which has none; under both
accountings. Where the truth is checked it lies within eight noise errors: for Laplace noise that fails with a chance
of e⁻²⁴ = 4e-11 for one cell (far less for Gaussian noise), and fewer than 10⁴ cells are looked at: a false-alarm rate
below 1e-6 for the whole file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dalenius.curator import Curator
from dalenius.errors import DaleniusError, InternalError, QuestionRefusedError
from dalenius.queries.release import Release

EPSILON = 2.0
LIMITS = "[contribution]\nrows = 5\ngroups = 2\n"
POLICY = """
[table]
name = "odd"
source = "{source}"
unit = "person"
[budget]
epsilon = 100000
{delta}
accounting = "{accounting}"
[analysts.ana]
epsilon = 100000
[columns.x]
type = "number"
bounds = [0, 100]
step = 0.5
[columns.y]
type = "integer"
bounds = [-20, 20]
[columns.area]
type = "category"
keys = ["north", "south", "east"]
[columns.place]
type = "category"
{limits}
"""
# Aggregates that are measured alike stand in one question: fewer questions, the same statements.
SUMS = ("COUNT(*)", "COUNT(x)", "COUNT(DISTINCT person)", "SUM(x)", "SUM(y)")
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "count": ("COUNT(*)",),
    "sums": SUMS,
    "distinct": ("COUNT(DISTINCT x)", "COUNT(DISTINCT place)"),
    "moments": ("AVG(x)", "AVG(y)", "VAR_POP(x)", "VAR_SAMP(x)", "STDDEV_POP(x)", "STDDEV_SAMP(x)"),
    "covariances": ("COVAR_POP(x, y)", "COVAR_SAMP(x, y)", "CORR(x, y)"),
    "quantiles": ("MEDIAN(x)", "QUANTILE_CONT(x, 0.9)", "QUANTILE_CONT(y, 0)", "MIN(x)", "MAX(x)"),
}
# What an aggregate can be at all; counts and sums have noise on either side.
SPREAD = {"VAR_POP(x)": 2500.0, "VAR_SAMP(x)": 5000.0, "STDDEV_POP(x)": 50.0, "STDDEV_SAMP(x)": math.sqrt(5000)}
RANGES = {
    **{name: (0.0, most) for name, most in SPREAD.items()},
    **{name: (0.0, 100.0) for name in ("AVG(x)", "MEDIAN(x)", "QUANTILE_CONT(x, 0.9)", "MIN(x)", "MAX(x)")},
    **{name: (-20.0, 20.0) for name in ("AVG(y)", "QUANTILE_CONT(y, 0)")},
    "COVAR_POP(x, y)": (-1000.0, 1000.0),
    "COVAR_SAMP(x, y)": (-2000.0, 2000.0),
    "CORR(x, y)": (-1.0, 1.0),
}


@dataclass(frozen=True)
class Odd:
    """A table, a condition, and what its rows come to under the declared limits: `truth` by aggregate."""

    rows: Callable[[], pa.Table]
    truth: Mapping[str, float] = field(default_factory=dict)
    where: str = ""


def table(people: list[int], x: list[float | None], y: list[int | None], place: list[str | None]) -> pa.Table:
    areas = ["north", "south", "mars"]
    return pa.table(
        {
            "person": pa.array(people, pa.int64()),
            "x": pa.array(x, pa.float64()),
            "y": pa.array(y, pa.int64()),
            "area": pa.array([areas[at % 3] for at in range(len(people))], pa.string()),
            "place": pa.array(place, pa.string()),
        }
    )


def many(x: float | None = None, *, null: bool = False, rows: int = 3000) -> pa.Table:
    """Three rows each of many people; all with one x, or with x evenly from 0 to 99; all NULL if asked."""
    values = [None if null else float(at % 100) if x is None else x for at in range(rows)]
    y = [None if null else at % 41 - 20 for at in range(rows)]
    place = [None if null else f"p{at % 4}" for at in range(rows)]
    return table([at // 3 for at in range(rows)], values, y, place)


def lone(rows: int) -> pa.Table:
    return table([7] * rows, [60.0] * rows, [2] * rows, [f"p{at % 5}" for at in range(rows)])


NOTHING = dict.fromkeys((*SUMS, *QUESTIONS["distinct"]), 0.0)
ODD: Mapping[str, Odd] = {
    "no rows": Odd(partial(table, [], [], [], []), NOTHING),
    "empty result": Odd(many, NOTHING, "x > 10 AND x < 5"),
    "empty by chance": Odd(many, NOTHING, "y = 19 AND x = 98.5"),
    "one row": Odd(partial(lone, 1), {"COUNT(*)": 1, "COUNT(x)": 1, "COUNT(DISTINCT person)": 1, "SUM(x)": 60}),
    "one unit": Odd(partial(lone, 4), {"COUNT(*)": 4, "COUNT(x)": 4, "COUNT(DISTINCT person)": 1, "SUM(x)": 240}),
    "all rows one unit": Odd(
        partial(lone, 10_000), {"COUNT(*)": 5, "COUNT(x)": 5, "COUNT(DISTINCT person)": 1, "SUM(x)": 500}
    ),
    "all NULL": Odd(partial(many, null=True), {**NOTHING, "COUNT(*)": 3000, "COUNT(DISTINCT person)": 1000}),
    "constant": Odd(
        partial(many, 42.0), {"COUNT(*)": 3000, "SUM(x)": 126_000, "AVG(x)": 42, "VAR_POP(x)": 0, "MEDIAN(x)": 42}
    ),
    "outside its bounds": Odd(
        partial(many, 1e9), {"COUNT(*)": 3000, "COUNT(x)": 3000, "SUM(x)": 300_000, "AVG(x)": 100, "MEDIAN(x)": 100}
    ),
}


def protected(folder: Path, rows: pa.Table, *, kind: str, accounting: str, declared: bool) -> Curator:
    folder.mkdir()
    source = folder / f"odd.{kind}"
    pq.write_table(rows, source) if kind == "parquet" else pyarrow.csv.write_csv(rows, source)
    text = POLICY.replace("{source}", source.name).replace("{accounting}", accounting)
    text = text.replace("{delta}", "delta = 1e-6" if accounting == "zcdp" else "")
    (folder / "odd.toml").write_text(text.replace("{limits}", LIMITS if declared else ""))
    curator = Curator(folder / "home")
    curator.protect(folder / "odd.toml")
    return curator


def settings() -> Iterator[tuple[str, str, bool]]:
    for kind in ("parquet", "csv"):
        for accounting in ("zcdp", "pure"):
            for declared in (True, False):
                yield kind, accounting, declared


def sensible(release: Release, names: tuple[str, ...]) -> None:
    """Every cell is a number within what it can be, or None with an interval that says so."""
    keys = len(release.columns) - len(names)
    for row, errors, intervals in zip(release.rows, release.noise_error, release.interval, strict=True):
        for name, value, error, interval in zip(names, row[keys:], errors[keys:], intervals[keys:], strict=True):
            assert error is not None and math.isfinite(error) and error >= 0, (name, error)
            low, high = RANGES.get(name, (-math.inf, math.inf))
            if value is None:
                # the noise leaves nothing to say: all that the bounds allow
                assert interval is not None and interval == pytest.approx((low, high)), (name, interval)
                continue
            assert math.isfinite(value) and low <= value <= high * (1 + 1e-9), (name, value)
            first, last = interval or (value - error, value + error)
            assert low <= first <= value <= last <= high * (1 + 1e-9) + 1e-9, (name, value, interval)
            assert max(value - first, last - value) <= error * (1 + 1e-9) + 1e-9
    release.to_dict()
    str(release)


def near(release: Release, names: tuple[str, ...], truth: Mapping[str, float]) -> None:
    (row,), (errors,) = release.rows, release.noise_error
    for name, value, error in zip(names, row, errors, strict=True):
        if name in truth and value is not None:
            assert abs(value - truth[name]) <= 8 * (error or 0.0) + 1e-9, (name, value, truth[name], error)


def grouped(by: str, names: tuple[str, ...], where: str) -> str:
    columns = ", ".join((by, *names) if by else names)
    return f"SELECT {columns} FROM odd" + (f" WHERE {where}" if where else "") + (f" GROUP BY {by}" if by else "")


@pytest.mark.parametrize("name", ODD)
def test_every_aggregate_of_an_odd_table_is_sensible_and_charged_as_typed(name: str, tmp_path: Path):
    odd = ODD[name]
    rows = odd.rows()
    for kind, accounting, declared in settings():
        folder = tmp_path / f"{kind}-{accounting}-{declared}"
        curator = protected(folder, rows, kind=kind, accounting=accounting, declared=declared)
        ana = curator.analyst("ana")
        for by in ("", "area", "place") if accounting == "zcdp" else ("", "area"):
            for names in QUESTIONS.values():
                question = grouped(by, names, odd.where)
                before = curator.ledger.balance("odd").charges
                preview = ana.preview(question, epsilon=EPSILON)
                assert curator.ledger.balance("odd").charges == before
                release = ana.ask(question, epsilon=EPSILON)
                assert release.charge["epsilon"] == EPSILON and not release.free
                assert curator.ledger.balance("odd").charges == before + 1
                assert (preview.groups is None) == (by == "place")
                if by != "place":
                    assert len(release.rows) == preview.groups == (3 if by else 1)
                sensible(release, names)
                if not by and declared:
                    near(release, names, odd.truth)
