"""One question finds its own limits: how long units' vectors are *here*, then the measures at the clips that fit.

Two ways, by the kind of measure (`measures.Primitive.search`). For sums of clipped vectors, units are counted by the
length k = ⌈‖w‖⌉ of their vector over the groups, in the classes of `histogram`. For distinct values, the values are
counted at several limits at once (`ladder`). The counts get noise; from the noisy counts the clip is chosen where
clipping would cost about as much as the measure's own noise, never above the plan's. The same counts tell about how
much lies beyond it. Which way, whether it pays and what it costs are decided from public things alone.

Guarantee:
    The counts are ρ₁-zCDP (ε₁-DP under pure): a unit is in one class (`LengthSearch`, `LadderSearch`). What is chosen
    from them is post-processing. For every clip C that may be chosen, the measure's sensitivity is that of C
    (`measures`), and its noise is made for it: ρ₂-zCDP. The second mechanism is chosen by looking at what the first
    released, so the whole is (ρ₁ + ρ₂)-zCDP by adaptive composition, for the plan's own relation of neighbours.

References:
    Bun & Steinke, Concentrated differential privacy (2016), Lemma 2.3 (adaptive composition of zCDP); Dwork & Roth
    (2014), Thm. 3.16 and appendix B for ε-DP.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from dalenius.accounting.neighbors import Neighbors
from dalenius.measuring._exact import exact_lengths
from dalenius.measuring.expressions import TRUE, Call, Column, Expression, columns_of, conjuncts, written
from dalenius.measuring.fixed_point import count_in, refine
from dalenius.measuring.join_fanout import limit_of
from dalenius.measuring.limits import ladder
from dalenius.measuring.limits.histogram import CLASSES, choose_limit, guess_size, share_beyond
from dalenius.measuring.measures import clip_measure
from dalenius.measuring.plan import require
from dalenius.measuring.relations import Owned, full

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Found, Limits, Measure, Plan, Statistic
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace


class Price(Protocol):
    """What a question costs, as far as its searches must know (`rules.price`)."""

    @property
    def epsilon(self) -> float:
        """Of the whole question."""

    @property
    def rho(self) -> float | None:
        """The same under zCDP; None under pure."""

    @property
    def searches(self) -> Mapping[int, DiscreteGaussian | Laplace]:
        """The noise of what is counted, for each measure that is searched, by its number."""


@dataclass(frozen=True, slots=True)
class LengthCounts:
    """Noisy counts of units by the class of their length, and what noise they have: a variance, or Laplace's scale."""

    noisy: tuple[int, ...]
    gaussian: Fraction | None = None
    laplace: Fraction | None = None

    @classmethod
    def of(cls, noisy: Sequence[int], mechanism: DiscreteGaussian | Laplace) -> LengthCounts:
        """As the mechanism released them."""
        from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian

        if isinstance(mechanism, DiscreteGaussian):
            return cls(tuple(noisy), gaussian=Fraction(mechanism.variance))
        return cls(tuple(noisy), laplace=Fraction(mechanism.scale))

    @property
    def law(self) -> DiscreteGaussian | Laplace:
        """A mechanism with that noise, for what the counts can tell."""
        from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
        from dalenius.mechanisms.laplace import Laplace

        if self.gaussian is not None:
            return DiscreteGaussian(self.gaussian, dimension=len(self.noisy))
        return Laplace(1 / require(self.laplace), dimension=len(self.noisy))

    def to_json(self) -> dict[str, Any]:
        """As it is stored; the classes at the end are noise around 0 and stay, for they say that nobody is there."""
        law = {"gaussian": str(self.gaussian)} if self.gaussian is not None else {"laplace": str(self.laplace)}
        return law | {"noisy": list(self.noisy)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> LengthCounts:
        """As `to_json` wrote it."""
        gaussian, laplace = (
            None if data.get(name) is None else Fraction(data[name]) for name in ("gaussian", "laplace")
        )
        return cls(tuple(map(int, data["noisy"])), gaussian, laplace)


@dataclass(frozen=True, slots=True)
class Clip:
    """The clip that was found for a measure, and about which part of all that units add lies beyond it.

    ``beyond`` is None where no class stands out of the noise. The clip is then that of the little that may be seen;
    else the plan's own stays, but for joins that leave few rows of each unit (``little``): there it is one row's.
    ``hidden`` is the noise error (95%) of each count of units: so many heavy units of one size do not show, and are
    not in ``beyond``. ``counts`` are the noisy counts by class that it was chosen from, where these are of lengths;
    answers that were stored before they were kept have none. They are paid for, and as private as the clip itself.
    """

    measure: int
    clip: int
    beyond: float | None
    hidden: int
    counts: LengthCounts | None = None

    def to_json(self) -> dict[str, Any]:
        """As it is stored with the answer."""
        found = {"measure": self.measure, "clip": str(self.clip), "beyond": self.beyond, "hidden": self.hidden}
        return found if self.counts is None else found | {"counts": self.counts.to_json()}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Clip:
        """As `to_json` wrote it."""
        counts = LengthCounts.of_json(data["counts"]) if "counts" in data else None
        return cls(data["measure"], int(data["clip"]), data["beyond"], data["hidden"], counts)


@dataclass(frozen=True, slots=True)
class NoisyCounts:
    """What a clip is chosen from.

    Attributes:
        number: Of the measure, in its plan.
        measure: Whose clip it is; never more than its own.
        noisy: What was counted.
        mechanism: What noise it has.
        per_step: Median |noise| of the measure for each step of its clip.
        cells: How many groups there are.
        little: The clip where nothing stands out of the noise, and nothing may be seen either.
    """

    number: int
    measure: Measure
    noisy: Sequence[int]
    mechanism: DiscreteGaussian | Laplace
    per_step: float
    cells: int
    little: int


class ClipSearch(ABC):
    """One way to find a lower limit.

    Attributes:
        share: Of the measure's price, where nobody says.
        said: How the notes begin that speak of a limit which stands; once a lower one is found, they go.
    """

    share: ClassVar[Fraction]
    said: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def pays(self, plan: Plan, limits: Limits, statistic: Statistic, measure: Measure, filtered: bool) -> bool:
        """Whether a limit that nobody chose is likely far above what units add to this question."""

    @abstractmethod
    def counted(self, measure: Measure, norm: str, neighbors: Neighbors) -> tuple[int, int]:
        """What one unit can change in what is counted (Δ2² in L2, Δ1 in L1), and how many counts these are."""

    @abstractmethod
    def fit(self, counts: NoisyCounts) -> Clip:
        """The clip, from noisy counts. Public post-processing."""

    @abstractmethod
    def named(self, measure: Measure) -> str:
        """What was limited."""

    @abstractmethod
    def sentence(self, plan: Plan, measure: Measure, found: Clip) -> str:
        """What was found, for the reader of a release."""


class LengthSearch(ClipSearch):
    """Units are counted by the length k = ⌈‖w‖⌉ of their vector over the groups.

    Guarantee:
        A unit is in one class. Adding or removing it changes one count by 1: Δ1 = Δ2² = 1; exchanging it for another
        changes at most two by 1: Δ1 = Δ2² = 2.
    """

    share = Fraction(1, 10)

    def pays(self, plan: Plan, limits: Limits, statistic: Statistic, measure: Measure, filtered: bool) -> bool:
        """Where a condition leaves few of a unit's rows, or its vector is much shorter than its total.

        A vector over the groups is shorter than its total, which is what is limited, in L2; in L1 they are the same.
        The limit of squares is one of rows times the largest square that the bounds allow.
        """
        table = plan.table
        declared, found = table.policy.contribution, table.found
        if found is None or declared.rows is not None or limits.rows is not None or limits.totals:
            return False
        summed = frozenset() if measure.value is None else columns_of(measure.value)
        degree = measure.primitive.degree
        if degree == 1 and summed & frozenset(declared.totals):
            return False
        # Of a ratio, the count's own condition says that there is a value; the last sum's is what was asked.
        if filtered or not _all(statistic.measures[-1].where):
            return True
        spread = bool(plan.keys) and plan.norm == "l2"
        if degree:
            return degree > 1 or spread
        return spread and not all(_known([plan.question.keys[at] for at in each], found) for each in _sets(plan))

    def counted(self, measure: Measure, norm: str, neighbors: Neighbors) -> tuple[int, int]:  # noqa: ARG002
        """Units by class."""
        return 2 if neighbors is Neighbors.SUBSTITUTE else 1, CLASSES

    def fit(self, counts: NoisyCounts) -> Clip:
        """Where clipping would cost about as much as the measure's own noise."""
        most, noisy, mechanism = counts.measure.clip, counts.noisy, counts.mechanism
        hidden, kept = mechanism.noise_error(0.95), LengthCounts.of(noisy, mechanism)
        if share_beyond(noisy, mechanism, most) is None:
            return Clip(counts.number, min(most, guess_size(noisy, mechanism) or counts.little), None, hidden, kept)
        found = choose_limit(noisy, mechanism, lambda limit: counts.per_step * limit, counts.cells)
        clip = min(most, found.limit)
        return Clip(counts.number, clip, share_beyond(noisy, mechanism, clip), hidden, kept)

    def named(self, measure: Measure) -> str:
        """The sum, or rows."""
        if measure.value is None:
            return "rows"
        return f"{measure.primitive.words} of {' and '.join(_centred(measure))}"

    def sentence(self, plan: Plan, measure: Measure, found: Clip) -> str:
        """The limit, what it was, and how much lies beyond."""
        rows, unit = measure.value is None, measure.unit
        limit = f"{found.clip:,} rows" if rows else f"{_shown(found.clip, unit):,.6g} of the {self.named(measure)}"
        limit += " a unit"
        if plan.keys:
            limit += ", over its groups" if plan.norm == "l1" else ", as a norm over its groups"
            limit += " in all sets" if plan.sets else ""
        said = f"found its own limit: {limit} (of {_shown(measure.clip, unit):,.10g})"
        if found.clip == measure.clip:
            said = f"looked for a lower limit and kept the one it had: {limit}"
        beyond = f"counts of units ± {found.hidden:,} do not tell how much lies beyond"
        if found.beyond is not None:
            lie = "the rows lie" if rows else "it lies"
            beyond = f"{_about(found.beyond)} of {lie} beyond, as far as counts of units ± {found.hidden:,} tell"
        return f"This question {said}; {beyond}."


class LadderSearch(ClipSearch):
    """Distinct values are counted at limits 1, 4, 16, … at once (`ladder`, with the guarantee)."""

    share = Fraction(1, 4)  # a few rungs with much noise, instead of many with little
    said = ("COUNT(DISTINCT",)

    def pays(self, plan: Plan, limits: Limits, statistic: Statistic, measure: Measure, filtered: bool) -> bool:  # noqa: ARG002
        """Where nobody limited groups."""
        return plan.table.policy.contribution.groups is None and limits.groups is None

    def counted(self, measure: Measure, norm: str, neighbors: Neighbors) -> tuple[int, int]:
        """Values at each rung."""
        return ladder.sensitivity(measure.clip, norm, neighbors, measure.sets), len(ladder.rungs(measure.clip))

    def fit(self, counts: NoisyCounts) -> Clip:
        """Where most values are counted, less what their noise costs. The lowest rung is always one of them."""
        most, mechanism = counts.measure.clip, counts.mechanism
        clip, beyond = ladder.best_limit(most, counts.noisy, mechanism.noise, counts.per_step, counts.cells)
        return Clip(counts.number, clip, beyond, -(-mechanism.noise_error(0.95) * clip // ladder.multiple(most)))

    def named(self, measure: Measure) -> str:
        """The aggregate."""
        return f"COUNT(DISTINCT {'' if measure.value is None else written(measure.value)})"

    def sentence(self, plan: Plan, measure: Measure, found: Clip) -> str:
        """How many values count, and how many are not seen for it."""
        what = ("value" if found.clip == 1 else "values") if not plan.keys else "pairs of group and value"
        what += " in each grouping set" if measure.sets > 1 else ""
        return (
            f"{self.named(measure)}: of one unit, at most {found.clip:,} {what} count (of {measure.clip:,}), as the "
            f"question found itself; {_about(found.beyond or 0.0)} are not seen for it, as far as a count ± "
            f"{found.hidden:,} tells."
        )


_SEARCHES: dict[str, ClipSearch] = {"lengths": LengthSearch(), "ladder": LadderSearch()}


def searchable(measure: Measure) -> bool:
    """Whether a measure has a limit that could be lower."""
    return measure.primitive.search is not None and measure.clip > 1


def search_of(measure: Measure) -> ClipSearch:
    """How a lower limit of a measure is found."""
    return _SEARCHES[require(measure.primitive.search)]


def report_clips(plan: Plan, found: Sequence[Clip]) -> tuple[dict[str, Any], ...]:
    """What was found, in the units of the answer. ``plan`` is the one that was asked."""
    reports = []
    for each in found:
        measure = plan.measures[each.measure]
        reports.append(
            {
                "measure": search_of(measure).named(measure),
                "limit": _shown(each.clip, measure.unit),
                "of": _shown(measure.clip, measure.unit),
                "beyond": each.beyond,
                "hidden": each.hidden,
                "share": float(measure.search),
            }
        )
    return tuple(reports)


def clip_notes(plan: Plan, found: Sequence[Clip], shares: Mapping[int, float] | None = None) -> tuple[str, ...]:
    """The same as sentences; ``shares``: what is reckoned to be lost, by the measure's number, where more is known."""
    better = shares or {}
    told = [replace(each, beyond=better.get(each.measure, each.beyond)) for each in found]
    measured = [(plan.measures[each.measure], each) for each in told]
    return tuple(search_of(measure).sentence(plan, measure, each) for measure, each in measured)


def _shown(steps: int, unit: Fraction) -> float | int:
    """A limit in the units of the answer."""
    return float(steps * unit) if unit != 1 else steps


def _about(share: float) -> str:
    return "less than 0.1%" if share < 0.001 else f"about {share:.1%}"


def _centred(measure: Measure) -> list[str]:
    centre = f" less {float(measure.centre * measure.step):g}" if measure.centre else ""
    value = [] if measure.value is None else [written(measure.value) + centre]
    return value + ([] if measure.times is None else _centred(measure.times))


def _sets(plan: Plan) -> tuple[tuple[int, ...], ...]:
    return plan.sets or (tuple(range(len(plan.question.keys))),)


def _known(keys: list[Expression], found: Found) -> bool:
    """Whether it was found how long a unit's rows over these keys are; without keys, that is their number."""
    return not keys or (len(keys) == 1 and isinstance(keys[0], Column) and keys[0].name in found.norms)


def _all(where: Expression) -> bool:
    """Whether a condition keeps every row, or every row that has a value."""
    if isinstance(where, Call) and where.function == "and":
        return all(map(_all, where.arguments))
    if isinstance(where, Call) and where.function == "not":
        (inner,) = where.arguments
        return isinstance(inner, Call) and inner.function == "is_null"
    return where == TRUE


# --- looking


def search_limits(plan: Plan, price: Price, engine: Engine, salt: str, seconds: float) -> tuple[Plan, list[Clip]]:
    """Looks at the data, once the charge is on disk: the plan at the clips that were found, ready to run."""
    found = []
    for (number, mechanism), counts in zip(
        price.searches.items(), exact_lengths(plan, engine, salt, seconds=seconds), strict=True
    ):
        noisy = [int(value) for value in mechanism.release(counts).value.tolist()]
        found.append(fit_clip(plan, price, number, noisy, mechanism))
    return lower_clips(plan, {each.measure: each.clip for each in found}), found


def fit_clip(
    plan: Plan, price: Price, number: int, noisy: Sequence[int], mechanism: DiscreteGaussian | Laplace
) -> Clip:
    """The clip of a measure, from noisy counts of units by length. Public post-processing."""
    measure = plan.measures[number]
    little = measure.one_row if _thinned(plan) else measure.clip
    per_step, cells = _noise_per_step(plan, price, measure), max(1, len(plan.cells))
    return search_of(measure).fit(NoisyCounts(number, measure, noisy, mechanism, per_step, cells, little))


def _thinned(plan: Plan) -> bool:
    """Whether a join keeps some rows of a unit and not others, so that units of which little is seen have few of them.

    A condition on people leaves fewer of them, with all their rows; one on their orders leaves fewer orders of each.
    """
    relation = plan.table.relation
    many = [each for each in relation.sources if isinstance(each, Owned) and limit_of(each) != 1]
    columns = {full(source, name) for source in many for name in source.columns}
    return any(columns & columns_of(each) for each in conjuncts(relation.where))


def lower_clips(plan: Plan, clips: Mapping[int, int]) -> Plan:
    """The plan with lower clips; the measures of a ratio share their price anew.

    Adding or removing a unit (exchanging one) then changes a measure by what `measures` says of its new clip.
    """
    statistics, number = [], 0
    for statistic in count_in(plan, [0] * len(plan.measures)).statistics:
        measures = []
        for measure in statistic.measures:
            clip = clips.get(number, measure.clip)
            same = clip == measure.clip
            measures.append(measure if same else clip_measure(measure, clip, plan.norm, plan.neighbors))
            number += 1
        new = replace(statistic, measures=tuple(measures))
        statistics.append(new if new == statistic else statistic.family.reshare(statistic, new, plan.norm))
    return refine(replace(plan, statistics=tuple(statistics)))


def _noise_per_step(plan: Plan, price: Price, measure: Measure) -> float:
    """Median |noise| of this measure for each step of its clip."""
    change = clip_measure(measure, 1, plan.norm, plan.neighbors).sensitivity
    if price.rho is None:
        return math.log(2) * change / (price.epsilon * float(measure.share))
    return 0.6745 * math.sqrt(change / (2 * price.rho * float(measure.share)))
