"""What `audit mechanism` runs: each of our mechanisms on two neighbouring inputs, and strawmen that must be caught.

A subject is a mechanism with parameters, two inputs that are as bad as we know, and its claim. Ours claim the event
that the ledger would be charged for (`Released.event`). `broken` holds the teaching part: what people have published
or shipped, and what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable

from dalenius.audit.mechanisms import additive, choices, local, streams, tested
from dalenius.audit.mechanisms.broken import float_laplace, scaled_down, sparse_vectors, unclipped_mean
from dalenius.audit.mechanisms.subject import Subject
from dalenius.errors import InputError

# name → ε → subject. A new mechanism is a line in its file's MADE.
OURS: dict[str, Callable[[float], Subject]] = {
    **additive.MADE,
    **choices.MADE,
    **streams.MADE,
    **tested.MADE,
    **local.MADE,
}
BROKEN: dict[str, Callable[[float], Subject]] = {
    **scaled_down.MADE,
    **sparse_vectors.MADE,
    **float_laplace.MADE,
    **unclipped_mean.MADE,
}


def subject(name: str, epsilon: float = 1.0) -> Subject:
    """The subject of that name.

    Raises:
        InputError: There is none.
    """
    from dalenius.accounting.parameters import positive

    made = (OURS | BROKEN).get(name)
    if made is None:
        raise InputError(
            f"There is no mechanism {name[:80]!r} to audit.",
            why="It is none of ours, and none of the broken ones.",
            fix="Run 'dalenius audit mechanism list'.",
        )
    given = float(positive(epsilon, "epsilon"))
    if not 0.01 <= given <= 10:
        raise InputError(
            "Audits take an epsilon between 0.01 and 10.",
            why="Outside of that, samples show nothing.",
            fix="Give --epsilon 1.",
        )
    return made(given)


__all__ = ["BROKEN", "OURS", "Subject", "subject"]
