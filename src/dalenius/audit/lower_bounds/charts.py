"""The trade-off plot: what any test may achieve by the claim, and what tests did achieve. Needs the extra `plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dalenius.queries.charts import axes_in
from dalenius.releasing.targets import PLOT, check_target

if TYPE_CHECKING:
    from dalenius.audit.lower_bounds.bounding import LowerBound


def check_plot(target: Path) -> None:
    """Refuses a file that could not be drawn, before anything is sampled."""
    check_target(target, PLOT)


def plot_trade_off(found: LowerBound, name: str, target: Path) -> None:
    """Type II against type I errors: points below the curve break the claim."""
    check_plot(target)
    with axes_in(target) as axes:
        alpha = np.linspace(0.0, 1.0, 401)
        axes.plot(alpha, found.claim.trade_off(alpha), color="#4477aa", label=f"claimed: {found.claim.words}")
        axes.plot(alpha, 1 - alpha, color="#aaaaaa", linestyle=":", label="perfect privacy")
        wrong, missed = zip(*found.points, strict=True) if found.points else ((), ())
        axes.plot(wrong, missed, ".", color="#ee6677", label=f"measured, {found.samples:,} runs on each side")
        axes.set_xlabel("type I error")
        axes.set_ylabel("type II error")
        axes.set_title(f"{name}: {'claim broken' if found.broken else 'within its claim'}", parse_math=False)
        axes.legend(frameon=False)
