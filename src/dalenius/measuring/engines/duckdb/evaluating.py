"""Values of functions on listed values, where no row is read: public cells, and what is worked out after a release.

What `engines.sources.Reference` asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from dalenius.measuring.engines.duckdb.connections import public
from dalenius.measuring.engines.duckdb.rendering import Renderer
from dalenius.measuring.engines.duckdb.statements.relation import Publics
from dalenius.measuring.engines.sources import Combinations
from dalenius.measuring.expressions import Aggregate, Call, Column, Expression, Type

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.duckdb.public import Lookup
    from dalenius.measuring.relations import Relation

_INSIDE = "value"


def image(key: Call, inside: Expression, given: pa.Array, *, whole: bool) -> list[Any]:
    """The different values of ``key`` where its argument ``inside`` has each of the values ``given``."""
    import pyarrow as pa

    stand_in = Column(_INSIDE, inside.type)
    arguments = tuple(stand_in if each == inside else each for each in key.arguments)
    renderer = Renderer({_INSIDE: "t.v"}, frozenset({_INSIDE}) if whole else frozenset())
    shown = renderer.sql(Call(key.function, arguments, key.type))
    return [row[0] for row in public().run(f"SELECT DISTINCT {shown} FROM d AS t", {"d": pa.table({"v": given})})]  # noqa: S608


def combinations(
    keys: Sequence[Expression],
    values: Sequence[tuple[Sequence[str], pa.Table]],
    integers: frozenset[str],
    conditions: Sequence[Expression],
) -> Combinations:
    """The different values of keys where conditions hold."""
    places = {name: f"t{at}.v{place}" for at, (tied, _) in enumerate(values) for place, name in enumerate(tied)}
    renderer = Renderer(places, integers)
    sql = f"SELECT DISTINCT {', '.join(f'{renderer.sql(key)} AS k{at}' for at, key in enumerate(keys))}"
    if values:
        sql += f" FROM {', '.join(f'd{at} AS t{at}' for at in range(len(values)))}"
    if conditions:
        sql += f" WHERE {' AND '.join(map(renderer.sql, conditions))}"
    given = {f"d{at}": rows for at, (_, rows) in enumerate(values)}
    there = " AND ".join(f"k{at} IS NOT NULL" for at in range(len(keys))) or "true"
    texts = [f"strlen(k{at})" for at, key in enumerate(keys) if key.type is Type.TEXT]
    length = f"coalesce(sum({' + '.join(texts) or '0'}), 0)"

    def size() -> tuple[int, int]:
        ((count, bytes_),) = public().run(f"SELECT count(*), {length} FROM ({sql}) WHERE {there}", given)  # noqa: S608
        return int(count), int(bytes_)

    return Combinations(size, lambda: [tuple(row) for row in public().run(sql, given)])


def evaluated(expression: Expression, table: pa.Table, aggregates: Sequence[Aggregate]) -> list[Any]:
    """An expression of keys (columns k0, k1 …) and aggregates (a0, a1 …), in the order of the column ``place``."""
    keys = {int(name[1:]): name for name in table.column_names if name.startswith("k")}
    renderer = Renderer({}, keys=keys, aggregates={each: f"a{at}" for at, each in enumerate(aggregates)})
    sql = f"SELECT {renderer.sql(expression)} AS v FROM released ORDER BY place"  # noqa: S608
    return [row[0] for row in public().run(sql, {"released": table})]


def public_combinations(
    relation: Relation, wanted: tuple[str, ...], most: int, most_rows: int
) -> tuple[Cell, ...] | None:
    """All combinations of the values of some columns in public tables that are joined; None: too many."""
    import pyarrow as pa

    from dalenius.measuring.function_values import arrow_type
    from dalenius.measuring.functions import TYPES

    scan, held = Publics(relation, wanted), {}
    for name, (source, columns, text) in scan.texts().items():
        rows = cast("Lookup", source.table.lookup).run(f"{text} LIMIT {most_rows + 1}")
        if len(rows) > most_rows:
            return None
        kinds = [source.table.kinds[each] for each in columns]
        arrays = [pa.array([row[at] for row in rows], arrow_type(TYPES[kind])) for at, kind in enumerate(kinds)]
        held[name] = pa.table(arrays, names=columns)
    found = public().run(f"{scan.combinations()} LIMIT {most + 1}", held)
    return tuple(map(tuple, found)) if len(found) <= most else None
