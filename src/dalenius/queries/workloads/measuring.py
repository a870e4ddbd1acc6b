"""The look at the data that a workload pays for, and what is stored of it.

Stored are the noisy integers of each part with the law of their noise and the strategy that they were measured by, and
for each question, known by the key that it has alone, where its numbers come from. So what is stored says all that is
needed to read it, whatever strategies a later version would choose; the questions' words are not in it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dalenius.measuring._exact import exact, exact_lengths
from dalenius.measuring.expressions import TRUE, Column, written
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.mechanisms import noise
from dalenius.queries.answering import law_to_json, measure_plan
from dalenius.queries.workloads.limits import Limiting, lower_block, model_keys, together
from dalenius.queries.workloads.linear import terms_of
from dalenius.queries.workloads.marginals import Weighed, count_tables
from dalenius.queries.workloads.planning import conditions_of_all
from dalenius.queries.workloads.pricing import share_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.limits.clip_search import Clip
    from dalenius.measuring.plan import Measure
    from dalenius.measuring.strategies.factors import Numbers
    from dalenius.queries.workloads.blocks import Block, Counted, Part, WorkloadPlan
    from dalenius.queries.workloads.pricing import Cost, WorkloadPrice
    from dalenius.releasing.leaving import Asker

FORMAT = "workload 1"


def sealed_workload(asker: Asker, workload: WorkloadPlan) -> dict[str, str]:
    """What is stored beside the answers, so that others can follow from them; nothing where there is too much of it."""
    from dalenius.queries.known.sealed import ASKED, seal
    from dalenius.queries.known.workloads import describe

    plans = [[workload.plans[number].plan for number in block.questions] for block in workload.blocks]
    found = describe(workload, [sorted(conditions_of_all(terms_of(own)), key=written) for own in plans])
    return {} if found is None else {ASKED: seal(asker.ledger, found)}


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
    content |= sealed_workload(asker, workload)
    first = 0
    for block in search_limits(workload, priced.cost, asker, salt, seconds).blocks:
        engine = block.planned.snapshot.engine(asker.engines)
        counted, groups = counted_integers(block, engine, salt, seconds), together(block)
        for place, part in enumerate(block.parts):
            # The same price, on what one unit adds here.
            mechanism, own = priced.cost.mechanism(part), block.counted[part.counted]
            measured = measured_of(part, block, counted)
            values = mechanism.release(measured).value.tolist()
            content["parts"].append(
                {
                    "law": law_to_json(mechanism.noise),
                    "strategy": part.strategy.to_json(),
                    "values": list(map(str, values)),
                    **_counting(part.measure),
                    "norm": own.plan.norm,
                    "cells": len(own.plan.cells),
                    "keys": _keys(block, part),
                    "whole": own.plan.where == TRUE,
                    "together": next([first + each for each in group] for group in groups if place in group),
                    **_limit(part),
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


def search_limits(workload: WorkloadPlan, cost: Cost, asker: Asker, salt: str, seconds: float) -> WorkloadPlan:
    """Looks at the data, once the charge is on disk: the workload at the limits that its searches find.

    Guarantee:
        That of `limits`: each part's counts of units get the noise of their own mechanism.
    """
    limiting, blocks = Limiting(workload, cost), []
    for block in workload.blocks:
        engine = block.planned.snapshot.engine(asker.engines)
        clips: dict[int, Clip] = {}
        for at, counted in enumerate(block.counted):
            searched = counted.plan.searched
            if not searched:
                continue
            lengths = dict(zip(searched, exact_lengths(counted.plan, engine, salt, seconds=seconds), strict=True))
            for place, part in enumerate(block.parts):
                if part.counted == at and part.search:
                    mechanism = cost.search(part)
                    noisy = [int(each) for each in mechanism.release(lengths[part.number]).value.tolist()]
                    clips[place] = limiting.fit(block, part, LengthCounts.of(noisy, mechanism))
        blocks.append(lower_block(block, clips))
    return replace(workload, blocks=tuple(blocks))


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


def _keys(block: Block, part: Part) -> list[int]:
    """The columns that its cells tell apart, each by its place among those over which `protect` found a limit."""
    found = block.planned.plan.table.found
    names = {each.name for each in model_keys(block, part.counted) if isinstance(each, Column)}
    return [] if found is None else [at for at, name in enumerate(sorted(found.norms)) if name in names]


def _limit(part: Part) -> dict[str, Any]:
    """The limit that was found for it, of which one, and at which part of the price; nothing where none was."""
    if part.found is None:
        return {}
    return {"found": part.found.to_json(), "before": str(part.before), "search": str(part.search)}


def _questions(workload: WorkloadPlan, block: Block, first: int) -> Mapping[str, list[dict[str, Any]]]:
    """For each question its measures, in the order of its plan: the part, and where rows go."""
    found: dict[str, list[dict[str, Any]]] = {}
    for term, part, sums in block.terms:
        found.setdefault(workload.keys[term.question], []).append({"part": first + part, **sums.to_json()})
    return found
