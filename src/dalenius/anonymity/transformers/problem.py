"""What a transformer is given, and what it gives back.

It is given codes, hierarchies, bound models, a limit of suppressed rows and a loss. It gives back one level for each
row and quasi-identifier: the label at that level is what is published, and −1 is a suppressed row.

**Suppressed rows** stay, with `*` in every quasi-identifier. They are a class like any other and must satisfy all
models, or there must be none of them: whoever finds no other class for somebody knows that they are among the
suppressed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Counts, Groups
from dalenius.anonymity.hierarchies import SUPPRESSED, Hierarchy, build
from dalenius.anonymity.losses.cells import CellCosts, cell_costs
from dalenius.anonymity.models import BoundModel, Model, Presence
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Column, Table
from dalenius.errors import InputError

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class Problem:
    """A table to publish.

    Attributes:
        table: As it is.
        roles: Of its columns.
        models: What must hold, each with the model that was asked for.
        hierarchies: Of the quasi-identifiers; with values of the population, where there is one.
        codes: Of the quasi-identifiers, row by row.
        people: The same for the population; None where there is none.
        limit: How many rows may be suppressed.
        loss: Which one is to be small, of `LOSSES`.
        costs: Of cells, for that loss or, where it is one of classes, for NCP.
        ends: When time is over, by `time.monotonic`; None: never.
        progress: Told a share of what is done and a word. Both follow from the rows: they are for their owner.
    """

    table: Table
    roles: Roles
    models: tuple[tuple[Model, BoundModel], ...]
    hierarchies: tuple[Hierarchy, ...]
    codes: tuple[NDArray[np.int32], ...]
    people: tuple[NDArray[np.int32], ...] | None
    limit: int
    loss: str
    costs: CellCosts
    ends: float | None
    progress: Progress

    @property
    def rows(self) -> int:
        """Of the table."""
        return self.table.rows

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns that models speak of."""
        return tuple(dict.fromkeys(each.column for _, each in self.models if each.column is not None))

    @property
    def least(self) -> int:
        """A class that satisfies all models has at least so many rows."""
        return max((each.least for _, each in self.models), default=1)

    @property
    def late(self) -> bool:
        """Whether time is over."""
        return self.ends is not None and time.monotonic() > self.ends

    def good(self, groups: Groups) -> NDArray[np.bool_]:
        """Which classes satisfy all models."""
        found = np.ones(len(groups.sizes), np.bool_)
        for _, each in self.models:
            found &= each.holds(groups)
        return found

    def counts(self, of_row: NDArray[np.int64], classes: int, rows: NDArray[Any] | None = None) -> dict[str, Counts]:
        """Sensitive values in classes of all rows, or of some."""
        found = dict[str, Counts]()
        for name in self.sensitive:
            column = self.table[name]
            codes = column.codes if rows is None else column.codes[rows]
            found[name] = Counts.of(of_row, codes, classes, len(column.values))
        return found

    def groups(self, of_row: NDArray[np.int64], classes: int, rows: NDArray[Any] | None = None) -> Groups:
        """What models look at, for classes of all rows or of some."""
        return Groups(np.bincount(of_row, minlength=classes), self.counts(of_row, classes, rows))

    def unreachable(self, groups: Groups, *, certain: bool | None = None) -> InputError:
        """What to say where no table was found.

        Args:
            groups: The class or classes of the coarsest table.
            certain: Whether there is none; None: that is so where all rows together do not satisfy the models, since
                unions of classes that do would.
        """
        if certain is None:
            whole = self.groups(np.zeros(self.rows, np.int64), 1)
            certain = not all(each.holds(whole).all() for _, each in self.models if not isinstance(each, Presence))
        if self.late and not certain:
            return InputError(
                "Time was over before a table was found.",
                why="Whether there is one that keeps the models is not known yet.",
                fix="Allow more time, or more suppression, or give hierarchies whose highest level is one label.",
            )
        model, bound = next((pair for pair in self.models if not pair[1].holds(groups).all()), self.models[0])
        reached = bound.worst(groups)
        asked = ", ".join(f"{key} = {value}" for key, value in model.asked.items())
        has = "has" if certain else "was found that has"
        return InputError(
            f"No generalisation of this table {has} {model.name} with {asked}.",
            why="Even with every quasi-identifier at its highest level"
            + (f" it reaches {reached:.4g}." if reached is not None and np.isfinite(reached) else " it does not."),
            fix="Ask for less, allow more suppression, or give hierarchies whose highest level is one label.",
        )


@dataclass(frozen=True, eq=False)
class Recoding:
    """What a transformer found.

    Attributes:
        levels: For each quasi-identifier, the level of each row; −1: suppressed.
        levels_chosen: Of full-domain generalisation, the level of each column.
        bound: No full-domain table whose classes are published or suppressed as a whole loses less than that; None
            where nothing is known.
        value: What this one loses, in the loss that was asked for; None where the method does not say.
    """

    levels: tuple[NDArray[np.int16], ...]
    levels_chosen: tuple[int, ...] | None = None
    bound: float | None = None
    value: float | None = None


def problem(
    table: Table,
    roles: Roles,
    models: Sequence[Model],
    *,
    suppress: float = 0.0,
    loss: str = "ncp",
    ends: float | None = None,
    progress: Progress = lambda _share, _word: None,
) -> Problem:
    """Binds models and hierarchies to a table."""
    bound = tuple((model, each) for model in models for each in model.bind(table, roles))
    population = next((model.population for model in models if isinstance(model, Presence)), None)
    hierarchies, codes, people = list[Hierarchy](), list[NDArray[np.int32]](), list[NDArray[np.int32]]()
    for name in roles.quasi:
        if population is None:
            hierarchies.append(roles.hierarchy(table, name))
            codes.append(table[name].codes)
            continue
        both = Column.of([*table[name].cells(), *population[name].cells()])
        known = np.zeros(len(both.values), np.bool_)
        known[both.codes[: table.rows]] = True
        hierarchies.append(replace(build(roles.spec(name), name, both.values), counted=known))
        codes.append(both.codes[: table.rows])
        people.append(both.codes[table.rows :])
    kind: Literal["ncp", "entropy"] = "entropy" if loss == "entropy" else "ncp"
    weights = np.array([roles.weight(name) for name in roles.quasi])
    return Problem(
        table,
        roles,
        bound,
        tuple(hierarchies),
        tuple(codes),
        tuple(people) if population is not None else None,
        int(suppress * table.rows + 1e-9),
        loss,
        cell_costs(kind, weights, codes, hierarchies),
        ends,
        progress,
    )


def published(task: Problem, recoding: Recoding) -> Table:
    """The table with these labels; identifiers are `*`."""
    new = dict[str, Column]()
    parts = zip(task.roles.quasi, task.hierarchies, task.codes, recoding.levels, strict=True)
    for name, hierarchy, codes, level in parts:
        places: dict[str | None, int] = {SUPPRESSED: 0}
        lookup = np.zeros((hierarchy.levels + 1, len(hierarchy.labels[0])), np.int32)  # row −1: suppressed
        for at in range(hierarchy.levels):
            own = np.array([places.setdefault(label, len(places)) for label in hierarchy.labels[at]], np.int32)
            lookup[at] = own[hierarchy.maps[at]]
        texts = tuple(places)
        kind = task.table[name].kind if (level == 0).all() else "string"
        new[name] = Column.coded(lookup[level, codes], texts, kind)
    for name in task.roles.identifiers:
        new[name] = Column(np.zeros(task.rows, np.int32), (SUPPRESSED,))
    return task.table.replace(new)
