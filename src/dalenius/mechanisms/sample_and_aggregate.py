"""Sample and aggregate (SPEC M8): any function, run on blocks of units, its results aggregated privately."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from dalenius.accounting import events
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms.exponential import Exponential
from dalenius.mechanisms.interface import Released, count, settle, size, whole
from dalenius.mechanisms.quantile import Quantile

if TYPE_CHECKING:
    from dalenius.accounting.parameters import Real

U = TypeVar("U", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True)
class SampleAndAggregate:
    """Splits units into blocks, runs a function on each, releases a private median of the results.

    Guarantee:
        That of `Exponential` at ε: ε-DP, ρ = ε²/8, for every function. A unit is in one block, so adding or
        removing it changes one of the block results; a unit exchanged for another may change two. The
        median's score −max(#below, #above) moves by at most 1 per changed result.

    Assumes:
        ``block_of`` looks at a unit's name alone (say, a keyed hash), never at other units or at data. The
        number of blocks and the grid {low, …, high} are public. The function is deterministic or draws its
        own randomness, and touches nothing but its block.

    References:
        Nissim, Raskhodnikova & Smith (2007), §4; Dwork & Roth (2014), §7.2. Aggregated here by the
        exponential mechanism (Smith 2011) rather than by smooth sensitivity, hence pure ε.

    >>> ages = {name: 20 + name % 60 for name in range(5000)}
    >>> mechanism = SampleAndAggregate(epsilon=1, blocks=100, low=0, high=120)
    >>> middle = lambda block: sorted(block)[len(block) // 2]
    >>> 30 < mechanism.release(ages, middle, block_of=lambda name: name % 100).value < 70
    True
    """

    epsilon: Real
    blocks: int
    low: int
    high: int
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        settle(
            self,
            blocks=size(count(self.blocks, "blocks"), "blocks"),
            low=whole(self.low, "low"),
            high=whole(self.high, "high"),
            neighbors=Neighbors.of(self.neighbors),
        )
        self.aggregator, self.selection  # noqa: B018 — they check the rest

    @cached_property
    def aggregator(self) -> Quantile:
        """The median of block results, one of which may be exchanged."""
        return Quantile(self.epsilon, self.low, self.high, neighbors=Neighbors.SUBSTITUTE)

    @cached_property
    def selection(self) -> Exponential:
        """The exponential mechanism over the grid, for what one *unit* can do to the block results."""
        changed = 1 if self.neighbors is Neighbors.ADD_REMOVE else 2
        return Exponential(self.epsilon, changed * self.aggregator.selection.sensitivity, neighbors=self.neighbors)

    @property
    def event(self) -> events.Exponential:
        """What a release does, known before it."""
        return self.selection.event

    def release(
        self,
        units: Mapping[U, T],
        function: Callable[[list[T]], int],
        block_of: Callable[[U], int],
    ) -> Released[int]:
        """The private median of ``function`` over the blocks.

        Units come as a mapping, so that each is in one block by construction. A result that is not an
        integer, and a function that fails, count as ``low``: an error would show what the data is.
        """
        parts: list[list[T]] = [[] for _ in range(self.blocks)]
        for name, data in units.items():
            parts[self._block(block_of(name))].append(data)
        results = [self._result(function, part) for part in parts]
        chosen = self.selection.release(self.aggregator.scores(results))
        return Released(self.low + chosen.value, self.event)

    def utility(self, t: float) -> float:
        """Ranks between the release and the median of the block results, but for probability e^(−t)."""
        return self.selection.utility(self.high - self.low + 1, t)

    def _block(self, number: int) -> int:
        block = whole(number, "block_of")
        if not 0 <= block < self.blocks:
            raise InputError(
                "block_of gave a block that does not exist.",
                why="Blocks are numbered from 0 to blocks − 1.",
                fix="Take a keyed hash of the unit's name modulo the number of blocks.",
            )
        return block

    def _result(self, function: Callable[[list[T]], int], part: list[T]) -> int:
        try:
            return min(max(whole(function(part), "result"), self.low), self.high)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 — SystemExit too: whatever a stranger's function does, it must not show
            return self.low
