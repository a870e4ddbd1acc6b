"""What every family of statistics says about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from dalenius.measuring.estimates import Estimate, NoisySum, level_parts, total
from dalenius.measuring.expressions import Aggregate, Expression, Type

if TYPE_CHECKING:
    from dalenius.errors import Place
    from dalenius.measuring.building import Builder
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.plan import Statistic
    from dalenius.mechanisms.laws import Law

# a measure as it was released: the law of its noise, and its noisy integers
Column: TypeAlias = "tuple[Noise, Sequence[int]]"
Estimator: TypeAlias = Callable[[Sequence[NoisySum]], Estimate]


class PerGroup(Enum):
    """What bounds of a unit's part in each group (`contribution_bounds_per_group`) do to an aggregate."""

    NOTHING = "it has no part that one unit adds"
    TOTAL = "they limit a unit's sums"
    COUNT = "they limit a unit's counts"
    VALUES = "they clamp each value: an average lies between them where all values do"
    ONES = "they change nothing: a unit counts once in a group anyway"


@dataclass(frozen=True, slots=True)
class AggregateForm:
    """How one aggregate is asked, for the passes that read questions.

    Attributes:
        written: The aggregate of an argument, as people write it.
        takes: The types of its arguments.
        takes_within: The types that it takes where it is worked out within one unit; by default the same.
        keeps_type: Whether it gives what it takes, rather than a number.
        symmetric: Whether it is the same whichever of two arguments comes first.
        adds: Whether it adds values up: rows that add 0 then do not matter, and of conditions or ones it is a count.
        alone: Whether it is only shown: it has no error, and nothing is computed with it.
        per_row: Whether bounds of each value (`contribution_bounds_per_row`) have a meaning for it.
        per_group: What bounds of a unit's part in each group mean.
    """

    written: str
    takes: tuple[Type, ...] = (Type.NUMBER,)
    takes_within: tuple[Type, ...] | None = None
    keeps_type: bool = False
    symmetric: bool = False
    adds: bool = False
    alone: bool = False
    per_row: bool = False
    per_group: PerGroup = PerGroup.NOTHING


@dataclass(frozen=True, slots=True)
class StatisticRequest:
    """What one statistic is to give, with its expressions made total.

    Attributes:
        aggregates: All that it answers. What is said where it cannot be had is about the first.
        value: What is added up; None: rows, or units.
        other: The second argument, of aggregates with two.
        where: Which rows count, beyond the question's own condition.
        at: Where the first aggregate stands in the question.
    """

    aggregates: tuple[Aggregate, ...]
    value: Expression | None
    other: Expression | None
    where: Expression
    at: Place | None

    @property
    def first(self) -> Aggregate:
        """The aggregate that messages are about."""
        return self.aggregates[0]

    @property
    def summed(self) -> Expression:
        """The value, of aggregates that have one."""
        if self.value is None:
            raise RuntimeError("This aggregate has an argument.")
        return self.value

    @property
    def second(self) -> Expression:
        """The second argument, of aggregates that have one."""
        if self.other is None:
            raise RuntimeError("This aggregate has two arguments.")
        return self.other


class Reading(Protocol):
    """A statistic as it was released, read at one confidence."""

    def estimates(self, aggregate: Aggregate) -> list[Estimate]:
        """The aggregate's number in every group."""
        ...

    def notes(self, aggregate: Aggregate) -> tuple[str, ...]:
        """What the reader should know of that number besides."""
        ...


@dataclass(frozen=True, slots=True)
class UsualGroup:
    """A group as it is reckoned to be before anything is measured, from what is public.

    Attributes:
        rows: How many of its rows are counted.
        mean: Of the value, in the column's own units; None where it is not known.
        square: The mean square of the value, in that of its mean; None where it is not known how far values differ.
    """

    rows: int
    mean: float | None = None
    square: float | None = None


class Family(ABC):
    """Aggregates that are made of the same measures, and share them where they are asked together.

    A subclass's docstring, or its module's, says why one unit changes the measures by no more than they say.

    Attributes:
        name: The kind of its statistics in canonical plans, and so in the keys of stored answers: it never changes.
        asked: Its aggregates, by name.
        reference: Rows of the reference page: what to write, what it gives, what it needs.
        counts_units: It counts units rather than what they add: a unit adds one to each of its groups.
    """

    name: ClassVar[str]
    asked: ClassVar[Mapping[str, AggregateForm]]
    reference: ClassVar[tuple[tuple[str, str, str], ...]]
    counts_units: ClassVar[bool] = False

    @abstractmethod
    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """The measures, with what one unit can change in each and how they share the price.

        Raises:
            DaleniusError: Bounds or limits are missing, or the aggregate has no meaning for this value.
        """

    @abstractmethod
    def read(self, statistic: Statistic, columns: Sequence[Column], cells: int, confidence: float) -> Reading:
        """What the noisy measures of so many groups say. Post-processing."""

    @abstractmethod
    def expected(
        self, aggregate: Aggregate, statistic: Statistic, laws: Sequence[Law], group: UsualGroup, confidence: float
    ) -> Estimate:
        """The number that such a group is expected to show, with its noise error, for previews. Sees no data."""

    def reshare(self, before: Statistic, after: Statistic, norm: str) -> Statistic:  # noqa: ARG002 others need all
        """Measures whose clips the question has lowered, with shares that fit these; together they cost the same."""
        return after


class Cellwise(Family):
    """A family whose numbers are estimated in each group by itself."""

    @abstractmethod
    def estimator(self, aggregate: Aggregate, statistic: Statistic, confidence: float) -> Estimator:
        """What turns the noisy measures of one group into the aggregate's number. Post-processing."""

    def read(self, statistic: Statistic, columns: Sequence[Column], cells: int, confidence: float) -> Reading:
        """Group by group, all measures counted in the same parts."""
        levelled = level_parts(columns, [each.bits for each in statistic.measures])
        return _Cells(self, statistic, levelled, cells, confidence)


class Single(Cellwise):
    """A family with one measure, whose integers are the answer: they are shown as they are, times the step."""

    def estimator(self, aggregate: Aggregate, statistic: Statistic, confidence: float) -> Estimator:  # noqa: ARG002
        """The number itself."""
        (measure,) = statistic.measures
        return lambda parts: total(parts[0], measure.step, confidence, bits=measure.bits)

    def expected(
        self, aggregate: Aggregate, statistic: Statistic, laws: Sequence[Law], group: UsualGroup, confidence: float
    ) -> Estimate:
        """As many as there are rows; the noise is the same whatever they are."""
        (measure,) = statistic.measures
        return self.estimator(aggregate, statistic, confidence)([NoisySum(group.rows << measure.bits, laws[0])])


class Ratio(Cellwise):
    """A family of several sums, which have one factor per unit, so that they stay about the same rows.

    They are read in the same parts of a row and a step (`one_row`): a quotient does not depend on which.
    """

    @abstractmethod
    def usual(self, statistic: Statistic, rows: int) -> list[int]:
        """The measures of a group of so many rows, where they spread evenly over what the bounds allow."""

    def sums_of(self, statistic: Statistic, group: UsualGroup) -> list[int]:
        """The measures of a group, with all that is known of it."""
        return self.usual(statistic, group.rows)

    def expected(
        self, aggregate: Aggregate, statistic: Statistic, laws: Sequence[Law], group: UsualGroup, confidence: float
    ) -> Estimate:
        """What its sums give."""
        bits = [each.bits for each in statistic.measures]
        usual = [[value << each] for value, each in zip(self.sums_of(statistic, group), bits, strict=True)]
        levelled = level_parts(list(zip(laws, usual, strict=True)), bits)
        parts = [NoisySum(value, law) for law, (value,) in levelled]
        return self.estimator(aggregate, statistic, confidence)(parts)


def one_row(statistic: Statistic) -> int:
    """What a row counts for in a ratio whose sums are all read in the finest parts of them."""
    return int(2 ** max(each.bits for each in statistic.measures))


@dataclass(frozen=True, slots=True)
class _Cells:
    """A statistic that is read group by group."""

    family: Cellwise
    statistic: Statistic
    columns: Sequence[Column]
    cells: int
    confidence: float

    def estimates(self, aggregate: Aggregate) -> list[Estimate]:
        estimate = self.family.estimator(aggregate, self.statistic, self.confidence)
        laws = [law for law, _ in self.columns]
        # Groups of which the same was released have the same numbers: in a preview, that is nearly all of them.
        known = dict[tuple[int, ...], Estimate]()
        found = list[Estimate]()
        for cell in range(self.cells):
            values = tuple([values[cell] for _, values in self.columns])
            one = known.get(values)
            if one is None:
                one = known[values] = estimate(list(map(NoisySum, values, laws)))
            found.append(one)
        return found

    def notes(self, aggregate: Aggregate) -> tuple[str, ...]:  # noqa: ARG002
        return ()
