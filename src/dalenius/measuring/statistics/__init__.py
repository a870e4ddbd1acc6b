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


class AggregateFunction(NamedTuple):
    """An SQL function that is an aggregate: its family, its name there, and how many arguments it has."""

    family: str
    aggregate: str
    arguments: int = 1


FUNCTIONS: dict[str, AggregateFunction] = {
    "SUM": AggregateFunction("sum", "sum"),
    "AVG": AggregateFunction("moments", "avg"),
    "VAR_SAMP": AggregateFunction("moments", "var_samp"),
    "VAR_POP": AggregateFunction("moments", "var_pop"),
    "STDDEV": AggregateFunction("moments", "stddev_samp"),
    "STDDEV_SAMP": AggregateFunction("moments", "stddev_samp"),
    "STDDEV_POP": AggregateFunction("moments", "stddev_pop"),
    "SKEWNESS": AggregateFunction("shape", "skewness"),
    "SKEW": AggregateFunction("shape", "skewness"),
    "KURTOSIS": AggregateFunction("shape", "kurtosis"),
    "KURTOSIS_POP": AggregateFunction("shape", "kurtosis_pop"),
    "MODE": AggregateFunction("mode", "mode"),
    "MIN": AggregateFunction("quantiles", "min"),
    "MAX": AggregateFunction("quantiles", "max"),
    "COVAR_SAMP": AggregateFunction("covariance", "covar_samp", 2),
    "COVAR_POP": AggregateFunction("covariance", "covar_pop", 2),
    "CORR": AggregateFunction("covariance", "corr", 2),
}
# Aggregates with a syntax of their own: COUNT(…), COUNT(DISTINCT …), PERCENTILE_CONT(…) WITHIN GROUP (…).
# SUM(DISTINCT …) is SUM, and so on, to the parser, so that it has no name in the table.
_SPECIAL = {
    "count": "rows",
    "units": "units",
    "distinct": "distinct",
    "sum_distinct": "distinct_sum",
    "avg_distinct": "distinct_average",
    "quantile": "quantiles",
}
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


def said(aggregate: str) -> str:
    """An aggregate in words that people type: SUM, SUM(DISTINCT x)."""
    return family_for(aggregate).asked[aggregate].written.replace("({})", "").replace("{}", "x")


def families() -> tuple[Family, ...]:
    """All of them, in the order in which people read about them."""
    names = (
        "rows",
        "units",
        "distinct",
        "distinct_sum",
        "distinct_average",
        *(each.family for each in FUNCTIONS.values()),
    )
    return tuple(map(family_of, dict.fromkeys(names)))


@contextmanager
def known(family: Family, functions: Mapping[str, AggregateFunction]) -> Iterator[None]:
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
