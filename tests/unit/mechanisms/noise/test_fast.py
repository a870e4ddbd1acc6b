"""The float path: inside its proved bound, and in agreement with exact arithmetic bit for bit."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms import noise
from dalenius.mechanisms.noise import _draws, _exact, _fast, bits, selection

SCALES = [Fraction(1, 3), Fraction(7, 5), 0.1, 10, 16, 17, 1000, 12345.678, 10**7, 2**52, 1e-300]
WIDE = [2**52 + 1, 2**60, 2**64 + Fraction(1, 3), 1e30, 1e300]


class Replay:
    """The same words every time: a generator that everybody can predict."""

    def __init__(self, start: int = 7) -> None:
        self.random = np.random.Generator(np.random.PCG64(start))

    def words(self, count: int) -> np.ndarray:
        return self.random.integers(0, 2**64, count, dtype=np.uint64)


class Constant:
    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, count: int) -> np.ndarray:
        return np.full(count, self.word, np.uint64)


def both_ways(draw: Any) -> tuple[Any, Any]:
    """What `draw` returns by floats and by rational arithmetic, from the same words."""
    with bits._injected(Replay()):
        fast = draw()
    with bits._injected(Replay()), _exact._always():
        exact = draw()
    return fast, exact


# Lemma 1 of docs/explanation/exact-noise.md, with the constants it proves (half of what the code allows for).
def assert_lemma_1(words: np.ndarray) -> None:
    value, tolerance = _fast.exponentials(words)
    with localcontext() as context:
        context.prec = 60
        for i, word in enumerate(words.tolist()):
            v = word >> 1
            if v == 0:
                assert tolerance[i] == np.inf
                continue
            allowed = Decimal(2) ** -51 * (1 + Decimal(float(value[i]))) + Decimal(1) / v
            for corner in (v, v + 1):
                true = -(Decimal(corner) / 2**63).ln()
                assert abs(Decimal(float(value[i])) - true) <= allowed
            assert Decimal(float(tolerance[i])) >= Decimal("1.9") * allowed


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 63)), min_size=1, max_size=20))
def test_the_float_logarithm_keeps_its_bound_on_words_of_every_size(pairs):
    assert_lemma_1(np.array([word >> shift for word, shift in pairs], np.uint64))


def test_the_float_logarithm_keeps_its_bound_at_every_edge_of_its_table():
    edges = []
    for octave in range(63):
        for cell in range(0, 64, 1 if octave > 55 else 16):
            v = (64 + cell) << octave >> 6
            edges += [2 * max(0, v + step) for step in (-1, 0, 1)]
    assert_lemma_1(np.array([*edges, 2**64 - 1, 2**64 - 2], np.uint64))


@pytest.mark.parametrize("scale", SCALES + WIDE)
def test_floats_and_rationals_give_the_same_laplace_noise_from_the_same_bits(scale):
    fast, exact = both_ways(lambda: noise.discrete_laplace(scale, 300))
    assert fast.tolist() == exact.tolist()


@pytest.mark.parametrize("sigma", SCALES + WIDE)
def test_floats_and_rationals_give_the_same_gaussian_noise_from_the_same_bits(sigma):
    fast, exact = both_ways(lambda: noise.discrete_gaussian(sigma, 300))
    assert fast.tolist() == exact.tolist()


@pytest.mark.parametrize("gamma", [0, Fraction(1, 7), 1, 30, 1e-300, 1e300])
def test_floats_and_rationals_give_the_same_coins_from_the_same_bits(gamma):
    for coin in (noise.bernoulli_exp, noise.bernoulli_logistic):
        fast, exact = both_ways(lambda coin=coin: coin(gamma, 300))
        assert fast.tolist() == exact.tolist()


@pytest.mark.parametrize("rate", [0, Fraction(1, 7), 3, 1e-300, 1e300])
@pytest.mark.parametrize("spread", [1, 10, 2**62, 2**70])
def test_floats_and_rationals_choose_alike_from_the_same_bits(rate, spread):
    scores = [spread * i // 7 - spread // 2 for i in range(8)]
    for choose in (
        lambda: noise.exponential_choice(scores, rate),
        lambda: noise.exponential_top_k(scores, rate, 3),
        lambda: noise.permute_and_flip(scores, rate),
    ):
        fast, exact = both_ways(lambda choose=choose: [choose() for _ in range(5)])
        assert fast == exact


@pytest.mark.parametrize("scale", [Fraction(7, 5), Fraction(10), Fraction(16)])
@pytest.mark.parametrize("j", [1, 2, 9])
def test_a_word_on_the_edge_is_handed_to_exact_arithmetic(scale, j):
    edge = np.array([2 * _exact.exp_minus(j / scale, 63)[0]], np.uint64)
    with bits._injected(Constant(0)):
        assert _fast.geometric(edge, scale)[0] == j
    with bits._injected(Constant(2**64 - 1)):
        assert _fast.geometric(edge, scale)[0] == j - 1


@pytest.mark.parametrize("x", [Fraction(1, 50), Fraction(1), Fraction(20)])
def test_a_coin_on_the_edge_is_handed_to_exact_arithmetic(x):
    edge = np.array([2 * _exact.exp_minus(x, 63)[0]], np.uint64)
    exponent = np.array([float(x)])
    with bits._injected(Constant(0)):
        assert _fast.survive(edge, exponent, lambda _: x)[0]
    with bits._injected(Constant(2**64 - 1)):
        assert not _fast.survive(edge, exponent, lambda _: x)[0]


@pytest.mark.parametrize("coin", [noise.bernoulli_exp, noise.bernoulli_logistic])
def test_a_threshold_coin_on_the_edge_draws_more_bits(coin):
    enclosure = _exact.exp_minus if coin is noise.bernoulli_exp else _exact.logistic
    edge = enclosure(Fraction(3, 2), 64)[0]

    class Edge:
        def __init__(self, later: int) -> None:
            self.later = later

        def words(self, count: int) -> np.ndarray:
            return np.full(count, edge if count > 1 else self.later, np.uint64)

    with bits._injected(Edge(0)):
        assert coin(Fraction(3, 2), 100).all()
    with bits._injected(Edge(2**64 - 1)):
        assert not coin(Fraction(3, 2), 100).any()


def test_the_fallback_is_as_rare_as_stated(monkeypatch):
    """With the tolerance 2²⁴ times wider, it is taken about 2²⁴ times as often: at most 2⁻¹⁶ per draw.

    2²⁰ draws: at most 16 expected; more than 64 has probability below 1e-17.
    """
    asked = []
    lazy = _fast.lazy_uniform

    def counted(word):
        asked.append(word)
        return lazy(word)

    monkeypatch.setattr(_fast, "lazy_uniform", counted)
    exponentials = _fast.exponentials

    def wider(words):
        value, tolerance = exponentials(words)
        return value, tolerance * 2.0**24

    monkeypatch.setattr(_fast, "exponentials", wider)
    noise.discrete_laplace(16, 2**20)
    assert len(asked) <= 64


@pytest.mark.parametrize(("draws", "acceptance"), [(1, 0.4), (512, 0.46), (16384, 0.76), (16384, 15 / 16)])
def test_a_batch_is_nearly_always_enough(draws, acceptance):
    from scipy import stats

    candidates = _draws.candidates_for(draws, acceptance)
    assert stats.binom.cdf(draws - 1, candidates, acceptance) <= 2.0**-41
    assert candidates <= 2.8 * draws / acceptance + 200


@pytest.mark.parametrize("sigma", [1e-3, 0.3, 0.5, 0.9, 1, 1.49, 1.51, 2.5, 10, 100, 10**7])
def test_the_stated_acceptance_is_a_lower_bound_close_to_the_truth(sigma):
    from dalenius.mechanisms.noise.gaussian import GaussianSampler

    sampler = GaussianSampler(Fraction(sigma) ** 2)
    n = 2**16
    accepted = len(sampler.batch(n))
    deviation = 6 * (n * 0.25) ** 0.5  # six standard deviations: false alarm below 1e-8
    assert sampler.acceptance * n - deviation <= accepted <= sampler.acceptance * n / 0.999 * 1.09 + deviation
    assert sampler.acceptance > 0.4


def test_a_batch_that_falls_short_is_followed_by_another():
    class Stingy(_draws.Sampler):
        calls = 0

        def batch(self, candidates: int) -> np.ndarray:
            self.calls += 1
            return np.arange(1, dtype=np.int64)

    sampler = Stingy()
    assert _draws.draw(sampler, 100).tolist() == [0] * 100
    assert sampler.calls == 100


def test_noise_beyond_int64_raises_and_does_not_wrap():
    from dalenius.mechanisms.noise.laplace import Blocks, Candidates

    for scale in (Fraction(16), Fraction(2**52)):
        blocks = Blocks(scale)
        zeros = np.zeros(1, np.int64)
        with pytest.raises(OverflowError):
            blocks.values(Candidates(zeros, np.array([2.0 ** (63 - blocks.shift)]), zeros, None), None)


RANDOM = random.Random(3)
SIGMAS = [
    *(Fraction(10) ** power for power in (-300, -150, -20, -3, 20, 150, 300)),
    *(
        Fraction(1, 2),
        Fraction(14999, 10000),
        Fraction(15001, 10000),
        Fraction(33, 2),
        Fraction(2**52),
        Fraction(2**60),
    ),
    2**52 + Fraction(1, 2),
    *(
        Fraction(RANDOM.randrange(1, 2**60), RANDOM.randrange(1, 2**60)) * Fraction(2) ** RANDOM.randrange(-20, 80)
        for _ in range(20)
    ),
]


# Lemma 3 of docs/explanation/exact-noise.md: what `survive` asks of the exponents it is given.
@pytest.mark.parametrize("sigma", SIGMAS, ids=lambda sigma: f"{float(sigma):.3g}")
def test_exponents_keep_the_bound_that_the_coin_relies_on(sigma, monkeypatch):
    from dalenius.mechanisms.noise.gaussian import GaussianSampler
    from dalenius.mechanisms.noise.laplace import LaplaceSampler

    survive = _fast.survive
    seen: list[tuple[float, Fraction]] = []

    def spy(words, exponent, exact):
        seen.extend((float(exponent[i]), exact(i)) for i in range(0, len(words), 20))
        return survive(words, exponent, exact)

    monkeypatch.setattr(_fast, "survive", spy)
    GaussianSampler(sigma**2).batch(2000)
    LaplaceSampler(sigma).batch(2000)
    assert seen
    for rounded, exact in seen:
        if exact >= _fast.LARGEST:
            assert rounded >= _fast.LARGEST * (1 - 2.0**-40)
        else:
            assert abs(Fraction(rounded) - exact) <= Fraction(32, 2**53) * (1 + exact)


@pytest.mark.parametrize("spread", [10, 2**40, 2**62, 2**70])
def test_exponents_of_choices_keep_their_bound(spread):
    draw = random.Random(spread)
    for _ in range(50):
        rate = Fraction(draw.randrange(1, 2**60), draw.randrange(1, 2**60)) * Fraction(40, spread)
        scores = selection._check_scores([draw.randrange(-spread, spread) for _ in range(20)])
        gaps = selection.Gaps(scores, rate)
        for i in range(20):
            exact = gaps.exact(i)
            if exact >= 2**20:
                assert gaps.floats[i] >= 2.0**20 * (1 - 2.0**-40)
            else:
                assert abs(Fraction(float(gaps.floats[i])) - exact) <= exact / 2**51


def edges(q_times_2_63: int) -> list[tuple[int, int, bool]]:
    """Words around a probability q, all bits that follow, and whether the number is then below q."""
    v = q_times_2_63
    return [(v - 1, 2**64 - 1, True), (v, 0, True), (v, 2**64 - 1, False), (v + 1, 0, False)]


@pytest.mark.parametrize("off", [-0.99, -0.5, 0.5, 0.99])
@pytest.mark.parametrize("x", [Fraction(1, 50), Fraction(1), Fraction(3), Fraction(8)])
def test_a_coin_is_right_at_its_edge_for_every_exponent_within_the_bound(x, off):
    exponent = np.array([float(x) + off * 2.0**-48 * (1 + float(x))])
    for v, later, below in edges(_exact.exp_minus(x, 63)[0]):
        with bits._injected(Constant(later)):
            assert _fast.survive(np.array([2 * v], np.uint64), exponent, lambda _: x)[0] == below


class First:
    """One word, then others for ever."""

    def __init__(self, word: int, later: int) -> None:
        self.word, self.later = word, later

    def words(self, count: int) -> np.ndarray:
        word, self.word = self.word, self.later
        return np.full(count, word, np.uint64)


@pytest.mark.parametrize("seed", range(30))
def test_a_proposal_on_the_edge_is_handed_to_exact_arithmetic(seed):
    draw = random.Random(seed)
    gamma = Fraction(draw.randrange(2**59, 83 * 2**60), 2**60)
    gaps = selection.Gaps(np.array([0, -1]), gamma)
    bucket = int(selection._buckets(gaps)[1])
    edge = _exact.exp_minus(gamma, 63 + bucket)[0]  # exp(−γ)·2^bucket, in units of 2⁻⁶³
    for v, later, below in edges(edge):
        with bits._injected(First(2 * v, later)):
            assert selection._first_kept(gaps, np.array([1]), [bucket]) == (1 if below else None)


def test_the_first_of_the_proposals_kept_is_taken():
    gaps = selection.Gaps(np.array([0, -1, -2]), Fraction(1, 2))
    with bits._injected(Constant(2)):
        assert selection._first_kept(gaps, np.array([2, 0]), [0, 0]) == 2
    with bits._injected(Constant(2**64 - 2)):  # U is nearly 1: only the best, with a coin that is always heads
        assert selection._first_kept(gaps, np.array([2, 1, 0]), [0, 0, 0]) == 0
        assert selection._first_kept(gaps, np.array([2, 1]), [0, 0]) is None


@pytest.mark.parametrize("b", [*range(1, 121)])
def test_no_candidate_is_in_a_bucket_above_its_weight(b):
    """γ a hair below b·ln 2, as floats see it equal: its weight is above 2^−b, so bucket b would cut it short."""
    with localcontext() as context:
        context.prec = 80
        below = Fraction(Decimal(2).ln() * b) - Fraction(1, 2**200)
        for gamma in (below, Fraction(float(below)), Fraction(np.nextafter(float(below), 0.0))):
            found = int(selection._buckets(selection.Gaps(np.array([0, -1]), gamma))[1])
            assert found * Decimal(2).ln() <= Decimal(gamma.numerator) / gamma.denominator
            assert found >= b - 1


@pytest.mark.parametrize("word", [0, 1, 2**64 - 1])
def test_the_coin_of_the_best_is_certain_and_needs_no_fallback(word, monkeypatch):
    def fallback(word):
        raise AssertionError("exact arithmetic was used")

    monkeypatch.setattr(_fast, "lazy_uniform", fallback)
    with bits._injected(Constant(word)):
        assert noise.permute_and_flip([7] * 5, 1) in range(5)
