"""RAPPOR's tallies, drawn from their exact law by seeded chance: as if so many people had reported."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.local import chances
from dalenius.local.randomisers.rappor import Rappor
from dalenius.local.tallies import Tally

LN_9 = chances.stated(Fraction(9))


def drawn(rappor: Rappor, people: NDArray[np.int64], words: Sequence[str], chance: np.random.Generator) -> Tally:
    """Of ``people[i]`` who hold ``words[i]``; one hash.

    Who holds a word spreads over cohorts as a multinomial; with T of a cohort's n filters having a bit, it is sent
    Binomial(T, q*) + Binomial(n − T, p*) times. The bits of one report are independent, so those of a cohort are.
    """
    assert rappor.hashes == 1
    values = rappor.checked(words)
    even = np.full(rappor.cohorts, 1 / rappor.cohorts)
    spread = chance.multinomial(people, even)
    low, high = (float(each) for each in rappor.sent)
    counts = np.zeros(rappor.tally_shape, np.int64)
    for cohort in range(rappor.cohorts):
        places = rappor.places(values, np.full(len(values), cohort))[:, 0]
        held = np.bincount(places, weights=spread[:, cohort], minlength=rappor.bits).astype(np.int64)
        number = spread[:, cohort].sum()
        counts[cohort, :-1] = chance.binomial(held, high) + chance.binomial(number - held, low)
        counts[cohort, -1] = number
    return Tally(rappor, int(people.sum()), counts)
