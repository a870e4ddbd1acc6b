"""Which SELECTs of a question are asked, and what is computed from their releases.

From the top, as long as no row is read: a SELECT that aggregates rows is cut in two (`cutting`) if the usual reader
takes its inner part. Subqueries that group by the unit are then within it, as ever. Otherwise what stands in its FROM
must be released itself. A SELECT that reads rows and does not aggregate them is refused; so nothing that a query of the
outer part reads is a row, by construction: its FROM has releases, public tables and lists of constants in it.

Each name of a WITH that is used becomes one query of the outer part, called by a new name, so that no name of the text
can mean anything else there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from dalenius.errors import DaleniusError
from dalenius.measuring.fairness import check_patience
from dalenius.queries.outer import words
from dalenius.queries.outer.checks import check_limit, check_reads, check_source, check_windows
from dalenius.queries.outer.columns import describe_select, describe_union, name_natural
from dalenius.queries.outer.cutting import aggregates, cut_select, has_windows
from dalenius.queries.outer.naming import FREE, ROWS, Common, Known, Names
from dalenius.queries.outer.sources import OuterQuery, Source
from dalenius.queries.outer.trees import ended_apart, is_plain, listed, sources_of, values_in
from dalenius.queries.public_questions import check_tree
from dalenius.queries.rules.derived import NOT_WITHIN
from dalenius.queries.rules.parse import check_depth

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan

MOST_PARTS = 8  # SELECTs that are asked together
MOST_NODES = 50_000  # of all queries of the outer part together, those of failed attempts among them
_MOST_TRIES = 4 * MOST_PARTS  # SELECTs that are tried as one to ask


@dataclass(frozen=True)
class Inner:
    """A SELECT that is asked: its plan, and what its release is called in the outer part, and its columns to people."""

    name: str
    plan: Plan
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """A question, split.

    Attributes:
        inners: What is asked.
        outer: What is computed from it.
        publics: The public tables that this reads besides, as they are spelled.
    """

    inners: tuple[Inner, ...]
    outer: OuterQuery
    publics: frozenset[str]


def may_split(tree: Any) -> bool:
    """Whether a text has anything in it that could be computed from a release."""
    from sqlglot import exp

    if not isinstance(tree, exp.Query):
        return False
    inner = any(isinstance(each, exp.Query) and each is not tree for each in tree.walk())
    return inner or has_windows(tree) or bool(tree.args.get("distinct"))


def split_tree(
    tree: Any,
    text: str,
    known: Known,
    plan: Callable[[Any], Plan],
    clamps: frozenset[int],
    *,
    previews: bool = False,
) -> Split:
    """The question in two parts.

    Args:
        tree: The syntax tree.
        text: The question, for places in it.
        known: What tables there are.
        plan: The usual way of one aggregated SELECT; raises for what cannot be asked.
        clamps: Where aggregates stand that have contribution bounds.
        previews: Nothing is computed, so that no errors are either.
    """
    splitter = _Splitter(text, Names(text, known), plan, clamps, not previews)
    top = splitter.released(tree, {}, top=True)
    if not splitter.inners:
        raise words.refuse_without_release(tree, text)
    found = Split(tuple(splitter.inners), top.within(splitter.commons), frozenset(splitter.publics))
    names = {*(each.name for each in found.inners), *(name for name, _ in splitter.commons), *found.publics}
    check_reads(found.outer.tree, names, text)
    check_tree(found.outer.tree, text)
    return found


@dataclass
class _Splitter:
    text: str
    names: Names
    plan: Callable[[Any], Plan]
    clamps: frozenset[int]
    errors: bool
    inners: list[Inner] = field(default_factory=list)
    commons: list[tuple[str, OuterQuery]] = field(default_factory=list)
    publics: set[str] = field(default_factory=set)
    resolved: list[Common] = field(default_factory=list)  # whose source is known, in the order in which it became so
    numbers: Iterator[int] = field(default_factory=count)  # of names: what was taken back leaves none to another
    tries: int = 0
    nodes: int = 0

    # --- one query of the outer part

    def released(self, tree: Any, sees: Mapping[str, Common], *, top: bool = False, value: bool = False) -> OuterQuery:
        """A query whose rows are released ones; ``value``: its columns are a value, and no more may be added."""
        check_patience()
        found = self.described(tree, sees, top=top, value=value)
        self.nodes += sum(1 for _ in found.tree.walk())
        if self.nodes > MOST_NODES:
            raise words.refuse_large(tree, self.text, MOST_NODES)
        return found

    def described(self, tree: Any, sees: Mapping[str, Common], *, top: bool, value: bool) -> OuterQuery:
        """The same, whatever its size."""
        from sqlglot import exp

        sees = self.names.seen(tree, sees)
        if isinstance(tree, exp.Subquery):
            tree = ended_apart(tree)
        if isinstance(tree, exp.Subquery):
            check_source(tree, self.text)
            return self.released(tree.this, sees, top=top, value=value)
        if isinstance(tree, exp.SetOperation):
            check_limit(tree, self.text)
            parts = [self.released(each, sees) for each in (tree.this, tree.expression)]
            return describe_union(tree, parts, value=value)
        if not isinstance(tree, exp.Select):
            raise words.refuse_unread(tree, self.text)
        check_limit(tree, self.text)
        check_windows(tree, self.text)
        if tree.args.get("joins") and tree.args.get("from_") is None:
            raise words.refuse_unread(tree.args["joins"][0], self.text)
        kinds = [self.names.kind(each, sees) for each in sources_of(tree)]
        failed: DaleniusError | None = None
        if aggregates(tree) and any(each != FREE for each in kinds):
            for small in (False, True):
                try:
                    with self.attempt():
                        return self.cut(tree, sees, value=value, small=small)
                except DaleniusError as error:
                    failed = failed or error
        if ROWS in kinds:
            raise failed or self.refusal(tree, sees, top=top)
        try:
            with self.attempt():
                return self.over(tree, sees, value=value)
        except DaleniusError as error:
            # Where groups were of one unit each, what is wrong is wrong in the SELECT around.
            raise error if failed is None or failed.message == NOT_WITHIN else failed from None

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """What fails leaves nothing behind: no release, no query, and no name of WITH that stands for one of them."""
        inners, commons, resolved = len(self.inners), len(self.commons), len(self.resolved)
        publics = set(self.publics)
        try:
            yield
        except DaleniusError:
            for each in self.resolved[resolved:]:
                each.source = None
            del self.inners[inners:], self.commons[commons:], self.resolved[resolved:]
            self.publics = publics
            raise

    def refusal(self, select: Any, sees: Mapping[str, Common], *, top: bool) -> DaleniusError:
        """Why a SELECT of rows is none of a release: of tables that are not there, the usual reader says so."""
        from sqlglot import exp

        known = self.names.known
        for each in sources_of(select):
            odd = isinstance(each, exp.Table) and not (is_plain(each) and each.name.lower() in known.protected)
            if odd and each.name.lower() not in (*sees, *known.publics):
                try:
                    self.plan(exp.Select(expressions=[exp.Count(this=exp.Star())], from_=exp.From(this=each.copy())))
                except DaleniusError as error:
                    return error
        return words.refuse_rows(select, self.text, top=top)

    def cut(self, select: Any, sees: Mapping[str, Common], *, value: bool, small: bool) -> OuterQuery:
        """A SELECT that aggregates rows: its inner part is asked."""
        name = f"release {next(self.numbers)}"
        before = len(self.inners)
        self.tries += 1
        if before >= MOST_PARTS or self.tries > _MOST_TRIES:
            raise words.refuse_many(select, self.text, MOST_PARTS)
        self.inners.append(None)  # type: ignore[arg-type] # a place, for queries inside come after it
        view, nested = self.names.in_view(select, sees), self.value_in(sees)
        found = cut_select(select, name, view, nested, self.clamps, small=small)
        check_depth(found.inner)
        check_depth(found.outer)
        _attach(found.inner, self.names.used(found.inner, sees))
        plan = self.plan(found.inner)
        self.inners[before] = Inner(name, plan, found.labels)
        return describe_select(found.outer, [Source.of_release(name, before, plan)], value=value, errors=self.errors)

    def over(self, select: Any, sees: Mapping[str, Common], *, value: bool) -> OuterQuery:
        """A SELECT over releases and public tables."""
        from sqlglot import exp

        found = select.copy()
        found.set("with_", None)
        sources = []
        for node in sources_of(found):
            source, rewritten = self.source(node, sees)
            sources.append(source)
            node.replace(rewritten)
        name_natural(found, sources)
        nested = self.value_in(sees)
        for part in ("expressions", "where", "group", "having", "qualify", "order", "windows", "distinct", "joins"):
            for each in listed(found.args.get(part)):
                for query in list(values_in(each)):
                    query.replace(nested(query))
        if any(isinstance(each, exp.Lateral) for each in found.walk()):
            raise words.refuse_unread(select, self.text)
        return describe_select(found, sources, value=value, errors=self.errors)

    def source(self, node: Any, sees: Mapping[str, Common]) -> tuple[Source, Any]:
        """What stands in FROM: its columns, and how it is written in the outer part."""
        from sqlglot import exp

        check_source(node, self.text)
        alias = node.args.get("alias")
        names = tuple(each.name for each in (alias.args.get("columns") if alias is not None else None) or ())
        if isinstance(node, exp.Table) and is_plain(node):
            shown, common = node.alias_or_name, sees.get(node.name.lower())
            if common is not None:
                source = self.common(common).named(shown, names)
                return source, source.table()
            if node.name.lower() in self.names.known.publics:
                spelled, columns = self.names.known.publics[node.name.lower()]
                self.publics.add(spelled)
                source = Source.of_public(spelled, columns()).named(shown, names)
                return source, source.table()
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            shown = node.alias or f"subquery {next(self.numbers)}"
            source = self.common(Common(node.this, (), sees)).named(shown, names)
            return source, source.table()
        if isinstance(node, exp.Values) and node.alias and names:
            return Source.of_values(node.alias, names), node.copy()
        raise words.refuse_unread(node, self.text)

    def common(self, common: Common) -> Source:
        """A query of a WITH, or a subquery: written once, however often it is used."""
        if common.source is None:
            found = self.released(common.tree, common.sees)
            name = f"query {next(self.numbers)}"
            self.commons.append((name, found))
            common.source = Source.of_query(name, found, common.names)
            self.resolved.append(common)
        return common.source

    def value_in(self, sees: Mapping[str, Common]) -> Callable[[Any], Any]:
        """Rewrites queries that stand for values."""
        from sqlglot import exp

        def rewritten(query: Any) -> Any:
            tree = self.released(query, sees, value=True).tree
            return exp.Subquery(this=tree) if isinstance(query, exp.Subquery) else tree

        return rewritten


def _attach(select: Any, used: list[tuple[str, Common]]) -> None:
    """Gives a SELECT the queries of WITH that it needs."""
    from sqlglot import exp

    if not used:
        return
    ctes = []
    for name, common in used:
        columns = [exp.to_identifier(each, quoted=True) for each in common.names]
        alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=columns)
        ctes.append(exp.CTE(this=common.tree.copy(), alias=alias))
    select.set("with_", exp.With(expressions=ctes))
