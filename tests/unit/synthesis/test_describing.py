"""What a model says of single columns: labels mean what the codes mean, and shares are those of its rows."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pytest

from dalenius.synthesis.describing import ABSENT, MOST_BARS, label, one_way, one_ways
from dalenius.synthesis.generators.histogram import IndependentModel
from dalenius.synthesis.modelled import Modelled
from dalenius.synthesis.policy_domain import PolicyDomain
from dalenius.synthesis.position_classes import Classes
from dalenius.synthesis.stored import StoredModel
from dalenius.tables.policy import Bounds, Kind
from dalenius.tables.policy import Column as Declared

DAY, MOMENT = date.fromisoformat, datetime.fromisoformat


def modelled(declared: Declared, classes: int = 32) -> Modelled:
    """A column whose classes are of equal width, where its policy does not settle them."""
    found = Modelled.of(declared)
    if not found.sought or found.grid is None:
        return found
    return found.with_classes(Classes.equal(found.grid.size, classes))


LABELS = [
    (Declared("x", Kind.INTEGER, Bounds(0, 100)), ["0", "1"], "100"),
    (Declared("x", Kind.INTEGER, Bounds(-1000, 1000)), ["-1000 to -939", "-938 to -876"], "938 to 1000"),
    (Declared("x", Kind.NUMBER, Bounds(Fraction(10), Fraction(42)), Fraction(1, 10)), ["10 to 10.9"], "41 to 42"),
    (Declared("x", Kind.DATE, Bounds(DAY("2025-01-01"), DAY("2025-01-31"))), ["2025-01-01"], "2025-01-31"),
    (Declared("x", Kind.DATE, Bounds(DAY("2024-01-01"), DAY("2026-12-31"))), ["2024-01-01 to 2024-02-03"], None),
    (
        Declared("x", Kind.DATETIME, Bounds(MOMENT("2025-01-01T00:00:00"), MOMENT("2025-01-01T15:59:59"))),
        ["2025-01-01 00:00 to 00:29"],
        "2025-01-01 15:30 to 15:59",
    ),
    (Declared("x", Kind.TEXT, keys=("a", "ü")), ["a", "ü"], "ü"),
    (Declared("x", Kind.BOOLEAN), ["False", "True"], "True"),
]


@pytest.mark.parametrize(("declared", "first", "last"), LABELS)
def test_a_label_says_which_values_are_meant(declared: Declared, first: list[str], last: str | None):
    column = modelled(declared)
    assert [label(column, at, at + 1) for at in range(len(first))] == first
    if last is not None:
        assert label(column, column.column.known - 1, column.column.known) == last


def test_labels_and_values_agree():
    """Every whole number that a class of a column gives lies in the class's label, wherever its classes are."""
    column = Modelled.of(Declared("x", Kind.INTEGER, Bounds(-7, 400)))
    column = column.with_classes(Classes(((0, 6), (7, 7), (8, 100), (200, 407))))
    codes = np.repeat(np.arange(column.column.classes), 50)
    values = column.values(codes, np.random.default_rng(0)).to_pylist()
    for code, value in zip(codes.tolist(), values, strict=True):
        low, _, high = label(column, code, code + 1).partition(" to ")
        assert int(low) <= value <= int(high or low)
    assert label(column, 1, 2) == "0" and label(column, 0, 4) == "-7 to 400"


def test_of_many_keys_the_most_frequent_are_told_and_of_many_classes_neighbours_together():
    keys = tuple(f"k{at:03}" for at in range(100))
    codes = np.concatenate([np.arange(100), np.full(50, 60), np.full(30, 7)])
    found = one_way(Modelled("x", Kind.TEXT, absent=False, keys=keys), codes)
    assert len(found.labels) == MOST_BARS and found.labels[-1] == "others" and sum(found.shares) == pytest.approx(1)
    assert found.shares[found.labels.index("k060")] == pytest.approx(51 / 180)
    classed = one_way(modelled(Declared("x", Kind.INTEGER, Bounds(0, 99))), np.arange(100))
    assert len(classed.labels) == MOST_BARS + 1 and classed.labels[-1] == ABSENT and classed.labels[0] == "0 to 3"
    assert sum(classed.shares) == pytest.approx(1) and classed.shares[-1] == 0


def test_the_rest_of_keys_that_were_found_stands_by_itself():
    column = Modelled("x", Kind.CATEGORY, absent=True).with_keys(("a", "other"))
    found = one_way(column, np.array([0, 0, 1, 2, 3, 3, 3, 3]))
    assert found.labels == ("a", "other", "(other)", ABSENT) and found.shares == (0.25, 0.125, 0.125, 0.5)


def test_shares_are_those_of_the_rows_that_anybody_may_draw():
    columns = (
        modelled(Declared("sex", Kind.CATEGORY, keys=("f", "m"))),
        modelled(Declared("age", Kind.INTEGER, Bounds(0, 9), default=0)),
    )
    shares = (np.array([0.25, 0.5, 0.25]), np.array([0.5, *[0.0] * 8, 0.5]))
    stored = StoredModel("t", "histogram", 1.0, 0.02, 1, PolicyDomain(columns), IndependentModel(4000, shares))
    sex, age = one_ways(stored)
    assert sex.labels == ("f", "m", ABSENT) and sex.shares == pytest.approx([0.25, 0.5, 0.25], abs=0.01)
    assert age.labels == tuple(map(str, range(10))) and age.shares[0] + age.shares[9] == pytest.approx(1)
    rows = Counter(stored.draw(4000)["sex"].to_pylist())
    assert rows["m"] / 4000 == pytest.approx(sex.shares[1], abs=0.01)
    assert one_ways(stored) == [sex, age]
