"""A trained model, as who asked for it gets it: it predicts, tells its coefficients, and can be put into a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius._fields import Fields
from dalenius.errors import InputError
from dalenius.learning.stored import StoredModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dalenius.learning.fitted import Model
    from dalenius.learning.scoring import Scored


@dataclass(frozen=True)
class Coefficient:
    """One weight, in the units of the table.

    Attributes:
        output: The class, or the target, whose score it is part of.
        feature: The column, or one of its keys; or "intercept".
        value: How much the score grows with it.
        margin: 95% margin for the added noise, at most; None: not known.
    """

    output: str
    feature: str
    value: float
    margin: float | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"output": self.output, "feature": self.feature, "value": self.value, "margin": self.margin}


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model with its guarantee and what it cost. What is done with it is free, and anybody may have it.

    Attributes:
        stored: The model as it is stored.
        left_out: Columns that could not be features, each with what must be declared.
        guarantee: `kind`, `epsilon`, `delta`, `unit`, `neighbors`.
        charge: `epsilon`, `delta`, `rho`, as charged.
        remaining: What is left to spend.
        free: Paid for before.
        receipt: Proof of the charge.
        notes: What the reader should know besides.
    """

    stored: StoredModel
    left_out: Mapping[str, str]
    guarantee: Mapping[str, Any]
    charge: Mapping[str, Any]
    remaining: Mapping[str, Any]
    free: bool
    receipt: Mapping[str, Any] | None
    notes: tuple[str, ...] = ()

    # --- what it says

    @cached_property
    def model(self) -> Model:
        """What predicts, without guarantee and receipt."""
        return self.stored.model

    def predict(self, rows: object) -> NDArray[Any]:
        """The most likely class of each row, or the number expected.

        Args:
            rows: A dict of columns, a pandas or arrow table, or a list of dicts.
        """
        return self.model.predict(rows)

    def predict_proba(self, rows: object) -> NDArray[np.float64]:
        """The chance of each class, rows × classes; refused where the model does not tell chances."""
        return self.model.predict_proba(rows)

    @property
    def classes_(self) -> tuple[Any, ...]:
        """The classes, in the order of `predict_proba`."""
        return self.model.classes_

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Scores × columns: how much a score grows with a value by one, in the units of the table."""
        return self.model.coef_

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Of each score."""
        return self.model.intercept_

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """What the columns of `coef_` are called."""
        return self.model.feature_names_

    def score(self, rows: object) -> Scored:
        """How well it predicts rows that have the target too, such as a public file's. It costs nothing.

        Args:
            rows: As for `predict`, with the target.
        """
        from dalenius.learning.scoring import score

        return score(self.stored, rows)

    def coefficients(self) -> list[Coefficient]:
        """All weights with their margins, in the units of the table."""
        from dalenius.learning.describing import coefficients

        return coefficients(self.stored)

    # --- as files

    def save(self, folder: Path | str, *, scored: Scored | None = None) -> list[Path]:
        """Writes `card.json`, `card.md` and `weights.json` into a folder, which is made if it is not there.

        Args:
            folder: Where.
            scored: How well it predicts, for the card.
        """
        from dalenius.learning.folder import save

        return save(self, Path(folder), scored)

    # --- as JSON

    @cached_property
    def _about(self) -> dict[str, Any]:
        from dalenius.learning.describing import described

        return {
            **described(self.stored),
            "left_out": dict(self.left_out),
            "guarantee": dict(self.guarantee),
            "charge": dict(self.charge),
            "remaining": self.remaining,
            "free": self.free,
            "receipt": self.receipt,
            "notes": list(self.notes),
        }

    def to_dict(self) -> dict[str, Any]:
        """The shape in which it leaves as JSON, with its weights."""
        return {**self._about, "content": self.stored.to_json()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainedModel:
        """As `to_dict` wrote it."""
        found = Fields(data, "model")
        return cls(
            StoredModel.of_json(found.mapping("content")),
            found.mapping("left_out"),
            found.mapping("guarantee"),
            found.mapping("charge"),
            found.mapping("remaining"),
            found.flag("free"),
            found.mapping("receipt") if "receipt" in found else None,
            found.texts("notes"),
        )


def release_id(release: TrainedModel | str) -> str:
    """The number of a release: its own, or that of a model."""
    if isinstance(release, str):
        return release
    if release.receipt is None:
        raise InputError(
            "This model has no receipt.", why="It was not asked for here.", fix="Give the id of its receipt."
        )
    return str(release.receipt["id"])
