"""How a peer of local privacy is timed and tried. Runs in the peer's own environment, so it needs little but Python.

The peer hands over functions that encode one value and functions that aggregate a list of reports. Out comes one JSON
object: CPU seconds for a million reports (fewer are made, and scaled), and errors of real runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

WHOLE = 1_000_000
EPSILON = 1.0
SECONDS = 4.0  # CPU seconds for each case, about

Encode = Callable[[int], Any]
Estimate = Callable[[Sequence[Any]], Any]


def encoding(encode: Encode, size: int) -> dict[str, float]:
    """CPU seconds for a million reports, from as many as a few seconds allow."""
    values = [value % size for value in range(2_000)]
    count = len(values)
    _run(encode, values[:200])  # compiles, and warms up
    took = _run(encode, values)
    if took < SECONDS / 2:
        count = int(min(WHOLE, count * SECONDS / max(took, 1e-3)))
        values = np.random.default_rng(1).integers(0, size, count).tolist()
        took = _run(encode, values)
    return {"seconds": took * WHOLE / count, "reports": count}


def aggregating(encode: Encode, estimate: Estimate, size: int, count: int) -> dict[str, float]:
    """CPU seconds for aggregating a million reports, from ``count`` of them."""
    reports = [encode(value % size) for value in range(count)]
    begin = time.process_time()
    estimate(reports)
    return {"seconds": (time.process_time() - begin) * WHOLE / count, "reports": count}


def error(encode: Encode, estimate: Estimate, values: Sequence[int], size: int, runs: int) -> dict[str, float]:
    """Mean squared error of the shares over real runs on the same values, and its own standard error."""
    truth = np.bincount(values, minlength=size) / len(values)
    found = [np.asarray(estimate([encode(value) for value in values]), float) for _ in range(runs)]
    each = [float(np.mean((shares - truth) ** 2)) for shares in found]
    return {"mse": float(np.mean(each)), "spread": float(np.std(each, ddof=1) / np.sqrt(runs)), "runs": runs}


def population(size: int, people: int) -> list[int]:
    """Values of which few are frequent; the same for everybody who is compared."""
    return (np.minimum(np.random.default_rng(23).zipf(1.5, people), size) - 1).tolist()  # type: ignore[no-any-return]


def report(package: str, cases: dict[str, Any]) -> None:
    """Prints what came out."""
    print(json.dumps({"package": package, "version": version(package), **cases}))


def _run(encode: Encode, values: Sequence[int]) -> float:
    begin = time.process_time()
    for value in values:
        encode(value)
    return time.process_time() - begin
