"""How much one person can make a question slower: the maximising search, 20,000 questions, on a quiet machine.

Targets (ATTACKS, H23): largest ratio of times between neighbours ≤ 1.5 where a question takes 50 ms or more; none past
its fixed time; peaks of memory within 5% + 16 MB. Estimated from short runs on a busy machine: 0.13 to 0.2 s for a
question, 45 to 70 minutes in all; `CASES=500` is a taste of it. It stops at 20 violations.
"""

from __future__ import annotations

import os
import sys
import time

from dalenius.audit.work import Finding, WorkReport, search_for_work

CASES = int(os.environ.get("CASES", "20000"))
SEED = int(os.environ.get("SEED", "23"))
EVERY = 60.0  # seconds between two lines about how far it is


def main() -> int:
    """Prints the figures; 1 where a target is missed."""
    said, shown = [time.monotonic()], [0]

    def progress(report: WorkReport) -> None:
        for each in report.violations[shown[0] :]:
            show(each)
        shown[0] = len(report.violations)
        if time.monotonic() - said[0] > EVERY:
            said[0] = time.monotonic()
            worst = ", ".join(f"{kind} {each.value:.2f}" for kind, each in sorted(report.worst.items()))
            print(f"  {report.cases:,} of {CASES:,}, {report.seconds:.0f} s; largest: {worst}", flush=True)

    report = search_for_work(cases=CASES, seed=SEED, most=20, progress=progress)
    print(f"asked {report.asked:,}, refused {sum(report.refused.values()):,}, in {report.seconds:.0f} s, seed {SEED}")
    print(
        f"measured on small tables {report.cases:,}, on large ones {report.large:,} (of 50 ms or more {report.long:,})"
    )
    print(f"run again {report.again:,}, memory looked at {report.weighed:,}, statements compared {report.traced:,}")
    print(f"functions {len(report.functions)}")
    for kind, each in sorted(report.worst.items()):
        verdict = "ok" if each.value <= each.limit else "MISSED"
        print(f"{kind}: {each.value:.3f} (at most {each.limit:g}), {each.victim}, {each.rows:,} rows; {verdict}")
        print(f"  {each.sql[:500]}")
    print(f"violations: {len(report.violations)}")
    return 1 if report.violations else 0


def show(each: Finding) -> None:
    """A violation, as soon as it is found."""
    print(
        f"VIOLATION {each.kind} {each.value:.2f}: {each.victim}, {each.rows:,} rows, "
        f"{each.first:g} with the victim, {each.second:g} without"
    )
    print(f"  {each.sql}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
