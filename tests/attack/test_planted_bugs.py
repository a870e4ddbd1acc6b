"""The fuzzer is only as good as what it catches: each of these bugs, planted alone, is found in a short run.

That the same run without them is clean is `test_neighbour_fuzzer`, which draws the same cases.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.conftest import NEAR_PLANTED

from dalenius.audit import fuzz as fuzzer
from dalenius.audit.fuzzing.checks import Sides
from dalenius.audit.fuzzing.schemas import NAME
from dalenius.measuring import building, measures
from dalenius.measuring.engines.duckdb.binding import Binding
from dalenius.measuring.engines.duckdb.index import Index
from dalenius.measuring.engines.duckdb.statements import source
from dalenius.measuring.engines.duckdb.statements.distinct import PairStatement
from dalenius.measuring.engines.duckdb.statements.keys import KeyStatement
from dalenius.measuring.engines.duckdb.statements.leaves import LeafCompiler
from dalenius.measuring.engines.duckdb.statements.sizes import LengthStatement
from dalenius.measuring.engines.duckdb.statements.sums import Compiler
from dalenius.measuring.limits import in_question
from dalenius.measuring.statistics import distinct
from dalenius.mechanisms.key_selection import WEIGHT, KeySelection

SEED = 1977
NEAR = 16  # cases, from where the bug was last seen
FAR = 31  # the pair of tables that shows the one bug which no earlier pair does


def no_clipping(monkeypatch):
    monkeypatch.setattr(Compiler, "factor", lambda self, pairs: ("1::HUGEINT", "1::HUGEINT"))


def a_forgotten_group_limit(monkeypatch):
    def chosen(self):
        return f"SELECT {', '.join([*self.units, *self.keys, *self.weights])} FROM sums"

    monkeypatch.setattr(Compiler, "chosen", chosen)


def pairs_without_a_limit(monkeypatch):
    monkeypatch.setattr(PairStatement, "chosen", lambda self: f"SELECT {', '.join([*self.keys, 'v'])} FROM pairs")


def a_second_factor_without_bounds(monkeypatch):
    scaled = Compiler.scaled

    def second(self, measure):
        factor = measure.times or measure
        wide = replace(factor, low=10 * factor.low, high=10 * factor.high, step=factor.step / 10)
        return scaled(self, wide, self.renderer.sql(factor.value))

    monkeypatch.setattr(Compiler, "second", second)


def a_step_ten_times_too_fine(monkeypatch):
    scaled = Compiler.scaled
    monkeypatch.setattr(
        Compiler, "scaled", lambda self, measure, value: scaled(self, replace(measure, step=measure.step / 10), value)
    )


def no_range_check(monkeypatch):
    def scaled(self, measure, value):
        rounded = f"floor({value} / {float(measure.step)!r} + 0.5)"
        return f"(CAST(greatest(-1e15, least(1e15, {rounded})) AS HUGEINT) - {measure.centre})"

    monkeypatch.setattr(Compiler, "scaled", scaled)
    clean = source.clean

    def unbounded(column, name):
        return clean(column if column.default is not None else replace(column, bounds=None), name)

    monkeypatch.setattr(source, "clean", unbounded)


def a_null_that_counts(monkeypatch):
    integer = Compiler.integer

    def leaking(self, measure):
        return integer(self, measure).replace(" IS NOT NULL THEN", " IS DISTINCT FROM 12.5 THEN")

    monkeypatch.setattr(Compiler, "integer", leaking)


def a_nan_that_is_a_unit(monkeypatch):
    monkeypatch.setattr(source, "_FLOATS", frozenset())


def rounding_to_nearest(monkeypatch):
    def nearest(self, value, top, bottom):
        return f"(2 * {value} * {top} + sign({value}) * {bottom}) // (2 * {bottom})"

    monkeypatch.setattr(Compiler, "truncated", nearest)


def a_cast_that_fails(monkeypatch):
    cast = source.cast
    monkeypatch.setattr(source, "cast", lambda column, types: cast(column, types).replace("TRY_CAST", "CAST"))


def half_the_sensitivity_of_a_substitution(monkeypatch):
    monkeypatch.setattr(measures, "sensitivity_l1", lambda clip, neighbors: clip)
    monkeypatch.setattr(measures, "squared_sensitivity_l2", lambda clip, neighbors, non_negative: clip**2)


def an_unbounded_weight_of_rows_in_quantiles(monkeypatch):
    weighed = LeafCompiler.weighed
    monkeypatch.setattr(LeafCompiler, "weighed", lambda self: f"SELECT * FROM ({weighed(self)}) WHERE FALSE")


def groups_of_one_unit_as_if_of_many(monkeypatch):
    """Composed in parallel: a unit adds 2²⁰ to every key of its, though the noise is for 2²⁰ in all."""
    monkeypatch.setattr(KeySelection, "weight", staticmethod(lambda keys: WEIGHT))


def a_forgotten_cap_of_keys(monkeypatch):
    """Units with too many keys add to all of them what would be right for as many as count."""
    statement = KeyStatement.statement

    def uncapped(self, scan, types, salt):
        return statement(self, scan, types, salt).replace(f"<= {self.cap}),\nlight", f"<= 1000 * {self.cap}),\nlight")

    monkeypatch.setattr(KeyStatement, "statement", uncapped)


def a_unit_with_a_length_in_each_group(monkeypatch):
    def norms(self, source):
        parts = [*self.units, *(f"nullif(sum(abs({each})), 0) AS {each}" for each in self.weights)]
        return f"SELECT {', '.join(parts)} FROM {source} GROUP BY {', '.join([*self.units, *self.keys])}"

    monkeypatch.setattr(LengthStatement, "norms", norms)


def noise_for_a_lower_clip_than_the_one_that_runs(monkeypatch):
    limited = measures.clip_measure
    monkeypatch.setattr(
        in_question, "clip_measure", lambda measure, *args: replace(limited(measure, *args), clip=measure.clip)
    )


def grouping_sets_each_within_the_limit_of_one(monkeypatch):
    """Every set's vector is clipped by itself, and the noise is for one of them: a unit is in all at once."""
    monkeypatch.setattr(building, "combine_limits", lambda limits, norm: max(limits))
    norms = Compiler.norms

    def of_the_longest(self, source):
        if not self.plan.sets:
            return norms(self, source)
        length = "{0} * {0}" if self.joint else "abs({0})"
        by, units = ", ".join([*self.units, self.keys[0]]), ", ".join(self.units)
        of_one = ", ".join(f"greatest(1, sum({length.format(each)})) AS {each}" for each in self.weights)
        longest = ", ".join(f"max({each}) AS {each}" for each in self.weights)
        return f"SELECT {units}, {longest} FROM (SELECT {by}, {of_one} FROM {source} GROUP BY {by}) GROUP BY {units}"

    monkeypatch.setattr(Compiler, "norms", of_the_longest)


def pairs_of_grouping_sets_as_if_of_one(monkeypatch):
    limited = measures.clip_measure
    monkeypatch.setattr(distinct, "clip_measure", lambda measure, *rest: limited(replace(measure, sets=1), *rest))


def a_stale_index_that_is_used(monkeypatch):
    monkeypatch.setattr(Index, "matches", lambda self, found, expected: True)
    # Nor are its rows compared, which alone would do (`test_rewritten_source`).
    monkeypatch.setattr(Binding, "check", lambda self, *_: self.state())


def a_heavy_unit_treated_as_light(monkeypatch):
    bound = Index.bound

    def loose(self, plan, measure, most):
        return bound(self, plan, measure, 2 * most)

    monkeypatch.setattr(Index, "bound", loose)


# Each with the number of the first pair of tables that shows it.
LEAKS = {
    groups_of_one_unit_as_if_of_many: 12,
    a_forgotten_cap_of_keys: 18,
    no_clipping: 0,
    a_forgotten_group_limit: 1,
    pairs_without_a_limit: 2,
    a_nan_that_is_a_unit: 6,
    rounding_to_nearest: 12,
    half_the_sensitivity_of_a_substitution: 12,
    a_cast_that_fails: 2,
    an_unbounded_weight_of_rows_in_quantiles: 13,
    a_unit_with_a_length_in_each_group: 2,
    noise_for_a_lower_clip_than_the_one_that_runs: 12,
    grouping_sets_each_within_the_limit_of_one: 9,
    pairs_of_grouping_sets_as_if_of_one: 12,
}
INDEXED = {
    a_stale_index_that_is_used: 0,
    a_heavy_unit_treated_as_light: 0,
}
WRONG = {
    a_step_ten_times_too_fine: 6,
    no_range_check: 6,
    a_null_that_counts: FAR,
    a_second_factor_without_bounds: 6,
}


def test_the_short_form_goes_over_every_case_that_shows_a_planted_bug():
    last = max(number for number in {**LEAKS, **INDEXED, **WRONG}.values() if number != FAR)
    assert fuzzer.QUESTIONS * last + NEAR <= NEAR_PLANTED


@pytest.mark.parametrize("plant", LEAKS, ids=lambda plant: plant.__name__)
def test_a_planted_leak_shows_on_neighbours(plant, monkeypatch):
    plant(monkeypatch)
    # By neighbours alone: without what Python works out by itself.
    monkeypatch.setattr(Sides, "work_out", lambda *_: None)
    found = violation(LEAKS[plant])
    assert found.kind in {"difference", "unit", "nobody", "engine", "lone", "search"}
    assert (found.kind == "engine") == (plant is a_cast_that_fails)


@pytest.mark.parametrize("plant", WRONG, ids=lambda plant: plant.__name__)
def test_a_planted_miscalculation_shows_where_python_can_follow(plant, monkeypatch):
    # The clip of a unit's whole contribution holds in spite of these, so that no neighbours can tell.
    plant(monkeypatch)
    assert violation(WRONG[plant]).kind == "expected"


# --- thresholds: no table shows them, a sum over the noise does


def promised(selection):
    """Whether a lone unit's keys appear with chance at most δ, by summing the noise; H9 is the same by drawing it."""
    variance = float(selection.noise.variance)
    mass = [math.exp(-x * x / (2 * variance)) for x in range(int(12 * math.sqrt(variance)) + 12)]
    whole = 2 * math.fsum(mass) - mass[0]

    def chance(keys):
        beyond = selection.threshold - math.floor(2**20 / math.sqrt(keys))
        tail = math.fsum(mass[beyond:]) / whole if beyond > 0 else 1.0
        return 1 - (1 - tail) ** keys

    return max(map(chance, range(1, selection.cap + 1))) <= selection.delta


SELECTIONS = [(variance, delta, cap) for variance in (4, 100, 9000) for delta in (1e-2, 1e-5) for cap in (1, 8, 32)]


def off_by_one(monkeypatch):
    threshold = vars(KeySelection)["threshold"].func
    monkeypatch.setattr(KeySelection, "threshold", property(lambda self: threshold(self) - 1))


def a_forgotten_weight(monkeypatch):
    """As if a lone unit's key weighed nothing."""
    threshold = vars(KeySelection)["threshold"].func
    monkeypatch.setattr(KeySelection, "threshold", property(lambda self: threshold(self) - 2**20))


def one_key_where_there_may_be_many(monkeypatch):
    def single(self):
        return self._least(1, 1)

    monkeypatch.setattr(KeySelection, "threshold", property(single))


def kept():
    # Δ2² = 2⁴⁰: a ρ for each variance
    return [promised(KeySelection(Fraction(2**39, variance), delta, cap)) for variance, delta, cap in SELECTIONS]


@pytest.mark.parametrize("plant", [off_by_one, a_forgotten_weight], ids=lambda plant: plant.__name__)
def test_a_threshold_below_what_delta_allows_is_seen(plant, monkeypatch):
    assert all(kept())
    plant(monkeypatch)
    assert not any(kept())


def test_a_threshold_for_one_key_alone_is_seen_where_noise_is_wide(monkeypatch):
    """More keys are then more chances. So wide a noise is as good as normal."""

    def chance(keys, selection):
        sigma = math.sqrt(selection.noise.variance)
        one = math.erfc((selection.threshold - 2**20 / math.sqrt(keys)) / sigma / math.sqrt(2)) / 2
        return -math.expm1(keys * math.log1p(-one))

    assert chance(32, KeySelection(0.02, 1e-3, 32)) < 1.001e-3
    one_key_where_there_may_be_many(monkeypatch)
    assert chance(1, KeySelection(0.02, 1e-3, 32)) < 1.001e-3 < chance(32, KeySelection(0.02, 1e-3, 32))


@pytest.mark.parametrize("plant", INDEXED, ids=lambda plant: plant.__name__)
@pytest.mark.parametrize("compared", [True, False], ids=["with the general way", "by neighbours alone"])
def test_a_planted_misuse_of_the_index_shows(plant, compared, monkeypatch):
    plant(monkeypatch)
    monkeypatch.setattr(fuzzer, "INDEXED", 1.0)
    if compared:
        assert violation(INDEXED[plant]).kind == "index"
        return
    if os.environ.get("DALENIUS_LONG") != "1":
        pytest.skip("minutes: neighbours alone show it after many cases")
    monkeypatch.setattr(Sides, "work_out", lambda *_: None)
    monkeypatch.setattr(Sides, "compares_index", False)
    assert violation(INDEXED[plant]).kind in {"difference", "unit", "nobody"}


@pytest.fixture(autouse=True)
def unshrunk(monkeypatch):
    """Cases stay as they were drawn: `tests/unit/audit` makes them small, which takes most of the time."""
    monkeypatch.setattr(fuzzer, "shrink", lambda made, _: made)


def violation(number):
    report = fuzzer.fuzz(cases=NEAR, seed=SEED, start=number)
    if not report.violations:  # should another generator draw other tables by now
        report = fuzzer.fuzz(cases=2 * NEAR_PLANTED, seed=SEED)
    assert report.violations, f"not seen in {report.cases} cases"
    (found,) = report.violations
    assert found.sql and found.policies and (found.first[NAME] or found.second[NAME])
    return found
