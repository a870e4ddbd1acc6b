"""The table of the benchmarks is the one that their targets were set on, and their measures say what they claim."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from bench.ask_accuracy import LINES, averages_off, away, found, groups_off, largest_off, off, one_run, truths
from bench.population import MOST_ROWS, PRODUCTS, REGIONS, Population, population

ROWS = 60_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Population:
    return population(tmp_path_factory.mktemp("population"), ROWS)


def test_the_table_is_skewed_as_the_targets_assume(made: Population):
    # Seeded, so these are facts about one table and not chances.
    table = pq.read_table(made.data)
    rows = table.num_rows
    activity = np.bincount(table["user_id"].to_numpy())
    assert rows == pytest.approx(ROWS, rel=0.03) and len(activity) == ROWS // 10
    assert activity.min() >= 1 and activity.max() <= MOST_ROWS
    assert np.minimum(activity, 10).sum() / rows == pytest.approx(0.54, abs=0.02)
    assert sum(value == "kiosk" for value in table["channel"].to_pylist()) / rows == pytest.approx(0.02, abs=0.004)
    assert set(table["region"].to_pylist()) == set(REGIONS) and set(table["product"].to_pylist()) <= set(PRODUCTS)
    amount, age = table["amount"].to_numpy(), table["age"].to_numpy()
    assert amount.min() >= 0 and amount.max() <= 5000 and np.array_equal(amount, np.round(amount, 2))
    assert age.min() >= 18 and age.max() <= 100
    ages = {tuple(pair) for pair in zip(table["user_id"].to_pylist(), age.tolist(), strict=True)}
    assert len(ages) == len(activity)
    users = table["user_id"].to_numpy()
    assert np.mean(users[1:] == users[:-1]) < 0.01  # no order that a pass over users could profit from


def test_the_same_seed_makes_the_same_bytes(tmp_path: Path):
    first, second, other = (population(tmp_path / name, 5_000, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert first.data.read_bytes() == second.data.read_bytes() != other.data.read_bytes()


def test_a_table_written_in_chunks_has_every_row_of_every_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from bench import population as module

    whole = population(tmp_path / "whole", 5_500)
    monkeypatch.setattr(module, "CHUNK", 1_000)
    chunked = population(tmp_path / "chunked", 5_500)
    assert pq.read_metadata(chunked.data).num_row_groups > pq.read_metadata(whole.data).num_row_groups
    one, other = (pq.read_table(made.data)["user_id"].to_pylist() for made in (whole, chunked))
    assert one == other


def test_measures():
    assert off([(110,)], [(100,)]) == pytest.approx(0.1)
    assert off([(None,)], [(100,)]) == math.inf
    assert away([(43,)], [(44.5,)]) == 1.5
    truth = [("a", 100, 4.0), ("b", 50, 2.0)]
    assert groups_off([("a", 90, 4.0)], truth) == pytest.approx((0.1 + 1) / 2)
    assert averages_off([("a", 1, 5.0), ("b", 1, 2.0)], truth) == pytest.approx(0.125)
    assert found([("a", 1), ("made up", 1)], truth) == 1
    many = [(str(rank), 1000 - rank) for rank in range(100)]
    assert largest_off(many[:20], many) == 0 < largest_off(many[20:], many)


def test_a_run_asks_every_line_and_says_why_one_was_refused(made: Population, tmp_path: Path):
    questions = [line.sql for line in LINES]
    truth = dict(zip(questions, truths(made.data, questions), strict=True))
    values = {aim.name: value for aim, value in one_run(made, truth, tmp_path / "home")}
    assert list(values) == [aim.name for line in LINES for aim in line.aims]
    # The noise has σ = 4.6 limits. A limit up to 2,500 rows keeps this under its 1e-6 of false alarms (5 σ = 60,000).
    assert isinstance(values["COUNT(*)"], float) and values["COUNT(*)"] < 1
    assert all(isinstance(value, float) or value.endswith("No budget was spent.") for value in values.values())
