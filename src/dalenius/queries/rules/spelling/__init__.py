"""The pass between `parse` and `restrict`: what people type elsewhere becomes what is read here.

Each way of writing that another database has, and DuckDB or this language has not, is rewritten into functions and
clauses that are there: one small function each, in a table by the kind of node. Only what would be refused is touched,
so that everything that was read before means what it meant; and all that comes out still has to pass `restrict`.
What cannot be rewritten stays as it is, to be refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from dalenius.measuring.plan import require
from dalenius.queries.rules.spelling import (
    aggregates,
    choices,
    clauses,
    clocks,
    converts,
    dates,
    edits,
    formats,
    lists,
    numbers,
    texts,
)
from dalenius.queries.rules.spelling.growth import Growth, size
from dalenius.queries.rules.spelling.tokens import CONVERT, DECODE
from dalenius.queries.rules.whole import text_of
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.queries.rules import Stage

_TIMED = frozenset({"DATE_TRUNC", "DATETRUNC", "DATE_DIFF", "DATEDIFF", "TIMESTAMP_TRUNC"})
Rewrite = Callable[[Any, "Known"], Any]


class Known:
    """Names that mean something, in lower case: a bare word that is none of them may be a unit of time.

    What the question itself says is read before anything of it is rewritten. What tables have is looked up when it is
    first asked for: most questions need none of it, and public tables would be opened.
    """

    def __init__(self, stage: Stage, parts: Sequence[Any]) -> None:
        from sqlglot import exp

        self._stage, self.growth = stage, Growth()
        self._aliases = _aliases(parts)
        self._named = self._aliases | {each.alias.lower() for each in parts if isinstance(each, exp.Alias)}
        self._timed = any(isinstance(each, exp.TimestampTrunc | exp.DateDiff) for each in parts)
        self.subqueries = frozenset(each.alias.lower() for each in parts if isinstance(each, exp.CTE))

    @cached_property
    def tables(self) -> frozenset[str]:
        """Of all kinds."""
        return frozenset(each.lower() for each in (*self._stage.tables, *self._stage.publics))

    @cached_property
    def stored(self) -> frozenset[str]:
        """Columns of tables."""
        tables, publics = self._stage.tables.values(), self._stage.publics.values()
        columns = {each.lower() for table in tables for each in (*table.policy.columns, *table.policy.unit)}
        return frozenset(columns | {each.lower() for table in publics for each in table.kinds})

    @cached_property
    def columns(self) -> frozenset[str]:
        """And aliases."""
        return self.stored | self._aliases

    @cached_property
    def values(self) -> frozenset[str]:
        """Columns that are open to questions."""
        return frozenset(name for name, _ in self._kinds)

    @cached_property
    def days(self) -> frozenset[str]:
        """Columns that are dates wherever they are."""
        others = {name for name, kind in self._kinds if kind is not Kind.DATE}
        return frozenset(name for name, kind in self._kinds if kind is Kind.DATE) - others - self._named

    @cached_property
    def quoted_units(self) -> bool:
        """Whether a unit of time stands in quotes before a date, as DuckDB has it."""
        return self._timed and _has_quoted_units(self._stage.text)

    @cached_property
    def _kinds(self) -> list[tuple[str, Kind]]:
        tables, publics = self._stage.tables.values(), self._stage.publics.values()
        kinds = [(name.lower(), each.kind) for table in tables for name, each in table.policy.columns.items()]
        return kinds + [(name.lower(), kind) for table in publics for name, kind in table.kinds.items()]


def respell_tree(stage: Stage) -> Stage:
    """The question in the words that are read here."""
    from sqlglot import exp

    from dalenius.queries.rules.parse import check_depth

    tree = require(stage.tree)
    parts = list(tree.walk())
    known = Known(stage, parts)
    nodes, names = _rewrites()
    for node in reversed(parts):  # from the inside out
        for rewrite in nodes.get(type(node), ()):
            if _rewritten(node, rewrite, known):
                break
        else:
            if isinstance(node, exp.Anonymous) and (named := names.get(str(node.this).upper())):
                _rewritten(node, named, known)
    if known.growth.added:
        check_depth(tree)
    return stage


def _rewritten(node: Any, rewrite: Rewrite, known: Known) -> bool:
    from sqlglot import exp

    found = rewrite(node, known)
    if found is None or found is node:
        return False
    for name in ("start", "end", "line", "col"):
        if name in node.meta:
            found.meta.setdefault(name, node.meta[name])
    if isinstance(node.parent, exp.Select):  # what its column is called where nobody says
        found.meta.setdefault("typed", text_of(node))
    known.growth.add(size(found) - size(node))
    node.replace(found)
    return True


def _aliases(parts: Sequence[Any]) -> set[str]:
    """Names that the question gives; not those of DATE_TRUNC(day, MONTH) AS month, which could not be a column."""
    from sqlglot import exp

    tables = (each for each in parts if isinstance(each, exp.TableAlias))
    found = {each.name.lower() for table in tables for each in table.args.get("columns") or ()}
    for item in (each for each in parts if isinstance(each, exp.Alias)):
        name = item.alias.lower()
        if all(each.name.lower() != name for each in item.this.find_all(exp.Column)):
            found.add(name)
    return found


def _has_quoted_units(text: str) -> bool:
    """Whether DATE_TRUNC('month', d) or DATE_DIFF('day', d, e) stands in a text: the tree has lost the quotes."""
    from sqlglot import tokenize

    from dalenius.queries.rules.clause import cut_clause
    from dalenius.queries.rules.parse import DIALECT

    tokens = tokenize(cut_clause(text)[0], dialect=DIALECT)
    for name, opened, first in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if name.text.upper() in _TIMED and opened.text == "(" and first.token_type.name in {"STRING", "L_PAREN"}:
            return True
    return False


@cache
def _rewrites() -> tuple[Mapping[type, tuple[Rewrite, ...]], Mapping[str, Rewrite]]:
    """The tables: by node, and by name for functions that the parser has no node for."""
    from sqlglot import exp

    compared = (clocks.compare_times, clocks.compare_differences)
    nodes: dict[type, tuple[Rewrite, ...]] = {
        # clauses
        exp.Table: (clauses.shorten_table, lists.list_series),
        exp.Unnest: (lists.list_series,),
        exp.Union: (lists.list_rows,),
        exp.Column: (clauses.shorten_column,),
        exp.Fetch: (clauses.limit_rows,),
        exp.Group: (clauses.roll_up,),
        exp.Select: (lists.list_rows, clauses.open_joins, clauses.turn_right_join, clauses.have_alias),
        # choices
        exp.Nvl2: (choices.choose_by_null,),
        exp.RangeBucket: (choices.bucket,),
        exp.EQ: (choices.match_any, *compared),
        exp.NEQ: (choices.match_any, *compared),
        exp.In: (choices.match_list, lists.match_values),
        **dict.fromkeys((exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between), compared),
        # numbers
        exp.SafeDivide: (numbers.divide,),
        exp.Cbrt: (numbers.cube_root,),
        exp.Pi: (numbers.pi,),
        exp.Degrees: (numbers.degrees,),
        exp.Radians: (numbers.radians,),
        exp.Trunc: (numbers.truncate,),
        exp.Dot: (numbers.safely,),
        exp.BitwiseAnd: (numbers.mask,),
        **dict.fromkeys((exp.BitwiseLeftShift, exp.BitwiseRightShift), (numbers.shift,)),
        # texts
        exp.Escape: (texts.unescape,),
        exp.ConcatWs: (texts.join_with,),
        exp.Pad: (texts.pad,),
        exp.Trim: (texts.trim_blanks,),
        exp.National: (texts.national,),
        exp.Translate: (edits.translate,),
        exp.Repeat: (edits.repeat,),
        exp.Overlay: (edits.overlay,),
        exp.Stuff: (edits.stuff,),
        exp.Substring: (edits.cut_from_end,),
        # dates
        exp.TimestampTrunc: (dates.truncate,),
        exp.DatetimeTrunc: (dates.truncate_datetime,),
        exp.DateDiff: (dates.subtract,),
        exp.TimestampDiff: (dates.subtract_moments,),
        exp.DatetimeDiff: (dates.subtract_moments,),
        **dict.fromkeys((exp.DateAdd, exp.TimestampAdd, exp.DatetimeAdd), (dates.add,)),
        **dict.fromkeys((exp.DateSub, exp.TimestampSub, exp.DatetimeSub), (dates.take_off,)),
        exp.Extract: (dates.extract,),
        exp.Year: (dates.year,),
        exp.UnixSeconds: (dates.seconds,),
        exp.TimeToUnix: (dates.seconds,),
        exp.LastDay: (dates.last_day,),
        exp.Date: (dates.make_date,),
        exp.DateFromParts: (dates.make_date,),
        exp.Timestamp: (dates.read_moment,),
        exp.Cast: (dates.convert, clocks.time_of_day),
        exp.TryCast: (dates.convert,),
        exp.Time: (clocks.read_time,),
        exp.WeekOfYear: (lambda node, _: exp.Week(this=node.this),),
        exp.Dayname: (formats.name_day,),
        exp.Monthname: (formats.name_month,),
        exp.TimeToStr: (formats.format_time,),
        exp.ToChar: (formats.to_char,),
        exp.Format: (formats.to_format,),
        # aggregates
        exp.ApproxDistinct: (aggregates.count_distinct,),
        exp.Count: (aggregates.count_chosen,),
        exp.WithinGroup: (aggregates.mode_within,),
        exp.Bracket: (aggregates.pick_quantile,),
        exp.Filter: (aggregates.regress_filtered,),
    }
    for name in ("Slope", "Intercept", "R2", "Count", "Avgx", "Avgy", "Sxx", "Syy", "Sxy"):
        nodes[getattr(exp, f"Regr{name}")] = (aggregates.regress,)
    names: dict[str, Rewrite] = {
        **dict.fromkeys(("ISNULL", "NVL"), _taking(choices.replace_null, 1, 2)),
        "ZEROIFNULL": _taking(choices.zero_if_null, 1),
        "NULLIFZERO": _taking(choices.null_if_zero, 1),
        DECODE.upper(): _taking(choices.decode, 3, 200),
        "CHOOSE": _taking(choices.choose, 2, 200),
        "IEEE_DIVIDE": _taking(numbers.divide, 2),
        "DIV": _taking(numbers.divide_whole, 2),
        "FDIV": _taking(numbers.divide_down, 2),
        "REPLICATE": _taking(edits.repeat, 2),
        "PATINDEX": _taking(edits.find_pattern, 2),
        "SQUARE": _taking(numbers.square, 1),
        CONVERT.upper(): _taking(converts.convert_text, 2, 3),
        "BTRIM": _taking(texts.trim_both, 1, 2),
        "REGEXP_CONTAINS": _taking(texts.match, 2),
        "DATE_SUB": _taking(dates.take_off_named, 2),
        "DATEADD": _taking(dates.add_units, 3),
        **dict.fromkeys(("DATEPART", "DATE_PART"), _taking(dates.part_of_age, 2)),
        "DATENAME": _taking(dates.part_name, 2),
        "EOMONTH": _taking(dates.last_day, 1),
        "TO_DATE": _taking(dates.read_date, 1, 2),
        "PARSE_DATE": _taking(dates.read_date, 2),
        **dict.fromkeys(("FORMAT_DATE", "FORMAT_DATETIME", "FORMAT_TIMESTAMP"), _taking(formats.format_date, 2)),
        "DATE_FORMAT": _taking(formats.date_format, 2),
        "SEM": _taking(aggregates.error_of_mean, 1),
        **dict.fromkeys(aggregates.NAMES, _taking(aggregates.rename, 0, 2)),
    }
    return nodes, names


def _taking(rewrite: Rewrite, least: int, most: int | None = None) -> Rewrite:
    """A rewriting of calls with so many arguments; others are left as they are."""
    counts = range(least, (least if most is None else most) + 1)
    return lambda node, known: rewrite(node, known) if len(node.expressions) in counts else None
