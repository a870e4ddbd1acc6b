"""Bit vectors: ε for the whole vector, by exact enumeration; which bits are sent says nothing."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from tests.laws import follows_law

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local import chances
from dalenius.local.estimators.means import bit_shares
from dalenius.local.randomisers.bit_vector import BitVector, best_sent
from dalenius.local.randomisers.k_ary import KAry

SMALL = [
    BitVector(epsilon, size, sent) for epsilon in (0.1, 1.0, 6.0) for size, sent in ((1, 1), (3, 1), (3, 2), (3, 3))
]


def publics(vector: BitVector) -> list[bytes]:
    return [bytes(each) for each in combinations(range(vector.size), vector.sent)] if vector.public_bytes else [b""]


@pytest.mark.parametrize("vector", SMALL, ids=str)
def test_the_ratio_is_of_whole_vectors(vector: BitVector) -> None:
    everybody = list(product((0, 1), repeat=vector.size))
    worst = Fraction(0)
    for public in publics(vector):
        laws = [vector.law(value, public) for value in everybody]
        assert all(sum(law.values()) == 1 for law in laws)
        worst = max(worst, *(max(law[each] for law in laws) / min(law[each] for law in laws) for each in laws[0]))
    assert worst == vector.ratio and chances.within(worst, vector.epsilon)
    assert vector.actual_epsilon >= 0.99 * vector.epsilon


@pytest.mark.parametrize("vector", SMALL, ids=str)
def test_estimates_are_unbiased_and_their_variance_exact(vector: BitVector) -> None:
    """Over the law of one report, with the places that are sent drawn uniformly."""
    for value in product((0, 1), repeat=vector.size):
        first, second = np.zeros(vector.size), np.zeros(vector.size)
        parts = publics(vector)
        for public in parts:
            for report, chance in vector.law(value, public).items():
                tally = vector.fold(np.frombuffer(report, np.uint8)[None])
                shares = vector.shares(tally.counts, 1)
                first += float(chance) / len(parts) * shares
                second += float(chance) / len(parts) * (shares - value) ** 2
        assert first == pytest.approx(np.array(value), abs=1e-9)
        assert second == pytest.approx(vector.variance(1))


@pytest.mark.parametrize("vector", [BitVector(1.0, 5), BitVector(6.0, 5, 3), BitVector(2.0, 4, 4)], ids=str)
def test_reports_follow_the_law(vector: BitVector) -> None:
    assert follows_law(vector, ([1, 0, 1, 1, 0])[: vector.size], 60_000)
    places = Counter(
        row[: vector.public_bytes].tobytes() for row in vector.encode(np.zeros((30_000, vector.size), int))
    )
    assert set(places) == set(publics(vector))
    expected = 30_000 / len(places)
    assert all(abs(each - expected) < 6 * expected**0.5 for each in places.values())


def test_the_closed_form_chooses_how_many_bits_are_sent() -> None:
    for epsilon, size in ((0.3, 9), (3.0, 9), (9.0, 9), (9.0, 3), (1.0, 1)):
        errors = [BitVector(epsilon, size, sent).variance(1) for sent in range(1, size + 1)]
        assert BitVector(epsilon, size).sent == best_sent(epsilon, size) == 1 + int(np.argmin(errors))
    assert BitVector(1.0, 16).variance(1) < BitVector(1.0, 16, 16).variance(1) / 10  # ε/d for each is far worse


def test_tallies_add_up_and_shares_are_found() -> None:
    vector = BitVector(3.0, 40)
    rows = np.tile(np.arange(40) % 3 == 0, (6000, 1))
    reports = vector.encode(rows)
    whole, parts = vector.fold(reports), vector.fold(reports[:1000]) + vector.fold(reports[1000:])
    assert whole == parts
    found = bit_shares(whole)
    assert (abs(found.shares - rows[0]) < found.band(1 - 1e-7)).all()
    assert found.margin() < found.band()


def test_what_is_no_row_of_bits_is_refused() -> None:
    vector = BitVector(1.0, 3)
    for values in ([[0, 1]], [0, 1, 1], [[0.0, 1.0, 1.0]]):
        with pytest.raises(InputError):
            vector.encode(values)
    with pytest.raises(InputError, match="Row 2 "):
        vector.encode([[0, 1, 1], [0, 2, 1]])
    for size, sent, epsilon in ((0, 0, 1.0), (3, 4, 1.0), (3, -1, 1.0), (3, 0, 0.0), (3, 1, 40.0), (3, 1, 1e-11)):
        with pytest.raises(InputError):
            BitVector(epsilon, size, sent)
    other = KAry(1.0, 3)
    with pytest.raises(InputError, match="k-ary"):
        bit_shares(other.fold(other.encode([0])))


@pytest.mark.parametrize(
    ("report", "problem", "byte"),
    [([3, 2, 1], "that there is not", 4), ([2, 1, 1], "do not ascend", 5), ([1, 1, 0], "do not ascend", 5),
     ([0, 1, 4], "after its last", 6)],
)  # fmt: skip
def test_a_report_that_cannot_be_is_refused_with_its_place(report: list[int], problem: str, byte: int) -> None:
    with pytest.raises(ReportInvalidError, match=f"Report 2 .*{problem}.*byte {byte - 1}\\)"):
        BitVector(6.0, 3, 2).fold(np.array([[0, 1, 0], report], np.uint8))
