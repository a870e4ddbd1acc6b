"""Choices by score: many at once (`noise.many_choices`), of the law of `release`, about the worst scores we know.

On one side the first candidate has a point more and all others one less: its chance then falls by nearly e^ε.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.lower_bounds.features import Outputs
from dalenius.audit.mechanisms.subject import Subject
from dalenius.mechanisms import Exponential, NoisyMax, Quantile, SampleAndAggregate, TopK
from dalenius.mechanisms.noise.many_choices import exponential_choices, permute_and_flips

Scores = Sequence[int]
_OTHERS = 12
_SIDES: tuple[Scores, Scores] = ([1] + [0] * _OTHERS, [0] + [1] * _OTHERS)
_VALUES = ([0] * 6 + [4] * 6, [0] * 6 + [4] * 5)  # of a quantile: one removed
_MEDIAN = Fraction(1, 2)


def _choices(scores: tuple[Any, Any], rate: Fraction) -> Callable[[int, int], Outputs]:
    return lambda side, size: exponential_choices(scores[side], rate, size)


def _exponential(epsilon: float) -> Subject:
    mechanism = Exponential(epsilon)
    return Subject(
        "exponential",
        "one of 13 candidates by score",
        Claim(mechanism.event),
        _choices(_SIDES, mechanism.rate),
        lambda side: mechanism.release(_SIDES[side]).value,
    )


def _noisy_max(epsilon: float) -> Subject:
    mechanism = NoisyMax(epsilon)
    return Subject(
        "noisy-max",
        "the largest of 13 scores with exponential noise",
        Claim(mechanism.event),
        lambda side, size: permute_and_flips(_SIDES[side], mechanism.rate, size),
        lambda side: mechanism.release(_SIDES[side]).value,
    )


def _top_k(epsilon: float) -> Subject:
    mechanism = TopK(epsilon / 2, k=2)
    sides: tuple[Scores, Scores] = ([1, 1] + [0] * 6, [0, 0] + [1] * 6)

    def draw(side: int, size: int) -> Outputs:
        """Peeling: the second is drawn among those that the first leaves."""
        scores = np.array(sides[side])
        found = np.empty((size, 2), dtype=np.int64)
        found[:, 0] = exponential_choices(scores, mechanism.rate, size)
        for first in range(len(scores)):
            rows = np.flatnonzero(found[:, 0] == first)
            left = np.delete(np.arange(len(scores)), first)
            found[rows, 1] = left[exponential_choices(scores[left], mechanism.rate, len(rows))]
        return found

    def single(side: int) -> tuple[int, ...]:
        return mechanism.release(sides[side]).value

    return Subject("top-k", "the best two of 8, at ε/2 each", Claim(mechanism.event), draw, single)


def _quantile(epsilon: float) -> Subject:
    mechanism = Quantile(epsilon, 0, 4, at=_MEDIAN)
    scores = tuple(mechanism.scores(values) for values in _VALUES)
    return Subject(
        "quantile",
        "the median of 12 values on a grid of 5, one of them removed",
        Claim(mechanism.event),
        _choices((scores[0], scores[1]), mechanism.selection.rate),
        lambda side: mechanism.release(_VALUES[side]).value,
    )


def _sample_and_aggregate(epsilon: float) -> Subject:
    mechanism = SampleAndAggregate(epsilon, blocks=5, low=0, high=4)
    sides = (dict.fromkeys(range(4), 2) | {4: 4}, dict.fromkeys(range(4), 2))  # one unit, alone in its block, leaves

    def results(side: int) -> list[int]:
        return [sum(each for name, each in sides[side].items() if name == block) for block in range(5)]

    scores = tuple(mechanism.aggregator.scores(results(side)) for side in (0, 1))
    return Subject(
        "sample-and-aggregate",
        "the median over 5 blocks, a unit alone in one of them",
        Claim(mechanism.event),
        _choices((scores[0], scores[1]), mechanism.selection.rate),
        lambda side: mechanism.release(sides[side], sum, block_of=lambda name: name).value,
    )


MADE = {
    "exponential": _exponential,
    "noisy-max": _noisy_max,
    "top-k": _top_k,
    "quantile": _quantile,
    "sample-and-aggregate": _sample_and_aggregate,
}
