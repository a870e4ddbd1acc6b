"""What may be read of units, and what a batch of them says of itself."""

import numpy as np
import pytest

from dalenius.errors import InputError, NotAllowedError
from dalenius.measuring.batches import MOST_ROWS, UnitBatch, UnitRows
from dalenius.measuring.expressions import NULL, Call, Column, Type

AGE = Column("age", Type.NUMBER)


def batch():
    values = np.array([41.0, 42.0, 43.0])
    return UnitBatch(
        np.array([3, 8], dtype=np.uint64), np.array([0, 1, 3]), (values,), (np.array([False, True, False]),)
    )


@pytest.mark.parametrize("rows", [0, -1, True, 1.5, MOST_ROWS + 1])
def test_rows_of_a_unit_are_limited(rows, visits):
    with pytest.raises(InputError):
        UnitRows(visits.table, (AGE,), rows)


@pytest.mark.parametrize("columns", [(), (NULL,), (AGE, NULL)])
def test_something_is_read_of_each_row(columns, visits):
    with pytest.raises(InputError):
        UnitRows(visits.table, columns, 1)


@pytest.mark.parametrize(
    "column",
    [Column("user_id", Type.NUMBER), Call("add", (AGE, Column("user_id", Type.NUMBER)), Type.NUMBER)],
    ids=["itself", "in a sum"],
)
def test_who_somebody_is_cannot_be_read(column, visits):
    with pytest.raises(NotAllowedError):
        UnitRows(visits.table, (AGE, column), 1)
    named = Call("is_null", (Column("somebody", Type.UNIT),), Type.BOOLEAN)
    with pytest.raises(NotAllowedError):
        UnitRows(visits.table, (named,), 1)


def test_a_batch_knows_whose_its_rows_are():
    assert batch().owners.tolist() == [0, 1, 1]


def test_a_unit_stays_in_its_part_whoever_else_is_there():
    found = batch()
    without = UnitBatch(found.tags[1:], np.array([0, 2]), (), ())
    assert found.parts(5).tolist() == [3, 3]
    assert found.parts(4).tolist() == [3, 0] and without.parts(4).tolist() == [0]


def test_a_batch_shows_nothing_in_a_traceback():
    assert repr(batch()) == str(batch()) == "UnitBatch(…)"
