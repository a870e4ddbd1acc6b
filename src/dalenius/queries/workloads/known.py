"""A question that was one of a workload, asked alone: the asker has paid for it, so it is free.

Only the asker's own releases are looked at. A question is known by the key that it has alone, in which its canonical
plan, the policy and the data version are: another filter, other limits or other data are another question. What is
looked at is the ledger and the plan, never the data.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from dalenius.measuring.cache import WeightedCache
from dalenius.queries.workloads.showing import StoredWorkload, shown_release
from dalenius.releasing.leaving import charges_of_kind, own_releases

if TYPE_CHECKING:
    from dalenius.ledger.projection import ChargedQuestion
    from dalenius.queries.planning import Planned
    from dalenius.queries.release import Release
    from dalenius.releasing.leaving import Asker

KIND = "workload"
_LATEST = 32  # workloads that are looked through
_KEY = re.compile(rb'"([0-9a-f]{64})"')
_SHORT = 8  # bytes of a key, by which most workloads are passed over
# Which keys stand in a workload, shortened, by ledger and charge: so its megabytes are read once, and not each time.
_KEYS: WeightedCache[frozenset[bytes]] = WeightedCache(2**18)


def known_release(asker: Asker, found: Planned, question: str, epsilon: float, confidence: float) -> Release | None:
    """The answer to a question from a workload of at least that price; None where there is none."""
    plan, key = found.plan, found.plan.key(found.snapshot.data_version)
    for charge in charges_of_kind(asker, KIND, found.snapshot, epsilon, _LATEST):
        keys = _KEYS.get(_place(asker, charge))
        if keys is not None and bytes.fromhex(key)[:_SHORT] not in keys:
            continue
        (answered,) = own_releases(asker, [charge])
        if keys is None:
            keys = frozenset(bytes.fromhex(each.decode())[:_SHORT] for each in _KEY.findall(answered.content))
            _KEYS.put(_place(asker, charge), keys, 2 * len(keys))
        if key.encode() not in answered.content:  # sooner known than read
            continue
        stored = StoredWorkload.read(answered.content)
        if not stored.holds(key):
            continue
        table, notes, limits = stored.shown(key, plan, confidence)
        free = {"epsilon": 0.0, "delta": 0.0, "rho": None if stored.rho is None else 0.0}
        remaining = asker.remaining(found.snapshot.dataset, plan.periods)
        shown = shown_release(plan, stored, table, notes, limits, answered, confidence, free, remaining)
        shown = replace(shown, notes=(*shown.notes, *asker.warnings(found.snapshot.dataset)))
        return shown.of_question(question)
    return None


def _place(asker: Asker, charge: ChargedQuestion) -> tuple[str, int, str | None]:
    return str(asker.ledger.home), charge.number, charge.release
