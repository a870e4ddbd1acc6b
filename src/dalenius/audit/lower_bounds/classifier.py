"""Logistic regression over an output's numbers: a score by which two sides can be told apart.

In the manner of DP-Sniper: the score need not be a good estimate of anything; a threshold on it makes an event, and
events are judged on fresh samples.

References:
    Bichsel, Steffen, Bogunovic & Vechev, DP-Sniper: black-box discovery of differential privacy violations using
    classifiers (2021), §4.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from dalenius.audit.lower_bounds.features import Column, Feature, Outputs

_SAMPLES = 20_000  # of each side: what is learned hardly gets better with more
_RIDGE = 1e-4


def classify(first: Outputs, second: Outputs) -> Feature:
    """The log-odds of the first side, learned from samples of both."""
    both = np.concatenate([first[:_SAMPLES], second[:_SAMPLES]])
    sides = np.repeat([1.0, 0.0], [len(first[:_SAMPLES]), len(second[:_SAMPLES])])
    raw = _numbers(both)
    centre, spread = np.median(raw, axis=0), raw.std(axis=0)
    spread[spread == 0] = 1.0

    def design(rows: Outputs) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        scaled = np.clip((_numbers(rows) - centre) / spread, -20.0, 20.0)
        return np.column_stack([scaled, np.ones(len(scaled))])

    x = design(both)

    def loss(weights: Column) -> tuple[float, Column]:
        odds = x @ weights
        value = np.logaddexp(0.0, odds).mean() - (sides * odds).mean() + _RIDGE * float(weights @ weights)
        slope = x.T @ (special.expit(odds) - sides) / len(x) + 2 * _RIDGE * weights
        return float(value), slope

    found = optimize.minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    weights = np.asarray(found.x)
    return Feature("the score of a logistic classifier", lambda rows: design(rows) @ weights)


def _numbers(rows: Outputs) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The values with their magnitudes and whether there is one; what is infinite is very large."""
    values = np.atleast_2d(np.asarray(rows, dtype=np.float64).T).T
    missing = np.isnan(values)
    known = np.clip(np.where(missing, 0.0, values), -1e12, 1e12)
    return np.column_stack([known, np.abs(known), missing.astype(np.float64)])
