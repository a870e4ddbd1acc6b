"""The visits table: many rows per person, a few people with very many, the same for everyone who makes it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta

SEED = 1977  # the year of Dalenius's paper
REGIONS = ("north", "south", "east", "west")
YOUNGEST, OLDEST = 18, 90
MOST_AMOUNT = 5000
YEAR = 2025

_REGION_WEIGHTS = (36, 28, 21, 15)
_MONTH_WEIGHTS = (6, 6, 7, 8, 9, 10, 11, 10, 8, 8, 9, 13)
_FEWEST, _TAIL = 4.8, 3.2  # a Pareto law: 6.6 visits on average, and some people with ten times as many


@dataclass(frozen=True, slots=True)
class Visit:
    """One visit of a made-up person to a shop."""

    user_id: int
    age: int
    region: str
    amount: float  # euros, heavy-tailed
    when: date


def visits(people: int = 3000, *, seed: int = SEED) -> list[Visit]:
    """All visits of so many people in 2025, person by person: about 20,000 of 3,000 people.

    >>> len(visits(10)), visits(10) == visits(20)[: len(visits(10))]
    (59, True)
    """
    chance = random.Random(seed)
    return [visit for number in range(1, people + 1) for visit in _of_person(10_000 + number, chance)]


def _of_person(user: int, chance: random.Random) -> list[Visit]:
    age = round(min(max(chance.gauss(44, 15), YOUNGEST), OLDEST))
    home = chance.choices(REGIONS, _REGION_WEIGHTS)[0]
    spends = chance.lognormvariate(0, 0.5)
    found = []
    for _ in range(min(int(_FEWEST * chance.paretovariate(_TAIL)), 90)):
        region = home if chance.random() < 0.9 else chance.choice(REGIONS)
        amount = min(round(spends * chance.lognormvariate(3.2, 0.8), 2), float(MOST_AMOUNT))
        found.append(Visit(user, age, region, amount, _day(chance)))
    return found


def _day(chance: random.Random) -> date:
    month = chance.choices(range(1, 13), _MONTH_WEIGHTS)[0]
    first = date(YEAR, month, 1)
    last = date(YEAR, month + 1, 1) - timedelta(days=1) if month < 12 else date(YEAR, 12, 31)
    return first + timedelta(days=chance.randrange(last.day))
