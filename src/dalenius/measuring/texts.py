"""How long texts can be, in every engine: what is longer is cut or absent, so that no row makes a question heavy."""

from __future__ import annotations

from dalenius.measuring.expressions import Call, Expression, Literal, Type
from dalenius.measuring.functions import branches

LONGEST_TEXT = 200  # characters of a text; what is longer is cut (`work`)
LONGEST_BYTES = 4 * LONGEST_TEXT  # of a unit and of a category; whatever is longer counts as absent
LONGEST_NUMBER = 32  # bytes of a text that is read as a number
LONGEST_TIME = 64  # of a date, a time or a truth value that lies in the file as text
SURE_DIGITS = 19  # of a number: 64 bits decide how so many are rounded, whatever the exponent is


def sure(expression: Expression) -> bool:
    """Whether a text has so few digits that a parser of numbers is always quick."""
    match expression:
        case Literal(value=value):
            return not isinstance(value, str) or len(value) <= SURE_DIGITS
        case Call(function="to_text", arguments=(inner,)):
            return inner.type is not Type.TEXT  # of a number 17 digits are printed, of a whole one 19
        case Call(function="left" | "right" | "substring", arguments=(_, *_, Literal(value=float() as count))):
            return (expression.function != "substring" or len(expression.arguments) > 2) and 0 <= count <= SURE_DIGITS
        case Call(function="case"):
            return all(map(sure, branches(expression)))
        case Call(function="coalesce", arguments=arguments):
            return all(map(sure, arguments))
    return False
