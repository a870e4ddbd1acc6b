"""The burn-down: what every budget had left after each charge."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.app.plots import figure
from dalenius.ledger.budgets import Budget

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger


def points(ledger: Ledger) -> dict[str, list[tuple[datetime, float]]]:
    """For each data set (and period): when, and the largest ε one more question could have typed then."""
    budgets: dict[str, Budget] = {}
    units: dict[tuple[str, str], tuple[int, int]] = {}
    found: dict[str, list[tuple[datetime, float]]] = {}
    for entry in ledger.entries():
        if entry.kind not in {"budget", "charge"}:
            continue
        data, when = entry.data, datetime.fromisoformat(entry.time)
        dataset = data["dataset"]
        if entry.kind == "budget":
            budgets[dataset] = Budget.from_dict(data["budget"])
        for period in data.get("periods", [""]):
            loss, delta = units.get((dataset, period), (0, 0))
            if entry.kind == "charge":
                loss, delta = loss + int(data["units"][0]), delta + int(data["units"][1])
                units[dataset, period] = loss, delta
            left = budgets[dataset].filter(units=(loss, delta)).remaining_epsilon
            found.setdefault(f"{dataset} {period}".strip(), []).append((when, left))
    return found


def draw(ledger: Ledger, target: Path) -> None:
    """Draws it."""
    with figure(target) as axes:
        for name, line in points(ledger).items():
            axes.step(*zip(*line, strict=True), where="post", label=name, linewidth=2)
        axes.set(xlabel="time (UTC)", ylabel="largest ε one more question may type")
        axes.set_ylim(bottom=0)
        axes.set_title("What is left of each budget")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
        for label in axes.get_xticklabels():
            label.set(rotation=25, ha="right")
