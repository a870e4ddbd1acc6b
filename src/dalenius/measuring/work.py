"""What a question's expressions can cost in one row, by construction: a public bound, before anybody looks.

The time that a question takes must not follow from one unit's rows. Every function has a worst cost per row, from its
kind and from the lengths that its texts can have: columns are cut at `LONGEST_TEXT` where a function reads them, what
is put together is cut there too, and texts in quotes, needles and patterns are short. The sum over the whole question,
aliases, subqueries and all, is its *work* (`work_of`; `sifting_work` and `inner_work` for what joined tables do before
they are joined). Three things rest on it:

* it is limited (`rules.work`);
* the statement makes every row do `ballast` of work/`RATIO`, whatever it holds (`heavier`). DuckDB does some of the
  work for some rows only: branches of CASE that are taken, conditions behind one that holds, texts that are long. Rows
  of a unit with a hundredth of all rows, where each does all of the work and all others none, then take at most two
  fifths of what the others take together: (work / 100) / (ballast + `BASE`) ≤ 2/5. Part of that work is what one row in
  each batch of 2,048 makes all of them take (`Work.batch`);
* it is part of the time at which an answer leaves (`pacing`).

Weights are nanoseconds on the machine of bench/RESULTS.md, DuckDB 2.0, one thread, 2026-11-16, rounded up; each is the
worst that `bench/work.py` found over texts of ASCII, of two and of four bytes a character, and over numbers of all
sizes. That script measures again, and names weights that are too low.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalenius.measuring.expressions import (
    TRUE,
    Aggregate,
    Call,
    Column,
    Expression,
    Literal,
    Type,
    columns_of,
    conjuncts,
)
from dalenius.measuring.functions import SKIPPING, Range, awaits, bounded, branches, ranges_of
from dalenius.measuring.join_fanout import fanout
from dalenius.measuring.relations import Numbered, Open, Owned, PerUnit, Stacked, full
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.plan import Measure, Plan
    from dalenius.measuring.relations import Relation
    from dalenius.tables.policy import Column as Spec

MOST = 200_000.0  # ns that a row's expressions may take at worst
MOST_MEETING = 500_000.0  # that it may take with all the rows that it meets in a join
MOST_MATCHED = 10_000.0  # of them, within EXISTS and IN: there is no ballast in there
TWICE = 2.0  # with an index, rows of a heavy unit are gone through twice, and all others once: it takes more ballast
RATIO = 40.0  # a hundredth of the rows that does all the work adds at most 2/5; half is promised, if weights are right
JOINED = 2.0  # times that columns and keys of joined tables are worked out: cut in their table and again above it, and
# a key that must not be NULL stands in a condition that DuckDB moves below the join
MEETING = 60.0  # ns for each row that a join makes of one
BASE = 10.0  # ns that the cheapest statement takes for a row, whatever it holds
# How long texts can be, in every engine: what is longer is cut or absent, so that no row makes a question heavy.
LONGEST_TEXT = 200  # characters of a text; what is longer is cut
LONGEST_BYTES = 4 * LONGEST_TEXT  # of a unit and of a category; whatever is longer counts as absent
LONGEST_NUMBER = 32  # bytes of a text that is read as a number
LONGEST_TIME = 64  # of a date, a time or a truth value that lies in the file as text
SURE_DIGITS = 19  # of a number: 64 bits decide how so many are rounded, whatever the exponent is
_USUAL = 20  # characters of a text as most are


@dataclass(frozen=True, slots=True)
class Work:
    """Nanoseconds for one row: at worst, and on values as most are.

    ``batch`` is what one row can make each row of its batch take: DuckDB works on 2,048 rows at a time, and is quicker
    where none of them is NULL, and where none of them takes a branch.
    """

    worst: float = 0.0
    usual: float = 0.0
    batch: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.worst + other.worst, self.usual + other.usual, self.batch + other.batch)

    def __mul__(self, times: float) -> Work:
        return Work(self.worst * times, self.usual * times, self.batch * times)

    @property
    def whole(self) -> float:
        """At worst, with its part in what its batch takes longer, where one row in a hundred is like it."""
        return self.worst + 100 * self.batch


def _linear(fixed: float, per: float = 0.0, length: float = 0.0) -> Work:
    """A cost that grows with a text's length."""
    return Work(fixed + per * length, fixed + min(length, _USUAL))


# What a function takes that looks at no text, or at none that is long.
_FIXED = {
    **dict.fromkeys(("add", "sub", "mul", "div", "neg", "abs", "is_null", "and", "or", "not"), 5.0),
    **dict.fromkeys(("floor", "ceil", "trunc", "sign", "least", "greatest", "finite", "case", "coalesce"), 10.0),
    **dict.fromkeys(("sqrt", "ln", "log10", "log2", "exp", "intdiv", "asin", "acos", "atan"), 30.0),
    "atan2": 50.0,
    **dict.fromkeys(("sin", "cos", "tan"), 90.0),  # of numbers as large as any
    **dict.fromkeys(("round", "date_add", "date_part", "date_trunc", "date_diff"), 50.0),
    "power": 80.0,
    "date_sub": 110.0,
    "round_even": 80.0,
    "nullif": 20.0,
}
# What one takes on a text: for itself, and for each character.
_TEXTS = {
    **dict.fromkeys(("lower", "upper"), (40.0, 26.0)),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), (40.0, 14.0)),
    **dict.fromkeys(("left", "right", "substring"), (40.0, 6.0)),
    "length": (15.0, 3.0),
    "replace": (60.0, 22.0),
    "split_part": (80.0, 20.0),
    "to_boolean": (100.0, 2.0),
    "to_date": (800.0, 8.0),
    "to_datetime": (900.0, 10.0),
}
# What texts take that are read as numbers (`rendering.numeral`): with so few digits that they are quick, and others.
_SURE, _UNSURE = 250.0, 1400.0
# What columns take that lie in the file as text, when they are read.
_READ = {Kind.INTEGER: _UNSURE, Kind.NUMBER: _UNSURE, Kind.DATE: 1000.0, Kind.DATETIME: 1400.0, Kind.BOOLEAN: 350.0}
_READ_USUAL = 100.0
_PRINTED = {Type.NUMBER: 25, Type.BOOLEAN: 5, Type.DATE: 16, Type.DATETIME: 32}  # characters
_TWICE = frozenset({"finite", "nullif", "to_date", "to_datetime", "intdiv"})  # written out, they name arguments twice
# What a batch takes longer, for each of its rows, as soon as one of them is NULL, or alone takes a branch; of the first
# four for each argument.
_BATCH = {"and": 3.5, "or": 3.5, "coalesce": 6.0, "case": 2.0, "finite": 2.5, "nullif": 2.5}
_BATCH |= dict.fromkeys(("to_number", "to_integer", "round_even", "to_date", "to_datetime", "date_trunc"), 5.0)
_BATCH_ELSE = 1.5
_EACH = frozenset({"and", "or", "coalesce", "case"})
_AWAITED, _BATCH_AWAITED = Work(40.0, 10.0), 6.0  # of an argument that may be NULL (`rendering.awaited`)
_WIDE_MOD, _MOD = 4500.0, 80.0  # fmod goes through the bits between the sizes of both


_COMPARED = 15  # times that a row is compared when it is put in order among 2¹⁵ others of its unit


class Meter:
    """Weighs expressions over some columns.

    Args:
        columns: Their policies; one that is not there is a text as long as any.
        ranges: The bounds of numbers, as far as they matter.
        texts: Those that lie in a file as text, whatever their kind is; None: each may.
    """

    def __init__(
        self,
        columns: Mapping[str, Spec],
        ranges: Mapping[str, Range] | None = None,
        texts: frozenset[str] | None = None,
    ) -> None:
        self.columns, self.ranges, self.texts = columns, ranges or {}, texts

    def __call__(self, expression: Expression | None) -> Work:
        """The work of an expression in one row, with all in it."""
        if not isinstance(expression, Call):
            return Work()
        inner = sum((self(each) for each in expression.arguments), Work())
        batch = _BATCH.get(expression.function, _BATCH_ELSE)
        batch *= len(expression.arguments) if expression.function in _EACH else 1
        own = self.own(expression)
        if expression.function in SKIPPING or expression.function in {"date_diff", "date_sub"}:
            waiting = sum(awaits(expression.arguments, at) for at in range(len(expression.arguments)))
            own, batch = own + _AWAITED * waiting, batch + _BATCH_AWAITED * waiting
        return own + Work(batch=batch) + inner * (2 if expression.function in _TWICE else 1)

    def all(self, expressions: Iterable[Expression | None]) -> Work:
        """The work of several."""
        return sum((self(each) for each in expressions), Work())

    def longest(self, expression: Expression) -> int:
        """The most characters that a text has."""
        match expression:
            case Literal(value=value):
                return len(value) if isinstance(value, str) else 0
            case Column(name=name):
                keys = self.columns[name].keys if name in self.columns else None
                default = self.columns[name].default if name in self.columns else None
                known = [*(keys or ()), *([] if default is None else [default])]
                return max((len(str(each)) for each in known), default=0) if keys else LONGEST_TEXT
            case Call(function="to_text", arguments=(inner,)):
                return _PRINTED.get(inner.type, LONGEST_TEXT)
            case Call(function="strftime", arguments=(_, Literal(value=str() as format_))):
                return 4 * len(format_)
            case Call(function="left" | "right", arguments=(inner, Literal(value=float() as count))):
                longest = self.longest(inner)  # all but so many, where the count is negative
                return min(longest, int(count)) if count >= 0 else max(0, longest + int(count))
            case Call(function="substring", arguments=(inner, _, Literal(value=float() as count))):
                return min(self.longest(inner), int(count))
            case Call(function="concat", arguments=arguments):
                return min(LONGEST_TEXT, sum(map(self.longest, arguments)))
            case Call(function="replace", arguments=(inner, Literal(value=before), Literal(value=after))):
                grown = self.longest(inner) * max(1, len(str(after)) // max(1, len(str(before))) + 1)
                return min(LONGEST_TEXT, grown)
            case Call(function="case"):
                return max(map(self.longest, branches(expression)))
            case Call(function="coalesce" | "nullif", arguments=arguments):
                return max(map(self.longest, arguments))
            case Call(function="lower" | "upper" | "trim" | "ltrim" | "rtrim" | "substring", arguments=(inner, *_)):
                return self.longest(inner)
            case Call(function="split_part", arguments=(inner, *_)):
                return self.longest(inner)
        return LONGEST_TEXT

    def own(self, call: Call) -> Work:
        """What a function takes itself, its arguments given."""
        function, arguments = call.function, call.arguments
        text = arguments[0].type is Type.TEXT if arguments else False
        match function:
            case "regexp":  # whose automaton is small (`automata`): a step for each byte
                return _linear(200, 18, self.longest(arguments[0]))
            case "position":
                return self.searched("contains", arguments[0], arguments[1]) + _linear(0, 4, self.longest(arguments[0]))
            case "trim" | "ltrim" | "rtrim" if len(arguments) > 1:
                fixed, per = _TEXTS[function]
                return _linear(fixed, per + 3 * self.longest(arguments[1]), self.longest(arguments[0]))
            case "like" | "ilike" | "contains":
                return self.searched(function, arguments[0], arguments[1])
            case "starts_with" | "ends_with":
                return _linear(50, 0.5, self.longest(arguments[1]))
            case "eq" | "ne" | "lt" | "le":
                texts = [self.longest(each) for each in arguments if each.type is Type.TEXT]
                return _linear(15, 0.8, max(texts, default=0)) if texts else _linear(8)
            case "in":
                return _linear(40 + 0.1 * len(arguments), 2.0, self.longest(arguments[0]) if text else 0)
            case "concat":
                total = sum(map(self.longest, arguments))
                return _linear(80, 1, total) + _linear(0, 6, min(total, LONGEST_TEXT))
            case "replace":
                return _linear(*_TEXTS[function], self.longest(arguments[0])) + _linear(0, 6, self.longest(call))
            case "to_text":
                return _linear(60 if arguments[0].type in {Type.DATE, Type.BOOLEAN} else 300)
            case "strftime":
                return _linear(100, 13, self.longest(arguments[1]))
            case "mod":
                known = bounded(arguments[0], self.ranges)
                near = known is not None and max(map(abs, known)) < 2**53 and _one_or_more(arguments[1])
                return _linear(_MOD if near else _WIDE_MOD)
            case "and" | "or" | "least" | "greatest" | "case" | "coalesce":
                return _linear(_FIXED[function] * len(arguments))
        if function in {"to_number", "to_integer"} and text:
            quick = has_few_digits(arguments[0]) or self.longest(arguments[0]) <= SURE_DIGITS
            return Work(_SURE if quick else _UNSURE, _SURE)
        if function in _TEXTS and (text or function != "to_boolean"):
            return _linear(*_TEXTS[function], self.longest(arguments[0]) if text else 0)
        return _linear(_FIXED.get(function, 50.0))

    def searched(self, function: str, inner: Expression, pattern: Expression) -> Work:
        """A text that is looked for in another: each of its places may agree for a while."""
        length = self.longest(inner)
        lowered = _linear(*_TEXTS["lower"], length) if function == "ilike" else Work()
        shown = str(pattern.value) if isinstance(pattern, Literal) else "%" + "_" * LONGEST_TEXT
        if function != "contains" and "_" in shown:
            floating = len(shown) if "%" in shown[:-1] else 1
            return lowered + _linear(40 + 9 * len(shown), 20 * floating, length)
        return lowered + _linear(40, 8 + 0.2 * len(shown), length)

    def key(self, key: Expression) -> Work:
        """A key is hashed and compared; that is usual, and in the times of `pacing` as it is."""
        return self(key) + Work(30.0 + 3.0 * self.longest(key) if key.type is Type.TEXT else 10.0)

    def read(self, names: Iterable[str]) -> Work:
        """Texts are cut when they are read; what else lies in a file as text is cast."""
        names = frozenset(names)
        texts = [name for name in names if name in self.columns and self.columns[name].kind is Kind.TEXT]
        return Work(40.0 + 6.0 * LONGEST_TEXT) * len(texts) + self.casts(names)

    def casts(self, names: Iterable[str]) -> Work:
        """What takes long to be cast when it is read."""
        found = [name for name in names if name in self.columns and (self.texts is None or name in self.texts)]
        worst = [_READ[kind] for name in found if (kind := self.columns[name].kind) in _READ]
        return Work(sum(worst), _READ_USUAL * len(worst))


def _one_or_more(divisor: Expression) -> bool:
    return isinstance(divisor, Literal) and isinstance(divisor.value, float) and abs(divisor.value) >= 1


def work_of(plan: Plan) -> Work:
    """What the expressions of a plan can cost in one row of its table, or of its joined tables, in one statement."""
    columns = plan.table.policy.columns
    relation = plan.table.relation
    meter = Meter(columns, ranges_of(columns), _cast(relation))
    again = 1.0 if relation.single else JOINED
    found = meter(plan.where) + sum((meter.key(each) for each in plan.keys), Work()) * again
    found += sum((_measured(meter, each) for each in plan.measures), Work())
    every = [plan.where, *plan.keys, *(each for m in plan.measures for each in (m.value, m.where) if each is not None)]
    return found * max(1, len(plan.sets)) + meter.read(frozenset().union(*map(columns_of, every))) * again


def common(plan: Plan) -> Work:
    """Of that, what each statement does, whichever measures are in it."""
    columns = plan.table.policy.columns
    meter = Meter(columns, ranges_of(columns))
    return meter(plan.where) + sum((meter.key(each) for each in plan.keys), Work())


def _measured(meter: Meter, measure: Measure) -> Work:
    """A value stands in its statement once to see that it is there, once or twice to be rounded (`sums.integer`)."""
    known = measure.primitive
    found = meter(measure.where) * known.tests
    if measure.value is not None:
        found += meter(measure.value) * known.reads if known.rounded else meter.key(measure.value)
    if measure.times is not None:
        found += meter(measure.times.value)
    return found


def sifting(relation: Relation) -> tuple[dict[int, list[Expression]], list[Expression]]:
    """The conditions of a relation: those about one protected table each, by its place; then all others.

    The first are written as one condition that begins with their ballast (`sifted_by`), so that every row of the table
    does it, and no condition among them decides for which rows the others are worked out.
    """
    owners = {full(source, name): at for at, source in enumerate(relation.sources) for name in source.columns}
    alone: dict[int, list[Expression]] = {}
    others = []
    for part in () if relation.where == TRUE else conjuncts(relation.where):
        names = columns_of(part)
        read = {owners.get(name) for name in names}
        at = read.pop() if len(read) == 1 else None
        if at is None or isinstance(relation.sources[at], Open):
            others.append(part)
        else:
            alone.setdefault(at, []).append(part)
    return alone, others


def sifted_by(relation: Relation, parts: Sequence[Expression]) -> Work:
    """What conditions about one table can cost in one of its rows."""
    meter = _meter(relation)
    return meter.all(parts) + meter.casts(_read(parts))


def sifting_work(relation: Relation) -> Work:
    """What joined tables do, each with its own rows, under ballast."""
    found = Work()
    for each in relation.within():
        found += sum((sifted_by(each, parts) for parts in sifting(each)[0].values()), Work())
    return found


def times(relation: Relation) -> int:
    """How often all that is done with joined rows is done for one row, at most."""
    return fanout(relation, really=True)


def inner_work(relation: Relation, most: int | None = None) -> Work:
    """What joined tables do otherwise: conditions about several, and what is summed per unit or stacked.

    A condition is tried for each row that a join makes of one (`times`); columns are read, and keys of a join worked
    out, for each row of their own. ``most``: as if a join made at most so many.
    """
    relations = list(relation.within())
    often = times(relation) if most is None else min(most, times(relation))
    return _inside(relations, keys=False) * often + _inside(relations, keys=True)


def matching_work(relation: Relation) -> Work:
    """Of that, what is done within EXISTS and IN."""
    inner = [inner for each in relation.within() for match in each.matches for inner in match.relation.within()]
    return _inside(inner, keys=False) + _inside(inner, keys=True)


def _inside(relations: Iterable[Relation], *, keys: bool) -> Work:
    found = Work()
    for each in relations:
        meter = _meter(each)
        conditions = [*sifting(each)[1], *(part for join in each.joins for part in conjuncts(join.on))]
        found += meter.all(part for part in conditions if _is_key(part, each) == keys)
        if keys:
            found += meter.casts(_read(conditions))  # before rows meet
            continue
        for source in each.sources:
            if isinstance(source, PerUnit):
                inner, used = _meter(source.relation), [*source.keys]
                used += [each for one in source.aggregates for each in (one.value, one.where) if each is not None]
                found += sum((inner.key(key) for key in source.keys), Work()) + inner.casts(_read(used))
                found += sum((_aggregated(inner, one) for one in source.aggregates), Work())
            elif isinstance(source, Stacked):
                for part, values in source.parts:
                    stacked = _meter(part)
                    found += stacked.all(values) + stacked.casts(_read(values))
                if isinstance(source, Numbered):
                    found += _numbered(source)
    return found


def _numbered(source: Numbered) -> Work:
    """Rows of a unit that has many are compared with one another, by all that is in them at worst."""
    ((relation, values),) = source.parts
    meter, read = _meter(relation), source.numbering.read
    compared = sum((_linear(20, 0.8, meter.longest(each) if each.type is Type.TEXT else 0) for each in values), Work())
    ordered = sum((_linear(20, 0.8, meter.longest(each) if each.type is Type.TEXT else 0) for each in read), Work())
    return meter.all(read) + meter.casts(_read(read)) + (compared + ordered) * _COMPARED


def _is_key(part: Expression, relation: Relation) -> bool:
    """Whether a condition says that something of one source equals something of another, or of the rows around."""
    if not isinstance(part, Call) or part.function != "eq":
        return False
    owners = {full(source, name): at for at, source in enumerate(relation.sources) for name in source.columns}
    one, other = ({owners.get(name) for name in columns_of(each)} for each in part.arguments)
    return bool(one and other) and not one & other


def _aggregated(meter: Meter, aggregate: Aggregate) -> Work:
    return meter(aggregate.value) * 2 + meter(aggregate.where) * (1 if aggregate.value is None else 2)


def _meter(relation: Relation) -> Meter:
    return Meter(_specs(relation), texts=_cast(relation))


def _read(expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset().union(*map(columns_of, expressions))


def _cast(relation: Relation) -> frozenset[str]:
    """Of the columns of protected tables, those that are cast from text when they are read."""
    return frozenset(
        full(source, name)
        for source in relation.sources
        if isinstance(source, Owned)
        for name in source.columns
        if source.table.texts is None or name in source.table.texts
    )


def _specs(relation: Relation) -> Mapping[str, Spec]:
    """The columns of protected tables and subqueries; of public ones, which are only looked up with a query, none."""
    return {
        full(source, name): spec
        for source in relation.sources
        if not isinstance(source, Open)
        for name, spec in source.columns.items()
    }


def ballast(work: Work) -> float:
    """Nanoseconds that every row has to do, whatever it holds."""
    return max(0.0, work.whole / RATIO - BASE)


def has_few_digits(expression: Expression) -> bool:
    """Whether a text has so few digits that a parser of numbers is always quick."""
    match expression:
        case Literal(value=value):
            return not isinstance(value, str) or len(value) <= SURE_DIGITS
        case Call(function="to_text", arguments=(inner,)):
            return inner.type is not Type.TEXT  # of a number 17 digits are printed, of a whole one 19
        case Call(function="left" | "right" | "substring", arguments=(_, *_, Literal(value=float() as count))):
            return (expression.function != "substring" or len(expression.arguments) > 2) and 0 <= count <= SURE_DIGITS
        case Call(function="case"):
            return all(map(has_few_digits, branches(expression)))
        case Call(function="coalesce", arguments=arguments):
            return all(map(has_few_digits, arguments))
    return False
