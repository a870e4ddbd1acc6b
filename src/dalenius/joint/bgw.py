"""Share, multiply, open: the protocol of Ben-Or, Goldwasser and Wigderson for semi-honest parties.

*Guarantee.* What any t parties see can be computed from their own inputs and outputs alone, so it tells nothing about
the others' inputs: shares that they receive are uniform, and what is opened is an output or masked by a uniform number
(Ben-Or, Goldwasser and Wigderson 1988, Theorem 1; Asharov and Lindell 2017 give the full proof). Shares that come from
keys make it computational: as far as AES-256 is a pseudo-random function.

*Assumes.* Parties follow the protocol, at most t of n pool what they see, and 2t + 1 ≤ n for products. A wrong share is
noticed where more than t + 1 parties open together, and its sender named where 3t + 1 ≤ n; but a party that deviates
in a product can change what comes out without being noticed.

*References.* M. Ben-Or, S. Goldwasser and A. Wigderson, STOC 1988; the one-round degree reduction is that of R.
Gennaro, M. Rabin and T. Rabin, PODC 1998; G. Asharov and Y. Lindell, Journal of Cryptology 30(1), 2017.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius.errors import InputError, PartyRefusedError
from dalenius.joint.prss import zeros
from dalenius.joint.shamir import lagrange
from dalenius.joint.shares import Shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dalenius.joint.run import Run
    from dalenius.joint.shamir import Field

    Array = NDArray[np.uint64]


async def share(
    run: Run, field: Field, values: Array | None, shape: tuple[int, ...], dealers: Sequence[int] | None = None
) -> dict[int, Shares]:
    """Dealers share arrays of one shape, all in one round. Returns this party's shares, by dealer.

    Args:
        run: The run.
        field: What the numbers belong to.
        values: This party's numbers, if it is a dealer.
        shape: Of each dealer's array.
        dealers: Who shares; everybody by default.

    *Guarantee.* Any t shares are uniform and independent of the secret (Shamir 1979).
    """
    who = tuple(dealers or range(1, run.parties + 1))
    scheme = run.scheme(field)
    found: dict[int, Shares] = {}
    sent: dict[int, Array] = {}
    if run.me in who:
        if values is None or values.shape != shape:
            raise InputError(
                "What is shared has another shape than was agreed.",
                why=f"All dealers share arrays of shape {shape}.",
                fix="Bring one of that shape.",
            )
        keys = {party: run.stream_to(party) for party in scheme.seeded(run.me)}
        sent = scheme.deal(run.me, values, keys)
        kept = sent.pop(run.me)
        run.observe("share", run.me, field, kept)
        found[run.me] = Shares(field, kept)
    for party in who:
        if party != run.me and run.me in scheme.seeded(party):
            drawn = field.random(run.stream_from(party), shape)
            run.observe("share", party, field, drawn)
            found[party] = Shares(field, drawn)
    senders = [each for each in who if each != run.me and run.me in scheme.sent_to(each)]
    got = await run.exchange_arrays("share", field, shape, sent, senders)
    found.update((party, Shares(field, array)) for party, array in got.items())
    return found


async def reveal(run: Run, shares: Shares) -> Array:
    """Opens secrets to all parties.

    *Guarantee.* The n shares of what is opened follow from it and any t of them: they tell nothing else, if the sharing
    is fresh (that of an input, a product, or a sum with such).

    Raises:
        PartyRefusedError: The shares do not lie on one polynomial of degree t; names who sent wrong ones if 3t + 1 ≤ n.
    """
    field = shares.field
    sent = dict.fromkeys(run.others, shares.values)
    got = await run.exchange_arrays("reveal", field, shares.shape, sent, run.others)
    got[run.me] = shares.values
    opened = opened_from(run, field, got)
    run.observe("opened", run.me, field, opened)
    return opened


async def reveal_to(run: Run, shares: Shares, receiver: int) -> Array | None:
    """Opens secrets to one party; the others get None."""
    field = shares.field
    sent = {} if run.me == receiver else {receiver: shares.values}
    senders = run.others if run.me == receiver else ()
    got = await run.exchange_arrays("reveal to", field, shares.shape, sent, senders)
    if run.me != receiver:
        return None
    got[run.me] = shares.values
    return opened_from(run, field, got)


def opened_from(run: Run, field: Field, shares: dict[int, Array]) -> Array:
    """The secret of all parties' shares; refused where they do not lie on one polynomial of degree t."""
    scheme = run.scheme(field)
    opened, agreed = scheme.open(shares)
    if agreed:
        return opened
    wrong = scheme.wrong(shares) if run.parties >= 3 * run.threshold + 1 else None
    if not wrong:
        raise PartyRefusedError(
            "The parties' shares do not fit together, so nothing was opened.",
            why=f"One of them sent a wrong share. With {run.parties} parties of which {run.threshold} may collude,"
            " nobody can tell which.",
            fix=f"Ask all parties to check their versions; with {3 * run.threshold + 1} parties it could be named.",
        )
    names = [run.names[each - 1] for each in wrong]
    raise PartyRefusedError(
        f"Wrong shares came from {' and '.join(repr(name) for name in names)}, so nothing was opened.",
        why="They do not lie on the polynomial that the others' shares determine.",
        fix="Ask there what happened, or start a new run without.",
        party=names[0],
    )


async def multiply(run: Run, a: Shares, b: Shares) -> Shares:
    """Products, number by number, in one round.

    The product of two shares lies on a polynomial of degree 2t that is not random. Each of 2t + 1 parties shares its
    point afresh, and the shares of the product are their Lagrange sum, on a random polynomial of degree t.
    """
    return await reduce_degree(run, a.field, a.field.multiply(a.values, b.values))


async def inner(run: Run, a: Shares, b: Shares) -> Shares:
    """Σ a·b over the first axis: the products are summed before the one degree reduction."""
    return await reduce_degree(run, a.field, a.field.dot(a.values, b.values))


async def reduce_degree(run: Run, field: Field, points: Array) -> Shares:
    """From points on polynomials of degree 2t to shares of degree t, on fresh polynomials."""
    needed = 2 * run.threshold + 1
    if run.parties < needed:
        raise InputError(
            f"{run.parties} parties of which {run.threshold} may collude cannot multiply.",
            why=f"The product of two polynomials of degree {run.threshold} takes {needed} points.",
            fix="Take more parties or a smaller threshold.",
        )
    scheme = run.scheme(field)
    dealers = range(1, needed + 1)
    weights = lagrange(field, tuple(dealers), 0)
    parts: list[Array] = []
    sent: dict[int, Array] = {}
    if run.me in dealers:
        # each deals its point times its weight, so that the shares need only be added up
        keys = {party: run.stream_to(party) for party in scheme.seeded(run.me)}
        sent = scheme.deal(run.me, points, keys, weights[run.me - 1])
        parts.append(sent.pop(run.me))
        run.observe("multiply", run.me, field, parts[0])
    for party in dealers:
        if party != run.me and run.me in scheme.seeded(party):
            drawn = field.random(run.stream_from(party), points.shape)
            run.observe("multiply", party, field, drawn)
            parts.append(drawn)
    senders = [each for each in dealers if each != run.me and run.me in scheme.sent_to(each)]
    got = await run.exchange_arrays("multiply", field, points.shape, sent, senders)
    parts.extend(got[each] for each in senders)
    return Shares(field, field.combine((1,) * len(parts), parts))


async def reveal_product(run: Run, field: Field, points: Array) -> Array:
    """Opens points on polynomials of degree 2t, such as products of shares, without a degree reduction.

    A uniform polynomial of degree 2t that is zero at 0 is added first: the points alone would tell of the factors.
    With 2t + 1 parties a wrong point is not noticed.
    """
    hidden = field.add(points, zeros(run, field, points.shape))
    got = await run.exchange_arrays(
        "reveal product", field, points.shape, dict.fromkeys(run.others, hidden), run.others
    )
    got[run.me] = hidden
    return run.scheme(field).reconstruct(got, 2 * run.threshold)
