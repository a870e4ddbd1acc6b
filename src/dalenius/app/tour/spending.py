"""How far a budget goes, by the way in which losses are added up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dalenius.accounting import calibration, composition, conversions
from dalenius.accounting.events import Event, Laplace, Pure, Repeated
from dalenius.accounting.pld import PLD

COUNTS = (1, 10, 100, 1000)
_NORMAL = 1.959964  # 95% of a normal are within so many standard deviations
_LAPLACE = math.log(20)  # … of a Laplace within so many scales


@dataclass(frozen=True)
class CountErrors:
    """The noise error of each of n counts that together cost (ε, δ), by method of adding up."""

    epsilon: float
    delta: float
    counts: tuple[int, ...]
    errors: dict[str, tuple[float, ...]]
    words: dict[str, str]

    @property
    def gain(self) -> float:
        """How much better the best does than basic composition, at the most counts."""
        return self.errors["basic"][-1] / min(errors[-1] for errors in self.errors.values())

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "epsilon": self.epsilon, "delta": self.delta, "counts": list(self.counts),
            "noise_error": {method: list(errors) for method, errors in self.errors.items()},
        }  # fmt: skip


def errors_of_counts(epsilon: float, delta: float) -> CountErrors:
    """Works out the least noise per count under each method."""
    errors = {
        "basic": tuple(_LAPLACE * n / epsilon for n in COUNTS),
        "advanced": tuple(_LAPLACE * _advanced_scale(n, epsilon, delta) for n in COUNTS),
        "zcdp": tuple(_NORMAL * math.sqrt(n / (2 * conversions.zcdp_rho(epsilon, delta))) for n in COUNTS),
        "pld": tuple(_pld_error(n, epsilon, delta) for n in COUNTS),
    }
    words = {
        "basic": "basic (Σε, Laplace)",
        "advanced": "advanced (Laplace)",
        "zcdp": "zCDP (Σρ, Gaussian)",
        "pld": "PLD (the better noise)",
    }
    return CountErrors(epsilon, delta, COUNTS, errors, words)


def _advanced_scale(n: int, epsilon: float, delta: float) -> float:
    def fits(each: float) -> bool:
        total = composition.advanced({Pure(each): n}, delta)
        return total is not None and total <= epsilon

    return 1 / conversions.largest(fits, epsilon / n)


def _pld_error(n: int, epsilon: float, delta: float) -> float:
    def laplace(scale: float) -> Event:
        return Repeated(Laplace(scale), n)

    scale = calibration.least_noise(laplace, epsilon, delta, by=lambda event: PLD.of(event).epsilon(delta))
    gaussian = calibration.analytic_gaussian(epsilon, delta) * math.sqrt(n)
    return min(_LAPLACE * scale, _NORMAL * gaussian)
