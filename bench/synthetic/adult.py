"""The table of the benchmark: Adult as integer codes, or a made-up one of the same shape."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dalenius.synthesis.domain import Codes, Column, Domain

ROWS, TRAINING = 48_842, 39_074
TARGET = "income>50K"
NUMBERS = frozenset({"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"})
SIZES = {
    "age": 85, "workclass": 9, "fnlwgt": 100, "education-num": 16, "marital-status": 7, "occupation": 15,
    "relationship": 6, "race": 5, "sex": 2, "capital-gain": 100, "capital-loss": 100, "hours-per-week": 99,
    "native-country": 42, TARGET: 2,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on, rows held out, and what values they may have."""

    domain: Domain
    training: Codes
    held: Codes


def load(folder: Path | None, drop: tuple[str, ...] = ()) -> Split:
    """The table in a folder (`adult.csv`, `adult-domain.json`), or a made-up one, split by a fixed seed."""
    if folder is None:
        sizes, table = dict(SIZES), made()
    else:
        sizes = json.loads((folder / "adult-domain.json").read_text())
        names = (folder / "adult.csv").read_text().split("\n", 1)[0].strip().split(",")
        table = np.loadtxt(folder / "adult.csv", delimiter=",", skiprows=1, dtype=np.int32)
        sizes = {name: sizes[name] for name in names}
    kept = [at for at, name in enumerate(sizes) if name not in drop]
    columns = [Column(name, tuple(range(size)), ordered=name in NUMBERS) for name, size in sizes.items()]
    order = np.random.default_rng(0).permutation(len(table))
    training = round(len(table) * TRAINING / ROWS)
    table = table[:, kept]
    domain = Domain(tuple(columns[at] for at in kept))
    return Split(domain, table[order[:training]], table[order[training:]])


def made(rows: int = ROWS) -> Codes:
    """Made-up people: a hidden class and an age decide about the rest, so that columns depend on one another."""
    rng = np.random.default_rng(24)
    hidden = rng.choice(6, rows, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    age = np.clip(rng.gamma(6, 4, rows) + 3 * hidden, 0, 84).astype(np.int32)
    columns = list[np.ndarray]()
    for name, size in SIZES.items():
        if name == "age":
            columns.append(age)
        elif name.startswith("capital"):
            some = rng.random(rows) < 0.04 + 0.02 * hidden
            columns.append(np.where(some, np.clip(rng.gamma(2, 6 + 3 * hidden), 1, size - 1), 0).astype(np.int32))
        elif name == TARGET:
            score = 0.05 * age + 0.7 * hidden + 2.0 * (columns[9] > 10) - 4.5
            columns.append((rng.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int32))
        else:
            law = rng.dirichlet(np.full(size, 0.3), 18)  # by hidden class and third of life
            row = law[hidden * 3 + np.minimum(age // 29, 2)]
            drawn = (rng.random((rows, 1)) > np.cumsum(row, axis=1)).sum(axis=1)
            columns.append(np.minimum(drawn, size - 1).astype(np.int32))
    return np.column_stack(columns).astype(np.int32)
