"""What is asked for, when a model is to be trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dalenius.accounting import parameters
from dalenius.errors import InputError

AUTO = "auto"
METHODS: Mapping[str, str] = {
    AUTO: "sgd; output where the budget cannot pay for sampled noise",
    "sgd": "many small steps, each on people drawn at random, each with noise",
    "output": "the best weights, with noise added once",
}
LEAST_HELD, MOST_HELD = 0.01, 0.5
_KNOWN = ("table", "target", "epsilon", "model", "features", "method", "rows_per_unit", "held_out", "batch", "steps")


@dataclass(frozen=True)
class ModelAsk:
    """A request for a model.

    Attributes:
        table: Whose rows.
        target: The column that is to be predicted.
        epsilon: The price.
        model: What kind of model, such as "logistic".
        features: The columns that it is predicted from; none: all that can be.
        method: How noise comes in.
        rows_per_unit: So many rows of one unit are learned from; None: as many as the table's limit.
        held_out: The share of units that are not learned from, to be counted later (`ScoreAsk`).
        batch: How many units a step has on average; None: by rule.
        steps: How many steps there are; None: by rule.
    """

    table: str
    target: str
    epsilon: float
    model: str = "logistic"
    features: tuple[str, ...] = ()
    method: str = AUTO
    rows_per_unit: int | None = None
    held_out: float = 0.0
    batch: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        from dalenius.learning.models import model_of

        parameters.epsilon(self.epsilon)
        model_of(self.model)
        if self.method not in METHODS:
            raise InputError(
                f"There is no method {self.method!r}.",
                why="It says how noise comes in.",
                fix=f"Take one of {', '.join(METHODS)}.",
            )
        for name in ("rows_per_unit", "batch", "steps"):
            if getattr(self, name) is not None:
                parameters.count(getattr(self, name), name)
        if not is_share(self.held_out):
            raise InputError(
                "These units cannot be held out.",
                why=f"It is a share from {LEAST_HELD:.0%} to {MOST_HELD:.0%}.",
                fix="Give one such as 0.2; or 0 to learn from everybody.",
            )

    @classmethod
    def of(cls, request: Any) -> ModelAsk:
        """From JSON; what is one already stays."""
        if isinstance(request, cls):
            return request
        if not isinstance(request, Mapping) or not isinstance(request.get("table"), str):
            raise InputError("This is no request for a model.", why="It names no table.", fix='Give {"table": …}.')
        unknown = [name for name in request if name not in _KNOWN]
        if unknown:
            raise InputError(
                f"There is no option {unknown[0]!r}.",
                why="Nothing that is asked for is passed over.",
                fix=f"Known are {', '.join(_KNOWN)}.",
            )
        if not isinstance(request.get("target"), str):
            raise InputError("The model has no target.", why="It predicts a column.", fix='Give "target": "income".')
        if request.get("epsilon") is None:
            raise InputError("The model has no price.", why="Its noise depends on it.", fix="Give epsilon.")
        features = request.get("features") or ()
        if isinstance(features, str) or not isinstance(features, Sequence) or not all(type(c) is str for c in features):
            raise InputError("features must be a list of names.", why="Each is a column.", fix='Write ["age", "sex"].')
        named = {name: request.get(name) or default for name, default in (("model", "logistic"), ("method", AUTO))}
        for name, value in named.items():
            if not isinstance(value, str):
                raise InputError(f"{name} must be a name.", why="It says which.", fix="Leave it out for the usual one.")
        return cls(
            request["table"],
            request["target"],
            request["epsilon"],
            named["model"],
            tuple(features),
            named["method"],
            request.get("rows_per_unit"),
            request.get("held_out") or 0.0,
            request.get("batch"),
            request.get("steps"),
        )

    def to_json(self) -> dict[str, Any]:
        """As HTTP has it."""
        return {
            "table": self.table,
            "target": self.target,
            "epsilon": self.epsilon,
            "model": self.model,
            "features": list(self.features),
            "method": self.method,
            "rows_per_unit": self.rows_per_unit,
            "held_out": self.held_out,
            "batch": self.batch,
            "steps": self.steps,
        }


def is_share(value: object) -> bool:
    """Whether such a share of the units can be held out; 0: none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value == 0 or LEAST_HELD <= value <= MOST_HELD
