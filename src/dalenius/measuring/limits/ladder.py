"""How many values one unit may add to a COUNT(DISTINCT x), found by the question itself.

Most values are held by many units, so that a limit of one or two already counts nearly all of them, and the noise
grows with the limit. The ladder counts the values at limits 1, 4, 16, … K at once, with noise; from that the limit is
chosen at which what is left out and the noise of the count itself are least.

Guarantee:
    At limit K′ adding or removing a unit changes the number of values in all groups together by at most K′
    (`statements.distinct`). Each rung is multiplied by M/K′, M a common multiple, so it changes by at most M: over L
    rungs Δ1 = L·M and Δ2² = L·M². No rung falls when a unit is added, so exchanging two doubles either. The noise is
    made for that; what is chosen from the noisy rungs is post-processing, and the count that follows has noise for
    whatever limit was chosen, so the two add up by adaptive composition (`in_question`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalenius.accounting.neighbors import Neighbors
from dalenius.measuring.estimates import noise_variance

if TYPE_CHECKING:
    from dalenius.mechanisms.laws import Law


def rungs(most: int) -> list[int]:
    """The limits that are tried.

    >>> rungs(1), rungs(4), rungs(20)
    ([1], [1, 4], [1, 4, 16, 20])
    """
    return [*(4**at for at in range(_below(most))), most]


def multiple(most: int) -> int:
    """M: a multiple of every rung.

    >>> multiple(20) % 16, multiple(20) % 20
    (0, 0)
    """
    return most << max(0, 2 * (_below(most) - 1))


def _below(most: int) -> int:
    """How many powers of four are less than a number."""
    return ((most - 1).bit_length() + 1) // 2


def scale_counts(most: int, counts: Sequence[int]) -> list[int]:
    """The values that were counted at each rung, times M/K′."""
    whole = multiple(most)
    return [count * (whole // rung) for count, rung in zip(counts, rungs(most), strict=True)]


def sensitivity(most: int, norm: str, neighbors: Neighbors, sets: int = 1) -> int:
    """Δ2² where the norm is L2, Δ1 where it is L1, of all scaled rungs together.

    With grouping sets the limit K′ is for each of them, and a rung counts values in the groups of all: it changes by at
    most s·M.

    >>> sensitivity(4, "l1", Neighbors.ADD_REMOVE), sensitivity(4, "l2", Neighbors.SUBSTITUTE)
    (8, 64)
    """
    each = (sets * multiple(most)) ** (2 if norm == "l2" else 1)
    return len(rungs(most)) * each * (1 if neighbors is Neighbors.ADD_REMOVE else 2)


def best_limit(most: int, noisy: Sequence[int], law: Law, noise_per_step: float, cells: int) -> tuple[int, float]:
    """The limit with most values counted in a group, less what its noise costs; and which part it leaves out.

    A rung counts for what it surely is, two deviations below what it seems.
    """
    steps, whole, spread = rungs(most), multiple(most), noise_variance(law) ** 0.5
    counted = [value * rung / whole for value, rung in zip(noisy, steps, strict=True)]
    sure = [count - 2 * spread * rung / whole for count, rung in zip(counted, steps, strict=True)]
    scores = [count / cells - noise_per_step * rung for count, rung in zip(sure, steps, strict=True)]
    place = scores.index(max(scores))
    seen, all_ = max(0.0, counted[place]), max(*sure, counted[place])
    return steps[place], 1 - seen / all_ if all_ > 0 else 0.0
