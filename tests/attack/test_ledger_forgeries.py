"""H22 in the ledger's file: what an expert who can write it, but has no keys, tried by hand.

Each is change, use, put back; each worked once, and left a ledger that verified.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dalenius.accounting.events import Pure, Zcdp
from dalenius.errors import AuthMissingError, BudgetError, DaleniusError, InputError, LedgerCorruptError
from dalenius.ledger import Accounting, Budget, Ledger, Receipt, Request, questions, receipts, verify
from dalenius.ledger.chain import canonical, digest
from dalenius.ledger.tokens import Role, Tokens


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "home")
    made.set_budget("students", Budget(60.0, 1e-6))
    for analyst in ("ana", "bob"):
        made.set_allotment("students", analyst, 60.0)
    return made


def request(key: str = "count", epsilon: float = 0.3, analyst: str = "ana", **more: Any) -> Request:
    return Request("students", analyst, key, epsilon, Zcdp(1e-9), question=key, **more)


def said(claim: Any) -> bytes:
    return canonical({"epsilon": claim.epsilon, "delta": claim.delta}).encode()


@contextmanager
def edited(ledger: Ledger, *statements: str) -> Iterator[None]:
    """Statements while the block runs; then every row that they changed is put back as it was."""
    with closing(sqlite3.connect(ledger.home / "ledger.sqlite", isolation_level=None)) as connection:
        names = ("entries", "questions", "releases", "totals", "allotments", "budgets")
        before = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}
        for statement in statements:
            connection.execute(statement)
        yield
        for name, rows in before.items():
            for row in rows:
                connection.execute(f"REPLACE INTO {name} VALUES ({', '.join('?' * len(row))})", row)


@pytest.mark.parametrize("opened_again", [False, True])
def test_a_question_that_is_taken_over_is_answered_at_what_was_charged(ledger, opened_again):
    claim = ledger.charge(request(epsilon=0.01))
    questions.let_go(claim.holder)  # its process died
    made = []

    def work(claim):
        made.append(claim.epsilon)
        return said(claim)

    using = Ledger.open(ledger.home) if opened_again else ledger
    with edited(ledger, "UPDATE questions SET epsilon = 50"), pytest.raises(LedgerCorruptError):
        using.ask(request(epsilon=0.01), work)
    assert using.ask(request(epsilon=0.01), work).receipt.charge["epsilon"] == 0.01
    assert made == [0.01]
    verify(ledger)


def test_what_is_stored_was_made_at_what_was_charged(ledger):
    claim = ledger.charge(request(epsilon=0.01))
    with pytest.raises(LedgerCorruptError, match="another price"):
        ledger.answer(claim, said(replace(claim, epsilon=50.0)))
    with pytest.raises(LedgerCorruptError, match="another price"):
        ledger.answer(replace(claim, epsilon=50.0), b"42")
    assert not ledger.answer(claim, said(claim)).free
    verify(ledger)


@pytest.mark.parametrize(
    "own", [{"epsilon": 50.0}, {"epsilon": 0.0100001}, {"rho": 1.0}, {"delta": 1e-9}, {"epsilon": "0.01"}]
)
def test_a_release_that_was_made_at_more_than_its_charge_is_named(ledger, own):
    """Of a time when nothing hindered it: charge, entry and release all fit each other."""
    number = ledger.charge(request(epsilon=0.01)).number
    content = canonical(own).encode()
    with ledger.turn() as (view, append):
        entry = append("answer", {"charge": number, "release": digest(content)})
        view.connection.execute("INSERT INTO releases VALUES (?, ?)", (number, content))
        view.connection.execute("UPDATE questions SET state = 'answered', answer = ?", (entry.number,))
    with pytest.raises(LedgerCorruptError, match=f"Entry {number} has a release of another price"):
        verify(ledger)


# The charges are entries 5 and 7, their answers 6 and 8.
EXCHANGES = {
    "answers": (
        "UPDATE questions SET answer = 14 - answer",
        "UPDATE releases SET question = -question",
        "UPDATE releases SET question = 12 + question",
    ),
    "contents": (
        "UPDATE releases SET question = -question",
        "UPDATE releases SET question = 12 + question",
    ),
    "entries": (
        "UPDATE entries SET body = replace(body, '\"charge\":5', '\"charge\":0') WHERE kind = 'answer'",
        "UPDATE entries SET body = replace(body, '\"charge\":7', '\"charge\":5') WHERE kind = 'answer'",
        "UPDATE questions SET answer = 14 - answer",
        "UPDATE releases SET content = CAST('two' AS BLOB) WHERE question = 5",
    ),
    "a forged value": (
        f"UPDATE entries SET body = replace(body, '{digest(b'one')}', '{digest(b'999')}')",
        "UPDATE releases SET content = CAST('999' AS BLOB) WHERE question = 5",
    ),
    "a forged charge": ("UPDATE entries SET body = replace(body, '0.3', '0.1') WHERE number = 5",),
}


@pytest.mark.parametrize("opened_again", [False, True])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_no_receipt_is_signed_for_an_answer_that_was_exchanged(ledger, exchange, opened_again):
    ledger.ask(request("first"), lambda claim: b"one")
    ledger.ask(request("second"), lambda claim: b"two")
    genuine = ledger.ask(request("first"), lambda claim: b"no")
    using = Ledger.open(ledger.home) if opened_again else ledger
    with edited(ledger, *EXCHANGES[exchange]):
        try:
            found = using.ask(request("first"), lambda claim: b"no")
        except DaleniusError as error:
            assert isinstance(error, LedgerCorruptError)  # noqa: PT017
        else:
            assert found == genuine
        with suppress(LedgerCorruptError):
            assert using.receipt(genuine.receipt.id) == genuine.receipt
    assert using.ask(request("first"), lambda claim: b"no") == genuine
    verify(ledger, given=[genuine.receipt])


def test_a_charge_that_is_changed_while_it_is_answered_is_not_signed_for(ledger):
    claim = ledger.charge(request(epsilon=0.3))
    forged = edited(ledger, "UPDATE entries SET body = replace(body, '\"ana\"', '\"bob\"') WHERE kind = 'charge'")
    with forged, pytest.raises(LedgerCorruptError):
        ledger.answer(claim, b"42")
    assert ledger.answer(claim, b"42").receipt.analyst == "ana"


MEMBERS = {
    "version": 2,
    "id": "R6-000000000000",
    "entry": 5,
    "chain": "0" * 64,
    "dataset": "pupils",
    "analyst": "bob",
    "event": {"event": "another"},
    "charge": {"epsilon": 0.1, "delta": 0.0, "rho": 0.1},
    "question": digest(b"another"),
    "release": digest(b"another"),
    "time": "2026-01-01T00:00:00.000+00:00",
}


@pytest.mark.parametrize("member", MEMBERS)
def test_every_member_of_a_receipt_is_compared_with_the_history(ledger, member):
    """Signed with the right key: whoever could make us sign it once is found out here."""
    receipt = ledger.ask(request(), lambda claim: b"42").receipt
    assert {*MEMBERS, "signature"} == {*Receipt.__dataclass_fields__}
    verify(ledger, given=[receipt])
    forged = replace(receipt, **{member: MEMBERS[member]}, signature="")
    with pytest.raises(LedgerCorruptError, match="receipt"):
        verify(ledger, given=[signed(ledger, forged)])


def signed(ledger: Ledger, receipt: Receipt) -> Receipt:
    import base64

    signature = base64.b64encode(ledger.keys.signing.sign(receipt.signed_content)).decode()
    found = replace(receipt, signature=signature)
    receipts.check(found, ledger.keys.signing.public_key())
    return found


@pytest.mark.parametrize("opened_again", [False, True])
def test_a_revocation_cannot_be_hidden(ledger, opened_again):
    text, token = Tokens(ledger).create(Role.OWNER)
    running = Tokens(Ledger.open(ledger.home))  # a server that has seen the token, but not yet its end
    assert running.check(text) == token
    Tokens(ledger).revoke(token.id)
    using = Tokens(Ledger.open(ledger.home)) if opened_again else running
    hidden = edited(ledger, "UPDATE entries SET kind = 'note' WHERE body LIKE '%revoke%'")
    with hidden, pytest.raises((LedgerCorruptError, AuthMissingError)):
        using.check(text)
    with pytest.raises(AuthMissingError):
        using.check(text)
    verify(ledger)


def test_a_revocation_that_is_cut_off_is_missed(ledger):
    text, token = Tokens(ledger).create(Role.OWNER)
    running = Tokens(Ledger.open(ledger.home))
    assert running.check(text) == token
    Tokens(ledger).revoke(token.id)
    cut = edited(ledger, "DELETE FROM entries WHERE body LIKE '%revoke%'")
    with cut, pytest.raises((LedgerCorruptError, AuthMissingError)):
        running.check(text)


def test_a_total_that_shrinks_between_two_questions_buys_nothing(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("students", Budget(1.0, 1e-6))
    ledger.set_allotment("students", "ana", 1.0)
    ledger.ask(request("first", 0.9), lambda claim: b"1")
    with edited(ledger, "UPDATE totals SET loss = '0', delta = '0'"):
        with pytest.raises((BudgetError, LedgerCorruptError)):
            ledger.ask(request("second", 0.9), lambda claim: pytest.fail("looked without paying"))
        assert ledger.balance("students").remaining_epsilon < 0.9
    assert verify(ledger).charges == 1


def test_a_history_that_was_seen_is_never_left_for_an_older_or_another_one(ledger, tmp_path):
    """Ledger and anchor put back together, under a running process: it remembers how far it had come."""
    ledger.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    ledger.database.close()
    old = shutil.copytree(ledger.home, tmp_path / "old")
    ledger.ask(request("spent", 5.0), lambda claim: b"1")
    for more in (0, 1):
        if more:  # another history of the same length, written with the same keys
            Ledger.open(old).ask(request("fork", 0.1), lambda claim: b"1")
        with closing(sqlite3.connect(ledger.home / "ledger.sqlite", isolation_level=None)) as connection:
            connection.execute("ATTACH ? AS old", (str(old / "ledger.sqlite"),))
            for (name,) in connection.execute("SELECT name FROM old.sqlite_schema WHERE type = 'table'").fetchall():
                connection.execute(f"DELETE FROM main.{name}")
                connection.execute(f"INSERT INTO main.{name} SELECT * FROM old.{name}")
        shutil.copy(old / "ledger.anchor", ledger.home / "ledger.anchor")
        verify(Ledger.open(ledger.home))  # by itself it holds: this is what docs/sharp-edges.md says
        for _ in range(2):
            with pytest.raises(LedgerCorruptError):
                ledger.ask(request("more", 0.1), lambda claim: pytest.fail("looked"))
            with pytest.raises(LedgerCorruptError):
                ledger.balance("students")


# --- an event and its price


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_an_event_may_cost_its_price_up_to_rounding_and_not_a_millionth_more(tmp_path, accounting):
    ledger = Ledger.create(tmp_path / "home")
    budget = Budget(3.0, 1e-6) if accounting == "zcdp" else Budget(3.0, accounting=Accounting.PURE)
    ledger.set_budget("students", budget)
    ledger.set_allotment("students", "ana", 3.0)
    price = budget.filter().price(0.5)
    event = (lambda much: Zcdp(price.rho * much)) if accounting == "zcdp" else (lambda much: Pure(0.5 * much))
    for number, much in enumerate((1.0, 1 - 1e-6, 1 + 1e-12)):
        ledger.charge(Request("students", "ana", f"q{number}", 0.5, event(much)))
    for much in (1 + 1e-6, 1.05, 1.1, 2.0):
        with pytest.raises(InputError, match="costs more"):
            ledger.charge(Request("students", "ana", "more", 0.5, event(much)))
    verify(ledger)


def test_the_delta_of_an_event_may_not_pass_its_price_by_a_millionth(ledger):
    for key, much in (("a", 1.0), ("b", 1 + 1e-12)):
        ledger.charge(Request("students", "ana", key, 0.5, Zcdp(1e-6, 1e-9 * much), 1e-9))
    with pytest.raises(InputError, match="costs more"):
        ledger.charge(Request("students", "ana", "c", 0.5, Zcdp(1e-6, 1e-9 * (1 + 1e-6)), 1e-9))


@pytest.mark.parametrize("much", [1 + 1e-12, 1 + 1e-6, 1.1])
@pytest.mark.parametrize("what", ["event", "price"])
def test_the_history_is_replayed_with_the_same_tolerance(ledger, what, much):
    """Written past the rules, with our keys: an event that costs more, or a charge below the price of its ε."""
    from dalenius.accounting.event_json import to_json

    price = Budget(60.0, 1e-6).filter().price(0.5)
    charge = written(ledger)
    if what == "event":
        data = charge | {"event": to_json(Zcdp(price.rho * much))}
    else:
        data = charge | {"rho": price.rho / much, "units": units(price.rho / much), "event": to_json(Zcdp(1e-6))}
    with ledger.turn() as (view, append):
        number = append("charge", data | {"key": "again"}).number
        view.connection.execute(
            "INSERT INTO questions VALUES (?, 'students', 'again', 'ana', 0.5, 0.0, 'claimed', '', 0, 1, NULL)",
            (number,),
        )
        loss = sum(int(each["units"][0]) for each in (charge, data))
        view.connection.execute("UPDATE totals SET charges = 2, loss = ?", (str(loss),))
    if much < 1 + 1e-9:
        verify(ledger)
    else:
        with pytest.raises(LedgerCorruptError, match=f"Entry {number} was not allowed"):
            verify(ledger)


def written(ledger: Ledger) -> dict[str, Any]:
    ledger.charge(request("once", 0.5))
    return next(ledger.records(("charge",))).data


def units(rho: float) -> list[str]:
    from dalenius.accounting.units import whole_units

    return [str(whole_units(rho)), "0"]
