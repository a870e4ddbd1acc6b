"""Pairs of unit and key, counted once in memory, where keys are not public: both looks of such a question need them.

keys     each key that occurs, with its rows; its place is its code                        (a SELECT)
rows     the unit and the code of each row, in blocks that leave no unit apart             (a SELECT each)
pairs    rows sorted by unit and code, in each block: how many of each, and how many keys a unit has
weights  ⌊2²⁰/√m⌋ summed over the units of each key, as `keys` says
counts   rows of each key, less what clipping takes off the units with too many, as `sums` says

It is speed, never meaning: the integers are those of the statements in `keys` and `sums`, to the last one. To sort
numbers is far less work than to let DuckDB group by unit and key, and that once instead of twice. Whatever is unusual
(several columns for a unit, periods, grouping sets, very many rows, an engine without columns) goes the general way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from dalenius.errors import EngineFailedError
from dalenius.measuring.engines.duckdb.metering import helping
from dalenius.measuring.engines.duckdb.statements import source
from dalenius.measuring.engines.duckdb.statements.sums import LINEAR, Compiler
from dalenius.measuring.expressions import TRUE
from dalenius.mechanisms.key_selection import KeySelection

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.duckdb.statements import Runner
    from dalenius.measuring.plan import Measure, Plan

    Integers = NDArray[np.int64]

# Of so many rows no square of a length reaches 2⁵³, and no sum of weights, so doubles hold them exactly. A row takes
# about 64 bytes (measured), mostly while it is sorted: 2 GB beside the engine's own.
MOST_ROWS = 2**25
MOST_BYTES = 2**29  # of units that are texts
_FEW = 2**16  # rows that are not worth a second thread
_MOST_BLOCKS = 4  # each reads the source anew

# Types whose equal values are the same in Arrow, and come back from it as they went.
_UNITS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "VARCHAR"})
_UNITS |= frozenset({"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"})
_KEYS = frozenset({"string", "double", "bool", "date32[day]", "timestamp[us]"})

Fetch = Callable[..., "pa.Table"]  # an engine's `arrow`
S = TypeVar("S")
T = TypeVar("T")


class HeldPairs:
    """The pairs of one question, counted when they are first asked for, so that its looks can share them."""

    def __init__(self, plan: Plan, engine: Runner, salt: str, seconds: float) -> None:
        self._asked = (plan, engine, salt, seconds)

    @cached_property
    def pairs(self) -> PairCounts | None:
        """None where the general way must do."""
        return count_pairs(*self._asked)

    def counts(self, plan: Plan) -> list[list[int]] | None:
        """Each measure's exact integers, one per cell, where all are numbers of rows in groups that are found."""
        linear = plan.only(LINEAR)
        plain = all(each.kind == "rows" and each.measures[0].where == TRUE for each in linear.statistics)
        if plan.sets or not plain or plan.norm != "l2" or plan.groups is not None:
            return None
        pairs = self.pairs
        return None if pairs is None else pairs.counts(linear.measures, plan.cells)


def count_pairs(plan: Plan, engine: Runner, salt: str, seconds: float) -> PairCounts | None:
    """Looks at the data: the pairs of all units, or None where they are not for this way.

    Which way is taken depends on the question, on types and on how large the whole table is, which no question can
    move: not on what single units hold, nor on how many rows a condition leaves.
    """
    fetch: Fetch | None = getattr(engine, "arrow", None)
    extent: Callable[..., tuple[int, int]] | None = getattr(engine, "extent", None)
    made, unit = Keyed(plan), plan.table.policy.unit
    if fetch is None or extent is None or plan.selection is None or plan.sets or made.period is not None:
        return None
    read = made.read(engine.scan, engine.columns, salt)
    size = partial(extent, unit[0], seconds=seconds)
    return pair_rows(partial(fetch, seconds=seconds), read, made.keys, unit, engine.columns, size)


def pair_rows(
    fetch: Fetch,
    read: str,
    keys: Sequence[str],
    unit: Sequence[str],
    types: Mapping[str, str],
    extent: Callable[[], tuple[int, int]],
) -> PairCounts | None:
    """The pairs of the rows in ``kept``, which a WITH in ``read`` makes: a unit u0 and keys, none of them NULL.

    Args:
        fetch: Runs a SELECT over some tables besides, and gives columns.
        read: The beginning of each SELECT.
        keys: The columns that are keys.
        unit: The columns of the source that make a unit; more than one are not for this way.
        types: Their types.
        extent: How many rows the whole table has, and how many bytes the texts of its units.
    """
    import numpy as np
    import pyarrow as pa

    type_ = types.get(unit[0], "").upper()
    if len(unit) > 1 or type_ not in _UNITS:
        return None
    size, texts = extent()
    if size > MOST_ROWS or texts > MOST_BYTES:
        return None
    by = ", ".join(keys)
    found = fetch(f"{read}\nSELECT {by}, count(*) AS n FROM kept GROUP BY {by}", {})
    kinds = {str(found.schema.field(name).type) for name in keys}
    if not kinds <= _KEYS:
        return None
    rows = int(found["n"].to_numpy().sum())
    codes = found.select(keys).append_column("code", pa.array(np.arange(found.num_rows, dtype=np.int32)))
    blocks = 1 if size < _FEW else min(_MOST_BLOCKS, _cores())
    same = " AND ".join(f"kept.{key} = codes.{key}" for key in keys)
    own = [f" WHERE hash(u0) % {blocks} = {number}" if blocks > 1 else "" for number in range(blocks)]
    joined = f"{read}\nSELECT u0, code FROM kept JOIN codes ON {same}"
    tables = [fetch(joined + where, {"codes": codes}) for where in own]
    if sum(table.num_rows for table in tables) != rows or rows > 2 * MOST_ROWS:
        raise EngineFailedError("The engine failed.", why="On a second look there were other rows.", fix="Ask again.")
    bits = max(1, found.num_rows - 1).bit_length()
    return PairCounts(codes, found["n"].to_numpy().astype(np.int64), _each(partial(Block.of, bits=bits), tables), fetch)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _each(work: Callable[[S], T], parts: Sequence[S]) -> list[T]:
    """Some work on each part, at the same time: nearly all of it is done outside of Python's lock."""
    if len(parts) == 1:
        return [work(parts[0])]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(helping(work), parts))


class Keyed(Compiler):
    """Writes the rows, kept as `keys` keeps them."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(replace(plan.only(()), groups=None))

    def read(self, scan: str, types: Mapping[str, str], salt: str) -> str:
        """WITH … kept AS …: the rows that have all their keys."""
        there = " AND ".join(f"{key} IS NOT NULL" for key in self.keys)
        read = source.source_sql(self.plan, scan, types, salt)
        return f"WITH {read},\nclean AS ({self.clean()}),\nkept AS (SELECT * FROM ({self.kept()}) WHERE {there})"  # noqa: S608


@dataclass(frozen=True)
class Block:
    """The pairs of some units, in the order of units: their keys' codes and rows; and of each unit, how many it has."""

    units: pa.Array
    codes: Integers
    rows: Integers
    held: Integers
    starts: Integers

    @classmethod
    def of(cls, table: pa.Table, bits: int) -> Block:
        """The pairs of some rows (u0, code); ``bits`` are those of a code."""
        import numpy as np

        encoded = table["u0"].combine_chunks().dictionary_encode()  # of many chunks it would be slow
        units = encoded.dictionary
        # A unit's number, and beside it the code: one integer to sort by. Half as wide it takes half the time.
        type_: Any = np.uint64 if len(units).bit_length() + bits > 32 else np.uint32
        packed: NDArray[Any] = encoded.indices.to_numpy().astype(type_)
        packed <<= type_(bits)
        packed |= table["code"].to_numpy().astype(type_)
        packed.sort()
        edges = _edges(packed)
        pairs = packed[edges[:-1]]
        starts = _edges(pairs >> type_(bits))
        codes = (pairs & type_(2**bits - 1)).astype(np.int64)
        return cls(units, codes, np.diff(edges), np.diff(starts), starts[:-1])

    @cached_property
    def squares(self) -> Integers:
        """Σn² of each unit."""
        import numpy as np

        return np.add.reduceat(self.rows * self.rows, self.starts) if len(self.rows) else self.rows

    def weighed(self, cap: int, size: int) -> Integers:
        """The weights that units with no more keys than the cap give to each code."""
        import numpy as np

        each = np.array([0, *(KeySelection.weight(m) for m in range(1, cap + 1)), 0], dtype=np.float64)
        own = each[np.minimum(self.held, cap + 1)]
        return np.bincount(self.codes, np.repeat(own, self.held), size).astype(np.int64)

    def beyond(self, clip: int) -> pa.Table:
        """The pairs of units whose length is beyond a clip: code, n rows, norm2 = Σn² of that unit."""
        import numpy as np
        import pyarrow as pa

        heavy = self.squares > min(clip, 2**31) ** 2
        which, norms = np.repeat(heavy, self.held), np.repeat(self.squares[heavy], self.held[heavy])
        return pa.table({"code": self.codes[which], "n": self.rows[which], "norm2": norms})

    def many(self, cap: int) -> pa.Table:
        """The pairs of units with more keys than the cap: u0, code, n rows, m keys of that unit."""
        import numpy as np
        import pyarrow as pa

        heavy = self.held > cap
        which, held = np.repeat(heavy, self.held), self.held[heavy]
        units = np.repeat(np.flatnonzero(heavy), held)  # which has no gaps: units are numbered as they come
        return pa.table(
            {
                "u0": self.units.take(pa.array(units)),
                "code": self.codes[which],
                "n": self.rows[which],
                "m": np.repeat(held, held),
            }
        )

    def norms(self) -> pa.Table:
        """Each unit: u0, Σn² as norm2, and its number of keys, m."""
        import pyarrow as pa

        return pa.table({"u0": self.units, "norm2": self.squares, "m": self.held})

    def shared(self, size: int) -> pa.Table:
        """How many units with m keys have a code: code, m, units."""
        import numpy as np
        import pyarrow as pa

        most = int(self.held.max(initial=0)) + 1
        places = self.codes * most + np.repeat(self.held, self.held)
        if size * most <= 4 * len(places):
            counts = np.bincount(places)
            found = np.flatnonzero(counts)
            counts = counts[found]
        else:
            found, counts = np.unique(places, return_counts=True)
        return pa.table({"code": found // most, "m": found % most, "units": counts})


@dataclass(frozen=True)
class PairCounts:
    """All pairs of a question. ``codes`` has its keys by their codes, ``rows`` how many rows each has."""

    codes: pa.Table
    rows: Integers
    blocks: Sequence[Block]
    fetch: Fetch

    @cached_property
    def cells(self) -> list[Cell]:
        """The keys, by their codes."""
        names = [name for name in self.codes.column_names if name != "code"]
        return list(zip(*(self.codes[name].to_pylist() for name in names), strict=True))

    def weights(self, cap: int, order: str) -> list[int]:
        """Each key's weight; ``order`` is that of `keys`, which decides for units with more keys than the cap.

        A unit with m keys adds ⌊2²⁰/√min(m, cap)⌋ to at most cap of them: adding or removing it changes the weights by
        at most 2²⁰ in L2 (`mechanisms.key_selection`). A key that no unit chose weighs 0, and must not be released.
        """
        size = self.codes.num_rows
        found = _sum(_each(partial(Block.weighed, cap=cap, size=size), self.blocks), size)
        chosen = self.fetch(
            f"""WITH p AS (SELECT many.u0, codes.* FROM many JOIN codes ON many.code = codes.code),
chosen AS (SELECT p.code FROM p QUALIFY row_number() OVER (PARTITION BY p.u0 ORDER BY {order}) <= {cap})
SELECT code, count(*) AS n FROM chosen GROUP BY code""",  # noqa: S608
            {"many": self.many(cap), "codes": self.codes},
        )
        found[chosen["code"].to_numpy()] += chosen["n"].to_numpy() * KeySelection.weight(cap)
        values: list[int] = found.tolist()
        return values

    def many(self, cap: int) -> pa.Table:
        """As `Block.many`, of all units."""
        return self._together(partial(Block.many, cap=cap))

    def norms(self) -> pa.Table:
        """As `Block.norms`, of all units."""
        return self._together(Block.norms)

    def shared(self) -> pa.Table:
        """As `Block.shared`, of all units: what is to be added up by code and m."""
        return self._together(partial(Block.shared, size=self.codes.num_rows))

    def _together(self, work: Callable[[Block], pa.Table]) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables(_each(work, self.blocks))

    def counts(self, measures: Sequence[Measure], cells: Sequence[Cell]) -> list[list[int]]:
        """The rows in each cell, for each measure at its clip C, in S = 2^bits parts of a row (`measures`).

        A unit's vector n of rows over all keys is brought within S·C in L2, ⌊S·n·S·C/k⌋ with k = ⌈‖S·n‖⌉: adding or
        removing it changes the counts by at most that, whichever of them are then shown (`measuring.measures`).
        """
        places, found = {cell: at for at, cell in enumerate(self.cells)}, []
        for measure in measures:
            left = [rows << measure.bits for rows in self.rows.tolist()]
            for code, lost in self._lost(measure):
                left[code] -= lost
            found.append([left[places[cell]] if cell in places else 0 for cell in cells])
        return found

    def _lost(self, measure: Measure) -> Iterable[tuple[int, int]]:
        """Of each code, what clipping takes: S·n − ⌊S·n·S·C/k⌋ of units with ‖n‖ > C. The root is that of `sums`.

        It takes more than 64 bits, so that is DuckDB's. Below 2¹⁰⁴ the root of a double is off by less than one; norms
        are below 2⁵³ here, and parts at most 2²⁵.
        """
        parts = 2**measure.bits
        lost = self.fetch(
            f"""WITH scaled AS (SELECT code, CAST(n AS HUGEINT) * {parts} AS w,
CAST(norm2 AS HUGEINT) * {parts * parts} AS q FROM beyond),
near AS (SELECT code, w, q, CAST(floor(sqrt(CAST(q AS DOUBLE))) AS HUGEINT) + 1 AS r FROM scaled),
roots AS (SELECT code, w,
CASE WHEN r * r < q THEN r + 1 WHEN (r - 1) * (r - 1) >= q THEN r - 1 ELSE r END AS k FROM near)
SELECT code, CAST(sum(w - (w * {measure.limit}) // k) AS BIGINT) AS lost FROM roots GROUP BY code""",  # noqa: S608
            {"beyond": self._together(partial(Block.beyond, clip=measure.clip))},
        )
        return zip(lost["code"].to_pylist(), lost["lost"].to_pylist(), strict=True)


def _sum(parts: Iterable[Integers], size: int) -> Integers:
    import numpy as np

    return sum(parts, np.zeros(size, dtype=np.int64))


def _edges(ordered: NDArray[Any]) -> Integers:
    """Where each run of equal values begins, and where the last one ends."""
    import numpy as np

    if not len(ordered):
        return np.zeros(1, dtype=np.int64)
    inside = np.flatnonzero(ordered[1:] != ordered[:-1])
    inside += 1
    return np.concatenate([[0], inside, [len(ordered)]])
