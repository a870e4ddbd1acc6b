"""Models through the curator: charged once, before the look, at just what was typed; what is predicted is free."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.learning.taught import FEATURES, curator_of, some_people

from dalenius.accounting.costs import zcdp
from dalenius.curator import Curator
from dalenius.errors import (
    BudgetError,
    DaleniusError,
    EngineFailedError,
    InputError,
    NotAllowedError,
    UnknownColumnError,
    UnknownTableError,
)
from dalenius.learning.folder import load_model
from dalenius.learning.reading import read_units
from dalenius.learning.release import TrainedModel
from dalenius.learning.rules import ENOUGH_ROWS
from dalenius.ledger.budgets import covers
from dalenius.ledger.verification import verify
from dalenius.releasing.kinds import kind_of
from dalenius.releasing.stored import read_release

ONE: dict[str, Any] = {"rows_per_unit": 1}


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(2):
        yield


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator_of(tmp_path_factory.mktemp("people"), some_people(1500))


def charges(curator: Curator) -> list[dict[str, Any]]:
    return [entry.data for entry in curator.ledger.records(("charge",)) if entry.data["analyst"]]


def test_the_ledger_has_one_charge_of_at_most_the_price(people: Curator):
    before = len(charges(people))
    found = people.analyst("ana").train("people", "income", epsilon=1.25, **ONE)
    (charge,) = charges(people)[before:]
    rho = people.ledger.budget("people").filter().price(1.25).rho
    assert (charge["epsilon"], charge["rho"], charge["kind"]) == (1.25, rho, "model")
    assert charge["event"]["event"]["kind"] == "sampled"
    for each in charge["losses"].values():  # what each filter pays is at most the ρ of the price, and nearly that
        assert 0.5 * rho < int(each["units"]) / 2**128 <= rho
    assert found.charge["epsilon"] == 1.25 and found.charge["delta"] < 1e-14
    assert found.guarantee == {
        "kind": "approx",
        "epsilon": 1.25,
        "delta": 1e-5,
        "unit": "person",
        "neighbors": "add-remove",
    }
    verify(people.ledger)  # raises where something does not hold


def test_the_same_again_is_free_and_gives_the_same_weights(people: Curator):
    ana = people.analyst("ana")
    found = ana.train("people", "income", epsilon=1.5, **ONE)
    before = len(charges(people))
    again = ana.train("people", "income", epsilon=1.5, **ONE)
    cheaper = ana.train("people", "income", epsilon=0.5, **ONE)
    later = ana.model(str(found.receipt["id"]))  # type: ignore[index]
    assert (found.free, again.free, cheaper.free, later.free) == (False, True, True, True)
    for each in (again, cheaper, later):
        assert each.stored.content() == found.stored.content() and each.charge["epsilon"] == 0
    assert cheaper.guarantee["epsilon"] == 1.5 and len(charges(people)) == before


def test_another_analyst_and_another_request_pay(people: Curator):
    asked: dict[str, Any] = {"epsilon": 1.75, "features": ["age", "region"], **ONE}
    mine = people.analyst("ana").train("people", "income", **asked)
    before = len(charges(people))
    other = people.analyst("bob").train("people", "income", **asked)
    assert not other.free and other.stored.content() != mine.stored.content()
    for change in ({"features": ["age"]}, {"held_out": 0.2}, {"steps": 7}, {"model": "svm"}, {"batch": 500}):
        assert not people.analyst("bob").train("people", "income", **asked | change).free
    assert not people.analyst("bob").train("people", "smoker", **asked).free
    assert len(charges(people)) == before + 7


def test_the_order_of_the_features_is_free(people: Curator):
    ana = people.analyst("ana")
    found = ana.train("people", "income", epsilon=1.75, features=["spent", "age"], **ONE)
    again = ana.train("people", "income", epsilon=1.75, features=["age", "spent"], **ONE)
    assert again.free and again.stored.content() == found.stored.content()


def test_a_model_predicts_what_it_was_taught(people: Curator):
    found = people.analyst("ana").train("people", "income", epsilon=3.0, **ONE)
    assert tuple(each.name for each in found.stored.recipe.task.features) == FEATURES
    assert dict(found.left_out) == {"amount": "declare its bounds", "note": "declare its keys"}
    fresh = some_people(400, seed=7)
    scored = found.score(fresh)
    assert scored.accuracy is not None and scored.accuracy > 0.85 and scored.count == 400
    chances = found.predict_proba(fresh)
    assert chances.shape == (400, 2) and np.allclose(chances.sum(axis=1), 1)
    assert found.classes_ == ("low", "high") and set(found.predict(fresh)) <= {"low", "high"}
    by_name = dict(zip(found.feature_names_, found.coef_[0], strict=True))
    assert by_name["age"] > 0 and by_name["region = south"] > by_name["region = north"]
    assert found.intercept_.shape == (1,)


def test_a_model_comes_back_from_json(people: Curator):
    found = people.analyst("ana").train("people", "income", epsilon=3.0, **ONE)
    again = TrainedModel.from_dict(found.to_dict())
    assert again.to_dict() == found.to_dict() and again.stored.content() == found.stored.content()
    assert read_release(people.ledger, str(found.receipt["id"]))["content"] == found.stored.to_json()  # type: ignore[index]
    assert kind_of("model").read(found.stored.content())["format"] == "model 1"


def test_where_no_count_was_released_units_are_counted_in_the_same_charge(tmp_path: Path):
    curator = curator_of(tmp_path, some_people(900), contribution="[contribution]\nrows = 1")
    ana = curator.analyst("ana")
    expected = ana.preview_model("people", "income", epsilon=2.0)
    assert expected.people is None and expected.rate == 1 and expected.loss is None
    found = ana.train("people", "income", epsilon=2.0)
    (charge,) = charges(curator)
    counting, training = charge["event"]["event"]["events"]
    assert counting["kind"] == "discrete-gaussian" and training["kind"] == "sampled" and training["rate"] == "1/1"
    spread = float(Fraction(counting["variance"])) ** 0.5
    recipe = found.stored.recipe
    assert abs(recipe.people - 900) < 6 * spread and recipe.capacity >= 900 and found.stored.counted
    assert int(charge["losses"][""]["units"]) / 2**128 <= charge["rho"]
    scored = found.score(some_people(400, seed=7))
    assert scored.accuracy is not None and scored.accuracy > 0.8


def test_after_a_refresh_the_old_count_is_not_trusted(tmp_path: Path):
    curator = curator_of(tmp_path, some_people(900))
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(some_people(1800)), tmp_path / "people.parquet")
    curator.refresh("people")
    expected = curator.analyst("ana").preview_model("people", "income", epsilon=2.0)
    assert expected.people is None and any("rate" in key for key in expected.to_dict())
    found = curator.analyst("ana").train("people", "income", epsilon=2.0, **ONE)
    assert found.stored.counted and 1600 < found.stored.recipe.people < 2000


def test_several_rows_of_a_unit_are_learned_from(tmp_path: Path):
    curator = curator_of(tmp_path, some_people(300, each=4), contribution="[contribution]\nrows = 4")
    found = curator.analyst("ana").train("people", "income", epsilon=20.0)
    assert found.stored.recipe.rows == 4
    scored = found.score(some_people(300, seed=7))
    assert scored.accuracy is not None and scored.accuracy > 0.85


def test_of_units_with_very_many_rows_some_are_learned_from(tmp_path: Path):
    curator = curator_of(tmp_path, some_people(60, each=30), contribution="[contribution]\nrows = 30")
    for method in ("sgd", "output"):
        found = curator.analyst("ana").train("people", "income", epsilon=20.0, method=method)
        assert found.stored.recipe.rows == ENOUGH_ROWS
    more = curator.analyst("ana").train("people", "income", epsilon=20.0, rows_per_unit=20)
    assert more.stored.recipe.rows == 20 and not more.free


# --- refused before the charge

BAD: list[tuple[type[DaleniusError], str, dict[str, Any]]] = [
    (UnknownTableError, "no table", {"table": "peeple"}),
    (InputError, "among the features", {"features": ["age", "income"]}),
    (InputError, "cannot be a feature", {"features": ["amount"]}),
    (InputError, "cannot be a feature", {"features": ["note"]}),
    (InputError, "one class", {"target": "alone"}),
    (InputError, "no declared keys", {"target": "spent"}),
    (InputError, "not a number with bounds", {"target": "amount", "model": "linear"}),
    (UnknownColumnError, "no column", {"target": "incom"}),
    (UnknownColumnError, "no column", {"features": ["agee"]}),
    (NotAllowedError, "says who somebody is", {"features": ["person"]}),
    (NotAllowedError, "says who somebody is", {"target": "person"}),
    (InputError, "fewer units", {"batch": 50_000}),
    (InputError, "no model", {"model": "forest"}),
    (InputError, "no method", {"method": "magic"}),
    (InputError, "too small", {"epsilon": 1e-6}),
    (InputError, "too small", {"epsilon": 1e-80}),
    (InputError, ".", {"epsilon": 0.0}),
    (InputError, ".", {"epsilon": float("nan")}),
    (InputError, ".", {"epsilon": "1"}),
    (InputError, "held out", {"held_out": 0.9}),
    (InputError, "held out", {"held_out": True}),
    (InputError, ".", {"rows_per_unit": 0}),
    (InputError, ".", {"steps": 0}),
    (InputError, ".", {"batch": -1}),
    (InputError, "twice", {"features": ["age", "age"]}),
    (BudgetError, ".", {"epsilon": 5000.0, "steps": 20_000}),
]


@pytest.mark.parametrize(("error", "words", "change"), BAD, ids=lambda each: str(each)[:40])
def test_bad_input_is_refused_before_the_charge_without_a_look_at_rows(
    people: Curator, monkeypatch: pytest.MonkeyPatch, error: type[DaleniusError], words: str, change: dict[str, Any]
):
    def looking(*_: object, **__: object) -> Any:
        raise AssertionError("It looked.")

    monkeypatch.setattr("dalenius.learning.reading.exact_batches", looking)
    asked: dict[str, Any] = {"table": "people", "target": "income", "epsilon": 1.0, **ONE, **change}
    before = len(charges(people))
    with pytest.raises(error, match=words) as refused:
        people.analyst("ana").train(**asked)
    assert refused.value.fix and refused.value.why and refused.value.charge.epsilon == 0
    assert len(charges(people)) == before
    if error is not BudgetError:
        with pytest.raises(error, match=words):
            people.analyst("ana").preview_model(**asked)


@pytest.mark.parametrize(("accounting", "neighbors"), [("pure", "add-remove"), ("zcdp", "substitute")])
def test_where_sampled_noise_cannot_be_paid_for_output_is_offered(tmp_path: Path, accounting: str, neighbors: str):
    curator = curator_of(tmp_path, some_people(1500), accounting=accounting, neighbors=neighbors)
    ana = curator.analyst("ana")
    with pytest.raises(InputError, match="output"):
        ana.train("people", "income", epsilon=1.0, method="sgd", **ONE)
    with pytest.raises(InputError, match="no steps"):
        ana.train("people", "income", epsilon=1.0, steps=9, **ONE)
    assert charges(curator) == []
    found = ana.train("people", "income", epsilon=8.0, held_out=0.2, **ONE)
    (charge,) = charges(curator)
    assert found.stored.recipe.method == "output" and charge["event"]["neighbors"] == neighbors
    assert charge["event"]["event"]["kind"] == ("pure" if accounting == "pure" else "zcdp")
    assert found.guarantee["kind"] == ("pure" if accounting == "pure" else "approx")
    assert found.guarantee["delta"] == charge["delta"] == 0 or accounting == "zcdp"
    scored = found.score(some_people(400, seed=7))
    assert scored.accuracy is not None and scored.accuracy > 0.75
    own = curator.ledger.budget("people").filter().price(8.0)
    assert covers(own, found.stored.recipe.event()) or accounting == "zcdp"
    again = TrainedModel.from_dict(found.to_dict())
    assert again.stored.content() == found.stored.content() and ana.score_model(found, epsilon=8.0).scored.count > 200
    files = found.save(tmp_path / "model")
    assert ("Laplace" in files[1].read_text()) == (accounting == "pure")
    load_model(tmp_path / "model", public_key=curator.ledger.keys.public_file)
    verify(curator.ledger)


@pytest.mark.parametrize("contribution", ["", "[contribution]\nrows = 1"])
def test_noise_that_is_added_once_is_charged_what_was_typed(tmp_path: Path, contribution: str):
    curator = curator_of(tmp_path, some_people(1500), contribution=contribution)
    found = curator.analyst("ana").train("people", "income", epsilon=2.0, method="output", **ONE)
    (charge,) = charges(curator)
    recipe = found.stored.recipe
    assert Fraction(charge["event"]["event"]["rho"]) == Fraction(charge["rho"]) and charge["delta"] == 1e-38
    cost = zcdp(recipe.event())
    assert cost is not None
    assert 0.9 * charge["rho"] < cost.rho <= charge["rho"] * (1 if contribution == "" else 0.98) * (1 + 1e-12)
    assert found.stored.counted == bool(contribution)
    assert {each["margin"] is None for each in found.to_dict()["coefficients"]} == {False}
    scored = found.score(some_people(400, seed=7))
    assert scored.accuracy is not None and scored.accuracy > 0.75


STRANGE: list[dict[str, Any]] = [
    *({"seed": 1}, {"features": "age"}, {"features": [1]}, {"model": 7}, {"method": 7}, {"held_out": "x"}),
]


@pytest.mark.parametrize(
    "request_",
    [
        *(None, 7, {}, {"table": "people"}, {"table": "people", "target": "income"}, {"table": 1, "target": "income"}),
        *({"table": "people", "target": "income", "epsilon": 1.0, **each} for each in STRANGE),
    ],
)
def test_what_is_no_request_is_refused(people: Curator, request_: Any):
    before = len(charges(people))
    with pytest.raises(InputError):
        people.analyst("ana").obtain("model", request_)
    assert len(charges(people)) == before


def test_a_failure_is_never_refunded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    curator = curator_of(tmp_path, some_people(50))

    def failing(*_: object, **__: object) -> None:
        raise EngineFailedError("It failed.", why="A test.", fix="None.")

    monkeypatch.setattr("dalenius.learning.training.read_units", failing)
    with pytest.raises(EngineFailedError):
        curator.analyst("ana").train("people", "income", epsilon=0.5, **ONE)
    assert [each["epsilon"] for each in charges(curator)] == [0.5]


def test_nobody_looks_before_the_charge_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from dalenius.learning import training

    curator, seen, read = curator_of(tmp_path, some_people(50)), list[int](), read_units

    def looking(*arguments: Any, **named: Any) -> Any:
        seen.append(len(charges(curator)))
        return read(*arguments, **named)

    monkeypatch.setattr(training, "read_units", looking)
    curator.analyst("ana").preview_model("people", "income", epsilon=0.5, **ONE)
    assert seen == []
    curator.analyst("ana").train("people", "income", epsilon=0.5, **ONE)
    assert seen == [1]


def test_an_empty_table_has_a_model_too(tmp_path: Path):
    nobody = [each | {"person": None} for each in some_people(20)]  # rows of nobody are dropped
    curator = curator_of(tmp_path, nobody, contribution="[contribution]\nrows = 1")
    found = curator.analyst("ana").train("people", "income", epsilon=0.5)
    assert set(found.predict(some_people(20))) <= {"low", "high"}


def test_the_number_of_units_that_are_there_decides_nothing_before_the_charge(tmp_path: Path):
    """Two tables with the same policy and the same declared limit: previews are the same to the last member."""
    shown = []
    for units in (40, 700):
        curator = curator_of(tmp_path / str(units), some_people(units), contribution="[contribution]\nrows = 1")
        shown.append(curator.analyst("ana").preview_model("people", "income", epsilon=1.0).to_dict())
    assert shown[0] == shown[1]
