"""The look at the data that a workload pays for, and what is stored of it.

Stored are the noisy integers of each part with the law of their noise and the strategy that they were measured by, and
for each question, known by the key that it has alone, where its numbers come from. So what is stored says all that is
needed to read it, whatever strategies a later version would choose; the questions' words are not in it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dalenius.measuring._exact import exact
from dalenius.mechanisms import noise
from dalenius.queries.answering import law_to_json, measure_plan
from dalenius.queries.workloads.marginals import Weighed, count_tables
from dalenius.queries.workloads.pricing import share_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Measure
    from dalenius.measuring.strategies.factors import Numbers
    from dalenius.queries.workloads.planning import Block, Counted, Part, WorkloadPlan
    from dalenius.queries.workloads.pricing import WorkloadPrice
    from dalenius.releasing.leaving import Asker

FORMAT = "workload 1"


def measure_workload(workload: WorkloadPlan, priced: WorkloadPrice, asker: Asker, salt: str, seconds: float) -> bytes:
    """Looks at the data: exact integers, exact noise, bytes. To be called once the charge is on disk, and only then.

    Guarantee:
        That of ``priced``: every part's vector gets the noise of its own mechanism, drawn under a fresh key.
    """
    noise.fresh_key()
    content: dict[str, Any] = {
        "format": FORMAT,
        "epsilon": priced.epsilon,
        "delta": priced.delta,
        "rho": priced.rho,
        "parts": [],
        "questions": {},
        "beside": {},
    }
    mechanisms = iter(priced.mechanisms)
    first = 0
    for block in workload.blocks:
        engine = block.planned.snapshot.engine(asker.engines)
        counted = counted_integers(block, engine, salt, seconds)
        for part in block.parts:
            mechanism = next(mechanisms)
            measured = measured_of(part, block, counted)
            values = mechanism.release(measured).value.tolist()
            content["parts"].append(
                {
                    "law": law_to_json(mechanism.noise),
                    "strategy": part.strategy.to_json(),
                    "values": list(map(str, values)),
                    **_counting(part.measure),
                }
            )
        content["questions"] |= _questions(workload, block, first)
        first += len(block.parts)
    for number, price in priced.beside.items():
        found = workload.plans[number]
        engine = found.snapshot.engine(asker.engines)
        plan = share_plan(found.plan, workload.beside[number][0])
        content["beside"][workload.keys[number]] = json.loads(measure_plan(plan, price, engine, salt, seconds))
    return json.dumps(content, separators=(",", ":")).encode()


def counted_integers(block: Block, engine: Engine, salt: str, seconds: float) -> list[Any]:
    """What the engine counts for a block: of cells each measure's exact integers; of weighed rows their tables."""
    found: list[Any] = []
    for at, each in enumerate(block.counted):
        if isinstance(each, Weighed):
            own = (told for part in block.parts if part.counted == at for told in part.strategy.tables)
            found.append(count_tables(each, tuple(dict.fromkeys(own)), engine, salt, seconds))
        else:
            found.append(exact(each.plan, engine, salt, seconds=seconds))
    return found


def measured_of(part: Part, block: Block, counted: Sequence[Any]) -> Numbers:
    """A·x of one part, from what was counted for its block."""
    own = block.counted[part.counted]
    if isinstance(own, Weighed):
        return part.strategy.measure(counted[part.counted])
    return measured_integers(part, own, counted[part.counted][part.number], block)


def measured_integers(part: Part, counted: Counted, cells: Sequence[int], block: Block) -> Numbers:
    """A·x, from the exact integers x of the cells that were counted."""
    import numpy as np

    wide = sum(map(abs, cells)) >= 2**62
    shaped = np.array(cells, dtype=object if wide else np.int64)
    shaped = shaped.reshape([block.sizes[at] for at in counted.attributes])
    tables = {}
    for told in part.strategy.tables:
        left = tuple(place for place, at in enumerate(counted.attributes) if at not in told)
        tables[told] = shaped.sum(axis=left) if left else shaped
    return part.strategy.measure(tables)


def _counting(measure: Measure) -> dict[str, Any]:
    return {"bits": measure.bits, "clip": str(measure.clip), "centre": measure.centre}


def _questions(workload: WorkloadPlan, block: Block, first: int) -> Mapping[str, list[dict[str, Any]]]:
    """For each question its measures, in the order of its plan: the part, and where rows go."""
    found: dict[str, list[dict[str, Any]]] = {}
    for term, part, sums in block.terms:
        found.setdefault(workload.keys[term.question], []).append({"part": first + part, **sums.to_json()})
    return found
