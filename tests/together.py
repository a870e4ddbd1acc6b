"""Three hospitals with tables of their own, each a curator and a party: for tests of joint questions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dalenius import Curator
from dalenius.joint.config import Party
from dalenius.joint.rehearsal import lay

NAMES = ("clinic", "lab", "registry")
REGIONS = ("north", "south", "east")
POLICY = """
[table]
name = "visits"
source = "visits.csv"
unit = "patient"
[budget]
epsilon = {budget}
delta = 1e-6
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
answer = 0.05
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
    given = {"budget": 50, "epsilon": 40, "rows": 3, "high": 200, "more": "", "partners": partners} | more
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
