"""H25: that an answer is late tells one bit; it cannot be asked for again and again.

What makes questions late is planted: `Slow` takes processor time in their own work, as a hostile question would, or
only waits, as one does that others keep from the processor.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.attack.hostile import people, protected, state
from tests.attack.served import at_once, charges
from tests.attack.watched import planting
from tests.serving import Client, Reply

from dalenius.curator import Curator
from dalenius.errors import EngineTimeoutError, NotAllowedError
from dalenius.ledger import Ledger, verify
from dalenius.ledger.suspensions import ALL, ANALYST, DATASET, record_late, record_overdue, resume, standings, suspend
from dalenius.queries import answering
from dalenius.releasing.pacing import Pacer

ANSWER, CAP, BURN = 0.3, 0.4, 0.35
TIME = f"[time]\nanswer = {ANSWER}\ncap = {CAP}\n"
WHO = ("eve", "bob", "ana")


def table(folder: Path, late: str = "") -> Curator:
    more = TIME + late
    return protected(folder, people(victim=False), epsilon=100.0, analysts=dict.fromkeys(WHO, 50.0), more=more)


class Slow:
    """Slows down the work of questions whose analysts' threads carry these names."""

    def __init__(self) -> None:
        self.burn = self.sleep = 0.0
        self.only: set[str] = set()
        self.together: threading.Barrier | None = None
        self._real = answering.measure_plan

    def __call__(self, *parts: Any) -> bytes:
        try:
            return self._real(*parts)
        finally:  # also when a busy machine had the real work stopped: how much is burnt is not up to others
            if not self.only or threading.current_thread().name in self.only:
                self._slow_down()

    def _slow_down(self) -> None:
        time.sleep(self.sleep)
        if self.together is not None:
            with suppress(threading.BrokenBarrierError):  # others may have been refused: nobody waits for ever
                self.together.wait(10 * ANSWER)
        end = time.thread_time() + self.burn
        while time.thread_time() < end:
            pass


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    found = Slow()
    monkeypatch.setattr(answering, "measure_plan", found)
    return found


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    found = table(tmp_path)
    yield found
    verify(found.ledger)
    found.ledger.database.close()


def ask(curator: Curator, at: int, who: str = "eve", pacer: Pacer | None = None) -> Any:
    asker = curator.analyst(who, pacer=pacer)  # without one nothing is late, however busy the machine
    return asker.ask(f"SELECT COUNT(*) AS n FROM visits WHERE amount > {at}", epsilon=0.01)


def late(curator: Curator, at: int, who: str = "eve") -> None:
    with pytest.raises(EngineTimeoutError) as caught:
        ask(curator, at, who, Pacer(8))
    assert caught.value.charge.epsilon == 0.01  # and it is paid for


def test_after_three_late_answers_an_analyst_is_suspended_before_anything_is_charged(curator, slow):
    paid = ask(curator, 1000)
    slow.burn = BURN
    for at in range(3):
        late(curator, at)
    slow.burn = 0.0
    before = state(curator)
    with pytest.raises(NotAllowedError, match="suspended") as caught:
        ask(curator, 10)
    assert caught.value.code == "policy.not-allowed" and caught.value.charge.epsilon == 0
    assert state(curator) == before
    assert ask(curator, 10, "bob") is not None  # others are not
    again = ask(curator, 1000)  # what was paid for stays
    assert again.free and again.rows == paid.rows
    assert curator.analyst("eve").preview("SELECT COUNT(*) AS n FROM visits") is not None
    assert curator.analyst("eve").budget()


def test_it_is_on_record_and_the_owner_lifts_it(curator, slow):
    slow.burn = BURN
    for at in range(2):
        record_late(curator.ledger, charge=at, analyst="eve", dataset="visits", own=True, most=3)
    late(curator, 2)
    (entry,) = curator.ledger.records(("suspension",))
    assert entry.data == {"action": "suspend", "analyst": "eve", "by": "curator", "reason": "3 answers were late"}
    alarms = [each.data["alarm"] for each in curator.ledger.records(("note",)) if "alarm" in each.data]
    assert alarms == ["late", "late", "late", "suspended"]
    lifted = resume(curator.ledger, (ANALYST, "eve"), "we talked about it")
    assert not lifted.suspended and lifted.late == 0 and lifted.by.startswith("cli:")
    late(curator, 3)  # counted anew
    record_late(curator.ledger, charge=4, analyst="eve", dataset="visits", own=True, most=3)
    slow.burn = 0.0
    assert ask(curator, 10) is not None
    slow.burn = BURN
    late(curator, 5)
    with pytest.raises(NotAllowedError):
        ask(curator, 11)


def test_another_analysts_stored_answer_is_refused_too(curator, slow):
    ask(curator, 1, "bob")
    suspend(curator.ledger, (ANALYST, "eve"), "asked too much")
    before = state(curator)
    with pytest.raises(NotAllowedError):
        ask(curator, 1)
    assert state(curator) == before


def test_being_kept_waiting_by_others_suspends_nobody(curator, slow):
    """Late by the clock, not by its own work: also while others' questions burn the processor."""
    slow.sleep = ANSWER + 0.02
    for at in range(4):
        late(curator, at)
    slow.sleep, slow.burn, slow.only = 0.0, 3 * ANSWER, {"heavy"}
    heavy = [threading.Thread(target=late, args=(curator, 100 + at, "bob"), name="heavy") for at in range(3)]
    for each in heavy:
        each.start()
    for at in range(4):
        with suppress(EngineTimeoutError):  # ready or late, as the machine is
            ask(curator, 10 + at, "ana", Pacer(8))
    for each in heavy:
        each.join()
    found = standings(curator.ledger)
    assert (ANALYST, "eve") not in found and (ANALYST, "ana") not in found
    assert found[ANALYST, "bob"].suspended
    notes = [each.data for each in curator.ledger.records(("note",)) if each.data.get("analyst") == "eve"]
    assert {each["own"] for each in notes if "alarm" in each} == {False}


def test_waiting_for_a_place_is_not_counted(curator, slow):
    pacer = Pacer(1)
    at_once(4, lambda at: ask(curator, at, "ana", pacer))
    assert not standings(curator.ledger)


def test_own_questions_that_make_one_another_late_count(curator, slow):
    """A third of the time each, three at once: the load is the analyst's own."""
    slow.burn, slow.sleep, slow.together = 0.5 * ANSWER, ANSWER, threading.Barrier(3)
    at_once(3, lambda at: ask(curator, at, "eve", Pacer(8)))
    assert standings(curator.ledger)[ANALYST, "eve"].late >= 1


def test_of_many_at_once_only_those_with_a_place_look(curator, slow):
    """Charged and waiting for a place when the suspension comes: refused, without a look."""
    slow.burn = BURN
    pacer = Pacer(1)
    replies = at_once(8, lambda at: ask(curator, at, "eve", pacer))
    kinds = [type(each) for each in replies]
    assert kinds.count(EngineTimeoutError) == 3 and kinds.count(NotAllowedError) == 5
    assert standings(curator.ledger)[ANALYST, "eve"].late == 3


def test_a_process_that_ends_before_the_cap_does_not_take_its_lateness_along(curator, slow, monkeypatch):
    """Lateness shows at the fixed time. Whoever has the process killed before the cap has been late all the same."""
    slow.burn = BURN
    with monkeypatch.context() as killed:
        killed.setattr("dalenius.ledger.suspensions.record_late", lambda *_, **__: None)
        for at in range(3):
            late(curator, at)
    slow.burn = 0.0
    before = state(curator)
    with pytest.raises(NotAllowedError, match="suspended"):
        ask(curator, 10)
    assert state(curator) == before and standings(curator.ledger)[ANALYST, "eve"].late == 3
    assert ask(curator, 10, "bob") is not None
    resume(curator.ledger, (ANALYST, "eve"), "the machine went down")
    assert ask(curator, 10) is not None


def test_what_was_overdue_counts_until_it_is_known_whose_work_it_was(curator):
    ledger = curator.ledger
    for charge in (101, 102, 103):
        record_overdue(ledger, charge=charge, analyst="eve", dataset="visits", most=3)
    with pytest.raises(NotAllowedError, match="suspended"):
        ask(curator, 1)
    record_late(ledger, charge=102, analyst="eve", dataset="visits", own=False, most=3)
    assert standings(ledger)[ANALYST, "eve"].late == 2
    assert ask(curator, 1) is not None
    record_late(ledger, charge=101, analyst="eve", dataset="visits", own=True, most=3)
    assert standings(ledger)[ANALYST, "eve"].late == 2  # counted once
    assert not list(ledger.records(("suspension",)))


def test_the_policy_says_how_many(tmp_path, slow):
    curator = table(tmp_path, "late = 1\n")
    slow.burn = BURN
    late(curator, 0)
    with pytest.raises(NotAllowedError):
        ask(curator, 1)
    curator.ledger.database.close()


def test_many_analysts_together_close_the_data_set_until_the_owner_opens_it(tmp_path, slow):
    curator = table(tmp_path, "late = 1\n")
    for at in range(ALL - 1):
        record_late(curator.ledger, charge=at, analyst="eve", dataset="visits", own=True, most=1)
        resume(curator.ledger, (ANALYST, "eve"), "they may go on")  # which does not count the data set anew
    ask(curator, 99, "ana")
    slow.burn = BURN
    late(curator, 0)
    resume(curator.ledger, (ANALYST, "eve"), "they may go on")
    slow.burn = 0.0
    before = state(curator)
    for who in WHO:
        with pytest.raises(NotAllowedError, match="'visits' are suspended"):
            ask(curator, 100, who)
    assert state(curator) == before
    assert [each.data["what"] for each in curator.ledger.records(("note",)) if each.data.get("alarm") == "suspended"][
        -1
    ] == "dataset"
    resume(curator.ledger, (DATASET, "visits"), "the machine was too small")
    assert ask(curator, 100, "bob") is not None
    verify(curator.ledger)
    curator.ledger.database.close()


def test_it_outlives_the_process_and_holds_in_every_other(tmp_path):
    """Over HTTP, against real servers: two processes on one home, then a third one."""
    home = table(tmp_path).home

    def one(client: Client, at: int) -> Reply:
        return client.ask(f"SELECT COUNT(*) AS n FROM visits WHERE amount > {at}", epsilon=0.01)

    with planting(home) as (server, planted):
        eve, owner = server.analyst("eve"), server.owner()
        assert one(server.analyst("eve", trusted=True), 1000).status == 200  # which is never late
        planted(sleep=ANSWER + 0.05)
        assert [one(eve, at).status for at in range(2)] == [503] * 2  # the machine was busy: not counted
        planted(burn=BURN)
        assert [one(eve, at).json["code"] for at in range(10, 13)] == ["engine.timeout"] * 3
        planted()
        paid = charges(home, "eve")
        refused = one(eve, 20)
        assert (refused.status, refused.json["code"]) == (422, "policy.not-allowed")
        assert refused.json["charge"]["epsilon"] == 0 and charges(home, "eve") == paid
        assert one(eve, 1000).json["free"] and eve.get("/v1/budget").status == 200
        assert eve.post("/v1/preview", {"sql": "SELECT COUNT(*) AS n FROM visits"}).status == 200
        with planting(home) as (second, _):  # a second process on the same home
            assert one(second.analyst("eve"), 21).json["code"] == "policy.not-allowed"
            assert one(second.analyst("bob", trusted=True), 21).status == 200
        (found,) = [each for each in owner.get("/v1/analysts").json["standings"] if each["analyst"] == "eve"]
        assert (found["state"], found["late"], found["by"]) == ("suspended", 3, "curator")
    with planting(home) as (server, planted):  # and after a restart
        eve, owner = server.analyst("eve"), server.owner()
        assert one(eve, 22).json["code"] == "policy.not-allowed"
        for bad in ({}, {"reason": ""}, {"reason": "  "}):
            assert owner.post("/v1/analysts/eve/resume", bad).status == 400
        assert server.auditor().post("/v1/analysts/eve/resume", {"reason": "let me"}).status == 403
        assert eve.post("/v1/analysts/eve/resume", {"reason": "let me"}).status == 403
        assert owner.post("/v1/analysts/nobody/suspend", {"reason": "who is it"}).status == 400
        lifted = owner.post("/v1/analysts/eve/resume", {"reason": "we talked"})
        assert (lifted.status, lifted.json["state"], lifted.json["late"]) == (200, "active", 0)
        assert one(server.analyst("eve", trusted=True), 22).status == 200
        assert owner.post("/v1/datasets/visits/suspend", {"reason": "a look at it first"}).json["state"] == "suspended"
        assert one(server.analyst("bob"), 30).json["code"] == "policy.not-allowed"
        assert owner.post("/v1/datasets/visits/resume", {"reason": "all is well"}).json["state"] == "active"
        assert one(server.analyst("bob", trusted=True), 30).status == 200
    ledger = Ledger.open(home)
    verify(ledger)
    assert {each.data["by"].partition(":")[0] for each in ledger.records(("suspension",))} == {"curator", "token"}
    ledger.database.close()
