"""One unit moves no table by more than the limit, whatever it holds; what is spent is what was charged."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.seeded_noise import seeded_noise
from tests.unit.synthesis.made import curator_of, some_rows

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import BudgetError
from dalenius.measuring._exact import exact_batches
from dalenius.measuring.batches import UnitRows
from dalenius.measuring.expressions import TRUE
from dalenius.synthesis.domain import sized
from dalenius.synthesis.generators.tree import tree
from dalenius.synthesis.kind import leaving_of
from dalenius.synthesis.request import SynthesisAsk
from dalenius.synthesis.rows import Limit, UnitMeasurer, read_rows
from dalenius.synthesis.scores import Dependence, Distance
from dalenius.synthesis.views import View, whole

SIZES = (3, 2, 4)
ALL = [each for ways in (1, 2, 3) for each in combinations(range(3), ways)]
units = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), min_size=1, max_size=12)
tables = st.lists(units, max_size=5)
limits = st.builds(Limit, st.integers(1, 5), st.just(Neighbors.ADD_REMOVE), st.integers(0, 12))


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(3):
        yield


def measurer_of(people: list[list[tuple[int, ...]]], limit: Limit, rho: Fraction = Fraction(1)) -> UnitMeasurer:
    rows = [row for each in people for row in each]
    held = np.repeat([len(each) for each in people], [len(each) for each in people]).astype(np.int64)
    codes = np.array(rows, np.int32).reshape(-1, len(SIZES)).T
    return UnitMeasurer(sized(SIZES), np.ascontiguousarray(codes), limit.weigh(held), limit, rho)


@given(tables, units, limits)
def test_one_unit_moves_every_table_by_no_more_than_the_limit(
    people: list[list[tuple[int, ...]]], victim: list[tuple[int, ...]], limit: Limit
):
    without, with_ = measurer_of(people, limit), measurer_of([*people, victim], limit)
    for columns in ALL:
        moved = with_.exact(whole(columns, SIZES)) - without.exact(whole(columns, SIZES))
        assert (moved >= 0).all()
        assert moved.sum() <= limit.length
        assert (moved**2).sum() <= limit.of_table == limit.length**2


@given(tables, units, units, limits)
def test_a_unit_that_takes_anothers_place_moves_them_by_what_is_calibrated_for_that(
    people: list[list[tuple[int, ...]]], one: list[tuple[int, ...]], other: list[tuple[int, ...]], limit: Limit
):
    limit = Limit(limit.rows, Neighbors.SUBSTITUTE, limit.bits)
    before, after = measurer_of([*people, one], limit), measurer_of([*people, other], limit)
    for columns in ALL:
        moved = after.exact(whole(columns, SIZES)) - before.exact(whole(columns, SIZES))
        assert (moved**2).sum() <= limit.of_table == 2 * limit.length**2
        score = Distance(whole(columns, SIZES), np.zeros(whole(columns, SIZES).cells, np.int64))
        assert abs(after.score(score) - before.score(score)) <= limit.of_score == 2 * limit.length


@given(tables, units, limits, st.integers(0, 2**32), st.integers(-3, 3))
def test_one_unit_moves_every_score_by_no_more_than_its_sensitivity(
    people: list[list[tuple[int, ...]]], victim: list[tuple[int, ...]], limit: Limit, seed: int, penalty: int
):
    without, with_ = measurer_of(people, limit), measurer_of([*people, victim], limit)
    chance = np.random.default_rng(seed)
    for columns in ALL:
        view = whole(columns, SIZES)
        scores: list[Any] = [Distance(view, chance.integers(0, 5, view.cells), penalty)]
        scores += [Dependence(view, at) for at in columns if len(columns) > 1]
        for score in scores:
            moved = abs(with_.score(score) - without.score(score))
            assert moved <= score.sensitivity * limit.of_score


def test_a_thousand_identical_rows_weigh_as_one_unit():
    limit = Limit(2)
    one = measurer_of([[(0, 1, 2)] * 1000], limit)
    assert one.exact(whole((0,), SIZES)).tolist() == [8 * 1000, 0, 0]  # ⌊2·4096/1000⌋ for each
    assert one.exact(whole((0, 1, 2), SIZES)).sum() <= limit.length


def test_a_bug_that_lets_heavy_units_through_is_caught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Limit, "weigh", lambda limit, held: np.full(len(held), limit.whole))
    with pytest.raises(AssertionError):
        test_one_unit_moves_every_table_by_no_more_than_the_limit()


def test_a_reference_that_is_not_brought_to_parts_is_caught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Distance, "in_parts", lambda score, _: Distance(score.view, score.reference, score.penalty))
    exact = measurer_of([[(0, 0, 0)], [(1, 0, 0)]], Limit(1))
    with pytest.raises(AssertionError):
        assert exact.score(Distance(whole((0,), SIZES), np.array([1, 1, 0]))) == 0


def test_a_reference_of_noise_alone_does_not_wrap_around():
    """Of a sum that wraps, one row more is a change of 2⁶⁴."""
    cells, limit = 4096, Limit(1)
    huge = Distance(View((0,), (np.arange(cells, dtype=np.int32),)), np.full(cells, 2**62, np.int64))
    empty, one = measurer_of([], limit), measurer_of([[(0, 0, 0)]], limit)
    assert 0 < empty.score(huge) < 2**62
    assert abs(one.score(huge) - empty.score(huge)) <= limit.of_score


def test_what_was_charged_is_spent_exactly_and_not_passed():
    rho = Fraction(1, 7)
    found = measurer_of([[(0, 0, 0)]], Limit(1), rho)
    found.measure([(whole((0,), SIZES), rho / 3), (whole((1,), SIZES), rho / 3)])
    found.scores([Distance(whole((0,), SIZES), np.zeros(3, np.int64))], rho / 6)
    assert found.left == rho / 6
    for more in (rho / 6 + Fraction(1, 10**30), Fraction(0), Fraction(-1)):
        with pytest.raises(BudgetError):
            found.measure([(whole((0,), SIZES), more)])
    with pytest.raises(BudgetError):  # what is asked for less than nothing pays for nothing else
        found.measure([(whole((0,), SIZES), rho), (whole((1,), SIZES), -rho)])
    assert found.left == rho / 6
    assert found.choose([Distance(whole((0,), SIZES), np.zeros(3, np.int64))], found.left) == 0
    assert found.left == 0


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_noise_is_that_of_the_price(neighbors: Neighbors):
    """20,000 draws: a deviation 20% off lies 25 of its standard errors away; the bound of 6 fails by chance < 1e-8."""
    limit, rho, draws = Limit(3, neighbors), Fraction(1, 50), 20_000
    found = measurer_of([], limit, rho)
    view = View((0,), (np.arange(draws, dtype=np.int32),))
    (measured,) = found.measure([(view, rho)])
    exchanged = 2 if neighbors is Neighbors.SUBSTITUTE else 1
    wanted = (exchanged * 3**2 / (2 / 50)) ** 0.5
    assert measured.sigma == pytest.approx(wanted, rel=1e-6)
    drawn = float(np.sqrt((measured.values**2).mean()))
    allowed = 6 * wanted / (2 * draws) ** 0.5
    assert abs(drawn - wanted) < allowed < 0.2 * wanted
    scored = measurer_of([], limit, rho).scores([Distance(whole((0,), SIZES), np.zeros(3, np.int64))] * 4, rho)
    assert scored.sigma == pytest.approx((4 * exchanged**2 * 3**2 / (2 / 50)) ** 0.5, rel=1e-6)


def test_the_generators_spend_no_more_than_there_is():
    found = measurer_of([[(0, 1, 2)], [(1, 1, 1)]] * 50, Limit(1), Fraction(1, 3))
    tree(found, np.random.default_rng(0))
    assert found.left == 0


def planned(curator: Any, **more: Any) -> Any:
    return leaving_of(curator.analyst("ana")._asker, SynthesisAsk("people", 1.0, **more)).plan


SETTLED = ("sex", "région", "age", "smoker", "wave")  # whose values the policy settles


def exact_tables(curator: Any) -> tuple[list[Any], Limit]:
    plan = planned(curator, columns=SETTLED)
    (version,) = curator.tables()
    engine = curator.engines.of(version.fingerprint)
    codes, weights = read_rows(plan.table, plan.domain, TRUE, plan.limit, engine, "salt", 60.0)
    found = UnitMeasurer(plan.domain.domain, codes, weights, plan.limit, Fraction(1))
    sizes = plan.domain.domain.sizes
    return [found.exact(whole(each, sizes)) for each in combinations(range(len(sizes)), 2)], plan.limit


def test_a_person_with_a_thousand_rows_moves_what_the_engine_reads_by_no_more_than_the_limit(tmp_path: Path):
    rows = some_rows(40)
    victim = [{**rows[0], "person": 999}] * 1000
    without, limit = exact_tables(curator_of(tmp_path / "without", rows))
    with_, _ = exact_tables(curator_of(tmp_path / "with", [*rows, *victim]))
    moved = [after - before for before, after in zip(without, with_, strict=True)]
    assert all((each >= 0).all() and 0 < each.sum() <= limit.length for each in moved)
    assert all(before.sum() == limit.whole * len(rows) for before in without)  # all others count in full


def test_what_is_read_in_columns_is_what_whole_units_give(tmp_path: Path):
    """All tables of two columns, worked out from batches of whole units and value by value."""
    rows = some_rows(60) + [{**each, "person": 7} for each in some_rows(1, each=5)]
    curator = curator_of(tmp_path, rows)
    plan = planned(curator, columns=SETTLED)
    engine = curator.engines.of(curator.tables()[0].fingerprint)
    found, limit = exact_tables(curator)
    codes, weights = list[Any](), list[Any]()
    for batch in exact_batches(UnitRows(plan.table, plan.domain.expressions, 10**6), engine, "salt", units=7):
        held = np.diff(batch.starts)
        weights.append(np.repeat(limit.weigh(held), held))
        read = zip(plan.domain.columns, batch.values, batch.absent, strict=True)
        codes.append([each.codes(values, absent) for each, values, absent in read])
    exact = UnitMeasurer(plan.domain.domain, np.concatenate(codes, axis=1), np.concatenate(weights), limit, Fraction(1))
    sizes = plan.domain.domain.sizes
    for view, table in zip(combinations(range(len(sizes)), 2), found, strict=True):
        assert exact.exact(whole(view, sizes)).tolist() == table.tolist()
