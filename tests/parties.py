"""Parties for tests: several in one process, on real connections with real certificates."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dalenius.joint.bgw import share
from dalenius.joint.config import Party
from dalenius.joint.fields import BIG, Mersenne
from dalenius.joint.meeting import Post, new_run_id
from dalenius.joint.rehearsal import lay
from dalenius.joint.run import Run
from dalenius.joint.shares import Shares

NAMES = ("ada", "bea", "cleo", "dora", "edda", "fee", "gaia")
_KEPT: list[tempfile.TemporaryDirectory[str]] = []

Program = Callable[[Run], Awaitable[Any]]


@cache
def laid(count: int) -> list[Party]:
    """So many parties that know one another; the same ones for all tests of a process."""
    folder = tempfile.TemporaryDirectory(prefix="parties-")
    _KEPT.append(folder)
    return lay(Path(folder.name), NAMES[:count])


def together(count: int, threshold: int, program: Program, *, patience: float = 30.0, **meeting: Any) -> list[Any]:
    """What `program(run)` returns at each party; the first error is raised."""
    return asyncio.run(_together(laid(count), threshold, program, patience, meeting))


async def _together(
    parties: list[Party], threshold: int, program: Program, patience: float, meeting: dict[str, Any]
) -> list[Any]:
    run_id = new_run_id()
    names = [each.card.name for each in parties]

    async def one(party: Party) -> Any:
        async with Post(party, patience=patience) as post:
            run = await post.meet(run_id, names, threshold, {"name": "test"}, **meeting)
            try:
                return await program(run)
            finally:
                await run.close()
                post.forget(run_id)

    return list(await asyncio.gather(*(one(each) for each in parties)))


async def inputs(run: Run, values: Any, field: Mersenne = BIG) -> list[Shares]:
    """The first party's arrays, shared."""
    found = []
    for each in values:
        array = field.array(np.asarray(each))
        found.append((await share(run, field, array, array.shape, (1,)))[1])
    return found
