"""Arithmetic in other words: SAFE_DIVIDE, DIV, SQUARE, CBRT, PI, DEGREES, TRUNC with digits, bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known


_MOST_BITS = 30


def literal(value: float) -> Any:
    """A number as it is written."""
    from sqlglot import exp

    return exp.Literal.number(repr(value) if value != int(value) else int(value))


def divide(node: Any, _: Known) -> Any:
    """SAFE_DIVIDE(a, b), IEEE_DIVIDE(a, b) → a / b: a zero divisor gives NULL anyway."""
    from sqlglot import exp

    one, other = _two(node)
    return exp.Paren(this=exp.Div(this=one, expression=other, typed=False))


def divide_whole(node: Any, _: Known) -> Any:
    """DIV(a, b) → a // b."""
    from sqlglot import exp

    one, other = _two(node)
    return exp.Paren(this=exp.IntDiv(this=one, expression=other))


def square(node: Any, _: Known) -> Any:
    """SQUARE(a) → POWER(a, 2)."""
    from sqlglot import exp

    return exp.Pow(this=node.expressions[0], expression=literal(2))


def cube_root(node: Any, _: Known) -> Any:
    """CBRT(a) → SIGN(a) * POWER(ABS(a), 1/3)."""
    from sqlglot import exp

    root = exp.Pow(this=exp.Abs(this=node.this), expression=literal(1 / 3))
    return exp.Paren(this=exp.Mul(this=exp.Sign(this=node.this.copy()), expression=root))


def pi(_: Any, __: Known) -> Any:
    """PI() → 3.141592653589793."""
    return literal(math.pi)


def degrees(node: Any, _: Known) -> Any:
    """DEGREES(a) → a * 57.29577951308232."""
    return _scaled(node, 180 / math.pi)


def radians(node: Any, _: Known) -> Any:
    """RADIANS(a) → a * 0.017453292519943295."""
    return _scaled(node, math.pi / 180)


def truncate(node: Any, _: Known) -> Any:
    """TRUNC(a, 2) → TRUNC(a * 100) / 100."""
    from sqlglot import exp

    digits = node.args.get("decimals")
    if digits is None or isinstance(node.args.get("fractions_supported"), exp.Expression):  # a third argument
        return None
    if not isinstance(digits, exp.Literal) or not digits.name.isdigit() or int(digits.name) > 15:
        return None
    scale = 10 ** int(digits.name)
    if scale == 1:
        return exp.Trunc(this=node.this)
    cut = exp.Trunc(this=exp.Mul(this=exp.Paren(this=node.this), expression=literal(scale)))
    return exp.Paren(this=exp.Div(this=cut, expression=literal(scale), typed=False))


def divide_down(node: Any, _: Known) -> Any:
    """FDIV(a, b) → FLOOR(a / b)."""
    from sqlglot import exp

    return exp.Floor(this=divide(node, _))


def mask(node: Any, _: Known) -> Any:
    """a & 1, a & 3 → what is left of a whole number by 2, 4, …, never negative."""
    from sqlglot import exp

    size = _above_mask(node.expression)
    if size is None:
        return None
    rest = exp.Paren(this=exp.Mod(this=exp.Paren(this=node.this), expression=literal(size)))
    above = exp.Paren(this=exp.Add(this=rest, expression=literal(size)))
    return exp.Paren(this=exp.Mod(this=above, expression=literal(size)))


def shift(node: Any, _: Known) -> Any:
    """a << 2 → a * 4; a >> 2 → FLOOR(a / 4)."""
    from sqlglot import exp

    by = node.expression
    if not isinstance(by, exp.Literal) or not by.name.isdigit() or int(by.name) > _MOST_BITS:
        return None
    size, value = literal(2 ** int(by.name)), exp.Paren(this=node.this)
    if isinstance(node, exp.BitwiseLeftShift):
        return exp.Paren(this=exp.Mul(this=value, expression=size))
    return exp.Floor(this=exp.Div(this=value, expression=size, typed=False))


def _above_mask(node: Any) -> int | None:
    """2, 4, 8 … for 1, 3, 7 …."""
    from sqlglot import exp

    if not isinstance(node, exp.Literal) or not node.name.isdigit() or len(node.name) > 9:
        return None
    size = int(node.name) + 1
    return size if size > 1 and size & (size - 1) == 0 else None


def safely(node: Any, _: Known) -> Any:
    """SAFE.LN(a) → LN(a): what has no value is NULL anyway."""
    from sqlglot import exp

    inner = node.expression
    if node.this.name.upper() != "SAFE" or not isinstance(inner, exp.Func):
        return None
    if not isinstance(inner, exp.Anonymous):
        return inner
    try:
        return exp.func(inner.name, *inner.expressions, dialect="duckdb")
    except ValueError:  # of another number of arguments
        return None


def _two(node: Any) -> tuple[Any, Any]:
    from sqlglot import exp

    one, other = node.expressions if isinstance(node, exp.Anonymous) else (node.this, node.expression)
    return exp.Paren(this=one), exp.Paren(this=other)


def _scaled(node: Any, by: float) -> Any:
    from sqlglot import exp

    return exp.Paren(this=exp.Mul(this=exp.Paren(this=node.this), expression=literal(by)))
