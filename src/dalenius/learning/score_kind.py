"""How well a model predicts people it has not seen, as a kind of release: charged before the first look.

Units that were held out when a model was trained, each by its own keyed hash, are predicted and counted with noise.
Each counts once: by how far its rows are off on average. The same again is free.

Guarantee:
    A unit held out adds (⌊S·o⌋, S − ⌊S·o⌋) to two numbers, S = 2¹² and o from 0 to 1 the mean of how far its rows are
    off; a unit that is learned from, or has no row with a target, adds nothing. Which it is follows from its own tag,
    and o from its own rows, exactly (`scoring.off_by`). So one unit changes the two by at most S in L2 and in L1,
    or, where one takes another's place, by at most √2·S and 2S (`change_within`). Discrete Gaussian noise of variance
    ≥ Δ2²/2ρ is ρ-zCDP [CKS20, Thm. 14]; discrete Laplace noise of scale ≥ Δ1/ε, under pure budgets, ε-DP.

References:
    [CKS20] Canonne, Kamath & Steinke, The Discrete Gaussian for Differential Privacy (2020).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dalenius.accounting import parameters
from dalenius.accounting.guarantees import ZCDP
from dalenius.errors import InputError
from dalenius.learning.kind import model_of
from dalenius.learning.planned import Planned
from dalenius.learning.reading import read_units
from dalenius.learning.request import ModelAsk
from dalenius.learning.score_release import ModelScore, ScorePreview
from dalenius.learning.scoring import UNITS, Scored, off_by
from dalenius.measuring.measures import change_within
from dalenius.mechanisms import noise
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian, widened
from dalenius.mechanisms.laplace import Laplace
from dalenius.releasing.kinds import Kind
from dalenius.releasing.leaving import Leaving, is_paid
from dalenius.releasing.opened import Opened, check_open
from dalenius.releasing.pacing import Pace
from dalenius.releasing.snapshot import Snapshot
from dalenius.releasing.whole_table import NOTHING_PAID, table_named, times_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.stored import StoredModel
    from dalenius.ledger.budgets import Budget
    from dalenius.ledger.requests import Answered
    from dalenius.measuring.pace import Times
    from dalenius.releasing.leaving import Asker, Look

SCORE = "score"
FORMAT = "score 1"
BITS = 12  # of what one unit counts
_MARGIN = 1.96
_KNOWN = ("release", "epsilon")


@dataclass(frozen=True)
class ScoreAsk:
    """Which model is scored.

    Attributes:
        release: The number of the release that the model came with (`TrainedModel.receipt`).
        epsilon: The price.
    """

    release: str
    epsilon: float

    def __post_init__(self) -> None:
        parameters.epsilon(self.epsilon)

    @classmethod
    def of(cls, request: Any) -> ScoreAsk:
        """From JSON; what is one already stays."""
        if isinstance(request, cls):
            return request
        if not isinstance(request, Mapping) or not isinstance(request.get("release"), str):
            raise InputError(
                "This is no request for a score.", why="It names no release.", fix='Give {"release": "R…"}.'
            )
        unknown = [name for name in request if name not in _KNOWN]
        if unknown:
            raise InputError(
                f"There is no option {unknown[0]!r}.",
                why="Nothing that is asked for is passed over.",
                fix=f"Known are {', '.join(_KNOWN)}.",
            )
        if request.get("epsilon") is None:
            raise InputError("The score has no price.", why="Its noise depends on it.", fix="Give epsilon.")
        return cls(request["release"], request["epsilon"])

    def to_json(self) -> dict[str, Any]:
        """As HTTP has it."""
        return {"release": self.release, "epsilon": self.epsilon}


class ScoreKind(Kind):
    """Scores of models."""

    name: ClassVar[str] = SCORE
    verb: ClassVar[str] = "scored a model on"

    def prepare(self, asker: Asker, request: Any) -> Leaving:
        """What would be counted, from the stored model and the policy alone."""
        ask = ScoreAsk.of(request)
        with asker.own_work():
            return leaving_of(asker, ask)

    def show(self, asker: Asker, request: Any, leaving: Leaving, answered: Answered) -> ModelScore:  # noqa: ARG002
        """The stored numbers."""
        planned: PlannedScore = leaving.plan
        content, dataset = self.read(answered.content), answered.receipt.dataset
        return ModelScore(
            content["release"],
            Scored.from_dict(content["scored"]),
            planned.base.guarantee(content["epsilon"]),
            dict(NOTHING_PAID) if answered.free else dict(answered.receipt.charge),
            asker.remaining(dataset, leaving.periods),
            answered.free,
            answered.receipt.to_dict(),
            asker.warnings(dataset),
        )

    def read(self, content: bytes) -> dict[str, Any]:
        """The numbers."""
        found: dict[str, Any] = json.loads(content.decode("utf-8", "surrogatepass"))
        return found

    def body(self, request: Any) -> str:
        """All of it as one text."""
        return json.dumps([self.name, ScoreAsk.of(request).to_json()], sort_keys=True)

    def echo(self, request: Any) -> dict[str, Any]:
        """What was asked for."""
        return {"kind": self.name, "request": ScoreAsk.of(request).to_json()}


KIND = ScoreKind()


@dataclass(frozen=True)
class PlannedScore:
    """A score that was planned: everything about it that is public.

    Attributes:
        base: The model's own plan, under the policy in force: whose rows are read.
        stored: The model.
        release: The number of its release.
    """

    base: Planned
    stored: StoredModel
    release: str

    def key(self, model: bytes, data_version: str) -> str:
        """What identifies the score: the model's own bytes, and which rows."""
        parts = [FORMAT, list(self.base.periods), self.base.table.meaning, data_version]
        text = json.dumps([*parts, hashlib.sha256(model).hexdigest()])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def mechanism(self, epsilon: float) -> DiscreteGaussian | Laplace:
        """The noise that a price buys."""
        return mechanism_for(self.base.table.budget, epsilon)

    def margin(self, epsilon: float) -> float | None:
        """95% margin for the added noise in the mean, by public facts; None where no count was released."""
        people = self.base.table.found
        if people is None or people.units < 1:
            return None
        return spread(self.mechanism(epsilon)) * math.sqrt(2) / max(1.0, people.units * self.stored.held_out)

    def times(self, speed: float) -> Times:
        """When it leaves: a function of public things alone."""
        return times_of(self.base.table, self.base.reading_seconds, speed)

    def look(self, look: Look) -> bytes:
        """Reads the units held out and counts them: once the charge is on disk, and only then."""
        noise.fresh_key()
        base, recipe = self.base, self.stored.recipe
        total = np.zeros(2, np.int64)
        for units in read_units(
            base.table,
            recipe.task,
            base.where,
            look.engine,
            look.salt,
            look.seconds,
            rows=recipe.rows,
            share=self.stored.held_out,
            held=True,
        ):
            here = units.numbers[:, :, -1] != 0
            rows = units.numbers.reshape(-1, recipe.task.width)
            off = off_by(recipe, self.stored.weights, rows, units.aims.reshape(-1)).reshape(here.shape)
            total += counted(off, here)
        mechanism = self.mechanism(look.epsilon)
        noisy = mechanism.release(total).value.astype(np.float64) / (1 << BITS)
        scored = _scored(noisy, spread(mechanism), self.stored)
        whole = {"format": FORMAT, "table": self.stored.table, "release": self.release, "epsilon": look.epsilon}
        text = json.dumps({**whole, "counts": noisy.tolist(), "scored": scored.to_dict()}, ensure_ascii=False)
        return text.encode("utf-8", "surrogatepass")


def counted(off: NDArray[np.float64], here: NDArray[np.bool_]) -> NDArray[np.int64]:
    """What units add to the two numbers: each 2¹² in all, if it has a row.

    Args:
        off: Units × rows, from 0 to 1.
        here: Which rows there are.

    >>> counted(np.array([[1.0, 0.0], [0.0, 0.5]]), np.array([[True, True], [False, False]])).tolist()
    [2048, 2048]
    """
    held = here.sum(axis=1)
    sums = np.zeros(len(off))
    for at in range(off.shape[1]):  # one by one: the same sum, however many units there are
        sums += np.where(here[:, at], off[:, at], 0.0)
    whole = np.floor(sums / np.maximum(held, 1) * (1 << BITS)).astype(np.int64)
    missed = np.clip(whole, 0, 1 << BITS)[held > 0]
    return np.array([missed.sum(), ((1 << BITS) - missed).sum()], np.int64)


def mechanism_for(budget: Budget, epsilon: float) -> DiscreteGaussian | Laplace:
    """Noise for the two numbers at a price."""
    cost = budget.filter().price(epsilon)
    whole, neighbors = 1 << BITS, budget.neighbors
    if isinstance(cost, ZCDP):
        change = change_within(whole, "l2", neighbors, non_negative=True)
        return DiscreteGaussian(widened(change / (2 * Fraction(cost.rho))), change, 2, neighbors)
    return Laplace(Fraction(epsilon), change_within(whole, "l1", neighbors, non_negative=True), 2, neighbors)


def spread(mechanism: DiscreteGaussian | Laplace) -> float:
    """95% margin for the noise in one of the two numbers, in units."""
    if isinstance(mechanism, DiscreteGaussian):
        return _MARGIN * math.sqrt(mechanism.variance) / (1 << BITS)
    return float(mechanism.noise_error(0.95)) / (1 << BITS)


def _scored(noisy: NDArray[np.float64], each: float, stored: StoredModel) -> Scored:
    """The mean: off/(off + right). Its noise, to the first order, is that of (1−m)·off − m·right over the sum."""
    count = max(1.0, float(noisy.sum()))
    mean = min(1.0, max(0.0, float(noisy[0]) / count))
    margin = min(1.0, each * math.hypot(1 - mean, mean) / count)
    return Scored.of_mean(UNITS, round(max(0.0, float(noisy.sum()))), mean, margin, stored.recipe)


def leaving_of(asker: Asker, ask: ScoreAsk) -> Leaving:
    """What is about to leave, planned and priced without the data."""
    paid = model_of(asker, ask.release)
    stored = paid.stored
    if not stored.held_out:
        raise InputError(
            "No units were held out from this model.",
            why="It was learned from everybody, so that what it knows of them says nothing about others.",
            fix="Train one with --held-out 20%; or score it on a public file, which costs nothing.",
        )
    opened = Opened.of(asker)
    task = stored.recipe.task
    again = ModelAsk(
        stored.table,
        task.target.name,
        ask.epsilon,
        task.model,
        tuple(each.name for each in task.features),
        stored.recipe.method,
        stored.recipe.rows,
        stored.held_out,
    )
    table = table_named(asker, stored.table, opened)
    base = Planned.of(table, again, table.budget.epsilon)
    if base.task.to_json() != task.to_json():
        raise InputError(
            "This model belongs to another policy.",
            why="The values of its columns are declared in another way now.",
            fix="Train a model anew, and score that one.",
        )
    planned = PlannedScore(base, stored, ask.release)
    check_open(asker, *table.reads)
    snapshot = Snapshot.of(table, opened.versions)
    epsilon = float(ask.epsilon)
    return Leaving(
        SCORE,
        snapshot,
        planned.key(paid.content, snapshot.data_version),
        epsilon,
        planned.mechanism(epsilon).event,
        Pace(planned.times, planned.times(1.0).cap, base.late),
        planned.look,
        asked=f"A score of {ask.release} on {stored.table}",
        periods=base.paying,
        plan=planned,
    )


def preview(asker: Asker, ask: ScoreAsk) -> ScorePreview:
    """Price and expected margin of a score, for nothing. Never touches the data."""
    with asker.own_work():
        leaving = leaving_of(asker, ask)
        planned: PlannedScore = leaving.plan
        margin = planned.margin(leaving.epsilon)
        scale = 1.0 if planned.stored.recipe.task.classes else planned.stored.recipe.task.target.scale
        return ScorePreview(
            leaving.epsilon,
            ask.release,
            planned.stored.table,
            None if margin is None else margin * scale,
            planned.times(1.0).answer,
            asker.remaining(leaving.snapshot.dataset, leaving.periods),
            is_paid(leaving, asker),
            asker.warnings(leaving.snapshot.dataset),
        )
