"""Unicity of event data: how many people are alone with p points of their trail.

Events are who, where and when (or who, which film and which day). Whoever knows p events of somebody, seen by chance,
looks for all people who have these p: if there is one, that person's whole trail is found. Unicity is the share of
people who are found so, over random choices of p of their own events (de Montjoye, Hidalgo, Verleysen and Blondel 2013:
95% of 1.5 million people from four places and hours). It is reported with its standard error.

Points are exact words of the columns given: coarser words (districts for stops, hours for minutes) give fewer of them,
and the effect of that can be seen by asking again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import group
from dalenius.anonymity.table import Table
from dalenius.errors import InputError

TRIED = 2000  # people


@dataclass(frozen=True, slots=True)
class Unicity:
    """The share of people who are unique.

    Attributes:
        points: p.
        tried: People for whom it was tried; those with fewer than p different points are known by all of theirs.
        unique: Of these.
        crowd: The median number of people who share the p points, the victim among them.
    """

    points: int
    tried: int
    unique: int
    crowd: float

    @property
    def share(self) -> float:
        """Of those who were tried."""
        return self.unique / self.tried

    @property
    def error(self) -> float:
        """The standard error of the share."""
        return math.sqrt(self.share * (1 - self.share) / self.tried)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        shares = {"share": self.share, "error": self.error}
        return {"points": self.points, "tried": self.tried, "unique": self.unique, "crowd": self.crowd, **shares}


class Trails:
    """Everybody's points, and everybody who has a point."""

    def __init__(self, people: NDArray[np.int64], points: NDArray[np.int64]) -> None:
        width = int(points.max(initial=0)) + 1
        pairs = np.unique(people.astype(np.int64) * width + points)  # seen twice at one place is one point
        self.people, self.points = pairs // width, pairs % width
        self.count = int(self.people.max(initial=-1)) + 1
        self._from = np.searchsorted(self.people, np.arange(self.count + 1))
        order = np.argsort(self.points, kind="stable")
        self._visitors = self.people[order]
        self._at = np.searchsorted(self.points[order], np.arange(width + 1))

    def of(self, person: int) -> NDArray[np.int64]:
        """A person's points."""
        return self.points[self._from[person] : self._from[person + 1]]

    def visitors(self, point: int) -> NDArray[np.int64]:
        """Who has a point; in order."""
        return self._visitors[self._at[point] : self._at[point + 1]]

    def sharing(self, points: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Who has all of these points."""
        rarest = sorted((self.visitors(int(each)) for each in points), key=len)
        found = rarest[0]
        for each in rarest[1:]:
            found = np.intersect1d(found, each, assume_unique=True)
        return found


def trails(table: Table, person: str, points: Sequence[str]) -> Trails:
    """The trails in a table of events: one row each, whose point is what the columns say together."""
    if not points:
        raise InputError(
            "No column was named that says where or when.",
            why="A point of a trail is a place, a time, or both.",
            fix="Name such columns.",
        )
    if not table.rows:
        raise InputError("The table has no rows.", why="There is nobody to find.", fix="Name another table.")
    columns = [table[each] for each in points]
    where = group([each.codes for each in columns], [len(each.values) for each in columns], table.rows)
    who = table[person].codes.astype(np.int64)
    known = who != _missing(table[person].values)  # an event of nobody belongs to no trail
    if not known.any():
        raise InputError(
            f"Column '{person}' is empty.", why="It says whose event a row is.", fix="Name another column."
        )
    _, people = np.unique(who[known], return_inverse=True)
    return Trails(people.astype(np.int64), where[known].astype(np.int64))


def unicity(
    table: Table, person: str, points: Sequence[str], *, known: int = 4, tried: int = TRIED, seed: int | None = None
) -> Unicity:
    """How many people are unique given some of their points.

    Args:
        table: One row for each event.
        person: The column that says whose.
        points: The columns that say where and when, together a point.
        known: How many points the attacker has.
        tried: For how many people at most, drawn by chance.
        seed: Of who and which points are drawn; None: fresh ones.
    """
    if known < 1 or tried < 1:
        raise InputError(
            "Unicity needs at least one point and one person.",
            why="Whoever knows nothing finds nobody.",
            fix="Write --points 4.",
        )
    found = trails(table, person, points)
    chance = np.random.default_rng(seed)
    who = chance.permutation(found.count)[:tried]
    crowds = np.array([len(found.sharing(drawn(found.of(int(each)), known, chance))) for each in who])
    return Unicity(known, len(who), int((crowds == 1).sum()), float(np.median(crowds)))


def drawn(points: NDArray[np.int64], known: int, chance: np.random.Generator) -> NDArray[np.int64]:
    """So many of a person's points, or all where there are fewer."""
    return points if len(points) <= known else chance.choice(points, known, replace=False)


def _missing(values: Sequence[str | None]) -> int:
    return values.index(None) if None in values else -1
