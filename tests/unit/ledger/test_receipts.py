"""A receipt can be had again, by its id, by whom it was given to."""

import json

import pytest

from dalenius.errors import InputError, LedgerCorruptError, UnknownReceiptError
from dalenius.ledger import receipts
from dalenius.ledger.home import public_key


def said(ledger, name, analyst=None):
    with pytest.raises(UnknownReceiptError) as caught:
        ledger.receipt(name, analyst)
    return json.dumps(caught.value.to_dict())


def test_a_receipt_of_an_answer_or_an_old_grant_is_the_same_again(ledger, request_for, grant):
    answered = ledger.ask(request_for(), lambda claim: b"42").receipt
    granted = grant(ledger).receipt
    for receipt, analyst in ((answered, "ana"), (granted, "bob")):
        assert ledger.receipt(receipt.id) == ledger.receipt(receipt.id, analyst) == receipt
        assert receipt.analyst == analyst
        receipts.check(ledger.receipt(receipt.id), public_key(ledger.keys.public_file))


def test_another_analysts_receipt_is_refused_like_one_that_never_was(ledger, request_for, grant):
    answered = ledger.ask(request_for(), lambda claim: b"42").receipt
    granted = grant(ledger).receipt
    owners = ledger.ask(request_for("limits", analyst=""), lambda claim: b"9").receipt
    nothing = said(ledger, "R999-000000000000")
    assert ledger.receipt(owners.id) == ledger.receipt(owners.id, "") == owners
    for name, analyst in ((answered.id, "bob"), (granted.id, "ana"), (answered.id, ""), (owners.id, "ana")):
        assert said(ledger, name, analyst) == nothing


def test_an_id_that_is_none_is_refused(ledger, request_for):
    receipt = ledger.ask(request_for(), lambda claim: b"42").receipt
    entries = {entry.kind: f"R{entry.number}-{entry.hash.hex()[:12]}" for entry in ledger.entries()}
    assert entries.pop("answer") == receipt.id
    number, _, tail = receipt.id.partition("-")
    odd = (
        *("", "R", "\ud800", "a\0b", "R" * 10**6, f"R{'9' * 18}-{tail}", f"R{'9' * 19}-{tail}", f"R0-{tail}"),
        *(f"{number}-{'0' * 12}", f"{number}-", f"{receipt.id}\n", f" {receipt.id}", f"{number}-{tail.upper()}x"),
        *(receipt.id.replace("R", "R+"), receipt.id.replace("R", "R\u0661"), receipt.id[:-1]),
    )
    assert len({said(ledger, each) for each in (*odd, *entries.values())}) == 1
    with pytest.raises(InputError) as caught:
        ledger.receipt("R1-")
    assert (caught.value.code, caught.value.exit_code, caught.value.status) == ("input.invalid", 2, 404)


@pytest.mark.parametrize("kind", ["charge", "answer"])
def test_nothing_that_was_changed_is_signed_again(ledger, request_for, kind):
    receipt = ledger.ask(request_for(), lambda claim: b"42").receipt
    change = "UPDATE entries SET body = replace(replace(body, '0.5', '0.1'), 'a', 'b') WHERE kind = ?"
    ledger.database.connection.execute(change, (kind,))
    with pytest.raises(LedgerCorruptError):
        ledger.receipt(receipt.id)
