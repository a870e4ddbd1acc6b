"""What attacks share that ask for one number many times: answers that stick are asked for in other words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dalenius.audit.attacks.attack import Lab
from dalenius.audit.targets.questions import Question
from dalenius.audit.targets.target import Answer, TargetRefusal


@dataclass
class Repeated:
    """The answers to one question, again and again.

    Attributes:
        ended: Why there are no more; "" where the attacker was tired first.
        sticks: Whether the same words had the same answer.
    """

    lab: Lab
    question: Question
    ended: str = ""
    sticks: bool = False

    def answers(self, rounds: int) -> Iterator[Answer]:
        """Each with what is known of who was left out taken back: the attacker knows everybody but the victim."""
        scene, last, words = self.lab.scene, None, 0
        for number in range(rounds):
            place = scene.size - words
            question = self.question.reworded(place) if words else self.question
            try:
                answer = self.lab.target.ask(question)
            except TargetRefusal as refusal:
                self.ended = refusal.reason
                return
            if self.sticks or answer.value == last:
                self.sticks, words = True, words + 1
            if answer.value != last:
                left_out = self.question.truth(scene) - question.truth(scene)
                yield Answer(answer.value + left_out, answer.noise, answer.scale)
            if words >= scene.size - 1:
                return
            last = answer.value
            self.lab.progress((number + 1) / rounds)
