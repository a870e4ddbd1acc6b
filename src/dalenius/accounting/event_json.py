"""Events as JSON, as the ledger and receipts hold them: versioned, and the round trip is exact.

Ints and floats are JSON numbers (a float's shortest form reads back as the same float), Fractions are "3/7".
"""

from __future__ import annotations

import re
from dataclasses import fields
from fractions import Fraction
from typing import Any

from dalenius.accounting.events import (
    Approx,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    Parallel,
    PoissonSampled,
    Pure,
    RandomizedResponse,
    Repeated,
    SampledGaussian,
    SampledWithoutReplacement,
    Zcdp,
)
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError

VERSION = 1

# The name of a kind is a promise to every ledger ever written: never rename, only add.
KINDS: dict[str, type[Any]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "discrete-gaussian": DiscreteGaussian,
    "discrete-laplace": DiscreteLaplace,
    "exponential": Exponential,
    "noisy-max": NoisyMax,
    "randomized-response": RandomizedResponse,
    "pure": Pure,
    "approx": Approx,
    "zcdp": Zcdp,
    "poisson-sampled": PoissonSampled,
    "sampled": SampledGaussian,
    "sampled-without-replacement": SampledWithoutReplacement,
    "repeated": Repeated,
    "composed": Composed,
    "parallel": Parallel,
}
_NAMES = {kind: name for name, kind in KINDS.items()}
_FRACTION = re.compile(r"-?\d+/\d+")


def to_json(event: Event) -> dict[str, Any]:
    """An event as plain JSON data.

    >>> to_json(Laplace(Fraction(1, 3)))["event"]
    {'kind': 'laplace', 'noise_multiplier': '1/3'}
    """
    return {"version": VERSION, "neighbors": event.neighbors.value, "event": _write(event)}


def from_json(data: object) -> Event:
    """The event that `to_json` wrote.

    >>> from_json(to_json(Repeated(Gaussian(30.5), 3)))
    Repeated(event=Gaussian(noise_multiplier=30.5, neighbors=<Neighbors.ADD_REMOVE: 'add-remove'>), times=3)
    """
    if not isinstance(data, dict) or set(data) != {"version", "neighbors", "event"}:
        raise _malformed('It needs exactly "version", "neighbors" and "event".')
    if data["version"] != VERSION or isinstance(data["version"], bool):
        raise InputError(
            f"Events of version {data['version']!r} are not known here.",
            why=f"This release reads version {VERSION}.",
            fix="Upgrade dalenius.",
        )
    return _read(data["event"], Neighbors.of(data["neighbors"]))


def _write(event: Event) -> dict[str, Any]:
    written: dict[str, Any] = {"kind": _NAMES[type(event)]}
    for parameter in fields(event):
        value = getattr(event, parameter.name)
        if parameter.name == "neighbors":
            continue  # one relation for the whole tree, at the top
        if isinstance(value, tuple):
            written[parameter.name] = [_write(part) for part in value]
        elif isinstance(value, Fraction):
            written[parameter.name] = f"{value.numerator}/{value.denominator}"
        elif isinstance(value, int | float):
            written[parameter.name] = value
        else:
            written[parameter.name] = _write(value)
    return written


def _read(data: object, neighbors: Neighbors) -> Event:
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str) or data["kind"] not in KINDS:
        raise _malformed(f"An event has a kind out of: {', '.join(KINDS)}.")
    kind = KINDS[data["kind"]]
    known = {parameter.name for parameter in fields(kind)}
    values = {name: _value(name, value, neighbors) for name, value in data.items() if name != "kind"}
    if "neighbors" in values or set(values) - known:
        raise _malformed(f"{data['kind']} takes {', '.join(sorted(known - {'neighbors'}))}.")
    if "neighbors" in known:
        values["neighbors"] = neighbors
    try:
        event: Event = kind(**values)
    except TypeError:
        raise _malformed(f"{data['kind']} needs {', '.join(sorted(known - {'neighbors'}))}.") from None
    return event


def _value(name: str, value: object, neighbors: Neighbors) -> object:
    if name == "event":
        return _read(value, neighbors)
    if name == "events":
        if not isinstance(value, list):
            raise _malformed("events is a list.")
        return tuple(_read(part, neighbors) for part in value)
    if isinstance(value, str) and len(value) < 4000 and _FRACTION.fullmatch(value) and int(value.split("/")[1]) != 0:
        return Fraction(value)
    return value


def _malformed(why: str) -> InputError:
    return InputError("This is not an event.", why=why, fix="Write events with to_json.")
