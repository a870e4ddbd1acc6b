"""Sample and aggregate: one unit touches one block, and a stranger's function cannot show anything else."""

from __future__ import annotations

import itertools

import pytest

from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms import SampleAndAggregate


def total(block):
    return sum(block)


def scores(mechanism, units):
    parts: list[list[int]] = [[] for _ in range(mechanism.blocks)]
    for name, value in units.items():
        parts[name % mechanism.blocks].append(value)
    return mechanism.aggregator.scores([mechanism._result(total, part) for part in parts])


def test_one_unit_moves_no_score_by_more_than_the_sensitivity():
    mechanism = SampleAndAggregate(1, blocks=3, low=0, high=6)
    units = {0: 3, 1: 2, 2: 5, 3: 1, 4: 9}
    before = scores(mechanism, units)
    for value in range(-20, 20):
        for name in range(5, 9):
            after = scores(mechanism, units | {name: value})
            assert abs(before - after).max() <= mechanism.selection.sensitivity == 1
    for name in units:
        after = scores(mechanism, {other: value for other, value in units.items() if other != name})
        assert abs(before - after).max() <= 1


def test_an_exchanged_unit_may_move_two_blocks():
    mechanism = SampleAndAggregate(1, blocks=3, low=0, high=6, neighbors=Neighbors.SUBSTITUTE)
    assert mechanism.selection.sensitivity == 2
    worst = 0
    for first, second in itertools.product(range(-7, 8), repeat=2):
        units = {0: 3, 1: 2, 2: 4}
        before, after = scores(mechanism, units | {3: first}), scores(mechanism, units | {4: second})
        worst = max(worst, abs(before - after).max())
    assert worst == 2


def fails(block):
    raise ValueError(block)


def leaves(block):
    raise SystemExit(block)


def closes(block):
    raise GeneratorExit(block)


@pytest.mark.parametrize(
    "function", [fails, leaves, closes, lambda block: 1.5, lambda block: "secret", lambda block: None, max]
)
def test_a_function_that_fails_shows_nothing(function):
    mechanism = SampleAndAggregate(50, blocks=20, low=3, high=9)
    units = dict.fromkeys(range(200), 0) if function is not max else {}
    assert mechanism.release(units, function, block_of=lambda name: name % 20).value == 3


def test_results_are_clipped_to_the_grid():
    mechanism = SampleAndAggregate(50, blocks=20, low=3, high=9)
    assert mechanism.release({}, lambda block: 10**9, block_of=lambda name: 0).value == 9


def test_a_stable_function_is_answered_well():
    mechanism = SampleAndAggregate(2, blocks=200, low=0, high=1000)
    units = {name: 400 + name % 7 for name in range(20_000)}
    found = mechanism.release(units, lambda block: sorted(block)[len(block) // 2], block_of=lambda name: name % 200)
    assert 390 < found.value < 420


def test_the_keyboard_still_interrupts():
    def interrupted(block):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SampleAndAggregate(1, blocks=2, low=0, high=9).release({1: 1}, interrupted, block_of=lambda name: 0)
