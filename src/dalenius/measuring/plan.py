"""A question on its way to a plan: what each pass in `rules` adds, as plain data.

Asked → parse → restrict → resolve (Question) → total → bound (Plan) → price → compile (SQL)
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from dalenius.accounting import parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.measuring.expressions import TRUE, Aggregate, Expression, Scalar, written
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.measures import PRIMITIVES, Primitive

if TYPE_CHECKING:
    from dalenius.errors import Place
    from dalenius.ledger.budgets import Budget
    from dalenius.measuring.relations import Relation
    from dalenius.measuring.statistics.family import Family
    from dalenius.tables.policy import Column, Period, Policy


MOST_GROUPS = 2**31  # of one unit, where groups are not public: no file holds more rows of one unit


@dataclass(frozen=True, slots=True)
class Found:
    """Limits that were found privately and are public: rows, totals by column, norms of rows over a column's keys.

    ``distinct`` is how many different keys of a column one unit has, where they are not public. ``units`` and
    ``row_count`` are noisy numbers of units and (clipped) rows, for previews. ``clipped`` estimates which share of the
    mass lies beyond each limit, by name ("rows", "total amount"), as far as the noise lets it be seen. ``sizes`` are
    the noisy counts of units that the limits were chosen from, by the same names; what was found before they were kept
    has none. ``carried``: the data changed since, so that neither tells anything of what lies beyond now.
    """

    rows: int
    totals: Mapping[str, Fraction] = field(default_factory=dict)
    norms: Mapping[str, int] = field(default_factory=dict)
    units: int = 0
    row_count: int = 0
    distinct: Mapping[str, int] = field(default_factory=dict)
    clipped: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, LengthCounts] = field(default_factory=dict)
    carried: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the ledger."""
        return {
            "rows": self.rows,
            "totals": {name: str(value) for name, value in self.totals.items()},
            "norms": dict(self.norms),
            "units": self.units,
            "row_count": self.row_count,
            "distinct": dict(self.distinct),
            "clipped": dict(self.clipped),
            "sizes": {name: each.to_json() for name, each in self.sizes.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Found:
        """As `to_dict` wrote it."""
        totals = {name: Fraction(value) for name, value in data["totals"].items()}
        distinct, clipped = dict(data.get("distinct", {})), dict(data.get("clipped", {}))
        sizes = {name: LengthCounts.of_json(each) for name, each in data.get("sizes", {}).items()}
        norms, units, rows = dict(data["norms"]), data["units"], data["row_count"]
        return cls(data["rows"], totals, norms, units, rows, distinct, clipped, sizes)


@dataclass(frozen=True, slots=True)
class EarlierPeriods:
    """How a policy before this one told the periods of the same people, and the periods that were charged under it."""

    column: Column
    charged: frozenset[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A protected table, with the budget that pays for questions about it and the limits that were found for it.

    ``through`` are the tables that its path goes through, by name. ``made_of``: it is not one table but a relation of
    several; its policy is then made up for the question. ``texts``: the columns that lie in the files as text, and are
    cast when they are read, which takes its time (`work`); None: that is not known, and any of them may. ``work``:
    nanoseconds that a question can do with one row of joined tables, which each of their rows makes up for.
    ``moved``: in which periods its rows may have been counted before the policy changed.
    """

    policy: Policy
    budget: Budget
    period: Period | None = None
    found: Found | None = None
    through: Mapping[str, Table] = field(default_factory=dict)
    made_of: Relation | None = None
    texts: frozenset[str] | None = None
    work: float = field(default=0.0, compare=False)
    moved: tuple[EarlierPeriods, ...] = ()

    @property
    def relation(self) -> Relation:
        """Its rows, always as a relation: a table by itself is a relation of one."""
        from dalenius.measuring.relations import alone

        return alone(self) if self.made_of is None else self.made_of

    @property
    def direct(self) -> bool:
        """Whether its rows are those of one source, as they lie there: nothing is joined, and no path is followed."""
        return self.made_of is None and not self.through

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of all protected tables whose files are read, in order."""
        return tuple(sorted(each.policy.name for each in self.relation.tables()))

    @property
    def unit(self) -> tuple[str, ...]:
        """Who is protected, as the owner calls it."""
        return self.policy.unit if self.made_of is None else (self.budget.unit,)

    @property
    def units(self) -> tuple[tuple[str, ...], ...]:
        """The columns that name the unit, in each table of FROM that has some."""
        tables = (self,) if self.made_of is None else self.made_of.tables()
        return tuple(dict.fromkeys(each.policy.unit for each in tables))

    @property
    def meaning(self) -> str:
        """What decides what a question means: the policies of all that it reads, and public tables as they are."""
        relation = self.relation
        parts = sorted(each.policy.meaning for each in relation.tables())
        parts += sorted(f"{each.name} {each.fingerprint.content}" for each in relation.publics())
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Limits:
    """Tighter limits for one question; a policy's own can only be lowered.

    ``units``: a group whose key had to be found is released only where so many units are surely in it.
    ``search``: the question finds lower limits itself, with this share of its price, at most a half
    (`limits.in_question`); 0: it does not; None: it does where that pays.
    """

    rows: int | None = None
    groups: int | None = None
    totals: Mapping[str, Fraction] = field(default_factory=dict)
    units: int | None = None
    search: float | Fraction | None = None

    def __post_init__(self) -> None:
        for name, value in (("rows", self.rows), ("groups", self.groups), ("units", self.units)):
            if value is not None:
                parameters.count(value, name, least=0)
        if not isinstance(self.totals, Mapping):
            raise InputError(
                "totals must say which column has which.", why="It is a mapping.", fix="Write {'amount': 4000}."
            )
        totals = {name: Fraction(parameters.real(value, f"total {name}")) for name, value in self.totals.items()}
        object.__setattr__(self, "totals", totals)
        if self.search is not None:
            fix = "Give a share such as 0.1; 0 leaves the limits as they are."
            share = parameters.real(self.search, "search", fix=fix)
            if not 0 <= share <= Fraction(1, 2):
                raise InputError(
                    "search must lie between 0 and 0.5.", why="The rest of the price is for the answer.", fix=fix
                )
            object.__setattr__(self, "search", Fraction(str(share)))  # 0.1 is a tenth


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer: an expression over keys and aggregates."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Order:
    """One term of ORDER BY."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, with every name and type resolved."""

    table: Table
    where: Expression
    keys: tuple[Expression, ...]
    outputs: tuple[Output, ...]
    having: Expression = TRUE
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    places: Mapping[Aggregate, Place | None] = field(default_factory=dict)
    sets: tuple[tuple[int, ...], ...] = ()  # GROUPING SETS as asked for, by places of keys; none: one of all keys
    groupings: tuple[tuple[int, ...], ...] = ()  # the arguments of each GROUPING(…), which are keys after the keys
    notes: tuple[str, ...] = ()  # what it means otherwise than where its words come from

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """All that is asked of the rows, each once."""
        from dalenius.measuring.expressions import walk

        terms = (*(each.expression for each in self.outputs), self.having, *(each.expression for each in self.order))
        found = (part for term in terms for part in walk(term) if isinstance(part, Aggregate))
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Safe:
    """The question's expressions made total: each aggregate's value and rows, the condition and the keys."""

    where: Expression
    keys: tuple[Expression, ...]
    values: Mapping[Aggregate, tuple[Expression | None, Expression]]
    others: Mapping[Aggregate, Expression] = field(default_factory=dict)  # second arguments


@dataclass(frozen=True, slots=True)
class Measure:
    """One integer per group, which is exact in the engine and noisy outside.

    A row adds floor(x/step + ½) − centre, clipped to [low, high]; for "rows" 1; for "square" the square of that; for
    "product" that times what it adds to ``times``.
    One unit's vector over the groups is brought within ``clip`` in the plan's norm; for "units" it holds ones, at most
    ``clip`` of them; for "leaves" it holds rows by groups, and the integers are the nodes of a tree (`trees`); for
    "distinct" it is no vector: a unit keeps at most ``clip`` pairs of group and value.
    The engine counts all of that in 2^bits parts of a step, so that scaling leaves something of a single row.

    Attributes:
        sensitivity: Δ2² where the norm is L2, Δ1 where it is L1: what one unit can change, as an exact integer.
        share: The part of the question's price that it gets.
        width: How many integers it has in each group; more than one for a histogram of values.
        times: The second factor of a product.
        search: The part of the question's price that first goes into finding a lower clip; 0 where it stays.
        sets: For "distinct": in so many grouping sets a unit keeps that many pairs each.
        bits: What one of its integers stands for is 2^−bits of a step (`measures`). It is no part of the canonical
            text: an answer that was measured before at other bits is an answer to the same question.
    """

    kind: str
    value: Expression | None
    where: Expression
    step: Fraction
    centre: int
    low: int
    high: int
    clip: int
    sensitivity: int
    share: Fraction = Fraction(1)
    width: int = 1
    times: Measure | None = None
    search: Fraction = Fraction(0)
    sets: int = 1
    bits: int = 0

    @property
    def primitive(self) -> Primitive:
        """What is known of all measures of its kind."""
        return PRIMITIVES[self.kind]

    @property
    def largest(self) -> int:
        """The largest integer that a value can be, of either sign; at least 1."""
        return max(abs(self.low), abs(self.high), 1)

    @property
    def one_row(self) -> int:
        """What one row adds at most."""
        return self.largest**self.primitive.degree if self.times is None else self.largest * self.times.largest

    @property
    def unit(self) -> Fraction:
        """What one step of its clip stands for."""
        return self.step**self.primitive.degree if self.times is None else self.step * self.times.step

    @property
    def limit(self) -> int:
        """The clip, as its integers count it."""
        return self.clip << self.bits

    def written(self) -> str:
        """In the fixed notation."""
        value = "" if self.value is None else written(self.value)
        return (
            f"{self.kind}({value}) where {written(self.where)} step {self.step} centre {self.centre} "
            f"range {self.low}..{self.high} clip {self.clip} share {self.share}"
        ) + self._more()

    def _more(self) -> str:
        times = "" if self.times is None else f" times {self.times.written()}"
        search = f" search {self.search}" if self.search else ""
        search += f" sets {self.sets}" if self.sets > 1 else ""
        return times + (f" width {self.width}" if self.width > 1 else "") + search


@dataclass(frozen=True, slots=True)
class Statistic:
    """Measures that belong together: one, or the numerator and denominator of a ratio, which share a factor per unit.

    ``kind`` is the name of its family (`statistics`). ``low`` and ``high`` bound the value that is summed.
    """

    kind: str
    measures: tuple[Measure, ...]
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)

    @property
    def family(self) -> Family:
        """What is known of all statistics of its kind."""
        from dalenius.measuring.statistics import family_of

        return family_of(self.kind)

    @property
    def statement(self) -> str:
        """The kind of SELECT that gives its measures: one for all of them, where their factor is worked out."""
        (found,) = {each.primitive.statement for each in self.measures}
        return found


@dataclass(frozen=True, slots=True)
class SelectionPlan:
    """Keys that are not public are found first, by weighted set union (`mechanisms.key_selection`).

    ``cap``: a unit weighs on at most so many keys. ``units``: so many must surely be in a group that is released.
    ``share``: the part of the question's price that the search gets. ``sets``: the grouping sets whose keys are found;
    those of all others are public.
    """

    cap: int
    units: int = 0
    share: Fraction = Fraction(1, 2)
    sets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run: whose rows, which groups, which exact integers, and what noise they get.

    Attributes:
        question: What it answers.
        where: Which rows count, made total.
        keys: What they are grouped by, made total; with grouping sets, the set's number first (`rules.sets`).
        cells: The groups, all of them public, in the order of the answer; one empty cell without keys.
        selection: How the groups are found where they are not public; there are no cells until then, but those of
            grouping sets whose groups are public.
        groups: A unit counts in at most so many of them, in each grouping set; None: in all.
        statistics: What is measured.
        answers: Which statistic, and what of it, gives each aggregate.
        norm: "l2" (discrete Gaussian noise, zCDP) or "l1" (discrete Laplace, pure).
        periods: The budget's periods that pay for it: those that it reads, and those in which these rows were before.
        sets: The different grouping sets, by places of the question's keys; none where there is one only.
    """

    question: Question
    where: Expression
    keys: tuple[Expression, ...]
    cells: tuple[tuple[Scalar, ...], ...]
    groups: int | None
    statistics: tuple[Statistic, ...]
    answers: Mapping[Aggregate, int]
    norm: str
    periods: tuple[str, ...] = ("",)
    selection: SelectionPlan | None = None
    notes: tuple[str, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    _told: dict[str, tuple[object, str]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def table(self) -> Table:
        """The table it asks about."""
        return self.question.table

    @property
    def neighbors(self) -> Neighbors:
        """Which two tables the guarantee compares."""
        return self.table.budget.neighbors

    @property
    def measures(self) -> tuple[Measure, ...]:
        """All measures, in order."""
        return tuple(measure for statistic in self.statistics for measure in statistic.measures)

    @property
    def searched(self) -> tuple[int, ...]:
        """The numbers of the measures whose clip the question finds itself, before it measures."""
        return tuple(number for number, each in enumerate(self.measures) if each.search)

    def start(self, number: int) -> int:
        """Where the measures of a statistic begin."""
        return sum(len(each.measures) for each in self.statistics[:number])

    def numbers(self, statements: Container[str]) -> tuple[int, ...]:
        """The numbers of the measures that some kinds of statement give."""
        return tuple(at for at, each in enumerate(self.measures) if each.primitive.statement in statements)

    def only(self, statements: Container[str]) -> Plan:
        """The plan with those statistics alone that some kinds of statement give."""
        found = tuple(each for each in self.statistics if each.statement in statements)
        return replace(self, statistics=found, answers={})

    def canonical(self) -> str:
        """What decides the exact integers and how the price is split: equal meaning, equal text.

        Names, order, HAVING, ORDER BY and LIMIT are not in it: they are done with what was released.
        """
        lines = [
            self.table.relation.titled(),
            f"where {written(self.where)}",
            f"keys {', '.join(map(written, self.keys))}",
            f"cells {self._cells()}",
            f"groups {self.groups}",
            f"norm {self.norm}",
            f"periods {' '.join(self.periods)}",
        ]
        for statistic in self.statistics:
            lines.append(statistic.kind)
            lines.extend("  " + measure.written() for measure in statistic.measures)
        return "\n".join(lines)

    def _cells(self) -> str:
        if self.selection is not None:
            sets = f" sets {self.selection.sets}" if self.sets else ""
            return f"found cap {self.selection.cap} units {self.selection.units} share {self.selection.share}{sets}"
        # Plans that are made of one another have the same cells, and may have many: they are read once.
        cells, told = self._told.get("cells", (None, ""))
        if cells is not self.cells:
            told = f"{len(self.cells)} {hashlib.sha256(repr(self.cells).encode()).hexdigest()[:16]}"
            self._told["cells"] = self.cells, told
        return told

    def key(self, data_version: int | str) -> str:
        """The key of stored answers: canonical plan, meaning of the policy, data version."""
        parts = (self.canonical(), self.table.meaning, str(data_version))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


T = TypeVar("T")


def require(part: T | None) -> T:
    """What an earlier pass has filled in."""
    if part is None:
        raise RuntimeError("A pass ran before the one that it needs.")
    return part
