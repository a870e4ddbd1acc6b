"""Errors as RFC 9457 problems; large answers in pieces, so that others get their turn, with the same text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius import errors
from dalenius.app.http import responses
from dalenius.app.http.responses import (
    MEDIA,
    MediaError,
    MethodError,
    NotFoundError,
    SlowError,
    TooLargeError,
    no_such_path,
    problem,
    problem_response,
    unexpected,
)
from dalenius.errors import Charge, DaleniusError, Fits, Place

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda each: st.lists(each, max_size=8) | st.dictionaries(st.text(), each, max_size=4),
    max_leaves=30,
)


def leaves(cls):
    below = [each for child in cls.__subclasses__() for each in leaves(child)]
    return [*([cls] if hasattr(cls, "code") else []), *below]


# made otherwise; their group is here, or a test of their own below
OWN_WORDS = {errors.ExtraMissingError, errors.HomeMissingError, errors.PartyGoneError, errors.PartyRefusedError}
ALL = sorted(
    {each for each in leaves(DaleniusError) if each.__module__ == errors.__name__} - OWN_WORDS,
    key=lambda each: each.__name__,
)


def test_what_partners_do_is_a_problem_too():
    gone = problem(errors.PartyGoneError("lab", why="Why.", fix="Fix."))
    assert (gone["code"], gone["status"]) == ("source.unavailable", errors.PartyGoneError.status)
    assert gone["message"] == "The party 'lab' is gone."
    refused = problem(errors.PartyRefusedError("What.", why="Why.", fix="Fix.", party="lab"))
    assert (refused["code"], refused["status"], refused["message"]) == ("joint.refused", 502, "What.")


@pytest.mark.parametrize("kind", ALL)
def test_every_error_is_a_problem(kind):
    error = kind("What.", why="Why.", fix="Fix.", charge=Charge(0.5, 1e-9), fits=Fits(0.1), at=Place(1, 2))
    body = problem(error)
    assert body["type"] == f"urn:dalenius:{kind.code}" and body["code"] == kind.code
    assert (body["title"], body["message"], body["status"]) == ("What.", "What.", kind.status)
    assert body["why"] == "Why." and body["fix"] == "Fix." and "Why. Fix." in body["detail"]
    assert body["charge"] == {"epsilon": 0.5, "delta": 1e-9} and body["fits"] == {"epsilon": 0.1}
    assert body["at"] == {"line": 1, "column": 2}
    response = problem_response(error)
    assert response.status_code == kind.status and response.media_type == MEDIA
    assert json.loads(bytes(response.body)) == body
    assert ("www-authenticate" in response.headers) == (kind.status == 401)
    if kind.status == 429:
        assert int(response.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    ("kind", "status"),
    [(NotFoundError, 404), (MethodError, 405), (SlowError, 408), (TooLargeError, 413), (MediaError, 415)],
)
def test_what_only_http_knows_is_invalid_input(kind, status):
    assert (kind.code, kind.status) == ("input.invalid", status)


def test_a_bug_tells_its_kind_alone():
    body = json.dumps(problem(unexpected(ValueError("row 7: Alice, 41"))))
    assert "ValueError" in body and "Alice" not in body and "41" not in body


def test_numbers_that_json_does_not_have_and_half_characters_do_not_break_it():
    error = errors.InputError("a \ud800 b", why="w", fix="f", charge=Charge(float("inf"), float("nan")))
    response = problem_response(error)
    body = bytes(response.body)
    assert b"NaN" not in body and b"Infinity" not in body and json.loads(body)["status"] == 400


@pytest.mark.parametrize(("retry", "shown"), [(None, "2"), (0.01, "1"), (59.6, "60")])
def test_waiting_is_told_in_whole_seconds(retry, shown):
    error = errors.RateLimitedError("m", why="w", fix="f")
    assert problem_response(error, retry).headers["retry-after"] == shown


def test_nothing_here_says_nothing():
    assert problem(no_such_path()) == problem(no_such_path())
    assert no_such_path().status == 404


@given(VALUES)
def test_pieces_join_to_the_whole(data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(responses, "_AT_ONCE", 2)
        assert responses.answer(data).body == json.dumps(data, ensure_ascii=False, allow_nan=False).encode()


def test_what_is_no_number_is_no_json_in_a_piece_either():
    with pytest.raises(ValueError, match="JSON"):
        responses.answer({"rows": [0.0] * 5000 + [float("nan")]})
