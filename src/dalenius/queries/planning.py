"""A question as one asker may ask it: over the tables that are open to it, planned and priced, without the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.accounting import parameters
from dalenius.errors import InputError
from dalenius.ledger.key_delta import Left
from dalenius.measuring.plan import Plan, Table
from dalenius.queries.own_answers import known_parts, own_answers
from dalenius.releasing.opened import Opened, check_open, tables_in, tables_of
from dalenius.releasing.snapshot import Snapshot

if TYPE_CHECKING:
    from dalenius.measuring.public import PublicTable
    from dalenius.queries.ask import Ask
    from dalenius.queries.expectations import Expectations
    from dalenius.queries.own_answers import OwnAnswer
    from dalenius.releasing.leaving import Asker
    from dalenius.tables.registry import Version


@dataclass(frozen=True)
class Planned:
    """A plan, the snapshot that it will read, and the ε that it is asked at; None: it has no price yet.

    ``expectations`` are what its asker may know of the answer before, and ``own`` the asker's earlier answers to it;
    they are looked up for previews and prices by accuracy only.
    """

    plan: Plan
    snapshot: Snapshot
    epsilon: float | None
    expectations: Expectations | None = None
    own: Sequence[OwnAnswer] = ()


@dataclass(frozen=True)
class OpenTables:
    """What one asker's questions are read against: versions in force, protected tables, public ones."""

    versions: Mapping[str, Version]
    tables: Mapping[str, Table]
    publics: Mapping[str, PublicTable]

    @classmethod
    def of(cls, asker: Asker, opened: Opened | None = None) -> OpenTables:
        """The tables that are open to an asker now, or were just now."""
        opened = Opened.of(asker) if opened is None else opened
        tables = tables_of(asker, opened.versions, opened.budgets)
        return cls(opened.versions, tables, _publics(opened.versions, tables))

    @classmethod
    def of_owner(cls, owner: Asker) -> OpenTables:
        """All tables, for the owner's own audits: nothing that is planned on them leaves."""
        versions = owner.registry.current()
        tables = tables_in(owner, versions, {each: owner.ledger.budget(each) for each in owner.ledger.datasets()})
        return cls(versions, tables, _publics(versions, tables))


def plan_ask(
    asker: Asker, ask: Ask, *, expecting: bool = False, among: OpenTables | None = None, tree: Any = None
) -> Planned:
    """The plan of a question; raises for whatever cannot be asked. Never touches the data.

    Args:
        asker: Who asks.
        ask: What is asked.
        expecting: Whether it is to be known what may be expected of the answer.
        among: The tables that are open to the asker, where they were looked up before.
        tree: The part of the question that is planned, where that is not all of it (`outer`).
    """
    from dalenius.queries.accuracy import epsilon_for
    from dalenius.queries.rules import plan_question

    _check_confidence(ask.confidence)
    if ask.delta is not None:
        parameters.delta(ask.delta)
    among = OpenTables.of(asker) if among is None else among
    versions = among.versions
    plan = plan_question(ask.question, among.tables, ask.limits, among.publics, tree)
    if plan.selection is not None and ask.delta == 0:
        raise InputError(
            "delta must be above 0.", why="Keys cannot be found without any.", fix="Give a δ such as 1e-7."
        )
    check_open(asker, *plan.table.reads)
    snapshot = Snapshot.of(plan.table, versions)
    if ask.error is None and not expecting:
        return Planned(plan, snapshot, ask.epsilon)
    own = own_answers(asker, plan, snapshot, ask.confidence)
    expectations = _expectations(asker, ask, plan, snapshot, own)
    epsilon = ask.epsilon if ask.error is None else epsilon_for(expectations, ask.error, own)
    return Planned(plan, snapshot, epsilon, expectations, own)


def expectations_of(asker: Asker, ask: Ask, found: Planned) -> Expectations:
    """What may be expected of a plan's answer, where that was not looked up when it was planned."""
    if found.expectations is not None:
        return found.expectations
    own = own_answers(asker, found.plan, found.snapshot, ask.confidence)
    return _expectations(asker, ask, found.plan, found.snapshot, own)


def _expectations(asker: Asker, ask: Ask, plan: Plan, snapshot: Snapshot, own: Sequence[OwnAnswer]) -> Expectations:
    """What is public, and what the asker's most accurate answer says, or parts of others."""
    from dalenius.queries.expectations import Expectations

    chosen = plan.selection is not None and ask.delta is None
    left = Left.of(asker.remaining(snapshot.dataset, plan.periods)) if chosen else None
    if own and own[-1].answer.plan.cells:
        return Expectations(plan, ask.confidence, ask.delta, left, own[-1].answer)
    parts = known_parts(asker, plan, snapshot, ask.confidence)
    return Expectations(plan, ask.confidence, ask.delta, left, parts.answer, parts.rows)


def _publics(versions: Mapping[str, Version], tables: Mapping[str, Table]) -> Mapping[str, PublicTable]:
    """The public tables that the policies of these tables declare; each is looked up when it is asked about."""
    from dalenius.measuring.public import Publics

    specs = {
        name: (spec, versions[table].public.get(name))
        for table in tables
        for name, spec in versions[table].policy.public.items()
    }
    return Publics(specs)


def _check_confidence(confidence: object) -> None:
    value = parameters.real(confidence, "confidence", fix="Give a confidence such as 0.95.")
    if not 0.5 <= value <= 0.9999:
        raise InputError(
            "confidence must lie between 0.5 and 0.9999.",
            why="It is how often the truth lies within the noise error.",
            fix="Give a confidence such as 0.95.",
        )
