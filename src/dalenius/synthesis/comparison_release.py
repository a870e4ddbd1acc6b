"""A comparison of a synthetic table with the real one, as who asked for it gets it; and what it would be like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dalenius._fields import Fields

_WHAT = "comparison"


@dataclass(frozen=True)
class WayError:
    """How far tables of so many columns are from the real ones: the L1 distance of shares, from 0 to 2.

    Attributes:
        columns: How many columns a table has.
        tables: How many tables were compared.
        of: How many there are.
        error: The mean of them all, with noise.
        margin: 95% margin for the added noise in it.
        each: Of every table its columns and its error; None: not told.
        margin_each: 95% margin for the added noise in one of those.
    """

    columns: int
    tables: int
    of: int
    error: float
    margin: float
    each: Sequence[Mapping[str, Any]] | None = None
    margin_each: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"each": None if self.each is None else list(self.each)}

    @classmethod
    def from_dict(cls, data: object) -> WayError:
        """As JSON has it."""
        found = Fields(data, _WHAT)
        each = None if found.any("each") is None else tuple(found.each("each", dict))
        for table in each or ():
            inside = Fields(table, _WHAT)
            inside.texts("columns"), inside.number("error")
        return cls(
            found.whole("columns"),
            found.whole("tables"),
            found.whole("of"),
            found.number("error"),
            found.number("margin"),
            each,
            found.number("margin_each") if found.any("margin_each") is not None else None,
        )


@dataclass(frozen=True)
class Prediction:
    """How a classifier that was learned from synthetic rows does on real ones.

    Attributes:
        column: What it predicts.
        classes: What it tells apart.
        table: Real rows by class and predicted class, with noise.
        sigma: The standard deviation of the noise in each cell.
        accuracy: How often it is right on real rows.
        margin: 95% margin for the added noise in that.
        most_frequent: How often one would be right who always said the most frequent class.
        synthetic: How often it is right on synthetic rows that it was not learned from.
    """

    column: str
    classes: tuple[str, ...]
    table: Sequence[Sequence[float]]
    sigma: float
    accuracy: float
    margin: float
    most_frequent: float
    synthetic: float | None

    @classmethod
    def from_dict(cls, data: object) -> Prediction:
        """As JSON has it."""
        found = Fields(data, _WHAT)
        rows = [[found.number_of(cell, "table") for cell in row] for row in found.each("table", list)]
        return cls(
            found.text("column"),
            found.texts("classes"),
            rows,
            found.number("sigma"),
            found.number("accuracy"),
            found.number("margin"),
            found.number("most_frequent"),
            found.number("synthetic") if found.any("synthetic") is not None else None,
        )


@dataclass(frozen=True)
class Comparison:
    """How far a synthetic table is from the real one, with noise, a guarantee and what it cost.

    Attributes:
        table: The real table.
        release: The number of the synthetic table's release.
        method: The generator of that.
        rows: Rows by which errors are divided: those of the model.
        rows_per_unit: So many rows of one unit counted in full.
        ways: Errors of tables of one column, two, three.
        prediction: What a classifier reaches; None: nothing was to be predicted.
        guarantee: `kind`, `epsilon`, `delta`, `unit`, `neighbors`.
        charge: `epsilon`, `delta`, `rho`, as charged.
        remaining: What is left to spend.
        free: Paid for before.
        receipt: Proof of the charge.
        notes: What the reader should know besides.
    """

    table: str
    release: str
    method: str
    rows: float
    rows_per_unit: int
    ways: tuple[WayError, ...]
    prediction: Prediction | None
    guarantee: Mapping[str, Any]
    charge: Mapping[str, Any]
    remaining: Mapping[str, Any]
    free: bool
    receipt: Mapping[str, Any] | None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For `--json` and HTTP."""
        found = asdict(self) | {"notes": list(self.notes), "ways": [each.to_dict() for each in self.ways]}
        if self.prediction is not None:
            found["prediction"]["classes"] = list(self.prediction.classes)
        return found

    @classmethod
    def of_content(
        cls,
        content: Mapping[str, Any],
        guarantee: Mapping[str, Any],
        charge: Mapping[str, Any],
        remaining: Mapping[str, Any],
        free: bool,
        receipt: Mapping[str, Any] | None,
        notes: tuple[str, ...],
    ) -> Comparison:
        """From what is stored."""
        found = Fields(content, _WHAT)
        return cls(
            found.text("table"),
            found.text("release"),
            found.text("method"),
            found.number("rows"),
            found.whole("rows_per_unit"),
            tuple(map(WayError.from_dict, found.each("ways", dict))),
            Prediction.from_dict(found.mapping("prediction")) if "prediction" in found else None,
            guarantee,
            charge,
            remaining,
            free,
            receipt,
            notes,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Comparison:
        """As `to_dict` wrote it."""
        found = Fields(data, _WHAT)
        return cls.of_content(
            data,
            found.mapping("guarantee"),
            found.mapping("charge"),
            found.mapping("remaining"),
            found.flag("free"),
            found.mapping("receipt") if "receipt" in found else None,
            found.texts("notes"),
        )


@dataclass(frozen=True)
class ComparisonPreview:
    """Price and expected margins of a comparison.

    Attributes:
        epsilon: The price.
        release: The number of the synthetic table's release.
        table: The real table.
        margins: By how many columns a table has, the 95% margin for the added noise in the mean error.
        predict: What a classifier would predict.
        work: Seconds that it takes on the machine of bench/RESULTS.md, as far as public sizes tell.
        seconds: After which it leaves, on that machine, where times are fixed.
        remaining: What is left to spend.
        known: This analyst has paid for it already: it is free.
        notes: What the reader should know besides.
    """

    epsilon: float
    release: str
    table: str
    margins: Mapping[str, float]
    predict: str | None
    work: float
    seconds: float
    remaining: Mapping[str, Any]
    known: bool
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For `--json` and HTTP."""
        return asdict(self) | {"notes": list(self.notes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ComparisonPreview:
        """As `to_dict` wrote it."""
        found = Fields(data, _WHAT)
        margins = Fields(found.mapping("margins"), _WHAT)
        return cls(
            found.number("epsilon"),
            found.text("release"),
            found.text("table"),
            {way: margins.number(way) for way in margins.data},
            found.text("predict") if "predict" in found else None,
            found.number("work"),
            found.number("seconds"),
            found.mapping("remaining"),
            found.flag("known"),
            found.texts("notes"),
        )
