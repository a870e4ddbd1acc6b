"""Tokens: what is kept, who gets in, and that nothing tells why somebody does not."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from dalenius.errors import AuthMissingError, InputError, LedgerCorruptError, UnknownTokenError
from dalenius.ledger import Ledger, verify
from dalenius.ledger.chain import digest
from dalenius.ledger.tokens import Role, Token, Tokens


@pytest.fixture
def tokens(ledger):
    return Tokens(ledger)


def refused(tokens, text):
    """All that a refusal says."""
    with pytest.raises(AuthMissingError) as caught:
        tokens.check(text)
    return caught.value.to_dict(), str(caught.value)


def test_a_token_opens_and_its_text_is_kept_nowhere(ledger, tokens):
    text, token = tokens.create(Role.ANALYST, "ana", trusted=True, note="the notebook")
    assert tokens.check(text) == token == tokens.all()[0]
    assert (token.role, token.analyst, token.trusted, token.note) == (Role.ANALYST, "ana", True, "the notebook")
    head, name, secret = text.split("_", 2)
    assert (head, name, len(secret), len(token.id)) == ("dalenius", token.id, 43, 12)
    ledger.database.close()
    for file in ledger.home.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes()
    (entry,) = ledger.records(("token",))
    assert entry.data["hash"] == digest(text.encode())
    verify(ledger)


def test_what_is_shown_of_a_token_holds_neither_secret_nor_hash(tokens):
    text, token = tokens.create("auditor", expires=timedelta(days=366))
    shown = token.to_dict()
    assert shown["state"] == "active" and shown["role"] == "auditor" and type(shown["role"]) is str
    assert text not in str(shown) and text[-43:] not in str(shown) and digest(text.encode()) not in str(shown)
    for moment in (shown["created"], shown["expires"]):
        assert datetime.fromisoformat(moment).utcoffset() == timedelta(0)


def test_two_tokens_share_nothing(tokens):
    made = [tokens.create(Role.OWNER) for _ in range(50)]
    assert len({text[-43:] for text, _ in made}) == len({token.id for _, token in made}) == 50
    assert [each.id for each in tokens.all()] == [token.id for _, token in made]  # oldest first


def test_every_refusal_says_the_same(ledger, tokens, tmp_path):
    good, kept = tokens.create(Role.ANALYST, "ana")
    revoked, token = tokens.create(Role.OWNER)
    tokens.revoke(token.id)
    expired, _ = tokens.create(Role.AUDITOR, expires=timedelta(milliseconds=1))
    time.sleep(0.01)
    foreign, _ = Tokens(Ledger.create(tmp_path / "elsewhere")).create(Role.OWNER)
    other, _ = tokens.create(Role.OWNER)
    mixed = f"dalenius_{kept.id}_{other[-43:]}"
    last = good[:-1] + ("A" if good[-1] != "A" else "B")
    texts = (revoked, expired, foreign, mixed, last, "", good[:-1], good + "A", good.upper(), f" {good}", f"{good}\n")
    assert len({str(refused(tokens, each)) for each in (*texts, "x", kept.id)}) == 1
    assert refused(tokens, "")[0]["error"]["code"] == "auth.missing"
    assert tokens.check(good) == kept


ODD = st.one_of(
    st.text(max_size=200),
    st.text(alphabet=st.characters(codec=None), max_size=80),  # surrogates and NUL too
    st.integers(1, 300_000).map(lambda size: "dalenius_" + "a" * size),
    st.tuples(st.text("0123456789abcdef", min_size=12, max_size=12), st.binary(min_size=32, max_size=32)).map(
        lambda pair: f"dalenius_{pair[0]}_{pair[1].hex()[:43]}"
    ),
)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(odd=ODD, at=st.integers(0, 65), data=st.data())
def test_texts_of_any_kind_are_refused_and_break_nothing(tokens, odd, at, data):
    if not tokens.all():
        tokens.create(Role.OWNER)
    assert refused(tokens, odd) == refused(tokens, "")
    good, token = tokens.create(Role.AUDITOR)
    changed = good[:at] + data.draw(st.text(alphabet=st.characters(codec=None), min_size=1, max_size=3)) + good[at:]
    assert refused(tokens, changed) == refused(tokens, "")
    assert tokens.check(good) == token


@pytest.mark.parametrize(
    "odd", ["\ud800", "a\0b", "dalenius_\u0661" + "1" * 11 + "_" + "a" * 43, "é" * 65, "x" * 10**7]
)
def test_odd_texts_are_refused(tokens, odd):
    assert refused(tokens, odd) == refused(tokens, "")


def test_a_revocation_holds_at_once_for_everybody_and_is_written_once(ledger, tokens):
    text, token = tokens.create(Role.ANALYST, "ana")
    elsewhere = Tokens(Ledger.open(ledger.home))
    assert elsewhere.check(text) == token
    done = tokens.revoke(token.id)
    assert refused(elsewhere, text) == refused(tokens, text) == refused(tokens, "")
    head = ledger.head
    assert elsewhere.revoke(token.id) == done == tokens.all()[0] and ledger.head == head
    assert (done.state, done.to_dict()["state"]) == ("revoked", "revoked") and done.revoked >= done.created
    verify(ledger)


def test_of_many_who_revoke_at_once_one_writes(ledger, tokens):
    _, token = tokens.create(Role.OWNER)
    start = threading.Barrier(4, timeout=60)

    def revoking():
        start.wait()
        tokens.revoke(token.id)
        ledger.database.close()

    threads = [threading.Thread(target=revoking) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.data["action"] for each in ledger.records(("token",))] == ["create", "revoke"]


def test_checks_by_many_threads_see_every_token_given_meanwhile(ledger, tokens):
    agreed = []
    made = [tokens.create(Role.OWNER)]

    def checking():
        for _ in range(60):
            text, token = made[-1]
            agreed.append(tokens.check(text) == token)
        ledger.database.close()

    threads = [threading.Thread(target=checking) for _ in range(4)]
    for each in threads:
        each.start()
    made.extend(tokens.create(Role.OWNER) for _ in range(20))
    for each in threads:
        each.join()
    assert agreed == [True] * 240 and len(tokens.all()) == 21


def test_a_token_ends_by_itself(tokens):
    text, token = tokens.create(Role.ANALYST, "ana", expires=timedelta(milliseconds=400))
    assert tokens.check(text) == token and token.state == "active"
    time.sleep(0.5)
    assert token.state == "expired" and refused(tokens, text) == refused(tokens, "")
    assert tokens.revoke(token.id).state == "revoked"


@pytest.mark.parametrize(
    ("role", "analyst", "more"),
    [
        ("king", "", {}),
        ("analyst", "", {}),
        ("analyst", "a\nb", {}),
        ("analyst", "\ud800", {}),
        ("analyst", "a" * 201, {}),
        ("owner", "ana", {}),
        ("auditor", "ana", {}),
        ("owner", "", {"expires": timedelta(days=366, seconds=1)}),
        ("owner", "", {"expires": timedelta.max}),
        ("owner", "", {"expires": timedelta(0)}),
        ("owner", "", {"expires": timedelta(days=-1)}),
        ("owner", "", {"note": "a\x1b[2J"}),
        ("owner", "", {"note": "a" * 201}),
    ],
)
def test_a_token_that_makes_no_sense_is_not_given(ledger, tokens, role, analyst, more):
    head = ledger.head
    with pytest.raises(InputError):
        tokens.create(role, analyst, **more)
    assert ledger.head == head and tokens.all() == []


@pytest.mark.parametrize("name", ["", "0" * 12, "\ud800", "a\0", "x" * 10**6])
def test_an_unknown_token_cannot_be_revoked(ledger, tokens, name):
    tokens.create(Role.OWNER)
    head = ledger.head
    with pytest.raises(UnknownTokenError) as caught:
        tokens.revoke(name)
    assert (caught.value.code, caught.value.exit_code, caught.value.status) == ("input.invalid", 2, 404)
    assert ledger.head == head


def test_records_that_are_no_tokens_open_nothing(ledger, tokens):
    text, token = tokens.create(Role.ANALYST, "ana")
    (entry,) = ledger.records(("token",))
    whole = entry.data | {"id": "f" * 12}
    broken = [
        {},
        {"action": "create"},
        {"action": "revoke"},
        {"action": "revoke", "id": ["a"]},
        {"name": "old"},
        *({key: value for key, value in whole.items() if key != missing} for missing in whole if missing != "by"),
        *(
            whole | change
            for change in (
                {"id": 7},
                {"id": ["f" * 12]},
                {"id": "F" * 12},
                {"role": "king"},
                {"role": "owner"},
                {"analyst": ""},
                {"analyst": 7},
                {"hash": "00"},
                {"hash": None},
                {"expires": "never"},
                {"expires": "2999-01-01T00:00:00"},
                {"expires": 7},
            )
        ),
    ]
    for data in broken:
        ledger.record("token", data)
    assert tokens.all() == [token] and tokens.check(text) == token
    tokens.revoke(token.id)
    ledger.record("token", entry.data)  # given again
    assert refused(tokens, text) == refused(tokens, "") and Tokens(ledger).all()[0].state == "revoked"


def test_a_changed_record_is_seen_before_it_lets_anybody_in(ledger, tokens):
    text, _ = tokens.create(Role.ANALYST, "ana")
    ledger.database.connection.execute(
        """UPDATE entries SET body = replace(body, '"role":"analyst"', '"role":"owner"') WHERE kind = 'token'"""
    )
    with pytest.raises(LedgerCorruptError):
        Tokens(ledger).check(text)


def test_the_state_is_that_of_now():
    now = datetime.now(UTC)
    token = Token("0" * 12, Role.OWNER, "", now.isoformat(), (now + timedelta(hours=1)).isoformat(), "", False, "")
    assert token.state == "active"
