"""What somebody asks, as one value: the question, its price, and how it is to be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, TypeAlias

from dalenius.errors import InputError
from dalenius.measuring.plan import Limits

_TOTAL = re.compile(r"-?\d{1,1100}(\.\d{0,60})?(e[+-]?\d{1,3})?(/\d{1,1100})?", re.IGNORECASE)  # 1e-3, 99.95, 1999/20

Amount: TypeAlias = "float | str"  # of an error: a number, or a per cent such as "2%"
Error: TypeAlias = "Amount | Mapping[str, Amount]"


@dataclass(frozen=True)
class Ask:
    """A question with all that is asked about it.

    Attributes:
        question: SQL, one SELECT over a protected table, or over public ones.
        epsilon: The price, where the question's own OPTIONS(epsilon = …) do not say it; beside an error, the most
            that may be paid for that (`ledger.requests`); or
        error: the error that is good enough, for all columns or by name, as a number or as a per cent ("2%") of what
            each group shows: the least ε that is expected to give it is paid (`accuracy`).
        confidence: Of the errors.
        delta: For finding keys that are not public; by default what `ledger.key_delta` says.
        limits: Tighter limits of what one unit adds, for this question.
        fresh: Paid for, and looked at, though it may be known already.
    """

    question: str
    epsilon: float | None = None
    error: Error | None = None
    confidence: float = 0.95
    delta: float | None = None
    limits: Limits | None = None
    fresh: bool = False

    @property
    def body(self) -> str:
        """All of it as one text, by which a request that is sent again is known."""
        fresh = ("fresh",) if self.fresh else ()
        return repr((self.question, self.epsilon, self.error, self.confidence, self.delta, self.limits, *fresh))

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        if not self.fresh:
            del found["fresh"]
        return found | {"limits": None if self.limits is None else limits_to_json(self.limits)}

    @classmethod
    def of(cls, request: Any) -> Ask:
        """What is asked: a value of this class, or as `to_json` wrote it, or a client."""
        if isinstance(request, cls):
            return request
        names = {each.name for each in fields(cls)}
        if not isinstance(request, Mapping) or set(request) - names or not isinstance(request.get("question"), str):
            raise InputError(
                "This is no question.",
                why=f"It has {', '.join(each.name for each in fields(cls))}, of which the question is needed.",
                fix="Give the question as SQL, and its price as epsilon.",
            )
        limits = request.get("limits")
        return cls(**{**request, "limits": None if limits is None else limits_of_json(limits)})


def limits_of_json(data: Mapping[str, Any]) -> Limits:
    """`Limits` from JSON; totals are numbers or decimal texts, as short as such numbers are.

    "1e60000000" is short, too, but a fraction of sixty million digits, over which everybody would wait.
    """
    try:
        totals = {name: _total(str(value)) for name, value in (data.get("totals") or {}).items()}
        return Limits(data.get("rows"), data.get("groups"), totals, data.get("units"), data.get("search"))
    except (AttributeError, TypeError, ValueError, ZeroDivisionError):
        raise InputError(
            "These are no limits.", why="They have rows, groups, totals, units, search.", fix="Give numbers for them."
        ) from None


def _total(text: str) -> Fraction:
    if not _TOTAL.fullmatch(text):
        raise ValueError
    return Fraction(text)


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
