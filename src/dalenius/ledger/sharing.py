"""What another analyst's answer is good for: the same question again, coarser, paid by the asker's allotment alone.

A second analyst types an ε and is charged that ε, never another's. Where the same question was answered for somebody
else at that ε or more, and nothing in it was chosen from the data, the answer is made from the stored noisy integers
by adding fresh noise of the full variance that the typed ε buys. Its charge says ``"shares": NUMBER`` of the charge of
that answer, and is added to the asker's allotment, not to the data set's total.

Guarantee:
    *All analysts together*: the new answer is a function of one that the data set has paid for and of noise that does
    not depend on the data, so it tells nothing more about anybody: no charge to the data set is due (post-processing:
    Dwork & Roth 2014, Prop. 2.1; Bun & Steinke 2016, Lemma 1.8, for zCDP).
    *This analyst alone*: the noise that is there already is independent of the data. Whatever it is, shifting the exact
    integers by it leaves their sensitivity as it was, so the answer is the mechanism of the added noise on integers of
    that sensitivity: the guarantee is that of the typed ε, given the shift, and so also over all shifts. The same shift
    may serve any number of answers, since they compose given it (Bun & Steinke 2016, Lemma 2.3). Nothing is claimed of
    the noise that is there already: a sum of two discrete Gaussians is not one.

That argument needs the groups, the clips and the integers to be the same functions of the data whatever was drawn
before. Where keys or limits were found, the drawn noise has chosen them, and the asker is charged in full, like anybody
who asks first. For the same reason a coarsened answer is never coarsened again: its original is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dalenius.accounting.orders import is_sampled
from dalenius.errors import LedgerCorruptError
from dalenius.ledger import derived, questions
from dalenius.ledger.requests import OWNER, Claim, Request, Waiting

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.projection import ChargedQuestion, Projection
    from dalenius.ledger.proof import ProvedView


def source(state: Projection, request: Request) -> int | None:
    """The charge of another analyst's answer that serves: the most accurate one, which tells least about itself."""
    return next((each.number for each in _others(state, request, "answered")), None)


def in_flight(view: ProvedView, request: Request) -> Waiting | None:
    """Another analyst's question that will serve once it is answered.

    Only to be asked once it is sure that a charge of the whole price fits: who cannot pay would else learn for nothing
    that somebody is asking the same. One whose holder is dead is left to its own analyst.
    """
    for each in _others(view.state, request, "claimed"):
        holder, _ = derived.holder_of(view.connection, each)
        if not questions.is_dead(holder):
            return Waiting(each.number, holder, own=False)
    return None


def content(ledger: Ledger, claim: Claim) -> bytes:
    """The stored answer from which a claimed question is to be made."""
    if claim.shares is None:
        raise RuntimeError("This question is to be answered from the data.")
    with ledger.view() as view:
        question, original = (view.state.questions.get(each) for each in (claim.number, claim.shares))
        if question is None or original is None or question.shares != claim.shares:
            raise LedgerCorruptError(
                "This question cannot be answered from that one.",
                why="By the history, it was not charged for that.",
                fix="Run 'dalenius ledger verify' and restore a good copy.",
            )
        found, _ = questions.release_of(ledger, view, original)
    return found


def share_member(number: int | None) -> dict[str, int]:
    """What a charge says about where its answer is to come from."""
    return {} if number is None else {"shares": number}


def payers(charge: Mapping[str, Any]) -> tuple[str, ...]:
    """Whose totals a charge is added to: '' is the data set."""
    return (charge["analyst"],) if "shares" in charge else tuple(dict.fromkeys(("", charge["analyst"])))


def broken(charge: Mapping[str, Any], original: Mapping[str, Any]) -> str | None:
    """Why a charge may not share the answer to another; None: it may."""
    if charge["analyst"] in {OWNER, original["analyst"]}:
        return "It shares what is the asker's own, or has no allotment to pay for it."
    if "shares" in original:
        return "It shares an answer that was itself made from another."
    if any(charge.get(name) != original.get(name) for name in ("dataset", "key", "periods", "epoch")):
        return "It shares the answer to another question."
    if original["epsilon"] < charge["epsilon"]:
        return "It shares an answer with more noise than it paid for."
    if charge["delta"] or original["delta"]:
        return "It shares an answer whose groups were found."
    return None


def _as_charge(request: Request) -> dict[str, Any]:
    return {
        "dataset": request.dataset,
        "analyst": request.analyst,
        "key": request.stored_key,
        "epsilon": request.epsilon,
        "delta": request.delta,
        "periods": list(request.periods),
        **({"epoch": request.epoch} if request.epoch else {}),
    }


def _others(state: Projection, request: Request, now: str) -> list[ChargedQuestion]:
    """Other analysts' questions that serve, now answered or claimed: the most accurate first."""
    if not request.shareable or is_sampled(request.event):  # who was drawn is chosen by noise that may serve once
        return []
    asked, known = _as_charge(request), state.asked_before(request.dataset, request.stored_key)
    found = [each for each in known if each.state == now and broken(asked, each.terms) is None]
    return sorted(found, key=lambda each: -each.epsilon)
