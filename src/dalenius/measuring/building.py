"""What statistics are built with: the measures that several of them have, under the limits of one question.

A builder says what one unit may add (`row_limit`), between which integers a value lies (`whole_range`), and how fine it
is read (`step`). Every measure that it gives has its clip, and the sensitivity that follows from it (`measures`). All
of that is public: nothing here has seen a row.

*Sharing the price of a ratio*, so that the average, or the variance, gets the least noise. The mean is s/n with
s = Σ(x − c), n = Σ1. To first order its noise has variance (σs² + μ²σn²)/n², where μ is the mean less the centre. The
variance q/n − μ² has (σq² + 4μ²σs² + (μ² − V)²σn²)/n². With σ² = Δ²/2ρᵢ (Gaussian) the sum Σ aᵢ/ρᵢ is least for
ρᵢ ∝ √aᵢ; with scale Δ/εᵢ (Laplace) Σ aᵢ/εᵢ² is least for εᵢ ∝ aᵢ^⅓. The mean is not known, so μ² stands for its average
over the bounds, or for what the limits of total and rows make of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import NotAllowedError, QuestionRefusedError
from dalenius.measuring.expressions import Aggregate, Column, Expression, columns_of
from dalenius.measuring.functions import Range, bounded, dominated, moments_of, ranges_of, whole
from dalenius.measuring.measures import clip_measure, combine_limits
from dalenius.measuring.plan import MOST_GROUPS, Measure, require
from dalenius.measuring.statistics import said
from dalenius.tables.columns import default_step
from dalenius.tables.policy import Kind, Policy

if TYPE_CHECKING:
    from dalenius.errors import Place
    from dalenius.measuring.plan import Statistic

# Products w·C and squares Σw² are taken in 127 bits: C stays below 2⁶², and entries are clamped so that Σw² fits.
MOST = 2**62
LARGEST = 1e100  # of a value that is summed: its square, with noise, is still a double
_FINEST = Fraction(1, 10**100)  # of a step: it must be a double, and so must what is divided by it
_LEAST = 0.05  # of the price, for each part: no part is left to drown
_PARTS = 1000  # shares are exact fractions


@dataclass(frozen=True)
class Tightened:
    """The limits that hold for one question: the policy's, or lower ones."""

    rows: int | None
    groups: int | None
    totals: Mapping[str, Fraction]
    distinct: Mapping[str, int]
    typical: int | None = None  # twice the rows of an average unit, where `rows` was found rather than given


class Builder:
    """Builds statistics under the limits of one question."""

    def __init__(
        self,
        policy: Policy,
        limits: Tightened,
        sizes: Sequence[int],
        norm: str,
        neighbors: Neighbors,
        found_norms: Sequence[int | None],
        unit: Sequence[str] = (),
    ) -> None:
        self.unit = unit
        self.policy = policy
        self.limits = limits
        self.norm = norm
        self.found_norms = found_norms if norm == "l2" else [None] * len(sizes)  # of each grouping set
        self.neighbors = neighbors
        self.ranges = ranges_of(policy.columns)
        self.moments = moments_of(policy.columns)
        self.integers = frozenset(name for name, each in policy.columns.items() if each.kind is Kind.INTEGER)
        self.sizes, self.cells = sizes, sum(sizes)
        # In how many groups one unit can be. Its rows do not limit that: their number is clipped, not the rows.
        self.reach = sum(each if limits.groups is None else min(each, limits.groups) for each in sizes)
        self.notes: list[str] = []
        # Where groups have to be found there may be so many that entries are clamped (`Compiler.most`) below 2⁶²: a
        # limit past that would silently be a lower one.
        entries = len(sizes) * min(limits.groups or MOST_GROUPS, MOST_GROUPS)
        self.most = MOST if self.cells < MOST_GROUPS else min(MOST, math.isqrt(2**126 // entries))

    # --- measures

    def rows(self, where: Expression, at: Place | None, limit: Fraction | None = None) -> Measure:
        """The number of rows for which a condition holds; ``limit``: of one unit, as the question bounds it."""
        clip = self.row_limit(at, limit)
        clips = [clip if each is None else min(clip, each) for each in self.found_norms]
        return self.measure("rows", None, where, Fraction(1), 0, (0, 1), combine_limits(clips, self.norm))

    def joined(self, clip: int) -> int:
        """The limit over all grouping sets, where it is the same in each."""
        return combine_limits([clip] * len(self.sizes), self.norm)

    def sum(
        self,
        value: Expression,
        where: Expression,
        step: Fraction,
        centre: int,
        at: Place | None,
        limit: Fraction | None = None,
    ) -> Measure:
        """The sum of a value in steps, less a centre; ``limit``: of one unit, as the question bounds it."""
        low, high = self.whole_range(value, step)
        largest = max(abs(low - centre), abs(high - centre), 1)
        clips = [] if self.limits.rows is None else [self.limits.rows * largest]
        total = self.dominated(value)
        if total is not None and math.isfinite(total) and centre == 0:
            clips.append(max(1, math.floor(Fraction(total) / step)))
        if limit is not None:
            clips.append(max(1, math.floor(limit / step)))
        clip = self.joined(min(clips, default=None) or self.row_limit(at))
        return self.measure("sum", value, where, step, centre, (low - centre, high - centre), clip, at)

    def dominated(self, value: Expression) -> float | None:
        """What follows from the limits of totals for the total of an expression."""
        return dominated(value, {name: float(each) for name, each in self.limits.totals.items()}, self.ranges)

    def measure(
        self,
        kind: str,
        value: Expression | None,
        where: Expression,
        step: Fraction,
        centre: int,
        ends: tuple[int, int],
        clip: int,
        at: Place | None = None,
    ) -> Measure:
        """A measure of any kind that an engine knows (`measures`), clipped; ``ends`` bound what a row adds."""
        if clip >= self.most:
            raise QuestionRefusedError(
                "One unit could add too much to be summed exactly.",
                why=f"Its limit, counted in steps, is beyond {'2⁶²' if self.most == MOST else f'{self.most:,}'}.",
                fix="Ask the owner for a coarser step, lower limits or narrower bounds.",
                at=at,
            )
        return clip_measure(Measure(kind, value, where, step, centre, *ends, clip, 0), clip, self.norm, self.neighbors)

    # --- ranges and limits

    def row_limit(self, at: Place | None, limit: Fraction | None = None) -> int:
        """How many rows one unit may add; refused where nobody said."""
        if limit is not None:
            most = max(1, int(limit))
            return most if self.limits.rows is None else min(most, self.limits.rows)
        if self.limits.rows is None:
            raise NotAllowedError(
                "How many rows one unit may add is not declared.",
                why="Without a limit, one unit could change the answer by any amount.",
                fix="Ask the owner for [contribution] rows, or give --rows N.",
                at=at,
            )
        return self.limits.rows

    def range(self, value: Expression, aggregate: Aggregate, at: Place | None) -> tuple[Fraction, Fraction]:
        """Between which a value surely lies; refused where that is not known."""
        found = self.bounds_of(value)
        if found is not None and max(map(abs, found)) > LARGEST:
            raise QuestionRefusedError(
                "What is summed is too large.",
                why=f"Its values may lie beyond {LARGEST:g}; the answer would be no number that can be shown.",
                fix="Scale it down.",
                at=at,
            )
        if found is not None:
            return Fraction(found[0]), Fraction(found[1])
        without = sorted(
            name
            for name in columns_of(value)
            if self.policy.columns[name].kind in {Kind.INTEGER, Kind.NUMBER}
            and self.policy.columns[name].bounds is None
        )
        shown = without[0] if without else "x"
        raise NotAllowedError(
            f"Column {without[0]!r} has no bounds." if without else "What is summed has no bounds.",
            why=f"{said(aggregate.kind)} needs them: one unit could change it by any amount.",
            fix=f"Ask the owner for bounds, clip it yourself with LEAST(GREATEST({shown}, 0), 100), or count it.",
            at=at,
        )

    def bounds_of(self, value: Expression) -> Range | None:
        """Its bounds by those of numbers; where they do not tell, by those of dates too."""
        found = bounded(value, self.ranges)
        return bounded(value, {**self.ranges, **self.moments}) if found is None else found

    def step(self, value: Expression, low: Fraction, high: Fraction) -> Fraction:
        """What a value is rounded to: its column's step, or one that is fine enough for its range."""
        if isinstance(value, Column):
            return require(self.policy.columns[value.name].step)
        if whole(value, self.integers) and max(abs(low), abs(high)) < 2**53:
            return Fraction(1)
        return max(_FINEST, default_step(low, high) if low < high else default_step(low, low + 1))

    def whole_range(self, value: Expression, step: Fraction) -> tuple[int, int]:
        """The bounds as integers, rounded as the engine rounds: floor(x/step + ½) in doubles."""
        found = require(self.bounds_of(value))
        low, high = (math.floor(each / float(step) + 0.5) for each in found)
        return low, high

    def coarsened(self, value: Expression, step: Fraction, at: Place | None) -> Fraction:
        """A step at which the squares of one unit can be summed in 62 bits."""
        rows = self.row_limit(at)
        while True:
            low, high = self.whole_range(value, step)
            if self.joined(rows * max(abs(low), abs(high), 1) ** 2) < self.most:
                return step
            step *= 10


# --- sharing the price of a ratio


@dataclass(frozen=True)
class Split:
    """Measures with their shares, and how noisy what comes of them is, up to a factor that depends on the price."""

    measures: tuple[Measure, ...]
    noise: float


def split_price(measures: Sequence[Measure], low: int, high: int, norm: str) -> Split:
    """Shares for [count, sum] or [count, sum, squares] of values between ``low`` and ``high`` (less the centre)."""
    # Where totals are limited below rows × bounds, typical values lie near total per row, far inside the bounds.
    mean_square = min((low * low + low * high + high * high) / 3, (measures[1].clip / measures[0].clip) ** 2)
    spread = (high - low) ** 2 / 12
    weights = [mean_square, 1.0]
    if len(measures) == 3:
        weights = [(mean_square - spread) ** 2 + spread**2, 4 * mean_square, 1.0]
    return weigh_shares(measures, weights, norm)


def weigh_shares(measures: Sequence[Measure], weights: Sequence[float], norm: str) -> Split:
    """Shares that make Σ weight·(variance of the noise) least."""
    squared = [float(each.sensitivity) if norm == "l2" else float(each.sensitivity) ** 2 for each in measures]
    parts = [weight * each for weight, each in zip(weights, squared, strict=True)]
    parts = [max(each, 1e-12 * max(parts), 1e-300) for each in parts]  # none is nothing
    roots = [math.sqrt(each) if norm == "l2" else each ** (1 / 3) for each in parts]
    shares = exact_shares(roots)
    power = 1 if norm == "l2" else 2
    noise = sum(part / float(share) ** power for part, share in zip(parts, shares, strict=True))
    return Split(tuple(replace(each, share=share) for each, share in zip(measures, shares, strict=True)), noise)


def exact_shares(parts: Sequence[float]) -> list[Fraction]:
    """Fractions in proportion to some parts that sum to 1, none below the least."""
    raised = [max(_LEAST, each / sum(parts)) for each in parts]
    whole = [math.floor(_PARTS * each / sum(raised)) for each in raised]
    whole[whole.index(max(whole))] += _PARTS - sum(whole)
    return [Fraction(each, _PARTS) for each in whole]


def moved_shares(before: Statistic, after: Statistic, norm: str) -> Statistic:
    """Shares moved with what one unit can change: they are least noisy in proportion to Δ (Δ^⅔ under pure DP)."""
    power = 0.5 if norm == "l2" else 2 / 3  # the sensitivity is a square where the norm is L2
    raw = [
        float(old.share) * float(Fraction(new.sensitivity, old.sensitivity)) ** power
        for old, new in zip(before.measures, after.measures, strict=True)
    ]
    whole = sum((each.share for each in before.measures), Fraction(0))
    shares = exact_shares(raw)
    measures = (replace(each, share=share * whole) for each, share in zip(after.measures, shares, strict=True))
    return replace(after, measures=tuple(measures))
