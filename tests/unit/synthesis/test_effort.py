"""Time and memory are reckoned from public sizes: the same request is the same work, and less time is less work."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.synthesis.made import curator_of, some_rows

from dalenius.curator import Curator
from dalenius.errors import InputError
from dalenius.synthesis import effort
from dalenius.synthesis.domain import sized
from dalenius.synthesis.effort import EFFORTS, FULL, LEAST_POOL, Effort, Sizes, memory, numbers, seconds
from dalenius.synthesis.methods import METHODS, chosen
from dalenius.synthesis.request import SynthesisAsk
from dalenius.synthesis.rows import Limit, UnitMeasurer
from dalenius.synthesis.stored import _WIDER, _model_json, _numbers, _packs

WIDE, LARGE = Sizes(1_000_000, (33,) * 30), Sizes(10_000_000, (33,) * 100)


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(5):
        yield


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator_of(tmp_path_factory.mktemp("people"), some_rows())


@pytest.mark.parametrize("sizes", [WIDE, LARGE, Sizes(1000, (2, 2)), Sizes(100_000, (5, 20_000, 40))])
@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_less_effort_takes_less_time_and_no_more_memory(method: Any, sizes: Sizes):
    for more, less in pairwise(EFFORTS):
        assert seconds(method.count, sizes, less) <= seconds(method.count, sizes, more)
        assert memory(method.count, sizes, less) <= memory(method.count, sizes, more)
    if method.name == "adaptive" and sizes in {WIDE, LARGE}:
        assert seconds(method.count, sizes, EFFORTS[-1]) < 0.5 * seconds(method.count, sizes, FULL)


def test_what_fits_is_the_most_that_fits():
    adaptive, tree = METHODS["adaptive"].count, METHODS["tree"].count
    assert chosen("auto", WIDE, None) == chosen("auto", WIDE, 300) == (METHODS["adaptive"], FULL)
    for each in EFFORTS:
        found = chosen("adaptive", WIDE, seconds(adaptive, WIDE, each))[1]
        assert EFFORTS.index(found) <= EFFORTS.index(each)
        assert seconds(adaptive, WIDE, found) <= seconds(adaptive, WIDE, each)
    least = seconds(adaptive, WIDE, EFFORTS[-1])
    assert chosen("auto", WIDE, least - 0.01) == (METHODS["tree"], FULL)
    assert seconds(tree, LARGE) < 300 < seconds(adaptive, LARGE, EFFORTS[-1])
    assert chosen("auto", LARGE, 300) == (METHODS["tree"], FULL)
    with pytest.raises(InputError, match="no synthetic table"):
        chosen("adaptive", WIDE, least - 0.01)
    with pytest.raises(InputError, match="of work at least"):
        chosen("auto", WIDE, seconds(tree, WIDE) - 0.01)


@pytest.mark.parametrize(("method", "rows", "columns"), [("tree", 200_000, 12), ("adaptive", 20_000, 10)])
def test_the_memory_that_is_told_is_enough_and_not_far_too_much(method: str, rows: int, columns: int):
    """Of what numpy takes; the program itself and the engine are left out."""
    sizes = Sizes(rows, (33,) * columns)
    codes = np.random.default_rng(0).integers(0, 33, (columns, rows)).astype(np.uint8)
    held = UnitMeasurer(sized(sizes.codes), codes, np.full(rows, 4096), Limit(1), Fraction(1, 20))
    tracemalloc.start()
    try:
        model = METHODS[method].fit(held, None)
        fitted = tracemalloc.get_traced_memory()[1]
        model.sample(rows, np.random.default_rng(0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    before = codes.nbytes + 16 * rows
    told = memory(METHODS[method].count, sizes) - effort._BASE
    assert fitted + before <= told and peak <= told <= 8 * (peak + before)


@pytest.mark.parametrize("method", METHODS)
def test_columns_with_many_values_take_the_memory_and_the_room_that_are_told(method: str):
    """Tables with all values of two columns are held whole, and stored so by some methods."""
    sizes, rows = Sizes(20_000, (900, 800, 700, 3)), 20_000
    chance = np.random.default_rng(0)
    one = chance.integers(0, 700, rows)
    codes = np.stack([one, np.maximum(one - chance.integers(0, 9, rows), 0), chance.integers(0, 700, rows), one % 3])
    held = UnitMeasurer(sized(sizes.codes), codes.astype(np.uint16), np.full(rows, 4096), Limit(1), Fraction(20))
    tracemalloc.start()
    try:
        tree = _model_json(METHODS[method].fit(held, None))
        len(json.dumps(tree).encode())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= memory(METHODS[method].count, sizes) - effort._BASE
    held_numbers = sum(_numbers(each) * (_WIDER if each["type"] == "<f4" else 1) for each in _packs(tree))
    assert held_numbers <= numbers(METHODS[method].count, sizes)


@pytest.mark.parametrize("method", METHODS)
def test_a_model_too_large_to_be_read_again_is_refused_before_it_is_paid(
    people: Curator, method: str, monkeypatch: pytest.MonkeyPatch
):
    ana = people.analyst("ana")
    before = ana.budget()["people"]
    monkeypatch.setattr("dalenius.synthesis.kind.MOST_NUMBERS", 500)
    for act in (ana.preview_synthetic, ana.synthesize):
        with pytest.raises(InputError, match="too large a model"):
            act("people", epsilon=1.0, method=method)
    assert ana.budget()["people"] == before


def test_a_pool_is_as_large_as_rows_ask_and_effort_allows():
    assert Effort(pool=100_000).pool_size(10) == LEAST_POOL
    assert Effort(pool=100_000).pool_size(10_000) == 40_000
    assert Effort(pool=100_000).pool_size(10**9) == 100_000


def planned(curator: Curator, **asked: Any) -> Any:
    from dalenius.synthesis.kind import leaving_of

    return leaving_of(curator.analyst("ana")._asker, SynthesisAsk("people", 1.0, **asked)).plan


def test_the_work_of_a_request_is_no_matter_of_the_clock(people: Curator, monkeypatch: pytest.MonkeyPatch):
    ample = planned(people, time=1e6)
    assert ample.effort == FULL and ample.key("1") == planned(people).key("1")
    short = planned(people, time=ample.seconds - 0.01)
    assert short.effort != FULL and short.key("1") != ample.key("1")
    monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic: 2 * now())
    monkeypatch.setattr(time, "process_time", lambda now=time.process_time: 2 * now())
    assert planned(people, time=ample.seconds - 0.01).key("1") == short.key("1")


def test_ample_time_is_the_same_request_and_less_is_another(people: Curator):
    ana = people.analyst("ana")
    full = ana.synthesize("people", epsilon=1.0, columns=["sex", "age", "bmi"])
    ample = ana.synthesize("people", epsilon=1.0, columns=["sex", "age", "bmi"], time=10_000)
    assert (full.free, ample.free) == (False, True) and ample.stored.content() == full.stored.content()
    expected = ana.preview_synthetic("people", epsilon=1.0, columns=["sex", "age", "bmi"])
    asked: dict[str, Any] = {"epsilon": 1.0, "columns": ["sex", "age", "bmi"], "time": expected.work * 0.7}
    assert not ana.preview_synthetic("people", **asked).known
    less, again = (ana.synthesize("people", **asked) for _ in range(2))
    assert (less.free, again.free) == (False, True) and again.stored.content() == less.stored.content()
    assert ana.preview_synthetic("people", **asked).work < expected.work


def test_too_little_time_costs_nothing(people: Curator):
    ana = people.analyst("ana")
    before = ana.budget()["people"]
    for asked in ({"method": "tree", "time": 0.001}, {"time": 0.0}, {"time": float("inf")}, {"time": "1"}):
        with pytest.raises(InputError):
            ana.synthesize("people", epsilon=1.0, **asked)
    assert ana.budget()["people"] == before


def test_a_preview_tells_time_and_memory(people: Curator, tmp_path: Path):
    found = people.analyst("ana").preview_synthetic("people", epsilon=1.0)
    less = people.analyst("ana").preview_synthetic("people", epsilon=1.0, method="histogram")
    assert 0 < less.work < found.work < found.seconds and 2**28 < less.memory < found.memory < 2**32
    assert type(found).from_dict(found.to_dict()) == found
