"""What integers should be: simple plans worked out in Python, and questions asked of plain DuckDB.

In Python: row by row, as the definition says. A wrong step, a NULL that counts or a value past its bounds may stay
within the claimed sensitivity, since a unit's whole contribution is clipped; but what was measured is then not what
the plan says.

Plain DuckDB gets a question's own text, on rows that belong to somebody, as their policies read them. Whose a row is,
is worked out in Python (`data_sets.owners`); that columns are read as their policies say is checked by simple plans.
What is left is what joins, subqueries and matches mean. It is compared with a plan whose limits no unit reaches: its
integers are then those of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.audit.fuzzing.columns import Row, arrow_table
from dalenius.audit.fuzzing.data_sets import TableRows, owners
from dalenius.audit.fuzzing.engines import MemoryTables
from dalenius.measuring.canonical import call
from dalenius.measuring.engines.duckdb.statements.source import as_read
from dalenius.measuring.engines.duckdb.statements.sums import LINEAR, Compiler
from dalenius.measuring.expressions import TRUE, Aggregate, Column, Key
from dalenius.measuring.plan import Measure, Plan, Statistic
from dalenius.tables.policy import Column as Declared
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.audit.fuzzing.questions import FuzzedQuestion
    from dalenius.audit.fuzzing.schemas import Schema
    from dalenius.measuring.public import PublicTable

# Where Python and the engine convert to a double alike beyond doubt.
_STORAGES = frozenset({"DOUBLE", "FLOAT", "BIGINT", "INTEGER", "SMALLINT", "UBIGINT"})
_EXACT = 2**53  # up to here every whole number is a double
PlainRows = list[tuple[Any, ...]]


# --- in Python


def expected_integers(plan: Plan, schema: Schema, rows: TableRows) -> list[int] | None:
    """Each measure's integer over a whole table; None where the plan is not simple enough."""
    if plan.keys or plan.where != TRUE or plan.periods != ("",):
        return None
    name = plan.table.policy.name
    types, columns, held = schema.storages[name], schema.tables[name].policy.columns, rows.get(name, ())
    for statistic in plan.statistics:
        if statistic.statement not in LINEAR:
            return None
        if not all(_simple(each, types, columns) for each in _values(statistic)) or not _unconditional(statistic):
            return None
    read = sorted({each.name for statistic in plan.statistics for each in _values(statistic)})
    # As the file's types hold them.
    values = arrow_table(types, held).select(read).to_pylist() if read else [{}] * len(held)
    units: dict[Row, list[dict[str, Any]]] = {}
    for owner, row in zip(owners(schema, rows)[name], values, strict=True):
        if owner is not None:
            units.setdefault(owner, []).append(row)
    totals = [0] * len(plan.measures)
    for own in units.values():
        for at, value in enumerate(_contribution(plan, columns, own)):
            totals[at] += value
    for number in plan.numbers({"distinct"}):
        found = _distinct(plan.measures[number], columns, units.values())
        if found is None:
            return None
        totals[number] = found
    return totals


def _values(statistic: Statistic) -> tuple[Any, ...]:
    """What a row must have to count: one value, two or none."""
    return tuple(dict.fromkeys(each.value for each in statistic.measures if each.value is not None))


def _unconditional(statistic: Statistic) -> bool:
    """Averages and covariances count the rows that have a value; every other condition is left to the engine."""
    present = call("and", *(call("not", call("is_null", each)) for each in _values(statistic)))
    match statistic.kind:
        case "moments":
            return all(each.where == TRUE for each in statistic.measures[1:])
        case "covariance":
            return all(each.where == present for each in statistic.measures)
    return all(each.where == TRUE for each in statistic.measures)


def _distinct(
    measure: Measure, columns: Mapping[str, Declared], units: Iterable[Sequence[dict[str, Any]]]
) -> int | None:
    """How many values there are; None where a unit has more than count, and a hash chooses."""
    name = measure.value.name if isinstance(measure.value, Column) else ""
    found: set[float | None] = set()
    for own in units:
        values = {_clean(columns[name], row[name]) for row in own} - {None}
        if len(values) > measure.clip:
            return None
        found |= values
    return len(found)


def _simple(value: Any, types: Mapping[str, str], columns: Mapping[str, Declared]) -> bool:
    if not isinstance(value, Column) or value.name not in columns or types[value.name] not in _STORAGES:
        return False
    return columns[value.name].kind in {Kind.INTEGER, Kind.NUMBER}  # 1 and 3 are one boolean


def _contribution(plan: Plan, columns: Mapping[str, Declared], rows: Sequence[dict[str, Any]]) -> list[int]:
    found: list[int] = []
    linear = plan.only(LINEAR)
    # Entries beyond it are clamped, so that their squares can be summed.
    most = Compiler(linear).most if linear.statistics else 0
    for statistic in plan.statistics:
        needed = _values(statistic)
        sums = [sum(_integer(measure, needed, columns, row) for row in rows) for measure in statistic.measures]
        clamped = [
            max(-(most >> measure.bits), min(most >> measure.bits, each)) << measure.bits
            for measure, each in zip(statistic.measures, sums, strict=True)
        ]
        if statistic.kind in {"units", "distinct"}:
            found.append(1)
            continue
        factors = [
            Fraction(measure.limit, abs(each))
            for measure, each in zip(statistic.measures, clamped, strict=True)
            if abs(each) > measure.limit
        ]
        factor = min([Fraction(1), *factors])
        found += [math.trunc(each * factor) for each in clamped]
    return found


def _integer(measure: Measure, needed: Sequence[Column], columns: Mapping[str, Declared], row: dict[str, Any]) -> int:
    """floor(x/step + ½) − centre, within the bounds; 0 where there is no value."""
    values = {each: _clean(columns[each.name], row[each.name]) for each in needed}
    if None in values.values():
        return 0
    if measure.value is None:
        return 1
    if measure.kind in {"square", "product"}:
        return _scaled(measure, values) * _scaled(measure.times or measure, values)
    return _scaled(measure, values)


def _scaled(measure: Measure, values: Mapping[Any, float | None]) -> int:
    ratio = (values[measure.value] or 0.0) / float(measure.step) + 0.5
    return min(measure.high, max(measure.low, math.floor(ratio) - measure.centre))


def _clean(column: Declared, value: Any) -> float | None:
    number = None if value is None else float(value)
    if number is not None and math.isfinite(number):
        number = float(math.floor(number + 0.5)) if column.kind is Kind.INTEGER else number
        if column.bounds is not None:
            number = max(float(column.bounds.low), min(float(column.bounds.high), number))
        if column.keys is None or number in {float(key) for key in column.keys}:  # type: ignore[arg-type]
            return number
    return None if column.default is None else float(column.default)  # type: ignore[arg-type]


# --- by plain DuckDB


class PlainDuckDB:
    """Answers questions about one data set."""

    def __init__(self, schema: Schema, rows: TableRows, publics: Mapping[str, PublicTable], held: MemoryTables) -> None:
        whose = owners(schema, rows)
        kept = {
            name: tuple(row for row, owner in zip(each, whose[name], strict=True) if owner is not None)
            for name, each in rows.items()
        }
        self._held = MemoryTables(schema.storages, kept, "owned")
        self._held.tables |= held.tables
        self._subqueries = []
        for name, table in schema.tables.items():
            types = schema.storages[name]
            raw = [each for each in (*table.policy.owner, schema.keys.get(name)) if each in types]
            self._subqueries.append(as_read(name, table.policy.columns, types, self._held.scans[name], raw))
        for name, public in publics.items():
            self._subqueries.append(as_read(name, public.columns, public.types, held.scans[name], []))

    def answer(self, question: FuzzedQuestion, seconds: float) -> PlainRows:
        """What DuckDB says to the question's text."""
        return self._held.run(question.after(self._subqueries), seconds=seconds)


def disagreement(plan: Plan, integers: Sequence[Sequence[int]], answer: PlainRows) -> tuple[str, str] | None:
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
        if any(isinstance(each, int | float) and abs(each) > _EXACT for each in held):
            return None  # several integers of DuckDB are one of our numbers, and its sums of such depend on their order
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
    mine = Fraction(integers[number][place], 1 << measure.bits)
    if kind == "units" and says and any(len(each) > 1 for each in plan.table.units) and mine == says - 1:
        return None  # to DuckDB, (NULL, NULL) of a row that an outer join filled up is somebody
    if kind in {"rows", "units", "distinct"}:
        return None if mine == int(says or 0) else str(mine)
    if kind in {"sum", "distinct_sum"} and measure.step == 1 and measure.centre == 0:
        return None if mine == round(says or 0) else str(mine)
    if kind == "moments":
        # count, and the sum of what is left of a centre
        summed = plan.measures[number + 1]
        total = Fraction(integers[number + 1][place], 1 << summed.bits)
        if summed.step != 1 or summed.kind != "sum":
            return None
        if not mine or says is None:
            return None if not mine and says is None else f"{mine} values"
        average = float(total / mine + summed.centre)
        return None if math.isclose(average, says, rel_tol=1e-9, abs_tol=1e-9) else str(average)
    return None
