"""Rényi divergences of sampled discrete Gaussian noise by sums over the lattice itself: no formula, any order."""

import mpmath


def moments(rate, variance, vector, order, digits=30):
    """E[(μ/μ₀)^α] under μ₀, and E[(μ₀/μ)^α] under μ: what a unit with this vector adds, and what it takes away."""
    with mpmath.workdps(digits):
        q, s2, a = mpmath.mpf(rate.numerator) / rate.denominator, mpmath.mpf(variance), mpmath.mpf(order)
        far = [int(mpmath.ceil(mpmath.sqrt(2 * digits * mpmath.log(10) * s2) + abs(each) * (a + 1))) for each in vector]
        normal = mpmath.mpf(1)
        sides = []
        for each, reach in zip(vector, far, strict=True):
            places = range(-reach, reach + 1)
            side = [
                (mpmath.exp(-mpmath.mpf(x * x) / (2 * s2)), mpmath.mpf(2 * x * each - each * each) / (2 * s2))
                for x in places
            ]
            normal *= mpmath.fsum(mass for mass, _ in side)
            sides.append(side)
        laid = [(mpmath.mpf(1), mpmath.mpf(0))]
        for side in sides:
            laid = [(mass * more, log + further) for mass, log in laid for more, further in side]
        added, removed = [], []
        for mass, log in laid:
            ratio = 1 - q + q * mpmath.exp(log)
            added.append(mass * ratio**a)
            removed.append(mass * ratio ** (1 - a))
        return mpmath.fsum(added) / normal, mpmath.fsum(removed) / normal
