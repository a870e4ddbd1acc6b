"""The limits of a plan in plain words: what of one unit counts at most, and between which bounds a value counts."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius._numbers import count_of

if TYPE_CHECKING:
    from dalenius.measuring.plan import Measure, Plan
    from dalenius.queries.sql_words import SqlWords


def describe_limits(plan: Plan, words: SqlWords) -> tuple[str, ...]:
    """All limits, each once."""
    return tuple(dict.fromkeys(_lines(plan, words)))


def _lines(plan: Plan, words: SqlWords) -> Iterator[str]:
    unit = words.unit
    if plan.selection is not None:
        yield f"one {unit} speaks for at most {count_of(plan.selection.cap, 'group')}, chosen by a keyed hash"
    if plan.groups is not None:
        of = " of each grouping set" if plan.sets else ""
        yield f"one {unit} counts in at most {count_of(plan.groups, 'group')}{of}, chosen by a keyed hash"
    for measure in plan.measures:
        for each in filter(None, (measure, measure.times)):
            if each.primitive.rounded and each.value is not None:
                yield _value(each, words)
        yield _clip(measure, plan, words)
    share = sum(each.search for each in plan.measures)
    if share:
        yield f"lower limits that fit this question are found first, with {float(share):.0%} of its price"


def _value(measure: Measure, words: SqlWords) -> str:
    """The bounds of a value."""
    low, high = ((end + measure.centre) * measure.step for end in (measure.low, measure.high))
    shown = words.text(measure.value) if measure.value is not None else ""
    step = f", in steps of {_number(measure.step)}" if measure.step != 1 else ""
    return f"{shown} counts from {_number(low)} to {_number(high)}{step}; what lies beyond counts as the bound"


def _clip(measure: Measure, plan: Plan, words: SqlWords) -> str:
    """What one unit adds at most."""
    unit, several = words.unit, bool(plan.question.keys)
    over = " over all groups together" if several else ""
    over += ", as the root of the sum of squares" if several and plan.norm == "l2" else ""
    value = "" if measure.value is None else words.text(measure.value)
    match measure.kind:
        case "rows":
            return f"one {unit} counts for at most {count_of(measure.clip, 'row')}{over}"
        case "units":
            times = f" in each of at most {count_of(measure.clip, 'group')}" if several else ""
            return f"one {unit} counts once{times}"
        case "distinct":
            sets = " in each grouping set" if measure.sets > 1 else ""
            what = f"{count_of(measure.clip, 'pair')} of group and" if several else f"{measure.clip:,} different"
            return f"of one {unit} at most {what} {value} count{sets}"
        case "leaves":
            most = count_of(measure.clip, "row")
            return f"the rows of one {unit} weigh as {most} at most{over}; of more, each weighs less"
        case "sum":
            centre = measure.centre * measure.step
            about = f"{value} less {_number(centre)}" if centre else value
            return f"one {unit}'s sum of {about} counts for at most {_number(measure.clip * measure.unit)}{over}"
    what = f"{measure.primitive.words} of {value}" if value else measure.primitive.words
    return f"one {unit}'s {what} counts for at most {_number(measure.clip * measure.unit)}{over}"


def _number(value: Fraction) -> str:
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.10g}"
