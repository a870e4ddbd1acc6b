"""The allow-list of scalar functions: what they take, what they give, and how a result is bounded.

Each is total in every engine's rendering: it never fails, whatever the row holds (DESIGN, decision 6). That is privacy,
not comfort: a failure that depends on one row tells about that row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeAlias

from dalenius.measuring.expressions import NULL, Aggregate, Call, Column, Expression, Key, Literal, Type, columns_of
from dalenius.tables import policy as tables

Range: TypeAlias = tuple[float, float]
Rule: TypeAlias = Callable[..., Range]
EVERYTHING = (-math.inf, math.inf)
N, B, T, D, M = Type.NUMBER, Type.BOOLEAN, Type.TEXT, Type.DATE, Type.DATETIME
ANY = frozenset({N, B, T, D, M})
TIME = frozenset({D, M})
TYPES: Mapping[tables.Kind, Type] = {
    tables.Kind.INTEGER: Type.NUMBER,
    tables.Kind.NUMBER: Type.NUMBER,
    tables.Kind.BOOLEAN: Type.BOOLEAN,
    tables.Kind.CATEGORY: Type.TEXT,
    tables.Kind.TEXT: Type.TEXT,
    tables.Kind.DATE: Type.DATE,
    tables.Kind.DATETIME: Type.DATETIME,
}


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    Attributes:
        takes: The types of its arguments, in order; the last one repeats if `many`.
        gives: Its type; None: the type of its arguments.
        least: How many arguments it needs.
        many: Whether the last argument may repeat.
        says: How people write it, for the reference page.
    """

    takes: tuple[frozenset[Type], ...]
    gives: Type | None
    says: str
    least: int | None = None
    many: bool = False


def _of(*types: Type | frozenset[Type]) -> tuple[frozenset[Type], ...]:
    return tuple(each if isinstance(each, frozenset) else frozenset({each}) for each in types)


FUNCTIONS: Mapping[str, Function] = {
    # numbers
    "add": Function(_of(N, N), N, "a + b"),
    "sub": Function(_of(N, N), N, "a - b"),
    "mul": Function(_of(N, N), N, "a * b"),
    "div": Function(_of(N, N), N, "a / b"),
    "intdiv": Function(_of(N, N), N, "a // b"),
    "mod": Function(_of(N, N), N, "a % b"),
    "neg": Function(_of(N), N, "-a"),
    "abs": Function(_of(N), N, "ABS(a)"),
    "sign": Function(_of(N), N, "SIGN(a)"),
    "floor": Function(_of(N), N, "FLOOR(a)"),
    "ceil": Function(_of(N), N, "CEIL(a)"),
    "trunc": Function(_of(N), N, "TRUNC(a)"),
    "round": Function(_of(N, N), N, "ROUND(a, digits)", least=1),
    "sqrt": Function(_of(N), N, "SQRT(a)"),
    "ln": Function(_of(N), N, "LN(a)"),
    "log10": Function(_of(N), N, "LOG10(a)"),
    "log2": Function(_of(N), N, "LOG2(a)"),
    "exp": Function(_of(N), N, "EXP(a)"),
    "sin": Function(_of(N), N, "SIN(a)"),
    "cos": Function(_of(N), N, "COS(a)"),
    "tan": Function(_of(N), N, "TAN(a)"),
    "asin": Function(_of(N), N, "ASIN(a)"),
    "acos": Function(_of(N), N, "ACOS(a)"),
    "atan": Function(_of(N), N, "ATAN(a)"),
    "atan2": Function(_of(N, N), N, "ATAN2(a, b)"),
    "finite": Function(_of(N), N, "a, or NULL where it is not finite"),
    "power": Function(_of(N, N), N, "POWER(a, b)"),
    "least": Function(_of(N), N, "LEAST(a, b, …)", many=True),
    "greatest": Function(_of(N), N, "GREATEST(a, b, …)", many=True),
    # truth
    "eq": Function(_of(ANY, ANY), B, "a = b"),
    "ne": Function(_of(ANY, ANY), B, "a <> b"),
    "lt": Function(_of(ANY, ANY), B, "a < b"),
    "le": Function(_of(ANY, ANY), B, "a <= b"),
    "in": Function(_of(ANY, ANY), B, "a IN (1, 2, …)", many=True),
    "is_null": Function(_of(ANY), B, "a IS NULL"),
    "and": Function(_of(B), B, "a AND b", many=True),
    "or": Function(_of(B), B, "a OR b", many=True),
    "not": Function(_of(B), B, "NOT a"),
    "like": Function(_of(T, T), B, "a LIKE 'x%'"),
    "ilike": Function(_of(T, T), B, "a ILIKE 'x%'"),
    "contains": Function(_of(T, T), B, "CONTAINS(a, 'x')"),
    "starts_with": Function(_of(T, T), B, "STARTS_WITH(a, 'x')"),
    "ends_with": Function(_of(T, T), B, "ENDS_WITH(a, 'x')"),
    "regexp": Function(_of(T, T), B, "REGEXP_MATCHES(a, 'x+')"),
    # choice; `case` is condition, value, …, else
    "case": Function(_of(ANY), None, "CASE WHEN p THEN a ELSE b END", many=True),
    "coalesce": Function(_of(ANY), None, "COALESCE(a, b, …)", many=True),
    "nullif": Function(_of(ANY, ANY), None, "NULLIF(a, b)"),
    # texts
    "lower": Function(_of(T), T, "LOWER(a)"),
    "upper": Function(_of(T), T, "UPPER(a)"),
    "trim": Function(_of(T, T), T, "TRIM(a, '*')", least=1),
    "ltrim": Function(_of(T, T), T, "LTRIM(a, '*')", least=1),
    "rtrim": Function(_of(T, T), T, "RTRIM(a, '*')", least=1),
    "length": Function(_of(T), N, "LENGTH(a)"),
    "left": Function(_of(T, N), T, "LEFT(a, 3)"),
    "right": Function(_of(T, N), T, "RIGHT(a, 3)"),
    "substring": Function(_of(T, N, N), T, "SUBSTRING(a, 1, 3)", least=2),
    "replace": Function(_of(T, T, T), T, "REPLACE(a, 'x', 'y')"),
    "position": Function(_of(T, T), N, "STRPOS(a, 'x')"),
    "split_part": Function(_of(T, T, N), T, "SPLIT_PART(a, '-', 1)"),
    "concat": Function(_of(T, T), T, "a || b"),
    # dates; the first argument is the unit of time
    "date_part": Function(_of(T, TIME), N, "EXTRACT(year FROM d)"),
    "date_trunc": Function(_of(T, TIME), None, "DATE_TRUNC('month', d)"),
    "date_add": Function(_of(T, TIME, N), None, "d + INTERVAL 1 MONTH"),
    "strftime": Function(_of(TIME, T), T, "STRFTIME(d, '%Y-%m')"),
    "date_diff": Function(_of(T, TIME, TIME), N, "DATE_DIFF('day', d, e)"),
    "date_sub": Function(_of(T, TIME, TIME), N, "DATE_SUB('hour', d, e)"),  # whole units that have passed
    # casts that fail give NULL
    "to_number": Function(_of(ANY), N, "CAST(a AS DOUBLE)"),
    "to_integer": Function(_of(ANY), N, "CAST(a AS INTEGER)"),
    "round_even": Function(_of(N), N, "CAST(a / 2 AS INTEGER)"),
    "to_text": Function(_of(ANY), T, "CAST(a AS VARCHAR)"),
    "to_boolean": Function(_of(ANY), B, "CAST(a AS BOOLEAN)"),
    "to_date": Function(_of(ANY), D, "CAST(a AS DATE)"),
    "to_datetime": Function(_of(ANY), M, "CAST(a AS TIMESTAMP)"),
}

# Functions of several arguments that are NULL where the first is: an engine may not look at the others then.
SKIPPING = frozenset({"add", "sub", "mul", "div", "intdiv", "mod", "power", "eq", "ne", "lt", "le", "in", "nullif"})
SKIPPING |= frozenset({"atan2", "concat", "replace", "like", "ilike", "contains", "starts_with", "ends_with", "regexp"})

PARTS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second")
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_PART_RANGES = {
    "year": (1.0, 9999.0),
    "quarter": (1.0, 4.0),
    "month": (1.0, 12.0),
    "week": (1.0, 53.0),
    "day": (1.0, 31.0),
    "dow": (0.0, 6.0),
    "isodow": (1.0, 7.0),
    "doy": (1.0, 366.0),
    "hour": (0.0, 23.0),
    "minute": (0.0, 59.0),
    "second": (0.0, 59.0),
}
_WHOLE = frozenset({"floor", "ceil", "trunc", "intdiv", "sign", "length", "position", "date_part", "date_diff"})
_WHOLE |= {"to_integer", "round_even", "date_sub"}
_KEEPS_WHOLE = frozenset(
    {"add", "sub", "mul", "neg", "abs", "least", "greatest", "mod", "round", "coalesce", "nullif", "finite"}
)


_COUNTS = frozenset({"count", "units", "distinct"})
_KEEPS_TYPE = frozenset({"sum", "min", "max"})


def awaits(arguments: tuple[Expression, ...], at: int) -> bool:
    """Whether arguments that have to be worked out come after one that may be NULL."""
    return not isinstance(arguments[at], Literal) and any(isinstance(each, Call) for each in arguments[at + 1 :])


def whole(expression: Expression, integers: frozenset[str], released: Container[Expression] = ()) -> bool:
    """Whether its value is always a whole number.

    Args:
        expression: Over rows, or over what was released.
        integers: The columns of type integer.
        released: Keys and aggregates whose values are whole.
    """
    match expression:
        case Literal(value=value):
            return value is None or (isinstance(value, float) and value.is_integer())
        case Column(name=name):
            return name in integers
        case Key() | Aggregate():
            return expression in released
        case Call(function=function, arguments=arguments):
            if function in _WHOLE:
                return True
            if function == "round":
                digits = arguments[1:]
                return not digits or _not_above_zero(digits[0]) or whole(arguments[0], integers, released)
            if function in _KEEPS_WHOLE:
                return all(whole(each, integers, released) for each in arguments)
            if function == "case":
                return all(whole(each, integers, released) for each in branches(expression))
    return False


def decimal(expression: Expression, integers: frozenset[str]) -> bool:
    """Whether DuckDB has it as an integer or a decimal: half of one rounds away from zero, of a double to even.

    A quotient, and a column of type number, is a double. Of a constant the question's text has to say.
    """
    if whole(expression, integers):
        return True
    match expression:
        case Literal(value=float()):
            return True
        case Aggregate(kind=kind, value=value):
            return kind in _COUNTS or (kind in _KEEPS_TYPE and value is not None and decimal(value, integers))
        case Call(function="case"):
            return all(decimal(each, integers) for each in branches(expression))
        case Call(function=function, arguments=arguments):
            parts = arguments[:1] if function == "round" else arguments
            return function in _KEEPS_WHOLE and all(decimal(each, integers) for each in parts)
    return False


def branches(case: Call) -> tuple[Expression, ...]:
    """The values of a `case`."""
    return (*case.arguments[1:-1:2], case.arguments[-1])


def conditions(case: Call) -> tuple[Expression, ...]:
    """The conditions of a `case`."""
    return case.arguments[0:-1:2]


def ranges_of(columns: Mapping[str, tables.Column]) -> Mapping[str, Range]:
    """The bounds of number columns, in doubles."""
    return {
        name: (float(each.bounds.low), float(each.bounds.high))
        for name, each in columns.items()
        if each.kind in tables.NUMERIC and each.bounds is not None
    }


def moments_of(columns: Mapping[str, tables.Column]) -> Mapping[str, Range]:
    """The bounds of dates and datetimes, in seconds since 1970; see `bounded`."""
    return {
        name: (_seconds(each.bounds.low), _seconds(each.bounds.high))
        for name, each in columns.items()
        if each.kind in {tables.Kind.DATE, tables.Kind.DATETIME} and each.bounds is not None
    }


def _seconds(moment: date) -> float:
    """Seconds since 1970, of a date those of its midnight."""
    start = datetime(1970, 1, 1)  # noqa: DTZ001 (as all datetimes of the engine)
    whole = moment if isinstance(moment, datetime) else datetime.combine(moment, start.time())
    return (whole.replace(tzinfo=None) - start).total_seconds()


def bounded(expression: Expression, bounds: Mapping[str, Range]) -> Range | None:
    """An interval that holds its value, by interval arithmetic; None: there is none.

    It must be sound: guards against zero divisors, logarithms and overflows are left out where it says they cannot
    matter (`rules.total`). Sensitivity does not rest on it: what is summed is clipped afterwards, on integers.

    >>> x = Column("x", Type.NUMBER)
    >>> bounded(Call("add", (x, x), Type.NUMBER), {"x": (0.0, 5.0)}), bounded(x, {})
    ((0.0, 10.0), None)
    """
    found = _range(expression, bounds)
    return found if all(map(math.isfinite, found)) else None


def _range(expression: Expression, bounds: Mapping[str, Range]) -> Range:
    match expression:
        case Literal(value=bool()):
            return EVERYTHING
        case Literal(value=float() as value):
            return (value, value)
        case Column(name=name):
            return bounds.get(name, EVERYTHING)
        case Call(function="case"):
            return _hull([_range(each, bounds) for each in branches(expression) if each != NULL])
        case Call(function="coalesce", arguments=arguments):
            return _hull([_range(each, bounds) for each in arguments if each != NULL])
        case Call(function="least" | "greatest" as function, arguments=arguments):
            return _extreme(function, arguments, bounds)
        case Call(function="date_part", arguments=(Literal(value=str() as part), moment)):
            # a date that was moved may lie before year 1 or past 9999
            moved = part == "year" and not isinstance(moment, Column)
            return EVERYTHING if moved else _PART_RANGES.get(part, EVERYTHING)
        case Call(function="date_diff" | "date_sub", arguments=(Literal(value=str() as unit), one, other)):
            return _differing(_SHORTEST[unit], _moments(one, bounds), _moments(other, bounds))
        case Call(function=function, arguments=arguments):
            if function not in _RULES or any(each.type is not Type.NUMBER for each in arguments):
                return EVERYTHING
            try:
                found = _RULES[function](*(_range(each, bounds) for each in arguments))
            except (ValueError, OverflowError, ZeroDivisionError):
                return EVERYTHING
            return EVERYTHING if any(map(math.isnan, found)) else found
    return EVERYTHING


def dominated(
    expression: Expression, totals: Mapping[str, float], bounds: Mapping[str, Range] | None = None
) -> float | None:
    """A limit of one unit's Σ|expression| that follows from those of Σ|column|.

    |x·y| ≤ |x|·max|y| where ``bounds`` say how large y can be, and |x ± y| ≤ |x| + |y|.
    """

    def inside(part: Expression) -> float | None:
        return dominated(part, totals, bounds)

    match expression:
        case Literal(value=None) | Literal(value=0.0):
            return 0.0
        case Column(name=name):
            return totals.get(name)
        case Call(function="div", arguments=(one, Literal(value=float() as factor))) if factor:
            inner = inside(one)
            return None if inner is None else inner * abs(1 / factor)
        case Call(function="mul", arguments=(one, other)):
            pairs = ((inside(each), bounded(factor, bounds or {})) for each, factor in ((one, other), (other, one)))
            return min(
                (inner * max(map(abs, ends)) for inner, ends in pairs if inner is not None and ends), default=None
            )
        case Call(function="add" | "sub", arguments=(one, other)):
            parts = [inside(one), inside(other)]
            return None if None in parts else sum(each for each in parts if each is not None)
        case Call(function="neg" | "abs", arguments=(one,)):
            return inside(one)
        case Call(function="coalesce", arguments=(one, Literal(value=0.0))):
            return inside(one)
        case Call(
            function="least",
            arguments=(Call(function="greatest", arguments=(one, Literal(value=0.0))), Literal(value=float() as most)),
        ) if most >= 0:
            return inside(one)  # clamped to [0, most]; NULL becomes 0
        case Call(function="case"):
            known = [each for each in map(inside, branches(expression)) if each is not None]
            if len(known) < len(branches(expression)):
                return None
            read = {name for each in branches(expression) for name in columns_of(each)}
            # Each row takes one branch; branches of one column share its total, those of several do not.
            return max(known) if len(read) <= 1 else sum(known)
    return None


# How many seconds each unit of time has at least.
_SHORTEST = {"year": 365 * 86_400, "quarter": 90 * 86_400, "month": 28 * 86_400, "week": 604_800, "day": 86_400}
_SHORTEST |= {"hour": 3600, "minute": 60, "second": 1}


def _moments(expression: Expression, bounds: Mapping[str, Range]) -> Range:
    """Between which seconds a moment lies, where ``bounds`` say so of dates."""
    match expression:
        case Literal(value=date() as moment):
            return (_seconds(moment), _seconds(moment))
        case Column(name=name):
            return bounds.get(name, EVERYTHING)
        case Call(function="to_date" | "to_datetime", arguments=(Column(name=name, type=type_),)) if type_ in TIME:
            low, high = bounds.get(name, EVERYTHING)
            return low - 86_400, high
    return EVERYTHING


def _differing(seconds: int, one: Range, other: Range) -> Range:
    """How many units end between two moments: one more than whole units fit, and never fewer than none."""
    low, high = other[0] - one[1], other[1] - one[0]
    if one[0] == one[1] and other[0] == other[1]:  # nothing was known of two constants, and plans keep their text
        return EVERYTHING
    if not math.isfinite(low) or not math.isfinite(high):
        return EVERYTHING
    return min(0.0, math.floor(low / seconds) - 1.0), max(0.0, math.ceil(high / seconds) + 1.0)


def _not_above_zero(expression: Expression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, float) and expression.value <= 0


def _hull(parts: list[Range]) -> Range:
    return (min(each[0] for each in parts), max(each[1] for each in parts)) if parts else (0.0, 0.0)


def _extreme(function: str, arguments: tuple[Expression, ...], bounds: Mapping[str, Range]) -> Range:
    """LEAST and GREATEST pass over NULL, so that only a constant bounds the whole: it is never NULL."""
    low, high = _hull([_range(each, bounds) for each in arguments if each != NULL])
    constants = [each.value for each in arguments if isinstance(each, Literal) and isinstance(each.value, float)]
    if constants and function == "least":
        high = min(high, *constants)
    if constants and function == "greatest":
        low = max(low, *constants)
    return low, high


def _monotone(function: Callable[[float], float]) -> Rule:
    return lambda a: (function(a[0]), function(a[1]))


def _corners(a: Range, b: Range, function: Callable[[float, float], float]) -> Range:
    values = [function(x, y) for x in a for y in b]
    return EVERYTHING if any(map(math.isnan, values)) else (min(values), max(values))


def _divided(a: Range, b: Range) -> Range:
    return EVERYTHING if b[0] <= 0 <= b[1] else _corners(a, b, lambda x, y: x / y)


def _powered(a: Range, b: Range) -> Range:
    if b[0] == b[1] and not b[0].is_integer() and a[0] >= 0 and 0 < b[0] <= 16:
        return a[0] ** b[0], a[1] ** b[0]
    if b[0] != b[1] or not b[0].is_integer() or not 0 <= b[0] <= 16:
        return EVERYTHING
    values = [x ** b[0] for x in a]
    if b[0] % 2 == 0 and a[0] <= 0 <= a[1]:
        values.append(0.0)
    return min(values), max(values)


def _modulo(a: Range, b: Range) -> Range:
    most = max(abs(b[0]), abs(b[1]))
    return (0.0 if a[0] >= 0 else -most), (most if a[1] > 0 else 0.0)


def _absolute(a: Range) -> Range:
    return (0.0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


def _rounded(a: Range, digits: Range = (0.0, 0.0)) -> Range:
    if digits[0] != digits[1]:
        return EVERYTHING
    slack = 10.0 ** -digits[0]
    return (a[0] if a[0] % slack == 0 else a[0] - slack), (a[1] if a[1] % slack == 0 else a[1] + slack)


def _outward(a: Range) -> Range:
    return float(math.floor(a[0])), float(math.ceil(a[1]))


_QUARTER_TURN = 1.57  # a little less: it rises up to there
_HALF_TURN = math.nextafter(math.pi, 4.0)  # however an engine rounds

_RULES: dict[str, Rule] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": lambda a, b: _corners(a, b, lambda x, y: x * y),
    "div": _divided,
    "intdiv": lambda a, b: _outward(_divided(a, b)),
    "mod": _modulo,
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _absolute,
    "sign": lambda _: (-1.0, 1.0),
    "floor": _monotone(lambda x: float(math.floor(x))),
    "ceil": _monotone(lambda x: float(math.ceil(x))),
    "trunc": _monotone(lambda x: float(math.trunc(x))),
    "to_integer": _outward,  # half rounds away from zero
    "round_even": _outward,
    "to_number": lambda a: a,
    "finite": lambda a: a,
    "round": _rounded,
    # what they are not defined for is NULL, so only the defined part counts
    "sqrt": lambda a: (math.sqrt(max(0.0, a[0])), math.sqrt(max(0.0, a[1]))),
    "ln": _monotone(math.log),
    "log10": _monotone(math.log10),
    "log2": _monotone(math.log2),
    "exp": _monotone(math.exp),
    "sin": lambda _: (-1.0, 1.0),
    "cos": lambda _: (-1.0, 1.0),
    "tan": lambda a: (math.tan(a[0]), math.tan(a[1])) if max(map(abs, a)) < _QUARTER_TURN else EVERYTHING,
    "asin": lambda _: (-_HALF_TURN / 2, _HALF_TURN / 2),
    "acos": lambda _: (0.0, _HALF_TURN),
    "atan": lambda _: (-_HALF_TURN / 2, _HALF_TURN / 2),
    "atan2": lambda _, __: (-_HALF_TURN, _HALF_TURN),
    "power": _powered,
    "nullif": lambda a, _: a,
}
