"""What an answer says about one bit: the odds that it is set, by Bayes, answer after answer.

An answer is x + z, where x is 0 or 1 once all that the attacker knows is taken off, and z is noise of a known shape.
The log odds move by ln p(y − 1) − ln p(y): between −ε and ε for Laplace noise of scale 1/ε, and by (2y − 1)/2σ² for
Gaussian noise. Log odds of independent answers add up.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

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


def probability(odds: float) -> float:
    """That the bit is set, at such log odds.

    >>> probability(0.0)
    0.5
    """
    return 1 / (1 + math.exp(-min(max(odds, -SURE), SURE)))


def median_posterior(questions: int, epsilon: float, noise: Noise, points: int = 4001) -> Numbers:
    """The median, over the noise, of the probability given to the truth after 1, 2, … questions.

    Gaussian, σ = 1/ε: the log odds after k questions are normal with mean kε²/2, so it is 1/(1 + exp(−kε²/2)).

    Laplace of scale 1/ε: one question moves them by ε with probability ½, by −ε with ½e^−ε, and between by L with
    density ¼·exp((L − ε)/2). The law after k questions is the k-fold convolution, on a lattice of ``points`` steps for
    one question (each cell's mass goes to its middle: off by less than kε/points).

    >>> bool(abs(median_posterior(2, 1.0, Noise.GAUSSIAN)[1] - 1 / (1 + math.exp(-1))) < 1e-12)
    True
    """
    ks = np.arange(1, questions + 1)
    if noise is Noise.GAUSSIAN:
        return np.asarray(1 / (1 + np.exp(-ks * epsilon**2 / 2)), dtype=np.float64)
    points |= 1  # so that ±ε and 0 are on the lattice
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
    found = stats.binomtest(right, tried).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)
