"""The token bucket: rate, burst, how many are open, and whom it forgets; who holds many connections loses its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.app.http import limits as module
from dalenius.app.http.limits import Connections, RateLimit, TooManyError


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
    limits = RateLimit(rate=2, burst=3, concurrency=100)
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
    limits = RateLimit(rate=1, burst=1, concurrency=1)
    limits.admit("a")
    limits.admit("b")
    with pytest.raises(TooManyError):
        limits.admit("a")


def test_open_requests_are_counted_until_they_are_done(clock):
    limits = RateLimit(rate=100, burst=100, concurrency=2)
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
    limits = RateLimit(rate=1, burst=5, concurrency=1)
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
    limits = RateLimit(rate=0.2, burst=20, concurrency=1)
    for _ in range(1_000):
        limits.spend("a")
    assert limits.exhausted("a") and not limits.exhausted("b")
    clock.now += 5
    assert not limits.exhausted("a")


def test_who_is_open_is_not_forgotten(clock, monkeypatch):
    monkeypatch.setattr(module, "_MOST", 10)
    limits = RateLimit(rate=0.001, burst=2, concurrency=1)
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
        limits = RateLimit(rate, burst, 1000)
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


class Line:
    """A connection that remembers whether it was closed."""

    def __init__(self, *, idle: bool = True) -> None:
        self.idle, self.closed = idle, False

    def is_idle(self) -> bool:
        return self.idle

    def close_now(self) -> None:
        self.closed = True


def held(connections: Connections, address: str, lines: list[Line]) -> list[Line]:
    for line in lines:
        connections.add(address, line)
    return lines


def test_room_is_made_by_the_address_that_holds_the_most():
    connections = Connections(10)
    one = held(connections, "one", [Line()])
    many = held(connections, "many", [Line() for _ in range(50)])
    assert not one[0].closed
    assert [line.closed for line in many] == [True] * 41 + [False] * 9
    assert len(connections) == 10


def test_what_is_being_answered_is_never_closed():
    connections = Connections(3)
    busy = held(connections, "many", [Line(idle=False) for _ in range(3)])
    (new,) = held(connections, "other", [Line()])
    assert not any(line.closed for line in busy)
    assert new.closed  # nothing else could be


def test_a_request_makes_a_connection_the_last_to_go():
    connections = Connections(3)
    first, second, third = held(connections, "a", [Line(), Line(), Line()])
    connections.used("a", first)
    held(connections, "a", [Line()])
    assert (first.closed, second.closed, third.closed) == (False, True, False)


def test_what_has_ended_is_not_counted():
    connections = Connections(2)
    for _ in range(10):
        (line,) = held(connections, "a", [Line()])
        connections.remove("a", line)
        assert not line.closed
    connections.remove("a", line)  # twice does no harm
    assert len(connections) == 0
