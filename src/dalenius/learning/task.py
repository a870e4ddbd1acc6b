"""What is to be learned: a target, from which features, by which model. Public, and from the policy alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import InputError, NotAllowedError, UnknownColumnError
from dalenius.learning.features import Feature, Flags, lacks
from dalenius.learning.models import MODELS, Loss, model_of
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.tables import policy as tables

MOST_COLUMNS = 20_000  # of all features together


@dataclass(frozen=True)
class Task:
    """A target, features and a model.

    Attributes:
        target: What is predicted: its keys are the classes, or it is a number between bounds.
        features: What it is predicted from.
        model: One of `MODELS`.
    """

    target: Feature
    features: tuple[Feature, ...]
    model: str

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes of the target; none where it is a number."""
        if not self.loss.classifies:
            return ()
        return (False, True) if self.target.kind is Kind.BOOLEAN else self.target.keys or ()

    @property
    def loss(self) -> Loss:
        """Of the model."""
        return model_of(self.model)

    @property
    def outputs(self) -> int:
        """How many scores a row gets."""
        return self.loss.outputs(len(self.classes))

    @property
    def parts(self) -> tuple[str, ...]:
        """What the columns of numbers are called; the last one is 1 in every row."""
        return (*(part for each in self.features for part in each.parts), "intercept")

    @property
    def width(self) -> int:
        """How many columns there are, the last one included."""
        return sum(each.width for each in self.features) + 1

    @property
    def length(self) -> float:
        """About how long a row is, as a vector of numbers: √Σ squares, as `Feature.square` has them."""
        return float((1 + sum(each.square for each in self.features)) ** 0.5)

    def aims(self, values: NDArray[Any], absent: Flags) -> tuple[NDArray[np.float64], Flags]:
        """The target of each row, as the place of its class or from 0 to 1, and which rows have one."""
        if self.loss.classifies:
            if self.target.kind is Kind.BOOLEAN:
                found = values.astype(np.float64)
                return found, ~absent
            places = self.target.places(values, absent)
            return np.maximum(places, 0).astype(np.float64), places >= 0
        return self.target.shares(values, absent)

    # --- stored

    def to_json(self) -> dict[str, Any]:
        """As it is stored with a model."""
        return {
            "model": self.model,
            "target": self.target.to_json(),
            "features": [each.to_json() for each in self.features],
        }

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Task:
        """As `to_json` wrote it."""
        return cls(Feature.of_json(data["target"]), tuple(map(Feature.of_json, data["features"])), data["model"])


def task_of(
    columns: Mapping[str, tables.Column],
    target: str,
    model: str,
    *,
    features: Sequence[str] = (),
    hidden: Collection[str] = (),
) -> tuple[Task, dict[str, str]]:
    """What is to be learned from a table, and the columns that cannot be features, each with what to declare.

    Args:
        columns: Of the policy.
        target: What to predict.
        model: One of `MODELS`.
        features: From which columns; none: all that can be.
        hidden: Columns that say who somebody is.

    Raises:
        InputError: The model is unknown, a feature or the target lacks a declaration, the target is a feature.
    """
    loss = model_of(model)
    for name in (target, *features):
        _check_name(name, columns, hidden)
    if target in features:
        raise InputError(
            f"The target {target!r} is among the features.",
            why="A model that is told the answer learns nothing else.",
            fix="Leave it out of the features.",
        )
    if len(set(features)) < len(features):
        raise InputError("A feature is named twice.", why="It has its columns once.", fix="Name each once.")
    _check_target(columns[target], loss)
    found, left = list[Feature](), dict[str, str]()
    for name in features or [each for each in columns if each not in hidden and each != target]:
        what = lacks(columns[name])
        if what and features:
            raise InputError(
                f"Column {name!r} cannot be a feature.",
                why="What its values may be comes from its declaration, never from the data.",
                fix=f"Leave it out, or have the owner {what}.",
            )
        if what:
            left[name] = what
        else:
            found.append(Feature.of(columns[name]))
    if not found:
        raise InputError(
            "There is no column to learn from.",
            why="What values may be comes from declarations, never from the data.",
            fix="Have the owner declare keys or bounds of some columns.",
        )
    task = Task(Feature.of(columns[target]), tuple(found), loss.name)
    if task.width > MOST_COLUMNS:
        raise InputError(
            f"The features make {task.width:,} columns of numbers.",
            why=f"At most {MOST_COLUMNS:,} can be learned from; each key has one.",
            fix="Name fewer features.",
        )
    return task, left


def _check_name(name: str, columns: Mapping[str, Any], hidden: Collection[str]) -> None:
    if name in hidden:
        raise NotAllowedError(
            f"Column {name!r} says who somebody is.", why="A model must not know people.", fix="Leave it out."
        )
    if name not in columns:
        meant = nearest(name, list(columns))
        raise UnknownColumnError(
            f"There is no column {name!r}.",
            why="Only columns that the policy declares can be learned from.",
            fix=f"Did you mean {meant!r}?" if meant else f"Take some of {', '.join(columns)}.",
        )


def _check_target(column: tables.Column, loss: Loss) -> None:
    others = ", ".join(name for name, each in MODELS.items() if each.classifies != loss.classifies)
    if loss.classifies:
        if column.keys is None and column.kind is not Kind.BOOLEAN:
            raise InputError(
                f"The target {column.name!r} has no declared keys.",
                why=f"A {loss.name} model tells classes apart, and which there are must be public.",
                fix=f"Have the owner declare its keys, or take another model ({others}).",
            )
        if column.keys is not None and len(column.keys) < 2:
            raise InputError(
                f"The target {column.name!r} has one class.",
                why="There is nothing to tell apart.",
                fix="Have the owner declare the other keys, or name another target.",
            )
        return
    if column.bounds is None or column.kind not in {Kind.INTEGER, Kind.NUMBER}:
        raise InputError(
            f"The target {column.name!r} is not a number with bounds.",
            why=f"A {loss.name} model predicts a number, and how large it may be must be public.",
            fix=f"Have the owner declare its bounds, or take another model ({others}).",
        )
    if column.bounds.low >= column.bounds.high:
        raise InputError(
            f"The target {column.name!r} has one value.", why="Its bounds are equal.", fix="Name another target."
        )
    if loss.name == "poisson" and column.bounds.low != 0:
        raise InputError(
            f"The target {column.name!r} does not begin at 0.",
            why="A poisson model predicts counts.",
            fix="Have the owner declare bounds from 0, or take model linear.",
        )
