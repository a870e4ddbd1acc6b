"""One question finds its own limits: how long units' vectors are *here*, then the measures at the clips that fit.

For each measure that is searched the units are counted by the length k = ⌈‖w‖⌉ of their vector over the groups, in
the classes of `finding`; the counts get noise; from the noisy counts the clip is chosen where clipping would cost
about as much as the measure's own noise, never above the plan's. The same counts tell about how much lies beyond it.

Guarantee:
    The counts are ρ₁-zCDP (ε₁-DP under pure): a unit is in one class (`measuring.searches`). What is chosen from
    them is post-processing. For every clip C that may be chosen, the measure's sensitivity is that of C
    (`measuring.clipping`), and its noise is made for it: ρ₂-zCDP. The second mechanism is chosen by looking at what the
    first released, so the whole is (ρ₁ + ρ₂)-zCDP by adaptive composition, for the plan's own relation of neighbours.

References:
    Bun & Steinke, Concentrated differential privacy (2016), Lemma 2.3 (adaptive composition of zCDP); Dwork & Roth
    (2014), Thm. 3.16 and appendix B for ε-DP.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dalenius.measuring._exact import exact_lengths
from dalenius.measuring.clipping import limited
from dalenius.measuring.expressions import Call, columns_of
from dalenius.measuring.relations import Owned, full
from dalenius.measuring.repeats import limit_of
from dalenius.measuring.searches import Clip, search_of

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Measure, Plan
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace
    from dalenius.queries.rules.price import Priced


def searched(plan: Plan, priced: Priced, engine: Engine, salt: str, seconds: float) -> tuple[Plan, list[Clip]]:
    """Looks at the data, once the charge is on disk: the plan at the clips that were found, ready to run."""
    found = []
    for (number, mechanism), counts in zip(
        priced.searches.items(), exact_lengths(plan, engine, salt, seconds=seconds), strict=True
    ):
        noisy = [int(value) for value in mechanism.release(counts).value.tolist()]
        found.append(fitted(plan, priced, number, noisy, mechanism))
    return lowered(plan, {each.measure: each.clip for each in found}), found


def fitted(
    plan: Plan, priced: Priced, number: int, noisy: Sequence[int], mechanism: DiscreteGaussian | Laplace
) -> Clip:
    """The clip of a measure, from noisy counts of units by length. Public post-processing."""
    measure = plan.measures[number]
    little = measure.one_row if _thinned(plan) else measure.clip
    per_step, cells = _noise_per_step(plan, priced, measure), max(1, len(plan.cells))
    return search_of(measure).fit(number, measure, noisy, mechanism, per_step, cells, little)


def _thinned(plan: Plan) -> bool:
    """Whether a join keeps some rows of a unit and not others, so that units of which little is seen have few of them.

    A condition on people leaves fewer of them, with all their rows; one on their orders leaves fewer orders of each.
    """
    relation = plan.table.relation
    many = [each for each in relation.sources if isinstance(each, Owned) and limit_of(each) != 1]
    columns = {full(source, name) for source in many for name in source.columns}
    where = relation.where
    parts = where.arguments if isinstance(where, Call) and where.function == "and" else (where,)
    return any(columns & columns_of(each) for each in parts)


def lowered(plan: Plan, clips: Mapping[int, int]) -> Plan:
    """The plan with lower clips; the measures of a ratio share their price anew.

    Adding or removing a unit (exchanging one) then changes a measure by what `clipping` says of its new clip.
    """
    statistics, number = [], 0
    for statistic in plan.statistics:
        measures = []
        for measure in statistic.measures:
            clip = clips.get(number, measure.clip)
            same = clip == measure.clip
            measures.append(measure if same else limited(measure, clip, plan.norm, plan.neighbors))
            number += 1
        new = replace(statistic, measures=tuple(measures))
        statistics.append(new if new == statistic else statistic.family.reshare(statistic, new, plan.norm))
    return replace(plan, statistics=tuple(statistics))


def _noise_per_step(plan: Plan, priced: Priced, measure: Measure) -> float:
    """Median |noise| of this measure for each step of its clip."""
    change = limited(measure, 1, plan.norm, plan.neighbors).sensitivity
    if priced.rho is None:
        return math.log(2) * change / (priced.epsilon * float(measure.share))
    return 0.6745 * math.sqrt(change / (2 * priced.rho * float(measure.share)))
