"""An attack: what it is, what it is run with, and what it found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalenius.audit.targets.scene import Scene
from dalenius.audit.targets.target import Target

CERTAIN = 0.99  # posterior above which an attacker is content


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a figure."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """What people would rather look at."""

    title: str
    across: str
    up: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        curves = [{"label": each.label, "x": each.x, "y": each.y} for each in self.curves]
        scales = {"log_x": self.log_x, "log_y": self.log_y}
        return {"title": self.title, "x": self.across, "y": self.up, **scales, "curves": curves}


@dataclass(frozen=True, slots=True)
class Rate:
    """How often an attack that makes many guesses was right.

    >>> str(Rate(120, 1000, "people"))
    '120 of 1,000 people (12%)'
    """

    hits: int
    of: int
    what: str = "people"

    @property
    def share(self) -> float:
        """Hits of all."""
        return self.hits / self.of if self.of else 0.0

    def __str__(self) -> str:
        digits = 1 if 0 < self.share < 0.1 or 0.99 < self.share < 1 else 0
        return f"{self.hits:,} of {self.of:,} {self.what} ({self.share:.{digits}%})"

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"hits": self.hits, "of": self.of, "what": self.what, "share": self.share}


@dataclass(frozen=True, slots=True)
class Finding:
    """What an attack learned, and what it took.

    Attributes:
        broke: Whether it got what it was after.
        learned: What, in one sentence.
        asked: Questions.
        price: What the target charged in ε, by its own books; None where nothing is charged.
        ended: Why it stopped before it was done; "" where it was not stopped.
        numbers: What the sentence says, for programs.
        rate: How often it was right, where it is aimed at a published table: there are no questions then.
    """

    attack: str
    target: str
    broke: bool
    learned: str
    asked: int
    price: float | None
    ended: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    drawing: Drawing | None = None
    rate: Rate | None = None

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "attack": self.attack,
            "target": self.target,
            "broke": self.broke,
            "learned": self.learned,
            "questions": self.asked,
            "price": self.price,
            "ended": self.ended,
            "numbers": dict(self.numbers),
            "drawing": self.drawing and self.drawing.to_dict(),
            "rate": self.rate and self.rate.to_dict(),
        }


Progress = Callable[[float], None]


def nobody_looks(_: float) -> None:
    """No bar."""


@dataclass(frozen=True, slots=True)
class Lab:
    """What an attack is run with.

    Attributes:
        target: Whom it asks.
        chance: The attacker's own coins.
        progress: Told how much of the attack is done, from 0 to 1.
        rounds: The most rounds before an attacker gives up.
    """

    target: Target
    chance: np.random.Generator
    progress: Progress = nobody_looks
    rounds: int = 200

    @property
    def scene(self) -> Scene:
        """The people: attacks read their number, and the truth only to judge themselves."""
        return self.target.scene

    def found(
        self,
        attack: str,
        *,
        broke: bool,
        learned: str,
        ended: str = "",
        drawing: Drawing | None = None,
        **numbers: float,
    ) -> Finding:
        """A finding about this lab's target."""
        target = self.target
        return Finding(attack, target.name, broke, learned, target.asked, target.price, ended, numbers, drawing)


@dataclass(frozen=True, slots=True)
class Measured:
    """A number of an attack's findings that goes down as the noise goes up.

    Attributes:
        number: What it is called there.
        words: What it is.
        guessing: What it is for who only guesses.
        people: How many are attacked at most: the noise is reckoned in square roots of their number.
    """

    number: str
    words: str
    guessing: float
    people: int


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack.

    Attributes:
        name: As it is typed.
        title: What it does, in a line.
        teaches: What one learns from it.
        against: The targets that it has something to say to.
        run: It.
        price: Of one question in ε, of a budget of 1, where the attack is about budgets; None: the lab's choice.
        by_noise: What can be drawn against the size of the noise; None: nothing.
    """

    name: str
    title: str
    teaches: str
    against: tuple[str, ...]
    run: Callable[[Lab], Finding]
    price: float | None = None
    by_noise: Measured | None = None


EVERYTHING: tuple[str, ...] = ("plain", "noisy", "sticky", "dalenius")


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "question"), counted(1200, "question")
    ('1 question', '1,200 questions')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def priced(epsilon: float) -> str:
    """A price, as people read it.

    >>> priced(0.9991), priced(4000.0)
    ('0.999', '4,000')
    """
    return f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.3g}"


def line(label: str, ys: Sequence[float], start: int = 1) -> Curve:
    """A value after each question or round."""
    return Curve(label, tuple(float(at) for at in range(start, start + len(ys))), tuple(map(float, ys)))


def sparse(label: str, ys: Sequence[float], points: int = 60) -> Curve:
    """The same of a long series, at places that lie even on a logarithmic axis.

    >>> sparse("", [5.0, 6.0, 7.0], 2)
    Curve(label='', x=(1.0, 3.0), y=(5.0, 7.0))
    """
    places = sorted({round(float(at)) for at in np.geomspace(1, len(ys), points)}) if ys else []
    return Curve(label, tuple(map(float, places)), tuple(float(ys[at - 1]) for at in places))
