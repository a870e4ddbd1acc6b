"""What one unit may add, and when answers leave: the sections [contribution] and [time]."""

from __future__ import annotations

from collections.abc import Mapping

from dalenius.accounting import parameters
from dalenius.errors import InputError
from dalenius.tables.mistakes import invalid, listed
from dalenius.tables.policy import Column, Contribution, Kind, Time
from dalenius.tables.sections import Section, at_place
from dalenius.tables.values import exact, plain_number

_MOST = 10**12


def read_contribution(top: Section, columns: Mapping[str, Column]) -> Contribution:
    """The section [contribution]."""
    section = Section(top.values.get("contribution", {}), "contribution", ("rows", "groups", "totals", "units"))
    totals = Section(section.values.get("totals", {}), "contribution.totals", ())
    found = {}
    for name, value in totals.values.items():
        place, column = totals.at(name), columns.get(name)
        if column is None or not column.summable:
            raise invalid(
                place,
                "there is no such column that can be summed.",
                why="A total needs a column of type integer or number with bounds."
                + (
                    f" Those are {listed(summable)}."
                    if (summable := [n for n, c in columns.items() if c.summable])
                    else ""
                ),
                fix=f"Declare [columns.{name}] with bounds, or remove the total.",
            )
        limit = exact(value, place)
        if limit <= 0 or (column.kind is Kind.INTEGER and limit.denominator != 1):
            kind = "a whole number above 0" if column.kind is Kind.INTEGER else "above 0"
            raise invalid(place, f"this must be {kind}.", why="One unit's total is clipped to it.", fix="Correct it.")
        found[name] = limit
    return Contribution(_count(section, "rows"), _count(section, "groups"), found, _count(section, "units"))


def _count(section: Section, key: str) -> int | None:
    if key not in section:
        return None
    try:
        value = parameters.count(section.values[key], key)
    except InputError as error:
        raise at_place(section.at(key), error) from None
    if value > _MOST:
        raise invalid(section.at(key), "this is no limit.", why=f"It is above {_MOST:,}.", fix="Lower it.")
    return value


def read_time(top: Section) -> Time:
    """The section [time]."""
    section = Section(top.values.get("time", {}), "time", ("answer", "cap", "late"))
    found: dict[str, float | None] = {"answer": None, "cap": None}
    for key in (each for each in section.values if each in found):
        try:
            found[key] = float(parameters.positive(plain_number(section.values[key]), key))
        except InputError as error:
            raise at_place(section.at(key), error) from None
    answer, cap = found["answer"], found["cap"]
    if answer is not None and cap is not None and cap < answer:
        raise invalid("time.cap", "this is below time.answer.", why="No answer could leave.", fix="Raise it.")
    return Time(answer, cap, _count(section, "late"))
