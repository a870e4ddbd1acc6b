"""ROW_NUMBER() within one unit, as SQL.

Which row is the first must follow from its unit's rows alone: of rows that tie in what a question orders by, DuckDB
takes whichever it meets first, and that is other people's doing. So the order goes on with all that the rows hold, and
with what else the numbers are made of. Rows that tie even then are alike in everything that can be asked of them, and
it does not matter which of them has which number. −0.0 and 0.0 compare as equal but print otherwise, so that numbers
are spelled one way before. There is one numbering in a subquery: of two, either could number rows that are alike the
other way round.

The rows are partitioned by the unit itself, as it lies in the file, whatever the question says besides
(`relations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.rendering import identifier
from dalenius.measuring.engines.duckdb.statements.units import OURS, owner_of, unit_name, unit_types
from dalenius.measuring.expressions import Expression, Type
from dalenius.measuring.work import LONGEST_TEXT

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.statements.relation import RelationScan
    from dalenius.measuring.relations import Numbered

NUMBER = "n0"


def number_rows(scan: RelationScan, source: Numbered, values: Sequence[Expression]) -> str:
    """All rows of a relation with their numbers; ``scan`` writes the relation."""
    numbering, shown = source.numbering, scan.held(source, values)
    keys = {_name("k", at): scan.key(each) for at, each in enumerate(numbering.keys)}
    ordered = {_name("o", at): _short(scan, each) for at, (each, _, _) in enumerate(numbering.order)}
    rows = scan.rows([f"{held} AS {name}" for name, held in (shown | keys | ordered).items()])
    units = [unit_name(at) for at in range(len(unit_types(owner_of(scan.relation), scan.files)))]
    order = [
        f"{name} {'DESC' if down else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"
        for name, (_, down, first) in zip(ordered, numbering.order, strict=True)
    ]
    order += [f"{name} ASC NULLS LAST" for name in shown if name not in units]
    over = f"PARTITION BY {', '.join([*units, *keys])}{' ORDER BY ' + ', '.join(order) if order else ''}"
    number = _name("n", 0)
    counted = f"SELECT *, row_number() OVER ({over}) AS {number} FROM ({rows})"  # noqa: S608
    bounds = source.columns[NUMBER].bounds
    held = number if bounds is None else f"CASE WHEN {number} <= {int(bounds.high)} THEN {number} END"
    only = "" if numbering.most is None else f" WHERE {number} <= {numbering.most}"
    return f"SELECT {', '.join(shown)}, CAST({held} AS DOUBLE) AS {NUMBER} FROM ({counted}){only}"  # noqa: S608


def _short(scan: RelationScan, value: Expression) -> str:
    """What rows are put in order by; texts as long as any is."""
    held = scan.key(value)
    return f"left({held}, {LONGEST_TEXT})" if value.type is Type.TEXT else held


def _name(kind: str, at: int) -> str:
    return identifier(f"{OURS}{kind}{at}")
