"""A plan as people read it: what each step does, what one unit can change in it, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.queries.sql_words import SqlWords

if TYPE_CHECKING:
    from dalenius.measuring.plan import Measure, Plan
    from dalenius.queries.rules.price import Priced


def describe_plan(plan: Plan, found: Priced) -> str:
    """The plan for people: what each step does, what one unit can change, what it costs."""
    policy, budget, words = plan.table.policy, plan.table.budget, SqlWords.of(plan)
    relation = "added or removed" if plan.neighbors.value == "add-remove" else "exchanged for another"
    unit = " + ".join([*plan.table.unit, *([budget.period] if budget.period else [])])
    size = f"{len(plan.cells):,}, all public" if plan.selection is None else "found privately"
    lines = [
        f"table     {policy.name}; protected is one {unit}, {relation}",
        *_rows(plan, words),
        f"groups    {_groups(plan, words)} ({size})",
        *_search(found, unit),
    ]
    if plan.groups is not None:
        of = "the groups of each set" if plan.sets else "them"
        lines.append(f"          one {unit} counts in at most {plan.groups:,} of {of}, chosen by a keyed hash")
    if plan.periods != ("",):
        lines.append(f"periods   {plan.periods[0]} to {plan.periods[-1]} ({len(plan.periods)}), each charged in full")
    for measure, mechanism in zip(plan.measures, found.mechanisms, strict=True):
        lines += _steps(plan, measure, mechanism, found, words)
    total = f"ρ = {found.rho:.6g}" if found.rho is not None else "pure"
    total += f", δ = {found.delta:.3g}" if found.delta else ""
    lines.append(f"price     ε = {found.epsilon:g} for the whole question ({total}), charged before the data is read")
    return "\n".join(lines)


def _rows(plan: Plan, words: SqlWords) -> list[str]:
    """Which rows count; of several tables, that they are of one unit."""
    conditions = dict.fromkeys((*words.conditions(plan.table.relation.where), *words.conditions(plan.question.where)))
    lines = [f"rows      {' AND '.join(conditions) or 'all'}"]
    return lines if plan.table.relation.single else ["  unit    of all of them is the same", *lines]


def _groups(plan: Plan, words: SqlWords) -> str:
    """What rows are grouped by."""
    keys = plan.question.keys
    if not plan.sets:
        return ", ".join(map(words.text, keys)) or "none: one answer"
    sets = ["(" + ", ".join(words.text(keys[at]) for at in each) + ")" for each in plan.sets]
    return f"{len(sets)} sets: {', '.join(sets)}"


def _search(found: Priced, unit: str) -> list[str]:
    """How groups that are not public are found."""
    selection = found.selection
    if selection is None:
        return []
    noise = (
        f"Δ2² = {selection.squared_sensitivity:,}; discrete Gaussian, σ = {float(selection.noise.variance) ** 0.5:,.6g}"
    )
    weight, units = found.least_weight, found.least_units
    return [
        f"  weigh   one {unit} adds ⌊2²⁰/√m⌋ to each of its m keys, at most {selection.cap:,} by a keyed hash",
        f"  noise   {noise}; ρ = {float(selection.rho):.6g}, δ = {selection.delta:.3g}",
        f"  shown   keys whose noisy weight is at least {weight:,}: that of {units:,} with this key alone",
    ]


def _steps(plan: Plan, measure: Measure, mechanism: Any, found: Priced, words: SqlWords) -> list[str]:
    known = measure.primitive
    value = "" if measure.value is None else f" of {words.text(measure.value)}"
    if measure.times is not None and measure.times.value is not None:
        value += f" and {words.text(measure.times.value)}"
    where = " AND ".join(words.conditions(measure.where))
    lines = [f"measure   {known.words}{value}" + (f" where {where}" if where else "")]
    if known.rounded:
        centre = f" less {measure.centre * measure.step}" if measure.centre else ""
        lines.append(f"  value   rounded to {float(measure.step):g}{centre}: {measure.low}..{measure.high} steps")
    norm, groups = "L2" if plan.norm == "l2" else "L1", "the groups of all sets" if plan.sets else "the groups"
    if known.tree:
        from dalenius.measuring.trees import TreeLayout

        layout = TreeLayout.of(measure)
        lines.append(f"  tree    {layout.used:,} leaves of {layout.size:,} steps, {layout.levels} levels")
    each = " in each set" if measure.sets > 1 else ""
    lines.append(f"  clip    {known.clip.format(groups=groups, norm=norm, clip=measure.clip, each=each)}")
    if measure.search:
        lines.append(
            f"  search  a lower norm first, from noisy counts of units; {float(measure.search):.0%} of the price"
        )
    if measure.bits:
        lines.append(f"  parts   counted in 1/{2**measure.bits:,} of a {'row' if measure.value is None else 'step'}")
    change = f"Δ2² = {measure.sensitivity:,}" if plan.norm == "l2" else f"Δ1 = {measure.sensitivity:,}"
    if found.rho is not None:
        price = f"ρ = {float(measure.share) * found.rho:.6g}"
        noise = f"discrete Gaussian, σ = {float(mechanism.variance) ** 0.5:,.6g}"
    else:
        price = f"ε = {float(measure.share) * found.epsilon:.6g}"
        noise = f"discrete Laplace, scale {float(mechanism.scale):,.6g}"
    lines.append(f"  noise   {change}; {noise} steps; {price} ({float(measure.share):.0%} of the price)")
    return lines
