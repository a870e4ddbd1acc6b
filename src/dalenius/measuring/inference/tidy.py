"""Cells that look like counts: none below zero, whole numbers. All answers are made of the same cells, and add up.

The total stays: where cells below zero become zero, all others fall by the same amount. Then they are rounded along the
hierarchy of attributes (`rounding`). Both are post-processing of noisy numbers. Answers are no longer unbiased, and
their variances are those of least squares no more: show each with the interval of least squares, cut by what is
publicly true of it and made wide enough for the answer that is shown (`intervals`); that one is honest.
"""

from __future__ import annotations

from dataclasses import replace

from dalenius.measuring.inference.non_negative import not_below_zero
from dalenius.measuring.inference.rounding import round_cells
from dalenius.measuring.strategies.products import InferredCells


def tidy(inferred: InferredCells, *, counts: bool = True, whole: bool = True) -> InferredCells:
    """The cells as counts.

    Args:
        inferred: What least squares told.
        counts: Nothing is below zero in truth.
        whole: All are whole numbers in truth.
    """
    cells = inferred.cells
    if counts:
        cells = not_below_zero(cells, total=max(0.0, float(cells.sum())))
    if whole:
        cells = round_cells(cells).astype(float)
    return replace(inferred, cells=cells)
