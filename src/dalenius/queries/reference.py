"""The reference page of what can be asked: its tables are written from the allow-lists themselves.

`python -m dalenius.queries.reference docs/reference/sql.md` renews them; a test compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from dalenius.measuring.domains import MOST_VALUES
from dalenius.measuring.expressions import Type
from dalenius.measuring.fairness import PLANNING_SECONDS
from dalenius.measuring.function_values import MOST_CELLS
from dalenius.measuring.functions import FUNCTIONS, PARTS, UNITS, Function
from dalenius.measuring.periods import MOST as MOST_PERIODS
from dalenius.measuring.statistics import families, family_for
from dalenius.queries.reference_words import (
    UNLIKE,
    UNLIKE_RULES,
    aggregate_names,
    also_named,
    code,
    example_of,
    other_ways,
    read_as,
)
from dalenius.queries.rules.derived import INSIDE
from dalenius.queries.rules.parse import DEEPEST, LONGEST
from dalenius.queries.rules.resolve import MOST_OUTPUTS
from dalenius.queries.rules.restrict import _PARTS, _REFUSED
from dalenius.queries.rules.scope import MOST_SOURCES
from dalenius.queries.rules.sets import MOST_KEYS, MOST_SETS
from dalenius.queries.rules.sources import NOBODYS, REFUSED_JOINS, REFUSED_SUBQUERIES

BEGIN = "<!-- generated: python -m dalenius.queries.reference docs/reference/sql.md -->"
END = "<!-- end of what is generated -->"

_INSIDE = {family_for(each).asked[each].written.format("x").removesuffix("(x)") for each in INSIDE}
CLAUSES = (
    ("SELECT", "aggregates, keys, and arithmetic on them, with or without AS"),
    ("FROM", "protected tables of one data set, public tables, VALUES, subqueries; see *Several tables*"),
    (
        "JOIN",
        "JOIN, LEFT JOIN and a first RIGHT JOIN with ON or USING, NATURAL and CROSS JOIN, tables after a comma",
    ),
    ("WITH", "subqueries by name, not recursive"),
    ("WHERE", "any condition on columns; [NOT] EXISTS and [NOT] IN (SELECT …) about rows of the same unit"),
    (
        "GROUP BY",
        "columns, functions of them, names or numbers of items, or ALL; public groups are all answered, others found",
    ),
    (
        "GROUPING SETS, ROLLUP, CUBE, GROUPING",
        "several groupings at once; a key that a set does not have is NULL there, and GROUPING(key) is 1, not 0",
    ),
    ("HAVING", "a condition on what is released; it costs nothing"),
    ("ORDER BY", "what is released, names or numbers of items, or ALL; ASC, DESC, NULLS FIRST, NULLS LAST"),
    (
        "LIMIT, OFFSET",
        "whole numbers; also TOP n and FETCH FIRST n ROWS ONLY; all groups are paid for, also those not shown",
    ),
)
# Of protected tables a and b with the unit u, c whose path leads through the key b.k, and a public table p.
SEVERAL = (
    ("a JOIN b ON a.u = b.u", "rows of one unit meet; also with USING (u), and with a itself"),
    ("b JOIN c ON b.k = c.k", "keys on the way to a unit; each row of c meets its own of b"),
    ("a JOIN p ON a.x = p.code", "a public table, by an equality; where its rows repeat, limits are multiplied"),
    ("a LEFT JOIN b ON a.u = b.u AND b.y > 3", "rows of a stay without one of b; the first table must have units"),
    (
        "a JOIN (VALUES (1, 'one'), (2, 'two')) k(x, name) ON a.x = k.x",
        "rows that the question lists, as a public table; also UNNEST([1, 2]) AS k and GENERATE_SERIES(1, 12) AS k",
    ),
    (
        "p LEFT JOIN a ON a.x = p.code",
        "each group of p is answered, with 0 where nobody is: keys of p, aggregates of a; also with VALUES",
    ),
    ("a WHERE EXISTS (SELECT 1 FROM b WHERE b.u = a.u AND b.y > a.x)", "a row of the same unit; also NOT EXISTS"),
    ("a WHERE a.u IN (SELECT u FROM b WHERE y > 3)", "the same; also NOT IN, with SQL's meaning of NULL"),
    ("a WHERE a.x NOT IN (SELECT code FROM p)", "public tables need no unit"),
    ("(SELECT x + 1 AS z, u FROM a WHERE x > 3) s", "a subquery that selects, filters and joins"),
    (
        "(SELECT u, SUM(y) AS s FROM b GROUP BY u HAVING COUNT(*) > 1) t",
        f"sums within one unit or key, by more columns too: {', '.join(sorted(_INSIDE))}",
    ),
    ("(SELECT u, x FROM a UNION ALL SELECT u, y FROM b) t", "rows of both; columns of one type, the unit in each"),
)
AGGREGATES = (
    *(row for each in families() for row in each.reference),
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
    parts = ["## Clauses", "", *table(("clause", "takes"), CLAUSES), "", "## Several tables", ""]
    parts += [
        "a and b are protected tables with the unit u; the path of c leads through b's key k; p is public. Every row"
    ]
    parts += ["that is counted belongs to one unit and is made of that unit's own rows and of public ones.", ""]
    parts += [*table(("FROM …", "means"), ((_code(one), other) for one, other in SEVERAL)), "", "## Aggregates", ""]
    parts += table(("aggregate", "counts or adds", "needs, in the policy or the question"), map(_coded, AGGREGATES))
    parts += [
        "",
        "## Functions",
        "",
        "None fails on any row: what has no value (1/0, LN(-1), a text that is no date) is",
    ]
    parts += ["NULL. Every number is a double.", ""]
    for title, functions in _grouped():
        rows = [_function(each) for each in functions]
        parts += [f"### {title}", "", *table(("write", "also", "takes", "gives", "for example"), rows), ""]
    parts += [f"Parts of dates, for EXTRACT and DATE_PART: {', '.join(PARTS)}; also as functions, as in YEAR(d)."]
    parts += [f"Units of time, for DATE_TRUNC, DATE_DIFF and INTERVAL: {', '.join(UNITS)}.", ""]
    parts += ["### Buckets", "", *table(("write", "gives"), ((_code(one), other) for one, other in BUCKETS)), ""]
    parts += [
        *_unlike(),
        *_other_ways(),
        "## Limits",
        "",
        *table(("of", "at most"), _limits()),
        "",
        "## What is refused",
        "",
    ]
    parts += ["Anything else is refused too: only what stands above is understood.", ""]
    parts += table(("construct", "why", "instead"), dict.fromkeys((*_REFUSED.values(), *_PARTS.values(), *_refused())))
    return "\n".join(parts)


def _function(each: Function) -> tuple[str, str, str, str, str]:
    gives = each.gives.value if each.gives else "the same"
    also = ", ".join(map(_code, also_named(each.says)))
    return _code(each.says), also, _types(each), gives, _code(example_of(each.says, each.takes))


def _unlike() -> list[str]:
    """What differs from DuckDB."""
    rows = [(code(what), theirs, ours) for what, theirs, ours in UNLIKE]
    head = ["## Unlike DuckDB", "", "What is answered means what it means in DuckDB, but for this:", ""]
    return [*head, *table(("of", "in DuckDB", "here"), (*rows, *UNLIKE_RULES)), ""]


def _other_ways() -> list[str]:
    """What other databases call otherwise."""
    parts = ["## In other words", "", "What other databases call otherwise is read as what it means here. Both ways"]
    parts += ["of writing are one question, paid for once.", ""]
    for title, ways in other_ways().items():
        rows = [(code(each.typed), read_as(each), each.dialects) for each in ways]
        if title == "Aggregates":
            rows += [
                (", ".join(map(_code, others.split(", "))), _code(name), at) for name, others, at in aggregate_names()
            ]
        parts += [f"### {title} in other words", "", *table(("typed", "read as", "as in"), rows), ""]
    return parts


def renew(page: str, begin: str, content: str) -> str:
    """A page with other content between its marks."""
    head, rest = page.split(begin)
    return f"{head}{begin}\n\n{content}\n\n{END}{rest.split(END)[1]}"


def _refused() -> Iterable[tuple[str, str, str]]:
    """Joins and subqueries that are refused."""
    for kind, way in REFUSED_JOINS.items():
        yield f"{kind} JOIN", NOBODYS, way
    for what, why, way in REFUSED_SUBQUERIES.values():
        yield what.replace(" is not supported.", "").replace(" cannot stand here.", " elsewhere"), why, way


def _limits() -> Iterable[tuple[str, str]]:
    yield "characters of a question", f"{LONGEST:,}"
    yield "levels of nesting", f"{DEEPEST:,}"
    yield "tables of a question, each as often as it is named", f"{MOST_SOURCES:,}"
    yield "columns of an answer", f"{MOST_OUTPUTS:,}"
    yield "groups, of all grouping sets together", f"{MOST_CELLS:,}"
    yield "keys of all groups, in values", f"{MOST_VALUES:,}"
    yield "keys of GROUP BY", f"{MOST_KEYS:,}"
    yield "grouping sets", f"{MOST_SETS:,}"
    yield "seconds of processor time in which a question is planned", f"{PLANNING_SECONDS:g}"
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


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(renew(file.read_text(), BEGIN, generated()))
