"""An aggregate that nothing in src knows, made up here in one class: asked, measured, priced, previewed, released."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from tests.attack.hostile import people, protected

from dalenius.curator import Curator
from dalenius.errors import DaleniusError, InputError, QuestionRefusedError
from dalenius.measuring.building import Builder, weigh_shares
from dalenius.measuring.canonical import call
from dalenius.measuring.estimates import Estimate, NoisySum, cut_between, ratio_ends, unknown_between
from dalenius.measuring.expressions import Aggregate
from dalenius.measuring.plan import Statistic
from dalenius.measuring.statistics import FUNCTIONS, AggregateFunction, families, family_for, known
from dalenius.measuring.statistics.family import AggregateForm, Estimator, Ratio, StatisticRequest

RMS = "ROOT_MEAN_SQUARE(age)"


class RootMeanSquare(Ratio):
    """√(Σx²/n): the count and the sum of squares, each within its own limit."""

    name = "root_mean_square"
    asked: ClassVar[Mapping[str, AggregateForm]] = {
        "root_mean_square": AggregateForm("ROOT_MEAN_SQUARE({})", per_row=True)
    }
    reference = ((RMS, "the root of the average square", "bounds of x; `rows`"),)

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        value, at = wanted.summed, wanted.at
        step = builder.coarsened(value, builder.step(value, *builder.range(value, wanted.first, at)), at)
        low, high = builder.whole_range(value, step)
        most = max(abs(low), abs(high), 1) ** 2
        present = call("and", wanted.where, call("not", call("is_null", value)))
        clip = builder.joined(builder.row_limit(at) * most)
        squares = builder.measure("square", value, wanted.where, step, 0, (low, high), clip, at)
        shared = weigh_shares([builder.rows(present, at), squares], [(most / 3) ** 2, 1.0], builder.norm)
        return Statistic(self.name, shared.measures, low * step, high * step)

    def estimator(self, aggregate: Aggregate, statistic: Statistic, confidence: float) -> Estimator:
        step, most = float(statistic.measures[1].step), float(max(abs(statistic.low), abs(statistic.high)))

        def estimate(parts: Sequence[NoisySum]) -> Estimate:
            count, squares = parts
            if count.value <= 0:
                return unknown_between(0.0, most)
            mean = squares.value / count.value
            ends = ratio_ends(mean, 0.0, count, [(1.0, squares.law)], confidence)
            roots = None if ends is None else [step * math.sqrt(max(0.0, each)) for each in ends]
            return cut_between(min(step * math.sqrt(max(0.0, mean)), most), roots, 0.0, most)

        return estimate

    def usual(self, statistic: Statistic, rows: int) -> list[int]:
        return [rows, rows * statistic.measures[1].largest ** 2 // 3]


@pytest.fixture(autouse=True)
def made() -> Iterator[None]:
    with known(RootMeanSquare(), {"ROOT_MEAN_SQUARE": AggregateFunction("root_mean_square", "root_mean_square")}):
        yield


@pytest.fixture
def curator(tmp_path: Path) -> Curator:
    return protected(tmp_path, people(victim=False), epsilon=1000.0)


def truth(asked: str) -> float:
    table = people(victim=False).to_pydict()
    ages = [age for age, region in zip(table["age"], table["region"], strict=True) if region == asked]
    return math.sqrt(sum(age * age for age in ages) / len(ages))


def test_it_is_asked_released_and_asked_again(curator):
    eve = curator.analyst("eve")
    sql = f"SELECT region, {RMS} AS r, COUNT(*) AS n FROM visits GROUP BY region"
    release = eve.ask(sql, epsilon=200.0)
    place = next(at for at, row in enumerate(release.rows) if row[0] == "north")
    assert abs(release.rows[place][1] - truth("north")) <= 6 * release.noise_error[place][1] < 30
    assert eve.ask(sql.replace("AS r", "AS other"), epsilon=100.0).rows == release.rows  # stored, and free
    preview = eve.preview(sql, epsilon=1.0)
    assert preview.choices[0].noise_error[1] > 0
    assert "sum of squares of age" in preview.plan


def test_it_takes_what_any_aggregate_takes(visits):
    plain, twice = (visits.plan(f"SELECT {what} FROM visits") for what in (RMS, f"{RMS}, 2 * {RMS}"))
    assert [each.kind for each in plain.statistics] == ["root_mean_square"]
    assert plain.canonical() == twice.canonical()
    smokers = visits.plan(f"SELECT {RMS} FILTER (WHERE smoker) FROM visits")
    guarded = visits.plan("SELECT ROOT_MEAN_SQUARE(CASE WHEN smoker THEN age END) FROM visits")
    assert smokers.canonical() == guarded.canonical() != plain.canonical()
    clamped = visits.plan("SELECT ROOT_MEAN_SQUARE(age, contribution_bounds_per_row => (20, 30)) FROM visits")
    assert clamped.measures[1].high == 30
    assert sum(each.share for each in visits.plan(f"SELECT region, {RMS} FROM visits GROUP BY region").measures) == 1


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT ROOT_MEAN_SQUARE(note) FROM visits", InputError),
        ("SELECT ROOT_MEAN_SQUARE(free) FROM visits", DaleniusError),
        ("SELECT ROOT_MEAN_SQUARE(age, amount) FROM visits", QuestionRefusedError),
        ("SELECT ROOT_MEAN_SQUARE() FROM visits", QuestionRefusedError),
        ("SELECT ROOT_MEAN_SQUARE(DISTINCT age) FROM visits", QuestionRefusedError),
        ("SELECT COUNT(*) FROM visits WHERE ROOT_MEAN_SQUARE(age) > 3", QuestionRefusedError),
        ("SELECT SUM(ROOT_MEAN_SQUARE(age)) FROM visits", QuestionRefusedError),
        ("SELECT ROOT_MEAN_SQUARE(age, contribution_bounds_per_group => (0, 3)) FROM visits", QuestionRefusedError),
        (
            "SELECT AVG(s) FROM (SELECT user_id, ROOT_MEAN_SQUARE(age) AS s FROM visits GROUP BY user_id) t",
            QuestionRefusedError,
        ),
        ("SELECT AVG(s) FROM (SELECT ROOT_MEAN_SQUARE(age) AS s FROM visits) t", QuestionRefusedError),
        (
            "SELECT COUNT(*) FROM visits v JOIN visits w ON v.user_id = w.user_id AND ROOT_MEAN_SQUARE(v.age) > 3",
            QuestionRefusedError,
        ),
    ],
)
def test_it_is_refused_where_any_aggregate_is(sql, error, visits):
    assert isinstance(visits.error(sql), error)
    assert "No budget was spent." in str(visits.error(sql))


def test_a_family_stays_no_longer_than_it_is_known(visits):
    with pytest.raises(ValueError, match="There is a family"), known(RootMeanSquare(), {}):
        pass
    assert [each.name for each in families()].count("root_mean_square") == 1


def test_every_function_has_a_family_that_knows_it():
    for name, function in FUNCTIONS.items():
        family = family_for(function.aggregate)
        assert family.name == function.family and function.aggregate in family.asked, name
