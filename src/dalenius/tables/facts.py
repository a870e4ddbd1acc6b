"""The section [synthetic] of a policy: what everybody may know of all rows. What contradicts itself is refused."""

from __future__ import annotations

from collections.abc import Mapping

from dalenius.errors import DaleniusError
from dalenius.tables.condition_reading import read_condition
from dalenius.tables.conditions import Columns, Condition, Every, compared
from dalenius.tables.mistakes import invalid, nearest
from dalenius.tables.policy import Column, Facts, label_of
from dalenius.tables.sections import PolicySection, type_name

_PLACE = "synthetic"
_RULES_FIX = 'Write rules = ["discharged >= admitted"].'
_FOLLOWS_FIX = 'Write follows = { country = "city" }: of each city there is one country.'
_VALUES_FIX = 'Write country = { column = "city", values = { Bern = "CH", Wien = "AT" } }.'
_TOTALS_FIX = "Write totals = { region = { north = 1200, south = 800 } }, in numbers of rows."
_MOST, _MOST_RULES = 10**12, 100


def read_facts(top: PolicySection, columns: Mapping[str, Column]) -> Facts:
    """What is known of all rows of a table with these columns."""
    if _PLACE not in top:
        return Facts()
    section = PolicySection(top.values[_PLACE], _PLACE, ("rules", "follows", "totals"))
    rules = _rules(section, columns)
    follows, values = _follows(section, columns)
    totals = _totals(section, columns)
    _check_sums(totals, columns)
    return Facts(rules, follows, values, totals)


# --- rules


def _rules(section: PolicySection, columns: Mapping[str, Column]) -> tuple[str, ...]:
    given = section.values.get("rules", [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given) or len(given) > _MOST_RULES:
        raise invalid(
            section.at("rules"), f"this must be a list of at most {_MOST_RULES} texts.", why=_why(), fix=_RULES_FIX
        )
    types = {name: each.kind for name, each in columns.items()}
    every = []
    for rule in given:
        try:
            every.append(read_condition(rule, types))
        except DaleniusError as error:
            raise invalid(section.at("rules"), f"{rule!r}: {error.message}", why=error.why, fix=error.fix) from None
    _check_columns(section.at("rules"), every)
    return tuple(given)


def _check_columns(place: str, rules: list[Condition]) -> None:
    """Two columns cannot compare in ways that exclude each other; those against constants, the domain shows."""
    always = list[Columns]()
    for rule in rules:
        always += [each for each in (rule.parts if isinstance(rule, Every) else (rule,)) if isinstance(each, Columns)]
    for at, one in enumerate(always):
        for other in always[:at]:
            if {one.first, one.second} == {other.first, other.second} and not any(
                _compare(one, values) and _compare(other, values)
                for values in ({one.first: a, one.second: b} for a, b in ((0, 1), (1, 0), (0, 0)))
            ):
                raise invalid(
                    place,
                    f"rules about {one.first!r} and {one.second!r} exclude each other.",
                    why="No row in which both are there can keep to all of them.",
                    fix="Correct one of them.",
                )


def _compare(atom: Columns, values: Mapping[str, int]) -> bool:
    return bool(compared(values[atom.first], atom.op, values[atom.second]))


# --- columns that follow from others


def _follows(section: PolicySection, columns: Mapping[str, Column]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Of each such column the one that it follows from, and which values go with which."""
    given, place = section.values.get("follows", {}), section.at("follows")
    if not isinstance(given, Mapping):
        raise invalid(place, "this must name a column for a column.", why=_why(), fix=_FOLLOWS_FIX)
    follows, values = dict[str, str](), dict[str, dict[str, str]]()
    for name, each in given.items():
        of = each
        if isinstance(each, Mapping):
            inner = PolicySection(each, f"{place}.{name}", ("column", "values"))
            values[name] = inner.need("values", _VALUES_FIX)
            of = inner.string("column", fix=_VALUES_FIX)
        if not isinstance(of, str):
            raise invalid(place, "this must name a column for a column.", why=_why(), fix=_FOLLOWS_FIX)
        follows[name] = of
    for name, of in follows.items():
        of_keys, keys = (_labels(_check_keyed(place, each, columns)) for each in (of, name))
        if of in follows or name == of:
            raise invalid(
                f"{place}.{name}",
                f"{of!r} follows from another column itself.",
                why="What a column follows from must stand by itself.",
                fix=f"Let {name!r} follow from the first of them.",
            )
        if name in values:
            _check_values(f"{place}.{name}.values", values[name], of_keys, keys)
    return follows, values


def _labels(column: Column) -> list[str] | None:
    """The labels of its declared keys."""
    return None if column.public_keys is None else [label_of(key) for key in column.public_keys]


def _check_values(place: str, values: object, of_keys: list[str] | None, keys: list[str] | None) -> None:
    if not isinstance(values, Mapping) or not all(isinstance(each, str) for each in values.values()):
        raise invalid(place, "this must name a value for a value.", why=_why(), fix=_VALUES_FIX)
    if of_keys is None or keys is None:
        raise invalid(
            place, "the keys are not declared.", why="Values are known of columns with keys.", fix=_VALUES_FIX
        )
    for label, goes in values.items():
        for each, known in ((label, of_keys), (goes, keys)):
            if each not in known:
                meant = nearest(each, known)
                raise invalid(
                    place,
                    f"{each!r} is none of the keys.",
                    why="No row can have it.",
                    fix=f"Did you mean {meant!r}?" if meant else f"Take some of {', '.join(known[:20])}.",
                )


def _check_keyed(place: str, name: str, columns: Mapping[str, Column]) -> Column:
    if name not in columns:
        meant = nearest(name, columns)
        raise invalid(
            place,
            f"there is no column {name!r}.",
            why="Only columns of this policy can be meant.",
            fix=f"Did you mean {meant!r}?" if meant else f"Take some of {', '.join(columns)}.",
        )
    if columns[name].bounds is not None and columns[name].public_keys is None:
        raise invalid(
            place,
            f"column {name!r} has bounds and no keys.",
            why="What is known here is known of single values.",
            fix="Take columns with keys, or truth values.",
        )
    return columns[name]


# --- totals


def _totals(section: PolicySection, columns: Mapping[str, Column]) -> dict[str, dict[str, int]]:
    given = section.values.get("totals", {})
    place = section.at("totals")
    if not isinstance(given, Mapping):
        raise invalid(place, f"this must be a table, not {type_name(given)}.", why=_why(), fix=_TOTALS_FIX)
    found = dict[str, dict[str, int]]()
    for name, numbers in given.items():
        column = _check_keyed(place, name, columns)
        if column.public_keys is None:
            raise invalid(
                f"{place}.{name}",
                "its keys are not declared.",
                why="Totals are known of values that are known.",
                fix=f"Declare keys under [columns.{name}].",
            )
        labels = [label_of(key) for key in column.public_keys]
        if not isinstance(numbers, Mapping) or not numbers:
            raise invalid(f"{place}.{name}", "this must be a number for each value.", why=_why(), fix=_TOTALS_FIX)
        for label, number in numbers.items():
            if label not in labels:
                meant = nearest(label, labels)
                raise invalid(
                    f"{place}.{name}",
                    f"{label!r} is none of its keys.",
                    why="No row can have it.",
                    fix=f"Did you mean {meant!r}?" if meant else f"Take some of {', '.join(labels[:20])}.",
                )
            if type(number) is not int or not 0 <= number <= _MOST:
                raise invalid(
                    f"{place}.{name}.{label}", "this is no number of rows.", why="It counts rows.", fix=_TOTALS_FIX
                )
        if not any(numbers.values()):
            raise invalid(f"{place}.{name}", "nobody is left.", why="All numbers are 0.", fix=_TOTALS_FIX)
        found[name] = dict(numbers)
    return found


def _check_sums(totals: Mapping[str, Mapping[str, int]], columns: Mapping[str, Column]) -> None:
    """All values of two columns, none absent, make all rows twice: both sums are the same."""
    sums = {name: sum(each.values()) for name, each in totals.items()}
    every = {
        name: total
        for name, total in sums.items()
        if columns[name].default is not None and len(totals[name]) == len(columns[name].public_keys or ())
    }
    for name, total in every.items():
        for other, its in sums.items():
            if its > total or (other in every and its != total):
                raise invalid(
                    f"{_PLACE}.totals",
                    f"{name!r} has {total:,} rows in all, and {other!r} has {its:,}.",
                    why="Every row has one value of each of these columns.",
                    fix="Correct one of them, or leave values out whose numbers are not known.",
                )


def _why() -> str:
    return "It says what everybody may know of all rows, whatever the data holds."
