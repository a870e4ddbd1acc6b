"""What one unit can change, against computation by hand; and limits that only tighten."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from dalenius.errors import InputError, NotAllowedError, QuestionRefusedError
from dalenius.measuring.building import MOST, split_price
from dalenius.measuring.engines.duckdb.statements.sums import Compiler
from dalenius.measuring.plan import Found, Limits
from dalenius.queries.rules import plan_question
from dalenius.tables.policy import Bounds


def asked(what, keys=""):
    return f"SELECT {what} FROM visits" + (f" GROUP BY {keys}" if keys else "")


# rows = 10, groups = 2, total of amount = 8000; age 18..90, amount 0..5000 by 0.01, change −10..10 by 0.5
@pytest.mark.parametrize(
    ("what", "keys", "clip", "signed"),
    [
        ("COUNT(*)", "", 10, False),
        ("COUNT(*)", "region", 10, False),
        ("COUNT(age)", "", 10, False),
        ("SUM(age)", "", 10 * 90, False),
        ("SUM(-age)", "", 10 * 90, False),  # all entries have one sign
        ("SUM(change)", "", 10 * 20, True),
        ("SUM(change)", "region", 10 * 20, True),
        ("SUM(amount)", "", 800_000, False),  # the total, in steps: less than 10 rows of 5000
        ("SUM(2 * amount)", "", 1_600_000, False),
        ("SUM(amount / 4)", "", 2_000_000, False),  # by 0.001
        ("SUM(CASE WHEN smoker THEN amount ELSE 0 END)", "", 800_000, False),
        ("SUM(amount + 1)", "", 10 * 500_100, False),  # of which a total says nothing
        ("SUM(0 * age)", "", 1, False),
        ("SUM(3)", "", 30, False),
    ],
)
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_a_sum_changes_by_at_most_its_clip(what, keys, clip, signed, neighbors, accounting, asker):
    (measure,) = asker(neighbors=neighbors, accounting=accounting).plan(asked(what, keys)).measures
    assert measure.clip == clip
    if accounting == "pure":
        assert measure.sensitivity == measure.limit * (2 if neighbors == "substitute" else 1)
    else:
        factor = 1 if neighbors == "add-remove" else 4 if signed else 2
        assert measure.sensitivity == factor * measure.limit**2


@pytest.mark.parametrize(
    ("keys", "groups"), [("", 1), ("smoker", 2), ("region", 2), ("region, smoker", 2), ("age > 30", 2)]
)
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_a_unit_is_counted_once_per_group(keys, groups, accounting, asker):
    for neighbors, both in (("add-remove", 1), ("substitute", 2)):
        plan = asker(neighbors=neighbors, accounting=accounting).plan(asked("COUNT(DISTINCT user_id)", keys))
        assert plan.measures[0].sensitivity == both * groups
        assert plan.groups == (2 if keys.startswith("region") else None)  # none where there are no more than that


def test_without_a_limit_on_groups_a_unit_may_be_in_all(asker):
    plan = asker(contribution="rows = 10").plan(asked("COUNT(DISTINCT user_id)", "region"))
    assert plan.groups is None and plan.measures[0].sensitivity == 4


def test_squares_have_no_sign(asker):
    plan = asker(neighbors="substitute").plan(asked("VAR_POP(change)"))
    count, summed, square = plan.measures
    assert (count.clip, count.sensitivity) == (10, 2 * count.limit**2)
    assert (summed.low, summed.high, summed.clip, summed.sensitivity) == (-20, 20, 200, 4 * summed.limit**2)
    assert (square.clip, square.sensitivity) == (10 * 400, 2 * square.limit**2)


# --- centres


def alternatives(plan):
    """The noise of the plan's average around 0 and around the middle, by the formulas of `building`."""
    (statistic,) = plan.statistics
    summed = statistic.measures[1]
    low, high = summed.low + summed.centre, summed.high + summed.centre
    rows = plan.table.policy.contribution.rows
    found = {}
    for centre in {0, (low + high) // 2}:
        largest = max(abs(low - centre), abs(high - centre), 1)
        clips = [rows, rows * largest, rows * largest**2][: len(statistic.measures)]
        if centre == 0 and plan.table.policy.contribution.totals and "amount" in summed.written():
            clips[1] = 800_000
            clips[2:] = [800_000 * largest][: len(clips) - 2]  # Σx² ≤ max |x| · Σ|x|
        power = 2 if plan.norm == "l2" else 1
        measures = [
            replace(each, sensitivity=clip**power) for each, clip in zip(statistic.measures, clips, strict=True)
        ]
        found[centre] = split_price(measures, low - centre, high - centre, plan.norm).noise
    return summed.centre, found


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("aggregate", ["AVG", "STDDEV"])
@pytest.mark.parametrize(
    "column", ["age", "amount", "change", '"odd name"', "100 + age", "LEAST(GREATEST(free, 0), 1)"]
)
def test_values_are_centred_only_where_that_lowers_the_noise(column, aggregate, accounting, asker):
    plan = asker(accounting=accounting).plan(asked(f"{aggregate}({column})"))
    centre, noise = alternatives(plan)
    assert noise[centre] == min(noise.values())


def test_a_centre_is_taken_where_values_are_far_from_zero_and_not_where_a_total_is_better(visits):
    assert visits.plan(asked("AVG(age)")).measures[1].centre == 54
    assert visits.plan(asked("AVG(amount)")).measures[1].centre == 0
    assert visits.plan(asked("SUM(age)")).measures[0].centre == 0


# --- limits


@pytest.mark.parametrize(
    ("what", "limits", "clip"),
    [
        ("COUNT(*)", Limits(rows=5), 5),
        ("COUNT(*)", Limits(rows=50), 10),
        ("SUM(age)", Limits(rows=1), 90),
        ("SUM(age)", Limits(totals={"age": Fraction(100)}), 100),
        ("SUM(amount)", Limits(totals={"amount": Fraction(100)}), 10_000),
        ("SUM(amount)", Limits(totals={"amount": Fraction(10**9)}), 800_000),
        ("SUM(amount)", Limits(rows=1), 500_000),
        ("SUM(amount)", Limits(totals={"amount": Fraction(1, 1000)}), 1),
    ],
)
def test_limits_of_a_question_only_tighten(what, limits, clip, visits):
    assert visits.plan(asked(what), limits).measures[0].clip == clip


def test_a_limit_on_groups_only_tightens(visits):
    for groups, reach in ((1, 1), (2, 2), (3, 2), (100, 2)):
        plan = visits.plan(asked("COUNT(DISTINCT user_id)", "region"), Limits(groups=groups))
        assert plan.groups == reach == plan.measures[0].clip


@pytest.mark.parametrize(
    "limits",
    [
        Limits(rows=0),
        Limits(groups=0),
        Limits(totals={"amount": Fraction(0)}),
        Limits(totals={"amount": Fraction(-1)}),
        Limits(totals={"region": Fraction(1)}),
        Limits(totals={"free": Fraction(1)}),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits, visits):
    assert isinstance(visits.error(asked("COUNT(*)", "region"), limits), InputError)


def test_a_misspelled_total_is_told_with_the_nearest_column(visits):
    assert "'amount'" in str(visits.error(asked("SUM(amount)"), Limits(totals={"amuont": Fraction(1)})))


def test_without_limits_and_bounds_nothing_is_summed(asker):
    none = asker(contribution="")
    assert isinstance(none.error(asked("COUNT(*)")), NotAllowedError)
    assert isinstance(none.error(asked("SUM(age)")), NotAllowedError)
    assert none.plan(asked("COUNT(*)"), Limits(rows=3)).measures[0].clip == 3
    assert none.plan(asked("COUNT(DISTINCT user_id)")).measures[0].sensitivity == 1
    total = asker(contribution="totals = { amount = 8000 }")
    assert total.plan(asked("SUM(amount)")).measures[0].clip == 800_000
    assert isinstance(total.error(asked("AVG(amount)")), NotAllowedError)
    assert isinstance(total.error(asked("SUM(free)")), NotAllowedError)
    assert "LEAST(GREATEST(free" in str(total.error(asked("SUM(free)")))


# --- 127 bits


def test_a_contribution_beyond_62_bits_is_refused(asker):
    million = asked("SUM(1000000 * age)")
    assert MOST / 2 < asker(contribution="rows = 50_000_000_000").plan(million).measures[0].clip < MOST
    error = asker(contribution="rows = 60_000_000_000").error(million)
    assert isinstance(error, QuestionRefusedError) and "2⁶²" in str(error)


@pytest.mark.parametrize("rows", [1, 10**6, 10**8, 10**12])
def test_squares_are_rounded_more_coarsely_until_they_fit(rows, asker):
    plan = asker(contribution=f"rows = {rows}").plan(asked("STDDEV(amount)"))
    _, summed, square = plan.measures
    assert square.clip < MOST and summed.step == square.step
    finer = rows * (math.floor(5000 / (float(summed.step) / 10)) ** 2)
    assert summed.step == Fraction(1, 100) or finer >= MOST  # no coarser than needed


@pytest.mark.parametrize("keys", ["", "smoker", "region", "age", '"when", region, smoker'])
@pytest.mark.parametrize("contribution", ["rows = 10", "rows = 10\ngroups = 3"])
def test_products_and_squares_of_one_unit_fit_127_bits(keys, contribution, asker):
    plan = asker(contribution=contribution).plan(asked("SUM(age)", keys))
    most = Compiler(plan).most
    reach = plan.groups or len(plan.cells)
    assert most * most * reach <= 2**126 < 2**127
    assert most * MOST < 2**127
    assert most > plan.measures[0].clip * 1000  # far beyond what clipping leaves


# --- plans


def test_equal_aggregates_are_measured_once(visits):
    plan = visits.plan(asked("AVG(age), STDDEV(age), VAR_POP(age), COUNT(*), COUNT(*) + 1"))
    assert [each.kind for each in plan.statistics] == ["moments", "rows"]
    assert len(plan.measures) == 4
    assert {plan.statistics[number].kind for number in plan.answers.values()} == {"moments", "rows"}


def test_the_order_of_columns_does_not_change_what_is_measured(visits):
    one, other = (
        visits.plan(asked(each)) for each in ("SUM(age), COUNT(*), AVG(amount)", "AVG(amount), SUM(age), COUNT(*)")
    )
    assert one.measures == other.measures and one.canonical() == other.canonical()
    for aggregate, number in one.answers.items():
        assert other.answers[aggregate] == number


@pytest.mark.parametrize("factor", ["1e-323", "1e-310", "1e-300", "1e90"])
def test_tiny_and_huge_values_have_a_step_that_a_double_holds(factor, visits):
    for aggregate in ("SUM", "AVG", "STDDEV"):
        for measure in visits.plan(asked(f"{aggregate}(amount * {factor})")).measures:
            assert float(measure.step) > 0 and measure.clip >= 1


@pytest.mark.parametrize("what", ["SUM(amount / 1e-310)", "SUM(amount * 1e308 * 1e308)", "AVG(amount / 1e-310)"])
def test_a_factor_that_no_double_holds_says_nothing_about_a_total(what, visits):
    # bounds [0, 0] stay [0, 0] whatever the factor, but a total of 8000 becomes infinite
    column = visits.table.policy.columns["amount"]
    nothing = replace(column, bounds=Bounds(Fraction(0), Fraction(0)))
    policy = replace(visits.table.policy, columns={**visits.table.policy.columns, "amount": nothing})
    question = asked(what)
    plan = plan_question(question, {"visits": replace(visits.table, policy=policy)})
    assert [measure.clip for measure in plan.measures if measure.kind == "sum"] == [10]
    declared = replace(policy.contribution, rows=None)
    with pytest.raises(NotAllowedError, match="rows"):
        plan_question(question, {"visits": replace(visits.table, policy=replace(policy, contribution=declared))})


def test_a_limit_of_rows_that_nobody_could_see_is_said(asker):
    table = asker(contribution="").table
    hidden, seen = Found(1, {"amount": Fraction(5000)}), Found(1, {"amount": Fraction(5000)}, clipped={"rows": 0.0})

    def notes(found, what):
        return plan_question(asked(what), {"visits": replace(table, found=found)}).notes

    for what in ("COUNT(*)", "SUM(amount)", "AVG(age)", "MEDIAN(age)"):
        (note,) = notes(hidden, what)
        assert "Only 1 row of one user_id counts" in note and "[contribution] rows" in note
        assert not notes(seen, what)
    assert not notes(hidden, "COUNT(DISTINCT user_id)")  # rows do not matter to it
