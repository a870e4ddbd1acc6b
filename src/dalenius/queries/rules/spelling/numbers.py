"""Arithmetic in other words: SAFE_DIVIDE, DIV, SQUARE, CBRT, PI, DEGREES, TRUNC with digits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known


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
