"""What somebody asks for, as one value: the questions, their price, and how much an error in each counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dalenius.accounting import parameters
from dalenius.errors import InputError
from dalenius.queries.workloads.reading import Numbered, list_questions


@dataclass(frozen=True)
class WorkloadAsk:
    """A workload with all that is asked about it.

    Attributes:
        questions: SQL, one SELECT each.
        epsilon: The price of all of them together.
        weights: How much an error in each counts, in their order; none: all the same.
        confidence: Of the errors.
        delta: For finding keys that are not public, where questions have some.
    """

    questions: tuple[Numbered, ...]
    epsilon: float | None = None
    weights: tuple[float, ...] = ()
    confidence: float = 0.95
    delta: float | None = None

    @classmethod
    def of(cls, request: Any) -> WorkloadAsk:
        """What is asked: a value of this class, or as JSON has it."""
        if isinstance(request, cls):
            return request
        names = {each.name for each in fields(cls)}
        if not isinstance(request, Mapping) or set(request) - names or "questions" not in request:
            raise InputError(
                "This is no workload.",
                why=f"It has {', '.join(each.name for each in fields(cls))}, of which the questions are needed.",
                fix="Give the questions as a list of SQL texts, and their price as epsilon.",
            )
        found = list_questions(request["questions"])
        given = request.get("weights") or ()
        return cls(
            found,
            request.get("epsilon"),
            _weights(given, len(found)),
            request.get("confidence", 0.95),
            request.get("delta"),
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "questions": [each.text for each in self.questions],
            "epsilon": self.epsilon,
            "weights": list(self.weights),
            "confidence": self.confidence,
            "delta": self.delta,
        }

    def weight(self, place: int) -> float:
        """How much an error in a question counts."""
        return self.weights[place] if self.weights else 1.0


def _weights(given: Any, questions: int) -> tuple[float, ...]:
    fix = "Give one number above 0 for each question, such as [1, 1, 2]."
    if not isinstance(given, Sequence) or isinstance(given, str) or (given and len(given) != questions):
        raise InputError("These are no weights.", why=f"There are {questions:,} questions.", fix=fix)
    found = tuple(float(parameters.positive(each, "weight", fix=fix)) for each in given)
    if any(not 1e-6 <= each <= 1e6 for each in found):
        raise InputError("A weight is out of range.", why="They lie between 10⁻⁶ and 10⁶.", fix=fix)
    return found
