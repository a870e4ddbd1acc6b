"""Choosing one of many by score, exactly: the exponential mechanism, its top-k, and permute-and-flip.

Scores are integers and the rate is rational, so every weight is exp(−γ) with γ = rate·(best − score)
rational. Work and time depend on how many scores there are, not on what they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import InputError
from dalenius.mechanisms.noise import _draws, _exact, _fast, bits, uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.mechanisms.noise._fast import Floats

_LAST = 120  # buckets hold weights in (2^−(b+1), 2^−b], the last one everything smaller
_PROPOSALS = 48  # each is accepted with probability above 0.49
_FAR = 2.0**20


class Gaps:
    """γ for each score: exactly on request, and as floats within 2⁻⁵¹·γ (or at least 2²⁰, if γ is)."""

    def __init__(self, scores: Any, rate: Fraction) -> None:
        self._scores = scores
        self._rate = rate
        self._best = int(scores.max())
        self.floats: Floats
        if scores.dtype == object:
            exact = (min(self.exact(i), Fraction(2**20)) for i in range(len(scores)))
            self.floats = np.array([_fast.to_float(gap) if gap else 0.0 for gap in exact])
        else:
            # modulo 2⁶⁴ the difference is right even where it does not fit into int64
            distance = np.uint64(self._best % 2**64) - scores.view(np.uint64)
            with np.errstate(over="ignore"):
                gaps = distance.astype(np.float64) * (_fast.to_float(rate) if rate else 0.0)
            self.floats = np.minimum(gaps, _FAR)

    def exact(self, i: int) -> Fraction:
        """γ of one score."""
        return self._rate * (self._best - int(self._scores[i]))


def _check_scores(scores: Any) -> NDArray[Any]:
    """Scores as an int64 array, or as Python integers where int64 is too small."""
    values: Any = None
    if isinstance(scores, np.ndarray) and not isinstance(scores, np.ma.MaskedArray) and scores.dtype.kind != "m":
        values = np.asarray(scores)  # of the base class, whose arithmetic is known
    elif _is_sequence(scores):
        values = list(scores)
    if values is None or np.ndim(values) != 1 or len(values) == 0:
        raise InputError(
            "scores must be a list of integers with at least one entry.",
            why="One of the candidates is chosen.",
            fix="Give one integer score per candidate.",
        )
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        return np.array(values, np.int64)
    items = values.tolist() if isinstance(values, np.ndarray) else values
    if not all(_draws.is_integer(s) for s in items):
        raise InputError(
            "scores must be integers.",
            why="Exact selection works on exact scores.",
            fix="Round each score to a declared step and give the number of steps.",
        )
    items = [int(s) for s in items]
    if min(items) >= -(2**63) and max(items) < 2**63:
        return np.array(items, np.int64)
    wide = np.empty(len(items), object)
    wide[:] = items
    return wide


def _is_sequence(scores: Any) -> bool:
    return isinstance(scores, Sequence) and not isinstance(scores, (str, bytes))


def _choose(scores: NDArray[Any], rate: Fraction) -> int:
    """One draw of the exponential mechanism.

    Candidates are sorted into buckets b with γ ≥ b·ln 2. A proposal takes bucket b with probability
    proportional to (members)·2^−b, in integers, then a member uniformly, and keeps it with probability
    exp(−γ)·2^b. The product is proportional to exp(−γ). A fixed number of proposals is worked out; the first
    one kept is the answer.
    """
    gaps = Gaps(scores, rate)
    bucket = _buckets(gaps)
    order = np.argsort(bucket, kind="stable")
    members = np.bincount(bucket, minlength=_LAST + 1).tolist()
    first = [0, *accumulate(members)]
    ends = list(accumulate(number << (_LAST - b) for b, number in enumerate(members)))
    while True:
        places, buckets = [], []
        for r in uniform.below(ends[-1], _PROPOSALS):
            b = bisect_right(ends, r)
            within = r - (ends[b - 1] if b else 0)
            places.append(first[b] + (within >> (_LAST - b)))
            buckets.append(b)
        proposed = order[places]
        kept = _first_kept(gaps, proposed, buckets)
        if kept is not None:
            return kept


def _buckets(gaps: Gaps) -> NDArray[np.uint8]:
    """For each γ a b with γ ≥ b·ln 2, nearly always the largest."""
    # 1/ln 2 rounded down by far more than any float error, so that it holds for the true γ
    return np.minimum(np.floor(gaps.floats * (1.4426950408889634 * (1 - 2.0**-40))), _LAST).astype(np.uint8)


def _first_kept(gaps: Gaps, proposed: NDArray[np.int64], buckets: list[int]) -> int | None:
    """The first proposal that its coin keeps; coins after a sure one need not be settled."""
    words = bits.words(len(buckets))
    gamma = np.minimum(gaps.floats[proposed], 2 * _LAST)
    value, tolerance = _fast.exponentials(words)
    value -= gamma - np.array(buckets) * 0.6931471805599453
    tolerance += 2.0**-49 * (1 + gamma)
    kept = value > 0
    unsettled = np.abs(value) <= tolerance
    if _exact.forced():
        unsettled[:] = True
    if unsettled.any():
        sure = kept & ~unsettled
        for at in np.flatnonzero(unsettled):
            if not sure[:at].any():
                sure[at] = _settle(words[at], gaps.exact(int(proposed[at])), buckets[at])
        kept = sure
    return int(proposed[kept.argmax()]) if kept.any() else None


def _settle(word: np.uint64, gamma: Fraction, bucket: int) -> bool:
    """Whether the U in the word is below exp(−γ)·2^bucket."""
    return _fast.lazy_uniform(word).below(lambda precision: _exact.exp_minus(gamma, precision + bucket))


def exponential_choice(scores: Sequence[int] | NDArray[Any], rate: float | Fraction) -> int:
    """Choose index i with probability proportional to exp(rate·scores[i]): the exponential mechanism.

    Guarantee: the probabilities are exact for the integers and the rational given. With scores of sensitivity
    Δ and rate ε/2Δ the choice is ε-DP, of bounded range ε, hence ε²/8-zCDP. Work and time do not depend on
    the scores.

    Assumes: as `discrete_laplace`.

    References:
        McSherry, Talwar (2007), "Mechanism Design via Differential Privacy"; Durfee, Rogers (2019), for
        bounded range.

    Args:
        scores: Integers, one per candidate.
        rate: At least 0; an int, a Fraction, or a float taken as the rational it is.

    Returns:
        The index chosen.

    Example:
        >>> exponential_choice([0, 10_000, 3], rate=1)
        1
    """
    exact_rate = _draws.rational(rate, "rate", zero=True)
    return _choose(_check_scores(scores), exact_rate)


def exponential_top_k(scores: Sequence[int] | NDArray[Any], rate: float | Fraction, k: int) -> list[int]:
    """Choose k indices, one after the other without replacement, each by the exponential mechanism.

    Guarantee: this "peeling" has exactly the law of one-shot Gumbel top-k, order included: adding independent
    Gumbel noise of scale 1/rate to every score and sorting. With rate ε/2Δ it is k·ε²/8-zCDP.

    Assumes: as `discrete_laplace`.

    References:
        Durfee, Rogers (2019), "Practical Differentially Private Top-k Selection", lemma 4.2.

    Args:
        scores: Integers, one per candidate.
        rate: At least 0; an int, a Fraction, or a float taken as the rational it is.
        k: How many, at least 1 and at most the number of scores.

    Returns:
        The indices in the order chosen.

    Example:
        >>> exponential_top_k([0, 20_000, 3, 10_000], rate=1, k=2)
        [1, 3]
    """
    exact_rate = _draws.rational(rate, "rate", zero=True)
    left = _check_scores(scores)
    if _draws.whole(k, "k", least=1) > len(left):
        raise InputError(
            "k is more than the number of scores.",
            why="Each candidate is chosen at most once.",
            fix="Ask for fewer.",
        )
    names = np.arange(len(left))
    chosen = []
    for _ in range(k):
        i = _choose(left, exact_rate)
        chosen.append(int(names[i]))
        left, names = np.delete(left, i), np.delete(names, i)
    return chosen


def permute_and_flip(scores: Sequence[int] | NDArray[Any], rate: float | Fraction) -> int:
    """Report-noisy-max with exponential noise of scale 1/rate, as the coins it is equivalent to.

    Permute-and-flip goes through the candidates in random order and stops at the first whose coin, with
    probability exp(−rate·(best − score)), shows heads. Coins and order are independent, so the answer is a
    uniform one among all heads; every coin is thrown, and work does not depend on the scores.

    Guarantee: the law is exact for the integers and the rational given. With scores of sensitivity Δ and rate
    ε/2Δ (ε/Δ if all scores move the same way) the choice is ε-DP. It has no bounded range: charge ε²/2 as
    zCDP.

    Assumes: as `discrete_laplace`. The exact fallback has probability below 2⁻⁴⁵ per candidate, so n·2⁻⁴⁵ per
    choice; for candidates that are the best (γ = 0) there is none.

    References:
        McKenna, Sheldon (2020), "Permute-and-Flip"; Ding, Kifer, et al. (2021), "The Permute-and-Flip
        Mechanism is Identical to Report-Noisy-Max with Exponential Noise".

    Args:
        scores: Integers, one per candidate.
        rate: At least 0; an int, a Fraction, or a float taken as the rational it is.

    Returns:
        The index chosen.

    Example:
        >>> permute_and_flip([0, 10_000, 3], rate=1)
        1
    """
    exact_rate = _draws.rational(rate, "rate", zero=True)
    gaps = Gaps(_check_scores(scores), exact_rate)
    words = bits.words(len(gaps.floats))
    # floats are 0 where γ is, and only there; the word of such a coin is replaced by one that is surely heads
    words = np.where(gaps.floats == 0.0, np.uint64(2**63), words)
    heads = np.flatnonzero(_fast.survive(words, gaps.floats, gaps.exact))
    return int(heads[uniform.below(len(heads), 1)[0]])
