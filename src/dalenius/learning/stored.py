"""What is stored of a model: its recipe, its weights, and what the noise may have moved; as JSON with a version.

All of it follows from noisy sums and public facts. The stored bytes are what a receipt is for (its ``release`` is their
SHA-256), and what `weights.json` beside a model's card holds: no code runs when they are read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius._fields import Fields
from dalenius.errors import InputError
from dalenius.learning.fitted import Model
from dalenius.learning.output import OutputRecipe
from dalenius.learning.recipe import Recipe
from dalenius.learning.task import Task
from dalenius.learning.weights import Weights
from dalenius.tables.policy import Kind

FORMAT = "model 1"
MOST_BYTES = 2**28  # whoever sends a model decides how much memory it takes here
_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?")
_KINDS: Mapping[str, tuple[type, ...]] = {"int": (int,), "float": (float, int)}
_LARGEST, _FINEST_GRID = 1e300, 1000
_KEYS: Mapping[Kind, type] = {Kind.INTEGER: int, Kind.DATE: date}


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
        guarantee: What was promised, and for whom: signed with the weights, so that no card can promise more.
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
    guarantee: Mapping[str, Any]
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
            "guarantee": dict(self.guarantee),
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
        except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError):
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
            _guarantee_of(found.fields("guarantee")),
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
    """Checked before anything is worked out with it: whoever sends a model decides what stands in it."""
    for name in ("rate", "variance", "scale"):
        if data.get(name) is not None and not _FRACTION.fullmatch(str(data[name])):
            raise ValueError  # "1e999999999" would be a number of a billion digits
    recipe = OutputRecipe.of_json(data) if data.get("method") == "output" else Recipe.of_json(data)
    for each in fields(recipe):
        kinds, value = _KINDS.get(str(each.type)), getattr(recipe, each.name)
        if kinds is not None and (type(value) not in kinds or not abs(value) <= _LARGEST):
            raise ValueError
    if recipe.method not in ("sgd", "output") or min(recipe.people, recipe.rows, recipe.capacity) <= 0:
        raise ValueError
    if abs(recipe.grid) > _FINEST_GRID:
        raise ValueError
    if isinstance(recipe, Recipe):
        above = (recipe.clip, recipe.slots, recipe.steps, recipe.held, recipe.variance, recipe.rate)
        if not all(each > 0 for each in above) or recipe.rate > 1 or not 0 <= recipe.centring < recipe.steps:
            raise ValueError
    _check_task(recipe.task)
    return recipe


def _check_task(task: Task) -> None:
    """Names are texts, keys are of their kind, and differ."""
    parts = (task.target, *task.features)
    typed: list[tuple[object, type]] = [(task.model, str)]
    for each in parts:
        typed += [(each.name, str), (each.absent, bool), *((key, _KEYS.get(each.kind, str)) for key in each.keys or ())]
    if not all(type(value) is kind for value, kind in typed):
        raise ValueError
    if any(each.keys and len(set(each.keys)) < len(each.keys) for each in parts):
        raise ValueError
    if not all(math.isfinite(each.high - each.low) for each in parts):
        raise ValueError


def _guarantee_of(found: Fields) -> dict[str, Any]:
    """In the order in which it was written, so that the bytes are the same again."""
    numbers = ("epsilon", "delta")
    names = ("kind", *numbers, "unit", "neighbors")
    return {name: found.number(name) if name in numbers else found.text(name) for name in names}


def _digits(margin: float) -> float | None:
    """Six digits of it."""
    return float(f"{margin:.6g}") if math.isfinite(margin) else None


def _unreadable(why: str) -> InputError:
    return InputError("This model cannot be read.", why=why, fix="Use the version that made it.")
