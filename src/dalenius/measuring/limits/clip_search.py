"""The ways in which a question finds a lower limit: what is counted, which clip fits the counts, how that is said.

Two ways, by the kind of measure (`measures.Primitive.search`). For sums of clipped vectors, units are counted by the
length k = ⌈‖w‖⌉ of their vector over the groups, in the classes of `histogram`. For distinct values, the values are
counted at several limits at once (`ladder`). From the noisy counts the clip is chosen where clipping would cost about
as much as the measure's own noise, never above the plan's; they tell about how much lies beyond it, too. `in_question`
counts, with the guarantee of the whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius._numbers import about_percent, count_of, to_digits
from dalenius.accounting.neighbors import Neighbors
from dalenius.measuring.expressions import TRUE, Call, Column, Expression, columns_of, written
from dalenius.measuring.limits import ladder
from dalenius.measuring.limits.choosing import MEDIAN, choose_limit, share_beyond
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.limits.histogram import CLASSES, guess_size
from dalenius.measuring.limits.rescaled import Rescaled
from dalenius.measuring.plan import require

if TYPE_CHECKING:
    from dalenius.measuring.limits.rescaled import Total
    from dalenius.measuring.plan import Found, Limits, Measure, Plan, Statistic
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace


@dataclass(frozen=True, slots=True)
class Clip:
    """The clip that was found for a measure, and about which part of all that units add lies beyond it.

    ``beyond`` is None where no class stands out of the noise. The clip is then that of the little that may be seen;
    else the plan's own stays, but for joins that leave few rows of each unit (``little``): there it is one row's.
    ``hidden`` is the noise error (95%) of each count of units: so many heavy units of one size do not show, and are
    not in ``beyond``. ``counts`` are the noisy counts by class that it was chosen from, where these are of lengths;
    answers that were stored before they were kept have none. They are paid for, and as private as the clip itself.
    ``rescaled`` says how groups are scaled up to their total, where that is expected to be nearer to the truth.
    """

    measure: int
    clip: int
    beyond: float | None
    hidden: int
    counts: LengthCounts | None = None
    rescaled: Rescaled | None = None

    def to_json(self) -> dict[str, Any]:
        """As it is stored with the answer."""
        found: dict[str, Any] = {
            "measure": self.measure,
            "clip": str(self.clip),
            "beyond": self.beyond,
            "hidden": self.hidden,
        }
        if self.counts is not None:
            found["counts"] = self.counts.to_json()
        if self.rescaled is not None:
            found["rescaled"] = self.rescaled.to_json()
        return found

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Clip:
        """As `to_json` wrote it."""
        counts = LengthCounts.of_json(data["counts"]) if "counts" in data else None
        rescaled = Rescaled.of_json(data["rescaled"]) if "rescaled" in data else None
        return cls(data["measure"], int(data["clip"]), data["beyond"], data["hidden"], counts, rescaled)


@dataclass(frozen=True, slots=True)
class NoisyCounts:
    """What a clip is chosen from.

    Attributes:
        number: Of the measure, in its plan.
        measure: Whose clip it is; never more than its own.
        noisy: What was counted.
        mechanism: What noise it has.
        per_step: Median |noise| of the measure for each step of its clip.
        cells: How many groups there are.
        little: The clip where nothing stands out of the noise, and nothing may be seen either.
        total: What all groups add up to, where that is public.
        known: The same units as others counted them, too, where limits may be chosen by that.
    """

    number: int
    measure: Measure
    noisy: Sequence[int]
    mechanism: DiscreteGaussian | Laplace
    per_step: float
    cells: int
    little: int
    total: Total | None = None
    known: LengthCounts | None = None

    @property
    def best(self) -> LengthCounts:
        """What limits are chosen by."""
        return self.known or LengthCounts.of(self.noisy, self.mechanism)


class ClipSearch(ABC):
    """One way to find a lower limit.

    Attributes:
        share: Of the measure's price, where nobody says.
        said: How the notes begin that speak of a limit which stands; once a lower one is found, they go.
    """

    share: ClassVar[Fraction]
    said: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def pays(self, plan: Plan, limits: Limits, statistic: Statistic, measure: Measure, filtered: bool) -> bool:
        """Whether a limit that nobody chose is likely far above what units add to this question."""

    @abstractmethod
    def counted(self, measure: Measure, norm: str, neighbors: Neighbors) -> tuple[int, int]:
        """What one unit can change in what is counted (Δ2² in L2, Δ1 in L1), and how many counts these are."""

    @abstractmethod
    def fit(self, counts: NoisyCounts) -> Clip:
        """The clip, from noisy counts. Public post-processing."""

    @abstractmethod
    def named(self, measure: Measure) -> str:
        """What was limited."""

    @abstractmethod
    def sentence(self, plan: Plan, measure: Measure, found: Clip) -> str:
        """What was found, for the reader of a release."""


class LengthSearch(ClipSearch):
    """Units are counted by the length k = ⌈‖w‖⌉ of their vector over the groups.

    Guarantee:
        A unit is in one class. Adding or removing it changes one count by 1: Δ1 = Δ2² = 1; exchanging it for another
        changes at most two by 1: Δ1 = Δ2² = 2.
    """

    share = Fraction(1, 10)

    def pays(self, plan: Plan, limits: Limits, statistic: Statistic, measure: Measure, filtered: bool) -> bool:
        """Where a condition leaves few of a unit's rows, or its vector is much shorter than its total.

        A vector over the groups is shorter than its total, which is what is limited, in L2; in L1 they are the same.
        The limit of squares is one of rows times the largest square that the bounds allow.
        """
        table = plan.table
        declared, found = table.policy.contribution, table.found
        if found is None or declared.rows is not None or limits.rows is not None or limits.totals:
            return False
        summed = frozenset() if measure.value is None else columns_of(measure.value)
        degree = measure.primitive.degree
        if degree == 1 and summed & frozenset(declared.totals):
            return False
        # Of a ratio, the count's own condition says that there is a value; the last sum's is what was asked.
        if filtered or not takes_all(statistic.measures[-1].where):
            return True
        spread = bool(plan.keys) and plan.norm == "l2"
        if degree:
            return degree > 1 or spread
        return spread and not all(_known([plan.question.keys[at] for at in each], found) for each in _sets(plan))

    def counted(self, measure: Measure, norm: str, neighbors: Neighbors) -> tuple[int, int]:  # noqa: ARG002
        """Units by class."""
        return 2 if neighbors is Neighbors.SUBSTITUTE else 1, CLASSES

    def fit(self, counts: NoisyCounts) -> Clip:
        """Where clipping would cost about as much as the measure's own noise."""
        most, noisy, mechanism = counts.measure.clip, counts.noisy, counts.mechanism
        hidden, kept = mechanism.noise_error(0.95), LengthCounts.of(noisy, mechanism)
        if share_beyond(noisy, mechanism, most) is None:
            return Clip(counts.number, min(most, guess_size(noisy, mechanism) or counts.little), None, hidden, kept)
        clip, rescaled = _scale(counts) or (min(most, _plain(counts, counts.cells)), None)
        return Clip(counts.number, clip, share_beyond(noisy, mechanism, clip), hidden, kept, rescaled)

    def named(self, measure: Measure) -> str:
        """The sum, or rows."""
        if measure.value is None:
            return "rows"
        return f"{measure.primitive.words} of {' and '.join(_centred(measure))}"

    def sentence(self, plan: Plan, measure: Measure, found: Clip) -> str:
        """The limit, what it was, and how much was not counted."""
        rows, whose = measure.value is None, _whose(plan)
        limit = (
            f"at most {count_of(found.clip, 'row')} of {whose} {'counts' if found.clip == 1 else 'count'}"
            if rows
            else f"the {self.named(measure)} of {whose} counts up to {_limit(found.clip, measure)}"
        )
        kept = found.clip == measure.clip
        limit += "" if kept else f" instead of {_limit(measure.clip, measure)}"
        if plan.keys:
            sets = " in all sets" if plan.sets else ""
            limit += (
                f" (all groups{sets} together)"
                if plan.norm == "l1"
                else f" (over several groups{sets}: √(a² + b² + …))"
            )
        said = "looked for a lower limit and kept the one it had" if kept else "found its own limit"
        said = f"This question {said}: {limit}; "
        if found.rescaled is not None:
            return said + _scaled_words(measure, found)
        if found.beyond is None:
            return said + f"noisy counts (± {found.hidden:,}) do not tell how much was not counted."
        what = "the rows were" if rows else "it was"
        told = f"as far as noisy counts (± {found.hidden:,}) tell"
        return said + f"{about_percent(found.beyond)} of {what} not counted, {told}."


def _plain(counts: NoisyCounts, groups: int) -> int:
    """The clip of one plain measure, where what is cut off is spread over so many groups."""
    best = counts.best
    return choose_limit(best.noisy, best.law, lambda limit: counts.per_step * limit, groups).limit


def _scale(counts: NoisyCounts) -> tuple[int, Rescaled] | None:
    """The clip at which groups are scaled up to their total, and how; None where that is not known."""
    from dalenius.measuring.limits.rescaling import Lengths, choose_limits, favoured_groups, tellable

    noisy, law, groups, total = counts.noisy, counts.mechanism, counts.cells, counts.total
    if total is None or not tellable(noisy, law, groups):
        return None
    plain, heavy = (min(counts.measure.clip, _plain(counts, each)) for each in (groups, favoured_groups(groups)))
    noise = heavy * counts.per_step / MEDIAN / (max(total.mean, 1.0) / groups)
    lengths = Lengths(noisy, law, groups, total, rows=counts.measure.kind == "rows")
    found = choose_limits(lengths, plain, heavy, noise)
    return found.tight, Rescaled(total, found.heavy)


class LadderSearch(ClipSearch):
    """Distinct values are counted at limits 1, 4, 16, … at once (`ladder`, with the guarantee)."""

    share = Fraction(1, 4)  # a few rungs with much noise, instead of many with little
    said = ("COUNT(DISTINCT",)

    def pays(self, plan: Plan, limits: Limits, statistic: Statistic, measure: Measure, filtered: bool) -> bool:  # noqa: ARG002
        """Where nobody limited groups."""
        return plan.table.policy.contribution.groups is None and limits.groups is None

    def counted(self, measure: Measure, norm: str, neighbors: Neighbors) -> tuple[int, int]:
        """Values at each rung."""
        return ladder.sensitivity(measure.clip, norm, neighbors, measure.sets), len(ladder.rungs(measure.clip))

    def fit(self, counts: NoisyCounts) -> Clip:
        """Where most values are counted, less what their noise costs. The lowest rung is always one of them."""
        most, mechanism = counts.measure.clip, counts.mechanism
        clip, beyond = ladder.best_limit(most, counts.noisy, mechanism.noise, counts.per_step, counts.cells)
        told = beyond if clip < most else None  # what lies beyond the highest rung is not counted at any
        return Clip(counts.number, clip, told, -(-mechanism.noise_error(0.95) * clip // ladder.multiple(most)))

    def named(self, measure: Measure) -> str:
        """The aggregate."""
        return f"COUNT(DISTINCT {'' if measure.value is None else written(measure.value)})"

    def sentence(self, plan: Plan, measure: Measure, found: Clip) -> str:
        """How many values count, and how many were not counted of those that the limit before would count."""
        what = (
            ("value" if not plan.keys else "pair of group and value")
            if found.clip == 1
            else ("values" if not plan.keys else "pairs of group and value")
        )
        what += " in each grouping set" if measure.sets > 1 else ""
        limit = f"at most {found.clip:,} {what} of {_whose(plan)} {'counts' if found.clip == 1 else 'count'}"
        if found.clip == measure.clip:
            return (
                f"{self.named(measure)}: this question looked for a lower limit and kept the one it had: {limit}. Of "
                "those who have more, the rest was not counted; how much that is is not known. --groups N sets another."
            )
        beyond = f"{about_percent(found.beyond or 0.0)} of what {measure.clip:,} would count was not counted"
        told = f"as far as a noisy count (± {found.hidden:,}) tells"
        return (
            f"{self.named(measure)}: this question found its own limit: {limit} instead of {measure.clip:,}; "
            f"{beyond}, {told}."
        )


_SEARCHES: dict[str, ClipSearch] = {"lengths": LengthSearch(), "ladder": LadderSearch()}


def searchable(measure: Measure) -> bool:
    """Whether a measure has a limit that could be lower."""
    return measure.primitive.search is not None and measure.clip > 1


def searched_by_length(measure: Measure) -> bool:
    """Whether a measure's lower limit is found from lengths of vectors."""
    return measure.primitive.search == "lengths"


def search_of(measure: Measure) -> ClipSearch:
    """How a lower limit of a measure is found."""
    return _SEARCHES[require(measure.primitive.search)]


def report_clips(plan: Plan, found: Sequence[Clip]) -> tuple[dict[str, Any], ...]:
    """What was found, in the units of the answer. ``plan`` is the one that was asked."""
    reports: list[dict[str, Any]] = []
    for each in found:
        measure = plan.measures[each.measure]
        reports.append(
            {
                "measure": search_of(measure).named(measure),
                "limit": _shown(each.clip, measure.unit),
                "of": _shown(measure.clip, measure.unit),
                "beyond": each.beyond,
                "hidden": each.hidden,
                "share": float(measure.search),
            }
        )
        if each.rescaled is not None:
            reports[-1]["rescaled"] = _report_scaling(each.rescaled, measure.unit)
    return tuple(reports)


def _report_scaling(rescaled: Rescaled, unit: Fraction) -> dict[str, Any]:
    """To which total groups were scaled up, how far that may be off, and up to where they were measured again."""
    total, off = (_shown(round(each), unit) for each in (rescaled.total.mean, rescaled.total.deviation))
    heavy = None if rescaled.heavy is None else _shown(rescaled.heavy, unit)
    return {"total": total, "deviation": off, "measured_again": heavy}


def clip_notes(plan: Plan, found: Sequence[Clip], shares: Mapping[int, float] | None = None) -> tuple[str, ...]:
    """The same as sentences; ``shares``: what is reckoned to be lost, by the measure's number, where more is known."""
    better = shares or {}
    told = [replace(each, beyond=better.get(each.measure, each.beyond)) for each in found]
    measured = [(plan.measures[each.measure], each) for each in told]
    return tuple(search_of(measure).sentence(plan, measure, each) for measure, each in measured)


def _shown(steps: int, unit: Fraction) -> float | int:
    """A limit in the units of the answer."""
    return float(steps * unit) if unit != 1 else steps


def _whose(plan: Plan) -> str:
    """One of those who are protected, by the name that the owner gave them."""
    return f"one {' + '.join(plan.table.unit)}"


def _limit(steps: int, measure: Measure) -> str:
    """A limit for people: whole rows, or a sum to six digits."""
    return f"{steps:,}" if measure.value is None else to_digits(_shown(steps, measure.unit), 6)


def _scaled_words(measure: Measure, found: Clip) -> str:
    """That groups were scaled up, to what, and what that may be off."""
    rescaled = require(found.rescaled)
    total = to_digits(_shown(round(rescaled.total.mean), measure.unit), 3)  # the rest is noise
    total += " rows" if measure.value is None else ""
    words = f"the groups were then scaled up to their total, about {total}."
    if rescaled.heavy is not None:
        limit = _limit(rescaled.heavy, measure)
        words += f" They were also measured with a limit of {limit}, to see where those are who add most."
    return (
        f"{words} ± is the noise; the ends in all (`total_interval`) allow for errors of the total and of scaling, too."
    )


def _centred(measure: Measure) -> list[str]:
    centre = f" less {float(measure.centre * measure.step):g}" if measure.centre else ""
    value = [] if measure.value is None else [written(measure.value) + centre]
    return value + ([] if measure.times is None else _centred(measure.times))


def _sets(plan: Plan) -> tuple[tuple[int, ...], ...]:
    return plan.sets or (tuple(range(len(plan.question.keys))),)


def _known(keys: list[Expression], found: Found) -> bool:
    """Whether it was found how long a unit's rows over these keys are; without keys, that is their number."""
    return not keys or (len(keys) == 1 and isinstance(keys[0], Column) and keys[0].name in found.norms)


def takes_all(where: Expression) -> bool:
    """Whether a condition keeps every row, or every row that has a value."""
    if isinstance(where, Call) and where.function == "and":
        return all(map(takes_all, where.arguments))
    if isinstance(where, Call) and where.function == "not":
        (inner,) = where.arguments
        return isinstance(inner, Call) and inner.function == "is_null"
    return where == TRUE
