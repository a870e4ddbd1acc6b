"""Expressions as typed trees over every function that can be asked for, to be grown, changed and crossed.

`FORMS` has an entry for each name of `queries.functions.FUNCTIONS` (a test compares them): a function that somebody
adds there is searched here, or the test fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

NamesByType = Mapping[str, Sequence[str]]  # by type, the columns in sight
N, B, T, D, M = "N", "B", "T", "D", "M"  # number, boolean, text, date, moment
_DEEPEST = 3
_LENGTHS = (1, 1, 3, 5, 10, 20, 30, 50, 100, 200, 1000)
_LETTERS = ("a", "ä", "😀", "ab", "ẞ", " ")
_PARTS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second")
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_FORMATS = ("%Y-%m", "%j", "%Y-%m-%d %H:%M:%S", "%d" * 40, "x" * 300)


@dataclass(frozen=True)
class Term:
    """One expression: a template with a place for each part."""

    template: str
    type: str
    parts: tuple[Term, ...] = ()

    def text(self) -> str:
        """As SQL."""
        return self.template.format(*(each.text() for each in self.parts))

    def within(self) -> Iterator[Term]:
        """It, and all its parts."""
        yield self
        for each in self.parts:
            yield from each.within()

    def exchange(self, old: Term, new: Term) -> Term:
        """With one part replaced, which is found by identity."""
        if self is old:
            return new
        parts = tuple(each.exchange(old, new) for each in self.parts)
        return self if all(a is b for a, b in zip(parts, self.parts, strict=True)) else replace(self, parts=parts)


Form = tuple[Callable[[Random], str], str, str]  # the template, the types of its parts, and its own


def _as_is(template: str, takes: str, gives: str) -> Form:
    return (lambda _: template), takes, gives


def _infix(sign: str, takes: str, gives: str) -> Form:
    return _as_is(f"({{0}} {sign} {{1}})", takes, gives)


def _of(name: str, takes: str, gives: str) -> Form:
    return _as_is(f"{name}({', '.join(f'{{{at}}}' for at in range(len(takes)))})", takes, gives)


def _every(template: str, takes: str = "{}{}") -> list[Form]:
    """The form for each type."""
    return [_as_is(template, takes.format(*[each] * takes.count("{}")), each) for each in (N, T, D, M)]


def quote(text: str) -> str:
    """A text as SQL, for a template."""
    return "'" + text.replace("'", "''").replace("{", "{{").replace("}", "}}") + "'"


def long_text(random: Random) -> str:
    """A text of one of many lengths, most of them short: needles and patterns are."""
    return quote(random.choice(_LETTERS) * random.choice(_LENGTHS))


def pattern(random: Random) -> str:
    """What LIKE takes: the more free places, the more ways to match."""
    length, letter = random.choice(_LENGTHS), random.choice(_LETTERS[:3])
    kinds = (f"%{'_' * length}b%", f"{letter}%" * min(length, 300), f"%{letter * length}", "_" * length, f"%{letter}%")
    return quote(random.choice(kinds))


def _in(random: Random) -> str:
    values = [quote(f"{random.choice(_LETTERS)}{at}") for at in range(random.choice((2, 10, 100, 500)))]
    return f"{{0}} IN ({', '.join(values)})"


def _replaced(random: Random) -> str:
    old = random.choice(_LETTERS) * random.choice((1, 1, 2, 20, 50))
    return f"REPLACE({{0}}, {quote(old)}, {quote(random.choice(('', 'b', 'ä', 'bcd', 'x' * 10, 'y' * len(old))))})"


def _cut(name: str) -> Callable[[Random], str]:
    return lambda random: (
        f"{name}({{0}}, {random.choice((0, 1, -1, 5, -5, 100, 1000, random.randint(1, 2000), 1_000_000))})"
    )


def _trimmed(name: str) -> Callable[[Random], str]:
    return lambda random: f"{name}({{0}}, {quote(''.join(random.choices(_LETTERS, k=random.choice((1, 3, 10)))))})"


_EXPRESSIONS = (
    "a+b",
    "^[^a]{9}",
    "(a|b)*a(a|b){3}c$",
    "(?i)^[a-z]{9}x",
    "a.*b.*c$",
    r"^\w+@\w+\.(com|org)$",
    "[^q]{3}q",
    "[ä-ü一-龥😀]+ x?$",
)


def _split(random: Random) -> str:
    separator = random.choice(_LETTERS) * random.choice((1, 1, 2, 20))
    return f"SPLIT_PART({{0}}, {quote(separator)}, {random.choice((1, 2, 1000, -1, -1000))})"


def _substring(random: Random) -> str:
    return f"SUBSTRING({{0}}, {random.choice((0, 1, 2, 1999))}, {random.choice((0, 1, 10, 1990, 1_000_000))})"


FORMS: Mapping[str, Sequence[Form]] = {
    "add": [_infix("+", "NN", N)],
    "sub": [_infix("-", "NN", N)],
    "mul": [_infix("*", "NN", N)],
    "div": [_infix("/", "NN", N)],
    "intdiv": [_infix("//", "NN", N)],
    "mod": [_infix("%", "NN", N)],
    "neg": [_as_is("(- {0})", "N", N)],
    "abs": [_of("ABS", "N", N)],
    "sign": [_of("SIGN", "N", N)],
    "floor": [_of("FLOOR", "N", N)],
    "ceil": [_of("CEIL", "N", N)],
    "trunc": [_of("TRUNC", "N", N)],
    "round": [_of("ROUND", "N", N), (lambda r: f"ROUND({{0}}, {r.choice((-15, -2, 2, 15))})", "N", N)],
    "sqrt": [_of("SQRT", "N", N)],
    "ln": [_of("LN", "N", N)],
    "log10": [_of("LOG10", "N", N)],
    "log2": [_of("LOG2", "N", N)],
    "exp": [_of("EXP", "N", N)],
    **{each: [_of(each.upper(), "N", N)] for each in ("sin", "cos", "tan", "asin", "acos", "atan")},
    "atan2": [_of("ATAN2", "NN", N)],
    "finite": [_of("EXP", "N", N)],  # no name of its own: a guard around what may be infinite
    "power": [_of("POWER", "NN", N), (lambda r: f"POWER({{0}}, {r.choice(('2', '0.5', '-1', '17.3'))})", "N", N)],
    "least": [_of("LEAST", "NN", N), _of("LEAST", "NNNN", N)],
    "greatest": [_of("GREATEST", "NN", N), _of("GREATEST", "NNNN", N)],
    "eq": [_infix("=", each * 2, B) for each in (N, T, D, M, B)],
    "ne": [_infix("<>", each * 2, B) for each in (N, T, D, M)],
    "lt": [_infix("<", each * 2, B) for each in (N, T, D, M)],
    "le": [_infix("<=", each * 2, B) for each in (N, T, D, M)],
    "in": [(_in, T, B), (lambda r: f"{{0}} IN ({', '.join(map(str, range(r.choice((2, 50, 500)))))})", N, B)],
    "is_null": [_as_is("({0} IS NULL)", each, B) for each in (N, T, D, M, B)],
    "and": [_infix("AND", "BB", B)],
    "or": [_infix("OR", "BB", B)],
    "not": [_as_is("(NOT {0})", B, B)],
    "like": [(lambda r: f"({{0}} LIKE {pattern(r)})", T, B), _infix("LIKE", "TT", B)],
    "ilike": [(lambda r: f"({{0}} ILIKE {pattern(r)})", T, B), _infix("ILIKE", "TT", B)],
    "contains": [_of("CONTAINS", "TT", B), (lambda r: f"CONTAINS({{0}}, {long_text(r)})", T, B)],
    "starts_with": [_of("STARTS_WITH", "TT", B), (lambda r: f"STARTS_WITH({{0}}, {long_text(r)})", T, B)],
    "ends_with": [_of("ENDS_WITH", "TT", B), (lambda r: f"ENDS_WITH({{0}}, {long_text(r)})", T, B)],
    "regexp": [(lambda r: f"REGEXP_MATCHES({{0}}, {quote(r.choice(_EXPRESSIONS))})", T, B)],
    "case": _every("CASE WHEN {0} THEN {1} ELSE {2} END", "B{}{}"),
    "coalesce": _every("COALESCE({0}, {1})"),
    "nullif": _every("NULLIF({0}, {1})"),
    "lower": [_of("LOWER", T, T)],
    "upper": [_of("UPPER", T, T)],
    **{each: [_of(each.upper(), T, T), (_trimmed(each.upper()), T, T)] for each in ("trim", "ltrim", "rtrim")},
    "position": [_of("STRPOS", "TT", N), (lambda r: f"STRPOS({{0}}, {long_text(r)})", T, N)],
    "split_part": [(_split, T, T)],
    "length": [_of("LENGTH", T, N)],
    "left": [(_cut("LEFT"), T, T)],
    "right": [(_cut("RIGHT"), T, T)],
    "substring": [(_substring, T, T)],
    "replace": [(_replaced, T, T)],
    "concat": [_infix("||", "TT", T), _of("CONCAT", "TTT", T)],
    "date_part": [
        (lambda r, each=each: f"EXTRACT({r.choice(_PARTS[: 8 if each == D else 11])} FROM {{0}})", each, N)  # type: ignore[misc]
        for each in (D, M)
    ],
    "date_trunc": [(lambda r: f"DATE_TRUNC('{r.choice(_UNITS[:5])}', {{0}})", each, each) for each in (D, M)],
    "date_add": [
        (lambda r: f"({{0}} {r.choice('+-')} INTERVAL {r.choice((1, 30, 99))} {r.choice(_UNITS[:5])})", M, M),
        (lambda r: f"({{0}} {r.choice('+-')} INTERVAL {r.choice((1, 30))} DAY)", D, D),
    ],
    "strftime": [(lambda r: f"STRFTIME({{0}}, {quote(r.choice(_FORMATS))})", each, T) for each in (D, M)],
    "date_sub": [(lambda r: f"DATE_SUB('{r.choice(_UNITS)}', {{0}}, {{1}})", each * 2, N) for each in (D, M)],
    "date_diff": [(lambda r: f"DATE_DIFF('{r.choice(_UNITS)}', {{0}}, {{1}})", each * 2, N) for each in (D, M)],
    "to_number": [_as_is("CAST({0} AS DOUBLE)", each, N) for each in (T, N, B)],
    "to_integer": [_as_is("CAST({0} AS INTEGER)", each, N) for each in (T, N, B)],
    "round_even": [_as_is("CAST({0} / 2 AS INTEGER)", N, N)],
    "to_text": [_as_is("CAST({0} AS VARCHAR)", each, T) for each in (N, T, D, M, B)],
    "to_boolean": [_as_is("CAST({0} AS BOOLEAN)", each, B) for each in (T, N)],
    "to_date": [_as_is("CAST({0} AS DATE)", each, D) for each in (T, D, M)],
    "to_datetime": [_as_is("CAST({0} AS TIMESTAMP)", each, M) for each in (T, D, M)],
}
_GIVING = {kind: [form for forms in FORMS.values() for form in forms if form[2] == kind] for kind in (N, B, T, D, M)}


def grow(random: Random, kind: str, names: NamesByType, depth: int = 0) -> Term:
    """A new expression of one type."""
    if depth >= _DEEPEST or random.random() < 0.15 + 0.15 * depth:
        return draw_leaf(random, kind, names)
    # By function first, so that those with many forms do not crowd out the others.
    forms = random.choice([each for each in FORMS.values() if any(form[2] == kind for form in each)])
    made, takes, gives = random.choice([form for form in forms if form[2] == kind])
    return Term(made(random), gives, tuple(grow(random, each, names, depth + 1) for each in takes))


def draw_leaf(random: Random, kind: str, names: NamesByType) -> Term:
    """A column or a constant; of conditions one that singles out the victim, as often as not."""
    if names.get(kind) and random.random() < 0.75:
        return Term(random.choice(names[kind]), kind)
    match kind:
        case "N":
            return Term(random.choice(("0", "1", "2.5", "1e300", "7", "1000")), kind)
        case "T":
            return Term(long_text(random), kind)
        case "D":
            return Term(random.choice(("DATE '2020-06-30'", "DATE '0001-01-01'", "DATE '9999-12-31'")), kind)
        case "M":
            return Term("TIMESTAMP '2020-06-30 12:00:00'", kind)
    return Term(random.choice(("TRUE", "FALSE")), kind)


def wrap(random: Random, term: Term, names: NamesByType) -> Term:
    """The expression inside another of the same type."""
    forms = [form for form in _GIVING[term.type] if term.type in form[1]]
    made, takes, gives = random.choice(forms)
    place = random.choice([at for at, each in enumerate(takes) if each == term.type])
    parts = [term if at == place else grow(random, each, names, _DEEPEST - 1) for at, each in enumerate(takes)]
    return Term(made(random), gives, tuple(parts))


def change(random: Random, term: Term, names: NamesByType, others: Sequence[Term] = ()) -> Term:
    """The expression with one part grown anew, wrapped, cut out, or taken from another expression."""
    old = random.choice(list(term.within()))
    chance = random.random()
    donors = [part for each in others for part in each.within() if part.type == old.type]
    if donors and chance < 0.3:
        return term.exchange(old, random.choice(donors))
    if chance < 0.6:
        return term.exchange(old, wrap(random, old, names))
    inner = [part for part in old.within() if part.type == old.type and part is not old]
    if inner and chance < 0.7:
        return term.exchange(old, random.choice(inner))
    return term.exchange(old, grow(random, old.type, names, 1))
