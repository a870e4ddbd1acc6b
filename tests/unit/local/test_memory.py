"""Reports day after day: what is kept is repeated, and both ε are always told."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.rappor_counts import LN_9

from dalenius.errors import InputError
from dalenius.local import chances
from dalenius.local.memory import Memory
from dalenius.local.randomisers.hybrid import Hybrid
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.rappor import Rappor


def test_an_answer_is_drawn_once_and_repeated() -> None:
    memory = Memory(KAry(0.5, 200), people=500, values=3)
    days = [memory.report(np.full(500, value)).tolist() for value in (4, 9, 4, 9, 11, 4)]
    assert days[0] == days[2] == days[5] and days[1] == days[3]
    assert days[0] != days[1] != days[4]


def test_past_the_last_value_that_is_kept_the_newest_answer_is_repeated() -> None:
    memory = Memory(KAry(0.5, 200), people=300, values=2)
    days = [memory.report([value] * 300).tolist() for value in (4, 9, 17, 4, 17, 30)]
    assert days[1] == days[2] == days[4] == days[5] and days[0] == days[3] != days[1]


def test_people_have_memories_of_their_own() -> None:
    memory = Memory(KAry(16.0, 200), people=2, values=1)  # nearly always the truth
    assert memory.report([1, 2]).tolist() == memory.report([2, 1]).tolist()


def test_both_epsilons_are_told() -> None:
    memory = Memory(KAry(1.0, 10), people=1, values=2)
    for day in range(30):
        memory.report([day % 2])
    told = memory.spending
    assert (told.days, told.daily, told.without) == (30, memory.randomiser.actual_epsilon, 30 * told.daily)
    assert told.lifetime == pytest.approx(2 * told.daily)
    assert chances.within(memory.randomiser.ratio**2, told.lifetime)
    assert all(f"{each:.4g}" in str(told) for each in (told.daily, told.lifetime, told.without))


def test_rappor_keeps_its_permanent_response_and_blurs_it_anew() -> None:
    rappor = Rappor(LN_9, bits=16, cohorts=4, p=0.25, q=0.75)
    memory = Memory(rappor, people=1)
    reports = np.concatenate([memory.report(["tea"]) for _ in range(4000)])
    tally = rappor.fold(reports)
    assert np.count_nonzero(tally.counts[:, -1]) == 1  # the cohort stays, too
    shares = tally.counts.max(axis=0)[:-1] / 4000
    near = np.minimum(abs(shares - 0.25), abs(shares - 0.75))  # each bit is a coin of one of the two chances
    assert (near < 0.05).all()
    assert memory.spending.daily < memory.spending.lifetime == rappor.actual_epsilon


@pytest.mark.parametrize("values", [1, 2])
def test_lives_that_change_on_the_same_days_stay_within_the_lifetime_epsilon(values: int) -> None:
    """By enumeration over three days: the law of what is kept, for every pair of lives with the same pattern."""
    oracle = KAry(1.0, 3)
    laws = [[oracle.law(value)[bytes([report])] for report in range(3)] for value in range(3)]
    by_pattern = defaultdict(list)
    for life in product(range(3), repeat=3):
        kept: list[int] = []
        slots = []
        for value in life:
            if value not in kept and len(kept) < values:
                kept.append(value)
            slots.append(kept.index(value) if value in kept else len(kept) - 1)
        law: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for answers in product(range(3), repeat=len(kept)):
            chance = Fraction(1)
            for value, answer in zip(kept, answers, strict=True):
                chance *= laws[value][answer]
            law[tuple(answers[slot] for slot in slots)] += chance
        assert sum(law.values()) == 1
        by_pattern[tuple(life.index(value) for value in life)].append(law)
        seen = {tuple(row.tolist()) for row in _sent(oracle, life, values)}
        assert seen <= set(law)
    memory = Memory(oracle, 1, values)
    worst = max(
        one[sent] / other[sent] for group in by_pattern.values() for one in group for other in group for sent in one
    )
    assert worst == oracle.ratio**values
    assert chances.within(worst, memory.lifetime)


def _sent(oracle: KAry, life: tuple[int, ...], values: int) -> np.ndarray:
    memory = Memory(oracle, 300, values)
    return np.stack([memory.report([value] * 300)[:, 0] for value in life], axis=1)


def test_numbers_are_kept_by_their_place_on_the_grid() -> None:
    memory = Memory(Hybrid(1.0, 0, 100, 10), people=50)
    assert memory.report([33.0] * 50).tolist() == memory.report([31.0] * 50).tolist()


def test_bad_days_are_refused_and_change_nothing() -> None:
    memory = Memory(KAry(1.0, 5), people=2)
    for bad in ([1], [1, 2, 3], [1, 5], [1, -1]):
        with pytest.raises(InputError):
            memory.report(bad)
    assert memory.days == 0 and memory.spending.without == 0
    for people, values in ((0, 1), (1, 0)):
        with pytest.raises(InputError):
            Memory(KAry(1.0, 5), people, values)


def test_another_value_does_not_show_by_its_cohort() -> None:
    """A cohort is sent openly: one drawn anew on the day of a change would tell that day, however blurred the bits."""
    people = 200
    memory = Memory(Rappor(LN_9, bits=16, cohorts=1000, p=0.25, q=0.75), people, values=3)
    days = [memory.report([f"{text} {each % 7}" for each in range(people)]) for text in ("tea", "rum", "tea", "gin")]
    assert all((day[:, :2] == days[0][:, :2]).all() for day in days)
    assert len(np.unique(days[0][:, :2], axis=0)) > 100
