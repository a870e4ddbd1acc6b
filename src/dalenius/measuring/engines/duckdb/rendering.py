"""Expressions in DuckDB's SQL. Each function is written so that, on finite values and NULL, it cannot fail."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from datetime import datetime
from typing import TypeAlias

from dalenius.measuring.engines.duckdb.opening import quoted
from dalenius.measuring.expressions import (
    Aggregate,
    Call,
    Column,
    Expression,
    Key,
    Literal,
    Scalar,
    Type,
    Which,
    columns_of,
)
from dalenius.measuring.functions import FUNCTIONS, SKIPPING, TIME, awaits, whole
from dalenius.measuring.work import LONGEST_NUMBER, LONGEST_TEXT, SURE_DIGITS, Work, ballast, has_few_digits

Arguments: TypeAlias = tuple[Expression, ...]
WHICH_SET = "which_set"  # what the number of a row's grouping set is called
ZERO = "CAST(0e0 * random() AS INTEGER)"  # which DuckDB takes for another one in each row
_MD5, _SINE = 170.0, 10.0  # ns


def identifier(name: str) -> str:
    """A name as SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def double(value: float) -> str:
    """A number as SQL literal of type DOUBLE, exactly.

    >>> double(1.5), double(-3.0), double(1e-05)
    ('1.5e0', '(-3.0e0)', '1e-05')
    """
    shown = repr(float(value))
    shown = shown if "e" in shown else shown + "e0"
    return f"({shown})" if value < 0 else shown


def literal(value: Scalar) -> str:
    """A constant as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | int):
        return double(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    return f"DATE '{value.isoformat()}'"


def each_row(shown: str, type_: Type, longest: int = 2**20) -> str:
    """The same value, worked out anew for each row.

    Where all rows that DuckDB holds at once have one value (2,048 of them: a literal in a branch that all take, a
    column that says the same everywhere), it works functions of it out once; but for each of these rows, as soon as one
    of them has another value. So one person's row would cost what two thousand cost. Written so, all always do.

    Args:
        shown: A value as SQL.
        type_: Its type.
        longest: Characters that are kept of a text.
    """
    match type_:
        case Type.NUMBER:
            return f"({shown} - 0e0 * random())"  # exactly what it was, -0 too
        case Type.TEXT:
            return f"left({shown}, {longest} + {ZERO})"
        case Type.DATE:
            return f"({shown} + {ZERO})"
        case Type.DATETIME:
            return f"({shown} + to_days({ZERO}))"
        case Type.BOOLEAN:
            return f"(CAST({shown} AS INTEGER) + {ZERO} = 1)"
    return shown


def heavier(work: Work) -> str:
    """A condition that always holds and takes `ballast`; empty where none is needed.

    It works on random numbers, so that it is worked out for each row, in a time that no row can change.
    """
    left = ballast(work)
    if left <= 0:
        return ""
    digests, shown = int(left // _MD5), "random()"
    for _ in range(round((left - digests * _MD5) / _SINE)):
        shown = f"sin({shown})"
    if not digests:
        return f"({shown} < 2e0)"
    shown = f"CAST({shown} AS VARCHAR)"
    for _ in range(digests):
        shown = f"md5({shown})"
    return f"({shown} <> '')"


def numeral(text: str) -> str:
    """A text as SQL, or NULL where DuckDB's parser of numbers could take long over it.

    A text of more than 19 digits that begins like the middle between two doubles is compared with that in integers of
    up to a thousand bits: 10 µs for 20 digits and an exponent of 300, instead of 0.1. So there are at most 19 digits
    before an exponent (a point and a minus beside them), and without one at most 32 characters, which take below 1 µs.
    One CASE, since DuckDB may try the conditions of an AND in another order.

    Args:
        text: Names a column; it is written several times.
    """
    point = f"CAST(left({text}, {SURE_DIGITS + 2}) LIKE '%.%' AS INTEGER)"  # before the exponent, not in it
    before = f"{SURE_DIGITS + 1} + {point} + CAST({text} LIKE '-%' AS INTEGER)"
    return (
        f"CASE WHEN strlen({text}) <= {SURE_DIGITS} THEN {text} WHEN strlen({text}) > {LONGEST_NUMBER} THEN NULL "
        f"WHEN instr(lower({text}), 'e') <= {before} THEN {text} END"
    )


_TYPES = {
    Type.NUMBER: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.DATETIME: "TIMESTAMP",
}


class Renderer:
    """Writes expressions; ``columns`` says how each column is spelled, ``integers`` which hold whole numbers only.

    ``whole`` are the keys and aggregates that do, of what was released.

    ``lengths`` are the categories among columns of rows, each with how many characters functions get of it: all where
    there are keys. They are grouped by, compared and listed as they are, which takes no longer than to read them. None:
    no rows are read.

    A column with few values comes from a file as a list of them, and DuckDB works functions out once for each; but for
    every row as soon as one person's NULL, or a value that is none of the keys, makes it write the column out. The same
    holds of ``listed`` columns, those of public tables, and of constants among which a CASE or COALESCE chooses. What
    costly functions get is therefore always written out row by row (`written_out`, `each_row`); not without ``random``,
    in conditions where DuckDB does not bear a random number.
    """

    def __init__(
        self,
        columns: Mapping[str, str],
        integers: frozenset[str] = frozenset(),
        keys: Mapping[int, str] | None = None,
        aggregates: Mapping[Aggregate, str] | None = None,
        lengths: Mapping[str, int] | None = None,
        listed: frozenset[str] = frozenset(),
        random: bool = True,
        whole: Container[Expression] = (),
    ) -> None:
        self.columns, self.listed, self.random = columns, listed, random
        self.lengths, self.rows = lengths or {}, lengths is not None
        self.integers = integers
        self.keys = keys or {}
        self.aggregates = aggregates or {}
        self.whole = whole

    def sql(self, expression: Expression) -> str:
        """The expression as SQL."""
        match expression:
            case Literal(value=value):
                return literal(value)
            case Column(name=name):
                return self.columns[name]
            case Key(number=place):
                return self.keys[place]
            case Aggregate():
                return self.aggregates[expression]
            case Which():
                return WHICH_SET
            case Call(function="to_text", arguments=(inner,)):
                return self.as_text(inner)
            case Call(function="date_trunc" | "date_add", type=Type.DATE):
                return f"CAST({self.call(expression)} AS DATE)"
            case Call():
                return self.call(expression)

    def call(self, call: Call) -> str:
        """A function, by its template."""
        function, arguments = call.function, call.arguments
        if function in _WITH_CONSTANTS:
            return _WITH_CONSTANTS[function](self, arguments)
        parts = [self.argument(function, at, each) for at, each in enumerate(arguments)]
        if self.rows and function in SKIPPING:
            parts = [self.awaited(arguments, at, each) for at, each in enumerate(parts)]
        if self.rows and function in {"case", "coalesce"}:
            parts = [self.chosen(function, at, arguments, each) for at, each in enumerate(parts)]
        if function in _INFIX:
            return "(" + f" {_INFIX[function]} ".join(parts) + ")"
        if function == "case":
            *pairs, otherwise = parts
            branches = " ".join(f"WHEN {pairs[at]} THEN {pairs[at + 1]}" for at in range(0, len(pairs), 2))
            return f"(CASE {branches} ELSE {otherwise} END)"
        if function == "in":
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
        return _TEMPLATES.get(function, function + "({})").format(", ".join(parts), *parts)

    def argument(self, function: str, at: int, inner: Expression) -> str:
        """An argument. A bare NULL could be of any type, also of one for which there is another function or none."""
        shown = self.sql(inner)
        if function not in _AS_IT_IS:
            shown = self.written_out(function, inner, shown)
        if inner.type is not Type.NOTHING or function not in FUNCTIONS:
            return shown
        takes = FUNCTIONS[function].takes
        types = takes[min(at, len(takes) - 1)]
        type_ = "TIMESTAMP" if types == TIME else _TYPES[min(types, key=str)] if len(types) == 1 else ""
        return f"CAST({shown} AS {type_})" if type_ else shown

    def chosen(self, function: str, at: int, arguments: Arguments, shown: str) -> str:
        """What a CASE or COALESCE may choose: a constant row by row, everything else as it is."""
        inner = arguments[at]
        value = function == "coalesce" or at % 2 or at == len(arguments) - 1
        same = value and inner.type is not Type.NOTHING and not columns_of(inner)
        return self.each_row(shown, inner.type) if same else shown

    def awaited(self, arguments: Arguments, at: int, shown: str) -> str:
        """An argument that is never NULL for all rows at once, where others that take their time come after it.

        DuckDB leaves those out for all of 2,048 rows if it is, so that one person's value would cost what all rows
        cost. Half of the rows get their NULL from another branch, and nothing is known of all of them.
        """
        inner = arguments[at]
        if not self.random or inner.type not in _TYPES or not awaits(arguments, at):
            return shown
        return f"coalesce({shown}, CASE WHEN random() < 5e-1 THEN CAST(NULL AS {_TYPES[inner.type]}) END)"

    def each_row(self, shown: str, type_: Type, longest: int | None = None) -> str:
        """A value worked out for each row, where that can be; a text is cut anyway."""
        if self.random:
            return each_row(shown, type_) if longest is None else each_row(shown, type_, longest)
        return shown if longest is None else f"left({shown}, {longest})"

    def written_out(self, function: str, inner: Expression, shown: str) -> str:
        """An argument, row by row, where that takes longer than once for each value that there is."""
        if not self.rows or isinstance(inner, Literal):
            return shown
        if inner.type is Type.TEXT and (cut := self.cut(inner)):
            return self.each_row(shown, Type.TEXT, cut)
        public = isinstance(inner, Column) and inner.name in self.listed
        if public or (function in _WRITTEN_OUT and inner.type is not Type.TEXT):
            return self.each_row(shown, inner.type)
        return shown

    def cut(self, inner: Expression) -> int:
        """How many characters are kept of a text that may come as a list of values; 0: it does not."""
        match inner:
            case Column(name=name):
                return self.lengths.get(name, 0)
            case Call(function="case" | "coalesce" | "nullif", arguments=arguments):
                found = [self.cut(each) for each in arguments if each.type is Type.TEXT]
                return max(LONGEST_TEXT, *found) if any(found) else 0
        return 0

    def number(self, inner: Expression) -> str:
        """A value as number; a text only if that is quick (`numeral`)."""
        shown = self.argument("to_number", 0, inner)
        if inner.type is Type.TEXT and not has_few_digits(inner):
            if isinstance(inner, Column | Literal):
                spelled = numeral(self.sql(inner))
                cut = self.each_row(spelled, Type.TEXT, LONGEST_NUMBER) if self.rows else spelled
            else:  # named once: it may be costly
                cut = f"list_transform([{shown}], lambda spelled: {numeral('spelled')})[1]"
            shown = cut
        return f"TRY_CAST({shown} AS DOUBLE)"

    def round_even(self, inner: Expression) -> str:
        """The nearest whole number, of two the even one, as a cast of a double gives it.

        From 2⁵² on all doubles are whole, and the cast would fail on some; DuckDB's own round_even() is off where
        ten times the number is no double.
        """
        shown = self.argument("round_even", 0, inner)
        if isinstance(inner, Call):  # named once: it may be costly
            return f"list_transform([{shown}], lambda given: {_EVEN.format('given')})[1]"
        return _EVEN.format(shown)

    def time(self, inner: Expression) -> str:
        """An argument that is a time."""
        return self.argument("date_part", 1, inner)

    def as_text(self, inner: Expression) -> str:
        """A value as text; whole numbers without a decimal point."""
        shown = self.written_out("to_text", inner, self.sql(inner))
        if inner.type is Type.NUMBER and whole(inner, self.integers, self.whole):
            shown = f"TRY_CAST({shown} AS BIGINT)"
        return f"CAST({shown} AS VARCHAR)"


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "eq": "=", "ne": "<>", "lt": "<", "le": "<="}
_INFIX |= {"and": "AND", "or": "OR", "like": "LIKE"}
_AS_IT_IS = frozenset({"eq", "ne", "lt", "le", "in", "is_null"})
_WRITTEN_OUT = frozenset({"to_text", "power", "round", "mod"})  # of those that do not look at texts

_EVEN = "(CASE WHEN abs({0}) < 4503599627370496e0 THEN CAST(TRY_CAST({0} AS BIGINT) AS DOUBLE) ELSE {0} END)"

# A text may name a day that DuckDB can hold but not move; as in columns, only years 1 to 9999 exist.
_TIME = (
    "(CASE WHEN TRY_CAST({0} AS {type}) BETWEEN {type} '0001-01-01' AND {type} '{last}' "
    "THEN TRY_CAST({0} AS {type}) END)"
)

# {0} is all arguments, {1} the first
_TEMPLATES = {
    "neg": "(-{1})",
    "not": "(NOT {1})",
    "is_null": "({1} IS NULL)",
    "finite": "(CASE WHEN isfinite({1}) THEN {1} END)",
    "sign": "CAST(sign({1}) AS DOUBLE)",
    "length": "CAST(length({1}) AS DOUBLE)",
    "position": "CAST(instr({0}) AS DOUBLE)",
    "regexp": "regexp_matches({0})",
    "to_boolean": "TRY_CAST({1} AS BOOLEAN)",
    "to_date": _TIME.format("{1}", type="DATE", last="9999-12-31"),
    "to_datetime": _TIME.format("{1}", type="TIMESTAMP", last="9999-12-31 23:59:59.999999"),
    # DuckDB's own ILIKE does the same, but goes back and forth where a pattern has several %.
    "ilike": "(lower({1}) LIKE lower({2}))",
    # A text never grows: nested, these two would make one row heavier than all others together.
    "concat": f"left({{1}} || {{2}}, {LONGEST_TEXT})",
    "replace": f"left(replace({{0}}), {LONGEST_TEXT})",
}


def _count(expression: Expression) -> int:
    return int(expression.value)  # type: ignore[union-attr, arg-type]


def _word(expression: Expression) -> str:
    return str(expression.value)  # type: ignore[union-attr]


def _left(renderer: Renderer, arguments: Arguments) -> str:
    """The beginning of a text; cut once is enough."""
    inner, count = arguments
    cut = renderer.cut(inner) if isinstance(inner, Column) and renderer.rows else 0
    if cut and _count(count) >= 0:
        return renderer.each_row(renderer.sql(inner), Type.TEXT, min(_count(count), cut))
    return f"left({renderer.argument('left', 0, inner)}, {_count(count)})"


_WITH_CONSTANTS: dict[str, Callable[[Renderer, Arguments], str]] = {
    "left": _left,
    "right": lambda r, a: f"right({r.argument('right', 0, a[0])}, {_count(a[1])})",
    "substring": lambda r, a: (
        f"substring({', '.join([r.argument('substring', 0, a[0]), *(str(_count(each)) for each in a[1:])])})"
    ),
    "split_part": lambda r, a: f"split_part({r.argument('split_part', 0, a[0])}, {r.sql(a[1])}, {_count(a[2])})",
    "round": lambda r, a: f"round({', '.join([r.argument('round', 0, a[0]), *(str(_count(each)) for each in a[1:])])})",
    "to_number": lambda r, a: r.number(a[0]),
    "to_integer": lambda r, a: f"round({r.number(a[0])})",
    "round_even": lambda r, a: r.round_even(a[0]),
    "date_part": lambda r, a: f"CAST(date_part('{_word(a[0])}', {r.time(a[1])}) AS DOUBLE)",
    "date_trunc": lambda r, a: f"date_trunc('{_word(a[0])}', {r.time(a[1])})",
    "date_diff": lambda r, a: (
        f"CAST(date_diff('{_word(a[0])}', {r.awaited(a, 1, r.time(a[1]))}, {r.time(a[2])}) AS DOUBLE)"
    ),
    "date_sub": lambda r, a: (
        f"CAST(date_sub('{_word(a[0])}', {r.awaited(a, 1, r.time(a[1]))}, {r.time(a[2])}) AS DOUBLE)"
    ),
    "date_add": lambda r, a: f"({r.time(a[1])} + INTERVAL '{_count(a[2])} {_word(a[0])}')",
}
