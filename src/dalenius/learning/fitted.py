"""A trained model: what it predicts, and its coefficients, in scikit-learn's manner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import InputError
from dalenius.learning.features import WHOLE
from dalenius.learning.given import given
from dalenius.learning.models.linear import Linear
from dalenius.learning.models.poisson import Poisson
from dalenius.learning.weights import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.task import Task


@dataclass(frozen=True, eq=False)
class Model:
    """A task with weights.

    Attributes:
        task: What was learned, from what.
        weights: What was learned.
    """

    task: Task
    weights: Weights

    @property
    def classes_(self) -> tuple[Any, ...]:
        """The classes, in the order of `predict_proba`; none where the target is a number."""
        return self.task.classes

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """What the columns of `coef_` are called."""
        return self.task.parts[:-1]

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Scores × columns: how much a score grows with a value by one, in the units of the table."""
        return self.weights.values[:, :-1] * self._slopes * told(self.task)[0]

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Of each score, for values of 0."""
        lows = np.array([each.low for each in self.task.features for _ in range(each.width)])
        shift = np.where(self._numbers, lows * self._slopes + 1.0, 0.0)  # a number is slope·(value − low) − 1
        scale, base = told(self.task)
        return np.asarray((self.weights.values[:, -1] - self.weights.values[:, :-1] @ shift) * scale + base)

    @property
    def _numbers(self) -> NDArray[np.bool_]:
        """Which columns are numbers between bounds."""
        return np.array([at == 0 and each.keys is None for each in self.task.features for at in range(each.width)])

    @property
    def _slopes(self) -> NDArray[np.float64]:
        """How much each column's number grows with a value by one."""
        scales = np.array([each.scale for each in self.task.features for _ in range(each.width)])
        return np.where(self._numbers, 2.0 / scales, 1.0)

    def decision_function(self, rows: object) -> NDArray[np.float64]:
        """The scores of rows, rows × scores: intercept and what each value adds, as `coef_` says."""
        scale, base = told(self.task)
        return np.asarray(self._scores(rows).T * scale + base)

    def predict_proba(self, rows: object) -> NDArray[np.float64]:
        """The chance of each class, rows × classes."""
        if not self.task.loss.chances:
            raise InputError(
                f"A {self.task.model} model tells no chances.",
                why="Its scores say on which side a row is, not how often that is right.",
                fix="Take predict or decision_function, or train model logistic.",
            )
        return self.task.loss.predict(self._scores(rows)).T

    def predict(self, rows: object) -> NDArray[Any]:
        """The most likely class of each row, or the number expected, in the units of the table.

        Args:
            rows: A dict of columns, a pandas or arrow table, or a list of dicts.
        """
        said = self.task.loss.predict(self._scores(rows))
        if self.classes_:
            found: NDArray[Any] = np.array(self.classes_)[said.argmax(axis=0)]
            return found
        return np.asarray(self.task.target.low + said[0] * self.task.target.scale)

    def _scores(self, rows: object) -> NDArray[np.float64]:
        numbers = encode_features(self.task, rows)
        return self.weights.values @ (numbers.T.astype(np.float64) / WHOLE)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {"task": self.task.to_json(), "weights": self.weights.to_json()}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Model:
        """As `to_json` wrote it."""
        from dalenius.learning.task import Task

        return cls(Task.of_json(data["task"]), Weights.of_json(data["weights"]))


def told(task: Task) -> tuple[float, float]:
    """How a score is told, times the first and plus the second: learned is a number from 0 to 1, told is the table's.

    A linear model's score is the number itself, a Poisson model's the logarithm of a count.
    """
    if task.model == Linear.name:
        return task.target.scale, task.target.low
    return 1.0, math.log(task.target.scale) if task.model == Poisson.name else 0.0


def encode_features(task: Task, rows: object) -> NDArray[np.float32]:
    """The numbers of rows, rows × columns, in whole steps; the last column is 1."""
    values = given(rows, task.features)
    count = len(next(iter(values.values()))[0])
    found = np.empty((count, task.width), np.float32)
    at = 0
    for each in task.features:
        each.encode(*values[each.name], into=found[:, at : at + each.width])
        at += each.width
    found[:, -1] = WHOLE
    return found
