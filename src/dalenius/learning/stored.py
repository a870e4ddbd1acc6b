"""What is stored of a model: its recipe, its weights, and what the noise may have moved; as JSON with a version.

All of it follows from noisy sums and public facts. The stored bytes are what a receipt is for (its ``release`` is their
SHA-256), and what `weights.json` beside a model's card holds: no code runs when they are read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius._fields import Fields
from dalenius.errors import InputError
from dalenius.learning.fitted import Model
from dalenius.learning.output import OutputRecipe
from dalenius.learning.recipe import Recipe
from dalenius.learning.weights import Weights

FORMAT = "model 1"
MOST_BYTES = 2**28  # whoever sends a model decides how much memory it takes here


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A model with what is needed to use it and to say what it is.

    Attributes:
        table: What it was learned from.
        epsilon: What was charged.
        delta: What was charged besides, for what may go wrong in drawing.
        rho: The most that was charged, as ρ; None: the budget is pure.
        alone: The ε of the model by itself at the budget's δ, by loss distributions: for its card, never charged.
        recipe: How it was trained.
        held_out: The share of units that it was not learned from.
        weights: What was learned.
        margins: 95% margins for the added noise in the coefficients, at most, in the units of the table; the last
            column is that of intercepts. Not a number: not known.
        counted: Units were counted in the same look, for a part of the price.
    """

    table: str
    epsilon: float
    delta: float
    rho: float | None
    alone: float | None
    recipe: Recipe | OutputRecipe
    held_out: float
    weights: Weights
    margins: NDArray[np.float64]
    counted: bool = False

    @property
    def model(self) -> Model:
        """What predicts."""
        return Model(self.recipe.task, self.weights)

    def to_json(self) -> dict[str, Any]:
        """The stored tree."""
        return {
            "format": FORMAT,
            "table": self.table,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "alone": self.alone,
            "recipe": self.recipe.to_json(),
            "held_out": self.held_out,
            "weights": self.weights.to_json(),
            "margins": [[_digits(each) for each in row] for row in self.margins.tolist()],
            "counted": self.counted,
        }

    def content(self) -> bytes:
        """The stored bytes."""
        text = json.dumps(self.to_json(), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8", "surrogatepass")

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> StoredModel:
        """As `to_json` wrote it.

        Raises:
            InputError: It is no model, or a newer one.
        """
        if data.get("format") != FORMAT:
            raise _unreadable(f"It is not of the format {FORMAT!r}; a newer dalenius may have written it.")
        found = Fields(data, "model")
        try:
            recipe = _recipe_of(found.mapping("recipe"))
            weights = Weights.of_json(found.items("weights"))
            margins = np.array(found.items("margins"), np.float64)  # null becomes not a number
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise _unreadable("Its recipe or its weights are damaged.") from None
        if weights.values.shape != recipe.shape or margins.shape != recipe.shape:
            raise _unreadable("Its weights are not those of its features.")
        if not np.isfinite(weights.values).all():
            raise _unreadable("Its weights are no numbers.")
        return cls(
            found.text("table"),
            found.number("epsilon"),
            found.number("delta"),
            found.number("rho") if found.any("rho") is not None else None,
            found.number("alone") if found.any("alone") is not None else None,
            recipe,
            found.number("held_out"),
            weights,
            margins,
            found.flag("counted"),
        )

    @classmethod
    def read(cls, content: bytes) -> StoredModel:
        """As `content` wrote it."""
        if len(content) > MOST_BYTES:
            raise _unreadable(f"It has more than {MOST_BYTES:,} bytes.")
        try:
            data = json.loads(content.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            raise _unreadable("It is not JSON.") from None
        if not isinstance(data, Mapping):
            raise _unreadable("It is not an object with names.")
        return cls.of_json(data)


def _recipe_of(data: Mapping[str, Any]) -> Recipe | OutputRecipe:
    return OutputRecipe.of_json(data) if data.get("method") == "output" else Recipe.of_json(data)


def _digits(margin: float) -> float | None:
    """Six digits of it."""
    return float(f"{margin:.6g}") if math.isfinite(margin) else None


def _unreadable(why: str) -> InputError:
    return InputError("This model cannot be read.", why=why, fix="Use the version that made it.")
