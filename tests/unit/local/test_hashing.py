"""The keyed hashes have the independence that the estimates count on, proved over all keys of a narrow lane."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dalenius.errors import InputError
from dalenius.local.domain import Domain
from dalenius.local.hashing import AffineHashes, MultiplyShift, fingerprints
from dalenius.local.randomisers import sketch
from dalenius.local.randomisers.count_mean_sketch import CountMeanSketch
from dalenius.local.randomisers.hadamard_sketch import HadamardSketch
from dalenius.local.randomisers.sketch import Sketch


class Narrow(MultiplyShift):
    """The same code with lanes of 8 bits: 2¹⁶ keys, values below 2⁴."""

    width = 8
    dtype = np.dtype(np.uint8)


A, B = (part.reshape(-1).astype(np.uint8) for part in np.meshgrid(np.arange(256), np.arange(256)))


@pytest.mark.parametrize("buckets", [2, 3, 5, 8, 11, 16])
def test_hashes_of_two_values_are_independent_over_all_keys(buckets: int) -> None:
    family = Narrow(16, buckets)
    hashed = [family.bucket(A, B, np.full(len(A), x, np.uint32)) for x in range(16)]
    joint = np.outer(family.weights, family.weights) * 256  # of 2¹⁶ keys
    for x in range(16):
        for y in range(x):
            pairs = np.bincount(hashed[x].astype(int) * buckets + hashed[y], minlength=buckets**2)
            assert (pairs.reshape(buckets, buckets) == joint).all()


@pytest.mark.parametrize("buckets", [2, 3, 11, 16])
def test_the_walk_along_the_domain_finds_what_the_hash_says(buckets: int) -> None:
    family = Narrow(16, buckets)
    reported = np.random.default_rng(3).integers(0, buckets, len(A)).astype(np.uint8)
    counts = np.zeros(16, np.int64)
    family.holding(A, B, reported, counts)
    for x in range(16):
        assert counts[x] == np.count_nonzero(family.bucket(A, B, np.full(len(A), x, np.uint32)) == reported)


@pytest.mark.parametrize(("size", "width"), [(2**16, 32), (2**16 + 1, 64)])
@pytest.mark.parametrize("buckets", [3, 4, 4095])
def test_hashes_are_specified_to_the_bit(size: int, width: int, buckets: int) -> None:
    family = MultiplyShift(size, buckets)
    assert family.width == width
    keys = family.keys(50)
    assert keys.shape == (50, 2)
    x = np.arange(50, dtype=np.uint32) * 1000
    expected = [
        ((((int(a) * int(one) + int(b)) % 2**width) >> width // 2) * buckets) >> width // 2
        for (a, b), one in zip(keys, x, strict=True)
    ]
    assert family.bucket(keys[:, 0], keys[:, 1], x).tolist() == expected
    assert int(family.weights.sum()) == 2 ** (width // 2)


def test_hashes_of_three_values_are_independent_in_a_sketch() -> None:
    """Chi-square over 20,000 hashes; false-alarm rate 1e-7 for each of the triples."""
    table = AffineHashes(seed=5, count=20_000, buckets=4).table(8).astype(int)
    for x, y, z in ((0, 1, 2), (1, 2, 3), (3, 5, 6), (0, 4, 7)):
        cells = np.bincount(table[:, x] * 16 + table[:, y] * 4 + table[:, z], minlength=64)
        assert stats.chisquare(cells).pvalue > 1e-7


def test_a_sketch_hash_is_an_affine_map_of_bits() -> None:
    table = AffineHashes(seed=2**64 - 1, count=3, buckets=256).table(100)
    zero = table[:, 0]
    for x in range(100):
        expected = zero.copy()
        for bit in range(7):
            if x >> bit & 1:
                expected ^= table[:, 1 << bit] ^ zero
        assert (table[:, x] == expected).all()


def test_fingerprints_depend_on_the_key_and_on_every_character() -> None:
    found: list[Any] = [*fingerprints(["a", "b", "ab"]), *fingerprints(["a", "b", "ab"], b"key")]
    assert len(set(map(int, found))) == 6
    assert fingerprints([]).tolist() == []


def test_a_sketch_hash_of_one_value_is_that_of_the_table() -> None:
    family = AffineHashes(seed=3, count=5, buckets=64)
    table = family.table(1000)
    hashes, values = np.arange(5000, dtype=np.uint32) % 5, np.arange(5000, dtype=np.uint32) % 1000
    assert (family.of(hashes, values) == table[hashes, values]).all()
    assert (family.table(1000, 2, 4) == table[2:4]).all()
    assert family.of(hashes[:0], values[:0]).size == 0


@pytest.mark.parametrize("kind", [CountMeanSketch, HadamardSketch])
def test_a_sketch_of_a_large_domain_needs_no_table_of_it(kind: type[Sketch], monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of 2^22 values under 1,024 hashes would take 16 GiB; one value's bucket takes a few words."""
    large = kind(4.0, 2**22)
    tracemalloc.start()
    try:
        large.encode([2**22 - 1, 5])
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
    small = kind(4.0, 300, hashes=7, width=16)
    tally = small.fold(small.encode(np.arange(3000) % 300))
    shares = small.shares(tally)
    monkeypatch.setattr(sketch, "_MOST_CELLS", 700)  # now two hashes at a time
    assert (kind(4.0, 300, hashes=7, width=16).shares(tally) == shares).all()


def test_half_a_surrogate_pair_has_no_bytes() -> None:
    with pytest.raises(InputError, match="surrogate"):
        fingerprints(["\ud800"])
    with pytest.raises(InputError, match=r"Value 2 .* surrogate"):
        Domain(("a", "\ud800"))
