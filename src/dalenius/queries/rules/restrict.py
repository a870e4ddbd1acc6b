"""The second pass: only an allow-list of constructs goes on. Everything else is refused by name, with a way out."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.plan import require
from dalenius.measuring.statistics import FUNCTIONS
from dalenius.queries.rules.aggregated import aggregate_nodes
from dalenius.queries.rules.parse import in_sql, place
from dalenius.queries.rules.ways import OPERATORS, way_around

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from dalenius.queries.rules import Stage

# Node of the syntax tree → which of its parts are understood. A part that is not in the list is refused too, however
# harmless it looks: what is not read must not be there.
_ALLOWED = {
    # the statement
    "Select": "expressions from from_ where group having order limit offset joins with with_ distinct kind",
    "From": "this",
    "Table": "this alias",
    "TableAlias": "this columns",
    "Join": "this on using side kind method",
    "Subquery": "this alias",
    "Values": "expressions alias",
    "Unnest": "expressions alias",
    "With": "expressions recursive",
    "CTE": "this alias",
    "Union": "this expression distinct by_name",
    "Exists": "this",
    "Where": "this",
    "Group": "expressions all",
    "GroupingSets": "expressions",
    "Rollup": "expressions",
    "Cube": "expressions",
    "Having": "this",
    "Order": "expressions",
    "Ordered": "this desc nulls_first",
    "Limit": "expression",
    "Offset": "expression",
    "Alias": "this alias",
    "Paren": "this",
    # names and constants
    "Column": "this table",
    "Identifier": "this quoted",
    "Literal": "this is_string",
    "Boolean": "this",
    "Null": "",
    "Star": "",
    "Var": "this",
    "Tuple": "expressions",
    "DataType": "this nested expressions kind",
    "DataTypeParam": "this",
    "Interval": "this unit",
    # aggregates with a syntax of their own; the others are functions of `measuring.statistics`
    "Grouping": "expressions",
    "GroupingId": "expressions",
    "Count": "this expressions big_int",
    "CountIf": "this",
    "Median": "this",
    "Quantile": "this quantile",
    "ApproxQuantile": "this quantile",
    "ApproxQuantiles": "this expression",
    "Array": "expressions",  # of shares, for quantiles
    "PercentileCont": "this expression",
    "PercentileDisc": "this expression",
    "WithinGroup": "this expression",
    "Filter": "this expression",
    "Distinct": "expressions",
    # truth
    "And": "this expression",
    "Or": "this expression",
    "Not": "this",
    "EQ": "this expression",
    "NEQ": "this expression",
    "LT": "this expression",
    "LTE": "this expression",
    "GT": "this expression",
    "GTE": "this expression",
    "NullSafeEQ": "this expression",
    "NullSafeNEQ": "this expression",
    "Between": "this low high",
    "In": "this expressions query",
    "Is": "this expression",
    "Like": "this expression negate",
    "ILike": "this expression negate",
    "Contains": "this expression",
    "StartsWith": "this expression",
    "EndsWith": "this expression",
    # choice
    "Case": "this ifs default",
    "If": "this true false",
    "Coalesce": "this expressions",
    "Nullif": "this expression",
    # numbers
    "Add": "this expression",
    "Sub": "this expression",
    "Mul": "this expression",
    "Div": "this expression typed safe",
    "IntDiv": "this expression",
    "Mod": "this expression",
    "Neg": "this",
    "Abs": "this",
    "Sign": "this",
    "Floor": "this",
    "Ceil": "this",
    "Round": "this decimals",
    "Trunc": "this",
    "Sqrt": "this",
    "Ln": "this",
    "Log": "this expression",
    "Exp": "this",
    **dict.fromkeys(("Sin", "Cos", "Tan", "Asin", "Acos", "Atan"), "this"),
    "Atan2": "this expression",
    "Pow": "this expression",
    "WidthBucket": "this min_value max_value num_buckets",
    "Least": "this expressions ignore_nulls",
    "Greatest": "this expressions ignore_nulls",
    # texts
    "Lower": "this",
    "Upper": "this",
    "Trim": "this position expression",
    "StrPosition": "this substr",
    "RegexpLike": "this expression flag",
    "RegexpILike": "this expression flag",
    "RegexpFullMatch": "this expression options",
    "SimilarTo": "this expression",
    "SplitPart": "this delimiter part_index",
    "Initcap": "this expression",
    "Length": "this",
    "Left": "this expression",
    "Right": "this expression",
    "Substring": "this start length",
    "Replace": "this expression replacement",
    "DPipe": "this expression safe",
    "Concat": "expressions safe coalesce",
    # dates and casts
    "Extract": "this expression",
    "TimestampTrunc": "this unit",
    "DateTrunc": "this unit unabbreviate",
    "DateBin": "this expression",
    "DateDiff": "this expression unit date_part_boundary",
    "Year": "this",
    "Quarter": "this",
    "Month": "this",
    "Week": "this",
    "Day": "this",
    "DayOfMonth": "this",
    "DayOfWeek": "this",
    "DayOfWeekIso": "this",
    "DayOfYear": "this",
    "Hour": "this",
    "Minute": "this",
    "Second": "this",
    "TimeToStr": "this format",
    "Cast": "this to",
    "TryCast": "this to safe",
    "Anonymous": "this expressions",  # by name, in `resolve`
}

# What is refused by name: why, and what to ask instead.
_WORD = re.compile(r"\w+")
_SHOWN = 24  # characters of what was typed
_TABLES = "Write FROM and one of the names of 'dalenius tables'."
_ONE_PERSON = "It would show what one person's rows hold."
_REFUSED = {
    "Lateral": ("LATERAL", "It works row by row.", "Join the tables, or write EXISTS."),
    "Window": (
        "A window function over rows",
        _ONE_PERSON,
        "Aggregate with GROUP BY; windows over aggregates are free. Rows of one unit can be numbered in a subquery.",
    ),
    "Qualify": ("QUALIFY on rows", _ONE_PERSON, "Aggregate with GROUP BY; QUALIFY over aggregates is free."),
    "ArgMax": ("ARG_MAX", _ONE_PERSON, "Ask for a count or an average per group."),
    "ArgMin": ("ARG_MIN", _ONE_PERSON, "Ask for a count or an average per group."),
    "First": ("FIRST", _ONE_PERSON, "Ask for a count or an average per group."),
    "Last": ("LAST", _ONE_PERSON, "Ask for a count or an average per group."),
    "AnyValue": ("ANY_VALUE", _ONE_PERSON, "Ask for a count or an average per group."),
    "ArrayAgg": ("A list of values", _ONE_PERSON, "Ask for counts per group."),
    "GroupConcat": ("A list of values", _ONE_PERSON, "Ask for counts per group."),
    "Intersect": (
        "INTERSECT",
        "Only UNION ALL keeps every row with the unit that it belongs to.",
        "Write WHERE EXISTS (SELECT … ) with equal units.",
    ),
    "Except": (
        "EXCEPT",
        "Only UNION ALL keeps every row with the unit that it belongs to.",
        "Write WHERE NOT EXISTS (SELECT … ) with equal units.",
    ),
    "Any": (
        "ANY over a subquery",
        "Only EXISTS and IN look into one.",
        "Write EXISTS (SELECT … WHERE x > t.y), or a IN ('x', 'y') for a list.",
    ),
    "All": ("ALL over a subquery", "Only EXISTS and IN look into one.", "Write NOT EXISTS (SELECT … WHERE x <= t.y)."),
    "TableSample": ("Sampling", "Chance in a question is not under the analyst's control.", "Ask without it."),
    "Rand": ("RANDOM", "Chance in a question is not under the analyst's control.", "Ask without it."),
    "Pivot": (
        "PIVOT",
        "Which columns and groups there are must stand in the question, not depend on rows.",
        "List the values, and say what the rest is grouped by: PIVOT (SUM(y) FOR x IN ('a', 'b') GROUP BY z).",
    ),
    "GenerateSeries": (
        "GENERATE_SERIES",
        "In FROM, a series of at most 2,000 whole numbers or days between constants is written out.",
        "Give constants, as GENERATE_SERIES(1, 12) AS t(m), or list the values: (VALUES (1), (2)) AS t(m).",
    ),
    "Lock": ("A lock", "Questions only read.", "Leave it out."),
    "Into": ("INTO", "Questions only read.", "Leave it out."),
    "Placeholder": ("A parameter", "Nobody fills it in.", "Write the value itself."),
    "CurrentDate": ("The current date", "The same question would mean something else tomorrow.", "Write a date."),
    "CurrentTimestamp": ("The current time", "The same question would mean another thing later.", "Write a date."),
}
_STAR = (
    "SELECT * with a list of columns",
    "Rows of people never leave.",
    "Ask for COUNT(*), SUM(x) or AVG(x).",
)
_SCHEMA = ("A schema or catalog before a name of WITH", "It would mean the table.", "Rename the subquery.")
_PARTS = {
    "laterals": _REFUSED["Lateral"],
    "joins": (
        "A join in parentheses",
        "Outer joins are read from left to right.",
        "Leave the parentheses out, or write a subquery: JOIN (SELECT … FROM a JOIN b ON …) t ON …",
    ),
    "qualify": _REFUSED["Qualify"],
    "sample": _REFUSED["TableSample"],
    "pivots": _REFUSED["Pivot"],
    "locks": _REFUSED["Lock"],
    "into": _REFUSED["Into"],
    "windows": _REFUSED["Window"],
    "over": _REFUSED["Window"],
    "on": ("DISTINCT ON", _ONE_PERSON, "Use GROUP BY with COUNT(*), SUM(x) or AVG(x)."),
    **dict.fromkeys(("except_", "replace", "rename"), _STAR),
    "rollup": ("WITH ROLLUP", "It is read behind plain keys alone.", "Write GROUP BY ROLLUP (a, b)."),
    "cube": ("WITH CUBE", "It is read behind plain keys alone.", "Write GROUP BY CUBE (a, b)."),
    "db": _SCHEMA,
    "catalog": _SCHEMA,
}


def restrict_tree(stage: Stage) -> Stage:
    """Walks the whole tree; one node that is not in the list refuses the question."""
    allowed = _allowed()
    for node in require(stage.tree).walk():
        anywhere, inside = allowed.get(type(node)), _in_subquery(node, require(stage.tree))
        parts = inside if anywhere is None else anywhere | (inside or frozenset())
        if parts is None:
            raise _refusal(node, stage.text, *_reason(node, stage.text))
        for part, value in node.args.items():
            if part not in parts and value not in (None, False, [], ""):
                raise _refusal(node, stage.text, *_PARTS.get(part, _unknown(node, stage.text, part)))
    return stage


def _in_subquery(node: exp.Expr, tree: exp.Expr) -> frozenset[str] | None:
    """What is understood of a node in a subquery only: row numbers within one unit, and what chooses by them."""
    from sqlglot import exp

    match node:
        case exp.RowNumber():
            return frozenset() if isinstance(node.parent, exp.Window) else None
        case exp.Window(this=exp.RowNumber()):
            found = "this partition_by order over"
        case exp.Qualify():
            found = "this"
        case exp.Select():
            found = "qualify"
        case exp.Distinct() if isinstance(node.parent, exp.Select):
            found = "on"
        case _:
            return None
    within = node if isinstance(node, exp.Select) else node.parent_select
    return frozenset(found.split()) if within is not None and within is not tree else None


@cache
def _allowed() -> Mapping[type, frozenset[str]]:
    from sqlglot import exp

    found = {getattr(exp, name, None): frozenset(parts.split()) for name, parts in _ALLOWED.items()}
    known = {cls: parts for cls, parts in found.items() if cls is not None}
    for cls, name in aggregate_nodes().items():
        known[cls] = frozenset({"this", "expression"} if FUNCTIONS[name].arguments == 2 else {"this"})
    return known


def _reason(node: exp.Expr, text: str) -> tuple[str, str, str]:
    from sqlglot import exp

    # ANY_VALUE(x) comes wrapped in a node of its own
    known = _REFUSED.get(type(node).__name__) or _REFUSED.get(type(node.this).__name__)
    if known is not None:
        name = function_name(node, text) if known[0].isupper() else None
        return known if name is None else (name, *known[1:])
    if isinstance(node, exp.Query | exp.SetOperation):
        return f"{node.key.upper()}", "Only SELECT and UNION ALL are read.", "Write SELECT … FROM."
    return _unknown(node, text, "")


def _unknown(node: exp.Expr, text: str, part: str) -> tuple[str, str, str]:
    from sqlglot import exp

    what = typed_name(node, text)
    if isinstance(node.parent, exp.Table) and not part:
        return f"{what} in FROM", "Files and functions are never read for a question.", _TABLES
    why, fix = OPERATORS.get(type(node).__name__) or way_around(function_name(node, text) or what)
    return (f"This use of {what}" if part else what), why, fix


def function_name(node: exp.Expr, text: str) -> str | None:
    """A function's name as it was typed; None where it cannot be told, as of an operator."""
    from sqlglot import exp

    if not isinstance(node, exp.Func):
        return None
    start = node.meta.get("start")
    if start is not None:
        word = _WORD.match(text, start)
        return word[0].upper() if word and text[word.end() :].lstrip().startswith("(") else None
    named = (each for each in node.sql_names() if re.search(rf"\b{each}\s*\(", text, re.IGNORECASE))
    return next(named, None)


def _flat(text: str) -> str:
    return "".join(text.split()).lower()


def typed_name(node: exp.Expr, text: str) -> str:
    """A construct as it was typed: a function by its name, anything else by the words that it begins with."""
    if (name := function_name(node, text)) is not None:
        return name
    written = in_sql(node)
    if written is not None and len(written) <= _SHOWN and _flat(written) in _flat(text):
        return f"'{written}'"
    around: exp.Expr | None = node
    while around is not None:
        starts = [each.meta["start"] for each in around.walk() if "start" in each.meta]
        if starts:
            shown = text[min(starts) :].split("\n", maxsplit=1)[0]
            return f"'{shown[:_SHOWN].rstrip()} …'" if len(shown) > _SHOWN else f"'{shown}'"
        around = around.parent
    return "This"


def _refusal(node: exp.Expr, text: str, what: str, why: str, fix: str) -> QuestionRefusedError:
    around: exp.Expr | None = node
    at = place(node, text)
    while at is None and around is not None:  # not every node remembers; one around it does
        at, around = place(around, text), around.parent
    typed = None if what.isupper() or what.startswith(("'", "This")) else function_name(node, text)
    named = "" if typed is None or typed in what else f": {typed}"
    return QuestionRefusedError(f"{what} is not supported{named}.", why=why, fix=fix, at=at)
