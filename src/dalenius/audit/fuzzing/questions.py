"""Random questions as SQL text, over everything that the planner takes: expressions, and questions about one table.

Questions about several tables are written with the same expressions (`joined_questions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from dalenius.audit.fuzzing.columns import KEYS
from dalenius.audit.fuzzing.schemas import NAME, Schema
from dalenius.ledger.budgets import Accounting
from dalenius.tables.policy import Column, Kind

_NUMBERS = ("0", "1", "-1", "2", "0.5", "3", "10", "100", "1e6", "-2.5", "1e-3", "1e300", "-1e300", "7")
_TEXTS = ("''", "'north'", "'o''east'", "'a'", "'12'", "'ß'", "'x'", "' '", "'2021-05-06'")
_PATTERNS = ("'%'", "'n%'", "'%a%'", "'_'", "'%''%'", "'x_x%'", "''", "'%ß'")
_PARTS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy")
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_DATES = ("DATE '2020-06-30'", "DATE '2021-01-01'", "DATE '0001-01-01'", "DATE '9999-12-31'")
_MOMENTS = ("TIMESTAMP '2020-06-30 12:00:00'", "TIMESTAMP '2022-02-28 23:59:59.5'")
_OF_ONE = ("ABS", "SIGN", "FLOOR", "CEIL", "TRUNC", "ROUND", "LN", "LOG2", "LOG10", "SQRT", "EXP")
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")
T = TypeVar("T")
_DEEPEST = 3  # levels of nesting
_MOST_KEYS = 60
_NEWER = 0.12  # of the aggregates are of those that came later
_SETS = 0.25  # of the questions with keys are about several groupings of them at once


@dataclass(frozen=True)
class FuzzedQuestion:
    """A question: its subqueries of WITH, and the rest of its text.

    Attributes:
        plain: It means the same to DuckDB.
    """

    body: str
    subqueries: tuple[str, ...] = ()
    plain: bool = False

    @property
    def text(self) -> str:
        """The whole."""
        return self.after(())

    def after(self, more: Sequence[str]) -> str:
        """The whole, with other subqueries before its own."""
        shown = [*more, *self.subqueries]
        return f"{'WITH ' + ', '.join(shown) + ' ' if shown else ''}{self.body}"


def write_question(random: Random, schema: Schema) -> FuzzedQuestion:
    """One question about the only table of ``schema``."""
    return FuzzedQuestion(_TableWriter(random, schema).question())


class ExpressionWriter:
    """Writes SQL; each method gives a text of one type."""

    def __init__(self, random: Random, schema: Schema) -> None:
        self.random = random
        self.policy = schema.first.policy
        self.columns = list(self.policy.columns.values())
        self.units = list(self.policy.unit)  # as the question calls them; none where it has no name for them
        self.parts = len(self.policy.unit)
        self.finds = schema.first.budget.accounting is Accounting.ZCDP  # keys that are not public

    # --- aggregates

    def aggregate(self) -> str:
        """Any aggregate."""
        return self.newer(self.older())

    def newer(self, older: str) -> str:
        """One that came later in place of some, drawn by a chance of its own: the others stay as they were."""
        drawn, self.random = self.random, Random(f"fresh {older}")  # noqa: S311
        try:
            if not self.chance(_NEWER):
                return older
            listed = [each for each in self.columns if each.public_keys is not None]
            made: list[Callable[[], str]] = [
                lambda: f"SUM(DISTINCT {self.summand()})",
                lambda: f"AVG(DISTINCT {self.summand()})",
                lambda: f"{self.pick(['SKEWNESS', 'KURTOSIS', 'KURTOSIS_POP'])}({self.summand()})",
                lambda: self.pick(
                    [f"QUANTILE_CONT({self.summand()}, [0.1, 0.5])", f"APPROX_QUANTILES({self.summand()}, 3)"]
                ),
            ]
            if listed:
                made.append(lambda: f"MODE({self.name(self.pick(listed))})")
            found = self.pick(made)()
            return f"{found} FILTER (WHERE {self.boolean(2)})" if self.chance(0.25) else found
        finally:
            self.random = drawn

    def older(self) -> str:
        """One of the first."""
        kind = self.random.randrange(13)
        if self.chance(0.06):
            return self.quantile()
        if kind == 0:
            found = "COUNT(*)"
        elif kind in {9, 10}:
            found = self.values()
        elif kind in {11, 12}:
            found = self.paired()
        elif kind == 1:
            found = f"COUNT({self.anything(1)})"
        elif kind == 2:
            found = f"COUNT_IF({self.boolean(2)})"
        elif kind in {3, 4}:
            found = self.distinct()
        elif kind in {5, 6}:
            found = f"SUM({self.summand()})"
        else:
            name = self.pick(["AVG", "AVG", "VAR_SAMP", "VAR_POP", "VARIANCE", "STDDEV", "STDDEV_POP", "STDDEV_SAMP"])
            found = f"{name}({self.summand()})"
        if kind != 2 and self.chance(0.25):
            found += f" FILTER (WHERE {self.boolean(2)})"
        return found

    def quantile(self) -> str:
        """A quantile, a minimum or a maximum."""
        value, share = self.summand(), self.pick(["0", "0.1", "0.5", "0.99", "1"])
        found = self.pick(
            [
                f"MEDIAN({value})",
                f"{self.pick(['QUANTILE_CONT', 'QUANTILE', 'APPROX_QUANTILE'])}({value}, {share})",
                f"PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY {value}{self.pick(['', ' DESC'])})",
                f"{self.pick(['MIN', 'MAX'])}({value})",
            ]
        )
        return found + (f" FILTER (WHERE {self.boolean(2)})" if self.chance(0.25) else "")

    def distinct(self) -> str:
        """How many units."""
        if not self.units:
            return "COUNT(*)"
        unit = ", ".join(self.units)
        return f"COUNT(DISTINCT {unit if self.parts == 1 else f'({unit})'})"

    def values(self) -> str:
        """How many different values."""
        if not self.columns:
            return "COUNT(*)"
        column = self.name(self.pick(self.columns))
        return f"COUNT(DISTINCT {self.pick([column, column, self.anything(1)])})"

    def paired(self) -> str:
        """A covariance or correlation."""
        return f"{self.pick(['COVAR_POP', 'COVAR_SAMP', 'CORR'])}({self.summand()}, {self.summand()})"

    def summand(self) -> str:
        """A number with bounds."""
        summable = [each for each in self.columns if each.summable]
        kind = self.random.randrange(10)
        if summable and kind < 5:
            return self.name(self.pick(summable))
        if kind < 7:
            condition, low, high = self.boolean(2), self.pick(["0", "-3", "1"]), self.pick(["5", "NULL", "0"])
            inner = self.name(self.pick(summable)) if summable else low
            return f"CASE WHEN {condition} THEN {inner} ELSE {high} END"
        low, high = self.pick([("0", "1"), ("-5", "100"), ("0", "1e9"), ("-0.3", "-0.1"), ("-1e5", "0")])
        return f"LEAST(GREATEST({self.number(1)}, {low}), {high})"

    # --- keys

    def keys(self) -> list[str]:
        """What to group by."""
        makers = [maker for each in self.columns for maker in self._makers(each)]
        hidden = [each for each in map(self._hidden, self.columns) if each]
        makers += [lambda: self.boolean(2), lambda: f"CASE WHEN {self.boolean(2)} THEN 'yes' ELSE 'no' END"]
        wanted = self.random.choice((0, 0, 1, 1, 1, 2, 2, 3))
        found: list[str] = []
        cells = 1
        for _ in range(wanted):
            cells *= 12
            drawn = hidden and self.chance(0.6 if self.finds else 0.03)  # under pure they are refused
            found.append(self.pick(self.pick(hidden)) if drawn else self.pick(makers)())
            if cells > 5000:
                break
        return list(dict.fromkeys(found))

    def _hidden(self, column: Column) -> list[str]:
        """Keys that have to be found, some of them because there are too many."""
        name = self.name(column)
        if column.public_keys is not None:
            return []
        match column.kind:
            case Kind.CATEGORY | Kind.TEXT:
                return [name, name, f"UPPER({name})", f"LEFT({name}, 1)", f"COALESCE({name}, 'none')"]
            case Kind.NUMBER:
                return [name, f"{name} * -2.5", f"ROUND({name})", f"EXP({name})"]
            case Kind.INTEGER:
                return [name, f"{name} + 1", f"{name} / 3"]
            case Kind.DATE:
                return [name, f"({name} + INTERVAL 1 DAY)", f"DATE_TRUNC('week', {name})"]
            case Kind.DATETIME:
                return [name, f"({name} - INTERVAL 30 DAY)", f"DATE_TRUNC('second', {name})", f"CAST({name} AS DATE)"]
        return []

    def _makers(self, column: Column) -> list[Callable[[], str]]:
        name = self.name(column)
        if column.public_keys is not None:
            found = [lambda: name] * 3
            if column.kind in {Kind.CATEGORY, Kind.TEXT}:
                found += [lambda: f"COALESCE({name}, 'none')", lambda: f"UPPER({name})", lambda: f"LENGTH({name})"]
                found += [lambda: f"LEFT({name}, 1)", lambda: f"NULLIF({name}, 'north')"]
            return found
        if column.bounds is None:
            return []
        low, high = column.bounds.low, column.bounds.high
        match column.kind:
            case Kind.INTEGER if high - low <= _MOST_KEYS:
                return [lambda: name, lambda: f"{name} % 3", lambda: f"{name} // 7", lambda: f"ABS({name})"]
            case Kind.INTEGER | Kind.NUMBER:
                width = repr(max(float(high) - float(low), 1e-12) / 5)
                ends = f"{float(low)!r}, {float(high) + 1.0!r}"
                return [
                    lambda: f"FLOOR({name} / {width})",
                    lambda: f"FLOOR({name} / {width}) * {self.pick([width, '10', '-0.1'])} + {self.literal()}",
                    lambda: f"{name} - {name} % {width}",
                    lambda: f"ROUND({name} / {width}, {self.pick(['0', '1', '-1'])})",
                    lambda: f"WIDTH_BUCKET({name}, {self.pick([ends, '-1, 1'])}, {self.random.randint(1, 6)})",
                    lambda: f"SIGN({name})",
                    lambda: f"{name} > {self.literal()}",
                ]
            case Kind.DATE | Kind.DATETIME:
                part = self.pick(["year", "month", "dow"])
                bucket = self.pick(["1 MONTH", "3 MONTHS", "1 YEAR"])
                return [
                    lambda: f"DATE_TRUNC('month', {name})",
                    lambda: f"TIME_BUCKET(INTERVAL {bucket}, {name})",
                    lambda: f"EXTRACT({part} FROM {name})",
                ]
        return []

    # --- numbers

    def number(self, depth: int) -> str:
        """A number."""
        columns = [each for each in self.columns if each.kind in {Kind.INTEGER, Kind.NUMBER}]
        if depth >= _DEEPEST or self.chance(0.4):
            return self.name(self.pick(columns)) if columns and self.chance(0.75) else self.literal()
        one = self.number(depth + 1)
        kind = self.random.randrange(13)
        if kind < 4:
            return f"({one} {self.pick(['+', '-', '*', '/', '/', '%', '//'])} {self.number(depth + 1)})"
        if kind < 6:
            return f"{self.pick(_OF_ONE)}({one})"
        match kind:
            case 6:
                return f"POWER({one}, {self.pick(['2', '3', '0.5', '-1', self.number(_DEEPEST)])})"
            case 7:
                return f"ROUND({one}, {self.pick(['0', '2', '-2', '15', '-15'])})"
            case 8:
                return f"{self.pick(['COALESCE', 'NULLIF', 'LEAST', 'GREATEST'])}({one}, {self.number(depth + 1)})"
            case 9:
                return f"CASE WHEN {self.boolean(depth + 1)} THEN {one} ELSE {self.pick([self.literal(), 'NULL'])} END"
            case 10:
                return f"CAST({self.pick([self.text(depth + 1), one])} AS {self.pick(['DOUBLE', 'INTEGER', 'BIGINT'])})"
            case 11:
                return f"LENGTH({self.text(depth + 1)})"
        return self.of_time(depth)

    def of_time(self, depth: int) -> str:
        """A number that tells something about a date."""
        moment = self.moment(depth + 1)
        if self.chance(0.5):
            return f"EXTRACT({self.pick(_PARTS)} FROM {moment})"
        return f"DATE_DIFF('{self.pick(_UNITS)}', {self.pick(_DATES + _MOMENTS)}, {moment})"

    def literal(self) -> str:
        """A number as it is written."""
        return self.pick(_NUMBERS)

    # --- truth

    def boolean(self, depth: int) -> str:
        """A condition."""
        columns = [each for each in self.columns if each.kind is Kind.BOOLEAN]
        if columns and self.chance(0.15):
            return self.name(self.pick(columns))
        if depth < _DEEPEST and self.chance(0.3):
            joined = f"({self.boolean(depth + 1)} {self.pick(['AND', 'OR'])} {self.boolean(depth + 1)})"
            return self.pick([joined, joined, f"NOT ({self.boolean(depth + 1)})"])
        one, kind = self.number(depth + 1), self.random.randrange(9)
        match kind:
            case 0:
                return f"{one} BETWEEN {self.literal()} AND {self.number(_DEEPEST)}"
            case 1:
                return f"{one} IN ({', '.join(self.literal() for _ in range(3))})"
            case 2:
                return f"{self.anything(depth + 1)} IS {self.pick(['', 'NOT '])}NULL"
            case 3:
                return f"{self.text(depth + 1)} {self.pick(['LIKE', 'ILIKE', 'NOT LIKE'])} {self.pick(_PATTERNS)}"
            case 4:
                function = self.pick(["CONTAINS", "STARTS_WITH", "ENDS_WITH"])
                return f"{function}({self.text(depth + 1)}, {self.pick(_TEXTS)})"
            case 5:
                return f"{self.text(depth + 1)} {self.pick(_COMPARED)} {self.text(depth + 1)}"
            case 6:
                return f"{self.moment(depth + 1)} {self.pick(_COMPARED[1:6])} {self.pick(_DATES + _MOMENTS)}"
            case 7 if self.chance(0.3):
                return f"CAST({self.text(depth + 1)} AS BOOLEAN)"
        return f"{one} {self.pick(_COMPARED)} {self.number(depth + 1)}"

    # --- texts

    def text(self, depth: int) -> str:
        """A text."""
        columns = [each for each in self.columns if each.kind in {Kind.CATEGORY, Kind.TEXT}]
        if depth >= _DEEPEST or self.chance(0.4):
            if columns and self.chance(0.85):
                return self.name(self.pick(columns))
            return self.pick([*_TEXTS, "'" + self.pick(KEYS).replace("'", "''") + "'"])
        one = self.text(depth + 1)
        match self.random.randrange(8):
            case 0:
                return f"{self.pick(['LOWER', 'UPPER', 'TRIM', 'LTRIM', 'RTRIM'])}({one})"
            case 1:
                return f"{self.pick(['LEFT', 'RIGHT'])}({one}, {self.random.randint(0, 5)})"
            case 2:
                return f"SUBSTRING({one}, {self.random.randint(0, 3)}, {self.random.randint(0, 4)})"
            case 3:
                return f"REPLACE({one}, {self.pick(_TEXTS)}, {self.pick(_TEXTS)})"
            case 4:
                return f"({one} || {self.text(depth + 1)})"
            case 5:
                return f"CONCAT({one}, {self.text(depth + 1)})"
            case 6:
                return f"CAST({self.number(depth + 1)} AS VARCHAR)"
        return f"STRFTIME({self.moment(depth + 1)}, '{self.pick(['%Y-%m', '%j', '%H:%M', '%y%d%S'])}')"

    # --- dates

    def moment(self, depth: int) -> str:
        """A date or a moment."""
        columns = [each for each in self.columns if each.kind in {Kind.DATE, Kind.DATETIME}]
        if depth > _DEEPEST or self.chance(0.4):
            return self.name(self.pick(columns)) if columns and self.chance(0.85) else self.pick(_DATES + _MOMENTS)
        one = self.moment(depth + 1)
        match self.random.randrange(4):
            case 0:
                return f"DATE_TRUNC('{self.pick(_UNITS[:5])}', {one})"
            case 1:
                amount = self.random.choice((1, 2, 30, 100))
                return f"({one} {self.pick('+-')} INTERVAL {amount} {self.pick(_UNITS[:6])})"
            case 2:
                return f"CAST({one} AS {self.pick(['DATE', 'TIMESTAMP'])})"
        texts = [each for each in self.columns if each.kind is Kind.TEXT]
        return f"CAST({self.name(self.pick(texts))} AS {self.pick(['DATE', 'TIMESTAMP'])})" if texts else one

    # --- small things

    def anything(self, depth: int) -> str:
        """A value of any type."""
        return self.pick([self.number, self.text, self.boolean, self.moment])(depth)

    def name(self, column: Column) -> str:
        """A column."""
        found = '"' + column.name.replace('"', '""') + '"'
        return found.upper() if column.name.isascii() and self.chance(0.2) else found

    def chance(self, share: float) -> bool:
        """True so often."""
        return self.random.random() < share

    def pick(self, values: Sequence[T]) -> T:
        """One of them."""
        return self.random.choice(values)


class _TableWriter(ExpressionWriter):
    """Writes questions about one table."""

    def question(self) -> str:
        """A whole question."""
        if self.chance(0.15):  # what `expected` can work out by itself
            return f"SELECT {', '.join(self.plain() for _ in range(self.random.randint(1, 3)))} FROM {NAME}"  # noqa: S608
        keys = self.keys()
        if keys and self.chance(0.35):  # a unit's whole vector over many groups
            plain = self.pick([self.plain(), "COUNT(*)", self.distinct(), self.values(), self.paired()])
            grouped = self.sets(keys, plain) or "ALL"
            plain = self.newer(plain)
            return f"SELECT {', '.join([*keys, plain])} FROM {NAME} GROUP BY {grouped}"  # noqa: S608
        items = [self.aggregate() for _ in range(self.random.choice((1, 1, 1, 1, 2, 3)))]
        if self.chance(0.1):
            items.append(f"{self.aggregate()} {self.pick('+-*/')} {self.pick([self.aggregate(), '2'])}")
        text = f"SELECT {', '.join([*keys, *items])} FROM {self.pick([NAME, NAME.upper(), f'{NAME} AS t'])}"  # noqa: S608
        if self.chance(0.4):
            text += f" WHERE {self.boolean(1)}"
        if keys:
            numbers = ", ".join(str(at + 1) for at in range(len(keys)))
            plain = self.pick([", ".join(keys), numbers, "ALL"])
            text += f" GROUP BY {self.sets(keys, text) or plain}"
        if self.chance(0.12):
            text += f" HAVING {self.pick([items[0], self.aggregate()])} > {self.pick(_NUMBERS)}"
        if self.chance(0.2):
            text += f" ORDER BY {self.pick(['1', '1 DESC', 'ALL', items[0]])}"
        if self.chance(0.15):
            text += f" LIMIT {self.random.randint(0, 9)}"
        return text

    def plain(self) -> str:
        """An aggregate of a bare column."""
        summable = [each for each in self.columns if each.summable]
        if not summable or self.chance(0.2):
            return self.pick(["COUNT(*)", self.distinct()])
        one, kind = (
            self.name(self.pick(summable)),
            self.pick(["SUM", "SUM", "AVG", "VAR_POP", "STDDEV", "CORR", "VALUES"]),
        )
        if kind == "VALUES":
            return f"COUNT(DISTINCT {one})"
        return f"{kind}({one}, {self.name(self.pick(summable))})" if kind == "CORR" else f"{kind}({one})"

    def sets(self, keys: Sequence[str], text: str) -> str:
        """Grouping sets of some keys, or nothing.

        Drawn from a source of their own, so that the other questions of a seed stay what they were.
        """
        random = Random(f"sets {text} {keys}")  # noqa: S311
        if random.random() >= _SETS:
            return ""
        keys = [f"({each})" for each in keys]  # a condition needs them
        some = [random.sample(keys, random.randint(0, len(keys))) for _ in range(random.randint(1, 4))]
        listed = ", ".join(f"({', '.join(each)})" for each in [*some, keys])
        inside = ", ".join(keys)
        first, *rest = keys
        return random.choice(
            (
                f"ROLLUP ({inside})",
                f"CUBE ({inside})",
                f"GROUPING SETS ({listed})",
                f"GROUPING SETS ({listed})",
                ", ".join([*rest, f"ROLLUP ({first})"]),
                f"GROUPING SETS (ROLLUP ({inside}), ({first}))",
            )
        )
