"""A lower bound on ε: sample two sides, learn an event on half of the samples, count it on the other half."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dalenius.accounting import parameters
from dalenius.audit.lower_bounds.claims import Claim, broken
from dalenius.audit.lower_bounds.confidence import Floats, clopper_pearson, epsilon_bound
from dalenius.audit.lower_bounds.features import Outputs
from dalenius.audit.lower_bounds.learning import DistinguishingEvent, learn_events
from dalenius.errors import InputError

Draw = Callable[[int, int], Outputs]  # side 0 or 1, how many → outputs
FEWEST, MOST = 1_000, 10_000_000
_CHUNK = 50_000
_POINTS = 60


@dataclass(frozen=True)
class Bound:
    """One event, counted on fresh samples.

    Attributes:
        delta: At this δ.
        claimed: The ε that is claimed there.
        epsilon: ε̂, which the real ε is above with the stated confidence.
        event: What was counted, in words.
        rates: Its intervals on the side where it is likelier, and on the other.
    """

    delta: float
    claimed: float
    epsilon: float
    event: str
    rates: tuple[tuple[float, float], tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "delta": self.delta,
            "claimed": self.claimed,
            "epsilon": self.epsilon,
            "event": self.event,
            "rates": [list(each) for each in self.rates],
        }


@dataclass(frozen=True)
class LowerBound:
    """What an audit found.

    Attributes:
        claim: What is promised.
        bounds: At the δ of the claim first, then where else the claim might be broken.
        samples: Runs on each of the two sides, half of which were learned from.
        confidence: That all bounds hold.
        points: Type I and type II errors of tests on the fresh samples, for the trade-off plot.
        seconds: How long it took.
    """

    claim: Claim
    bounds: tuple[Bound, ...]
    samples: int
    confidence: float
    points: tuple[tuple[float, float], ...]
    seconds: float

    @property
    def main(self) -> Bound:
        """That at the δ of the claim."""
        return self.bounds[0]

    @cached_property
    def worst(self) -> Bound:
        """The one to show: the main one, unless only another breaks the claim."""
        others = [each for each in self.bounds if broken([(each.epsilon, each.claimed)])]
        return self.main if not others or self.main in others else others[0]

    @property
    def broken(self) -> bool:
        """Whether the claim is false, with the stated confidence."""
        return broken([(each.epsilon, each.claimed) for each in self.bounds])

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "claim": self.claim.words,
            "epsilon": self.main.epsilon,
            "claimed": self.main.claimed,
            "delta": self.main.delta,
            "broken": self.broken,
            "bounds": [each.to_dict() for each in self.bounds],
            "samples": self.samples,
            "confidence": self.confidence,
            "seconds": round(self.seconds, 3),
        }


def lower_bound(
    draw: Draw,
    claim: Claim,
    *,
    samples: int = 1_000_000,
    confidence: float = 0.999,
    delta: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LowerBound:
    """Samples both sides and returns what they show.

    Guarantee:
        If the outputs of the two sides are (ε, δ)-close for the claimed ε at every δ looked at, `broken` is true with
        probability at most 1 − confidence: events are chosen from other samples than they are counted on, and the
        chance of error is shared among them (Bonferroni).

    Args:
        draw: ``draw(side, n)`` runs n times, independently, on one of two neighbouring inputs.
        claim: What is promised.
        samples: Runs on each side.
        confidence: Of all bounds together.
        delta: Look at this δ alone.
        progress: Called with the runs done, of how many.
    """
    check_sampling(samples, confidence)
    began = time.monotonic()
    deltas = (claim.base_delta, *claim.deltas) if delta is None else (parameters.delta(delta),)
    claimed = {each: claim.epsilon(each) for each in deltas}
    done = 0

    def sample(number: int) -> list[Outputs]:
        nonlocal done
        sides = []
        for side in (0, 1):
            parts = []
            for start in range(0, number, _CHUNK):
                parts.append(np.asarray(draw(side, min(_CHUNK, number - start))))
                done += len(parts[-1])
                if progress is not None:
                    progress(done, 2 * samples)
            sides.append(np.concatenate(parts))
        return sides

    learned, fresh = samples // 2, samples - samples // 2
    alpha = 1 - confidence
    first, second = sample(learned)
    events = learn_events(first, second, claimed, alpha=alpha)
    chosen = _choose(events, claimed, first, second, alpha) if events else []
    sides = sample(fresh)
    found = [_count(events[each], sides, each, claimed[each], alpha / len(chosen)) for each in chosen]
    if not found:
        found = [Bound(deltas[0], claimed[deltas[0]], 0.0, "none: both sides give the same", ((0, 1), (0, 1)))]
    points = _points(events[chosen[0]], sides) if chosen else ()
    return LowerBound(claim, tuple(found), samples, confidence, points, time.monotonic() - began)


def check_sampling(samples: int, confidence: float) -> None:
    """Refuses what gives no bound."""
    if not FEWEST <= samples <= MOST:
        raise InputError(
            f"An audit takes between {FEWEST:,} and {MOST:,} samples.",
            why="Fewer show nothing, more do not fit into memory.",
            fix="Give --samples 1000000.",
        )
    if not (math.isfinite(confidence) and 0.5 <= confidence < 1 and 1 - confidence >= 1e-12):
        raise InputError(
            "The confidence must lie between 0.5 and 1 − 1e-12.", why="It is a chance.", fix="Give --confidence 0.999."
        )


def _choose(
    events: dict[float, DistinguishingEvent],
    claimed: dict[float, float],
    first: Outputs,
    second: Outputs,
    alpha: float,
) -> list[float]:
    """The δ of the claim, and the other one where the samples that were learned from come nearest to breaking it."""

    def margin(delta: float) -> float:
        found = _count(events[delta], [first, second], delta, claimed[delta], alpha).epsilon
        return found - claimed[delta] if found else -math.inf

    base, *others = events
    nearest = max(others, key=margin, default=base)
    return [base] if nearest == base or margin(nearest) == -math.inf else [base, nearest]


def _count(event: DistinguishingEvent, sides: list[Outputs], delta: float, claimed: float, alpha: float) -> Bound:
    here, there = (sides[event.likelier], sides[1 - event.likelier])
    hits, others, trials = event.hits(here), event.hits(there), len(here)
    ends = [tuple(float(end) for end in clopper_pearson(each, trials, alpha)) for each in (hits, others)]
    epsilon = float(epsilon_bound(hits, others, trials, delta=delta, alpha=alpha))
    return Bound(delta, claimed, epsilon, event.words, ((ends[0][0], ends[0][1]), (ends[1][0], ends[1][1])))


def _points(event: DistinguishingEvent, sides: list[Outputs]) -> tuple[tuple[float, float], ...]:
    """Errors of the tests "it is one of the first k bins": how often on the wrong side, how often not on the right."""
    here, there = (event.counts(sides[at]).cumsum() for at in (event.likelier, 1 - event.likelier))
    places = np.unique(np.linspace(0, len(here) - 1, _POINTS).astype(int))
    wrong: Floats = there[places] / len(sides[0])
    missed: Floats = 1 - here[places] / len(sides[0])
    return tuple(zip(wrong.tolist(), missed.tolist(), strict=True))
