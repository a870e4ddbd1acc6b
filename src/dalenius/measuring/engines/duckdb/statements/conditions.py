"""The conditions of a relation: equal units in every join, what the question asks for, and spare rows that pass both.

DuckDB stops reading one side of a join as soon as it sees that the other holds no row at all. A condition that only one
person fulfils would decide that: `WHERE p.title = …` leaves nobody of people, or one, and all of visits is read, or
none. So each item of FROM that is joined gets one row more, which belongs to nobody, holds NULL in every column, and
passes every condition. The spare rows of all items meet each other and nothing else, and the one row that they make is
dropped once everything is joined (`without_spare`), above a LIMIT that no condition moves below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from dalenius.measuring.engines.duckdb.rendering import Renderer, heavier, identifier
from dalenius.measuring.engines.duckdb.statements.source import text_lengths
from dalenius.measuring.engines.duckdb.statements.units import (
    OURS,
    Files,
    UnitScope,
    owner_of,
    parts_of_and,
    raw_name,
    unit_types,
)
from dalenius.measuring.expressions import Call, Column, Expression, Type
from dalenius.measuring.relations import Join, Open, Relation, Source, full
from dalenius.measuring.work import sifted_by

HERE = f"LIMIT {2**63 - 1}"  # conditions from above are tried above it
_SPARE = identifier(f"{OURS}spare")
_NO_SPARE = identifier(f"{OURS}no spare")


def spare(alias: str) -> str:
    """Whether a row of an item is the spare one."""
    return f"{alias}.{_SPARE}"


def no_spare(alias: str) -> str:
    """FALSE in all rows but the spare one, and NULL there, so that it equals no `spare`: for NOT EXISTS."""
    return f"{alias}.{_NO_SPARE}"


def with_spare(rows: str) -> str:
    """Rows, and one more."""
    each = f"SELECT *, FALSE AS {_SPARE}, FALSE AS {_NO_SPARE} FROM ({rows})"  # noqa: S608
    return f"{each} UNION ALL BY NAME SELECT TRUE AS {_SPARE}"


def without_spare(shown: list[str], joined: str, alias: str) -> str:
    """What is shown of the rows that were joined, less the spare one."""
    rows = f"SELECT {', '.join([*shown, f'{spare(alias)} AS {_SPARE}'])} FROM {joined} {HERE}"  # noqa: S608
    return f"SELECT * EXCLUDE ({_SPARE}) FROM ({rows}) WHERE NOT {_SPARE}"  # noqa: S608


def passing(condition: str, alias: str) -> str:
    """A condition that the spare row fulfils too."""
    return f"({spare(alias)} OR {condition})"


def equal(one: str, other: str) -> str:
    """What is NULL in both spare rows, and in no other row, or in none that `Conditions.keys` lets pass."""
    return f"({one} IS NOT DISTINCT FROM {other})"


def hidden(value: str, alias: str) -> str:
    """A value that is NULL in the spare row, whatever a function makes of NULL."""
    return f"CASE WHEN {spare(alias)} THEN NULL ELSE {value} END"


class RelationRenderer(Renderer):
    """As elsewhere; columns that say who somebody is are compared as they lie in the file."""

    def sql(self, expression: Expression) -> str:
        """The expression as SQL."""
        if isinstance(expression, Column) and expression.type is Type.UNIT:
            return self.columns[raw_name(expression.name)]
        return super().sql(expression)


class Conditions(UnitScope):
    """What joins and WHERE of a relation ask for.

    Args:
        relation: What is written.
        files: Where its tables lie.
        outer: What stands around it, where it is within EXISTS.
        depth: Tells the names of nested ones apart.
        matched: Whether it stands, however deep, within [NOT] EXISTS.
        negated: Whether that is NOT EXISTS.
    """

    def __init__(
        self, relation: Relation, files: Files, outer: Conditions | None, depth: int, *, matched: bool, negated: bool
    ) -> None:
        super().__init__(relation, files, outer, depth)
        self.matched, self.negated = matched, negated
        self.spared = matched or len(relation.joins) > 1 or bool(relation.matches)
        own = {
            full(each, name): spec
            for each in relation.sources
            if not isinstance(each, Open)
            for name, spec in each.columns.items()
        }
        self.lengths: dict[str, int] = text_lengths(own) | (outer.lengths if outer is not None else {})
        public = frozenset(
            full(each, name) for each in relation.sources if isinstance(each, Open) for name in each.columns
        )
        renderer = partial(
            RelationRenderer, self.columns, relation.columns.integers, lengths=self.lengths, listed=public
        )
        self.renderer, self.apart = renderer(random=not matched), renderer()

    def condition(self, part: Expression, joined: str = "") -> str:
        """A condition, which spare rows fulfil. As a key of a join, if it is one: their keys are NULL.

        ``joined``: the item whose LEFT join it stands in.
        """
        if not self.spared:
            return self.renderer.sql(part)
        match part:
            case Call(function="eq", arguments=(one, other)):
                sides = {each: self.reads(each) for each in (one, other)}
                if all(sides.values()) and not sides[one] & sides[other]:
                    return self.keys(sides, joined)
        own = self.reads(part).intersection(self.aliases.values())
        return passing(self.renderer.sql(part), min(own or self.reads(part), default=self.first))

    def keys(self, sides: Mapping[Expression, set[str]], joined: str = "") -> str:
        """That two values are equal and there. The second is asked of one side alone, best of a column in it.

        Of a LEFT join, it is asked of the joined side: DuckDB tries nothing below the other, and rows whose key is NULL
        would meet all of the joined side that have none either. In WHERE, of a side that a LEFT join may leave NULL, so
        that DuckDB sees that it may not: rows would all meet before that is tried.
        """
        shown = {
            each: self.renderer.sql(each) if isinstance(each, Column) else hidden(self.renderer.sql(each), min(aliases))
            for each, aliases in sides.items()
        }
        own = set(self.aliases.values())
        lefts = {self.aliases[id(each.source)] for each in self.relation.joins if each.left}

        def unfit(each: Expression) -> tuple[bool, ...]:
            first = sides[each] != {joined} if joined else not sides[each] & lefts
            return (first, not sides[each] <= own, not isinstance(each, Column))

        asked = min(sides, key=unfit)
        return f"{equal(*shown.values())} AND {passing(f'({shown[asked]} IS NOT NULL)', min(sides[asked]))}"

    def sifted(self, parts: Sequence[Expression]) -> list[str]:
        """Conditions about one table: as they are, or as one that begins with their ballast (`work`)."""
        texts, ballast = list(map(self.apart.sql, parts)), heavier(sifted_by(self.relation, parts))
        return [f"CASE WHEN {ballast} THEN ({' AND '.join(texts)}) END"] if ballast else texts

    def is_apart(self, at: int) -> bool:
        """Whether conditions about a source alone are tried before it is joined: within EXISTS, unless it is LEFT."""
        return self.matched and not self.relation.joins[at].left

    def inner_conditions(self) -> list[str]:
        """All inner sources with units have one and the same."""
        owned = [each.source for each in self.relation.joins if not each.left and not isinstance(each.source, Open)]
        found = [said for each in owned[1:] if (said := self.same(owned[0], each))]
        if self.spared:
            inner = [self.aliases[id(each.source)] for each in self.relation.joins if not each.left]
            found += [f"({spare(self.first)} = {spare(each)})" for each in inner if each != self.first]
        if self.outer is not None:
            around = (no_spare if self.negated else spare)(self.outer.first)
            found.append(f"({spare(self.first)} = {around})")
        return found

    def left_conditions(self, join: Join) -> list[str]:
        """What a LEFT join asks for, and one unit on both sides."""
        parts = [self.condition(each, self.aliases[id(join.source)]) for each in parts_of_and(join.on)]
        if self.spared:
            parts.append(f"({spare(self.first)} = {spare(self.aliases[id(join.source)])})")
        found = [" AND ".join(parts) or "TRUE"]
        if not isinstance(join.source, Open):
            found.append(self.same(owner_of(self.relation), join.source))
        return list(filter(None, found))

    def same(self, one: Source, other: Source) -> str:
        """That two sources speak of one unit; nothing where both take it from the same row."""
        parts = range(len(unit_types(one, self.files)))
        pairs = [(self.unit(one, at), self.unit(other, at)) for at in parts]
        return " AND ".join(equal(*pair) for pair in pairs if pair[0] != pair[1])
