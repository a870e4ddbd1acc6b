"""What randomisers of numbers share: a declared grid of values, and an unbiased estimate from every report."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.accounting import parameters
from dalenius.errors import InputError
from dalenius.local.randomisers.randomiser import Randomiser, Reports, Values, bytes_for
from dalenius.local.tallies import Tally

MOST_STEPS = 2**16


@dataclass(frozen=True)
class MeanRandomiser(Randomiser):
    """A randomiser of numbers low, low + step, …, high; their places 0, …, K are what is randomised.

    A report is a *code*, a whole number below `codes`, in 1, 2 or 4 bytes, low byte first. Given the place j of the
    value, the expectation of `estimate(code)` is j exactly, and its variance is a polynomial of degree 2 in j.

    Assumes:
        low, high and step are public and chosen without looking at anybody's value. A value between two places goes to
        the nearest, ⌊(x − low)/step + ½⌋ in IEEE double, before anything else: that is no part of the guarantee.
    """

    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, float(parameters.real(getattr(self, name), name)))
        self.steps  # noqa: B018 - refuses what is no grid
        super().__post_init__()

    @cached_property
    def steps(self) -> int:
        """K: the places are 0, …, K."""
        low, high, step = (Fraction(repr(each)) for each in (self.low, self.high, self.step))  # as they are written
        far = math.isinf(self.high - self.low)
        if far or step <= 0 or high <= low or (high - low) % step or (high - low) / step > MOST_STEPS:
            raise InputError(
                "low, high and step make no grid.",
                why=f"high must be above low by a whole number of steps, at most {MOST_STEPS:,}.",
                fix="For incomes, say, low = 0, high = 6000 and step = 10.",
            )
        return int((high - low) / step)

    @property
    def grid(self) -> NDArray[np.float64]:
        """The value at each place."""
        return np.asarray(self.low + self.step * np.arange(self.steps + 1), np.float64)

    # --- what each randomiser of numbers says

    @property
    @abstractmethod
    def codes(self) -> int:
        """How many reports there are."""

    @abstractmethod
    def chance_of(self, code: int, place: int) -> Fraction:
        """P(code | place), exactly."""

    @abstractmethod
    def estimate(self, code: int) -> Fraction:
        """The unbiased estimate of the place."""

    @abstractmethod
    def sums(self, tally: Tally) -> tuple[Fraction, Fraction]:
        """The sum of the estimates of all reports, and that of their squares."""

    @abstractmethod
    def spread(self, place: int) -> Fraction:
        """The variance of the estimate from one report on this place (in steps²), as a closed form."""

    @abstractmethod
    def _codes_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """One drawn code for each place."""

    # --- what follows

    @cached_property
    def _exactly(self) -> tuple[Fraction, Fraction, Fraction]:
        """C₀, c₁, c₂ of the spread at place j: c₀ + c₁j + c₂j²; the closed form holds at any whole number."""
        first, second, third = (self.spread(place) for place in range(3))
        bend = (third - 2 * second + first) / 2
        return first, second - first - bend, bend

    @cached_property
    def _polynomial(self) -> tuple[float, float, float]:
        constant, linear, square = self._exactly
        return float(constant), float(linear), float(square)

    def variance(self, values: object) -> float:
        """The variance of the estimated mean of these people, closed form: a *fixed* population, all of whom report."""
        places = self.checked(values).astype(np.float64)
        constant, linear, square = self._polynomial
        each = constant + linear * places.mean() + square * np.square(places).mean()
        return float(each) * self.step**2 / len(places)

    def worst_variance(self, reports: int) -> float:
        """The largest that `variance` can be for so many reports."""
        constant, linear, square = self._polynomial
        tried = [0.0, float(self.steps)]
        if square < 0:
            tried.append(min(max(-linear / (2 * square), 0.0), float(self.steps)))
        return max(constant + linear * at + square * at**2 for at in tried) * self.step**2 / reports

    def least_variance(self, reports: int) -> float:
        """The least that `variance` can be for so many reports."""
        constant, linear, square = self._exactly  # near the ends of the grid floats would cancel
        tried = [Fraction(0), Fraction(self.steps)]
        if square > 0:
            tried.append(min(max(-linear / (2 * square), Fraction(0)), Fraction(self.steps)))
        return float(min(constant + linear * at + square * at**2 for at in tried)) * self.step**2 / reports

    @property
    def report_bytes(self) -> int:
        """1, 2 or 4."""
        return bytes_for(self.codes - 1)

    def law(self, value: Any, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of each code."""
        del public
        (place,) = self.checked([value]).tolist()
        return {code.to_bytes(self.report_bytes, "little"): self.chance_of(code, place) for code in range(self.codes)}

    def checked(self, values: object) -> Values:
        """The places of the values."""
        found = np.asarray(values)
        if found.ndim != 1 or found.dtype.kind not in "iuf":
            raise InputError(
                "Values must be a list of numbers.",
                why="Their mean is to be estimated.",
                fix="Turn them into numbers first.",
            )
        numbers = found.astype(np.float64)
        outside = ~((numbers >= self.low) & (numbers <= self.high))  # nan, too
        if outside.any():
            raise InputError(
                f"Value {int(np.argmax(outside)) + 1:,} is not between low and high.",
                why=f"The grid reaches from {self.low:g} to {self.high:g}.",
                fix="Correct the value, clip it, or collect with a wider grid.",
            )
        places = np.floor((numbers - self.low) / self.step + 0.5)
        return np.minimum(places, self.steps).astype(np.int64)

    def _encode(self, values: Values, reports: Reports) -> None:
        reports.view(self._packed)[:, 0] = self._codes_of(values)

    @property
    def _packed(self) -> np.dtype[np.unsignedinteger[Any]]:
        return np.dtype(f"<u{self.report_bytes}")

    def _read(self, reports: Reports) -> NDArray[np.int64]:
        return np.ascontiguousarray(reports).view(self._packed)[:, 0].astype(np.int64)

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        yield 0, self._read(reports) >= self.codes, "holds a code that there is not"
