"""Words that keyboards met and did not know: old ones by Zipf's law, and a new one that spreads from week to week."""

from __future__ import annotations

import math
import random

SEED = 2014  # the year of the paper on RAPPOR
NEW_WORD = "plonkle"
WEEKS = 12
_SYLLABLES = (
    *("ba", "do", "fi", "gra", "hul", "jem", "ka", "lo", "mur"),
    *("ni", "pli", "que", "ri", "sto", "ta", "vu", "wex", "zo"),
)
_OLD_WORDS = 2000
_MIDDLE, _PACE, _MOST = 6.0, 1.1, 0.08  # of the logistic curve by which the new word spreads


def words(count: int = _OLD_WORDS, *, seed: int = SEED) -> list[str]:
    """So many distinct made-up words of two to four syllables, the most frequent first.

    >>> words(3), len(set(words(500)))
    (['pligraka', 'lori', 'plika'], 500)
    """
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(chance.choices(_SYLLABLES, k=chance.choice((2, 2, 3, 3, 4))))] = None
    return list(found)


def spread(week: int) -> float:
    """The share of people whose keyboard met the new word in that week, from 1 to `WEEKS`.

    >>> [round(spread(week), 3) for week in (1, 6, 12)]
    [0.0, 0.04, 0.08]
    """
    return _MOST / (1 + math.exp(-_PACE * (week - _MIDDLE)))


def typed(week: int, people: int = 200_000, *, seed: int = SEED) -> list[str]:
    """One word of each person in that week.

    >>> len(typed(12, 1000)), NEW_WORD in typed(12, 1000), NEW_WORD in typed(1, 100)
    (1000, True, False)
    """
    chance = random.Random(seed * 1000 + week)
    old = words()
    weights = [1 / rank**1.2 for rank in range(1, len(old) + 1)]
    drawn = chance.choices(old, weights, k=people)
    share = spread(week)
    return [NEW_WORD if chance.random() < share else word for word in drawn]
