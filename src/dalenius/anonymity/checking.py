"""Whether a table, published or not, keeps what models ask for; and what it reaches.

Rows in which every quasi-identifier is `*` are a class like any other. Who looks for somebody and finds no other class
that fits knows that they are among the suppressed: three such rows hide nobody better than three other rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Groups, classes, group
from dalenius.anonymity.hierarchies import SUPPRESSED, build
from dalenius.anonymity.losses import starred_rows, suppressed_rows
from dalenius.anonymity.models import (
    BoundModel,
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    Likeness,
    Model,
    Presence,
    ProbabilisticDiversity,
    RecursiveDiversity,
)
from dalenius.anonymity.models.model import at_least, sensitive_columns
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.errors import InputError


@dataclass(frozen=True)
class Finding:
    """What a table reaches of one model, about one sensitive column where the model has one.

    Attributes:
        model: Its name.
        asked: What was asked.
        reached: What the worst class reaches; None where there is none, or where it is infinite.
        met: Whether all classes satisfy it.
        column: The sensitive column.
        failing_classes: How many do not.
        failing_rows: Rows in them.
    """

    model: str
    asked: dict[str, float | str]
    reached: float | None
    met: bool
    column: str | None
    failing_classes: int
    failing_rows: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "model": self.model,
            "asked": self.asked,
            "reached": self.reached,
            "met": self.met,
            "column": self.column,
            "failing": {"classes": self.failing_classes, "rows": self.failing_rows},
        }


@dataclass(frozen=True)
class CheckResult:
    """What a check found.

    Attributes:
        rows: Of the table.
        classes: Of rows that look alike.
        suppressed: Rows with `*` in every quasi-identifier.
        findings: One for each model and sensitive column.
    """

    rows: int
    classes: int
    suppressed: int
    findings: tuple[Finding, ...]

    @property
    def met(self) -> bool:
        """Whether the table keeps all that was asked."""
        return all(each.met for each in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "rows": self.rows,
            "classes": self.classes,
            "suppressed": self.suppressed,
            "met": self.met,
            "models": [each.to_dict() for each in self.findings],
        }


def check(table: Table, roles: Roles, models: Sequence[Model]) -> CheckResult:
    """Checks a table against models.

    Args:
        table: As it is published, or raw.
        roles: Its quasi-identifiers and sensitive columns. Hierarchies are needed only for hierarchical distances and
            for δ-presence.
        models: What to check.

    Raises:
        InputError: The table has no rows, or a model cannot be asked of it.

    >>> from dalenius.anonymity.models import KAnonymity
    >>> table = Table.of({"zip": ["1", "1", "2"], "ill": ["flu", "cold", "flu"]})
    >>> found = check(table, Roles(quasi=("zip",), sensitive=("ill",)), [KAnonymity(2)])
    >>> found.met, found.findings[0].reached, found.findings[0].failing_rows
    (False, 1.0, 1)
    """
    _check_rows(table, roles)
    bound = [(model, each) for model in models for each in model.bind(table, roles)]
    columns = tuple(dict.fromkeys(each.column for _, each in bound if each.column is not None))
    found = classes(table, roles.quasi)
    groups = found.groups(table, columns)
    findings = list[Finding]()
    for model, each in bound:
        own = _with_population(table, roles, model.population) if isinstance(model, Presence) else groups
        findings.append(finding(model, each, own))
    return CheckResult(table.rows, len(found.sizes), int(suppressed_rows(table, roles).sum()), tuple(findings))


def check_release(table: Table, roles: Roles, m: int, *, group: str) -> CheckResult:
    """Checks one release of an m-invariant series: every class shows at least m sensitive values, each of them once.

    Whether everybody's values are the same in all releases can only be told by who knows who was where
    (`models.invariance.check_series`).

    Args:
        table: As it was published.
        roles: Its quasi-identifiers, and the sensitive column.
        m: What was asked.
        group: The column with the number of the class, in which rows have the same labels.

    Raises:
        InputError: The table has no rows, or lacks a column.

    >>> table = Table.of({"id": ["1", "1", "2"], "zip": ["5*", "5*", "9"], "ill": ["flu", "cold", "flu"]})
    >>> found = check_release(table, Roles(quasi=("zip",), sensitive=("ill",)), 2, group="id").findings[0]
    >>> found.met, found.reached, found.failing_classes, found.failing_rows
    (False, 1.0, 1, 1)
    """
    _check_rows(table, roles)
    at_least("m", m, 2)
    own = classes(table, [group])
    labels = classes(table, [group, *roles.quasi])
    looks = np.bincount(own.of_row[labels.first], minlength=len(own.sizes))
    findings = list[Finding]()
    for column in sensitive_columns("m-invariance", None, roles):
        values = np.diff(own.counts(table[column]).start)
        shown = np.where((values == own.sizes) & (looks == 1), values, 0)
        bad = shown < m
        findings.append(
            Finding(
                "m-invariance",
                {"m": m},
                float(shown.min()),
                not bad.any(),
                column,
                int(bad.sum()),
                int(own.sizes[bad].sum()),
            )
        )
    return CheckResult(table.rows, len(own.sizes), int(suppressed_rows(table, roles).sum()), tuple(findings))


def _check_rows(table: Table, roles: Roles) -> None:
    roles.check(table)
    if not table.rows:
        raise InputError(
            "The table has no rows.", why="Any promise holds for nobody.", fix="Check the file that is to be published."
        )


def finding(model: Model, bound: BoundModel, groups: Groups) -> Finding:
    """What these classes reach of one model."""
    failing = ~bound.holds(groups)
    reached = bound.worst(groups)
    return Finding(
        model.name,
        model.asked,
        reached if reached is not None and math.isfinite(reached) else None,
        not failing.any(),
        bound.column,
        int(failing.sum()),
        int(groups.sizes[failing].sum()),
    )


def _with_population(table: Table, roles: Roles, population: Table) -> Groups:
    """How many of a population fall into each class; who falls into none is with the suppressed rows."""
    codes, widths = list[NDArray[Any]](), list[int]()
    for name in roles.quasi:
        codes.append(np.concatenate([table[name].codes, _as_published(table, population, roles, name)]))
        widths.append(len(table[name].values) + 1)
    of_row = group(codes, widths, table.rows + population.rows)
    size = int(of_row.max()) + 1
    rows = np.bincount(of_row[: table.rows], minlength=size)
    people = np.bincount(of_row[table.rows :], minlength=size)
    published, hidden = rows > 0, starred_rows(table, roles)
    elsewhere = int(people[~published].sum())
    if hidden.any():
        people[of_row[: table.rows][hidden][0]] += elsewhere
        return Groups(rows[published], {}, people[published])
    return Groups(np.append(rows[published], 0), {}, np.append(people[published], elsewhere))


def _as_published(table: Table, population: Table, roles: Roles, name: str) -> NDArray[np.int64]:
    """The published code that each person's value was generalised to; one past the last where none was."""
    column, own = table[name], population[name]
    hierarchy = build(roles.spec(name), name, own.values)
    places = {value: code for code, value in enumerate(column.values)}
    shown = [value for value in column.values if value != SUPPRESSED]
    found = list[NDArray[np.int64]]()
    for level in range(hierarchy.levels) if shown else [hierarchy.levels - 1]:
        if set(shown) <= set(hierarchy.labels[level]):
            labels = [places.get(label, len(column.values)) for label in hierarchy.labels[level]]
            found.append(np.array(labels)[hierarchy.maps[level]][own.codes])
    if found and all((each == found[0]).all() for each in found):
        return found[0]
    raise InputError(
        f"The labels of {name!r} are {'on several levels, for different people' if found else 'not all of one level'}.",
        why="For δ-presence it must be clear into which class each person of the population falls.",
        fix="Give labels of their own to each level of its hierarchy."
        if found
        else "Publish with --method optimal or greedy, and check with the same policy and population.",
    )


def profile(table: Table, roles: Roles) -> dict[str, Any]:
    """What a table reaches, without asking for anything: k, and for each sensitive column l, t and β.

    `t` has the equal distance, and the ordered one for numbers.
    """
    _check_rows(table, roles)
    found = classes(table, roles.quasi)
    groups = found.groups(table, roles.sensitive)
    columns = dict[str, Any]()
    for name in roles.sensitive:
        asked: dict[str, Model] = {
            "l_distinct": DistinctDiversity(1, name),
            "l_probabilistic": ProbabilisticDiversity(1, name),
            "l_entropy": EntropyDiversity(1, name),
            "c_recursive_2": RecursiveDiversity(2, name, 1.0),
            "t_equal": Closeness(1, "equal", name),
            "beta": Likeness(1, column=name),
        }
        if table[name].numbers is not None:
            asked["t_ordered"] = Closeness(1, "ordered", name)
        if name in roles.hierarchies:
            asked["t_hierarchy"] = Closeness(1, "hierarchy", name)
        reached = {key: model.bind(table, roles)[0].worst(groups) for key, model in asked.items()}
        columns[name] = {
            key: each if each is not None and math.isfinite(each) else None for key, each in reached.items()
        }
    return {
        "rows": table.rows,
        "classes": len(found.sizes),
        "suppressed": int(suppressed_rows(table, roles).sum()),
        "k": int(found.sizes.min()) if len(found.sizes) else None,
        "unique": int((found.sizes == 1).sum()),
        "sensitive": columns,
    }
