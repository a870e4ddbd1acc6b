"""How far a synthetic table is from the real one, as noisy counts: tables of 1, 2, 3 columns, and a classifier.

What is compared is public: rows drawn from the stored model, the same ones each time, and a classifier that was
learned from them. Real rows are counted by `UnitMeasurer`, with its guarantee.

Guarantee:
    Neighbours are those of the budget (one unit added or removed, or one in another's place). Let a row weigh as it
    does for the model, so that one unit adds whole numbers v ≥ 0 with ‖v‖₁ ≤ L to any table of counts (`rows`).

    *Distances.* Of m tables with public references rᵢ the distances dᵢ = Σ|cᵢ − rᵢ| are released as one vector. Each
    changes by at most L by the triangle inequality, where units are exchanged by 2L; so the vector changes by
    Δ₂² ≤ m·L² (4m·L²), and gets discrete Gaussian noise of variance Δ₂²/2ρₖ in each of its parts: ρₖ-zCDP. Their mean
    then has a variance of L²/2ρₖ (4L²/2ρₖ), as if it alone had been released: all of them cost no more than it.
    *Classifier.* It is a public function of a row, so the counts of (class, predicted class) are one more table in
    which a row stands in one cell: Δ₂² ≤ L² (2L²).

    All calls together are ρ-zCDP with ρ = Σρₖ, the one event that is charged before anybody looks. What is said
    besides (errors, accuracy, margins) is post-processing.

References:
    Bun & Steinke, Concentrated differential privacy (2016), Lemma 2.3; Canonne, Kamath & Steinke, The discrete Gaussian
    for differential privacy (2020), Thm. 14.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.synthesis.describing import drawn
from dalenius.synthesis.domain import Column, Domain
from dalenius.synthesis.measurer import shares
from dalenius.synthesis.predicting import Predictor, learned
from dalenius.synthesis.scores import Distance
from dalenius.synthesis.scoring import MOST_CLASSES
from dalenius.synthesis.views import Rows, View

if TYPE_CHECKING:
    from dalenius.synthesis.domain import Codes
    from dalenius.synthesis.measurer import Measurer
    from dalenius.synthesis.rows import Limit
    from dalenius.synthesis.stored import StoredModel

FORMAT = "comparison 1"
WAYS = (1, 2, 3)
TOLD = 2  # tables of up to so many columns are told one by one
MOST_TABLES = {1: 10_000, 2: 1_000, 3: 400}
PREDICTED = "predicted"
LEARNED = 0.8  # of the drawn rows; what the classifier does on the others is told beside
TWO_SIDED_95 = 1.96


@dataclass(frozen=True)
class Compared:
    """What is compared of some columns: public, and the same each time.

    Attributes:
        tables: By how many columns they have, the tables: all there are, or as many as `MOST_TABLES` of them.
        predict: The place of the column that a classifier predicts; None: there is none.
    """

    tables: Mapping[int, tuple[tuple[int, ...], ...]]
    predict: int | None

    @classmethod
    def of(cls, columns: int, predict: int | None) -> Compared:
        """For so many columns."""
        found = {way: _some(columns, way, MOST_TABLES[way]) for way in WAYS if way <= columns}
        return cls(found, predict)

    @property
    def counted(self) -> int:
        """How many tables are counted."""
        return sum(map(len, self.tables.values())) + (self.predict is not None)

    def parts(self, rho: Fraction) -> tuple[dict[int, Fraction], Fraction | None]:
        """What each kind of table costs, and the classifier: the same each."""
        parts = shares(rho, [1.0] * (len(self.tables) + (self.predict is not None)))
        ways = dict(zip(self.tables, parts, strict=False))
        return ways, None if self.predict is None else parts[-1]

    def margins(self, rho: Fraction, limit: Limit, rows: float) -> dict[int, float]:
        """95% margins of the mean errors, known before anything is measured; ``rows``: of the model."""
        return {
            way: TWO_SIDED_95 * limit.of_score / math.sqrt(2 * part) / limit.whole / rows
            for way, part in self.parts(rho)[0].items()
        }


def compare(
    stored: StoredModel,
    compared: Compared,
    codes: Codes,
    measurer_of: Callable[[Domain, Codes], Measurer],
    rho: Fraction,
) -> dict[str, Any]:
    """Spends ``rho`` on all that is compared: inside of a look.

    Args:
        stored: The model.
        compared: What of it.
        codes: The real rows, columns × rows.
        measurer_of: Makes the measurer of a domain and rows of codes.
        rho: What was charged.
    """
    made = np.ascontiguousarray(drawn(stored).T)
    columns, rows = stored.domain.domain, max(1.0, stored.model.rows)
    predictor = own = None
    if compared.predict is not None:
        cut = max(1, int(LEARNED * made.shape[1]))
        predictor = learned(made[:, :cut], stored.domain.columns, compared.predict)
        own = _agree(predictor, made[:, cut:])
        codes = np.concatenate([codes, predictor.predict(codes)[None, :].astype(codes.dtype)])
        columns = Domain((*columns, Column(PREDICTED, tuple(range(len(predictor.classes.names))))))
    measurer = measurer_of(columns, codes)
    parts, last = compared.parts(rho)
    ways = [_way(measurer, stored, made, tables, parts[way]) for way, tables in compared.tables.items()]
    found: dict[str, Any] = {"rows": float(rows), "ways": ways, "prediction": None}
    for each in ways:
        each["of"] = math.comb(len(stored.domain.columns), each["columns"])
    if predictor is not None and last is not None:
        beside = {"column": stored.names[predictor.target], "synthetic": own}
        found["prediction"] = beside | _prediction(measurer, predictor, last)
    return found


def _way(
    measurer: Measurer, stored: StoredModel, made: Codes, tables: Sequence[tuple[int, ...]], rho: Fraction
) -> dict[str, Any]:
    """The errors of all tables of so many columns, as one vector."""
    rows, sizes = max(1.0, stored.model.rows), stored.domain.domain.sizes
    coded, scale = Rows(made), rows / made.shape[1]
    views = [classed(columns, sizes) for columns in tables]
    asked = [Distance(view, np.rint(scale * coded.count(view)).astype(np.int64)) for view in views]
    scored = measurer.scores(asked, rho)
    each = TWO_SIDED_95 * scored.sigma / rows
    found: dict[str, Any] = {
        "columns": len(tables[0]),
        "tables": len(tables),
        "error": float(scored.values.mean() / rows),
        "margin": each / math.sqrt(len(tables)),
        "each": None,
    }
    if len(tables[0]) <= TOLD:
        names = [[stored.names[at] for at in columns] for columns in tables]
        errors = (float(value / rows) for value in scored.values)
        found |= {"each": [{"columns": name, "error": error} for name, error in zip(names, errors, strict=True)]}
        found |= {"margin_each": each}
    return found


def _prediction(measurer: Measurer, predictor: Predictor, rho: Fraction) -> dict[str, Any]:
    """The table of classes and predicted ones, and how often both agree."""
    classes = len(predictor.classes.names)
    predicted = np.arange(classes, dtype=np.int32)
    view = View((predictor.target, len(measurer.domain) - 1), (predictor.classes.groups, predicted))
    (measured,) = measurer.measure([(view, rho)])
    table, total = measured.table, max(1.0, float(measured.values.sum()))
    right = min(1.0, max(0.0, float(np.trace(table)) / total))
    # of right/total, to first order: K cells on the diagonal move it by (1 − a)/n, the others by −a/n
    deviation = measured.sigma * math.sqrt(classes * (1 - right) ** 2 + (classes**2 - classes) * right**2) / total
    most = min(1.0, max(0.0, float(table.sum(axis=1).max()) / total))
    return {
        "classes": list(predictor.classes.names),
        "table": [[round(float(cell), 1) for cell in row] for row in table],
        "sigma": measured.sigma,
        "accuracy": right,
        "margin": TWO_SIDED_95 * deviation,
        "most_frequent": most,
    }


def classed(columns: Sequence[int], sizes: Sequence[int]) -> View:
    """The table of some columns; of one with very many values equal classes of neighbouring codes, as `scoring` has."""
    groups = (np.arange(size) * min(size, MOST_CLASSES) // size for size in (sizes[at] for at in columns))
    return View(tuple(columns), tuple(each.astype(np.int32) for each in groups))


def _agree(predictor: Predictor, table: Codes) -> float | None:
    """How often it is right on rows that it was not learned from; None: there are none."""
    if not table.shape[1]:
        return None
    return float((predictor.predict(table) == predictor.truth(table)).mean())


def _some(columns: int, way: int, most: int) -> tuple[tuple[int, ...], ...]:
    """All sets of so many columns; of very many a sample, the same one each time."""
    if math.comb(columns, way) <= most:
        return tuple(combinations(range(columns), way))
    chance, found = np.random.default_rng(way), set[tuple[int, ...]]()
    while len(found) < most:
        found.add(tuple(sorted(chance.choice(columns, way, replace=False).tolist())))
    return tuple(sorted(found))
