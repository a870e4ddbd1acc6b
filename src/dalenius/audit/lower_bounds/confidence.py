"""From counts on two sides to a lower bound on ε that holds with a stated confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]


def clopper_pearson(hits: Any, trials: Any, alpha: float) -> tuple[Floats, Floats]:
    """The exact interval of a rate: each end is missed with probability at most α/2, whatever the rate is.

    Clopper & Pearson (1934): the ends are quantiles of Beta distributions. Takes arrays as well.

    >>> low, high = clopper_pearson(0, 100, 0.05)
    >>> float(low), round(float(high), 4)
    (0.0, 0.0362)
    """
    k, n = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(k > 0, special.betaincinv(np.maximum(k, 1), n - k + 1, alpha / 2), 0.0)
        high = np.where(k < n, special.betaincinv(k + 1, np.maximum(n - k, 1), 1 - alpha / 2), 1.0)
    return low, high


def epsilon_bound(hits: Any, others: Any, trials: Any, *, delta: float, alpha: float) -> Floats:
    """The ε̂ of an event that came up ``hits`` times on one side and ``others`` times on the other: ln((p̲ − δ)/p̄).

    Guarantee:
        (ε, δ)-DP says P(E) ≤ e^ε·P′(E) + δ for every event E that was chosen before its trials were looked at. With
        p̲ below P(E) and p̄ above P′(E), but for α/2 each, ε ≥ ln((p̲ − δ)/p̄) with confidence 1 − α. Not above 0:
        nothing is shown, and it is 0.

    >>> float(epsilon_bound(740_000, 260_000, 1_000_000, delta=0.0, alpha=1e-3).round(2))
    1.04
    >>> float(epsilon_bound(10, 9, 100, delta=0.0, alpha=1e-3))
    0.0
    """
    low, _ = clopper_pearson(hits, trials, alpha)
    _, high = clopper_pearson(others, trials, alpha)
    return np.log(np.maximum((low - delta) / high, 1.0))
