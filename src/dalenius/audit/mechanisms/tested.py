"""Mechanisms whose noise follows the data: propose-test-release and smooth sensitivity, many runs at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.lower_bounds.features import Outputs
from dalenius.audit.mechanisms.subject import Subject
from dalenius.mechanisms import ProposeTestRelease, SmoothMedian, SmoothSensitivity

_DELTA = 0.01


def _propose(name: str, about: str, epsilon: float, values: tuple[int, int], distances: tuple[int, int]) -> Subject:
    mechanism = ProposeTestRelease(Fraction(epsilon) / 2, _DELTA, bound=2)  # it claims twice its ε
    places = tuple(max(0, each + mechanism.threshold) if each else 0 for each in distances)

    def draw(side: int, size: int) -> Outputs:
        passed = places[side] + mechanism.test_noise.draw(size) > mechanism.threshold
        return np.where(passed, (values[side] + mechanism.noise.draw(size)).astype(np.float64), np.nan)

    def single(side: int) -> float:
        found = mechanism.release(values[side], places[side]).value
        return np.nan if found is None else float(found)

    return Subject(name, about, Claim(mechanism.event), draw, single)


def _near(epsilon: float) -> Subject:
    about = "a value that moves by its bound, at a distance about the threshold"
    return _propose("propose-test-release", about, epsilon, (0, 2), (1, 2))


def _far(epsilon: float) -> Subject:
    about = "a value that moves by far more than its bound: only a rare pass of the test shows it"
    return _propose("propose-test-release-far", about, epsilon, (0, 1000), (0, 0))


def _smooth(epsilon: float) -> Subject:
    mechanism = SmoothSensitivity(epsilon, _DELTA)

    def local(side: int, k: int) -> int:
        return min(k + side + 1, 12)

    laws = [mechanism.noise(mechanism.smooth_bound(lambda k, s=s: local(s, k), most=12, furthest=12)) for s in (0, 1)]  # type: ignore[misc]

    def draw(side: int, size: int) -> Outputs:
        return np.asarray(side + laws[side].draw(size))

    def single(side: int) -> int:
        return mechanism.release(side, lambda k: local(side, k), most=12, furthest=12).value

    about = "a value and a noise scale that both move"
    return Subject("smooth-sensitivity", about, Claim(mechanism.event), draw, single)


def _median(epsilon: float) -> Subject:
    mechanism = SmoothMedian(epsilon, _DELTA, 0, 40)
    sides = ([18, 19, 20, 21, 22], [18, 19, 21, 21, 22])
    laws = [mechanism.mechanism.noise(mechanism.smooth_bound(np.array(values))) for values in sides]

    def draw(side: int, size: int) -> Outputs:
        return np.asarray(sorted(sides[side])[2] + laws[side].draw(size))

    def single(side: int) -> int:
        return mechanism.release(sides[side]).value

    return Subject("smooth-median", "the median of 5 values, one exchanged", Claim(mechanism.event), draw, single)


MADE = {
    "propose-test-release": _near,
    "propose-test-release-far": _far,
    "smooth-sensitivity": _smooth,
    "smooth-median": _median,
}
