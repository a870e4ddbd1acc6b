"""Budgets, charges, receipts, answers given: the durable record of everything that was ever released.

ledger      open, create, owner's records, balances
charging    the way of a question: charge, claim, answer
questions   one question in the file  retries  requests that come twice
sharing     what another analyst's answer is good for
projection  what the entries say      proof    each entry is proved before it says anything
tables      what is derived, compared  checkpoint  so that a new process need not read everything
prices      does a price cover what is done for it
tokens      who may use a server, as what, until when
budgets     budgets, allotments, and their filters
chain       the HMAC chain          anchor    head and length in a second file
receipts    signed proofs           keys      the two secrets
verification checks the history     replay    were the rules kept, entry by entry
database    SQLite                  requests  what goes in and comes out
holders     who holds a claim, and is it dead
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
