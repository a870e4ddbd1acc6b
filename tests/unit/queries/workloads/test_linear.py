"""Answers from cells are those of the questions: exactly, whatever they tell rows apart by."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import LONG

from dalenius.curator import Curator
from dalenius.measuring._exact import exact
from dalenius.measuring.expressions import Call, columns_of
from dalenius.queries.workloads import comparisons
from dalenius.queries.workloads.attributes import Atoms, Attribute
from dalenius.queries.workloads.kind import plan_asked
from dalenius.queries.workloads.measuring import counted_integers, measured_of
from dalenius.queries.workloads.request import WorkloadAsk

CONDITIONS = (
    "sex = 'm'",
    "sex <> 'm'",
    "sex IS NULL",
    "bmi < 25",
    "bmi <= 25",
    "bmi = 25",
    "bmi BETWEEN 20 AND 30",
    "NOT bmi < 25",
    "bmi IN (20, 25)",
    "bmi IS NOT NULL",
    "bmi < 18 OR bmi > 30",
    "bmi < 5",
    "age >= 18",
    "age < 65",
    "age % 2 = 0",
    "day >= DATE '2025-03-01'",
    "day < DATE '2025-07-01'",
    "MONTH(day) = 3",
    "smoker",
    "NOT smoker",
    "note LIKE 'a%'",
    "note = 'abc'",
    "note > 'b'",
    "sex = 'm' OR region = 'north'",
    "bmi < age",
    "pay > 0",
    "1 = 2",
    "COALESCE(sex, 'f') = 'f'",
)
KEYS = ("sex", "region", "smoker", "FLOOR(age / 10)", "DATE_TRUNC('month', day)", "bmi < 25", "FLOOR(bmi / 10)", "age")
AGGREGATES = ("COUNT(*)", "COUNT(bmi)", "SUM(pay)", "AVG(pay)", "SUM(bmi)", "AVG(age)")


@st.composite
def questions(draw: Any) -> str:
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=2, unique=True))
    conditions = draw(st.lists(st.sampled_from(CONDITIONS), max_size=2, unique=True))
    aggregates = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=2, unique=True))
    filters = [draw(st.sampled_from(("", "", *CONDITIONS))) for _ in aggregates]
    shown = [f"{each} FILTER (WHERE {one})" if one else each for each, one in zip(aggregates, filters, strict=True)]
    where = f" WHERE {' AND '.join(f'({each})' for each in conditions)}" if conditions else ""
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(shown)} FROM people{where}{grouped}"


@pytest.fixture(scope="module")
def curators(protect: Any) -> dict[str, Curator]:
    return {each: protect(each) for each in ("zcdp", "pure")}


def wrong_terms(curator: Curator, asked: Sequence[str]) -> list[Any]:
    """The measures whose sums over cells are not the exact integers that the question has alone."""
    asker, wrong = curator.analyst("ana")._asker, []
    found = plan_asked(asker, WorkloadAsk.of({"questions": list(asked), "epsilon": 1.0})).plan
    for block in found.blocks:
        engine = block.planned.snapshot.engine(asker.engines)
        counted = counted_integers(block, engine, "salt", 60.0)
        own = {number: exact(found.plans[number].plan, engine, "salt") for number in block.questions}
        places = {number: itertools.count() for number in block.questions}
        for term, at, sums in block.terms:
            part, plan = block.parts[at], found.plans[term.question].plan
            measured = measured_of(part, block, counted)
            answers = sums.answers(part.strategy.infer(np.array(measured, dtype=float)))
            number = next(places[term.question])
            measure = plan.measures[number]
            expected = np.array(own[term.question][number]) / 2.0**measure.bits
            if measure.kind == "sum" and measure.centre != part.summed.centre:
                rows = next(at for at in range(plan.start(term.statistic), number) if plan.measures[at].kind == "rows")
                there = np.array(own[term.question][rows]) / 2.0 ** plan.measures[rows].bits
                expected = expected + (measure.centre - part.summed.centre) * there
            if not np.allclose(answers / 2.0**part.measure.bits, expected, atol=1e-3):
                wrong.append(term)
    return wrong


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@settings(max_examples=200 if LONG else 3)
@given(asked=st.lists(questions(), min_size=1, max_size=4))
def test_sums_over_cells_are_the_exact_integers_of_each_question(curators, accounting, asked):
    assert not wrong_terms(curators[accounting], asked)


PAIRS = [
    [f"SELECT COUNT(*) FROM people WHERE {each}" for each in pair]
    for pair in (("bmi < 25", "bmi <= 25"), ("sex = 'm'", "sex <> 'm'"), ("note LIKE 'a%'", "note LIKE 'b%'"))
]


@pytest.mark.parametrize("asked", PAIRS)
def test_another_filter_treated_as_equal_is_caught(curators, monkeypatch, asked):
    """Planted: of conditions that read the same columns, the first stands for all."""

    def merged(given: Sequence[Atoms]) -> list[Atoms]:
        first: dict[frozenset[str], Any] = {}
        for one in given:
            for each in one.conditions:
                first.setdefault(columns_of(each), each)
        return [Atoms(one.keys, tuple(first[columns_of(each)] for each in one.conditions)) for one in given]

    assert not wrong_terms(curators["zcdp"], asked)
    monkeypatch.setattr("dalenius.queries.workloads.planning.merge_conditions", merged)
    assert wrong_terms(curators["zcdp"], asked)


@pytest.mark.parametrize(("function", "taken_for"), [("lt", "le"), ("is_null", "false"), ("or", "and")])
def test_a_condition_that_is_read_wrongly_is_caught(curators, monkeypatch, function, taken_for):
    """Planted: an end that is out taken for one that is in, NULL for a value, one of two for both."""
    right = comparisons._truth

    def wrong(condition: Any, odd: Any) -> Any:
        if getattr(condition, "function", "") != function:
            return right(condition, odd)
        if taken_for == "false":
            return -np.ones(2 * len(odd) + 2, dtype=np.int8)
        return right(Call(taken_for, condition.arguments, condition.type), odd)

    where = ("bmi < 25", "bmi <= 25", "bmi IS NULL", "bmi < 18 OR bmi > 30", "bmi < 30")
    asked = [f"SELECT COUNT(*) FROM people WHERE {each}" for each in where]
    assert not wrong_terms(curators["zcdp"], asked)
    monkeypatch.setattr(comparisons, "_truth", wrong)
    assert wrong_terms(curators["zcdp"], asked)


def test_every_row_is_in_one_class_or_in_none_that_matters(curators):
    asker = curators["zcdp"].analyst("ana")._asker
    asked = [
        "SELECT COUNT(*) FROM people",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex",
        "SELECT COUNT(*) FROM people WHERE bmi < 25 AND age >= 18",
    ]
    (block,) = plan_asked(asker, WorkloadAsk.of({"questions": asked, "epsilon": 1.0})).plan.blocks
    engine = block.planned.snapshot.engine(asker.engines)
    total = sum(exact(block.counted[0].plan, engine, "salt")[0]) / 2.0 ** block.parts[0].measure.bits
    assert total == pytest.approx(240)


def test_attributes_are_as_few_classes_as_the_questions_tell_apart(curators):
    asker = curators["zcdp"].analyst("ana")._asker
    where = ("bmi < 25", "bmi < 30 AND sex = 'm'", "NOT bmi < 30", "age >= 18 AND age < 65")
    asked = [f"SELECT COUNT(*) FROM people WHERE {each}" for each in where]
    (block,) = plan_asked(asker, WorkloadAsk.of({"questions": asked, "epsilon": 1.0})).plan.blocks
    sizes = {next(iter(_columns(each))): each.size for each in block.attributes}
    assert sizes == {"bmi": 4, "sex": 2, "age": 2}  # below 25, below 30, above or NULL; male or not; of age or not


def test_a_condition_that_all_questions_have_makes_no_classes(curators):
    asker = curators["zcdp"].analyst("ana")._asker
    asked = [f"SELECT COUNT(*) FROM people WHERE bmi < 25 AND sex = '{each}'" for each in "mf"]
    (block,) = plan_asked(asker, WorkloadAsk.of({"questions": asked, "epsilon": 1.0})).plan.blocks
    assert [each.size for each in block.attributes] == [2]


def _columns(attribute: Attribute) -> set[str]:
    return set().union(*map(columns_of, attribute.values))
