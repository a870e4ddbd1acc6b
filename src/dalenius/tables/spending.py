"""What may be learned: the sections [budget] and [analysts]."""

from __future__ import annotations

from collections.abc import Mapping

from dalenius.accounting import parameters
from dalenius.errors import InputError
from dalenius.tables.mistakes import invalid
from dalenius.tables.policy import TIMES, BudgetSpec, Column, Period
from dalenius.tables.sections import Section, at_place
from dalenius.tables.values import plain_number

PERIODS = ("day", "week", "month", "quarter", "year")


def read_budget(top: Section, columns: Mapping[str, Column]) -> BudgetSpec | None:
    """The section [budget], if there is one."""
    if "budget" not in top:
        return None
    section = Section(top.values["budget"], "budget", ("epsilon", "delta", "accounting", "period", "share_answers"))
    epsilon = _epsilon(section)
    accounting = section.one_of("accounting", ("zcdp", "pure"), "zcdp")
    try:
        delta = parameters.delta(plain_number(section.values.get("delta", 0)))
    except InputError as error:
        raise at_place(section.at("delta"), error) from None
    if accounting == "zcdp" and delta == 0:
        raise invalid(
            section.at("delta"),
            "this must be above 0.",
            why="Accounting 'zcdp' needs it to turn ρ into ε.",
            fix='Give a δ well below 1/(number of units), such as 1e-6, or accounting = "pure".',
        )
    if accounting == "pure" and delta != 0:
        raise invalid(section.at("delta"), "a pure budget has no δ.", why="Its promise never fails.", fix="Remove it.")
    share = section.flag("share_answers", default=True)
    return BudgetSpec(epsilon, delta, accounting, _period(section, columns), share)


def _period(budget: Section, columns: Mapping[str, Column]) -> Period | None:
    if "period" not in budget:
        return None
    section = Section(budget.values["period"], "budget.period", ("column", "every"))
    column = section.string("column", fix="Name the column that tells the time.")
    if column not in columns or columns[column].kind not in TIMES:
        raise invalid(
            section.at("column"),
            f"{column!r} is not a date or datetime of this policy.",
            why="Rows are sorted into periods by it.",
            fix=f'Declare it as [columns.{column}] with type = "date".',
        )
    return Period(column, section.one_of("every", PERIODS))


def read_analysts(top: Section, budget: BudgetSpec | None) -> dict[str, float]:
    """The sections [analysts.NAME]."""
    section = Section(top.values.get("analysts", {}), "analysts", ())
    found = {}
    for name, values in section.values.items():
        if not name or len(name) > 200 or not name.isprintable():
            raise invalid(
                "analysts", "an analyst has no usable name.", why="It is empty or unprintable.", fix="Rename it."
            )
        own = Section(values, section.at(name), ("epsilon",))
        found[name] = _epsilon(own)
        if budget is not None and found[name] > budget.epsilon:
            raise invalid(
                own.at("epsilon"), "this is more than the whole budget.", why="It could not be spent.", fix="Lower it."
            )
    return found


def _epsilon(section: Section) -> float:
    value = section.need("epsilon", "Write epsilon = 1.0; 0.1 to 3 is usual.")
    try:
        return parameters.epsilon(plain_number(value))
    except InputError as error:
        raise at_place(section.at("epsilon"), error) from None
