"""Where the raw average may lie: what limits took from its rows, and what these may have had."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.analyst import Analyst
from dalenius.curator import Curator
from dalenius.measuring.estimates import Estimate
from dalenius.measuring.limits.clip_search import Clip
from dalenius.measuring.limits.clipping import Loss
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.limits.histogram import CLASSES, class_top
from dalenius.measuring.plan import Found, Limits, Plan
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.queries.answering import Answer, measure_plan
from dalenius.queries.ask import Ask
from dalenius.queries.average_intervals import clipped_average
from dalenius.queries.planning import plan_ask
from dalenius.queries.rules.price import price_plan

POLICY = """
[table]
name = "stays"
source = "stays.parquet"
unit = "person"
[budget]
epsilon = 90.0
delta = 1e-6
[analysts.ana]
epsilon = 90.0
[columns.ward]
type = "category"
keys = ["heart", "eyes", "skin"]
[columns.cost]
type = "number"
bounds = [0, 1000]
step = 1
[columns.owed]
type = "number"
bounds = [-1000, 0]
step = 1
[columns.change]
type = "number"
bounds = [-50, 50]
step = 1
[columns.rare]
type = "number"
bounds = [0, 1000]
step = 1
"""
BY_WARD = "SELECT ward, AVG(cost) AS a FROM stays GROUP BY ward"
SOME = "SELECT AVG(cost) AS a FROM stays WHERE ward <> 'skin'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("averages")
    chance = random.Random(5)
    sizes = [min(400, int(chance.paretovariate(1.2))) for _ in range(8000)]
    people = [person for person, size in enumerate(sizes) for _ in range(size)]
    cost = [(200 if sizes[person] > 8 else 100) + chance.randint(-50, 50) for person in people]  # heavy people: twice
    rows = {
        "person": people,
        "ward": [chance.choice(["heart", "eyes", "skin"]) for _ in people],
        "cost": cost,
        "owed": [-each for each in cost],
        "change": [chance.randint(-50, 50) for _ in people],
        "rare": [each if chance.random() < 0.1 else None for each in cost],
    }
    pq.write_table(pa.table(rows), folder / "stays.parquet")
    (folder / "stays.toml").write_text(POLICY)
    (folder / "declared.toml").write_text(
        POLICY.replace('name = "stays"', 'name = "declared"') + "[contribution]\nrows = 5\n"
    )
    for name in ("stays", "declared"):
        Curator(folder / name).protect(folder / f"{name}.toml")
    return folder


@pytest.fixture
def ana(folder: Path):
    return Curator(folder / "stays").analyst("ana")


@pytest.fixture
def asked(ana):
    """`asked(sql)`: its plan, in which values are summed as they are, whatever limits `protect` found."""

    def plan_of(sql: str) -> Plan:
        plan = plan_ask(ana._asker, Ask(sql)).plan
        (statistic,), (count, summed) = plan.statistics, plan.measures
        summed = replace(summed, centre=0, low=int(statistic.low), high=int(statistic.high))
        return replace(plan, statistics=(replace(statistic, measures=(count, summed)),))

    return plan_of


def average(plan: Plan, values: Sequence[int], shown: Estimate, clips: Sequence[Clip]) -> tuple[Loss, float, float]:
    """What its rows lost, and the ends of its range in all; ``values``: its count and its sum."""
    stored = [[value << each.bits] for value, each in zip(values, plan.measures, strict=True)]
    found = clipped_average(plan, 0, stored, [shown], clips, 0.95)
    assert found is not None and found.totals[0] is not None
    return found.loss, *found.totals[0]


def counted(*units: tuple[int, int]) -> LengthCounts:
    """Hardly any noise on so many units of each size."""
    counts = [0] * CLASSES
    for size, number in units:
        counts[next(at for at in range(CLASSES) if class_top(at) >= size)] += number
    return LengthCounts.of(counts, DiscreteGaussian(variance=Fraction(1), dimension=CLASSES))


def test_an_average_has_a_range_in_all_that_holds_that_of_the_noise_and_lies_within_the_bounds(ana):
    wider = []
    for sql in (BY_WARD, SOME, "SELECT AVG(cost) AS a FROM stays"):
        release = ana.ask(sql, epsilon=2.0)
        assert 0 <= release.clipping[-1] < 0.9
        for noise, total in zip(release.interval, release.total_interval, strict=True):
            assert 0 <= total[-1][0] <= noise[-1][0] and noise[-1][1] <= total[-1][1] <= 1000
            wider.append(total[-1][1] - total[-1][0] > 1.05 * (noise[-1][1] - noise[-1][0]))
    assert any(wider)


@pytest.mark.parametrize("more", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_raw_average_is_inside_where_heavy_people_have_half_or_twice_as_much(asked, more, sign):
    plan = asked(SOME if sign > 0 else SOME.replace("cost", "owed"))
    light, heavy, rows, value = 3000, 300, 64, 100
    limit, sums = 16, 16 * value * 4  # four times what anybody has within the limit of rows
    count, total = light * 2 + heavy * limit, value * (light * 2 + more * heavy * limit)
    raw = value * (light * 2 + more * heavy * rows) / (light * 2 + heavy * rows)
    clips = [
        Clip(0, limit, 0.5, 3, counted((2, light), (rows, heavy))),
        Clip(1, sums, 0.5, 3, counted((2 * value, light), (round(more * rows * value), heavy))),
    ]
    mean = sign * total / count
    shown = Estimate(mean, 0.5, mean - 0.5, mean + 0.5)
    loss, low, high = average(plan, (count, round(sign * total)), shown, clips)
    assert low <= sign * raw <= high
    assert high - low < 1.2 * abs(mean)  # the quotient of two worst cases is four times as wide
    assert loss.share == pytest.approx(heavy * (rows - limit) / (light * 2 + heavy * rows), rel=0.2)


def test_where_nothing_is_lost_the_range_is_that_of_the_noise(asked):
    plan = asked(SOME)
    clips = [Clip(0, 16, 0.0, 3, counted((2, 5000))), Clip(1, 16_000, 0.0, 3, counted((200, 5000)))]
    _, low, high = average(plan, (10_000, 1_000_000), Estimate(100.0, 2.0, 98.0, 102.0), clips)
    assert (low, high) == pytest.approx((98.0, 102.0), abs=0.3)


def test_single_large_values_move_an_average_up_and_not_down(asked):
    plan = asked(SOME)
    alike = counted((1, 5000))  # one row each, of which some have a large value
    clips = [Clip(0, 1, 0.0, 3, alike), Clip(1, 200, 0.2, 3, counted((50, 4500), (900, 500)))]
    _, low, high = average(plan, (4600, 325_000), Estimate(71.0, 1.0, 70.0, 72.0), clips)
    assert low > 69 and high > (4500 * 50 + 500 * 900) / 5000


def homes(folder: Path, prefix: str) -> Iterator[Analyst]:
    """Three fresh homes: what `protect` finds there is chance, and one home in some twenty is unlike the others."""
    for number in range(3):
        Curator(folder / f"{prefix} {number}").protect(folder / "stays.toml")
        yield Curator(folder / f"{prefix} {number}").analyst("ana")


def holds(ana: Analyst, check: Callable[[Analyst], None]) -> bool:
    try:
        check(ana)
    except AssertionError:
        return False
    return True


def test_a_higher_confidence_is_wider_and_free(folder):
    assert sum(holds(ana, wider_and_free) for ana in homes(folder, "sure")) >= 2


def wider_and_free(ana):
    usual, sure = (ana.ask(BY_WARD, epsilon=0.5, confidence=each) for each in (0.95, 0.999))
    assert sure.free and sure.clipping == usual.clipping
    for one, other in zip(usual.total_interval, sure.total_interval, strict=True):
        assert other[1][0] < one[1][0] and one[1][1] < other[1][1]


def test_arithmetic_on_one_average_moves_its_ends(ana):
    plain = ana.ask(BY_WARD, epsilon=0.5)
    made = ana.ask("SELECT ward, 2 * AVG(cost) AS a FROM stays GROUP BY ward", epsilon=0.5)
    assert made.free and made.clipping == plain.clipping
    for once, twice in zip(plain.total_interval, made.total_interval, strict=True):
        assert twice[1][1] == pytest.approx(2 * once[1][1]) and twice[1][0] <= 2 * once[1][0] + 1e-9


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(change) AS a FROM stays",  # values of both signs
        "SELECT AVG(cost) AS a, VAR_POP(cost) AS v FROM stays",  # a limit of squares is in it
        "SELECT STDDEV(cost) AS a FROM stays",
        "SELECT AVG(cost) / COUNT(*) AS a FROM stays",
        "SELECT AVG(rare) AS a FROM stays",  # a tenth of the rows, of which nothing is known
    ],
)
def test_where_it_is_not_known_nothing_is_said(folder, ana, sql):
    def nothing_said(ana: Analyst) -> None:
        release = ana.ask(sql, epsilon=3.0)  # so that the noise hides nothing
        unknown = (None,) * len(release.columns)
        assert release.total_interval == (unknown,) and release.clipping == unknown

    if "rare" not in sql:
        nothing_said(ana)
    else:
        assert sum(holds(each, nothing_said) for each in homes(folder, "rare")) >= 2


def test_limits_of_the_owner_or_of_the_asker_say_nothing(folder, ana):
    declared = Curator(folder / "declared").analyst("ana").ask("SELECT AVG(cost) AS a FROM declared", epsilon=0.3)
    own = ana.ask("SELECT AVG(cost) AS a FROM stays", epsilon=0.3, limits=Limits(rows=2))
    assert declared.clipping == own.clipping == (None,)


def test_an_average_that_limits_may_move_says_so(folder):
    """Of twenty homes, in one the limits that `protect` found leave nothing to say: six such have a chance of 1e-7."""
    notes: list[str] = []
    for home in map(str, range(6)):
        Curator(folder / home).protect(folder / "stays.toml")
        ana = Curator(folder / home).analyst("ana")
        asks = (ana.ask(SOME, epsilon=0.6 + at / 1000) for at in range(10))
        notes = [each for release in asks for each in release.notes if each.startswith("To reduce noise")]
        if notes:
            break
    assert notes and all("so those who add most count for less. That may move the average" in each for each in notes)
    assert all("of the rows" in each and "The range in all (`total_interval`) includes this" in each for each in notes)


def test_stored_averages_from_before_counts_were_kept_are_read_by_their_share(asker, memory):
    plain = asker(contribution="")
    limits = Found(rows=300, totals={"amount": Fraction(30_000)}, norms={"region": 90}, units=3000, row_count=9000)
    plan = replace(plain, table=replace(plain.table, found=limits)).plan(
        "SELECT AVG(amount) AS a FROM visits WHERE region <> 'north'", Limits(search=0.2)
    )
    chance = random.Random(4)
    people = [each for each in range(3000) for _ in range(min(250, int(chance.paretovariate(1.1))))]
    rows = {
        "user_id": pa.array(people, pa.int64()),
        "region": [chance.choice(["south", "east"]) for _ in people],
        "amount": [float(chance.randint(1, 20)) for _ in people],
    }
    stored = measure_plan(plan, price_plan(plan, 1.0), memory(pa.table(rows)), "salt", 60.0)
    data = json.loads(stored)
    with_counts = Answer.read(plan, stored, 0.95).table()
    for each in data["limits"]:
        del each["counts"]
    old = Answer.read(plan, json.dumps(data).encode(), 0.95).table()
    assert old.rows == with_counts.rows and old.interval == with_counts.interval
    for table in (old, with_counts):
        noise, total = table.interval[0][0], table.total_interval[0][0]
        assert noise is not None and total is not None
        assert total[0] <= noise[0] and noise[1] <= total[1]
