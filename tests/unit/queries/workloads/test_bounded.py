"""What a workload may cost before it is paid for, and when it is stored: no more than its questions are long."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.queries.workloads.tables import Protected

from dalenius.curator import Curator
from dalenius.errors import InputError
from dalenius.measuring.expressions import Column, Type
from dalenius.queries.workloads import comparisons
from dalenius.queries.workloads.attributes import Atoms, Attribute
from dalenius.queries.workloads.blocks import WorkloadPlan
from dalenius.queries.workloads.kind import plan_asked
from dalenius.queries.workloads.linear import Sums, sums_of
from dalenius.queries.workloads.request import WorkloadAsk


@pytest.fixture(scope="module")
def curator(protect: Protected) -> Curator:
    return protect()


def planned(curator: Curator, conditions: Sequence[str]) -> WorkloadPlan:
    asked = [f"SELECT COUNT(*) AS n FROM people WHERE {each}" for each in conditions]
    return plan_asked(curator.analyst("ana")._asker, WorkloadAsk.of({"questions": asked, "epsilon": 1.0})).plan


def stored(plan: WorkloadPlan) -> int:
    """Characters for where the numbers of all questions come from."""
    return sum(len(json.dumps(sums.to_json())) for block in plan.blocks for _, _, sums in block.terms)


def test_what_is_stored_of_many_thresholds_grows_with_their_number_and_not_with_its_square(curator):
    few, many = (planned(curator, [f"bmi < {10 + 40 * at / n:.4f}" for at in range(1, n + 1)]) for n in (15, 60))
    assert many.blocks[0].sizes == (60,)
    assert stored(many) <= 5 * stored(few)


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=12), st.lists(st.integers(-1, 20), min_size=1, max_size=9))
def test_sums_are_read_as_they_were_written(parts, places):
    sums = Sums({2: tuple(parts)}, {2: 4}, tuple(places))
    assert Sums.of_json(json.loads(json.dumps(sums.to_json())), len(places)) == sums


def test_sums_that_were_written_class_by_class_are_still_read():
    old = {"parts": {"0": [[0, 0, -1], 3, 1], "3": [None, 2, 2]}, "places": [1, 0]}
    assert Sums.of_json(old, 2) == Sums({0: (0, 0, -1), 3: (0, 1)}, {0: 1, 3: 2}, (1, 0))


@pytest.mark.parametrize("column", ["note", "bmi"])
def test_conditions_are_worked_out_once_and_not_for_each_constant_of_the_others(curator, monkeypatch, column):
    """Sixty lists of a hundred texts took minutes, for nothing."""
    right, calls = comparisons._truth, []

    def counted(condition: Any, odd: Any) -> Any:
        calls.append(len(odd))
        return right(condition, odd)

    monkeypatch.setattr(comparisons, "_truth", counted)
    constant = "'w{}'" if column == "note" else "{}"
    lists = [", ".join(constant.format(10 + (7 * at + 3 * each) % 40) for each in range(6)) for at in range(12)]
    assert planned(curator, [f"{column} IN ({each})" for each in lists]).blocks
    assert len(calls) == 12 and max(calls) == 6


def test_conditions_that_nothing_is_known_of_are_asked_beside_where_they_have_too_many_combinations(curator):
    plan = planned(curator, [f"note LIKE '%{each}%'" for each in "abcdefghijklm"])
    assert not plan.blocks and len(plan.beside) == 13


@pytest.mark.parametrize("way", ["preview_many", "ask_many"])
def test_a_hundred_thousand_questions_are_refused_before_one_is_planned(curator, monkeypatch, way):
    monkeypatch.setattr("dalenius.queries.workloads.kind.plan_any", None)
    with pytest.raises(InputError, match=r"100,000 questions"):
        getattr(curator.analyst("ana"), way)(["SELECT COUNT(*) FROM people"] * 100_000, epsilon=1.0)


def test_of_groups_whose_keys_are_one_number_the_last_has_the_rows():
    """Whole numbers past 2⁵³ that are one double; a question alone puts their rows in one group, too."""
    key = Column("age", Type.NUMBER)
    attribute = Attribute((key,), ((1.0,), (2.0,)), {key: (1.0, 2.0)}, True)
    found = sums_of(Atoms((key,), ()), [(1.0,), (1.0,), (2.0,)], [attribute])
    assert found.picked(np.array([5.0, 7.0])).tolist() == [0.0, 5.0, 7.0]
