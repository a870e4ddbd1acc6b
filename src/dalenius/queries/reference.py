"""The reference page of what can be asked: its tables are written from the allow-lists themselves.

`python -m dalenius.queries.reference docs/reference/sql.md` renews them; a test compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from dalenius.queries.domains import MOST_CELLS
from dalenius.queries.expressions import Type
from dalenius.queries.functions import FUNCTIONS, PARTS, UNITS, Function
from dalenius.queries.periods import MOST as MOST_PERIODS
from dalenius.queries.rules.parse import DEEPEST, LONGEST
from dalenius.queries.rules.resolve import MOST_OUTPUTS
from dalenius.queries.rules.restrict import _PARTS, _REFUSED

BEGIN = "<!-- generated: python -m dalenius.queries.reference docs/reference/sql.md -->"
END = "<!-- end of what is generated -->"

CLAUSES = (
    ("SELECT", "aggregates, keys, and arithmetic on them, with or without AS"),
    (
        "FROM",
        "protected tables of one data set, public tables, subqueries that select and filter or group by the unit; "
        + "UNION ALL of such",
    ),
    ("JOIN", "JOIN … ON or USING, LEFT JOIN that keeps rows with a unit, or a list of tables with conditions in WHERE"),
    ("WITH", "subqueries by name, not recursive"),
    ("WHERE", "any condition on columns; [NOT] EXISTS and [NOT] IN (SELECT …) about rows of the same unit"),
    (
        "GROUP BY",
        "columns, functions of them, names or numbers of items, or ALL; public groups are all answered, others found",
    ),
    ("HAVING", "a condition on what is released; it costs nothing"),
    ("ORDER BY", "what is released, names or numbers of items, or ALL; ASC, DESC, NULLS FIRST, NULLS LAST"),
    ("LIMIT, OFFSET", "whole numbers; all groups are paid for, also those that are not shown"),
)
AGGREGATES = (
    ("COUNT(*)", "rows", "`rows`"),
    ("COUNT(x)", "rows in which x is not NULL", "`rows`"),
    ("COUNT_IF(p)", "rows in which p is true", "`rows`"),
    ("COUNT(DISTINCT unit)", "units: people, devices, whoever is protected", "nothing"),
    ("COUNT(DISTINCT x)", "different values of x; NULL is none", "`groups`, or `rows`, or public values of x"),
    ("SUM(x)", "the sum; NULL adds nothing", "bounds of x; `rows`, or a `total` of its column"),
    ("AVG(x)", "the average of what is not NULL", "bounds of x; `rows`"),
    ("VAR_SAMP(x), VARIANCE(x)", "the variance, over n − 1", "bounds of x; `rows`"),
    ("VAR_POP(x)", "the variance, over n", "bounds of x; `rows`"),
    ("STDDEV_SAMP(x), STDDEV(x)", "the standard deviation, over n − 1", "bounds of x; `rows`"),
    ("STDDEV_POP(x)", "the standard deviation, over n", "bounds of x; `rows`"),
    ("MEDIAN(x), QUANTILE_CONT(x, 0.9)", "the value below which half, or 0.9, of the rows lie", "bounds of x; `rows`"),
    ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)", "the same; also QUANTILE(x, 0.9)", "bounds of x; `rows`"),
    ("MIN(x), MAX(x)", "private extremes: a few rows may lie beyond, and a note says how many", "bounds of x; `rows`"),
    ("COVAR_SAMP(x, y)", "the covariance, over n − 1; rows in which both are not NULL", "bounds of x and y; `rows`"),
    ("COVAR_POP(x, y)", "the covariance, over n", "bounds of x and y; `rows`"),
    ("CORR(x, y)", "the correlation, between −1 and 1", "bounds of x and y; `rows`"),
    ("… FILTER (WHERE p)", "any of them, over the rows in which p is true", ""),
)
BUCKETS = (
    ("FLOOR(x / 10) * 10", "0, 10, 20 …; also with other constants, with CEIL, TRUNC, x // 10 and + 5"),
    ("ROUND(x, -1)", "the nearest of 0, 10, 20 …"),
    ("x - x % 10", "0, 10, 20 …, towards zero"),
    ("WIDTH_BUCKET(x, 0, 100, 10)", "1 to 10 between 0 and 100, 0 below, 11 from 100 on; also where x has no bounds"),
    ("TIME_BUCKET(INTERVAL 1 WEEK, d)", "the same as DATE_TRUNC('week', d); one unit of time"),
)
# the first function of each group, in the order of `FUNCTIONS`
_GROUPS = {
    "add": "Numbers",
    "eq": "Conditions",
    "case": "Choice",
    "lower": "Texts",
    "date_part": "Dates",
    "to_number": "Casts",
}
_INTERNAL = frozenset({"finite"})  # guards, which nobody writes


def generated() -> str:
    """The tables of the page."""
    parts = ["## Clauses", "", *_table(("clause", "takes"), CLAUSES), "", "## Aggregates", ""]
    parts += _table(("aggregate", "counts or adds", "needs, in the policy or the question"), map(_coded, AGGREGATES))
    parts += [
        "",
        "## Functions",
        "",
        "None fails on any row: what has no value (1/0, LN(-1), a text that is no date) is",
    ]
    parts += ["NULL. Every number is a double.", ""]
    for title, functions in _grouped():
        rows = [(_code(each.says), _types(each), each.gives.value if each.gives else "the same") for each in functions]
        parts += [f"### {title}", "", *_table(("write", "takes", "gives"), rows), ""]
    parts += [f"Parts of dates, for EXTRACT and DATE_PART: {', '.join(PARTS)}; also as functions, as in YEAR(d)."]
    parts += [f"Units of time, for DATE_TRUNC, DATE_DIFF and INTERVAL: {', '.join(UNITS)}.", ""]
    parts += ["### Buckets", "", *_table(("write", "gives"), ((_code(one), other) for one, other in BUCKETS)), ""]
    parts += ["## Limits", "", *_table(("of", "at most"), _limits()), "", "## What is refused", ""]
    parts += ["Anything else is refused too: only what stands above is understood.", ""]
    parts += _table(("construct", "why", "instead"), dict.fromkeys((*_REFUSED.values(), *_PARTS.values())))
    return "\n".join(parts)


def renewed(page: str) -> str:
    """The page with its tables as they are now."""
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n{generated()}\n\n{END}{rest.split(END)[1]}"


def _limits() -> Iterable[tuple[str, str]]:
    yield "characters of a question", f"{LONGEST:,}"
    yield "levels of nesting", f"{DEEPEST:,}"
    yield "columns of an answer", f"{MOST_OUTPUTS:,}"
    yield "groups", f"{MOST_CELLS:,}"
    yield "periods, where each has its own budget", f"{MOST_PERIODS:,}"


def _grouped() -> Iterable[tuple[str, list[Function]]]:
    found: dict[str, list[Function]] = {}
    title = ""
    for name, function in FUNCTIONS.items():
        title = _GROUPS.get(name, title)
        if name not in _INTERNAL:
            found.setdefault(title, []).append(function)
    return found.items()


def _types(function: Function) -> str:
    def shown(types: frozenset[Type]) -> str:
        return "any" if len(types) > 2 else " or ".join(sorted(each.value for each in types))

    said = [shown(each) for each in function.takes]
    return ", ".join(said) + (", …" if function.many else "")


def _coded(row: tuple[str, str, str]) -> tuple[str, str, str]:
    return ", ".join(_code(each) for each in row[0].split("), ")).replace("`, `", ")`, `"), row[1], row[2]


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(renewed(file.read_text()))
