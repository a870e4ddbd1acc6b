"""What a party does when another calls: each task by its name.

A task reads what was asked, decides from this party's own files whether to take part, and meets the others.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dalenius.errors import InputError, SourceUnavailableError
from dalenius.joint.auction import Outcome, hold
from dalenius.joint.bgw import multiply, reveal, share
from dalenius.joint.bids import SealedBid
from dalenius.joint.config import FOLDER, checked_name
from dalenius.joint.fields import BIG

if TYPE_CHECKING:
    from pathlib import Path

    from dalenius.joint.meeting import Post
    from dalenius.joint.run import Run

TRIAL = 10_000
"""Products that a trial computes."""


@dataclass(frozen=True)
class Call:
    """What was asked for.

    Attributes:
        run: The run's id.
        names: The parties in order.
        threshold: So many together learn nothing.
        beginner: Who asks.
        task: The task's name and particulars.
    """

    run: bytes
    names: tuple[str, ...]
    threshold: int
    beginner: str
    task: Mapping[str, Any]

    @classmethod
    def read(cls, run: bytes, greeting: Mapping[str, Any]) -> Call | None:
        """The call in a greeting, or None where it is none."""
        parties, threshold = greeting.get("parties"), greeting.get("threshold")
        beginner, task = greeting.get("beginner"), greeting.get("task")
        if not isinstance(parties, list) or not isinstance(threshold, int) or isinstance(threshold, bool):
            return None
        names = tuple(each[0] for each in parties if isinstance(each, list) and each and isinstance(each[0], str))
        if len(names) != len(parties) or len(set(names)) != len(names) or not isinstance(beginner, str):
            return None
        if not isinstance(task, dict) or not isinstance(task.get("name"), str):
            return None
        return cls(run, names, threshold, beginner, task)


class Task(Protocol):
    """Takes part in what was asked; what it returns is shown at its own party."""

    async def __call__(self, post: Post, call: Call) -> Mapping[str, Any]: ...  # noqa: D102


async def join(post: Post, call: Call, task: Mapping[str, Any]) -> Run:
    """Meets the others for a call, with this party's own idea of the task."""
    return await post.meet(call.run, call.names, call.threshold, task, beginner=call.beginner)


# --- a trial: no data at all


async def trial(post: Post, call: Call) -> Mapping[str, Any]:
    """Shares random numbers, multiplies and opens them: shows that all parties reach one another."""
    began = time.perf_counter()
    run = await join(post, call, {"name": "trial"})
    met = time.perf_counter() - began
    try:
        drawn = BIG.random(run.own, (TRIAL,))
        shared = await share(run, BIG, drawn, (TRIAL,))
        began = time.perf_counter()
        product = shared[1]
        if run.parties > 2 * run.threshold:
            product = await multiply(run, shared[1], shared[2])
        await reveal(run, product)
        took = time.perf_counter() - began
    finally:
        await run.close()
        post.forget(call.run)
    return {"parties": list(call.names), "threshold": call.threshold, "met_in_s": met, "products": TRIAL, "in_s": took}


# --- an auction, over the bids that lie in this party's home


async def auction(post: Post, call: Call) -> Mapping[str, Any]:
    """Holds the auction that is named, with the bids in `joint/auctions/NAME/bids`."""
    name, prices = call.task.get("auction"), call.task.get("prices")
    if not isinstance(name, str) or not isinstance(prices, int) or not 0 < prices <= 1_000_000:
        raise InputError("The call names no auction.", why="Name or prices are missing.", fix="Ask who called.")
    most = (len(call.names) - 1) // 2
    if call.threshold != most or most < 1:
        raise InputError(
            f"The call lets {call.threshold} of {len(call.names)} servers learn nothing.",
            why="Bids are sealed for the most that products allow, of three servers or more.",
            fix=f"Call with a threshold of {most}." if most else "Name three servers.",
        )
    folder = auction_folder(post.party.folder.parent, name)
    bids, digest = read_bids(folder)
    own = {"name": "auction", "auction": name, "prices": prices, "bids": len(bids), "digest": digest}
    run = await join(post, call, own)
    try:
        outcome = await hold(run, post.party, name, prices, list(bids.values()))
        await asyncio.to_thread(_write_amounts, folder / "amounts", tuple(bids), outcome)
        # whoever is told the price may collect the amounts: they lie at every server
        await run.exchange("amounts written", dict.fromkeys(run.others, b"."), dict.fromkeys(run.others, 1))
    finally:
        await run.close()
        post.forget(call.run)
    return {"auction": name, "price": outcome.price, "bids": len(bids), "counted": sum(outcome.counted)}


def auction_folder(home: Path, name: str) -> Path:
    """Where an auction's bids and amounts lie."""
    return home / FOLDER / "auctions" / checked_name(name, "an auction")


def read_bids(folder: Path) -> tuple[dict[str, SealedBid], str]:
    """The bids by the names of their files, and a digest of them all."""
    found: dict[str, SealedBid] = {}
    digest = hashlib.sha256()
    files = sorted((folder / "bids").glob("*.bid"))
    for file in files:
        data = file.read_bytes()
        digest.update(len(file.stem.encode()).to_bytes(4, "big") + file.stem.encode())
        digest.update(hashlib.sha256(data).digest())
        found[file.stem] = SealedBid.unpack(data)
    if not files:
        raise SourceUnavailableError(
            f"There are no bids for '{folder.name}'.",
            why=f"They belong into {FOLDER}/auctions/{folder.name}/bids.",
            fix="Put the bidders' files there, the same at every server.",
        )
    return found, digest.hexdigest()


def _write_amounts(folder: Path, names: Sequence[str], outcome: Outcome) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, amount in zip(names, outcome.amounts, strict=False):
        if amount:
            half = folder / f"{name}.part"
            with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                out.write(amount)
            half.replace(folder / f"{name}.amount")


TASKS: dict[str, Task] = {"trial": trial, "auction": auction}
"""What `dalenius party` takes part in."""


async def answer(post: Post, call: Call, tasks: Mapping[str, Task]) -> Mapping[str, Any]:
    """Takes part in what was asked.

    Raises:
        InputError: No task has that name.
    """
    task = tasks.get(str(call.task["name"]))
    if task is None:
        raise InputError(
            f"'{call.beginner}' asked for {str(call.task['name'])[:40]!r}.",
            why=f"This party takes part in {', '.join(tasks)}.",
            fix="See that both have the same version.",
        )
    return await task(post, call)
