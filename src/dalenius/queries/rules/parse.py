"""The first pass: text to syntax tree, with mistakes pointed at by line and column.

The clauses of a SELECT stand in SQL's order, each once. sqlglot takes them in any order: it reads
`GROUP BY zone WHERE kind = 'staff'` as if WHERE stood first. DuckDB does not, and what somebody meant by it is a guess,
which nobody should be charged for. One walk over the tokens finds it, however deep the text is nested; each pair of
parentheses has an order of its own (`check_order`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from dalenius.errors import Place, QuestionRefusedError, SqlSyntaxError
from dalenius.queries.rules.clause import cut_clause

if TYPE_CHECKING:
    from sqlglot import exp

    from dalenius.queries.rules import Stage

LONGEST = 20_000
DEEPEST = 100
DIALECT = "duckdb"


def parse_question(stage: Stage) -> Stage:
    """One SELECT statement, or a refusal. Nothing of the text is ever executed."""
    from sqlglot import exp

    tree = parse_sql(stage.text) if stage.tree is None else stage.tree  # a part of a text that was parsed before
    if not isinstance(tree, exp.Select):
        raise _not_a_select(tree, stage.text)
    _, options = cut_clause(stage.text)
    if stage.tree is not None and options.clamps:  # those of other parts are theirs
        own = {each.meta.get("start") for each in tree.walk()}
        options = replace(options, clamps={at: each for at, each in options.clamps.items() if at in own})
    return stage.with_(tree=tree, options=options, limits=options.tightened(stage.limits))


def parse_sql(text: str) -> exp.Expr:
    """The one statement of a text, whatever it is; not too long and not too deep."""
    from sqlglot import Dialect, exp
    from sqlglot.errors import SqlglotError

    from dalenius.queries.rules.spelling.pivots import write_pivots
    from dalenius.queries.rules.spelling.tokens import respell_tokens

    check_text(text)
    text, _ = cut_clause(text)
    try:
        dialect = Dialect.get_or_raise(DIALECT)
        tokens = dialect.tokenize(text)
        check_order(text, tokens)
        if tokens and tokens[0].text.upper() in _WAYS and tokens[0].token_type.name in _STATEMENTS:
            raise _not_a_select(exp.Command(this=tokens[0].text), text)  # which the parser would warn of
        found = dialect.parser().parse(respell_tokens(text, tokens), text)
        trees = [each for each in found if each is not None and not isinstance(each, exp.Semicolon)]  # ; -- a remark
        if not trees:
            raise _syntax("The question is empty.", why="There is no SQL in it.", at=None)
        if len(trees) > 1:
            raise QuestionRefusedError(
                "This is more than one statement.",
                why="A question is one SELECT.",
                fix="Ask them one by one.",
            )
        check_depth(trees[0])
        tree: exp.Expr = write_pivots(trees[0])
    except SqlglotError as error:
        raise _syntax("This is not SQL that can be read.", why=_reason(error), at=_place_of(error, text)) from None
    except RecursionError:
        raise too_deep() from None
    return tree


def place(node: exp.Expr, text: str) -> Place | None:
    """Where a part of the tree stands in the text: at its first token that remembers."""
    starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
    if not starts:
        return None
    start = min(starts)
    line = text.count("\n", 0, start) + 1
    return Place(line, start - (text.rfind("\n", 0, start) + 1) + 1)


def in_sql(node: exp.Expr) -> str | None:
    """A part of the tree in DuckDB's SQL, in one line; None: what was typed is so odd that it cannot be written."""
    from sqlglot.errors import ErrorLevel

    try:
        quiet = ErrorLevel.IGNORE
        return " ".join(str(node.sql(dialect=DIALECT, comments=False, unsupported_level=quiet)).split())
    except Exception:  # noqa: BLE001 (sqlglot's writers expect trees that mean something)
        return None


def as_written(name: str) -> str:
    """A name as it stands in SQL: in quotes where it needs them.

    >>> as_written("region"), as_written("order"), as_written('5" disk')
    ('region', '"order"', '"5"" disk"')
    """
    from sqlglot.dialects.duckdb import DuckDB

    plain = name.isidentifier() and name.isascii() and name.lower() not in DuckDB.Generator.RESERVED_KEYWORDS
    return name if plain else '"' + name.replace('"', '""') + '"'


def check_text(text: str) -> None:
    """Refuses what is no text of a question, or too long a one."""
    if not isinstance(text, str):
        raise _syntax("A question is a text.", why="It is SQL.", at=None)
    if len(text) > LONGEST:
        raise QuestionRefusedError(
            "The question is too long.", why=f"It has more than {LONGEST:,} characters.", fix="Ask in parts."
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _syntax("The question is not valid Unicode.", why="It holds half a character.", at=None) from None
    for position, character in enumerate(text):
        if character < " " and character not in "\t\n\r":
            line = text.count("\n", 0, position) + 1
            at = Place(line, position - text.rfind("\n", 0, position))
            raise _syntax("The question holds a control character.", why="No SQL has one.", at=at)


def check_depth(tree: exp.Expr) -> None:
    """Refuses a tree of too many levels: every pass goes down by calling itself."""
    level = [tree]
    for _ in range(DEEPEST):
        level = [child for each in level for child in each.iter_expressions()]
        if not level:
            return
    raise too_deep()


def too_deep() -> QuestionRefusedError:
    """The error about a question that is nested, or whose names stand for one another, too often."""
    return QuestionRefusedError(
        "The question is nested too deeply.", why=f"At most {DEEPEST} levels are read.", fix="Simplify it."
    )


# What people meant by other statements.
_WAYS = {
    "EXPLAIN": "Leave EXPLAIN out, and run 'dalenius explain'.",
    **dict.fromkeys(("DESCRIBE", "DESC", "SHOW", "SUMMARIZE"), "Run 'dalenius tables': it lists tables and columns."),
    "PIVOT": "List the values, and say what is grouped by: PIVOT t ON x IN ('a', 'b') USING SUM(y) GROUP BY z.",
    "UNPIVOT": "Write SELECT with GROUP BY, or COUNT_IF(x = 'a') for each value.",
}
_STATEMENTS = frozenset(("COMMAND", "DESCRIBE", "SHOW", "SUMMARIZE"))  # kinds of tokens that begin such


def _not_a_select(tree: exp.Expr, text: str) -> QuestionRefusedError:
    from sqlglot import exp

    if isinstance(tree, exp.SetOperation):
        return QuestionRefusedError(
            f"{tree.key.upper()} is not supported.",
            why="Its parts would be about the same people, at the price of one.",
            fix="Ask its parts as questions of their own, or write SELECT … FROM (… UNION ALL …).",
            at=place(tree.expression, text),
        )
    word = next(iter(re.findall(r"[A-Za-z]+", text)), "").upper()
    return QuestionRefusedError(
        f"Only SELECT can be asked{'' if word in {'', 'SELECT', 'WITH', 'FROM'} else f', not {word}'}.",
        why="Questions read; nothing else is ever done for an analyst.",
        fix=_WAYS.get(word, "Write SELECT … FROM a table of 'dalenius tables'."),
    )


def _syntax(message: str, *, why: str, at: Place | None) -> SqlSyntaxError:
    return SqlSyntaxError(message, why=why, fix="Correct it; the dialect is DuckDB's.", at=at)


def _reason(error: Exception) -> str:
    found = getattr(error, "errors", None) or [{}]
    highlight = str(found[0].get("highlight") or "")[:40]
    said = str(found[0].get("description") or "").split(" / ")[0].rstrip(".")
    if _ARGUMENTS.search(said):
        return "A function has another number of arguments."
    if highlight:
        return f"Syntax error near {highlight!r}."
    return f"{said}." if said else "A text or a name is not closed, or a character has no meaning."


_ARGUMENTS = re.compile(r"number of provided arguments|Required argument '\w+' missing for [A-Z]\w*")


def _place_of(error: Exception, text: str) -> Place | None:
    found = getattr(error, "errors", None) or [{}]
    line, column = found[0].get("line"), found[0].get("col")
    if line is None or column is None:
        return _unclosed(text)
    # sqlglot names the last character of the token
    return Place(int(line), max(1, int(column) - len(str(found[0].get("highlight") or " ")) + 1))


# Whole texts, names and remarks; what is left of a quote belongs to none. `*+`: a doubled quote stays inside.
_CLOSED = re.compile(
    r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|--[^\n]*|/\*.*?\*/|(?P<open>['"])""",
    re.DOTALL,
)


def _unclosed(text: str) -> Place | None:
    """Where a text or name that never ends begins; the tokenizer does not say."""
    found = next((each for each in _CLOSED.finditer(text) if each["open"]), None)
    if found is None:
        return None
    return Place(text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start()))


# --- the order of clauses

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
