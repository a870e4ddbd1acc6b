"""What a question would cost and how exact it would be, before anything is paid. Never touches the data.

The errors are those of the answer that is expected (`expectations`): made of public facts and the asker's own answers.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dalenius._fields import Fields
from dalenius._numbers import count_of
from dalenius.ledger.key_delta import Left
from dalenius.queries.expectations import Expectations
from dalenius.queries.expected_answer import ExpectedColumn
from dalenius.queries.explaining import Explanation
from dalenius.queries.note_words import plain_notes
from dalenius.queries.plan_words import describe_plan
from dalenius.queries.postprocess import shown_groups
from dalenius.queries.release import FREE, shown_error
from dalenius.queries.rules.price import price_plan

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan
    from dalenius.queries.own_answers import OwnAnswer
    from dalenius.queries.postprocess import ReleasedTable
    from dalenius.queries.release import Release

CHOICES = (0.05, 0.2, 0.5)
KNOWN = "known already: free"
_BEFORE = "noise_error_at_1000_rows"  # where earlier servers put the errors of averages and quantiles


@dataclass(frozen=True)
class Choice:
    """One price, and what is expected of each column at it; None for keys.

    Attributes:
        epsilon: The price.
        rho: The same under zCDP.
        noise_error: How far the noise moves a value, in a usual group.
        total_error: How far the raw truth may lie from what is shown, with what clipping takes; None where nobody
            can say what it takes.
        delta: What finding the groups costs besides; 0 where they are public.
        at_most: In which columns the noise error is the most that it will be, since nothing is known that says less.
        known: This analyst has paid for this answer already: it is free, and these are its errors.
    """

    epsilon: float
    rho: float | None
    noise_error: tuple[float | None, ...]
    total_error: tuple[float | None, ...] = ()
    delta: float = 0.0
    at_most: tuple[bool, ...] = ()
    known: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "delta": self.delta,
            "noise_error": list(self.noise_error),
            "total_error": list(self.total_error),
            "at_most": list(self.at_most),
            "known": self.known,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Choice:
        """As `to_dict` wrote it, here or in an earlier version."""
        found = Fields(data, "preview")
        rho = found.number("rho") if "rho" in found else None
        errors = found.numbers("noise_error")
        if _BEFORE in found:
            usual = found.numbers(_BEFORE)
            if len(usual) != len(errors):
                raise found.wrong(_BEFORE)
            errors = tuple(b if a is None else a for a, b in zip(errors, usual, strict=True))
        totals = found.numbers("total_error") if "total_error" in found else (None,) * len(errors)
        at_most = tuple(found.each("at_most", bool)) if "at_most" in found else (False,) * len(errors)
        delta = found.number("delta") if "delta" in found else 0.0
        known = "known" in found and found.flag("known")
        return cls(found.number("epsilon"), rho, errors, totals, delta, at_most, known)

    def told(self, place: int) -> ExpectedColumn:
        """What is expected of one column."""
        return ExpectedColumn(self.noise_error[place], self.total_error[place], self.at_most[place])


@dataclass(frozen=True)
class Preview:
    """Price and expected error of a question.

    Attributes:
        columns: Names of the answer's columns.
        groups: How many rows the answer has, before HAVING and LIMIT; None where groups have to be found.
        choices: One price, or the usual three.
        confidence: Of the errors.
        plan: The steps of the plan, with what one unit can change in each, its noise and its price.
        remaining: What is left to spend.
        notes: What the reader should know besides.
        rows: How many rows a group is reckoned to have.
        delta: What finding the groups costs besides at the first of them; 0 where they are public.
        search: The share of the price with which the question first finds its own limits.
        public: It is about public tables only: answered exactly, and for nothing. There are no choices then.
        explanation: What the question was understood to mean, in plain words.
    """

    columns: tuple[str, ...]
    groups: int | None
    choices: tuple[Choice, ...]
    confidence: float
    plan: str
    remaining: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    rows: int = 0
    delta: float = 0.0
    search: float = 0.0
    public: bool = False
    explanation: Explanation | None = None

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "columns": list(self.columns),
            "groups": self.groups,
            "delta": self.delta,
            "choices": [each.to_dict() for each in self.choices],
            "confidence": self.confidence,
            "remaining": self.remaining,
            "notes": list(self.notes),
            "search": self.search,
            "public": self.public,
            "rows": self.rows,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Preview:
        """As `to_dict` wrote it; plan and explanation are there where "plan" and "explanation" stand beside the rest.

        Raises:
            InputError: It is no preview.
        """
        found = Fields(data, "preview")
        columns, choices = found.texts("columns"), tuple(map(Choice.from_dict, found.items("choices")))
        for each in choices:
            if not len(columns) == len(each.noise_error) == len(each.total_error) == len(each.at_most):
                raise found.wrong("choices")
        remaining = found.fields("remaining")
        if not found.flag("public"):
            for who in ("analyst", "dataset"):
                remaining.fields(who).number("epsilon")
        return cls(
            columns,
            found.whole("groups") if "groups" in found else None,
            choices,
            found.number("confidence"),
            found.text("plan") if "plan" in found else "",
            found.mapping("remaining"),
            found.texts("notes"),
            found.whole("rows"),
            found.number("delta"),
            found.number("search"),
            found.flag("public"),
            Explanation.from_dict(found.mapping("explanation")) if "explanation" in found else None,
        )

    def described(self) -> dict[str, Any]:
        """For `--json` with `--plan`: the question in plain words, and the steps of its plan."""
        words = {} if self.explanation is None else {"explanation": self.explanation.to_dict()}
        return {"plan": self.plan, **words}

    def size(self, what: str) -> str:
        """How many rows or groups, in words."""
        if self.groups is None:
            found = [self.delta, *(each.delta for each in self.choices if each.delta)]
            least, most = f"{min(found):.3g}", f"{max(found):.3g}"
            return f"groups found privately, δ = {least if least == most else f'{least} to {most}'}"
        return count_of(self.groups, what)

    def __str__(self) -> str:
        if self.public:
            return "\n".join([f"{', '.join(self.columns)}: {FREE}", *self.notes])
        lines = [f"{self.size('group')}, {', '.join(self.columns)}"]
        for choice in self.choices:
            shown = []
            for place, name in enumerate(self.columns):
                told = choice.told(place)
                if told.noise_error is not None:
                    most = "at most " if told.at_most else ""
                    total = "" if told.total_error is None else f" (in all {shown_error(told.total_error)})"
                    shown.append(f"{name} ± {most}{shown_error(told.noise_error)}{total}")
            free = f" · {KNOWN}" if choice.known else ""
            lines.append(f"  ε = {choice.epsilon:g}: {', '.join(shown) or 'no error is known before'}{free}")
        about = "± is from the noise" + (", in all with what limits cut off" if self.tells_totals else " alone")
        lines.append(f"  ({self.confidence:.0%} of the time; {about})")
        return "\n".join([*lines, *self.notes])

    @property
    def tells_totals(self) -> bool:
        """Whether it says of any column what clipping takes."""
        return any(error is not None for each in self.choices for error in each.total_error)


def preview_plan(
    plan: Plan,
    epsilons: Sequence[float],
    confidence: float,
    remaining: Mapping[str, Any],
    delta: float | None = None,
) -> Preview:
    """The preview at some prices, from public facts alone; what charges later is what is looked at here."""
    chosen = plan.selection is not None and delta is None
    left = Left.of(remaining) if chosen and remaining else None
    return preview_expected(Expectations(plan, confidence, delta, left), epsilons, remaining)


def preview_expected(
    expectations: Expectations,
    epsilons: Sequence[float],
    remaining: Mapping[str, Any],
    known: Mapping[float, OwnAnswer] | None = None,
    notes: Sequence[str] = (),
) -> Preview:
    """The preview at some prices.

    Args:
        expectations: What may be known of the answer.
        epsilons: The prices.
        remaining: What is left to spend.
        known: The answers that this analyst has paid for already, by the price that they serve.
        notes: What the reader should know besides.
    """
    plan, own = expectations.plan, known or {}
    choices = []
    for epsilon in epsilons:
        answer = expectations.at(epsilon)
        columns = (
            [answer.column(output.expression) for output in plan.question.outputs]
            if epsilon not in own
            else errors_in(own[epsilon].answer.table())
        )
        choices.append(
            Choice(
                epsilon,
                answer.first.priced.rho,
                tuple(each.noise_error for each in columns),
                tuple(each.total_error for each in columns),
                answer.first.priced.delta,
                tuple(each.at_most for each in columns),
                epsilon in own,
            )
        )
    return Preview(
        tuple(output.name for output in plan.question.outputs),
        None if plan.selection is not None else len(shown_groups(plan)),
        tuple(choices),
        expectations.confidence,
        describe_plan(plan, expectations.at(epsilons[0]).first.asked),
        remaining,
        plain_notes(plan, (*plan.notes, *_notes(expectations, choices), *notes)),
        expectations.rows,
        choices[0].delta,
        float(sum(each.search for each in plan.measures)),
    )


def known_choice(choice: Choice, table: ReleasedTable | Release) -> Choice:
    """A price at which the answer is known: with the errors that it has."""
    columns = errors_in(table)
    return replace(
        choice,
        noise_error=tuple(each.noise_error for each in columns),
        total_error=tuple(each.total_error for each in columns),
        at_most=(False,) * len(columns),
        known=True,
    )


def errors_in(table: ReleasedTable | Release) -> list[ExpectedColumn]:
    """The errors that an answer has, in a usual group."""
    found = list[ExpectedColumn]()
    for place in range(len(table.columns)):
        noise = [error for row in table.noise_error if (error := _largest(row[place])) is not None]
        totals = []
        for row, totals_of in zip(table.rows, table.total_interval, strict=True):
            value, ends = row[place], totals_of[place]
            if isinstance(ends, tuple) and value is not None:
                totals.append(max(value - ends[0], ends[1] - value))
        found.append(
            ExpectedColumn(
                statistics.median(noise) if noise else None, float(statistics.median(totals)) if totals else None
            )
        )
    return found


def _largest(error: Any) -> float | None:
    """The error of a cell; of a list, the largest."""
    known = [each for each in error if each is not None] if isinstance(error, list) else [error]
    return max(known, default=None)


def _notes(expectations: Expectations, choices: Sequence[Choice]) -> tuple[str, ...]:
    found, share = list[str](), sum(each.search for each in expectations.plan.measures)
    if share:
        with_ = f"with {float(share):.0%} of the price"
        bound = any(any(each.at_most) for each in choices)
        less = " Where 'at most' stands, the actual margin may be much smaller." if bound else ""
        found.append(f"The question first finds its own limits {with_}.{less}")
    if expectations.plan.selection is not None and choices:
        found.append(_least_units(expectations, choices))
    return (*found, *expectations.guesses)


def _least_units(expectations: Expectations, choices: Sequence[Choice]) -> str:
    """How many units a key needs to be found, at each price: whoever asks for smaller groups would pay for nothing."""
    plan, unit = expectations.plan, " + ".join(expectations.plan.table.unit)
    prices = [
        price_plan(plan, each.epsilon, expectations.delta_at(each.epsilon), expectations.left) for each in choices
    ]
    least = ", ".join(f"{each.least_units:,} at ε = {each.epsilon:.3g}" for each in prices)
    more = f"more where one {unit} has several keys"
    return f"Keys are found privately. A key needs about so many units (each {unit}): {least}; {more}."
