"""Learns the event that tells two sides apart best: sets of values of one feature.

One part of the samples decides in which order the values of a feature speak for one side, another which feature, which
cut and which side; what is found is then counted on samples that nobody has looked at (`bounding`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from dalenius.audit.lower_bounds.classifier import classify
from dalenius.audit.lower_bounds.confidence import epsilon_bound
from dalenius.audit.lower_bounds.features import Column, Feature, Outputs, features_of

_VALUES = 4096  # a feature with more values than that is cut into ranges
_RANGES = 400
_BETTER = 1.02  # by so much a set of values must tell more than a threshold, which people understand
_LIKELY = 30.0  # what is added to both counts: rare values say little


@dataclass(frozen=True)
class Bins:
    """A feature cut into values, or into ranges between edges; the last bin is for what is none of these, such as NaN.

    Attributes:
        edges: The values, in order; or the lower ends of the ranges.
        exact: Whether they are values.
    """

    edges: npt.NDArray[Any]
    exact: bool

    @classmethod
    def of(cls, column: Column) -> Bins:
        """Fit for such values."""
        known = column[column == column]  # noqa: PLR0124 (NaN is not itself)
        values = np.unique(known)
        if len(values) <= _VALUES:
            return cls(values, exact=True)
        return cls(np.unique(np.quantile(known, np.linspace(0, 1, _RANGES + 1), method="lower")), exact=False)

    @property
    def count(self) -> int:
        """How many there are, with the last."""
        return len(self.edges) + 1

    def places(self, column: Column) -> npt.NDArray[np.intp]:
        """The bin of each value."""
        if not len(self.edges):
            return np.zeros(len(column), dtype=np.intp)
        at = np.searchsorted(self.edges, column, side="right") - 1
        known = column == column  # noqa: PLR0124
        inside = known & (at >= 0)
        if self.exact:
            inside &= self.edges[np.maximum(at, 0)] == column
        else:
            at = np.maximum(at, 0)  # below the least value that was seen: as that
            inside = known
        return np.where(inside, at, len(self.edges))


@dataclass(frozen=True)
class DistinguishingEvent:
    """Outputs whose feature lies in some bins, likelier on one side.

    Attributes:
        feature: What is looked at.
        bins: How it is cut.
        order: The bins, those that speak most for ``likelier`` first.
        taken: So many of them make the event.
        likelier: 0: on the first side; 1: on the second.
    """

    feature: Feature
    bins: Bins
    order: npt.NDArray[np.intp]
    taken: int
    likelier: int

    def counts(self, outputs: Outputs) -> npt.NDArray[np.int64]:
        """How many outputs lie in each bin, in the event's order."""
        places = self.bins.places(self.feature.of(outputs))
        return np.bincount(places, minlength=self.bins.count)[self.order]

    def hits(self, outputs: Outputs) -> int:
        """How many outputs are in the event."""
        return int(self.counts(outputs)[: self.taken].sum())

    @property
    def words(self) -> str:
        """For people; what it says of an output is a number of its, never one of the inputs."""
        last, chosen = len(self.bins.edges), sorted(self.order[: self.taken].tolist())
        chosen = [at for at in chosen if at < last]  # what was never seen while learning needs no words
        ends = [self.bins.edges[at] for at in chosen]
        if not ends:
            return f"{self.feature.name} is none that is usual"
        run = chosen == list(range(chosen[0], chosen[-1] + 1))
        numbers = self.feature.name != "the whole output"
        if numbers and run and chosen[-1] == last - 1 and chosen[0]:
            return f"{self.feature.name} ≥ {ends[0]:.6g}"
        if numbers and run and chosen[0] == 0 and chosen[-1] < last - 1:
            above = self.bins.edges[chosen[-1] + 1]
            return f"{self.feature.name} ≤ {ends[-1]:.6g}" if self.bins.exact else f"{self.feature.name} < {above:.6g}"
        if numbers and len(ends) == 1 and self.bins.exact:
            return f"{self.feature.name} is {ends[0]:.6g}"
        return f"{self.feature.name} is one of {len(chosen)} of {last} {'values' if self.bins.exact else 'ranges'}"


@dataclass(frozen=True)
class _Learned:
    gain: float
    event: DistinguishingEvent


def learn_events(
    first: Outputs, second: Outputs, claimed: dict[float, float], *, alpha: float
) -> dict[float, DistinguishingEvent]:
    """For each δ the event with the largest ε̂; ``claimed`` has the ε to beat at each, which decides nothing here."""
    half = len(first) // 2
    columns = features_of(first[:half])
    if first.ndim > 1 or first.dtype.kind == "f":
        columns.append(classify(first[:half], second[:half]))
    best: dict[float, _Learned] = {}
    for feature in columns:
        ones, others = feature.of(first), feature.of(second)
        bins = Bins.of(np.concatenate([ones[:half], others[:half]]))
        if bins.count <= 2:
            continue
        counts = [
            [np.bincount(bins.places(part), minlength=bins.count) for part in (column[:half], column[half:])]
            for column in (ones, others)
        ]
        orders = _orders(counts[0][0], counts[1][0])
        for likelier in (0, 1):
            for plain, order in enumerate(orders if likelier == 0 else [each[::-1] for each in orders]):
                better = 1.0 if plain < 2 else _BETTER
                here, there = counts[likelier][1][order].cumsum(), counts[1 - likelier][1][order].cumsum()
                for delta in claimed:
                    at = _likely_best(here, there, len(first) - half, delta=delta, alpha=alpha)
                    gain = float(epsilon_bound(here[at], there[at], len(first) - half, delta=delta, alpha=alpha))
                    if delta not in best or gain > better * best[delta].gain:
                        best[delta] = _Learned(gain, DistinguishingEvent(feature, bins, order, at + 1, likelier))
    return {delta: each.event for delta, each in best.items()}


def _likely_best(
    hits: npt.NDArray[np.int64], others: npt.NDArray[np.int64], trials: int, *, delta: float, alpha: float
) -> int:
    """Where the bound is largest, by Wilson's intervals: exact ones for thousands of cuts would take seconds."""
    z = float(special.ndtri(1 - alpha / 2)) / math.sqrt(trials)
    low, high = (
        (rate + z * z / 2 + sign * z * np.sqrt(rate * (1 - rate) + z * z / 4)) / (1 + z * z)
        for rate, sign in ((hits / trials, -1), (others / trials, 1))
    )
    return int(((low - delta) / high).argmax())


def _orders(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> list[npt.NDArray[np.intp]]:
    """From below, from above, and by how much likelier each bin is on the first side."""
    rising = np.arange(len(first))
    total = _LIKELY / len(first)
    return [rising, rising[::-1], np.argsort(-(first + total) / (second + total), kind="stable")]
