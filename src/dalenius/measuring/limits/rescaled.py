"""How groups are scaled up to a total, as plain data: what is stored with an answer, so that it never changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

FEWEST = 16  # groups: of fewer it cannot be told how far they differ
TIGHT = Fraction(3, 5)  # of a measure's price, where it is measured at two limits: the part of the tight one


@dataclass(frozen=True, slots=True)
class Total:
    """What all units add up to, in steps of a measure, and how far that may be off, as a deviation."""

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Rescaled:
    """How a measure is scaled up: to which total, and the limit at which it is measured again; None: it is not."""

    total: Total
    heavy: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As it is stored with the answer."""
        return {"total": self.total.mean, "deviation": self.total.deviation, "heavy": self.heavy}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Rescaled:
        """As `to_json` wrote it."""
        return cls(Total(data["total"], data["deviation"]), data["heavy"])
