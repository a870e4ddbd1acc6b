"""Texts that are changed in other words: TRANSLATE, REPEAT, OVERLAY, STUFF, SUBSTR from the end, PATINDEX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.queries.rules.spelling.choices import case
from dalenius.queries.rules.spelling.growth import check_copies

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known

_MOST_SIGNS = 10  # of TRANSLATE: each is a REPLACE
_MOST_TIMES = 10


def translate(node: Any, _: Known) -> Any:
    """TRANSLATE(a, 'xy', 'z') → REPLACE(REPLACE(a, 'x', 'z'), 'y', ''), where no sign is put in and taken out."""
    from sqlglot import exp

    before, after = node.args.get("from_"), node.args.get("to")
    if not _is_text(before) or not _is_text(after) or not 0 < len(before.name) <= _MOST_SIGNS:
        return None
    if set(before.name) & set(after.name):
        return None
    found, done = node.this, set[str]()
    for at, sign in enumerate(before.name):
        if sign not in done:  # the first counts
            done.add(sign)
            put = exp.Literal.string(after.name[at : at + 1])
            found = exp.Replace(this=found, expression=exp.Literal.string(sign), replacement=put)
    return found


def repeat(node: Any, _: Known) -> Any:
    """REPEAT(a, 3), REPLICATE(a, 3) → a || a || a."""
    from sqlglot import exp

    value, times = node.expressions if isinstance(node, exp.Anonymous) else (node.this, node.args.get("times"))
    count = _count(times)
    if count is None or not 0 < count <= _MOST_TIMES:
        return None
    check_copies(value, count)
    found = value
    for _at in range(count - 1):
        found = exp.DPipe(this=found, expression=value.copy(), safe=True)
    return exp.Paren(this=found) if count > 1 else found


def overlay(node: Any, _: Known) -> Any:
    """OVERLAY(a PLACING 'X' FROM 2 FOR 1) → LEFT(a, 1) || 'X' || SUBSTRING(a, 3)."""
    put, start, length = node.expression, _count(node.args.get("from_")), node.args.get("for_")
    if not _is_text(put) or not start:
        return None
    size = len(put.name) if length is None else _count(length)
    return None if size is None else _laid_over(node.this, put, start, size)


def stuff(node: Any, _: Known) -> Any:
    """STUFF(a, 2, 1, 'X') → the same; NULL where the text is shorter than that."""
    from sqlglot import exp

    put, start, size = node.expression, _count(node.args.get("start")), _count(node.args.get("length"))
    if not _is_text(put) or not start or size is None:
        return None
    long = exp.GTE(this=exp.Length(this=node.this.copy()), expression=exp.Literal.number(start))
    return case(None, [(long, _laid_over(node.this, put, start, size))])


def _laid_over(value: Any, put: Any, start: int, size: int) -> Any:
    from sqlglot import exp

    after = exp.Substring(this=value.copy(), start=exp.Literal.number(start + size))
    found: Any = exp.DPipe(this=put.copy(), expression=after, safe=True)
    if start > 1:
        before = exp.Left(this=value.copy(), expression=exp.Literal.number(start - 1))
        found = exp.DPipe(this=before, expression=exp.Paren(this=found), safe=True)
    return exp.Paren(this=found)


def cut_from_end(node: Any, _: Known) -> Any:
    """SUBSTR(a, -2) → RIGHT(a, 2)."""
    from sqlglot import exp

    start = node.args.get("start")
    if not isinstance(start, exp.Neg) or node.args.get("length") is not None or not _count(start.this):
        return None
    return exp.Right(this=node.this, expression=start.this)


def find_pattern(node: Any, _: Known) -> Any:
    """PATINDEX('%x%', a) → STRPOS(a, 'x'), where nothing else is a wildcard."""
    from sqlglot import exp

    pattern, value = node.expressions
    inner = pattern.name[1:-1] if _is_text(pattern) else ""
    if not inner or pattern.name[0] + pattern.name[-1] != "%%" or set(inner) & set("%_[]"):
        return None
    return exp.StrPosition(this=value, substr=exp.Literal.string(inner))


def _count(node: Any) -> int | None:
    from sqlglot import exp

    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit() or len(node.name) > 3:
        return None
    return int(node.name)


def _is_text(node: Any) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Literal) and bool(node.is_string)
