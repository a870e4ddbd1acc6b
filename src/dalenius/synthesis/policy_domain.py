"""The domain of a synthetic table from its policy: which columns can be modelled, and what the others lack.

Declared keys are a code each, and so are numbers, days and seconds between bounds where these are few. Other classes,
and the keys of a `category` that declares none, are found before the generator begins (`seeking`). A column without
`default` has one more code, for absent values (a value that is not among declared keys counts as absent). Nothing here
looks at a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError, NotAllowedError, UnknownColumnError
from dalenius.measuring.batches import naming_columns
from dalenius.measuring.expressions import Column as Read
from dalenius.measuring.functions import TYPES
from dalenius.synthesis.domain import Domain
from dalenius.synthesis.modelled import Modelled
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.plan import Table
    from dalenius.tables import policy as tables

MOST_CODES = 20_000  # of one column
MOST_PAIR = 12_000_000  # cells of the table of two columns


@dataclass(frozen=True)
class PolicyDomain:
    """The columns of a synthetic table."""

    columns: tuple[Modelled, ...]

    @property
    def domain(self) -> Domain:
        """For generators."""
        return Domain(tuple(each.column for each in self.columns))

    def place(self, name: str) -> int:
        """Where a column stands."""
        return [each.name for each in self.columns].index(name)

    @property
    def expressions(self) -> tuple[Read, ...]:
        """What is read of each row."""
        return tuple(Read(each.name, TYPES[each.kind]) for each in self.columns)

    def to_json(self) -> list[dict[str, Any]]:
        """As it is stored with a model."""
        return [each.to_json() for each in self.columns]

    @classmethod
    def of_json(cls, data: Sequence[Mapping[str, Any]]) -> PolicyDomain:
        """As `to_json` wrote it."""
        return cls(tuple(map(Modelled.of_json, data)))


def domain_of(table: Table, chosen: Sequence[str] = ()) -> tuple[PolicyDomain, dict[str, str]]:
    """The domain of a table, and the columns that cannot be modelled, each with what to declare.

    Args:
        table: Whose policy says what values there are.
        chosen: The columns to model, in this order; none: all that can be.

    Raises:
        InputError: A column was chosen that cannot be modelled; or no column can.
    """
    columns, hidden = table.policy.columns, naming_columns(table)
    _check_chosen(chosen, columns, hidden)
    found, left = list[Modelled](), dict[str, str]()
    for name in chosen or [each for each in columns if each not in hidden]:
        why = undeclared(columns[name])
        if why:
            left[name] = why
        else:
            found.append(Modelled.of(columns[name]))
    if chosen and left:
        name, why = next(iter(left.items()))
        raise InputError(
            f"Column {name!r} cannot be modelled.",
            why="What values a synthetic column may have comes from its declaration, never from the data.",
            fix=f"Leave it out, or have the owner {why}.",
        )
    if not found:
        raise InputError(
            f"Table {table.policy.name!r} has no column that can be modelled.",
            why="What values a synthetic column may have comes from its declaration, never from the data.",
            fix="Have the owner declare keys or bounds of its columns.",
        )
    _check_pairs(found)
    return PolicyDomain(tuple(found)), left


def undeclared(column: tables.Column) -> str:
    """What must be declared before a column can be modelled; "" where nothing must."""
    keys = column.public_keys
    if keys is None and column.bounds is None and column.kind is not Kind.CATEGORY:
        return "declare its keys" if column.kind is Kind.TEXT else "declare its bounds"
    if keys is not None and len(keys) > MOST_CODES:
        return f"declare at most {MOST_CODES:,} keys"
    return ""


def _check_chosen(chosen: Sequence[str], columns: Mapping[str, Any], hidden: frozenset[str]) -> None:
    for name in chosen:
        if name in hidden:
            raise NotAllowedError(
                f"Column {name!r} says who somebody is.", why="Nobody is in a synthetic table.", fix="Leave it out."
            )
        if name not in columns:
            meant = nearest(name, list(columns))
            raise UnknownColumnError(
                f"There is no column {name!r}.",
                why="Only columns that the policy declares can be modelled.",
                fix=f"Did you mean {meant!r}?" if meant else f"Take some of {', '.join(columns)}.",
            )
    if len(set(chosen)) < len(chosen):
        raise InputError("A column is chosen twice.", why="It is modelled once.", fix="Name each column once.")


def _check_pairs(found: Sequence[Modelled]) -> None:
    widest = sorted(found, key=lambda each: -each.column.size)[:2]
    if len(widest) == 2 and widest[0].column.size * widest[1].column.size > MOST_PAIR:
        first, second = (each.name for each in widest)
        raise InputError(
            f"Columns {first!r} and {second!r} have too many values to be modelled together.",
            why=f"The table of both may have {MOST_PAIR:,} cells.",
            fix="Leave one of them out (--columns), or have the owner declare fewer keys.",
        )
