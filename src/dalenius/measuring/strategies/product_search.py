"""The best product: one attribute after the other gets the line with the least error, given all others.

With lines for all attributes but one, the error of question k is Π T_kd over these, T_kd being the total variance of
its factor there. That is what counts for its factor of the attribute that is left: a workload of one attribute, whose
best line is chosen by error among single classes, hierarchy, wavelet and an optimised matrix.

References:
    McKenna, Miklau, Hay, Machanavajjhala 2018 (OPT_⊗).
"""

from __future__ import annotations

import math

import numpy as np

from dalenius.measuring.strategies.asked import Asked
from dalenius.measuring.strategies.hierarchy import hierarchy
from dalenius.measuring.strategies.lines import EachClass, Line
from dalenius.measuring.strategies.p_identity import MOST, optimised_line
from dalenius.measuring.strategies.products import Products
from dalenius.measuring.strategies.strategy import sensitivity
from dalenius.measuring.strategies.wavelet import wavelet
from dalenius.measuring.strategies.workload import Workload

_SWEEPS = 3
_GAIN = 1e-3  # of the error: less than that ends the search


def best_line(classes: int, asked: Asked, norm: str, *, effort: float = 1.0) -> Line:
    """The line with the least error of all kinds."""
    found: list[Line] = [EachClass(classes)]
    if not any(count * factor.total_block_squares(1) for count, factor in asked):
        return found[0]  # nothing is asked
    if classes > 2:
        found += [hierarchy(classes, asked, norm), wavelet(classes, asked, norm)]
    if 1 < classes <= MOST:
        gram = sum((count * factor.gram() for count, factor in asked), np.zeros((classes, classes)))
        found.append(optimised_line(gram, norm, effort=effort))
    return min(found, key=lambda line: line_error(line, asked, norm))


def line_error(line: Line, asked: Asked, norm: str) -> float:
    """Its error at unit sensitivity."""
    return sensitivity(line.change(norm), norm) * sum(count * line.total_variance(factor) for count, factor in asked)


def best_product(workload: Workload, norm: str, *, effort: float = 1.0) -> Products:
    """By a few rounds through all attributes."""
    sizes, attributes = workload.sizes, workload.attributes
    asked = workload.asked
    lines: dict[int, Line] = {at: EachClass(sizes[at]) for at in attributes}
    totals = {at: lines[at].totals(asked[at]) for at in attributes}
    weights = workload.squared_weights
    large = sum(64 < sizes[at] <= MOST for at in attributes)
    effort *= 1.0 if len(attributes) == 1 else 1 / (_SWEEPS * max(1, large))
    before = np.inf
    for _ in range(_SWEEPS if len(attributes) > 1 else 1):
        for at in attributes:
            counts = weights * np.prod([totals[other] for other in attributes if other != at], axis=0)
            here = asked[at].weighted(counts)
            line = best_line(sizes[at], here, norm, effort=effort)
            if line_error(line, here, norm) < line_error(lines[at], here, norm):
                lines[at], totals[at] = line, line.totals(asked[at])
        changes = math.prod(sensitivity(lines[at].change(norm), norm) for at in attributes)
        error = changes * float(weights @ np.prod([totals[at] for at in attributes], axis=0))
        if error > before * (1 - _GAIN):
            break
        before = error
    return Products(sizes, lines)
