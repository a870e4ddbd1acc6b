"""One column of a policy, checked; its keys may stand in a code list, a CSV file of their own.

Its single values (bounds, keys, a default) are read by its kind, and decimals among them stay exact. So does the step
that its numbers are rounded to.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from dalenius.errors import PolicyInvalidError, SourceUnavailableError
from dalenius.tables.mistakes import invalid, nearest
from dalenius.tables.policy import BOUNDED, KEYED, NUMERIC, WIDEST, Bounds, Column, Kind, Value, decimal_text
from dalenius.tables.sections import PolicySection, type_name
from dalenius.tables.sources.homes import check_sources

KNOWN = ("type", "bounds", "step", "keys", "default", "zone")
MOST_KEYS = 100_000


def read_column(name: str, values: object, folder: Path) -> Column:
    """The column of a section [columns.NAME]; code lists are relative to ``folder``."""
    section = PolicySection(values, f"columns.{name}", KNOWN)
    kind = Kind(section.one_of("type", tuple(each.value for each in Kind)))
    zone = _zone(section, kind)
    bounds = _bounds(section, kind)
    keys = _keys(section, kind, folder)
    if bounds is not None and keys is not None:
        outside = [key for key in keys if not bounds.low <= key <= bounds.high]
        if outside:
            raise invalid(
                section.at("keys"),
                f"{_show(outside[0])} lies outside the bounds.",
                why="Both hold.",
                fix="Correct one.",
            )
    return Column(name, kind, bounds, _step(section, kind, bounds), keys, _default(section, kind, bounds, keys), zone)


def _bounds(section: PolicySection, kind: Kind) -> Bounds | None:
    if "bounds" not in section:
        return None
    place, values = section.at("bounds"), section.values["bounds"]
    if kind not in BOUNDED:
        raise invalid(
            place,
            f"a column of type {kind.value} has no bounds.",
            why="Only numbers, dates and datetimes are ordered.",
            fix="Remove them" + (", or list its keys." if kind in KEYED else "."),
        )
    if not isinstance(values, list) or len(values) != 2:
        raise invalid(
            place,
            "these must be two values.",
            why=f"They are {len(values)}." if isinstance(values, list) else f"This is {type_name(values)}.",
            fix="Write bounds = [low, high].",
        )
    low, high = (value_of(kind, each, place) for each in values)
    if low > high:  # type: ignore[operator]
        raise invalid(
            place, "low is above high.", why="A value would have to be both.", fix="Write the smaller one first."
        )
    return Bounds(low, high)


def _step(section: PolicySection, kind: Kind, bounds: Bounds | None) -> Fraction | None:
    if kind not in NUMERIC or bounds is None:
        if "step" in section:
            raise invalid(
                section.at("step"),
                "there is nothing to round." if kind in NUMERIC else f"a column of type {kind.value} has no step.",
                why="The step rounds numbers before they are added, which needs bounds.",
                fix="Give bounds, or remove the step." if kind in NUMERIC else "Remove it.",
            )
        return None
    if kind is Kind.INTEGER:
        return Fraction(_integer_step(section, bounds))
    place, width = section.at("step"), bounds.high - bounds.low
    if width == 0:
        raise invalid(
            section.at("bounds"), "low and high are equal.", why="The column would be constant.", fix="Widen them."
        )
    if "step" not in section:
        return default_step(bounds.low, bounds.high)
    step = exact_decimal(section.values["step"], place)
    _check_step(place, step, width)
    if too_fine(step, bounds.low, bounds.high):
        raise invalid(
            place,
            "this is finer than a double can tell.",
            why="The bounds lie more than 2⁵³ steps from zero.",
            fix=f"Give at least {decimal_text(default_step(bounds.low, bounds.high))}.",
        )
    return step


def _integer_step(section: PolicySection, bounds: Bounds) -> int:
    if "step" not in section:
        return 1
    step = whole_number(section.values["step"], section.at("step"))
    _check_step(section.at("step"), step, max(1, bounds.high - bounds.low))
    return step


def _check_step(place: str, step: Fraction | int, width: Fraction | int) -> None:
    if step <= 0:
        raise invalid(place, "this must be above 0.", why="Values are rounded to it.", fix="Give a step such as 0.01.")
    if step > width:
        raise invalid(
            place, "this is larger than the range.", why="Every value would round alike.", fix="Give a smaller one."
        )


def _keys(section: PolicySection, kind: Kind, folder: Path) -> tuple[Value, ...] | None:
    if "keys" not in section:
        return None
    place, given = section.at("keys"), section.values["keys"]
    if kind not in KEYED:
        raise invalid(
            place,
            f"a column of type {kind.value} has no keys.",
            why="Keys are whole numbers, texts or dates; those of a boolean are known.",
            fix="Remove them.",
        )
    values = _from_file(given, kind, folder, place) if isinstance(given, Mapping) else given
    if not isinstance(values, list) or not values:
        raise invalid(
            place,
            "this must be a list of keys, or a file.",
            why="It is empty." if values == [] else f"This is {type_name(values)}.",
            fix='Write keys = ["north", "south"], or keys = { file = "codes.csv", column = "code" }.',
        )
    if len(values) > MOST_KEYS:
        raise invalid(
            place, f"these are more than {MOST_KEYS:,} keys.", why="An answer has a cell for each.", fix="Group them."
        )
    keys = tuple(value_of(kind, each, place) for each in values)
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            raise invalid(place, f"{_show(key)} is there twice.", why="A key has one cell.", fix="Remove one.")
        seen.add(key)
    return keys


def _from_file(given: Mapping[str, Any], kind: Kind, folder: Path, place: str) -> list[Any]:
    section = PolicySection(given, place, ("file", "column"))
    file = folder / section.string("file", fix='Write file = "codes.csv".')
    codes: list[Any] = code_list(file, section.string("column", fix="Name the column that holds the keys."), place)
    if kind is not Kind.INTEGER:
        return codes
    try:
        return [int(each) for each in codes]
    except ValueError:
        raise invalid(
            place, "not every key is a whole number.", why="The column is of type integer.", fix="Correct the list."
        ) from None


def code_list(file: Path, column: str, place: str) -> list[str]:
    """One column of a CSV file with a header, from top to bottom; empty cells are left out.

    A code list is public: it says which values can exist, not which do. It must not be made from the data.
    """
    check_sources([file])
    if file.exists() and not file.is_file():  # a pipe or a device would be read without end
        raise invalid(place, f"{file.name} is no file.", why="A code list is a CSV file.", fix="Name one.")
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            header = reader.fieldnames or []
            if column not in header:
                meant = nearest(column, header)
                raise invalid(
                    place,
                    f"{file.name} has no column {column!r}.",
                    why="Its first line names its columns.",
                    fix=f"Did you mean {meant!r}?" if meant else "Correct the column or the file.",
                )
            return [row[column] for row in reader if row[column]]
    except OSError:
        raise SourceUnavailableError(
            f"{place}: the code list {file.name} cannot be read.",
            why="It is missing, or this user has no access to it.",
            fix="Correct the path; it is relative to the policy file.",
        ) from None
    except (csv.Error, UnicodeError):
        raise invalid(
            place, f"{file.name} is not a CSV file.", why="It does not read as UTF-8 CSV.", fix="Save it as CSV."
        ) from None


def _default(section: PolicySection, kind: Kind, bounds: Bounds | None, keys: tuple[Value, ...] | None) -> Value | None:
    if "default" not in section:
        return None
    place = section.at("default")
    value: Any = value_of(kind, section.values["default"], place)
    if bounds is not None and not bounds.low <= value <= bounds.high:
        raise invalid(place, "this lies outside the bounds.", why="It stands for a value.", fix="Move it inside.")
    if keys is not None and value not in keys:
        raise invalid(place, "this is not one of the keys.", why="It stands for a value.", fix="Use one of the keys.")
    return value  # type: ignore[no-any-return]


def _zone(section: PolicySection, kind: Kind) -> str | None:
    if "zone" not in section:
        return None
    place, fix = section.at("zone"), 'Write a name such as "Europe/Berlin" or "UTC".'
    if kind is not Kind.DATETIME:
        raise invalid(place, f"a column of type {kind.value} has no zone.", why="Only datetimes do.", fix="Remove it.")
    zone = section.string("zone", fix=fix)
    try:
        ZoneInfo(zone)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise invalid(
            place, f"{zone!r} is not a time zone.", why="Names are those of the IANA list.", fix=fix
        ) from None
    return zone


def _show(value: Value) -> str:
    return repr(value) if isinstance(value, str | int) else str(value)


# --- single values, and steps

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
