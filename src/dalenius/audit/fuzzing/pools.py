"""The best questions so far, by several measures, from which the next are bred."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from dalenius.audit.fuzzing.arenas import ARENAS, Arena
from dalenius.audit.fuzzing.heavy import SEEDS, Question, asked, child

_BEST = 16  # by each measure
_NEW = 0.35  # of the questions have no parents
_RATIO = 0.8  # of the parents are chosen by it alone
_STAYS = 0.8  # of the children are tried where their mother was good


@dataclass(frozen=True)
class Tried:
    """A question, where it was tried, and how good it was: the larger, the worse for us."""

    question: Question
    arena: Arena
    score: float


@dataclass
class Pool:
    """By measure (ratio, time, memory) the best, best first, no question twice."""

    best: dict[str, list[Tried]] = field(default_factory=dict)

    def offer(self, measure: str, tried: Tried) -> None:
        """Keeps it if it is among the best."""
        known = self.best.setdefault(measure, [])
        known[:] = [each for each in known if each.question != tried.question or each.arena != tried.arena]
        known.append(tried)
        known.sort(key=lambda each: -each.score)
        del known[_BEST:]

    def next(self, random: Random, number: int) -> tuple[Question, Arena]:
        """The next question: first what is known to have taken long once, then new ones and children of the best."""
        if number < len(SEEDS) * len(ARENAS) // 2:
            # Every seed meets every victim, with an index or without; neighbours in this order differ in both.
            return SEEDS[number % len(SEEDS)], ARENAS[(number // len(SEEDS) * 2 + number % 2) % len(ARENAS)]
        if not self.best or random.random() < _NEW:
            return asked(random), random.choice(ARENAS)
        mother, father = self._parent(random), self._parent(random)
        made = child(random, mother.question, father.question)
        for _ in range(random.choice((0, 0, 1, 3))):
            made = child(random, made, father.question)
        return made, mother.arena if random.random() < _STAYS else random.choice(ARENAS)

    def _parent(self, random: Random) -> Tried:
        # Most of them by ratio: those that are only slow would have ever slower children, and no time for others.
        measure = "ratio" if random.random() < _RATIO else random.choice(sorted(self.best))
        known = self.best[measure]
        return known[min(random.randrange(len(known)), random.randrange(len(known)))]
