"""Intersection of releases: what two tables say apart, together they tell (Ganta, Kasiviswanathan and Smith 2008).

A table is published again when people came and went. Each release by itself shows m illnesses for everybody. Who is in
two of them has an illness that both of their classes show, and often only one is left. m-invariance keeps the set of
shown illnesses the same for everybody, with counterfeit rows where needed: then nothing is ruled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dalenius.anonymity.models.invariance import Release, signatures
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.anonymity.transformers.republish import republish
from dalenius.audit.attacks.attack import Curve, Drawing, Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.samples.patients import Patient, patients

M, RELEASES = 3, 5
GONE = 0.15  # of the people, at each release; as many are born
_HIERARCHIES = {"age": {"width": 5, "levels": 4}, "zip": {"prefix": [4, 2]}}
_ROLES = Roles.from_dict(
    {"quasi": ["age", "zip"], "sensitive": ["illness"], "hierarchies": _HIERARCHIES},
    Path(),
)


def left_over(releases: Iterable[Release], group: str, sensitive: str) -> dict[str, frozenset[str | None]]:
    """The values that all releases leave possible, for everybody who was in one."""
    found: dict[str, frozenset[str | None]] = {}
    for release in releases:
        shown = signatures(release.table, group, sensitive)
        for person, place in release.placed.items():
            values = shown[place][0]
            found[person] = found.get(person, values) & values
    return found


def run(lab: TableLab) -> Finding:
    """Intersects what everybody's classes show."""
    state, releases, rates = None, list[Release](), list[Rate]()
    truth: Mapping[str, str] = {}
    for number, here in enumerate(_towns(lab)):
        made = republish(_records(here), _ROLES, M, person="id", previous=state)
        state = made.state if lab.target == "m-invariant" else None
        releases.append(Release(made.table, made.placed))
        truth = {**truth, **{who: each.illness for who, each in here.items()}}
        found = left_over(releases, "id", "illness")
        certain = sum(each == {truth[who]} for who, each in found.items() if who in here)
        rates.append(Rate(certain, len(here)))
        lab.progress((number + 1) / RELEASES)
    least = min(len(each) for each in found.values())
    learned = (
        f"After {RELEASES} releases, the illness of {rates[-1]}. For the others at least {max(2, least)} are left."
    )
    ys = tuple(each.share for each in rates)
    curve = Curve(lab.target, tuple(float(at) for at in range(1, RELEASES + 1)), ys)
    drawing = Drawing("By the number of releases", "releases", "share of people certain", (curve,))
    return lab.found(
        ATTACK.name, rates[-1], broke=rates[-1].hits > 0, learned=learned, drawing=drawing, least=float(least)
    )


def _towns(lab: TableLab) -> Iterable[dict[str, Patient]]:
    """The people of each release: some die, as many are born."""
    fewer = round(GONE * lab.people)
    everybody = patients(lab.people + RELEASES * fewer)
    alive = {str(at): each for at, each in enumerate(everybody[: lab.people])}
    for number in range(RELEASES):
        yield dict(alive)
        for who in lab.chance.choice(sorted(alive), fewer, replace=False):
            del alive[str(who)]
        start = lab.people + number * fewer
        alive |= {str(at): everybody[at] for at in range(start, start + fewer)}


def _records(people: Mapping[str, Patient]) -> Table:
    listed: Sequence[tuple[str, Patient]] = sorted(people.items())
    return Table.of(
        {
            "id": [who for who, _ in listed],
            "age": [str(each.age) for _, each in listed],
            "zip": [each.zip for _, each in listed],
            "illness": [each.illness for _, each in listed],
        }
    )


ATTACK = TableAttack(
    "release-intersection",
    "Keeps the illnesses that all releases of a table leave possible.",
    "What is published twice must be published with the first time in mind.",
    {
        "each-by-itself": f"{RELEASES} releases, {M} illnesses in each class, each made by itself",
        "m-invariant": f"{RELEASES} releases, m-invariant with m = {M}",
    },
    ("m-invariant",),
    run,
)
