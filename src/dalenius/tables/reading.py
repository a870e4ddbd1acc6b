"""A policy from TOML. Every mistake is named with its place, its reason and what to do.

Columns are read by `columns`. All else is here: the table, its unit (columns of the table itself, or a path of keys
through other tables of the data set), and the sections [contribution], [budget], [analysts] and [time], which say how
far a unit is protected.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from dalenius.accounting import parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import Place, PolicyInvalidError, SourceUnavailableError
from dalenius.tables.anonymity import plain, read_anonymity
from dalenius.tables.columns import exact_decimal, plain_number, read_column
from dalenius.tables.facts import read_facts
from dalenius.tables.mistakes import invalid, join_names
from dalenius.tables.policy import (
    JOINT,
    TIMES,
    BudgetSpec,
    Column,
    Contribution,
    Hop,
    JointSpec,
    Kind,
    Period,
    Policy,
    PublicSpec,
    Time,
)
from dalenius.tables.sections import (
    BLANK,
    NAME_FIX,
    SOURCE_FIX,
    PolicySection,
    blanks,
    check_identifier,
    check_printable,
    paths_of,
)

PERIODS = ("day", "week", "month", "quarter", "year")
SECTIONS = (
    "table",
    "budget",
    "analysts",
    "columns",
    "contribution",
    "time",
    "anonymity",
    "public",
    "synthetic",
    "joint",
)
_PUBLIC_FIX = 'Write regions = "regions.csv", or nation = { source = "nation.parquet", key = "n_nationkey" }.'
_KEY_FIX = 'Write key = "code", or a list of columns that are unique together.'
_MOST = 10**12
_UNIT_FIX = 'Write unit = "user_id", a list of columns that name one unit together, or { path = "…" }.'
_PATH_FIX = 'Write { path = "l_orderkey -> orders.o_orderkey -> orders.o_custkey" }.'
_PARTY = re.compile(r"[a-z][a-z0-9-]{0,31}")
_STEP = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,62})\.(.+)")


def read_file(file: Path) -> Policy:
    """The policy in a file; relative paths in it are relative to the file."""
    try:
        content = file.read_bytes()
    except OSError:
        raise SourceUnavailableError(
            f"The policy {file.name} cannot be read.",
            why="It is missing, or this user has no access to it.",
            fix=f"Correct the path, or make one with 'dalenius policy draft SOURCE -o {file.name}'.",
        ) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise invalid("", f"{file.name} is not text.", why="TOML is UTF-8.", fix="Save it as UTF-8.") from None
    return read_text(text, file.absolute().parent)


def read_text(text: str, folder: Path | None = None, *, recorded: bool = False) -> Policy:
    """The policy in a text; relative paths in it are relative to ``folder`` (the working directory by default).

    ``recorded``: it stands in a history, where an earlier dalenius kept whatever [anonymity] said.
    """
    try:
        tree = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(str(error)) from None
    except (ValueError, InvalidOperation, RecursionError):
        raise _not_toml("a number is too long, or tables lie too deep") from None
    return read_tree(tree, folder or Path.cwd(), recorded=recorded)


def read_tree(tree: Mapping[str, Any], folder: Path, *, recorded: bool = False) -> Policy:
    """The policy in parsed TOML."""
    top = PolicySection(tree, "", SECTIONS)
    empty = blanks(tree)
    if empty:
        raise invalid(
            "",
            f"{len(empty)} place{'s are' if len(empty) > 1 else ' is'} still to be filled in: {', '.join(empty)}.",
            why=f"The draft marks with {BLANK!r} what only the owner knows; nothing is read from the data.",
            fix="Replace each by what can be true of anyone, not by what is true of this data.",
        )
    table = PolicySection(
        top.need("table", "Write a section [table] with name, source and unit."),
        "table",
        ("name", "source", "unit", "neighbors", "dataset"),
    )
    name = _identifier(table, "name", None)
    unit, path = read_unit(table, name)
    anonymity = tree.get("anonymity", {})
    columns = _columns(top, folder)
    check_apart(unit, path, columns)
    budget = read_budget(top, columns)
    if budget is None and "dataset" not in table:
        raise invalid(
            "budget",
            "this is missing.",
            why="Only a table that joins a data set may leave it to another one.",
            fix="Write a section [budget] with epsilon and delta, or name the data set in table.dataset.",
        )
    return Policy(
        name=name,
        source=paths_of(table.need("source", SOURCE_FIX), table.at("source"), folder),
        unit=unit,
        path=path,
        neighbors=Neighbors(table.one_of("neighbors", tuple(each.value for each in Neighbors), "add-remove")),
        dataset=_identifier(table, "dataset", name),
        budget=budget,
        analysts=read_analysts(top, budget),
        columns=columns,
        contribution=read_contribution(top, columns),
        time=read_time(top),
        anonymity=plain(anonymity) if recorded else read_anonymity(anonymity, folder),
        public=_public(top, name, folder),
        facts=read_facts(top, columns),
        joint=read_joint(top, budget),
        key_files=_key_files(top, folder),
    )


def _identifier(section: PolicySection, key: str, default: str | None) -> str:
    name = section.string(key, default, fix=NAME_FIX)
    check_identifier(name, section.at(key))
    return name


def _columns(top: PolicySection, folder: Path) -> dict[str, Column]:
    section = PolicySection(top.values.get("columns", {}), "columns", ())
    seen: dict[str, str] = {}
    for name in section.values:
        check_printable(name, "columns", "a column")
        if name.lower() in seen:
            raise invalid(
                section.at(name),
                f"{seen[name.lower()]!r} is there too.",
                why="SQL cannot tell them apart.",
                fix="Keep one.",
            )
        seen[name.lower()] = name
    return {name: read_column(name, values, folder) for name, values in section.values.items()}


def _public(top: PolicySection, table: str, folder: Path) -> dict[str, PublicSpec]:
    """The public tables of a policy about ``table``; relative paths are relative to ``folder``."""
    if "public" not in top:
        return {}
    section = PolicySection(top.values["public"], "public", ("tables",))
    tables = PolicySection(section.need("tables", f"Write tables = {{ … }}. {_PUBLIC_FIX}"), "public.tables", ())
    seen = {table.lower(): table}
    for name in tables.values:
        check_identifier(name, tables.at(name))
        if name.lower() in seen:
            raise invalid(
                tables.at(name),
                f"there is a table {seen[name.lower()]!r}.",
                why="SQL cannot tell them apart.",
                fix="Rename it.",
            )
        seen[name.lower()] = name
    return {name: _public_table(name, value, tables.at(name), folder) for name, value in tables.values.items()}


def _public_table(name: str, value: Any, place: str, folder: Path) -> PublicSpec:
    if not isinstance(value, Mapping):
        return PublicSpec(name, paths_of(value, place, folder))
    section = PolicySection(value, place, ("source", "key"))
    source = paths_of(section.need("source", _PUBLIC_FIX), section.at("source"), folder)
    key = section.column_names("key", why="It says what tells rows apart.", fix=_KEY_FIX) if "key" in section else ()
    return PublicSpec(name, source, key)


def _key_files(top: PolicySection, folder: Path) -> dict[str, str]:
    """The code lists that were read, by column."""
    columns = top.values.get("columns", {})
    given = {name: values.get("keys") for name, values in columns.items()}
    return {name: str((folder / keys["file"]).absolute()) for name, keys in given.items() if isinstance(keys, Mapping)}


def _not_toml(words: str) -> PolicyInvalidError:
    # tomllib ends its message with "(at line 3, column 5)"
    found = re.search(r"\(at line (\d+), column (\d+)\)", words)
    return PolicyInvalidError(
        "This is not TOML.",
        why=words,
        fix="Correct the place; texts stand in quotes, sections in [brackets].",
        at=Place(int(found[1]), int(found[2])) if found else None,
    )


# --- who is protected, and how far


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


def read_joint(top: PolicySection, budget: BudgetSpec | None) -> JointSpec | None:
    """The section [joint]: partners by the names on their cards, an allotment, how many of them one person is in."""
    if "joint" not in top:
        return None
    section = PolicySection(top.values["joint"], "joint", ("partners", "epsilon", "overlap"))
    if budget is None:
        raise invalid(
            "joint", "this stands beside a [budget].", why="It is a part of it.", fix="Move it to the table with one."
        )
    if budget.accounting != "zcdp":
        raise invalid(
            "joint",
            "joint questions need zCDP.",
            why="The noise that parties make together is discrete Gaussian, which pure ε cannot price.",
            fix='Leave budget.accounting out, or write accounting = "zcdp".',
        )
    fix = 'Write partners = ["lab", "clinic"]: the names on their cards (\'dalenius joint parties\').'
    partners = section.need("partners", fix)
    names = partners if isinstance(partners, list) else []
    if not names or not all(isinstance(each, str) and _PARTY.fullmatch(each) for each in names):
        raise invalid(section.at("partners"), "this must be a list of parties.", why="Others are refused.", fix=fix)
    if len(set(names)) < len(names):
        raise invalid(section.at("partners"), "a party is there twice.", why="Once is enough.", fix="Remove one.")
    epsilon = _epsilon(section)
    if epsilon > budget.epsilon:
        raise invalid(
            section.at("epsilon"), "this is more than the whole budget.", why="It could not be spent.", fix="Lower it."
        )
    if JOINT in top.values.get("analysts", {}):
        raise invalid(
            f"analysts.{JOINT}",
            "this name is taken.",
            why="Joint questions are charged under it.",
            fix="Call the analyst otherwise.",
        )
    return JointSpec(tuple(names), epsilon, _count(section, "overlap"))


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
