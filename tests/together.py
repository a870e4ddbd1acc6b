"""Three hospitals with tables of their own, each a curator and a party: for tests of joint questions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalenius import Curator
from dalenius.app.joint_statistics import ask_jointly, offered
from dalenius.errors import DaleniusError
from dalenius.joint.config import Party
from dalenius.joint.rehearsal import lay
from dalenius.joint.serving import serve
from dalenius.ledger import Ledger, verify

NAMES = ("clinic", "lab", "registry")
REGIONS = ("north", "south", "east")
POLICY = """
[table]
name = "visits"
source = "visits.csv"
unit = "patient"
[budget]
epsilon = {budget}
delta = {delta}
[columns.region]
type = "category"
keys = ["north", "south", "east"]
[columns.cost]
type = "number"
bounds = [0, {high}]
step = 0.5
[contribution]
rows = {rows}
[time]
answer = {answer}
[joint]
partners = [{partners}]
epsilon = {epsilon}
{more}
"""


@dataclass(frozen=True)
class Hospital:
    """One of them."""

    party: Party
    curator: Curator
    rows: tuple[tuple[str, str, float], ...]

    @property
    def home(self) -> Path:
        return self.party.folder.parent


def rows_of(name: str, people: int, seed: int = 7) -> tuple[tuple[str, str, float], ...]:
    """Made-up visits; nobody is in two hospitals, and some have more rows than count."""
    chance = random.Random(f"{seed} {name}")
    return tuple(
        (f"{name}{person}", chance.choice(REGIONS), chance.randrange(0, 401) / 2)
        for person in range(people)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 9)))
    )


def write(file: Path, rows: Sequence[tuple[str, str, float]]) -> None:
    text = "".join(f"{patient},{region},{cost}\n" for patient, region, cost in rows)
    file.write_text("patient,region,cost\n" + text)


def policy(name: str, names: Sequence[str], **more: object) -> str:
    partners = ", ".join(f'"{each}"' for each in names if each != name)
    given = {
        "budget": 50,
        "delta": 1e-6,
        "epsilon": 40,
        "rows": 3,
        "high": 200,
        "answer": 0.05,
        "more": "",
        "partners": partners,
    } | more
    return POLICY.format(**given)


def hospitals(
    place: Path,
    *,
    people: int = 60,
    names: Sequence[str] = NAMES,
    other: dict[str, dict[str, object]] | None = None,
    **more: object,
) -> list[Hospital]:
    """Their homes in a folder; ``other`` says what is different in a party's policy."""
    parties = lay(place, names)
    found = []
    for name, party in zip(names, parties, strict=True):
        own = place / f"{name}-data"
        own.mkdir()
        rows = rows_of(name, people)
        write(own / "visits.csv", rows)
        (own / "visits.toml").write_text(policy(name, names, **(more | (other or {}).get(name, {}))))
        curator = Curator(place / name)
        curator.protect(own / "visits.toml", yes=True)
        found.append(Hospital(party, curator, rows))
    return found


async def asked(hospitals: Sequence[Hospital], question: str, epsilon: float, **more: Any) -> list[Any]:
    """The first asks, the others take part, all on real connections in this process: what came of it at each.

    Of the others it is what their `dalenius party` would tell its owner, or what went wrong there.
    """
    first, *others = hospitals
    heard: list[Any] = [None] * len(others)
    ready = [asyncio.Event() for _ in others]
    done = [asyncio.Event() for _ in others]

    def told(at: int) -> Callable[..., None]:
        def tell(what: str, _call: object, outcome: Any) -> None:
            if what != "called":
                heard[at] = outcome
                done[at].set()

        return tell

    patience = more.setdefault("patience", 10.0)
    waiting = [
        asyncio.create_task(serve(each.party, told(at), tasks=offered(), patience=patience, ready=ready[at].set))
        for at, each in enumerate(others)
    ]
    try:
        await asyncio.gather(*(each.wait() for each in ready))
        names = more.pop("names", [each.party.card.name for each in others])
        try:
            own: Any = await ask_jointly(first.party, question, epsilon, names, **more)
        except DaleniusError as error:
            own = error
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(each.wait() for each in done)), 1.0)
        return [own, *heard]
    finally:
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def ask(hospitals: Sequence[Hospital], question: str, epsilon: float = 1.0, **more: Any) -> list[Any]:
    """The same, waited for."""
    return asyncio.run(asked(hospitals, question, epsilon, **more))


def charges(hospital: Hospital) -> list[dict[str, Any]]:
    """What stands in a ledger, proved."""
    ledger = Ledger.open(hospital.home)
    verify(ledger)
    return [entry.data for entry in ledger.entries() if entry.kind == "charge"]
