"""Tables and questions at the edge: sensible answers, charged as typed, or clear refusals for nothing.

Each odd table is asked every aggregate: plain, by public keys and by keys that have to be found; with limits that are
declared and that were found; from Parquet, which has a contribution index, and from CSV, which has none; under both
accountings. Where the truth is checked it lies within eight noise errors: for Laplace noise that fails with a chance
of e⁻²⁴ = 4e-11 for one cell (far less for Gaussian noise), and fewer than 10⁴ cells are looked at: a false-alarm rate
below 1e-6 for the whole file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.conftest import LONG

from dalenius.curator import Curator
from dalenius.errors import QuestionRefusedError
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
SUMS = (
    "COUNT(*)",
    "COUNT(x)",
    "COUNT(DISTINCT person)",
    "COUNT(DISTINCT x)",
    "COUNT(DISTINCT place)",
    "SUM(x)",
    "SUM(y)",
)
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "count": ("COUNT(*)",),
    "sums": SUMS,
    "moments": ("AVG(x)", "AVG(y)", "VAR_POP(x)", "VAR_SAMP(x)", "STDDEV_POP(x)", "STDDEV_SAMP(x)"),
    "covariances": ("COVAR_POP(x, y)", "COVAR_SAMP(x, y)", "CORR(x, y)"),
    "quantiles": ("MEDIAN(x)", "QUANTILE_CONT(x, 0.9)", "QUANTILE_CONT(y, 0)", "MIN(x)", "MAX(x)"),
}
# What an aggregate can be at all; counts and sums have noise on either side.
SPREAD = {"VAR_POP(x)": 2500.0, "VAR_SAMP(x)": 5000.0, "STDDEV_POP(x)": 50.0, "STDDEV_SAMP(x)": math.sqrt(5000)}
RANGES = {
    **{name: (0.0, most) for name, most in SPREAD.items()},
    **dict.fromkeys(("AVG(x)", "MEDIAN(x)", "QUANTILE_CONT(x, 0.9)", "MIN(x)", "MAX(x)"), (0.0, 100.0)),
    **dict.fromkeys(("AVG(y)", "QUANTILE_CONT(y, 0)"), (-20.0, 20.0)),
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


def many(x: float | None = None, *, null: bool = False, rows: int = 1500) -> pa.Table:
    """Three rows each of many people; all with one x, or with x evenly from 0 to 99; all NULL if asked."""
    values = [None if null else float(at % 100) if x is None else x for at in range(rows)]
    y = [None if null else at % 41 - 20 for at in range(rows)]
    place = [None if null else f"p{at % 4}" for at in range(rows)]
    return table([at // 3 for at in range(rows)], values, y, place)


def lone(rows: int) -> pa.Table:
    return table([7] * rows, [60.0] * rows, [2] * rows, [f"p{at % 5}" for at in range(rows)])


NOTHING = dict.fromkeys(SUMS, 0.0)
ODD: Mapping[str, Odd] = {
    "no rows": Odd(partial(table, [], [], [], []), NOTHING),
    "empty result": Odd(many, NOTHING, "y = 19 AND x = 98.5"),
    "one row": Odd(partial(lone, 1), {"COUNT(*)": 1, "COUNT(x)": 1, "COUNT(DISTINCT person)": 1, "SUM(x)": 60}),
    "one unit": Odd(partial(lone, 4), {"COUNT(*)": 4, "COUNT(x)": 4, "COUNT(DISTINCT person)": 1, "SUM(x)": 240}),
    "all rows one unit": Odd(
        partial(lone, 10_000), {"COUNT(*)": 5, "COUNT(x)": 5, "COUNT(DISTINCT person)": 1, "SUM(x)": 500}
    ),
    "all NULL": Odd(partial(many, null=True), {**NOTHING, "COUNT(*)": 1500, "COUNT(DISTINCT person)": 500}),
    "constant": Odd(
        partial(many, 42.0), {"COUNT(*)": 1500, "SUM(x)": 63_000, "AVG(x)": 42, "VAR_POP(x)": 0, "MEDIAN(x)": 42}
    ),
    "outside its bounds": Odd(
        partial(many, 1e9), {"COUNT(*)": 1500, "COUNT(x)": 1500, "SUM(x)": 150_000, "AVG(x)": 100, "MEDIAN(x)": 100}
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


# kind of file, accounting, whether limits are declared, and what it is grouped by
SETTINGS = (
    ("parquet", "zcdp", True, ("", "place")),
    ("parquet", "zcdp", False, ("", "area", "place")),
    ("parquet", "pure", True, ("", "area")),
    ("parquet", "pure", False, ("",)),
    ("csv", "zcdp", False, ("", "place")),
    ("csv", "pure", True, ("area",)),
)


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


@pytest.mark.parametrize("which", ODD)
def test_every_aggregate_of_an_odd_table_is_sensible_and_charged_as_typed(which: str, tmp_path: Path):
    odd = ODD[which]
    rows = odd.rows()
    # In the short form one of the settings for each table, and every setting for some table.
    settings = SETTINGS if LONG else [SETTINGS[list(ODD).index(which) % len(SETTINGS)]]
    for kind, accounting, declared, keys in settings:
        folder = tmp_path / f"{kind}-{accounting}-{declared}"
        curator = protected(folder, rows, kind=kind, accounting=accounting, declared=declared)
        ana = curator.analyst("ana")
        for by, (name, names) in product(keys, QUESTIONS.items()):
            if by and name == "count":
                continue
            question, before = grouped(by, names, odd.where), curator.ledger.balance("odd").charges
            if accounting == "zcdp":
                preview = ana.preview(question, epsilon=EPSILON)
                assert preview.groups == {"": 1, "area": 3, "place": None}[by]
                assert curator.ledger.balance("odd").charges == before
            release = ana.ask(question, epsilon=EPSILON)
            assert release.charge["epsilon"] == EPSILON and not release.free
            assert curator.ledger.balance("odd").charges == before + 1
            if by != "place":
                assert len(release.rows) == (3 if by else 1)
            sensible(release, names)
            if not by and declared:
                near(release, names, odd.truth)


# --- many keys

KEYED = """
[table]
name = "odd"
source = "odd.parquet"
unit = "person"
[budget]
epsilon = 10
delta = 1e-6
[analysts.ana]
epsilon = 10
[columns.x]
type = "number"
bounds = [0, 100]
[columns.code]
type = "integer"
bounds = [1, {most}]
[contribution]
rows = 2
"""


def coded(folder: Path, most: int) -> Curator:
    rows = pa.table({"person": [1, 2, 2, 3], "x": [1.0, 2.0, 3.0, 4.0], "code": [1, 1, 77, most]})
    pq.write_table(rows, folder / "odd.parquet")
    (folder / "odd.toml").write_text(KEYED.replace("{most}", str(most)))
    curator = Curator(folder / "home")
    curator.protect(folder / "odd.toml")
    return curator


def test_a_hundred_thousand_public_keys_are_all_counted_and_quantiles_by_them_refused(tmp_path: Path):
    curator = coded(tmp_path, 100_000)
    ana = curator.analyst("ana")
    release = ana.ask("SELECT code, COUNT(*) AS n FROM odd GROUP BY code", epsilon=5.0)
    assert [row[0] for row in release.rows] == list(range(1, 100_001))
    counts, (_, error) = [row[1] for row in release.rows], release.noise_error[0]
    assert error is not None
    # Of 10⁵ normal noises the mean is within 6 deviations of its own, and none is 9 deviations out: 1e-9 and 1e-14.
    deviation = error / 1.96
    assert abs(sum(counts) - 4) < 6 * deviation * math.sqrt(1e5) and max(map(abs, counts)) < 9 * deviation + 2
    before = curator.ledger.balance("odd").charges
    for asked in ("MEDIAN(x)", "QUANTILE_CONT(x, 0.9)", "MIN(x)", "MAX(x)"):
        for call in (ana.ask, ana.preview):
            with pytest.raises(QuestionRefusedError, match="too many groups for quantiles: 100,000") as caught:
                call(f"SELECT code, {asked} FROM odd GROUP BY code", epsilon=0.1)
            assert caught.value.why and caught.value.fix
    assert curator.ledger.balance("odd").charges == before


def test_more_public_keys_than_can_be_answered_are_found_instead(tmp_path: Path):
    ana = coded(tmp_path, 100_001).analyst("ana")
    question = "SELECT code, COUNT(*) AS n FROM odd GROUP BY code"
    assert ana.preview(question, epsilon=1.0).groups is None
    release = ana.ask(question, epsilon=1.0)  # nobody is lonelier than these
    assert release.rows == () and "No key was found" in str(release) and release.charge["delta"] > 0


WIDE = """
[table]
name = "odd"
source = "odd.parquet"
unit = "person"
[budget]
epsilon = 1000
delta = 1e-6
[analysts.ana]
epsilon = 1000
[columns.code]
type = "integer"
bounds = [-9223372036854775808, 9223372036854775807]
[contribution]
rows = 1
groups = 1
"""


def test_sums_of_a_units_whole_numbers_are_whole_however_wide_their_bounds_are(tmp_path: Path):
    """They were rounded to 10¹³, in silence: a millionth of what the bounds span."""
    rows = pa.table({"person": [*range(3000), *range(3000)], "code": [70] * 3000 + [7] * 3000})
    pq.write_table(rows, tmp_path / "odd.parquet")
    (tmp_path / "odd.toml").write_text(WIDE)
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "odd.toml")
    of_each = "SELECT person, SUM(code) AS s FROM odd GROUP BY person"
    release = curator.analyst("ana").ask(f"SELECT s, COUNT(*) AS n FROM ({of_each}) AS t GROUP BY s", epsilon=5.0)
    assert [row[0] for row in release.rows] == [77]
