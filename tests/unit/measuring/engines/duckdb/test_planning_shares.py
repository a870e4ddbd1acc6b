"""Planning is free, and so shared: of one analyst one question at a time, and never while a process works for it."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import pytest

from dalenius.errors import EngineFailedError
from dalenius.measuring.engines.duckdb import confined, metering
from dalenius.measuring.engines.duckdb.confined import Room, on_behalf, planning


class Planner(threading.Thread):
    """Plans on behalf of somebody until it is told to stop."""

    def __init__(self, room: Room, who: str) -> None:
        super().__init__(daemon=True)
        self.room, self.who = room, who
        self.began, self.over = threading.Event(), threading.Event()

    def run(self) -> None:
        with on_behalf(self.room, self.who), planning():
            self.began.set()
            self.over.wait(30)


@pytest.fixture
def planner():
    with ExitStack() as ended:

        def made(room, who):
            found = Planner(room, who)
            ended.callback(found.over.set)
            found.start()
            return found

        yield made


def test_one_analyst_plans_one_question_at_a_time(planner):
    room = Room()
    first = planner(room, "eve")
    assert first.began.wait(10)
    more = [planner(room, "eve") for _ in range(5)]
    assert not any(each.began.wait(0.1) for each in more)
    others = [planner(room, who) for who in ("bob", "ana")]  # who find places as before
    assert all(each.began.wait(10) for each in others)
    first.over.set()
    end = time.monotonic() + 10
    while not any(each.began.is_set() for each in more) and time.monotonic() < end:
        time.sleep(0.01)
    assert sum(each.began.is_set() for each in more) == 1


def test_reading_within_planning_takes_no_second_place(planner):
    room = Room()
    with on_behalf(room, "eve"), planning(), planning():
        assert room.plans.free == confined.PLANS - 1
    assert room.plans.free == confined.PLANS
    with planning():  # on nobody's behalf: on the machine itself there is no share
        assert room.plans.free == confined.PLANS


def test_while_a_process_works_others_may_plan(monkeypatch):
    room, seen = Room(), []

    def answered(*_):
        seen.append(room.plans.free)
        return b'{"columns":["a"],"rows":[[1]]}'

    monkeypatch.setattr(confined, "_answered", answered)
    with on_behalf(room, "eve"), planning():
        confined.run("SELECT 1 AS a", {}, [], (), most=1, seconds=5)
        assert room.plans.free == confined.PLANS - 1
    assert seen == [confined.PLANS]
    assert room.plans.free == confined.PLANS


def test_a_place_is_given_back_when_the_process_fails(monkeypatch):
    room = Room()
    monkeypatch.setattr(confined, "_answered", lambda *_: None)
    with on_behalf(room, "eve"), pytest.raises(EngineFailedError), planning():
        confined.run("SELECT 1 AS a", {}, [], (), most=1, seconds=5)
    assert room.plans.free == confined.PLANS


def test_what_a_process_takes_is_the_analysts_own():
    """Also while it runs: a question may end before the process that was to make it late."""
    many = "(SELECT unnest(range(10000)) AS i)"
    heavy = f"SELECT sum(a.i * b.i % 7) AS s FROM {many} AS a, {many} AS b"
    seen, found = [], []

    def load() -> None:
        with metering.metered("eve"), on_behalf(Room(), "eve"):
            found.append(confined.run(heavy, {}, [], (), most=1, seconds=20))

    thread = threading.Thread(target=load)
    with metering.metered("eve") as seconds, metering.metered("bob") as others:
        thread.start()
        while thread.is_alive():
            seen.append(seconds())
            time.sleep(0.02)
        thread.join()
        assert len(found[0].rows) == 1  # it ran
        assert seconds() > 0.2
        assert len({round(each, 2) for each in seen}) > 3  # it grew meanwhile
        assert others() < 0.5 * seconds()
