"""Large answers are encoded in pieces, so that others get their turn; the text is the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.app.http import answers

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda each: st.lists(each, max_size=8) | st.dictionaries(st.text(), each, max_size=4),
    max_leaves=30,
)


@given(VALUES)
def test_pieces_join_to_the_whole(data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "_AT_ONCE", 2)
        assert answers.answer(data).body == json.dumps(data, ensure_ascii=False, allow_nan=False).encode()


def test_what_is_no_number_is_no_json_in_a_piece_either():
    with pytest.raises(ValueError, match="JSON"):
        answers.answer({"rows": [0.0] * 5000 + [float("nan")]})
