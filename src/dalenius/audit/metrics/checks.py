"""What metrics take: finite numbers, and distributions that add up to one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dalenius.errors import InputError

Floats = npt.NDArray[np.float64]


def numbers(values: npt.ArrayLike, name: str, *, least: int = 1) -> Floats:
    """A flat array of finite numbers."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers.", why="Something else is among them.", fix="Check them.") from None
    if found.ndim != 1 or found.size < least or not np.isfinite(found).all():
        raise InputError(
            f"{name} must be a list of at least {least} finite numbers.",
            why="Nothing can be said of others.",
            fix="Leave out what is missing.",
        )
    return found


def chances(values: npt.ArrayLike, name: str) -> Floats:
    """Probabilities; counts are taken as such and divided by their sum."""
    found = numbers(values, name)
    total = found.sum()
    if (found < 0).any() or not total > 0:
        raise InputError(f"{name} must not be negative.", why="It is a distribution.", fix="Give chances or counts.")
    return np.asarray(found / total)


def same_length(one: Floats, other: Floats) -> None:
    """Refuses lists that do not belong together."""
    if len(one) != len(other):
        raise InputError("The lists differ in length.", why="They belong together.", fix="Give as many of each.")
