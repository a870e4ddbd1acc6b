"""What mechanisms take and what they give back.

They take exact integers and rationals; the rest is refused before anything is drawn. They give back a value with the
event that pays for it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from dalenius.accounting import parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.mechanisms.laws import Law

T = TypeVar("T")
IntArray: TypeAlias = npt.NDArray[Any]  # int64, or object holding Python ints where int64 is too small
Integers: TypeAlias = "int | IntArray"
Vector: TypeAlias = "Sequence[Any] | IntArray"  # what stands for an array in arguments

# More candidates than this are refused: their scores would fill the memory of a small machine.
MOST_CANDIDATES = 2**22


@dataclass(frozen=True, slots=True)
class Released(Generic[T]):
    """A value that may leave, with the event that pays for it."""

    value: T
    event: Event


@dataclass(frozen=True, slots=True)
class Noisy(Released[T]):
    """An exact integer, or an array of them, plus noise of a public law, the same for each coordinate."""

    noise: Law

    def noise_error(self, confidence: float = 0.95) -> int:
        """Half-width from the noise alone: a coordinate is off by more with probability ≤ 1 − confidence."""
        return self.noise.noise_error(confidence)


def rational(value: object, name: str) -> Fraction:
    """A positive parameter as the exact rational it is; 0.1 is 3602879701896397/2⁵⁵."""
    return Fraction(parameters.positive(value, name))


def probability(value: object, name: str) -> float:
    """A probability strictly between 0 and 1."""
    number = float(parameters.real(value, name))
    if not 0.0 < number < 1.0:
        raise InputError(
            f"{name} must lie strictly between 0 and 1.",
            why="It is a probability.",
            fix=f"Give a {name} such as 0.05.",
        )
    return number


def integers(value: object, name: str = "value") -> Integers:
    """An int, or an array of ints: int64 when all fit, else object. Bools, floats and NaN are refused."""
    if _is_integer(value):
        return int(value)
    if isinstance(value, list | tuple):
        value = _array(value, name)
    array = _plain(value, name)
    if array.dtype == object:
        array = _exact(array, name)
    elif array.dtype.kind not in "iu":
        _refuse(name, str(array.dtype))
    if array.ndim == 0:
        return int(array[()])
    return array.astype(object if array.dtype in (object, np.uint64) else np.int64)


def vector(value: object, name: str, *, least: int = 1, most: int = MOST_CANDIDATES) -> IntArray:
    """A one-dimensional array of between ``least`` and ``most`` integers."""
    array = integers(value, name)
    if isinstance(array, int) or array.ndim != 1:
        raise InputError(f"{name} must be a list of integers.", why="One entry per item.", fix="Give a flat list.")
    size(len(array), name, least=least, most=most)
    return array


def size(count: int, name: str, *, least: int = 1, most: int = MOST_CANDIDATES) -> int:
    """A number of items that fits in memory."""
    if count < least:
        raise InputError(f"{name} has too few items.", why=f"It needs at least {least}.", fix="Give more items.")
    if count > most:
        raise InputError(
            f"{name} has too many items.",
            why=f"More than {most} do not fit in memory.",
            fix="Use a coarser step.",
        )
    return count


def of_dimension(value: Integers, dimension: int) -> Integers:
    """The value, if it has as many entries as the mechanism was declared for."""
    if (1 if isinstance(value, int) else value.size) != dimension:
        raise InputError(
            "The value does not have the declared dimension.",
            why="The event that was charged is about vectors of that length.",
            fix="Declare the dimension of the vector when the mechanism is built.",
        )
    return value


def bounds(low: object, high: object) -> tuple[int, int]:
    """The declared bounds of a value, in order and less than 2⁶² apart: differences then fit into int64."""
    least, most = whole(low, "low"), whole(high, "high")
    if least > most:
        raise InputError("low must not be above high.", why="They bound a value.", fix="Check the bounds.")
    if most - least >= 2**62:
        raise InputError("The bounds lie too far apart.", why="They span 2⁶² steps.", fix="Use a coarser step.")
    return least, most


def clip_to_bounds(values: object, low: int, high: int) -> npt.NDArray[np.int64]:
    """Values brought into [low, high] and counted from low; the data may have any number of rows."""
    exact = vector(values, "values", least=0, most=2**62)
    low, high = bounds(low, high)
    if not (_small(low) and _small(high)):
        exact = exact.astype(object)
    return (np.clip(exact, low, high) - low).astype(np.int64)


def whole(value: object, name: str) -> int:
    """One exact integer of any sign and size."""
    number = integers(value, name)
    if not isinstance(number, int):
        raise InputError(f"{name} must be one integer.", why="A list was given.", fix="Give one integer.")
    return number


def count(value: object, name: str, *, least: int = 1) -> int:
    """A whole number, as a plain int."""
    return int(parameters.count(value, name, least=least))


def settle(mechanism: object, **fields: object) -> None:
    """Puts what the checks returned in place of what was given, while a mechanism is being built.

    So no numpy integer, which wraps around, and no relation by name is left in its fields.
    """
    for name, value in fields.items():
        object.__setattr__(mechanism, name, value)


def one_way(monotonic: object, neighbors: Neighbors) -> None:
    """Checks the claim that between neighbours all numbers move the same way."""
    if not isinstance(monotonic, bool):
        raise InputError("monotonic is True or False.", why="It is a claim about the numbers.", fix="Say which.")
    if monotonic and neighbors is not Neighbors.ADD_REMOVE:
        raise InputError(
            "Numbers are monotonic under add-remove only.",
            why="Exchanging one unit for another takes from some and gives to others.",
            fix="Leave monotonic out.",
        )


def round_up(value: Fraction, bits: int = 40) -> Fraction:
    """The least rational of at most ``bits`` significant bits that is not below a positive ``value``.

    Short rationals keep exact sampling cheap; more noise than asked for never hurts a guarantee.
    """
    if value.denominator < 1 << bits and value.numerator < 1 << bits:
        return value
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - bits
    unit = Fraction(2) ** exponent
    return math.ceil(value / unit) * unit


def add(value: Integers, noise: Any) -> Integers:
    """``value + noise``, exactly.

    The type of the result is a function of the noisy numbers alone (int64 when they all fit), so that it
    shows no more than they do.
    """
    if isinstance(value, int):
        return value + int(noise)
    value = _plain(value, "value")
    noise = _plain(noise, "noise").reshape(value.shape)
    if object not in (value.dtype, noise.dtype):
        total: IntArray = value + noise  # wraps around silently
        # a sum of two's complements overflowed where its sign differs from both of theirs
        if not np.any(((value ^ total) & (noise ^ total)) < 0):
            return total
    exact: IntArray = value.astype(object) + noise.astype(object)
    return exact.astype(np.int64) if all(_small(number) for number in exact.flat) else exact


def _array(items: list[Any] | tuple[Any, ...], name: str) -> IntArray:
    """Nested lists as an array; numpy alone would silently turn [1, 2.5] and [1, True] into something else."""
    if items and set(map(type, items)) == {int}:  # the usual case, without a look at each from Python
        with contextlib.suppress(OverflowError):
            return np.array(items, dtype=np.int64)
    try:
        return np.array(items, dtype=object)
    except ValueError:
        raise InputError(f"{name} is ragged.", why="Its rows differ in length.", fix="Give equal rows.") from None


def _is_integer(value: object) -> TypeGuard[int]:
    """Bools and timedeltas are integers to Python and to numpy, but not here."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def _plain(value: object, name: str) -> IntArray:
    """An array of the base class: a subclass may add in its own way, and a masked one skips masked cells."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        _refuse(name, type(value).__name__)
    return np.asarray(value)


def _exact(array: IntArray, name: str) -> IntArray:
    for item in array.flat:
        if not _is_integer(item):
            _refuse(name, type(item).__name__)
    if all(_small(int(item)) for item in array.flat):
        return array.astype(np.int64)
    exact = np.empty(array.size, dtype=object)
    exact[:] = [int(item) for item in array.flat]
    return exact.reshape(array.shape)


def _small(number: int) -> bool:
    return -(2**63) <= number < 2**63


def _refuse(name: str, found: str) -> NoReturn:
    raise InputError(
        f"{name} must be exact integers, not {found}.",
        why="Noise is added to integers only: floats have unequal gaps, which show through noise.",
        fix="Round to a declared step first, for instance to cents.",
    )
