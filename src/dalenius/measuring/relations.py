"""Several tables as one: rows that belong to one unit each, made of that unit's own rows and of public tables.

Let D_u be the rows of unit u in all tables of a data set. A relation R here is *separable*: R(D) is the union, over all
units u, of R(D_u), whatever R does within one unit. Adding or removing a unit then adds or removes its own rows of the
relation and touches no other, so everything that holds for the rows of one table holds for those of a relation: what a
unit adds is clipped as a whole (`measures`), however often a join repeated its rows.

Filters, joins with public tables, joins and [anti-]semi-joins *on equal units*, sums and row numbers within one unit
and UNION ALL keep a relation separable. The statement that is run (`statements.relation`) compares the units of every
two protected tables itself, whatever the question says about them; that a question means the same is checked before
(`rules.joins`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from dalenius.measuring.expressions import TRUE, Aggregate, Expression, written
from dalenius.measuring.functions import ranges_of
from dalenius.tables import policy as tables

if TYPE_CHECKING:
    from dalenius.measuring.plan import Table
    from dalenius.measuring.public import PublicTable

# For each column that says whose a row is, what it names: "unit 0", or a key that leads to a unit ("orders.o_orderkey")
Identities: TypeAlias = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Owned:
    """A protected table in FROM. ``name`` tells its columns from those of other tables; "": it is the only one.

    ``called`` is what the question calls it; it is for people, and has no part in what a plan means.
    """

    name: str
    table: Table
    identities: Identities = field(default_factory=dict)
    called: str = field(default="", compare=False)

    @property
    def columns(self) -> Mapping[str, tables.Column]:
        """What may be asked about."""
        return self.table.policy.columns

    def written(self) -> str:
        """In the fixed notation."""
        return self.table.policy.name


@dataclass(frozen=True)
class Open:
    """A public table in FROM; ``called`` as of `Owned`."""

    name: str
    table: PublicTable
    identities: Identities = field(default_factory=dict)
    called: str = field(default="", compare=False)

    @property
    def columns(self) -> Mapping[str, tables.Column]:
        """All of them."""
        return self.table.columns

    def written(self) -> str:
        """In the fixed notation."""
        return f"public {self.table.name}"


@dataclass(frozen=True)
class PerUnit:
    """A subquery that groups by unit: one row per unit, or per unit and further keys.

    ``columns`` are k0, k1 … for the keys and a0, a1 … for the aggregates.
    """

    name: str
    relation: Relation
    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    columns: Mapping[str, tables.Column]
    identities: Identities
    rows: int | None  # of one unit, at most, as far as limits are concerned

    def written(self) -> str:
        """In the fixed notation."""
        keys, aggregates = (", ".join(map(written, each)) for each in (self.keys, self.aggregates))
        ends = (f"{name} {each.bounds.low}..{each.bounds.high}" for name, each in self.columns.items() if each.bounds)
        return f"({self.relation.written()} by {keys} giving {aggregates} within {', '.join(ends)})"


@dataclass(frozen=True)
class Stacked:
    """UNION ALL: the rows of several relations below one another, their columns named c0, c1 and on.

    ``shown`` are the names that the question has for them, for people.
    """

    name: str
    parts: tuple[tuple[Relation, tuple[Expression, ...]], ...]
    columns: Mapping[str, tables.Column]
    identities: Identities
    rows: int | None
    shown: tuple[str, ...] = field(default=(), compare=False)

    def written(self) -> str:
        """In the fixed notation."""
        shown = (f"{one.written()} giving {', '.join(map(written, values))}" for one, values in self.parts)
        return f"({' union all '.join(sorted(shown))})"


@dataclass(frozen=True)
class Numbering:
    """ROW_NUMBER() within one unit: by which keys besides, and in which order.

    Attributes:
        keys: What else rows must have in common to be counted together.
        order: Expressions, each with whether it descends, and whether NULL comes first.
        most: Rows with higher numbers are not there; None: all are.
    """

    keys: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool], ...]
    most: int | None = None

    @property
    def read(self) -> tuple[Expression, ...]:
        """What is worked out for a row."""
        return (*self.keys, *(each for each, _, _ in self.order))

    def written(self) -> str:
        """In the fixed notation."""
        order = (f"{written(one)}{' desc' * down}{' nulls first' * first}" for one, down, first in self.order)
        return f"numbered by {', '.join(map(written, self.keys))} in order of {', '.join(order)} up to {self.most}"


@dataclass(frozen=True)
class Numbered(Stacked):
    """The rows of one relation with the number that each has among those of its unit, in column n0.

    Rows that the order leaves equal are put in the order of all that is in them, so that a row's number is a function
    of its unit's own rows: those that still tie are alike in everything that can be asked of them. A relation stays
    separable.
    """

    numbering: Numbering = field(default_factory=lambda: Numbering((), ()))

    def written(self) -> str:
        """In the fixed notation."""
        return f"({super().written()} {self.numbering.written()})"


Source: TypeAlias = Owned | Open | PerUnit | Stacked


@dataclass(frozen=True)
class Join:
    """A source, and how it is joined. LEFT joins have their condition; all others stand in `Relation.where`."""

    source: Source
    left: bool = False
    on: Expression = TRUE

    def written(self) -> str:
        """In the fixed notation."""
        shown = f"{self.source.written()} as {self.source.name}"
        return f"left {shown} on {written(self.on)}" if self.left else shown


@dataclass(frozen=True)
class Match:
    """EXISTS or NOT EXISTS: whether a relation has a row, of the same unit where it has units at all."""

    relation: Relation
    negated: bool

    def written(self) -> str:
        """In the fixed notation."""
        return f"{'not ' if self.negated else ''}exists ({self.relation.written()})"


@dataclass(frozen=True)
class Relation:
    """Sources joined, filtered and matched; all conditions are total."""

    joins: tuple[Join, ...]
    where: Expression = TRUE
    matches: tuple[Match, ...] = ()

    @property
    def sources(self) -> tuple[Source, ...]:
        """What is joined."""
        return tuple(each.source for each in self.joins)

    @property
    def single(self) -> bool:
        """Whether it is one protected table and nothing else (`alone`), whose columns need no table's name."""
        return isinstance(self.joins[0].source, Owned) and not self.joins[0].source.name

    @cached_property
    def owner(self) -> Source | None:
        """The source that every row's unit is taken from: one that no LEFT join may leave out. None: all is public."""
        return next((each.source for each in self.joins if not each.left and not isinstance(each.source, Open)), None)

    @cached_property
    def columns(self) -> Columns:
        """The columns of all sources, by their full names."""
        return Columns(self.sources)

    def tables(self) -> Iterator[Table]:
        """Every protected table that is read, also those of paths, each once."""
        seen: set[str] = set()
        for table in self._tables():
            for each in (table, *table.through.values()):
                if each.policy.name not in seen:
                    seen.add(each.policy.name)
                    yield each

    def publics(self) -> Iterator[PublicTable]:
        """Every public table that is read, each once."""
        seen: set[str] = set()
        for relation in self.within():
            for source in relation.sources:
                if isinstance(source, Open) and source.table.name not in seen:
                    seen.add(source.table.name)
                    yield source.table

    def within(self) -> Iterator[Relation]:
        """The relation and all in it."""
        yield self
        for source in self.sources:
            if isinstance(source, PerUnit):
                yield from source.relation.within()
            elif isinstance(source, Stacked):
                for part, _ in source.parts:
                    yield from part.within()
        for match in self.matches:
            yield from match.relation.within()

    def _tables(self) -> Iterator[Table]:
        for relation in self.within():
            for source in relation.sources:
                if isinstance(source, Owned):
                    yield source.table

    def titled(self) -> str:
        """How a canonical plan begins: what its rows are."""
        return f"table {self.sources[0].written()}" if self.single else f"relation {self.written()}"

    def written(self) -> str:
        """In the fixed notation: equal texts mean equal relations. The order of inner joins does not matter."""
        inner = sorted(each.written() for each in self.joins if not each.left)
        left = [each.written() for each in self.joins if each.left]
        matches = sorted(each.written() for each in self.matches)
        return ", ".join([*inner, *left, f"where {written(self.where)}", *matches])


def alone(table: Table) -> Relation:
    """A protected table by itself, as a relation. What a question asks of its rows stays outside of it."""
    return Relation((Join(Owned("", table)),))


class Columns(Mapping[str, tables.Column]):
    """Columns of several sources. Those of public tables are looked up only when asked for: few are."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._held = {full(source, name): (source, name) for source in sources for name in source.columns}

    def __getitem__(self, name: str) -> tables.Column:
        source, short = self._held[name]
        # NULL stays NULL: a default has taken its place before, and a row that LEFT JOIN did not find has none.
        return replace(source.columns[short], name=name, default=None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    @property
    def kinds(self) -> dict[str, tables.Kind]:
        """The kind of each."""
        known = {id(source): source for source, _ in self._held.values()}
        kinds = {at: kinds_of(source) for at, source in known.items()}
        return {name: kinds[id(source)][short] for name, (source, short) in self._held.items()}

    @property
    def integers(self) -> frozenset[str]:
        """Those that hold whole numbers."""
        return frozenset(name for name, kind in self.kinds.items() if kind is tables.Kind.INTEGER)

    @property
    def ranges(self) -> Ranges:
        """The bounds of each number."""
        return Ranges(self)


class Ranges(Mapping[str, tuple[float, float]]):
    """The bounds of number columns, in doubles, looked up one by one."""

    def __init__(self, *columns: Mapping[str, tables.Column]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> tuple[float, float]:
        for columns in self._columns:
            if name in columns:
                return ranges_of({name: columns[name]})[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for columns in self._columns for name in columns if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def kinds_of(source: Source) -> Mapping[str, tables.Kind]:
    """The kind of each column of a source, without a look at public tables."""
    if isinstance(source, Open):
        return source.table.kinds
    return {name: each.kind for name, each in source.columns.items()}


def full(source: Source, name: str) -> str:
    """A column's name among those of all sources."""
    return f"{source.name}.{name}" if source.name else name


def identities_of(table: Table, others: Mapping[str, Table]) -> Identities:
    """What each column of a table names: a part of the unit, or a key that paths of its data set lead through.

    That a path agrees with those of the tables that it goes through is checked at `protect`.
    """
    policy, found = table.policy, dict[str, set[str]]()
    if policy.path:
        first = policy.path[0]
        found.setdefault(first.column, set()).add(f"{first.table.lower()}.{first.key}")
    else:
        for at, name in enumerate(policy.unit):
            found.setdefault(name, set()).add(f"unit {at}")
    for other in others.values():
        for hop in other.policy.path if other.policy.dataset == policy.dataset else ():
            if hop.table.lower() == policy.name.lower():
                found.setdefault(hop.key, set()).add(f"{hop.table.lower()}.{hop.key}")
    return {name: frozenset(each) for name, each in found.items()}


def same_unit(shared: set[str], parts: int) -> bool:
    """Whether two rows whose columns agree in what these name are of one unit: a key leads to it, or all parts do."""
    return any(not each.startswith("unit ") for each in shared) or all(f"unit {at}" in shared for at in range(parts))
