"""Aggregates as they are asked for: which kind, of what value, over which rows."""

from __future__ import annotations

from collections.abc import Container, Mapping
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError, QuestionRefusedError
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import (
    NULL,
    TRUE,
    Aggregate,
    Call,
    Column,
    Expression,
    Literal,
    Type,
    listed,
    number,
    written,
)
from dalenius.measuring.functions import ranges_of
from dalenius.measuring.statistics import FUNCTIONS, AggregateFunction, family_for
from dalenius.queries.rules.clamp import Clamp, no_place
from dalenius.queries.rules.parse import place
from dalenius.queries.rules.scope import SelectScope, has_aggregates

if TYPE_CHECKING:
    from sqlglot import exp

    from dalenius.measuring.plan import Table
    from dalenius.measuring.statistics.family import AggregateForm


MOST_LISTED = 101  # values in one cell: all percentiles, and both ends
_OF_DIFFERENT = {
    "sum": "sum_distinct",
    "avg": "avg_distinct",
    "min": "min",
    "max": "max",
}  # what DISTINCT makes of an aggregate
_ALL_VALUES = "Leave it out; COUNT(DISTINCT x), SUM(DISTINCT x) and AVG(DISTINCT x) are about different values."


class Aggregating(SelectScope):
    """Reads aggregates, and remembers where each stands."""

    clamps: Mapping[int, tuple[Clamp, ...]] = MappingProxyType({})  # those of a question, not of a subquery
    claimed: set[int]
    notes: dict[str, None]
    in_lists: int = 0  # values, of all lists together
    _table: Table | None = None

    @property
    def table(self) -> Table:
        """The table that is asked about, once FROM and WHERE are read."""
        if self._table is None:
            raise RuntimeError("The rows were not read yet.")
        return self._table

    def aggregate(
        self,
        node: exp.Expr,
        kind: str,
        value: Expression | None,
        where: Expression,
        other: Expression | None = None,
        parameter: float | None = None,
    ) -> Aggregate:
        """One aggregate in its one form."""
        if any(has_aggregates(each) for each in (value, where, other) if each is not None):
            raise self.refused(
                node,
                "An aggregate inside an aggregate is not supported.",
                "Aggregate what is released: SELECT AVG(n) FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)",
                "Rows are aggregated once.",
            )
        asking = family_for(kind).asked[kind]
        value, where, limit = self.clamped(node, asking, value, where)
        if asking.adds and value is not None and value.type is Type.BOOLEAN:
            kind, where = "count", call("and", where, value)
            value = None
        if value is not None:
            for each in (value, other):
                if each is not None and each.type is Type.UNIT:
                    raise self.told(node, each)
                if each is not None and each.type not in self.taken(asking):
                    raise self.not_added(node, each.type)
            if other is None:
                value, where = _guarded(value, where, zero=asking.adds)
            if asking.adds and value == number(1):  # SUM(1) is COUNT(*)
                kind, value = "count", None
        gives = value.type if value is not None and asking.keeps_type else Type.NUMBER
        found = Aggregate(kind, value, where, gives, other=other, parameter=parameter, limit=limit)
        self.places.setdefault(found, place(node, self.text))
        return found

    def clamped(
        self, node: exp.Expr, asking: AggregateForm, value: Expression | None, where: Expression
    ) -> tuple[Expression | None, Expression, Fraction | None]:
        """Value, rows and limit under the contribution bounds that stand in an aggregate."""
        limit, start = None, node.meta.get("start", -1)
        for clamp in self.clamps.get(start, ()):
            self.claimed.add(start)
            values = clamp.clamps_values(asking)
            self.notes.setdefault(clamp.note(asking, value, self.table.unit), None)
            if not values:
                limit = clamp.total(asking)
            elif value is not None and value.type is Type.NUMBER:
                inner, value = value, clamp.value(value, ranges_of(self.table.policy.columns))
                # LEAST passes over NULL, which has to stay one
                where = where if value == inner else call("and", where, self.present(inner))
        return value, where, limit

    def all_claimed(self) -> None:
        """Refuses contribution bounds that belong to no aggregate."""
        left = next((each for at, each in self.clamps.items() if at not in self.claimed), None)
        if left is not None:
            raise no_place(left[0])

    def not_added(self, node: exp.Expr, given: Type) -> InputError:
        """The error about an aggregate of what is no number."""
        error = self.mismatch(node, "number", given.value)
        error.fix = "Count them: COUNT(*), with GROUP BY for each value."
        if given is Type.BOOLEAN:
            error.fix = "For their share write AVG(CAST(x AS INTEGER)), for their number COUNT_IF(x)."
        if given in {Type.DATE, Type.DATETIME}:
            error.fix = "Ask about days since a date: DATE_DIFF('day', DATE '2020-01-01', d)."
        return error

    def taken(self, asking: AggregateForm) -> Container[Type]:
        """The types that an aggregate takes. Within one unit the least of dates and texts is worked out, too."""
        return asking.takes_within if asking.takes_within and self.is_subquery else asking.takes

    def counted(self, node: Any, where: Expression) -> Aggregate:
        """COUNT of rows, of values that are there, of units or of different values."""
        from sqlglot import exp

        inner = node.this
        if node.expressions:
            raise self.refused(node, "COUNT takes one argument.", "Write COUNT(*) or COUNT(x).")
        if inner is None or isinstance(inner, exp.Star):
            return self.aggregate(node, "count", None, where)
        if isinstance(inner, exp.Distinct):
            return self.counted_units(node, inner, where)
        if self.shared.plain and isinstance(inner, exp.Column) and self.units_named([inner]):
            column = self.lookup(inner)
            if column is None or column.type is Type.UNIT:  # not open to questions; every row has one
                return self.aggregate(node, "count", None, where)
        value, where = _guarded(self.expression(inner), where, zero=False)
        if isinstance(value, Literal):
            present: Expression = TRUE if value != NULL else call("not", TRUE)
        else:
            present = self.present(value)
        return self.aggregate(node, "count", None, call("and", where, present))

    def present(self, value: Expression) -> Expression:
        """The condition that a value is there; nothing where a default stands in for NULL."""
        column = self.table.policy.columns.get(value.name) if isinstance(value, Column) else None
        return TRUE if column is not None and column.default is not None else call("not", call("is_null", value))

    def counted_units(self, node: Any, inner: Any, where: Expression) -> Aggregate:
        """COUNT(DISTINCT …): of the unit, or of one value."""
        from sqlglot import exp

        nodes = inner.expressions
        if len(nodes) == 1 and isinstance(nodes[0], exp.Tuple):
            nodes = nodes[0].expressions
        unit = self.table.unit
        if all(isinstance(each, exp.Column) for each in nodes) and self.units_named(nodes):
            return self.aggregate(node, "units", None, call("and", where, *self.units_present(nodes)))
        if len(nodes) == 1:
            return self.aggregate(node, "distinct", self.expression(nodes[0]), where)
        raise QuestionRefusedError(
            "COUNT(DISTINCT …) takes the unit or one value.",
            why="Of several values together the parts of one person are not bounded here.",
            fix="Ask for one of them, or for "
            f"COUNT(DISTINCT {', '.join(unit) if len(unit) == 1 else '(' + ', '.join(unit) + ')'}).",
            at=place(node, self.text),
        )

    def filtered(self, node: Any) -> Expression:
        """An aggregate with FILTER (WHERE …)."""
        inner = node.this
        where = self.boolean(node.expression.this, "FILTER")
        return self.aggregated(inner, where)

    def aggregated(self, node: Any, where: Expression = TRUE) -> Expression:
        """Any aggregate."""
        from sqlglot import exp

        if isinstance(node, exp.Count):
            return self.counted(node, where)
        if isinstance(node, exp.CountIf):
            return self.aggregate(node, "count", None, call("and", where, self.boolean(node.this, "COUNT_IF")))
        if isinstance(node, _quantiles()):
            return self.quantile(node, where)
        function = function_of(node)
        if function is None:
            raise self.refused(node, "FILTER belongs to an aggregate.", "Write COUNT(*) FILTER (WHERE …).")
        nodes, kind = _arguments(node), function.aggregate
        if len(nodes) == 1 and isinstance(nodes[0], exp.Distinct) and kind in _OF_DIFFERENT:
            nodes, kind = nodes[0].expressions, _OF_DIFFERENT[kind]
        if any(isinstance(each, exp.Distinct) for each in nodes):
            raise self.refused(node, "DISTINCT inside an aggregate is not supported.", _ALL_VALUES)
        if len(nodes) != function.arguments:
            raise self.refused(node, f"{_named(node)} has another number of arguments.", f"Give {function.arguments}.")
        found = list(map(self.expression, nodes))
        if family_for(kind).asked[kind].symmetric:
            found.sort(key=written)
        return self.aggregate(node, kind, found[0], where, found[1] if len(found) > 1 else None)

    def quantile(self, node: Any, where: Expression) -> Expression:
        """MEDIAN(x), QUANTILE_CONT(x, p) and the like, PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x); lists of them."""
        from sqlglot import exp

        value, share, descending = node.this, node.args.get("quantile") or node.args.get("expression"), False
        if isinstance(node, exp.WithinGroup):
            order = node.expression
            terms = order.expressions if isinstance(order, exp.Order) else []
            if not isinstance(value, _quantiles()) or value.args.get("expression") is not None or len(terms) != 1:
                raise self.refused(
                    node,
                    "WITHIN GROUP is not understood here.",
                    "Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).",
                )
            value, share, descending = terms[0].this, value.this, bool(terms[0].args.get("desc"))
        if isinstance(value, exp.Distinct):
            raise self.refused(node, "DISTINCT inside an aggregate is not supported.", _ALL_VALUES)
        if isinstance(node, exp.Median):
            return self.aggregate(node, "quantile", self.expression(value), where, parameter=0.5)
        if isinstance(node, exp.ApproxQuantiles):
            return self.parted(node, value, share, where)
        if isinstance(share, exp.Array):
            self.check_list(node, len(share.expressions))
            shares, of = [self.share(node, each) for each in share.expressions], self.expression(value)
            return listed(
                self.aggregate(node, "quantile", of, where, parameter=1 - at if descending else at) for at in shares
            )
        at = self.share(node, share)
        return self.aggregate(node, "quantile", self.expression(value), where, parameter=1 - at if descending else at)

    def share(self, node: Any, share: Any) -> float:
        """The part of the rows that lie below a quantile."""
        found = None if share is None else self.expression(share)
        at = found.value if isinstance(found, Literal) else None
        if not isinstance(at, float) or not 0 <= at <= 1:
            raise self.invalid(
                node, "A quantile needs a share.", "It is one number from 0 to 1.", "Write QUANTILE_CONT(x, 0.9)."
            )
        return at

    def parted(self, node: Any, value: Any, number: Any, where: Expression) -> Expression:
        """APPROX_QUANTILES(x, n): the least value, the n − 1 that part the rows evenly, and the largest.

        The ends are what MIN and MAX are, private extremes; all of it is read from one tree.
        """
        parts = self.whole_number(number, 1, MOST_LISTED - 1)
        self.check_list(node, parts + 1)
        of = self.expression(value)
        between = [self.aggregate(node, "quantile", of, where, parameter=at / parts) for at in range(1, parts)]
        return listed(
            [self.aggregate(node, "min", of, where), *between, self.aggregate(node, "max", of, where)],
        )

    def check_list(self, node: Any, size: int) -> None:
        """Refuses lists that are too long, empty, or within one unit."""
        if self.is_subquery:
            raise self.list_alone(node)
        self.in_lists += size
        if not 1 <= size <= MOST_LISTED or self.in_lists > 10 * MOST_LISTED:
            raise self.refused(node, f"A list has 1 to {MOST_LISTED} values here.", "Ask for fewer.")


def function_of(node: Any) -> AggregateFunction | None:
    """The aggregate that a function is, where it is one; also of functions that the parser has no node for."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return FUNCTIONS.get(_named(node)) if _named(node) not in exp.FUNCTION_BY_NAME else None
    return FUNCTIONS.get(aggregate_nodes().get(type(node), ""))


def is_aggregate(node: Any) -> bool:
    """Whether a node of the syntax tree is an aggregate, of this language or of any."""
    from sqlglot import exp

    return isinstance(node, exp.AggFunc) or function_of(node) is not None


@cache
def aggregate_nodes() -> Mapping[type, str]:
    """The parser's nodes of aggregates that are plain functions, each with a name; some it has no node for."""
    from sqlglot import exp

    return {exp.FUNCTION_BY_NAME[name]: name for name in FUNCTIONS if name in exp.FUNCTION_BY_NAME}


def _arguments(node: Any) -> list[Any]:
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [each for each in (node.this, node.args.get("expression")) if each is not None]


def _named(node: Any) -> str:
    return str(node.this).upper()


def _quantiles() -> tuple[type[Any], ...]:
    from sqlglot import exp

    return (
        exp.Median,
        exp.Quantile,
        exp.ApproxQuantile,
        exp.PercentileCont,
        exp.PercentileDisc,
        exp.ApproxQuantiles,
        exp.WithinGroup,
    )


def _guarded(value: Expression, where: Expression, *, zero: bool) -> tuple[Expression, Expression]:
    """AVG(CASE WHEN p THEN x END) is AVG(x) FILTER (WHERE p); where values are added up, also with ELSE 0."""
    if isinstance(value, Call) and value.function == "case" and len(value.arguments) == 3:
        condition, inner, otherwise = value.arguments
        if otherwise == NULL or (zero and otherwise == number(0)):
            return inner, call("and", where, condition)
    return value, where
