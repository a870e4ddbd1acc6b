"""Comparisons of a synthetic table with the real one, as a kind of release: charged before the first look.

What is compared is a model that this analyst has paid for, known by the number of its release; the same comparison
again is free. The guarantee stands with what is measured (`comparison`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius.accounting import parameters
from dalenius.errors import InputError
from dalenius.ledger.requests import key_stored
from dalenius.mechanisms import noise
from dalenius.releasing.kinds import Kind
from dalenius.releasing.leaving import Leaving, is_paid, own_charges, own_releases
from dalenius.releasing.opened import Opened, check_open
from dalenius.releasing.pacing import Pace
from dalenius.releasing.snapshot import Snapshot
from dalenius.releasing.whole_table import guarantee_of, table_named
from dalenius.synthesis.comparison import FORMAT, Compared, compare
from dalenius.synthesis.comparison_release import Comparison, ComparisonPreview
from dalenius.synthesis.describing import drawn
from dalenius.synthesis.effort import counting_seconds
from dalenius.synthesis.kind import Planned, model_of
from dalenius.synthesis.predicting import check_predictable
from dalenius.synthesis.request import SynthesisAsk
from dalenius.synthesis.rows import UnitMeasurer, read_rows

if TYPE_CHECKING:
    from dalenius.ledger.requests import Answered
    from dalenius.measuring.pace import Times
    from dalenius.releasing.leaving import Asker, Look
    from dalenius.synthesis.domain import Codes, Domain
    from dalenius.synthesis.modelled import Modelled
    from dalenius.synthesis.stored import StoredModel

COMPARISON = "comparison"
_KNOWN = ("release", "epsilon", "predict")
_LATEST, _READ = 2_000, 50  # charges that are looked through, and comparisons that are read
_DRAW, _LEARN = 0.5, 0.3  # seconds: to draw and count the synthetic rows, and for each column to learn from them


@dataclass(frozen=True)
class ComparisonAsk:
    """What is to be compared.

    Attributes:
        release: The number of the release that the model came with (`SyntheticTable.receipt`).
        epsilon: The price.
        predict: A column that a classifier, learned from synthetic rows, is to predict in real ones; None: none.
    """

    release: str
    epsilon: float
    predict: str | None = None

    def __post_init__(self) -> None:
        parameters.epsilon(self.epsilon)

    @classmethod
    def of(cls, request: Any) -> ComparisonAsk:
        """From JSON; what is one already stays."""
        if isinstance(request, cls):
            return request
        if not isinstance(request, Mapping) or not isinstance(request.get("release"), str):
            raise InputError(
                "This is no request for a comparison.", why="It names no release.", fix='Give {"release": "R…"}.'
            )
        unknown = [name for name in request if name not in _KNOWN]
        if unknown:
            raise InputError(
                f"There is no option {unknown[0]!r}.",
                why="Nothing that is asked for is passed over.",
                fix=f"Known are {', '.join(_KNOWN)}.",
            )
        if request.get("epsilon") is None:
            raise InputError("The comparison has no price.", why="Its noise depends on it.", fix="Give epsilon.")
        predict = request.get("predict")
        if predict is not None and not isinstance(predict, str):
            raise InputError("predict must be a name.", why="It is a column.", fix='Write "income".')
        return cls(request["release"], request["epsilon"], predict)

    def to_json(self) -> dict[str, Any]:
        """As HTTP has it."""
        return {"release": self.release, "epsilon": self.epsilon, "predict": self.predict}


class ComparisonKind(Kind):
    """Comparisons."""

    name: ClassVar[str] = COMPARISON
    verb: ClassVar[str] = "compared a synthetic table with"

    def prepare(self, asker: Asker, request: Any) -> Leaving:
        """What would be compared, from the stored model and the policy alone."""
        ask = ComparisonAsk.of(request)
        with asker.own_work():
            return leaving_of(asker, ask)

    def show(self, asker: Asker, request: Any, leaving: Leaving, answered: Answered) -> Comparison:  # noqa: ARG002
        """The stored numbers."""
        planned: PlannedComparison = leaving.plan
        content, dataset = self.read(answered.content), answered.receipt.dataset
        charge = {"epsilon": 0.0, "delta": 0.0, "rho": 0.0} if answered.free else dict(answered.receipt.charge)
        return Comparison.of_content(
            content,
            planned.base.guarantee(content["epsilon"]),
            charge,
            asker.remaining(dataset, leaving.periods),
            answered.free,
            answered.receipt.to_dict(),
            (*planned.base.notes, *asker.warnings(dataset)),
        )

    def read(self, content: bytes) -> dict[str, Any]:
        """The numbers."""
        found: dict[str, Any] = json.loads(content.decode("utf-8", "surrogatepass"))
        return found

    def body(self, request: Any) -> str:
        """All of it as one text."""
        return json.dumps([self.name, ComparisonAsk.of(request).to_json()], sort_keys=True)

    def echo(self, request: Any) -> dict[str, Any]:
        """What was asked for."""
        return {"kind": self.name, "request": ComparisonAsk.of(request).to_json()}


KIND = ComparisonKind()


@dataclass(frozen=True)
class PlannedComparison:
    """A comparison that was planned: everything about it that is public.

    Attributes:
        base: The model's own plan, under the policy in force: whose rows are read, and what one unit adds.
        stored: The model.
        compared: What of it.
        release: The number of its release.
    """

    base: Planned
    stored: StoredModel
    compared: Compared
    release: str

    def key(self, model: bytes, data_version: str) -> str:
        """What identifies the comparison: the model's own bytes, what is compared, and with which rows."""
        parts = [FORMAT, self.compared.predict, self.base.limit.rows, list(self.base.periods), self.base.table.meaning]
        text = json.dumps([*parts, data_version, hashlib.sha256(model).hexdigest()])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def seconds(self) -> float:
        """What the work takes on the machine of bench/RESULTS.md, by public sizes."""
        learning = _LEARN * len(self.stored.names) if self.compared.predict is not None else 0.0
        return counting_seconds(self.base.sizes, self.compared.counted) + _DRAW + learning

    def times(self, speed: float) -> Times:
        """When it leaves: a function of public things alone."""
        return self.base.times_of(self.seconds, speed)

    def look(self, look: Look) -> bytes:
        """Reads the rows and counts them: once the charge is on disk, and only then.

        Guarantee:
            ρ-zCDP with the ρ that was charged (`comparison`): `UnitMeasurer`, whose ``rho`` that is.
        """
        noise.fresh_key()
        base, rho = self.base, self.base.cost(look.epsilon).rho
        codes, weights = read_rows(
            base.table, self.stored.domain, base.where, base.limit, look.engine, look.salt, look.seconds
        )

        def measurer(domain: Domain, rows: Codes) -> UnitMeasurer:
            return UnitMeasurer(domain, rows, weights, base.limit, Fraction(rho))

        found = compare(self.stored, self.compared, codes, measurer, Fraction(rho))
        about = {"format": FORMAT, "table": self.stored.table, "release": self.release, "epsilon": look.epsilon}
        whole = {**about, "method": self.stored.method, "rows_per_unit": base.limit.rows, **found}
        return json.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogatepass")


def leaving_of(asker: Asker, ask: ComparisonAsk) -> Leaving:
    """What is about to leave, planned and priced without the data."""
    paid = model_of(asker, ask.release)
    stored = paid.stored
    opened = Opened.of(asker)
    again = SynthesisAsk(stored.table, ask.epsilon, stored.method, stored.names, rows_per_unit=stored.limit)
    base = Planned.of(table_named(asker, stored.table, opened), again)
    if not all(map(_is_of, stored.domain.columns, base.domain.columns)):
        raise InputError(
            "This model belongs to another policy.",
            why="The values of its columns are declared in another way now.",
            fix="Make the synthetic table anew, and compare that one.",
        )
    place = None
    if ask.predict is not None:
        place = base.domain.domain.place(ask.predict)
        check_predictable(drawn(stored).T, stored.domain.columns, place)
    planned = PlannedComparison(base, stored, Compared.of(len(stored.names), place), ask.release)
    check_open(asker, *base.table.reads)
    snapshot = Snapshot.of(base.table, opened.versions)
    epsilon = float(ask.epsilon)
    return Leaving(
        COMPARISON,
        snapshot,
        planned.key(paid.content, snapshot.data_version),
        epsilon,
        base.event(epsilon, 0.0),
        Pace(planned.times, planned.times(1.0).cap, base.late),
        planned.look,
        asked=f"A comparison of {ask.release} with {stored.table}",
        periods=base.paying,
        plan=planned,
    )


def _is_of(modelled: Modelled, declared: Modelled) -> bool:
    """Whether a column of a model is that of the policy in force; keys and classes may have been found for it."""
    found = replace(modelled, keys=None, classes=None, rest=False) if declared.sought else modelled
    return found.to_json() == declared.to_json()


def comparisons(asker: Asker, release: str) -> list[Comparison]:
    """What this asker has paid for of comparisons of a model, newest first. Nothing is charged."""
    dataset, ledger = model_of(asker, release).receipt.dataset, asker.ledger
    budget, nothing = ledger.budget(dataset), {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}
    latest = own_charges(asker, dataset, _LATEST)
    charges = [each for each in latest if each.key.startswith(key_stored(COMPARISON, "", each.epoch))][:_READ]
    found = []
    for charge, answered in zip(charges, own_releases(asker, charges), strict=True):
        content = KIND.read(answered.content)
        if content["release"] == release:
            guarantee = guarantee_of(budget, budget.unit, charge.epsilon)
            remaining = asker.remaining(dataset, charge.periods)
            receipt, notes = answered.receipt.to_dict(), asker.warnings(dataset)
            found.append(Comparison.of_content(content, guarantee, nothing, remaining, True, receipt, notes))
    return found


def preview(asker: Asker, ask: ComparisonAsk) -> ComparisonPreview:
    """Price and expected margins of a comparison, for nothing. Never touches the data."""
    with asker.own_work():
        leaving = leaving_of(asker, ask)
        planned: PlannedComparison = leaving.plan
        rows, rho = max(1.0, planned.stored.model.rows), Fraction(planned.base.cost(leaving.epsilon).rho)
        return ComparisonPreview(
            leaving.epsilon,
            ask.release,
            planned.stored.table,
            {str(way): each for way, each in planned.compared.margins(rho, planned.base.limit, rows).items()},
            ask.predict,
            round(planned.seconds, 1),
            planned.times(1.0).answer,
            asker.remaining(leaving.snapshot.dataset, leaving.periods),
            is_paid(leaving, asker),
            (*planned.base.notes, *asker.warnings(leaving.snapshot.dataset)),
        )
