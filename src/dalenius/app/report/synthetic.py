"""The report on a synthetic table: what it is, each column by itself, how well it fits, how far from the real one.

Everything in it follows from releases that were paid for, noise and all: whoever may have the rows may have the report.
What needs the real rows is in it only if it was released at a price of its own (`Analyst.compare_synthetic`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius._version import __version__
from dalenius.synthesis.describing import one_ways

if TYPE_CHECKING:
    from dalenius.analyst import Asking
    from dalenius.synthesis.comparison_release import Comparison
    from dalenius.synthesis.release import SyntheticTable
    from dalenius.synthesis.stored import StoredModel

ENDINGS = (".html", ".json")
_TWO_SIDED_95 = 1.96


@dataclass(frozen=True)
class ColumnReport:
    """One column by itself.

    Attributes:
        name: As in the policy.
        labels: Its values, or classes of them.
        shares: Of all synthetic rows.
        margin: 95% margin for the added noise in the share of one value, as it was measured; None: not known.
    """

    name: str
    labels: Sequence[str]
    shares: Sequence[float]
    margin: float | None


@dataclass(frozen=True)
class FitReport:
    """How well the model fits the noisy tables of so many columns.

    Attributes:
        columns: How many columns a table has.
        tables: How many were measured.
        noise: 95% margin for the added noise in one of their numbers, in rows, on average.
        ratio: How far the model is from the noisy numbers, by what noise alone would make of it, on average.
        worst: The columns for which that is largest, and how large.
    """

    columns: int
    tables: int
    noise: float
    ratio: float
    worst: Sequence[tuple[tuple[str, ...], float]]


@dataclass(frozen=True)
class SyntheticReport:
    """All facts of the report."""

    made: str
    program: str
    table: str
    release: str | None
    method: str
    rows: int
    rows_per_unit: int
    units: Mapping[str, Any] | None
    guarantee: Mapping[str, Any]
    left_out: Mapping[str, str]
    columns: Sequence[ColumnReport]
    fit: Sequence[FitReport]
    comparison: Mapping[str, Any] | None
    notes: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def write_synthetic_report(target: Path, found: SyntheticTable, comparison: Comparison | None = None) -> None:
    """Writes it, as HTML or JSON by the file's ending; whole or not at all."""
    from dalenius.anonymity.table import whole_file
    from dalenius.app.report.synthetic_html import document

    report = gather(found, comparison)
    html = target.suffix.lower() == ".html"
    text = document(report) if html else json.dumps(report.to_dict(), indent=1, ensure_ascii=False) + "\n"
    with whole_file(target) as part:
        part.write_text(text, encoding="utf-8")


def report_of(asker: Asking, release: str) -> SyntheticReport:
    """The report on a synthetic table that was paid for, with the newest comparison of it, if there is one."""
    compared = asker.comparisons(release)
    return gather(asker.synthetic(release), compared[0] if compared else None)


def gather(found: SyntheticTable, comparison: Comparison | None = None) -> SyntheticReport:
    """All facts about a synthetic table, and about a comparison of it with the real one, if there is one."""
    stored = found.stored
    noise = {each.columns[0]: each.sigma for each in stored.measured if len(each.columns) == 1}
    by_name = {each.name: each for each in one_ways(stored)}
    columns = [
        ColumnReport(
            name,
            by_name[name].labels,
            by_name[name].shares,
            _TWO_SIDED_95 * noise[name] / max(1, stored.counted) if name in noise else None,
        )
        for name in found.columns
    ]
    return SyntheticReport(
        datetime.now(UTC).isoformat(timespec="seconds"),
        f"dalenius {__version__}",
        stored.table,
        str(found.receipt["id"]) if found.receipt else None,
        stored.method,
        found.rows,
        stored.limit,
        found.to_dict()["units"],
        found.guarantee,
        dict(found.left_out),
        columns,
        fit_of(stored),
        None if comparison is None else comparison.to_dict(),
        found.notes,
    )


def fit_of(stored: StoredModel) -> list[FitReport]:
    """How well the model fits what was measured, by the number of columns of a table."""
    found = []
    for count in sorted({len(each.columns) for each in stored.measured}):
        tables = [each for each in stored.measured if len(each.columns) == count]
        of_columns = {each.columns: each for each in sorted(tables, key=lambda each: each.ratio)}  # the worst of each
        worst = sorted(of_columns.values(), key=lambda each: -each.ratio)[:3]
        found.append(
            FitReport(
                count,
                len(tables),
                _TWO_SIDED_95 * sum(each.sigma for each in tables) / len(tables),
                sum(each.ratio for each in tables) / len(tables),
                [(each.columns, each.ratio) for each in worst],
            )
        )
    return found
