"""The reference page's rows about other ways of writing: taken from the functions that read them.

A rewriting of `rules.spelling` says in the first line of its docstring what is typed and what it is read as, with an
arrow between; `;` begins another one, or a remark. So a new rewriting stands on the page without another word.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

from dalenius.measuring.functions import FUNCTIONS
from dalenius.queries.rules.spelling import aggregates, choices, clauses, dates, formats, lists, numbers, texts
from dalenius.queries.rules.syntax import _NAMED

ARROW = " → "
_PLACES: Mapping[str, tuple[ModuleType, ...]] = {
    "Clauses": (clauses, lists),
    "Choices": (choices,),
    "Numbers": (numbers,),
    "Texts": (texts,),
    "Dates": (dates, formats),
    "Aggregates": (aggregates,),
}
# Ways of writing that no function of its own reads.
_OTHERS: Mapping[str, tuple[str, ...]] = {
    "Clauses": (
        "`people`, [people] → people",
        "N'Zoë', r'^A' → 'Zoë', '^A'",
        "SELECT TOP 3 … → LIMIT 3",
        "SELECT a AS r … WHERE r = 1 → WHERE a = 1; a column r goes first",
        "PIVOT t ON x IN ('a', 'b') USING SUM(y) GROUP BY z → SELECT z, SUM(y) FILTER (WHERE x = 'a') AS a, …",
        "a NATURAL JOIN b → a JOIN b USING (…); with the columns that both policies list",
    ),
    "Choices": ("smoker = 1 → smoker = TRUE",),
    "Texts": ("CONCAT(a, 1), a || YEAR(d), a + 'x' → texts put together",),
    "Aggregates": ("COUNT(unit) → COUNT(*); every row has a unit",),
}
# Where a word comes from, as far as people ask for it by that name.
_DIALECTS = {
    "SQL Server": "ISNULL CHOOSE SQUARE DATEADD DATEPART DATENAME EOMONTH DATEFROMPARTS CONVERT FORMAT COUNT_BIG VARP "
    "STDEV STDEVP N'Zoë' TOP VAR [people]",
    "Oracle": "NVL NVL2 DECODE TO_CHAR TO_DATE",
    "Postgres": "BTRIM TO_CHAR AGE placed::TIME DIV CBRT TO_DATE MAKE_DATE",
    "MySQL": "DATE_FORMAT DATE_SUB DATE_ADD DAYNAME MONTHNAME STD `people` WITH",
    "BigQuery": "SAFE_DIVIDE IEEE_DIVIDE DIV RANGE_BUCKET DATE_TRUNC DATETIME_TRUNC DATE_DIFF DATETIME_DIFF "
    "TIMESTAMP_SUB DATE_ADD DATE_SUB UNIX_SECONDS PARSE_DATE FORMAT_DATE APPROX_QUANTILES APPROX_COUNT_DISTINCT "
    "SAFE.LN `people` TIMESTAMP LAST_DAY LPAD ANON_COUNT ANON_SUM ANON_AVG ANON_VAR_POP ANON_STDDEV_POP "
    "ANON_PERCENTILE_CONT r'^A'",
    "Snowflake": "ZEROIFNULL NULLIFZERO NVL2 DECODE LAST_DAY DAYNAME MONTHNAME RANGE_BUCKET APPROX_PERCENTILE",
    "Spark": "DATE_FORMAT PERCENTILE_APPROX MEAN",
    "SmartNoise": "ANON_VAR ANON_STDDEV VARIANCE_POP VARIANCE_SAMP",
}
# What an expression gives in DuckDB, and here, over the page's own table; each is tried out by a test.
UNLIKE = (
    ("amount / 0", "infinity, or NaN", "NULL"),
    ("EXP(amount + 1000)", "infinity", "NULL"),
    ("LN(-1 - amount), SQRT(-1 - amount), ASIN(age)", "NaN, or an error", "NULL"),
    ("age % 0, age // 0", "an error, or NULL", "NULL"),
    ("CAST(region AS DOUBLE), CAST(region AS DATE)", "an error", "NULL, as TRY_CAST"),
)
# The same of what is no expression.
UNLIKE_RULES = (
    ("a key that is NULL", "is a group", "its rows are in no group; `COALESCE(region, 'unknown')` gives them one"),
    ("groups without rows", "do not show", "show where they are public; a group that is found has many units"),
    ("values beyond the bounds of the policy", "count as they are", "count as the bound"),
    ("texts that are not among the keys of the policy", "are values", "count as NULL, or as the column's `default`"),
    ("MIN(x), MAX(x), MEDIAN(x)", "a value of some row", "a value near it, of the declared step"),
    ("COUNT, SUM and the like", "exact", "noisy, of what the limits leave of each unit; as the release says"),
    ("long texts, and patterns", "read whole", "limited: see [how much work](#how-much-work)"),
    ("numbers in expressions", "integers, decimals or doubles", "doubles; what is made of integers is shown as one"),
)
_WORD = re.compile(r"[`\[]?[A-Za-z_.:'^ë]+[`\]]?")
_CODE = re.compile(r"[()'*/=|<>\[`]|\b(IS|CASE|LIMIT|INTERVAL)\b")


@dataclass(frozen=True, slots=True)
class OtherWay:
    """One row: what is typed, what it is read as, what to know besides, and where such a thing is typed."""

    typed: str
    read: str
    remark: str = ""

    @property
    def dialects(self) -> str:
        """Where its words come from."""
        words = set(_WORD.findall(self.typed))
        return ", ".join(name for name, known in _DIALECTS.items() if words & set(known.split()))


def other_ways() -> dict[str, list[OtherWay]]:
    """All rows, by what they are about."""
    found: dict[str, list[OtherWay]] = {}
    for title, modules in _PLACES.items():
        lines = [*_OTHERS.get(title, ()), *(line for module in modules for line in _lines(module))]
        found[title] = [way for line in lines for way in ways_of(line)]
    return found


def ways_of(line: str) -> Iterator[OtherWay]:
    """The rows of one line."""
    waiting: OtherWay | None = None
    for part in line.split("; "):
        typed, arrow, read = part.partition(ARROW)
        if not arrow:
            if waiting is not None:
                remark = f"{waiting.remark}; {part}" if waiting.remark else part
                waiting = OtherWay(waiting.typed, waiting.read, remark)
            continue
        if waiting is not None:
            yield waiting
        read, _, remark = read.partition(": ")
        waiting = OtherWay(typed, read, remark)
    if waiting is not None:
        yield waiting


def _lines(module: ModuleType) -> Iterator[str]:
    """The first lines of a module's rewritings that have an arrow, in its order."""
    for name, each in vars(module).items():
        own = inspect.isfunction(each) and each.__module__ == module.__name__ and not name.startswith("_")
        first = " ".join((inspect.getdoc(each) or "").split("\n\n")[0].split()) if own else ""
        if ARROW in first and name != "rename":  # whose names have a table of their own
            yield first.removesuffix(".")


def aggregate_names() -> Iterator[tuple[str, str, str]]:
    """Aggregates by their names here, with those of other databases and where these come from."""
    by_name: dict[str, list[str]] = {}
    for other, name in aggregates.NAMES.items():
        by_name.setdefault(name, []).append(other)
    for name, others in by_name.items():
        places = [place for place, known in _DIALECTS.items() if set(others) & set(known.split())]
        yield name, ", ".join(others), ", ".join(places)


def also_named(says: str) -> list[str]:
    """Other names of a function that mean the very same, as the parser and `rules.syntax` have them."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.helper import camel_to_snake_case

    named = re.match(r"([A-Z][A-Z0-9_]*)\((.*)\)$", says.replace(", …", ""))
    if named is None:
        return []
    tree = sqlglot.parse_one(f"{named[1]}({named[2]})", dialect="duckdb")
    found = []
    for name in tree.sql_names() if isinstance(tree, exp.Func) and not isinstance(tree, exp.Anonymous) else ():
        try:
            other = sqlglot.parse_one(f"{name}({named[2]})", dialect="duckdb")
        except SqlglotError:
            continue
        # A name that only the parser has is that of its class.
        if name not in {named[1], camel_to_snake_case(type(tree).__name__)} and other == tree:
            found.append(name)
    own = next((key for key, each in FUNCTIONS.items() if each.says == says), "")
    found += [name.upper() for name, (function, _) in _NAMED.items() if function == own]
    return [each for each in dict.fromkeys(found) if each != named[1]]


def example_of(says: str, takes: Iterable[frozenset[object]]) -> str:
    """A function over columns of the page's own table: one that can be asked."""
    kinds = [{getattr(each, "value", "") for each in types} for types in takes]
    columns = {"number": ("amount", "age"), "text": ("region", "region"), "boolean": ("age > 40", "amount > 9")}
    found = says.replace(", …", "").replace("digits", "1")
    if re.search(r"AS (DATE|TIMESTAMP|BOOLEAN)\b", found):
        kinds = [{"text"}]
    for place, letter in enumerate("ab"):
        types = kinds[min(place, len(kinds) - 1)]
        kind = next((each for each in columns if each in types), "number")
        found = re.sub(
            rf"\b{letter}\b", f"({columns[kind][place]})" if kind == "boolean" else columns[kind][place], found
        )
    found = re.sub(r"\bp\b", "age > 40", found)
    return re.sub(r"\b[de]\b", "day", found)


def code(text: str) -> str:
    """A text as code, in a cell of a table; words beside it stay words."""
    text, words, rest = text.partition(" and its ")
    parts = re.split(r"(?<=[)'`]), (?=[A-Za-z\[])|(?<=[A-Z]), (?=[A-Z])", text.replace("|", "\\|"))
    return ", ".join(f"`` {each} ``" if "`" in each else f"`{each}`" for each in parts) + words + rest


def read_as(way: OtherWay) -> str:
    """What something is read as, with what to know."""
    shown = code(way.read) if _CODE.search(way.read) else way.read.replace("|", "\\|")
    return f"{shown}; {way.remark}" if way.remark else shown
