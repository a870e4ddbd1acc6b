"""Tables of counts, and values merged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dalenius.synthesis.views import Rows, View, merged, whole


def test_a_view_counts_what_a_loop_counts():
    rng = np.random.default_rng(2)
    table = np.array([rng.integers(0, size, 200) for size in (3, 5, 4)], np.int32)
    view = View((0, 2), (np.array([0, 1, 1], np.int32), np.array([0, 0, 1, 2], np.int32)))
    expected = np.zeros((2, 3))
    for first, _, third in table.T:
        expected[view.groups[0][first], view.groups[1][third]] += 1
    assert Rows(table).count(view).reshape(view.shape).tolist() == expected.tolist()


def test_products_of_margins_fill_the_merged_cells():
    view = View((0, 1), (np.array([0, 1, 1], np.int32), np.array([0, 1], np.int32)))
    found = view.of_product([np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.9])])
    assert np.allclose(found, [0.05, 0.45, 0.05, 0.45])


def test_whole_views_put_columns_in_order():
    assert whole([2, 0], [3, 5, 4]).shape == (3, 4)


@given(st.lists(st.floats(-50, 500), min_size=1, max_size=60), st.booleans(), st.integers(2, 40), st.data())
def test_merging_numbers_groups_from_nought_without_gaps(counts, ordered, most, data):
    pinned = data.draw(st.lists(st.integers(0, len(counts) - 1), max_size=3))
    found = merged(np.array(counts), 20.0, most, ordered=ordered, pinned=pinned)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))
    for each in pinned:
        assert ordered or (found == found[each]).sum() == 1 or len(counts) == 1
    if ordered:
        assert np.all(np.diff(found) >= 0)


def test_heavy_values_stand_alone_and_rare_ones_together():
    found = merged(np.array([1000.0, 3, 500, 2, 1]), 50, 16, ordered=False)
    assert len(set(found.tolist())) == 3
    assert found[1] == found[3] == found[4]


def test_a_heavy_value_in_the_middle_is_not_mixed_with_its_neighbours():
    counts = np.full(99, 20.0)
    counts[40] = 5000
    found = merged(counts, 100, 8, ordered=True)
    assert (found == found[40]).sum() == 1
