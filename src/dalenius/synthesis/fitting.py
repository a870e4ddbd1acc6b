"""How well a model fits the noisy tables that it was made from: post-processing of what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius._fields import Fields
from dalenius.synthesis.describing import drawn
from dalenius.synthesis.measurer import Measured
from dalenius.synthesis.rows import UnitMeasurer
from dalenius.synthesis.views import Rows, View

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dalenius.synthesis.stored import StoredModel

MOST_DRAWN = 100_000
_MEAN_OFF = math.sqrt(2 / math.pi)  # of a normal number of deviation 1, its mean distance from nought


class Remembering(UnitMeasurer):
    """Keeps the tables that it has released, noise and all."""

    measured: Sequence[Measured] = ()

    def measure(self, asked: Sequence[tuple[View, Fraction]]) -> list[Measured]:
        """As `UnitMeasurer.measure`."""
        found = super().measure(asked)
        self.measured = [*self.measured, *found]
        return found


@dataclass(frozen=True)
class Fit:
    """A noisy table, and how far the model is from it.

    Attributes:
        columns: Their names.
        cells: How many numbers there are.
        sigma: The standard deviation of the noise in each, in rows.
        off: How far the model's number is from the noisy one, in rows, on average.
    """

    columns: tuple[str, ...]
    cells: int
    sigma: float
    off: float

    @property
    def ratio(self) -> float:
        """``off`` by what noise alone would make of it: about 1 is as good as can be; less is fitted to the noise."""
        return self.off / (_MEAN_OFF * self.sigma)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {"columns": list(self.columns), "cells": self.cells, "sigma": self.sigma, "off": self.off}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Fit:
        """As `to_json` wrote it."""
        found = Fields(data, "synthetic")
        return cls(found.texts("columns"), found.whole("cells"), found.number("sigma"), found.number("off"))


def fits(stored: StoredModel, measured: Sequence[Measured]) -> tuple[Fit, ...]:
    """All tables that a model was made from, compared with rows that are drawn from it."""
    made = np.ascontiguousarray(drawn(stored, MOST_DRAWN).T)
    coded, scale = Rows(made), max(1.0, stored.model.rows) / made.shape[1]
    found = list[Fit]()
    for each in measured:
        off = float(np.abs(scale * coded.count(each.view) - each.values).mean())
        names = tuple(stored.names[at] for at in each.view.columns)
        found.append(Fit(names, each.view.cells, round(each.sigma, 4), round(off, 4)))
    return tuple(found)
