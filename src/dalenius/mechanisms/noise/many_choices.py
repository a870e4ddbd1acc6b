"""Many independent choices about the same scores at once, for audits and simulations.

The law of each is that of `selection`, from the same gaps, buckets and coins; only the proposals of one choice and of
the next are worked out together. Time here depends on what was drawn: nothing that answers a question uses it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.mechanisms.noise import _draws, _exact, _fast, bits, selection, uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHUNK = 2**16


def exponential_choices(scores: Sequence[int] | NDArray[Any], rate: float | Fraction, size: int) -> NDArray[np.int64]:
    """``size`` independent draws of `exponential_choice`.

    A proposal is kept by its coin independently of all others, so each one that is kept is a draw of its own.

    >>> exponential_choices([0, 10_000, 3], 1, 4).tolist()
    [1, 1, 1, 1]
    """
    gaps = selection.Gaps(selection._check_scores(scores), _draws.rational(rate, "rate", zero=True))  # noqa: SLF001
    bucket = selection._buckets(gaps)  # noqa: SLF001
    last = selection._LAST  # noqa: SLF001
    order = np.argsort(bucket, kind="stable")
    members = np.bincount(bucket, minlength=last + 1).tolist()
    first = [0, *accumulate(members)]
    ends = list(accumulate(held << (last - b) for b, held in enumerate(members)))
    found: list[NDArray[np.int64]] = []
    left = _draws.whole(size, "size", least=0)
    while left > 0:
        places = []
        for r in uniform.below(ends[-1], min(_CHUNK, 3 * left + 16)):
            b = bisect_right(ends, r)
            places.append(first[b] + ((r - (ends[b - 1] if b else 0)) >> (last - b)))
        proposed = order[places]
        found.append(proposed[_kept(gaps, proposed, bucket[proposed])][:left])
        left -= len(found[-1])
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _kept(gaps: selection.Gaps, proposed: NDArray[np.int64], buckets: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which proposals their coins keep, with chance exp(−γ)·2^b, as in `selection`."""
    words = bits.words(len(proposed))
    gamma = np.minimum(gaps.floats[proposed], 2 * selection._LAST)  # noqa: SLF001
    value, tolerance = _fast.exponentials(words)
    value -= gamma - buckets * 0.6931471805599453
    tolerance += 2.0**-49 * (1 + gamma)
    kept = np.asarray(value > 0)
    unsettled = np.abs(value) <= tolerance
    if _exact.forced():
        unsettled[:] = True
    for at in np.flatnonzero(unsettled):
        kept[at] = selection._settle(words[at], gaps.exact(int(proposed[at])), int(buckets[at]))  # noqa: SLF001
    return kept


def permute_and_flips(scores: Sequence[int] | NDArray[Any], rate: float | Fraction, size: int) -> NDArray[np.int64]:
    """``size`` independent draws of `permute_and_flip`: all coins of each, and a uniform one among its heads.

    >>> permute_and_flips([0, 10_000, 3], 1, 4).tolist()
    [1, 1, 1, 1]
    """
    gaps = selection.Gaps(selection._check_scores(scores), _draws.rational(rate, "rate", zero=True))  # noqa: SLF001
    width, number = len(gaps.floats), _draws.whole(size, "size", least=0)
    found = np.empty(number, dtype=np.int64)
    for start in range(0, number, _CHUNK):
        part = found[start : start + _CHUNK]
        floats = np.tile(gaps.floats, len(part))
        words = np.where(floats == 0.0, np.uint64(2**63), bits.words(len(floats)))  # as in `permute_and_flip`
        heads = _fast.survive(words, floats, lambda at: gaps.exact(at % width)).reshape(len(part), width)
        counts = heads.sum(axis=1)
        rank = np.zeros(len(part), dtype=np.int64)
        for count in np.unique(counts).tolist():
            same = np.flatnonzero(counts == count)
            rank[same] = uniform.uniform_int(count, len(same))
        part[:] = (heads.cumsum(axis=1) > rank[:, None]).argmax(axis=1)
    return found
