"""Two synthetic tables that belong together, as a kind of release: one price, one charge, one look.

Guarantee:
    The parents' model is ρ₁-zCDP, the children's ρ₂-zCDP (each δ-approximately, where keys are found), by that of one
    synthetic table (`kind.Planned.fitted`), since both relations are separable by unit. Together: ρ₁ + ρ₂ = ρ and
    δ₁ + δ₂ = δ, as charged [Bun & Steinke (2016), Lemma 2.3 and §8]. Giving children to parents is post-processing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius.accounting import parameters
from dalenius.accounting.events import Zcdp
from dalenius.errors import InputError
from dalenius.ledger.key_delta import Left
from dalenius.measuring.pace import Times
from dalenius.mechanisms import noise
from dalenius.releasing.kinds import Kind
from dalenius.releasing.leaving import Leaving
from dalenius.releasing.opened import Opened, check_open, tables_of
from dalenius.releasing.pacing import Pace
from dalenius.releasing.snapshot import Snapshot
from dalenius.releasing.whole_table import table_named
from dalenius.synthesis.kind import Planned, check_work
from dalenius.synthesis.methods import AUTO
from dalenius.synthesis.related import CHILD, COUNT, PARENT, Related
from dalenius.synthesis.related_release import FORMAT, RelatedModels, RelatedTables
from dalenius.synthesis.request import SynthesisAsk
from dalenius.synthesis.seeking import key_places

if TYPE_CHECKING:
    from dalenius.ledger.requests import Answered
    from dalenius.releasing.leaving import Asker, Look

RELATED = "related"
OF_PARENTS = Fraction(1, 2)  # of ρ; the rest is the children's
_KNOWN = ("parents", "children", "epsilon", "method", "match")


@dataclass(frozen=True)
class RelatedAsk:
    """A request for two synthetic tables.

    Attributes:
        parents: The table that a path leads to.
        children: The one whose rows lead there.
        epsilon: The price of both.
        method: The generator.
        match: The parents' columns by which children are given to them; none: a few that have few values.
    """

    parents: str
    children: str
    epsilon: float
    method: str = AUTO
    match: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parameters.epsilon(self.epsilon)

    @classmethod
    def of(cls, request: Any) -> RelatedAsk:
        """From JSON; what is one already stays."""
        if isinstance(request, cls):
            return request
        names = ("parents", "children")
        if not isinstance(request, Mapping) or not all(isinstance(request.get(each), str) for each in names):
            raise InputError(
                "This is no request for two synthetic tables.",
                why="It names no parents, or no children.",
                fix='Give {"parents": …, "children": …, "epsilon": …}.',
            )
        unknown = [name for name in request if name not in _KNOWN]
        if unknown:
            raise InputError(
                f"There is no option {unknown[0]!r}.",
                why="Nothing that is asked for is passed over.",
                fix=f"Known are {', '.join(_KNOWN)}.",
            )
        match = request.get("match") or ()
        if isinstance(match, str) or not isinstance(match, Sequence) or not all(type(each) is str for each in match):
            raise InputError("match must be a list of names.", why="Each is a column.", fix='Write ["sex"].')
        if request.get("epsilon") is None:
            raise InputError(
                "The synthetic tables have no price.", why="Their noise depends on it.", fix="Give epsilon."
            )
        method = request.get("method") or AUTO
        if not isinstance(method, str):
            raise InputError("method must be a name.", why="It says which generator.", fix='Write "auto".')
        return cls(request["parents"], request["children"], request["epsilon"], method, tuple(match))

    def to_json(self) -> dict[str, Any]:
        """As HTTP has it."""
        return {
            "parents": self.parents,
            "children": self.children,
            "epsilon": self.epsilon,
            "method": self.method,
            "match": list(self.match),
        }


class RelatedKind(Kind):
    """Two synthetic tables."""

    name: ClassVar[str] = RELATED
    verb: ClassVar[str] = "made synthetic tables of"

    def prepare(self, asker: Asker, request: Any) -> Leaving:
        """What would be modelled, from the policies alone."""
        ask = RelatedAsk.of(request)
        with asker.own_work():
            return leaving_of(asker, ask)

    def show(self, asker: Asker, request: Any, leaving: Leaving, answered: Answered) -> RelatedTables:  # noqa: ARG002
        """The stored models; rows are drawn by whoever wants some."""
        planned: RelatedPlanned = leaving.plan
        receipt = answered.receipt
        models = RelatedModels.read(answered.content)
        return RelatedTables(
            models,
            planned.related.left_out,
            planned.parents.guarantee(models.parents.epsilon),
            {"epsilon": 0.0, "delta": 0.0, "rho": 0.0} if answered.free else dict(receipt.charge),
            asker.remaining(receipt.dataset, leaving.periods),
            answered.free,
            receipt.to_dict(),
            (*planned.parents.notes, *planned.children.notes, *asker.warnings(receipt.dataset)),
        )

    def read(self, content: bytes) -> dict[str, Any]:
        """The models."""
        return RelatedModels.read(content).to_json()

    def body(self, request: Any) -> str:
        """All of it as one text."""
        return json.dumps([self.name, RelatedAsk.of(request).to_json()], sort_keys=True)

    def echo(self, request: Any) -> dict[str, Any]:
        """What was asked for."""
        return {"kind": self.name, "request": RelatedAsk.of(request).to_json()}


KIND = RelatedKind()


@dataclass(frozen=True)
class RelatedPlanned:
    """Two synthetic tables that were planned: everything about them that is public.

    Attributes:
        related: The tables.
        parents: What is modelled of parents.
        children: What is modelled of children.
        matched: The parents' columns by which children are given to them.
    """

    related: Related
    parents: Planned
    children: Planned
    matched: tuple[str, ...]

    @classmethod
    def of(cls, related: Related, ask: RelatedAsk) -> RelatedPlanned:
        """From the policies alone."""
        matched = related.matched(ask.match)
        own = [*related.columns(PARENT), COUNT]
        theirs = [*related.columns(CHILD), *(f"{PARENT}.{name}" for name in matched)]
        parents, children = (
            Planned.of(table, SynthesisAsk(table.policy.name, ask.epsilon, ask.method, tuple(columns)))
            for table, columns in ((related.with_counts, own), (related.with_parents, theirs))
        )
        return cls(related, parents, replace(children, dealt=False), matched)

    def key(self, data_version: str) -> str:
        """What identifies the models."""
        parts = [FORMAT, self.parents.key(data_version), self.children.key(data_version), *self.matched]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def delta(self, epsilon: float, left: Left) -> float:
        """What finding keys takes of δ, of both."""
        return max(each.delta(epsilon, left) for each in (self.parents, self.children))

    def event(self, epsilon: float, delta: float) -> Zcdp:
        """What is charged."""
        self.children.event(epsilon, delta)  # refuses a price of noise alone
        return self.parents.event(epsilon, delta)

    def look(self, look: Look, asker: Asker, versions: Mapping[str, Any]) -> bytes:
        """Both models: once the charge is on disk, and only then. See the module for the guarantee."""
        noise.fresh_key()
        rho = Fraction(self.parents.cost(look.epsilon).rho)
        seeking = [len(key_places(each.domain)) for each in (self.parents, self.children)]
        of_parents = look.delta * seeking[0] / max(1, sum(seeking))
        own = Snapshot.of(self.parents.table, versions).engine(asker.engines)
        parents = self.parents.fitted(replace(look, engine=own), rho * OF_PARENTS, of_parents)
        children = self.children.fitted(look, rho * (1 - OF_PARENTS), look.delta - of_parents)
        hop = self.related.hop
        return RelatedModels(parents, children, hop.column, hop.key, self.matched).content()

    def times(self, speed: float) -> Times:
        """When they leave: one after the other."""
        one, other = self.parents.times(speed), self.children.times(speed)
        return Times(one.answer + other.answer, one.cap + other.cap)


def leaving_of(asker: Asker, ask: RelatedAsk) -> Leaving:
    """What is about to leave, planned and priced without the data."""
    opened = Opened.of(asker)
    tables = tables_of(asker, opened.versions, opened.budgets)
    parents, children = (table_named(asker, name, opened) for name in (ask.parents, ask.children))
    planned = RelatedPlanned.of(Related.of(parents, children, tables), ask)
    for each in (planned.parents, planned.children):
        check_work(each)
    check_open(asker, *planned.children.table.reads)
    snapshot = Snapshot.of(planned.children.table, opened.versions)
    epsilon, periods = float(ask.epsilon), planned.parents.periods
    delta = planned.delta(epsilon, Left.of(asker.remaining(snapshot.dataset, periods)))
    return Leaving(
        RELATED,
        snapshot,
        planned.key(snapshot.data_version),
        epsilon,
        planned.event(epsilon, delta),
        Pace(
            planned.times,
            planned.times(1.0).cap,
            min(each.late for each in (planned.parents, planned.children)),
        ),
        lambda look: planned.look(look, asker, opened.versions),
        delta=delta,
        delta_chosen=True,
        asked=f"Synthetic tables of {ask.parents} and {ask.children}",
        periods=periods,
        plan=planned,
    )
