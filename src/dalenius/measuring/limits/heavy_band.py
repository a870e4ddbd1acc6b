"""From groups at a tight limit, the same at a higher one and a total to what the groups hold: public post-processing.

Of each group three parts are added up:

- y, measured at the tight limit, with little noise. Its shares q = y/Σy are how most units are spread.
- *The heavy band*: what the higher limit adds, z − y, with much noise. In all it is Σ(z − y), or what the total
  leaves. It is shared out as q is, and corrected by what was measured of it, first by whole values of each key, then
  by group (empirical Bayes): by how much the measured parts differ from these shares beyond their noise. A part that
  lies so far off that chance does not explain it counts as it was measured.
- What is left of the total, beyond the higher limit: shared out as the first two are.

How far a group may be off adds in squares: the noise of what is used of each; what the total may be off; what the
correction left out, by how much groups were seen to differ; chance, and favour of heavy units (`rescaling`). So the
interval that is made of it covers as many groups as it says on average, and not each: one that many heavy units favour
may be among those that are missed.

References:
    Efron & Morris, Stein's estimation rule and its competitors (1973); limited translation: Efron & Morris (1972).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dalenius.measuring.limits.rescaled import Total
from dalenius.measuring.limits.rescaling import FAVOUR

if TYPE_CHECKING:
    from dalenius.measuring.limits.rescaling import Taken

Array: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

_FAR = 3.0  # deviations from which on a part counts as it was measured
_TRIMMED = 0.9735  # E min(Z², 9)
_SURE, _UPPER = 0.7, 1.5  # standard errors: differences count from the first on; what they may be reaches to the second
_MARGIN = 8  # values that a key must have, to tell how far they differ
_LEAST = 0.2  # of an average group: none has a smaller part in what chance and favour do
_LEAST_KEPT = 0.5  # of what the counts say is kept: so much is reckoned to be there, whatever the noise did to the sum
_SEEN = 2.0  # deviations from which on the heavy band says how what is beyond it is shared
_FAVOUR = 0.2  # the same as `FAVOUR`, beyond a band that was measured


@dataclass(frozen=True)
class Groups:
    """What was measured of the groups, in steps: at the tight limit, and at the higher one where it was.

    ``margins`` say, for each key with enough values, which of them a group has.
    """

    tight: Array
    tight_noise: float
    high: Array | None = None
    high_noise: float = 0.0
    margins: Sequence[Places] = ()


@dataclass(frozen=True)
class Scaled:
    """What the groups hold, the deviation of the noise in that, and of all that it may be off."""

    value: Array
    noise: Array
    off: Array
    given_back: float  # for each that was measured


def margins_of(cells: Sequence[Sequence[Any]], keys: int) -> list[Places]:
    """Which value of each key the groups have, of those keys that have enough values; one key alone has no margins."""
    found = []
    for number in range(keys if keys > 1 else 0):
        places: dict[Any, int] = {}
        each = np.array([places.setdefault(cell[number], len(places)) for cell in cells], dtype=np.int64)
        if len(places) >= _MARGIN:
            found.append(each)
    return found


def scale_groups(measured: Groups, taken: Taken, total: Total) -> Scaled:
    """The groups, scaled up; ``taken`` is what the counts say of the tight limit."""
    y, count = measured.tight, len(measured.tight)
    # Noise may leave next to nothing of the sum, or less: shares of that would be huge. What the counts say is kept.
    whole = max(float(y.sum()), _LEAST_KEPT * taken.kept, 1.0)
    shares = y / whole
    floor = np.maximum(shares, _LEAST / count)
    if measured.high is None:
        known = taken.with_total(_with_noise(total, measured.tight_noise * math.sqrt(count)), whole)
        beyond, off, favour = known.factor * whole, known.deviation * whole, FAVOUR
        value, noise, bias, beyond_shares = y.copy(), np.zeros(count), np.zeros(count), shares
    else:
        band = _Band(measured, shares, floor, whole, total)
        value, noise, bias = y + band.value, band.noise, band.bias
        beyond = max(0.0, total.mean - float(value.sum()))
        off, favour = math.hypot(total.deviation, measured.tight_noise * math.sqrt(count)), _FAVOUR
        beyond_shares = band.shares if band.stands_out else shares
    value = value + beyond * beyond_shares
    given_back = max(0.0, float(value.sum()) / whole - 1)
    noise = noise + (measured.tight_noise * (1 + given_back)) ** 2
    common = (beyond_shares * off) ** 2
    bias = bias + taken.unequal * (favour * beyond * np.maximum(beyond_shares, 0.0)) ** 2 + taken.chance * floor
    return Scaled(value, np.sqrt(noise), np.sqrt(noise + common + bias), given_back)


def _with_noise(total: Total, noise: float) -> Total:
    return Total(total.mean, math.hypot(total.deviation, noise))


class _Band:
    """The heavy band: what it holds of each group, the noise of that, and what it leaves out, both in squares."""

    def __init__(self, measured: Groups, shares: Array, floor: Array, whole: float, total: Total) -> None:
        high, count = measured.high, len(shares)
        if high is None:
            raise ValueError("There is no second limit.")
        variance = np.full(count, measured.high_noise**2 + measured.tight_noise**2)
        parts = high - measured.tight
        off = math.sqrt(float(variance.sum()))
        most = max(0.0, total.mean - whole) + 2 * total.deviation
        self.sum = min(max(float(parts.sum()), 0.0), most)
        self.stands_out = self.sum > _SEEN * off
        self.value, self.noise = self.sum * shares, np.zeros(count)
        self.bias = shares**2 * min(off, total.deviation) ** 2
        # What differs from the shares; that the band's sum is not the one that was measured is no difference.
        rest = parts - self.value - shares * (float(parts.sum()) - self.sum)
        for places in (*measured.margins, np.arange(count)):
            sums, known = _sums(places, rest), _sums(places, variance)
            seen, possible = _differences(sums, known)
            gain = _gains(sums, known, seen)
            within = floor / _sums(places, floor)[places]
            found = (gain * sums)[places] * within
            self.value, rest = self.value + found, rest - found
            self.noise += (gain[places] * within) ** 2 * np.bincount(places)[places] * measured.high_noise**2
            self.bias += ((1 - gain[places]) * within) ** 2 * possible
        self.shares = shares + (self.value - self.sum * shares) / max(self.sum, 1.0)


def _sums(places: Places, values: Array) -> Array:
    return np.bincount(places, values).astype(np.float64)


def _differences(sums: Array, variances: Array) -> tuple[float, float]:
    """The variance of sums beyond that of their noise, as far as it is sure; and as far as it may be."""
    far = float((np.minimum(sums**2, _FAR**2 * variances) - _TRIMMED * variances).mean())
    error = math.sqrt(2 * float((variances**2).mean()) / len(sums))
    return max(far - _SURE * error, 0.0), max(far, 0.0) + _UPPER * error


def _gains(sums: Array, variances: Array, differences: float) -> Array:
    """Which part of a sum is believed: by what sums usually differ, and all of it where chance does not explain it."""
    usual = differences / (differences + variances)
    far = np.sqrt(np.maximum(sums**2 / (variances + differences), 1e-12))
    return np.asarray(1 - (1 - usual) * np.minimum(1.0, (_FAR / far) ** 4))
