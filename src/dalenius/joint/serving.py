"""`dalenius party`: waits for calls and takes part; `begin` is the other end, which calls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from dalenius.errors import DaleniusError, InputError, InternalError
from dalenius.joint.meeting import PATIENCE, Post, new_run_id
from dalenius.joint.tasks import TASKS, Call, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dalenius.joint.config import Party
    from dalenius.joint.tasks import Task

    Told = Callable[[str, Call, Mapping[str, Any] | DaleniusError | None], None]


async def serve(
    party: Party, told: Told, *, tasks: Mapping[str, Task] | None = None, patience: float = PATIENCE, ready: Any = None
) -> None:
    """Takes part in what partners ask for, until it is cancelled.

    Args:
        party: Who we are.
        told: Called with ("called" | "done" | "failed", the call, and what came of it).
        tasks: What to take part in.
        patience: Seconds that others may be silent.
        ready: Called when it listens.
    """
    offered = TASKS if tasks is None else tasks

    async def take_part(post: Post, call: Call) -> None:
        told("called", call, None)
        try:
            outcome = await answer(post, call, offered)
        except DaleniusError as error:
            post.dismiss(call.run, error)
            told("failed", call, error)
        except Exception as error:  # noqa: BLE001 - a party goes on; and no text of a bug may leave, it could show data
            bug = InternalError(f"It stopped on an unexpected {type(error).__name__}.", why="A bug.", fix="Report it.")
            post.dismiss(call.run, bug)
            told("failed", call, bug)
        else:
            told("done", call, outcome)

    async with Post(party, patience=patience) as post:

        def called(run: bytes, greeting: Mapping[str, Any], _name: str) -> Any:
            call = Call.read(run, greeting)
            return None if call is None else take_part(post, call)

        post.on_call = called
        if ready is not None:
            ready()
        await asyncio.Event().wait()


async def begin(
    party: Party,
    partners: Sequence[str],
    task: Mapping[str, Any],
    *,
    threshold: int | None = None,
    tasks: Mapping[str, Task] | None = None,
    patience: float = PATIENCE,
) -> Mapping[str, Any]:
    """Calls partners, each of which runs `dalenius party`, and takes part from here.

    Raises:
        InputError: A partner is named twice or not known.
        PartyGoneError: One cannot be reached.
    """
    names = (party.card.name, *partners)
    if len(set(names)) < len(names):
        raise InputError("A party is named twice.", why="Each counts once.", fix="Name each partner once.")
    for name in partners:
        party.partner(name)
    most = (len(names) - 1) // 2 if threshold is None else threshold
    call = Call(new_run_id(), names, most, party.card.name, task)
    async with Post(party, listen=False, patience=patience) as post:
        return await answer(post, call, TASKS if tasks is None else tasks)
