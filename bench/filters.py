"""How long a filter takes to decide, and whether that grows with history. Target: ≤ 50 µs, flat to 100,000 charges."""

from __future__ import annotations

import time

from dalenius.accounting.filters import PureFilter, ZCDPFilter
from dalenius.accounting.guarantees import ZCDP, PureDP

CHARGES = 100_000
BLOCK = 1_000
TARGET_MICROSECONDS = 50.0


def microseconds_per_charge(budget: PureFilter | ZCDPFilter, cost: PureDP | ZCDP) -> list[float]:
    """Mean time of admit-and-charge in each block of a thousand."""
    times = []
    for _ in range(CHARGES // BLOCK):
        started = time.process_time()
        for _ in range(BLOCK):
            budget.charge(cost)  # type: ignore[arg-type]
        times.append((time.process_time() - started) / BLOCK * 1e6)
    return times


def main() -> None:
    """Prints the first block, the last one, and their ratio."""
    cases: list[tuple[str, PureFilter | ZCDPFilter, PureDP | ZCDP]] = [
        ("pure", PureFilter(1e6), PureDP(0.1)),
        ("zcdp", ZCDPFilter(1e6, 1e-6), ZCDP(0.1, 1e-15)),
    ]
    for name, budget, cost in cases:
        times = microseconds_per_charge(budget, cost)
        first, last, worst = times[0], times[-1], max(times)
        verdict = "ok" if worst <= TARGET_MICROSECONDS and last <= 2 * first else "MISSED"
        growth = f"first {first:.1f} µs, last {last:.1f} µs (×{last / first:.2f})"
        print(f"{name}: {growth}, worst block {worst:.1f} µs; {verdict}")
    budget = ZCDPFilter(3.0, 1e-6)
    started = time.process_time()
    for step in range(200):
        budget.price(0.001 + step * 1e-6)
    elapsed = (time.process_time() - started) / 200 * 1e6
    print(f"pricing a typed ε never seen before: {elapsed:.0f} µs (not on the filter's path)")


if __name__ == "__main__":
    main()
