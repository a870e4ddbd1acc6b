"""Which of many candidates are held, and by how many: RAPPOR's bits, explained by a regression.

Bit b of cohort j was sent C times in n reports. With p* and q* the chances that an unset and a set bit are sent as 1,
y = (C/n − p*)/(q* − p*) is an unbiased estimate of the share of the cohort's filters that have the bit. Each candidate
explains the bits that it would set, so y = X·shares + background + noise, where X has a row for each bit of each cohort
and a column for each candidate; the background is one number, for what is held and not among the candidates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.local.estimators.frequencies import quantile
from dalenius.local.randomisers.randomiser import slices
from dalenius.local.randomisers.rappor import Rappor
from dalenius.local.tallies import Tally

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_ROWS_EACH = 2  # bits that there must be for each candidate before all are estimated at once
_WORTH = 2.5  # standard errors that a candidate must explain to be looked at more closely
_AT_ONCE = 50  # candidates that join the regression before it is solved again
_FAR = 5  # standard errors of a misfit that chance does not explain
_ROWS_AT_ONCE = 4096
_MOST_DRAWN = 0.99  # of a bit's misfit, taken up by the fit
_SOLID = 1e-5  # of a column, beyond what the columns before it explain


@dataclass(frozen=True, eq=False)
class Decoded:
    """What a regression over candidates found.

    Guarantee:
        With `level` = 0.05: the chance that *any* candidate whom nobody holds is called found is at most 5% (Holm's
        method, one-sided, over all candidates that were tested), up to the normal approximation of counts. Where the
        candidates were too many to be estimated at once (`split`), half of the cohorts chose whom to test, and only the
        other half tested: the choice cannot favour its own noise.

    Assumes:
        Everybody followed the randomiser. What is held and is no candidate falls on bits evenly, or else shows as
        `misfit` above 1; then errors are widened to what the bits of each candidate show.

    References:
        Erlingsson, Pihur & Korolova (2014), §4; Holm (1979), "A simple sequentially rejective multiple test procedure".

    Attributes:
        shares: Of all who reported; unbiased for candidates that were tested, and nan for others.
        errors: Their standard errors.
        found: Which candidates are held, by the test.
        level: Of the test.
        misfit: The mean square of what the regression leaves, in units of what the coins explain; near 1 all is well.
        background: The share of set bits that no candidate explains.
        reports: How many there were.
        split: Whether half of the cohorts only chose.
    """

    shares: Floats
    errors: Floats
    found: NDArray[np.bool_]
    level: float
    misfit: float
    background: float
    reports: int
    split: bool

    @property
    def tested(self) -> int:
        """How many candidates were tested."""
        return int(np.count_nonzero(~np.isnan(self.shares)))

    def margins(self, level: float = 0.95) -> Floats:
        """Half-widths: each share lies within its own with this confidence."""
        return quantile(level, 1) * self.errors

    def band(self, level: float = 0.95) -> Floats:
        """Half-widths within which the shares of all that were tested lie at once with this confidence."""
        return quantile(level, self.tested) * self.errors

    @property
    def ranking(self) -> Places:
        """The candidates that were found, the most frequent first."""
        (places,) = np.nonzero(self.found)
        return places[np.argsort(-self.shares[places], kind="stable")]


def decode(tally: Tally, candidates: object, level: float = 0.05) -> Decoded:
    """Which candidates are held, and by what share.

    Args:
        tally: Of a RAPPOR randomiser.
        candidates: Texts (or whole numbers, if those were reported): public, and chosen without looking at reports.
        level: The chance that anything at all is found that nobody holds.

    >>> rappor = Rappor(epsilon=4.0, bits=32, cohorts=8)
    >>> found = decode(rappor.fold(rappor.encode(["tea"] * 3000 + ["coffee"] * 2000)), ["coffee", "tea", "rum"], 1e-6)
    >>> found.ranking.tolist(), bool((abs(found.shares - [0.4, 0.6, 0]) < found.band(1 - 1e-6)).all())
    ([1, 0], True)
    """
    rappor = tally.randomiser
    if not isinstance(rappor, Rappor):
        raise InputError(
            f"Reports of {rappor.name} are not decoded by regression.",
            why="Only RAPPOR's are bits of a filter.",
            fix="Use the estimator of this randomiser.",
        )
    if not 0 < level < 1:
        raise InputError("The level must lie between 0 and 1.", why="It is a chance.", fix="0.05 is usual.")
    values = rappor.checked(candidates)
    if not values.size or np.unique(values).size < values.size:
        raise InputError(
            "Candidates must be distinct, and at least one.", why="Each gets one share.", fix="List each once."
        )
    cohorts = np.flatnonzero(tally.counts[:, -1])
    if cohorts.size < 2:
        raise InputError("There are too few reports.", why="They fill fewer than two cohorts.", fix="Collect more.")
    if cohorts.size * rappor.bits >= _ROWS_EACH * (values.size + 1):
        everybody = np.arange(values.size)
        return _tested(_Regression(rappor, tally, values, cohorts), everybody, values.size, level, split=False)
    choosing, testing = cohorts[::2], cohorts[1::2]
    chosen = _chosen(_Regression(rappor, tally, values, choosing), testing.size * rappor.bits // 4)
    return _tested(_Regression(rappor, tally, values[chosen], testing), chosen, values.size, level, split=True)


class _Regression:
    """Weighted least squares of some cohorts' bits on candidates; the last column is the background."""

    def __init__(self, rappor: Rappor, tally: Tally, values: NDArray[Any], cohorts: Places) -> None:
        from scipy import sparse

        self.reports = tally.reports
        self.each = np.repeat(tally.counts[cohorts, -1], rappor.bits).astype(np.float64)
        self.low, self.high = (float(chance) for chance in rappor.sent)
        sent = tally.counts[cohorts, :-1].ravel()
        self.y: Floats = (sent / self.each - self.low) / (self.high - self.low)
        shape = (self.y.size, values.size + 1)
        rows, columns = _ones(rappor, values, cohorts)
        self.columns: Any = sparse.csr_matrix((np.ones(rows.size), (rows, columns)), shape=shape)
        self.columns.data[:] = 1.0  # hashes of one text may meet on a bit
        self.weights = 1 / self.variance(np.zeros(self.y.size))

    def variance(self, shares: Floats) -> Floats:
        """Of y, where so much of a cohort has the bit: the coins', and that of who came into the cohort."""
        coins = shares * self.high * (1 - self.high) + (1 - shares) * self.low * (1 - self.low)
        return np.asarray((coins / (self.high - self.low) ** 2 + shares * (1 - shares)) / self.each)

    def solve(self, chosen: Places) -> tuple[Floats, Floats]:
        """Coefficients of these columns, and their covariance.

        Weighted twice: by the variance of bits that nobody has, then by that of what the first solution says they are.
        """
        columns = self.columns[:, chosen]
        self.weights = 1 / self.variance(np.zeros(self.y.size))
        first, _ = self._solve(columns)
        self.weights = 1 / self.variance(np.clip(columns @ first, 0, 1))
        return self._solve(columns)

    def _solve(self, columns: Any) -> tuple[Floats, Floats]:
        from scipy import linalg

        gram = (columns.T @ columns.multiply(self.weights[:, None])).toarray()
        scale = 1 / np.sqrt(gram.diagonal())
        try:
            factor = np.linalg.cholesky(gram * scale * scale[:, None])
        except np.linalg.LinAlgError:
            raise _alike() from None
        if factor.diagonal().min() < _SOLID:
            raise _alike()
        half = linalg.solve_triangular(factor, np.diag(scale), lower=True)
        covariance = half.T @ half
        return covariance @ (columns.T @ (self.weights * self.y)), covariance

    def robust(self, covariance: Floats, left: Floats) -> Floats:
        """Variances of the coefficients by what is left in the very bits that each rests on (the sandwich).

        What is held and is no candidate may share bits with a candidate more often than with others: its errors are
        then those of these few bits, not of all on average.
        """
        found = np.zeros(len(covariance))
        for part in slices(left.size, _ROWS_AT_ONCE):
            rows, weights = self.columns[part], self.weights[part]
            reach = rows @ covariance
            drawn = np.minimum(weights * np.asarray(rows.multiply(reach).sum(axis=1)).ravel(), _MOST_DRAWN)
            found += (weights * left[part] / (1 - drawn)) ** 2 @ reach**2  # a bit draws the fit to itself
        return found


def _ones(rappor: Rappor, values: NDArray[Any], cohorts: Places) -> tuple[Places, Places]:
    """Rows and columns of the design's ones: each candidate's bits in each cohort, and the background everywhere."""
    places = [
        rappor.places(values, np.full(values.size, cohort)) + at * rappor.bits for at, cohort in enumerate(cohorts)
    ]
    rows = np.concatenate([*(each.ravel() for each in places), np.arange(cohorts.size * rappor.bits)])
    candidates = np.tile(np.repeat(np.arange(values.size), rappor.hashes), cohorts.size)
    background = np.full(cohorts.size * rappor.bits, values.size)
    return rows, np.concatenate([candidates, background])


def _chosen(regression: _Regression, most: int) -> Places:
    """Greedy choice: the candidates that explain most of what is left join, until none is worth it."""
    columns = regression.columns
    background = columns.shape[1] - 1
    chosen = np.array([background])
    left = regression.y - regression.y.mean()
    while chosen.size <= most:
        worth = columns.T @ (regression.weights * left)
        worth /= np.sqrt(columns.T @ regression.weights)
        worth[chosen] = -np.inf
        best = np.argsort(-worth)[: min(_AT_ONCE, most + 1 - chosen.size)]
        best = best[worth[best] >= _WORTH]
        if not best.size:
            break
        chosen = np.append(chosen, best)
        solution, _ = regression.solve(chosen)
        left = regression.y - columns[:, chosen] @ solution
    return np.sort(chosen[chosen != background])


def _tested(regression: _Regression, chosen: Places, candidates: int, level: float, *, split: bool) -> Decoded:
    """All columns of the regression at once, and Holm's test of each candidate."""
    solution, covariance = regression.solve(np.arange(regression.columns.shape[1]))
    left = regression.y - regression.columns @ solution
    free = left.size - solution.size
    misfit = float(regression.weights @ left**2) / free
    variances = covariance.diagonal() * max(1.0, misfit)
    if misfit > 1 + _FAR * math.sqrt(2 / free):
        variances = np.maximum(variances, regression.robust(covariance, left))
    errors = np.sqrt(variances)
    shares, wide, found = np.full(candidates, np.nan), np.full(candidates, np.nan), np.zeros(candidates, np.bool_)
    shares[chosen], wide[chosen] = solution[:-1], errors[:-1]
    found[chosen[_holm(solution[:-1] / errors[:-1], level)]] = True
    return Decoded(shares, wide, found, level, misfit, float(solution[-1]), regression.reports, split)


def _holm(scores: Floats, level: float) -> Places:
    """Which of so many standard scores are above 0, all of them truly so but for a chance of `level`.

    The largest is held against the quantile for all of them, the next against that for one fewer, until one fails.

    >>> _holm(np.array([1.0, 5.0, 2.0]), 0.05).tolist()
    [1, 2]
    >>> _holm(np.array([2.0, 2.0]), 0.01).tolist()
    []
    """
    order = np.argsort(-scores, kind="stable")
    normal = NormalDist()
    passed = 0
    while passed < order.size and scores[order[passed]] >= -normal.inv_cdf(level / (order.size - passed)):
        passed += 1
    return order[:passed]


def _alike() -> InputError:
    return InputError(
        "Some candidates cannot be told apart.",
        why="Their hashes set the same bits in all cohorts that reported.",
        fix="Collect with more cohorts or bits, or list fewer candidates.",
    )
