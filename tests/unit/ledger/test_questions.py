"""A request that comes twice is charged once, whatever happened in between."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from dalenius.errors import (
    NOTHING,
    EngineFailedError,
    EngineTimeoutError,
    InputError,
    LedgerCorruptError,
    NotAllowedError,
    SourceChangedError,
)
from dalenius.ledger import Answered, Claim, Ledger, Waiting, verify
from dalenius.ledger.chain import digest

FIRST = (digest(b"ana first"), digest(b"count"))
OTHER_BODY = (FIRST[0], digest(b"sum"))
SECOND = (digest(b"ana second"), digest(b"count"))


def never(claim):
    raise AssertionError("nothing may be looked at")


def state(ledger):
    """All that a charge would change."""
    return ledger.head, *(ledger.balance("students", who).charges for who in ("", "ana", "bob"))


def dead(monkeypatch):
    monkeypatch.setattr("dalenius.ledger.questions.is_dead", lambda holder: True)


def test_a_request_that_comes_again_gets_its_release_and_is_not_charged_again(ledger, request_for):
    first = ledger.ask(request_for("data version 1", retry=FIRST), lambda claim: b"42")
    before = state(ledger)
    for epsilon in (0.5, 0.9):
        again = ledger.ask(request_for("data version 1", epsilon, retry=FIRST), never)
        assert (again.content, again.free, again.receipt) == (b"42", True, first.receipt)
    # its bytes are in the terms of a plan that is no longer the question's
    with pytest.raises(SourceChangedError, match="answered before its data") as caught:
        ledger.ask(request_for("data version 2", retry=FIRST), never)
    assert caught.value.charge == NOTHING
    assert state(ledger) == before
    # another key is another request: what it asks for is not stored
    assert isinstance(ledger.charge(request_for("data version 2", retry=SECOND)), Claim)
    verify(ledger)


def test_a_key_names_one_request(ledger, request_for):
    ledger.ask(request_for(retry=FIRST), lambda claim: b"42")
    before = state(ledger)
    for key in ("count", "sum"):
        with pytest.raises(InputError, match="used for another request") as caught:
            ledger.ask(request_for(key, retry=OTHER_BODY), never)
        assert caught.value.code == "input.invalid" and caught.value.charge == NOTHING
    assert state(ledger) == before
    verify(ledger)


def test_keys_of_two_analysts_are_two_keys(ledger, request_for):
    ledger.ask(request_for(retry=FIRST), lambda claim: b"42")
    assert isinstance(ledger.charge(request_for("sum", analyst="bob", retry=OTHER_BODY)), Claim)
    verify(ledger)


def test_of_two_threads_with_one_key_one_is_charged(ledger, request_for):
    start, found, worked = threading.Barrier(2, timeout=60), [], []

    def work(claim):
        worked.append(claim)
        return b"42"

    def asking(key):
        start.wait()
        found.append(ledger.ask(request_for(key, retry=FIRST), work))
        ledger.database.close()

    threads = [threading.Thread(target=asking, args=("count",)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.content for each in found] == [b"42", b"42"] and len(worked) == 1
    assert sorted(each.free for each in found) == [False, True]
    assert ledger.balance("students").charges == ledger.balance("students", "ana").charges == 1
    verify(ledger)


def test_a_request_in_flight_makes_its_copy_wait(ledger, request_for):
    claim = ledger.charge(request_for("version 1", retry=FIRST))
    assert ledger.charge(request_for("version 2", retry=FIRST)) == Waiting(claim.number, claim.holder)
    ledger.answer(claim, b"42")
    assert isinstance(ledger.charge(request_for("version 1", retry=FIRST)), Answered)


def test_a_crash_between_charge_and_answer_is_charged_once(ledger, request_for):
    """The process is killed at its work; the request comes again to another one."""
    ledger.database.close()
    code = f"""
import os, signal
from pathlib import Path
from dalenius.accounting.events import Zcdp
from dalenius.ledger import Ledger, Request
request = Request("students", "ana", "count", 0.5, Zcdp(1e-9), question="count", retry={FIRST!r})
Ledger.open(Path({str(ledger.home)!r})).ask(request, lambda claim: os.kill(os.getpid(), signal.SIGKILL))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ), timeout=60)
    assert done.returncode == -signal.SIGKILL
    again = Ledger.open(ledger.home)
    assert again.balance("students").charges == 1
    answered = again.ask(request_for(retry=FIRST), lambda claim: b"42", patience=5)
    assert answered.content == b"42" and not answered.free
    assert again.ask(request_for(retry=FIRST), never).free
    assert again.balance("students").charges == again.balance("students", "ana").charges == 1
    verify(again)


def test_a_crash_before_the_data_changed_ends_the_question(ledger, request_for, monkeypatch):
    old = ledger.charge(request_for("version 1", retry=FIRST))
    dead(monkeypatch)
    for _ in range(2):
        with pytest.raises(EngineFailedError, match="failed when it was first asked") as caught:
            ledger.ask(request_for("version 2", retry=FIRST), never)
        assert caught.value.charge == NOTHING and "not charged again" in caught.value.why
    monkeypatch.undo()
    assert [entry.data for entry in ledger.records(("failure",))] == [{"charge": old.number}]
    assert ledger.balance("students").charges == 1
    verify(ledger)


def test_a_taken_over_request_has_the_price_that_was_charged(ledger, request_for, monkeypatch):
    old = ledger.charge(request_for(epsilon=0.5, retry=FIRST))
    dead(monkeypatch)
    new = ledger.charge(request_for(epsilon=0.7, retry=FIRST))
    monkeypatch.undo()
    assert (new.number, new.fence, new.epsilon) == (old.number, old.fence + 1, 0.5)
    ledger.answer(new, b"42")
    verify(ledger)


def test_a_request_that_failed_is_not_charged_again(ledger, request_for):
    def late(claim):
        raise EngineTimeoutError("Late.", why="Slow.", fix="Wait.")

    with pytest.raises(EngineTimeoutError) as first:
        ledger.ask(request_for(retry=FIRST), late)
    assert first.value.charge.epsilon == 0.5
    before = state(ledger)
    with pytest.raises(EngineFailedError, match="failed when it was first asked") as caught:
        ledger.ask(request_for(retry=FIRST), never)
    assert caught.value.charge == NOTHING and "ε = 0.5" in caught.value.why
    assert state(ledger) == before
    # with another key it is a new question at its full price
    assert not ledger.ask(request_for(retry=SECOND), lambda claim: b"42").free
    assert ledger.balance("students").charges == 2
    verify(ledger)


def test_an_old_grant_that_comes_again_is_paid_once(ledger, request_for, grant):
    """Bob paid for ana's answer from his allotment; after a refresh his copy must not pay again."""
    ledger.ask(request_for("version 1"), lambda claim: b"42")
    granted = grant(ledger, "version 1", retry=FIRST)
    before = state(ledger)
    with pytest.raises(SourceChangedError):
        ledger.ask(request_for("version 2", analyst="bob", retry=FIRST), never)
    again = ledger.ask(request_for("version 1", analyst="bob", retry=FIRST), never)
    assert (again.content, again.free, again.receipt) == (b"42", True, granted.receipt)
    with pytest.raises(InputError, match="another request"):
        ledger.ask(request_for("version 1", analyst="bob", retry=OTHER_BODY), never)
    assert state(ledger) == before
    verify(ledger)


def test_what_was_refused_leaves_no_trace_and_may_be_asked_again(ledger, request_for):
    before = ledger.head
    with pytest.raises(Exception, match="does not cover"):
        ledger.ask(request_for(epsilon=2.9, retry=FIRST), never)
    assert ledger.head == before
    assert isinstance(ledger.charge(request_for(retry=OTHER_BODY)), Claim)


def test_who_may_not_ask_any_more_gets_nothing_again(ledger, request_for):
    ledger.ask(request_for(retry=FIRST), lambda claim: b"42")
    ledger.end_allotment("students", "ana")
    with pytest.raises(NotAllowedError):
        ledger.ask(request_for(retry=FIRST), never)


@pytest.mark.parametrize("bad", ["", "x", FIRST[0].upper(), FIRST[0] + "0", "\ud800" * 64])
def test_a_name_of_another_form_never_reaches_the_file(request_for, bad):
    for retry in ((bad, FIRST[1]), (FIRST[0], bad)):
        with pytest.raises(InputError):
            request_for(retry=retry)


@pytest.fixture
def history(ledger, request_for, grant):
    """A charge, a failure and a grant with a name, and a charge without."""
    ledger.ask(request_for(retry=FIRST), lambda claim: b"42")
    ledger.fail(ledger.charge(request_for("sum", retry=SECOND)))
    grant(ledger, retry=FIRST)
    ledger.ask(request_for("average"), lambda claim: b"42")
    verify(ledger)
    return ledger


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM retries",
        "DELETE FROM retries WHERE analyst = 'bob'",
        "UPDATE retries SET question = question + 1 WHERE analyst = 'bob'",
        f"UPDATE retries SET body = '{'0' * 64}' WHERE analyst = 'ana'",
        "UPDATE retries SET analyst = 'eve' WHERE analyst = 'bob'",
        f"INSERT INTO retries VALUES ('ana', '{'0' * 64}', '{'0' * 64}', 5)",
    ],
)
def test_a_changed_table_of_requests_is_seen(history, statement):
    history.database.connection.execute(statement)
    with pytest.raises(LedgerCorruptError, match="requests that may come again"):
        verify(history)


def test_somebody_elses_answer_is_not_given_out(history, request_for):
    history.database.connection.execute(f"INSERT INTO retries VALUES ('bob', '{SECOND[0]}', '{SECOND[1]}', 10)")
    (charge,) = (entry for entry in history.records(("charge",)) if entry.number == 10)
    assert charge.data["analyst"] == "ana"
    with pytest.raises(LedgerCorruptError, match="requests that may come again"):
        history.ask(request_for(analyst="bob", retry=SECOND), never)


def test_a_request_that_points_nowhere_is_refused_and_not_charged(history, request_for):
    history.database.connection.execute("UPDATE retries SET question = 999")
    before = state(history)
    with pytest.raises(LedgerCorruptError):
        history.ask(request_for("new", retry=FIRST), never)
    assert state(history) == before


def test_a_history_that_pays_twice_for_one_request_is_seen(history):
    """Written past the rules: bob's name on the grant of another answer."""
    grant, answer = next(history.records(("grant",))), [*history.records(("answer",))][-1]
    assert grant.data["charge"] != answer.data["charge"] and "retry" in grant.data
    history.append("grant", grant.data | answer.data)
    with pytest.raises(LedgerCorruptError, match="was not allowed") as caught:
        verify(history)
    assert "same request twice" in caught.value.why


def test_a_charge_written_twice_is_seen_by_its_request(history):
    history.append("charge", next(history.records(("charge",))).data)
    with pytest.raises(LedgerCorruptError, match="was not allowed") as caught:
        verify(history)
    assert "same request twice" in caught.value.why
