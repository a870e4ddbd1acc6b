"""A joint sum: charges are shown, then shares of each party's numbers, then the sum is opened and nothing else.

*Guarantee.* Any t parties learn the sum and their own numbers, and nothing else of those of the others (`bgw`): what
is opened is the sum of fresh sharings, so that its shares follow from the sum and any t of them. All of a party's
bytes follow from its seed and its numbers, both of which are on disk before they leave: a run that is taken up again
says the same again.

*Assumes.* Parties follow the protocol, at most t of n pool what they see; 1 ≤ t < n. A wrong share is noticed where
more than t + 1 parties open together. Nothing is fair about it: who has the sum first may leave with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius.joint.bgw import reveal, share
from dalenius.joint.fields import BIG
from dalenius.joint.statements import SIZE, Statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalenius.joint.config import Party
    from dalenius.joint.run import Run


async def show_charges(run: Run, party: Party, own: Statement) -> list[Statement]:
    """Tells all others that this party has charged, and waits until all of them have said so.

    Raises:
        PartyGoneError: One has not said so.
        PartyRefusedError: What one signed is not what was agreed.
    """
    signed = own.signed(party)
    got = await run.exchange("charged", dict.fromkeys(run.others, signed), dict.fromkeys(run.others, SIZE))
    cards = {each: party.partner(run.names[each - 1]) for each in run.others}
    return [Statement.verified(bytes(data), cards[each], own) for each, data in sorted(got.items())]


async def add_up(run: Run, inputs: Sequence[int]) -> list[int]:
    """The sum of what all parties bring, number by number, as signed integers."""
    shape = (len(inputs),)
    shared = await share(run, BIG, BIG.array(list(inputs)), shape)
    total = shared[1]
    for each in range(2, run.parties + 1):
        total = total + shared[each]
    opened = await reveal(run, total)
    return [int(each) for each in BIG.signed(opened)]
