"""What a question means to plain DuckDB: its own text, on rows that belong to somebody, as their policies read them.

Whose a row is, is worked out in Python (`databases.owners`); that columns are read as their policies say is checked for
single tables (`fuzzing.expected`). What is left is what joins, subqueries and matches mean. It is compared with a plan
whose limits no unit reaches: its integers are then those of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.audit.fuzzing.databases import Rows, arrow_tables, owners
from dalenius.audit.fuzzing.several import Held
from dalenius.measuring.engines.duckdb.statements.source import as_read
from dalenius.measuring.expressions import Aggregate, Key

if TYPE_CHECKING:
    from dalenius.audit.fuzzing.joined_questions import Asked
    from dalenius.audit.fuzzing.schemas import Schema
    from dalenius.measuring.plan import Plan
    from dalenius.measuring.public import PublicTable

Answer = list[tuple[Any, ...]]


class Oracle:
    """Answers questions about one data set."""

    def __init__(self, schema: Schema, rows: Rows, publics: Mapping[str, PublicTable], held: Held) -> None:
        whose = owners(schema, rows)
        kept = {
            name: tuple(row for row, owner in zip(each, whose[name], strict=True) if owner is not None)
            for name, each in rows.items()
        }
        self._held = Held(arrow_tables(schema.storages, kept), "owned")
        self._held.tables |= held.tables
        self._subqueries = []
        for name, table in schema.tables.items():
            types = schema.storages[name]
            raw = [each for each in (*table.policy.owner, schema.keys.get(name)) if each in types]
            self._subqueries.append(as_read(name, table.policy.columns, types, self._held.scans[name], raw))
        for name, public in publics.items():
            self._subqueries.append(as_read(name, public.columns, public.types, held.scans[name], []))

    def answer(self, asked: Asked, seconds: float) -> Answer:
        """What DuckDB says to the question's text."""
        return self._held.run(asked.after(self._subqueries), seconds=seconds)


def disagreement(plan: Plan, integers: Sequence[Sequence[int]], answer: Answer) -> tuple[str, str] | None:
    """What DuckDB says, and what the plan does, where they differ; None where they agree."""
    outputs = plan.question.outputs
    keys = [at for at, output in enumerate(outputs) if isinstance(output.expression, Key)]
    if len(keys) != len(plan.keys):
        return None
    order = [outputs[at].expression.number for at in keys]  # type: ignore[union-attr]
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in answer:
        held: list[Any] = [None] * len(keys)
        for at, place in zip(keys, order, strict=True):
            held[place] = row[at]
        if all(each is not None for each in held):
            rows[tuple(held)] = row
    if plan.selection is not None and set(rows) != set(plan.cells):
        return f"groups {sorted(map(str, rows))}", f"groups {sorted(map(str, plan.cells))}"
    for at, output in enumerate(outputs):
        if not isinstance(output.expression, Aggregate):
            continue
        number = plan.start(plan.answers[output.expression])
        for place, cell in enumerate(plan.cells):
            says = rows[cell][at] if cell in rows else None
            found = _same(plan, plan.answers[output.expression], number, integers, place, says)
            if found is not None:
                return f"{output.name} of {cell}: {says}", f"{found}"
    return None


def _same(
    plan: Plan, statistic: int, number: int, integers: Sequence[Sequence[int]], place: int, says: Any
) -> str | None:
    """What the plan has in one group, where it is not what DuckDB says."""
    kind, measure = plan.statistics[statistic].kind, plan.measures[number]
    mine = integers[number][place]
    if kind in {"rows", "units", "distinct"}:
        return None if mine == int(says or 0) else str(mine)
    if kind == "sum" and measure.step == 1 and measure.centre == 0:
        return None if mine == round(says or 0) else str(mine)
    if kind == "moments":
        # count, and the sum of what is left of a centre
        summed = plan.measures[number + 1]
        total = integers[number + 1][place]
        if summed.step != 1 or summed.kind != "sum":
            return None
        if not mine or says is None:
            return None if not mine and says is None else f"{mine} values"
        average = float(Fraction(total, mine) + summed.centre)
        return None if math.isclose(average, says, rel_tol=1e-9, abs_tol=1e-9) else str(average)
    return None
