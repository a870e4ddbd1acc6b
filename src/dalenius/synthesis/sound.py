"""Whether a model that was read from JSON is one from which rows can be drawn.

Who sends a model decides what stands in it. What is not as `StoredModel.to_json` writes it is refused before anything
is made of it: numbers that would never let drawing end, places beyond the end of a table, names that are none.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.synthesis.generators.adaptive import PoolModel
from dalenius.synthesis.generators.privbayes import NetworkModel
from dalenius.synthesis.generators.tree import TreeModel
from dalenius.tables.policy import Kind, label_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dalenius.synthesis.modelled import Modelled
    from dalenius.synthesis.sampling import Step
    from dalenius.synthesis.stored import StoredModel
    from dalenius.synthesis.units import MadeUpUnits
    from dalenius.tables.policy import Facts

_MOST_RULES = 100
_MOST_COUNTED = 2.0**53  # rows of a table, and units
_MOST_HELD = 2**36  # rows of one unit: of as many units as rows are drawn, that is within 63 bits
_MOST_STEPS = 2**63  # of a bound from 0
_KEYS: dict[Kind, type] = {Kind.INTEGER: int, Kind.BOOLEAN: bool, Kind.DATE: date}
_ENDS: dict[Kind, type] = {Kind.INTEGER: int, Kind.DATE: date, Kind.DATETIME: datetime}


def check_sound(stored: StoredModel) -> None:
    """Refuses what is no model.

    Raises:
        ValueError: It is none.
    """
    _must(_are(str, stored.table, stored.method))
    _must(all(_is_number(each, math.inf) for each in (stored.epsilon, stored.rho)))
    _must(type(stored.limit) is int and stored.limit > 0)
    for each in stored.domain.columns:
        _check_column(each)
    sizes = stored.domain.domain.sizes  # columns, each of another name
    model = stored.model
    _must(_is_number(model.rows, _MOST_COUNTED))
    if isinstance(model, TreeModel):
        _check_steps(model.steps, sizes)
    elif isinstance(model, NetworkModel):
        shares, groups = model.start.shares, [each for (each,) in model.start.groups]
        _must(len(shares) == len(groups) == len(sizes))
        for size, share, group in zip(sizes, shares, groups, strict=True):
            _check_weights(share, (size,))
            _check_groups(group, size)
        _check_steps(model.steps, [int(each.max()) + 1 for each in groups])
    elif isinstance(model, PoolModel):
        _check_pool(model, sizes)
    if stored.units is not None:
        _check_units(stored.units, len(sizes))


def check_facts(facts: Facts, stored: StoredModel) -> None:
    """Refuses what nobody can know of the rows of this model.

    Raises:
        ValueError: It is no such thing.
    """
    keys = {each.name: set(map(label_of, each.keys)) for each in stored.domain.columns if each.keys is not None}
    _must(_are(str, *facts.rules) and len(facts.rules) <= _MOST_RULES)
    _must(_are(str, *facts.follows, *facts.follows.values()) and facts.values.keys() <= facts.follows.keys())
    for name, of in facts.follows.items():
        _must(of not in facts.follows)
        goes = facts.values.get(name, {})
        if name in keys and of in keys:
            _must(keys[of].issuperset(goes) and keys[name].issuperset(goes.values()))
    for totals in facts.totals.values():
        _must(_are(str, *totals) and _are(int, *totals.values()) and any(totals.values()))
        _must(all(0 <= each <= _MOST_COUNTED for each in totals.values()))


def _must(condition: bool) -> None:
    if not condition:
        raise ValueError


def _are(kind: type, *values: object) -> bool:
    return all(type(each) is kind for each in values)


def _is_number(value: Any, most: float) -> bool:
    """A finite number that is not negative."""
    return type(value) in {int, float} and math.isfinite(value) and 0 <= value <= most


def _check_column(column: Modelled) -> None:
    flags = (column.absent, column.ordered, column.rest)
    _must(_are(str, column.name) and _are(bool, *flags) and not column.sought)
    if column.keys is not None:
        kind = _KEYS.get(column.kind, str)
        _must(all(type(key) is kind for key in column.keys) and len(set(column.keys)) == len(column.keys))
    if column.grid is None:
        _must(column.classes is None)
        return
    grid, ends = column.grid, (column.grid.low, column.grid.high)
    _must(column.keys is None and column.classes is not None)
    _must(column.kind is Kind.NUMBER or all(type(each) is _ENDS[column.kind] for each in ends))
    _must(ends[0] <= ends[1] and (grid.step is None or grid.step > 0))
    if column.kind in {Kind.INTEGER, Kind.NUMBER}:
        _must(all(abs(each / (grid.step or 1)) <= _MOST_STEPS for each in ends))
    if column.classes is not None:
        _check_runs(column.classes.runs, grid.size)


def _check_runs(runs: Sequence[tuple[int, int]], size: int) -> None:
    """Runs of positions, each beginning after the one before."""
    _must(len(runs) > 0 and all(0 <= first <= last < size for first, last in runs))
    _must(all(before[0] < after[0] for before, after in pairwise(runs)))


def _check_weights(found: NDArray[np.float64], shape: Sequence[int]) -> None:
    _must(found.shape == tuple(shape) and bool(np.isfinite(found).all()))


def _check_groups(group: NDArray[np.int32], size: int) -> None:
    _must(group.shape == (size,) and int(group.min()) >= 0 and int(group.max()) < size)


def _check_steps(steps: Sequence[Step], sizes: Sequence[int]) -> None:
    """Every column once, each after those that it depends on."""
    drawn = set[int]()
    for each in steps:
        places = (*each.parents, each.column)
        _must(all(type(at) is int and 0 <= at < len(sizes) for at in places) and len(set(places)) == len(places))
        _must(drawn.issuperset(each.parents) and each.column not in drawn)
        _check_weights(each.table, [sizes[at] for at in places])
        drawn.add(each.column)
    _must(len(drawn) == len(sizes))


def _check_pool(model: PoolModel, sizes: Sequence[int]) -> None:
    pool = model.pool
    _must(pool.columns.ndim == 2 and len(pool.columns) == len(sizes))
    for codes, size in zip(pool.columns, sizes, strict=True):
        _must(int(codes.min()) >= 0 and int(codes.max()) < size)
    _check_weights(pool.weights, (pool.columns.shape[1],))
    _must(float(pool.weights.min()) >= 0 and float(pool.weights.sum()) > 0)
    for view in pool.views:
        _must(list(view.columns) == sorted(set(view.columns)))
        for at, group in zip(view.columns, view.groups, strict=True):
            _check_groups(group, sizes[at])


def _check_units(units: MadeUpUnits, columns: int) -> None:
    _must(_are(str, units.name) and _is_number(units.count, _MOST_COUNTED))
    _check_runs(units.sizes.runs, _MOST_HELD)
    _check_weights(units.shares, (len(units.sizes),))
    _must(float(units.shares.min()) >= 0)
    _must(len(units.alike) == columns and all(each is None or _is_number(each, 1.0) for each in units.alike))
