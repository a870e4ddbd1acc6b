"""A question priced by its accuracy: the least ε whose expected total error is as small as asked. Free, like previews.

An error is a number, or a per cent of what each group is expected to show. Per cent are promised for groups of at least
half the average size; smaller ones are named with the release. What is expected is worked out in `expectations`, from
public facts and the asker's own answers, so that what a price comes to tells nothing of others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.accounting import parameters
from dalenius.accounting.filters import rounded_up
from dalenius.errors import InputError, QuestionRefusedError
from dalenius.measuring.expressions import Aggregate
from dalenius.measuring.statistics import family_for
from dalenius.queries.expected_answer import SMALL
from dalenius.queries.out_of_reach import no_price, plain_number
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan
    from dalenius.queries.ask import Amount, Error
    from dalenius.queries.expectations import Expectations, ExpectedPrice
    from dalenius.queries.expected_answer import ExpectedCell
    from dalenius.queries.own_answers import OwnAnswer
    from dalenius.queries.postprocess import ReleasedTable

LOWEST, HIGHEST = 1e-6, 1e3  # ε
_PRECISION = 1e-4  # of ε, relative
_ROUGHLY = 0.01  # the same where the question finds its own limits, by chance
_PER_CENT = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*%\s*")
_NAMED = 5  # groups in one note
_NEARLY = 1.1  # times what was asked for: what was expected came true, give or take what nobody could know
_SLACK = 1 + 1e-9  # of what was asked for, for arithmetic


@dataclass(frozen=True, slots=True)
class Wanted:
    """How exact one column is to be."""

    name: str
    aggregate: Aggregate
    amount: float
    relative: bool

    def most(self, truth: float) -> float:
        """The error that is good enough in a group which shows about that."""
        return self.amount * abs(truth) if self.relative else self.amount

    def __str__(self) -> str:
        return f"{100 * self.amount:g}%" if self.relative else plain_number(self.amount, 6)


def read_error(plan: Plan, error: Error) -> list[Wanted]:
    """What was asked for, column by column: one error for all, or one for each that is named."""
    outputs = {
        each.name: each
        for each in plan.question.outputs
        if isinstance(each.expression, Aggregate)
        and not family_for(each.expression.kind).asked[each.expression.kind].alone
    }
    if not outputs:
        raise InputError(
            "No column can be priced by its error.",
            why="Only plain aggregates can; arithmetic on them has an error that depends on the answer.",
            fix="Give an epsilon.",
        )
    if isinstance(error, Mapping):
        if not error:
            raise InputError(
                "No error is given.",
                why="It is a price: the least ε that gives it.",
                fix="Name a column and its error.",
            )
        for name in error:
            if name not in outputs:
                meant = nearest(name, outputs)
                raise InputError(
                    f"There is no column {name!r} to price.",
                    why=f"The question has {', '.join(outputs)}.",
                    fix=f"Did you mean {meant!r}?" if meant else "Name one of them.",
                )
        given = dict(error)
    else:
        given = dict.fromkeys(outputs, error)
    found = []
    for name, amount in given.items():
        expression = outputs[name].expression
        if isinstance(expression, Aggregate):
            found.append(Wanted(name, expression, *_amount(amount)))
    return found


def _amount(given: Amount) -> tuple[float, bool]:
    if not isinstance(given, str):
        return float(parameters.positive(given, "error")), False
    found = _PER_CENT.fullmatch(given)
    if found is None:
        raise InputError(
            "This is no error.", why="It is a number, or a text such as '2%'.", fix="Write error=500, or error='2%'."
        )
    return float(parameters.positive(float(found[1]), "error")) / 100, True


def as_asked(error: Error, confidence: float) -> dict[str, Any]:
    """What was asked for, as it is stored with the answer: the same again is the same question."""
    return {"error": dict(error) if isinstance(error, Mapping) else error, "confidence": confidence}


# --- the price


def epsilon_for(expectations: Expectations, error: Error, own: Sequence[OwnAnswer] = ()) -> float:
    """The least ε that is expected to be exact enough, to four digits: what is shown of it is what is paid.

    An own answer that is exact enough, or was asked for in the same words, has its own price, and is free.
    """
    wanted = read_error(expectations.plan, error)
    known = _known(expectations, error, wanted, own)
    if known is not None:
        return known
    _check_known(expectations, wanted)

    def exact_enough(epsilon: float) -> bool:
        answer = expectations.at(epsilon)
        return all(_holds(each, _cells(each, answer)) for each in wanted)

    if not exact_enough(HIGHEST):
        raise _refusal(expectations, wanted)
    low, high = math.log(LOWEST), math.log(HIGHEST)
    while high - low > (_ROUGHLY if expectations.plan.searched else _PRECISION):
        middle = (low + high) / 2
        low, high = (low, middle) if exact_enough(rounded_up(math.exp(middle))) else (middle, high)
    return rounded_up(math.exp(high))


def _known(
    expectations: Expectations, error: Error, wanted: Sequence[Wanted], own: Sequence[OwnAnswer]
) -> float | None:
    """The price of an own answer that was asked for in the same words, or that came out as exact as is asked now."""
    asked = as_asked(error, expectations.confidence)
    for each in reversed(own):
        if each.asked == asked:
            return each.epsilon
    for each in own:  # the cheapest first; all of them are free
        if all(_came_out(one, each.answer.table()) for one in wanted):
            return each.epsilon
    return None


def came_out(plan: Plan, error: Error, table: ReleasedTable) -> bool:
    """Whether all groups of an answer are as exact as asked, in all columns that are meant."""
    return all(_came_out(each, table) for each in read_error(plan, error))


def _came_out(wanted: Wanted, table: ReleasedTable) -> bool:
    place = table.columns.index(wanted.name)
    rows = [(row[place], _half_width(table, at, place)) for at, row in enumerate(table.rows)]
    return bool(rows) and all(
        value is not None and error is not None and error <= _SLACK * wanted.most(float(value)) for value, error in rows
    )


def _cells(wanted: Wanted, answer: ExpectedPrice) -> list[ExpectedCell]:
    return answer.large_cells(wanted.aggregate) if wanted.relative else answer.cells(wanted.aggregate)


def _holds(wanted: Wanted, cells: Sequence[ExpectedCell]) -> bool:
    return all(each.error <= _SLACK * wanted.most(each.truth) for each in cells)


def _check_known(expectations: Expectations, wanted: Sequence[Wanted]) -> None:
    """Per cent need something that they are of."""
    answer = expectations.at(1.0)
    for each in wanted:
        if each.relative and not answer.first.knows(each.aggregate):
            raise InputError(
                f"Nobody knows yet how large {each.name!r} is.",
                why="Per cent are of what each group shows, and nothing public says what that may be.",
                fix="Give the error as a number, or ask once with a small epsilon: then your own answer says it.",
            )


def _refusal(expectations: Expectations, wanted: Sequence[Wanted]) -> QuestionRefusedError:
    answer = expectations.at(HIGHEST)
    for each in wanted:
        cells = _cells(each, answer)
        if _holds(each, cells):
            continue
        worst = max(cells, key=lambda one: one.error / max(each.most(one.truth), 1e-300))
        most = _SLACK * each.most(worst.truth)
        return no_price(answer.first, each.name, each.aggregate, worst, most, HIGHEST)
    raise RuntimeError("A price was refused that holds.")


def price_notes(expectations: Expectations, error: Error, epsilon: float) -> tuple[str, ...]:
    """What the asker should know of a price that was found by accuracy."""
    answer, found = expectations.at(epsilon), list[str]()
    wanted = read_error(expectations.plan, error)
    blind = [each.name for each in wanted if any(one.total_error is None for one in answer.cells(each.aggregate))]
    if blind:
        found.append(f"Priced by the noise alone: nothing is known of what limits cut off from {', '.join(blind)}.")
    if any(each.relative for each in wanted) and len(answer.first.plan.cells) > 1:
        found.append(f"Per cent hold for groups of at least {SMALL:g} times the average size.")
    return tuple(found)


# --- with the release


def missed_notes(plan: Plan, error: Error, table: ReleasedTable) -> tuple[str, ...]:
    """Which groups of an answer are less exact than asked: small ones, and others where more was cut off than expected.

    Post-processing of the answer itself.
    """
    found = []
    for each in read_error(plan, error):
        place = table.columns.index(each.name)
        values = [abs(float(row[place] or 0.0)) for row in table.rows]
        average = sum(values) / len(values) if values else 0.0
        small, large = list[str](), list[str]()
        for at, row in enumerate(table.rows):
            width = _half_width(table, at, place)
            small_one = each.relative and values[at] < SMALL * average
            if width is not None and width <= (_SLACK if small_one else _NEARLY) * each.most(values[at]):
                continue
            label = ", ".join(str(row[key]) for key, is_key in enumerate(table.keys) if is_key) or each.name
            if width is not None:
                is_part = each.relative and values[at]
                label += f" (± {f'{width / values[at]:.1%}' if is_part else plain_number(width, 4)})"
            (small if small_one else large).append(label)
        if small:
            found.append(f"± {each} of {each.name} does not hold for groups below half the average: {_listed(small)}.")
        if large:
            found.append(f"{each.name} came out less exact than ± {each}: {_listed(large)}.")
    return tuple(found)


def _half_width(table: ReleasedTable, row: int, place: int) -> float | None:
    """How far the truth may lie from what is shown: with clipping where that is known, else by the noise."""
    value, total = table.rows[row][place], table.total_interval[row][place]
    if total is None or value is None:
        alone: float | None = table.noise_error[row][place]
        return alone
    return float(max(value - total[0], total[1] - value))


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")
