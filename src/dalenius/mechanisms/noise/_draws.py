"""From a call to its draws: parameters checked once, fixed batches of candidates, and a stock for scalar calls.

The work of a call depends on the parameter and on `size`, never on the values drawn: a batch has a fixed
number of candidates, each is worked out in full, and the first ones accepted are kept.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.mechanisms.noise import bits

CHUNK = 2**14
"""Draws made at a time: the arrays of one chunk stay in the processor's cache, and memory stays bounded."""

STOCK = 512
"""Draws made ahead for scalar calls."""

STOCKED_SAMPLERS = 32
"""Parameters with a stock, per thread; the one not used for longest is dropped."""

SMALL = 64
"""Requests up to this size are served from the stock."""

LARGEST_SIZE = 2**31
"""Draws in one call at most."""

_RARE = 41 * math.log(2)  # a batch falls short with probability at most 2⁻⁴¹


def is_integer(value: Any) -> bool:
    """Bools and timedeltas are integers to Python and to numpy, but not here."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def rational(value: Any, name: str, *, zero: bool = False) -> Fraction:
    """A parameter as the exact rational that it is; it must be above zero, or at least zero if `zero`."""
    if not (is_integer(value) or isinstance(value, (float, Fraction, np.floating))):
        raise InputError(
            f"{name} must be an int, a float or a Fraction, not {type(value).__name__}.",
            why="Noise is sampled exactly for the rational number given.",
            fix=f"Give {name} as a number, for instance Fraction(7, 5).",
        )
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (float, np.floating)) and not math.isfinite(value):
        raise InputError(
            f"{name} is not finite.",
            why="Noise of such a scale does not exist.",
            fix=f"Give {name} as a finite number.",
        )
    exact = Fraction(*value.as_integer_ratio())
    if exact < 0 or (exact == 0 and not zero):
        raise InputError(
            f"{name} must be {'at least' if zero else 'above'} 0.",
            why="It is a scale or a rate of noise.",
            fix=f"Check how {name} was computed.",
        )
    return exact


def lookup_key(value: Any, name: str, *, zero: bool = False) -> Any:
    """What a sampler is remembered by: its parameter as given, or as a rational where its type is another one."""
    return value if type(value) in {int, float, Fraction} else rational(value, name, zero=zero)


def whole(value: Any, name: str, *, least: int) -> int:
    """An integer parameter, at least `least`."""
    if not is_integer(value):
        raise InputError(
            f"{name} must be an int, not {type(value).__name__}.",
            why="It counts something.",
            fix=f"Give {name} as an integer.",
        )
    if value < least:
        raise InputError(
            f"{name} must be at least {least}.",
            why="It counts something.",
            fix=f"Check how {name} was computed.",
        )
    return int(value)


def count(size: Any, width: int = 8) -> int:
    """The number of draws asked for, if that many values of `width` bytes can be held."""
    number = whole(size, "size", least=0)
    too_many = number > LARGEST_SIZE
    if not too_many and number > 2**24 and "SC_PHYS_PAGES" in os.sysconf_names:
        too_many = number * width > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if too_many:
        raise InputError(
            "size is more than fits into memory.",
            why=f"One call returns at most {LARGEST_SIZE} draws, and no more than memory holds.",
            fix="Draw in several calls.",
        )
    return number


class Sampler(ABC):
    """One law with its parameters worked out.

    Attributes:
        dtype: int64, or object for Python integers of any size.
        acceptance: A lower bound for the probability that a candidate is accepted. Only speed depends on it.
    """

    dtype: type = np.int64
    acceptance: float = 1.0

    @abstractmethod
    def batch(self, candidates: int) -> NDArray[Any]:
        """The accepted among so many independent candidates, in order."""


def candidates_for(draws: int, acceptance: float) -> int:
    """How many candidates give at least `draws` accepted ones, but for a chance of 2⁻⁴¹.

    Hoeffding: P(Binomial(N, p) ≤ Np − t) ≤ exp(−2t²/N); here N is the least with Np − √(N·41·ln 2/2) ≥ draws.
    """
    if acceptance >= 1:
        return draws
    slack = math.sqrt(_RARE / 2)
    root = (slack + math.sqrt(slack * slack + 4 * acceptance * draws)) / (2 * acceptance)
    return math.ceil(root * root)


def _accept(sampler: Sampler, draws: int) -> NDArray[Any]:
    candidates = candidates_for(draws, sampler.acceptance)
    values = sampler.batch(candidates)
    while len(values) < draws:
        values = np.concatenate([values, sampler.batch(candidates)])
    return values[:draws]


def draw_one(sampler: Sampler) -> Any:
    """One value, from the stock that this thread keeps for the sampler."""
    stocks = bits.current().stock
    stock = stocks.get(sampler)
    if not stock:
        stock = _accept(sampler, STOCK).tolist()
        stocks[sampler] = stock
        if len(stocks) > STOCKED_SAMPLERS:
            stocks.popitem(last=False)
    stocks.move_to_end(sampler)
    return stock.pop()


def draw(sampler: Sampler, size: Any) -> NDArray[Any]:
    """An array of `size` independent values."""
    number = count(size)
    try:
        values: NDArray[Any] = np.empty(number, sampler.dtype)
    except MemoryError as error:
        raise InputError(
            "size is more than fits into memory.",
            why="The array of results could not be made.",
            fix="Draw in several calls.",
        ) from error
    if number <= SMALL:
        for i in range(number):
            values[i] = draw_one(sampler)
        return values
    for start in range(0, number, CHUNK):
        part = values[start : start + CHUNK]
        part[:] = _accept(sampler, len(part))
    return values
