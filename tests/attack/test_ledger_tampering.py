"""Random tamperings of every table of the ledger: change and use, or change, use and put back.

Each use of a tampered ledger is refused, or its whole outcome (answer, price, receipt, balances, permissions, and what
was written to the history) is that of the same use of an untampered twin; what was put back verifies, and so does every
receipt that was given meanwhile.
"""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.attack.tampering import Table, Tampering, opened, tables, tampering
from tests.conftest import LONG

from dalenius.accounting.events import Zcdp
from dalenius.errors import AuthMissingError, DaleniusError, LedgerCorruptError, LedgerUnavailableError
from dalenius.ledger import Answered, Budget, Claim, Ledger, Request, charging, database, derived, questions, verify
from dalenius.ledger.chain import canonical, digest
from dalenius.ledger.tokens import Tokens

REFUSED = (LedgerCorruptError, LedgerUnavailableError)
RETRY = (digest(b"ana first"), digest(b"body"))
Use = Callable[[Ledger, dict[str, str]], Any]


def request(key: str, epsilon: float = 0.3, analyst: str = "ana", **more: Any) -> Request:
    return Request("students", analyst, key, epsilon, Zcdp(1e-9), question=key, **more)


def made(claim: Any) -> bytes:
    """A release that says what it was made at, as real ones do."""
    return canonical({"epsilon": claim.epsilon, "delta": claim.delta, "for": claim.number}).encode()


def told(answered: Answered) -> dict[str, Any]:
    receipt = answered.receipt.to_dict()
    kept = ("dataset", "analyst", "event", "charge", "question", "release", "entry")
    return {"content": answered.content, "free": answered.free, **{name: receipt[name] for name in kept}}


def asking(key: str, epsilon: float = 0.3, analyst: str = "ana", **more: Any) -> Use:
    return lambda ledger, _: ledger.ask(request(key, epsilon, analyst, **more), made, patience=0.01)


def balances(ledger: Ledger, _: dict[str, str]) -> Any:
    found: list[Any] = [ledger.datasets(), ledger.epoch("students"), ledger.epoch("others")]
    for dataset in ("students", "others"):
        found += [ledger.allotments(dataset), ledger.periods(dataset), ledger.balance(dataset).to_dict()]
        found += [ledger.balance(dataset, who).to_dict() for who in ledger.allotments(dataset)]
    return found


def permissions(ledger: Ledger, known: dict[str, str]) -> Any:
    found: list[Any] = []
    for name in ("good", "revoked", "other"):
        try:
            found.append(Tokens(ledger).check(known[name]).to_dict())
        except AuthMissingError:
            found.append(None)
    return found


def policies(ledger: Ledger, _: dict[str, str]) -> Any:
    return [(each.number, each.kind, each.body) for each in ledger.records(("policy", "refresh", "closed", "epoch"))]


def receipts_again(ledger: Ledger, known: dict[str, str]) -> Any:
    return [ledger.receipt(known[name]).to_dict() for name in ("stored", "granted")]


def history(ledger: Ledger, _: dict[str, str]) -> Any:
    return [(each.number, each.kind, each.time, each.body, each.hash) for each in ledger.entries()]


def revoking(ledger: Ledger, known: dict[str, str]) -> Any:
    return Tokens(ledger).revoke(known["other"].split("_")[1]).state


def ending(ledger: Ledger, _: dict[str, str]) -> Any:
    ledger.end_allotment("students", "bob")
    ledger.set_budget("others", Budget(2.0, 1e-6))
    ledger.set_allotment("others", "cy", 0.5)


USES: dict[str, Use] = {
    "the same again": asking("stored"),
    "more accurate": asking("stored", 0.4),
    "a second analyst": asking("stored", 0.2, "bob", shareable=True),
    "who was granted it": asking("granted", 0.3, "bob"),
    "something new": asking("new"),
    "more than is left": asking("much", 1.9),
    "of a dead process": asking("dead", 0.01),
    "a request again": asking("named", retry=RETRY),
    "one that failed": asking("failed"),
    "a stranger": asking("stored", 0.1, "eve"),
    "balances": balances,
    "permissions": permissions,
    "policies": policies,
    "receipts": receipts_again,
    "history": history,
    "a revocation": revoking,
    "the owner's decisions": ending,
}


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Without waiting for the disk: thousands of small ledgers are written, and none of them must survive a crash."""
    usual = database._connected

    def connected(file: Path) -> Any:
        connection = usual(file)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_connected", connected)
        yield


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A home whose every table has rows: answered, failed and abandoned questions, a grant, epochs, tokens, retries."""
    ledger, known = Ledger.create(tmp_path_factory.mktemp("base") / "home"), {}
    for dataset in ("students", "others"):
        ledger.set_budget(dataset, Budget(3.0, 1e-6))
        for analyst in ("ana", "bob"):
            ledger.set_allotment(dataset, analyst, 2.0)
    ledger.record("policy", {"table": "students", "policy": "strict"})
    ledger.record_all(
        [("epoch", {"dataset": "others", "epoch": 1, "reason": "the people of the new school year"})],
        since=0,
        overtaken=lambda _: False,
    )
    tokens = Tokens(ledger)
    for name in ("good", "revoked", "other"):
        known[name], token = tokens.create("analyst", "ana")
        if name == "revoked":
            tokens.revoke(token.id)
    known["stored"] = ledger.ask(request("stored"), made).receipt.id
    for key in ("granted", "more"):
        ledger.ask(request(key), made)
    ledger.ask(request("named", retry=RETRY), made)
    ledger.ask(Request("others", "bob", "stored", 0.4, Zcdp(1e-9), epoch=1), made)
    ledger.fail(cast("Claim", ledger.charge(request("failed"))))
    questions.let_go(cast("Claim", ledger.charge(request("dead", 0.01))).holder)
    known["granted"] = granted(ledger, "granted")
    ledger.record("closed", {"table": "pupils", "why": "moved"})
    verify(ledger)
    assert all(table.image(ledger.database.connection) for table in tables(ledger.home / "ledger.sqlite"))
    ledger.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    ledger.database.close()
    return ledger.home, known


def granted(ledger: Ledger, key: str) -> str:
    """As releases before sharing let a second analyst pay for a stored answer: the id of the receipt."""
    with ledger.turn() as (view, append):
        number, content, body = view.connection.execute(
            """SELECT q.number, r.content, e.body FROM questions q JOIN releases r ON r.question = q.number
               JOIN entries e ON e.number = q.number WHERE q.key = ?""",
            (key,),
        ).fetchone()
        data = {"charge": number, "release": digest(content), "analyst": "bob", "question": digest(b"")}
        entry = append("grant", data)
        view.connection.execute("INSERT INTO grants VALUES (?, 'bob', ?)", (number, entry.number))
        view.connection.execute("INSERT INTO totals VALUES ('students', '', 'bob', ?, ?, 1)", json.loads(body)["units"])
    return f"R{entry.number}-{entry.hash.hex()[:12]}"


class Outcome:
    """What came of one use, and what it wrote."""

    def __init__(self, home: Path, known: dict[str, str], use: str, change: Any, *, warm: bool, restored: bool) -> None:
        self.refused, self.value, self.verified = "", None, ""
        given = []
        ledger = Ledger.open(home)
        start = ledger.head.count
        if not warm:
            ledger.database.close()
        with change:
            planted = entries_past(home, start)
            try:
                if not warm:
                    ledger = Ledger.open(home)
                value = USES[use](ledger, known)
                if isinstance(value, Answered):
                    given.append(value.receipt)
                    value = told(value)
                self.value = value
            except REFUSED as error:
                self.refused = str(error)
            except DaleniusError as error:
                self.value = type(error), str(error)
        if not warm or restored:
            ledger.database.close()
        try:
            verify(Ledger.open(home), given=given)
        except REFUSED as error:
            self.verified = str(error)
        # What the tamperer put there was not written by the use.
        self.written = [
            (kind, body if kind != "token" else "")
            for each in entries_past(home, start)
            if each not in planted
            for _, kind, body in [each]
        ]


def entries_past(home: Path, number: int) -> list[tuple[int, str, str]]:
    """The entries after one, as they stand in the file."""
    with opened(home / "ledger.sqlite") as connection:
        return connection.execute("SELECT number, kind, body FROM entries WHERE number > ?", (number,)).fetchall()


@pytest.fixture(scope="module")
def copies(base, tmp_path_factory):
    folder, number = tmp_path_factory.mktemp("copies"), iter(range(10**9))

    def copying() -> Path:
        return Path(shutil.copytree(base[0], folder / str(next(number))))

    return copying


@pytest.fixture(scope="module")
def twins(base, copies) -> dict[str, Outcome]:
    """What comes of each use of the ledger as it is."""
    found = {use: Outcome(copies(), base[1], use, nullcontext(), warm=False, restored=False) for use in USES}
    assert not any(each.refused or each.verified for each in found.values())
    return found


def judged(outcome: Outcome, twin: Outcome, *, restored: bool) -> str:
    """How a use of a tampered ledger ended; 'fooled' is what must not be."""
    if outcome.refused:
        return "fooled" if any(kind == "answer" for kind, _ in outcome.written) else "refused"
    if (outcome.value, outcome.written) != (twin.value, twin.written):
        return "fooled"
    if restored and outcome.verified:
        return "fooled"  # everything is as it was: an honest outcome must verify
    return "named" if outcome.verified else "the same"


def chosen(file: Path, table: Table, seed: int) -> Tampering:
    """The first of the random changes from a seed on that changes anything."""
    return next(each for at in range(1000) if (each := tampering(table, seed * 1000 + at)).fits(file))


def used(base, copies, twins, change: Tampering, use: str, *, warm: bool, restored: bool) -> tuple[str, Outcome]:
    """What a use of a copy that was tampered with ends in."""
    home = copies()
    done = change.done(home / "ledger.sqlite", restored=restored)
    outcome = Outcome(home, base[1], use, done, warm=warm, restored=restored)
    shutil.rmtree(home)
    return judged(outcome, twins[use], restored=restored), outcome


def test_no_tampering_of_any_table_changes_an_answer_a_price_or_a_permission(base, copies, twins, rounds):
    """In the long form 200 of every table, by every use."""
    file, found = base[0] / "ledger.sqlite", Counter[str]()
    kinds = tables(file)
    many = max(2 * len(kinds), rounds(200 * len(kinds) if LONG else 200))
    for number in range(many):
        change = chosen(file, kinds[number % len(kinds)], number)
        restored, warm = number // len(kinds) % 2 == 1, number % 3 > 0
        uses = list(USES) if LONG else random.Random(number).sample(list(USES), 4)
        for use in uses:
            verdict, outcome = used(base, copies, twins, change, use, warm=warm, restored=restored)
            found[verdict] += 1
            assert verdict != "fooled", (
                f"{number}: {change.table.name}, {change.what}, restored={restored}, warm={warm}, {use}: "
                f"{outcome.refused or outcome.value} wrote {outcome.written}; verify: {outcome.verified}"
            )
    assert found["refused"] > many / 10 and found["named"] and found["the same"]


def test_the_tamperer_reaches_every_table_in_every_way(base):
    """Or the test above shows nothing."""
    file = base[0] / "ledger.sqlite"
    kinds = tables(file)
    changes = [chosen(file, kinds[number % len(kinds)], number) for number in range(200)]
    assert {change.table.name for change in changes} == {
        *("allotments", "budgets", "entries", "epochs", "grants", "questions", "releases", "retries", "totals")
    }
    assert len({change.what for change in changes}) == 10


def every(table: str, **values: Any) -> Callable[[Path], Tampering]:
    """The same value in a column of every row."""

    def changing(file: Path) -> Tampering:
        (found,) = (each for each in tables(file) if each.name == table)
        places = {found.columns.index(name): value for name, value in values.items()}
        return Tampering(
            found,
            "all the same",
            lambda rows, _: [tuple(places.get(at, value) for at, value in enumerate(row)) for row in rows],
            0,
        )

    return changing


def believing_the_price(patch: pytest.MonkeyPatch) -> None:
    """As it was: the ε of a question that is taken over is what the table says."""
    usual = questions.take_over

    def take_over(connection, question, holder, fence):
        row = connection.execute("SELECT epsilon FROM questions WHERE number = ?", (question.number,)).fetchone()
        return replace(usual(connection, question, holder, fence), epsilon=row[0])

    patch.setattr(questions, "take_over", take_over)
    patch.setattr(charging, "_check_price", lambda *_: None)
    patch.setattr(derived, "_agree", lambda *_: None)


def believing_the_totals(patch: pytest.MonkeyPatch) -> None:
    """As it was: what is spent is what the table says."""
    usual = charging._guards

    def guards(state, request, budget, allotment):
        kept = state.totals
        try:
            state.totals = dict.fromkeys(kept, (0, 0, 0))  # what the table was made to say
            return usual(state, request, budget, allotment)
        finally:
            state.totals = kept

    patch.setattr(charging, "_guards", guards)
    patch.setattr(derived, "_agree", lambda *_: None)


@pytest.mark.parametrize(
    ("plant", "change", "use"),
    [
        (believing_the_price, every("questions", epsilon=50.0), "of a dead process"),
        (believing_the_totals, every("totals", loss="0"), "more than is left"),
    ],
)
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("restored", [True, False])
def test_a_ledger_that_believes_its_tables_is_caught(
    base, copies, twins, monkeypatch, plant, change, use, warm, restored
):
    changed = change(base[0] / "ledger.sqlite")
    assert used(base, copies, twins, changed, use, warm=warm, restored=restored)[0] != "fooled"
    plant(monkeypatch)
    assert used(base, copies, twins, changed, use, warm=warm, restored=restored)[0] == "fooled"
