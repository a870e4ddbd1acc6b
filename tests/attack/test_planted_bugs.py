"""The fuzzer is only as good as what it catches: each of these bugs, planted alone, is found in a short run.

That the same run without them is clean is `test_neighbour_fuzzer`, which draws the same cases.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from dalenius.audit import fuzz as fuzzer
from dalenius.queries.index import Index
from dalenius.queries.statements import source
from dalenius.queries.statements.sums import Compiler

CASES = 1000  # as many as `test_neighbour_fuzzer` runs in its short form
SEED = 1977


def no_clipping(monkeypatch):
    monkeypatch.setattr(Compiler, "factor", lambda self, pairs: ("1::HUGEINT", "1::HUGEINT"))


def a_forgotten_group_limit(monkeypatch):
    def chosen(self):
        return f"SELECT {', '.join([*self.units, *self.keys, *self.weights])} FROM sums"

    monkeypatch.setattr(Compiler, "chosen", chosen)


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
    # By name: the package holds a function `bound` where its module would be.
    monkeypatch.setattr(sys.modules["dalenius.queries.rules.bound"], "sensitivity_l1", lambda clip, neighbors: clip)
    monkeypatch.setattr(
        sys.modules["dalenius.queries.rules.bound"],
        "squared_sensitivity_l2",
        lambda clip, neighbors, non_negative: clip**2,
    )


def a_stale_index_that_is_used(monkeypatch):
    monkeypatch.setattr(Index, "matches", lambda self, found, expected: True)


def a_heavy_unit_treated_as_light(monkeypatch):
    bound = Index.bound

    def loose(self, plan, measure, most):
        return bound(self, plan, measure, 2 * most)

    monkeypatch.setattr(Index, "bound", loose)


LEAKS = (
    no_clipping,
    a_forgotten_group_limit,
    a_nan_that_is_a_unit,
    rounding_to_nearest,
    half_the_sensitivity_of_a_substitution,
    a_cast_that_fails,
)
INDEXED = (a_stale_index_that_is_used, a_heavy_unit_treated_as_light)
WRONG = (a_step_ten_times_too_fine, no_range_check, a_null_that_counts)


@pytest.mark.parametrize("plant", LEAKS, ids=lambda plant: plant.__name__)
def test_a_planted_leak_shows_on_neighbours(plant, monkeypatch):
    plant(monkeypatch)
    # By neighbours alone: without what Python works out by itself.
    monkeypatch.setattr(fuzzer, "expected", lambda *_: None)
    found = violation()
    assert found.kind in {"difference", "unit", "nobody", "engine"}
    assert (found.kind == "engine") == (plant is a_cast_that_fails)


@pytest.mark.parametrize("plant", WRONG, ids=lambda plant: plant.__name__)
def test_a_planted_miscalculation_shows_where_python_can_follow(plant, monkeypatch):
    # The clip of a unit's whole contribution holds in spite of these, so that no neighbours can tell.
    plant(monkeypatch)
    assert violation().kind == "expected"


@pytest.mark.parametrize("plant", INDEXED, ids=lambda plant: plant.__name__)
@pytest.mark.parametrize("compared", [True, False], ids=["with the general way", "by neighbours alone"])
def test_a_planted_misuse_of_the_index_shows(plant, compared, monkeypatch):
    plant(monkeypatch)
    monkeypatch.setattr(fuzzer, "_INDEXED", 1.0)
    if compared:
        assert violation().kind == "index"
        return
    monkeypatch.setattr(fuzzer, "expected", lambda *_: None)
    monkeypatch.setattr(fuzzer._Sides, "compares", False)
    assert violation().kind in {"difference", "unit", "nobody"}


def violation():
    report = fuzzer.fuzz(cases=CASES, seed=SEED)
    assert report.violations, f"not seen in {report.cases} cases"
    (found,) = report.violations
    assert found.sql and found.policy and (found.first or found.second)
    return found
