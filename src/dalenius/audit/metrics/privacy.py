"""What somebody who guesses a secret still does not know (SPEC, X1).

``posterior`` is a distribution over possible secrets after the attack, ``prior`` before it; ``joint`` has a row for
each secret and a column for each output, and holds chances or counts of both together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from dalenius.audit.metrics.checks import chances, numbers, same_length
from dalenius.errors import InputError


def entropy(posterior: npt.ArrayLike, base: float = 2.0) -> float:
    """How uncertain the guess is: −Σ p·log p, in bits by default.

    >>> entropy([0.25, 0.25, 0.25, 0.25]), entropy([1, 0])
    (2.0, 0.0)
    """
    return abs(float(stats.entropy(chances(posterior, "posterior"), base=base)))


def expected_error(posterior: npt.ArrayLike, values: npt.ArrayLike, truth: float) -> float:
    """The expected distance of the guess from the truth: Σ p(x)·|x − truth|.

    >>> expected_error([0.5, 0.5], [10, 20], truth=10)
    5.0
    """
    weights, known = chances(posterior, "posterior"), numbers(values, "values")
    same_length(weights, known)
    return float(weights @ np.abs(known - float(truth)))


def relative_entropy(posterior: npt.ArrayLike, prior: npt.ArrayLike, base: float = 2.0) -> float:
    """What the attack taught beyond the prior: Σ p·log(p/q), in bits by default; infinite where the prior excludes it.

    >>> relative_entropy([1, 0], [0.5, 0.5]), relative_entropy([0.3, 0.7], [0.3, 0.7])
    (1.0, 0.0)
    """
    after, before = chances(posterior, "posterior"), chances(prior, "prior")
    same_length(after, before)
    return abs(float(stats.entropy(after, before, base=base)))


def mutual_information(joint: npt.ArrayLike, base: float = 2.0) -> float:
    """What outputs tell of secrets on average: Σ p(x, y)·log(p(x, y)/p(x)p(y)), in bits by default.

    >>> mutual_information([[1, 0], [0, 1]]), mutual_information([[1, 1], [1, 1]])
    (1.0, 0.0)
    """
    table = np.asarray(joint, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(
            "joint must be a table.",
            why="A row for each secret, a column for each output.",
            fix="Give a list of lists.",
        )
    both = chances(table.ravel(), "joint").reshape(table.shape)
    apart = both.sum(axis=1, keepdims=True) * both.sum(axis=0, keepdims=True)
    return abs(float(stats.entropy(both.ravel(), apart.ravel(), base=base)))


def adversary_success(guesses: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """The share of guesses that are right.

    >>> adversary_success([1, 0, 1, 1], [1, 0, 0, 1])
    0.75
    """
    one, other = numbers(guesses, "guesses"), numbers(truth, "truth")
    same_length(one, other)
    return float((one == other).mean())


def bayes_success(joint: npt.ArrayLike) -> float:
    """The success of the best guess: it names the likeliest secret for each output, Σ_y max_x p(x, y).

    >>> bayes_success([[3, 1], [1, 3]])
    0.75
    """
    table = np.asarray(joint, dtype=np.float64)
    both = chances(table.ravel(), "joint").reshape(table.shape)
    return float(both.max(axis=0).sum())
