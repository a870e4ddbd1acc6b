"""One question finds its own limits: how long units' vectors are *here*, then the measures at the clips that fit.

For each measure that is searched the units are counted by the length k = ⌈‖w‖⌉ of their vector over the groups, in
the classes of `finding`; the counts get noise; from the noisy counts the clip is chosen where clipping would cost
about as much as the measure's own noise, never above the plan's. The same counts tell about how much lies beyond it.

Guarantee:
    The counts are ρ₁-zCDP (ε₁-DP under pure): a unit is in one class (`rules.price.histogram`). What is chosen from
    them is post-processing. For every clip C that may be chosen, the measure's sensitivity is that of C
    (`rules.bound`), and its noise is made for it: ρ₂-zCDP. The second mechanism is chosen by looking at what the first
    released, so the whole is (ρ₁ + ρ₂)-zCDP by adaptive composition, for the plan's own relation of neighbours.

References:
    Bun & Steinke, Concentrated differential privacy (2016), Lemma 2.3 (adaptive composition of zCDP); Dwork & Roth
    (2014), Thm. 3.16 and appendix B for ε-DP.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.measuring import ladder
from dalenius.measuring._exact import exact_lengths
from dalenius.measuring.choosing import chosen, clipped, faint
from dalenius.measuring.expressions import TRUE, Call, columns_of, written
from dalenius.measuring.relations import Owned, full
from dalenius.measuring.repeats import limit_of
from dalenius.measuring.splitting import exact_shares, split
from dalenius.queries.rules.bound import limited
from dalenius.queries.rules.compile import compiled

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Measure, Plan, Statistic
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace
    from dalenius.queries.rules.price import Priced


@dataclass(frozen=True, slots=True)
class Clip:
    """The clip that was found for a measure, and about which part of all that units add lies beyond it.

    ``beyond`` is None where no class stands out of the noise. The clip is then that of the little that may be seen;
    else the plan's own stays, but for joins that leave few rows of each unit (`_thinned`): there it is one row's.
    ``hidden`` is the noise error (95%) of each count of units: so many heavy units of one size do not show, and are
    not in ``beyond``.
    """

    measure: int
    clip: int
    beyond: float | None
    hidden: int

    def to_json(self) -> dict[str, Any]:
        """As it is stored with the answer."""
        return {"measure": self.measure, "clip": str(self.clip), "beyond": self.beyond, "hidden": self.hidden}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Clip:
        """As `to_json` wrote it."""
        return cls(data["measure"], int(data["clip"]), data["beyond"], data["hidden"])


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
    measure, hidden = plan.measures[number], mechanism.noise_error(0.95)
    if measure.kind == "distinct":
        per_step = _noise_per_step(plan, priced, measure)
        clip, beyond = ladder.best(measure.clip, noisy, mechanism.noise, per_step, max(1, len(plan.cells)))
        return Clip(number, clip, beyond, -(-hidden * clip // ladder.multiple(measure.clip)))
    if clipped(noisy, mechanism, measure.clip) is None:
        little = faint(noisy, mechanism) or (_one_row(measure) if _thinned(plan) else measure.clip)
        return Clip(number, min(measure.clip, little), None, hidden)
    per_step = _noise_per_step(plan, priced, measure)
    best = chosen(noisy, mechanism, lambda limit: per_step * limit, max(1, len(plan.cells))).limit
    clip = min(measure.clip, best)
    return Clip(number, clip, clipped(noisy, mechanism, clip), hidden)


def _thinned(plan: Plan) -> bool:
    """Whether a join keeps some rows of a unit and not others, so that units of which little is seen have few of them.

    A condition on people leaves fewer of them, with all their rows; one on their orders leaves fewer orders of each.
    """
    relation = plan.table.relation
    many = [each for each in relation.sources if isinstance(each, Owned) and limit_of(each) != 1] if relation else []
    columns = {full(source, name) for source in many for name in source.columns}
    where = relation.where if relation else TRUE
    parts = where.arguments if isinstance(where, Call) and where.function == "and" else (where,)
    return any(columns & columns_of(each) for each in parts)


def _one_row(measure: Measure) -> int:
    """What one row adds at most."""
    if measure.kind == "rows":
        return 1
    most = max(abs(measure.low), abs(measure.high), 1)
    if measure.times is not None:
        return most * max(abs(measure.times.low), abs(measure.times.high), 1)
    return most**2 if measure.kind == "square" else most


def lowered(plan: Plan, clips: Mapping[int, int]) -> Plan:
    """The plan with lower clips, in its SQL too; the measures of a ratio share their price anew.

    Adding or removing a unit (exchanging one) then changes a measure by what `rules.bound` says of its new clip.
    """
    statistics, number = [], 0
    for statistic in plan.statistics:
        measures = []
        for measure in statistic.measures:
            clip = clips.get(number, measure.clip)
            same = clip == measure.clip
            measures.append(measure if same else limited(measure, clip, plan.norm, plan.neighbors))
            number += 1
        changed = tuple(measures) != statistic.measures
        new = replace(statistic, measures=tuple(measures))
        if changed and statistic.kind == "moments":
            new = _shared(new, plan.norm)
        elif changed and statistic.kind == "covariance":
            new = _rescaled(statistic, new, plan.norm)
        statistics.append(new)
    return compiled(replace(plan, statistics=tuple(statistics)))


def _shared(statistic: Statistic, norm: str) -> Statistic:
    """Count, sum and squares with shares that fit their clips; together they cost what they did."""
    whole, summed = sum((each.share for each in statistic.measures), Fraction(0)), statistic.measures[1]
    shares = split(statistic.measures, summed.low, summed.high, norm).measures
    return replace(statistic, measures=tuple(replace(each, share=each.share * whole) for each in shares))


def _rescaled(before: Statistic, after: Statistic, norm: str) -> Statistic:
    """Shares moved with what one unit can change: they are least noisy in proportion to Δ (to Δ^⅔ under pure DP)."""
    power = 0.5 if norm == "l2" else 2 / 3  # the sensitivity is a square where the norm is L2
    raw = [
        float(old.share) * float(Fraction(new.sensitivity, old.sensitivity)) ** power
        for old, new in zip(before.measures, after.measures, strict=True)
    ]
    whole = sum((each.share for each in before.measures), Fraction(0))
    return replace(
        after,
        measures=tuple(
            replace(each, share=share * whole) for each, share in zip(after.measures, exact_shares(raw), strict=True)
        ),
    )


def _noise_per_step(plan: Plan, priced: Priced, measure: Measure) -> float:
    """Median |noise| of this measure for each step of its clip."""
    change = limited(measure, 1, plan.norm, plan.neighbors).sensitivity
    if priced.rho is None:
        return math.log(2) * change / (priced.epsilon * float(measure.share))
    return 0.6745 * math.sqrt(change / (2 * priced.rho * float(measure.share)))


# --- for people


def reported(plan: Plan, found: Sequence[Clip]) -> tuple[dict[str, Any], ...]:
    """What was found, in the units of the answer. ``plan`` is the one that was asked."""
    reports = []
    for each in found:
        measure = plan.measures[each.measure]
        unit = _unit(measure)
        reports.append(
            {
                "measure": _named(measure),
                "limit": float(each.clip * unit) if unit != 1 else each.clip,
                "of": float(measure.clip * unit) if unit != 1 else measure.clip,
                "beyond": each.beyond,
                "hidden": each.hidden,
                "share": float(measure.search),
            }
        )
    return tuple(reports)


def notes(plan: Plan, found: Sequence[Clip]) -> tuple[str, ...]:
    """The same as sentences."""
    sentences = []
    for each, report in zip(found, reported(plan, found), strict=True):
        measure = plan.measures[each.measure]
        if measure.kind == "distinct":
            sentences.append(_distinct(plan, each, measure))
            continue
        what = "rows" if measure.kind == "rows" else f"of the {report['measure']}"
        limit = f"{report['limit']:,.6g} {what} a unit" if measure.kind != "rows" else f"{each.clip:,} rows a unit"
        if plan.keys:
            limit += ", over its groups" if plan.norm == "l1" else ", as a norm over its groups"
            limit += " in all sets" if plan.sets else ""
        said = f"found its own limit: {limit} (of {report['of']:,.10g})"
        if each.clip == measure.clip:
            said = f"looked for a lower limit and kept the one it had: {limit}"
        of = "the rows" if measure.kind == "rows" else "it"
        verb = "lie" if measure.kind == "rows" else "lies"
        beyond = f"counts of units ± {each.hidden:,} do not tell how much lies beyond"
        if each.beyond is not None:
            about = "less than 0.1%" if each.beyond < 0.001 else f"about {each.beyond:.1%}"
            beyond = f"{about} of {of} {verb} beyond, as far as counts of units ± {each.hidden:,} tell"
        sentences.append(f"This question {said}; {beyond}.")
    return tuple(sentences)


def _distinct(plan: Plan, found: Clip, measure: Measure) -> str:
    what = ("value" if found.clip == 1 else "values") if not plan.keys else "pairs of group and value"
    what += " in each grouping set" if measure.sets > 1 else ""
    missed = "less than 0.1%" if (found.beyond or 0.0) < 0.001 else f"about {found.beyond:.1%}"
    return (
        f"{_named(measure)}: of one unit, at most {found.clip:,} {what} count (of {measure.clip:,}), as the question "
        f"found itself; {missed} are not seen for it, as far as a count ± {found.hidden:,} tells."
    )


def _unit(measure: Measure) -> Fraction:
    if measure.times is not None:
        return measure.step * measure.times.step
    return {"rows": Fraction(1), "square": measure.step**2}.get(measure.kind, measure.step)


def _named(measure: Measure) -> str:
    if measure.value is None:
        return "rows"
    if measure.kind == "distinct":
        return f"COUNT(DISTINCT {written(measure.value)})"
    names = {"sum": "sum", "square": "sum of squares", "product": "sum of products"}
    return f"{names[measure.kind]} of {' and '.join(_centred(measure))}"


def _centred(measure: Measure) -> list[str]:
    centre = f" less {float(measure.centre * measure.step):g}" if measure.centre else ""
    value = [] if measure.value is None else [written(measure.value) + centre]
    return value + ([] if measure.times is None else _centred(measure.times))
