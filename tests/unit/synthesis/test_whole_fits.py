"""All that a generator asks in one fit, asked of a neighbour too: no more is lost than was charged."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.seeded_noise import seeded_noise

from dalenius.accounting.neighbors import Neighbors
from dalenius.synthesis.domain import sized
from dalenius.synthesis.measurer import Measured, Scored
from dalenius.synthesis.methods import METHODS
from dalenius.synthesis.rows import Limit, UnitMeasurer
from dalenius.synthesis.scores import Score
from dalenius.synthesis.views import View

Unit = list[tuple[int, ...]]


class Recorded(UnitMeasurer):
    """Keeps what is asked, with the variance of the noise, or the price of a choice."""

    asked: list[tuple[list[Any], Any]]

    def measure(self, asked: Sequence[tuple[View, Fraction]]) -> list[Measured]:
        found = super().measure(asked)
        whole = self.limit.whole**2
        self.asked += [([view], each.variance * whole) for (view, _), each in zip(asked, found, strict=True)]
        return found

    def scores(self, asked: Sequence[Score], rho: Fraction) -> Scored:
        found = super().scores(asked, rho)
        self.asked.append((list(asked), (found.sigma * self.limit.whole) ** 2))
        return found

    def choose(self, among: Sequence[Score], rho: Fraction) -> int:
        self.asked.append((list(among), rho))
        return super().choose(among, rho)


def measurer_of(people: Sequence[Unit], sizes: Sequence[int], limit: Limit, rho: Fraction) -> Recorded:
    held = np.repeat([len(each) for each in people], [len(each) for each in people]).astype(np.int64)
    codes = np.array([row for each in people for row in each], np.int32).reshape(-1, len(sizes)).T
    found = Recorded(sized(sizes), np.ascontiguousarray(codes), limit.weigh(held), limit, rho)
    found.asked = []
    return found


def lost(asked: list[tuple[list[Any], Any]], one: Recorded, other: Recorded) -> float:
    """Σ‖v − v′‖²/2σ², and for a choice ε² of the range of its loss over 8."""
    total = 0.0
    for each, noise in asked:
        if isinstance(each[0], View):
            moved = (one.exact(each[0]) - other.exact(each[0])).astype(object).tolist()
        else:
            moved = [one.score(score) - other.score(score) for score in each]
        if isinstance(noise, Fraction):
            change = max(score.sensitivity for score in each) * one.limit.of_score
            assert max(map(abs, moved)) <= change
            total += float(noise) * ((max(moved) - min(moved)) / (2 * change)) ** 2
        else:
            total += sum(step * step for step in moved) / (2 * noise)
    return total


def unit_of(chance: random.Random, sizes: Sequence[int]) -> Unit:
    rows = [tuple(chance.randrange(size) for size in sizes) for _ in range(chance.choice([1, 2, 5, 1000]))]
    return [rows[0]] * len(rows) if chance.random() < 0.5 else rows


def most_lost(method: str, neighbors: Neighbors, count: int) -> float:
    """In parts of what was charged."""
    worst = 0.0
    for seed in range(count):
        chance = random.Random(seed)
        sizes = [chance.choice([1, 2, 3, 20]) for _ in range(chance.randint(1, 4))]
        limit, rho = Limit(chance.choice([1, 3, 50]), neighbors), Fraction(chance.choice([0.001, 0.1, 5.0]))
        people = [unit_of(chance, sizes) for _ in range(chance.randint(0, 12))]
        exchanged = [unit_of(chance, sizes)] if neighbors is Neighbors.SUBSTITUTE else []
        first = measurer_of([*people, unit_of(chance, sizes)], sizes, limit, rho)
        METHODS[method].fit(first, None)
        worst = max(worst, lost(first.asked, first, measurer_of([*people, *exchanged], sizes, limit, rho)) / float(rho))
    return worst


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("method", METHODS)
def test_a_whole_fit_loses_no_more_than_was_charged(method: str, neighbors: Neighbors):
    with seeded_noise(4):
        assert 0 < most_lost(method, neighbors, 4) <= 1 + 1e-9


def test_noise_for_half_of_what_a_unit_adds_is_caught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Limit, "of_table", property(lambda limit: limit.length**2 // 4))
    with seeded_noise(4):
        assert most_lost("histogram", Neighbors.ADD_REMOVE, 10) > 1
