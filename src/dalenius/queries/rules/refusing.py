"""How a SELECT that cannot be read is refused: what was typed, why, and what works, with the place in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius.errors import InputError, QuestionRefusedError
from dalenius.measuring.expressions import Type
from dalenius.queries.rules.parse import place

if TYPE_CHECKING:
    from sqlglot import exp


class Refusing:
    """Makes the errors about one SELECT."""

    text: str  # of the whole question

    def mismatch(self, node: exp.Expr, wanted: str, given: str) -> InputError:
        """The error about types that do not fit."""
        return self.invalid(
            node,
            f"A {given} stands where a {wanted} belongs.",
            "The types do not fit.",
            "Write CAST(x AS INTEGER) for 1 and 0." if given == "boolean" else f"Cast it, or give a {wanted}.",
        )

    def no_moment(self, node: exp.Expr, given: str, wanted: Type) -> InputError:
        """The error about a text in quotes that is no date."""
        example = "DATE '2025-01-31'" if wanted is Type.DATE else "TIMESTAMP '2025-01-31 12:00:00'"
        return self.invalid(
            node,
            f"'{given[:40]}' is no date.",
            "Dates are written as ISO 8601 has them.",
            f"Write for example {example}.",
        )

    def list_alone(self, node: exp.Expr) -> QuestionRefusedError:
        """The error about a list that something is done with."""
        return QuestionRefusedError(
            "A list stands in SELECT by itself, as an item of its own.",
            why="Nothing is compared, computed or ordered with lists here.",
            fix="Ask for one value of it: QUANTILE_CONT(x, 0.25).",
            at=place(node, self.text),
        )

    def shown_alone(self, node: exp.Expr, name: str) -> QuestionRefusedError:
        """The error about an aggregate that nothing is computed with."""
        return QuestionRefusedError(
            f"{name} stands in SELECT by itself, as an item of its own.",
            why="It has no error that could be carried on, so that nothing is compared or computed with it.",
            fix="Count each value: SELECT x, COUNT(*) … GROUP BY x, and compute with these counts.",
            at=place(node, self.text),
        )

    def refused(
        self, node: exp.Expr, message: str, fix: str, why: str = "No other form of it is read."
    ) -> QuestionRefusedError:
        """The error about something that is read in another form, or not at all."""
        return QuestionRefusedError(message, why=why, fix=fix, at=place(node, self.text))

    def invalid(self, node: exp.Expr, message: str, why: str, fix: str) -> InputError:
        """The error about something that means nothing."""
        return InputError(message, why=why, fix=fix, at=place(node, self.text))
