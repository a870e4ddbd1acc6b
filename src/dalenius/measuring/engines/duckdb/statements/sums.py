"""Sums over units: one vector of integers per unit, clipped in the plan's norm, and added up.

source   the columns of the file that are needed, cast without failing      (`source_sql`, where the file is known)
clean    each column within its policy: finite, clipped, declared keys only; rows without a unit are gone
kept     rows that count, with their groups and integers
sums     one vector per unit: its integers summed per group, in fractions of a step (`measures`)
chosen   at most `groups` groups per unit, by a keyed hash
norms    the length of each unit's vector
factors  what each unit's vector is scaled by
clipped  the scaled vectors, truncated toward zero
…        summed over units, per group
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from dalenius.measuring.engines.duckdb.rendering import WHICH_SET, Renderer, double, heavier
from dalenius.measuring.engines.duckdb.statements import no_number, source
from dalenius.measuring.expressions import TRUE, Expression, Type
from dalenius.measuring.measures import reach_of
from dalenius.measuring.periods import unit_part
from dalenius.measuring.plan import Measure, Plan
from dalenius.measuring.work import work_of
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.statements import Runner, Select


LINEAR = frozenset({"sums"})  # the statements that give sums of clipped vectors

_CALENDAR = {
    Type.DATE: ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    Type.DATETIME: ("TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
}


def statement(plan: Plan, part: Select, scan: str, types: Mapping[str, str], salt: str) -> str:
    """The whole SELECT."""
    return f"WITH {source.source_sql(plan.only(LINEAR), scan, types, salt)},\n{part.sql}"


def run(plan: Plan, part: Select, engine: Runner, salt: str, seconds: float) -> list[list[int]]:
    """Each measure's exact integers, one per cell; groups without rows are 0."""
    return vectors(plan, part, engine.run(statement(plan, part, engine.scan, engine.columns, salt), seconds=seconds))


def vectors(plan: Plan, part: Select, rows: Sequence[tuple[Any, ...]]) -> list[list[int]]:
    """The rows of the statement as one vector per measure."""
    width = len(plan.keys)
    places = {cell: at for at, cell in enumerate(plan.cells)}
    found = [[0] * len(plan.cells) for _ in part.measures]
    for row in rows:
        at = places.get(tuple(row[:width]))
        if at is None:  # a group that is not public is never shown
            continue
        for measure, value in enumerate(row[width:]):
            if value is None:
                if width or len(rows) != 1:
                    raise no_number()
                continue  # a sum over no units at all
            found[measure][at] += int(value)
    return found


class Compiler:
    """Writes the SELECT of one plan. Methods are the steps; the fuzzer's planted bugs replace single ones."""

    WIDE: ClassVar[bool] = False  # entries have all the room there is, whatever the limits

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.columns = source.columns_read(plan)
        policy = plan.table.policy
        integers = frozenset(name for name, each in policy.columns.items() if each.kind is Kind.INTEGER)
        self.renderer = Renderer(self.columns, integers, lengths=source.text_lengths(policy.columns))
        self.ballast = heavier(work_of(plan))
        self.units = [f"u{at}" for at in range(len(policy.unit))]
        self.period = unit_part(plan.table)
        if self.period is not None:
            self.units.append("period")
        self.keys = [f"k{at}" for at in range(len(plan.keys))]
        self.weights = [f"w{at}" for at in range(len(plan.measures))]
        # Σw² of one unit must fit 127 bits; an entry that is clamped is far beyond what clipping leaves of it. Where
        # limits are small, 104 bits: then a double's root is off by less than one, and needs no step of Newton.
        reach, largest = reach_of(plan), max((measure.limit for measure in plan.measures), default=0)
        self.small = largest < 2**50 // reach and not self.WIDE
        self.most = math.isqrt(2 ** (104 if self.small else 126) // reach)
        if not self.joint:
            # Lengths are then sums of up to `reach` entries, and factors are compared crosswise: length × limit.
            self.most = min(self.most, 2**126 // (max(1, largest) * reach))

    def sql(self) -> str:
        """All steps."""
        body = with_steps([*self.steps_to_factors(), ("clipped", self.clipped(self.vectors))])
        sums = ", ".join([*self.keys, *(f"sum({each}) AS {each}" for each in self.weights)])
        return f"{body}\nSELECT {sums} FROM clipped{grouped_by(self.keys)}"

    def steps_to_lengths(self) -> list[tuple[str, str]]:
        """The steps up to the lengths of units' vectors."""
        return [
            ("clean", self.clean()),
            ("kept", self.kept()),
            ("sums", self.sums()),
            *([("chosen", self.chosen())] if self.plan.groups is not None else []),
            ("norms", self.norms(self.vectors)),
            *self.roots(),
        ]

    def steps_to_factors(self) -> list[tuple[str, str]]:
        """The steps up to the factors."""
        return [*self.steps_to_lengths(), ("factors", self.factors(self.lengths))]

    @property
    def vectors(self) -> str:
        """The step that has units' vectors, over the groups that count."""
        return "sums" if self.plan.groups is None else "chosen"

    @property
    def lengths(self) -> str:
        """The step that has the lengths of these vectors."""
        return "roots" if self.joint else "norms"

    @property
    def required(self) -> list[str]:
        """What a row must have, to be in a group: its keys, and its period where there are any."""
        return [*self.keys, *(["period"] if self.period is not None else [])]

    @property
    def joint(self) -> bool:
        """Whether vectors have several entries and are clipped in L2; otherwise a norm is a plain sum."""
        return self.plan.norm == "l2" and (len(self.plan.cells) > 1 or self.plan.selection is not None)

    def clean(self) -> str:
        """Every column within its policy; those of several tables are so already (`statements.relation`)."""
        policy, joined = self.plan.table.policy, not self.plan.table.relation.single
        parts = [f"u{at}" for at in range(len(policy.unit))]
        parts += [
            column if joined else f"{source.clean(policy.columns[name], column)} AS {column}"
            for name, column in self.columns.items()
        ]
        parts += ["seed"] if self.plan.groups is not None else []
        return f"SELECT {', '.join(parts)} FROM source"  # noqa: S608

    def kept(self) -> str:
        """The rows that count, with their groups and integers."""
        parts = [*self.grouped(), *(f"{self.integer(each)} AS {name}" for each, name in self._measured()), *self.more()]
        parts += ["seed"] if self.plan.groups is not None else []
        where = self.counting([] if self.plan.where == TRUE else [self.renderer.sql(self.plan.where)])
        return f"SELECT {', '.join(parts)} FROM {self.rows()}{where}"  # noqa: S608

    def grouped(self) -> list[str]:
        """Of each row its unit, its period and its keys."""
        parts = [each for each in self.units if each != "period"]
        if self.period is not None:
            parts.append(f"{self.renderer.sql(self.period)} AS period")
        return [*parts, *(f"{self.key(key)} AS {name}" for key, name in zip(self.plan.keys, self.keys, strict=True))]

    def counting(self, conditions: Sequence[str]) -> str:
        """WHERE: which rows count. The ballast of `work` comes first, in one with the rest: all rows must do it."""
        shown = " AND ".join(conditions)
        if self.ballast:
            shown = f"CASE WHEN {self.ballast} THEN ({shown}) END" if shown else self.ballast
        return f" WHERE {shown}" if shown else ""

    def rows(self) -> str:
        """The cleaned rows; with grouping sets, each row once for each set, with its number."""
        if not self.plan.sets:
            return "clean"
        return f"clean CROSS JOIN {self.numbers()}"

    def numbers(self) -> str:
        """The grouping sets' numbers, in FROM."""
        numbers = ", ".join(f"({double(each)})" for each in self.counted_sets())
        return f"(VALUES {numbers}) AS grouping_sets({WHICH_SET})"

    def counted_sets(self) -> Sequence[int]:
        """The numbers of the grouping sets that rows are counted for."""
        return range(len(self.plan.sets))

    def more(self) -> list[str]:
        """What another kind of statement needs of each row besides."""
        return []

    def key(self, key: Expression) -> str:
        """A group's key. −0.0 becomes 0.0: they are one group, but two texts, and the hash that chooses sees those."""
        shown = self.renderer.sql(key)
        if self.plan.selection is not None and key.type in _CALENDAR:  # a day that no calendar of the answer has
            first, last = _CALENDAR[key.type]
            return f"CASE WHEN {shown} BETWEEN {first} AND {last} THEN {shown} END"
        return f"({shown} + 0e0)" if key.type is Type.NUMBER else shown

    def _measured(self) -> Sequence[tuple[Measure, str]]:
        return list(zip(self.plan.measures, self.weights, strict=True))

    def integer(self, measure: Measure) -> str:
        """What one row adds; a row that does not count, or whose value is NULL, adds 0."""
        conditions: list[Expression] = [] if measure.where == TRUE else [measure.where]
        shown = [self.renderer.sql(each) for each in conditions]
        if measure.value is None:
            return f"CASE WHEN {' AND '.join(shown)} THEN 1 ELSE 0 END" if shown else "1"
        value = self.renderer.sql(measure.value)
        scaled = self.scaled(measure, value)
        if measure.kind != "sum":
            scaled = f"({scaled} * {self.second(measure)})"
        return f"CASE WHEN {' AND '.join([*shown, f'{value} IS NOT NULL'])} THEN {scaled} ELSE 0 END"

    def second(self, measure: Measure) -> str:
        """The other factor of a product, or of a square the same again."""
        factor = measure.times or measure
        other = replace(factor, kind=measure.kind, times=measure)  # as wide as the first
        return self.scaled(other, self.renderer.sql(cast("Expression", factor.value)))

    def scaled(self, measure: Measure, value: str) -> str:
        """floor(x/step + ½) in doubles, as an integer between the bounds, less the centre."""
        low, high, step = measure.low + measure.centre, measure.high + measure.centre, double(float(measure.step))
        rounded = f"floor({value} / {step} + 0.5e0)"
        inside = f"greatest({double(low)}, least({double(high)}, {rounded}))"
        whole = integer_type(measure)
        return f"(CAST({inside} AS {whole}) - {measure.centre})" if measure.centre else f"CAST({inside} AS {whole})"

    def sums(self) -> str:
        """One vector per unit. A row without a group is in none."""
        parts = [*self.units, *self.keys]
        for measure, name in self._measured():
            total = f"max({name})::HUGEINT" if measure.kind == "units" else f"sum({name})"
            parts.append(f"{in_parts(measure, self.clamped(measure, total))} AS {name}")
        parts += ["min(seed) AS seed"] if self.plan.groups is not None else []
        there = " AND ".join(f"{each} IS NOT NULL" for each in self.required)
        where = f" WHERE {there}" if there else ""
        return f"SELECT {', '.join(parts)} FROM kept{where}{grouped_by([*self.units, *self.keys])}"  # noqa: S608

    def clamped(self, measure: Measure, value: str) -> str:
        """An entry small enough that squares can be summed; 2⁴⁰ rows of one unit are more than any file holds."""
        largest, most = max(abs(measure.low), abs(measure.high)), self.most >> measure.bits
        if measure.kind in {"square", "product"}:
            factor = measure.times or measure
            largest *= max(abs(factor.low), abs(factor.high))
        if largest * 2**40 <= most:
            return value
        return f"greatest(-{most}::HUGEINT, least({most}::HUGEINT, {value}))"

    def chosen(self) -> str:
        """At most so many groups of a unit, by a keyed hash of unit and group: fixed, and not the analyst's choice."""
        order = source.hash_order("seed", self.keys)
        partition = ", ".join([*self.units, *self.keys[: bool(self.plan.sets)]])  # so many in each grouping set
        parts = ", ".join([*self.units, *self.keys, *self.weights])
        return (
            f"SELECT {parts} FROM sums QUALIFY row_number() OVER "  # noqa: S608
            f"(PARTITION BY {partition} ORDER BY {order}) <= {self.plan.groups}"
        )

    def norms(self, source: str) -> str:
        """The length of each unit's vector, at least 1: its square where the norm is L2, otherwise itself."""
        length = "{0} * {0}" if self.joint else "abs({0})"
        parts = [*self.units, *(f"greatest(1, sum({length.format(each)})) AS {each}" for each in self.weights)]
        return f"SELECT {', '.join(parts)} FROM {source}{grouped_by(self.units)}"  # noqa: S608

    def roots(self) -> list[tuple[str, str]]:
        """k = ⌈√q⌉ on integers: a double's root, one step of Newton (which never falls below ⌊√q⌋), a comparison.

        Below 2¹⁰⁴ the double's root is off by less than 1.5·2⁻⁵³·2⁵² < 1, so ⌊root⌋ + 1 lies within ⌊√q⌋ + {0, 1, 2}
        (not 2 for a square), and the comparison alone settles it.
        """
        if not self.joint:
            return []
        units = ", ".join(self.units)
        near = ", ".join(f"{w}, CAST(floor(sqrt(CAST({w} AS DOUBLE))) AS HUGEINT) + 1 AS r{w}" for w in self.weights)
        newton = ", ".join(f"{w}, (r{w} + {w} // r{w}) // 2 AS r{w}" for w in self.weights)
        root = ", ".join(
            f"CASE WHEN r{w} * r{w} < {w} THEN r{w} + 1 WHEN (r{w} - 1) * (r{w} - 1) >= {w} "
            f"THEN r{w} - 1 ELSE r{w} END AS {w}"
            for w in self.weights
        )
        return [
            ("near", f"SELECT {units}, {near} FROM norms"),  # noqa: S608
            *([] if self.small else [("nearer", f"SELECT {units}, {newton} FROM near")]),  # noqa: S608
            ("roots", f"SELECT {units}, {root} FROM {'near' if self.small else 'nearer'}"),  # noqa: S608
        ]

    def factors(self, source: str) -> str:
        """The factor p/q of each statistic: the least C/k of its measures, or 1."""
        parts, at = list(self.units), 0
        for number, statistic in enumerate(self.plan.statistics):
            pairs = []
            for measure in statistic.measures:
                pairs.append((f"least({measure.limit}, w{at})", f"w{at}"))
                at += 1
            numerator, denominator = self.factor(pairs)
            if statistic.kind == "units":  # ones, and no more of them than groups: nothing to scale
                numerator, denominator = "1", "1"
            parts += [f"{numerator} AS p{number}", f"{denominator} AS q{number}"]
        return f"SELECT {', '.join(parts)} FROM {source}"  # noqa: S608

    def factor(self, pairs: Sequence[tuple[str, str]]) -> tuple[str, str]:
        """The smallest of fractions, compared crosswise on integers."""
        top, bottom = pairs[0]
        for other_top, other_bottom in pairs[1:]:
            less = f"{other_top} * {bottom} < {top} * {other_bottom}"
            top, bottom = (
                f"(CASE WHEN {less} THEN {other_top} ELSE {top} END)",
                f"(CASE WHEN {less} THEN {other_bottom} ELSE {bottom} END)",
            )
        return top, bottom

    def clipped(self, source: str) -> str:
        """The scaled vectors."""
        parts, at = [f"s.{key}" for key in self.keys], 0
        for number, statistic in enumerate(self.plan.statistics):
            for _ in statistic.measures:
                parts.append(f"{self.truncated(f's.w{at}', f'f.p{number}', f'f.q{number}')} AS w{at}")
                at += 1
        same = " AND ".join(f"s.{unit} = f.{unit}" for unit in self.units)
        return f"SELECT {', '.join(parts)} FROM {source} s JOIN factors f ON {same}"  # noqa: S608

    def truncated(self, value: str, top: str, bottom: str) -> str:
        """v·p/q toward zero: DuckDB's // on integers drops the remainder."""
        return f"({value} * {top}) // {bottom}"


def in_parts(measure: Measure, value: str) -> str:
    """A sum of whole steps as it is counted, in 2^bits parts of each (`measures`)."""
    return f"({value}) * {2**measure.bits}::HUGEINT" if measure.bits else value


def integer_type(measure: Measure) -> str:
    """The type of a row's integer, and of each factor where it is a square or a product: 64 bits where all of it fits.

    It follows from the bounds alone. A type that some value within them does not fit would make the statement fail if
    and only if that value is there, and a failure can be seen. (A sum of 64 bits has 128.)
    """
    factors = [measure, measure.times or measure] if measure.kind in {"square", "product"} else [measure]
    before = max(abs(end + each.centre) for each in factors for end in (each.low, each.high))
    after = math.prod(max(abs(each.low), abs(each.high)) for each in factors)
    return "BIGINT" if max(before, after) < 2**62 else "HUGEINT"


def with_steps(steps: Iterable[tuple[str, str]], how: Mapping[str, str] | None = None) -> str:
    """Steps as entries of WITH; ``how`` says which of them are [NOT] MATERIALIZED."""
    said = how or {}
    return ",\n".join(f"{name} AS {said.get(name, '')}({text})" for name, text in steps)


def grouped_by(names: Sequence[str]) -> str:
    """GROUP BY, where there is something to group by."""
    return f" GROUP BY {', '.join(names)}" if names else ""
