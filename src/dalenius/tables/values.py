"""Single values of a policy, by the kind of their column, and what numbers are rounded to. Decimals stay exact."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dalenius.errors import PolicyInvalidError
from dalenius.tables.mistakes import invalid
from dalenius.tables.policy import WIDEST, Kind, Value
from dalenius.tables.sections import type_name

LARGEST_EXPONENT = 100  # past this a decimal is a mistake, and as a fraction would fill the memory
MOST_DIGITS = 200
LONGEST = 10_000
FINENESS = 2**20
# x/step is taken in doubles on every engine; past 2⁵³ steps a double no longer tells neighbours apart.
MOST_STEPS = 2**53


def value_of(kind: Kind, value: object, place: str) -> Value:
    """A value of a column: a bound, a key or a default."""
    match kind:
        case Kind.INTEGER:
            return whole_number(value, place)
        case Kind.NUMBER:
            return exact_decimal(value, place)
        case Kind.BOOLEAN:
            if isinstance(value, bool):
                return value
            raise _wrong_type(place, value, "true or false", "Write true or false, without quotes.")
        case Kind.DATE:
            return _date(value, place)
        case Kind.DATETIME:
            return _datetime(value, place)
        case _:
            return _text(value, place)


def whole_number(value: object, place: str) -> int:
    """A 64-bit integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong_type(place, value, "a whole number", "Write it without quotes and without a decimal point.")
    if not -WIDEST <= value < WIDEST:
        raise invalid(place, "this is too large.", why="Integers are 64 bits wide.", fix="Give a smaller one.")
    return value


def exact_decimal(value: object, place: str) -> Fraction:
    """The decimal as it stands in the file."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _wrong_type(place, value, "a number", "Write it without quotes.")
    decimal = Decimal(value)
    if not decimal.is_finite():
        raise invalid(place, "this must be finite.", why="It is nan or infinite.", fix="Give a finite number.")
    _, digits, exponent = decimal.as_tuple()
    if decimal and (
        abs(decimal.adjusted()) > LARGEST_EXPONENT or len(digits) > MOST_DIGITS or int(exponent) < -MOST_DIGITS
    ):
        raise invalid(
            place,
            "this is no number of a sensible size.",
            why=f"It must lie between 1e-{LARGEST_EXPONENT} and 1e{LARGEST_EXPONENT}, in at most {MOST_DIGITS} digits.",
            fix="Give a simpler one.",
        )
    return Fraction(decimal)


def plain_number(value: object) -> object:
    """A decimal of the file as the nearest double, for numbers that `accounting.parameters` checks."""
    return float(value) if isinstance(value, Decimal) else value


def default_step(low: Fraction, high: Fraction) -> Fraction:
    """(high − low)/2²⁰ rounded to a power of ten, coarser where doubles could not tell the steps apart.

    >>> default_step(Fraction(0), Fraction(5000)), default_step(Fraction(0), Fraction(1))
    (Fraction(1, 100), Fraction(1, 1000000))
    """
    step = power_of_ten((high - low) / FINENESS)
    while too_fine(step, low, high):
        step *= 10
    return step


def too_fine(step: Fraction, low: Fraction, high: Fraction) -> bool:
    """Whether the bounds lie more steps from zero than a double can count."""
    return max(abs(low), abs(high)) > step * MOST_STEPS


def power_of_ten(value: Fraction) -> Fraction:
    """The power of ten nearest to a positive number by ratio, found without floating point."""
    power = Fraction(10) ** (len(str(value.numerator)) - len(str(value.denominator)))
    while power > value:
        power /= 10
    while power * 10 <= value:
        power *= 10
    # value lies in [power, 10 power); √10 power is the middle
    return power * 10 if value * value >= 10 * power * power else power


def _date(value: object, place: str) -> date:
    fix = 'Write it as "2025-12-31".'
    if isinstance(value, str):
        try:
            found = date.fromisoformat(value)
        except ValueError:
            found = None
        if found is None or found.isoformat() != value:
            raise invalid(place, "this is not a date.", why="Dates are ISO 8601: year-month-day.", fix=fix)
        return found
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise _wrong_type(place, value, "a date", fix)


def _datetime(value: object, place: str) -> datetime:
    fix = 'Write local time as "2025-12-31T23:59:59"; zone says where that is.'
    found: Any = value
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value) if len(value) > 10 else None
        except ValueError:
            found = None
        if found is None:
            raise invalid(place, "this is not a datetime.", why="Datetimes are ISO 8601, with their time.", fix=fix)
    if not isinstance(found, datetime):
        raise _wrong_type(place, value, "a datetime", fix)
    if found.tzinfo is not None:
        raise invalid(place, "this has an offset.", why="A column's times are local to its zone.", fix=fix)
    return found


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise _wrong_type(place, value, "a text", "Write it in quotes.")
    if len(value) > LONGEST or "\0" in value:
        raise invalid(place, "this text is too long or holds a NUL.", why="No engine takes it.", fix="Shorten it.")
    return value


def _wrong_type(place: str, value: object, wanted: str, fix: str) -> PolicyInvalidError:
    return invalid(place, f"this must be {wanted}, not {type_name(value)}.", why="Nothing is guessed.", fix=fix)
