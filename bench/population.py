"""A made-up table of purchases for the benchmarks, and its policy: the same bytes for the same size and seed.

    python bench/population.py [FOLDER] --rows 1000000

About a tenth as many users as rows. Activity is log-normal, at most 500 rows a user; a user has up to three regions of
sixteen, one age, a habit of spending, and a chance of using kiosks that is nearly nought for most. Products are zipf.
Rows stand in no order, as in a log of events. Nothing in [contribution] is declared.

Two shapes were fitted to what the targets were set on. Ten rows of everybody leave out 46% of the table (σ = 1.25).
And at ε = 1, half of it for the keys, weighted set union should find 640 to 700 products of a million rows (1.1).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 1977
CHUNK = 1_000_000  # rows drawn and written at a time
ROWS_PER_USER, SPREAD, MOST_ROWS = 10, 1.25, 500
REGIONS = tuple(f"r{number:02d}" for number in range(1, 17))
PRODUCTS = tuple(f"p{number:04d}" for number in range(1, 2001))
CHANNELS = ("app", "web", "store", "kiosk")
KIOSK = 0.02  # of all rows
MOST_AMOUNT = 5000.0
ZIPF = 1.1
EPSILON, DELTA = 30.0, 1e-6
CACHE = Path.home() / ".cache" / "dalenius-bench"
FORM = 2  # raise it with every change of what is drawn, so that no stored table outlives its recipe

_HOMES = (0.85, 0.96)  # a row is in the user's first region, up to there in the second, else in the third
_OTHER_CHANNELS = (0.5, 0.8)
_TAIL_SHARE, _TAIL_FROM, _TAIL = 0.01, 150.0, 1.5  # one amount in a hundred is Pareto

POLICY = f"""
[table]
name = "purchases"
source = "purchases.parquet"
unit = "user_id"
[budget]
epsilon = {EPSILON:g}
delta = {DELTA:g}
accounting = "zcdp"
[analysts.ana]
epsilon = {EPSILON:g}
[columns.region]
type = "category"
keys = {list(REGIONS)}
[columns.age]
type = "integer"
bounds = [0, 120]
[columns.product]
type = "category"
[columns.amount]
type = "number"
bounds = [0, {MOST_AMOUNT:g}]
step = 0.01
[columns.channel]
type = "category"
keys = {list(CHANNELS)}
""".replace("'", '"')


@dataclass(frozen=True)
class Population:
    """Where the table and its policy are."""

    data: Path
    policy: Path


@dataclass(frozen=True)
class _Users:
    """What belongs to a user, one entry each."""

    age: np.ndarray[Any, Any]
    homes: np.ndarray[Any, Any]  # three regions
    spends: np.ndarray[Any, Any]
    kiosk: np.ndarray[Any, Any]


def population(folder: Path, rows: int, seed: int = SEED) -> Population:
    """Writes `purchases.parquet` with about so many rows, and `purchases.toml`, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Population(folder / "purchases.parquet", folder / "purchases.toml")
    found.policy.write_text(POLICY)
    if found.data.exists():
        return found
    chance = np.random.default_rng([seed, rows])
    users = max(rows // ROWS_PER_USER, 1)
    people = _people(users, chance)
    owners = np.repeat(np.arange(users, dtype=np.int32), _activity(users, chance))
    chance.shuffle(owners)
    partial = found.data.with_suffix(".partial")  # a run that is stopped leaves no half table behind
    with pq.ParquetWriter(partial, _chunk(owners[:0], people, chance).schema) as writer:
        for start in range(0, len(owners), CHUNK):
            writer.write_table(_chunk(owners[start : start + CHUNK], people, chance), row_group_size=CHUNK // 8)
    partial.rename(found.data)
    return found


def stored(rows: int, cache: Path = CACHE) -> Population:
    """The table of that size, made once and kept."""
    return population(cache / f"population-{FORM}-{rows}", rows)


def _activity(users: int, chance: np.random.Generator) -> np.ndarray[Any, Any]:
    mean = np.log(ROWS_PER_USER) - SPREAD**2 / 2
    return np.clip(np.rint(chance.lognormal(mean, SPREAD, users)), 1, MOST_ROWS).astype(np.int64)


def _people(users: int, chance: np.random.Generator) -> _Users:
    shares = 1 / np.arange(1, len(REGIONS) + 1) ** 0.8
    return _Users(
        age=np.clip(np.rint(chance.normal(44, 15, users)), 18, 100).astype(np.int32),
        homes=chance.choice(len(REGIONS), (users, 3), p=shares / shares.sum()).astype(np.int8),
        spends=chance.lognormal(0, 0.4, users).astype(np.float32),
        kiosk=chance.beta(0.1, 0.1 / KIOSK - 0.1, users).astype(np.float32),
    )


def _chunk(owners: np.ndarray[Any, Any], people: _Users, chance: np.random.Generator) -> pa.Table:
    size = len(owners)
    which = np.searchsorted(_HOMES, chance.random(size))
    popularity = np.cumsum(1 / np.arange(1, len(PRODUCTS) + 1) ** ZIPF)
    product = np.searchsorted(popularity / popularity[-1], chance.random(size), side="right")
    amount = people.spends[owners] * chance.lognormal(3.2, 0.9, size)
    tail = chance.random(size) < _TAIL_SHARE
    amount[tail] = _TAIL_FROM * (1 + chance.pareto(_TAIL, int(tail.sum())))
    channel = np.searchsorted(_OTHER_CHANNELS, chance.random(size))
    channel[chance.random(size) < people.kiosk[owners]] = CHANNELS.index("kiosk")
    return pa.table(
        {
            "user_id": owners.astype(np.int64),
            "region": _named(REGIONS, people.homes[owners, which]),
            "age": people.age[owners],
            "product": _named(PRODUCTS, product),
            "amount": np.round(np.clip(amount, 0, MOST_AMOUNT), 2),
            "channel": _named(CHANNELS, channel),
        }
    )


def _named(names: tuple[str, ...], codes: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array(names).take(pa.array(codes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where; by default in the cache of the benchmarks")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    folder = options.folder or CACHE / f"population-{FORM}-{options.rows}"
    made = population(folder, options.rows, options.seed)
    print(f"{made.data}: {pq.read_metadata(made.data).num_rows:,} rows; {made.policy}")


if __name__ == "__main__":
    main()
