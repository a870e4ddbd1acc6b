"""The generators by name, and which of them `auto` takes."""

from __future__ import annotations

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
        passes: How many tables of a pair of columns it counts, at most.
        takes_target: It can be told which column will be predicted.
    """

    name: str
    place: str
    words: str
    seconds: float
    passes: int
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


METHODS = {
    each.name: each
    for each in (
        Method(
            "histogram",
            "dalenius.synthesis.generators.histogram:histogram",
            "each column by itself",
            seconds=0.1,
            passes=0,
        ),
        Method("tree", "dalenius.synthesis.generators.tree:tree", "a tree of pairs of columns", seconds=0.5, passes=4),
        Method(
            "adaptive",
            "dalenius.synthesis.generators.adaptive:adaptive",
            "a tree, and the pairs that it gets wrong",
            seconds=3.0,
            passes=9,
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
