"""What is left of an attribute when its total is known: by how much each class differs from their mean.

C = 1 − J/n takes the mean away. A contrast is measured as n·C = n·1 − J, in whole numbers: what it says of C is exactly
what noise of one variance can say of it, as in ResidualPlanner, whose noise is correlated instead.

Where ranges are asked for, other matrices R with R·1 = 0 tell more. They are looked for in the space of contrasts, with
an orthonormal basis U of it and R = B·Uᵀ: the error is tr((BᵀB)⁻¹·UᵀGU) times the largest ‖B·u_j‖², u_j being the rows
of U; instead of the largest the mean of high powers is brought down, by L-BFGS, and the largest counts in the end.
Rounded, R would not be without a total; so B is rounded, b = trunc(2^k·B·Uᵀ), and b·(n·1 − J) is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dalenius.measuring.strategies.factors import Array, Factor, Numbers
from dalenius.measuring.strategies.lines import Line, MatrixLine


@dataclass(frozen=True)
class Contrasts(Line):
    """Each class against the mean. Unlike other lines, it does not tell their total."""

    kind: ClassVar[str] = "contrasts"
    name: ClassVar[str] = "contrasts"
    size: int

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.size

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return self.size

    @property
    def growth(self) -> int:
        """A class n times, and the total of all."""
        return 2 * self.size

    @property
    def signed(self) -> bool:
        """All other classes count below zero."""
        return True

    def change(self, norm: str) -> int:
        """A column has n − 1 once and −1 in all other places."""
        n = self.size
        return n * (n - 1) if norm == "l2" else 2 * (n - 1)

    def apply(self, x: Numbers, axis: int) -> Numbers:
        """The matrix n·1 − J, times ``x``."""
        return np.asarray(x * self.size - x.sum(axis=axis, keepdims=True))

    def solve(self, noisy: Array, axis: int) -> Array:
        """The contrasts C·x: the pseudoinverse of n·C is C/n."""
        return np.asarray(noisy - noisy.mean(axis=axis, keepdims=True)) / self.size

    def variances(self, factor: Factor) -> Array:
        """‖C·f‖²/n² for each answer."""
        return np.asarray(factor.squares() - factor.block_squares(self.size) / self.size) / self.size**2

    def total_variance(self, factor: Factor) -> float:
        """The sum of all."""
        n = self.size
        return (factor.total_block_squares(1) - factor.total_block_squares(n) / n) / n**2

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {"kind": self.kind, "classes": self.size}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Contrasts:
        """The one that was written down."""
        return cls(int(stored["classes"]))


@dataclass(frozen=True, eq=False)
class ContrastMatrix(MatrixLine):
    """A matrix whose rows add up to zero; of rank n − 1."""

    kind: ClassVar[str] = "contrast matrix"
    name: ClassVar[str] = "optimised contrasts"

    @cached_property
    def _inverse(self) -> tuple[Array, Array]:
        """R⁺ twice, since (RᵀR)⁺ = R⁺·R⁺ᵀ."""
        inverse = np.asarray(np.linalg.pinv(self.entries.astype(float), rcond=1e-10))
        return inverse, inverse


MOST = 256  # classes
_POWER = 48
_BITS = range(8, 16, 2)
_LOSS = 5e-4


def optimised_contrasts(gram: Array, *, effort: float = 1.0) -> ContrastMatrix:
    """The contrasts with the least error in L2 for answers with this FᵀF."""
    n = len(gram)
    basis = np.linalg.qr(np.concatenate([np.ones((n, 1)), np.eye(n)[:, 1:]], axis=1))[0][:, 1:]
    goal = basis.T @ gram @ basis
    goal = goal / (goal.trace() / n) + np.eye(n - 1) * 1e-6
    real = _descend(goal, basis, effort) @ basis.T
    best = None
    for bits in _BITS:
        rounded = np.trunc(real * 2.0**bits).astype(np.int64)
        line = ContrastMatrix(rounded * n - rounded.sum(axis=1, keepdims=True))
        values = np.linalg.svd(line.entries.astype(float), compute_uv=False)
        if values[n - 2] < 1e-8 * values[0]:
            continue
        error = line.change("l2") * float(((gram @ line.root) * line.root).sum())
        if best is not None and error > best[0] * (1 - _LOSS):
            break
        best = error, line
    assert best is not None  # noqa: S101 - with many bits the rank is full
    return best[1]


def _descend(goal: Array, basis: Array, effort: float) -> Array:
    from scipy.linalg import LinAlgError, cho_factor, cho_solve
    from scipy.optimize import minimize

    m = len(goal)

    def value(flat: Array) -> tuple[float, Array]:
        b = flat.reshape(m, m)
        try:
            factor = cho_factor(b.T @ b + np.eye(m) * 1e-13, check_finite=False)
        except LinAlgError:
            return 1e300, np.zeros(m * m)
        first = cho_solve(factor, goal, check_finite=False)
        both = cho_solve(factor, first.T, check_finite=False)
        error = float(first.trace())
        lengths = np.square(b @ basis.T).sum(axis=0)
        largest = lengths.max()
        powers = (lengths / largest) ** _POWER
        shares = powers / powers.sum() / lengths  # of the gradient of log (Σ lengths^p)^(1/p)
        slope = -2 * b @ both / error + 2 * (b @ (basis.T * shares)) @ basis
        return float(np.log(error) + np.log(largest) + np.log(powers.sum()) / _POWER), slope.ravel()

    values, vectors = np.linalg.eigh(goal)
    start = (vectors * np.maximum(values, values.max() * 1e-9) ** 0.25) @ vectors.T
    steps = int(max(10, min(400, effort * 4e9 / (m + 1) ** 3)))
    options: Any = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-7}
    found = minimize(value, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    b = np.asarray(found.x).reshape(m, m)
    return np.asarray(b / np.sqrt(np.square(b @ basis.T).sum(axis=0).max()))
