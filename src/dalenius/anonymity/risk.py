"""How likely it is that somebody in the table is found again, for three attackers.

prosecutor knows that the victim is in the table. The victim is one of the f rows that look alike: 1/f. journalist does
not know who is in the table, and picks somebody of a population who looks alike: 1/F, with F people of the population
in the class. Without a population table, F is estimated. marketer links everybody with a register and is content with
the share that is right: Σ(f/F)/n; against the table alone, Σ(f/f)/n = classes/rows.

Risks of rows that are suppressed (`*` in every quasi-identifier) count as those of the class that they form.

*Estimating F.* If the table is a sample of which each person of the population is drawn with probability π, then
F | f is f + NegativeBinomial(f, π) under the usual improper prior (Bethlehem, Keller and Pannekoek 1990; Skinner and
Holmes 1998; Rinott 2003), and E[1/F | f] is what `expected_inverse` computes.

References:
    El Emam and Dankar 2008, Protecting privacy using k-anonymity; El Emam 2013, Guide to the De-Identification of
    Personal Health Information. Rinott 2003, On models for statistical disclosure risk estimation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import classes
from dalenius.anonymity.table import Table
from dalenius.errors import InputError

Sizes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AttackerRisk:
    """What one attacker has to hope for.

    Attributes:
        highest: The probability for the person who is easiest to find.
        average: Over all rows.
        above: The share of rows whose probability is above the threshold.
    """

    highest: float
    average: float
    above: float

    def to_dict(self) -> dict[str, float]:
        """For `--json`."""
        return {"highest": self.highest, "average": self.average, "above": self.above}


@dataclass(frozen=True, slots=True)
class Risk:
    """The three attackers.

    Attributes:
        rows: In the table.
        classes: Of rows that look alike.
        smallest: The size of the smallest, which is k.
        unique: Rows that look like no other.
        threshold: What `above` is about.
        journalist: None where neither a population nor a sampling share was given.
        marketer: The share of rows that a link with the population finds rightly, as expected.
        estimated: Whether the population's classes were estimated.
        absent: Rows whose class the population table does not have: it is not the population of this table.
    """

    rows: int
    classes: int
    smallest: int
    unique: int
    threshold: float
    prosecutor: AttackerRisk
    journalist: AttackerRisk | None
    marketer: float
    estimated: bool
    absent: int = 0

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "rows": self.rows,
            "classes": self.classes,
            "smallest": self.smallest,
            "unique": self.unique,
            "threshold": self.threshold,
            "prosecutor": self.prosecutor.to_dict(),
            "journalist": self.journalist and self.journalist.to_dict(),
            "marketer": self.marketer,
            "estimated": self.estimated,
            "absent": self.absent,
        }


def risk(
    table: Table,
    quasi: Sequence[str],
    *,
    population: Table | None = None,
    share: float | None = None,
    threshold: float = 0.2,
) -> Risk:
    """The risk of each attacker.

    Args:
        table: What is published, or would be.
        quasi: What the attacker knows of people.
        population: Everybody the table could have been drawn from, in the same words: generalised as the table is.
        share: Which share of the population the table is, where there is no population table; then it is estimated.
        threshold: Of the shares of rows at risk.

    Raises:
        InputError: The table is empty, or an option makes no sense.
    """
    _check(table, quasi, population, share, threshold)
    found = classes(table, list(quasi))
    sizes = found.sizes
    found_alone = Risk(
        rows=table.rows,
        classes=len(sizes),
        smallest=int(sizes.min()),
        unique=int((sizes == 1).sum()),
        threshold=threshold,
        prosecutor=_of(1 / sizes, sizes, threshold),
        journalist=None,
        marketer=len(sizes) / table.rows,
        estimated=False,
    )
    if population is not None:
        people = _population_sizes(table, population, list(quasi))
        inverse = 1 / np.maximum(people, sizes)  # who is in the table is in the population
        absent = int(sizes[people == 0].sum())
    elif share is not None:
        different, which = np.unique(sizes, return_inverse=True)
        inverse = np.array([expected_inverse(int(f), share) for f in different])[which]
        absent = 0
    else:
        return found_alone
    return replace(
        found_alone,
        journalist=_of(inverse, sizes, threshold),
        marketer=_mean(inverse, sizes),
        estimated=population is None,
        absent=absent,
    )


def expected_inverse(f: int, share: float) -> float:
    """E[1/F] where F − f is negative binomial: others who look alike and were not drawn, given f who were.

    P(F = m) = C(m−1, f−1) π^f (1−π)^(m−f), π being ``share``. Its generating function divided by its argument, and
    integrated, gives E[1/F] = ∫₀¹ v^(f−1)/(1 + ov) dv with the odds o = (1−π)/π.

    >>> round(expected_inverse(1, 0.5), 6), round(expected_inverse(3, 1.0), 6)  # ln 2, and all who look alike are there
    (0.693147, 0.333333)
    """
    missing = 1 - share
    if missing < 0.5:  # (π/f) Σ_j (1−π)^j j!/((f+1)…(f+j)): all terms above 0, each below half of the one before
        total = term = 1.0
        at = 0
        while term > 1e-17 * total:
            at += 1
            term *= missing * at / (f + at)
            total += term
        return share / f * total
    odds = missing / share  # at least 1, so that I_f = (1/(f−1) − I_(f−1))/o lets errors shrink
    found = math.log1p(odds) / odds
    for at in range(1, f):
        found = (1 / at - found) / odds
    return found


def _population_sizes(table: Table, population: Table, quasi: list[str]) -> Sizes:
    """How many people of the population look like each class of the table."""
    counted: dict[tuple[str | None, ...], int] = {}
    theirs = classes(population, quasi)
    columns = [population[name] for name in quasi]
    for row, size in zip(theirs.first, theirs.sizes, strict=True):
        counted[tuple(each.values[each.codes[row]] for each in columns)] = int(size)
    mine = classes(table, quasi)
    columns = [table[name] for name in quasi]
    keys = (tuple(each.values[each.codes[row]] for each in columns) for row in mine.first)
    return np.array([counted.get(key, 0) for key in keys], dtype=np.int64)


def _of(inverse: NDArray[np.float64], sizes: Sizes, threshold: float) -> AttackerRisk:
    above = float(sizes[inverse > threshold].sum() / sizes.sum())
    return AttackerRisk(float(inverse.max()), _mean(inverse, sizes), above)


def _mean(inverse: NDArray[np.float64], sizes: Sizes) -> float:
    return float((inverse * sizes).sum() / sizes.sum())


def _check(table: Table, quasi: Sequence[str], population: Table | None, share: float | None, threshold: float) -> None:
    if not table.rows:
        raise InputError("The table has no rows.", why="There is nobody at risk.", fix="Name another table.")
    if not quasi:
        raise InputError(
            "No quasi-identifier was named.",
            why="A risk is about what an attacker knows of people.",
            fix='Name columns with --quasi, or write quasi = ["age", "zip"] under [anonymity] in the policy.',
        )
    if population is not None and share is not None:
        raise InputError(
            "A population and a share were given.",
            why="The share is for estimating what a population table says.",
            fix="Give one of them.",
        )
    if share is not None and not 0 < share <= 1:
        raise InputError(
            f"A share of {share:g} makes no sense.", why="It is above 0 and at most 1.", fix="Write a share like 0.01."
        )
    if not 0 < threshold <= 1:
        raise InputError(
            f"A threshold of {threshold:g} makes no sense.",
            why="A probability is above 0 and at most 1.",
            fix="Write a threshold like 0.2.",
        )
