"""How good yes-or-no guesses are (SPEC, X2): counts of right and wrong ones, and the ROC curve of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import stats

from dalenius.audit.metrics.checks import numbers, same_length
from dalenius.errors import InputError

if TYPE_CHECKING:
    from dalenius.audit.metrics.checks import Floats


@dataclass(frozen=True)
class Confusion:
    """Counts of guesses, and the rates that follow; a rate of nothing is 0, as elsewhere.

    >>> found = Confusion.of([1, 1, 0, 0, 1], [1, 0, 0, 1, 1])
    >>> found.accuracy, round(found.precision, 3), round(found.recall, 3), round(found.f1, 3)
    (0.6, 0.667, 0.667, 0.667)
    >>> round(found.advantage, 3)
    0.167
    """

    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int

    @classmethod
    def of(cls, guesses: npt.ArrayLike, truth: npt.ArrayLike) -> Confusion:
        """From guesses and truth, each 0 or 1."""
        one, other = _flags(guesses, "guesses"), _flags(truth, "truth")
        same_length(one, other)
        yes, is_so = one == 1, other == 1
        return cls(*(int(each.sum()) for each in (yes & is_so, yes & ~is_so, ~yes & ~is_so, ~yes & is_so)))

    @property
    def accuracy(self) -> float:
        """The share of guesses that are right."""
        right = self.true_positives + self.true_negatives
        return _share(right, right + self.false_positives + self.false_negatives)

    @property
    def precision(self) -> float:
        """Of those that were called positive, the share that is."""
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """Of those that are positive, the share that was called so: TPR."""
        return _share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def false_positive_rate(self) -> float:
        """Of those that are not, the share that was called positive: FPR."""
        return _share(self.false_positives, self.false_positives + self.true_negatives)

    @property
    def f1(self) -> float:
        """2·precision·recall/(precision + recall)."""
        return _share(2 * self.true_positives, 2 * self.true_positives + self.false_positives + self.false_negatives)

    @property
    def advantage(self) -> float:
        """TPR − FPR, which ε bounds (`lower_bounds.membership`)."""
        return self.recall - self.false_positive_rate


def area_under_curve(scores: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """AUC: the chance that a positive scores above a negative, ties counting half (Mann–Whitney's U).

    >>> area_under_curve([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    positive, negative = _split(scores, truth)
    ranks = stats.rankdata(np.concatenate([positive, negative]))[: len(positive)]
    return float((ranks.sum() / len(positive) - (len(positive) + 1) / 2) / len(negative))


def roc_curve(scores: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Floats, Floats]:
    """FPR and TPR at every threshold, from (0, 0) to (1, 1).

    >>> [each.tolist() for each in roc_curve([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])]
    [[0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0]]
    """
    positive, negative = _split(scores, truth)
    thresholds = np.unique(np.concatenate([positive, negative]))
    rates = [
        np.concatenate([[0.0], (1 - np.searchsorted(np.sort(side), thresholds) / len(side))[::-1]])
        for side in (negative, positive)
    ]
    return rates[0], rates[1]


def _split(scores: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Floats, Floats]:
    found, flags = numbers(scores, "scores"), _flags(truth, "truth")
    same_length(found, flags)
    positive, negative = found[flags == 1], found[flags == 0]
    if not len(positive) or not len(negative):
        raise InputError("There is only one class.", why="A curve compares two.", fix="Give positives and negatives.")
    return positive, negative


def _flags(values: npt.ArrayLike, name: str) -> Floats:
    found = numbers(values, name)
    if not np.isin(found, (0, 1)).all():
        raise InputError(f"{name} must be 0 or 1.", why="They are yes or no.", fix="Compare scores with a threshold.")
    return found


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
