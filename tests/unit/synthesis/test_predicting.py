"""The classifier of comparisons: it learns what there is, and sees one row at a time."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.errors import InputError
from dalenius.synthesis.modelled import Modelled
from dalenius.synthesis.predicting import MOST_CLASSES, classes_of, learned
from dalenius.tables.policy import Bounds, Kind
from dalenius.tables.policy import Column as Declared

AGE = Modelled.of(Declared("age", Kind.INTEGER, Bounds(0, 99)))
SEX = Modelled("sex", Kind.CATEGORY, absent=False, keys=("f", "m"))
ILL = Modelled("ill", Kind.BOOLEAN, absent=True, keys=(False, True))
TOWN = Modelled("town", Kind.CATEGORY, absent=False, keys=tuple(f"t{at}" for at in range(60)))


def people(rows: int, seed: int) -> np.ndarray:
    """Who is old and from a town of even number is ill, with few exceptions."""
    chance = np.random.default_rng(seed)
    age, sex, town = chance.integers(0, 100, rows), chance.integers(0, 2, rows), chance.integers(0, 60, rows)
    ill = np.where(chance.random(rows) < 0.95, (age > 60) & (town % 2 == 0), chance.integers(0, 2, rows))
    return np.stack([age, sex, ill, town]).astype(np.int32)


def test_it_learns_what_there_is_to_learn():
    columns = (AGE, SEX, ILL, TOWN)
    found, held = learned(people(20_000, 1), columns, 2), people(5_000, 2)
    right = (found.predict(held) == found.truth(held)).mean()
    often = np.bincount(found.truth(held)).max() / 5_000
    assert often < 0.82 and right > often + 0.08
    assert found.classes.names == ("False", "True", "no value")


def test_what_it_says_of_a_row_depends_on_that_row_alone():
    found, held = learned(people(2_000, 3), (AGE, SEX, ILL, TOWN), 2), people(500, 4)
    alone = np.concatenate([found.predict(held[:, [at]]) for at in range(500)])
    assert (alone == found.predict(held)).all() and (alone == found.predict(held[:, ::-1])[::-1]).all()
    assert found.predict(held[:, :0]).shape == (0,)


def test_numbers_are_told_by_quarters_and_keys_by_the_most_frequent():
    codes = np.random.default_rng(5).integers(0, 100, 4_000)
    classes = classes_of(AGE, codes)
    assert len(classes.names) == 5 and classes.names[-1] == "no value" and classes.names[0].startswith("0 to 2")
    shares = np.bincount(classes.groups[codes], minlength=5) / 4_000
    assert shares[:4] == pytest.approx([0.25] * 4, abs=0.02)
    towns = classes_of(TOWN, np.concatenate([np.arange(60), np.full(100, 41), np.full(50, 7)]))
    assert len(towns.names) == MOST_CLASSES - 1 and towns.names[-1] == "others" and {"t41", "t7"} <= set(towns.names)
    spike = classes_of(AGE, np.full(1_000, 40))  # one value fills all quarters
    assert spike.names == ("0 to 39", "40", "41 to 99", "no value") and max(spike.groups) == 3


@pytest.mark.parametrize("columns", [(SEX,), (Modelled("one", Kind.TEXT, absent=False, keys=("x",)), SEX)])
def test_what_cannot_be_told_apart_is_refused(columns: tuple[Modelled, ...]):
    with pytest.raises(InputError, match="cannot be predicted"):
        learned(np.zeros((len(columns), 50), np.int32), columns, 0)
