"""Raking: the distribution nearest to a first guess that fits noisy tables as well as their noise deserves.

We look for q that minimises  λ·n·KL(q‖q₀) + Σ_c ‖n·q_c − y_c‖² / 2σ_c²,  where q_c are the tables that were measured.
The minimum has the form q ∝ q₀·exp(Σ_c θ_c), with θ_c = (y_c − n·q_c)/λσ_c². One table at a time can be solved for
exactly, cell by cell, which makes a step of coordinate ascent on the (convex) dual: no step size, no line search, and
negative counts are no trouble. λ → 0 is ordinary raking (iterative proportional fitting).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_TINY = 1e-300


def soft_target(base: Floats, noisy: Floats, strength: Floats | float) -> Floats:
    """The t > 0 with t = base·exp((noisy − t)/s) for each cell: where base and noisy counts meet.

    ln t + t/s rises, so that Newton's method in ln t, begun anywhere, finds its one zero.

    >>> soft_target(np.array([10.0]), np.array([10.0]), 3.0).round(6).tolist()
    [10.0]
    >>> soft_target(np.array([10.0]), np.array([20.0]), 1e-3).round(2).tolist()
    [20.0]
    """
    with np.errstate(divide="ignore"):
        goal = np.log(np.maximum(base, _TINY)) + noisy / strength
    # ln t + t/s = goal; with t = s·w it is Wright's ω function: w = ω(goal − ln s)
    shifted = goal - np.log(strength)
    return strength * _omega(shifted)


def _omega(z: Floats) -> Floats:
    """w with w + ln w = z (Wright's ω on the reals), by Newton's method on ln w."""
    log_w = np.where(z > 1, np.log(np.maximum(z, 1.0)), z - 1)
    for _ in range(6):
        w = np.exp(np.minimum(log_w, 700.0))
        log_w -= (w + log_w - z) / (w + 1)
    found: Floats = np.exp(np.minimum(log_w, 700.0))
    return found


def raked(table: Floats, first: Floats, second: Floats, rounds: int = 20) -> Floats:
    """A table of two ways with these margins, by iterative proportional fitting.

    >>> raked(np.ones((2, 2)), np.array([0.5, 0.5]), np.array([0.25, 0.75])).tolist()
    [[0.125, 0.375], [0.125, 0.375]]
    """
    found = table.copy()
    for _ in range(rounds):
        found *= (first / np.maximum(found.sum(axis=1), _TINY))[:, None]
        found *= (second / np.maximum(found.sum(axis=0), _TINY))[None, :]
    return found
