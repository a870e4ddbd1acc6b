"""Which randomiser tells most about so many values, from so many people, at this ε: closed forms, no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalenius.accounting import parameters
from dalenius.errors import DaleniusError, InputError
from dalenius.local.randomisers import RANDOMISERS
from dalenius.local.randomisers.randomiser import FrequencyOracle

MOST_PEOPLE = 10**12
_LARGEST_REPORT = 2**20  # bytes: nobody sends more for one answer
_CLOSE = 1.015  # errors that differ by less are called equal, and the shorter report goes first


@dataclass(frozen=True)
class Choice:
    """One randomiser, with what is to be expected of it.

    Attributes:
        randomiser: Ready to encode.
        error: Root mean squared error of a share, over the domain.
        rare: The standard error of the share of a value that nobody holds.
        report_bytes: What each person sends.
    """

    randomiser: FrequencyOracle
    error: float
    rare: float
    report_bytes: int

    @property
    def name(self) -> str:
        """As on the command line."""
        return self.randomiser.name

    @property
    def margin(self) -> float:
        """1.96 standard errors."""
        return 1.959963984540054 * self.error


@dataclass(frozen=True)
class Plan:
    """Randomisers in the order in which to prefer them.

    Attributes:
        people: How many will report, each once.
        size: How many values there are.
        epsilon: What was asked for; each choice states its actual one.
        choices: The best first.
        refused: Randomisers that cannot serve here, with the reason.
    """

    people: int
    size: int
    epsilon: float
    choices: tuple[Choice, ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def best(self) -> Choice:
        """What to take."""
        return self.choices[0]

    @property
    def central(self) -> float:
        """The standard error of a share in the central model, at the same ε: one count with discrete Laplace noise.

        A curator who may see the values adds noise of parameter α = e^−(ε/2) to each count, because one person who
        changes the answer moves two counts by 1 (substitute neighbours, as in the local model). Its variance is
        2α/(1−α)², whatever the number of people is; a share's error is that divided by the people.
        """
        alpha = math.exp(-self.epsilon / 2)
        return math.sqrt(2 * alpha) / (1 - alpha) / self.people

    @property
    def penalty(self) -> float:
        """How many times as large the local error is: it grows with √people."""
        return self.best.error / self.central


def plan(people: int, size: int, epsilon: float) -> Plan:
    """Ranks all randomisers of categories.

    The error is the root of the mean variance over the domain, by the closed form of the *implemented* chances. For
    all but sketches it is the same whatever the shares are, because each variance is linear in its share; for sketches
    it is that of the worst shares, where all people hold one value. Choices whose errors differ by at most 1.5% are
    ordered by the length of a report.

    Raises:
        InputError: For numbers that no survey has, and where no randomiser can serve.

    >>> found = plan(100_000, 4096, 1.0)
    >>> found.best.name, round(found.best.error, 4), round(found.central, 6)
    ('hadamard', 0.0061, 2.8e-05)
    """
    people = parameters.count(people, "the number of people", least=1)
    if size == 1:
        raise InputError("One value says nothing.", why="Everybody has it.", fix="Give a domain of at least 2 values.")
    size = parameters.count(size, "the size of the domain", least=2)
    epsilon = parameters.epsilon(epsilon)
    _check(people, size, epsilon)
    choices, refused = list[Choice](), list[tuple[str, str]]()
    for cls in RANDOMISERS:
        if not issubclass(cls, FrequencyOracle):
            continue
        try:
            oracle = cls(epsilon=epsilon, size=size)
        except DaleniusError as refusal:
            refused.append((cls.name, refusal.message))
            continue
        if oracle.report_bytes > _LARGEST_REPORT:
            refused.append((cls.name, f"A report would have {oracle.report_bytes:,} bytes."))
            continue
        held, rare = oracle.variances(np.array([1.0, 0.0]), people).tolist()
        error = math.sqrt((held + (size - 1) * rare) / size)
        choices.append(Choice(oracle, error, math.sqrt(rare), oracle.report_bytes))
    if not choices:
        raise InputError(
            "No randomiser can serve here.",
            why=" ".join(f"{name}: {why}" for name, why in refused),
            fix="Take another ε, or a smaller domain.",
        )
    return Plan(people, size, epsilon, _ordered(choices), tuple(refused))


def _ordered(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """By error; of those within 1.5% of the best that is left, the one with the shortest report first."""
    left, found = sorted(choices, key=lambda each: (each.error, each.report_bytes, each.name)), list[Choice]()
    while left:
        close = [each for each in left if each.error <= _CLOSE * left[0].error]
        chosen = min(close, key=lambda each: (each.report_bytes, each.error, each.name))
        left.remove(chosen)
        found.append(chosen)
    return tuple(found)


def _check(people: int, size: int, epsilon: float) -> None:
    if people > MOST_PEOPLE:
        raise InputError(
            f"{people:,} people are more than there are.",
            why=f"Plans are for at most {MOST_PEOPLE:,} reports.",
            fix="Give the number of reports that you expect.",
        )
    if size > 2**31:
        raise InputError(
            f"A domain of {size:,} values is too large.",
            why="Every value is estimated; beyond 2³¹ of them that is no longer a list.",
            fix="Ask for coarser values, or search an open vocabulary for heavy hitters.",
        )
    if epsilon > 16:
        raise InputError(
            f"ε = {epsilon:g} protects nobody.",
            why=f"One answer may be e^{epsilon:g} times likelier from one person than from another.",
            fix="Take an ε between 0.1 and 4; above 8 collect openly, and say so.",
        )


def draw(axes: Any, found: Plan, *, along: str = "people") -> None:
    """Error by the number of people or by ε, a line for each randomiser, and the central model's beside them.

    Args:
        axes: Of matplotlib.
        found: Around which point.
        along: "people" or "epsilon".
    """
    points = _around(found, along)
    names = [each.name for each in found.choices]
    for number, name in enumerate(names):
        places, errors = [], []
        for at, each in points:
            for choice in each.choices:
                if choice.name == name:
                    places.append(at)
                    errors.append(choice.error)
        axes.plot(places, errors, label=name, color=f"C{number}", linewidth=2.2 if number == 0 else 1.2)
    central = [each.central for _, each in points]
    axes.plot([at for at, _ in points], central, "--", color="black", label="central model")
    here = found.people if along == "people" else found.epsilon
    axes.plot([here], [found.best.error], "o", color="C0")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("people who report" if along == "people" else "ε")
    axes.set_ylabel("error of a share (standard)")
    beside = f"ε = {found.epsilon:g}" if along == "people" else f"{found.people:,} people"
    axes.set_title(f"Error over {found.size:,} values, {beside}", loc="left")


def _around(found: Plan, along: str) -> list[tuple[float, Plan]]:
    points = list[tuple[float, Plan]]()
    for step in range(-8, 9):
        factor = 10 ** (step / 4)
        try:
            if along == "people":
                people = min(MOST_PEOPLE, max(1, round(found.people * factor)))
                points.append((people, plan(people, found.size, found.epsilon)))
            else:
                epsilon = min(10.0, max(0.01, found.epsilon * factor**0.5))
                points.append((epsilon, plan(found.people, found.size, epsilon)))
        except InputError:  # off the end of what can be planned
            continue
    return points
