"""The same release again and again: every run goes the way of a real one, from exact integers to stored bytes.

What the engine reads is kept between runs, because the files do not change; noise, keys and limits are drawn anew each
time by `answering.measure_plan`, which has no way to leave noise out. The bytes are looked at here and thrown away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dalenius.measuring._exact import exact
from dalenius.measuring.limits.in_question import totals_plan
from dalenius.mechanisms.laws import DiscreteGaussianLaw
from dalenius.queries.answering import measure_plan, read_measure

if TYPE_CHECKING:
    from dalenius.audit.lower_bounds.features import Outputs
    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Plan
    from dalenius.queries.rules.price import Priced

T = TypeVar("T")
_VALUES = 8  # integers that are looked at one by one, of those that differ most
_KEYS = 12  # and keys, where they are found
_KEPT = 4096  # readings


class Remembering:
    """An engine that reads the same thing once."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self._known: dict[Any, Any] = {}
        self._last: dict[str, tuple[Plan, Any]] = {}  # nearly always it is the very plan of the run before

    def measure(self, plan: Plan, salt: str, *, seconds: float = 60.0, held: Any = None) -> list[list[int]]:
        """As `Engine.measure`."""
        return self._once("measure", plan, lambda: self._inner.measure(plan, salt, seconds=seconds, held=held))

    def lengths(self, plan: Plan, salt: str, *, seconds: float = 60.0) -> list[list[int]]:
        """As `Engine.lengths`."""
        return self._once("lengths", plan, lambda: self._inner.lengths(plan, salt, seconds=seconds))

    def hold(self, plan: Plan, salt: str, *, seconds: float = 60.0) -> None:  # noqa: ARG002
        """Nothing: what is read is kept here."""
        return

    def weights(
        self, plan: Plan, salt: str, *, seconds: float = 60.0, held: Any = None
    ) -> tuple[list[Cell], list[int]]:
        """As `Engine.weights`."""
        return self._once("weights", plan, lambda: self._inner.weights(plan, salt, seconds=seconds, held=held))

    def _once(self, look: str, plan: Plan, read: Callable[[], T]) -> T:
        if look in self._last and self._last[look][0] is plan:
            known: T = self._last[look][1]
            return known
        key = (look, plan.canonical(), plan.cells, plan.norm, repr(plan.measures))
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = read()
        found: T = self._known[key]
        self._last[look] = (plan, found)
        return found


class Samples:
    """Outputs of a question on two neighbouring tables, as numbers.

    Where all groups and limits are public, the first number is the likelihood ratio's own statistic, Σ⟨y, v − v′⟩/σ²
    (for Laplace noise the integers that differ tell as much). Then come the integers that differ most; or, where keys
    are found, which of them are there.
    """

    def __init__(self, plan: Plan, priced: Priced, sides: Sequence[Engine], salt: str, seconds: float) -> None:
        self._plan, self._priced, self._salt, self._seconds = plan, priced, salt, seconds
        self._sides: list[Any] = [Remembering(each) for each in sides]
        self._fixed = plan.selection is None and not plan.searched and totals_plan(plan) is None
        self._keys = [] if plan.selection is None else self._moved_keys()
        self._apart = self._moved() if plan.selection is None else []

    @property
    def distance(self) -> float:
        """How far the sides are apart, in parts of what the plan allows: which unit is looked at."""
        if self._plan.selection is not None:
            here, there = (dict(zip(*each.weights(self._plan, self._salt), strict=True)) for each in self._sides)
            return float(sum((here.get(key, 0) - there.get(key, 0)) ** 2 for key in here.keys() | there.keys()))
        lengths = (
            sum(each * each if self._plan.norm == "l2" else abs(each) for each in vector) / measure.sensitivity
            for vector, measure in zip(self._apart, self._plan.measures, strict=True)
        )
        return sum(lengths)

    def draw(self, side: int, size: int) -> Outputs:
        """So many runs on one side."""
        run = partial(measure_plan, self._plan, self._priced, self._sides[side], self._salt, self._seconds)
        return np.array([self._look(run()) for _ in range(size)], dtype=np.float64)

    def _moved(self) -> list[list[int]]:
        here, there = (exact(self._plan, each, self._salt, seconds=self._seconds) for each in self._sides)
        return [[a - b for a, b in zip(one, other, strict=True)] for one, other in zip(here, there, strict=True)]

    def _moved_keys(self) -> list[Cell]:
        here, there = (dict(zip(*each.weights(self._plan, self._salt), strict=True)) for each in self._sides)
        by_move = sorted(here.keys() | there.keys(), key=lambda key: -abs(here.get(key, 0) - there.get(key, 0)))
        return by_move[:_KEYS]

    def _look(self, content: bytes) -> list[float]:
        data = json.loads(content)
        if self._plan.selection is not None:
            found = {json.dumps(cell) for cell in data["cells"]}
            return [float(json.dumps(_plain(key)) in found) for key in self._keys]
        columns = [read_measure(each) for each in data["measures"]]
        clips = [float(each["clip"]) for each in data.get("limits", ())]
        picked = [float(columns[measure][1][at]) for measure, at in self._picked]
        if not self._fixed:
            return [*clips, *picked]
        score = sum(
            float(np.dot(np.array(values, dtype=np.float64), apart)) / _spread(law)
            for (law, values), apart in zip(columns, self._apart, strict=True)
        )
        return [score, *picked]

    @cached_property
    def _picked(self) -> list[tuple[int, int]]:
        every = [(abs(each), number, at) for number, one in enumerate(self._apart) for at, each in enumerate(one)]
        return [(number, at) for _, number, at in sorted(every, key=lambda each: -each[0])[:_VALUES]]


def _spread(law: Any) -> float:
    return float(law.variance) if isinstance(law, DiscreteGaussianLaw) else float(law.scale) ** 2


def _plain(key: Sequence[Any]) -> list[Any]:
    return [each.isoformat() if hasattr(each, "isoformat") else each for each in key]
