"""m-invariant republication: a table that changes, published again and again (Xiao and Tao 2007).

Whoever sees somebody in several releases can keep only the sensitive values that all of their classes show. If
everybody's classes show the same m values in every release (their signature), nothing is left out, ever: the chance of
guessing right stays at 1/m, however many releases there are.

*Guarantee.* Every class has at least m rows with different sensitive values, and somebody's class shows the same values
in every release that somebody is in. Against an attacker who knows who is in which release and everybody's
quasi-identifiers, nothing about the values, and does not reason from how rows were placed, each guess is right with
probability at most 1/m. It is no bound on what is learned by who knows more. Who knows the algorithm may reason:
newcomers rather fill places that others left, and those for whom there is no partner get counterfeits, which says that
their value was frequent among newcomers. One newcomer's signature that needs counterfeits is drawn so that it is as
likely for each of its values (`buckets`); of many together more can be said.

*Assumes.* One sensitive column, whose value for a person stays within the signature; one row for each person.

*What is published.* The same header: quasi-identifiers as the smallest labels over the class, the sensitive value as it
is, and in the column that says who the number of the class, drawn up anew in every release. All other columns are `*`.
Counterfeit rows stand where a class lacks a value of its signature: the number of each class's is told beside the
table.

References:
    Xiao and Tao 2007, m-Invariance: Towards Privacy Preserving Re-publication of Dynamic Datasets, SIGMOD.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.hierarchies import SUPPRESSED, Hierarchy
from dalenius.anonymity.losses import Losses, losses
from dalenius.anonymity.losses.sizes import average_class_size, discernibility
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Column, Table
from dalenius.anonymity.transformers.buckets import Bucket, Text, eligible, filled, in_order
from dalenius.anonymity.transformers.republish_state import State
from dalenius.errors import InputError

Group = list[tuple[Text, int | None]]  # value and row; None: a counterfeit


@dataclass(frozen=True, slots=True)
class Republication:
    """One release of a series.

    Attributes:
        table: What is published.
        state: For the next release; not to be published.
        placed: In which class each person is, as the table has it; not to be published.
        counterfeits: How many rows of each class are nobody's, where there are some; published beside the table.
        classes: How many there are.
        people: Rows that are somebody's.
        loss: What these lose.
    """

    table: Table
    state: State
    placed: Mapping[str, str]
    counterfeits: Mapping[str, int]
    classes: int
    people: int
    loss: Losses

    def to_dict(self) -> dict[str, Any]:
        """For `--json`; without rows and people."""
        return {
            "rows": self.table.rows,
            "people": self.people,
            "classes": self.classes,
            "counterfeits": self.table.rows - self.people,
            "counterfeits_by_class": dict(self.counterfeits),
            "m": self.state.m,
            "release": self.state.releases,
            "loss": self.loss.to_dict(),
        }


def republish(table: Table, roles: Roles, m: int, *, person: str, previous: State | None = None) -> Republication:
    """The next release of a series.

    Args:
        table: The rows as they are now, one for each person.
        roles: Quasi-identifiers with their hierarchies, and one sensitive column.
        m: How many sensitive values everybody's class shows, at least.
        person: The column that says who a row is about.
        previous: What the last release left; None for the first.

    Raises:
        InputError: A sensitive value is had by more than 1/m of the rows, somebody has two rows, or the state does not
            fit.
        PolicyInvalidError: Roles or hierarchies do not fit the table.
    """
    sensitive = _checked(table, roles, m, person, previous)
    values, people = table[sensitive].cells(), [str(each) for each in table[person].cells()]
    known: Mapping[str, Any] = previous.signatures if previous is not None else {}
    hierarchies = [roles.hierarchy(table, name) for name in roles.quasi]
    places = np.stack([each.position[table[name].codes] for name, each in zip(roles.quasi, hierarchies, strict=True)])
    # In the order of what they look like, not of the file: neighbours come together, and the file's order says nothing.
    order = sorted(range(table.rows), key=lambda row: (places[:, row].tolist(), in_order(values[row]), people[row]))
    old = [(row, values[row], known[people[row]]) for row in order if people[row] in known]
    new: dict[Text, list[int]] = {}
    for row in order:
        if people[row] not in known:
            new.setdefault(values[row], []).append(row)
    scale = np.array(
        [roles.weight(name) / max(1, each.total - 1) for name, each in zip(roles.quasi, hierarchies, strict=True)]
    )
    groups = [each for bucket in filled(old, new, m, set(values)) for each in _split(bucket, places * scale[:, None])]
    return _published(table, roles, m, person, sensitive, previous, groups, hierarchies, places)


def _split(bucket: Bucket, places: NDArray[np.float64]) -> Iterator[Group]:
    """Cuts a bucket into classes that show each value once; again and again in the middle of its widest column."""
    height = bucket.height
    padded: list[list[int | None]] = [
        [*bucket.rows[value], *[None] * (height - len(bucket.rows[value]))] for value in bucket.signature
    ]
    waiting = [padded]
    while waiting:
        part = waiting.pop()
        size = len(part[0])
        if size == 1:
            yield [(value, rows[0]) for value, rows in zip(bucket.signature, part, strict=True)]
            continue
        real = np.array([row for rows in part for row in rows if row is not None])
        widest = int(np.argmax(np.ptp(places[:, real], axis=1)))
        along = [_along(rows, places[widest]) for rows in part]
        waiting += [[rows[size // 2 :] for rows in along], [rows[: size // 2] for rows in along]]


def _along(rows: list[int | None], places: NDArray[np.float64]) -> list[int | None]:
    """In the order of a column, counterfeits last: a value that has none keeps somebody real in every class."""
    return sorted(rows, key=lambda row: (row is None, 0.0 if row is None else float(places[row])))


def _published(
    table: Table,
    roles: Roles,
    m: int,
    person: str,
    sensitive: str,
    previous: State | None,
    groups: list[Group],
    hierarchies: list[Hierarchy],
    places: NDArray[np.int64],
) -> Republication:
    labels = [_labels(group, hierarchies, places) for group in groups]
    order = sorted(
        range(len(groups)), key=lambda at: ([each or "" for each in labels[at]], [in_order(v) for v, _ in groups[at]])
    )
    who = table[person].cells()
    cells: dict[str, list[Text]] = {name: [] for name in table.names}
    placed, counterfeits = dict[str, str](), dict[str, int]()
    signatures = dict(previous.signatures) if previous is not None else {}
    for number, at in enumerate(order, 1):
        group, name = groups[at], str(number)
        for value, row in group:
            if row is None:
                counterfeits[name] = counterfeits.get(name, 0) + 1
            else:
                placed[str(who[row])] = name
                signatures[str(who[row])] = tuple(each for each, _ in group)
            shown = dict(zip(roles.quasi, labels[at], strict=True)) | {sensitive: value, person: name}
            for column, listed in cells.items():
                listed.append(shown.get(column, SUPPRESSED))
    found = Table({name: Column.of(listed) for name, listed in cells.items()}, sum(map(len, groups)))
    state = State(m, person, sensitive, (previous.releases if previous else 0) + 1, signatures)
    return Republication(
        found, state, placed, counterfeits, len(groups), table.rows, _lost(table, roles, groups, labels)
    )


def _lost(table: Table, roles: Roles, groups: list[Group], labels: list[list[Text]]) -> Losses:
    """What rows lose that are somebody's. Classes are told apart by their numbers, whatever their labels."""
    label_of = {row: own for group, own in zip(groups, labels, strict=True) for _, row in group if row is not None}
    cells = {name: [label_of[row][at] for row in range(table.rows)] for at, name in enumerate(roles.quasi)}
    found = losses(table, table.replace({name: Column.of(each) for name, each in cells.items()}), roles)
    sizes = np.array([sum(row is not None for _, row in group) for group in groups])
    return replace(
        found,
        discernibility=discernibility(sizes, 0, table.rows),
        class_size=average_class_size(sizes, 0, table.rows),
    )


def _labels(group: Group, hierarchies: list[Hierarchy], places: NDArray[np.int64]) -> list[Text]:
    """The smallest labels over the real rows of a class."""
    real = [row for _, row in group if row is not None]
    found: list[Text] = []
    for own, each in zip(places, hierarchies, strict=True):
        low, high = own[real].min(), own[real].max()
        level = int(each.cover(np.array([low]), np.array([high]))[0])
        found.append(SUPPRESSED if level >= each.levels else each.labels[level][each.at_position[level][low]])
    return found


def _checked(table: Table, roles: Roles, m: int, person: str, previous: State | None) -> str:
    """The sensitive column, where all is as it should be."""
    roles.check(table)
    if m < 2:
        raise InputError(
            f"m = {m} protects nobody.", why="A class shows m values.", fix="Write a whole number from 2 up."
        )
    if len(roles.sensitive) != 1:
        raise InputError(
            f"There are {len(roles.sensitive)} sensitive columns.",
            why="A signature is a set of values of one column.",
            fix="Name one in the policy, under [anonymity] sensitive.",
        )
    (sensitive,) = roles.sensitive
    if person in (*roles.quasi, sensitive):
        raise InputError(
            f"Column '{person}' is a quasi-identifier or sensitive.",
            why="What says who somebody is cannot be published; the number of the class stands in its place.",
            fix="Name another with --id, or change the policy.",
        )
    column = table[person]
    if None in column.values or len(column.values) < table.rows:
        raise InputError(
            f"Column '{person}' does not tell {table.rows:,} people apart.",
            why="It has missing values, or somebody has several rows.",
            fix="Name a column with one value for each row.",
        )
    if not table.rows:
        raise InputError("The table has no rows.", why="There is nobody to publish.", fix="Name another table.")
    counts = Counter(table[sensitive].cells())
    if not eligible(counts, m):
        top = max(counts.values())
        raise InputError(
            f"A value of '{sensitive}' is had by {top:,} of {table.rows:,} rows, which is more than 1/{m}.",
            why=f"Each class shows {m} different values, so no value can be in more than one of {m} rows.",
            fix=f"Take m = {table.rows // top}."
            if table.rows // top >= 2
            else "Generalise the sensitive values first.",
        )
    if previous is not None:
        _check_previous(table, m, person, sensitive, previous)
    return sensitive


def _check_previous(table: Table, m: int, person: str, sensitive: str, previous: State) -> None:
    if (previous.person, previous.sensitive) != (person, sensitive):
        raise InputError(
            "The state is of another series.",
            why=f"It was made with '{previous.person}' and '{previous.sensitive}'.",
            fix="Name the state of this series, or the same columns.",
        )
    if previous.m < m:
        raise InputError(
            f"The earlier releases were made with m = {previous.m}.",
            why=f"Their classes show fewer than {m} values, and must show the same ones again.",
            fix=f"Take m = {previous.m}, or begin a new series with new people only.",
        )
    values = table[sensitive].cells()
    moved = sum(
        value not in previous.signatures.get(str(who), (value,))
        for who, value in zip(table[person].cells(), values, strict=True)
    )
    if moved:
        raise InputError(
            f"{moved:,} people have a value of '{sensitive}' that their class did not show before.",
            why="m-invariance is for values that stay: a changed one cannot be shown without telling that it changed.",
            fix="Publish their first value, or leave these rows out.",
        )
