"""What is handed to the ledger and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dalenius.accounting import parameters
from dalenius.accounting.events import Event
from dalenius.errors import InputError
from dalenius.ledger.ceilings import Ceiling
from dalenius.ledger.receipts import Receipt

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
    the data; None: from the data.
    """

    number: int
    holder: str
    fence: int
    epsilon: float
    delta: float
    shares: int | None = None


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
