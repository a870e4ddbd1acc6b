"""What an asker may know of an answer before it is asked, and what each price is then expected to give.

An expected answer is worked out as a real one is, from expected numbers instead of measured ones (`expected_answer`).
The numbers are those of

- an earlier answer to the same question, at another price, where this analyst has one, or has answers to others from
  which it can be put together (`own_answers`); else
- what is public: sizes of units and rows, which `protect` released (`public_knowledge`), and the rows that this
  analyst has counted in the same groups; else
- the limits that hold whatever is found, and then the noise error is the most that it can be (``at_most``).

Limits are found with noise, so that noise is made up a few times over, and what is told lies above the middle.

Privacy: post-processing of what was released to everybody, or to this analyst. Other analysts' answers are never looked
at, so that a preview is the same whatever they asked; and nothing here has an influence on what is charged or measured,
but for the price that an analyst chooses by it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from dalenius._numbers import about_percent, count_of
from dalenius.ledger.key_delta import default_delta
from dalenius.measuring.expressions import TRUE, Aggregate, Call
from dalenius.measuring.limits.expected_lengths import Lengths, misfit
from dalenius.measuring.limits.histogram import noise_deviation
from dalenius.measuring.statistics import family_for
from dalenius.queries.expected_answer import ExpectedAnswer, ExpectedCell, ExpectedColumn
from dalenius.queries.public_knowledge import GROUPS, PublicKnowledge
from dalenius.queries.rules.price import price_plan

if TYPE_CHECKING:
    from dalenius.ledger.key_delta import Left
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.limits.counts import LengthCounts
    from dalenius.measuring.plan import Plan
    from dalenius.queries.answering import Answer

_DRAWS = 6  # of made-up noise: pairs that are each other's opposite
_CAUTION = 0.6  # of the draws give no larger error than the one that is told
_FEWEST, _MANY = 4, 10  # groups that tell how their sizes fall; so many times as many are reckoned with at most
_SLOW, _FAST = 0.3, 3.0  # how fast they may fall
_BAD = 4.0  # a model that fits counts worse than that, by the mean square of what is off in deviations, is not used


@dataclass(frozen=True)
class Expectations:
    """A plan, and all that an asker may know of its answer before it is asked.

    Attributes:
        plan: What is asked.
        confidence: Of the errors.
        delta: For finding keys, where it is typed.
        left: What the asker has left for that.
        past: This analyst's own answer to the same question, at another price, or put together from answers to others.
        own_rows: How many rows this analyst has counted in the same groups, under the same condition.
        finding: How many questions at one price share δ, as each finds its keys.
    """

    plan: Plan
    confidence: float
    delta: float | None = None
    left: Left | None = None
    past: Answer | None = None
    own_rows: float | None = None
    prices: dict[float, ExpectedPrice] = field(default_factory=dict, compare=False)
    finding: int = 1

    def at(self, epsilon: float) -> ExpectedPrice:
        """What this price is expected to give."""
        if epsilon not in self.prices:
            draws = _DRAWS if self.plan.searched else 1
            self.prices[epsilon] = ExpectedPrice(tuple(ExpectedAnswer.of(self, epsilon, each) for each in range(draws)))
        return self.prices[epsilon]

    def delta_at(self, epsilon: float) -> float | None:
        """δ for finding keys at a price; None: all that `price_plan` would choose."""
        if self.finding == 1:
            return self.delta
        whole = default_delta(self.plan.table.budget, epsilon, self.left) if self.delta is None else self.delta
        return whole / self.finding

    @cached_property
    def public(self) -> PublicKnowledge:
        """What everybody may know."""
        return PublicKnowledge(self.plan, self.own_rows)

    @cached_property
    def rows(self) -> int:
        """How many rows a group is reckoned to have."""
        return self.public.rows_of(TRUE)

    @property
    def guesses(self) -> tuple[str, ...]:
        """What the errors were reckoned with where neither `protect` nor an own answer says it."""
        if self.past is not None:
            return ()
        found = list[str]()
        uneven = any(len(each.measures) > 1 or each.measures[0].width > 1 for each in self.plan.statistics)
        if uneven and not self.public.counted:
            found.append(
                "Nobody has counted the rows: averages and quantiles are as in a group of "
                f"{count_of(self.rows, 'row')}."
            )
        if self.plan.where != TRUE and self.public.counted and self.own_rows is None:
            share = about_percent(self.public.kept(TRUE).share)
            found.append(
                f"The condition is assumed to keep {share} of the rows; once you have asked, your answer tells."
            )
        return tuple(found)

    @cached_property
    def known(self) -> Plan:
        """The plan with groups: those of an earlier answer, or as many as are reckoned with where they are found."""
        if self.past is not None:
            return replace(self.plan, cells=self.past.plan.cells)
        if self.plan.selection is None or self.plan.cells:
            return self.plan
        return replace(self.plan, cells=((None,) * len(self.plan.keys),) * GROUPS)

    @cached_property
    def lengths(self) -> Mapping[int, Lengths]:
        """How long units' vectors are, by the number of the measure, as far as anybody may know."""
        found = {}
        for number, measure in enumerate(self.plan.measures):
            counts = self._past_counts.get(number)
            lengths = self.public.lengths(measure) if counts is None else self._fitted(number, counts)
            if lengths is not None:
                found[number] = lengths
        return found

    @cached_property
    def _past_counts(self) -> Mapping[int, LengthCounts]:
        clips = () if self.past is None else self.past.clips
        return {each.measure: each.counts for each in clips if each.counts is not None}

    def _fitted(self, number: int, counts: LengthCounts) -> Lengths | None:
        """The model of what is public that fits best what an earlier answer counted; else these counts alone."""
        candidates = self.public.candidates(self.plan.measures[number], self._past_total(number))
        deviation, norms = noise_deviation(counts.law), self.plan.norm == "l2" and len(self.known.cells) > 1
        scored = [(misfit(each, counts.noisy, deviation), each) for each in candidates]
        off, best = min(scored, key=lambda each: each[0], default=(math.inf, None))
        if best is not None and off < _BAD:
            return best
        alone = Lengths.of(counts, norms=norms)
        return best if alone is None else self.public.over_groups(alone, self.plan.measures[number])

    def _past_total(self, number: int) -> float:
        """What all groups of an earlier answer show together, in steps."""
        if self.past is None:
            return 0.0
        return abs(sum(self.past.measures[number][1])) / 2.0 ** self.past.plan.measures[number].bits


@dataclass(frozen=True)
class ExpectedPrice:
    """What one price is expected to give: the noise that limits are found with is made up a few times over."""

    draws: tuple[ExpectedAnswer, ...]

    @property
    def first(self) -> ExpectedAnswer:
        """One of them."""
        return self.draws[0]

    def column(self, expression: Expression) -> ExpectedColumn:
        """What is expected of an output."""
        if isinstance(expression, Call) and expression.function == "list":
            return self._listed(expression.arguments)
        if isinstance(expression, Aggregate) and family_for(expression.kind).asked[expression.kind].alone:
            return ExpectedColumn()
        first = self.first.column(expression)
        if not isinstance(expression, Aggregate):
            return first
        cells = self._found_groups(self.cells(expression))
        totals = [each.total_error for each in cells if each.total_error is not None]
        noise = statistics.median(each.noise_error for each in cells)
        return ExpectedColumn(noise, statistics.median(totals) if totals else None, first.at_most)

    def _listed(self, parts: Sequence[Expression]) -> ExpectedColumn:
        """Of a list the largest error among a few of its quantiles: both ends and the middle; extremes take long."""
        inner = [each for each in parts if isinstance(each, Aggregate) and each.parameter is not None]
        parts = inner or parts[:1]
        found = [self.column(parts[at]) for at in sorted({0, len(parts) // 2, len(parts) - 1})]
        noise = max((each.noise_error for each in found if each.noise_error is not None), default=None)
        return ExpectedColumn(noise, None, any(each.at_most for each in found))

    def cells(self, aggregate: Aggregate) -> list[ExpectedCell]:
        """What is expected in the groups: in each of an earlier answer, else in an average one."""
        return _merged([each.cells(aggregate) for each in self.draws])

    def _found_groups(self, cells: list[ExpectedCell]) -> list[ExpectedCell]:
        """Where groups are found, those of an earlier answer, and the smaller ones that a higher price finds besides.

        By how fast sizes fall with their rank: as a power of it, as words and diagnoses do.
        """
        past, asked = self.first.expectations.past, self.first.asked
        found, last = sorted(cells, key=lambda each: -abs(each.truth)), len(cells)
        if past is None or asked.selection is None or last < _FEWEST:
            return cells
        # Not by the smallest, of which only those are there that noise made larger.
        first, middle = last // 8, last // 2
        higher, usual = (max(1.0, abs(found[at].truth)) for at in (first, middle))
        fall = min(max(math.log(higher / usual) / math.log((middle + 1) / (first + 1)), _SLOW), _FAST)
        before = price_plan(past.plan, past.epsilon, asked.delta).least_units
        number = min(round(last * (before / max(1, asked.least_units)) ** (1 / fall)), _MANY * last)
        more = [found[middle].times((at / (middle + 1)) ** -fall) for at in range(last + 1, number + 1)]
        return found[: max(1, number)] + more

    def large_cells(self, aggregate: Aggregate) -> list[ExpectedCell]:
        """In those of at least half the average size; without an earlier answer, in the smallest of them."""
        return _merged([each.large_cells(aggregate) for each in self.draws])


def _merged(draws: Sequence[Sequence[ExpectedCell]]) -> list[ExpectedCell]:
    """Group by group, about the middle of what the draws gave."""
    if len(draws) == 1:
        return list(draws[0])
    found = []
    for cells in zip(*draws, strict=True):
        totals = [each.total_error for each in cells if each.total_error is not None]
        total = _cautious(totals) if 2 * len(totals) > len(cells) else None
        noise = _cautious([each.noise_error for each in cells])
        found.append(ExpectedCell(statistics.median(each.truth for each in cells), noise, total))
    return found


def _cautious(errors: Sequence[float]) -> float:
    """An error that is rather a little too large than too small."""
    return sorted(errors)[min(len(errors) - 1, int(_CAUTION * len(errors)))]
