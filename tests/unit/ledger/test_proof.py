"""What is known of the history: followed by every process, kept in a checkpoint, lost or forged without harm."""

import json
import shutil
import threading

import pytest

from dalenius.errors import DaleniusError, LedgerCorruptError
from dalenius.ledger import Ledger, proof, verify
from dalenius.ledger.chain import digest
from dalenius.ledger.proof import CHECKPOINT
from dalenius.ledger.suspensions import (
    ANALYST,
    DATASET,
    Standing,
    record_late,
    record_overdue,
    standings,
    suspend,
)
from dalenius.ledger.tokens import Role, Tokens

RETRY = (digest(b"ana first"), digest(b"count"))


@pytest.fixture
def kept(ledger, request_for, grant, monkeypatch):
    """A ledger with something of everything, and a checkpoint of it."""
    monkeypatch.setattr(proof, "_WORTH", 1)
    ledger.ask(request_for("first", retry=RETRY), lambda claim: b"1")
    grant(ledger, "first", "bob")
    ledger.fail(ledger.charge(request_for("failed", 0.1)))
    ledger.charge(request_for("running", 0.1))
    ledger.record("note", {"text": "ünïcode"})
    record_late(ledger, charge=8, analyst="ana", dataset="students", own=True, most=3)
    record_overdue(ledger, charge=9, analyst="cy", dataset="students", most=1)
    suspend(ledger, (ANALYST, "bob"), "he left the project")
    Tokens(ledger).create(Role.ANALYST, "ana", note="the notebook")
    Tokens(ledger).revoke(Tokens(ledger).create(Role.AUDITOR)[1].id)
    ledger.database.close()
    (ledger.home / CHECKPOINT).unlink(missing_ok=True)
    assert Ledger.open(ledger.home).head.count > 8
    assert (ledger.home / CHECKPOINT).stat().st_mode & 0o777 == 0o600
    return ledger


def state(home):
    """All that is known of a history, and how many entries were read for it."""
    opened, read = Ledger.open(home), list[str]()
    opened.database.connection.set_trace_callback(read.append)
    with opened.view() as view:
        found = view.state
    opened.database.close()
    start = next(int(each.split(">=")[1].split()[0]) for each in read if "number >=" in each)
    return found, found.count - start


def test_a_checkpoint_holds_all_that_the_history_says(kept, request_for):
    (kept.home / CHECKPOINT).rename(kept.home / "aside")
    whole, read = state(kept.home)
    assert read == whole.count
    (kept.home / "aside").rename(kept.home / CHECKPOINT)
    assert state(kept.home) == (whole, 0)
    kept.charge(request_for("more", 0.1))
    newer, read = state(kept.home)
    assert newer.count == whole.count + 1 and read == 1
    verify(kept)


def test_who_may_ask_is_the_same_from_a_checkpoint(kept):
    opened = Ledger.open(kept.home)
    found = standings(opened)
    assert found == standings(kept) and found[ANALYST, "bob"].suspended
    assert found[ANALYST, "ana"] == Standing(late=1) and found[DATASET, "students"] == Standing(late=2)
    assert found[ANALYST, "cy"] == Standing(True, 1, reason="1 answers were late")
    tokens = Tokens(opened).all()
    assert tokens == Tokens(kept).all() and [each.state for each in tokens] == ["active", "revoked"]
    assert type(tokens[0].role) is Role


@pytest.mark.parametrize("how", ["missing", "empty", "flipped", "garbage", "foreign", "unreadable"])
def test_a_checkpoint_that_is_none_is_done_without(kept, request_for, tmp_path, how):
    file, (whole, _) = kept.home / CHECKPOINT, state(kept.home)
    content = bytearray(file.read_bytes())
    if how == "missing":
        file.unlink()
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "flipped":
        content[content.index(b'"epsilon":3.0') + 10] ^= 1
        file.write_bytes(content)
    elif how == "garbage":
        file.write_bytes(b"0" * 64 + b"{")
    elif how == "foreign":
        other = Ledger.create(tmp_path / "other")
        other.head  # noqa: B018
        shutil.copy(other.home / CHECKPOINT, file)
    else:
        file.unlink()
        file.mkdir()
    assert state(kept.home) == (whole, whole.count)
    assert Ledger.open(kept.home).ask(request_for("first"), lambda claim: b"no").free


def test_a_checkpoint_of_another_history_is_not_used(kept, request_for, tmp_path):
    """With the right key: a copy of the home went its own way."""
    kept.database.close()
    fork = shutil.copytree(kept.home, tmp_path / "fork")
    (fork / CHECKPOINT).unlink()
    Ledger.open(fork).record("note", {"text": "another story"})
    kept.record("note", {"text": "ours"})
    assert Ledger.open(fork).head.count == kept.head.count
    shutil.copy(fork / CHECKPOINT, kept.home / CHECKPOINT)
    whole, read = state(kept.home)
    assert read == whole.count and whole.head == kept.head.hash


def test_a_checkpoint_that_is_ahead_does_not_excuse_a_history_that_was_cut(kept):
    connection = kept.database.connection
    connection.execute("DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)")
    kept.database.close()
    with pytest.raises(LedgerCorruptError, match="had"):
        Ledger.open(kept.home)


def test_an_entry_below_the_checkpoint_is_proved_when_it_is_read(kept, request_for):
    _, read = state(kept.home)
    assert read == 0
    connection = kept.database.connection
    connection.execute("UPDATE entries SET body = replace(body, '0.5', '0.4') WHERE kind = 'charge'")
    opened = Ledger.open(kept.home)
    with pytest.raises(LedgerCorruptError, match="was changed"):
        opened.ask(request_for("first"), lambda claim: b"no")
    with pytest.raises(LedgerCorruptError, match="was changed"):
        list(opened.entries())
    with pytest.raises(LedgerCorruptError, match="was changed"):
        list(opened.records(("charge",)))


def test_few_entries_are_not_worth_a_checkpoint_and_a_running_process_writes_none(ledger, request_for):
    for number in range(20):
        ledger.charge(request_for(f"q{number}", 0.01))
    Ledger.open(ledger.home).head  # noqa: B018
    assert not (ledger.home / CHECKPOINT).exists()


def test_a_checkpoint_says_which_form_it_has(kept, monkeypatch):
    whole, _ = state(kept.home)
    monkeypatch.setattr(proof, "FORMAT", proof.FORMAT + 1)
    assert state(kept.home) == (whole, whole.count)
    assert json.loads((kept.home / CHECKPOINT).read_bytes()[64:])["format"] == proof.FORMAT


def test_a_transaction_that_is_undone_leaves_no_trace_in_what_is_known(ledger, request_for):
    before = ledger.head

    def break_off():
        with ledger.turn() as (_, append):
            append("note", {"text": "never"})
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        break_off()
    assert ledger.head == before
    ledger.charge(request_for())
    verify(ledger)


def test_threads_and_processes_see_one_history(ledger, request_for):
    """Readers beside writers, through one ledger and through another one on the same home."""
    other, wrong = Ledger.open(ledger.home), []

    def writing(using, name):
        try:
            for number in range(15):
                using.ask(request_for(f"{name}{number}", 0.01), lambda claim: b"x")
        except (DaleniusError, AssertionError) as error:
            wrong.append(error)
        finally:
            using.database.close()

    def reading(using):
        try:
            count = 0
            for _ in range(60):
                entries = list(using.entries())
                assert [each.number for each in entries] == list(range(1, len(entries) + 1))
                assert len(entries) >= count
                count = len(entries)
                assert len(list(using.records(("charge",)))) >= using.balance("students").charges - 30
        except (DaleniusError, AssertionError) as error:
            wrong.append(error)
        finally:
            using.database.close()

    threads = [threading.Thread(target=writing, args=(each, name)) for each, name in ((ledger, "a"), (other, "b"))]
    threads += [threading.Thread(target=reading, args=(each,)) for each in (ledger, other, ledger)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert ledger.head == other.head and ledger.balance("students").charges == 30
    verify(ledger)
