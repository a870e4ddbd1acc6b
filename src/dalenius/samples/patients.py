"""A town's patients, and its list of voters: what an insurance commission published, and what anybody may buy.

Made up, the same for everyone who makes it. Illness goes with age and neighbourhood, as it does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta

SEED = 1997  # when a governor's records were found so
TODAY = date(1997, 1, 1)
SEXES = ("f", "m")
# Body part and its illnesses: illnesses of one part are alike.
ILLNESSES = {
    "stomach": ("gastritis", "ulcer", "reflux"),
    "lungs": ("asthma", "bronchitis", "pneumonia"),
    "heart": ("angina", "arrhythmia", "infarct"),
    "joints": ("arthritis", "gout", "sciatica"),
}
_FIRST = {
    "f": ("Ada", "Bea", "Cleo", "Dora", "Eva", "Fay", "Gwen"),
    "m": ("Al", "Bo", "Cy", "Dan", "Ed", "Finn", "Gus"),
}
_LAST = ("Abel", "Berg", "Cole", "Dunn", "Ernst", "Fox", "Gold", "Hart", "Ives", "Jung", "Katz", "Lang", "Marx", "Noth")
_ZIPS = tuple(f"{region}{part}{street}" for region in (21, 22, 23, 24) for part in range(11, 16) for street in (0, 1))


@dataclass(frozen=True, slots=True)
class Patient:
    """One made-up person."""

    name: str
    phone: str
    born: date
    sex: str
    zip: str
    illness: str
    infected: bool  # with something rare that nobody tells
    salary: int  # thousands a year, 20 to 99
    votes: bool  # is on the list of voters

    @property
    def age(self) -> int:
        """In years."""
        return int((TODAY - self.born).days / 365.25)


def patients(count: int = 2000, *, seed: int = SEED) -> list[Patient]:
    """The first ``count`` people.

    >>> patients(3) == patients(5)[:3]
    True
    """
    chance = random.Random(seed)
    return [_patient(number, chance) for number in range(count)]


def _patient(number: int, chance: random.Random) -> Patient:
    sex = chance.choice(SEXES)
    place = chance.choice(_ZIPS)
    born = TODAY - timedelta(days=chance.randrange(20 * 365, 80 * 365))
    decade, region, part = int((TODAY - born).days / 3652.5), int(place[:2]), int(place[2:4])
    usual = chance.random() < 0.9  # of that age and place
    organ = list(ILLNESSES)[(decade + region) % 4 if usual else chance.randrange(4)]
    kind = (decade + part) % 3 if usual else chance.randrange(3)
    return Patient(
        name=f"{chance.choice(_FIRST[sex])} {chance.choice(_LAST)} {number}",
        phone=f"0{chance.randrange(100_000):05d}",
        born=born,
        sex=sex,
        zip=place,
        illness=ILLNESSES[organ][kind],
        infected=chance.random() < (0.9 if (region, part) == (23, 11) else 0.04),
        salary=min(99, max(20, round(chance.gauss(28 + 18 * (region - 21) + 0.1 * decade, 4)))),
        votes=chance.random() < 0.8,
    )
