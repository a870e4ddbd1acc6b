"""From a column of a policy to columns of numbers, by its declaration alone.

A number, a day or a second between bounds becomes one column from −1 to 1. A truth value is −1 or 1. A column with keys
gets a column for each, which is 1 for that key, else 0. Where values may be absent, one more column says so, and the
others are 0. A value that is not among declared keys counts as absent. Nothing here looks at what values there are: a
row's numbers are its own.

Numbers come out as whole steps of 2⁻¹⁴: what is made of them further on is exact (`gradients`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.tables import policy as tables

Flags: TypeAlias = "NDArray[np.bool_]"
Values: TypeAlias = "Mapping[str, tuple[NDArray[Any], Flags]]"  # of each column its values, and which are absent

STEP_BITS = 14
WHOLE = 1 << STEP_BITS  # what 1.0 is in whole steps
MOST_KEYS = 1000  # of one column
_EPOCH = datetime.fromisoformat("1970-01-01")


@dataclass(frozen=True)
class Feature:
    """One column of a policy, as numbers.

    Attributes:
        name: As in the policy.
        kind: What its values are.
        absent: Values may be absent.
        keys: Each has a column of its own; None: it is a number, a time or a truth value.
        low: What becomes −1; of times in days, or seconds, since 1970.
        high: What becomes 1.
    """

    name: str
    kind: Kind
    absent: bool
    keys: tuple[Any, ...] | None = None
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, column: tables.Column) -> Feature:
        """Of a column that `lacks` nothing."""
        absent = column.default is None
        if column.keys is not None:
            return cls(column.name, column.kind, absent, tuple(column.keys))
        if column.bounds is None:
            return cls(column.name, column.kind, absent)
        return cls(column.name, column.kind, absent, None, _number(column.bounds.low), _number(column.bounds.high))

    @property
    def parts(self) -> tuple[str, ...]:
        """What each of its columns is called."""
        own = (self.name,) if self.keys is None else tuple(f"{self.name} = {_plain(each)}" for each in self.keys)
        return (*own, f"{self.name} is absent") if self.absent else own

    @property
    def width(self) -> int:
        """How many columns it has."""
        return (1 if self.keys is None else len(self.keys)) + self.absent

    @property
    def scale(self) -> float:
        """From one bound to the other."""
        return self.high - self.low if self.high > self.low else 1.0

    @property
    def square(self) -> float:
        """The sum of squares that its columns have: of a number, as if all values were as likely."""
        return 1 / 3 if self.keys is None and self.kind is not Kind.BOOLEAN else 1.0

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {_key(key): at for at, key in enumerate(self.keys or ())}

    def places(self, values: NDArray[Any], absent: Flags) -> NDArray[np.int64]:
        """Which of its keys each value is; −1 where it is none of them, or absent."""
        if self.kind is Kind.DATE:
            values = values.astype("datetime64[D]").astype(np.int64)
        found = np.fromiter((self._places.get(each, -1) for each in values.tolist()), np.int64, len(values))
        found[absent] = -1
        return found

    def encode(self, values: NDArray[Any], absent: Flags, into: NDArray[np.float32]) -> None:
        """Writes its columns, rows × `width`, in whole steps."""
        into[:] = 0
        if self.keys is not None:
            at = self.places(values, absent)
            known = at >= 0
            into[np.flatnonzero(known), at[known]] = WHOLE
            if self.absent:
                into[~known, -1] = WHOLE
            return
        share, here = self.shares(values, absent)
        into[here, 0] = np.rint((2 * share[here] - 1) * WHOLE)
        if self.absent:
            into[~here, 1] = WHOLE

    def shares(self, values: NDArray[Any], absent: Flags) -> tuple[NDArray[np.float64], Flags]:
        """Where each value lies between the bounds, from 0 to 1, and which values there are."""
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is no number
            share = (as_numbers(self.kind, values) - self.low) / self.scale
        here = ~absent & np.isfinite(share)
        return np.clip(np.where(here, share, 0.0), 0.0, 1.0), here

    # --- stored

    def to_json(self) -> dict[str, Any]:
        """As it is stored with a model."""
        found: dict[str, Any] = {"name": self.name, "type": self.kind.value, "absent": self.absent}
        if self.keys is not None:
            return found | {"keys": [_plain(each) for each in self.keys]}
        return found if self.kind is Kind.BOOLEAN else found | {"bounds": [self.low, self.high]}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Feature:
        """As `to_json` wrote it."""
        kind = Kind(data["type"])
        keys = tuple(_back(kind, each) for each in data["keys"]) if "keys" in data else None
        low, high = data.get("bounds", (0.0, 1.0))
        return cls(data["name"], kind, data["absent"], keys, float(low), float(high))


def lacks(column: tables.Column) -> str:
    """What must be declared before a column can be learned from; "" where nothing must."""
    if column.keys is not None:
        return f"declare at most {MOST_KEYS:,} keys" if len(column.keys) > MOST_KEYS else ""
    if column.bounds is not None or column.kind is Kind.BOOLEAN:
        return ""
    return "declare its keys" if column.kind in {Kind.TEXT, Kind.CATEGORY} else "declare its bounds"


def as_numbers(kind: Kind, values: NDArray[Any]) -> NDArray[np.float64]:
    """Values as doubles: days or seconds since 1970 where they are times."""
    if kind is Kind.DATE:
        values = values.astype("datetime64[D]").astype(np.int64)
    elif kind is Kind.DATETIME:
        values = values.astype("datetime64[s]").astype(np.int64)
    return np.asarray(values, np.float64)


def _number(bound: Any) -> float:
    """A bound as `as_numbers` has values."""
    if isinstance(bound, datetime):
        return (bound - _EPOCH).total_seconds()
    if isinstance(bound, date):
        return float(bound.toordinal() - _EPOCH.toordinal())
    return float(bound)


def _key(key: Any) -> Any:
    """A key as it is read: numbers as doubles, dates as days."""
    if isinstance(key, date):
        return key.toordinal() - _EPOCH.toordinal()
    return key if isinstance(key, bool | str) else float(key)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _back(kind: Kind, value: Any) -> Any:
    return date.fromisoformat(value) if kind is Kind.DATE else value
