"""Places that nobody can take away from others."""

import threading
import time
from contextlib import ExitStack

import pytest

from dalenius.measuring.fairness import NoTurn, Turns


def taken(turns, who, most=20):
    """As many places as one gets without waiting."""
    stack, found = ExitStack(), 0
    for _ in range(most):
        try:
            stack.enter_context(turns.place(who, patience=0))
        except NoTurn:
            break
        found += 1
    return stack, found


@pytest.mark.parametrize(("places", "most"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (8, 4), (10, 5)])
def test_one_alone_gets_half_of_the_places(places, most):
    stack, found = taken(Turns(places), "eve")
    with stack:
        assert found == most and found == max(1, places // 2)


def test_whoever_holds_none_finds_one_beside_any_who_holds_many():
    turns = Turns(8)
    with ExitStack() as held:
        counts = []
        for who in ("eve", "mallory", "bob", "ana"):
            stack, found = taken(turns, who)
            held.enter_context(stack)
            counts.append(found)
        assert counts == [4, 2, 1, 1] and turns.free == 0
    assert turns.free == 8


def test_nobody_in_particular_may_have_all():
    stack, found = taken(Turns(4), "")
    with stack:
        assert found == 4


def test_who_holds_the_fewest_is_next_and_then_who_was_served_the_longest_ago():
    turns, order, lock = Turns(1), [], threading.Lock()

    def work(who):
        with turns.place(who):
            with lock:
                order.append(who)
            time.sleep(0.001)

    with turns.place("eve"):
        threads = []
        for who in ("eve", "eve", "eve", "bob", "ana"):
            threads.append(threading.Thread(target=work, args=(who,)))
            threads[-1].start()
            while sum(map(len, turns._waiting.values())) < len(threads):
                time.sleep(0.001)
    for each in threads:
        each.join()
    assert order.index("bob") < 3 and order.index("ana") < 3  # eve had asked three times before them
    assert turns.free == 1 and not turns._held and not turns._waiting


def test_a_wait_has_an_end_and_leaves_nothing_behind():
    turns = Turns(1)
    with turns.place("eve"):
        with pytest.raises(NoTurn), turns.place("bob", patience=0.01):
            pass
        with pytest.raises(NoTurn), turns.place("bob", gone=lambda: True):
            pass
        with pytest.raises(NoTurn), turns.place("bob", patience=0.01, gone=lambda: False):
            pass
    assert turns.free == 1 and not turns._waiting
    with turns.place("bob", gone=lambda: False):
        assert turns.free == 0


def test_a_failure_gives_the_place_back():
    turns = Turns(1)
    with pytest.raises(ZeroDivisionError), turns.place("eve"):
        raise ZeroDivisionError
    assert turns.free == 1


def test_many_threads_never_hold_more_than_there_are(rounds):
    turns, inside, most, lock = Turns(3), [0], [0], threading.Lock()

    def work(who):
        for _ in range(rounds(400)):
            with turns.place(who):
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                with lock:
                    inside[0] -= 1

    threads = [threading.Thread(target=work, args=(f"{each % 4}",)) for each in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert 1 <= most[0] <= 3 and turns.free == 3 and not turns._held
