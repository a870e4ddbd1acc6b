"""What a browser says of how a text changed is believed only if it is a change of that text."""

from __future__ import annotations

import pytest

from dalenius.app.console.parts.editor import _is_change, completions, examples
from dalenius.app.console.parts.prices import price_at, step_below

LENGTH, LONGEST = 10, 30


@pytest.mark.parametrize(
    "said",
    [
        {"sections": [10, -1], "inserted": []},
        {"sections": [4, -1, 0, 3, 6, -1], "inserted": [[], ["abc"]]},
        {"sections": [10, 20], "inserted": [["x" * 20]]},
        {"sections": [5, 0, 5, -1], "inserted": [[]]},
    ],
)
def test_changes_are_taken(said):
    assert _is_change(said, LENGTH, LONGEST)


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {},
        {"sections": [10, -1]},
        {"sections": [10], "inserted": []},
        {"sections": [11, -1], "inserted": []},
        {"sections": [10, -1, -10, 0, 10, -1], "inserted": []},  # which would copy the text, once for each round
        {"sections": [10, -2], "inserted": []},
        {"sections": [10.0, -1], "inserted": []},
        {"sections": ["10", -1], "inserted": []},
        {"sections": [10, 1], "inserted": ["text"]},
        {"sections": [10, 1], "inserted": [[1]]},
        {"sections": [10, -1, 0, 40], "inserted": [[], ["x" * 40]]},
        {"sections": {"0": 10}, "inserted": []},
    ],
)
def test_anything_else_is_not(said):
    assert not _is_change(said, LENGTH, LONGEST)


@pytest.mark.parametrize("value", ["NaN", None, [], {}, True, float("nan"), float("inf"), -1, 101, 1e308])
def test_what_is_no_place_of_the_slider_is_the_lowest_price_or_one_of_its_own(value):
    assert 0.01 <= price_at(value) <= 5.0


def test_the_slider_offers_what_passes():
    for epsilon in (0.01, 0.0149, 0.2, 0.2001, 4.9, 7.0):
        assert price_at(step_below(epsilon)) <= epsilon
    assert price_at(step_below(0.2)) == 0.2


def test_words_of_sql_are_quoted_in_examples_and_completed_so():
    table = {"name": "order", "columns": {"group": {"type": "category", "keys": ["it's"]}}, "public": None}
    assert examples(table)[0].sql == 'SELECT "group", COUNT(*) AS n\nFROM "order"\nGROUP BY "group"'
    labels = {each["label"] for each in completions([table])}
    assert {'"group"', '"order"', "'it''s'", "COUNT"} <= labels
