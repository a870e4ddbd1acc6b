"""Losses that are paid by class: how large the classes became.

- **Discernibility** (Bayardo & Agrawal 2005): Σ of squared sizes; a suppressed row counts as if it looked like all
  rows.
- **Average class size**: rows per class; the suppressed rows are one class.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


def discernibility(sizes: NDArray[Any], suppressed: int, rows: int) -> float:
    """Of published classes with these sizes, and so many suppressed rows.

    >>> import numpy as np
    >>> discernibility(np.array([3, 2]), 1, 6)
    19.0
    """
    return float((sizes.astype(float) ** 2).sum()) + float(suppressed) * rows


def average_class_size(sizes: NDArray[Any], suppressed: int, rows: int) -> float:
    """Rows per class.

    >>> import numpy as np
    >>> average_class_size(np.array([3, 2]), 1, 6)
    2.0
    """
    return rows / max(int((sizes > 0).sum()) + (suppressed > 0), 1)
