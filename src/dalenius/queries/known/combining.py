"""What follows from several measures together: complements, differences, and the same thing measured twice.

Sums over the same rows from different answers have independent noise, so generalised least squares over the classes
that all of them tell apart is their best combination (`measuring.inference.least_squares`); a question follows where it
is a combination of what was measured. Groups by columns that the question does not read are added up first, so that the
cells stay few: with many, nothing is combined, and each measure is looked at alone (`following`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.queries.known.following import reads
from dalenius.queries.workloads.attributes import Atoms
from dalenius.queries.workloads.linear import sums_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.measuring.inference.least_squares import Measured
    from dalenius.measuring.strategies.factors import Array
    from dalenius.queries.known.following import Attributes, Cells
    from dalenius.queries.known.sources import PaidMeasure

_MOST_CELLS = 512  # over which measures are combined
_MOST_NEAR = 32  # measures that are looked at, the latest ones
_MOST_MEASURES = 12  # that are combined
_MOST_WEIGHTS = 2**21  # numbers of the question times groups that they are made of


@dataclass(frozen=True, eq=False)
class Marginal:
    """A measure with its groups added up by those keys that matter: noisy sums, each with its variance.

    Attributes:
        paid: The measure.
        atoms: What is left of its keys and conditions.
        cells: Its groups now.
        goes: Of each group before, which one of these it is in.
    """

    paid: PaidMeasure
    atoms: Atoms
    cells: Cells
    goes: NDArray[np.int64]

    @property
    def values(self) -> Array:
        """The sums, in steps."""
        return self._added(self.paid.values)

    @property
    def variances(self) -> Array:
        """Of each."""
        return self._added(np.square(self.paid.deviations))

    def _added(self, of: Array) -> Array:
        return added_up(of, self.goes, len(self.cells))


def added_up(of: Array, goes: NDArray[np.int64], groups: int) -> Array:
    """Numbers added up by the group that each goes to; −1: to none."""
    kept = goes >= 0
    return np.bincount(goes[kept], weights=of[kept], minlength=groups).astype(float)


@dataclass(frozen=True, eq=False)
class Weighted:
    """Numbers as combinations of own measures'.

    Attributes:
        values: The numbers, in steps.
        variances: Of each.
        weights: Of each measure that is in them: a row for each number, over the measure's groups.
    """

    values: Array
    variances: Array
    weights: Sequence[tuple[PaidMeasure, Array]]


def combine(measures: Sequence[PaidMeasure], atoms: Atoms, cells: Cells, attributes: Attributes) -> Weighted | None:
    """A question's numbers by least squares; None where they do not follow, or there is too much to combine.

    Args:
        measures: All of the same thing that is added up, with independent noise.
        atoms: Which rows the question counts, in which groups.
        cells: Its groups.
        attributes: Classes of rows.
    """
    wanted = reads(atoms)
    near = [each for each in measures if reads(each.atoms) & wanted or not reads(each.atoms) or not wanted]
    if len(near) < 2 or not wanted <= frozenset().union(*(reads(each.atoms) for each in near)):
        return None  # it tells rows apart that none of them does
    found = [one for each in near[:_MOST_NEAR] if (one := _marginal(each, atoms, attributes)) is not None]
    chosen = sorted(found, key=lambda each: len(each.cells))[:_MOST_MEASURES]
    while len(chosen) > 1:
        if len(cells) * sum(len(each.goes) for each in chosen) > _MOST_WEIGHTS:
            chosen = chosen[:-1]
            continue
        told = attributes.of(atoms, *(each.atoms for each in chosen))
        if told is not None:
            sizes = tuple(each.size for each in told)
            if math.prod(sizes) <= _MOST_CELLS:
                return _solved(chosen, atoms, cells, told)
        chosen = chosen[:-1]
    return None


def _solved(chosen: Sequence[Marginal], atoms: Atoms, cells: Cells, told: Sequence[Any]) -> Weighted | None:
    from dalenius.measuring.inference.least_squares import Measured, solve

    sizes = tuple(each.size for each in told)
    wanted = sums_of(atoms, cells, told)
    if wanted.empty:
        return None
    measured: list[Measured] = []
    orders: list[NDArray[np.int64]] = []
    kept: list[Marginal] = []
    for each in chosen:
        own = sums_of(each.atoms, each.cells, told)
        order = np.array(own.places, dtype=np.int64)
        product = None if own.empty else own.product()
        if product is None or sorted(order.tolist()) != list(range(product.answers)):
            continue  # not all combinations of its keys are there
        values, variances = np.empty(len(order)), np.empty(len(order))
        values[order], variances[order] = each.values, each.variances
        measured.append(Measured(product, values, variances))
        orders.append(order)
        kept.append(each)
    if not measured:
        return None
    solved = solve(sizes, measured)
    product = wanted.product()
    if not solved.determines(product):
        return None
    places = list(wanted.places)
    spread = np.asarray(solved.covariance(solved.rows(product)))[places]
    shape = tuple(sizes[at] for at in solved.attributes)
    weights = []
    for one, order, each in zip(measured, orders, kept, strict=True):
        applied = np.stack([one.apply(row.reshape(shape), solved.attributes, sizes) for row in spread])
        weights.append((each.paid, (applied / np.asarray(one.variance))[:, order][:, each.goes]))
    return Weighted(solved.answers(product)[places], solved.variances(product)[places], weights)


def _marginal(paid: PaidMeasure, atoms: Atoms, attributes: Attributes) -> Marginal | None:
    """A measure by those of its keys that share columns with a question, however indirectly; the others are added up.

    None where that cannot be: rows are missing that no group of the others counts.
    """
    told = attributes.of(paid.atoms, atoms)
    if told is None:
        return None
    sums = sums_of(paid.atoms, paid.cells, told)
    if sums.empty:
        return None
    own = {*atoms.keys, *atoms.conditions}
    wanted = reads(atoms)
    near = [at for at, each in enumerate(told) if own & set(each.values) or not wanted]
    left = Atoms((), ())
    for at, attribute in enumerate(told):
        if at in near:
            left = replace(
                left,
                keys=(*left.keys, *(key for key in paid.atoms.keys if key in attribute.values)),
                conditions=(*left.conditions, *(one for one in paid.atoms.conditions if one in attribute.values)),
            )
        elif at in sums.parts and min(sums.parts[at]) < 0:
            return None  # some rows are in no group of keys that are added up
    places = [place for place, key in enumerate(paid.atoms.keys) if key in left.keys]
    short = [tuple(cell[place] for place in places) for cell in paid.cells]
    cells = list(dict.fromkeys(short))
    ranks = {cell: rank for rank, cell in enumerate(cells)}
    goes = np.array([ranks[cell] for cell in short], dtype=np.int64)
    whole = math.prod(size for at, size in sums.sizes.items() if at not in near)
    if (np.bincount(goes, minlength=len(cells)) != whole).any():
        return None
    keys = tuple(paid.atoms.keys[place] for place in places)
    return Marginal(paid, Atoms(keys, left.conditions), cells, goes)
