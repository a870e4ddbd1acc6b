"""The fuzzer is only as good as what it catches: each of these bugs, planted alone, is found in a short run.

That the same run without them is clean is `test_neighbour_fuzzer`, which draws the same cases.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from dalenius.audit.fuzz import fuzz
from dalenius.queries.rules import compile as compiling
from dalenius.queries.rules.compile import Compiler

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
    monkeypatch.setattr(compiling, "clean", lambda column, name: f"CASE WHEN {finite(column, name)} THEN {name} END")


def finite(column, name):
    return f"isfinite({name})" if column.kind.value in {"integer", "number"} else "true"


def a_null_that_counts(monkeypatch):
    integer = Compiler.integer

    def leaking(self, measure):
        return integer(self, measure).replace(" IS NOT NULL THEN", " IS DISTINCT FROM 12.5 THEN")

    monkeypatch.setattr(Compiler, "integer", leaking)


def a_nan_that_is_a_unit(monkeypatch):
    monkeypatch.setattr(compiling, "_FLOATS", frozenset())


def rounding_to_nearest(monkeypatch):
    def nearest(self, value, top, bottom):
        return f"(2 * {value} * {top} + sign({value}) * {bottom}) // (2 * {bottom})"

    monkeypatch.setattr(Compiler, "truncated", nearest)


def a_cast_that_fails(monkeypatch):
    cast = compiling._cast
    monkeypatch.setattr(compiling, "_cast", lambda column, type_: cast(column, type_).replace("TRY_CAST", "CAST"))


def half_the_sensitivity_of_a_substitution(monkeypatch):
    # By name: the package holds a function `bound` where its module would be.
    monkeypatch.setattr(sys.modules["dalenius.queries.rules.bound"], "sensitivity_l1", lambda clip, neighbors: clip)
    monkeypatch.setattr(
        sys.modules["dalenius.queries.rules.bound"],
        "squared_sensitivity_l2",
        lambda clip, neighbors, non_negative: clip**2,
    )


@pytest.mark.parametrize(
    ("plant", "kinds"),
    [
        (no_clipping, {"difference", "unit", "expected"}),
        (a_forgotten_group_limit, {"difference", "unit"}),
        (a_step_ten_times_too_fine, {"expected"}),
        (no_range_check, {"expected", "difference", "engine"}),
        (a_null_that_counts, {"expected"}),
        (a_nan_that_is_a_unit, {"nobody", "expected"}),
        (rounding_to_nearest, {"difference", "unit", "expected"}),
        (a_cast_that_fails, {"engine"}),
        (half_the_sensitivity_of_a_substitution, {"difference"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_bug_is_caught(plant, kinds, monkeypatch):
    plant(monkeypatch)
    report = fuzz(cases=CASES, seed=SEED)
    assert report.violations, f"not seen in {report.cases} cases"
    found = report.violations[0]
    assert found.kind in kinds, (found.kind, found.sql)
    assert found.sql and found.policy and (found.first or found.second)
