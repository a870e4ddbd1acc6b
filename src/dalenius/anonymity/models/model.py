"""What a model is: a promise about every class of rows that look alike.

A model is asked for as plain data (`KAnonymity(10)`), then bound to a table (`bind`), which fixes what it compares
classes with: the whole table's distribution, the order or the tree of sensitive values, the population.

Two facts about each model let a search stop early:

- *Unions keep it*: two classes that satisfy it do so together. It holds for every model here, so coarser is never worse
  when nothing is suppressed.
- *Grows with rows* (`hereditary`): a class that satisfies it does so with any more rows. Only k-anonymity and distinct
  l-diversity are of that kind. Then fewer rows need be suppressed, the coarser a table is.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Groups
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.errors import InputError

# Sums of floats may miss a bound that they reach by a few units in the last place.
SLACK = 1e-9


class BoundModel(Protocol):
    """A model of one table, about one sensitive column where it has one.

    Attributes:
        column: The sensitive column, None for models without one.
        hereditary: Whether a class that satisfies it does so with any more rows.
        least: A class that satisfies it has at least so many rows.
    """

    @property
    def column(self) -> str | None: ...  # noqa: D102
    @property
    def hereditary(self) -> bool: ...  # noqa: D102
    @property
    def least(self) -> int: ...  # noqa: D102

    def per_class(self, groups: Groups) -> NDArray[np.float64]:
        """What each class reaches, in the model's own measure."""
        ...

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Which classes satisfy it; an empty class does."""
        ...

    def worst(self, groups: Groups) -> float | None:
        """What all classes reach: the least or the largest, whichever is worse; None where there is no class."""
        ...


class Model(Protocol):
    """A model as it is asked for.

    Attributes:
        name: As it is called.
        asked: What was asked, for people to read.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def asked(self) -> dict[str, float | str]: ...  # noqa: D102

    def bind(self, table: Table, roles: Roles) -> tuple[BoundModel, ...]:
        """For each sensitive column that it speaks of, the model of this table.

        Raises:
            InputError: It cannot be asked of this table.
        """
        ...


def sensitive_columns(model: str, column: str | None, roles: Roles) -> tuple[str, ...]:
    """The columns that a model speaks of: the one that it names, or all sensitive ones, each by itself."""
    if column is not None:
        return (column,)
    if not roles.sensitive:
        raise InputError(
            f"For {model} no sensitive column is named.",
            why="It is about what may be learned of one.",
            fix='Name it: --sensitive COLUMN, or in the policy [anonymity] sensitive = ["diagnosis"].',
        )
    return roles.sensitive


def at_least(option: str, value: float, least: float, most: float = float("inf")) -> None:
    """Refuses a parameter that makes no sense.

    Raises:
        InputError: It is out of range.
    """
    if not least <= value <= most or value != value or value == float("inf"):  # noqa: PLR0124
        bounds = f"from {least:g} up" if most == float("inf") else f"from {least:g} to {most:g}"
        raise InputError(
            f"{option} = {value:g} makes no sense.", why=f"It is {bounds}.", fix=f"Write {option} {bounds}."
        )


def smallest(groups: Groups, reached: NDArray[np.float64]) -> float | None:
    """The least that a class reaches that has rows."""
    own = reached[groups.sizes > 0]
    return float(own.min()) if len(own) else None


def greatest(groups: Groups, reached: NDArray[np.float64]) -> float | None:
    """The most that a class reaches that has rows."""
    own = reached[groups.sizes > 0]
    return float(own.max()) if len(own) else None
