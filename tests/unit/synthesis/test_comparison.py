"""Comparisons with the real table: charged once, before the look, at just what was typed; the numbers are right."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.synthesis.made import COLUMNS, MODELLED, POLICY, curator_of, some_rows
from tests.unit.synthesis.test_synthetic_tables import charges
from tests.unit.synthesis.test_whole_fits import Recorded, lost

from dalenius.accounting.neighbors import Neighbors
from dalenius.curator import Curator
from dalenius.errors import BudgetError, DaleniusError, EngineFailedError, InputError, UnknownColumnError
from dalenius.mechanisms import noise
from dalenius.synthesis import comparison_kind
from dalenius.synthesis.comparison import MOST_TABLES, Compared, classed, compare
from dalenius.synthesis.comparison_release import Comparison, ComparisonPreview
from dalenius.synthesis.describing import drawn
from dalenius.synthesis.generators.histogram import IndependentModel
from dalenius.synthesis.modelled import Modelled
from dalenius.synthesis.policy_domain import PolicyDomain
from dalenius.synthesis.release import SyntheticTable
from dalenius.synthesis.rows import Limit, UnitMeasurer, read_rows
from dalenius.synthesis.scoring import errors
from dalenius.synthesis.stored import StoredModel
from dalenius.tables.policy import Kind

SIZES = (3, 2, 4, 50)


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(4):
        yield


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator_of(tmp_path_factory.mktemp("compared"), some_rows())


@pytest.fixture(scope="module")
def made(people: Curator) -> SyntheticTable:
    with seeded_noise(4):
        return people.analyst("ana").synthesize("people", epsilon=20.0, method="tree")


def model_of(rows: int = 40, seed: int = 1, sizes: Sequence[int] = SIZES) -> StoredModel:
    """A model of independent columns, without data."""
    chance = np.random.default_rng(seed)
    keys = [tuple(range(size)) for size in sizes]
    columns = [Modelled(f"c{at}", Kind.INTEGER, False, each, ordered=len(each) > 8) for at, each in enumerate(keys)]
    shares = tuple(chance.dirichlet(np.ones(size)) for size in sizes)
    domain = PolicyDomain(tuple(columns))
    return StoredModel("t", "histogram", 1.0, 0.02, 1, domain, IndependentModel(rows, shares))


def compared(stored: StoredModel, people: Sequence[Any], limit: Limit, rho: Fraction, predict: int | None = 0) -> Any:
    """A comparison with made-up people, each a list of rows: what is released, and the measurer that was asked."""
    codes = np.array([row for each in people for row in each], np.int32).reshape(-1, len(stored.names)).T
    held = np.repeat([len(each) for each in people], [len(each) for each in people]).astype(np.int64)
    asked: list[Recorded] = []

    def measurer(domain: Any, rows: Any) -> UnitMeasurer:
        asked.append(Recorded(domain, np.ascontiguousarray(rows), limit.weigh(held), limit, rho))
        asked[0].asked = []
        return asked[0]

    found = compare(stored, Compared.of(len(stored.names), predict), np.ascontiguousarray(codes), measurer, rho)
    return found, asked[0]


# --- the guarantee


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("seed", range(6))
def test_no_more_is_lost_on_a_neighbour_than_is_charged(neighbors: Neighbors, seed: int):
    """Every table and score of a comparison, asked of a table with one unit more, or exchanged: Σ‖Δ‖²/2σ² ≤ ρ."""
    chance, rho = random.Random(seed), Fraction(1, 10)
    limit, stored = Limit(3, neighbors, bits=6), model_of(seed=seed)

    def unit(rows: int) -> list[list[int]]:
        return [[chance.randrange(size) for size in SIZES] for _ in range(rows)]

    rest = [unit(chance.randrange(1, 6)) for _ in range(10)]
    for victim in (unit(1), unit(3), unit(40), [[0, 0, 0, 0]] * 150):
        other = [unit(3)] if neighbors is Neighbors.SUBSTITUTE else []
        _, with_ = compared(stored, [*rest, victim], limit, rho)
        _, without = compared(stored, [*rest, *other], limit, rho)
        assert with_.left == 0
        assert 0 < lost(with_.asked, with_, without) <= float(rho) * (1 + 1e-9)


def for_six_seeds(neighbors: Neighbors) -> None:
    for seed in range(6):
        test_no_more_is_lost_on_a_neighbour_than_is_charged(neighbors, seed)


def test_a_unit_of_one_row_uses_up_all_that_is_charged_for_distances():
    """So that noise is no larger than it must be: where each distance moves by one row, nothing of ρ is left over."""
    rho, limit = Fraction(1, 10), Limit(1)
    stored = model_of(rows=1, sizes=(2, 2, 2))
    people = [[[0, 0, 0]]] * 5
    _, with_ = compared(stored, [*people, [[0, 0, 0]]], limit, rho, predict=None)
    _, without = compared(stored, people, limit, rho, predict=None)
    assert lost(with_.asked, with_, without) == pytest.approx(float(rho), rel=1e-6)


def test_a_classifier_that_looks_at_other_rows_would_be_caught(monkeypatch: pytest.MonkeyPatch):
    from dalenius.synthesis.predicting import Predictor

    def by_all(predictor: Predictor, table: Any) -> Any:
        return np.full(table.shape[1], int(table.sum()) % len(predictor.classes.names), np.int32)

    monkeypatch.setattr(Predictor, "predict", by_all)
    with pytest.raises(AssertionError):
        for_six_seeds(Neighbors.ADD_REMOVE)


# --- the numbers


def test_errors_are_those_of_the_rows_that_anybody_may_draw():
    """Against `scoring`, which compares two tables in memory; what noise there is lies within its margins."""
    chance, stored = np.random.default_rng(5), model_of(rows=400)
    real = np.stack([chance.integers(0, size, 400) for size in SIZES], axis=1).astype(np.int32)
    found, _ = compared(stored, [[row] for row in real.tolist()], Limit(1), Fraction(10**6))
    true = errors(real, drawn(stored), SIZES)
    for way in found["ways"]:
        assert way["error"] == pytest.approx(true.ways[way["columns"]], abs=1e-3)
        assert way["tables"] == way["of"] == len(list(combinations(SIZES, way["columns"])))
    names = {tuple(f"c{at}" for at in columns): error for columns, error in true.each.items()}
    for each in [*found["ways"][0]["each"], *found["ways"][1]["each"]]:
        assert each["error"] == pytest.approx(names[tuple(each["columns"])], abs=2e-3)
    assert found["ways"][2]["each"] is None


def test_a_classifier_is_counted_on_the_real_rows():
    stored = model_of(rows=4000, sizes=(2, 3))
    columns, real = stored.domain, [[0, 0]] * 30 + [[1, 0]] * 10 + [[1, 2]] * 20
    found, _ = compared(stored, [[row] for row in real], Limit(1), Fraction(10**6))
    prediction = found["prediction"]
    assert prediction["column"] == "c0" and prediction["classes"] == ["0", "1"]
    assert np.sum(prediction["table"]) == pytest.approx(60, abs=0.5)
    assert np.sum(prediction["table"][0]) == pytest.approx(30, abs=0.5)
    right = prediction["table"][0][0] + prediction["table"][1][1]
    assert prediction["accuracy"] == pytest.approx(right / 60, abs=0.01)
    assert prediction["most_frequent"] == pytest.approx(0.5, abs=0.02) and 0 < prediction["margin"] < 0.02
    assert 0 <= prediction["synthetic"] <= 1 and len(columns.columns) == 2


def test_means_and_margins_are_those_of_the_noise():
    """Of 400 comparisons of nothing: a deviation 20% off lies 5.6 standard errors away; 5.3 fail by chance < 2e-7."""
    rho, limit, draws = Fraction(1, 5), Limit(2), 400
    stored = model_of(rows=1000, sizes=(2, 2, 2))
    found = [compared(stored, [[[0, 0, 0]]], limit, rho, predict=None)[0] for _ in range(draws)]
    for at in range(3):
        drawn_ = np.array([each["ways"][at]["error"] for each in found])
        margin = found[0]["ways"][at]["margin"]
        assert margin == pytest.approx(1.96 * 2 / (2 * float(rho) / 3) ** 0.5 / 1000, rel=1e-3)
        assert abs(drawn_.std() / (margin / 1.96) - 1) < 5.3 / (2 * draws) ** 0.5 < 0.2


def test_of_very_many_columns_some_tables_are_compared_and_the_same_ones_each_time():
    wide = Compared.of(60, None)
    assert {way: len(tables) for way, tables in wide.tables.items()} == {1: 60, 2: 1000, 3: 400}
    assert wide == Compared.of(60, None) and all(len(set(each)) == 3 for each in wide.tables[3])
    assert Compared.of(2, 1).tables.keys() == {1, 2} and Compared.of(1, None).counted == 1
    assert sum(MOST_TABLES.values()) > 1000
    view = classed((0, 1), (100, 3))
    assert view.shape == (32, 3)


# --- the release


def test_the_ledger_has_one_charge_of_just_the_price_and_the_same_again_is_free(people: Curator, made: SyntheticTable):
    ana, before = people.analyst("ana"), len(charges(people))
    found = ana.compare_synthetic(made, epsilon=0.75, predict="région")
    (charge,) = charges(people)[before:]
    rho = people.ledger.budget("people").filter().price(0.75).rho
    assert (charge["epsilon"], charge["delta"], charge["rho"], charge["kind"]) == (0.75, 0.0, rho, "comparison")
    assert found.charge == {"epsilon": 0.75, "delta": 0.0, "rho": rho}
    assert Fraction(found.receipt["event"]["event"]["rho"]) == Fraction(rho)  # type: ignore[index]
    assert found.guarantee["epsilon"] == 0.75 and found.guarantee["neighbors"] == "add-remove"
    again = ana.compare_synthetic(made.receipt["id"], epsilon=0.5, predict="région")  # type: ignore[index]
    assert again.free and again.ways == found.ways and again.prediction == found.prediction
    assert len(charges(people)) == before + 1
    assert Comparison.from_dict(found.to_dict()) == found
    assert [each.columns for each in found.ways] == [1, 2, 3] and found.release == made.receipt["id"]  # type: ignore[index]
    other = ana.compare_synthetic(made, epsilon=0.75)
    assert not other.free and other.prediction is None and len(charges(people)) == before + 2
    assert ana.history()[-1]["kind"] == "comparison"


def test_a_preview_says_the_margins_and_charges_nothing(people: Curator, made: SyntheticTable):
    ana, before = people.analyst("ana"), len(charges(people))
    expected = ana.preview_comparison(made, epsilon=0.79)
    assert not expected.known and len(charges(people)) == before
    assert ComparisonPreview.from_dict(expected.to_dict()) == expected
    found = ana.compare_synthetic(made, epsilon=0.79)
    for way in found.ways:
        assert expected.margins[str(way.columns)] == pytest.approx(way.margin, rel=1e-6)
    assert ana.preview_comparison(made, epsilon=0.79).known


def test_a_model_is_known_by_its_release_and_another_analysts_is_not_told_from_none(
    people: Curator, made: SyntheticTable
):
    ana, bob, id_ = people.analyst("ana"), people.analyst("bob"), made.receipt["id"]  # type: ignore[index]
    assert ana.preview_synthetic("people", epsilon=1.0, method="tree").release == id_
    assert bob.preview_synthetic("people", epsilon=1.0, method="tree").release is None
    again = ana.synthetic(id_)
    assert again.free and again.to_arrow(20, seed=1).equals(made.to_arrow(20, seed=1))
    assert again.guarantee == made.guarantee and again.columns == MODELLED
    told = []
    for wrong in (id_, "R999999-000000000000", "nonsense"):
        for refused in (bob.synthetic, lambda each: bob.compare_synthetic(each, epsilon=0.5)):
            with pytest.raises(DaleniusError) as error:
                refused(wrong)
            told.append(str(error.value))
    assert len(set(told)) == 1
    answer = ana.ask("SELECT COUNT(*) FROM people", epsilon=0.5)
    with pytest.raises(InputError, match="no synthetic table"):
        ana.compare_synthetic(answer.receipt["id"], epsilon=0.5)  # type: ignore[index]


REFUSED: list[tuple[type[DaleniusError], dict[str, Any]]] = [
    (InputError, {"epsilon": 0.0}),
    (InputError, {"epsilon": float("nan")}),
    (InputError, {"epsilon": 1e-80}),
    (InputError, {"predict": "nothing"}),
    (InputError, {"predict": "country"}),  # it has one value
    (BudgetError, {"epsilon": 10_000.0}),
]


@pytest.mark.parametrize(("error", "asked"), REFUSED)
def test_what_is_refused_costs_nothing(
    people: Curator, made: SyntheticTable, error: type[DaleniusError], asked: dict[str, Any]
):
    before = len(charges(people))
    with pytest.raises(error) as told:
        people.analyst("ana").compare_synthetic(made, **{"epsilon": 0.5, **asked})
    assert told.value.charge.epsilon == 0 and len(charges(people)) == before


def test_a_model_of_another_policy_is_not_compared(tmp_path: Path):
    """Nor does a column that was taken out of the policy come back by way of an old model."""
    curator = curator_of(tmp_path, some_rows(20))
    made = curator.analyst("ana").synthesize("people", epsilon=1.0, method="histogram", columns=["sex", "age"])
    changed: dict[str, type[DaleniusError]] = {
        COLUMNS.replace("bounds = [0, 100]", "bounds = [0, 90]"): InputError,
        COLUMNS.replace('[columns.sex]\ntype = "category"\nkeys = ["m", "f"]\n', ""): UnknownColumnError,
    }
    for columns, error in changed.items():
        text = POLICY.format(
            contribution="[contribution]\nrows = 2",
            accounting="zcdp",
            neighbors="add-remove",
            columns=columns,
            delta=1e-6,
        )
        (tmp_path / "people.toml").write_text(text)
        curator.protect(tmp_path / "people.toml", yes=True)
        before = len(charges(curator))
        with pytest.raises(error):
            curator.analyst("ana").compare_synthetic(made, epsilon=0.5)
        assert len(charges(curator)) == before


def test_nobody_looks_before_the_charge_is_on_disk(
    people: Curator, made: SyntheticTable, monkeypatch: pytest.MonkeyPatch
):
    seen, before = [], len(charges(people))

    def looking(*arguments: Any) -> Any:
        seen.append(len(charges(people)))
        return read_rows(*arguments)

    monkeypatch.setattr(comparison_kind, "read_rows", looking)
    people.analyst("ana").preview_comparison(made, epsilon=0.81, predict="sex")
    assert seen == []
    people.analyst("ana").compare_synthetic(made, epsilon=0.81, predict="sex")
    assert seen == [before + 1]


def test_a_failing_look_is_charged_and_says_nothing_of_rows(
    people: Curator, made: SyntheticTable, monkeypatch: pytest.MonkeyPatch
):
    def failing(*_: object) -> None:
        raise EngineFailedError("It failed.", why="A test.", fix="None.")

    monkeypatch.setattr(comparison_kind, "read_rows", failing)
    before = len(charges(people))
    with pytest.raises(EngineFailedError):
        people.analyst("ana").compare_synthetic(made, epsilon=0.82)
    assert len(charges(people)) == before + 1


def test_noise_is_never_drawn_twice_from_one_key(
    people: Curator, made: SyntheticTable, monkeypatch: pytest.MonkeyPatch
):
    keys = []
    monkeypatch.setattr(noise, "fresh_key", lambda: keys.append(1))
    people.analyst("ana").compare_synthetic(made, epsilon=0.83)
    assert keys == [1]


def test_keys_and_classes_that_were_found_are_compared_as_they_were_found(tmp_path: Path):
    """A category without keys and a number of many steps: what the model found for them is what rows are put into."""
    columns = COLUMNS.replace('[columns.note]\ntype = "text"', '[columns.note]\ntype = "category"')
    curator = curator_of(tmp_path, some_rows(300), columns=columns)
    ana, asked = curator.analyst("ana"), ["bmi", "note", "age"]
    made = ana.synthesize("people", epsilon=50.0, method="tree", columns=asked)
    keys = {each.name: each.keys for each in made.stored.domain.columns}
    assert keys["note"] == ("abc",) and keys["bmi"] is None
    found = ana.compare_synthetic(made, epsilon=50.0, predict="note")
    (note,) = [each["error"] for each in found.ways[0].each or () if each["columns"] == ["note"]]
    assert note < 0.1 and found.prediction is not None and found.prediction.accuracy > 0.9
