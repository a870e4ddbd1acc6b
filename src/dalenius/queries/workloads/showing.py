"""What is stored of a workload, read in the terms of its questions. Post-processing: no data, no other price.

Each part's noisy integers give, by least squares, all answers that it determines, and the variance of each is known
exactly (`measuring.strategies`): the same count asked for in two questions is the same number. An average is the
quotient of two parts, whose noise is independent.

Intervals are those of an answer's own noise. Gaussian noise added up is Gaussian. Of Laplace noise that is added up
only the variance is looked at: its law lies between a single Laplace one and a Gaussian one of that variance, and the
interval is the wider one of the two, at 95% that of Laplace noise. It is at most 8% too wide there. What limits cut off
is not in them, but in the total intervals (`taken`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

from dalenius.errors import LedgerCorruptError
from dalenius.measuring.estimates import Estimate, NoisySum, noise_variance, normal_width
from dalenius.measuring.limits.clip_search import Clip
from dalenius.measuring.limits.clipping import Spread, loss_of_counts
from dalenius.measuring.strategies.stored import strategy_of_json
from dalenius.mechanisms.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw
from dalenius.queries.answering import Answer, read_law
from dalenius.queries.note_words import plain_notes
from dalenius.queries.postprocess import ReleasedTable, key_columns, tabulate
from dalenius.queries.workloads.linear import Sums
from dalenius.queries.workloads.measuring import FORMAT
from dalenius.queries.workloads.taken import Taken

if TYPE_CHECKING:
    from dalenius.ledger.requests import Answered
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.expressions import Aggregate
    from dalenius.measuring.limits.clipping import Loss
    from dalenius.measuring.plan import Plan, Statistic
    from dalenius.measuring.statistics.family import Cellwise
    from dalenius.measuring.strategies.factors import Array
    from dalenius.measuring.strategies.strategy import Inferred, Strategy
    from dalenius.queries.release import Release
    from dalenius.queries.total_intervals import Unknown

CHARGED = "Charged once, for all questions of its workload together."
_FINER = 12  # bits that answers are counted in beyond those of what was measured: rounding then changes nothing
_DIGITS = 12  # bits of a variance that are kept, rounded up, so that many answers share one law


@dataclass(frozen=True)
class StoredPart:
    """What was measured of one thing that is added up.

    Attributes:
        strategy: By which.
        law: Of the noise in each integer.
        values: The noisy integers.
        bits: In how many parts of a step they are counted.
        clip: The limit of what one unit adds, in steps.
        centre: What was subtracted from each row's value, in steps.
        norm: In which that limit holds.
        cells: Over how many cells.
        keys: The columns that its cells tell apart, by their places among those over which `protect` found a limit.
        whole: Whether all rows of the table are in them.
        together: The numbers of the parts that are scaled by one factor.
        found: The limit with the noisy counts that it was chosen from, where it was found for the workload.
        before: The limit that it was before that, in steps.
        search: What went of the price into finding it.
        losses: What that took, by the number of a question's groups, once it is reckoned.
    """

    strategy: Strategy
    law: Noise
    values: tuple[int, ...]
    bits: int
    clip: int
    centre: int
    norm: str = "l1"
    cells: int = 1
    keys: tuple[int, ...] = ()
    whole: bool = False
    together: tuple[int, ...] = ()
    found: Clip | None = None
    before: int = 0
    search: Fraction = Fraction(0)
    losses: dict[int, Loss | Unknown] = field(default_factory=dict, compare=False)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> StoredPart:
        """As `measuring.measure_workload` wrote it."""
        return cls(
            strategy_of_json(data["strategy"]),
            read_law(data["law"]),
            tuple(map(int, data["values"])),
            data["bits"],
            int(data["clip"]),
            data["centre"],
            data["norm"],
            data["cells"],
            tuple(data["keys"]),
            data["whole"],
            tuple(data["together"]),
            Clip.of_json(data["found"]) if "found" in data else None,
            int(data.get("before", 0)),
            Fraction(data.get("search", 0)),
        )

    @cached_property
    def total(self) -> float:
        """What all cells show together, in steps; where that was not measured, as the counts of units tell."""
        from dalenius.measuring.strategies.workload import Product

        if self.strategy.determines(Product()):
            return float(self.inferred.answers(Product())[0]) / 2.0**self.bits
        counts = None if self.found is None else self.found.counts
        loss = (
            None if counts is None else loss_of_counts(counts.noisy, counts.law, self.clip, Spread(1, False, 0.0, True))
        )
        return 0.0 if loss is None else loss.kept

    @cached_property
    def deviation(self) -> float | None:
        """Of the noise in ``total``; None where that was not measured."""
        from dalenius.measuring.strategies.workload import Product

        if not self.strategy.determines(Product()):
            return None
        return math.sqrt(noise_variance(self.law) * float(self.strategy.variances(Product())[0])) / 2.0**self.bits

    @cached_property
    def inferred(self) -> Inferred:
        """All that least squares tell."""
        import numpy as np

        return self.strategy.infer(np.array(self.values, dtype=float))

    def answers(self, sums: Sums) -> tuple[Array, Array]:
        """A question's numbers, in parts of a step, and the variance of each."""
        return sums.answers(self.inferred), noise_variance(self.law) * sums.variances(self.strategy)


@dataclass(frozen=True)
class StoredWorkload:
    """A stored release, with all that its questions may be read from."""

    epsilon: float
    rho: float | None
    parts: tuple[StoredPart, ...]
    questions: Mapping[str, Sequence[Mapping[str, Any]]]
    beside: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, content: bytes) -> StoredWorkload:
        """As `measuring.measure_workload` wrote it."""
        data = json.loads(content)
        if data.get("format") != FORMAT:
            raise unreadable()
        parts = tuple(map(StoredPart.of_json, data["parts"]))
        return cls(data["epsilon"], data["rho"], parts, data["questions"], data["beside"])

    def holds(self, key: str) -> bool:
        """Whether a question was one of its, by the key that it has alone."""
        return key in self.questions or key in self.beside

    def shown(
        self, key: str, plan: Plan, confidence: float
    ) -> tuple[ReleasedTable, tuple[str, ...], tuple[Mapping[str, Any], ...]]:
        """What one of its questions asked to see, with notes, and the limits that it found for itself.

        What is stored says how it was measured, whatever would be chosen for the same questions now.
        """
        if key in self.questions:
            reading = QuestionReading(self, plan, self.questions[key], confidence)
            return reading.table(), reading.notes, reading.taken.limits
        if key not in self.beside:
            raise unreadable()
        answer = Answer.read(plan, json.dumps(self.beside[key]).encode(), confidence)
        return answer.table(), answer.notes, answer.limits


@dataclass(frozen=True)
class QuestionReading:
    """A question of a workload, as it was released."""

    stored: StoredWorkload
    plan: Plan
    terms: Sequence[Mapping[str, Any]]
    confidence: float

    @cached_property
    def noisy(self) -> list[tuple[StoredPart, Array, Array]]:
        """For each measure of the plan its part, its numbers in all groups, and their variances."""
        if len(self.terms) != len(self.plan.measures):
            raise unreadable()
        found = []
        for each in self.terms:
            part = self.stored.parts[each["part"]]
            found.append((part, *part.answers(Sums.of_json(each, len(self.plan.cells)))))
        return found

    @cached_property
    def estimates(self) -> Mapping[Aggregate, list[Estimate]]:
        """Every aggregate's number in every group."""
        found = {}
        for aggregate, number in self.plan.answers.items():
            start = self.plan.start(number)
            own = self.noisy[start : start + len(self.plan.statistics[number].measures)]
            found[aggregate] = estimates_of(aggregate, self.plan.statistics[number], own, self.confidence)
        return found

    def table(self) -> ReleasedTable:
        """What the question asked to see.

        The numbers of a workload share their noise, so the errors of those that are computed with add up plainly.
        """
        plan = replace(self.plan, answers=dict.fromkeys(self.plan.answers, 0))
        return tabulate(plan, key_columns(plan), self.estimates, self.taken.known)

    @cached_property
    def taken(self) -> Taken:
        """What limits took."""
        numbers = (each["part"] for each in self.terms)
        noisy = [(at, values) for at, (_, values, _) in zip(numbers, self.noisy, strict=True)]
        return Taken(self.plan, self.stored.parts, noisy, self.estimates, self.confidence)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know besides."""
        return plain_notes(self.plan, (*self.plan.notes, *self.taken.notes))


class CountedIn(Protocol):
    """In what numbers are counted."""

    @property
    def law(self) -> Noise:
        """Of the noise that they are made of."""
        ...

    @property
    def bits(self) -> int:
        """In how many parts of a step."""
        ...

    @property
    def centre(self) -> int:
        """What was subtracted from each row's value, in steps."""
        ...


def estimates_of(
    aggregate: Aggregate,
    statistic: Statistic,
    noisy: Sequence[tuple[CountedIn, Array, Array]],
    confidence: float,
) -> list[Estimate]:
    """An aggregate's number in every group, from the numbers and variances of its measures."""
    bits = max(part.bits for part, _, _ in noisy) + _FINER
    measures = tuple(
        replace(each, bits=bits, centre=part.centre)
        for each, (part, _, _) in zip(statistic.measures, noisy, strict=True)
    )
    family = cast("Cellwise", statistic.family)
    estimate = family.estimator(aggregate, replace(statistic, measures=measures), confidence)
    columns = [
        [
            NoisySum(
                round(Fraction(float(value)) * 2 ** (bits - part.bits)),
                law_of(part.law, float(variance), bits - part.bits, confidence),
            )
            for value, variance in zip(values, variances, strict=True)
        ]
        for part, values, variances in noisy
    ]
    return [estimate(cell) for cell in zip(*columns, strict=True)]


def law_of(measured: Noise, variance: float, finer: int, confidence: float) -> Noise:
    """A law of that variance whose interval, at this confidence, is wide enough for a number with such noise."""
    wide = max(1, math.ceil(variance * 4**finer))
    shift = max(0, wide.bit_length() - _DIGITS)
    wide = -(-wide >> shift) << shift
    # P(|X| > t) = exp(−√2·t) for Laplace noise of variance 1
    longer = -math.log(1 - confidence) / math.sqrt(2) > normal_width(confidence)
    if isinstance(measured, DiscreteGaussianLaw) or not longer:
        return DiscreteGaussianLaw(Fraction(wide))
    # of scale b it has variance 2b², up to what the integers take
    return DiscreteLaplaceLaw(Fraction(math.isqrt(wide // 2) + 1))


def unreadable() -> LedgerCorruptError:
    """What is stored is no workload that this version reads."""
    return LedgerCorruptError(
        "A stored answer cannot be read.", why="It has another form.", fix="Update dalenius, or ask the owner."
    )


def shown_release(
    plan: Plan,
    stored: StoredWorkload,
    table: ReleasedTable,
    notes: Sequence[str],
    limits: Sequence[Mapping[str, Any]],
    answered: Answered,
    confidence: float,
    charge: Mapping[str, Any],
    remaining: Mapping[str, Any],
) -> Release:
    """One question's answer, with the guarantee and the receipt of all."""
    from dalenius.queries.release import Release

    budget = plan.table.budget
    unit = ", ".join([*plan.table.unit, *([budget.period] if budget.period else [])])
    return Release(
        columns=table.columns,
        keys=table.keys,
        rows=table.rows,
        noise_error=table.noise_error,
        interval=table.interval,
        total_interval=table.total_interval,
        clipping=table.clipping,
        confidence=confidence,
        guarantee={
            "kind": "pure" if stored.rho is None else "approx",
            "epsilon": stored.epsilon,
            "delta": budget.delta,
            "unit": unit,
            "neighbors": budget.neighbors.value,
        },
        charge=charge,
        remaining=remaining,
        free=answered.free,
        receipt=answered.receipt.to_dict(),
        question="",
        notes=(*notes, CHARGED),
        limits=tuple(limits),
    )
