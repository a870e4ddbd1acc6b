"""One column of a synthetic table: how its values become codes, and codes its values.

Its values are keys or classes of positions (`grid`). Those that the policy does not settle are *sought*: a private
search before the generator begins finds them (`seeking`). Until then a row's value stands as its position.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.allowed import ABSENT, Places, drawn_places
from dalenius.synthesis.domain import Codes, Column
from dalenius.synthesis.grid import Grid, day_of
from dalenius.synthesis.position_classes import Classes
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.tables import policy as tables

FEW = 128  # positions up to which each is a class
MOST_CLASSES = 100  # that are found
MOST_KEYS = 1000  # that are found
REST = "other"
_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?")


@dataclass(frozen=True)
class Modelled:
    """One column of a policy, as codes.

    Attributes:
        name: As in the policy.
        kind: What its values are.
        absent: Values may be absent.
        keys: Its keys; None: it has classes, or keys that are sought.
        ordered: Neighbouring keys are alike.
        rest: There are values that are not among the keys.
        grid: Its positions, where it has bounds and no keys.
        classes: Of its positions; None: they are sought.
    """

    name: str
    kind: Kind
    absent: bool
    keys: tuple[Any, ...] | None = None
    ordered: bool = False
    rest: bool = False
    grid: Grid | None = None
    classes: Classes | None = None

    @classmethod
    def of(cls, column: tables.Column) -> Modelled:
        """A column of a policy: its declared keys; its positions where they are few; else it is sought."""
        absent, keys = column.default is None, column.public_keys
        if keys is not None:
            ordered = column.kind in {Kind.INTEGER, Kind.DATE} and list(keys) == sorted(keys)
            return cls(column.name, column.kind, absent, tuple(keys), ordered)
        grid = Grid.of(column)
        few = Classes.equal(grid.size, FEW) if grid is not None and grid.size <= FEW else None
        return cls(column.name, column.kind, absent, ordered=grid is not None, grid=grid, classes=few)

    @property
    def sought(self) -> bool:
        """Whether its keys or classes are yet to be found."""
        return self.keys is None and self.classes is None

    @property
    def column(self) -> Column:
        """For generators. One that is sought has as many values as may be found."""
        if self.sought:
            most, rest = (MOST_KEYS, True) if self.grid is None else (MOST_CLASSES, False)
            return Column(self.name, classes=most, rest=rest, absent=self.absent, ordered=self.ordered)
        classes = 0 if self.classes is None else len(self.classes)
        return Column(self.name, self.keys or (), classes, self.rest, self.absent, self.ordered)

    def with_keys(self, keys: tuple[Any, ...]) -> Modelled:
        """With keys that were found. Where none was, there is the rest alone."""
        return replace(self, keys=keys or (REST,), rest=bool(keys))

    def with_classes(self, classes: Classes) -> Modelled:
        """With classes that were found."""
        return replace(self, classes=classes)

    # --- rows to codes

    def codes(self, values: NDArray[Any], absent: NDArray[np.bool_]) -> Codes:
        """The codes of cleaned values; positions, and −1 for absent ones, while its classes are sought."""
        if self.grid is not None:
            return self.of_positions(np.where(absent, -1, self.grid.positions(values)))
        if self.kind is Kind.DATE:
            values = values.astype("datetime64[D]").astype(np.int64)
        places = {_key(key): at for at, key in enumerate(self.keys or ())}
        # A value that is among no keys goes with the rest; without one no cleaned value is, and it counts as absent.
        other = len(places) if self.rest else 0 if self.keys == (REST,) else self.column.size - 1
        distinct, at = _distinct(values)
        found: Codes = np.fromiter((places.get(each, other) for each in distinct), np.int32, len(distinct))[at]
        found[absent] = self.column.size - 1
        return found

    def of_positions(self, positions: Codes) -> Codes:
        """The codes of positions, of which −1 is an absent value."""
        if self.classes is None:
            return positions
        found = self.classes.codes(positions.astype(np.int64))
        found[positions < 0] = self.column.size - 1
        return found

    # --- codes to values

    def values(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """Values of these codes, as the policy's type has them: within the bounds, and on its step."""
        if self.sought:
            raise RuntimeError("A column whose values are sought has none yet.")
        return self.at(drawn_places(self, codes, None, rng), rng)

    def at(self, places: Places, rng: np.random.Generator) -> pa.Array:
        """Values at these places (`allowed`)."""
        import pyarrow as pa

        absent = places == ABSENT
        if self.grid is None:
            return pa.array(self.shown_keys, self.arrow).take(pa.array(places, pa.int64(), mask=absent))
        return pa.array(self.grid.values(np.where(absent, 0, places), rng), self.arrow, mask=absent)

    @property
    def shown_keys(self) -> list[Any]:
        """The keys as they are drawn, the rest's name after them."""
        return [*(self.keys or ()), *([self.rest_name] if self.rest else [])]

    @property
    def absent_code(self) -> int:
        """The code of absent values; −1: there is none."""
        return self.column.size - 1 if self.absent else -1

    @property
    def rest_name(self) -> str:
        """What the rest of the keys is called: none of them."""
        found = REST
        while found in (self.keys or ()):
            found = f"({found})"
        return found

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

    # --- stored

    def to_json(self) -> dict[str, Any]:
        """As it is stored with a model."""
        found: dict[str, Any] = {"name": self.name, "type": self.kind.value, "absent": self.absent}
        if self.grid is None:
            keys = None if self.keys is None else [_plain(each) for each in self.keys]
            return found | {"keys": keys, "ordered": self.ordered, "rest": self.rest}
        found |= {"bounds": [_plain(self.grid.low), _plain(self.grid.high)]}
        found |= {"classes": None if self.classes is None else self.classes.to_json()}
        return found | ({"step": str(self.grid.step)} if self.grid.step is not None else {})

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Modelled:
        """As `to_json` wrote it."""
        kind = Kind(data["type"])
        if "keys" in data:
            keys = None if data["keys"] is None else tuple(_back(kind, each) for each in data["keys"])
            return cls(data["name"], kind, data["absent"], keys, data["ordered"], data["rest"])
        low, high = (_back(kind, each) for each in data["bounds"])
        grid = Grid(kind, low, high, _fraction(data["step"]) if "step" in data else None)
        classes = None if data["classes"] is None else Classes.of_json(data["classes"])
        return cls(data["name"], kind, data["absent"], ordered=True, grid=grid, classes=classes)


def _distinct(values: NDArray[Any]) -> tuple[list[Any], NDArray[np.integer[Any]]]:
    """The different values, and which of them each is: that is found faster than what each one means."""
    if values.dtype != object:
        found, at = np.unique(values, return_inverse=True)
        return found.tolist(), at
    import pyarrow as pa

    encoded = pa.array(values, pa.string()).dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def _key(key: Any) -> Any:
    """A key as it is read: numbers as doubles, dates as days."""
    if isinstance(key, date):
        return day_of(key)
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
            return _fraction(value)
    return value


def _fraction(value: Any) -> Fraction:
    """A fraction as `_plain` writes it. Python would also read 1e999999999, and work it out."""
    if type(value) is not int and not _FRACTION.fullmatch(value):
        raise ValueError
    return Fraction(value)
