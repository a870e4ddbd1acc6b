"""The contribution index at `protect`: built once the policy is on record, and only where the one at hand is not good.

It is speed alone: whatever keeps it from being written, `protect` succeeds and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import DaleniusError
from dalenius.owner.limits import table_of
from dalenius.owner.protect import Protected
from dalenius.tables.sources.fingerprint import check_unchanged

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.measuring.engines.sources import Engines
    from dalenius.tables.registry import Registry

IndexProgress = Callable[[str, int, int, str], None]  # table, files written, files in all, what comes next


def prepare(
    planned: Sequence[Protected],
    registry: Registry,
    ledger: Ledger,
    engines: Engines,
    progress: IndexProgress | None = None,
) -> list[Protected]:
    """Builds the indexes that are missing or out of date; each table is told how that went."""
    return [replace(each, index=_prepared(each, planned, registry, ledger, engines, progress)) for each in planned]


def _prepared(
    each: Protected,
    planned: Sequence[Protected],
    registry: Registry,
    ledger: Ledger,
    engines: Engines,
    progress: IndexProgress | None,
) -> dict[str, Any]:
    version, start = each.version, time.perf_counter()

    def told(done: int, of: int, name: str) -> None:
        if progress is not None:
            progress(version.table, done, of, name)

    try:
        table = table_of(version, planned, registry, ledger)
        if table.through:  # whose a row is depends on other files
            return {"state": "none"}
        engine = engines.of(version.fingerprint, table)
        built = engine.prepare(table, told)
        if isinstance(built, str):
            return {"state": built}
        check_unchanged(version.table, version.fingerprint, version.policy.source)
    except DaleniusError as error:
        return {"state": "failed", "why": error.why}
    files = {name: round(taken, 3) for name, taken in built.seconds.items() if taken}
    return {"state": "built", "seconds": round(time.perf_counter() - start, 3), "bytes": built.size, "files": files}
