"""Computing together: parties that show one another nothing but the result.

    fields, binary              numbers modulo 2^61 − 1 (and smaller), bits in GF(2^k), many at a time
    streams                     random numbers from keys: AES in counter mode
    shamir, decoding, shares    secrets in shares; whose share is wrong
    prss                        random shares without a word
    frames, links, meeting      what travels, what a broken connection loses (nothing), who may call
    config                      a party: its card, its keys, its partners
    run                         rounds among parties
    bgw, bits, comparing        share, multiply, open; comparisons, truncation, small sorts
    bids, auction, bidding      a double auction of sealed bids
    tasks, serving              what a party takes part in, and how it is called
    rehearsal                   several parties on one machine

What security is reached is in each module's docstring and on the page "Computing together". Nothing here touches a
protected table or a ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.joint.auction import Outcome, hold
    from dalenius.joint.bgw import inner, multiply, reveal, reveal_product, reveal_to, share
    from dalenius.joint.bids import SealedBid, open_amount, seal_bid
    from dalenius.joint.binary import Binary
    from dalenius.joint.bits import decompose, negative, open_bits, to_field
    from dalenius.joint.comparing import choose, fixed_product, less, sort, truncate
    from dalenius.joint.config import Card, Party
    from dalenius.joint.fields import BIG, SHORT, Mersenne
    from dalenius.joint.meeting import Post, new_run_id
    from dalenius.joint.prss import random_numbers
    from dalenius.joint.rehearsal import lay, waiting
    from dalenius.joint.run import Run
    from dalenius.joint.serving import begin, serve
    from dalenius.joint.shamir import Scheme
    from dalenius.joint.shares import Shares
    from dalenius.joint.tasks import TASKS, Call, join

_EXPORTS = {
    "BIG": "fields",
    "Binary": "binary",
    "Call": "tasks",
    "Card": "config",
    "Mersenne": "fields",
    "Outcome": "auction",
    "Party": "config",
    "Post": "meeting",
    "Run": "run",
    "SHORT": "fields",
    "Scheme": "shamir",
    "SealedBid": "bids",
    "Shares": "shares",
    "TASKS": "tasks",
    "begin": "serving",
    "choose": "comparing",
    "decompose": "bits",
    "fixed_product": "comparing",
    "hold": "auction",
    "inner": "bgw",
    "join": "tasks",
    "lay": "rehearsal",
    "less": "comparing",
    "multiply": "bgw",
    "negative": "bits",
    "new_run_id": "meeting",
    "open_amount": "bids",
    "open_bits": "bits",
    "random_numbers": "prss",
    "reveal": "bgw",
    "reveal_product": "bgw",
    "reveal_to": "bgw",
    "seal_bid": "bids",
    "serve": "serving",
    "share": "bgw",
    "sort": "comparing",
    "to_field": "bits",
    "truncate": "comparing",
    "waiting": "rehearsal",
}

__all__ = [
    "BIG",
    "SHORT",
    "TASKS",
    "Binary",
    "Call",
    "Card",
    "Mersenne",
    "Outcome",
    "Party",
    "Post",
    "Run",
    "Scheme",
    "SealedBid",
    "Shares",
    "begin",
    "choose",
    "decompose",
    "fixed_product",
    "hold",
    "inner",
    "join",
    "lay",
    "less",
    "multiply",
    "negative",
    "new_run_id",
    "open_amount",
    "open_bits",
    "random_numbers",
    "reveal",
    "reveal_product",
    "reveal_to",
    "seal_bid",
    "serve",
    "share",
    "sort",
    "to_field",
    "truncate",
    "waiting",
]

__getattr__, __dir__ = lazy(__name__, _EXPORTS)
