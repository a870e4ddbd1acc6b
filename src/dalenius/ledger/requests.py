"""What is handed to the ledger and what comes back.

A price that nobody typed, because it follows from an accuracy, has a ceiling. Either the asker names it; or it is a
quarter of what the asker has left, so that no single question takes most of an allotment by surprise. It is checked in
the transaction that charges, after what was paid for before is looked up: an answer that is known stays free, and a
request that is sent again finds what became of the first one, though less is left by then. Whether a price is refused
depends on the price, on what was typed and on the balance that its asker is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dalenius.accounting import parameters
from dalenius.accounting.events import Event
from dalenius.errors import InputError
from dalenius.ledger.budgets import rounded_down, rounded_up
from dalenius.ledger.receipts import Receipt

PART = 0.25  # of what is left, where nobody named the most
_PART = "a quarter"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What may be paid at most.

    Attributes:
        epsilon: As its asker named it; None: a quarter of what is left.
    """

    epsilon: float | None = None

    def allows(self, price: float, left: float) -> bool:
        """Whether this price may be paid, by who has so much left."""
        return price <= (PART * left if self.epsilon is None else self.epsilon)

    def note(self, price: float, left: float) -> str:
        """What a preview says of a price that asking would refuse; empty where less is left, which it says anyway."""
        if self.allows(price, left) or (self.epsilon is None and price > left):
            return ""
        shown = f"{rounded_up(price):g}"
        if self.epsilon is not None:
            return f"ε = {shown} is more than the ε = {self.epsilon:g} that you would pay."
        return (
            f"ε = {shown} is more than {_PART} of what you have left. "
            f"To ask at that price, name it as the most beside the error: --epsilon {shown}."
        )

    def refusal(self, price: float, left: float) -> InputError:
        """The error about a price that is too high."""
        shown = f"{rounded_up(price):g}"
        if self.epsilon is None:
            most = f"{_PART} of what you have left"
            why = f"ε ≤ {rounded_down(left):g} is left, and nobody said how much of it one answer may cost."
        else:
            most = f"the ε = {self.epsilon:g} that you would pay"
            why = "Beside an error, ε is the most that is charged."
        return InputError(
            f"So small an error costs ε = {shown}, more than {most}.",
            why=why,
            fix=f"Ask for a larger error. Or pay that price: add --epsilon {shown} (in Python, epsilon={shown}).",
        )


WHOLE = ""  # the one period of a budget that has none
QUESTION, LIMITS = (
    "question",
    "limits",
)  # kinds of release whose keys stand by themselves; others' begin with their kind
OWNER = ""  # who asks when the owner does: paid by the data set alone. No analyst can have that name.


@dataclass(frozen=True, slots=True)
class Request:
    """One question, priced, before anything of it is looked at.

    ``key`` stands for its meaning: canonical plan, data version and policy version. Two requests with the same key ask
    for the same thing. ``epoch`` is that of the people whose rows the asker is about to look at: a budget pays for its
    own people only. ``retry`` names the request as its client sent it, so that sending it twice charges once: SHA-256
    of analyst and idempotency key, and SHA-256 of the request's body. ``paid_only`` asks for what was paid for before
    and for nothing else: it is never charged. ``shareable``: nothing in it is chosen from the data and the owner allows
    it, so another analyst's answer to it may serve (`sharing`). ``kind``: of what leaves, a name that this package does
    not look into. ``delta_chosen``: nobody typed the δ (`key_delta`), which is another one each time; the asker's own
    answer to the same question serves whatever its δ was. ``ceiling``: nobody typed the ε either, and more than that is
    not charged for it; None: it was typed.
    """

    dataset: str
    analyst: str
    key: str
    epsilon: float
    event: Event
    delta: float = 0.0
    question: str = ""
    periods: tuple[str, ...] = (WHOLE,)
    epoch: int = 0
    retry: tuple[str, str] | None = None
    paid_only: bool = False
    shareable: bool = False
    kind: str = QUESTION
    delta_chosen: bool = False
    ceiling: Ceiling | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", parameters.epsilon(self.epsilon))
        object.__setattr__(self, "delta", parameters.delta(self.delta))
        try:
            "".join((self.dataset, self.analyst, self.key, self.question, self.kind, *self.periods)).encode()
        except (TypeError, UnicodeEncodeError):
            raise InputError(
                "This question cannot be written down.", why="Its texts must be valid Unicode.", fix="Correct them."
            ) from None
        if not self.periods or len(set(self.periods)) != len(self.periods):
            raise InputError(
                "A question reads at least one period, and each once.",
                why="It is charged to every period it reads.",
                fix="List the periods without repetition.",
            )
        if self.retry is not None and not all(map(_is_hash, self.retry)):
            raise InputError(
                "This does not name a request.", why="It takes two SHA-256 in hexadecimal digits.", fix="Give both."
            )

    @property
    def stored_key(self) -> str:
        """The key under which it is written down."""
        return key_stored(self.kind, self.key, self.epoch)


def key_stored(kind: str, key: str, epoch: int) -> str:
    """The key under which a release is written down: an answer about other people is never the same answer."""
    whole = key if kind in {QUESTION, LIMITS} else f"{kind} {key}"
    return f"{epoch} {whole}" if epoch else whole


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to answer a charged question, held by one process at a time; ``fence`` grows with each holder.

    The noise must be that of ``epsilon`` and ``delta``: what was charged, which may be more than was asked for now.
    ``shares`` is the charge of another analyst's answer, from which alone this one is to be made (`sharing`), not from
    the data; None: from the data. ``sampled`` is the event that was charged where it has sampled noise: the noise must
    be just that. What is planned anew may have less, if a cap was changed after the charge. None: ε and δ say it all.
    """

    number: int
    holder: str
    fence: int
    epsilon: float
    delta: float
    shares: int | None = None
    sampled: Event | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """The same question is being answered, by another process or for another analyst."""

    number: int
    holder: str
    own: bool = True


@dataclass(frozen=True, slots=True)
class Answered:
    """A release that is on disk, and what it cost this time."""

    content: bytes
    receipt: Receipt
    free: bool  # it cost this analyst nothing: asked and paid for before

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"free": self.free, "receipt": self.receipt.to_dict()}


def _is_hash(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")
