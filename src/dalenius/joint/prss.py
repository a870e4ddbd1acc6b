"""Random shares without a word: pseudo-random secret sharing.

Every set A of n − t parties has a key. All parties in A draw the same number from it, and take it times f_A(i), where
f_A is the polynomial of degree t that is 1 at 0 and 0 at the parties outside A. The sum over all sets is a sharing of
the sum of the numbers. A coalition of t misses the key of the set of all the others, so it knows nothing of that sum.

*Guarantee.* Uniform shares of a uniform number (or of zero) to any t parties, as far as AES-256 is a pseudo-random
function.

*References.* R. Cramer, I. Damgård and Y. Ishai, "Share conversion, pseudorandom secret-sharing and applications to
secure computation", TCC 2005, sections 3 and 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius.joint.shamir import lagrange
from dalenius.joint.shares import Shares
from dalenius.joint.streams import Stream, derive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dalenius.joint.run import Run
    from dalenius.joint.shamir import Field

    Array = NDArray[np.uint64]


def random_numbers(run: Run, field: Field, shape: tuple[int, ...]) -> Shares:
    """Shares of uniform numbers that nobody knows."""
    turn = run.next_turn()
    weights, drawn = [], []
    for members in run.sets:
        weights.append(_value(run, field, members))
        drawn.append(field.random(Stream(derive(run.set_key(members), "random", turn)), shape))
    return Shares(field, field.combine(weights, drawn))


def zeros(run: Run, field: Field, shape: tuple[int, ...]) -> Array:
    """Points on uniform polynomials of degree 2t that are zero at 0: they hide all of a product but its value.

    For each set A there are t numbers, taken times x·f_A(x), …, x^t·f_A(x).
    """
    turn = run.next_turn()
    weights, drawn = [], []
    for members in run.sets:
        weight = _value(run, field, members)
        for power in range(run.threshold):
            weight = field.scalar_multiply(weight, run.me)
            weights.append(weight)
            drawn.append(field.random(Stream(derive(run.set_key(members), "zero", turn, power)), shape))
    return field.combine(weights, drawn)


def _value(run: Run, field: Field, members: tuple[int, ...]) -> int:
    """f_A at this party's point."""
    outside = tuple(each for each in range(1, run.parties + 1) if each not in members)
    return lagrange(field, (0, *outside), run.me)[0]
