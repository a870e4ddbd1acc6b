"""Whose processor time it was: the own, with the engine's threads; never that of others."""

import threading
import time

import pytest

from dalenius.measuring.engines.duckdb.connections import Public
from dalenius.measuring.engines.duckdb.metering import _ENDED, _OPEN, helping, metered

HEAVY = "SELECT sum(hash(i) % 1000) FROM range(20000000) AS t(i)"


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize("threads", [1, 4])
def test_what_the_engines_threads_do_for_a_question_is_its_own(threads):
    """The heavy part may well run on a thread of the engine's while the question's own thread waits."""
    engine = Public(threads=threads)
    engine.run("SELECT 1")
    with metered("eve") as seconds:
        before = time.process_time()
        engine.run(HEAVY)
        whole = time.process_time() - before
        assert 0.7 * whole <= seconds() <= 1.2 * whole + 0.05


def test_what_others_do_meanwhile_on_other_engines_is_not():
    mine, other = Public(threads=4), Public(threads=4)
    mine.run("SELECT 1")
    other.run("SELECT 1")
    over = threading.Event()

    def load() -> None:
        with metered("bob"):
            while not over.is_set():
                other.run(HEAVY)

    threads = [threading.Thread(target=load) for _ in range(3)]
    with metered("eve") as seconds:
        for each in threads:
            each.start()
        mine.run("SELECT 1")
        time.sleep(0.5)
        mine.run("SELECT 1")
        over.set()
        assert seconds() < 0.2
    for each in threads:
        each.join()


def test_on_one_engine_threads_are_shared_by_those_who_run():
    """Equal parts while both run: the light one has its part of as long as it runs, which is short."""
    engine = Public(threads=4)
    engine.run("SELECT 1")
    taken = {}
    begun = threading.Event()

    def heavy() -> None:
        with metered("bob") as seconds:
            begun.set()
            for _ in range(3):
                engine.run(HEAVY)
            taken["bob"] = seconds()

    thread = threading.Thread(target=heavy)
    thread.start()
    assert begun.wait(60)
    with metered("eve") as seconds:
        for _ in range(5):
            engine.run("SELECT sum(i) FROM range(1000) AS t(i)")
            time.sleep(0.02)
        taken["eve"] = seconds()
    thread.join()
    assert taken["eve"] < taken["bob"]


def test_own_questions_at_once_count_together():
    ready, over = threading.Event(), threading.Event()

    def load() -> None:
        with metered("eve"):
            burn(0.1)
            ready.set()
            over.wait(60)

    with metered("eve") as seconds:
        thread = threading.Thread(target=load)
        thread.start()
        assert ready.wait(60)
        assert seconds() >= 0.09  # while the other is still at it
        over.set()
        thread.join()
        assert seconds() >= 0.09  # and when it has ended
    assert not _OPEN and not _ENDED


def test_threads_that_help_are_counted_and_waiting_is_not():
    with metered("eve") as seconds:
        thread = threading.Thread(target=helping(burn), args=(0.1,))
        thread.start()
        thread.join()
        time.sleep(0.1)
        assert 0.09 <= seconds() < 0.19
