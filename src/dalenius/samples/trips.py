"""Taxi trips: who was where in which hour. Made up, the same for everyone who makes it."""

from __future__ import annotations

import random
from dataclasses import dataclass

SEED = 2014  # when a city's taxi trips were published
ZONES = 60
DAYS = 14


@dataclass(frozen=True, slots=True)
class Trip:
    """One trip of a made-up person."""

    person: int
    zone: int  # where it began
    hour: int  # of the fortnight
    fare: int


def trips(people: int = 1000, *, seed: int = SEED) -> list[Trip]:
    """Some weeks of a home, an office and what people do besides.

    >>> trips(3) == [each for each in trips(5) if each.person < 3]
    True
    """
    chance = random.Random(seed)
    return [each for person in range(people) for each in _of(person, chance)]


def _of(person: int, chance: random.Random) -> list[Trip]:
    # Zones of the centre are in everybody's way: place by a square.
    home, office = chance.randrange(ZONES), int(ZONES * chance.random() ** 2)
    leaves = chance.choice((7, 8, 8, 9))
    found = []
    for day in range(DAYS):
        if chance.random() < 0.7:
            found.append(Trip(person, home, 24 * day + leaves, chance.randrange(5, 25)))
            found.append(Trip(person, office, 24 * day + leaves + 9, chance.randrange(5, 25)))
        if chance.random() < 0.4:
            found.append(
                Trip(
                    person,
                    int(ZONES * chance.random() ** 2),
                    24 * day + chance.randrange(18, 24),
                    chance.randrange(5, 40),
                )
            )
    return found
