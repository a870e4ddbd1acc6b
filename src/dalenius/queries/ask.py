"""What somebody asks, as one value: the question, its price, and how it is to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from dalenius.errors import InputError
from dalenius.measuring.plan import Limits


@dataclass(frozen=True)
class Ask:
    """A question with all that is asked about it.

    Attributes:
        question: SQL, one SELECT over a protected table, or over public ones.
        epsilon: The price, where the question's own OPTIONS(epsilon = …) do not say it; or
        error: the noise error that is good enough, for all columns or by name: the least ε that gives it is paid.
        confidence: Of the noise errors.
        delta: For finding keys that are not public.
        limits: Tighter limits of what one unit adds, for this question.
    """

    question: str
    epsilon: float | None = None
    error: float | Mapping[str, float] | None = None
    confidence: float = 0.95
    delta: float | None = None
    limits: Limits | None = None

    @property
    def body(self) -> str:
        """All of it as one text, by which a request that is sent again is known."""
        return repr((self.question, self.epsilon, self.error, self.confidence, self.delta, self.limits))

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return found | {"limits": None if self.limits is None else limits_to_json(self.limits)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Ask:
        """As `to_json` wrote it, or a client: what is left out has its default."""
        unknown = set(data) - {each.name for each in fields(cls)}
        if unknown or not isinstance(data.get("question"), str):
            what = f"{min(unknown)!r} is not part of a question" if unknown else "The question is missing"
            raise InputError(f"{what}.", why="A question is SQL with a price.", fix="See docs/reference/http.md.")
        found = cls(**data)
        limits = data.get("limits")
        return replace(found, limits=limits_of_json(limits) if isinstance(limits, Mapping) else limits)


def limits_of_json(data: Mapping[str, Any]) -> Limits:
    """`Limits` from JSON; totals are numbers or decimal texts."""
    totals = {name: Fraction(str(value)) for name, value in (data.get("totals") or {}).items()}
    return Limits(data.get("rows"), data.get("groups"), totals, data.get("units"), data.get("search"))


def limits_to_json(limits: Limits) -> dict[str, Any]:
    """The same, to JSON."""
    search = limits.search
    return {
        "rows": limits.rows,
        "groups": limits.groups,
        "totals": {name: str(value) for name, value in limits.totals.items()},
        "units": limits.units,
        "search": None if search is None else float(search),
    }
