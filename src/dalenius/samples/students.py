"""The students table: one row per student, the same for everyone who makes it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta

SEED = 1977  # the year of Dalenius's paper
EDITORS = ("emacs", "nano", "notepad", "vim", "vscode")
DEPARTMENTS = ("biology", "computing", "law", "mathematics", "medicine", "physics")
GENDERS = ("f", "m", "x")
MOST_SCHOLARSHIP = 6000

# How popular an editor is, by department: a structure worth asking about.
_EDITOR_WEIGHTS = {
    "computing": (14, 6, 3, 27, 50),
    "mathematics": (16, 12, 9, 18, 45),
    "physics": (12, 14, 10, 19, 45),
}
_OTHER_WEIGHTS = (2, 15, 48, 3, 32)


@dataclass(frozen=True, slots=True)
class Student:
    """One made-up person."""

    student_id: int
    birth_date: date
    gender: str
    department: str
    editor: str
    scholarship: int  # euros a year, at most 6,000; most have none


def students(count: int = 2000, *, seed: int = SEED) -> list[Student]:
    """The first ``count`` students.

    >>> students(3) == students(5)[:3]
    True
    """
    chance = random.Random(seed)
    return [_student(number, chance) for number in range(1, count + 1)]


def _student(number: int, chance: random.Random) -> Student:
    department = chance.choices(DEPARTMENTS, weights=(14, 24, 17, 11, 22, 12))[0]
    age_in_days = int(min(18 + chance.expovariate(1 / 4.5), 60) * 365.25)
    granted = chance.random() < 0.35
    amount = min(round(chance.lognormvariate(7.7, 0.6) / 50) * 50, MOST_SCHOLARSHIP) if granted else 0
    return Student(
        student_id=100_000 + number,
        birth_date=date(2025, 10, 1) - timedelta(days=age_in_days + chance.randrange(365)),
        gender=chance.choices(GENDERS, weights=(50, 48, 2))[0],
        department=department,
        editor=chance.choices(EDITORS, weights=_EDITOR_WEIGHTS.get(department, _OTHER_WEIGHTS))[0],
        scholarship=amount,
    )
