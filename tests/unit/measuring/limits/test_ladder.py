"""COUNT(DISTINCT x) finds its own limit: the ladder against a plain model, its sensitivity, and what is chosen."""

from __future__ import annotations

import random
from fractions import Fraction

import pyarrow as pa
import pytest

from dalenius.accounting import costs
from dalenius.accounting.neighbors import Neighbors
from dalenius.measuring._exact import exact, exact_lengths
from dalenius.measuring.limits.clip_search import Clip, NoisyCounts, clip_notes, search_of
from dalenius.measuring.limits.in_question import lower_clips
from dalenius.measuring.limits.ladder import best_limit, multiple, rungs, scale_counts, sensitivity
from dalenius.measuring.plan import Limits
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.laws import DiscreteGaussianLaw
from dalenius.queries.rules.price import price_plan

SALT = "salt"
SQL = "SELECT COUNT(DISTINCT note) FROM visits"


def table(pairs: list[tuple[int, str]]) -> pa.Table:
    units, notes = ([pair[at] for pair in pairs] for at in (0, 1))
    return pa.table({"user_id": pa.array(units, pa.int64()), "note": pa.array(notes, pa.string())})


@pytest.fixture
def plan(asker):
    return asker(contribution="rows = 20").plan(SQL)


def test_rungs_and_their_multiple():
    for most in (1, 2, 3, 4, 5, 16, 17, 100, 431):
        assert rungs(most)[-1] == most and rungs(most) == sorted(set(rungs(most)))
        assert all(multiple(most) % rung == 0 for rung in rungs(most))


def test_each_rung_is_the_count_at_that_limit(plan, memory):
    """The plan at each lower limit counts the same values by itself."""
    chance = random.Random(5)
    rows = table([(chance.randrange(9), f"n{chance.randrange(40)}") for _ in range(300)])
    most = plan.measures[0].clip
    counts = [exact(lower_clips(plan, {0: rung}), memory(rows), SALT)[0][0] for rung in rungs(most)]
    assert exact_lengths(plan, memory(rows), SALT) == [scale_counts(most, counts)]
    assert counts == sorted(counts) and counts[0] < counts[-1]


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_the_claimed_sensitivity_is_reached_and_never_passed(asker, memory, accounting, neighbors):
    plan = asker(contribution="rows = 20", accounting=accounting, neighbors=neighbors).plan(SQL)
    most, norm = plan.measures[0].clip, plan.norm
    others = [(1, "shared")]
    one = exact_lengths(plan, memory(table([*others, *((7, f"a{at}") for at in range(50))])), SALT)[0]
    instead = [(8, f"b{at}") for at in range(50)] if neighbors == "substitute" else []
    two = exact_lengths(plan, memory(table([*others, *instead])), SALT)[0]
    power = 2 if norm == "l2" else 1
    seen = sum(abs(a - b) ** power for a, b in zip(one, two, strict=True))
    assert seen <= sensitivity(most, norm, plan.neighbors)
    if neighbors == "add-remove":
        assert seen == sensitivity(most, norm, Neighbors.ADD_REMOVE)


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_the_ladder_is_paid_from_the_price_of_the_question(asker, accounting):
    plan = asker(contribution="rows = 20", accounting=accounting).plan(SQL)
    assert plan.measures[0].search == Fraction(1, 4) and plan.measures[0].share == Fraction(3, 4)
    event, price = price_plan(plan, 1.0).event, plan.table.budget.filter().price(1.0)
    if accounting == "pure":
        assert (costs.pure_epsilon(event) or 2) <= 1 + 1e-12
    else:
        cost = costs.zcdp(event)
        assert cost is not None and cost.rho <= price.rho * (1 + 1e-12)


def test_a_limit_that_somebody_gave_stays(asker):
    assert not asker(contribution="rows = 20\ngroups = 5").plan(SQL).searched
    assert not asker(contribution="rows = 20").plan(SQL, Limits(groups=5)).searched
    assert not asker(contribution="rows = 20").plan(SQL, Limits(search=0)).searched


def test_the_least_limit_that_sees_nearly_all_is_chosen():
    law = DiscreteGaussianLaw(Fraction(1))  # as good as no noise
    assert best_limit(64, scale_counts(64, [2000, 2000, 2000, 2000]), law, 5.0, 1) == (1, 0.0)
    limit, missed = best_limit(64, scale_counts(64, [500, 1900, 2000, 2000]), law, 20.0, 1)
    assert limit == 4 and missed == pytest.approx(0.05, abs=0.01)
    assert best_limit(64, scale_counts(64, [100, 400, 1600, 6400]), law, 5.0, 1)[0] == 64
    assert best_limit(64, [0, 0, 0, 0], law, 5.0, 1) == (1, 0.0)


def test_the_limit_that_was_found_is_told_by_the_name_of_who_is_protected(plan):
    (note,) = clip_notes(plan, [Clip(0, 4, 0.031, 29)])
    assert note == (
        "COUNT(DISTINCT note): this question found its own limit: at most 4 values of one user_id count instead of "
        f"{plan.measures[0].clip}; about 3.1% of what {plan.measures[0].clip} would count was not counted, as far as a "
        "noisy count (± 29) tells."
    )


def test_a_limit_that_was_kept_does_not_say_that_nothing_lies_beyond_it(plan):
    """The highest rung is the most that is looked at: nobody has counted what heavier units have."""
    most = plan.measures[0].clip
    noisy = scale_counts(most, [100 * rung for rung in rungs(most)])
    law = DiscreteGaussian(Fraction(1), dimension=len(noisy))
    found = search_of(plan.measures[0]).fit(NoisyCounts(0, plan.measures[0], noisy, law, 0.001, 1, 1))
    assert found.clip == most and found.beyond is None
    (note,) = clip_notes(plan, [found])
    assert f"kept the one it had: at most {most} values of one user_id count. " in note
    assert "not known" in note and "%" not in note
