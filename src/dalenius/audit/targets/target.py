"""A target: something that answers questions, or refuses. It counts what it was asked and what that cost."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Self

from dalenius.audit.targets.questions import Question
from dalenius.audit.targets.scene import Scene


class Noise(Enum):
    """The shape of an answer's error, as everybody may know."""

    NONE = "none"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True, slots=True)
class Answer:
    """A number, and what is public about its error."""

    value: float
    noise: Noise = Noise.NONE
    scale: float = 0.0  # b of Laplace, σ of Gaussian


def deviation(answer: Answer) -> float:
    """The standard deviation of an answer's noise."""
    return answer.scale * (math.sqrt(2) if answer.noise is Noise.LAPLACE else 1)


class TargetRefusal(Exception):  # noqa: N818 (nothing went wrong: this is what a defence does)
    """The target does not answer this question.

    Attributes:
        reason: Why, in its words.
        final: Whether it will answer nothing more.
    """

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.final = final


class Target(ABC):
    """What is attacked.

    Attributes:
        asked: Questions so far, answered or not.
        price: What the answers cost in ε so far; None where nothing is charged.
    """

    name: str
    about: str

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.asked = 0
        self.price: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027 (most have nothing to leave behind)
        """Leaves nothing behind."""

    def ask(self, question: Question) -> Answer:
        """The answer.

        Raises:
            TargetRefusal: It refuses.
        """
        self.asked += 1
        return self.answer(question)

    def count_words(self) -> dict[str, float]:
        """How many people have each word, for the words that it shows."""
        raise TargetRefusal(f"The target '{self.name}' groups by nothing.")

    def other(self) -> Target:
        """The same table, as another analyst sees it."""
        raise TargetRefusal(f"The target '{self.name}' has one analyst.")

    @abstractmethod
    def answer(self, question: Question) -> Answer:
        """The answer, as this target makes it."""
