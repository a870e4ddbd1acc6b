"""Coins and packed rows of coins have their exact law; columns are counted rightly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dalenius.local import coin_bits, coins
from dalenius.local.columns import column_sums
from dalenius.mechanisms.noise import bits

FALSE_ALARM = 1e-7
CHANCES = [1, 2**12, 2**31 - 12345, 2**31, 1155127957, 3 * 2**30, 2**32 - 2**20]


@pytest.mark.parametrize("chance", CHANCES)
def test_the_digits_of_a_byte_add_up_to_its_chance(chance: int) -> None:
    law = coin_bits._Bytes(chance)
    digits = [np.bincount(law.table[: law.filled], minlength=256).tolist()]
    digits += [np.diff(level, prepend=0).tolist() for level in law.later]
    for value in range(256):
        ones = value.bit_count()
        assert sum(d[value] << 16 * (15 - at) for at, d in enumerate(digits)) == chance**ones * (2**32 - chance) ** (
            8 - ones
        )


@pytest.mark.parametrize("chance", [2**31 - 12345, 1155127957, 2**28])
def test_bytes_of_coins_follow_their_law(chance: int) -> None:
    rows = np.empty((50_000, 2), np.uint8)
    coin_bits.fill(rows, chance, 16)
    p = chance / 2**32
    due = np.array([p ** v.bit_count() * (1 - p) ** (8 - v.bit_count()) for v in range(256)]) * rows.size
    seen = np.bincount(rows.reshape(-1), minlength=256).astype(float)
    common = due >= 20
    seen, due = np.append(seen[common], seen[~common].sum()), np.append(due[common], due[~common].sum())
    keep = due >= 5
    assert stats.chi2.sf(((seen - due)[keep] ** 2 / due[keep]).sum(), keep.sum() - 1) > FALSE_ALARM


def test_bytes_that_the_table_leaves_over_follow_their_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an empty table every byte goes through the later digits: their law is what is left of the first ones'."""
    chance = 1155127957
    law = coin_bits._Bytes(chance)
    out = np.empty(2**17, np.uint8)

    class Last:
        """First digits that are always left over; the rest is random."""

        calls = 0

        def words(self, count: int) -> np.ndarray:
            self.calls += 1
            words = np.random.default_rng(self.calls).integers(0, 2**64, count, dtype=np.uint64)
            if self.calls == 1:
                left = np.random.default_rng(0).integers(law.filled, 2**16, 4 * count).astype(np.uint16)
                return left.view(np.uint64)
            return words

    monkeypatch.setattr(bits, "words", Last().words)
    law.fill(out)
    exact = [chance ** v.bit_count() * (2**32 - chance) ** (8 - v.bit_count()) for v in range(256)]
    left = [one % 2**240 for one in exact]  # what the first digits do not hold
    due = np.array([one / sum(left) for one in left]) * len(out)
    seen = np.bincount(out, minlength=256)
    assert (seen[due == 0] == 0).all()
    common = due > 0
    assert stats.chi2.sf(((seen - due)[common] ** 2 / due[common]).sum(), common.sum() - 1) > FALSE_ALARM


@pytest.mark.parametrize("width", [1, 7, 8, 9, 16])
def test_bits_behind_the_last_coin_are_zero(width: int) -> None:
    rows = np.empty((100, -(-width // 8)), np.uint8)
    coin_bits.fill(rows, 2**32 - 1, width)
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    assert not bits[:, width:].any()
    assert bits[:, :width].mean() > 0.99


@pytest.mark.parametrize(
    ("rows", "width"), [(0, 3), (1, 1), (7, 5), (8, 1), (1000, 3), (40_000, 2), (3000, 128), (9, 40_000)]
)
def test_columns_are_counted_as_if_unpacked(rows: int, width: int) -> None:
    packed = np.random.default_rng(rows).integers(0, 256, (rows, width), dtype=np.uint8)
    expected = np.unpackbits(packed, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    assert (column_sums(packed) == expected).all()


@pytest.mark.parametrize("n", [1, 2, 3, 6, 1000, 2**31 + 1, 2**32 - 1, 2**32])
def test_uniform_integers_are_uniform(n: int) -> None:
    drawn = coins.uniform(n, 40_000)
    assert drawn.max() < n
    cells = np.bincount(
        (drawn.astype(np.uint64) * np.uint64(min(n, 8)) // np.uint64(n)).astype(int), minlength=min(n, 8)
    )
    edges = [-(-cell * n // min(n, 8)) for cell in range(min(n, 8) + 1)]
    if n > 1:
        assert stats.chisquare(cells, np.diff(edges) / n * 40_000).pvalue > FALSE_ALARM


@pytest.mark.parametrize("chance", [2**20, 2**31, 2**32 - 2**26])
def test_coins_have_their_chance(chance: int) -> None:
    seen = int(coins.coins(chance, 100_000).sum())
    assert stats.binomtest(seen, 100_000, chance / 2**32).pvalue > FALSE_ALARM
