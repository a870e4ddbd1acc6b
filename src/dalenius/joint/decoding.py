"""Whose share is wrong: the decoder of Berlekamp and Welch.

Shares are the values of a polynomial f of degree t, of which up to e are wrong. Let E be the polynomial whose zeros are
the wrong points, and Q = f·E. Then Q(i) = yᵢ·E(i) holds at *every* point, which is a system of linear equations in the
coefficients of Q and E. With n ≥ t + 2e + 1 points every solution has Q/E = f.

References: E. Berlekamp and L. Welch, US patent 4,633,470 (1986); as told in P. Gemmell and M. Sudan, "Highly resilient
correctors for polynomials", 1992.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dalenius.joint.shamir import Field


def locate_errors(field: Field, values: Mapping[int, int], degree: int) -> tuple[int, ...] | None:
    """The points whose values are wrong, or None where more than (n − degree − 1) / 2 are.

    >>> from dalenius.joint.fields import BIG
    >>> locate_errors(BIG, {1: 12, 2: 14, 3: 99, 4: 18}, 1)
    (3,)
    """
    most = (len(values) - degree - 1) // 2
    for errors in range(most + 1):
        polynomial = _decode(field, values, degree, errors)
        if polynomial is not None:
            wrong = tuple(point for point, value in values.items() if _value(field, polynomial, point) != value)
            if len(wrong) <= errors:
                return wrong
    return None


def _decode(field: Field, values: Mapping[int, int], degree: int, errors: int) -> list[int] | None:
    """f, from the coefficients of Q (degree + errors) and of E (monic, of degree `errors`)."""
    unknowns = degree + 2 * errors + 1
    rows = []
    for point, value in values.items():
        powers = [1]
        for _ in range(degree + errors):
            powers.append(field.scalar_multiply(powers[-1], point))
        of_errors = [field.scalar_subtract(0, field.scalar_multiply(value, powers[at])) for at in range(errors)]
        rows.append([*powers, *of_errors, field.scalar_multiply(value, powers[errors])])
    solution = _solve(field, rows, unknowns)
    if solution is None:
        return None
    product, divisor = solution[: degree + errors + 1], [*solution[degree + errors + 1 :], 1]
    return _divide(field, product, divisor)


def _solve(field: Field, rows: list[list[int]], unknowns: int) -> list[int] | None:
    """One solution of linear equations (right sides last), free unknowns being zero."""
    pivots: list[int] = []
    for column in range(unknowns):
        at = len(pivots)
        found = next((row for row in range(at, len(rows)) if rows[row][column]), None)
        if found is None:
            continue
        rows[at], rows[found] = rows[found], rows[at]
        inverse = field.scalar_inverse(rows[at][column])
        rows[at] = [field.scalar_multiply(inverse, each) for each in rows[at]]
        for row in range(len(rows)):
            factor = rows[row][column]
            if row != at and factor:
                rows[row] = [
                    field.scalar_subtract(each, field.scalar_multiply(factor, pivot))
                    for each, pivot in zip(rows[row], rows[at], strict=True)
                ]
        pivots.append(column)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    solution = [0] * unknowns
    for row, column in enumerate(pivots):
        solution[column] = rows[row][-1]
    return solution


def _divide(field: Field, product: list[int], divisor: list[int]) -> list[int] | None:
    """product / divisor (monic; lowest coefficients first), or None where something remains."""
    rest = list(product)
    quotient = [0] * max(1, len(product) - len(divisor) + 1)
    for at in range(len(product) - len(divisor), -1, -1):
        quotient[at] = rest[at + len(divisor) - 1]
        for place, each in enumerate(divisor):
            rest[at + place] = field.scalar_subtract(rest[at + place], field.scalar_multiply(quotient[at], each))
    return None if any(rest) else quotient


def _value(field: Field, polynomial: list[int], point: int) -> int:
    total = 0
    for coefficient in reversed(polynomial):
        total = field.scalar_add(field.scalar_multiply(total, point), coefficient)
    return total
