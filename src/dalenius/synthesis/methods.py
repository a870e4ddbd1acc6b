"""The generators by name, and which of them `auto` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

from dalenius.errors import InputError

if TYPE_CHECKING:
    from dalenius.synthesis.measurer import Measurer
    from dalenius.synthesis.stored import Model

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
    """

    name: str
    place: str
    words: str
    seconds: float
    passes: int

    def fit(self, measurer: Measurer) -> Model:
        """Spends what the measurer has; everything else is post-processing."""
        module, function = self.place.split(":")
        return cast("Callable[[Measurer], Model]", getattr(import_module(module), function))(measurer)


METHODS = {
    each.name: each
    for each in (
        Method("tree", "dalenius.synthesis.generators.tree:tree", "a tree of pairs of columns", seconds=0.5, passes=4),
    )
}
BEST = ("tree",)  # what `auto` takes, the best first


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
