"""Texts in other words: LIKE … ESCAPE, CONCAT_WS, LPAD, BTRIM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.queries.rules.spelling.choices import case, is_null

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known

_LONGEST_PAD = 50


def _text(value: str) -> Any:
    from sqlglot import exp

    return exp.Literal.string(value)


def unescape(node: Any, _: Known) -> Any:
    """a LIKE '50!%%' ESCAPE '!' → STARTS_WITH(a, '50%'); where % stands at an end, _ nowhere."""
    from sqlglot import exp

    like, mark = node.this, node.expression
    if not isinstance(like, exp.Like) or not _is_text(like.expression) or not _is_text(mark) or len(mark.name) != 1:
        return None
    pieces = _pieces(like.expression.name, mark.name)
    if pieces is None:
        return None
    if not any(each == ("%", True) for each in pieces[1:-1]) and ("_", True) not in pieces:
        start, end = pieces[:1] == [("%", True)], pieces[-1:] == [("%", True)]
        needle = _text("".join(each for each, wild in pieces if not wild))
        value = like.this
        if start and end:
            found: Any = exp.Contains(this=value, expression=needle)
        elif end:
            found = exp.StartsWith(this=value, expression=needle)
        elif start:
            found = exp.EndsWith(this=value, expression=needle)
        else:
            found = exp.Paren(this=exp.EQ(this=value, expression=needle))
    elif all(wild or each not in "%_" for each, wild in pieces):  # nothing was escaped that had to be
        found = exp.Like(this=like.this, expression=_text("".join(each for each, _ in pieces)))
    else:
        return None
    return exp.Not(this=found) if like.args.get("negate") else found


def _pieces(pattern: str, mark: str) -> list[tuple[str, bool]] | None:
    """The characters of a pattern, each with whether it is a wildcard; None where the mark escapes nothing."""
    found: list[tuple[str, bool]] = []
    rest = iter(pattern)
    for each in rest:
        if each == mark:
            escaped = next(rest, None)
            if escaped is None:
                return None
            found.append((escaped, False))
        elif each == "%" and found[-1:] == [("%", True)]:
            continue
        else:
            found.append((each, each in "%_"))
    return found


def join_with(node: Any, _: Known) -> Any:
    """CONCAT_WS('-', a, b) → a || '-' || b …; what is NULL is left out, with its separator."""
    from sqlglot import exp

    separator, *parts = node.expressions
    if not _is_text(separator) or not parts:
        return None
    pieces = []
    for each in parts:
        joined = exp.Concat(expressions=[separator.copy(), each.copy()], safe=True, coalesce=True)
        pieces.append(case(None, [(is_null(each.copy()), _text(""))], joined))
    whole = exp.Concat(expressions=pieces, safe=True, coalesce=True) if len(pieces) > 1 else pieces[0]
    return exp.Substring(this=whole, start=exp.Literal.number(len(separator.name) + 1))


def pad(node: Any, _: Known) -> Any:
    """LPAD(a, 3, '0') → CASE WHEN LENGTH(a) >= 3 THEN LEFT(a, 3) ELSE RIGHT('000' || a, 3) END; RPAD."""
    from sqlglot import exp

    size, fill = node.expression, node.args.get("fill_pattern") or _text(" ")
    if not isinstance(size, exp.Literal) or not size.name.isdigit() or not _is_text(fill) or len(fill.name) != 1:
        return None
    count = int(size.name)
    if not 0 < count <= _LONGEST_PAD:
        return None
    value, filled = node.this, _text(fill.name * count)
    if node.args.get("is_left"):
        put = exp.DPipe(this=filled, expression=value.copy(), safe=True)
        padded: Any = exp.Right(this=exp.Paren(this=put), expression=size.copy())
    else:
        put = exp.DPipe(this=value.copy(), expression=filled, safe=True)
        padded = exp.Left(this=exp.Paren(this=put), expression=size.copy())
    long = exp.GTE(this=exp.Length(this=value.copy()), expression=size.copy())
    return case(None, [(long, exp.Left(this=value.copy(), expression=size.copy()))], padded)


def trim_both(node: Any, _: Known) -> Any:
    """BTRIM(a), BTRIM(a, '*') → TRIM."""
    from sqlglot import exp

    value, *rest = node.expressions
    return exp.Trim(this=value, expression=rest[0]) if rest and rest[0].name != " " else exp.Trim(this=value)


def trim_blanks(node: Any, _: Known) -> Any:
    """TRIM(BOTH ' ' FROM a) → TRIM(a)."""
    said = node.args.get("expression")
    if said is not None and _is_text(said) and said.name == " ":
        node.set("expression", None)


def match(node: Any, _: Known) -> Any:
    """REGEXP_CONTAINS(a, 'x') → REGEXP_MATCHES(a, 'x')."""
    from sqlglot import exp

    return exp.RegexpLike(this=node.expressions[0], expression=node.expressions[1])


def national(node: Any, _: Known) -> Any:
    """N'text' → 'text'."""
    return _text(node.name)


def _is_text(node: Any) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Literal) and bool(node.is_string)
