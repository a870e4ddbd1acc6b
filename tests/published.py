"""A made-up table of people with a policy that says who is who, for the tests of what publishes rows."""

from __future__ import annotations

import random
from pathlib import Path

from dalenius.curator import Curator

ROLES = """
[anonymity]
identifiers = ["name"]
quasi = ["age", "zip", "sex"]
sensitive = ["diagnosis"]
hierarchies = { zip = "zip.csv", age = { width = 5, levels = 4 }, sex = "suppress" }
weights = { age = 2 }
"""
BARE = '[table]\nname = "people"\nsource = "people.csv"\n'
PROTECTED = f"""{BARE}unit = "name"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.ana]
epsilon = 1.0
[columns.age]
type = "integer"
bounds = [0, 120]
[contribution]
rows = 1
"""


def laid_out(folder: Path, rows: int = 300, *, protected: bool = False) -> Path:
    """Writes table, hierarchy and policy; the policy's path."""
    draw = random.Random(5)
    zips = [f"{first}{last}" for first in (537, 538, 539) for last in range(10, 20)]
    ills = ("flu", "cold", "ulcer")
    lines = [
        f"P{number:04},{draw.randint(20, 79)},{draw.choice(zips)},{draw.choice('FM')},{draw.choice(ills)}"
        for number in range(rows)
    ]
    (folder / "people.csv").write_text("name,age,zip,sex,diagnosis\n" + "".join(f"{each}\n" for each in lines))
    (folder / "zip.csv").write_text("".join(f"{each};{each[:4]}*;{each[:3]}**;*\n" for each in zips))
    (folder / "people.toml").write_text((PROTECTED if protected else BARE) + ROLES)
    return folder / "people.toml"


def protected_in(folder: Path, rows: int = 300) -> Curator:
    """The same, protected in a home beside it."""
    policy = laid_out(folder, rows, protected=True)
    curator = Curator(folder / ".dalenius")
    curator.protect(policy)
    return curator
