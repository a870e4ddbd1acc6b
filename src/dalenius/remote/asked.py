"""A question as JSON, on its way to a server."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dalenius.accounting import parameters
from dalenius.errors import InputError

if TYPE_CHECKING:
    from dalenius.measuring.plan import Limits


def body_of(
    question: object,
    epsilon: float | None,
    error: float | Mapping[str, float] | None,
    confidence: float,
    delta: float | None,
    limits: Limits | None,
) -> dict[str, Any]:
    """A question as JSON; what is not given is left out. Numbers are checked here as they are at home."""
    if not isinstance(question, str):
        raise InputError("The question is not text.", why="It is one SELECT.", fix="Give it as a str.")
    body: dict[str, Any] = {"sql": question, "confidence": _number(confidence, "confidence")}
    if epsilon is not None:
        body["epsilon"] = parameters.epsilon(epsilon)
    if isinstance(error, Mapping):
        body["error"] = {str(name): _number(value, "error") for name, value in error.items()}
    elif error is not None:
        body["error"] = _number(error, "error")
    if delta is not None:
        body["delta"] = parameters.delta(delta)
    found = {} if limits is None else _limits(limits)
    return body | ({"limits": found} if found else {})


def _limits(limits: Limits) -> dict[str, Any]:
    given = {"rows": limits.rows, "groups": limits.groups, "units": limits.units}
    found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if limits.totals:
        found["totals"] = {name: _exact(total, name) for name, total in limits.totals.items()}
    if limits.search is not None:
        found["search"] = float(limits.search)
    return found


def _exact(total: Fraction, name: str) -> str | float:
    """A limit as JSON, without any loss: a number where a double is just that, else a decimal."""
    if total.denominator == 1:
        return int(total)
    if Fraction(float(total)) == total:
        return float(total)
    for digits in range(1, 31):
        if (total * 10**digits).denominator == 1:
            whole, rest = divmod(abs(total.numerator) * 10**digits // total.denominator, 10**digits)
            return f"{'-' if total < 0 else ''}{whole}.{rest:0{digits}}"
    raise InputError(
        f"The total of {name} has no decimal form.", why="It is sent as one, exactly.", fix="Give a decimal number."
    )


def _number(value: object, name: str) -> float:
    number = parameters.real(value, name)
    return number if isinstance(number, int) else float(number)


def quoted(name: object) -> str:
    """A name as one part of an address."""
    if not isinstance(name, str) or not name:
        raise InputError("The name is not a text.", why="It is part of an address.", fix="Give it as a str.")
    return quote(name, safe="")
