"""The generators by name, and which of them `auto` takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

import numpy as np

from dalenius.errors import InputError

if TYPE_CHECKING:
    from dalenius.synthesis.measurer import Measurer
    from dalenius.synthesis.model import Model

AUTO = "auto"


@dataclass(frozen=True)
class Method:
    """One generator.

    Attributes:
        name: As people type it.
        place: Its module and function.
        words: What it does, in a few.
        seconds: For a million cells of all tables of two columns, on the machine of bench/RESULTS.md.
        tables: How many tables it counts, at most, by how many columns there are.
        takes_target: It can be told which column will be predicted.
    """

    name: str
    place: str
    words: str
    seconds: float
    tables: Callable[[int], float]
    takes_target: bool = False

    @property
    def first(self) -> float:
        """The part of ρ that goes into tables of single columns."""
        weights: Sequence[float] = getattr(import_module(self.place.partition(":")[0]), "WEIGHTS", (1.0,))
        return weights[0] / sum(weights)

    def fit(self, measurer: Measurer, target: str | None) -> Model:
        """Spends what the measurer has; everything else is post-processing, with ordinary randomness."""
        module, function = self.place.split(":")
        found = cast("Callable[..., Model]", getattr(import_module(module), function))
        more = {"target": target} if self.takes_target else {}
        return found(measurer, np.random.default_rng(), **more)


def _pairs(columns: int) -> float:
    return columns * (columns - 1) / 2


def _network(columns: int) -> float:
    """Of PrivBayes: each column that is left with each two that are drawn, and once more for every one drawn."""
    return columns + columns * math.comb(columns, 3) / 2


_HOME = "dalenius.synthesis.generators"
METHODS = {
    each.name: each
    for each in (
        Method("histogram", f"{_HOME}.histogram:histogram", "each column by itself", 0.1, float),
        Method("tree", f"{_HOME}.tree:tree", "a tree of pairs of columns", 0.5, lambda c: 4 * _pairs(c)),
        Method("marginals", f"{_HOME}.marginals:marginals", "all pairs of columns", 3.0, _pairs),
        Method("mst", f"{_HOME}.mst:mst", "MST: a tree, edge by edge", 0.5, lambda c: c * _pairs(c)),
        Method("privbayes", f"{_HOME}.privbayes:privbayes", "PrivBayes: a network of up to two parents", 1.0, _network),
        Method(
            "adaptive",
            f"{_HOME}.adaptive:adaptive",
            "a tree, and the pairs that it gets wrong",
            3.0,
            lambda c: 9 * _pairs(c),
            takes_target=True,
        ),
    )
}
BEST = ("adaptive", "tree")  # what `auto` takes, the best first


def method_of(name: str) -> Method:
    """The generator of a name; of `auto`, the best there is."""
    if name == AUTO:
        return METHODS[BEST[0]]
    if name not in METHODS:
        raise InputError(
            f"There is no method {name!r}.",
            why="A generator is known by its name.",
            fix=f"Take one of {', '.join((AUTO, *METHODS))}.",
        )
    return METHODS[name]
