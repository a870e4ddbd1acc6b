"""What mechanisms accept: exact integers and rationals. The rest is refused before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from dalenius.accounting import parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError

IntArray: TypeAlias = npt.NDArray[Any]  # int64, or object holding Python ints where int64 is too small
Integers: TypeAlias = "int | IntArray"
Vector: TypeAlias = "Sequence[Any] | IntArray"  # what stands for an array in arguments

# More candidates than this are refused: their scores would fill the memory of a small machine.
MOST_CANDIDATES = 2**22


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
    if isinstance(value, bool | np.bool_):
        _refuse(name, "bool")
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, list | tuple):
        value = _array(value, name)
    if not isinstance(value, np.ndarray):
        _refuse(name, type(value).__name__)
    if value.dtype == object:
        return _exact(value, name)
    if not np.issubdtype(value.dtype, np.integer):
        _refuse(name, str(value.dtype))
    return value.astype(object if value.dtype == np.uint64 else np.int64)


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


def clipped(values: object, low: int, high: int) -> npt.NDArray[np.int64]:
    """Values brought into [low, high] and counted from low; the data may have any number of rows."""
    exact = vector(values, "values", least=0, most=2**62)
    if not (_small(low) and _small(high)):
        exact = exact.astype(object)
    return (np.clip(exact, low, high) - low).astype(np.int64)


def whole(value: object, name: str) -> int:
    """One exact integer of any sign and size."""
    number = integers(value, name)
    if not isinstance(number, int):
        raise InputError(f"{name} must be one integer.", why="A list was given.", fix="Give one integer.")
    return number


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
    noise = np.asarray(noise).reshape(value.shape)
    if object not in (value.dtype, noise.dtype):
        total: IntArray = value + noise  # wraps around silently
        # a sum of two's complements overflowed where its sign differs from both of theirs
        if not np.any(((value ^ total) & (noise ^ total)) < 0):
            return total
    exact: IntArray = value.astype(object) + noise.astype(object)
    return exact.astype(np.int64) if all(_small(number) for number in exact.flat) else exact


def _array(items: list[Any] | tuple[Any, ...], name: str) -> IntArray:
    """Nested lists as an array; numpy alone would silently turn [1, 2.5] and [1, True] into something else."""
    try:
        return np.array(items, dtype=object)
    except ValueError:
        raise InputError(f"{name} is ragged.", why="Its rows differ in length.", fix="Give equal rows.") from None


def _exact(array: IntArray, name: str) -> IntArray:
    for item in array.flat:
        if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer):
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
