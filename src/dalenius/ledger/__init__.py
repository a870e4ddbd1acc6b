"""Budgets, charges, receipts, answers given: the durable record of everything that was ever released.

ledger        open, create, owner's records, balances
charging      the way of a question: charge, claim, answer
questions     one charged question: its release, who holds it, who comes back to it
sharing       what another analyst's answer is good for
projection    what the entries say: the one thing that is decided from
proof         each entry is proved before it says anything; the checkpoint
derived       the tables beside the history: written along, compared, never believed
chain         the HMAC chain, and the anchor: head and length in a second file
budgets       budgets, allotments, their filters; does a price cover what is done for it
actions       owner actions: which there are, who did it, why
suspensions   who may not ask for now
tokens        who may use a server, as what, until when
requests      what goes in and comes out
receipts      signed proofs
verification  checks the history: were the rules kept, entry by entry
database      SQLite
home          where all of it lies, and the two secrets
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Accounting, Balance, Budget
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.receipts import Receipt
    from dalenius.ledger.requests import Answered, Claim, Request, Waiting
    from dalenius.ledger.verification import Verified, verify

_EXPORTS = {
    "Accounting": "budgets",
    "Answered": "requests",
    "Balance": "budgets",
    "Budget": "budgets",
    "Claim": "requests",
    "Ledger": "ledger",
    "Receipt": "receipts",
    "Request": "requests",
    "Verified": "verification",
    "Waiting": "requests",
    "verify": "verification",
}

__all__ = [
    "Accounting",
    "Answered",
    "Balance",
    "Budget",
    "Claim",
    "Ledger",
    "Receipt",
    "Request",
    "Verified",
    "Waiting",
    "verify",
]

__getattr__, __dir__ = lazy(__name__, _EXPORTS)
