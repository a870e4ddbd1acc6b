"""Tidied shares are the nearest ones that are non-negative and add up to one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.local.estimators.tidying import non_negative, to_simplex

SHARES = st.lists(st.floats(-5, 5), min_size=1, max_size=30).map(np.array)


def norm_sub(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """By its definition: negative ones to 0, the same off all others, again until nothing is negative."""
    kept = np.ones(len(shares), bool)
    while True:
        shifted = np.where(kept, shares - (shares[kept].sum() - 1) / kept.sum(), 0.0)
        if (shifted >= 0).all():
            return shifted
        kept &= shifted > 0


@given(SHARES)
def test_they_are_shares_and_agree_with_norm_sub(shares: NDArray[np.float64]) -> None:
    tidied = to_simplex(shares)
    assert (tidied >= 0).all()
    assert tidied.sum() == pytest.approx(1)
    assert tidied == pytest.approx(norm_sub(shares), abs=1e-9)


@given(SHARES, st.integers(0, 2**32))
def test_no_other_shares_are_nearer(shares: NDArray[np.float64], seed: int) -> None:
    other = np.random.default_rng(seed).dirichlet(np.full(len(shares), 0.3))
    assert np.linalg.norm(to_simplex(shares) - shares) <= np.linalg.norm(other - shares) + 1e-9


def test_shares_that_are_tidy_stay_as_they_are() -> None:
    assert to_simplex(np.array([0.25, 0.75, 0.0])) == pytest.approx([0.25, 0.75, 0.0])
    assert non_negative(np.array([0.2, -0.1, 1.3])).tolist() == [0.2, 0.0, 1.3]


@pytest.mark.parametrize("wrong", [[], [np.nan], [np.inf, 0.0], [[0.5, 0.5]]])
def test_what_is_no_estimate_is_refused(wrong: list[float]) -> None:
    for tidy in (to_simplex, non_negative):
        with pytest.raises(InputError):
            tidy(np.array(wrong))
