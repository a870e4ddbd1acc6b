"""Subqueries that stand for one value: over public tables only, worked out exactly before the question is planned."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.expressions import FALSE, NULL, TRUE, Literal, Type, number, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dalenius.errors import Place
    from dalenius.measuring.public import PublicTable


def scalar(tree: Any, publics: Mapping[str, PublicTable], at: Place | None) -> Literal:
    """The value of a subquery; its tables are public, so it is a constant that anyone could write down.

    Raises:
        QuestionRefusedError: It reads protected rows, speaks of the question around it, or gives no single value.
    """
    from dalenius.queries.public_questions import answered, public_question

    spelled = {name.lower(): name for name in publics}
    question = public_question(tree.sql(dialect="duckdb"), spelled.keys())
    if question is None:
        raise QuestionRefusedError(
            "A subquery inside an expression can only read public tables.",
            why="Its value would enter the question without a price, or be another one for every row.",
            fix="Ask for it first and write its value down, or join a subquery in FROM that groups by the unit.",
            at=at,
        )
    try:
        found = answered(question, [publics[spelled[name]] for name in sorted(question.tables)])
    except QuestionRefusedError as error:
        raise QuestionRefusedError(
            "The subquery cannot be worked out by itself.",
            why=f"{error.why} It must not speak of the rows around it.",
            fix="Write it so that it could be asked alone.",
            at=at,
        ) from None
    if len(found.columns) != 1 or len(found.rows) > 1:
        raise QuestionRefusedError(
            "A subquery inside an expression must give one value.",
            why=f"It gives {len(found.columns)} columns and {len(found.rows):,} rows.",
            fix="Select one aggregate.",
            at=at,
        )
    return _literal(found.rows[0][0] if found.rows else None, at)


def _literal(value: object, at: Place | None) -> Literal:
    match value:
        case None:
            return NULL
        case bool():
            return TRUE if value else FALSE
        case int() | float() | Decimal() if math.isfinite(value):
            return number(float(value))
        case str():
            return text(value)
        case datetime():
            return Literal(value.replace(tzinfo=None), Type.DATETIME)
        case date():
            return Literal(value, Type.DATE)
    raise QuestionRefusedError(
        "The value of a subquery cannot be used.",
        why="It is no number, text, date or truth value.",
        fix="Cast it.",
        at=at,
    )
