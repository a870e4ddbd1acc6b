"""Every way to bend the history is seen: flips, removals, reordering, cut tails, old copies, tables beside it."""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from dalenius.errors import DaleniusError, InputError, LedgerCorruptError, LedgerUnavailableError
from dalenius.ledger import Budget, Ledger, verify
from dalenius.ledger.database import MIGRATIONS


@pytest.fixture
def history(ledger, request_for, grant):
    """A ledger with charges, answers, a failure, an old grant and owner actions; everything in the main file."""
    for number in range(3):
        ledger.ask(request_for(f"q{number}", 0.3), lambda claim: b"forty-two")
    grant(ledger, "q0")
    ledger.fail(ledger.charge(request_for("broken", 0.1)))
    ledger.record("policy", {"table": "students", "version": 1})
    ledger.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    verify(ledger)
    return ledger


def broken_by(ledger, change):
    """The error that opening or verifying raises after ``change(connection)``; the file is put back."""
    saved = ledger.home.parent / "saved"
    shutil.copytree(ledger.home, saved)
    try:
        connection = sqlite3.connect(ledger.home / "ledger.sqlite", isolation_level=None)
        change(connection)
        connection.close()
        return error_of(ledger.home)
    finally:
        ledger.database.close()
        shutil.rmtree(ledger.home)
        saved.rename(ledger.home)


def error_of(home):
    try:
        opened = Ledger.open(home)
        try:
            verify(opened)
        finally:
            opened.database.close()
    except DaleniusError as error:
        return error
    return None


def test_flipping_any_byte_of_an_entry_is_seen(history):
    """Every byte of every column of one entry of each kind."""
    columns = ("kind", "time", "body", "hash")
    with history.database.reading() as connection:
        numbers = [row[0] for row in connection.execute("SELECT min(number) FROM entries GROUP BY kind")]
        values = {
            (number, column): connection.execute(
                f"SELECT CAST({column} AS BLOB) FROM entries WHERE number = ?", (number,)
            ).fetchone()[0]
            for number in numbers
            for column in columns
        }
    connection = sqlite3.connect(history.home / "ledger.sqlite", isolation_level=None)
    flips = 0
    for (number, column), value in values.items():
        for place in range(len(value)):
            flipped = bytearray(value)
            flipped[place] ^= 1 << (place % 7)
            kind = "BLOB" if column == "hash" else "TEXT"
            update = f"UPDATE entries SET {column} = CAST(? AS {kind}) WHERE number = ?"
            connection.execute(update, (bytes(flipped), number))
            assert error_of(history.home) is not None, (number, column, place)
            connection.execute(update, (value, number))
            flips += 1
    connection.close()
    assert flips > 1000
    verify(history)


def test_flipping_bytes_of_the_file_itself_is_seen(history):
    """The record of one entry as it lies in the file, byte by byte: SQLite complains, or the chain does."""
    with history.database.reading() as connection:
        body, hashed = connection.execute(
            "SELECT body, hash FROM entries WHERE kind = 'charge' ORDER BY number LIMIT 1"
        ).fetchone()
    history.database.close()
    file = history.home / "ledger.sqlite"
    content = file.read_bytes()
    start, end = content.index(body.encode()) - 40, content.index(hashed) + len(hashed)
    for place in range(start, end):
        changed = bytearray(content)
        changed[place] ^= 0x04
        file.write_bytes(changed)
        error = error_of(history.home)
        assert error is not None and error.exit_code in (5, 6), place - start
    file.write_bytes(content)
    assert error_of(history.home) is None


def test_removing_an_entry_is_seen_and_named(history):
    error = broken_by(history, lambda connection: connection.execute("DELETE FROM entries WHERE number = 6"))
    assert isinstance(error, LedgerCorruptError) and "Entry 6 is missing" in error.message


def test_removing_an_entry_and_closing_the_gap_is_seen(history):
    def change(connection):
        connection.execute("DELETE FROM entries WHERE number = 6")
        connection.execute("UPDATE entries SET number = number - 1 WHERE number > 6")

    assert isinstance(broken_by(history, change), LedgerCorruptError)


def test_reordering_is_seen_and_named(history):
    def change(connection):
        connection.execute("UPDATE entries SET number = -1 WHERE number = 6")
        connection.execute("UPDATE entries SET number = 6 WHERE number = 7")
        connection.execute("UPDATE entries SET number = 7 WHERE number = -1")

    error = broken_by(history, change)
    assert isinstance(error, LedgerCorruptError) and "Entry 6 was changed" in error.message


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_cut_tail_is_seen(history, cut):
    last = history.head.count

    def change(connection):
        connection.execute("DELETE FROM entries WHERE number > ?", (last - cut,))

    error = broken_by(history, change)
    assert isinstance(error, LedgerCorruptError) and str(last - cut) in error.message


def test_a_restored_old_copy_is_seen_and_cannot_be_spent_from(history, request_for):
    history.database.close()
    old = (history.home / "ledger.sqlite").read_bytes()
    history.ask(request_for("later", 0.4), lambda claim: b"x")
    history.database.close()
    (history.home / "ledger.sqlite").write_bytes(old)
    for file in ("ledger.sqlite-wal", "ledger.sqlite-shm"):
        (history.home / file).unlink(missing_ok=True)
    with pytest.raises(LedgerCorruptError, match="had"):
        Ledger.open(history.home)
    with pytest.raises(LedgerCorruptError, match="had"):
        history.charge(request_for("again", 0.4))


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_a_file_that_is_exchanged_while_in_use_is_not_charged(history, request_for, tmp_path, how):
    history.charge(request_for("before", 0.1))  # the connection is open, and stays so
    shutil.copy(history.home / "ledger.sqlite", tmp_path / "old")
    if how == "replaced":
        (tmp_path / "old").replace(history.home / "ledger.sqlite")
    else:
        (history.home / "ledger.sqlite").unlink()
    with pytest.raises(LedgerCorruptError, match="replaced or removed"):
        history.ask(request_for("after", 0.1), lambda claim: pytest.fail("looked without paying"))


def test_ledger_and_anchor_restored_together_are_seen_by_a_head_or_a_receipt(history, request_for, tmp_path):
    history.database.close()
    shutil.copytree(history.home, tmp_path / "old")
    later = history.ask(request_for("later", 0.4), lambda claim: b"x")
    head = history.head.hash.hex()
    assert verify(history, expect=head, given=[later.receipt]).receipts == 1
    old = Ledger.open(tmp_path / "old")
    verify(old)  # by itself it holds: this is what docs/sharp-edges.md says
    with pytest.raises(LedgerCorruptError, match="expected head"):
        verify(old, expect=head)
    with pytest.raises(LedgerCorruptError, match="is missing"):
        verify(old, given=[later.receipt])


def test_a_fork_of_the_history_is_seen_by_a_receipt(history, request_for, tmp_path):
    history.database.close()
    shutil.copytree(history.home, tmp_path / "fork")
    other = Ledger.open(tmp_path / "fork")
    other.record("note", {"text": "another story"})
    receipt = history.ask(request_for("later", 0.4), lambda claim: b"x").receipt
    other.record("note", {"text": "and on"})
    with pytest.raises(LedgerCorruptError, match="receipt"):
        verify(other, given=[receipt])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE totals SET loss = '0'",
        "DELETE FROM totals",
        "UPDATE totals SET charges = charges - 1",
        "INSERT INTO totals VALUES ('students', '', 'eve', '0', '0', 0)",
        """UPDATE budgets SET body = replace(body, '"epsilon":3.0', '"epsilon":9.0')""",
        "UPDATE allotments SET epsilon = 9.0",
        "INSERT INTO allotments VALUES ('students', 'eve', 3.0)",
        "UPDATE releases SET content = CAST('forty-one' AS BLOB)",
        "DELETE FROM releases",
        "UPDATE questions SET epsilon = 9.0",
        "UPDATE questions SET state = 'claimed', answer = NULL",
        "UPDATE questions SET key = 'other'",
        "DELETE FROM questions",
        "INSERT INTO grants VALUES (5, 'eve', 6)",
        "DELETE FROM grants",
    ],
)
def test_tables_beside_the_history_are_derived_again_and_compared(history, statement):
    assert isinstance(broken_by(history, lambda connection: connection.execute(statement)), LedgerCorruptError)


def test_a_changed_release_is_not_given_out(history, request_for):
    connection = sqlite3.connect(history.home / "ledger.sqlite", isolation_level=None)
    connection.execute("UPDATE releases SET content = CAST('forty-one' AS BLOB)")
    with pytest.raises(LedgerCorruptError, match="changed"):
        history.ask(request_for("q0", 0.3), lambda claim: b"no")


def test_the_anchor_is_guarded_too(history):
    anchor = history.home / "ledger.anchor"
    content = anchor.read_bytes()
    newest = max(range(2), key=lambda slot: int(content[slot * 256 : slot * 256 + 256].split()[0]))
    flipped = bytearray(content)
    flipped[newest * 256] ^= 1  # one slot spoiled, as by a torn write: the other still serves
    anchor.write_bytes(flipped)
    assert error_of(history.home) is None
    anchor.write_bytes(b"0" * 512)
    assert isinstance(error_of(history.home), LedgerCorruptError)
    anchor.unlink()
    assert isinstance(error_of(history.home), LedgerCorruptError)


def test_a_wrong_key_is_seen(history):
    (history.home / "keys" / "chain.key").write_text("00" * 32)
    assert isinstance(error_of(history.home), LedgerCorruptError)
    (history.home / "keys" / "chain.key").write_text("not a key")
    assert isinstance(error_of(history.home), LedgerUnavailableError)


def test_a_missing_ledger_is_told_from_a_removed_one(history, tmp_path):
    assert isinstance(error_of(tmp_path / "nowhere"), LedgerUnavailableError)
    history.database.close()
    (history.home / "ledger.sqlite").unlink()
    error = error_of(history.home)
    assert isinstance(error, LedgerCorruptError) and "removed" in error.message


def test_a_newer_schema_is_left_alone(history):
    connection = sqlite3.connect(history.home / "ledger.sqlite", isolation_level=None)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    error = error_of(history.home)
    assert isinstance(error, LedgerUnavailableError) and "Upgrade" in error.fix


def test_garbage_is_not_a_ledger(history):
    history.database.close()
    (history.home / "ledger.sqlite").write_bytes(b"garbage" * 1000)
    error = error_of(history.home)
    assert error is not None and error.exit_code in (5, 6)


@pytest.mark.parametrize("expect", ["", "abc", "g" * 64])
def test_a_head_that_is_none_is_refused(history, expect):
    with pytest.raises(InputError):
        verify(history, expect=expect)


def test_a_locked_ledger_is_unavailable_and_releases_nothing(history, request_for, monkeypatch):
    monkeypatch.setattr("dalenius.ledger.database.BUSY_SECONDS", 0.1)
    blocker = sqlite3.connect(history.home / "ledger.sqlite", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    waiting = Ledger.open(history.home)
    with pytest.raises(LedgerUnavailableError, match="Another process"):
        waiting.ask(request_for("new", 0.1), lambda claim: pytest.fail("looked without paying"))
    blocker.execute("ROLLBACK")


def test_a_full_disk_releases_nothing_and_loses_nothing(tmp_path, request_for):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("students", Budget(3.0, 1e-6))
    ledger.set_allotment("students", "ana", 3.0)
    connection = ledger.database.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    answered, looked, refusal = 0, 0, None
    while refusal is None:
        try:
            ledger.ask(request_for(f"q{answered}", 0.01), lambda claim: b"x" * 3000)
            answered += 1
        except LedgerUnavailableError as error:
            refusal = error
    assert "no room" in refusal.why
    connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    assert verify(ledger).releases == answered
    charged = ledger.balance("students").charges
    assert charged in (answered, answered + 1)

    def work(claim):
        nonlocal looked
        looked += 1
        return b"x"

    ledger.ask(request_for(f"q{answered}", 0.01), work, patience=1)  # taken up again, charged once
    assert ledger.balance("students").charges == answered + 1 and looked == 1


def test_a_read_only_ledger_is_unavailable(history, request_for):
    """In a child without root's powers, since root may write everything."""
    history.database.close()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(history.home, folder / "home")
        for file in (folder / "home").rglob("*"):
            file.chmod(0o555 if file.is_dir() else 0o444)
        (folder / "home").chmod(0o555)
        assert exit_code_without_powers(folder / "home", request_for("new", 0.1)) == 5
        (folder / "home").chmod(0o700)  # not even readable
        assert exit_code_without_powers(folder / "home", request_for("new", 0.1)) == (5 if os.getuid() == 0 else 0)


def exit_code_without_powers(home, request):
    child = os.fork()
    if child == 0:
        code = 9
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            Ledger.open(home).charge(request)
            code = 0
        except DaleniusError as error:
            code = error.exit_code
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
