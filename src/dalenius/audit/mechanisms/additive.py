"""Noise on integers: by `release` on a vector with as many entries as there are runs; each has its own noise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dalenius.accounting.conversions import zcdp_rho
from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.lower_bounds.features import Outputs
from dalenius.audit.mechanisms.subject import Subject
from dalenius.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace

_DELTA = 0.01  # large, so that what it allows can be seen


def _of(name: str, about: str, mechanism: Laplace | DiscreteGaussian, apart: int) -> Subject:
    """A count that is 0 on one side and ``apart`` on the other."""

    def draw(side: int, size: int) -> Outputs:
        wide = replace(mechanism, dimension=size)
        return np.asarray(wide.release(np.full(size, side * apart, dtype=np.int64)).value)

    def single(side: int) -> int:
        return int(mechanism.release(side * apart).value)

    return Subject(name, about, Claim(mechanism.event), draw, single)


def _laplace(epsilon: float) -> Subject:
    return _of("laplace", "discrete Laplace noise on a number that changes by 3", Laplace(epsilon, 3), 3)


def _geometric(epsilon: float) -> Subject:
    return _of("geometric", "two-sided geometric noise on a count", Geometric(epsilon), 1)


def _gaussian(epsilon: float) -> Subject:
    mechanism = Gaussian.analytic(epsilon=epsilon, delta=_DELTA, squared_sensitivity=1)
    return _of("gaussian", f"Gaussian noise, the least for ε at δ = {_DELTA:g}", mechanism, 1)


def _discrete_gaussian(epsilon: float) -> Subject:
    variance = Fraction(9) / (2 * Fraction(zcdp_rho(epsilon, _DELTA)))
    mechanism = DiscreteGaussian(round(variance) or 1, 9)
    return _of("discrete-gaussian", "discrete Gaussian noise on a number that changes by 3", mechanism, 3)


MADE = {
    "laplace": _laplace,
    "geometric": _geometric,
    "gaussian": _gaussian,
    "discrete-gaussian": _discrete_gaussian,
}
