"""A question with an outer part, as one asker may ask it: what is planned, and what is computed from the release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import DaleniusError, InputError
from dalenius.measuring.fairness import patiently
from dalenius.queries.outer.cutting import has_windows
from dalenius.queries.outer.joint import share_equally
from dalenius.queries.outer.naming import Known
from dalenius.queries.outer.splitting import Split, may_split, split_tree
from dalenius.queries.outer.trees import sources_of
from dalenius.queries.planning import OpenTables, Planned, plan_ask
from dalenius.queries.rules.clamp import no_place
from dalenius.queries.rules.clause import cut_clause
from dalenius.queries.rules.parse import parse_sql, too_deep
from dalenius.queries.rules.spelling.windows import regroup
from dalenius.queries.rules.whole import check_whole, spell_formats
from dalenius.releasing.opened import Opened

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan
    from dalenius.measuring.public import PublicTable
    from dalenius.queries.ask import Ask
    from dalenius.releasing.leaving import Asker


@dataclass(frozen=True)
class OuterPlanned:
    """A question whose answer is computed from releases.

    Attributes:
        inners: What each release of the outer part is planned as, in its order.
        reads: By which of the `parts` each of them is answered.
        split: The outer part.
        publics: The public tables that it reads besides.
    """

    inners: tuple[Planned, ...]
    reads: tuple[int, ...]
    split: Split
    publics: tuple[PublicTable, ...]

    @property
    def parts(self) -> tuple[Planned, ...]:
        """What is asked: the same question once, in whatever words."""
        return tuple(self.inners[self.reads.index(each)] for each in range(max(self.reads) + 1))


def plan_any(
    asker: Asker,
    ask: Ask,
    *,
    expecting: bool = False,
    opened: Opened | None = None,
    among: OpenTables | None = None,
) -> Planned | OuterPlanned:
    """The plan of a question: the usual one, or that of what its answer is computed from. Never touches the data.

    The usual way comes first: whatever it takes means what it always did. ``opened``, ``among``: what is open to the
    asker, where that was looked up just now.
    """
    with patiently():  # all attempts together
        try:
            return _plan_any(asker, ask, among or OpenTables.of(asker, opened), expecting=expecting)
        except RecursionError:  # names of WITH that stand for one another, hundreds of times
            raise too_deep() from None


def _plan_any(asker: Asker, ask: Ask, among: OpenTables, *, expecting: bool) -> Planned | OuterPlanned:
    tree: Any = regroup(parse_sql(ask.question))
    splits = may_split(tree)
    if splits and has_windows(tree):  # which no row may have: the usual way has an end there
        return _plan_split(asker, ask, among, tree, expecting=expecting)
    try:
        return plan_ask(asker, ask, expecting=expecting, among=among, tree=tree.copy() if splits else tree)
    except DaleniusError as error:
        if not splits:
            raise
        usual = error
    try:
        return _plan_split(asker, ask, among, tree, expecting=expecting)
    except DaleniusError as error:
        # Of a question about rows, the usual way says what is wrong, and where.
        raise usual if _reads_rows(tree) else error from None


def _reads_rows(tree: Any) -> bool:
    """Whether a question is one SELECT whose own FROM has no SELECT in it."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or tree.args.get("distinct") or tree.args.get("with_"):
        return False
    return not any(isinstance(each, exp.Subquery) for each in sources_of(tree))


def _plan_split(asker: Asker, ask: Ask, among: OpenTables, tree: Any, *, expecting: bool) -> OuterPlanned:
    found: dict[int, Planned] = {}
    bounded: dict[int, set[Any]] = {}  # where what is asked stands in the text
    inner = replace(ask, error=None)

    def plan(part: Any) -> Plan:
        starts = {each.meta.get("start") for each in part.walk()}
        planned = plan_ask(asker, inner, expecting=expecting, among=among, tree=part)
        found[id(planned.plan)], bounded[id(planned.plan)] = planned, starts
        return planned.plan

    _, options = cut_clause(ask.question)
    spell_formats(tree)
    split = split_tree(tree, ask.question, _known(among), plan, frozenset(options.clamps), previews=expecting)
    check_whole(split.outer.tree, ask.question)
    asked = set[Any]().union(*(bounded[id(each.plan)] for each in split.inners))
    for at, clamps in options.clamps.items():
        if at not in asked:  # of a window, which bounds nobody
            raise no_place(clamps[0])
    if ask.error is not None:
        raise InputError(
            "An error cannot be asked for here.",
            why=f"{_computed(split)} computed from a release: how exact that will be is not known before.",
            fix="Give an epsilon; or ask with this error for the aggregates alone, without windows and outer SELECTs. "
            "Then ask this question at the price that was paid: it is free.",
        )
    inners = tuple(_labelled(found[id(each.plan)], each.labels) for each in split.inners)
    keys = [each.plan.key(each.snapshot.data_version) for each in inners]
    places = {key: at for at, key in enumerate(sorted(set(keys)))}
    if len(places) > 1:
        finding = len({key for key, each in zip(keys, inners, strict=True) if each.plan.selection is not None})
        inners = tuple(share_equally(each, len(places), max(finding, 1)) for each in inners)
    publics = tuple(among.publics[name] for name in sorted(split.publics))
    return OuterPlanned(inners, tuple(places[key] for key in keys), split, publics)


def _computed(split: Split) -> str:
    """The columns that are no release's own, in words."""
    names = [each.name for each in split.outer.columns if each.origin is None and not each.exact]
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}" if 0 < len(names) < 4 else "The answer is"


def _labelled(planned: Planned, labels: Sequence[str]) -> Planned:
    """A question whose columns are called as people know them, for notes; they are never looked for by name."""
    plan, question = planned.plan, planned.plan.question
    outputs = tuple(replace(each, name=label) for each, label in zip(question.outputs, labels, strict=True))
    plan = replace(plan, question=replace(question, outputs=outputs))
    expectations = planned.expectations and replace(planned.expectations, plan=plan, prices={})
    return replace(planned, plan=plan, expectations=expectations)


def _known(among: OpenTables) -> Known:
    protected = {name.lower(): frozenset(_columns_of(table)) for name, table in among.tables.items()}
    publics = {name.lower(): (name, _names_of(among.publics, name)) for name in among.publics}
    return Known(protected, publics)


def _columns_of(table: Any) -> Iterator[str]:
    yield from (each.lower() for each in (*table.policy.columns, *table.policy.unit))


def _names_of(publics: Mapping[str, PublicTable], name: str) -> Any:
    return lambda: tuple(publics[name].types)
