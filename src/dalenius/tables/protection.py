"""Who is protected, and how far: the unit, what one unit may add, what may be learned, and when answers leave.

A unit is named by columns of the table itself, or by a path of keys through other tables of the data set. The rest are
the sections [contribution], [budget], [analysts] and [time].
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dalenius.accounting import parameters
from dalenius.tables.mistakes import invalid, join_names
from dalenius.tables.policy import TIMES, BudgetSpec, Column, Contribution, Hop, Kind, Period, Time
from dalenius.tables.sections import PolicySection, check_printable
from dalenius.tables.values import exact_decimal, plain_number

PERIODS = ("day", "week", "month", "quarter", "year")
_MOST = 10**12
_UNIT_FIX = 'Write unit = "user_id", a list of columns that name one unit together, or { path = "…" }.'
_PATH_FIX = 'Write { path = "l_orderkey -> orders.o_orderkey -> orders.o_custkey" }.'
_STEP = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,62})\.(.+)")


def read_unit(table: PolicySection, name: str) -> tuple[tuple[str, ...], tuple[Hop, ...]]:
    """The unit's columns, and the path to them where they are another table's."""
    value = table.values.get("unit")
    if isinstance(value, Mapping):
        return _path(PolicySection(value, table.at("unit"), ("path",)), name)
    return table.column_names("unit", why="It says who is protected.", fix=_UNIT_FIX), ()


def _path(section: PolicySection, name: str) -> tuple[tuple[str, ...], tuple[Hop, ...]]:
    """``a -> t.k -> t.b -> …``: from a column to the key of the next table, and on from one of its columns."""
    steps = [each.strip() for each in section.string("path", fix=_PATH_FIX).split("->")]
    place, why = section.at("path"), "A path goes from a column to the unique key of a table, and on from its column."
    if len(steps) < 3 or len(steps) % 2 == 0 or not steps[0]:
        raise invalid(place, "this is no path.", why=why, fix=_PATH_FIX)
    column, hops, seen = steps[0], [], {name.lower()}
    for at in range(1, len(steps), 2):
        key, onward = (_STEP.fullmatch(each) for each in steps[at : at + 2])
        if key is None or onward is None or key[1] != onward[1]:
            raise invalid(place, f"{steps[at]!r} and {steps[at + 1]!r} do not belong together.", why=why, fix=_PATH_FIX)
        if key[1].lower() in seen:
            raise invalid(place, f"it comes to table {key[1]!r} again.", why="Then it would not end.", fix=_PATH_FIX)
        seen.add(key[1].lower())
        hops.append(Hop(column, key[1], key[2]))
        column = onward[2]
    return (column,), tuple(hops)


def check_apart(unit: tuple[str, ...], path: tuple[Hop, ...], columns: Iterable[str]) -> None:
    """Refuses a column of the table itself that is called as the unit at the end of its path: one name, two values."""
    named = {each.lower() for each in unit} if path else set()
    for name in columns:
        if name.lower() in named:
            raise invalid(
                f"columns.{name}",
                "its path ends in a column of the same name.",
                why="One name would mean whose a row is and what it holds.",
                fix="Rename the column in the source, or leave it out of the policy.",
            )


def read_contribution(top: PolicySection, columns: Mapping[str, Column]) -> Contribution:
    """The section [contribution]."""
    section = PolicySection(top.values.get("contribution", {}), "contribution", ("rows", "groups", "totals", "units"))
    totals = PolicySection(section.values.get("totals", {}), "contribution.totals", ())
    found = {}
    for name, value in totals.values.items():
        place, column = totals.at(name), columns.get(name)
        if column is None or not column.summable:
            raise invalid(
                place,
                "there is no such column that can be summed.",
                why="A total needs a column of type integer or number with bounds."
                + (
                    f" Those are {join_names(summable)}."
                    if (summable := [n for n, c in columns.items() if c.summable])
                    else ""
                ),
                fix=f"Declare [columns.{name}] with bounds, or remove the total.",
            )
        limit = exact_decimal(value, place)
        if limit <= 0 or (column.kind is Kind.INTEGER and limit.denominator != 1):
            kind = "a whole number above 0" if column.kind is Kind.INTEGER else "above 0"
            raise invalid(place, f"this must be {kind}.", why="One unit's total is clipped to it.", fix="Correct it.")
        found[name] = limit
    return Contribution(_count(section, "rows"), _count(section, "groups"), found, _count(section, "units"))


def _count(section: PolicySection, key: str) -> int | None:
    if key not in section:
        return None
    value = section.checked(key, lambda given: parameters.count(given, key))
    if value > _MOST:
        raise invalid(section.at(key), "this is no limit.", why=f"It is above {_MOST:,}.", fix="Lower it.")
    return value


def read_budget(top: PolicySection, columns: Mapping[str, Column]) -> BudgetSpec | None:
    """The section [budget], if there is one."""
    if "budget" not in top:
        return None
    known = ("epsilon", "delta", "accounting", "period", "share_answers", "selection")
    section = PolicySection(top.values["budget"], "budget", known)
    epsilon = _epsilon(section)
    accounting = section.one_of("accounting", ("zcdp", "pure"), "zcdp")
    delta = section.checked("delta", lambda given: parameters.delta(plain_number(given)), 0)
    if accounting == "zcdp" and delta == 0:
        raise invalid(
            section.at("delta"),
            "this must be above 0.",
            why="Accounting 'zcdp' needs it to turn ρ into ε.",
            fix='Give a δ well below 1/(number of units), such as 1e-6, or accounting = "pure".',
        )
    if accounting == "pure" and delta != 0:
        raise invalid(section.at("delta"), "a pure budget has no δ.", why="Its promise never fails.", fix="Remove it.")
    if accounting == "pure" and "selection" in section:
        why = "Keys that are not declared cannot be found under it."
        raise invalid(section.at("selection"), "a pure budget has no δ to share out.", why=why, fix="Remove it.")
    share = section.flag("share_answers", default=True)
    part = section.checked("selection", lambda given: parameters.selection(plain_number(given)), parameters.SELECTION)
    return BudgetSpec(epsilon, delta, accounting, _period(section, columns), share, part)


def _period(budget: PolicySection, columns: Mapping[str, Column]) -> Period | None:
    if "period" not in budget:
        return None
    section = PolicySection(budget.values["period"], "budget.period", ("column", "every"))
    column = section.string("column", fix="Name the column that tells the time.")
    if column not in columns or columns[column].kind not in TIMES:
        raise invalid(
            section.at("column"),
            f"{column!r} is not a date or datetime of this policy.",
            why="Rows are sorted into periods by it.",
            fix=f'Declare it as [columns.{column}] with type = "date".',
        )
    return Period(column, section.one_of("every", PERIODS))


def read_analysts(top: PolicySection, budget: BudgetSpec | None) -> dict[str, float]:
    """The sections [analysts.NAME]."""
    section = PolicySection(top.values.get("analysts", {}), "analysts", ())
    found = {}
    for name, values in section.values.items():
        check_printable(name, "analysts", "an analyst")
        own = PolicySection(values, section.at(name), ("epsilon",))
        found[name] = _epsilon(own)
        if budget is not None and found[name] > budget.epsilon:
            raise invalid(
                own.at("epsilon"), "this is more than the whole budget.", why="It could not be spent.", fix="Lower it."
            )
    return found


def _epsilon(section: PolicySection) -> float:
    section.need("epsilon", "Write epsilon = 1.0; 0.1 to 3 is usual.")
    return section.checked("epsilon", lambda given: parameters.epsilon(plain_number(given)))


def read_time(top: PolicySection) -> Time:
    """The section [time]."""
    section = PolicySection(top.values.get("time", {}), "time", ("answer", "cap", "late"))
    answer, cap = _seconds(section, "answer"), _seconds(section, "cap")
    if answer is not None and cap is not None and cap < answer:
        raise invalid("time.cap", "this is below time.answer.", why="No answer could leave.", fix="Raise it.")
    return Time(answer, cap, _count(section, "late"))


def _seconds(section: PolicySection, key: str) -> float | None:
    if key not in section:
        return None
    return section.checked(key, lambda given: float(parameters.positive(plain_number(given), key)))
