"""Features and targets come from declarations alone; what cannot be learned is refused with what to do."""

from __future__ import annotations

import json
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.learning.made import some_units, task_with

from dalenius.errors import InputError, NotAllowedError, UnknownColumnError
from dalenius.learning import rules, sgd
from dalenius.learning.features import WHOLE, Feature
from dalenius.learning.fitted import Model, encode_features
from dalenius.learning.models import MODELS
from dalenius.learning.models.exponential import exponential
from dalenius.learning.rules import Population, Price
from dalenius.learning.task import Task, task_of
from dalenius.learning.units import encode, in_room
from dalenius.learning.weights import Weights
from dalenius.tables.policy import Bounds, Column, Kind

COLUMNS = {
    "id": Column("id", Kind.INTEGER),
    "age": Column("age", Kind.INTEGER, Bounds(0, 100), Fraction(1), None, 0),
    "height": Column("height", Kind.NUMBER, Bounds(Fraction(1), Fraction(2)), Fraction(1, 100)),
    "weight": Column("weight", Kind.NUMBER),
    "city": Column("city", Kind.CATEGORY, keys=("bonn", "york")),
    "note": Column("note", Kind.TEXT),
    "smokes": Column("smokes", Kind.BOOLEAN, default=False),
    "born": Column("born", Kind.DATE, Bounds(date(1970, 1, 1), date(1970, 1, 11)), default=date(1970, 1, 1)),
    "same": Column("same", Kind.CATEGORY, keys=("one",)),
    "visits": Column("visits", Kind.INTEGER, Bounds(0, 40), Fraction(1), None, 0),
}


def test_all_columns_that_can_be_features_are_and_others_are_told():
    task, left = task_of(COLUMNS, "smokes", "logistic", hidden={"id"})
    assert [each.name for each in task.features] == ["age", "height", "city", "born", "same", "visits"]
    assert left == {"weight": "declare its bounds", "note": "declare its keys"}
    assert task.parts == (
        "age", "height", "height is absent", "city = bonn", "city = york", "city is absent", "born", "same = one",
        "same is absent", "visits", "intercept",
    )  # fmt: skip
    assert task.width == len(task.parts)
    assert Task.of_json(json.loads(json.dumps(task.to_json()))) == task


@pytest.mark.parametrize(
    ("target", "model", "features", "error", "fix"),
    [
        ("age", "forest", (), InputError, "logistic"),
        ("smokes", "logistic", ("age", "smokes"), InputError, "Leave it out"),
        ("smokes", "logistic", ("weight",), InputError, "declare its bounds"),
        ("smokes", "logistic", ("note",), InputError, "declare its keys"),
        ("smokes", "logistic", ("age", "age"), InputError, "once"),
        ("same", "logistic", (), InputError, "other keys"),
        ("age", "svm", (), InputError, "declare its keys"),
        ("weight", "linear", (), InputError, "bounds"),
        ("city", "linear", (), InputError, "logistic"),
        ("height", "poisson", (), InputError, "linear"),
        ("smoke", "logistic", (), UnknownColumnError, "'smokes'"),
        ("id", "linear", (), NotAllowedError, "Leave it out"),
        ("age", "linear", ("id",), NotAllowedError, "Leave it out"),
    ],
)
def test_what_cannot_be_learned_is_refused_with_what_to_do(
    target: str, model: str, features: tuple[str, ...], error: type[Exception], fix: str
):
    with pytest.raises(error) as found:
        task_of(COLUMNS, target, model, features=features, hidden={"id"})
    assert fix in str(found.value) and "No budget was spent." in str(found.value)


def test_a_table_without_features_is_refused():
    with pytest.raises(InputError, match="declare keys or bounds"):
        task_of({"y": COLUMNS["smokes"], "note": COLUMNS["note"]}, "y", "logistic")


def test_a_batch_larger_than_the_count_and_an_epsilon_too_small_are_refused():
    task = task_with(2)
    with pytest.raises(InputError, match="smaller batch"):
        rules.plan(task, Population(100.0, 120), Price(0.1, (Fraction(3),)), batch=101)
    with pytest.raises(InputError, match="fewer steps"):
        rules.plan(task, Population(100.0, 120), Price(1e-100, (Fraction(3),)))


def test_values_become_numbers_by_their_declaration():
    task, _ = task_of(COLUMNS, "visits", "poisson", features=("age", "height", "city", "smokes", "born"))
    rows = {
        "age": [0, 50, 100, 300, None],
        "height": [1.0, 1.5, 9.0, float("nan"), None],
        "city": ["york", "bonn", "rome", None, "bonn"],
        "smokes": [True, False, True, False, True],
        "born": [date(1970, 1, 1), date(1970, 1, 6), date(1970, 1, 11), date(1970, 1, 1), date(1960, 1, 1)],
    }
    found = encode_features(task, rows) / WHOLE
    assert task.parts == ("age", "height", "height is absent", "city = bonn", "city = york", "city is absent",
                          "smokes", "born", "intercept")  # fmt: skip
    assert found.tolist() == [
        [-1, -1, 0, 0, 1, 0, 1, -1, 1],
        [0, 0, 0, 1, 0, 0, -1, 0, 1],
        [1, 1, 0, 0, 0, 1, 1, 1, 1],
        [1, 0, 1, 0, 0, 1, -1, -1, 1],
        [0, 0, 1, 1, 0, 0, 1, -1, 1],
    ]


def _values(task: Task, count: int, **changed: Any) -> Any:
    found = {each.name: (np.full(count, 0.5), np.zeros(count, bool)) for each in (*task.features, task.target)}
    return found | changed


def test_rows_stand_with_their_units_and_those_past_the_cap_are_left_out():
    task = task_with(1, "linear")
    values = _values(task, 6, x0=(np.arange(6) / 5, np.zeros(6, bool)))
    units = encode(task, values, np.array([0, 1, 1, 5, 6]), rows=2)
    assert (units.numbers[..., -1] > 0).tolist() == [[True, False], [False, False], [True, True], [True, False]]
    assert np.rint((units.numbers[2, :, 0] / WHOLE + 1) * 2.5).tolist() == [1, 2]
    room = in_room([units, units], task, capacity=6, rows=2)
    assert len(room) == 7 and not room.numbers[6].any() and repr(room) == "Units(…)"
    assert (room.numbers[4:6] == units.numbers[:2]).all()


def test_a_row_without_a_target_adds_nothing():
    task = task_with(1, classes=3)
    values = _values(task, 3, y=(np.array([2.0, 7.0, 1.0]), np.array([False, False, True])))
    units = encode(task, values)
    assert units.numbers.any(axis=(1, 2)).tolist() == [True, False, False]
    assert units.aims[0, 0] == 2


@pytest.mark.parametrize("model", ["linear", "poisson"])
def test_what_is_predicted_follows_from_the_coefficients(model: str):
    """A linear model's number is intercept + Σ coefficient · value, a Poisson model's the exponential of that."""
    task, _ = task_of(COLUMNS, "visits", model, features=("age", "smokes"))
    assert task.target.scale not in {0.0, 1.0}
    found = Model(task, Weights(np.array([[0.05, 0.02, 0.3]] if model == "linear" else [[0.2, 0.1, -1.0]])))
    names = list(found.feature_names_)
    value = found.intercept_[0] + 40 * found.coef_[0, names.index("age")] + found.coef_[0, names.index("smokes")]
    predicted = float(found.predict([{"age": 40, "smokes": True}])[0])
    assert predicted == pytest.approx(value if model == "linear" else np.exp(value), rel=1e-4)
    assert 0 < predicted < task.target.scale


def test_coefficients_are_in_the_units_of_the_table():
    task, _ = task_of(COLUMNS, "visits", "linear", features=("age", "city", "smokes"))
    chance = np.random.default_rng(0)
    model = Model(task, Weights(chance.normal(size=(1, task.width)) * 0.1))
    rows = [{"age": 30, "city": "bonn", "smokes": True}, {"age": 31, "city": "bonn", "smokes": True}]
    scores = model.decision_function(rows)[:, 0]
    assert abs(scores[1] - scores[0] - model.coef_[0, 0]) < 1e-4
    names = list(model.feature_names_)
    by_hand = (
        model.intercept_[0]
        + 30 * model.coef_[0, 0]
        + model.coef_[0, names.index("city = bonn")]
        + model.coef_[0, names.index("smokes")]
    )
    assert abs(scores[0] - by_hand) < 1e-4
    again = Model.of_json(json.loads(json.dumps(model.to_json())))
    assert (again.predict(rows) == model.predict(rows)).all()


@pytest.mark.parametrize("form", ["dict", "list", "arrow", "arrays"])
def test_rows_may_come_as_people_have_them(form: str):
    import pyarrow as pa

    task, _ = task_of(COLUMNS, "smokes", "logistic", features=("age", "city"))
    columns = {"age": [1, 99], "city": ["bonn", None]}
    given: Any = {
        "dict": columns,
        "list": [{"age": 1, "city": "bonn"}, {"age": 99}],
        "arrow": pa.table(columns),
        "arrays": {name: np.array(each, object) for name, each in columns.items()},
    }[form]
    model = Model(task, Weights(np.array([[5.0, 0.0, 0.0, 0.0, 0.0]])))
    assert model.predict(given).tolist() == [False, True]
    chances = model.predict_proba(given)
    assert chances.shape == (2, 2) and np.allclose(chances.sum(axis=1), 1)
    assert model.classes_ == (False, True)


def test_rows_that_cannot_be_read_are_refused():
    task, _ = task_of(COLUMNS, "smokes", "logistic", features=("age",))
    model = Model(task, Weights(np.zeros((1, 2))))
    for rows in (7, "age", [3], {"height": [1]}):
        with pytest.raises(InputError):
            model.predict(rows)
    two, _ = task_of(COLUMNS, "smokes", "svm", features=("age", "visits"))
    with pytest.raises(InputError, match="differ in length"):
        Model(two, Weights(np.zeros((1, 3)))).predict({"age": [1], "visits": [1, 2]})
    with pytest.raises(InputError, match="tells no chances"):
        Model(two, Weights(np.zeros((1, 3)))).predict_proba({"age": [1], "visits": [1]})


def test_our_exponential_is_the_exponential():
    x = np.concatenate([np.linspace(-700, 700, 100_001), np.linspace(-1, 1, 10_001), [0.0, 1e-300, -1e-300]])
    assert np.abs(exponential(x) / np.exp(x) - 1).max() < 1e-14
    assert exponential(np.array([-np.inf, -1e300]))[0] < 1e-300
    assert np.isnan(exponential(np.array([np.nan, 1.0]))).tolist() == [True, False]


@pytest.mark.parametrize("name", list(MODELS))
def test_a_residual_is_the_derivative_of_the_loss(name: str):
    loss, chance = MODELS[name], np.random.default_rng(2)
    for classes in (2, 4) if loss.classifies else (0,):
        outputs = loss.outputs(classes)
        scores = chance.normal(size=(outputs, 500)) * 2
        aims = chance.integers(0, classes, 500).astype(float) if classes else chance.random(500)
        residual = loss.residual(scores, aims)
        assert (np.sqrt((residual**2).sum(axis=0)) <= loss.lipschitz(outputs) + 1e-12).all()
        for at in range(outputs):
            step = np.zeros_like(scores)
            step[at] = 1e-5
            slope = (loss.loss(scores + step, aims) - loss.loss(scores - step, aims)) / 2e-5
            assert np.abs(slope - residual[at]).max() < 1e-5
            bend = (loss.residual(scores + step, aims) - loss.residual(scores - step, aims)) / 2e-5
            assert np.sqrt((bend**2).sum(axis=0)).max() <= loss.smoothness + 1e-4


def test_the_plan_follows_from_public_facts_and_holds_its_price():
    from dalenius.ledger.budgets import Budget, covers

    budget = Budget(3.0, 1e-6)
    for people in (50.0, 5_000.0, 500_000.0):
        for epsilon in (0.1, 1.0, 3.0):
            price = Price(budget.filter().price(epsilon).rho, budget.sampling_orders(epsilon))
            recipe = rules.plan(task_with(5, classes=3), Population.counted(people, 10.0), price)
            event = recipe.event()
            assert event.squared_multiplier >= 1 and event.variance >= 2**48
            assert event.delta < 2e-15 and recipe.slots <= recipe.capacity
            whole = budget.filter().price(epsilon, float(event.delta))
            assert covers(whole, event, budget.sampling_orders(epsilon))


@pytest.mark.parametrize("model", list(MODELS))
def test_every_model_keeps_most_of_what_can_be_learned(model: str):
    """Of what training without noise gains over knowing nothing; rules alone, ε = 1, 4,000 people."""
    from scipy.optimize import minimize

    from dalenius.ledger.budgets import Budget

    task, chance = task_with(5, model, 3), np.random.default_rng(3)
    units = some_units(task, 4000, capacity=4066)
    signal = units.numbers[:4000, 0, :5] @ chance.normal(size=5) / WHOLE + chance.normal(size=4000) / 2
    aims = np.digitize(signal, [-0.5, 0.5]) if task.classes else np.clip(0.4 + signal / 8, 0, 1)
    units.aims[:4000, 0] = aims
    budget = Budget(1.0, 1e-5)
    price = Price(budget.filter().price(1.0).rho, budget.sampling_orders(1.0))
    recipe = rules.plan(task, Population.counted(4000.0, 5.0), price)
    numbers = units.numbers[:4000, 0].T.astype(float) / WHOLE

    def loss(weights: np.ndarray) -> float:
        return float(task.loss.loss(weights.reshape(recipe.shape) @ numbers, units.aims[:4000, 0]).mean())

    def of_intercepts(each: np.ndarray) -> float:
        return loss(np.outer(each, np.eye(6)[5]))

    nothing = minimize(of_intercepts, np.zeros(task.outputs), method="BFGS").fun
    best = minimize(loss, np.zeros(recipe.dimension), method="BFGS").fun
    with seeded_noise(1):
        found = loss(sgd.train(recipe, recipe.event(), units).values)
    assert best <= found
    assert (nothing - found) / (nothing - best) > 0.8


def test_numbers_that_are_equal_everywhere_are_all_alike():
    feature = Feature("x", Kind.NUMBER, False, None, 3.0, 3.0)
    into = np.empty((2, 1), np.float32)
    feature.encode(np.array([3.0, 3.0]), np.zeros(2, bool), into)
    assert into[0, 0] == into[1, 0]
