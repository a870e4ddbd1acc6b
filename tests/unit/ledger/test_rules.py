"""Edits that are undone again, foreign triggers and views, damaged values: the rules are replayed, entry by entry."""

import os
import sqlite3

import pytest
from tests.conftest import LONG

from dalenius.errors import (
    BudgetError,
    DaleniusError,
    LedgerCorruptError,
    LedgerUnavailableError,
    NotAllowedError,
)
from dalenius.ledger import Ledger, verify


def edit(ledger, *statements):
    connection = sqlite3.connect(ledger.home / "ledger.sqlite", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def table(ledger, name):
    connection = sqlite3.connect(ledger.home / "ledger.sqlite")
    rows = connection.execute(f"SELECT * FROM {name}").fetchall()
    connection.close()
    return rows


def test_totals_lowered_for_a_while_buy_nothing(ledger, request_for):
    ledger.charge(request_for("q", 1.9))
    before = table(ledger, "totals")
    edit(ledger, "UPDATE totals SET loss = '0', charges = 0")
    for opened in (ledger, Ledger.open(ledger.home)):
        with pytest.raises(BudgetError):
            opened.charge(request_for("more", 1.9))
        with pytest.raises(LedgerCorruptError, match="running totals"):
            opened.charge(request_for("a little", 0.1))
    for *place, loss, delta, charges in before:
        edit(
            ledger,
            f"UPDATE totals SET loss = '{loss}', delta = '{delta}', charges = {charges} WHERE analyst = '{place[2]}'",
        )
    assert verify(ledger).charges == 1


def test_a_budget_raised_for_a_while_and_a_stranger_buy_nothing(ledger, request_for):
    [(_, body)] = table(ledger, "budgets")
    edit(
        ledger,
        f"UPDATE budgets SET body = '{body.replace('3.0', '50.0')}'",
        "INSERT INTO allotments VALUES ('students', 'eve', 50.0)",
    )
    for opened in (ledger, Ledger.open(ledger.home)):
        with pytest.raises(NotAllowedError):
            opened.charge(request_for("q", 20.0, "eve"))
        with pytest.raises(LedgerCorruptError, match="budgets"):
            opened.charge(request_for("q", 1.0, "ana"))
    edit(ledger, f"UPDATE budgets SET body = '{body}'", "DELETE FROM allotments WHERE analyst = 'eve'")
    assert verify(ledger).charges == 0


@pytest.mark.parametrize("first", ["answer", "fail"])
def test_a_question_that_ended_cannot_be_answered_again(ledger, request_for, first):
    claim = ledger.charge(request_for())
    if first == "answer":
        ledger.answer(claim, b"42")
    else:
        ledger.fail(claim)
    edit(ledger, "UPDATE questions SET state = 'claimed', answer = NULL, holder = 'x'", "DELETE FROM releases")
    with pytest.raises(LedgerUnavailableError, match="no longer ours"):
        ledger.answer(claim, b"43")
    if first == "answer":
        with pytest.raises(LedgerCorruptError):
            ledger.ask(request_for(), lambda claim: b"43")
    with pytest.raises(LedgerCorruptError):
        verify(ledger)


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TRIGGER t AFTER INSERT ON questions BEGIN UPDATE totals SET loss = '0'; END"],
        ["ALTER TABLE budgets RENAME TO real", "CREATE VIEW budgets AS SELECT * FROM real"],
        ["CREATE TABLE more (x)"],
        ["DROP INDEX questions_by_key"],
        ["ALTER TABLE entries ADD COLUMN more TEXT"],
        ["DROP TABLE grants"],
        ["PRAGMA user_version = 0"],
    ],
)
def test_a_changed_schema_is_refused_also_while_in_use(ledger, request_for, statements):
    ledger.charge(request_for("before", 0.1))
    edit(ledger, *statements)
    if "user_version" not in statements[0]:
        with pytest.raises(LedgerCorruptError):
            ledger.charge(request_for("after", 0.1))
    ledger.database.close()
    with pytest.raises(LedgerCorruptError):
        Ledger.open(ledger.home)


def test_entries_before_the_first_are_seen(ledger):
    edit(ledger, "INSERT INTO entries VALUES (-1, 'note', '', '{}', x'00')")
    with pytest.raises(LedgerCorruptError):
        verify(ledger)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE totals SET loss = 'abc'",
        "UPDATE budgets SET body = '{'",
        "UPDATE budgets SET body = '{}'",
        "UPDATE budgets SET body = '[]'",
        "UPDATE allotments SET epsilon = -1",
        "DELETE FROM releases",
        "UPDATE questions SET answer = 999",
        "UPDATE entries SET body = '[' WHERE kind = 'charge'",
        "INSERT INTO entries VALUES (9223372036854775807, 'note', '', '{}', x'00')",
    ],
)
def test_damaged_values_fail_the_check_with_the_right_code(ledger, request_for, statement):
    ledger.ask(request_for("stored", 0.1), lambda claim: b"42")
    edit(ledger, statement)
    for use in (lambda: verify(ledger), lambda: ledger.ask(request_for("stored", 0.1, "bob"), lambda claim: b"no")):
        try:
            use()
        except DaleniusError as error:
            assert error.exit_code in (2, 6) if "allotments" in statement else error.exit_code == 6  # noqa: PT017
    with pytest.raises(LedgerCorruptError):
        verify(ledger)


def test_receipts_for_one_entry_do_not_hide_each_other(ledger, request_for, tmp_path):
    import shutil

    ledger.database.close()
    shutil.copytree(ledger.home, tmp_path / "fork")
    genuine = ledger.ask(request_for("q", 0.3), lambda claim: b"1").receipt
    other = Ledger.open(tmp_path / "fork").ask(request_for("r", 0.3), lambda claim: b"2").receipt
    assert genuine.entry == other.entry
    for given in ([genuine, other], [other, genuine]):
        with pytest.raises(LedgerCorruptError, match="receipt"):
            verify(ledger, given=given)


def test_a_ledger_that_was_open_at_a_fork_is_refused_in_the_child(ledger, request_for):
    """SQLite's locks are the parent's there; what the child charged could be lost."""
    ledger.charge(request_for("parent", 0.1))
    child = os.fork()
    if child == 0:
        codes = []
        for use in (lambda: ledger.charge(request_for("child", 0.1)), lambda: Ledger.open(ledger.home)):
            try:
                use()
                codes.append(0)
            except LedgerUnavailableError:
                codes.append(5)
        os._exit(0 if codes == [5, 5] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ledger.charge(request_for("parent again", 0.1))
    ledger.database.close()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            Ledger.open(ledger.home).charge(request_for("child", 0.1))
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert verify(ledger).charges == 3


def test_an_interrupt_while_waiting_for_the_lock_leaves_no_transaction_open(ledger, request_for, monkeypatch):
    from dalenius.ledger import database

    def interrupted(self, connection):
        raise KeyboardInterrupt

    monkeypatch.setattr(database.Database, "_check", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(request_for())
    monkeypatch.undo()
    assert not ledger.database.connection.in_transaction
    ledger.charge(request_for())


def test_opening_and_verifying_beside_a_writer_never_cries_wolf(ledger, request_for):
    """A reader takes the anchor before its view of the file, so an honest writer is never behind it."""
    import threading

    stop, wrong = threading.Event(), []

    def writing():
        number = 0
        while not stop.is_set():
            number += 1
            try:
                ledger.charge(request_for(f"w{number}", 0.001))
            except BudgetError:
                return

    writer = threading.Thread(target=writing)
    writer.start()
    try:
        for _ in range(600 if LONG else 15):  # each takes longer than the one before: the writer goes on
            opened = Ledger.open(ledger.home)
            assert opened.head.count > 0
            verify(opened)
            opened.database.close()
    except LedgerCorruptError as error:
        wrong.append(error)
    finally:
        stop.set()
        writer.join()
    assert wrong == []


@pytest.mark.parametrize(("epsilon", "shown"), [(0.55589, 0.5558), (0.049999999999999996, 0.04999), (1.55582, 1.555)])
def test_numbers_shown_as_left_are_never_rounded_up(epsilon, shown):
    from dalenius.ledger.budgets import rounded_down

    assert rounded_down(epsilon) == shown <= epsilon
