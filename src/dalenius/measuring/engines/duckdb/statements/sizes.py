"""How large units are: what searches for limits look at, at `protect` and within a question (`searching`).

At `protect`, units are counted by the class of their size, by factors of √2: `sizes(size, value)`.

Within a question, by that of the length of their vector:

source … roots   as for sums, up to the length ⌈‖w‖⌉ of each unit's vector over the groups that count
lengths          the class of each length
…                units counted by class, for each measure
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dalenius.measuring.engines.duckdb.index import ENTRY
from dalenius.measuring.engines.duckdb.rendering import Renderer, double, identifier
from dalenius.measuring.engines.duckdb.statements import IndexedSelect, distinct, no_number, run_indexed
from dalenius.measuring.engines.duckdb.statements.source import cast, clean, source_sql, there
from dalenius.measuring.engines.duckdb.statements.sums import Compiler, grouped_by, with_steps
from dalenius.measuring.expressions import columns_of
from dalenius.measuring.limits.histogram import CLASSES
from dalenius.measuring.limits.ladder import scale_counts
from dalenius.measuring.measures import count_in
from dalenius.measuring.periods import unit_part

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.index import Index
    from dalenius.measuring.engines.duckdb.statements import Runner
    from dalenius.measuring.plan import Plan, Table


def count_sizes(table: Table, kind: str, column: str, engine: Runner, seconds: float) -> list[tuple[int, int]]:
    """How many units there are in each class of sizes."""
    rows = _rows(table, kind, column, "size, count(*) FROM sizes GROUP BY size", engine, seconds)
    return [(int(size), int(count)) for size, count in rows]


def rows_within(table: Table, most: int, engine: Runner, seconds: float) -> tuple[int, int]:
    """All units, and their rows, of which ``most`` of each count."""
    selected = f"count(*), coalesce(sum(least(value, {most})), 0) FROM sizes"
    ((units, total),) = _rows(table, "rows", "", selected, engine, seconds)
    return int(units), int(total)


def _rows(
    table: Table, kind: str, column: str, selected: str, engine: Runner, seconds: float
) -> Sequence[tuple[Any, ...]]:
    def held(index: Index) -> IndexedSelect | None:
        values = index.sizes(kind, column)
        return None if values is None else IndexedSelect(f"WITH {size_classes(values)} SELECT {selected}")

    rows = run_indexed(table, engine, held, seconds)
    if rows is not None:
        return rows
    return engine.run(
        f"{units_sql(table, kind, column, engine.scan, engine.columns)} SELECT {selected}", seconds=seconds
    )


def units_sql(table: Table, kind: str, column: str, scan: str, types: Mapping[str, str]) -> str:
    """The sizes of all units, for the search for limits: `sizes(size, value)`, one row per unit.

    ``size`` is a class of √2: 0 for nothing, else 1 + ⌈2·log₂(value)⌉, which puts a unit into exactly one class.
    """
    policy, part = table.policy, unit_part(table)
    names = sorted({*([column] if column else []), *(columns_of(part) if part is not None else ())})
    columns = {name: f"c{at}" for at, name in enumerate(names)}
    units = [f"u{at}" for at in range(len(policy.unit))]
    reads = [f"{identifier(name)} AS {unit}" for name, unit in zip(policy.unit, units, strict=True)]
    reads += [f"{cast(policy.columns[name], types)} AS {short}" for name, short in columns.items()]
    cleaned = [*units, *(f"{clean(policy.columns[name], short)} AS {short}" for name, short in columns.items())]
    grouped, inside = list(units), ""
    if part is not None:  # a row without a period belongs to nobody
        grouped.append(Renderer(columns).sql(part))
        inside = f" WHERE {grouped[-1]} IS NOT NULL"
    by = ", ".join(grouped)
    source = f"WITH source AS (SELECT {', '.join(reads)} FROM {scan} WHERE {there(policy.unit, types)}), "  # noqa: S608
    source += f"clean AS (SELECT * FROM (SELECT {', '.join(cleaned)} FROM source){inside}), "  # noqa: S608
    value = columns.get(column, "")
    if kind == "rows":
        inner = f"SELECT CAST(count(*) AS DOUBLE) AS value FROM clean GROUP BY {by}"  # noqa: S608
    elif kind == "total":
        step = double(float(policy.columns[column].step or 1))
        # In integers: a sum of doubles past 2⁵³ depends on how rows fall to threads, which is other units' doing.
        total = f"sum(CAST(abs(coalesce(floor({value} / {step} + 0.5e0), 0e0)) AS HUGEINT))"
        inner = f"SELECT CAST({total} AS DOUBLE) AS value FROM clean GROUP BY {by}"  # noqa: S608
    elif kind == "distinct":
        inner = f"SELECT CAST(count(DISTINCT {value}) AS DOUBLE) AS value FROM clean GROUP BY {by}"  # noqa: S608
    else:
        per_key = f"SELECT count(*) AS n, {', '.join(f'{each} AS g{at}' for at, each in enumerate(grouped))} "
        per_key += f"FROM clean WHERE {value} IS NOT NULL GROUP BY {by}, {value}"
        outer = ", ".join(f"g{at}" for at in range(len(grouped)))
        inner = f"SELECT sqrt(CAST(sum(CAST(n AS HUGEINT) * n) AS DOUBLE)) AS value FROM ({per_key}) GROUP BY {outer}"  # noqa: S608
    return f"{source}{size_classes(inner)}"


def size_classes(inner: str) -> str:
    """`sizes` from a SELECT of one `value` per unit."""
    size = "CASE WHEN value < 1e0 THEN 0 ELSE least(128, 1 + CAST(ceil(2 * log2(value)) AS INTEGER)) END"
    return f"sizes AS (SELECT {size} AS size, value FROM ({inner}))"  # noqa: S608


# --- within a question


def count_lengths(plan: Plan, engine: Runner, salt: str, seconds: float) -> list[list[int]]:
    """For each measure that is searched, in order: how many units are in each class; of distinct values, a ladder.

    A unit is in one class of each histogram, whatever its rows hold, and no other unit moves it: adding or removing
    one changes one count by 1.
    """
    found = [[0] * CLASSES for _ in plan.searched]
    rest = []
    for at, number in enumerate(plan.searched):
        measure = plan.measures[number]
        if measure.kind == "distinct":  # no vector: values at several limits instead
            found[at] = scale_counts(measure.clip, distinct.ladder(plan, number, engine, salt, seconds))
            continue
        rows = _from_index(plan, number, engine, seconds)
        if rows is None:
            rest.append((at, number))
        else:
            _count(found[at], rows)
    if rest:
        own = LengthStatement(plan, [number for _, number in rest])
        rows = engine.run(own.statement(engine.scan, engine.columns, salt), seconds=seconds)
        for place, (at, _) in enumerate(rest):
            _count(found[at], [(class_, count) for which, class_, count in rows if which == place])
    return found


def _count(classes: list[int], rows: Sequence[tuple[Any, ...]]) -> None:
    for class_, count in rows:
        if class_ is None or count is None:
            raise no_number()
        classes[int(class_)] += int(count)


def _from_index(plan: Plan, number: int, engine: Runner, seconds: float) -> Sequence[tuple[Any, ...]] | None:
    """Units by class from a contribution index, where it holds the very lengths; None: it does not.

    Whether it does is a matter of the question alone. What the index cannot hold of a length (a total beyond 2⁵⁷ steps)
    the general way does not count either.
    """

    def sql(index: Index) -> IndexedSelect | None:
        held = index.length(plan, plan.measures[number])
        return (
            None if held is None else IndexedSelect(LengthStatement(plan, [number]).from_index(held[0].scan, held[1]))
        )

    return run_indexed(plan.table, engine, sql, seconds)


class LengthStatement(Compiler):
    """The steps of sums, up to the lengths of the vectors that are searched; entries end where the index's do."""

    WIDE = True

    def __init__(self, plan: Plan, numbers: Sequence[int]) -> None:
        kept = [
            replace(each, measures=tuple(m for at, m in enumerate(each.measures, plan.start(place)) if at in numbers))
            for place, each in enumerate(plan.statistics)
        ]
        whole = replace(plan, statistics=tuple(each for each in kept if each.measures), answers={})
        super().__init__(count_in(whole, [0] * len(whole.measures)))  # lengths are in whole rows and steps
        self.most = min(self.most, ENTRY)

    def statement(self, scan: str, types: Mapping[str, str], salt: str) -> str:
        """All steps."""
        classes = ", ".join(f"{self.class_of(each)} AS {each}" for each in self.weights)
        lengths = f"SELECT {classes} FROM {self.lengths}"  # noqa: S608
        counted = "\nUNION ALL ".join(
            f"SELECT {at}, {each}, count(*) FROM lengths GROUP BY {each}"  # noqa: S608
            for at, each in enumerate(self.weights)
        )
        read = source_sql(self.plan, scan, types, salt)
        return f"WITH {read},\n{with_steps(self.steps_to_lengths())},\nlengths AS MATERIALIZED ({lengths})\n{counted}"

    def from_index(self, scan: str, column: str) -> str:
        """Class, and how many units: the steps after `norms`, of one measure."""
        length = f"least({column}, {ENTRY})" if column.startswith("t") else column
        norms = f"SELECT {', '.join(self.units)}, CAST(nullif({length}, 0) AS HUGEINT) AS w0 FROM {scan}"  # noqa: S608
        body = with_steps([("norms", norms), *self.roots()])
        return f"WITH {body}\nSELECT {self.class_of('w0')} AS class, count(*) FROM {self.lengths} GROUP BY class"

    def norms(self, source: str) -> str:
        """As for sums, but nothing at all is NULL, which stays so up to its class; there, it must not be a 1."""
        length = "{0} * {0}" if self.joint else "abs({0})"
        parts = [*self.units, *(f"nullif(sum({length.format(each)}), 0) AS {each}" for each in self.weights)]
        return f"SELECT {', '.join(parts)} FROM {source}{grouped_by(self.units)}"  # noqa: S608

    def class_of(self, length: str) -> str:
        """0 for nothing, else 1 + ⌈2·log₂ k⌉. The double is of one unit's own integer: no other unit can move it."""
        size = f"least({CLASSES - 1}, 1 + CAST(ceil(2 * log2(CAST({length} AS DOUBLE))) AS INTEGER))"
        return f"CASE WHEN {length} IS NULL THEN 0 ELSE {size} END"
