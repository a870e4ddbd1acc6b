"""Writes down what mechanisms give during a release on made-up tables, and gives it again on a neighbour.

The mechanisms have no switch for this: while one call runs, their `release` is replaced from here, for the thread that
is busy with that call. Nobody else in the process is concerned: other threads get the real `release`, and this one can
do nothing else meanwhile, since what is run is one call and not a block that might wait for something (`run_taped`).
It is for tables that the fuzzer made up: `sides` and `lives` are the only callers, neither takes a home, and no server
loads them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.interface import Released
from dalenius.mechanisms.key_selection import KeySelection
from dalenius.mechanisms.laplace import Laplace

if TYPE_CHECKING:
    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.engine import Engine, Held
    from dalenius.measuring.plan import Plan

Mechanism = DiscreteGaussian | Laplace | KeySelection
_CLASSES = (DiscreteGaussian, Laplace, KeySelection)
_FOUND = 0.5  # of the keys that both sides have are on the transcript, whatever their noise says: each may be
_CROWDS = (0, 0, 0, 30, 10_000)
_PATCHED = threading.Lock()


class OtherTranscriptError(Exception):
    """On the neighbour another mechanism runs, or one on another number of integers; the text says which."""


@dataclass(frozen=True)
class Step:
    """One mechanism, with the integers that it got and what came out.

    Attributes:
        cells: The keys that the integers are the weights of, where keys are found.
        threshold: And from which noisy weight on one is found.
    """

    mechanism: Mechanism
    exact: tuple[int, ...]
    given: Any
    cells: tuple[Cell, ...] = ()
    threshold: int = 0


@dataclass
class Tape:
    """The steps of one release.

    Attributes:
        common: The keys that both neighbours have; only such are found.
        random: Decides which are.
        bold: Noise now and then comes out as large as it hardly ever does.
        earlier: What is given again; None: mechanisms run for real.
    """

    common: frozenset[Cell] = frozenset()
    random: Random = field(default_factory=lambda: Random(0))  # noqa: S311 (which transcript, no noise)
    bold: bool = False
    earlier: Sequence[Step] | None = None
    steps: list[Step] = field(default_factory=list)
    cells: tuple[Cell, ...] = ()

    def pass_through(self, mechanism: Mechanism, original: Callable[..., Any], value: Any, **named: Any) -> Any:
        """One call of `release`."""
        exact = tuple(int(each) for each in ([value] if isinstance(value, int) else value))
        step = Step(mechanism, exact, None)
        if isinstance(mechanism, KeySelection):
            step = replace(step, cells=self.cells, threshold=mechanism.sure(named.get("units", 0)))
        before = self._before(step)
        if isinstance(mechanism, KeySelection):
            keys = self._keys() if before is None else before.given
            given = keys
            found: Any = Released(tuple(at for at, cell in enumerate(self.cells) if cell in keys), mechanism.event)
        elif before is None:
            given = found = self._bump(original(mechanism, value, **named))
        else:
            given = found = before.given
        self.steps.append(replace(step, given=given))
        return found

    def _bump(self, found: Any) -> Any:
        """What came out, or with a crowd that is not there: all outputs are possible, and others take other ways."""
        if not self.bold or not isinstance(found.value, np.ndarray):
            return found
        bumps = self.random.choices(_CROWDS, k=found.value.size)
        return replace(found, value=found.value + np.array(bumps, dtype=np.int64).reshape(found.value.shape))

    def _keys(self) -> frozenset[Cell]:
        """Which keys are found: any set of them may be, since noise knows no bounds."""
        return frozenset(cell for cell in self.cells if cell in self.common and self.random.random() < _FOUND)

    def _before(self, step: Step) -> Step | None:
        """The same step on the first side."""
        if self.earlier is None:
            return None
        at = len(self.steps)
        if at >= len(self.earlier):
            raise OtherTranscriptError(f"step {at + 1} is one more than on the first side")
        before = self.earlier[at]
        if before.mechanism != step.mechanism or before.threshold != step.threshold:
            raise OtherTranscriptError(f"step {at + 1} is {step.mechanism}, and was {before.mechanism}")
        if not step.cells and not before.cells and len(before.exact) != len(step.exact):
            raise OtherTranscriptError(f"step {at + 1} has {len(step.exact)} integers, and had {len(before.exact)}")
        return before


class TapedEngine:
    """An engine that tells the tape which keys the weights are of; all else is the engine's."""

    def __init__(self, inner: Engine, tape: Tape) -> None:
        self._inner, self._tape = inner, tape

    def weights(
        self, plan: Plan, salt: str, *, seconds: float = 60.0, held: Held = None
    ) -> tuple[list[Cell], list[int]]:
        """As the engine's."""
        cells, weights = self._inner.weights(plan, salt, seconds=seconds, held=held)
        self._tape.cells = tuple(cells)
        return cells, weights

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def run_taped(tape: Tape, work: Callable[[], object]) -> None:
    """What mechanisms release in this call goes through the tape; those of other threads are as ever.

    Raises:
        TypeError: The work would go on after the call: a coroutine or a generator, between whose steps a thread serves
            others.
    """
    mine = threading.get_ident()

    def through(original: Callable[..., Any]) -> Callable[..., Any]:
        def release(self: Any, value: Any, **named: Any) -> Any:
            if threading.get_ident() != mine:
                return original(self, value, **named)
            return tape.pass_through(self, original, value, **named)

        return release

    with _PATCHED:
        originals = [(each, each.__dict__["release"]) for each in _CLASSES]
        try:
            for each, original in originals:
                setattr(each, "release", through(original))  # noqa: B010 (from outside)
            left = work()
        finally:
            for each, original in originals:
                setattr(each, "release", original)  # noqa: B010
    if left is not None:
        raise TypeError("What is taped ends with its call and gives nothing back.")
