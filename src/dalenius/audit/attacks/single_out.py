"""What attacks on one person share: pairs of questions whose answers differ by that person's bit, added up by Bayes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dalenius.audit.attacks.attack import CERTAIN, Drawing, Finding, Lab, line
from dalenius.audit.attacks.posterior import log_odds, log_odds_of_difference, probability
from dalenius.audit.targets.questions import Question
from dalenius.audit.targets.scene import VICTIM
from dalenius.audit.targets.target import Answer, Noise, TargetRefusal

Pair = tuple[Question, Question]


@dataclass
class Guess:
    """What is thought of the victim's bit, answer after answer."""

    odds: float = 0.0
    history: list[float] = field(default_factory=list)
    ended: str = ""

    @property
    def chance(self) -> float:
        """That the bit is set."""
        return probability(self.odds)

    def learn(self, value: float, noise: Noise, scale: float) -> None:
        """One more answer, of which all but the bit is taken off."""
        self.odds += log_odds(value, noise, scale)
        self.history.append(self.chance)

    def learn_from(self, first: Answer, second: Answer) -> None:
        """Two more, whose difference is the bit."""
        self.odds += log_odds_of_difference(first.value - second.value, first.noise, first.scale, second.scale)
        self.history.append(self.chance)

    @property
    def certain(self) -> bool:
        """Whether the attacker is content."""
        return max(self.chance, 1 - self.chance) >= CERTAIN


def by_pairs(lab: Lab, pair: Callable[[int], Pair]) -> Guess:
    """Asks pair after pair until certain, refused for good, or tired.

    A pair that was asked before and has the answers that it had tells nothing new (noise that sticks, or an answer that
    is kept): from then on each round leaves one other person out, in both questions.
    """
    guess, words = Guess(), 0
    seen: dict[Pair, tuple[float, float]] = {}
    for number in range(lab.rounds):
        if words >= lab.scene.size - 1:
            break
        both = pair(number)
        if words:
            first_, second_ = both
            both = (first_.reworded(lab.scene.size - words), second_.reworded(lab.scene.size - words))
        try:
            first, second = (lab.target.ask(each) for each in both)
        except TargetRefusal as refusal:
            guess.ended = refusal.reason
            if refusal.final:
                break
            continue
        values = (first.value, second.value)
        if seen.get(both) == values:
            words += 1
            continue
        seen[both] = values
        words += bool(words)  # what is kept once is kept always: no words are asked twice any more
        guess.learn_from(first, second)
        lab.progress((number + 1) / lab.rounds)
        if guess.certain:
            guess.ended = ""
            break
    return guess


def told(lab: Lab, name: str, guess: Guess) -> Finding:
    """What became of it: whoever is certain and right has broken the target."""
    truth = bool(lab.scene.secret[VICTIM])
    said = guess.chance >= 0.5
    broke = guess.certain and said == truth
    sure = max(guess.chance, 1 - guess.chance)
    if broke:
        learned = f"The victim's secret is {'yes' if said else 'no'}: {sure:.1%} sure, and right."
    elif guess.certain:
        learned = f"It is {sure:.1%} sure of the wrong answer."
    else:
        luck = "right" if said == truth else "wrong"
        learned = f"It would bet on {'yes' if said else 'no'} with {sure:.1%}: that is {luck}."
    drawing = Drawing(
        "What the attacker believes",
        "rounds",
        "probability that the secret is yes",
        (line(lab.target.name, guess.history),),
    )
    return lab.found(name, broke=broke, learned=learned, ended=guess.ended, drawing=drawing, posterior=guess.chance)
