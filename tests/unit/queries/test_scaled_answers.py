"""Answers whose groups are scaled up to their total: what is stored, shown, repeated and shared."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.curator import Curator
from dalenius.measuring.limits.clip_search import Clip
from dalenius.measuring.limits.histogram import CLASSES
from dalenius.measuring.limits.in_question import SUMMED, apply_clips
from dalenius.measuring.limits.rescaled import Rescaled, Total
from dalenius.measuring.limits.rescaling import TwoLimits
from dalenius.measuring.plan import Limits
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.queries.ask import Ask
from dalenius.queries.planning import plan_ask
from dalenius.queries.rules.price import price_plan
from dalenius.releasing.snapshot import found_of

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "person"
[budget]
epsilon = 60.0
delta = 1e-6
[analysts.ana]
epsilon = 30.0
[analysts.ben]
epsilon = 30.0
[columns.area]
type = "integer"
bounds = [1, 20]
[columns.day]
type = "integer"
bounds = [1, 7]
[columns.amount]
type = "number"
bounds = [0, 1000]
step = 1
"""
BY_AREA = "SELECT area, COUNT(*) AS n FROM visits WHERE day < 7 GROUP BY area"
BY_BOTH = "SELECT area, day, COUNT(*) AS n FROM visits GROUP BY area, day"
TWO = "SELECT area, day, SUM(amount) AS s, COUNT(*) AS n FROM visits GROUP BY area, day"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scaled")
    chance = random.Random(81)
    people = [person for person in range(12_000) for _ in range(min(500, int(chance.paretovariate(1.2))))]
    rows = {
        "person": people,
        "area": [chance.randint(1, 20) for _ in people],
        "day": [chance.randint(1, 7) for _ in people],
        "amount": [min(1000, round(20 * chance.paretovariate(2))) for _ in people],
    }
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    (folder / "visits.toml").write_text(POLICY)
    Curator(folder / "home").protect(folder / "visits.toml")
    return folder


@pytest.fixture
def curator(folder: Path):
    return Curator(folder / "home")


def truths(folder: Path, *keys: str) -> dict[tuple[int, ...], int]:
    table = pq.read_table(folder / "visits.parquet").group_by(list(keys)).aggregate([("person", "count")])
    columns = [table.column(key).to_pylist() for key in keys]
    return dict(zip(zip(*columns, strict=True), table.column("person_count").to_pylist(), strict=True))


@pytest.mark.parametrize(("sql", "keys"), [(BY_BOTH, ("area", "day"))])
def test_most_groups_lie_in_their_total_interval(folder, curator, sql, keys):
    release, truth = curator.analyst("ana").ask(sql, epsilon=1.0), truths(folder, *keys)
    inside = [
        low <= truth[tuple(row[:-1])] <= high
        for row, (*_, (low, high)) in zip(release.rows, release.total_interval, strict=True)
    ]
    assert sum(inside) >= 0.8 * len(inside)
    (limit,) = release.limits
    assert limit["rescaled"]["total"] == pytest.approx(sum(truth.values()), rel=0.4)
    assert limit["limit"] <= limit["of"] and any(
        "scaled up to their total, about " in each and "heavy units" not in each for each in release.notes
    )
    for (*_, value), (*_, noise), (*_, total) in zip(
        release.rows, release.interval, release.total_interval, strict=True
    ):
        assert total[0] <= noise[0] <= value <= noise[1] <= total[1] and isinstance(value, int)
    json.dumps(release.to_dict(), allow_nan=False)


def test_two_columns_that_are_measured_again_keep_their_own(folder, curator, monkeypatch):
    """The measures of a second limit are stored after all others, in their order."""
    from dalenius.measuring.limits import rescaling

    monkeypatch.setattr(
        rescaling, "choose_limits", lambda lengths, plain, heavy, _: TwoLimits(max(1, heavy // 8), heavy)
    )
    truth = truths(folder, "area", "day")
    release = curator.analyst("ana").ask(TWO, epsilon=1.2)
    assert [each["rescaled"]["measured_again"] is not None for each in release.limits] == [True, True]
    amounts = sum(each[2] for each in release.rows) / sum(each[3] for each in release.rows)
    assert 10 < amounts < 100  # of a visit: 40 on average
    for (area, day, _, n), (*_, (low, high)) in zip(release.rows, release.total_interval, strict=True):
        assert abs(n - truth[area, day]) < 2 * max(truth.values()) and high - low < 10 * max(truth.values())


def test_the_same_question_is_free_and_the_same_to_the_bit(curator):
    first = curator.analyst("ana").ask(BY_BOTH, epsilon=1.1)
    again = curator.analyst("ana").ask(BY_BOTH + " ORDER BY n DESC", epsilon=0.1)
    assert again.free and sorted(again.rows) == sorted(first.rows)
    assert sorted(again.total_interval) == sorted(first.total_interval)


def test_who_keeps_the_limits_gets_them_as_they_are(curator):
    release = curator.analyst("ben").ask(BY_BOTH, epsilon=0.4, limits=Limits(search=0))
    assert release.limits == ()
    chosen = curator.analyst("ben").ask(BY_BOTH, epsilon=0.4, limits=Limits(rows=3))
    assert chosen.limits == ()


def test_two_limits_cost_what_one_does(curator):
    """The price of the plan that is measured is that of the plan that was charged."""
    ana = curator.analyst("ana")
    plan = plan_ask(ana._asker, Ask(BY_BOTH, epsilon=0.2)).plan
    priced = price_plan(plan, 0.2)
    rho = priced.rho or 0.0
    (search,) = priced.searches.values()
    assert isinstance(search, DiscreteGaussian) and search.dimension == 2 * CLASSES
    measured = apply_clips(plan, [Clip(0, 3, 0.1, 9, rescaled=Rescaled(Total(30_000, 900), heavy=12))])
    assert len(measured.measures) == len(plan.measures) + 1
    assert sum(each.share for each in measured.measures) == (1 - SUMMED) * sum(each.share for each in plan.measures)
    after = price_plan(measured, 0.2)
    (total,) = priced.totals.values()
    spent = float(1 / search.variance) + float(total)  # of two histograms, Δ2² = 2
    for each, law in zip(measured.measures, after.mechanisms, strict=True):
        assert isinstance(law, DiscreteGaussian)
        assert each.sensitivity == (each.clip << each.bits) ** 2
        spent += float(each.sensitivity / (2 * law.variance))
    assert 0.999 * rho < spent <= rho == after.rho
    assert [each.clip for each in measured.measures] == [3, 12]


def test_rows_that_are_in_no_group_are_not_given_to_the_groups(folder, tmp_path):
    """A row whose key is not among the public ones is in no group, whatever the table's total is."""
    rows = pq.read_table(folder / "visits.parquet")
    half = [area if at % 2 else None for at, area in enumerate(rows.column("area").to_pylist())]
    pq.write_table(rows.set_column(1, "area", pa.array(half)), tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(POLICY)
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "visits.toml")
    release = curator.analyst("ana").ask(BY_BOTH, epsilon=1.0)
    assert "rescaled" in release.limits[0]
    assert sum(row[-1] for row in release.rows) < 0.72 * len(half)


def test_after_a_refresh_the_sizes_of_earlier_data_are_forgotten(folder, tmp_path):
    home, source = tmp_path / "home", tmp_path / "visits.parquet"
    rows = pq.read_table(folder / "visits.parquet")
    pq.write_table(rows, source)
    (tmp_path / "visits.toml").write_text(POLICY)
    curator = Curator(home)
    (done,) = curator.protect(tmp_path / "visits.toml")
    pq.write_table(pa.concat_tables([rows, rows.slice(0, 2000)]), source)
    curator = Curator(home)
    curator.refresh("visits")
    found = found_of(curator.registry, curator.registry.current()["visits"])
    assert done.limits is not None and done.limits["sizes"] and found is not None and not found.sizes
