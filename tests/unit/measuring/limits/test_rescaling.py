"""Groups that are clipped tightly and scaled up to their total: which limits, and what comes out, by the truth."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.measuring.limits.choosing import MEDIAN, choose_limit
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.limits.heavy_band import Groups, margins_of, scale_groups
from dalenius.measuring.limits.histogram import CLASSES
from dalenius.measuring.limits.question_total import CutOff, total_of
from dalenius.measuring.limits.rescaled import FEWEST, TIGHT, Rescaled, Total
from dalenius.measuring.limits.rescaling import Lengths, choose_limits, favoured_groups, tellable
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian

GROUPS, PEOPLE = 48, 20_000
LAW = DiscreteGaussian(Fraction(400), dimension=CLASSES)
NOISE = 6.0  # of a measure, for a limit of 1: about ε = 1


def place(sizes):
    """Classes of sizes, as `histogram` has them."""
    return np.where(sizes <= 0, 0, np.maximum(np.ceil(2 * np.log2(np.maximum(sizes, 1)) - 1e-9), 0) + 1).astype(int)


def counted(sizes, random) -> LengthCounts:
    noisy = np.bincount(place(sizes), minlength=CLASSES) + random.normal(0, 20, CLASSES)
    return LengthCounts.of([round(each) for each in noisy], LAW)


def people(kind: str, random):
    """The vectors of all people over the groups."""
    rows = {
        "pareto": lambda: np.minimum(np.floor(random.random(PEOPLE) ** (-1 / 1.3)), 1000),
        "poisson": lambda: np.maximum(random.poisson(8, PEOPLE), 1),
        "alike": lambda: np.full(PEOPLE, 30),
    }[kind]().astype(int)
    shares = random.gamma(4, size=GROUPS)
    return random.multinomial(rows, shares / shares.sum()).astype(float)


def clip(vectors, limit):
    length = np.sqrt((vectors**2).sum(1))
    return (vectors * np.minimum(1, limit / length)[:, None]).sum(0)


def released(kind: str, random):
    """What is shown of a table, the raw truth, and the vectors of all people."""
    vectors = people(kind, random)
    truth, length = vectors.sum(0), np.sqrt((vectors**2).sum(1))
    sizes = vectors.sum(1)
    cut = round(np.minimum(sizes, 64).sum() + random.normal(0, 500))
    total = total_of(counted(sizes, random), CutOff(64, cut, 500.0))
    assert total is not None
    counts = counted(np.ceil(length), random)  # as the engine counts them
    lengths = Lengths(counts.noisy, counts.law, GROUPS, total, rows=True)
    plain, heavy = (
        choose_limit(counts.noisy, counts.law, lambda limit: MEDIAN * NOISE * limit, each).limit
        for each in (GROUPS, favoured_groups(GROUPS))
    )
    found = choose_limits(lengths, plain, heavy, heavy * NOISE * GROUPS / total.mean)
    limits = [found.tight] if found.heavy is None else [found.tight, found.heavy]
    parts = [1.0] if found.heavy is None else [float(TIGHT), 1 - float(TIGHT)]
    laws = [limit * NOISE / math.sqrt(part) for limit, part in zip(limits, parts, strict=True)]
    measured = [
        clip(vectors, limit) + random.normal(0, noise, GROUPS) for limit, noise in zip(limits, laws, strict=True)
    ]
    groups = Groups(measured[0], laws[0])
    if found.heavy is not None:
        groups = Groups(measured[0], laws[0], measured[1], laws[1])
    return scale_groups(groups, lengths.taken(found.tight), total), truth, vectors


def best_plain(vectors, truth):
    tries = (clip(vectors, limit) - truth for limit in 2 ** np.arange(0, 10, 0.25))
    return min(
        math.sqrt((off**2).mean() + (limit * NOISE) ** 2)
        for off, limit in zip(tries, 2 ** np.arange(0, 10, 0.25), strict=True)
    )


@pytest.mark.parametrize(("kind", "most"), [("pareto", 0.7), ("poisson", 1.1), ("alike", 1.1)])
def test_scaled_groups_are_nearer_to_the_truth_than_the_best_limit_on_heavy_tails_and_hardly_further_on_others(
    kind: str, most: float
):
    random = np.random.default_rng(18)
    squares, plain, inside = [], [], []
    for _ in range(6):
        scaled, truth, vectors = released(kind, random)
        squares.append(((scaled.value - truth) ** 2).mean())
        plain.append(best_plain(vectors, truth) ** 2)
        inside.append((np.abs(scaled.value - truth) <= 1.96 * scaled.off).mean())
        assert (scaled.off >= scaled.noise).all()
    assert math.sqrt(np.mean(squares)) <= most * math.sqrt(np.mean(plain))
    assert np.mean(inside) >= 0.9  # of 288 cells; a deviation is 1.3% at 95%


def test_a_group_that_heavy_people_favour_counts_as_it_was_measured():
    random = np.random.default_rng(1)
    shares = np.full(GROUPS, 1 / GROUPS)
    tight = 1000 * np.ones(GROUPS) + random.normal(0, 10, GROUPS)
    high = tight + 200 + random.normal(0, 40, GROUPS)
    high[7] += 3000
    taken = Lengths(
        [0, 9000, 4000, 3000, 2000, 900, 300, 100, *[0] * (CLASSES - 8)], LAW, GROUPS, Total(64e3, 900), rows=True
    )
    scaled = scale_groups(Groups(tight, 10, high, 40), taken.taken(2), Total(64e3, 900))
    others = np.delete(scaled.value, 7)
    assert scaled.value[7] == pytest.approx(4500, rel=0.1) and others == pytest.approx(1250, rel=0.15)
    alike = scale_groups(
        Groups(tight, 10, np.where(np.arange(GROUPS) == 7, high - 3000, high), 40), taken.taken(2), Total(61e3, 900)
    )
    assert alike.value == pytest.approx(61e3 * shares, rel=0.1)


def test_the_total_is_what_all_units_add_up_to():
    random = np.random.default_rng(3)
    for sizes in (
        random.geometric(0.1, PEOPLE),
        np.full(PEOPLE, 30),
        random.lognormal(1.5, 1.3, PEOPLE).astype(int) + 1,
    ):
        truth, limit = sizes.sum(), 64
        for cut_off in (None, CutOff(limit, np.minimum(sizes, limit).sum() + random.normal(0, 2000), 2000.0)):
            found = total_of(counted(sizes, random), cut_off)
            assert found is not None and abs(found.mean - truth) < 3.5 * found.deviation + 1
            if cut_off is not None:
                assert found.deviation < 0.1 * truth


def test_too_few_groups_or_too_much_noise_scale_nothing():
    random = np.random.default_rng(4)
    counts = counted(random.geometric(0.1, PEOPLE), random)
    assert tellable(counts.noisy, counts.law, FEWEST) and not tellable(counts.noisy, counts.law, FEWEST - 1)
    assert not tellable([0] * CLASSES, LAW, 100)
    assert total_of(LengthCounts.of([0] * CLASSES, LAW)) is None


def test_what_is_stored_reads_back():
    for each in (Rescaled(Total(1234.5, 6.7)), Rescaled(Total(1e9, 1e7), 640)):
        assert Rescaled.of_json(each.to_json()) == each


def test_margins_are_those_of_keys_with_enough_values():
    cells = [(a, b) for a in range(9) for b in "xyz"]
    (found,) = margins_of(cells, 2)
    assert found.tolist() == [a for a, _ in cells]
    assert margins_of([(a,) for a in range(40)], 1) == []


@given(
    st.lists(st.integers(-500, 10**6), min_size=CLASSES, max_size=CLASSES),
    st.integers(FEWEST, 400),
    st.floats(0, 1e12),
    st.floats(0, 1e9),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_whatever_the_noise_is_numbers_are_finite(noisy, groups, mean, deviation, rows, seed):
    total = Total(mean, deviation)
    if not tellable(noisy, LAW, groups):
        return
    lengths = Lengths(noisy, LAW, groups, total, rows=rows)
    random, limit = (
        np.random.default_rng(seed),
        choose_limits(lengths, 1 + seed % 99, 1 + seed % 1000, seed % 7 / 20).tight,
    )
    assert 1 <= limit <= 1 + seed % 1000
    tight = random.normal(0, 10 * limit, groups)
    for high in (None, tight + random.normal(0, 40 * limit, groups)):
        measured = Groups(tight, 6.0 * limit, high, 24.0 * limit, [np.arange(groups) % 8])
        scaled = scale_groups(measured, lengths.taken(limit), total)
        for each in (scaled.value, scaled.noise, scaled.off):
            assert np.isfinite(each).all()
        assert (scaled.off >= scaled.noise).all() and math.isfinite(scaled.given_back)
