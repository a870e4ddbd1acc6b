"""Trees written as DuckDB's SQL, whole.

The parser's writer leaves out arguments that a function does not have in DuckDB, and says so in a log alone: of
TO_CHAR(d, 'YYYY') it makes a cast. What runs over public tables and released values would then mean another thing, and
two such parts would look alike. So formats are put in DuckDB's words first; what cannot be written whole is refused.
"""

from __future__ import annotations

from typing import Any

from dalenius.errors import QuestionRefusedError
from dalenius.queries.rules.parse import DIALECT, place
from dalenius.queries.rules.ways import WAYS


def spell_formats(tree: Any) -> None:
    """TO_CHAR becomes STRFTIME, where its format has a meaning there."""
    from sqlglot import exp

    from dalenius.queries.rules.spelling.formats import format_of_text

    for node in list(tree.find_all(exp.ToChar)):
        format_ = format_of_text(node)
        if format_ is None:
            continue
        found = exp.TimeToStr(this=node.this.copy(), format=exp.Literal.string(format_))
        found.meta.update({name: node.meta[name] for name in ("start", "end", "line", "col") if name in node.meta})
        if isinstance(node.parent, exp.Select):  # what its column is called where nobody says
            found.meta["typed"] = text_of(node)
        node.replace(found)


def text_of(node: Any) -> str:
    """A part of a tree as text; parts that differ have different ones."""
    return _written(node) or _written(node, "postgres") or repr(node)


def check_whole(tree: Any, text: str) -> None:
    """Refuses what cannot be written whole.

    Raises:
        QuestionRefusedError: With the function that was typed.
    """
    from sqlglot import exp

    if _written(tree) is not None:
        return
    parts = [each for each in tree.find_all(exp.Func) if _written(each) is None]
    node = parts[-1] if parts else tree  # the innermost
    name = node.sql_name() if isinstance(node, exp.Func) else "This"
    _, fix = WAYS.get(name, ("", "Leave out the arguments that DuckDB does not have."))
    raise QuestionRefusedError(
        f"{name} cannot be used so over released values and public tables.",
        why="DuckDB, which computes with them, has no such form of it.",
        fix=fix,
        at=place(node, text),
    )


def _written(node: Any, dialect: str = DIALECT) -> str | None:
    """In a dialect's SQL, DuckDB's by default; None where a part would be left out."""
    from sqlglot.errors import ErrorLevel, UnsupportedError

    try:
        return str(node.sql(dialect=dialect, comments=False, unsupported_level=ErrorLevel.RAISE))
    except UnsupportedError:
        return None
