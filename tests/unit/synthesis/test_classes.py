"""The class of a number is the one that a search among the edges finds, whatever is reckoned on the way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.synthesis.classes import class_of

finite = st.floats(-1e12, 1e12, allow_nan=False)


def searched(numbers, edges):
    return np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)


@given(low=finite, width=st.floats(1e-9, 1e12), count=st.integers(1, 200), more=st.lists(finite, max_size=20))
def test_it_is_what_a_search_finds(low, width, count, more):
    high = max(low + width, float(np.nextafter(low, np.inf)))
    edges = np.linspace(low, high, count + 1)
    near = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf), np.array(more)])
    assert class_of(near, edges).tolist() == searched(near, edges).tolist()


def test_a_reckoning_that_nobody_checks_is_caught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(np, "flatnonzero", lambda _: np.zeros(0, int))
    with pytest.raises(AssertionError):
        test_it_is_what_a_search_finds()
