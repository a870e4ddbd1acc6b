"""What a model would be, before paying: from the policy, and from what `protect` has released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dalenius._fields import Fields
from dalenius.learning.expecting import expected_loss
from dalenius.learning.kind import leaving_of
from dalenius.learning.planned import OUTPUT
from dalenius.releasing.leaving import is_paid
from dalenius.releasing.whole_table import best_release

if TYPE_CHECKING:
    from dalenius.learning.planned import Planned
    from dalenius.learning.request import ModelAsk
    from dalenius.releasing.leaving import Asker


@dataclass(frozen=True)
class ModelPreview:
    """Price, steps and expected noise of a model.

    Attributes:
        epsilon: The price.
        table: Whose rows.
        target: What would be predicted.
        model: What kind of model.
        method: How noise comes in.
        classes: How many classes there are; 0: the target is a number.
        features: The columns that it would be learned from.
        left_out: Those that cannot be, each with what must be declared.
        columns: How many columns of numbers the features make, the intercept among them.
        people: How many units there are to learn from, by the noisy number that `protect` released; None: it released
            none, and they are counted in the look for a part of the price.
        rows_per_unit: At most so many rows of one unit are learned from.
        held_out: The share of units that are not learned from.
        steps: How many steps; 0: noise is added once.
        rate: The chance of each unit to be in a step.
        batch: How many units a step has on average; None: not known before they are counted.
        sigma: The noise's standard deviation, over the most that one unit moves a sum; where it is added once, in each
            weight; None: not known before units are counted.
        clip: That most, as a length; None: noise is added once.
        loss: How much accuracy the noise is expected to take, as a share of rows; None: nothing tells.
        work: Seconds that it takes on the machine of bench/RESULTS.md, as far as public sizes tell.
        memory: Bytes that it takes at most, likewise; None: not known before they are counted.
        seconds: After which it leaves, on that machine, where times are fixed.
        remaining: What is left to spend.
        known: This analyst has paid for it already: it is free.
        release: The number of this analyst's best release of the same, at whatever price; None: there is none.
        notes: What the reader should know besides.
    """

    epsilon: float
    table: str
    target: str
    model: str
    method: str
    classes: int
    features: tuple[str, ...]
    left_out: Mapping[str, str]
    columns: int
    people: int | None
    rows_per_unit: int
    held_out: float
    steps: int
    rate: float
    batch: int | None
    sigma: float | None
    clip: float | None
    loss: float | None
    work: float
    memory: int | None
    seconds: float
    remaining: Mapping[str, Any]
    known: bool
    release: str | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For `--json` and HTTP."""
        return asdict(self) | {"features": list(self.features), "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelPreview:
        """As `to_dict` wrote it."""
        found = Fields(data, "model")

        def whole(name: str) -> int | None:
            return found.whole(name) if found.any(name) is not None else None

        def number(name: str) -> float | None:
            return found.number(name) if found.any(name) is not None else None

        return cls(
            found.number("epsilon"),
            found.text("table"),
            found.text("target"),
            found.text("model"),
            found.text("method"),
            found.whole("classes"),
            found.texts("features"),
            found.mapping("left_out"),
            found.whole("columns"),
            whole("people"),
            found.whole("rows_per_unit"),
            found.number("held_out"),
            found.whole("steps"),
            found.number("rate"),
            whole("batch"),
            number("sigma"),
            number("clip"),
            number("loss"),
            found.number("work"),
            whole("memory"),
            found.number("seconds"),
            found.mapping("remaining"),
            found.flag("known"),
            found.text("release") if "release" in found else None,
            found.texts("notes"),
        )


def preview(asker: Asker, ask: ModelAsk) -> ModelPreview:
    """Price, steps and expected noise, for nothing. Never touches the data."""
    with asker.own_work():
        leaving = leaving_of(asker, ask)
        planned: Planned = leaving.plan
        task, people = planned.task, planned.people
        return ModelPreview(
            leaving.epsilon,
            planned.table.policy.name,
            task.target.name,
            task.model,
            planned.method,
            len(task.classes),
            tuple(each.name for each in task.features),
            planned.left_out,
            task.width,
            None if people is None else max(0, round(people.units)),
            planned.rows,
            ask.held_out,
            *_noise(planned, leaving.epsilon),
            round(planned.seconds, 1),
            planned.memory,
            planned.times(1.0).answer,
            asker.remaining(leaving.snapshot.dataset, leaving.periods),
            is_paid(leaving, asker),
            best_release(leaving, asker),
            (*planned.notes, *asker.warnings(leaving.snapshot.dataset)),
        )


def _noise(planned: Planned, epsilon: float) -> tuple[int, float, int | None, float | None, float | None, float | None]:
    """Steps, rate, batch, σ, clip, and what they are expected to take of accuracy."""
    people = planned.people
    if planned.method == OUTPUT:
        return 0, 1.0, None, None if people is None else planned.output_recipe(epsilon, people).sigma, None, None
    recipe = planned.recipe(epsilon)
    known = None if people is None else (round(recipe.batch), expected_loss(recipe))
    batch, loss = known or (None, None)
    return recipe.steps, float(recipe.rate), batch, recipe.multiplier, recipe.norm, loss
