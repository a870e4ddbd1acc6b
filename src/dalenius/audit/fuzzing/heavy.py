"""Whole questions that are meant to take long because of one person, and how the best of them have children.

A question is kept in its parts, so that two can be crossed: columns that a subquery names, conditions, keys,
aggregates, and how all of this is wrapped. Those that are known to have taken long once are where a search begins
(`SEEDS`); the next are bred from the best so far, by several measures (`GenePool`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from dalenius.audit.fuzzing.arenas import ARENAS, NAME, VICTIM, Arena
from dalenius.audit.fuzzing.terms import NamesByType, Term, change, grow, pattern, quote
from dalenius.measuring.work import LONGEST_TEXT

_CONDITIONS = (f"(name = '{VICTIM}')", "(LENGTH(note) > 100)", "flag", "(note IS NULL)", "(salary > 199000)")
NAMES: NamesByType = {
    "N": ("amount", "salary", "level"),
    "T": ("name", "note", "raw", "city", "code"),
    "D": ("born",),
    "M": ("seen",),
    "B": (*[_CONDITIONS[0]] * 4, *_CONDITIONS[1:]),
}
_COLUMNS = "person, name, note, raw, city, code, amount, salary, level, born, seen, flag"
WRAPS = ("plain", "plain", "subquery", "subquery", "cte", "twice", "union", "per unit")
JOINS = (
    *("", "", "", "", "", "", "", "join", "left", "exists", "not exists", "in"),
    *("itself", "itself by a key", "itself compared", "itself exists"),  # rows of one person meet one another
)
SETS = ("", "", "", "", "", "", "", "ROLLUP", "CUBE", "GROUPING SETS")
_KEYS = ("city", "level", "flag", "code", "UPPER(code)", "DATE_TRUNC('month', seen)", "LEFT(name, 1)", "raw", "note")
_BEST = 16  # by each measure
_NEW = 0.35  # of the questions have no parents
_RATIO = 0.8  # of the parents are chosen by it alone
_STAYS = 0.8  # of the children are tried where their mother was good
_SUMMED = "LEAST(GREATEST({0}, 0), 100)"
# By what they take: the template of an aggregate.
AGGREGATES: Sequence[tuple[str, str]] = (
    *[("", "COUNT(*)")] * 8,  # the least work besides what the question adds
    ("", "COUNT(DISTINCT person)"),
    ("", "VAR_POP(salary)"),
    ("", "CORR(salary, amount)"),
    ("T", "COUNT({0})"),
    ("T", "COUNT(DISTINCT {0})"),
    ("B", "COUNT_IF({0})"),
    ("N", f"SUM({_SUMMED})"),
    ("N", f"AVG({_SUMMED})"),
    ("N", f"STDDEV({_SUMMED})"),
    ("N", f"MEDIAN({_SUMMED})"),
    ("N", f"QUANTILE_CONT({_SUMMED}, 0.9)"),
    ("N", f"MIN({_SUMMED})"),
    ("N", f"MAX({_SUMMED})"),
    ("N", f"COVAR_POP({_SUMMED}, amount)"),
    ("B", "SUM(salary) FILTER (WHERE {0})"),
    ("B", "AVG(amount) FILTER (WHERE {0})"),
)


@dataclass(frozen=True)
class HeavyQuestion:
    """A question in its parts; ``glue`` stands between its conditions."""

    aggregates: tuple[Term, ...]
    where: tuple[Term, ...] = ()
    keys: tuple[Term, ...] = ()
    named: tuple[Term, ...] = ()
    wrap: str = "plain"
    join: str = ""
    sets: str = ""
    glue: str = "OR"

    @property
    def names(self) -> NamesByType:
        """The columns in sight outside: those of the table, and those that the question named."""
        if self.wrap == "per unit":
            return {"N": ("total", "n")}
        found = {kind: list(each) for kind, each in NAMES.items()}
        for at, each in enumerate(self.named if self.wrap != "plain" else ()):
            found[each.type] += [f"a{at}"] * 3
        return found

    @property
    def parts(self) -> tuple[Term, ...]:
        """All expressions."""
        return (*self.aggregates, *self.where, *self.keys, *self.named)

    def text(self) -> str:
        """As SQL."""
        keys = [each.text() for each in self.keys]
        source, before = self._source()
        shown = ", ".join([*keys, *(each.text() for each in self.aggregates)])
        where = [f"({f' {self.glue} '.join(each.text() for each in self.where)})"] if self.where else []
        match self.join:
            case "join":
                source += " JOIN people AS p ON s.person = p.person"
            case "left":
                source += " LEFT JOIN people AS p ON s.person = p.person"
            case "exists" | "not exists":
                inner = "p.person = s.person AND p.title LIKE '%a%b%'"
                where.append(f"{self.join.upper()} (SELECT 1 FROM people AS p WHERE {inner})")  # noqa: S608
            case "in":
                where.append("s.person IN (SELECT p.person FROM people AS p WHERE LENGTH(p.title) > 5)")
            case "itself" | "itself by a key" | "itself compared" | "itself exists":
                source, where = self._meeting(source, where)
        text = f"{before}SELECT {shown} FROM {source}"  # noqa: S608
        text += f" WHERE {' AND '.join(where)}" if where else ""
        return text + self._grouped(keys)

    def _meeting(self, source: str, where: list[str]) -> tuple[str, list[str]]:
        other = f"(SELECT person, note AS other, level AS height FROM {NAME}) AS t"  # noqa: S608
        own = "height" if self.wrap == "per unit" else "level"
        match self.join:
            case "itself by a key":
                return f"{source} JOIN {other} ON t.person = s.person AND t.height = {own}", where
            case "itself compared":
                tried = f"(LOWER(t.other) LIKE '%a%b%' OR t.height < {own})"
                return f"{source} JOIN {other} ON t.person = s.person", [*where, tried]
            case "itself exists":
                inner = f"SELECT 1 FROM {other} WHERE t.person = s.person AND t.height > {own}"  # noqa: S608
                return source, [*where, f"EXISTS ({inner})"]
        return f"{source} JOIN {other} ON t.person = s.person", where

    def _grouped(self, keys: Sequence[str]) -> str:
        if not keys:
            return ""
        inside = ", ".join(f"({each})" for each in keys)
        if self.sets == "GROUPING SETS":
            return f" GROUP BY GROUPING SETS (({inside}), (({keys[0]})), ())"
        return f" GROUP BY {self.sets} ({inside})" if self.sets else f" GROUP BY {inside}"

    def _source(self) -> tuple[str, str]:
        """What stands after FROM, and before SELECT."""
        if self.wrap == "plain":
            return f"{NAME} AS s", ""
        named = "".join(f", {each.text()} AS a{at}" for at, each in enumerate(self.named))
        inner = f"SELECT {_COLUMNS}{named} FROM {NAME}"  # noqa: S608
        aliases = "".join(f", a{at}" for at in range(len(self.named)))
        match self.wrap:
            case "cte":
                return "s", f"WITH s AS ({inner}) "
            case "twice":
                return f"(SELECT {_COLUMNS}{aliases} FROM ({inner}) AS q) AS s", ""  # noqa: S608
            case "union":
                return f"({inner} WHERE flag UNION ALL {inner} WHERE NOT flag) AS s", ""
            case "per unit":
                summed = "SELECT person, SUM(level) AS total, COUNT(*) AS n"
                return f"({summed} FROM {NAME} GROUP BY person) AS s", ""
        return f"({inner}) AS s", ""


def draw_question(random: Random) -> HeavyQuestion:
    """A new question."""
    found = HeavyQuestion((), wrap=random.choice(WRAPS), join=random.choice(JOINS), sets=random.choice(SETS))
    if found.wrap == "per unit":
        found = replace(found, join="", sets="")
    elif found.wrap != "plain":
        found = replace(found, named=tuple(_draw_named(random) for _ in range(random.choice((1, 1, 2, 4)))))
    where = tuple(grow(random, "B", found.names) for _ in range(random.choice((0, 1, 1, 2, 4))))
    keys = tuple(_draw_key(random, found) for _ in range(random.choice((0, 0, 1, 1, 2))))
    aggregates = tuple(_draw_aggregate(random, found) for _ in range(random.choice((1, 1, 2))))
    if found.wrap == "per unit":
        where, keys = tuple(each for each in where if "person" not in each.text()), ()
    return replace(found, aggregates=aggregates, where=where, keys=keys, glue=random.choice(("AND", "OR")))


def _draw_named(random: Random) -> Term:
    """A column of a subquery; often one that only the victim's rows make long, or a pattern."""
    chance = random.random()
    if chance < 0.15:
        return Term(pattern(random), "T")
    if chance < 0.5:
        length = random.choice((LONGEST_TEXT // 2, LONGEST_TEXT, LONGEST_TEXT, 2000))
        text = Term(quote(random.choice(("ä", "a", "😀")) * length), "T")
        return Term("CASE WHEN {0} THEN {1} ELSE '' END", "T", (Term(random.choice(NAMES["B"]), "B"), text))
    return grow(random, random.choice("TTTNB"), NAMES)


def _draw_key(random: Random, question: HeavyQuestion) -> Term:
    if question.wrap == "per unit":
        return Term("n", "N")
    if random.random() < 0.4:
        return grow(random, "B", question.names, 1)
    return Term(random.choice(_KEYS), "T")


def _draw_aggregate(random: Random, question: HeavyQuestion) -> Term:
    while True:
        takes, template = random.choice(AGGREGATES)
        if question.wrap != "per unit":
            return Term(template, "A", tuple(grow(random, each, question.names, 1) for each in takes))
        if takes == "N":
            return Term(template.replace("amount", "n"), "A", tuple(Term("total", "N") for _ in takes))
        if template == "COUNT(*)":
            return Term(template, "A")


def breed(random: Random, mother: HeavyQuestion, father: HeavyQuestion) -> HeavyQuestion:
    """A changed question, or what two have in common."""
    match random.randrange(9):
        case 0 if father.names == mother.names:
            return replace(mother, where=(*mother.where, *father.where)[:60])
        case 1:
            return replace(mother, aggregates=(*mother.aggregates, _draw_aggregate(random, mother))[:6])
        case 2:
            return replace(mother, keys=(*mother.keys, _draw_key(random, mother))[:4], sets=random.choice(SETS))
        case 3:
            return replace(mother, join=random.choice(JOINS)) if mother.wrap != "per unit" else mother
        case 4 if mother.wrap not in {"plain", "per unit"}:
            return replace(mother, wrap=random.choice(("subquery", "cte", "twice", "union")))
        case 5 if mother.where:  # the same again and again, each a little different
            term = random.choice(mother.where)
            more = tuple(change(random, term, mother.names) for _ in range(random.choice((1, 3, 10))))
            return replace(mother, where=(*mother.where, *more)[:60])
        case 6 if mother.where or mother.keys:  # and smaller: refused questions are often too large
            return replace(mother, where=mother.where[: len(mother.where) // 2], keys=mother.keys[:1])
        case 7 if mother.named and mother.wrap not in {"plain", "per unit"}:
            at = random.randrange(len(mother.named))
            new = change(random, mother.named[at], NAMES, father.named)
            return replace(mother, named=(*mother.named[:at], new, *mother.named[at + 1 :]))
    return _change_anywhere(random, mother, father)


def _change_anywhere(random: Random, mother: HeavyQuestion, father: HeavyQuestion) -> HeavyQuestion:
    """One expression changed, which must not be an aggregate as a whole."""
    kind = random.choice([each for each in ("where", "keys", "aggregates") if getattr(mother, each)])
    terms: list[Term] = list(getattr(mother, kind))
    at = random.randrange(len(terms))
    donors = father.where if father.names == mother.names else ()
    if kind != "aggregates":
        terms[at] = change(random, terms[at], mother.names, donors)
    elif terms[at].parts:
        inner = random.choice(terms[at].parts)
        terms[at] = terms[at].exchange(inner, change(random, inner, mother.names, donors))
    else:
        terms[at] = _draw_aggregate(random, mother)
    return replace(mother, **{kind: tuple(terms)})  # type: ignore[arg-type]


def _patterns(count: int, length: int, free: int) -> HeavyQuestion:
    """One person's text, made up in a subquery, against a pattern of free places."""
    text = Term(f"CASE WHEN name = '{VICTIM}' THEN '{'ä' * length}' ELSE '' END", "T")
    free_places = Term(f"'%{'_' * free}b%'", "T")
    terms = [
        Term(f"(LEFT({{0}}, {length - at}) ILIKE {{1}})", "B", (Term("a0", "T"), Term("a1", "T")))
        for at in range(count)
    ]
    return HeavyQuestion((Term("COUNT(*)", "A"),), tuple(terms), named=(text, free_places), wrap="subquery")


_GUARDED = Term(f"(name = '{VICTIM}' AND REPLACE(REPLACE(note, 'a', 'bcd'), 'b', 'cde') LIKE '%c%c%d%e%f%')", "B")
_MANY = tuple(
    Term(f"(name = '{VICTIM}' AND REPLACE(UPPER(RIGHT(note, {199 - at})), 'A', 'b') LIKE '%b_b_b_c%')", "B")
    for at in range(30)
)
_CAST = Term("(CAST(raw AS TIMESTAMP) < TIMESTAMP '2020-01-01 00:00:00')", "B")
SEEDS: Sequence[HeavyQuestion] = (
    _patterns(1, 300, 100),
    _patterns(8, 2000, 1000),
    _patterns(25, LONGEST_TEXT - 1, 40),
    HeavyQuestion((Term("COUNT(*)", "A"),), _MANY),
    HeavyQuestion((Term("COUNT(*)", "A"),), (_GUARDED,)),
    HeavyQuestion((Term("VAR_POP(salary)", "A"),)),
    HeavyQuestion((Term("CORR(salary, amount)", "A"),), keys=(Term("city", "T"),)),
    HeavyQuestion((Term("COUNT(*)", "A"),), keys=(Term("code", "T"),)),
    HeavyQuestion((Term("COUNT(DISTINCT {0})", "A", (Term("UPPER(note)", "T"),)),)),
    HeavyQuestion((Term("COUNT(*)", "A"),), (_CAST,)),
    # One NULL among few different texts, and DuckDB casts every row instead of every text.
    HeavyQuestion((Term("COUNT_IF({0})", "A", (Term("(CAST(city AS DATE) < DATE '2020-01-01')", "B"),)),)),
)


# --- which come next


@dataclass(frozen=True)
class Tried:
    """A question, where it was tried, and how good it was: the larger, the worse for us."""

    question: HeavyQuestion
    arena: Arena
    score: float


@dataclass
class GenePool:
    """By measure (ratio, time, memory) the best, best first, no question twice."""

    best: dict[str, list[Tried]] = field(default_factory=dict)

    def offer(self, measure: str, tried: Tried) -> None:
        """Keeps it if it is among the best."""
        known = self.best.setdefault(measure, [])
        known[:] = [each for each in known if each.question != tried.question or each.arena != tried.arena]
        known.append(tried)
        known.sort(key=lambda each: -each.score)
        del known[_BEST:]

    def next(self, random: Random, number: int) -> tuple[HeavyQuestion, Arena]:
        """The next question: first what is known to have taken long once, then new ones and children of the best."""
        if number < len(SEEDS) * len(ARENAS) // 2:
            # Every seed meets every victim, with an index or without; neighbours in this order differ in both.
            return SEEDS[number % len(SEEDS)], ARENAS[(number // len(SEEDS) * 2 + number % 2) % len(ARENAS)]
        if not self.best or random.random() < _NEW:
            return draw_question(random), random.choice(ARENAS)
        mother, father = self._parent(random), self._parent(random)
        made = breed(random, mother.question, father.question)
        for _ in range(random.choice((0, 0, 1, 3))):
            made = breed(random, made, father.question)
        return made, mother.arena if random.random() < _STAYS else random.choice(ARENAS)

    def _parent(self, random: Random) -> Tried:
        # Most of them by ratio: those that are only slow would have ever slower children, and no time for others.
        measure = "ratio" if random.random() < _RATIO else random.choice(sorted(self.best))
        known = self.best[measure]
        return known[min(random.randrange(len(known)), random.randrange(len(known)))]
