"""What a question was understood to mean, in plain words: for nothing, before anything is asked.

All of it follows from the question's text, the policies and what was released: it is a function of the plan, which no
row has a part in. So it costs nothing, and tells a hostile analyst nothing but what is public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius._fields import Fields
from dalenius._numbers import count_of
from dalenius.measuring.expressions import TRUE, Aggregate, Key, walk
from dalenius.measuring.listed import is_listed
from dalenius.measuring.relations import Join, Open, Owned, PerUnit, Relation, Stacked
from dalenius.queries.limit_words import describe_limits
from dalenius.queries.note_words import plain_notes
from dalenius.queries.sql_words import SqlWords, label_of

if TYPE_CHECKING:
    from dalenius.measuring.plan import Measure, Plan
    from dalenius.queries.rules.price import Priced

_TITLES = {
    "tables": "Tables",
    "rows": "Rows that count",
    "groups": "Groups",
    "limits": "Limits",
    "measures": "Measured, with noise",
}
NO_PRICE = "No price is given yet; a preview shows what several would give."
FREE_AFTER = "Computed from what is released, which is free"
_FACTS = "Bounds, declared keys and limits are public: they stand in the policies, or were released at protect."


@dataclass(frozen=True)
class ExplainedPart:
    """One SELECT that is asked; each field is a list of sentences.

    Attributes:
        unit: Who is protected, as the owner calls it.
        tables: What is read, and how it is joined.
        rows: The conditions that all must hold; none: all rows count.
        groups: What rows are grouped by, how many groups there are, and how they are known.
        limits: What of one unit counts at most, and between which bounds a value counts.
        measures: Each aggregate, and what is measured for it.
    """

    unit: str
    tables: tuple[str, ...]
    rows: tuple[str, ...]
    groups: tuple[str, ...]
    limits: tuple[str, ...]
    measures: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"unit": self.unit, **{name: list(getattr(self, name)) for name in _TITLES}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ExplainedPart:
        """As `to_dict` wrote it."""
        found = Fields(data, "explanation")
        return cls(found.text("unit"), *(found.texts(name) for name in _TITLES))

    def sections(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Its fields with their titles."""
        for name, title in _TITLES.items():
            lines = getattr(self, name) or (("all",) if name == "rows" else ())
            if lines:
                yield title, lines


@dataclass(frozen=True)
class Explanation:
    """What a question was understood to mean.

    Attributes:
        columns: Names of the answer's columns.
        parts: What is asked; none where only public tables are read. Several share one price.
        after: What is computed from the release, which is free.
        public: What anybody may know already: groups, public tables, bounds.
        price: What is charged, at the ε that was given.
        notes: What the reader should know besides.
    """

    columns: tuple[str, ...]
    parts: tuple[ExplainedPart, ...]
    after: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    price: str = ""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "columns": list(self.columns),
            "parts": [each.to_dict() for each in self.parts],
            "after": list(self.after),
            "public": list(self.public),
            "price": self.price,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Explanation:
        """As `to_dict` wrote it.

        Raises:
            InputError: It is no explanation.
        """
        found = Fields(data, "explanation")
        parts = tuple(map(ExplainedPart.from_dict, found.items("parts")))
        after, public, notes = (found.texts(name) for name in ("after", "public", "notes"))
        return cls(found.texts("columns"), parts, after, public, found.text("price"), notes)

    def sections(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Titles with their lines, in the order in which people read them."""
        for at, part in enumerate(self.parts):
            title = "Protected" if len(self.parts) == 1 else f"Part {at + 1} of {len(self.parts)}"
            yield title, (part.unit,)
            yield from part.sections()
        for title, lines in ((FREE_AFTER, self.after), ("Public", self.public), ("Price", (self.price,))):
            if any(lines):
                yield title, lines
        if self.notes:
            yield "Notes", self.notes

    def __str__(self) -> str:
        lines = list[str]()
        for title, said in self.sections():
            lines += [f"{title}:", *(f"  {each}" for each in said)]
        return "\n".join(lines)


def explain_plan(plan: Plan, priced: Priced | None = None) -> Explanation:
    """A question without an outer part."""
    words, question = SqlWords.of(plan), plan.question
    computed = tuple(
        named(each.name, words.text(each.expression))
        for each in question.outputs
        if not isinstance(each.expression, Aggregate | Key) and _is_noisy(each.expression)
    )
    return Explanation(
        columns=tuple(each.name for each in question.outputs),
        parts=(explain_part(plan, priced),),
        after=(*computed, *chosen_rows(plan)),
        public=public_facts([plan]),
        price=price_words([plan], priced),
        notes=plain_notes(plan, plan.notes),
    )


def explain_public(columns: Sequence[str], tables: Sequence[str]) -> Explanation:
    """A question over public tables only."""
    return Explanation(
        tuple(columns),
        (),
        public=(f"Only public tables are read: {', '.join(tables)}. The answer is exact.",),
        price="free: nothing is charged",
    )


def explain_part(plan: Plan, priced: Priced | None = None) -> ExplainedPart:
    """What is asked of one data set's rows."""
    words, relation = SqlWords.of(plan), plan.table.relation
    conditions = dict.fromkeys((*words.conditions(relation.where), *words.conditions(plan.question.where)))
    matches = [
        f"there is {'no' if each.negated else 'a'} row in {_rows_of(each.relation, words)}" for each in relation.matches
    ]
    return ExplainedPart(
        _unit(plan),
        tuple(_tables(relation, words)),
        (*conditions, *matches),
        tuple(_groups(plan, words, priced)),
        describe_limits(plan, words),
        tuple(_measures(plan, words)),
    )


def chosen_rows(plan: Plan) -> tuple[str, ...]:
    """HAVING, ORDER BY, LIMIT and OFFSET of a plan."""
    words, question, found = SqlWords.of(plan), plan.question, list[str]()
    if question.having != TRUE:
        found.append(f"only groups with {words.text(question.having)}")
    if question.order:
        terms = [words.text(each.expression) + (" DESC" if each.descending else "") for each in question.order]
        found.append(f"ordered by {', '.join(terms)}")
    if question.limit is not None or question.offset:
        first = "" if question.limit is None else f"at most {count_of(question.limit, 'row')}"
        skip = f"without the first {question.offset:,}" if question.offset else ""
        found.append(", ".join(filter(None, (first, skip))) + "; all groups are paid for")
    return tuple(found)


def named(name: str, text: str) -> str:
    """A column that is computed; its name is left out where it is that very text."""
    return text if name.lower() == text.lower() else f"{name} = {text}"


def public_facts(plans: Sequence[Plan], others: Sequence[str] = ()) -> tuple[str, ...]:
    """What of it anybody may know already."""
    found = [each for plan in plans for each in plan.table.relation.publics()]
    names = sorted({each.name for each in found if not is_listed(each)} | set(others))
    tables = (f"Public tables, read as they are: {', '.join(names)}.",) if names else ()
    lists = ("Values that the question lists itself.",) if any(map(is_listed, found)) else ()
    return (*tables, *lists, _FACTS)


def price_words(plans: Sequence[Plan], priced: Priced | None, delta: float | None = None) -> str:
    """What is charged."""
    if priced is None:
        return NO_PRICE
    delta = priced.delta if delta is None else delta
    more = [f"ρ = {priced.rho:.4g}"] if priced.rho is not None else []
    more += [f"δ = {delta:.3g}"] if delta else []
    shared = f", shared by {len(plans)} parts" if len(plans) > 1 else ""
    about = f" ({', '.join(more)})" if more else ""
    return f"ε = {priced.epsilon:g} for the whole question{shared}{about}, charged before the data is read"


def _unit(plan: Plan) -> str:
    budget = plan.table.budget
    relation = "added or removed" if plan.neighbors.value == "add-remove" else "exchanged for another"
    unit = " + ".join([*plan.table.unit, *([budget.period] if budget.period else [])])
    return f"each {unit}: what is released hardly changes when all of its rows are {relation}"


# --- tables


def _tables(relation: Relation, words: SqlWords) -> Iterator[str]:
    for at, join in enumerate(relation.joins):
        yield _joined(join, words, first=at == 0)


def _joined(join: Join, words: SqlWords, *, first: bool) -> str:
    shown = _source(join, words)
    if first:
        return shown
    if join.left:
        on = " and ".join(words.conditions(join.on))
        return f"beside each row those of {shown}" + (f" with {on}" if on else "") + "; rows without any stay"
    return f"joined with {shown}"


def _source(join: Join, words: SqlWords) -> str:
    source = join.source
    match source:
        case Owned(table=table):
            called = _called(label_of(source), table.policy.name)
            through = f", through {', '.join(table.through)}" if table.through else ""
            return f"{called} (protected{through})"
        case Open(table=public) if is_listed(public):
            return f"a list of {count_of(public.rows, 'row')} in the question, as {label_of(source)} (public)"
        case Open(table=public):
            return f"{_called(label_of(source), public.name)} (public)"
        case PerUnit(relation=inner, keys=keys):
            each = " and ".join(words.text(one) for one in keys)
            return f"one row for each {each}, of {_rows_of(inner, words)}"
        case Stacked(parts=parts):
            several = "one below another: " if len(parts) > 1 else "each row in its order, of "
            return several + "; ".join(_rows_of(inner, words) for inner, _ in parts)


def _called(called: str, name: str) -> str:
    return name if called.lower() == name.lower() else f"{name} as {called}"


def _rows_of(relation: Relation, words: SqlWords) -> str:
    """A relation within another, in one line."""
    tables = ", ".join(_joined(each, words, first=at == 0) for at, each in enumerate(relation.joins))
    conditions = list(words.conditions(relation.where))
    conditions += [
        f"there is {'no' if each.negated else 'a'} row in {_rows_of(each.relation, words)}" for each in relation.matches
    ]
    return tables + (f", where {' and '.join(conditions)}" if conditions else "")


# --- groups


def _groups(plan: Plan, words: SqlWords, priced: Priced | None) -> Iterator[str]:
    keys = plan.question.keys
    if not keys:
        yield "none: one row for all"
        return
    if plan.sets:
        sets = ["(" + ", ".join(words.text(keys[at]) for at in each) + ")" for each in plan.sets]
        yield f"by {count_of(len(sets), 'grouping set')}: {', '.join(sets)}"
    else:
        yield f"by {', '.join(map(words.text, keys))}"
    if plan.selection is None:
        yield f"{count_of(len(plan.cells), 'group')}, all public: each is answered, also if it is empty"
    else:
        yield "groups that are not public are found privately: those of few units do not show"
        if priced is not None:
            yield f"at this price a group needs about {count_of(priced.least_units, 'unit')} to be found"
        if plan.selection.units:
            yield f"a group that is found has at least {count_of(plan.selection.units, 'unit')}"
    if any(each.type.value != "boolean" for each in keys):
        yield "a row whose key is NULL is in no group"


# --- what is measured


def _measures(plan: Plan, words: SqlWords) -> Iterator[str]:
    for aggregate, number in plan.answers.items():
        parts = [_measured(each, words) for each in plan.statistics[number].measures]
        yield f"{words.text(aggregate)}, from: {'; '.join(dict.fromkeys(parts))}"
    if plan.periods != ("",):
        first, last = plan.periods[0], plan.periods[-1]
        yield f"each of {count_of(len(plan.periods), 'period')} is charged in full: {first} to {last}"


def _measured(measure: Measure, words: SqlWords) -> str:
    """One noisy number of each group, in words."""
    both = (measure.value, None if measure.times is None else measure.times.value)
    values = [words.text(each) for each in both if each is not None]
    of = f" of {' and '.join(values)}" if values else ""
    where = " and ".join(words.conditions(measure.where))
    return f"{measure.primitive.words}{of}" + (f" where {where}" if where else "")


def _is_noisy(expression: Any) -> bool:
    return any(isinstance(each, Aggregate) for each in walk(expression))
