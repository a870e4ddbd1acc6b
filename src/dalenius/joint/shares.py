"""What one party holds of some secret numbers. Sums and public factors need no other party."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.joint.shamir import Field

    Array = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """One party's shares of an array of secrets.

    Attributes:
        field: The field they are numbers of.
        values: This party's shares. Nothing writes to them: they may still be on their way.
    """

    field: Field
    values: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array, with the planes of a field of bits first."""
        return self.values.shape

    def __add__(self, other: Shares) -> Shares:
        return Shares(self.field, self.field.add(self.values, self._same(other)))

    def __sub__(self, other: Shares) -> Shares:
        return Shares(self.field, self.field.subtract(self.values, self._same(other)))

    def __neg__(self) -> Shares:
        return Shares(self.field, self.field.negative(self.values))

    def __getitem__(self, place: Any) -> Shares:
        return Shares(self.field, self.values[place])

    def plus(self, public: Array) -> Shares:
        """With public numbers of the field added: the polynomial is lifted as a whole."""
        return Shares(self.field, self.field.add(self.values, public))

    def times(self, factor: int) -> Shares:
        """Times one public number of the field."""
        return Shares(self.field, self.field.combine((factor % self.field.order,), (self.values,)))

    def scaled(self, public: Array) -> Shares:
        """Times public numbers of the field, one by one."""
        return Shares(self.field, self.field.multiply(self.values, public))

    def total(self) -> Shares:
        """The sum over the first axis that is not of planes."""
        return Shares(self.field, self.field.total(self.values))

    def _same(self, other: Shares) -> Array:
        if other.field != self.field:
            raise TypeError(f"{other.field.name} and {self.field.name} do not mix")
        return other.values
