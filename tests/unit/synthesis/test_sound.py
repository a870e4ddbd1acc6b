"""A model from outside holds together, or is refused: it never hangs, fills the memory, or ends in another error."""

from __future__ import annotations

import copy
import io
import random
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tests.seeded_noise import seeded_noise
from tests.unit.synthesis.made import curator_of, some_rows

from dalenius.app.views.synthetic import print_synthetic
from dalenius.errors import InputError
from dalenius.synthesis.grid import Grid
from dalenius.synthesis.modelled import Modelled
from dalenius.synthesis.position_classes import Classes
from dalenius.synthesis.release import SyntheticTable
from dalenius.synthesis.stored import StoredModel, packed
from dalenius.tables.policy import Kind

Tree = dict[str, Any]
FORMS = ("tree", "adaptive", "privbayes")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tree]:
    with seeded_noise(5):
        ana = curator_of(tmp_path_factory.mktemp("sound"), some_rows(80)).analyst("ana")
        return {form: ana.synthesize("people", epsilon=9.0, method=form).to_dict() for form in FORMS}


def bounded(tree: Tree) -> Tree:
    """The first column that has bounds."""
    return next(each for each in tree["columns"] if "bounds" in each)


def of_keys(tree: Tree) -> Tree:
    return next(each for each in tree["columns"] if each.get("keys"))


def column(tree: Tree, **fields: Any) -> None:
    bounded(tree).update(fields)


def keys(tree: Tree, **fields: Any) -> None:
    of_keys(tree).update(fields)


def units(tree: Tree, **fields: Any) -> None:
    tree["units"].update(fields)


def model(tree: Tree, **fields: Any) -> None:
    tree["model"].update(fields)


def step(tree: Tree, **fields: Any) -> None:
    tree["model"]["steps"][-1].update(fields)


def nothing(tree: Tree) -> None:
    del tree["model"]


def twice(tree: Tree) -> None:
    tree["model"]["steps"].append(tree["model"]["steps"][0])


def weights(tree: Tree, value: float) -> None:
    tree["model"]["weights"] = packed(np.full(tree["model"]["weights"]["shape"], value))


def group(tree: Tree) -> None:
    tree["model"]["groups"][0] = packed(np.full(tree["model"]["groups"][0]["shape"], 65535), "<u2")


EMPTY = packed(np.zeros(0))["data"]
WRONG: list[tuple[str, Callable[[Tree], object]]] = [
    # worked out, these have millions of digits
    ("tree", partial(column, type="number", bounds=["0", "1e99999999"])),
    ("tree", partial(column, type="number", bounds=["0", "1"], step="1e-99999999")),
    ("tree", partial(column, type="number", bounds=["0", "1"], step="1/0")),
    ("tree", partial(column, type="number", bounds=["0", "1"], step="-1/10")),
    ("tree", partial(column, type="integer", bounds=[0, 2**80], classes=[[0, 1]])),
    ("tree", partial(column, type="integer", bounds=[5, 1])),
    ("tree", partial(column, type="integer", bounds=[0.5, True])),
    ("tree", partial(column, classes=None)),
    ("tree", partial(column, classes=[])),
    ("tree", partial(column, classes=[[5, 1]])),
    ("tree", partial(column, classes=[[0, 2**70]])),
    ("tree", partial(column, classes=[[-3, 5]])),
    ("tree", partial(column, name=7)),
    ("tree", partial(column, type="nonsense")),
    ("tree", partial(keys, keys=None)),
    ("tree", partial(keys, keys=[1, None, {}])),
    ("tree", partial(keys, keys=["m"])),  # there are more codes than that
    ("tree", partial(keys, keys=["m", "m"])),
    ("tree", partial(keys, absent=2)),
    # of such units as many as anybody likes would not make one row
    ("tree", partial(units, sizes=[[-1, -1]], shares=[1.0])),
    ("tree", partial(units, sizes=[[-9, -5]], shares=[1.0])),
    ("tree", partial(units, sizes=[[0, 10**30]], shares=[1.0])),
    ("tree", partial(units, sizes=[[0, 0]], shares=[0.0])),
    ("tree", partial(units, sizes=[[0, 0], [1, 1]], shares=[2.0, -1.0])),
    ("tree", partial(units, count=float("nan"))),
    ("tree", partial(units, count=-5)),
    ("tree", partial(units, alike=[])),
    ("tree", partial(model, rows=float("nan"))),
    ("tree", partial(model, rows=float("inf"))),
    ("tree", partial(model, rows=1e300)),
    ("tree", partial(model, rows="many")),
    ("tree", partial(model, steps=[])),
    ("tree", partial(model, form="other")),
    ("tree", partial(step, parents=[99])),
    ("tree", partial(step, column=99)),
    ("tree", partial(step, parents=[-1])),
    ("tree", partial(step, table={"shape": [0, 2**33], "type": "<f4", "data": EMPTY})),
    ("tree", partial(step, table={"shape": [0, 2**62], "type": "<f4", "data": EMPTY})),
    ("tree", partial(step, table={"shape": [2**13, 2**13, 2], "type": "<f4", "data": EMPTY})),
    ("tree", partial(step, table=packed(np.full((2, 2), np.nan)))),
    ("tree", nothing),
    ("tree", twice),
    ("adaptive", partial(weights, value=float("nan"))),
    ("adaptive", partial(weights, value=-1.0)),
    ("adaptive", partial(weights, value=0.0)),
    ("adaptive", partial(model, weights=packed(np.ones(3)))),
    ("adaptive", partial(model, columns=packed(np.full((9, 100), 65535), "<u2"), weights=packed(np.ones(100)))),
    ("adaptive", partial(model, columns=packed(np.zeros((9, 0)), "<u2"), weights=packed(np.zeros(0)))),
    ("adaptive", partial(model, views=[{"columns": [99], "groups": [packed(np.zeros(3), "<u2")]}])),
    ("adaptive", partial(model, views=[{"columns": [0], "groups": [packed(np.zeros(1), "<u2")]}])),
    ("privbayes", partial(model, shares=[])),
    ("privbayes", group),
]


@pytest.mark.parametrize(("form", "change"), WRONG)
def test_what_does_not_hold_together_is_refused_at_once(
    models: dict[str, Tree], form: str, change: Callable[[Tree], object]
):
    found = copy.deepcopy(models[form])
    change(found["model"])
    tracemalloc.start()
    with pytest.raises(InputError):
        SyntheticTable.from_dict(found)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    7,
    2**40,
    1.5,
    -0.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "1e9999999",
    [],
    [[]],
    {},
    [0, 0],
)


def places(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every part of a tree stands."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, each in inside:
        yield (*above, name)
        yield from places(each, (*above, name))


@pytest.mark.parametrize("form", FORMS)
def test_with_any_one_part_of_it_replaced_it_is_refused_or_gives_rows(models: dict[str, Tree], form: str):
    chance, refused = random.Random(form), 0
    every = list(places(models[form]["model"]))
    for _ in range(300):
        found = copy.deepcopy(models[form])
        *above, last = chance.choice(every)
        inside = found["model"]
        for name in above:
            inside = inside[name]
        inside[last] = chance.choice(ODD)
        try:
            table = SyntheticTable.from_dict(found)
            assert table.to_arrow(20, seed=1).num_rows == 20
            assert table.stored.rows >= 0
        except InputError:
            refused += 1
    assert refused > 150


FACTS: tuple[Any, ...] = (
    {"rules": 5},
    {"rules": [5]},
    {"rules": ["age > 1"] * 101},
    {"follows": ["sex"]},
    {"follows": {"sex": "smoker", "smoker": "sex"}},
    {"follows": {"sex": {"column": "smoker"}}},
    {"follows": {"sex": {"column": "smoker", "values": {"maybe": "m"}}}},
    {"follows": {"sex": {"column": "smoker", "values": {"true": "x"}}}},
    {"follows": {"sex": {"column": "smoker", "values": 5}}},
    {"totals": {"sex": 5}},
    {"totals": {"sex": {"m": "many"}}},
    {"totals": {"sex": {"m": float("inf")}}},
    {"totals": {"sex": {"m": -1}}},
    {"totals": {"sex": {"m": 10**30}}},
    {"totals": {"sex": {"m": 0}}},
)


@pytest.mark.parametrize("facts", FACTS)
def test_what_nobody_can_know_of_a_model_is_refused(models: dict[str, Tree], facts: Any):
    with pytest.raises(InputError):
        SyntheticTable.from_dict(models["tree"] | {"facts": facts})


def test_what_is_known_comes_over(models: dict[str, Tree]):
    follows = {"sex": {"column": "smoker", "values": {"true": "m", "false": "f"}}}
    facts = {"rules": ["age >= 18"], "follows": follows, "totals": {"wave": {"1": 5, "2": 7}}}
    found = SyntheticTable.from_dict(models["tree"] | {"facts": facts})
    assert found.to_dict()["facts"] == facts and found.to_arrow(30, seed=1).num_rows == 30


@pytest.mark.parametrize(
    "bounds",
    [
        (Kind.INTEGER, -(2**63), 2**63 - 1, None),
        (Kind.NUMBER, Fraction(-(2**53), 1000), Fraction(2**53, 1000), Fraction(1, 1000)),
        (Kind.DATE, date(1, 1, 1), date(9999, 12, 31), None),
        (
            Kind.DATETIME,
            datetime.fromisoformat("0001-01-01T00:00:00"),
            datetime.fromisoformat("9999-12-31T23:59:59"),
            None,
        ),
    ],
)
def test_whatever_a_policy_may_declare_holds_together(models: dict[str, Tree], bounds: tuple[Any, ...]):
    kind, low, high, step = bounds
    grid = Grid(kind, low, high, step)
    declared = Modelled("x", kind, absent=True, ordered=True, grid=grid, classes=Classes.equal(grid.size, 32))
    tree = models["tree"]["model"] | {"columns": [declared.to_json()], "units": None, "measured": []}
    one = {"column": 0, "parents": [], "table": packed(np.ones(33))}
    found = StoredModel.of_json(tree | {"model": {"form": "steps", "rows": 9.0, "steps": [one]}})
    assert found.to_json()["columns"] == tree["columns"] and len(found.draw(330, seed=1)["x"]) == 330


def test_names_from_outside_are_shown_and_not_obeyed(models: dict[str, Tree]):
    found = copy.deepcopy(models["tree"])
    found["model"] |= {"method": "\x1b]0;owned\x07", "table": "\x1b[2J"}
    written = io.StringIO()
    print_synthetic(Console(file=written, width=200), SyntheticTable.from_dict(found))
    assert "owned" in written.getvalue() and "\x1b" not in written.getvalue()
