"""Small made-up tables, policies and models, and an independent judge that reads the definitions word by word."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dalenius.anonymity.models import (
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Likeness,
    Model,
    Presence,
    ProbabilisticDiversity,
    RecursiveDiversity,
)
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table

FILES = {
    "tree.csv": "a;ab;abc;*\nb;ab;abc;*\nc;c;abc;*\nd;de;def;*\ne;de;def;*\nf;f;def;*\n;unknown;unknown;*\n",
    "flat.csv": "a,*\nb,*\nc,*\nd,*\ne,*\nf,*\n,*\n",
    "no-root.csv": "a;abc\nb;abc\nc;abc\nd;def\ne;def\nf;def\n;def\n",
}


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text)


@dataclass(frozen=True)
class Case:
    """One table with its policy and what is asked of it."""

    table: Table
    roles: Roles
    models: tuple[Model, ...]
    suppress: float


def random_case(rng: np.random.Generator, folder: Path, rows: int = 24, columns: int = 3) -> Case:
    """Letters and numbers, some missing, with every kind of hierarchy; one to three models."""
    many = int(rng.integers(2, rows + 1))
    cells: dict[str, list[str | None]] = {}
    hierarchies: dict[str, Any] = {}
    names = [f"q{at}" for at in range(int(rng.integers(1, columns + 1)))]
    for name in names:
        kind = int(rng.integers(6))
        gaps = rng.random(many) < rng.choice([0, 0, 0.2])
        if kind < 3:
            written = [str(each) for each in rng.integers(0, 12, many)]
            hierarchies[name] = [{"width": 3, "levels": 2}, {"width": 0.5, "levels": 1, "start": 0.25}, "suppress"][
                kind
            ]
        else:
            written = [str(each) for each in rng.choice(list("abcdef"), many)]
            hierarchies[name] = ["tree.csv", "flat.csv", "no-root.csv" if rng.random() < 0.3 else "tree.csv"][kind - 3]
        cells[name] = [None if gap else each for gap, each in zip(gaps, written, strict=True)]
    cells["s"] = [str(each) for each in rng.choice(list("abcdef")[: int(rng.integers(2, 6))], many)]
    cells["n"] = [str(each) for each in rng.integers(0, 5, many)]
    cells["name"] = [f"person {each}" for each in range(many)]
    roles = {
        "quasi": names,
        "identifiers": ["name"],
        "sensitive": ["s", "n"] if rng.random() < 0.3 else [rng.choice(["s", "n"])],
        "hierarchies": hierarchies,
        "weights": {names[0]: float(rng.integers(1, 4))},
    }
    if "s" in roles["sensitive"]:
        hierarchies["s"] = "tree.csv"
    table = Table.of(cells)
    found = Roles.from_dict(roles, folder)
    asked = [_model(rng, table, found) for _ in range(int(rng.integers(1, 4)))]
    return Case(table, found, tuple(asked), float(rng.choice([0, 0, 0.1, 0.3, 1])))


def _model(rng: np.random.Generator, table: Table, roles: Roles) -> Model:
    column = roles.sensitive[0]
    distance: Any = rng.choice(["equal", "hierarchy"] if column == "s" else ["equal", "ordered"])
    found: list[Model] = [
        KAnonymity(int(rng.integers(1, 6))),
        KAnonymity(int(rng.integers(2, 4))),
        DistinctDiversity(int(rng.integers(1, 4))),
        ProbabilisticDiversity(float(rng.choice([1.2, 1.5, 2]))),
        EntropyDiversity(float(rng.choice([1.2, 1.5, 2]))),
        RecursiveDiversity(int(rng.integers(1, 4)), c=float(rng.choice([1.5, 3]))),
        Closeness(float(rng.choice([0.1, 0.3, 0.6])), distance, column),
        Likeness(float(rng.choice([0.3, 1, 3])), bool(rng.random() < 0.3)),
    ]
    return found[int(rng.integers(len(found)))]


def satisfied(case: Case, rows: Sequence[int], people: int = 0) -> bool:
    """Whether a class with these rows satisfies all models; plain Python, formula by formula."""
    return all(_one(case, model, rows, people) for model in case.models)


def _one(case: Case, model: Model, rows: Sequence[int], people: int) -> bool:
    if isinstance(model, Presence):
        return model.low - 1e-9 <= len(rows) / max(people, 1) <= model.high + 1e-9
    if not rows:
        return True
    if isinstance(model, KAnonymity):
        return len(rows) >= model.k
    own = getattr(model, "column", None)
    columns = [own] if own else case.roles.sensitive
    return all(_about(case, model, rows, str(column)) for column in columns)


def _about(case: Case, model: Any, rows: Sequence[int], column: str) -> bool:
    cells = case.table[column].cells()
    own, whole = Counter(cells[row] for row in rows), Counter(cells)
    share = {value: count / len(rows) for value, count in own.items()}
    base = {value: count / len(cells) for value, count in whole.items()}
    counts = sorted(own.values(), reverse=True)
    if isinstance(model, RecursiveDiversity):
        return counts[0] < model.c * sum(counts[int(model.l) - 1 :])
    if isinstance(model, DistinctDiversity):
        return len(own) >= model.l
    if isinstance(model, ProbabilisticDiversity):
        return max(share.values()) <= 1 / model.l + 1e-9
    if isinstance(model, EntropyDiversity):
        return -sum(each * math.log(each) for each in share.values()) >= math.log(model.l) - 1e-9
    if isinstance(model, Likeness):
        return all(
            (share.get(value, 0) - p) / p <= (min(model.beta, -math.log(p)) if model.enhanced else model.beta) + 1e-9
            for value, p in base.items()
        )
    assert isinstance(model, Closeness)
    return _distance(case, model, column, share, base) <= model.t + 1e-9


def _distance(
    case: Case, model: Closeness, column: str, share: dict[str | None, float], base: dict[str | None, float]
) -> float:
    extra = {value: share.get(value, 0) - p for value, p in base.items()}
    if model.distance == "equal":
        return sum(abs(each) for each in extra.values()) / 2
    if model.distance == "ordered":
        running, found = 0.0, 0.0
        for value in sorted(extra, key=lambda each: float(each or 0)):
            running += extra[value]
            found += abs(running)
        return found / max(len(extra) - 1, 1)
    # from the definition: at each label what is moved between the labels below it
    lines = [line.split(";") for line in FILES["tree.csv"].split()]
    paths = {line[0]: tuple(line) for line in lines if line[0] in extra}
    height, found = len(lines[0]) - 1, 0.0
    sums = {(value,): extra[value] for value in paths}
    for level in range(1, height + 1):
        above: dict[str, list[float]] = {}
        for key, total in sums.items():
            path = next(each for each in paths.values() if each[level - 1] == key[0])
            above.setdefault(path[level], []).append(total)
        for below in above.values():
            found += level / height * min(sum(x for x in below if x > 0), -sum(x for x in below if x < 0))
        sums = {(label,): sum(below) for label, below in above.items()}
    return found
