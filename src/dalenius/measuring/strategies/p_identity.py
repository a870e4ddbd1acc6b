"""One attribute's best matrix, found by descent: tr((AᵀA)⁻¹G) at unit columns, where G = FᵀF of all that is asked.

*L2.* A = B/‖columns of B‖ for any square B, by L-BFGS. With X = AᵀA the error is tr(X⁻¹G), and its gradient in A is
−2·A·X⁻¹GX⁻¹; of that, each column loses its part along itself (the error does not change where a column is only made
longer). Without the condition on columns the best X is G^½ up to a factor: B starts at its root G^¼.

*L1.* p-identity (McKenna et al. 2018): A = [I; Θ]·D with Θ ≥ 0, p rows, and D = diag(1/s), s_j = 1 + Σ_i Θ_ij, so that
all columns add up to one. With K = (I + ΘᵀΘ)⁻¹ = I − Θᵀ(I + ΘΘᵀ)⁻¹Θ, which takes p × p alone, the error is
f = Σ_jk K_jk·s_j·s_k·G_jk; its gradient is −2·ΘK·M·K with M_jk = s_j·s_k·G_jk, plus 2·Σ_k K_jk·G_jk·s_k in column j.
It is not convex: the best of a few starts is taken, from a fixed seed, so that a plan is the same each time.

What is found is multiplied by a power of two and rounded toward zero; what one row changes is worked out from the whole
numbers.

References:
    McKenna, Miklau, Hay, Machanavajjhala: Optimizing error of high-dimensional statistical queries under differential
    privacy. PVLDB 11(10), 2018.
    Yuan, Yang, Zhang, Hao: Convex optimization for linear query processing under approximate differential privacy.
    KDD 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalenius.measuring.strategies.factors import Array
from dalenius.measuring.strategies.lines import MatrixLine
from dalenius.measuring.strategies.strategy import sensitivity

MOST = 512  # classes; more take too long, and too much to store
_WORK = 8e9  # of descents: classes³ × steps
_STARTS = 3
_BITS = range(6, 22, 2)  # parts of one, as powers of two
_LOSS = 2.5e-4  # of the error, by rounding
_FLOOR = 1e-6  # of the mean square: what every class counts at the least, so that it is determined


def optimised_line(gram: Array, norm: str, *, effort: float = 1.0) -> MatrixLine:
    """The matrix with the least error that descent finds, in whole numbers."""
    n = len(gram)
    goal = gram + np.eye(n) * (_FLOOR * max(gram.trace() / n, 1e-300))
    goal = goal / (goal.trace() / n)
    steps = int(max(10, min(600, effort * _WORK / n**3)))
    real = _unit_columns_l2(goal, steps) if norm == "l2" else _unit_columns_l1(goal, steps, _starts(n, effort))
    return whole_line(real, goal, norm)


def _starts(n: int, effort: float) -> int:
    """Fewer where each takes long."""
    return max(1, min(_STARTS if effort >= 1 else 1, _STARTS * 256**2 // n**2))


def whole_line(real: Array, gram: Array, norm: str) -> MatrixLine:
    """The matrix in so many parts that rounding loses next to nothing."""
    aim = _error(real, gram) * (1 + _LOSS)
    first = 6 if len(gram) <= 16 else 10 if len(gram) <= 64 else 14
    line = None
    for bits in _BITS:
        if bits >= first:
            entries = np.trunc(real * 2.0**bits).astype(np.int64)
            line = MatrixLine(entries[np.abs(entries).sum(axis=1) > 0])
            if sensitivity(line.change(norm), norm) * _error(line.entries.astype(float), gram) <= aim:
                break
    assert line is not None  # noqa: S101 - there are bits to go through
    return line


def _error(matrix: Array, gram: Array) -> float:
    """The trace of (AᵀA)⁻¹G; infinite where a class is not determined."""
    from scipy.linalg import solve_triangular

    root = np.linalg.qr(matrix)[1]
    lengths = np.abs(root.diagonal())
    if len(matrix) < len(gram) or lengths.min() < 1e-9 * lengths.max():
        return float("inf")
    half = solve_triangular(root, gram, trans="T")
    return float(solve_triangular(root, half.T, trans="T").trace())


def _unit_columns_l2(gram: Array, steps: int) -> Array:
    n = len(gram)
    values, vectors = np.linalg.eigh(gram)
    fourth = np.maximum(values, values.max() * 1e-12) ** 0.25
    start = (vectors * fourth) @ vectors.T

    def value(flat: Array) -> tuple[float, Array]:
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        raw = flat.reshape(n, n)
        lengths = np.sqrt((raw * raw).sum(axis=0))
        a = raw / lengths
        try:
            factor = cho_factor(a.T @ a, check_finite=False)
        except LinAlgError:
            return 1e300, np.zeros(n * n)
        first = cho_solve(factor, gram, check_finite=False)  # X⁻¹G
        both = cho_solve(factor, first.T, check_finite=False)  # X⁻¹GX⁻¹
        slope = -2 * a @ both
        slope -= a * (slope * a).sum(axis=0)
        return float(first.trace()), (slope / lengths).ravel()

    best = _descend(value, start.ravel(), steps, None)[1].reshape(n, n)
    return np.asarray(best / np.sqrt((best * best).sum(axis=0)))


def _unit_columns_l1(gram: Array, steps: int, starts: int) -> Array:
    n = len(gram)
    p = max(1, n // 16)
    if n <= 64:
        p = max(1, n // 4)

    def value(flat: Array) -> tuple[float, Array]:
        theta = flat.reshape(p, n)
        s = 1 + theta.sum(axis=0)
        h = np.linalg.solve(np.eye(p) + theta @ theta.T, theta)  # ΘK
        k_gram = -(theta.T @ h)
        k_gram.flat[:: n + 1] += 1
        k_gram *= gram  # K∘G
        along = k_gram @ s
        hm = (h * s) @ gram * s
        slope = -2 * (hm - (hm @ theta.T) @ h) + 2 * along
        return float(s @ along), slope.ravel()

    chance = np.random.default_rng(21)
    found = [_descend(value, chance.random(p * n), min(1500, steps * 8), (0, None)) for _ in range(starts)]
    theta = min(found, key=lambda each: each[0])[1].reshape(p, n)
    return np.asarray(np.concatenate([np.eye(n), theta]) / (1 + theta.sum(axis=0)))


def _descend(
    value: Callable[[Array], tuple[float, Array]], start: Array, steps: int, bound: tuple[float, None] | None
) -> tuple[float, Array]:
    from scipy.optimize import minimize

    options: Any = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 10, "ftol": 1e-7}
    bounds = None if bound is None else [bound] * len(start)
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return float(found.fun), np.asarray(found.x)
