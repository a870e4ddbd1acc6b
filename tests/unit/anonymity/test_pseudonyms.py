"""Pseudonyms: made right, with secrets that stay secret, and honest about what they do not do."""

from __future__ import annotations

import hashlib
import hmac
import stat
from string import ascii_letters, digits

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.anonymity.pseudonyms import METHODS, NOT_DONE, pseudonymize
from dalenius.anonymity.pseudonyms.ff1 import decrypted, encrypted, permuted, unpermuted
from dalenius.anonymity.pseudonyms.hashing import keyed_hash
from dalenius.anonymity.pseudonyms.keys import create_key, derived, read_key
from dalenius.anonymity.pseudonyms.tokens import original, token
from dalenius.anonymity.table import Table
from dalenius.errors import InputError, SourceUnavailableError, UnknownColumnError

LETTERS = digits + "abcdefghijklmnopqrstuvwxyz"
KEY = bytes(range(32))
SHORT = "2B7E151628AED2A6ABF7158809CF4F3C"
MIDDLE = SHORT + "EF4359D8D580AA4F"
LONG = MIDDLE + "7F036D6F04FC6A94"
TWEAKS = ("", "39383736353433323130", "3737373770717273373737")
PEOPLE = Table.of(
    {
        "name": ["Ada Byron", "Bo Katz", None, "Ada Byron"],
        "phone": ["030-1234567", "030-7654321", "040-1111111", "030-1234567"],
        "age": ["36", "41", "29", "36"],
    }
)


@pytest.mark.parametrize(
    ("key", "tweak", "plain", "cipher"),
    [
        (SHORT, 0, "0123456789", "2433477484"),
        (SHORT, 1, "0123456789", "6124200773"),
        (SHORT, 2, "0123456789abcdefghi", "a9tv40mll9kdu509eum"),
        (MIDDLE, 0, "0123456789", "2830668132"),
        (MIDDLE, 1, "0123456789", "2496655549"),
        (MIDDLE, 2, "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"),
        (LONG, 0, "0123456789", "6657667009"),
        (LONG, 1, "0123456789", "1001623463"),
        (LONG, 2, "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"),
    ],
)
def test_ff1_gives_the_standards_own_examples(key, tweak, plain, cipher):
    radix = 36 if len(plain) > 10 else 10
    numbers = [LETTERS.index(each) for each in plain]
    found = encrypted(bytes.fromhex(key), bytes.fromhex(TWEAKS[tweak]), numbers, radix)
    assert "".join(LETTERS[each] for each in found) == cipher
    assert decrypted(bytes.fromhex(key), bytes.fromhex(TWEAKS[tweak]), found, radix) == numbers


@given(st.integers(1_000_000, 2**70), st.data())
def test_a_permutation_of_any_domain_comes_back(domain, data):
    number = data.draw(st.integers(0, domain - 1))
    moved = permuted(KEY, b"t", number, domain)
    assert 0 <= moved < domain and unpermuted(KEY, b"t", moved, domain) == number


@given(
    st.text(ascii_letters + digits + " -.@", min_size=6, max_size=24).filter(
        lambda text: sum(map(str.isalnum, text)) > 5
    )
)
def test_a_token_keeps_the_format_and_comes_back(value):
    made = token(KEY, "c", value)
    assert [(each.isdigit(), each.isupper(), each.islower()) for each in made] == [
        (each.isdigit(), each.isupper(), each.islower()) for each in value
    ]
    assert all(a == b for a, b in zip(made, value, strict=True) if not b.isalnum())
    assert original(KEY, "c", made) == value


def test_tokens_of_different_values_differ():
    made = {token(KEY, "phone", f"{each:07d}") for each in range(0, 1_000_000, 997)}
    assert len(made) == len(range(0, 1_000_000, 997))
    assert token(KEY, "phone", "1234567") != token(KEY, "fax", "1234567")


@pytest.mark.parametrize("value", ["12345", "Ab1", "", "--"])
def test_a_format_with_few_values_gets_no_token(value):
    with pytest.raises(InputError, match="too short") as error:
        token(KEY, "code", value)
    assert not value or f"'{value}'" not in str(error.value)


def test_a_letter_that_would_stay_is_refused():
    with pytest.raises(InputError, match="not among A–Z") as error:
        token(KEY, "name", "Müllerin")
    assert "ü" not in str(error.value)


def test_a_keyed_hash_is_hmac_with_a_key_of_its_own():
    message = (4).to_bytes(4, "big") + b"name" + b"Ada"
    assert (
        keyed_hash(KEY, "name", "Ada")
        == hmac.new(derived(KEY, "keyed hashing"), message, hashlib.sha256).hexdigest()[:32]
    )
    assert keyed_hash(KEY, "name", "Ada") != keyed_hash(bytes(32), "name", "Ada")
    assert keyed_hash(KEY, "a", "bc") != keyed_hash(KEY, "ab", "c")
    assert derived(KEY, "keyed hashing") != derived(KEY, "tokens") != KEY


@pytest.mark.parametrize("method", ["keyed", "lookup"])
def test_equal_values_stay_equal_and_nothing_else_changes(method, tmp_path):
    secret = tmp_path / "secret"
    found = pseudonymize(PEOPLE, ["name"], method=method, secret=secret)
    cells = found.table["name"].cells()
    assert cells[0] == cells[3] and cells[0] != cells[1] and cells[2] is None
    assert not {"Ada Byron", "Bo Katz"} & set(cells)
    assert found.table["age"].cells() == PEOPLE["age"].cells() and found.table.names == PEOPLE.names
    assert found.distinct == {"name": 2} and set(NOT_DONE) <= set(found.not_done)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    again = pseudonymize(PEOPLE.take(np.array([3, 1])), ["name"], method=method, secret=secret)
    assert again.table["name"].cells() == [cells[3], cells[1]]  # the same in a later table
    other = pseudonymize(PEOPLE, ["name"], method=method, secret=tmp_path / "other")
    assert not set(cells) & set(other.table["name"].cells()) - {None}


def test_tokens_of_a_table(tmp_path):
    found = pseudonymize(PEOPLE, ["phone"], method="tokens", secret=tmp_path / "key")
    cells = list(map(str, found.table["phone"].cells()))
    assert cells[0] == cells[3] and all(each[3] == "-" and len(each) == 11 for each in cells)
    key = read_key(tmp_path / "key")
    assert [original(key, "phone", each) for each in cells] == PEOPLE["phone"].cells()
    assert any("length" in each for each in found.not_done)
    assert found.to_dict()["distinct"] == {"phone": 3}


def test_a_value_unfit_for_a_token_leaves_no_key_behind(tmp_path):
    with pytest.raises(InputError, match="too short"):
        pseudonymize(PEOPLE, ["age"], method="tokens", secret=tmp_path / "key")
    assert list(tmp_path.iterdir()) == []


def test_a_secret_that_others_may_read_is_refused(tmp_path):
    for method in METHODS:
        secret = tmp_path / method
        pseudonymize(PEOPLE, ["phone"], method=method, secret=secret)
        secret.chmod(0o640)
        with pytest.raises(InputError, match="Others may read"):
            pseudonymize(PEOPLE, ["phone"], method=method, secret=secret)


def test_a_file_that_is_no_secret_is_not_overwritten(tmp_path):
    secret = tmp_path / "notes"
    secret.write_text("buy milk")
    secret.chmod(0o600)
    for method in METHODS:
        with pytest.raises(InputError, match="is no "):
            pseudonymize(PEOPLE, ["phone"], method=method, secret=secret)
    assert secret.read_text() == "buy milk"
    create_key(tmp_path / "key")
    with pytest.raises(InputError, match="there already"):
        create_key(tmp_path / "key")
    with pytest.raises(SourceUnavailableError):
        create_key(tmp_path / "nowhere" / "key")


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="no way 'token'") as error:
        pseudonymize(PEOPLE, ["phone"], method="token", secret=tmp_path / "key")
    assert "tokens" in error.value.fix
    with pytest.raises(InputError, match="No column"):
        pseudonymize(PEOPLE, [], secret=tmp_path / "key")
    with pytest.raises(UnknownColumnError):
        pseudonymize(PEOPLE, ["nme"], secret=tmp_path / "key")
    assert list(tmp_path.iterdir()) == []
