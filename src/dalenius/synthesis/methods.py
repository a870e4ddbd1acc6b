"""The generators by name, and which of them `auto` takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dalenius.errors import InputError
from dalenius.synthesis.effort import FULL, Count, Counted, Effort, Sizes, fitting, least_seconds

if TYPE_CHECKING:
    from dalenius.synthesis.measurer import Measurer
    from dalenius.synthesis.model import Model

AUTO = "auto"
_HELD, _STORED = 12, 28  # bytes of a cell of a tree's tables: until a pool is drawn, or with all that is stored of it


@dataclass(frozen=True)
class Method:
    """One generator.

    Attributes:
        name: As people type it.
        place: Its module and function.
        words: What it does, in a few.
        count: What it counts and rakes.
        takes_target: It can be told which column will be predicted.
        takes_effort: It can be told to do less.
    """

    name: str
    place: str
    words: str
    count: Count
    takes_target: bool = False
    takes_effort: bool = False

    @property
    def first(self) -> float:
        """The part of ρ that goes into tables of single columns."""
        weights: Sequence[float] = getattr(import_module(self.place.partition(":")[0]), "WEIGHTS", (1.0,))
        return weights[0] / sum(weights)

    def fit(self, measurer: Measurer, target: str | None, effort: Effort = FULL) -> Model:
        """Spends what the measurer has; everything else is post-processing, with ordinary randomness."""
        module, function = self.place.split(":")
        found = cast("Callable[..., Model]", getattr(import_module(module), function))
        more: dict[str, Any] = {"target": target} if self.takes_target else {}
        more |= {"effort": effort} if self.takes_effort else {}
        return found(measurer, np.random.default_rng(), **more)


def _pairs(columns: int) -> float:
    return columns * (columns - 1) / 2


def _histogram(columns: int, effort: Effort) -> Counted:  # noqa: ARG001
    return Counted(columns)


def _tree(columns: int, effort: Effort) -> Counted:  # noqa: ARG001
    return Counted(2 * columns + _pairs(columns), whole=_STORED)


def _marginals(columns: int, effort: Effort) -> Counted:  # noqa: ARG001
    tables = columns + _pairs(columns)
    return Counted(tables, raked=tables, level=16)


def _mst(columns: int, effort: Effort) -> Counted:  # noqa: ARG001
    return Counted(2 * columns + columns * _pairs(columns), whole=_STORED)


def _privbayes(columns: int, effort: Effort) -> Counted:  # noqa: ARG001
    """Each column that is left with each two that are drawn, and once more for every one drawn."""
    return Counted(2 * columns + columns * math.comb(columns, 3) / 2, level=16, cells=columns * 32**3)


def _adaptive(columns: int, effort: Effort) -> Counted:
    scored = len(effort.levels) * _pairs(columns)
    raked = 2 * columns + min(_pairs(columns), effort.pairs * columns)
    return Counted(raked + 2 * scored, scored, raked, max(effort.levels), _HELD)


_HOME = "dalenius.synthesis.generators"
METHODS = {
    each.name: each
    for each in (
        Method("histogram", f"{_HOME}.histogram:histogram", "each column by itself", _histogram),
        Method("tree", f"{_HOME}.tree:tree", "a tree of pairs of columns", _tree),
        Method("marginals", f"{_HOME}.marginals:marginals", "all pairs of columns", _marginals, takes_effort=True),
        Method("mst", f"{_HOME}.mst:mst", "MST: a tree, edge by edge", _mst),
        Method("privbayes", f"{_HOME}.privbayes:privbayes", "PrivBayes: a network of up to two parents", _privbayes),
        Method(
            "adaptive",
            f"{_HOME}.adaptive:adaptive",
            "a tree, and the pairs that it gets wrong",
            _adaptive,
            takes_target=True,
            takes_effort=True,
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


def chosen(name: str, sizes: Sizes, most: float | None) -> tuple[Method, Effort]:
    """The generator, and how much it does within so many seconds (`effort`); of `auto`, the best that fits."""
    methods = [METHODS[each] for each in BEST] if name == AUTO else [method_of(name)]
    for method in methods:
        effort = fitting(method.count, sizes, most)
        if effort is not None:
            return method, effort if method.takes_effort else FULL
    least = least_seconds([each.count for each in methods], sizes)
    raise InputError(
        f"In {most:g} s there is no synthetic table of {sizes.columns} columns.",
        why=f"It takes about {math.ceil(least)} s of work at least, as far as public sizes tell.",
        fix="Allow more time, choose fewer columns (--columns), or a faster method such as tree.",
    )
