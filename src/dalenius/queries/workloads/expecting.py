"""How exact a workload's answers will be, and how exact they would be asked one by one. Never touches the data.

*One by one* means each question alone, at an equal part of the same price: ε/k each under pure, ρ/k under zCDP.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius._numbers import count_of
from dalenius.measuring.estimates import noise_variance
from dalenius.measuring.expressions import TRUE, Aggregate
from dalenius.measuring.statistics.family import UsualGroup
from dalenius.queries.expectations import Expectations
from dalenius.queries.postprocess import key_columns, shown_groups, tabulate
from dalenius.queries.sql_words import SqlWords
from dalenius.queries.workloads.limits import Limiting, lost_of
from dalenius.queries.workloads.pricing import share_plan
from dalenius.queries.workloads.showing import law_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalenius.measuring.estimates import Estimate
    from dalenius.measuring.plan import Measure, Plan
    from dalenius.mechanisms.laws import Law
    from dalenius.queries.expectations import ExpectedPrice
    from dalenius.queries.workloads.blocks import Block, Part, WorkloadPlan
    from dalenius.queries.workloads.linear import Summed, Sums
    from dalenius.queries.workloads.pricing import WorkloadPrice

_SEARCHED = 200  # questions, up to which it is reckoned with limits that they would find for themselves

Errors = tuple[float | None, ...]
ByItself = dict[tuple[int, Fraction], "tuple[Expectations, ExpectedPrice]"]


@dataclass(frozen=True)
class ExpectedQuestion:
    """What is expected of one question.

    Attributes:
        columns: Of its answer.
        groups: How many rows that has; None: they are found.
        noise_error: Half-width of each column from the noise alone, in a usual group; None for keys.
        one_by_one: The same, asked alone at an equal part of the price.
        beside: Why it is asked as it is, rather than from the cells; "" where it is not.
    """

    columns: tuple[str, ...]
    groups: int | None
    noise_error: Errors
    one_by_one: Errors
    beside: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "columns": list(self.columns),
            "groups": self.groups,
            "noise_error": list(self.noise_error),
            "one_by_one": list(self.one_by_one),
            "beside": self.beside,
        }


@dataclass(frozen=True)
class ExpectedPart:
    """What is measured of one thing that is added up, and the total squared error of all answers made of it.

    Attributes:
        of: What is added up, in words.
        strategy: What is measured, in words.
        cells: How many cells the questions tell apart.
        measured: How many integers are measured.
        answers: How many numbers are made of them.
        share: Of the price.
        squared_error: The sum of the expected squared errors of these numbers: of noise, and of what limits take.
        one_by_one: The same, asked one by one.
        searched: Whether its limit is looked for once it is paid, so that errors are only known afterwards.
    """

    of: str
    strategy: str
    cells: int
    measured: int
    answers: int
    share: float
    squared_error: float
    one_by_one: float
    searched: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        return (
            f"{self.of}: {self.strategy}, {count_of(self.measured, 'number')} measured over "
            f"{count_of(self.cells, 'cell')} for {count_of(self.answers, 'answer')}"
        )


@dataclass(frozen=True)
class SquaredErrors:
    """Totals of expected squared errors: of noise; of what limits take; of both, one by one."""

    noise: float
    taken: float
    alone: float

    @property
    def together(self) -> float:
        """Of noise, and of what limits take."""
        return self.noise + self.taken

    def __add__(self, other: SquaredErrors) -> SquaredErrors:
        return SquaredErrors(self.noise + other.noise, self.taken + other.taken, self.alone + other.alone)

    def __mul__(self, factor: float) -> SquaredErrors:
        return SquaredErrors(self.noise * factor, self.taken * factor, self.alone * factor)


class Expecting:
    """A workload at one price.

    Attributes:
        asked: As it is asked.
        workload: At the limits that it is expected to find.
    """

    def __init__(
        self, workload: WorkloadPlan, priced: WorkloadPrice, confidence: float, asked: ByItself | None = None
    ) -> None:
        self._asked: ByItself = {} if asked is None else asked  # of the same questions, at the same price
        public = {number: found.public for (number, _), (found, _) in self._asked.items()}
        self.asked, self.limiting = workload, Limiting(workload, priced.cost, public)
        self.workload, self.priced, self.confidence = self.limiting.expected_workload(), priced, confidence
        self._alone = Fraction(1, len(workload.plans))
        self._laws: dict[int, list[Law]] = {
            at: [priced.cost.mechanism(part).noise for part in block.parts]
            for at, block in enumerate(self.workload.blocks)
        }
        self._errors: dict[tuple[int, int], SquaredErrors] = {}
        self._lost: list[dict[int, float]] = [{} for _ in workload.blocks]
        self._terms: dict[int, list[tuple[int, int, Sums]]] = {}  # of each question, in the order of its measures
        for at, block in enumerate(workload.blocks):
            for term, part, sums in block.terms:
                self._terms.setdefault(term.question, []).append((at, part, sums))

    # --- questions

    def question(self, number: int, asked: Plan | None = None) -> ExpectedQuestion:
        """What is expected of one of the different questions, by its number.

        ``asked``: another that is measured alike, and shows something else of that.
        """
        plan = self.workload.plans[number].plan if asked is None else asked
        names = tuple(each.name for each in plan.question.outputs)
        groups = None if plan.selection is not None else len(shown_groups(plan))
        alone = self._expected(number, self._alone, plan)
        if number in self.workload.beside:
            share, why = self.workload.beside[number]
            return ExpectedQuestion(names, groups, self._expected(number, share, plan), alone, why)
        return ExpectedQuestion(names, groups, self._from_cells(number, plan), alone)

    def is_worse(self, number: int) -> bool:
        """Whether an average of a question is expected to be less exact from the cells than if it is asked alone."""
        plan = self.workload.plans[number].plan
        alone = self._expected(number, self._alone, plan)
        columns = zip(plan.question.outputs, self._from_cells(number, plan), alone, strict=True)
        return any(
            isinstance(output.expression, Aggregate)
            and len(plan.statistics[plan.answers[output.expression]].measures) > 1
            and error is not None
            and alone is not None
            and error > alone
            for output, error, alone in columns
        )

    def _expected(self, number: int, share: Fraction, plan: Plan) -> Errors:
        """Asked as it is, at a share of the price."""
        expectations, found = self._by_itself(number, share, plan)
        return tuple(found.column(output.expression).noise_error for output in expectations.plan.question.outputs)

    def _by_itself(self, number: int, share: Fraction, asked: Plan | None = None) -> tuple[Expectations, ExpectedPrice]:
        own = self.workload.plans[number].plan
        if asked is not None and asked is not own:
            return self._reckoned(asked, share)
        if (number, share) not in self._asked:
            self._asked[number, share] = self._reckoned(own, share)
        return self._asked[number, share]

    def _reckoned(self, asked: Plan, share: Fraction) -> tuple[Expectations, ExpectedPrice]:
        plan = share_plan(asked, share)
        finding = sum(each.plan.selection is not None for each in self.workload.plans)
        delta = self.priced.delta / finding if plan.selection is not None else None
        if len(self.workload.plans) > _SEARCHED:
            plan = _unsearched(plan)
        expectations = Expectations(plan, self.confidence, delta)
        return expectations, expectations.at(self.priced.epsilon)

    def _from_cells(self, number: int, plan: Plan) -> Errors:
        """From what is measured for all questions, in one usual group."""
        noisy = []
        for at, part, sums in self._terms[number]:
            own = self.workload.blocks[at].parts[part]
            variances = sums.variances(own.strategy)
            noisy.append((own, self._laws[at][part], float(statistics.median(variances.tolist()))))
        rows = Expectations(plan, self.confidence).rows
        estimates = {each: [_usual(plan, each, noisy, rows, self.confidence)] for each in plan.answers}
        question = replace(plan.question, having=TRUE, order=(), limit=None, offset=0)
        one = replace(plan, question=question, cells=plan.cells[:1], answers=dict.fromkeys(plan.answers, 0))
        return tuple(tabulate(one, key_columns(one), estimates).noise_error[0])

    # --- parts

    def parts(self) -> list[ExpectedPart]:
        """What is measured, with the total squared errors."""
        return [self._part(block, part) for block, part in self.each_part()]

    def each_part(self) -> list[tuple[Block, Part]]:
        """All parts, at the limits that are expected."""
        return [(block, part) for block in self.workload.blocks for part in block.parts]

    def _part(self, block: Block, part: Part) -> ExpectedPart:
        found = self.squared_errors(block, part)
        return ExpectedPart(
            _words(block, part),
            part.strategy.name,
            part.workload.cells,
            part.strategy.rows,
            sum(len(sums.places) for _, at, sums in block.terms if block.parts[at] is part),
            float(part.share + part.search),
            found.together,
            found.alone,
            part.search > 0,
        )

    def squared_errors(self, block: Block, part: Part, *, weighted: bool = False) -> SquaredErrors:
        """The total of a part's answers, and the same one by one.

        ``weighted``: each as much as an error in its question counts.
        """
        found = SquaredErrors(0.0, 0.0, 0.0)
        for place, (term, at, _) in enumerate(block.terms):
            if block.parts[at] is part:
                found += self._term(block, place) * (self.workload.weights[term.question] ** 2 if weighted else 1.0)
        return found

    def questions_apart(self) -> dict[int, SquaredErrors]:
        """Of each question that is answered from cells its errors, in that of one by one; the mean of its measures."""
        found: dict[int, list[SquaredErrors]] = {}
        for block in self.workload.blocks:
            for place, (term, _, _) in enumerate(block.terms):
                own = self._term(block, place)
                found.setdefault(term.question, []).append(own * (1 / max(own.alone, 1e-300)))
        return {at: sum(each, SquaredErrors(0.0, 0.0, 0.0)) * (1 / len(each)) for at, each in found.items()}

    def _term(self, block: Block, place: int) -> SquaredErrors:
        """Of all numbers of one measure of a question."""
        number = self.workload.blocks.index(block)
        if (number, place) not in self._errors:
            term, at, sums = block.terms[place]
            part, groups = block.parts[at], len(sums.places)
            noise = noise_variance(self._laws[number][at]) * float(part.measure.step) ** 2 / 4.0**part.measure.bits
            if at not in self._lost[number]:
                self._lost[number][at] = self.limiting.lost(block, part) * float(part.measure.step)
            missed = self._lost[number][at] * self.limiting.part_of(block, part, term, groups)
            if len(self.workload.plans[term.question].plan.statistics[term.statistic].measures) > 1:
                missed = 0.0  # of a quotient both parts lose alike
            self._errors[number, place] = SquaredErrors(
                noise * float(sums.variances(part.strategy).sum()),
                groups * missed**2,
                groups * self._alone_error(term.question, term.statistic, part.summed),
            )
        return self._errors[number, place]

    def _alone_error(self, number: int, statistic: int, summed: Summed) -> float:
        """The squared error of one measure of a question that is asked alone, in one group."""
        expectations, price = self._by_itself(number, self._alone)
        plan = expectations.plan
        start = plan.start(statistic)
        place = next(
            start + at
            for at, each in enumerate(plan.statistics[statistic].measures)
            if (each.kind == "rows") == (summed.value is None)
        )
        lengths, groups = expectations.lengths.get(place), max(1, len(plan.cells))
        found = []
        for draw in price.draws:
            measure, step = draw.plan.measures[place], float(draw.plan.measures[place].step)
            noise = noise_variance(draw.priced.mechanisms[place].noise) * step**2 / 4.0**measure.bits
            lost, clip = 0.0, next((each for each in draw.clips if each.measure == place), None)
            if clip is not None and clip.rescaled is not None:  # to the total, and what is measured grows with it
                lost = clip.rescaled.total.deviation
                if lengths is not None:
                    noise *= (lengths.total / max(lengths.kept(measure.clip), 1.0)) ** 2
            elif lengths is not None and len(plan.statistics[statistic].measures) == 1:
                lost = lost_of(lengths, measure.clip)
            found.append(noise + (lost * step / groups) ** 2)
        return statistics.fmean(found)


def _words(block: Block, part: Part) -> str:
    """What is added up, as people write it."""
    value = part.summed.value
    return "rows" if value is None else f"sum of {SqlWords.over(block.planned.plan.table).text(value)}"


def _usual(
    plan: Plan, aggregate: Aggregate, noisy: Sequence[tuple[Part, Law, float]], rows: int, confidence: float
) -> Estimate:
    """What is expected of an aggregate in a group of so many rows."""
    number = plan.answers[aggregate]
    statistic, start = plan.statistics[number], plan.start(number)
    own = noisy[start : start + len(statistic.measures)]
    bits = max(part.measure.bits for part, _, _ in own)
    measures = tuple(
        replace(each, bits=bits, centre=part.summed.centre)
        for each, (part, _, _) in zip(statistic.measures, own, strict=True)
    )
    laws: list[Any] = [
        law_of(law, variance * noise_variance(law), bits - part.measure.bits, confidence) for part, law, variance in own
    ]
    settled = replace(statistic, measures=measures)
    return statistic.family.expected(aggregate, settled, laws, UsualGroup(rows), confidence)


def _unsearched(plan: Plan) -> Plan:
    """The plan at the limits that it was planned with: what a search would cost goes to what is measured."""
    statistics_ = tuple(
        replace(
            each,
            measures=tuple(
                replace(one, share=one.share * _factor(each.measures), search=Fraction(0)) for one in each.measures
            ),
        )
        for each in plan.statistics
    )
    return replace(plan, statistics=statistics_)


def _factor(measures: Sequence[Measure]) -> Fraction:
    spent = sum((each.search for each in measures), Fraction(0))
    own = sum((each.share for each in measures), Fraction(0))
    return 1 + spent / own
