"""Systems as they are built every day, to show what breaks them. None of them protects anybody.

plain   exact answers, but only about at least `least` people and about all but `least`: query-set-size restriction
noisy   fresh Laplace or Gaussian noise of ε for each question, and no end to the questions
sticky  noise that is seeded by the question, as in Diffix: the same question has the same noise. One layer for each
        condition, seeded by its words (static), and one by its words and who meets the question (dynamic); counts of
        few people are held back

Their noise is an ordinary float from numpy's generator on purpose: here it is the subject of the attack.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from abc import abstractmethod
from collections import Counter

import numpy as np

from dalenius.audit.targets.questions import COUNT, Question, Trap
from dalenius.audit.targets.scene import Scene
from dalenius.audit.targets.target import Answer, Noise, Target, TargetRefusal

LEAST = 5  # people
STICKY = 1.0  # standard deviation of one layer
_PATTERN, _TEXT = r"(a+)+$", "a" * 16 + "!"


class Naive(Target):
    """Runs what it is told to on every row, and says how that went."""

    def answer(self, question: Question) -> Answer:
        """The answer, once every row has been through the question's expression."""
        if question.aimed is not None:
            met = int(Question((*question.conditions, *question.aimed.when)).mask(self.scene).sum())
            if met and question.aimed.trap is Trap.FAIL:
                raise TargetRefusal("Division by zero.")
            for _ in range(met):  # a pattern that tries every way to part the text before it gives up
                re.match(_PATTERN, _TEXT)
        return self.released(question)

    @abstractmethod
    def released(self, question: Question) -> Answer:
        """The number, as this target hides it."""

    def count_words(self) -> dict[str, float]:
        """Every word that somebody has: the list of keys itself is not thought of as an answer."""
        self.asked += 1
        return {word: self.hide(float(count)) for word, count in Counter(self.scene.words).items()}

    def hide(self, value: float) -> float:
        """What is done to a number."""
        return value


class Plain(Naive):
    """The raw table behind a rule that no question may be about few people."""

    name = "plain"
    about = f"exact answers about at least {LEAST} people and at most all but {LEAST}"

    def released(self, question: Question) -> Answer:
        """Exact, or refused for the number of people it is about."""
        if not LEAST <= question.mask(self.scene).sum() <= self.scene.size - LEAST:
            raise TargetRefusal(f"The question is about fewer than {LEAST} people, or about all but so few.")
        return Answer(question.truth(self.scene))


class Noisy(Naive):
    """Fresh noise for each question, for ever; or until an account of each analyst is empty.

    The account is kept as libraries keep it: looked at, then worked, then written.
    """

    name = "noisy"
    about = "fresh noise for each question, and no limit to their number"

    def __init__(
        self,
        scene: Scene,
        chance: np.random.Generator,
        *,
        epsilon: float = 1.0,
        noise: Noise = Noise.LAPLACE,
        scale: float | None = None,
        limit: float = math.inf,
    ) -> None:
        super().__init__(scene)
        self._limit = limit
        self._chance = chance
        self._noise = noise
        self._epsilon = epsilon
        self._scale = scale  # given in place of ε, for attacks that are about a size of noise
        self.price = 0.0

    def released(self, question: Question) -> Answer:
        """The truth and fresh noise."""
        spent = self.price or 0.0
        if spent + self._epsilon > self._limit:
            raise TargetRefusal("The account is empty.", final=True)
        reach = 1 if question.measure == COUNT else self.scene.most
        scale = self._scale if self._scale is not None else reach / self._epsilon
        draw = self._chance.laplace if self._noise is Noise.LAPLACE else self._chance.normal
        value = question.truth(self.scene) + float(draw(0, scale))
        if self._limit < math.inf:
            time.sleep(0.01)  # as long as a small table takes
        self.price = spent + self._epsilon
        return Answer(value, self._noise, scale)

    def hide(self, value: float) -> float:
        """Fresh noise on it."""
        return value + float(self._chance.laplace(0, 1 / self._epsilon))

    def other(self) -> Noisy:
        """Another analyst, with an account of their own."""
        return Noisy(
            self.scene,
            self._chance,
            epsilon=self._epsilon,
            noise=self._noise,
            scale=self._scale,
            limit=self._limit,
        )


class Sticky(Naive):
    """Noise that is seeded by the question."""

    name = "sticky"
    about = "noise seeded by the question, in layers as Diffix has them"

    def __init__(self, scene: Scene, chance: np.random.Generator) -> None:
        super().__init__(scene)
        self._salt = chance.bytes(16)

    def count_words(self) -> dict[str, float]:
        """The words that enough people have."""
        counts = super().count_words()
        return {word: count for word, count in counts.items() if count >= LEAST}

    def released(self, question: Question) -> Answer:
        """The truth and the layers of its conditions."""
        mask = question.mask(self.scene)
        if mask.sum() < LEAST:
            raise TargetRefusal(f"Fewer than {LEAST} people meet the conditions.")
        who = hashlib.sha256(np.packbits(mask).tobytes()).digest()
        value = question.truth(self.scene)
        reach = 1 if question.measure == COUNT else self.scene.most
        for each in question.conditions:
            value += STICKY * reach * (self._layer(each.sql.encode()) + self._layer(each.sql.encode() + who))
        scale = STICKY * reach * float(np.sqrt(2 * len(question.conditions)))
        return Answer(value, Noise.GAUSSIAN, scale)

    def _layer(self, words: bytes) -> float:
        seed = int.from_bytes(hashlib.sha256(self._salt + words).digest()[:8], "big")
        return float(np.random.default_rng(seed).normal())
