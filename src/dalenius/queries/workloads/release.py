"""What comes of a workload, before paying and after it: for people and programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dalenius._fields import Fields
from dalenius._numbers import count_of
from dalenius.queries.release import Release, shown_error
from dalenius.queries.workloads.expecting import ExpectedPart, ExpectedQuestion

SEARCHED = (
    "How much one unit may add is looked for once it is paid ({}): "
    "these errors are a guess, and often off by half. The answers say what they are."
)
INCLUDING = "± is the noise alone; squared errors are with what limits are expected to cut off."


@dataclass(frozen=True)
class Expected:
    """What a workload is expected to give at one price.

    Attributes:
        epsilon: The price.
        confidence: Of the errors.
        questions: In the order in which they were asked.
        parts: What is measured for them.
    """

    epsilon: float
    confidence: float
    questions: tuple[ExpectedQuestion, ...]
    parts: tuple[ExpectedPart, ...]

    @property
    def strategy(self) -> str:
        """What is measured, in words."""
        lines = list(map(str, self.parts))
        beside = sum(bool(each.beside) for each in self.questions)
        if beside:
            lines.append(f"{count_of(beside, 'question')} asked as they are, beside the others")
        return "; ".join(lines)

    def strategy_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {"words": self.strategy, "parts": [each.to_dict() for each in self.parts]}

    def one_by_one_json(self) -> dict[str, Any]:
        """For `--json`: what the same price gives where it is split equally, and each question is asked alone."""
        return {
            "noise_error": [list(each.one_by_one) for each in self.questions],
            "squared_error": [each.one_by_one for each in self.parts],
        }

    def lines(self) -> list[str]:
        """The total squared errors, in words."""
        searched = ", ".join(each.of for each in self.parts if each.searched)
        return [
            *(
                f"{each.of}: total squared error {each.squared_error:.4g}, one by one {each.one_by_one:.4g}"
                for each in self.parts
            ),
            *([SEARCHED.format(searched)] if searched else []),
        ]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Expected:
        """From the JSON of a preview, or of a release."""
        found = Fields(data, "workload")
        questions = tuple(
            ExpectedQuestion(
                each.texts("columns"),
                each.whole("groups") if "groups" in each else None,
                each.numbers("noise_error"),
                each.numbers("one_by_one"),
                each.text("beside"),
            )
            for each in (Fields(one, "workload") for one in found.each("questions", dict))
        )
        parts = tuple(
            ExpectedPart(
                each.text("of"),
                each.text("strategy"),
                each.whole("cells"),
                each.whole("measured"),
                each.whole("answers"),
                each.number("share"),
                each.number("squared_error"),
                each.number("one_by_one"),
                "searched" in each and each.flag("searched"),
            )
            for each in (Fields(one, "workload") for one in found.fields("strategy").each("parts", dict))
        )
        return cls(found.number("epsilon"), found.number("confidence"), questions, parts)


@dataclass(frozen=True)
class WorkloadPreview:
    """Price and expected errors of a workload.

    Attributes:
        expected: What it is expected to give.
        remaining: What is left to spend.
        delta: What finding groups costs besides.
        known: This analyst has paid for it already: it is free.
        notes: What the reader should know besides.
    """

    expected: Expected
    remaining: Mapping[str, Any]
    delta: float = 0.0
    known: bool = False
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        found = self.expected
        return {
            "epsilon": found.epsilon,
            "delta": self.delta,
            "confidence": found.confidence,
            "questions": [each.to_dict() for each in found.questions],
            "strategy": found.strategy_json(),
            "one_by_one": found.one_by_one_json(),
            "remaining": self.remaining,
            "known": self.known,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkloadPreview:
        """As `to_dict` wrote it."""
        found = Fields(data, "workload")
        notes = found.texts("notes") if "notes" in found else ()
        known = found.flag("known")
        return cls(Expected.from_dict(data), found.mapping("remaining"), found.number("delta"), known, notes)

    def __str__(self) -> str:
        lines = [f"ε = {self.expected.epsilon:g} for all" + (" · known already: free" if self.known else "")]
        for number, each in enumerate(self.expected.questions, 1):
            shown = [
                f"{name} ± {shown_error(error)} (one by one ± {shown_error(alone or 0.0)})"
                for name, error, alone in zip(each.columns, each.noise_error, each.one_by_one, strict=True)
                if error is not None
            ]
            lines.append(f"  {number}: {', '.join(shown) or 'no error is known before'}")
        lines += [f"Measured: {self.expected.strategy}", *self.expected.lines()]
        return "\n".join([*lines, *([INCLUDING] if self.expected.parts else []), *self.notes])


@dataclass(frozen=True)
class WorkloadRelease:
    """The answers to a workload.

    Attributes:
        releases: One for each question, in order. Each has the charge and the receipt of the whole.
        charge: What all of them cost together.
        remaining: What is left to spend.
        free: Paid for before.
        receipt: Proof of the charge.
        expected: The strategy, and what was expected, also one by one.
    """

    releases: tuple[Release, ...]
    charge: Mapping[str, Any]
    remaining: Mapping[str, Any]
    free: bool
    receipt: Mapping[str, Any] | None
    expected: Expected

    def __len__(self) -> int:
        return len(self.releases)

    def __getitem__(self, place: int) -> Release:
        """The answer to one question, by its place."""
        return self.releases[place]

    def to_dict(self) -> dict[str, Any]:
        """The shape in which it leaves as JSON."""
        found = self.expected
        return {
            "releases": [{"question": each.question, **each.to_dict()} for each in self.releases],
            "charge": dict(self.charge),
            "remaining": self.remaining,
            "free": self.free,
            "receipt": self.receipt,
            "epsilon": found.epsilon,
            "confidence": found.confidence,
            "questions": [each.to_dict() for each in found.questions],
            "strategy": found.strategy_json(),
            "one_by_one": found.one_by_one_json(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkloadRelease:
        """As `to_dict` wrote it."""
        found = Fields(data, "workload")
        return cls(
            tuple(Release.from_dict(each) for each in found.each("releases", dict)),
            found.mapping("charge"),
            found.mapping("remaining"),
            found.flag("free"),
            found.mapping("receipt") if "receipt" in found else None,
            Expected.from_dict(data),
        )

    def __str__(self) -> str:
        return "\n\n".join(f"{number}: {each.question}\n{each}" for number, each in enumerate(self.releases, 1))
