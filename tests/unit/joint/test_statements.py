"""What a party signs before anybody looks, and what is not taken for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.parties import laid

from dalenius.errors import PartyRefusedError
from dalenius.joint.statements import SIZE, Statement

SAID = Statement(bytes(16), "bea", "t" * 64, "ab" * 32, 0.5)


def expected() -> Statement:
    return replace(SAID, party="ada", entry="cd" * 32)


def test_what_was_agreed_is_taken():
    _, bea = laid(2)
    data = SAID.signed(bea)
    assert len(data) == SIZE
    assert Statement.verified(data, bea.card, expected()) == SAID


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (replace(SAID, run=bytes(15) + b"1"), "another run"),
        (replace(SAID, terms="u" * 64), "another question"),
        (replace(SAID, epsilon=0.25), "another price"),
        (replace(SAID, party="cleo"), "another party"),
        (replace(SAID, entry="ab"), "another entry"),
        (replace(SAID, entry="no hash"), "damaged"),
    ],
)
def test_another_word_than_was_agreed_is_refused_and_the_party_named(said: Statement, words: str):
    _, bea = laid(2)
    with pytest.raises(PartyRefusedError, match=words) as refused:
        Statement.verified(said.signed(bea), bea.card, expected())
    assert refused.value.party == "bea"


def test_another_ones_signature_and_changed_bytes_are_refused():
    ada, bea = laid(2)
    data = SAID.signed(bea)
    for wrong in (SAID.signed(ada), data[:40] + b"#" + data[41:], data[:-1] + bytes([data[-1] ^ 1]), bytes(SIZE)):
        with pytest.raises(PartyRefusedError, match="does not fit its certificate"):
            Statement.verified(wrong, bea.card, expected())
