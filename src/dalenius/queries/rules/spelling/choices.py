"""Choices between values, in the words of Oracle, SQL Server, Snowflake and BigQuery: each is a CASE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.queries.rules.spelling.growth import check_copies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalenius.queries.rules.spelling import Known


def case(subject: Any, pairs: Sequence[tuple[Any, Any]], default: Any = None) -> Any:
    """CASE subject WHEN … THEN … ELSE … END."""
    from sqlglot import exp

    ifs = [exp.If(this=one, true=other) for one, other in pairs]
    return exp.Case(this=subject, ifs=ifs, default=default)


def is_null(node: Any) -> Any:
    """node IS NULL."""
    from sqlglot import exp

    return exp.Is(this=node, expression=exp.Null())


def replace_null(node: Any, _: Known) -> Any:
    """ISNULL(a, b), NVL(a, b) → COALESCE(a, b); ISNULL(a) → a IS NULL."""
    from sqlglot import exp

    parts = node.expressions
    if len(parts) == 1:
        return exp.Paren(this=is_null(parts[0]))
    return exp.Coalesce(this=parts[0], expressions=[parts[1]])


def zero_if_null(node: Any, _: Known) -> Any:
    """ZEROIFNULL(a) → COALESCE(a, 0)."""
    from sqlglot import exp

    (value,) = node.expressions
    return exp.Coalesce(this=value, expressions=[exp.Literal.number(0)])


def null_if_zero(node: Any, _: Known) -> Any:
    """NULLIFZERO(a) → NULLIF(a, 0)."""
    from sqlglot import exp

    (value,) = node.expressions
    return exp.Nullif(this=value, expression=exp.Literal.number(0))


def choose_by_null(node: Any, _: Known) -> Any:
    """NVL2(a, b, c) → CASE WHEN a IS NULL THEN c ELSE b END."""
    return case(None, [(is_null(node.this), node.args.get("false") or _null())], node.args["true"])


def decode(node: Any, _: Known) -> Any:
    """DECODE(a, 1, 'x', 2, 'y', 'z') → CASE a WHEN 1 THEN 'x' …; NULL equals NULL there."""
    from sqlglot import exp

    subject, *rest = node.expressions
    default = rest.pop() if len(rest) % 2 else None
    check_copies(subject, len(rest) // 2)
    pairs = []
    for one, other in zip(rest[::2], rest[1::2], strict=True):
        plain = isinstance(one, exp.Literal | exp.Boolean | exp.Neg)
        same = exp.EQ if plain else exp.NullSafeEQ
        condition = is_null(subject.copy()) if isinstance(one, exp.Null) else same(this=subject.copy(), expression=one)
        pairs.append((condition, other))
    return case(None, pairs, default)


def choose(node: Any, _: Known) -> Any:
    """CHOOSE(n, 'a', 'b') → CASE n WHEN 1 THEN 'a' WHEN 2 THEN 'b' END."""
    from sqlglot import exp

    subject, *rest = node.expressions
    return case(subject, [(exp.Literal.number(at), each) for at, each in enumerate(rest, 1)])


def bucket(node: Any, _: Known) -> Any:
    """RANGE_BUCKET(x, [18, 40]) → 0 below 18, 1 below 40, 2 from there on."""
    from sqlglot import exp

    marks = node.expression.expressions if isinstance(node.expression, exp.Array) else []
    if not marks:
        return None
    check_copies(node.this, len(marks) + 1)
    pairs = [(exp.LT(this=node.this.copy(), expression=each), exp.Literal.number(at)) for at, each in enumerate(marks)]
    last = exp.GTE(this=node.this.copy(), expression=marks[-1].copy())
    return case(None, [*pairs, (last, exp.Literal.number(len(marks)))])


def match_any(node: Any, _: Known) -> Any:
    """a = ANY (ARRAY['x', 'y']) → a IN ('x', 'y'); <> ALL likewise."""
    from sqlglot import exp

    wanted = exp.Any if isinstance(node, exp.EQ) else exp.All
    if not isinstance(node.expression, wanted):
        return None
    listed = node.expression.this
    while isinstance(listed, exp.Paren):
        listed = listed.this
    if not isinstance(listed, exp.Array) or not listed.expressions:
        return None
    found = exp.In(this=node.this, expressions=listed.expressions)
    return found if isinstance(node, exp.EQ) else exp.Not(this=found)


def match_list(node: Any, _: Known) -> Any:
    """a IN UNNEST(['x', 'y']) → a IN ('x', 'y'); (a, b) IN ((1, 2), (3, 4)) → a = 1 AND b = 2 OR …."""
    from sqlglot import exp

    unnest = node.args.get("unnest")
    if unnest is not None and len(unnest.expressions) == 1 and isinstance(unnest.expressions[0], exp.Array):
        return exp.In(this=node.this, expressions=unnest.expressions[0].expressions)
    given = node.this
    if not isinstance(given, exp.Tuple) or node.args.get("query") is not None or not node.expressions:
        return None
    size = len(given.expressions)
    if not all(isinstance(each, exp.Tuple) and len(each.expressions) == size for each in node.expressions):
        return None
    check_copies(given, len(node.expressions))
    rows = []
    for each in node.expressions:
        pairs = zip(given.expressions, each.expressions, strict=True)
        rows.append(exp.and_(*(exp.EQ(this=one.copy(), expression=other) for one, other in pairs), copy=False))
    return exp.Paren(this=exp.or_(*rows, copy=False))


def _null() -> Any:
    from sqlglot import exp

    return exp.Null()
