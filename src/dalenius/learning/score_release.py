"""How well a model predicts units held out, as who asked for it gets it; and what it would be like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dalenius._fields import Fields
from dalenius.learning.scoring import Scored


@dataclass(frozen=True)
class ModelScore:
    """A score that was paid for.

    Attributes:
        release: The number of the model's release.
        scored: How well it predicts.
        guarantee: `kind`, `epsilon`, `delta`, `unit`, `neighbors`.
        charge: `epsilon`, `delta`, `rho`, as charged.
        remaining: What is left to spend.
        free: Paid for before.
        receipt: Proof of the charge.
        notes: What the reader should know besides.
    """

    release: str
    scored: Scored
    guarantee: Mapping[str, Any]
    charge: Mapping[str, Any]
    remaining: Mapping[str, Any]
    free: bool
    receipt: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For `--json` and HTTP."""
        return {
            "release": self.release,
            "score": self.scored.to_dict(),
            "guarantee": dict(self.guarantee),
            "charge": dict(self.charge),
            "remaining": dict(self.remaining),
            "free": self.free,
            "receipt": dict(self.receipt),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelScore:
        """As `to_dict` wrote it."""
        found = Fields(data, "score")
        return cls(
            found.text("release"),
            Scored.from_dict(found.mapping("score")),
            found.mapping("guarantee"),
            found.mapping("charge"),
            found.mapping("remaining"),
            found.flag("free"),
            found.mapping("receipt"),
            found.texts("notes"),
        )


@dataclass(frozen=True)
class ScorePreview:
    """Price and expected margin of a score.

    Attributes:
        epsilon: The price.
        release: The number of the model's release.
        table: Whose rows.
        margin: 95% margin for the added noise, expected at most; None: no number of units was released.
        seconds: After which it leaves, where times are fixed.
        remaining: What is left to spend.
        known: This analyst has paid for it already: it is free.
        notes: What the reader should know besides.
    """

    epsilon: float
    release: str
    table: str
    margin: float | None
    seconds: float
    remaining: Mapping[str, Any]
    known: bool
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For `--json` and HTTP."""
        return asdict(self) | {"notes": list(self.notes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ScorePreview:
        """As `to_dict` wrote it."""
        found = Fields(data, "score")
        return cls(
            found.number("epsilon"),
            found.text("release"),
            found.text("table"),
            found.number("margin") if found.any("margin") is not None else None,
            found.number("seconds"),
            found.mapping("remaining"),
            found.flag("known"),
            found.texts("notes"),
        )
