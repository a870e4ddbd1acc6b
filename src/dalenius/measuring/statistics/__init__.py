"""Statistics: what aggregates are made of. One file each, with everything about it but its SQL.

A family (`family.Family`) says how its aggregates are asked, which measures they need and how much one unit can change
these, what the noisy measures say, and how noisy that will be. It is made of the measures that an engine knows
(`measures`), so that a new family needs no engine to learn anything; the passes over questions call its methods and
know no family by name.

A new aggregate is a file here with a `FAMILY`, and a line in `FUNCTIONS` for each SQL function that asks for it. The
table stands here, apart from the files, so that a question loads only the families that it asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dalenius.measuring.statistics.family import Family


class Function(NamedTuple):
    """An SQL function that is an aggregate: its family, its name there, and how many arguments it has."""

    family: str
    aggregate: str
    arguments: int = 1


FUNCTIONS: dict[str, Function] = {
    "SUM": Function("sum", "sum"),
    "AVG": Function("moments", "avg"),
    "VAR_SAMP": Function("moments", "var_samp"),
    "VAR_POP": Function("moments", "var_pop"),
    "STDDEV": Function("moments", "stddev_samp"),
    "STDDEV_SAMP": Function("moments", "stddev_samp"),
    "STDDEV_POP": Function("moments", "stddev_pop"),
    "MIN": Function("quantiles", "min"),
    "MAX": Function("quantiles", "max"),
    "COVAR_SAMP": Function("covariance", "covar_samp", 2),
    "COVAR_POP": Function("covariance", "covar_pop", 2),
    "CORR": Function("covariance", "corr", 2),
}
# Aggregates with a syntax of their own: COUNT(…), COUNT(DISTINCT …), PERCENTILE_CONT(…) WITHIN GROUP (…).
_SPECIAL = {"count": "rows", "units": "units", "distinct": "distinct", "quantile": "quantiles"}
_MADE: dict[str, Family] = {}


def family_of(name: str) -> Family:
    """The family of this name, which is the kind of its statistics."""
    if name not in _MADE:
        _MADE[name] = import_module(f"{__name__}.{name}").FAMILY
    return _MADE[name]


def family_for(aggregate: str) -> Family:
    """The family that gives an aggregate."""
    found = _SPECIAL.get(aggregate)
    return family_of(found or next(each.family for each in FUNCTIONS.values() if each.aggregate == aggregate))


def families() -> tuple[Family, ...]:
    """All of them, in the order in which people read about them."""
    names = ("rows", "units", "distinct", *(each.family for each in FUNCTIONS.values()))
    return tuple(map(family_of, dict.fromkeys(names)))


@contextmanager
def known(family: Family, functions: Mapping[str, Function]) -> Iterator[None]:
    """One more family for a while, for tests and for trying one out; its functions have names that SQL does not."""
    if family.name in _MADE or not FUNCTIONS.keys().isdisjoint(functions):
        raise ValueError(f"There is a family {family.name!r}, or one of its functions.")
    _MADE[family.name] = family
    FUNCTIONS.update(functions)
    try:
        yield
    finally:
        del _MADE[family.name]
        for name in functions:
            del FUNCTIONS[name]
