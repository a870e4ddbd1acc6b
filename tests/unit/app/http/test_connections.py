"""Who holds many connections loses its own, and keeps nobody out."""

from __future__ import annotations

from dalenius.app.http.connections import Connections


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
