"""Answers that are known: what a dashboard determines besides its own questions.

    python bench/known.py [--json]

The thirty questions of `bench/workloads.py` are asked at once; then others that follow from them. Told is how many of
these are free, and how far each number, before rounding, is from what the dashboard's own answers add up to by hand.
Then a chain of single questions: which of the later ones are free, and how long previews take for who has asked much.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pyarrow as pa
from workloads import DASHBOARD, VISITS, protected  # type: ignore[import-not-found]

from dalenius.queries.ask import Ask
from dalenius.queries.known.sources import own_sources
from dalenius.queries.known.workloads import readings
from dalenius.queries.planning import plan_ask
from dalenius.samples.visits import visits

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_REGION = "SELECT region, COUNT(*) AS n FROM visits"
# Another question, and those of the dashboard of which it is the sum, with their signs.
FOLLOWS: dict[str, list[tuple[int, str, int | None]]] = {
    f"{COUNT} WHERE age >= 25 AND age < 30": [(1, "age < 30", None), (-1, "age < 25", None)],
    f"{COUNT} WHERE age >= 30 AND age < 40": [(1, "age < 40", None), (-1, "age < 30", None)],
    f"{COUNT} WHERE age >= 40 AND age < 60": [(1, "age < 60", None), (-1, "age < 40", None)],
    f"{COUNT} WHERE age >= 60 OR age IS NULL": [(1, "", None), (-1, "age < 60", None)],
    f"{COUNT} WHERE amount > 50 AND amount <= 100": [(1, "amount > 50", None), (-1, "amount > 100", None)],
    f"{COUNT} WHERE amount > 100 AND amount <= 200": [(1, "amount > 100", None), (-1, "amount > 200", None)],
    f"{COUNT} WHERE region = 'north'": [(1, "region", 0)],
    f"{COUNT} WHERE region = 'west'": [(1, "region", 3)],
    f"{COUNT} WHERE region IN ('south', 'east')": [(1, "region", 1), (1, "region", 2)],
    f"{COUNT} WHERE region IS NOT NULL": [(1, "region", at) for at in range(4)],
    f"{COUNT} WHERE region = 'south' AND age < 30": [(1, "region where age < 30", 1)],
    f"{COUNT} WHERE region = 'east' AND amount > 100": [(1, "region where amount > 100", 2)],
    f"{COUNT} WHERE NOT age < 40 OR age IS NULL": [(1, "", None), (-1, "age < 40", None)],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder))
    if given.json:
        print(json.dumps(found))
        return
    print(f"{found['free']} of {found['asked']} other questions are free after the dashboard")
    print(f"farthest from the sum by hand, before rounding: {found['farthest']:.3g}")
    print(
        f"previews with {found['answers']} own answers: median {found['preview']:.1f} ms, worst {found['worst']:.1f} ms"
    )


def measure(folder: Path) -> dict[str, Any]:
    names = ("user_id", "age", "region", "amount", "when")
    made = visits()
    table = pa.table({name: [getattr(each, name) for each in made] for name in names})
    ana = protected(folder, "visits", table, VISITS).analyst("ana")
    ana.ask_many(DASHBOARD, epsilon=2.0)
    free, farthest = 0, 0.0
    for question, parts in FOLLOWS.items():
        release = ana.ask(question, epsilon=0.05)
        free += release.free
        if release.free:
            by_hand = sum(sign * _values(ana, _asked(of))[place or 0] for sign, of, place in parts)
            farthest = max(farthest, abs(_values(ana, question)[0] - by_hand))
        else:
            print("charged:", question)
    for at in range(40):
        ana.ask(f"{BY_REGION} WHERE age < {20 + at} GROUP BY region", epsilon=0.01, fresh=True)
    times = []
    for at in range(40):
        began = time.perf_counter()
        ana.preview(f"{BY_REGION} WHERE age < {20 + at} AND amount < 70 GROUP BY region", epsilon=0.01)
        times.append(1000 * (time.perf_counter() - began))
    return {
        "free": free,
        "asked": len(FOLLOWS),
        "farthest": farthest,
        "answers": 41,
        "preview": statistics.median(times),
        "worst": max(times),
    }


def _asked(of: str) -> str:
    """The dashboard's own question."""
    if not of.startswith("region"):
        return f"{COUNT} WHERE {of}" if of else COUNT
    where = of.partition(" where ")[2]
    return f"{BY_REGION}{f' WHERE {where}' if where else ''} GROUP BY region"


def _values(ana: Any, question: str) -> list[float]:
    """A question's numbers as the workload tells them, before rounding, in rows."""
    asker = ana._asker  # noqa: SLF001
    found = plan_ask(asker, Ask(question))
    sources = own_sources(asker, found.snapshot.dataset, found.snapshot.epoch)
    _, reading = next(readings(sources, found.plan, found.snapshot, 0.95))
    ((part, values, _),) = reading.noisy
    return [float(each) / 2**part.bits for each in values]


if __name__ == "__main__":
    main()
