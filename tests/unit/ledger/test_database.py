"""The file's schema: old ones are brought up to date, and what is asked often is found without reading everything."""

import sqlite3

import pytest

from dalenius.errors import LedgerCorruptError
from dalenius.ledger import Ledger, verify
from dalenius.ledger.chain import digest
from dalenius.ledger.database import MIGRATIONS

RETRY = (digest(b"ana first"), digest(b"count"))


def test_a_ledger_of_before_retries_is_brought_up_to_date(ledger, request_for):
    ledger.ask(request_for(), lambda claim: b"42")
    ledger.ask(request_for(analyst="bob"), lambda claim: b"no")
    spent, head = ledger.balance("students").spent, ledger.head
    ledger.database.close()
    with sqlite3.connect(ledger.home / "ledger.sqlite") as connection:
        connection.execute("DROP INDEX entries_by_kind")
        connection.execute("DROP TABLE retries")
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    assert len(MIGRATIONS) == 3
    again = Ledger.open(ledger.home)
    assert again.head == head and again.balance("students").spent == spent
    verify(again)
    assert again.ask(request_for(), lambda claim: b"no").free
    assert again.ask(request_for("sum", retry=RETRY), lambda claim: b"42").content == b"42"
    assert again.ask(request_for("sum", retry=RETRY), lambda claim: b"no").free
    verify(again)


def test_owner_actions_are_found_without_reading_every_charge(ledger, request_for):
    ledger.ask(request_for(), lambda claim: b"42")
    assert [entry.kind for entry in ledger.records(("budget", "policy"))] == ["budget"]  # reads on to the end, once
    read: list[str] = []
    ledger.database.connection.set_trace_callback(read.append)
    assert [entry.kind for entry in ledger.records(("budget", "policy"))] == ["budget"]
    ledger.database.connection.set_trace_callback(None)
    (listed,) = (each for each in read if "json_each" in each)
    assert "json_each('[2]')" in listed
    with ledger.database.reading() as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {listed}")]
    assert "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)" in plan


def test_an_entry_hidden_from_the_index_is_seen(ledger):
    """Who hides a revocation there leaves an index that does not fit its table."""
    ledger.record("token", {"action": "revoke", "id": "0" * 12})
    connection = ledger.database.connection
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET sql = sql || ' WHERE kind <> ''token''' WHERE name = 'entries_by_kind'"
    )
    ledger.database.close()
    with sqlite3.connect(ledger.home / "ledger.sqlite") as connection:
        connection.execute("REINDEX entries_by_kind")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ' WHERE kind <> ''token''', '') WHERE name = 'entries_by_kind'"
        )
    connection.close()
    opened = Ledger.open(ledger.home)
    assert [entry.kind for entry in opened.records(("token",))] == ["token"]  # found all the same
    with pytest.raises(LedgerCorruptError, match="pages of the file"):
        verify(opened)


def test_a_trigger_that_was_there_for_a_moment_does_not_stay_in_a_connection(ledger):
    """SQLite keeps the schema that it has read: a trigger of it would run though no file has it any more."""
    with sqlite3.connect(ledger.home / "ledger.sqlite", isolation_level=None) as other:
        other.execute("CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END")
        (version,) = other.execute("PRAGMA schema_version").fetchone()
        with pytest.raises(LedgerCorruptError, match="not as they were made"):
            ledger.record("note", {"said": "with it"})
        other.execute("PRAGMA writable_schema = ON")
        other.execute("DELETE FROM sqlite_schema WHERE type = 'trigger'")
        other.execute(f"PRAGMA schema_version = {version}")
    other.close()
    entry = ledger.record("note", {"said": "without it"})
    assert list(ledger.records(("note",)))[-1] == entry
    verify(ledger)
