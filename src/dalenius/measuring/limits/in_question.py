"""One question finds its own limits: how long units' vectors are *here*, then the measures at the clips that fit.

Units are counted by the length of their vector over the groups, or values at several limits at once (`clip_search`).
The counts get noise; from the noisy counts the clip is chosen, never above the plan's. Which way, whether it pays and
what it costs are decided from public things alone.

Guarantee:
    The counts are ρ₁-zCDP (ε₁-DP under pure): a unit is in one class (`clip_search`), or in one of each of two
    histograms (`counts_totals`). What is chosen from them is post-processing. For every limit T that may be chosen, the
    sum of totals that each count up to T changes by at most T with one unit (`cut_off_total`): ρ₂-zCDP. For every clip
    C that may be chosen, the measure's sensitivity is that of C (`measures`), and its noise is made for it: ρ₃-zCDP;
    where it is measured at two clips, these share ρ₃. Each mechanism is chosen by looking at what those before it
    released, so the whole is (ρ₁ + ρ₂ + ρ₃)-zCDP by adaptive composition, for the plan's own relation of neighbours.

References:
    Bun & Steinke, Concentrated differential privacy (2016), Lemma 2.3 (adaptive composition of zCDP); Dwork & Roth
    (2014), Thm. 3.16 and appendix B for ε-DP.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from dalenius.measuring._exact import exact, exact_lengths
from dalenius.measuring.expressions import TRUE, Column, columns_of, conjuncts
from dalenius.measuring.join_fanout import limit_of
from dalenius.measuring.limits.choosing import MEDIAN
from dalenius.measuring.limits.clip_search import Clip, NoisyCounts, search_of, searched_by_length, takes_all
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.limits.histogram import CLASSES
from dalenius.measuring.limits.rescaled import FEWEST, TIGHT
from dalenius.measuring.measures import clip_measure, count_in, refine
from dalenius.measuring.relations import Owned, full

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.limits.question_total import CutOff
    from dalenius.measuring.plan import Measure, Plan, Statistic
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace


SUMMED = Fraction(1, 20)  # of a measure's price, where its groups may be scaled up: for their total


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

    @property
    def totals(self) -> Mapping[int, Fraction]:
        """The ρ of the sum of totals, for each measure whose groups may be scaled up to it, by its number."""


def search_limits(plan: Plan, price: Price, engine: Engine, salt: str, seconds: float) -> list[Clip]:
    """Looks at the data, once the charge is on disk: the clips that were found."""
    found, totals = [], _exact_totals(plan, engine, salt, seconds)
    for (number, mechanism), counts in zip(
        price.searches.items(), exact_lengths(plan, engine, salt, seconds=seconds), strict=True
    ):
        noisy = [int(value) for value in mechanism.release([*counts, *totals.get(number, [])]).value.tolist()]
        limit = cut_limit(plan, price, number, noisy, mechanism)
        cut_off = None
        if limit is not None:
            exactly = sum(exact(cut_plan(plan, number, limit), engine, salt, seconds=seconds)[0])
            cut_off = cut_off_total(plan, price, number, limit, exactly)
        found.append(fit_clip(plan, price, number, noisy, mechanism, cut_off))
    return found


def counts_totals(plan: Plan, number: int) -> bool:
    """Whether units are counted by their total over the groups, too, so that groups may be scaled up to that.

    A matter of the question alone. Then a unit is in one class of each of two histograms: Δ1 = Δ2² = 2, and twice that
    where one is exchanged for another. In L1 a vector is as long as its total, and there is nothing to gain.
    """
    return len(plan.cells) >= FEWEST and can_add_up(plan, number)


def can_add_up(plan: Plan, number: int) -> bool:
    """Whether what a measure has in all groups may be added up, unit by unit (`cut_off_total`)."""
    measure = plan.measures[number]
    plain = plan.norm == "l2" and plan.selection is None and not plan.sets and plan.groups is None
    summed = measure.kind == "rows" or (measure.kind == "sum" and measure.low >= 0 and not measure.centre)
    return plain and summed and _alone(plan, number)


def totals_plan(plan: Plan) -> Plan | None:
    """The plan whose lengths are the totals of units over the groups; None where nobody counts these."""
    numbers = [at for at in plan.searched if counts_totals(plan, at)]
    if not numbers:
        return None
    statistics = [
        replace(
            each,
            measures=tuple(replace(one, search=one.search if at in numbers else Fraction(0)) for one in each.measures),
        )
        for each, at in ((each, plan.start(place)) for place, each in enumerate(plan.statistics))
    ]
    return replace(plan, norm="l1", statistics=tuple(statistics))


def cut_limit(
    plan: Plan, price: Price, number: int, noisy: Sequence[int], mechanism: DiscreteGaussian | Laplace
) -> int | None:
    """Up to which limit the totals of units are added up; None where nobody does. Post-processing of noisy counts."""
    from dalenius.measuring.limits.question_total import choose_cut, known_sizes

    if number not in price.totals:
        return None
    counts = known_sizes(plan, number, LengthCounts.of(noisy[CLASSES:], mechanism))
    return choose_cut(counts, cut_deviation(price, number, 1))


def cut_plan(plan: Plan, number: int, limit: int) -> Plan:
    """The plan whose integers, added up, are the sum of totals that each count up to ``limit``."""
    statistic = next(each for at, each in enumerate(plan.statistics) if plan.start(at) == number)
    measure = replace(clip_measure(plan.measures[number], limit, "l1", plan.neighbors), search=Fraction(0))
    return refine(replace(plan, norm="l1", statistics=(replace(statistic, measures=(measure,)),), answers={}))


def cut_off_total(plan: Plan, price: Price, number: int, limit: int, exactly: int) -> CutOff:
    """The sum of totals that each count up to a limit T, with noise.

    Guarantee:
        In parts of a step, of which there are S, a unit's vector v ≥ 0 over the groups is brought within ‖v‖₁ ≤ S·T
        (`measures`). Its entries add up to between 0 and S·T, so adding, removing or exchanging a unit changes the sum
        over all by at most S·T. Discrete Gaussian noise of variance (S·T)²/2ρ makes that ρ-zCDP.
    """
    from dalenius.measuring.limits.question_total import CutOff
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian

    parts = 1 << cut_plan(plan, number, limit).measures[0].bits
    square = (parts * limit) ** 2
    variance = Fraction(square) / (2 * price.totals[number])
    noisy = DiscreteGaussian(math.ceil(variance), square, 1, plan.neighbors).release([exactly]).value.tolist()[0]
    return CutOff(limit, int(noisy) / parts, cut_deviation(price, number, limit))


def cut_deviation(price: Price, number: int, limit: int) -> float:
    """Of the noise of that sum, in steps."""
    return limit / math.sqrt(2 * float(price.totals[number]))


def _exact_totals(plan: Plan, engine: Engine, salt: str, seconds: float) -> dict[int, list[int]]:
    other = totals_plan(plan)
    if other is None:
        return {}
    return dict(zip(other.searched, exact_lengths(other, engine, salt, seconds=seconds), strict=True))


def fit_clip(
    plan: Plan,
    price: Price,
    number: int,
    noisy: Sequence[int],
    mechanism: DiscreteGaussian | Laplace,
    cut_off: CutOff | None = None,
) -> Clip:
    """The clip of a measure, from noisy counts of units by length, and by total where these follow. Post-processing.

    ``cut_off`` is the sum of totals, where that was measured.
    """
    total = None
    if len(noisy) > CLASSES and searched_by_length(plan.measures[number]):
        from dalenius.measuring.limits.question_total import question_total

        total = question_total(plan, number, LengthCounts.of(noisy[CLASSES:], mechanism), cut_off)
        noisy = noisy[:CLASSES]
        mechanism = LengthCounts.of(noisy, mechanism).law
    measure = plan.measures[number]
    known = known_lengths(plan, measure, LengthCounts.of(noisy, mechanism)) if searched_by_length(measure) else None
    little = measure.one_row if is_thinned(plan) else measure.clip
    per_step, cells = _noise_per_step(plan, price, measure), max(1, len(plan.cells))
    return search_of(measure).fit(NoisyCounts(number, measure, noisy, mechanism, per_step, cells, little, total, known))


def known_lengths(plan: Plan, measure: Measure, counts: LengthCounts) -> LengthCounts:
    """Units by length, as the question counted them, and as `protect` did if that is the same.

    `protect` counted the rows and totals of all units, with less noise than a cheap question can. Where units are in
    one group each, a length is a total. Whether they are is not known, but it would show: then the two counts differ by
    more than their noise (`pool_counts`). What is too rare to show may still differ: heavy units without a group. So a
    limit is chosen by these, and what it cuts off is told by the question's own.
    """
    from dalenius.measuring.limits.question_total import pool_counts

    found, table = plan.table.found, plan.table
    plain = plan.selection is None and not plan.sets and plan.groups is None
    if found is None or found.carried or not plain or not table.direct or plan.periods != ("",) or plan.where != TRUE:
        return counts
    name = "rows" if measure.kind == "rows" else ""
    if measure.kind == "sum" and isinstance(measure.value, Column) and not measure.centre:
        same = measure.step == table.policy.columns[measure.value.name].step
        name = f"total {measure.value.name}" if same else ""
    public = found.sizes.get(name) if takes_all(measure.where) else None
    return counts if public is None else pool_counts(counts, public)


def _alone(plan: Plan, number: int) -> bool:
    """Whether a measure is an aggregate by itself, and no part of a ratio."""
    return any(plan.start(at) == number and len(each.measures) == 1 for at, each in enumerate(plan.statistics))


def is_thinned(plan: Plan) -> bool:
    """Whether a join keeps some rows of a unit and not others, so that units of which little is seen have few of them.

    A condition on people leaves fewer of them, with all their rows; one on their orders leaves fewer orders of each.
    """
    relation = plan.table.relation
    many = [each for each in relation.sources if isinstance(each, Owned) and limit_of(each) != 1]
    columns = {full(source, name) for source in many for name in source.columns}
    return any(columns & columns_of(each) for each in conjuncts(relation.where))


def lower_clips(plan: Plan, clips: Mapping[int, int], heavy: Mapping[int, int] | None = None) -> Plan:
    """The plan with lower clips; the measures of a ratio share their price anew.

    Adding or removing a unit (exchanging one) then changes a measure by what `measures` says of its new clip. The
    measures in ``heavy`` are measured a second time, at that clip: after all others, and for a part of their price. A
    part of it was spent where their totals were added up.
    """
    statistics: list[Statistic] = []
    again: list[Statistic] = []
    number = 0
    for statistic in count_in(plan, [0] * len(plan.measures)).statistics:
        measures = []
        for measure in statistic.measures:
            clip = clips.get(number, measure.clip)
            same = clip == measure.clip
            lowered = measure if same else clip_measure(measure, clip, plan.norm, plan.neighbors)
            if number in clips and counts_totals(plan, number):
                lowered = replace(lowered, share=measure.share * (1 - SUMMED))
            if heavy and number in heavy:
                second = clip_measure(measure, heavy[number], plan.norm, plan.neighbors)
                again.append(replace(statistic, measures=(replace(second, share=lowered.share * (1 - TIGHT)),)))
                lowered = replace(lowered, share=lowered.share * TIGHT)
            measures.append(lowered)
            number += 1
        new = replace(statistic, measures=tuple(measures))
        statistics.append(new if new == statistic else statistic.family.reshare(statistic, new, plan.norm))
    return refine(replace(plan, statistics=(*statistics, *again)))


def apply_clips(plan: Plan, clips: Sequence[Clip]) -> Plan:
    """The plan as it is measured at the clips that were found."""
    scaled = ((each.measure, each.rescaled.heavy) for each in clips if each.rescaled is not None)
    heavy = {number: clip for number, clip in scaled if clip is not None}
    return lower_clips(plan, {each.measure: each.clip for each in clips}, heavy) if clips else plan


def _noise_per_step(plan: Plan, price: Price, measure: Measure) -> float:
    """Median |noise| of this measure for each step of its clip."""
    change = clip_measure(measure, 1, plan.norm, plan.neighbors).sensitivity
    if price.rho is None:
        return math.log(2) * change / (price.epsilon * float(measure.share))
    return MEDIAN * math.sqrt(change / (2 * price.rho * float(measure.share)))
