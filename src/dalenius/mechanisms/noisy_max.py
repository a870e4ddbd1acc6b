"""Report noisy max (SPEC M6, erratum 17): with exponential noise for one, with Gumbel noise for the top k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from dalenius.accounting import events
from dalenius.mechanisms import noise
from dalenius.mechanisms.exponential import ScoreMechanism
from dalenius.mechanisms.interface import Released, count, settle, vector


@dataclass(frozen=True)
class NoisyMax(ScoreMechanism):
    """Adds exponential noise of mean 2Δ/ε to every score and releases the index of the largest.

    Sampled as permute-and-flip, which has the same law and stays exact on integer scores: in a random
    order, each candidate is taken with probability exp(−ε(q* − q)/2Δ), the first one taken wins.

    Guarantee:
        ε-DP; with ``monotonic`` scores the noise has mean Δ/ε. The loss has no range ε (erratum 17), so ρ =
        ε²/2. Never chooses a worse candidate on average than `Exponential` at the same ε.

    Assumes:
        ``sensitivity`` bounds |q(y, D) − q(y, D′)| for every y and all neighbours. The candidates are public.

    References:
        McKenna & Sheldon, Permute-and-flip (2020): privacy and utility. Ding, Kifer, Saghaian, Steinke, Wang,
        Xiao & Zhang (2021): it is report noisy max with exponential noise.

    >>> NoisyMax(epsilon=1).release([3, 4000, 7]).value
    1
    """

    @cached_property
    def event(self) -> events.NoisyMax:
        """What a release does, known before it."""
        return events.NoisyMax(self.epsilon, self.neighbors)

    def release(self, scores: object) -> Released[int]:
        """The index of the candidate chosen."""
        return Released(noise.permute_and_flip(vector(scores, "scores"), self.rate), self.event)


@dataclass(frozen=True)
class TopK(ScoreMechanism):
    """Adds Gumbel noise of scale 2Δ/ε to every score once and releases the indices of the k largest.

    The best comes first. Sampled by peeling: k draws of the exponential mechanism at ε, each without the
    candidates already chosen, which is the same law. ``epsilon`` is that of one draw.

    Guarantee:
        k runs of the exponential mechanism at ε: kε-DP, ρ = k·ε²/8.

    Assumes:
        As for `Exponential`; k is public and at most the number of candidates.

    References:
        Durfee & Rogers (2019), Lemma 4.2: one-shot Gumbel is peeling. Erratum 17.

    >>> TopK(epsilon=1, k=2).release([3, 9000, 7, 4000]).value
    (1, 3)
    """

    k: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, k=count(self.k, "k"))

    @cached_property
    def event(self) -> events.Repeated:
        """What a release does, known before it."""
        return events.Repeated(events.Exponential(self.epsilon, self.neighbors), self.k)

    def release(self, scores: object) -> Released[tuple[int, ...]]:
        """The indices of the k candidates chosen, best first."""
        exact = vector(scores, "scores", least=self.k)
        chosen = noise.exponential_top_k(exact, self.rate, self.k)
        return Released(tuple(int(index) for index in chosen), self.event)

    def utility(self, candidates: int, t: float) -> float:
        """(ln|Y| + ln k + t)/rate: the loss of each against the best left, but for probability e^(−t)."""
        return super().utility(candidates, t + math.log(self.k))
