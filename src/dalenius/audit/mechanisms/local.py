"""Randomised answers: one report for each run, by `release`."""

from __future__ import annotations

import numpy as np

from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.lower_bounds.features import Outputs
from dalenius.audit.mechanisms.subject import Subject
from dalenius.mechanisms import FiniteResponse, RandomizedResponse

_LINE = tuple(tuple(-abs(x - y) for y in range(5)) for x in range(5))


def _of(name: str, about: str, mechanism: RandomizedResponse | FiniteResponse, apart: int) -> Subject:
    def draw(side: int, size: int) -> Outputs:
        return np.asarray(mechanism.release(np.full(size, side * apart, dtype=np.int64)).value)

    return Subject(name, about, Claim(mechanism.event), draw)


def _randomized_response(epsilon: float) -> Subject:
    return _of("randomized-response", "one of three answers", RandomizedResponse(epsilon, 3), 1)


def _finite_response(epsilon: float) -> Subject:
    return _of("finite-response", "a place on a line of 5", FiniteResponse(epsilon, _LINE), 4)


MADE = {"randomized-response": _randomized_response, "finite-response": _finite_response}
