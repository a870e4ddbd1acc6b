"""What an answer says about one bit: the odds that it is set, by Bayes, answer after answer.

An answer is x + z, where x is 0 or 1 once all that the attacker knows is taken off, and z is noise of a known shape.
The log odds move by ln p(y − 1) − ln p(y): between −ε and ε for Laplace noise of scale 1/ε, and by (2y − 1)/2σ² for
Gaussian noise. Log odds of independent answers add up.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.audit.targets.target import Noise

Numbers = NDArray[np.float64]
SURE = 700.0  # log odds past which a float has no more to say


def log_odds(value: float, noise: Noise, scale: float) -> float:
    """By how much an answer moves the log odds that the bit is set.

    >>> log_odds(3.0, Noise.LAPLACE, 2.0)
    0.5
    >>> log_odds(1.0, Noise.GAUSSIAN, 1.0)
    0.5
    """
    if noise is Noise.NONE or scale == 0:
        return SURE if value > 0.5 else -SURE
    if noise is Noise.LAPLACE:
        return (abs(value) - abs(value - 1)) / scale
    return (2 * value - 1) / (2 * scale**2)


def log_odds_of_difference(value: float, noise: Noise, first: float, second: float) -> float:
    """The same for the difference of two answers with independent noise of these scales.

    Gaussian noises add up to one of scale √(first² + second²). The difference of two Laplace draws of scale b has
    density (1 + |x|/b)·exp(−|x|/b)/4b; of unequal scales a and b it is (a·exp(−|x|/a) − b·exp(−|x|/b))/2(a² − b²).

    >>> log_odds_of_difference(0.5, Noise.LAPLACE, 2.0, 2.0)
    0.0
    >>> near, equal = (log_odds_of_difference(3.0, Noise.LAPLACE, 2.0, b) for b in (2.0001, 2.0))
    >>> abs(near - equal) < 1e-3
    True
    """
    if noise is not Noise.LAPLACE or first == 0 or second == 0:
        return log_odds(value, noise, math.hypot(first, second))
    return _log_density(value - 1, first, second) - _log_density(value, first, second)


def _log_density(at: float, first: float, second: float) -> float:
    """Of the difference of two Laplace draws, up to a constant."""
    wide, narrow = max(first, second), min(first, second)
    at = abs(at)
    if wide - narrow < 1e-6 * wide:
        return math.log1p(at / wide) - at / wide
    # wide·exp(−at/wide) is taken out, which is the larger of the two.
    return math.log1p(-narrow / wide * math.exp(-at / narrow + at / wide)) - at / wide


def probability(odds: float) -> float:
    """That the bit is set, at such log odds.

    >>> probability(0.0)
    0.5
    """
    return 1 / (1 + math.exp(-min(max(odds, -SURE), SURE)))


@lru_cache(32)
def median_posterior(questions: int, epsilon: float, noise: Noise, points: int | None = None) -> Numbers:
    """The median, over the noise, of the probability given to the truth after 1, 2, … questions.

    Gaussian, σ = 1/ε: the log odds after k questions are normal with mean kε²/2, so it is 1/(1 + exp(−kε²/2)).

    Laplace of scale 1/ε: one question moves them by ε with probability ½, by −ε with ½e^−ε, and between by L with
    density ¼·exp((L − ε)/2). The law after k questions is the k-fold convolution, on a lattice of ``points`` points for
    one question (all mass goes to the nearest point: off by at most kε/(points − 1)). A median of log odds that are
    partly atoms may go down with one more question: 0.73, 0.70, 0.73 for ε = 1.

    >>> bool(abs(median_posterior(2, 1.0, Noise.GAUSSIAN)[1] - 1 / (1 + math.exp(-1))) < 1e-12)
    True
    """
    ks = np.arange(1, questions + 1)
    if noise is Noise.GAUSSIAN:
        return np.asarray(1 / (1 + np.exp(-ks * epsilon**2 / 2)), dtype=np.float64)
    points = (points or min(4001, max(401, 160_000 // questions))) | 1  # so that ±ε and 0 are on the lattice
    step = 2 * epsilon / (points - 1)
    edges = np.clip((np.arange(points + 1) - 0.5) * step - epsilon, -epsilon, epsilon)
    single = np.diff(0.5 * np.exp((edges - epsilon) / 2))
    single[0] += 0.5 * math.exp(-epsilon)
    single[-1] += 0.5
    law, found = np.ones(1), []
    for k in ks:
        law = np.convolve(law, single) if k == 1 else _convolved(law, single)
        middle = int(np.searchsorted(np.cumsum(law), 0.5))
        found.append(probability(float(middle * step - k * epsilon)))
    return np.array(found)


def _convolved(first: Numbers, second: Numbers) -> Numbers:
    from scipy.signal import fftconvolve

    return np.maximum(np.asarray(fftconvolve(first, second), dtype=np.float64), 0)


def interval(right: int, tried: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval for a share.

    >>> low, high = interval(5, 10)
    >>> bool(low < 0.5 < high)
    True
    """
    from scipy import stats

    found = stats.binomtest(right, tried).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)
