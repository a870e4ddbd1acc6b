"""Derived numbers as an answer: values with their intervals, in the terms of the question.

What limits took from the answers that it follows from is in its total interval, at worst: errors that may go together
are added up. Where nothing is known of that for one of them, nothing is said. Limits that are not the question's own
are named in a note.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dalenius._numbers import count_of
from dalenius.accounting.conversions import zcdp_epsilon
from dalenius.measuring.estimates import Estimate
from dalenius.measuring.expressions import Aggregate, walk
from dalenius.measuring.limits.clipping import Loss
from dalenius.mechanisms.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw
from dalenius.queries.known.deriving import Numbers, releases_of
from dalenius.queries.note_words import plain_notes
from dalenius.queries.postprocess import ReleasedTable, key_columns, tabulate
from dalenius.queries.release import Release
from dalenius.queries.total_intervals import Clipped, Unknown, clipping_notes
from dalenius.queries.workloads.showing import estimates_of

if TYPE_CHECKING:
    from dalenius.ledger.requests import Answered
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.plan import Plan
    from dalenius.queries.known.sources import PaidMeasure
    from dalenius.releasing.leaving import Asker

KNOWN = "Nothing was charged: it follows from {what} that you have paid for."
ALONE = "Asked alone, by --fresh, limits would hold for these rows only, and might cut off less."
_GAUSSIAN, _LAPLACE = DiscreteGaussianLaw(Fraction(1)), DiscreteLaplaceLaw(Fraction(1))


@dataclass(frozen=True)
class _Counted:
    """In what numbers are counted: whole steps about a centre, with noise of a kind."""

    centre: int
    law: Noise
    bits: int = 0


@dataclass(frozen=True)
class KnownAnswer:
    """A question that follows from own answers.

    Attributes:
        plan: The question.
        numbers: Of each of its measures.
        confidence: Of the errors.
    """

    plan: Plan
    numbers: Sequence[Numbers]
    confidence: float

    @cached_property
    def estimates(self) -> Mapping[Aggregate, list[Estimate]]:
        """Every aggregate's number in every group."""
        found = {}
        for aggregate, number in self.plan.answers.items():
            noisy = [
                (_Counted(each.centre, _GAUSSIAN if each.gaussian else _LAPLACE), each.values, each.variances)
                for each in self._of(number)
            ]
            found[aggregate] = estimates_of(aggregate, self.plan.statistics[number], noisy, self.confidence)
        return found

    def _of(self, statistic: int) -> Sequence[Numbers]:
        start = self.plan.start(statistic)
        return self.numbers[start : start + len(self.plan.statistics[statistic].measures)]

    @cached_property
    def clipped(self) -> Mapping[Aggregate, Clipped]:
        """What limits took from the aggregates of which that is known."""
        found = {}
        for aggregate, number in self.plan.answers.items():
            own = self._of(number)
            if len(own) == 1 and own[0].reach is not None:
                found[aggregate] = self._clipped(aggregate, number, own[0])
        return found

    def _clipped(self, aggregate: Aggregate, number: int, own: Numbers) -> Clipped:
        measure = self.plan.statistics[number].measures[0]
        step = float(measure.step)
        known = [each.clipped for each in own.sources if each.clipped is not None]
        widest = max((each.loss for each in known), key=lambda each: each.factor, default=Loss(0.0))
        totals: list[tuple[float, float] | None] = []
        below, above = own.reach if own.reach is not None else ((), ())
        for each, low, high in zip(self.estimates[aggregate], below, above, strict=True):
            if each.low is None or each.high is None:
                totals.append(None)
                continue
            ends = each.low - step * float(low), each.high + step * float(high)
            whole = isinstance(each.value, int)  # of whole numbers, to whole ones
            totals.append((float(math.floor(ends[0])), float(math.ceil(ends[1]))) if whole else ends)
        missed = [0.0 if own.sources[0].scaled else step * widest.missed(float(each)) for each in own.values]
        clip = min(each.limit[1] for each in own.sources)
        return Clipped(widest, totals, missed, measure, clip, found=any(each.found for each in known))

    @cached_property
    def table(self) -> ReleasedTable:
        """What the question asked to see. Its numbers may share their noise, so errors of arithmetic add up plainly."""
        plan = replace(self.plan, answers=dict.fromkeys(self.plan.answers, 0))
        return tabulate(plan, key_columns(plan), self.estimates, self.clipped)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know besides."""
        parts = (part for output in self.plan.question.outputs for part in walk(output.expression))
        shown = [each for each in dict.fromkeys(parts) if isinstance(each, Aggregate)]
        taken = {each: self.clipped.get(each) or self._unknown(self.plan.answers[each]) for each in shown}
        errors = {each: [one.noise_error or 0.0 for one in self.estimates[each]] for each in shown}
        return plain_notes(self.plan, (*self.plan.notes, *self.limits, *clipping_notes(self.plan, taken, errors)))

    def _unknown(self, number: int) -> Unknown:
        """Why nobody knows what limits took from an aggregate."""
        if len(self._of(number)) > 1:
            return Unknown.LEANING
        sources = (each for own in self._of(number) for each in own.sources)
        return next((each.taken for each in sources if isinstance(each.taken, Unknown)), Unknown.OTHER)

    @property
    def limits(self) -> tuple[str, ...]:
        """Which limits held, where they are not those that the question would have."""
        unit, told = " + ".join(self.plan.table.unit), list[str]()
        for measure, own in zip(self.plan.measures, self.numbers, strict=True):
            for each in own.sources:
                if each.limit == (self.plan.norm, measure.clip, self.plan.groups) and each.cells == self.plan.cells:
                    continue
                told.append(_limit_words(each))
        if not told:
            return ()
        held = ", or ".join(dict.fromkeys(told))
        alone = (ALONE,) if any(each.part for each in self.numbers) else ()
        return (
            f"The limits are those of the answers that it follows from: one {unit} counts there with {held}.",
            *alone,
        )


def _limit_words(source: PaidMeasure) -> str:
    norm, clip, groups = source.limit
    most = (
        count_of(clip, "row")
        if source.measure.kind == "rows"
        else f"a total of {float(clip * source.measure.step):,.10g}"
    )
    over = f" over its {count_of(len(source.cells), 'group')} together" if len(source.cells) > 1 else ""
    how = " (as a norm)" if norm == "l2" and len(source.cells) > 1 else ""
    few = "" if groups is None else f", in {count_of(groups, 'group')} at the most"
    return f"at most {most}{over}{how}{few}"


def shown_answer(known: KnownAnswer, asker: Asker, answered: Sequence[Answered], question: str) -> Release:
    """The answer, for nothing, with the guarantee of all that it follows from.

    Guarantee:
        Post-processing of releases that were charged before: together they are Σρ-zCDP (Σε-DP under pure), and so is
        what follows from them.
    """
    plan, table = known.plan, known.table
    budget = plan.table.budget
    rhos = [each.receipt.charge["rho"] for each in answered]
    pure = any(each is None for each in rhos)
    epsilon = epsilon_together(list(releases_of(known.numbers).values()), rhos, budget.conversion_delta)
    unit = ", ".join([*plan.table.unit, *([budget.period] if budget.period else [])])
    told = KNOWN.format(what="an answer" if len(answered) == 1 else count_of(len(answered), "answer"))
    return Release(
        columns=table.columns,
        keys=table.keys,
        rows=table.rows,
        noise_error=table.noise_error,
        interval=table.interval,
        total_interval=table.total_interval,
        clipping=table.clipping,
        confidence=known.confidence,
        guarantee={
            "kind": "pure" if pure else "approx",
            "epsilon": epsilon,
            "delta": budget.delta,
            "unit": unit,
            "neighbors": budget.neighbors.value,
        },
        charge={"epsilon": 0.0, "delta": 0.0, "rho": None if pure else 0.0},
        remaining=asker.remaining(answered[0].receipt.dataset, plan.periods),
        free=True,
        receipt=answered[0].receipt.to_dict(),
        question=question,
        notes=(*known.notes, told, *asker.warnings(answered[0].receipt.dataset)),
    )


def epsilon_together(epsilons: Sequence[float], rhos: Sequence[Any], delta: float) -> float:
    """What several releases promise together: ρ adds, and under pure ε does; of one alone, what was typed for it."""
    if len(epsilons) == 1:
        return epsilons[0]
    return sum(epsilons) if None in rhos else zcdp_epsilon(sum(map(float, rhos)), delta)
