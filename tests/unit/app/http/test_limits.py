"""The token bucket: rate, burst, how many are open, and whom it forgets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.app.http import limits as module
from dalenius.app.http.limits import Limits, TooManyError


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def test_a_burst_then_the_rate(clock):
    limits = Limits(rate=2, burst=3, concurrency=100)
    for _ in range(3):
        limits.admit("a")
    with pytest.raises(TooManyError) as caught:
        limits.admit("a")
    assert caught.value.retry == pytest.approx(0.5) and caught.value.status == 429
    clock.now += 0.5
    limits.admit("a")
    with pytest.raises(TooManyError):
        limits.admit("a")
    clock.now += 1000  # no more than a burst is saved up
    for _ in range(3):
        limits.admit("a")
    with pytest.raises(TooManyError):
        limits.admit("a")


def test_keys_do_not_share(clock):
    limits = Limits(rate=1, burst=1, concurrency=1)
    limits.admit("a")
    limits.admit("b")
    with pytest.raises(TooManyError):
        limits.admit("a")


def test_open_requests_are_counted_until_they_are_done(clock):
    limits = Limits(rate=100, burst=100, concurrency=2)
    limits.admit("a")
    limits.admit("a")
    with pytest.raises(TooManyError, match="open"):
        limits.admit("a")
    clock.now += 60
    with pytest.raises(TooManyError):  # time alone closes none
        limits.admit("a")
    limits.done("a")
    limits.admit("a")
    limits.done("nobody")  # is no mistake


def test_a_refused_request_costs_nothing(clock):
    limits = Limits(rate=1, burst=5, concurrency=1)
    limits.admit("a")
    for _ in range(100):
        with pytest.raises(TooManyError):
            limits.admit("a")
    limits.done("a")
    for _ in range(4):
        limits.admit("a")
        limits.done("a")


def test_spending_leaves_no_debt(clock):
    """Who guessed a million times is heard again as soon as who guessed twenty times."""
    limits = Limits(rate=0.2, burst=20, concurrency=1)
    for _ in range(1_000):
        limits.spend("a")
    assert limits.exhausted("a") and not limits.exhausted("b")
    clock.now += 5
    assert not limits.exhausted("a")


def test_who_is_open_is_not_forgotten(clock, monkeypatch):
    monkeypatch.setattr(module, "_MOST", 10)
    limits = Limits(rate=0.001, burst=2, concurrency=1)
    limits.admit("open")
    for number in range(100):
        limits.exhausted(f"other {number}")
    with pytest.raises(TooManyError):
        limits.admit("open")
    assert len(limits._states) <= 12


@given(st.lists(st.tuples(st.floats(0, 3), st.sampled_from("ab")), max_size=60), st.floats(0.1, 5), st.integers(1, 5))
def test_no_more_than_burst_and_rate_ever_pass(steps, rate, burst):
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", clock)
        limits = Limits(rate, burst, 1000)
        passed, waits = dict.fromkeys("ab", 0), []
        for wait, key in steps:
            clock.now += wait
            try:
                limits.admit(key)
            except TooManyError as error:
                waits.append(error.retry)
            else:
                passed[key] += 1
        assert all(0 < each <= 1 / rate + 1e-9 for each in waits)
        assert all(count <= burst + rate * (clock.now - 1000) + 1e-6 for count in passed.values())
