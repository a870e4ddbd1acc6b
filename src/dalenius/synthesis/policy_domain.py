"""The domain of a synthetic table from its policy alone, and how values become codes and codes values.

Declared keys are a code each, numbers and times equal classes between their bounds: as many as there are whole numbers
(days) where these are few, else `CLASSES`. A column without `default` has one more code, for absent values (a value
that is not among the keys counts as absent). Nothing here looks at a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError, NotAllowedError, UnknownColumnError
from dalenius.measuring.batches import naming_columns
from dalenius.measuring.expressions import Column as Read
from dalenius.measuring.functions import TYPES
from dalenius.synthesis.classes import class_of
from dalenius.synthesis.domain import Codes, Column, Domain
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.measuring.plan import Table
    from dalenius.tables import policy as tables

CLASSES = 32
FEW = 128  # whole numbers, or days, up to which each is a class
MOST_CODES = 20_000  # of one column
MOST_PAIR = 4_000_000  # cells of the table of two columns
_EPOCH = datetime.fromisoformat("1970-01-01")
_FIRST_DAY = _EPOCH.toordinal()
_LARGEST = float(2**63 - 1024)  # a double that is a 64-bit integer


@dataclass(frozen=True)
class Modelled:
    """One column of a policy, as codes.

    Attributes:
        column: For generators. Dates are days, datetimes seconds since 1970.
        kind: What its values are.
        low: The lower bound of a column of classes, as its policy has it.
        high: The upper one.
        step: What numbers are rounded to.
    """

    column: Column
    kind: Kind
    low: Any = None
    high: Any = None
    step: Fraction | None = None

    @property
    def name(self) -> str:
        """As in the policy."""
        return self.column.name

    def codes(self, values: NDArray[Any], absent: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The codes of cleaned values; one that has no code, which no cleaned value is, counts as absent."""
        missing = self.column.size - 1
        if self.column.keys:
            places = {_key(key): at for at, key in enumerate(self.column.keys)}
            if self.kind is Kind.DATE:
                values = values.astype("datetime64[D]").astype(np.int64)
            found = np.fromiter((places.get(each, missing) for each in values.tolist()), np.int32, len(values))
        else:
            edges = np.linspace(self.column.lower, self.column.upper, self.column.classes + 1)
            found = class_of(_numbers(self.kind, values), edges)
        found[absent] = missing
        return found

    def values(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """Values of these codes, as the policy's type has them: within the bounds, and on its step."""
        import pyarrow as pa

        absent = codes >= self.column.known
        if self.column.keys:
            keys = pa.array(self.column.keys, self.arrow)
            return keys.take(pa.array(codes, pa.int32(), mask=absent))
        drawn = self._within(self.column.numbers(np.where(absent, 0, codes), rng))
        return pa.array(drawn, self.arrow, mask=absent)

    @property
    def arrow(self) -> pa.DataType:
        """What values are in a file."""
        import pyarrow as pa

        types = {
            Kind.INTEGER: pa.int64(),
            Kind.NUMBER: pa.float64(),
            Kind.BOOLEAN: pa.bool_(),
            Kind.DATE: pa.date32(),
            Kind.DATETIME: pa.timestamp("us"),
        }
        return types.get(self.kind, pa.string())

    def _within(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        found: NDArray[Any]
        match self.kind:
            case Kind.INTEGER:
                found = np.clip(np.minimum(numbers, _LARGEST).astype(np.int64), self.low, self.high)
            case Kind.DATE:
                days = numbers.astype(np.int64).astype("datetime64[D]")
                found = np.clip(days, np.datetime64(self.low, "D"), np.datetime64(self.high, "D"))
            case Kind.DATETIME:
                moments = numbers.astype(np.int64).astype("datetime64[s]").astype("datetime64[us]")
                found = np.clip(moments, np.datetime64(self.low, "us"), np.datetime64(self.high, "us"))
            case _:
                step = float(self.step or 0)
                on_step = np.round(np.round(numbers / step) * step, 12) if step else numbers
                found = np.clip(on_step, float(self.low), float(self.high))
        return found

    def to_json(self) -> dict[str, Any]:
        """As it is stored with a model."""
        column = self.column
        found: dict[str, Any] = {"name": column.name, "type": self.kind.value, "absent": column.absent}
        if column.keys:
            return found | {"keys": [_plain(each) for each in column.keys], "ordered": column.ordered}
        found |= {"bounds": [_plain(self.low), _plain(self.high)], "classes": column.classes}
        return found | ({"step": str(self.step)} if self.step is not None else {})

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Modelled:
        """As `to_json` wrote it."""
        kind = Kind(data["type"])
        if "keys" in data:
            keys = tuple(_back(kind, each) for each in data["keys"])
            return cls(Column(data["name"], keys, absent=data["absent"], ordered=data["ordered"]), kind)
        low, high = (_back(kind, each) for each in data["bounds"])
        step = Fraction(data["step"]) if "step" in data else None
        return _classed(data["name"], kind, low, high, data["classes"], data["absent"], step)


@dataclass(frozen=True)
class PolicyDomain:
    """The columns of a synthetic table."""

    columns: tuple[Modelled, ...]

    @property
    def domain(self) -> Domain:
        """For generators."""
        return Domain(tuple(each.column for each in self.columns))

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
            found.append(modelled(columns[name]))
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


def modelled(column: tables.Column) -> Modelled:
    """A column that can be modelled, as codes."""
    absent = column.default is None
    if column.public_keys is not None:
        ordered = column.kind in {Kind.INTEGER, Kind.DATE} and list(column.public_keys) == sorted(column.public_keys)
        return Modelled(Column(column.name, tuple(column.public_keys), absent=absent, ordered=ordered), column.kind)
    bounds = column.bounds
    if bounds is None:
        raise RuntimeError("A column without declared values was to be modelled.")
    return _classed(column.name, column.kind, bounds.low, bounds.high, None, absent, _step_of(column))


def undeclared(column: tables.Column) -> str:
    """What must be declared before a column can be modelled; "" where nothing must."""
    keys = column.public_keys
    if keys is None and column.bounds is None:
        return "declare its keys" if column.kind in {Kind.CATEGORY, Kind.TEXT} else "declare its bounds"
    if keys is not None and len(keys) > MOST_CODES:
        return f"declare at most {MOST_CODES:,} keys"
    return ""


def _classed(
    name: str, kind: Kind, low: Any, high: Any, classes: int | None, absent: bool, step: Fraction | None
) -> Modelled:
    """Equal classes between two bounds. Of whole numbers the last class ends one above the last of them."""
    whole = kind is not Kind.NUMBER
    lower, upper = (float(_number(kind, each)) for each in (low, high))
    upper += whole
    if upper <= lower:  # whole numbers so large that doubles do not tell them apart, or one value alone
        upper = float(np.nextafter(lower, np.inf))
    if classes is None:
        classes = int(upper - lower) if whole and kind is not Kind.DATETIME and upper - lower <= FEW else CLASSES
        classes = max(1, classes)
    column = Column(name, (), lower, upper, classes, whole=whole, absent=absent, ordered=True)
    return Modelled(column, kind, low, high, step)


def _step_of(column: tables.Column) -> Fraction | None:
    return column.step if column.kind is Kind.NUMBER else None


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


def _number(kind: Kind, value: Any) -> Any:
    """A bound as a number."""
    if kind is Kind.DATE:
        return value.toordinal() - _FIRST_DAY
    return (value - _EPOCH) // timedelta(seconds=1) if kind is Kind.DATETIME else value


def _numbers(kind: Kind, values: NDArray[Any]) -> NDArray[np.float64]:
    """Values as numbers, as `_number` has bounds."""
    if kind is Kind.DATE:
        values = values.astype("datetime64[D]").astype(np.int64)
    elif kind is Kind.DATETIME:
        values = values.astype("datetime64[s]").astype(np.int64)
    return values.astype(np.float64)


def _key(key: Any) -> Any:
    """A key as it is read: numbers as doubles, dates as days."""
    if isinstance(key, date):
        return key.toordinal() - _FIRST_DAY
    return key if isinstance(key, bool | str) else float(key)


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Fraction) else value


def _back(kind: Kind, value: Any) -> Any:
    match kind:
        case Kind.DATE:
            return date.fromisoformat(value)
        case Kind.DATETIME:
            return datetime.fromisoformat(value)
        case Kind.NUMBER:
            return Fraction(value)
    return value
