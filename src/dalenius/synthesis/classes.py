"""Which class a number falls into."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def class_of(numbers: Floats, edges: Floats) -> NDArray[np.int32]:
    """For each number the last class that begins at it or below; outside of all classes the first or the last.

    The same as a search among the edges, which are as good as equally far apart: so most places can be reckoned. What
    does not lie between the edges of the reckoned class is searched for.

    >>> class_of(np.array([-1.0, 0, 0.9, 1, 2.5, 3, 9]), np.linspace(0, 3, 4)).tolist()
    [0, 0, 0, 1, 2, 2, 2]
    """
    last = len(edges) - 2
    scale = (last + 1) / (edges[-1] - edges[0])
    found: NDArray[np.int32] = np.clip((numbers - edges[0]) * scale, 0, last).astype(np.int32)
    wrong = np.flatnonzero((numbers < edges[found]) | (numbers >= edges[1:][found]))
    if len(wrong):
        searched = np.searchsorted(edges, numbers[wrong], side="right") - 1
        found[wrong] = np.clip(searched, 0, last)
    return found
