"""Made-up units: as many, with as many rows and as much in common, as was counted; and one unit moves no more."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.seeded_noise import seeded_noise
from tests.unit.synthesis.made import curator_of, some_rows
from tests.unit.synthesis.test_must_show import made
from tests.unit.synthesis.test_synthetic_tables import _monthly

from dalenius.accounting.neighbors import Neighbors
from dalenius.curator import Curator
from dalenius.measuring.expressions import TRUE
from dalenius.samples.visits import REGIONS, visits
from dalenius.synthesis import unit_counts
from dalenius.synthesis.kind import leaving_of
from dalenius.synthesis.position_classes import Classes
from dalenius.synthesis.release import SyntheticTable
from dalenius.synthesis.request import SynthesisAsk
from dalenius.synthesis.rows import UnitMeasurer
from dalenius.synthesis.unit_counts import DIFFERENT, LONE, NEAR, SAME, SIZES, count_units, read_units
from dalenius.synthesis.units import MadeUpUnits


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(12):
        yield


# --- what is drawn


def units_of(alike: tuple[float | None, ...], sizes: tuple[tuple[int, int], ...] = ((0, 0), (4, 7))) -> MadeUpUnits:
    return MadeUpUnits("who", 500.0, Classes(sizes), np.array([0.25, 0.75]), alike)


def agreement(codes: Any, numbers: Any) -> list[float]:
    """Of all pairs of rows of one unit, which part is alike, by columns."""
    pairs = [pair for number in np.unique(numbers) for pair in combinations(np.flatnonzero(numbers == number), 2)]
    first, second = np.array(pairs).T
    found: list[float] = (codes[first] == codes[second]).mean(axis=0).tolist()
    return found


def test_rows_of_a_unit_are_alike_as_often_as_was_counted():
    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.integers(0, size, 4000) for size in (2, 40, 5, 5, 6)]).astype(np.int32)
    dealt, numbers = units_of((1.0, 1.0, 0.7, 0.2, None)).deal(codes, rng)
    sex, born, home, chance, open_ = agreement(dealt, numbers)
    assert (sex, born) == (1.0, 1.0)
    assert home == pytest.approx(0.7, abs=0.06)
    assert chance == pytest.approx(0.2, abs=0.04) and open_ == pytest.approx(1 / 6, abs=0.04)


def test_dealing_changes_no_row_where_nothing_is_always_alike_and_tables_hardly_else():
    rng = np.random.default_rng(4)
    codes = np.column_stack([rng.integers(0, 3, 3000), rng.integers(0, 50, 3000)]).astype(np.int32)
    codes[:, 1] = np.where(rng.random(3000) < 0.8, codes[:, 0] * 16, codes[:, 1])
    dealt, _ = units_of((0.6, None)).deal(codes, rng)
    assert sorted(map(tuple, dealt.tolist())) == sorted(map(tuple, codes.tolist()))
    dealt, _ = units_of((1.0, None)).deal(codes, rng)
    tables = [np.bincount(each[:, 0] * 50 + each[:, 1], minlength=150) / 3000 for each in (codes, dealt)]
    assert np.abs(tables[0] - tables[1]).sum() < 0.02


@given(st.integers(0, 400), st.integers(0, 2**32))
def test_all_rows_have_a_unit_and_all_units_rows(rows: int, seed: int):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (rows, 2)).astype(np.int32)
    dealt, numbers = units_of((1.0, 0.5)).deal(codes, rng)
    assert len(dealt) == len(numbers) == rows
    held = np.bincount(numbers)[1:] if rows else np.zeros(0)
    assert (np.diff(numbers) >= 0).all() and (held > 0).all()
    cut = [each for each in held.tolist() if each not in {1, 5, 6, 7, 8}]
    assert len(cut) <= 1 and all(each < 8 for each in cut)  # the last one gets what is left


# --- what is counted


def habits_of(held: np.ndarray, seed: int = 1) -> np.ndarray:
    chance = np.random.default_rng(seed)
    found = chance.choice([SAME, NEAR, DIFFERENT], (2, len(held))).astype(np.int8)
    found[:, held == 1] = LONE
    return found


class Recorded(UnitMeasurer):
    """The measurers that were made, and what each measured."""

    made: list[Recorded]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.asked: list[tuple[Any, float]] = []
        Recorded.made.append(self)

    def measure(self, asked: Any) -> Any:
        found = super().measure(asked)
        whole = self.limit.whole**2
        self.asked += [(view, each.variance * whole) for (view, _), each in zip(asked, found, strict=True)]
        return found


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_one_unit_with_however_many_rows_costs_no_more_than_what_was_spent(
    neighbors: Neighbors, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(unit_counts, "UnitMeasurer", Recorded)
    chance, worst = random.Random(3), 0.0
    for _ in range(30):
        Recorded.made = []
        rho = Fraction(chance.choice([0.001, 0.1, 3.0]))
        held = np.array([chance.choice([1, 2, 7, 1000, 10**6]) for _ in range(chance.randint(1, 9))])
        tables = [held, held[:-1]] if neighbors is Neighbors.ADD_REMOVE else [held, np.append(held[:-1], 3)]
        for at, each in enumerate(tables):
            habits = np.concatenate([habits_of(held[:-1]), habits_of(each[len(held) - 1 :], at + 2)], axis=1)
            count_units(each, habits, neighbors, rho)
        one, other = Recorded.made
        lost = sum(float(((one.exact(view) - other.exact(view)) ** 2).sum()) / (2 * noise) for view, noise in one.asked)
        assert lost <= float(rho) * (1 + 1e-9) and one.left == 0
        worst = max(worst, lost / float(rho))
    assert worst > 0.99


def test_a_unit_that_comes_changes_nothing_about_the_others(tmp_path: Path):
    rows = some_rows(40, each=3)
    found = []
    for name, more in (("without", []), ("with", [{**rows[0], "person": 999, "age": at % 90} for at in range(1000)])):
        curator = curator_of(tmp_path / name, [*rows, *more])
        planned = leaving_of(curator.analyst("ana")._asker, SynthesisAsk("people", 1.0, columns=("sex", "age"))).plan
        (version,) = curator.tables()
        engine = curator.engines.of(version.fingerprint)
        held, habits = read_units(planned.table, planned.domain, TRUE, engine, "salt", 60.0)
        found.append(sorted(zip(held.tolist(), *habits.tolist(), strict=True)))
    without, with_ = found
    assert len(with_) == len(without) + 1 == 41 and with_[-1][0] == 1000
    assert with_[:-1] == without
    assert all(sex in {SAME, DIFFERENT} for _, sex, _ in without)


def test_two_rows_are_compared_that_are_different_rows(tmp_path: Path):
    """Of units with two rows, never alike in age, and always in sex; one with one row has nothing to compare."""
    rows = [{**each, "person": at // 2, "sex": "m", "age": at} for at, each in enumerate(some_rows(61, each=1))]
    curator = curator_of(tmp_path, rows)
    planned = leaving_of(curator.analyst("ana")._asker, SynthesisAsk("people", 1.0, columns=("sex", "age"))).plan
    (version,) = curator.tables()
    held, habits = read_units(
        planned.table, planned.domain, TRUE, curator.engines.of(version.fingerprint), "salt", 60.0
    )
    assert sorted(held.tolist()) == [1] + [2] * 30
    assert set(habits[0][held == 2].tolist()) == {SAME} and set(habits[1][held == 2].tolist()) == {DIFFERENT}
    assert habits[:, held == 1].tolist() == [[LONE], [LONE]]


def test_sizes_are_classes_of_all_numbers_of_rows():
    assert SIZES.runs[0] == (0, 0) and SIZES.runs[-1][1] == 10**6 - 1
    assert all(low[1] + 1 == high[0] for low, high in zip(SIZES.runs, SIZES.runs[1:], strict=False))


def test_no_unit_of_a_million_rows_comes_of_noise():
    for seed in range(20):
        with seeded_noise(seed):
            counts = count_units(np.full(500, 4), habits_of(np.full(500, 4)), Neighbors.ADD_REMOVE, Fraction(1, 1000))
        assert counts.made_up("who", 2000.0, 8).sizes.runs[-1][1] < 30


# --- both, through the curator


COLUMNS = (
    '[columns.age]\ntype = "integer"\nbounds = [18, 90]\ndefault = 18\n'
    '[columns.region]\ntype = "category"\nkeys = ["north", "south", "east", "west"]\ndefault = "north"\n'
    '[columns.amount]\ntype = "number"\nbounds = [0, 5000]\nstep = 0.01\ndefault = 0\n'
)


def bought(people: int = 6000) -> pa.Table:
    rows = visits(people)
    return pa.table(
        {
            "id": [each.user_id for each in rows],
            "age": [each.age for each in rows],
            "region": [each.region for each in rows],
            "amount": [each.amount for each in rows],
        }
    )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return made(tmp_path_factory.mktemp("visits"), bought(), COLUMNS, limit=20)


def of_persons(table: pa.Table) -> tuple[np.ndarray, dict[str, int], float, np.ndarray]:
    """Rows of each person, persons of each region, ages of one person, amounts of all."""
    numbers, held = np.unique(table["id"].to_numpy(), return_counts=True)
    rows = table.to_pydict()
    regions = {name: len({who for who, where in zip(rows["id"], rows["region"], strict=True) if where == name})
               for name in REGIONS}  # fmt: skip
    ages = len(set(zip(rows["id"], rows["age"], strict=True))) / len(numbers)
    return held, regions, ages, table["amount"].to_numpy()


@pytest.mark.parametrize("method", ["tree", "adaptive"])
def test_questions_about_persons_make_sense(shop: Curator, method: str):
    """AVG of visits per person, persons by region, their ages: within the noise of ε = 2 and 6,000 people."""
    found = shop.analyst("ana").synthesize("t", epsilon=2.0, method=method)
    drawn, real = found.to_arrow(seed=1), bought()
    assert drawn.column_names == ["id", "age", "region", "amount"]
    assert found.to_dict()["units"] == {"column": "id", "count": round(found.stored.units.count)}  # type: ignore[union-attr]
    (held, regions, ages, _), (true, homes, _, _) = of_persons(drawn), of_persons(real)
    assert abs(len(held) - len(true)) < 0.05 * len(true)
    assert abs(held.mean() - true.mean()) < 0.08 * true.mean()
    for most in range(1, 40):
        assert abs(np.mean(held <= most) - np.mean(true <= most)) < 0.04
    assert ages == 1.0
    for name in REGIONS:
        assert abs(regions[name] - homes[name]) < 0.2 * homes[name]


def test_what_is_always_the_same_is_one_value_and_what_is_only_of_one_class_is_not(tmp_path: Path):
    """A day of birth, of classes that are found; and amounts that are all of one class, each of its own."""
    chance = np.random.default_rng(1)
    people = np.repeat(np.arange(1500), 3)
    born = np.array("1940-01-01", "datetime64[D]") + chance.integers(0, 20_000, 1500)[people]
    rows = pa.table({"id": people, "born": born, "amount": np.round(chance.uniform(10, 90, len(people)), 2)})
    columns = (
        '[columns.born]\ntype = "date"\nbounds = ["1900-01-01", "2025-12-31"]\ndefault = "1900-01-01"\n'
        '[columns.amount]\ntype = "number"\nbounds = [0, 1000000]\nstep = 0.01\ndefault = 0\n'
    )
    found = made(tmp_path, rows, columns, limit=3).analyst("ana").synthesize("t", epsilon=4.0, method="tree")
    drawn = found.to_arrow(3000, seed=1).to_pydict()
    units = found.stored.units
    assert units is not None and units.fixed == (True, False)
    assert len(set(zip(drawn["id"], drawn["born"], strict=True))) == len(set(drawn["id"]))
    assert len(set(zip(drawn["id"], drawn["amount"], strict=True))) > 2900


def test_a_model_with_units_comes_back_and_gives_the_same_rows(shop: Curator):
    found = shop.analyst("ana").synthesize("t", epsilon=2.0, method="tree")
    again = SyntheticTable.from_dict(found.to_dict())
    assert again.to_arrow(700, seed=5).equals(found.to_arrow(700, seed=5))
    assert again.to_dict() == found.to_dict()
    assert found.to_arrow(0).num_rows == 0 and found.to_arrow(1).num_rows == 1


def test_all_of_the_price_is_spent_and_no_more(shop: Curator, monkeypatch: pytest.MonkeyPatch):
    kept: list[UnitMeasurer] = []
    begin = UnitMeasurer.__init__

    def keeping(self: UnitMeasurer, *given: Any) -> None:
        begin(self, *given)
        kept.append(self)

    monkeypatch.setattr(UnitMeasurer, "__init__", keeping)
    shop.analyst("ana").synthesize("t", epsilon=1.5, method="mst", columns=["age", "region"])
    rho = Fraction(shop.ledger.budget("t").filter().price(1.5).rho)
    assert [each.left for each in kept] == [0, 0]
    assert sum((each.rho for each in kept), Fraction(0)) == rho


def test_where_units_have_one_row_or_change_with_periods_rows_are_nobodys(tmp_path: Path):
    single = made(tmp_path / "single", bought(50).slice(0, 40), COLUMNS, limit=1).analyst("ana")
    for found in (
        single.synthesize("t", epsilon=1.0, method="tree"),
        _monthly(tmp_path / "monthly").analyst("ana").synthesize("people", epsilon=0.5, method="histogram"),
    ):
        assert found.stored.units is None and found.to_dict()["units"] is None
        assert set(found.to_arrow(5).column_names) == set(found.columns)
