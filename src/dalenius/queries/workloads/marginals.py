"""Tables of a few attributes each, where all attributes together have more cells than can be counted.

The rows of units are read (`measuring.batches`), each as the classes that it is in, and counted in as many tables as a
strategy needs. Only rows are counted so; sums of values need cells.

Guarantee:
    A row of a unit that has n rows weighs q = min(S, ⌊S·R/n⌋) with S = 2^bits, the same in all tables. So the tables
    are margins of one vector over all cells, v = q·w with w ≥ 0 the unit's rows: whole numbers with ‖v‖₁ = q·n ≤ S·R.
    That is the L1 limit that `blocks` speaks of, and a strategy that reads margins alone measures A·v. Of a unit with
    more rows than `batches.MOST_ROWS` so many are read, and count; the bound is the same.
    All of it is inside of the one look. How many rows there are shows in nothing but what is measured, with its noise,
    and in the time that it takes, for which the release does not wait (`releasing.pacing`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dalenius.measuring._exact import exact_batches
from dalenius.measuring.batches import MOST_ROWS, UnitRows
from dalenius.measuring.canonical import call, plain
from dalenius.measuring.expressions import NULL, Expression, Literal, number
from dalenius.measuring.measures import clip_measure
from dalenius.measuring.pace import UNKNOWN, WORKING, size_class
from dalenius.measuring.plan import Measure, Plan, Statistic, require
from dalenius.queries.rules import Stage
from dalenius.queries.rules.work import limit_work

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.strategies.factors import Numbers
    from dalenius.measuring.strategies.strategy import Strategy
    from dalenius.queries.workloads.attributes import Attribute

BITS = 12  # of what is left of a row, so that heavy units still count
MOST_TABLES = 20_000
MOST_NUMBERS = 10**7  # in all tables together
MOST_CLASSES = 1000  # of one attribute: each is a branch of a CASE
_EXACT = 2**53  # up to which doubles are whole numbers
_UNITS = 2**15  # in one batch
_WIDE = 2**14  # cells of a table that is counted for several: they stay in the processor's cache
_READ, _TABLE = 4.0, 0.006  # seconds for a million rows: to read them, and to count them in one table


@dataclass(frozen=True)
class Weighed:
    """Rows that are read, weighed and counted in tables.

    Attributes:
        attributes: What is told apart, in order.
        plan: What is read: each key has the classes of some of the attributes, as one number.
        packs: Which of them each key has, the first one slowest.
        sizes: How many classes each attribute of the block has.
    """

    attributes: tuple[int, ...]
    plan: Plan
    packs: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]

    @property
    def measure(self) -> Measure:
        """The rows, with their limit."""
        (found,) = self.plan.measures
        return found


def weigh_rows(
    first: Plan, where: Expression, attributes: Sequence[Attribute], told: Sequence[int], rows: Measure, kind: str
) -> Weighed | None:
    """What is read for tables of some attributes; None where one of them has too many classes."""
    sizes = tuple(each.size for each in attributes)
    if any(sizes[at] > MOST_CLASSES for at in told):
        return None
    packs: list[tuple[int, ...]] = []
    for at in told:
        last = packs[-1] if packs else ()
        if last and math.prod(sizes[each] for each in last) * sizes[at] < _EXACT:
            packs[-1] = (*last, at)
        else:
            packs.append((at,))
    keys = tuple(_packed([attributes[at] for at in pack]) for pack in packs)
    counted = clip_measure(rows, rows.clip, "l1", first.neighbors, BITS)
    plan = replace(
        first,
        where=where,
        keys=keys,
        cells=(),
        groups=None,
        statistics=(Statistic(kind, (counted,)),),
        answers={},
        norm="l1",
        notes=(),
    )
    return Weighed(tuple(told), require(limit_work(Stage("", {}, plan=plan)).plan), tuple(packs), sizes)


def seconds_for(weighed: Weighed, tables: int, speed: float) -> float:
    """How long it takes to read and count: a function of public things, as `measuring.pace` has them."""
    known = [each.found for each in weighed.plan.table.relation.tables()]
    rows = sum(size_class(each.row_count if each is not None and each.row_count > 0 else UNKNOWN) for each in known)
    return WORKING * speed * (_READ + _TABLE * tables) * rows / 1_000_000


def can_count(strategy: Strategy, sizes: Sequence[int]) -> bool:
    """Whether the tables that a strategy reads are few and small enough."""
    tables = strategy.tables
    if len(tables) > MOST_TABLES:
        return False
    return sum(math.prod(sizes[at] for at in each) for each in tables) <= MOST_NUMBERS


def _packed(own: Sequence[Attribute]) -> Expression:
    """The classes of some attributes as one number; NULL where a row has none in one of them."""
    found: Expression = _numbered(own[0])
    for each in own[1:]:
        found = plain("add", plain("mul", found, number(each.size)), _numbered(each))
    return found


def _numbered(attribute: Attribute) -> Expression:
    """The number of a row's class."""
    if attribute.classes == tuple((float(at),) for at in range(attribute.size)):
        return attribute.keys[0]  # it is that already
    cases: list[Expression] = []
    for at, values in enumerate(attribute.classes):
        equal = [plain("eq", key, Literal(value, key.type)) for key, value in zip(attribute.keys, values, strict=True)]
        cases += [call("and", *equal), number(at)]
    return plain("case", *cases, NULL)


def count_tables(
    weighed: Weighed, tables: Sequence[tuple[int, ...]], engine: Engine, salt: str, seconds: float
) -> dict[tuple[int, ...], Numbers]:
    """The exact integers of some tables, in 2^bits parts of a row. Inside of a look and nowhere else."""
    import numpy as np

    sizes = weighed.sizes
    wider = wider_tables(tables, sizes)
    found = {each: np.zeros(math.prod(sizes[at] for at in each), dtype=np.int64) for each in set(wider.values())}
    bundles = _bundles(sorted({at for each in found for at in each}), sizes)
    for codes, weights in _read(weighed, engine, salt, seconds):
        bundled = {each: _numbered_together(codes, each, sizes) for each in bundles}
        for told in tuple(found):
            # Whole numbers below 2⁵³, so that doubles add them up exactly: a batch has fewer than 2⁴¹ rows.
            counts = np.bincount(_cells_of(told, codes, bundled, sizes), weights, found[told].size)
            found[told] += counts.astype(np.int64)
    shaped = {told: table.reshape([sizes[at] for at in told]) for told, table in found.items()}
    return {told: _margin(shaped[wider[told]], wider[told], told) for told in tables}


def wider_tables(tables: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """For each table one that it is a margin of, so that few are counted: going through rows is what takes time.

    Attributes are bundled, a few small ones each, and whatever tells some of a bundle apart may as well tell all of it.

    >>> wider_tables([(0, 2), (1, 2), (0, 3), (4,)], [10, 10, 10, 10, 2000])
    {(0, 2): (0, 1, 2, 3), (1, 2): (0, 1, 2, 3), (0, 3): (0, 1, 2, 3), (4,): (4,)}
    """
    bundle = {at: each for each in _bundles(sorted({at for told in tables for at in told}), sizes) for at in each}
    found = {}
    for told in tables:
        wide = tuple(sorted({other for at in told for other in bundle[at]}))
        found[told] = wide if math.prod(sizes[at] for at in wide) <= _WIDE else told
    return found


def _bundles(attributes: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for at in attributes:
        last = found[-1] if found else ()
        if last and math.prod(sizes[each] for each in (*last, at)) ** 2 <= _WIDE:
            found[-1] = (*last, at)
        else:
            found.append((at,))
    return found


def _cells_of(
    told: tuple[int, ...], codes: Mapping[int, Any], bundled: Mapping[tuple[int, ...], Any], sizes: Sequence[int]
) -> Any:
    """The number of each row's cell in a table: from bundles, where it has whole ones only."""
    whole = [each for each in bundled if set(each) <= set(told)]
    if told and sum(map(len, whole)) == len(told):
        return _combined([(bundled[each], math.prod(sizes[at] for at in each)) for each in whole])
    return _numbered_together(codes, told, sizes)


def _numbered_together(codes: Mapping[int, Any], told: Sequence[int], sizes: Sequence[int]) -> Any:
    """The same, attribute by attribute; of a table without any, all rows are in one cell."""
    if not told:
        return next(iter(codes.values())) * 0
    return _combined([(codes[at], sizes[at]) for at in told])


def _combined(parts: Sequence[tuple[Any, int]]) -> Any:
    cell = parts[0][0]
    for own, size in parts[1:]:
        cell = cell * size + own
    return cell


def _margin(table: Numbers, own: tuple[int, ...], told: tuple[int, ...]) -> Numbers:
    left = tuple(place for place, at in enumerate(own) if at not in told)
    return table.sum(axis=left) if left else table


def _read(weighed: Weighed, engine: Engine, salt: str, seconds: float) -> Iterator[tuple[dict[int, Any], Any]]:
    """Of each batch the classes of its rows, by attribute, and what each row weighs."""
    import numpy as np

    plan, limit = weighed.plan, weighed.measure.limit
    whole = 1 << weighed.measure.bits
    # Rows without a class are left out here: as a condition, all keys would be worked out a second time.
    reading = UnitRows(plan.table, plan.keys, MOST_ROWS, plan.where)
    for batch in exact_batches(reading, engine, salt, units=_UNITS, seconds=seconds):
        there = ~np.logical_or.reduce(batch.absent)
        upto = np.concatenate([[0], there.cumsum()])
        held = upto[batch.starts[1:]] - upto[batch.starts[:-1]]
        weights = np.repeat(np.minimum(whole, limit // np.maximum(held, 1)), held)
        codes: dict[int, Any] = {}
        for pack, values in zip(weighed.packs, batch.values, strict=True):
            left = values[there].astype(np.int64)
            for at in reversed(pack):
                left, code = np.divmod(left, weighed.sizes[at])
                codes[at] = code.astype(np.int32)
        yield codes, weights.astype(float)
