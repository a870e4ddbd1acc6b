"""Counts are kept in parts of a row: scaling a unit down to its limit does not lose it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.whole import in_steps

from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.statements.sums import Compiler
from dalenius.measuring.measures import FINE, bits_for, count_in, reach_of, refine
from dalenius.measuring.plan import Limits, require
from dalenius.mechanisms import noise
from dalenius.mechanisms.laws import DiscreteGaussianLaw
from dalenius.queries.answering import Answer, coarsen, measure_plan
from dalenius.queries.rules.price import price_plan

PEOPLE = 400
BY_DAY = 'SELECT "odd name", region, COUNT(*) FROM visits GROUP BY "odd name", region'


def every_group(people=PEOPLE):
    """People with one row in each of 28 groups."""
    rows = [
        {"user_id": unit, "odd name": day, "region": region, "amount": 1.0, "age": 18 + unit % 70}
        for unit in range(people)
        for day in range(-3, 4)
        for region in ("north", "south", "east", "west")
    ]
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 10, 28])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_a_person_with_one_row_in_each_group_keeps_the_same_part_of_each(limit, accounting, asker, memory):
    plan = asker(contribution="rows = 28", accounting=accounting).plan(BY_DAY, Limits(rows=limit, search=0))
    (integers,) = exact(plan, memory(every_group()), "salt")
    length = math.sqrt(28) if accounting == "zcdp" else 28
    wanted = PEOPLE * min(1.0, limit / length)
    assert len(integers) == 28
    for each in integers:
        assert each / 2 ** plan.measures[0].bits == pytest.approx(wanted, rel=1e-3)


def test_an_average_keeps_the_rows_of_who_is_beyond_the_limit_of_a_total(asker, memory):
    who = asker(contribution="rows = 10\ntotals = { amount = 100 }")
    plan = who.plan("SELECT AVG(amount) FROM visits")
    rows = [{"user_id": unit, "amount": 1000.0} for unit in range(500)]
    count, total = exact(plan, memory(pa.Table.from_pylist(rows)), "salt")
    counted, summed = plan.measures
    mean = Fraction(total[0], 2**summed.bits) * summed.step / Fraction(count[0], 2**counted.bits)
    assert float(mean + summed.centre * summed.step) == pytest.approx(1000.0, rel=1e-3)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0, 40.0])
def test_the_margin_covers_what_is_left_of_people_who_are_all_scaled_down(epsilon, asker, memory):
    """1/√28 of a row in each group, a sum that is not whole: 60 × 28 margins of 95%, where 93% or more must hold.

    False alarms: P(Bin(1680, 0.95) < 0.93 · 1680) < 2e-4 were draws fresh each time; margins are wider than that, by
    half a row and rounding, and the narrowest of all (ε = 1, σ = 5) by a tenth, where it is below 1e-6.
    """
    plan = asker(contribution="rows = 28").plan(BY_DAY, Limits(rows=1, search=0))
    price, (truth,) = price_plan(plan, epsilon), in_steps(plan, exact(plan, memory(every_group()), "salt"))
    inside = 0
    for _ in range(60):
        noise.fresh_key()
        noisy = tuple(price.mechanisms[0].release([int(each * 2 ** plan.measures[0].bits) for each in truth]).value)
        answer = Answer(plan, price.epsilon, price.rho, ((price.mechanisms[0].noise, noisy),), 0.95)
        (found,) = answer.estimates.values()
        for each, value in zip(found, truth, strict=True):
            inside += abs(require(each.value) - value) <= require(each.noise_error)
            assert require(each.low) == require(each.value) - require(each.noise_error)
    assert inside >= 0.93 * 60 * 28


@given(
    clip=st.integers(1, 2**61),
    cells=st.integers(1, 10**5),
    groups=st.none() | st.integers(1, 1000),
    found=st.booleans(),
)
def test_parts_are_fine_enough_and_leave_room(visits_plan, clip, cells, groups, found):
    measure = replace(visits_plan.measures[0], clip=clip)
    selection = visits_plan.selection if found else None
    plan = replace(visits_plan, cells=((0,),) * cells, groups=groups, selection=selection)
    bits, reach = bits_for(plan, plan.statistics[0], measure), reach_of(plan)
    if clip < math.isqrt(2**126 // reach) // 2:
        assert clip << bits < math.isqrt(2**126 // reach) // 2
    else:
        assert bits == 0
    fine = FINE * math.ceil(math.sqrt(2**20 if found else cells))
    room = (clip << bits) * 2 >= math.isqrt(2**126 // reach) // 2
    alone = cells == 1 and not found
    assert alone or room or clip << bits >= fine


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("cells", [2, 1000, 100_000])
def test_two_to_the_40_rows_and_every_limit_fit_the_engines_integers(accounting, cells, asker):
    """An average of integers near 2⁶², over many groups: before anything is clamped, and where factors are compared."""
    wide = asker(contribution="rows = 30", accounting=accounting)
    plan = wide.plan("SELECT region, AVG(LEAST(GREATEST(free, -4e18), 4e18)) FROM visits GROUP BY region")
    plan = refine(replace(plan, cells=plan.cells[:1] * cells))
    most = Compiler(plan).most
    for each in plan.measures:
        assert each.one_row << each.bits + 40 < 2**127
        assert each.limit <= most
        assert max(one.limit for one in plan.measures) * most * (cells if accounting == "pure" else 1) < 2**127


@pytest.fixture(scope="module")
def visits_plan(visits):
    return visits.plan("SELECT note, COUNT(*) FROM visits GROUP BY note")


def test_the_canonical_text_and_the_key_say_nothing_of_parts(asker):
    plan = asker().plan(BY_DAY)
    whole = count_in(plan, [0])
    assert plan.measures[0].bits and not whole.measures[0].bits
    assert (plan.canonical(), plan.key(1)) == (whole.canonical(), whole.key(1))


# --- answers that were stored before there were parts


def stored_whole(plan, engine, epsilon=2.0):
    """As answers were stored once: whole rows, another format, no bits."""
    whole = count_in(plan, [0] * len(plan.measures))
    data = json.loads(measure_plan(whole, price_plan(whole, epsilon), engine, "salt", 60.0))
    for each in data["measures"]:
        assert each.pop("bits") == 0
    return json.dumps(data | {"format": 1}).encode()


def test_an_old_answer_is_read_as_it_was_meant(asker, memory):
    plan = asker(contribution="rows = 28").plan(BY_DAY)
    engine = memory(every_group())
    old = Answer.read(plan, stored_whole(plan, engine), 0.95).table()
    new = Answer.read(plan, measure_plan(plan, price_plan(plan, 2.0), engine, "salt", 60.0), 0.95).table()
    for answer in (old, new):
        for row, error in zip(answer.rows, answer.noise_error, strict=True):
            assert isinstance(row[2], int) and abs(row[2] - PEOPLE) < 4 * (error[2] or 0)  # 8 deviations
    assert old.noise_error[0][2] == pytest.approx(new.noise_error[0][2], rel=0.05)


def test_an_old_answer_is_shared_with_the_full_noise_of_its_own_parts(asker, memory):
    plan = asker(contribution="rows = 28").plan(BY_DAY)
    old = stored_whole(plan, memory(every_group()))
    given_ = json.loads(coarsen(plan, price_plan(plan, 0.5), old))
    (measure,) = given_["measures"]
    law = price_plan(count_in(plan, [0]), 0.5).mechanisms[0].noise
    assert isinstance(law, DiscreteGaussianLaw)
    assert measure["bits"] == 0 and measure["law"]["gaussian"] == str(law.variance)
    assert Answer.read(plan, json.dumps(given_).encode(), 0.95).coarsened
