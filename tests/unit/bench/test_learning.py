"""The benchmark of learning runs without peers, and training is as fast as it says."""

from __future__ import annotations

import numpy as np
import pytest
from bench.learned.runs import accuracy, speed
from bench.learned.tables import bounded, jittered


def test_a_table_of_people_with_many_rows_is_learned_at_the_level_of_a_person():
    chance = np.random.default_rng(1)
    x = chance.random((800, 3))
    table = bounded("people", x, (x[:, 0] > x[:, 1]).astype(np.int64), np.zeros(3), np.ones(3))
    several = jittered(table, 4)
    assert several.units == 800 and len(several.owner) == 3200
    train, held = several.split(0)
    assert len(train) == 640 and not set(several.rows(train)) & set(several.rows(held))
    assert accuracy(table, 3.0, 0, 1)["accuracy"] > 0.9
    assert accuracy(several, 3.0, 0, 1, rows=4)["accuracy"] > 0.75


@pytest.mark.alone
def test_four_hundred_thousand_examples_take_a_cpu_second():
    assert speed(500)["examples"] >= 400_000
