"""The sparse vector technique: an audit by exact summation passes ours and catches the variants known to be wrong.

The audit computes the probability of an output sequence as a sum over the threshold's noise, for inputs in
which every value moves by at most Δ = 1, and takes the largest log-ratio. Discrete noise makes this a sum,
not an integral.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import multiprocessing
import pickle
import threading
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from dalenius.errors import InputError
from dalenius.mechanisms import SparseVector
from dalenius.mechanisms.sparse_vector import Stream


@dataclass(frozen=True)
class Variant:
    """Noise scales of a sparse vector algorithm; ``shows_value`` if a hit is answered by the noisy value itself."""

    threshold_scale: float
    value_scale: float  # 0 for no noise on the values
    shows_value: bool = False

    @lru_cache(maxsize=2**14)  # noqa: B019 — variants are few
    def probability(self, values, answers, threshold=0) -> float:
        """P(answers) = Σ_z P(Z = z)·Π_i P(answer_i | z). An answer is False, True or a noisy value."""
        reach = int(45 * self.threshold_scale) + 5
        z = np.arange(-reach, reach + 1)
        chance = np.exp(-np.abs(z) / self.threshold_scale) * math.tanh(0.5 / self.threshold_scale)
        for value, answer in zip(values, answers, strict=True):
            least = threshold + z - value  # noise from here on is a hit
            if self.shows_value and answer is not False:
                chance = chance * self._mass(answer - value) * (answer >= threshold + z)
            else:
                hit = self._tail(least)
                chance = chance * (hit if answer else 1 - hit)
        return float(chance.sum())

    def _tail(self, k):
        """P(X ≥ k)."""
        if self.value_scale == 0:
            return (k <= 0).astype(float)
        upper = np.exp(-np.maximum(k, 1) / self.value_scale) / (1 + math.exp(-1 / self.value_scale))
        lower = 1 - np.exp(-np.maximum(1 - k, 1) / self.value_scale) / (1 + math.exp(-1 / self.value_scale))
        return np.where(k >= 1, upper, lower)

    def _mass(self, k: int) -> float:
        return math.tanh(0.5 / self.value_scale) * math.exp(-abs(k) / self.value_scale)


def loss(variant: Variant, values, others, answers) -> float:
    one, two = variant.probability(values, answers), variant.probability(others, answers)
    if one == 0 or two == 0:
        return 0.0 if one == two else math.inf
    return abs(math.log(one / two))


def outputs(length: int, hits: int):
    """All answers to so many values that end at the last value or at the last hit."""
    for answers in itertools.product([False, True], repeat=length):
        if sum(answers) < hits or (sum(answers) == hits and answers[-1]):
            yield answers


def audit(variant: Variant, hits: int, *, monotonic: bool = False) -> float:
    """The largest loss over values −1…1 and neighbours of up to three values, and over long runs of equal answers."""
    steps = (0, 1) if monotonic else (-1, 0, 1)
    worst = 0.0
    for length in (1, 2, 3):
        for values in itertools.product((-1, 0, 1), repeat=length):
            for change in itertools.product(steps, repeat=length):
                others = tuple(v + c for v, c in zip(values, change, strict=True))
                for answers in outputs(length, hits):
                    worst = max(worst, loss(variant, values, others, answers))
    # the shape of the known counterexamples: many misses that rise while the hits fall
    for misses, shift in itertools.product((10, 40), (-3, 0, 3)):
        many = (False,) * misses + (True,) * hits
        values = (shift,) * len(many)
        for up, down in ((1, 0), (0, 1), (1, 1)) if monotonic else ((1, -1), (-1, 1), (1, 1)):
            others = tuple(shift + (up if not hit else down) for hit in many)
            worst = max(worst, loss(variant, values, others, many))
    return worst


def of(mechanism: SparseVector) -> Variant:
    return Variant(float(mechanism.threshold_noise.scale), float(mechanism.value_noise.scale))


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 5)])
@pytest.mark.parametrize("hits", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_ours_stays_within_epsilon(epsilon, hits, share):
    worst = audit(of(SparseVector(epsilon, hits=hits, threshold_share=share)), hits)
    assert worst <= float(epsilon) + 1e-9
    assert worst > 0.999 * float(epsilon), "the theorem is tight: an audit that stays below sees too little"


@pytest.mark.parametrize("hits", [1, 3])
def test_ours_stays_within_epsilon_for_monotonic_values(hits):
    mechanism = SparseVector(1, hits=hits, monotonic=True)
    assert audit(of(mechanism), hits, monotonic=True) <= 1 + 1e-9
    assert audit(of(mechanism), hits) > 1, "less noise is sound for monotonic values only"


def test_the_scales_are_those_of_the_theorem():
    assert SparseVector(1).threshold_noise.scale == 2
    assert SparseVector(1).value_noise.scale == 4
    several = SparseVector(Fraction(1, 2), sensitivity=3, hits=5)
    assert several.threshold_noise.scale == 12  # 2Δ/ε, whatever c
    assert several.value_noise.scale == 4 * 5 * 3 * 2  # 4cΔ/ε
    assert SparseVector(1, hits=5, monotonic=True).value_noise.scale == 10


# Numbers as in Lyu, Su & Li (2017), Fig. 1; Δ = 1, ε = 1.
BROKEN = {
    "alg. 4, Lee & Clifton 2014: value noise not scaled with c": (Variant(4.0, 4 / 3), 4),
    "alg. 5, Stoddard et al. 2014: no noise on the values": (Variant(2.0, 0.0), 10),
    "alg. 6, Chen et al. 2015: any number of hits": (Variant(2.0, 2.0), 10),
    "both 20% too small, c = 1": (Variant(1.6, 3.2), 1),
    "both 20% too small, c = 2": (Variant(1.6, 6.4), 2),
    "value noise 20% too small, c = 2": (Variant(2.0, 6.4), 2),
    "threshold noise 20% too small, c = 2": (Variant(1.6, 8.0), 2),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_audit_catches_the_wrong_variants(name):
    variant, hits = BROKEN[name]
    assert audit(variant, hits) > 1.05


def test_without_noise_on_the_values_nothing_is_private():
    variant, _ = BROKEN["alg. 5, Stoddard et al. 2014: no noise on the values"]
    assert loss(variant, (0, 1), (1, 0), (False, True)) == math.inf


def test_with_any_number_of_hits_the_loss_grows_without_bound():
    """Lyu et al. on alg. 6: ratio at least e^(mε/2) on 2m values."""
    variant, _ = BROKEN["alg. 6, Chen et al. 2015: any number of hits"]
    for m in (4, 10, 20):
        answers = (False,) * m + (True,) * m
        assert loss(variant, (0,) * (2 * m), (1,) * m + (-1,) * m, answers) >= m / 2


def test_answering_with_the_noisy_value_that_was_compared_is_not_private():
    """Alg. 3, Roth 2011: the value shown says how low the threshold's noise was; the misses before it then tell all."""
    variant = Variant(2.0, 2.0, shows_value=True)  # threshold Lap(2/ε), values Lap(2c/ε) with c = 1
    for misses in (10, 20, 40):
        answers = (False,) * misses + (0,)
        found = loss(variant, (0,) * misses + (1,), (1,) * misses + (0,), answers)
        assert found >= (misses - 1) / 2


@pytest.mark.parametrize("hits", [1, 4, 8])
def test_noise_that_does_not_grow_with_the_hits_loses_as_much_as_the_literature_says(hits):
    """Lyu et al. on alg. 4: (1 + 6c)/4·ε and no less."""
    assert audit(Variant(4.0, 4 / 3), hits) == pytest.approx((1 + 6 * hits) / 4, rel=1e-3)


def test_a_stream_stops_after_its_hits():
    stream = SparseVector(100, hits=2).start(threshold=50)
    assert [stream.above(value) for value in (0, 100, 0, 100)] == [False, True, False, True]
    assert stream.hits_left == 0
    with pytest.raises(InputError, match="all its hits"):
        stream.above(0)


def test_a_batch_ends_at_the_last_hit():
    assert SparseVector(100, hits=1).release([0, 0, 100, 0], threshold=50).value == (False, False, True)
    assert SparseVector(100, hits=2).release([0, 0, 100, 0], threshold=50).value == (False, False, True, False)


def test_a_hit_is_at_or_above_the_threshold():
    sharp = SparseVector(10**6)
    assert sharp.release([5], threshold=5).value == (True,)
    assert sharp.release([4], threshold=5).value == (False,)


def test_a_stream_cannot_be_copied():
    stream = SparseVector(1).start(threshold=0)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InputError, match="cannot be copied"):
            attempt(stream)


def test_a_stream_does_not_show_its_threshold():
    stream = SparseVector(1).start(threshold=123456)
    assert "1234" not in repr(stream)


def _in_child(stream: Stream, queue) -> None:
    try:
        queue.put(stream.above(0))
    except InputError:
        queue.put("refused")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_refused():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(SparseVector(1).start(0), queue))
    child.start()
    child.join(30)
    assert not queue.empty() and queue.get() == "refused"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_is_inside_is_refused_at_once():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    stream = SparseVector(1).start(0)
    with stream._lock:  # held for ever in the child, where the thread that would release it does not exist
        child = context.Process(target=_in_child, args=(stream, queue))
        child.start()
        child.join(20)
    waits = child.is_alive()
    if waits:
        child.kill()
    assert not waits
    assert not queue.empty() and queue.get() == "refused"


class Slow:
    """No noise, but every draw lets the other threads go ahead."""

    def draw(self) -> int:
        time.sleep(0.002)
        return 0


@pytest.mark.parametrize("hits", [1, 3])
def test_threads_get_no_more_hits_than_were_paid_for(hits):
    stream = SparseVector(1, hits=hits).start(threshold=0)
    stream._noisy_threshold, stream._value_noise = 0, Slow()  # type: ignore[assignment]
    together, answers = threading.Barrier(8, timeout=60), []

    def ask() -> None:
        together.wait()
        with contextlib.suppress(InputError):
            for _ in range(hits + 1):
                answers.append(stream.above(1))  # noqa: PERF401 — kept up to where it is refused

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * hits
    assert stream.hits_left == 0
