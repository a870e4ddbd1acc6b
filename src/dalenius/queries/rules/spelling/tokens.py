"""What has to be put otherwise before it can be parsed: TOP n, and functions that are words of DuckDB's grammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalenius.errors import Place, QuestionRefusedError

DECODE = "decode_values"  # what DECODE is called from here on: the parser knows another one
CONVERT = "convert_text"  # and CONVERT(varchar(7), d, 120), whose type no function takes
_TEXTS = frozenset({"VARCHAR", "NVARCHAR", "CHAR", "NCHAR"})
_OPERANDS = frozenset({"VAR", "IDENTIFIER", "NUMBER", "STRING", "R_PAREN", "R_BRACKET"})
_ENDS = frozenset({"R_PAREN", "SEMICOLON", "UNION", "EXCEPT", "INTERSECT"})


def respell_tokens(text: str, tokens: Sequence[Any]) -> list[Any]:
    """The tokens of a text in the order that is read here.

    Args:
        text: The question.
        tokens: As sqlglot finds them.

    Raises:
        QuestionRefusedError: For TOP with WITH TIES or PERCENT.
    """
    from sqlglot import TokenType

    found = list(tokens)
    if not found:
        return found
    made = type(found[0])
    found = [each for at, each in enumerate(found) if not _is_raw_mark(each, found[at + 1 : at + 2])]
    for at, token in enumerate(found):  # which may grow shorter behind
        if at + 1 >= len(found) or found[at + 1].token_type.name != "L_PAREN":
            continue
        name = token.text.upper()
        between = at > 0 and found[at - 1].token_type.name in _OPERANDS  # a DIV (b) is a sign
        if name == "DIV" and not between and token.token_type is TokenType.DIV:
            found[at] = made(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
        elif name == "CONVERT" and token.token_type is TokenType.VAR:
            _read_convert(found, at, made)
        elif name == "DECODE" and token.token_type is TokenType.VAR:
            found[at] = made(TokenType.VAR, DECODE, token.line, token.col, token.start, token.end)
    at = 0
    while at < len(found):
        count = _top(text, found, at)
        if count is not None:
            number, after = count
            end = _end_of_select(found, after)
            limit = [made(TokenType.LIMIT, "LIMIT", number.line, number.col, number.start, number.end), number]
            found = [*found[:at], *found[after:end], *limit, *found[end:]]
        at += 1
    return found


def _read_convert(tokens: list[Any], at: int, made: Any) -> None:
    """CONVERT(varchar(7), d, 120) → convert_text(7, d, 120), in place; without a length it is 0."""
    from sqlglot import TokenType

    said, rest = tokens[at + 2 : at + 3], [each.token_type.name for each in tokens[at + 3 : at + 6]]
    if not said or said[0].text.upper() not in _TEXTS:
        return
    token, type_ = tokens[at], said[0]
    sized = rest == ["L_PAREN", "NUMBER", "R_PAREN"]
    length = tokens[at + 4].text if sized else "0"
    if not sized and rest[:1] != ["COMMA"]:
        return
    tokens[at] = made(TokenType.VAR, CONVERT, token.line, token.col, token.start, token.end)
    tokens[at + 2] = made(TokenType.NUMBER, length, type_.line, type_.col, type_.start, type_.end)
    if sized:
        del tokens[at + 3 : at + 6]


def _is_raw_mark(token: Any, after: Sequence[Any]) -> bool:
    """Whether it is the r of BigQuery's r'x+': a text in which a backslash is one, as in every text here."""
    if token.token_type.name != "VAR" or token.text.lower() != "r" or not after:
        return False
    return after[0].token_type.name == "STRING" and bool(after[0].start == token.end + 1)


def _top(text: str, tokens: Sequence[Any], at: int) -> tuple[Any, int] | None:
    """The number of TOP n or TOP (n), and where it ends; None where TOP is a name."""
    kinds = [each.token_type.name for each in tokens[max(0, at - 2) : at]]
    if tokens[at].text.upper() != "TOP" or tokens[at].token_type.name != "VAR" or not kinds:
        return None
    if kinds[-1] not in {"SELECT", "ALL"} and kinds != ["SELECT", "DISTINCT"]:
        return None
    rest = list(tokens[at + 1 : at + 5])
    names = [each.token_type.name for each in rest]
    if names[:1] == ["NUMBER"]:
        number, after = rest[0], at + 2
    elif names[:3] == ["L_PAREN", "NUMBER", "R_PAREN"] and names[3:] not in (["COMMA"], ["FROM"]):
        number, after = rest[1], at + 4
    else:
        return None
    if after < len(tokens) and (tokens[after].token_type.name == "WITH" or tokens[after].text.upper() == "PERCENT"):
        what = "TOP … WITH TIES" if tokens[after].token_type.name == "WITH" else "TOP … PERCENT"
        token = tokens[at]
        raise QuestionRefusedError(
            f"{what} is not supported.",
            why="How many groups are shown must not depend on their noisy values alone.",
            fix=f"Write TOP {number.text}, or ORDER BY … LIMIT {number.text}.",
            at=Place(text.count("\n", 0, token.start) + 1, token.start - text.rfind("\n", 0, token.start)),
        )
    return number, after


def _end_of_select(tokens: Sequence[Any], start: int) -> int:
    depth = 0
    for at in range(start, len(tokens)):
        kind = tokens[at].token_type.name
        if kind in _ENDS and depth == 0:
            return at
        depth += (kind == "L_PAREN") - (kind == "R_PAREN")
    return len(tokens)
