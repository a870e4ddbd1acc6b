"""What the names in a question stand for: queries of WITH, public tables, protected ones; and what those give.

A query gives rows of people, aggregates of them, or neither. Names are seen as SQL has them: those of a WITH in what
follows it and in its query, hidden by nobody, as a name that is given twice is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.measuring.fairness import check_patience
from dalenius.queries.outer import words
from dalenius.queries.outer.cutting import aggregates
from dalenius.queries.outer.trees import is_plain, listed, sources_of, speaks_of, values_in

if TYPE_CHECKING:
    from dalenius.queries.outer.sources import Source

ROWS, GATHERED, FREE = "rows", "gathered", "free"  # rows of people; aggregates, of a unit or of many; neither


@dataclass(frozen=True)
class Known:
    """What tables there are: their columns, by the names of the tables in lower case."""

    protected: Mapping[str, frozenset[str]]
    publics: Mapping[str, tuple[str, Callable[[], tuple[str, ...]]]]


@dataclass
class Common:
    """A query that a WITH names, with the names that it sees itself."""

    tree: Any
    names: tuple[str, ...]
    sees: Mapping[str, Common]
    source: Source | None = None
    kind: str = ""
    shown: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Names:
    """The names of one question.

    Attributes:
        text: The question, for places in it.
        known: What tables there are.
    """

    text: str
    known: Known

    def seen(self, tree: Any, sees: Mapping[str, Common]) -> Mapping[str, Common]:
        """The names that hold inside a query."""
        with_ = tree.args.get("with_")
        if with_ is None:
            return sees
        if with_.args.get("recursive") and any(speaks_of(each.this, each.alias) for each in with_.expressions):
            raise words.refuse_recursion(tree, self.text)
        found = dict(sees)
        for each in with_.expressions:
            if each.alias.lower() in found:
                raise words.refuse_twice(each.alias, each, self.text)
            columns = tuple(one.name for one in each.args["alias"].args.get("columns") or ())
            found[each.alias.lower()] = Common(each.this, columns, dict(found))
        return found

    def used(self, tree: Any, sees: Mapping[str, Common]) -> list[tuple[str, Common]]:
        """The queries of a WITH that a SELECT of rows needs, in their order."""
        from sqlglot import exp

        wanted, waiting = set[str](), [(tree, sees)]
        while waiting:
            query, seen = waiting.pop()
            for table in query.find_all(exp.Table):
                common = seen.get(table.name.lower()) if is_plain(table) else None
                if common is not None and table.name.lower() not in wanted:
                    wanted.add(table.name.lower())
                    waiting.append((common.tree, common.sees))
        return [(name, common) for name, common in sees.items() if name in wanted]

    def kind(self, node: Any, sees: Mapping[str, Common]) -> str:
        """What a query, or a source in FROM, gives."""
        from sqlglot import exp

        check_patience()
        if isinstance(node, exp.Table):
            name = node.name.lower()
            if name in sees and not is_plain(node):  # is it the table that is meant, or what WITH calls so?
                raise words.refuse_unread(node, self.text)
            if is_plain(node) and name in sees:
                common = sees[name]
                common.kind = common.kind or self.kind(common.tree, common.sees)
                return common.kind
            return FREE if is_plain(node) and name in self.known.publics else ROWS
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            return ROWS
        if isinstance(node, exp.Query):
            sees = self.seen(node, sees)
        if isinstance(node, exp.Subquery):
            return self.kind(node.this, sees)
        if isinstance(node, exp.SetOperation):
            return _most(self.kind(node.this, sees), self.kind(node.expression, sees))
        if not isinstance(node, exp.Select):
            return FREE
        found = _most(*(self.kind(each, sees) for each in sources_of(node)))
        if found == ROWS and (aggregates(node) or node.args.get("distinct")):
            return GATHERED
        values = [
            self.kind(each, sees) for part in node.args.values() for one in listed(part) for each in values_in(one)
        ]
        return GATHERED if found == FREE and any(each != FREE for each in values) else found

    def in_view(self, select: Any, sees: Mapping[str, Common]) -> frozenset[str]:
        """The names of all columns of a SELECT's FROM, in lower case."""
        return frozenset(name for node in sources_of(select) for name in self.names_of(node, sees))

    def names_of(self, node: Any, sees: Mapping[str, Common]) -> Iterator[str]:
        """The names of the columns of a query, or of a source in FROM."""
        from sqlglot import exp

        check_patience()
        alias = node.args.get("alias")
        given = [each.name.lower() for each in (alias.args.get("columns") if alias is not None else None) or ()]
        if given:
            yield from given
        elif isinstance(node, exp.Table):
            name = node.name.lower()
            if name in sees:
                common = sees[name]
                if common.shown is None:
                    common.shown = common.names or tuple(self.names_of(common.tree, common.sees))
                yield from map(str.lower, common.shown)
            elif name in self.known.protected:
                yield from self.known.protected[name]
            elif name in self.known.publics:
                yield from (each.lower() for each in self.known.publics[name][1]())
        elif isinstance(node, exp.Subquery | exp.SetOperation):
            yield from self.names_of(node.this, self.seen(node, sees))
        elif isinstance(node, exp.Select):
            for each in node.expressions:
                if each.find(exp.Star) is not None and not isinstance(each, exp.Alias):
                    yield from self.in_view(node, self.seen(node, sees))
                else:
                    yield each.alias_or_name.lower()


def _most(*kinds: str) -> str:
    return next((each for each in (ROWS, GATHERED) if each in kinds), FREE)
