"""From candidates to draws: fixed batches, and a stock of values for scalar calls.

The work of a call depends on the parameter and on `size`, never on the values drawn: a batch has a fixed
number of candidates, each is worked out in full, and the first ones accepted are kept.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.mechanisms.noise import _parameters, bits

CHUNK = 2**14
"""Draws made at a time: the arrays of one chunk stay in the processor's cache, and memory stays bounded."""

STOCK = 512
"""Draws made ahead for scalar calls."""

STOCKED_SAMPLERS = 32
"""Parameters with a stock, per thread; the one not used for longest is dropped."""

SMALL = 64
"""Requests up to this size are served from the stock."""

_RARE = 41 * math.log(2)  # a batch falls short with probability at most 2⁻⁴¹


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


def _accepted(sampler: Sampler, draws: int) -> NDArray[Any]:
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
        stock = _accepted(sampler, STOCK).tolist()
        stocks[sampler] = stock
        if len(stocks) > STOCKED_SAMPLERS:
            stocks.popitem(last=False)
    stocks.move_to_end(sampler)
    return stock.pop()


def draw(sampler: Sampler, size: Any) -> NDArray[Any]:
    """An array of `size` independent values."""
    number = _parameters.count(size)
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
        part[:] = _accepted(sampler, len(part))
    return values
