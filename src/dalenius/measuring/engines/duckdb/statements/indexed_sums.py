"""Sums over units with a contribution index: most units go through the plain aggregate.

plain    all rows, summed per group, as if nobody had to be clipped
heavy    the units whose bound in the index is beyond a limit of the plan
source … clipped   the steps of `sums`, on the rows of heavy units alone
…        plain + clipped − what the heavy units had added to plain

A unit that is not heavy would be scaled by k/k: (w·k)//k = w, so plain already holds its part. To take more units for
heavy than there are changes nothing, since clipping leaves what is within the limit as it is; that is why a unit's
periods need no telling apart there. So the integers are those of `sums`, to the last one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.index import CEILING, Bound
from dalenius.measuring.engines.duckdb.rendering import Renderer, double, heavier, identifier
from dalenius.measuring.engines.duckdb.statements import IndexedSelect, run_indexed, source, sums
from dalenius.measuring.engines.duckdb.statements.pairs import HeldPairs
from dalenius.measuring.engines.duckdb.statements.sums import (
    LINEAR,
    Compiler,
    grouped_by,
    in_parts,
    integer_type,
    with_steps,
)
from dalenius.measuring.expressions import TRUE, Call, Column, Expression, Key, Type, columns_of
from dalenius.measuring.work import TWICE, work_of

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.index import Index
    from dalenius.measuring.engines.duckdb.statements import Runner, Select
    from dalenius.measuring.plan import Measure, Plan


def run(
    plan: Plan, part: Select, engine: Runner, salt: str, seconds: float, held: HeldPairs | None = None
) -> list[list[int]]:
    """Each measure's exact integers, one per cell: with the index where there is a valid one, else the general way.

    Where keys are found, that is by the pairs of unit and key, if they will do; ``held`` may have them already.
    """
    rows = run_indexed(plan.table, engine, lambda index: statement(plan, index, engine, salt), seconds)
    if rows is not None:
        return sums.vectors(plan, part, rows)
    counts = None
    if plan.selection is not None:
        counts = (held or HeldPairs(plan, engine, salt, seconds)).counts(plan)
    return sums.run(plan, part, engine, salt, seconds) if counts is None else counts


def statement(plan: Plan, index: Index, engine: Runner, salt: str) -> IndexedSelect | None:
    """The SELECT that uses an index; None where that is of no help.

    What runs does not depend on how many units are heavy: it could be seen.
    """
    linear = plan.only(LINEAR)
    alone = from_index(linear, index)
    if alone is not None:
        return IndexedSelect(alone)
    whole = IndexedSums(linear, index)
    if whole.bounds is None:
        return None
    return IndexedSelect(whole.whole(engine.scan, engine.columns, salt), index.looked_at(whole.bounds))


def from_index(plan: Plan, index: Index) -> str | None:
    """The SELECT over the index alone, where it holds all that is asked: whole tables without groups or conditions.

    One unit's total w ≥ 0 becomes trunc(w·C/w) = C where it is beyond its limit C, which is least(w, C).
    """
    if plan.keys or plan.where != TRUE or any(len(each.measures) > 1 for each in plan.statistics):
        return None
    most, parts = Compiler(plan).most, []
    for at, measure in enumerate(plan.measures):
        if measure.where != TRUE:
            return None
        column = _held(plan, measure, index)
        if column is None:
            return None
        limit = min(measure.clip, most >> measure.bits)
        total = "count(*)" if measure.kind == "units" else f"sum(least({column}, {limit}))"
        signed = f"-{total}" if measure.low < 0 else total
        parts.append(f"{in_parts(measure, signed)} AS w{at}")
    return f"SELECT {', '.join(parts)} FROM {index.layout.files[0].scan}"  # noqa: S608


def _held(plan: Plan, measure: Measure, index: Index) -> str | None:
    """The column of the index that is, but for its sign, a unit's whole sum."""
    if measure.kind in {"rows", "units"}:
        return "n"
    if measure.kind != "sum" or not isinstance(measure.value, Column) or measure.low < 0 < measure.high:
        return None
    bound = index.bound(plan, measure, CEILING)
    return bound.column if bound is not None and bound.column.startswith("t") else None


class IndexedSums(Compiler):
    """Writes the SELECT of one plan with the help of an index.

    ``bounds`` are the limits in terms of the index; None where some measure has none, and the general way must do.
    """

    def __init__(self, plan: Plan, index: Index) -> None:
        super().__init__(plan)
        self.index = index
        self.bounds = self._bounds()

    def whole(self, scan: str, types: Mapping[str, str], salt: str) -> str:
        """The whole SELECT."""
        measured = zip(self.plan.measures, self.weights, strict=True)
        raw = ", ".join([*self.keys, *(f"{in_parts(each, f'-r{name}')} AS {name}" for each, name in measured)])
        steps = [
            ("plain", plain_sums(self.plan, self.index.nobody, scan, types)),
            *self.heavy_steps(scan, types, salt),
            ("clipped", self.clipped(self.vectors)),
            ("raw", f"SELECT {raw} FROM sums"),  # noqa: S608
        ]
        # The rows of heavy units are few. Kept once found: DuckDB would else try later conditions on all rows first.
        body = with_steps(steps, {"source": "MATERIALIZED "})
        shown = ", ".join([*self.keys, *self.weights])
        together = " UNION ALL ".join(f"SELECT {shown} FROM {part}" for part in ("plain", "clipped", "raw"))  # noqa: S608
        totals = ", ".join([*self.keys, *(f"sum({each}) AS {each}" for each in self.weights)])
        return f"WITH {body}\nSELECT {totals} FROM ({together}){grouped_by(self.keys)}"

    def heavy_steps(self, scan: str, types: Mapping[str, str], salt: str) -> list[tuple[str, str]]:
        """The steps up to `factors`: heavy units with their exact factor p/q for each statistic of the plan.

        `factors` has the unit (u0, …, period) and p0, q0, p1, q1, … For units that are not in it every factor is 1; it
        may hold some whose factor is 1 too. `source` has the rows of heavy units only. A statement that weighs rows can
        take these steps into its WITH and LEFT JOIN `factors` on the unit.
        """
        return [("heavy", self.heavy()), ("source", self.source(scan, types, salt)), *self.steps_to_factors()]

    def heavy(self) -> str:
        """The units that some limit may cut; and any one, so that there always is one.

        DuckDB does not read the rows to look for nobody: one unit beyond a limit would be seen by the time it takes.
        """
        units = ", ".join(f"u{at} AS h{at}" for at in range(len(self.plan.table.policy.unit)))
        by_file: dict[str, list[str]] = {}
        for bound in self.bounds or ():
            by_file.setdefault(bound.file.scan, []).append(f"{bound.column} > {bound.most}")
        parts = [
            f"SELECT {units} FROM {scan} WHERE {' OR '.join(dict.fromkeys(over))}"  # noqa: S608
            for scan, over in by_file.items()
        ]
        parts.append(f"(SELECT {units} FROM {self.index.layout.files[0].scan} LIMIT 1)")  # noqa: S608
        return " UNION ALL ".join(parts)

    def source(self, scan: str, types: Mapping[str, str], salt: str) -> str:
        """The rows of heavy units."""
        unit = self.plan.table.policy.unit
        same = " AND ".join(f"t.{identifier(name)} = heavy.h{at}" for at, name in enumerate(unit))
        made = source.source_sql(self.plan, f"{scan} AS t SEMI JOIN heavy ON {same}", types, salt)
        return made.removeprefix("source AS (").removesuffix(")")

    def sums(self) -> str:
        """One vector per heavy unit, and beside it what its rows add to `plain`, before any clamping."""
        raw = ", ".join(f"sum({each}) AS r{each}" for each in self.weights)
        return super().sums().replace(" FROM kept", f", {raw} FROM kept", 1)

    def _bounds(self) -> Sequence[Bound] | None:
        sets = max(1, len(self.plan.sets))
        clips = [min(each.clip, self.most >> each.bits) for each in self.plan.measures]
        most = [limit_per_set(each, sets, self.plan.norm) for each in clips]
        found = [self.index.bound(self.plan, *each) for each in zip(self.plan.measures, most, strict=True)]
        if self.plan.groups is not None:
            found.append(self.index.groups(self.plan))
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None


def limit_per_set(most: int, sets: int, norm: str) -> int:
    """The limit in each grouping set that keeps a unit's vector over all of them within ``most``.

    What an index bounds is a vector over the groups of one set. ‖w‖² = Σ‖wⱼ‖² ≤ s·c² in L2, and ‖w‖ ≤ s·c in L1.

    >>> limit_per_set(10, 1, "l2"), limit_per_set(10, 3, "l2"), limit_per_set(10, 3, "l1")
    (10, 5, 3)
    """
    return math.isqrt(most * most // sets) if norm == "l2" else most // sets


def plain_sums(plan: Plan, nobody: bool, scan: str, types: Mapping[str, str]) -> str:
    """The sums over all rows. With grouping sets, rows are summed by all keys, and those sums once for each set."""
    if not plan.sets:
        return PlainSums(plan, nobody=nobody).whole(scan, types)
    number, *keys = plan.keys
    parts = [_own(key, at, all(at in each for each in plan.sets)) for at, key in enumerate(keys)]
    once = PlainSums(replace(plan, keys=tuple(own for own, _ in parts), sets=()), nobody=nobody)
    renderer, all_ = Renderer({}, keys=dict(enumerate(once.keys))), Compiler(plan)
    texts = (renderer.sql(each) for each in (number, *(shown for _, shown in parts)))
    shown = ", ".join([*(f"{text} AS {key}" for text, key in zip(texts, all_.keys, strict=True)), *all_.weights])
    return f"SELECT {shown} FROM ({once.whole(scan, types)}) CROSS JOIN {all_.numbers()}"  # noqa: S608


def _own(key: Expression, at: int, everywhere: bool) -> tuple[Expression, Expression]:
    """A key as rows have it, and what each set makes of that: itself, or a constant where the set lacks it."""
    stand_in = Key(at, key.type)
    if everywhere or not isinstance(key, Call):
        return key, stand_in
    there, own, absent = key.arguments
    return own, replace(key, arguments=(there, stand_in, absent))


class PlainRows(Compiler):
    """All rows, as if nobody had to be clipped: no step per unit at all.

    Args:
        plan: What is measured.
        nobody: Whether some rows have no unit. No unit's rows can change that.
    """

    def __init__(self, plan: Plan, *, nobody: bool) -> None:
        super().__init__(replace(plan, groups=None))
        # With periods it is always asked: a row without one belongs to nobody, and is somebody's all the same.
        self.nobody = nobody or self.period is not None
        self.ballast = heavier(work_of(plan) * TWICE)

    def casts(self, types: Mapping[str, str]) -> list[str]:
        """The columns that are read, each in its declared type."""
        columns = self.plan.table.policy.columns
        return [f"{source.cast(columns[name], types)} AS {column}" for name, column in self.columns.items()]

    def owned(self, types: Mapping[str, str]) -> str:
        """WHERE: the rows that belong to somebody."""
        return f" WHERE {source.there(self.plan.table.policy.unit, types)}" if self.nobody else ""

    def kept_only(self) -> str:
        """WHERE: the rows that count."""
        conditions = [] if self.plan.where == TRUE else [self.renderer.sql(self.plan.where)]
        if self.period is not None:
            conditions.append(f"{self.renderer.sql(self.period)} IS NOT NULL")
        return self.counting(conditions)


class PlainSums(PlainRows):
    """Writes the sums over all rows.

    It may give a group more than once, and groups that are not the plan's, such as that of NULL.
    """

    def __init__(self, plan: Plan, *, nobody: bool) -> None:
        super().__init__(plan, nobody=nobody)
        self.late = self._late()

    def whole(self, scan: str, types: Mapping[str, str]) -> str:
        """The SELECT, per group."""
        read = f"SELECT {', '.join(self.casts(types)) or '1'} FROM {scan}{self.owned(types)}"  # noqa: S608
        keys = [self.late.get(key, key) for key in self.keys]
        parts = [f"{text} AS {key}" for text, key in zip(keys, self.keys, strict=True)]
        parts += [f"{in_parts(each, name)} AS {name}" for each, name in self._measured()]
        shown = ", ".join(parts)
        return (
            f"WITH source AS ({read}), clean AS ({self.clean()}), kept AS ({self.kept()}), "  # noqa: S608
            f"sums AS ({self.sums()}) SELECT {shown} FROM sums"
        )

    def clean(self) -> str:
        """Every column within its policy, but for those that are cleaned late; no unit."""
        policy = self.plan.table.policy
        late = {key.name for key, name in self._keyed() if name in self.late and isinstance(key, Column)}
        parts = [
            column if name in late else f"{source.clean(policy.columns[name], column)} AS {column}"
            for name, column in self.columns.items()
        ]
        return f"SELECT {', '.join(parts) or '1'} FROM source"  # noqa: S608

    def kept(self) -> str:
        """The rows that count, with their groups and integers."""
        parts = [f"{self.key(key)} AS {name}" for key, name in self._keyed()]
        parts += [f"{self.integer(each)} AS {name}" for each, name in self._measured()]
        return f"SELECT {', '.join(parts)} FROM clean{self.kept_only()}"  # noqa: S608

    def integer(self, measure: Measure) -> str:
        """What one row adds, or NULL for nothing, which is less work than adding 0."""
        if measure.value is None:
            return "1" if measure.where == TRUE else f"CASE WHEN {self.renderer.sql(measure.where)} THEN 1 END"
        if measure.kind == "sum" and measure.where == TRUE and self._short(measure):
            return self.scaled(measure, self.renderer.sql(measure.value))  # of NULL it is NULL
        return super().integer(measure)

    @staticmethod
    def _short(measure: Measure) -> bool:
        """Whether a column's integers are so small that nothing but rounding is needed.

        Past that, least() and greatest() hold them in their range, and those skip a NULL: it would count as a bound.
        """
        return isinstance(measure.value, Column) and max(abs(measure.low), abs(measure.high)) < 2**31

    def scaled(self, measure: Measure, value: str) -> str:
        """As it is, where a column's own bounds hold it in the measure's: floor(x/step + ½) never falls as x grows."""
        if self._short(measure):
            short = max(abs(end + measure.centre) for end in (measure.low, measure.high)) < 2**31
            # Sums of 32 bits are as wide, and faster. A square or a product has the type of its factors.
            type_ = "INTEGER" if short and measure.kind == "sum" else integer_type(measure)
            rounded = f"CAST(floor({value} / {double(float(measure.step))} + 0.5e0) AS {type_})"
            return f"({rounded} - {measure.centre})" if measure.centre else rounded
        return super().scaled(measure, value)

    def sums(self) -> str:
        """All rows of a group."""
        parts = list(self.keys)
        for measure, name in self._measured():
            counted = "count(*)" if measure.where == TRUE else f"count({name})"
            parts.append(f"{counted if measure.kind == 'rows' else f'coalesce(sum({name}), 0)'} AS {name}")
        return f"SELECT {', '.join(parts)} FROM kept{grouped_by(self.keys)}"  # noqa: S608

    def _keyed(self) -> Sequence[tuple[Expression, str]]:
        return list(zip(self.plan.keys, self.keys, strict=True))

    def _late(self) -> dict[str, str]:
        """Keys that are cheaper to clean per group than per row: texts with declared keys that nothing else reads."""
        expressions = [self.plan.where, *(each for m in self.plan.measures for each in (m.value, m.where) if each)]
        if self.period is not None:
            expressions.append(self.period)
        read = Counter(name for each in (*expressions, *self.plan.keys) for name in columns_of(each))
        columns = self.plan.table.policy.columns
        return {
            name: source.clean(columns[key.name], name)
            for key, name in self._keyed()
            if isinstance(key, Column) and key.type is Type.TEXT and columns[key.name].keys and read[key.name] == 1
        }
