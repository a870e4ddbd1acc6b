"""How large units are: what the private search for limits looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dalenius.measuring.engines.duckdb.rendering import Renderer, double, identifier
from dalenius.measuring.engines.duckdb.statements.light import Indexed, looked_up
from dalenius.measuring.engines.duckdb.statements.source import cast, clean, there
from dalenius.measuring.expressions import columns_of
from dalenius.measuring.periods import unit_part

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.index import Index
    from dalenius.measuring.engines.duckdb.runner import Runner
    from dalenius.measuring.plan import Table


def counted(table: Table, kind: str, column: str, engine: Runner, seconds: float) -> list[tuple[int, int]]:
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
    def held(index: Index) -> Indexed | None:
        values = index.sizes(kind, column)
        return None if values is None else Indexed(f"WITH {classed(values)} SELECT {selected}")

    rows = looked_up(table, engine, held, seconds)
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
    return f"{source}{classed(inner)}"


def classed(inner: str) -> str:
    """`sizes` from a SELECT of one `value` per unit."""
    size = "CASE WHEN value < 1e0 THEN 0 ELSE least(128, 1 + CAST(ceil(2 * log2(value)) AS INTEGER)) END"
    return f"sizes AS (SELECT {size} AS size, value FROM ({inner}))"  # noqa: S608
