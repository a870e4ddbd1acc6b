"""Two tables, one path: parents, and children whose rows lead to them. What is read of each, as relations.

Of parents, every row with the number of its children; of children, every row with its parent's columns. Both are
relations whose rows belong to one unit each (`measuring.relations`): a path leads from a child to one parent, and both
to one unit. So whatever is counted of either is clipped and hidden as rows of one table are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from dalenius.errors import InputError
from dalenius.measuring.batches import MOST_ROWS
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import TRUE, Aggregate, Expression, Type
from dalenius.measuring.expressions import Column as Read
from dalenius.measuring.plan import Table
from dalenius.measuring.relations import Join, Owned, PerUnit, Relation, full, identities_of
from dalenius.synthesis.modelled import Modelled
from dalenius.synthesis.policy_domain import undeclared
from dalenius.tables.policy import Bounds, Column, Hop, Kind

PARENT, CHILD, COUNT = "parent", "child", "children.a0"
_COUNTED, _KEY = "children", "k0"
MOST_MATCHED, MOST_PROFILES = 3, 256  # of columns by which children are given to parents, and what these tell apart


@dataclass(frozen=True)
class Related:
    """Two tables that belong together.

    Attributes:
        parents: The table that the path leads to.
        children: The table whose path begins with ``hop``.
        hop: From a child to its parent.
        tables: All of the data set, by name.
    """

    parents: Table
    children: Table
    hop: Hop
    tables: Mapping[str, Table]

    @classmethod
    def of(cls, parents: Table, children: Table, tables: Mapping[str, Table]) -> Related:
        """Refused where no path leads from one to the other."""
        path = children.policy.path
        if not path or path[0].table.lower() != parents.policy.name.lower():
            raise InputError(
                f"No path leads from {children.policy.name!r} to {parents.policy.name!r}.",
                why="A row of the one must say which row of the other it belongs to.",
                fix=f"Have the owner declare unit = {{ path = … }} in {children.policy.name!r}, or ask for each alone.",
            )
        return cls(parents, children, path[0], tables)

    @property
    def with_counts(self) -> Table:
        """Parents, each with the number of its children; NULL: it has none."""
        inner = Relation((Join(Owned(CHILD, self.children, identities_of(self.children, self.tables))),))
        link = f"{self.hop.table.lower()}.{self.hop.key}"
        counts = PerUnit(
            _COUNTED,
            inner,
            (Read(f"{CHILD}.{self.hop.column}", Type.UNIT),),
            (Aggregate("count", None, TRUE),),
            {_KEY: Column(_KEY, Kind.TEXT), "a0": Column("a0", Kind.INTEGER, Bounds(1, self.most), Fraction(1))},
            {_KEY: frozenset({link})},
            None,
        )
        on = _equal(f"{PARENT}.{self.hop.key}", f"{_COUNTED}.{_KEY}")
        return _made(self.parents, Relation((Join(self._parents), Join(counts, True, on))))

    @property
    def most(self) -> int:
        """So many children a parent may have: as many as one unit's rows count for."""
        declared, found = self.children.policy.contribution.rows, self.children.found
        return declared or (max(1, found.rows) if found is not None else MOST_ROWS)

    @property
    def with_parents(self) -> Table:
        """Children, each with the columns of its parent."""
        children = Owned(CHILD, self.children, identities_of(self.children, self.tables))
        on = _equal(f"{CHILD}.{self.hop.column}", f"{PARENT}.{self.hop.key}")
        return _made(self.children, Relation((Join(children), Join(self._parents)), on))

    @property
    def _parents(self) -> Owned:
        return Owned(PARENT, self.parents, identities_of(self.parents, self.tables))

    def columns(self, of: str) -> list[str]:
        """The columns of one of the two that can be modelled, by the names that the relations have for them."""
        table = self.parents if of == PARENT else self.children
        return [f"{of}.{name}" for name, each in table.policy.columns.items() if not self._left_out(table, each)]

    @property
    def left_out(self) -> dict[str, str]:
        """Those that cannot, each with what must be declared."""
        return {
            f"{table.policy.name}.{name}": undeclared(each)
            for table in (self.parents, self.children)
            for name, each in table.policy.columns.items()
            if undeclared(each) and name not in self._hidden(table)
        }

    def matched(self, chosen: Sequence[str]) -> tuple[str, ...]:
        """The parents' columns by which children are given to them: those chosen, or a few that have few values."""
        columns = self.with_counts.policy.columns
        every = [Modelled.of(columns[name]) for name in self.columns(PARENT)]
        settled = {each.name.removeprefix(f"{PARENT}."): each.column.size for each in every if not each.sought}
        if chosen:
            unknown = [name for name in chosen if name not in settled]
            if unknown or len(chosen) > MOST_MATCHED or prod(settled[name] for name in chosen) > MOST_PROFILES:
                raise InputError(
                    "Children cannot be given to parents by these columns.",
                    why=f"It takes up to {MOST_MATCHED} columns of {self.parents.policy.name!r} whose values are all "
                    f"declared, with {MOST_PROFILES} values together at most.",
                    fix=f"Choose among {', '.join(settled)}." if settled else "Have the owner declare keys.",
                )
            return tuple(chosen)
        found, together = list[str](), 1
        for name in sorted(settled, key=lambda name: settled[name]):
            if settled[name] > 1 and len(found) < MOST_MATCHED and together * settled[name] <= MOST_PROFILES:
                found.append(name)
                together *= settled[name]
        return tuple(found)

    def _left_out(self, table: Table, column: Column) -> bool:
        return bool(undeclared(column)) or column.name in self._hidden(table)

    def _hidden(self, table: Table) -> frozenset[str]:
        """Columns that say who somebody is, or which row a row belongs to."""
        return frozenset(identities_of(table, self.tables))


def _equal(one: str, other: str) -> Expression:
    return call("eq", Read(one, Type.UNIT), Read(other, Type.UNIT))


def _made(table: Table, relation: Relation) -> Table:
    """A relation as one table, with the limits of the one whose rows it has.

    No join leaves out a column of either table: where a value was absent, its default stands, as in the table itself.
    """
    columns = dict(relation.columns)
    columns |= {
        full(source, name): replace(each, name=full(source, name))
        for source in relation.sources
        if isinstance(source, Owned)
        for name, each in source.columns.items()
    }
    policy = replace(table.policy, path=(), unit=("unit",), columns=columns)
    return replace(table, policy=policy, through={}, made_of=relation)
