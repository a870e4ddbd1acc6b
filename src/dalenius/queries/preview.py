"""What a question would cost and how noisy it would be, before anything is paid. Never touches the data.

Priced by accuracy (`epsilon_for`), a question costs the least ε at which every column is as exact as asked. That uses
what previews use, so it is free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius._fields import Fields
from dalenius.accounting import parameters
from dalenius.errors import InputError, QuestionRefusedError
from dalenius.ledger.key_delta import Left
from dalenius.measuring.expressions import Aggregate, Expression, written
from dalenius.queries.postprocess import describe_groups, most_groups, shown_groups
from dalenius.queries.release import FREE
from dalenius.queries.rules.price import Priced, price_plan
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from dalenius.measuring.plan import Measure, Output, Plan

CHOICES = (0.05, 0.2, 0.5)
GROUPS = 100  # so many stand for those that nobody knows before they are found
_LOWEST, _HIGHEST = 1e-6, 1e3  # ε
_PRECISION = 1e-4  # of ε, relative
ROWS = 1000  # a group of so many rows stands for the ones that nobody has counted


@dataclass(frozen=True)
class Choice:
    """One price, and the noise error of each column at it; None for keys and for what depends on the answer.

    ``delta`` is what finding the groups costs besides; 0 where they are public.
    """

    epsilon: float
    rho: float | None
    noise_error: tuple[float | None, ...]
    noise_error_per_rows: tuple[float | None, ...]
    delta: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "delta": self.delta,
            "noise_error": list(self.noise_error),
            f"noise_error_at_{ROWS}_rows": list(self.noise_error_per_rows),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Choice:
        """As `to_dict` wrote it."""
        found = Fields(data, "preview")
        rho = found.number("rho") if "rho" in found else None
        errors = found.numbers("noise_error"), found.numbers(f"noise_error_at_{ROWS}_rows")
        return cls(found.number("epsilon"), rho, *errors, found.number("delta") if "delta" in found else 0.0)


@dataclass(frozen=True)
class Preview:
    """Price and expected error of a question.

    Attributes:
        columns: Names of the answer's columns.
        groups: How many rows the answer has, before HAVING and LIMIT; None where groups have to be found.
        choices: One price, or the usual three.
        confidence: Of the noise errors.
        plan: The plan, for people.
        remaining: What is left to spend.
        notes: What the reader should know besides.
        rows: How many rows a group is reckoned to have, where the error depends on that.
        delta: What finding the groups costs besides at the first of them; 0 where they are public.
        search: The share of the price with which the question first finds its own limits; the noise errors are then
            the most that they will be.
        public: It is about public tables only: answered exactly, and for nothing. There are no choices then.
    """

    columns: tuple[str, ...]
    groups: int | None
    choices: tuple[Choice, ...]
    confidence: float
    plan: str
    remaining: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    rows: int = ROWS
    delta: float = 0.0
    search: float = 0.0
    public: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "columns": list(self.columns),
            "groups": self.groups,
            "delta": self.delta,
            "choices": [each.to_dict() for each in self.choices],
            "confidence": self.confidence,
            "remaining": self.remaining,
            "notes": list(self.notes),
            "search": self.search,
            "public": self.public,
            "rows": self.rows,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Preview:
        """As `to_dict` wrote it; the plan is there where "plan" stands beside the rest.

        Raises:
            InputError: It is no preview.
        """
        found = Fields(data, "preview")
        columns, choices = found.texts("columns"), tuple(map(Choice.from_dict, found.items("choices")))
        for each in choices:
            if not len(columns) == len(each.noise_error) == len(each.noise_error_per_rows):
                raise found.wrong("choices")
        remaining = found.fields("remaining")
        if not found.flag("public"):
            for who in ("analyst", "dataset"):
                remaining.fields(who).number("epsilon")
        return cls(
            columns,
            found.whole("groups") if "groups" in found else None,
            choices,
            found.number("confidence"),
            found.text("plan") if "plan" in found else "",
            found.mapping("remaining"),
            found.texts("notes"),
            found.whole("rows"),
            found.number("delta"),
            found.number("search"),
            found.flag("public"),
        )

    def size(self, what: str) -> str:
        """How many rows or groups, in words."""
        if self.groups is None:
            found = [self.delta, *(each.delta for each in self.choices if each.delta)]
            least, most = f"{min(found):.3g}", f"{max(found):.3g}"
            return f"groups found privately, δ = {least if least == most else f'{least} to {most}'}"
        return f"{self.groups:,} {what}{'s' if self.groups != 1 else ''}"

    def __str__(self) -> str:
        if self.public:
            return "\n".join([f"{', '.join(self.columns)}: {FREE}", *self.notes])
        lines = [f"{self.size('group')}, {', '.join(self.columns)}"]
        for choice in self.choices:
            shown = []
            for name, error, per_rows in zip(
                self.columns, choice.noise_error, choice.noise_error_per_rows, strict=True
            ):
                if error is not None:
                    shown.append(f"{name} ± {error:,.4g}")
                elif per_rows is not None:
                    shown.append(f"{name} ± {per_rows:,.4g} in a group of {self.rows:,} rows")
            lines.append(f"  ε = {choice.epsilon:g}: {', '.join(shown) or 'keys only'}")
        lines.append(f"  ({self.confidence:.0%} of the time, from the noise alone)")
        return "\n".join([*lines, *self.notes])


def preview_plan(
    plan: Plan,
    epsilons: Sequence[float],
    confidence: float,
    remaining: Mapping[str, Any],
    delta: float | None = None,
) -> Preview:
    """The preview at some prices; what charges later is what is looked at here (`rules.price`)."""
    chosen = plan.selection is not None and delta is None
    left = Left.of(remaining) if chosen and remaining else None
    choices = []
    for epsilon in epsilons:
        found = price_plan(plan, epsilon, delta, left)
        errors = [_error(plan, output.expression, found, confidence) for output in plan.question.outputs]
        always, usual = (tuple(each[kind] for each in errors) for kind in (0, 1))
        choices.append(Choice(epsilon, found.rho, always, usual, found.delta))
    return Preview(
        tuple(output.name for output in plan.question.outputs),
        None if plan.selection is not None else len(shown_groups(plan)),
        tuple(choices),
        confidence,
        describe_plan(plan, price_plan(plan, epsilons[0], delta, left)),
        remaining,
        (*plan.notes, *_search_notes(plan)),
        usual_rows(plan),
        choices[0].delta,
        float(sum(each.search for each in plan.measures)),
    )


def _search_notes(plan: Plan) -> tuple[str, ...]:
    share = sum(each.search for each in plan.measures)
    if not share:
        return ()
    with_ = f"with {float(share):.0%} of the price"
    return (f"The noise error is at most that: the question first finds its own limits {with_}.",)


def _error(plan: Plan, expression: Expression, found: Priced, confidence: float) -> tuple[float | None, float | None]:
    """Noise error of an output: of a sum or count always the same, of an average in a group of so many rows."""
    if not isinstance(expression, Aggregate):
        return None, None
    number = plan.answers[expression]
    statistic = plan.statistics[number]
    start = plan.start(number)
    laws = [each.noise for each in found.mechanisms[start : start + len(statistic.measures)]]
    return statistic.family.expected_error(expression, statistic, laws, usual_rows(plan), confidence)


def usual_rows(plan: Plan) -> int:
    """How many rows a group is reckoned to have: by the noisy number of rows, or else a round number.

    Of grouping sets, in the one with most groups: those of all others have more rows, and less error.
    """
    found = plan.table.found
    groups = GROUPS if plan.selection is not None else most_groups(plan)
    return ROWS if found is None else max(1, found.row_count // groups)


def noise_error(plan: Plan, expression: Expression, found: Priced, confidence: float) -> float | None:
    """The noise error of an output at a price; of a ratio, in a group of the usual number of rows."""
    always, usual = _error(plan, expression, found, confidence)
    return usual if always is None else always


def describe_plan(plan: Plan, found: Priced) -> str:
    """The plan for people: what each step does, what one unit can change, what it costs."""
    policy, budget = plan.table.policy, plan.table.budget
    relation = "added or removed" if plan.neighbors.value == "add-remove" else "exchanged for another"
    unit = " + ".join([*plan.table.unit, *([budget.period] if budget.period else [])])
    size = f"{len(plan.cells):,}, all public" if plan.selection is None else "found privately"
    lines = [
        f"table     {policy.name}; protected is one {unit}, {relation}",
        *_rows(plan),
        f"groups    {describe_groups(plan)} ({size})",
        *_search(found, unit),
    ]
    if plan.groups is not None:
        of = "the groups of each set" if plan.sets else "them"
        lines.append(f"          one {unit} counts in at most {plan.groups:,} of {of}, chosen by a keyed hash")
    if plan.periods != ("",):
        lines.append(f"periods   {plan.periods[0]} to {plan.periods[-1]} ({len(plan.periods)}), each charged in full")
    for measure, mechanism in zip(plan.measures, found.mechanisms, strict=True):
        lines += _steps(plan, measure, mechanism, found)
    total = f"ρ = {found.rho:.6g}" if found.rho is not None else "pure"
    total += f", δ = {found.delta:.3g}" if found.delta else ""
    lines.append(f"price     ε = {found.epsilon:g} for the whole question ({total}), charged before the data is read")
    return "\n".join(lines)


def _rows(plan: Plan) -> list[str]:
    """Which rows count; of several tables, how they are joined."""
    relation = plan.table.relation
    if relation.single:
        return [f"rows      {written(plan.where)}"]
    lines = [f"  {'left  ' if each.left else 'join  '}  {each.written()}" for each in relation.joins]
    lines += [f"  {each.written()}" for each in relation.matches]
    return [*lines, "  unit    of all of them is the same", f"rows      {written(relation.where)}"]


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


def _steps(plan: Plan, measure: Measure, mechanism: Any, found: Priced) -> list[str]:
    known = measure.primitive
    value = "" if measure.value is None else f" of {written(measure.value)}"
    if measure.times is not None and measure.times.value is not None:
        value += f" and {written(measure.times.value)}"
    where = "" if written(measure.where) == "true" else f" where {written(measure.where)}"
    lines = [f"measure   {known.words}{value}{where}"]
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


# --- priced by accuracy


def epsilon_for(plan: Plan, error: float | Mapping[str, float], confidence: float) -> float:
    """The least ε at which noise errors are at most ``error``: one for all columns, or one per named column."""
    wanted = _wanted(plan, error)

    def exact_enough(epsilon: float) -> bool:
        found = price_plan(plan, epsilon)
        return all(
            (each := noise_error(plan, output.expression, found, confidence)) is not None and each <= most
            for output, most in wanted
        )

    if not exact_enough(_HIGHEST):
        raise QuestionRefusedError(
            "No price makes the answer that exact.",
            why="Values are rounded to steps, and averages need enough rows.",
            fix="Ask for a larger error.",
        )
    low, high = math.log(_LOWEST), math.log(_HIGHEST)
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if exact_enough(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _wanted(plan: Plan, error: float | Mapping[str, float]) -> list[tuple[Output, float]]:
    outputs = {each.name: each for each in plan.question.outputs if isinstance(each.expression, Aggregate)}
    if not outputs:
        raise InputError(
            "No column can be priced by its error.",
            why="Only plain aggregates can; arithmetic on them has an error that depends on the answer.",
            fix="Give an epsilon.",
        )
    if not isinstance(error, Mapping):
        most = float(parameters.positive(error, "error"))
        return [(each, most) for each in outputs.values()]
    if not error:
        raise InputError(
            "No error is given.", why="It is a price: the least ε that gives it.", fix="Name a column and its error."
        )
    for name in error:
        if name not in outputs:
            meant = nearest(name, outputs)
            raise InputError(
                f"There is no column {name!r} to price.",
                why=f"The question has {', '.join(outputs)}.",
                fix=f"Did you mean {meant!r}?" if meant else "Name one of them.",
            )
    return [(outputs[name], float(parameters.positive(most, "error"))) for name, most in error.items()]
