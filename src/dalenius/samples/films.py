"""Film ratings: few stars for many films, and a long tail. Made up, the same for everyone who makes it."""

from __future__ import annotations

import random
from dataclasses import dataclass

SEED = 2006  # when a film service published its ratings
FILMS = 2000
DAYS = 700


@dataclass(frozen=True, slots=True)
class Rating:
    """What a made-up person thought of a film, and when."""

    person: int
    film: int  # the smaller, the better known
    stars: int
    day: int


def ratings(people: int = 1000, *, seed: int = SEED) -> list[Rating]:
    """Everybody's ratings.

    >>> ratings(3) == [each for each in ratings(5) if each.person < 3]
    True
    """
    chance = random.Random(seed)
    return [each for person in range(people) for each in _of(person, chance)]


def _of(person: int, chance: random.Random) -> list[Rating]:
    count = 15 + int(chance.expovariate(1 / 30))
    films = {min(FILMS - 1, int(FILMS * chance.random() ** 4)) for _ in range(count)}  # a few are seen by most
    begins, taste = chance.randrange(DAYS - 200), chance.gauss(0, 0.7)
    return [
        Rating(person, film, min(5, max(1, round(3.6 + taste + chance.gauss(0, 1)))), begins + chance.randrange(200))
        for film in sorted(films)
    ]
