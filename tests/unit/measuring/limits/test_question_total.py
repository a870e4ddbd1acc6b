"""What all groups add up to: from counts, from a sum that is measured, and from what `protect` counted."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dalenius.measuring.expressions import TRUE, Column, Type
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.limits.histogram import CLASSES
from dalenius.measuring.limits.in_question import known_lengths
from dalenius.measuring.limits.question_total import CutOff, choose_cut, known_sizes, question_total, total_of
from dalenius.measuring.limits.tails import Tails

PEOPLE = 30_000


def counted(sizes, deviation, random) -> LengthCounts:
    place = np.where(sizes <= 0, 0, np.ceil(2 * np.log2(np.maximum(sizes, 1)) - 1e-9) + 1).astype(int)
    noisy = np.bincount(place, minlength=CLASSES) + random.normal(0, deviation, CLASSES)
    return LengthCounts(tuple(round(each) for each in noisy.tolist()), gaussian=Fraction(round(deviation**2)))


def asking(
    public: LengthCounts | None, *, where=TRUE, carried=False, direct=True, periods=("",), measured=TRUE, kind="rows"
):
    """As much of a plan as is looked at."""
    name = "rows" if kind == "rows" else "total amount"
    found = None if public is None else SimpleNamespace(sizes={name: public}, carried=carried)
    amount = SimpleNamespace(step=Fraction(1))
    table = SimpleNamespace(found=found, direct=direct, policy=SimpleNamespace(columns={"amount": amount}))
    value = None if kind == "rows" else Column("amount", Type.NUMBER)
    measure = SimpleNamespace(kind=kind, where=measured, value=value, step=Fraction(1))
    return SimpleNamespace(table=table, where=where, periods=periods, measures=[measure])


def test_what_protect_counted_of_the_same_units_makes_the_counts_less_noisy():
    random = np.random.default_rng(1)
    sizes = random.geometric(0.1, PEOPLE)
    own, public = counted(sizes, 180, random), counted(sizes, 20, random)
    found = known_sizes(asking(public), 0, own)
    assert float(found.gaussian or 0) == pytest.approx(1 / (1 / 180**2 + 1 / 20**2), rel=0.01)
    exactly = np.array(counted(sizes, 1e-9, random).noisy)
    assert np.abs(np.array(found.noisy) - exactly).max() < 100 < np.abs(np.array(own.noisy) - exactly).max()


def test_counts_of_other_units_stand_alone():
    """A quarter of the rows have no group; or a condition, or a refresh, or nothing public."""
    random = np.random.default_rng(2)
    sizes = random.geometric(0.1, PEOPLE)
    own, public = counted(random.binomial(sizes, 0.75), 180, random), counted(sizes, 20, random)
    assert known_sizes(asking(public), 0, own) == own
    same = counted(sizes, 180, random)
    condition = Column("smoker", Type.BOOLEAN)
    for other in (
        {"where": condition},
        {"carried": True},
        {"direct": False},
        {"periods": ("a",)},
        {"measured": condition},
    ):
        assert known_sizes(asking(public, **other), 0, same) == same
        assert known_sizes(asking(public, kind="sum", **other), 0, same) == same
    assert known_sizes(asking(None), 0, same) == same
    assert known_sizes(asking(public, kind="sum"), 0, same) != same
    assert known_sizes(asking(public), 0, same) != same


def test_the_same_units_are_rarely_taken_for_others():
    """1,000 draws: with some 13 classes about 6 are expected to differ by so much; 30 have a chance below 1e-9."""
    random = np.random.default_rng(3)
    sizes = random.geometric(0.1, PEOPLE)
    others = sum(
        known_sizes(asking(counted(sizes, 20, random)), 0, own) is own
        for own in (counted(sizes, 100, random) for _ in range(1000))
    )
    assert others <= 30


@pytest.mark.parametrize("deviation", [250, 500])
def test_heavy_units_that_are_in_no_group_are_not_taken_for_what_the_groups_hold(deviation):
    """600 of 20,600 units have 70% of the rows, and none in a group: noisy counts alone do not show that."""
    random = np.random.default_rng(8)
    light, heavy = random.integers(1, 4, 20_000), random.integers(64, 257, 600)
    public = counted(np.append(light, heavy), 20, random)
    off, inside = [], []
    for _ in range(30):
        own = counted(light, deviation, random)
        plan = asking(public, kind="sum")  # of rows there is another bound, by all that the table has
        limit = choose_cut(known_sizes(plan, 0, own), float(deviation))
        assert limit is not None
        cut = CutOff(
            limit, np.minimum(light, limit).sum() + random.normal(0, deviation * limit), float(deviation * limit)
        )
        found = question_total(plan, 0, own, cut)
        assert found is not None
        off.append(found.mean / light.sum())
        inside.append(abs(found.mean - light.sum()) <= 1.96 * found.deviation)
    assert np.median(off) < 1.5 and np.mean(inside) >= 0.9


def over(public: dict[str, LengthCounts], keys=(), norm="l2", **more):
    """As much of a plan over groups as is looked at."""
    found = SimpleNamespace(sizes=public, carried=False)
    spec = SimpleNamespace(step=Fraction(1))
    table = SimpleNamespace(found=found, direct=True, policy=SimpleNamespace(columns={"cost": spec}))
    question = SimpleNamespace(keys=tuple(Column(each, Type.TEXT) for each in keys))
    plain = {"where": TRUE, "periods": ("",), "selection": None, "sets": (), "groups": None}
    return SimpleNamespace(table=table, question=question, norm=norm, **(plain | more))


ROWS: Any = SimpleNamespace(kind="rows", where=TRUE, value=None)
COST: Any = SimpleNamespace(kind="sum", where=TRUE, value=Column("cost", Type.NUMBER), centre=0, step=Fraction(1))


def test_lengths_are_known_where_they_are_totals_that_protect_counted():
    random = np.random.default_rng(8)
    sizes = random.geometric(0.1, PEOPLE)
    own, public = counted(sizes, 180, random), counted(sizes, 20, random)
    for plan, measure in ((over({"rows": public}), ROWS), (over({"total cost": public}, ["ward"]), COST)):
        assert float(known_lengths(plan, measure, own).gaussian or 0) < 21**2
    # norms, some rows, another step, squares: these are not the same
    squares: Any = SimpleNamespace(kind="square", where=TRUE, value=COST.value)
    fine: Any = SimpleNamespace(**(vars(COST) | {"step": Fraction(1, 2)}))
    for plan, measure in (
        (over({"norm ward": public}, ["ward"]), ROWS),
        (over({"rows": public}, where=Column("urgent", Type.BOOLEAN)), ROWS),
        (over({"total cost": public}), fine),
        (over({"rows": public}, selection=object()), ROWS),
        (over({"rows": public}), squares),
    ):
        assert known_lengths(plan, measure, own) is own
    shorter = counted(np.ceil(np.sqrt(sizes)), 180, random)  # they are in several groups
    assert known_lengths(over({"total cost": public}, ["ward"]), COST, shorter) is shorter


@pytest.mark.parametrize(("noise", "low", "high"), [(1.0, 200, 4000), (300.0, 10, 100)])
def test_the_more_noise_a_sum_has_the_lower_is_its_limit(noise, low, high):
    random = np.random.default_rng(4)
    sizes = np.minimum(np.floor(random.random(PEOPLE) ** (-1 / 1.3)), 3000)
    limit = choose_cut(counted(sizes, 20, random), noise)
    assert limit is not None and low <= limit <= high


def test_a_measured_sum_brings_the_total_nearer():
    random = np.random.default_rng(5)
    off = []
    for _ in range(30):
        sizes = np.minimum(np.floor(random.random(PEOPLE) ** (-1 / 1.3)), 3000)
        counts = counted(sizes, 60, random)
        limit = choose_cut(counts, 40.0)
        assert limit is not None
        cut = CutOff(limit, np.minimum(sizes, limit).sum() + random.normal(0, 40 * limit), 40.0 * limit)
        found = [total_of(counts), total_of(counts, cut)]
        assert all(abs(each.mean - sizes.sum()) < 4 * each.deviation for each in found if each)
        off.append([(each.mean / sizes.sum() - 1) ** 2 for each in found if each])
    alone, measured = np.sqrt(np.mean(off, axis=0))
    assert measured < 0.8 * alone


def test_how_far_single_large_units_move_a_total_is_what_chance_does():
    """100,000 draws; the largest class is hit in a tenth of them, so the deviation is known to about 1%."""
    random = np.random.default_rng(6)
    units, rare, part = (
        np.array([0.0, 40.0, 2.0, 0.0]),
        np.array([0.0, 0.0, 0.0, 0.1]),
        np.array([0.0, 5.0, 60.0, 900.0]),
    )
    drawn = random.poisson(units + rare, (100_000, 4)) @ part
    tails = Tails(units[None], np.ones(1), rare[None])
    assert tails.giants(part) == pytest.approx(drawn.std(), rel=0.05)


def test_a_heavy_tail_may_have_larger_units_than_are_expected_and_a_light_one_not():
    random = np.random.default_rng(7)
    heavy, light = np.floor(1.6 * random.random(20_000) ** (-1 / 1.25)), random.poisson(8, 20_000)
    off = [found.deviation / found.mean for each in (heavy, light) if (found := total_of(counted(each, 20, random)))]
    assert off[0] > 0.1 and off[1] < 0.03
