"""What cannot be computed from a release, in words: what was typed, why not, and what works."""

from __future__ import annotations

from typing import Any

from dalenius.errors import QuestionRefusedError
from dalenius.queries.rules.parse import place

_ONE_PERSON = "It would show what one person's rows hold."
_AGGREGATE = (
    "Aggregate first: GROUP BY with COUNT(*), SUM(x) … . Over what is released then, windows, QUALIFY, DISTINCT and "
    "outer SELECTs cost nothing."
)


def refuse_rows(select: Any, text: str, *, top: bool) -> QuestionRefusedError:
    """A SELECT that would show rows."""
    from sqlglot import exp

    window = next(iter(_of(select, exp.Window)), None)
    if select.args.get("qualify") is not None:
        return _refused("QUALIFY on rows is not supported.", _ONE_PERSON, _AGGREGATE, select.args["qualify"], text)
    if window is not None:
        what = f"The window function {_function(window)} over rows is not supported."
        return _refused(what, _ONE_PERSON, _AGGREGATE, window, text)
    if select.args.get("distinct"):
        on = " ON" if select.args["distinct"].args.get("on") is not None else ""
        return _refused(
            f"SELECT DISTINCT{on} of rows is not supported.",
            "It would list values that people have.",
            "Use GROUP BY with COUNT(*).",
            select,
            text,
        )
    if select.args.get("limit") or select.args.get("offset"):
        return _refused(
            "LIMIT on rows is not supported.",
            "Which rows are left would depend on those of others.",
            "Choose rows by a condition in WHERE, or aggregate first and limit what is released.",
            select,
            text,
        )
    around = select.parent
    while isinstance(around, exp.Subquery | exp.Paren):
        around = around.parent
    if isinstance(around, exp.SetOperation):
        return _refused(
            f"{around.key.upper()} of rows is not supported.",
            "Rows of single people never leave; only counts, sums and averages of many do.",
            "Aggregate in each part, or write SELECT COUNT(*) FROM (… UNION ALL …).",
            select,
            text,
        )
    what = "The question asks for no aggregate." if top else "A subquery shows rows where a release is needed."
    return _refused(
        what, "Rows and values of single people never leave; only counts, sums and averages of many do.", _AGGREGATE,
        select, text,
    )  # fmt: skip


def refuse_without_release(tree: Any, text: str) -> QuestionRefusedError:
    """A question in which nothing is asked about anybody."""
    return _refused(
        "The question asks for no aggregate.",
        "There is nothing in it that a table of people would answer.",
        "Ask for COUNT(*), SUM(x) or AVG(x) of a table of 'dalenius tables'.",
        tree,
        text,
    )


def refuse_unread(node: Any, text: str) -> QuestionRefusedError:
    """Something in FROM, or in place of a SELECT, that is not read."""
    what = "PIVOT" if node.args.get("pivots") or _pivots(node) else node.key.upper()
    return _refused(
        f"{what} cannot stand here.",
        "Over released values only SELECT, UNION, INTERSECT and EXCEPT of releases, public tables and VALUES are read.",
        "Name a query of WITH, a public table, or write a SELECT.",
        node,
        text,
    )


def refuse_beside(part: str, node: Any, text: str) -> QuestionRefusedError:
    """Something beside a source in FROM: PIVOT, a sample, a point in time."""
    what = {"pivots": "PIVOT", "sample": "TABLESAMPLE", "joins": "A join in parentheses"}.get(part, part.upper())
    return _refused(
        f"{what} cannot be used here.",
        "Over released values SELECT, joins and UNION are read.",
        "Use GROUP BY, or a SELECT of its own.",
        node,
        text,
    )


def refuse_recursion(tree: Any, text: str) -> QuestionRefusedError:
    """WITH RECURSIVE that means it."""
    return _refused(
        "WITH RECURSIVE is not supported here.",
        "How often it runs would not be known before.",
        "Write the steps out.",
        tree,
        text,
    )


def refuse_twice(name: str, tree: Any, text: str) -> QuestionRefusedError:
    """Two queries of WITH with one name."""
    return _refused(
        f"Two queries of WITH are named {name!r}.", "Which is meant?", "Give each a name of its own.", tree, text
    )


def refuse_many(tree: Any, text: str, most: int) -> QuestionRefusedError:
    """More SELECTs than one price is split over."""
    return _refused(
        f"The question asks for more than {most} aggregated SELECTs at once.",
        "One price is split over them, and each would get little.",
        "Ask them one by one; what is computed from them is free.",
        tree,
        text,
    )


def refuse_wide(most: int) -> QuestionRefusedError:
    """More columns than a query of the outer part may have."""
    return QuestionRefusedError(
        f"A SELECT here has more than {most} columns.",
        why="With * of queries that have * themselves, columns multiply.",
        fix="Name the columns that you need.",
    )


def refuse_large(tree: Any, text: str, most: int) -> QuestionRefusedError:
    """An outer part that is too large once it is written out."""
    return _refused(
        "The question is too long once it is written out.",
        f"What is computed from its releases has more than {most:,} parts, with * as the columns that it means.",
        "Name the columns that you need, or ask in steps: what is computed from a release is free.",
        tree,
        text,
    )


def refuse_limit(part: str, node: Any, text: str) -> QuestionRefusedError:
    """LIMIT or OFFSET that is computed."""
    return _refused(
        f"{part.upper()} takes a number.",
        "How many rows are shown is known before anything is asked.",
        "Write a whole number.",
        node,
        text,
    )


def refuse_option(word: str, node: Any, text: str) -> QuestionRefusedError:
    """FETCH FIRST … WITH TIES, or PERCENT."""
    ranked = "QUALIFY RANK() OVER (ORDER BY n DESC) <= 3" if word == "WITH TIES" else "LIMIT 50 PERCENT"
    return _refused(
        f"FETCH … {word} is not supported.", "DuckDB has it not.", f"Write for example {ranked}.", node, text
    )


def refuse_place(clause: str, number: str, columns: int) -> QuestionRefusedError:
    """A number in ORDER BY or GROUP BY that is no column's."""
    return QuestionRefusedError(
        f"{clause} {number[:20]} means no column.",
        why=f"The SELECT has {columns} {'column' if columns == 1 else 'columns'}.",
        fix="Write the number of one of them, or its name.",
    )


def _pivots(node: Any) -> bool:
    from sqlglot import exp

    return isinstance(node.this, exp.Pivot)


def refuse_window(part: str, node: Any, text: str) -> QuestionRefusedError:
    """A window in WHERE or HAVING."""
    return _refused(
        f"A window function cannot stand in {part.upper()}.",
        "Windows are computed after it.",
        "Write QUALIFY … <= 3 instead, or put the window in a subquery.",
        node,
        text,
    )


def refuse_without_over(node: Any, text: str) -> QuestionRefusedError:
    """RANK() alone."""
    name = str(node.sql_name()).upper()
    what = f"{name} stands without OVER."
    return _refused(what, "It is a window function.", f"Write {name}(…) OVER (ORDER BY …).", node, text)


def refuse_lambda(node: Any, text: str) -> QuestionRefusedError:
    """lambda x: x + 1."""
    return _refused(
        "A lambda is not supported.", "It is not among what is read here.", "Write the steps out.", node, text
    )


def refuse_qualify(node: Any, text: str) -> QuestionRefusedError:
    """QUALIFY without a window."""
    return _refused(
        "QUALIFY stands without a window function.",
        "It chooses rows by windows.",
        "Write WHERE around what is released, or HAVING beside GROUP BY.",
        node,
        text,
    )


def refuse_ambiguous(name: str, tables: list[str]) -> QuestionRefusedError:
    """A column that several sources have."""
    return QuestionRefusedError(
        f"The column {name[:60]!r} is in several tables here: {', '.join(tables)[:200]}.",
        why="Which is meant?",
        fix=f"Write {tables[0][:60]}.{name[:60]}.",
    )


def _function(window: Any) -> str:
    function = window.this
    while type(function).__name__ in {"IgnoreNulls", "RespectNulls", "Filter", "WithinGroup"}:
        function = function.this
    return str(function.sql_name() if hasattr(function, "sql_name") else function.name).upper()


def _of(select: Any, kind: type) -> list[Any]:
    from sqlglot import exp

    nodes = select.walk(prune=lambda each: isinstance(each, exp.Query) and each is not select)
    return [each for each in nodes if isinstance(each, kind)]


def _refused(message: str, why: str, fix: str, node: Any, text: str) -> QuestionRefusedError:
    around, at = node, place(node, text)
    while at is None and around is not None:  # not every node remembers; one around it does
        at, around = place(around, text), around.parent
    return QuestionRefusedError(message, why=why, fix=fix, at=at)
