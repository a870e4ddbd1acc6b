"""The clauses of a SELECT stand in SQL's order, each once.

sqlglot takes them in any order: it reads `GROUP BY zone WHERE kind = 'staff'` as if WHERE stood first. DuckDB does not,
and what somebody meant by it is a guess, which nobody should be charged for. One walk over the tokens finds it, however
deep the text is nested; each pair of parentheses has an order of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dalenius.errors import Place, SqlSyntaxError

_ORDER = "JOIN, WHERE, GROUP BY, HAVING, WINDOW, QUALIFY, ORDER BY, LIMIT and OFFSET"


class _Clause(NamedTuple):
    """A clause: its rank in the order, and its name, which may stand there once. LIMIT and OFFSET share a rank."""

    rank: int
    name: str
    once: bool = True


_NAMES = ("WHERE", "GROUP BY", "HAVING", "WINDOW", "QUALIFY", "ORDER BY", "LIMIT")
_RANKED = {name.replace(" ", "_"): _Clause(rank, name) for rank, name in enumerate(_NAMES, 1)}
_CLAUSES: Mapping[str, _Clause] = {  # by the name of their token; FETCH is another way to write LIMIT
    "JOIN": _Clause(0, "JOIN", once=False),
    **_RANKED,
    "OFFSET": _RANKED["LIMIT"]._replace(name="OFFSET"),
    "FETCH": _RANKED["LIMIT"],
}
_CONDITIONS = frozenset(("WHERE", "HAVING", "QUALIFY"))
_COMBINES = frozenset(("UNION", "INTERSECT", "EXCEPT"))
_NAMED_BY = frozenset(("ALIAS", "DOT", "DCOLON"))  # AS limit, t.limit, x::UNION(…): behind these stands a name


def check_order(text: str, tokens: Sequence[Any]) -> None:
    """Refuses clauses that are out of order, or there twice.

    Args:
        text: The question.
        tokens: Those of the text, as sqlglot finds them.

    Raises:
        SqlSyntaxError: With the place of the clause that does not belong there.
    """
    levels: list[dict[str, _Clause]] = [{}]  # what was there so far, for each parenthesis that is open
    before = ""
    for token in tokens:
        kind, before_it = token.token_type.name, before
        before = kind
        if kind == "L_PAREN":
            levels.append({})
        elif kind == "R_PAREN":
            if len(levels) > 1:  # else the parser says that it is one too many
                levels.pop()
        elif kind == "SEMICOLON":
            levels = [{}]
        elif before_it in _NAMED_BY:
            continue
        elif kind in _CLAUSES:
            _check_next(text, token, _CLAUSES[kind], levels[-1])
        elif kind in _COMBINES:
            _check_combined(text, token, levels[-1])
            levels[-1] = {}


def _check_next(text: str, token: Any, clause: _Clause, there: dict[str, _Clause]) -> None:
    if clause.once and clause.name in there:
        raise _misplaced(
            text,
            token,
            f"{clause.name} is there twice.",
            f"A SELECT has one {clause.name}.",
            f"Write one {clause.name}{', with AND between its conditions' if clause.name in _CONDITIONS else ''}.",
        )
    late = [each for each in there.values() if each.rank > clause.rank]
    if late:
        first = min(late)
        raise _misplaced(
            text,
            token,
            f"{clause.name} stands behind {first.name}.",
            f"SQL has its clauses in a fixed order: {_ORDER}.",
            f"Put {clause.name} before {first.name}.",
        )
    there[clause.name] = clause


def _check_combined(text: str, token: Any, there: Mapping[str, _Clause]) -> None:
    """ORDER BY and LIMIT are of the whole set operation, and stand behind its last part."""
    late = [each for each in there.values() if each.rank >= _RANKED["ORDER_BY"].rank]
    if late:
        first, word = min(late).name, token.text.upper()
        raise _misplaced(
            text,
            token,
            f"{word} stands behind {first}.",
            f"{first} is about all that {word} puts together, and stands at its end.",
            f"Put {first} to the end, or its SELECT into parentheses.",
        )


def _misplaced(text: str, token: Any, message: str, why: str, fix: str) -> SqlSyntaxError:
    at = Place(text.count("\n", 0, token.start) + 1, token.start - text.rfind("\n", 0, token.start))
    return SqlSyntaxError(message, why=why, fix=fix, at=at)
