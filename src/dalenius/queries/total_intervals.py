"""What clipping took from each aggregate of an answer, and the intervals that allow for it.

Two sources, both released by now: the noisy counts of units that a question chose its own limit from, which are stored
with its answer; and else those that `protect` chose its limits from (of older homes, the share that it reckoned to lie
beyond), where the question asks just for what they were found for. Where the owner declared the limits nothing is
known. Others' questions never matter.

An interval here covers the sum of raw rows as well as these can tell (`limits.clipping`): it holds the interval of the
noise, and reaches further where clipping takes away. What bounds did to single values, and rounding, is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from dalenius._numbers import to_digits
from dalenius.measuring.estimates import normal_width
from dalenius.measuring.expressions import TRUE, Aggregate, Column, walk
from dalenius.measuring.limits.clip_search import Clip, search_of, takes_all
from dalenius.measuring.limits.clipping import NOTHING, Loss, Spread, loss_of_counts, loss_of_share
from dalenius.measuring.limits.histogram import noise_deviation

if TYPE_CHECKING:
    from dalenius.measuring.estimates import Estimate
    from dalenius.measuring.plan import Found, Measure, Plan

Interval = tuple[float, float]
_FLOOR = 0.2  # of an average group: none has a smaller part in what chance does
_LEANS = 0.01  # of a sum: less than that is not worth a word
_OUTWEIGHS = (
    0.5  # of the noise error, which is about one deviation: from here on clipping moves a value more than noise
)
_FURTHER = 1.2  # times the estimated share: what may be lost beyond that is worth a word
_LITTLE = 0.1  # of what was kept: as much as that may be lost, however groups share in it
DECLARED = (
    "The owner declared how much one {unit} may add. How much of the data lies beyond that is not known, and not in ±."
)


HIDDEN = (
    "This may be far too {low}: at this ε there is too little data to see how much one {unit} adds, so that was capped "
    "at a low guess. How much was cut off is not known, and not in ±. Ask with a higher ε, or let the owner declare "
    "limits ([contribution] rows or totals)."
)
GUESSED = (
    "This may be far too {low}: whatever one {unit} has above that limit was not counted. How much was cut off is "
    "not known, and not in ±. A higher ε does not change it; limits that the owner declares do."
)
LEANING = (
    "What one {unit} adds was capped, so those who add most count for less than in the raw rows. How far that moves "
    "averages and the like is not known, may be more than ±, and is not in it."
)
OTHER = "How much the limits of this question cut off is not known, and not in ±."


class Unknown(Enum):
    """Why nothing can be said of what clipping took."""

    DECLARED = "the owner declared the limit"
    HIDDEN = "the noise hides how much units add, and the limit is a guess"
    GUESSED = "the noise hid how much units add when the table was protected, and its limit is the least there is"
    MEANINGLESS = "it is no sum of what units add"
    LEANING = "it is a ratio of sums, of which limits took different parts"
    BOTH_SIGNS = "what is cut off may be of either sign"
    OTHER = "the limit is not one that was found for what is asked"


INCLUDED = "The range in all (`total_interval`) includes this, ± does not."
NOT_INCLUDED = "± does not include this."
_SAID: Mapping[Unknown, str] = {
    Unknown.DECLARED: DECLARED,
    Unknown.HIDDEN: HIDDEN,
    Unknown.GUESSED: GUESSED,
    Unknown.BOTH_SIGNS: OTHER,
    Unknown.LEANING: LEANING,
    Unknown.OTHER: OTHER,
}


@dataclass(frozen=True)
class Clipped:
    """What clipping took from one aggregate.

    Attributes:
        loss: As far as that can be told; of an average, that of its rows.
        totals: The interval of each group that allows for it.
        missed: What each group is reckoned to miss; of an average, how far that may move it.
        measure: Whose limit it is.
        clip: The limit that was used.
        found: Whether the question found it itself.
    """

    loss: Loss
    totals: Sequence[Interval | None]
    missed: Sequence[float]
    measure: Measure
    clip: int
    found: bool


def clipped_aggregate(
    plan: Plan,
    number: int,
    values: Sequence[int],
    estimates: Sequence[Estimate],
    clips: Sequence[Clip],
    confidence: float,
) -> Clipped | Unknown:
    """What clipping took from the aggregate of a statistic with one measure.

    Args:
        plan: What was asked.
        number: Of the statistic.
        values: The noisy integers of its first measure.
        estimates: The aggregate's number in every group.
        clips: The limits that the question found itself.
        confidence: Of the intervals.
    """
    statistic = plan.statistics[number]
    measure, own = statistic.measures[0], {each.measure: each for each in clips}.get(plan.start(number))
    if statistic.kind not in {"rows", "units", "sum"}:
        return Unknown.LEANING if _leans(plan, number, clips) else Unknown.MEANINGLESS
    if measure.low < 0 < measure.high:
        return Unknown.BOTH_SIGNS
    sign = -1 if measure.high <= 0 else 1
    released = [sign * value / 2**measure.bits for value in values]
    spread = Spread(
        groups=max(1, len(plan.cells)),
        scattered=plan.norm == "l2" and len(plan.cells) > 1,
        total=max(0.0, math.fsum(released)),
        rows=measure.kind == "rows",
        error=_deviation(measure, estimates, confidence),
    )
    loss = estimate_loss(plan, measure, own, spread)
    if isinstance(loss, Unknown):
        return loss
    totals, missed = reach_of_groups(loss, measure, released, estimates, spread.total, confidence)
    return Clipped(loss, totals, missed, measure, measure.clip if own is None else own.clip, own is not None)


def reach_of_groups(
    loss: Loss,
    measure: Measure,
    released: Sequence[float],
    estimates: Sequence[Estimate],
    total: float,
    confidence: float,
) -> tuple[list[Interval | None], list[float]]:
    """The interval of each group that allows for what was lost, and what it is reckoned to miss.

    Args:
        loss: Of all groups.
        measure: Of which.
        released: What each group shows, in steps, as if nothing were below zero.
        estimates: The same as it is shown, with its noise.
        total: What all rows show together that the loss is about; no less than the groups do.
        confidence: Of the intervals.
    """
    step, least = float(measure.step), _FLOOR * total / max(1, len(released))
    parts = [max(value, least) for value in released]
    whole, below = max(math.fsum(parts), total, 1e-9), measure.high <= 0
    totals, missed = list[Interval | None](), list[float]()
    for value, part, each in zip(released, parts, estimates, strict=True):
        if each.low is None or each.high is None or each.noise_error is None:
            totals.append(None)
            missed.append(0.0)
            continue
        reach = step * loss.reach(value, each.noise_error / step, part / whole, confidence)
        further = max(0.0, reach - each.noise_error)
        if isinstance(each.value, int):  # of whole numbers, up to a whole one
            further = float(math.ceil(further))
        totals.append((each.low - further, each.high) if below else (each.low, each.high + further))
        missed.append(step * loss.missed(value))
    return totals, missed


def _deviation(measure: Measure, estimates: Sequence[Estimate], confidence: float) -> float:
    """Of the noise of all groups added up, in steps."""
    return math.hypot(*(each.noise_error or 0.0 for each in estimates)) / float(measure.step) / normal_width(confidence)


def _leans(plan: Plan, number: int, clips: Sequence[Clip]) -> bool:
    """Whether limits that were found take more than a little from the sums that a ratio is made of."""
    own, found = {each.measure: each for each in clips}, plan.table.found
    for at, measure in enumerate(plan.statistics[number].measures, plan.start(number)):
        share = own[at].beyond if at in own else None
        if at in own and share is None and own[at].clip < measure.clip:  # a low guess
            return True
        if at not in own and found is not None and not found.carried and plan.where == TRUE:
            name = _found_for(plan, measure, found)
            share = None if name is None else found.clipped.get(name)
        if share is not None and share >= _LEANS:
            return True
    return False


def estimate_loss(
    plan: Plan, measure: Measure, own: Clip | None, spread: Spread, clip: int | None = None
) -> Loss | Unknown:
    """What clipping took from a measure, as far as the noisy counts behind its limit tell.

    Args:
        plan: What was asked.
        measure: Of that plan, with the limit that held before the question looked for its own.
        own: The limit that the question found itself, if it did.
        spread: Over what units' vectors go.
        clip: Another limit, at which the same counts are read; by default the one that was used.
    """
    declared = plan.table.policy.contribution
    used = clip or (measure.clip if own is None else own.clip)
    if plan.groups is not None:  # rows in further groups do not count at all
        return Unknown.OTHER if declared.groups is None else Unknown.DECLARED
    if measure.kind == "units":  # one in each group, and nothing is cut off
        return NOTHING
    if _is_guessed(plan):
        return Unknown.GUESSED
    if own is not None:
        hidden = Unknown.HIDDEN if own.clip < measure.clip else Unknown.OTHER
        if own.beyond is None:
            return hidden
        if own.counts is None:
            return loss_of_share(own.beyond, own.clip, spread)
        loss = loss_of_counts(own.counts.noisy, own.counts.law, used, spread)
        return hidden if loss is None else _no_more(loss, plan, measure, used, spread, noise_deviation(own.counts.law))
    found = plan.table.found
    if found is None or declared.rows is not None:
        return Unknown.DECLARED
    if found.carried or plan.where != TRUE or plan.sets or not plan.table.relation.single:
        return Unknown.OTHER
    name = _found_for(plan, measure, found)
    if name is None:
        return Unknown.OTHER
    counts, share = found.sizes.get(name), found.clipped.get(name)
    if counts is not None:
        # Sizes of norms are lengths over the groups; others are totals, which are no shorter.
        norms = name.startswith("norm ")
        lengths = replace(spread, scattered=norms and spread.scattered, rounded=not norms)
        if spread.scattered and not norms:  # clipped by length, which leaves more than a limit of totals would
            lengths = replace(lengths, error=None)
        return loss_of_counts(counts.noisy, counts.law, used, lengths) or Unknown.OTHER
    return Unknown.OTHER if share is None else loss_of_share(share, measure.clip, spread)


def _is_guessed(plan: Plan) -> bool:
    """Whether one row of a unit counts because nobody could see how many it has; a note of the plan says so, too."""
    found = plan.table.found
    if found is None or plan.table.policy.contribution.rows is not None or not plan.table.relation.single:
        return False
    return found.rows == 1 and "rows" not in found.clipped


def _no_more(loss: Loss, plan: Plan, measure: Measure, clip: int, spread: Spread, noise: float) -> Loss:
    """What a question's own counts say is lost, but no more than all rows of the table would lose at its limit.

    A condition takes rows away, and finer groups make vectors shorter: with w ≤ w' of a unit, entry by entry, and a
    length k ≤ k', it loses w·(1 − C/k) ≤ w'·(1 − C/k'). `protect` counted the sizes k' of the same units: where that
    has less noise than the question's own counts (a deviation of ``noise``), what it says of all rows holds for a part
    of them. Where it has more, the smaller of two estimates would only be the one that chance made too small.

    Over several groups a bound of them all is none of each: heavy units favour some. So it counts there only if it says
    that next to nothing is lost; otherwise sums by ward on a heavy tail were inside in 92% instead of 98%.

    Norms over a key are no such bound: how much longer totals are than norms is not counted but reckoned. On a heavy
    tail they said 1 to 4% where half was lost, in 9 of 24 homes.
    """
    found, table = plan.table.found, plan.table
    if found is None or found.carried or not table.direct or plan.sets or plan.periods != ("",):
        return loss
    name = "rows" if measure.kind == "rows" else None
    if isinstance(measure.value, Column) and measure.step == table.policy.columns[measure.value.name].step:
        name = f"total {measure.value.name}"
    counts = None if name is None else found.sizes.get(name)
    if counts is None or noise_deviation(counts.law) >= noise:
        return loss
    every = loss_of_counts(counts.noisy, counts.law, clip, replace(spread, scattered=False, error=None))
    if every is None or (spread.groups > 1 and every.most * every.kept > _LITTLE * max(spread.total, 1.0)):
        return loss
    return loss.within(every, spread.total)


def _found_for(plan: Plan, measure: Measure, found: Found) -> str | None:
    """The name of the limit that `protect` found and this measure has; None where it has another one."""
    if measure.kind == "rows" and measure.where == TRUE:
        limits = {"rows": found.rows}
        if plan.norm == "l2":
            keys = [each.name for each in plan.question.keys if isinstance(each, Column)]
            limits |= {f"norm {key}": found.norms[key] for key in keys if key in found.norms}
        name = min(limits, key=lambda each: limits[each])
        # Over several keys a vector is no longer than over one of them, so no more of it is lost.
        return name if limits[name] == measure.clip else None
    if isinstance(measure.value, Column) and measure.value.name in found.totals and takes_all(measure.where):
        name = measure.value.name
        whole = name not in plan.table.policy.contribution.totals
        same = math.floor(found.totals[name] / measure.step) == measure.clip
        return f"total {name}" if whole and same else None
    return None


# --- for people


def clipping_notes(
    plan: Plan, clipped: Mapping[Aggregate, Clipped | Unknown], errors: Mapping[Aggregate, Sequence[float]]
) -> tuple[str, ...]:
    """A warning where clipping outweighs the noise, with what would mend it; and where nothing is known of it.

    Of several aggregates, each note begins with the columns that it is about, unless it is about all of them.

    Args:
        plan: What was asked.
        clipped: What clipping took from each aggregate that is shown.
        errors: The noise error of each group of each.
    """
    about, unit = dict[str, list[Aggregate]](), " + ".join(plan.table.unit)
    shown = {each.expression for each in plan.question.outputs}  # and not a part of something that is computed
    for aggregate, each in clipped.items():
        note = None
        if isinstance(each, Unknown):
            below = plan.statistics[plan.answers[aggregate]].measures[0].high <= 0  # clipping makes it higher
            note = _SAID[each].format(unit=unit, low="high" if below else "low") if each in _SAID else None
        elif _outweighs(each.missed, errors[aggregate]):
            note = _warning(each, unit, is_average=aggregate.kind == "avg", is_shown=aggregate in shown)
        if note is not None:
            about.setdefault(note, []).append(aggregate)
    return tuple(
        note if len(parts) == len(clipped) else f"{_columns(plan, parts)}: {note}" for note, parts in about.items()
    )


def _columns(plan: Plan, parts: Sequence[Aggregate]) -> str:
    """The names of the columns that are made of these."""
    outputs = plan.question.outputs
    return ", ".join(each.name for each in outputs if any(part in parts for part in walk(each.expression)))


def _outweighs(missed: Sequence[float], errors: Sequence[float]) -> bool:
    """Whether groups miss more than their noise hides: each by what it misses, so that empty ones do not matter."""
    pairs = list(zip(missed, errors, strict=True))
    return math.fsum(each * each for each, _ in pairs) > _OUTWEIGHS * math.fsum(each * error for each, error in pairs)


def _warning(each: Clipped, unit: str, *, is_average: bool, is_shown: bool) -> str:
    rows = each.measure.kind == "rows"
    what, were = ("the rows", "were") if rows else (f"the {search_of(each.measure).named(each.measure)}", "was")
    if each.found and each.clip < each.measure.clip:
        mend = "A higher ε cuts off less."
    else:
        limit = f"[contribution] {'rows' if rows else 'totals'}"
        mend = f"With a higher limit ({limit}, for the owner) less is cut off, but every answer gets more noise."
    told = INCLUDED if is_shown else NOT_INCLUDED
    matters = (
        "so those who add most count for less. That may move the average by more than the noise."
        if is_average
        else "which matters more than the noise."
    )
    return (
        f"To reduce noise, what one {unit} adds was capped; by estimate {each.loss.share:.1%} of {what}"
        f"{_at_most(each.loss)} {were} not counted, {matters} {told} {mend}"
    )


def _at_most(loss: Loss) -> str:
    """How much it may be besides, where that is more than the estimate says."""
    most = loss.most / (1 + loss.most)
    return f" (up to {to_digits(100 * most, 2)}%)" if most > _FURTHER * loss.share else ""
