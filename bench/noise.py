"""How fast exact noise is, next to numpy's inexact noise and OpenDP's exact noise, all in one run.

    python bench/noise.py

Ratios are numpy's CPU time over ours for the same number of draws: 1 is as fast as numpy, 0.1 a tenth of its speed.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from dalenius.mechanisms import noise

DRAWS = 10**6
ROUNDS = 11


def cpu(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median CPU seconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def scalars(draw: Callable[[], int], calls: int = 20_000) -> float:
    """CPU microseconds per call, refills included."""
    return cpu(lambda: [draw() for _ in range(calls)], 5) / calls * 1e6


def opendp(law: str, scale: float, draws: int = 50_000) -> float | None:
    """CPU seconds that OpenDP would take for all draws, if it is installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if law == "laplace":
        measure = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    else:
        measure = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    zeros = [0] * draws
    return cpu(lambda: measure(zeros), 3) * DRAWS / draws


def main() -> int:
    random = np.random.default_rng()
    print(f"{DRAWS:,} draws, CPU time, median of {ROUNDS}; Python {platform.python_version()}, numpy {np.__version__}")
    print(f"{'case':<28}{'M draws/s':>10}{'ratio':>8}{'target':>8}  {'':<6}{'OpenDP ratio':>12}")
    passed = True
    cases: list[tuple[str, float, float | None]] = [
        ("laplace", 10, 0.20),
        ("laplace", 1000, 0.15),
        ("laplace", 1e7, None),
        ("gaussian", 10, 0.06),
        ("gaussian", 1000, None),
        ("gaussian", 1e7, 0.03),
    ]
    for law, scale, target in cases:
        if law == "laplace":
            reference = cpu(partial(random.laplace, scale=scale, size=DRAWS))
            ours = cpu(partial(noise.discrete_laplace, scale, DRAWS))
        else:
            reference = cpu(partial(random.normal, scale=scale, size=DRAWS))
            ours = cpu(partial(noise.discrete_gaussian, scale, DRAWS))
        theirs = opendp(law, scale)
        good = target is None or reference / ours >= target
        passed &= good
        verdict = "" if target is None else "pass" if good else "FAIL"
        print(
            f"{f'discrete {law} {scale:g}':<28}{DRAWS / ours / 1e6:>10.1f}{reference / ours:>8.3f}"
            f"{'' if target is None else f'{target:.2f}':>8}  {verdict:<6}"
            f"{'not installed' if theirs is None else f'{reference / theirs:.4f}':>12}"
        )
    for name, draw in (
        ("discrete laplace 10", lambda: noise.discrete_laplace(10)),
        ("discrete gaussian 10", lambda: noise.discrete_gaussian(10)),
        ("discrete gaussian 1e7", lambda: noise.discrete_gaussian(1e7)),
    ):
        took = scalars(draw)
        passed &= took <= 40
        print(f"{'one ' + name:<28}{took:>7.2f} µs{'':>8}{'40 µs':>8}  {'pass' if took <= 40 else 'FAIL'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
