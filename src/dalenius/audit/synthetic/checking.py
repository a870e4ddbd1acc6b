"""The owner's check of synthetic rows: errors without noise, what they are good for, and what attacks find.

Rows held out tell what is about everybody from what is about those who were there. They are named in one of two ways: a
file of people who were not in the table when the synthetic rows were made; or a share of the people, by a keyed hash.
With a share the synthetic rows are made here, from the others, as a rehearsal: with the same generator, noise and
limits as a real one, in memory, and are dropped.

What is charged: nothing, because nothing leaves. What is printed follows from the raw rows without noise; asked again
with other rows it would be an oracle about single people. So it is for the owner, who can read the rows anyway, on the
owner's terminal: it is not in the ledger, in no report, no file and no response of a server. The ledger notes that a
check ran, by whom and about which table, before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.audit.lower_bounds.membership import most_advantage
from dalenius.audit.metrics.classification import area_under_curve
from dalenius.audit.synthetic.attacks import Attribute, Copies, Membership, attributes, copies, membership
from dalenius.audit.synthetic.reading import People, claimed, read_held_out, read_people, read_synthetic
from dalenius.audit.synthetic.rehearsing import rehearse
from dalenius.errors import InputError, UnknownTableError
from dalenius.ledger.requests import OWNER
from dalenius.releasing.leaving import Asker
from dalenius.releasing.opened import tables_in
from dalenius.releasing.snapshot import Snapshot
from dalenius.synthesis.kind import Planned
from dalenius.synthesis.policy_domain import PolicyDomain, domain_of
from dalenius.synthesis.predicting import check_predictable, learned
from dalenius.synthesis.request import SynthesisAsk
from dalenius.synthesis.scoring import errors
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from dalenius.curator import Curator
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Table
    from dalenius.synthesis.domain import Codes

_COMPARED = 100_000  # rows of each side, for errors
Progress = Callable[[float, str], object]


@dataclass(frozen=True)
class CheckAsk:
    """What is to be checked.

    Attributes:
        table: The protected table.
        rows: A file of synthetic rows; None: they are made here, from people who are not held out.
        held_out: A file of people who were not there, or a share of those who are; None: nobody.
        epsilon: Of rows that are made here; else what the file claims, if it is known.
        method: Of rows that are made here.
        columns: Those that are compared; none: all that both have.
        predict: A column that a classifier is to predict.
        secrets: Columns that an attacker does not know of somebody; none: each in turn.
    """

    table: str
    rows: Path | None = None
    held_out: Path | float | None = None
    epsilon: float | None = None
    method: str = "auto"
    columns: tuple[str, ...] = ()
    predict: str | None = None
    secrets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rows is None and (not isinstance(self.held_out, float) or self.epsilon is None):
            raise InputError(
                "Which synthetic rows?",
                why="A file of them is checked; or some are made here, from people who are not held out.",
                fix="Name a file; or give --held-out 20% and --epsilon E.",
            )
        if isinstance(self.held_out, float) and not 0 < self.held_out < 1:
            raise InputError("Nobody can be held out like that.", why="It is a share.", fix="Give one such as 20%.")


@dataclass(frozen=True)
class Utility:
    """A column predicted in rows held out, by who learned from real rows and by who learned from synthetic ones.

    Attributes:
        column: Which one.
        real: How often the first is right.
        synthetic: How often the second is.
        most_frequent: How often who always says the most frequent class of the real rows.
        auc_real: Of two classes: the chance that one who is of the second scores above one of the first.
        auc_synthetic: The same.
    """

    column: str
    real: float
    synthetic: float
    most_frequent: float
    auc_real: float | None
    auc_synthetic: float | None


@dataclass(frozen=True)
class SyntheticCheck:
    """What was found. Not private: for the owner's terminal.

    Attributes:
        table: The real table.
        columns: Those that were compared.
        rows: How many there are: real, held out, synthetic.
        made_here: The synthetic rows were made for this check.
        epsilon: What they cost, or would; None: it is not known.
        errors: Mean L1 distance of all tables of one column, two, three.
        errors_held_out: The same of rows held out: so far are real rows from real rows.
        copies: Rows that are there again.
        membership: Who was there; None: nobody is known who was not.
        most_advantage: What any attack could find of that at most, at this ε; None: it is not known.
        attributes: What columns say of somebody.
        utility: What rows are good for.
        notes: What was left out.
    """

    table: str
    columns: tuple[str, ...]
    rows: Mapping[str, int]
    made_here: bool
    epsilon: float | None
    errors: Mapping[int, float]
    errors_held_out: Mapping[int, float] | None
    copies: Copies
    membership: Membership | None
    most_advantage: float | None
    attributes: Sequence[Attribute]
    utility: Utility | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For `--json` on the owner's terminal."""
        return {"private": False, **asdict(self), "notes": list(self.notes)}


def check_synthetic(curator: Curator, ask: CheckAsk, progress: Progress = lambda share, words: None) -> SyntheticCheck:  # noqa: ARG005
    """Checks synthetic rows against the real ones. For owners; see this module."""
    owner = Asker(OWNER, curator.ledger, curator.registry, curator.engines)
    table, snapshot = _table(owner, ask.table)
    domain, _ = domain_of(table, _ordered(table, ask.columns))
    synthetic = None
    if ask.rows is not None:
        domain, synthetic = read_synthetic(ask.rows, domain, table.policy.columns)
        ask = replace(ask, epsilon=claimed(ask.rows, table.policy.name) if ask.epsilon is None else ask.epsilon)
        if not synthetic.shape[1]:
            raise InputError("There are no synthetic rows.", why="The file is empty.", fix="Name another file.")
    for name in (*ask.secrets, *([ask.predict] if ask.predict else [])):
        domain.domain.place(name)
    planned = _planned(table, ask, domain) if synthetic is None else None
    snapshot.check_unchanged()
    before = snapshot.state()
    owner.ledger.record("note", {"audit": "synthetic", "tables": [table.policy.name]})
    progress(0.0, "reading")
    salt, engine = owner.salt(snapshot.dataset), snapshot.engine(owner.engines)
    if planned is not None and isinstance(ask.held_out, float):
        made = rehearse(planned, owner, engine, salt, ask.held_out)
        sides = _Sides(table, made.domain, made.real, made.held, made.synthetic, ask)
    else:
        assert synthetic is not None  # noqa: S101 (`CheckAsk` asks for one of both)
        sides = _Sides(table, domain, *_both(owner, table, domain, engine, salt, ask), synthetic, ask)
    snapshot.check_kept(before)
    return _checked(sides, planned is not None, progress)


def _both(
    owner: Asker, table: Table, domain: PolicyDomain, engine: Engine, salt: str, ask: CheckAsk
) -> tuple[People, People | None]:
    """The real rows, and those held out."""
    real: People = read_people(table, domain, engine, salt)
    held: People | None = None
    if isinstance(ask.held_out, Path):
        held = read_held_out(table, domain, owner.engines, salt, ask.held_out)
    elif ask.held_out is not None:
        real, held = real.split(ask.held_out)
    if not real.rows or (held is not None and not held.rows):
        raise InputError("Too few people.", why="Nobody is on one of the two sides.", fix="Hold out another share.")
    return real, held


@dataclass(frozen=True)
class _Sides:
    """All that is compared."""

    table: Table
    domain: PolicyDomain
    real: People
    held: People | None
    synthetic: Codes
    ask: CheckAsk

    @property
    def knows_others(self) -> bool:
        """Whether those held out were not there when the synthetic rows were made."""
        return self.held is not None and (self.ask.rows is None or isinstance(self.ask.held_out, Path))


def _checked(sides: _Sides, made_here: bool, progress: Progress) -> SyntheticCheck:
    ask, domain, real, held = sides.ask, sides.domain, sides.real, sides.held
    rng = np.random.default_rng(24)  # which rows are looked at; nothing secret depends on it
    sizes, made = domain.domain.sizes, sides.synthetic
    ways = [way for way in (1, 2, 3) if way <= len(sizes)]
    some = real.sampled(_COMPARED, rng).codes.T
    progress(0.2, "tables")
    found = errors(some, made[:, :_COMPARED].T, sizes, ways).ways
    of_held = None if held is None else errors(some, held.sampled(_COMPARED, rng).codes.T, sizes, ways).ways
    progress(0.5, "attacks")
    notes, told, attribute, bound = list[str](), None, list[Attribute](), None
    if held is not None and sides.knows_others:
        told = membership(real, held, made, domain.domain, rng, lambda share: progress(0.5 + 0.2 * share, "attacks"))
        secrets = [domain.domain.place(each) for each in ask.secrets] or list(range(len(sizes)))
        attribute = attributes(real, held, made, domain, secrets, rng) if len(sizes) > 1 else []
        bound = None if ask.epsilon is None else most_advantage(ask.epsilon, sides.table.budget.delta)
    else:
        notes.append(
            "Nobody is known who was not there: what the rows tell of members alone cannot be told from what they "
            "tell of everybody. Hold out a file of others, or make the rows here (leave the file out)."
        )
    utility = None
    if ask.predict is not None and held is not None:
        progress(0.8, "learning")
        utility = _utility(domain, ask.predict, real.sampled(_COMPARED, rng), held, made)
    elif ask.predict is not None:
        notes.append("What the rows are good for is seen on people held out: give --held-out.")
    counts = {"real": real.rows, "held_out": 0 if held is None else held.rows, "synthetic": int(made.shape[1])}
    names, again = tuple(each.name for each in domain.columns), copies(real, held if sides.knows_others else None, made)
    progress(1.0, "done")
    return SyntheticCheck(
        sides.table.policy.name,
        names,
        counts,
        made_here,
        ask.epsilon,
        found,
        of_held,
        again,
        told,
        bound,
        attribute,
        utility,
        tuple(notes),
    )


def _utility(domain: PolicyDomain, column: str, real: People, held: People, made: Codes) -> Utility:
    """The same classifier learns from both; classes are those of the synthetic rows."""
    at = domain.domain.place(column)
    check_predictable(made, domain.columns, at)
    ours = learned(made, domain.columns, at)
    theirs = learned(real.codes, domain.columns, at, ours.classes)
    truth = ours.truth(held.codes)
    often = int(np.bincount(ours.truth(real.codes)).argmax())
    aucs: list[float | None] = [None, None]
    if len(ours.classes.names) == 2 and 0 < truth.mean() < 1:
        scores = [each.scores(held.codes) for each in (theirs, ours)]
        aucs = [area_under_curve(each[:, 1] - each[:, 0], truth) for each in scores]
    rates = [float((each.predict(held.codes) == truth).mean()) for each in (theirs, ours)]
    return Utility(column, rates[0], rates[1], float((truth == often).mean()), aucs[0], aucs[1])


def _planned(table: Table, ask: CheckAsk, domain: PolicyDomain) -> Planned:
    """Priced and planned as a release would be."""
    names = tuple(each.name for each in domain.columns)
    return Planned.of(table, SynthesisAsk(table.policy.name, ask.epsilon or 0.0, ask.method, names))


def _ordered(table: Table, columns: Sequence[str]) -> list[str]:
    known = list(table.policy.columns)
    return sorted(columns, key=lambda name: known.index(name) if name in known else len(known))


def _table(owner: Asker, name: str) -> tuple[Table, Snapshot]:
    versions = owner.registry.current()
    budgets = {each.dataset: owner.ledger.budget(each.dataset) for each in versions.values()}
    tables = tables_in(owner, versions, budgets)
    found = {each.lower(): each for each in tables}.get(name.lower())
    if found is None:
        meant = nearest(name, list(tables))
        raise UnknownTableError(
            f"There is no table {name!r}.",
            why="This home does not protect one of that name.",
            fix=f"Did you mean {meant!r}?" if meant else "See 'dalenius tables'.",
        )
    return tables[found], Snapshot.of(tables[found], versions)
