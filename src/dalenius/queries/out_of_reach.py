"""Why no price makes an answer as exact as asked: what stays off at the highest one, and where that comes from.

Three things do not go away with the noise that is paid for: what limits cut off, the steps that values are counted in,
and the noise itself where one unit may add much or groups are small. Words about what is expected, which is made of
public facts and the asker's own answers (`expectations`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.expressions import Column
from dalenius.measuring.statistics.family import Single
from dalenius.measuring.trees import TreeLayout

if TYPE_CHECKING:
    from dalenius.measuring.expressions import Aggregate
    from dalenius.measuring.plan import Measure, Statistic
    from dalenius.queries.expected_answer import ExpectedAnswer, ExpectedCell

_MOSTLY = 0.5  # of what an answer is off in all: noise below that is not the reason
_LARGER = "Ask for a larger error."


def plain_number(number: float, digits: int = 3) -> str:
    """A number as people write it: to so many digits, with commas and without an exponent.

    >>> plain_number(6549.8), plain_number(12345.6, 4), plain_number(0.50), plain_number(5), plain_number(0.00234)
    ('6,550', '12,350', '0.5', '5', '0.00234')
    """
    if not number or not 1e-12 <= abs(number) < 1e18:
        return f"{number:g}"
    place = digits - 1 - math.floor(math.log10(abs(number)))
    written = f"{round(number, place):,.{max(place, 0)}f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def no_price(
    answer: ExpectedAnswer, name: str, aggregate: Aggregate, worst: ExpectedCell, most: float, epsilon: float
) -> QuestionRefusedError:
    """The refusal, with its reason.

    Args:
        answer: What is expected at the highest price.
        name: Of the column that is not exact enough.
        aggregate: What it shows.
        worst: The group in which it is furthest off.
        most: The error that was asked for there.
        epsilon: The highest price.
    """
    plan, number = answer.plan, answer.plan.answers[aggregate]
    statistic, measure = plan.statistics[number], plan.statistics[number].measures[0]
    unit, stays = " + ".join(plan.table.unit), f"± {plain_number(worst.error)}"
    part = f": that is {plain_number(100 * worst.error / abs(worst.truth), 2)}% of it" if worst.truth else ""
    less = f"To let less of each {unit} count, give"
    if worst.noise_error <= max(most, _MOSTLY * worst.error) and worst.noise_error < worst.error:
        cut = f"limits on what one {unit} may add cut off so much of {name!r}"
        why = f"At any price, {cut} that it stays {stays}{part}."
        fix = f"{_LARGER} With higher limits ([contribution], for the owner) less is cut off, and noise grows."
    elif worst.noise_error <= _grain(statistic):
        steps = "whole numbers" if _grain(statistic) == 1 else f"steps of {plain_number(_grain(statistic))}"
        why, fix = f"{name!r} is told in {steps}, and stays {stays} at any price{part}.", _LARGER
    elif isinstance(statistic.family, Single):
        adds = f", up to {_amount(measure)}," if measure.kind in {"rows", "sum"} else ""
        why = f"Noise hides what one {unit} may add{adds} and even ε = {epsilon:,g} leaves {name!r} {stays}{part}."
        fix = f"{_LARGER} {less} {_option(measure)}."
    else:
        why = (
            f"Noise hides what one {unit} may add, and in {_group(answer)} even ε = {epsilon:,g} leaves {name!r} "
            f"{stays}{part}."
        )
        fix = f"{_LARGER} Or ask about larger groups." if len(plan.cells) > 1 else f"{_LARGER} {less} --rows N."
    return QuestionRefusedError("No price makes the answer that exact.", why=why, fix=fix)


def _grain(statistic: Statistic) -> float:
    """What rounding alone may be off: numbers that are counted in parts of a step are shown in whole ones; else 0."""
    measure = statistic.measures[0]
    if measure.kind == "leaves":
        layout = TreeLayout.of(measure)
        return float(layout.size * layout.step)
    return float(measure.step) if isinstance(statistic.family, Single) and measure.bits else 0.0


def _group(answer: ExpectedAnswer) -> str:
    """How large a group is, where somebody has counted."""
    expectations = answer.expectations
    if expectations.past is not None or not expectations.public.counted:
        return "groups of this size"
    return f"a group of about {plain_number(expectations.rows, 2)} rows"


def _amount(measure: Measure) -> str:
    """What one unit may add in a group."""
    if measure.kind == "rows":
        return f"{measure.clip:,} row{'' if measure.clip == 1 else 's'}"
    return plain_number(float(measure.clip * measure.step))


def _option(measure: Measure) -> str:
    """What limits it in a question."""
    if measure.kind == "sum" and isinstance(measure.value, Column):
        return f"--total {measure.value.name}=X"
    return "--rows N" if measure.kind in {"rows", "sum"} else "--groups N"
