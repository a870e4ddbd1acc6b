"""What one unit adds is a bounded vector of whole numbers, the same whoever else is there."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.unit.learning.made import some_units, task_with, vector

from dalenius.errors import InputError
from dalenius.learning import gradients as module
from dalenius.learning.centring import Where
from dalenius.learning.features import STEP_BITS, WHOLE
from dalenius.learning.gradients import Gradients, whole_weights
from dalenius.learning.units import Units

UNITS = 100  # of each example: a thousand examples are 10⁵ vectors
EXTREME = np.array([0.0, 5e-324, 1e-300, 1e-9, 1.0, 700.0, 1e9, 1e300, np.inf, np.nan])


def squares(found: np.ndarray) -> int:
    """Σ of squares, exactly."""
    return sum(int(each) ** 2 for each in found.ravel())


@settings(max_examples=examples(1000))
@given(
    st.sampled_from(["logistic", "linear", "poisson", "svm"]),
    st.integers(0, 2**32),
    st.integers(0, 6),
    st.sampled_from([1, 1, 2, 5]),
    st.integers(0, 40),
)
def test_no_unit_adds_more_than_the_clip(model: str, seed: int, width: int, rows: int, bits: int):
    chance = np.random.default_rng(seed)
    task = task_with(width, model, int(chance.integers(2, 5)))
    units = some_units(task, UNITS, rows, seed)
    units.numbers[:UNITS] *= chance.choice([0.0, 1.0, 2.0**-14], units.numbers[:UNITS].shape)
    units.numbers[:] = np.trunc(units.numbers)
    if not task.classes:  # what no encoding gives
        units.aims[:UNITS] = chance.choice(np.concatenate([-EXTREME, EXTREME]), (UNITS, rows))
    weights = chance.normal(size=(task.outputs, task.width)) * 2.0 ** chance.integers(-30, 31)
    if seed % 3 == 0:
        weights[chance.random(weights.shape) < 0.3] = chance.choice(np.concatenate([-EXTREME, EXTREME]))
    grid = STEP_BITS + bits % 21
    clip = max(1, int(2.0 ** (grid - chance.integers(0, 12)))) if rows == 1 else 2 ** min(26, bits)
    found = Gradients(task.loss, grid, clip, 64, rows)
    for place in range(UNITS):
        assert squares(vector(found, weights, units, place)) <= clip**2


def test_nearly_all_of_the_clip_is_used():
    for rows in (1, 4):
        task = task_with(7, "logistic", 5)
        units = some_units(task, 50, rows)
        clip = 2**30 if rows == 1 else 2**26
        found = Gradients(task.loss, 34 if rows == 1 else 30, clip, 50, rows)
        lengths = [squares(vector(found, np.ones((5, 8)), units, place)) ** 0.5 for place in range(50)]
        assert min(lengths) > 0.999 * clip


def test_below_the_clip_it_is_the_gradient_cut_toward_zero():
    for rows in (1, 3):
        task = task_with(4, "logistic", 3)
        units = some_units(task, 40, rows)
        weights = np.random.default_rng(1).normal(size=(3, 5))
        grid, clip = (24, 2**28) if rows == 1 else (20, 2**26)
        found = Gradients(task.loss, grid, clip, 40, rows)
        _check_all_toward_zero(found, task, weights, units, grid)


def _check_all_toward_zero(found: Gradients, task: Any, weights: np.ndarray, units: Units, grid: int) -> None:
    for place in range(40):
        _check_toward_zero(found, task, weights, units, place, grid)


def _check_toward_zero(found: Gradients, task: Any, weights: np.ndarray, units: Units, place: int, grid: int) -> None:
    """Never past the real gradient, and not far from it."""
    numbers = units.numbers[place].astype(float)
    whole, scale = whole_weights(weights)
    residuals = task.loss.residual(whole @ numbers.T * scale, units.aims[place])
    real = residuals @ numbers * 2.0 ** (grid - STEP_BITS)
    if len(numbers) == 1:  # each residual is cut, then multiplied with whole numbers
        cut = np.abs(numbers) + 1e-3
        got = vector(found, weights, units, place)
        assert (np.abs(got) <= np.abs(real) * (1 + 1e-12) + 1e-6).all()
        assert (np.abs(got - real) <= cut).all()
    else:
        got = vector(found, weights, units, place)
        assert (np.abs(got - real) <= 1 + len(numbers) * 2.0 ** (grid - 20) + 1e-3).all()


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("model", ["logistic", "linear", "poisson", "svm"])
def test_a_units_vector_is_the_same_alone_and_in_a_thousand_batches(
    model: str, rows: int, rounds: Callable[[int], int]
):
    task = task_with(12, model, 4)
    count, chance = 300, np.random.default_rng(5)
    units = some_units(task, count, rows)
    weights = chance.normal(size=(task.outputs, task.width)) * 3
    grid, clip = (30, 2**30) if rows == 1 else (24, 2**25)
    found = Gradients(task.loss, grid, clip, 1000, rows)
    alone = np.array([vector(found, weights, units, place) for place in range(count + 1)])
    assert not alone[count].any()  # the empty place
    for _ in range(max(50, rounds(1000))):
        places = chance.integers(0, count + 1, int(chance.integers(1, 700)))
        assert (found.sum(weights, units, places) == alone[places].sum(axis=0)).all()


_THREADS = """
import sys, hashlib, numpy as np
from tests.unit.learning.made import some_units, task_with
from dalenius.learning.gradients import Gradients
task = task_with(63, "logistic", 10)
units = some_units(task, 6000)
weights = np.random.default_rng(1).normal(size=(10, 64))
found = Gradients(task.loss, 30, 2**30, 6000).sum(weights, units, np.arange(6000))
print(hashlib.sha256(found.tobytes()).hexdigest())
"""


@pytest.mark.integration
def test_one_thread_and_two_give_the_same_bits():
    said = set()
    for threads in ("1", "2"):
        shown = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
        command = [sys.executable, "-c", _THREADS]
        said.add(subprocess.run(command, env=shown, capture_output=True, text=True, check=True, timeout=120).stdout)
    assert len(said) == 1 and said != {""}
    assert len(said.pop().strip()) == len(hashlib.sha256().hexdigest())


def test_what_is_not_finite_adds_nothing():
    task = task_with(3, "linear")
    for rows in (1, 2):
        units = some_units(task, 4, rows)
        units.aims[1, 0], units.aims[2, 0], units.aims[3, 0] = np.nan, np.inf, -np.inf
        found = Gradients(task.loss, 20, 2**20, 4, rows)
        assert vector(found, np.zeros((1, 4)), units, 0).any()
        assert not any(vector(found, np.zeros((1, 4)), units, place).any() for place in (1, 2, 3))
        assert np.isfinite(whole_weights(np.full((1, 4), np.nan))[0]).all()


def test_a_centre_is_taken_off_the_rows_that_are_there():
    task = task_with(2, "linear")
    units = some_units(task, 3, capacity=5)
    centre = np.array([1000, -500, 0], np.float32)
    moved = Units(units.numbers.copy(), units.aims)
    moved.numbers[:3] -= centre
    found = Gradients(task.loss, 20, 2**22, 6)
    everyone, weights = np.arange(6), np.ones((1, 3))
    assert (found.sum(weights, units, everyone, centre) == found.sum(weights, moved, everyone)).all()


def test_the_sum_of_features_is_a_gradient_too():
    task = task_with(2, "logistic", 3)
    units = some_units(task, 30)
    found = Gradients(Where(0.5), 20, 2**24, 31).sum(np.zeros((3, 3)), units, np.arange(31))
    assert (found[0] == units.numbers[:30, 0].sum(axis=0) * 2**5).all()
    assert not found[1:].any()


def test_sums_that_would_not_be_exact_are_refused():
    loss = task_with(1).loss
    for grid, clip, slots, rows in ((34, 2**40, 2**13, 1), (10, 5, 5, 1), (30, 2**27, 5, 2), (30, 0, 5, 1)):
        with pytest.raises(InputError, match="exact"):
            Gradients(loss, grid, clip, slots, rows)


# --- planted bugs


def _longest() -> float:
    task = task_with(5, "linear")
    units = some_units(task, 60)
    units.aims[:] *= 1000
    found = Gradients(task.loss, 30, 2**29, 60)
    return max(squares(vector(found, np.zeros((1, 6)), units, place)) for place in range(60)) / 2.0**58


class _Changed:
    """numpy with one function changed."""

    def __init__(self, **changed: Any) -> None:
        self._changed = SimpleNamespace(**changed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._changed, name, None) or getattr(np, name)


def test_a_trainer_that_does_not_clip_is_caught(monkeypatch: pytest.MonkeyPatch):
    assert 0.99 < _longest() <= 1
    monkeypatch.setattr(module, "_NEARLY", 1e9)  # the bound that lengths are compared with, and cut to
    assert _longest() > 1


def test_rounding_to_the_nearest_is_caught(monkeypatch: pytest.MonkeyPatch):
    task = task_with(4, "logistic", 3)
    units = some_units(task, 40)
    weights = np.random.default_rng(1).normal(size=(3, 5))
    found = Gradients(task.loss, 24, 2**28, 40)
    monkeypatch.setattr(module, "np", _Changed(trunc=np.rint))
    with pytest.raises(AssertionError):
        _check_all_toward_zero(found, task, weights, units, 24)


def test_a_float_product_before_cutting_is_caught(monkeypatch: pytest.MonkeyPatch):
    """Scores of real weights depend on the order of their sums, and that on who else is there."""
    task = task_with(63, "linear")
    units = some_units(task, 700)
    weights = np.random.default_rng(1).normal(size=(1, 64)) * 50
    monkeypatch.setattr(module, "whole_weights", lambda each: (each, 1 / WHOLE))
    found = Gradients(task.loss, 34, 2**40, 700)
    alone = np.array([vector(found, weights, units, place) for place in range(700)])
    same = [(found.sum(weights, units, np.arange(n)) == alone[:n].sum(axis=0)).all() for n in (2, 3, 5, 100, 700)]
    assert not all(same)
