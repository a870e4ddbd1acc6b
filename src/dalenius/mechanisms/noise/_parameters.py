"""Parameters are checked here, once, before anything is drawn."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.errors import InputError

LARGEST_SIZE = 2**31


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
