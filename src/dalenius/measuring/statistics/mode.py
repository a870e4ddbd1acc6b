"""MODE(x): the value that most rows have, of those that x can have, which must be public.

Rows are counted by group and value, one level of what quantiles have as a tree (`statements.leaves`): a unit's row
counts over the groups are n, k = ⌈‖n‖⌉ in the plan's norm, and each of its rows weighs s = ⌊S·min(1, C/k)⌋. Its entries
are s·c with c ≥ 0 rows of each value, and Σc = n_g over the values of group g, so Σc² ≤ n_g². Hence the unit's
histogram has an L2 norm of at most s·‖n‖₂ ≤ S·C, and an L1 norm of at most s·‖n‖₁ ≤ S·C; no entry is negative. All
counts get noise for that, and which is largest is post-processing: of equal ones, the first in the order of keys.

A value is counted by its place among the keys. Integers without gaps are their own places; of all others the measure's
value is a CASE with a branch for each key, in which the keys can be read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius._numbers import count_of
from dalenius.errors import QuestionRefusedError
from dalenius.measuring.canonical import plain
from dalenius.measuring.domains import Domains
from dalenius.measuring.estimates import Estimate, half_width
from dalenius.measuring.expressions import NULL, Call, Literal, Scalar, Type, number, walk, written
from dalenius.measuring.measures import change_within
from dalenius.measuring.plan import MOST_GROUPS, Statistic
from dalenius.measuring.statistics.family import AggregateForm, Column, Family, Reading, StatisticRequest, UsualGroup
from dalenius.measuring.trees import MOST_NODES, SCALE

if TYPE_CHECKING:
    from dalenius.errors import Place
    from dalenius.measuring.building import Builder
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.expressions import Aggregate, Expression
    from dalenius.mechanisms.laws import Law

MOST_KEYS, MOST_INTEGERS = 100, 4096  # of a CASE, and of integers that are their own places
MOST_PARTS = 1000  # of all that a CASE compares
_FOUND_GROUPS = 512  # that groups which have to be found are reckoned to be
_PLACED = Fraction(1), Fraction(0)  # for the ends of a value that is a place among keys: no value has them
_TAKES = (Type.NUMBER, Type.BOOLEAN, Type.TEXT, Type.DATE, Type.DATETIME)


class Mode(Family):
    """The value that most rows have."""

    name = "mode"
    asked: ClassVar[Mapping[str, AggregateForm]] = {
        "mode": AggregateForm("MODE({})", takes=_TAKES, keeps_type=True, alone=True)
    }
    reference = (("MODE(x)", "the value that most rows have, by noisy counts", "public values of x; `rows`"),)

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """One histogram."""
        value, at = wanted.summed, wanted.at
        keys = _keys(builder, value, at)
        ends = _PLACED
        if _are_places(keys):
            low, high = int(keys[0]), int(keys[-1])
            ends = Fraction(low), Fraction(high)
        else:
            low, high = 0, len(keys) - 1
            pairs = [each for place, key in enumerate(keys) for each in (_equal(value, key), number(place))]
            value = plain("case", *pairs, NULL)
        clip = builder.rows(wanted.where, at).clip
        found = builder.measure("histogram", value, wanted.where, Fraction(1), 0, (low, high), clip, at)
        change = change_within(SCALE * found.clip, builder.norm, builder.neighbors, non_negative=True)
        return Statistic(self.name, (replace(found, width=len(keys), sensitivity=change),), *ends)

    def read(self, statistic: Statistic, columns: Sequence[Column], cells: int, confidence: float) -> Reading:
        """Each group's own histogram."""
        law, values = columns[0]
        return _Histograms(keys_of(statistic), law, values, cells, confidence)

    def expected(
        self,
        aggregate: Aggregate,  # noqa: ARG002 the same of all
        statistic: Statistic,  # noqa: ARG002
        laws: Sequence[Law],  # noqa: ARG002
        group: UsualGroup,  # noqa: ARG002
        confidence: float,  # noqa: ARG002
    ) -> Estimate:
        """Nobody knows, and it has no ±."""
        return Estimate(None, None, None, None)


def _keys(builder: Builder, value: Expression, at: Place | None) -> tuple[Any, ...]:
    """All values that there are; refused where they are not public, or too many."""
    fix = f"Group by it: SELECT {_shown(value)}, COUNT(*) … GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1."
    groups = None
    if not isinstance(value, Literal):
        try:
            groups = Domains(builder.policy.columns).groups((value,), at, needed=False)
        except QuestionRefusedError:
            groups = None
    cells = builder.cells if builder.cells < MOST_GROUPS else _FOUND_GROUPS
    if groups is None or not 0 < groups.count <= MOST_INTEGERS or groups.count * cells > MOST_NODES:
        raise QuestionRefusedError(
            "MODE needs a column whose values are public, and few.",
            why=f"All of them are counted: at most {MOST_INTEGERS:,}, and {MOST_NODES:,} in all groups together.",
            fix=fix,
            at=at,
        )
    keys = tuple(each for (each,) in groups.cells)
    parts = len(keys) * sum(1 for _ in walk(value))
    if not _are_places(keys) and (len(keys) > MOST_KEYS or parts > MOST_PARTS):
        raise QuestionRefusedError(
            f"MODE of {len(keys):,} such values is not supported.",
            why=f"Each is compared with: at most {MOST_KEYS} of a column, and fewer of what is computed.",
            fix=fix,
            at=at,
        )
    return keys


def _shown(value: Expression) -> str:
    shown = written(value)
    return shown if len(shown) <= 24 and not isinstance(value, Call) else "x"


def _are_places(keys: Sequence[Scalar]) -> bool:
    """Whether keys are integers without a gap."""
    if not all(isinstance(each, float) and each.is_integer() and abs(each) < 2**53 for each in keys):
        return False
    first: Any = keys[0]
    return list(keys) == [first + at for at in range(len(keys))]


def _equal(value: Expression, key: Scalar) -> Expression:
    return Call("eq", (value, Literal(key, value.type)), Type.BOOLEAN)


def keys_of(statistic: Statistic) -> tuple[Scalar, ...]:
    """The keys that a histogram counts, in the order of its places."""
    (measure,), value = statistic.measures, statistic.measures[0].value
    if (statistic.low, statistic.high) != _PLACED or not isinstance(value, Call):
        return tuple(range(measure.low, measure.high + 1))
    conditions = [each for each in value.arguments[:-1:2] if isinstance(each, Call)]
    keys = [each.arguments[1].value for each in conditions if isinstance(each.arguments[1], Literal)]
    whole = all(isinstance(each, float) and each.is_integer() for each in keys)
    return tuple(int(each) if whole and isinstance(each, float) else each for each in keys)


@dataclass(frozen=True, slots=True)
class _Histograms:
    """Noisy counts by group and value."""

    keys: Sequence[Scalar]
    law: Noise
    values: Sequence[int]
    cells: int
    confidence: float

    def estimates(self, aggregate: Aggregate) -> list[Estimate]:  # noqa: ARG002 there is one
        """The value with the largest count; none where that may be noise alone."""
        found, size = list[Estimate](), len(self.keys)
        least = half_width([(1.0, self.law)], self.confidence)
        for cell in range(self.cells):
            counts = self.values[cell * size : (cell + 1) * size]
            most = max(counts)
            value: Any = self.keys[list(counts).index(most)] if most > least else None
            found.append(Estimate(value, None, None, None))
        return found

    def notes(self, aggregate: Aggregate) -> tuple[str, ...]:
        """How far apart counts must be to be told apart."""
        rows = max(1, round(half_width([(1.0, self.law), (1.0, self.law)], self.confidence) / SCALE))
        shown = "" if aggregate.value is None else written(aggregate.value)
        said = f"MODE({shown}) is the value with the largest noisy count: one that fewer rows have, by up to about"
        return (f"{said} {count_of(rows, 'row')}, may be shown in its place.",)


FAMILY = Mode()
