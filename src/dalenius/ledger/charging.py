"""How a question goes through the ledger: charged → claimed(holder, lease) → answered, or failed.

One transaction looks for the asker's own stored answer, checks every filter the question touches, and appends the
charge: always of the ε that was typed. The same transaction claims the question for this process. A claim passes to
another process of the same analyst only when its holder is provably dead, and the fencing token is checked in the
commit that stores the release: no question has two answers. What another analyst's answer is good for: `sharing`.
All of it is decided from what the proved entries say (`projection`), none of it from the tables beside them.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dalenius.accounting.event_json import to_json
from dalenius.accounting.guarantees import ZCDP, PureDP
from dalenius.accounting.neighbors import common_neighbors
from dalenius.accounting.orders import SampledLoss, is_sampled
from dalenius.accounting.units import whole_units
from dalenius.errors import (
    NOTHING,
    BudgetError,
    Charge,
    DaleniusError,
    Fits,
    InputError,
    LedgerCorruptError,
    LedgerUnavailableError,
    SourceChangedError,
)
from dalenius.ledger import derived, questions, receipts, sharing, suspensions
from dalenius.ledger.actions import ENOUGH, explains
from dalenius.ledger.budgets import Budget, Filter, covers, losses, made_within, rounded_down
from dalenius.ledger.chain import digest
from dalenius.ledger.projection import ChargedQuestion, Projection
from dalenius.ledger.questions import Failed
from dalenius.ledger.requests import QUESTION, WHOLE, Answered, Claim, Request, Waiting

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.proof import ProvedView

_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05


def charge(ledger: Ledger, request: Request) -> Claim | Answered | Waiting:
    """One try, in one transaction."""
    ledger.keys.signing  # noqa: B018 (a key that is missing is found before anything is charged)
    holder = questions.new_holder()
    try:
        step = _charge(ledger, request, holder)
    except BaseException:
        questions.let_go(holder)
        raise
    if not isinstance(step, Claim):
        questions.let_go(holder)
    if isinstance(step, Failed):  # only now: what it wrote is on disk
        raise step.error()
    return step


def _charge(ledger: Ledger, request: Request, holder: str) -> Claim | Answered | Waiting | Failed:
    with ledger.turn() as (view, append):
        connection, state = view.connection, view.state
        budget = state.budget_of(request.dataset)
        allotment = state.allotment_of(request.dataset, request.analyst)
        derived.check_budget(connection, state, request.dataset)
        derived.check_allotment(connection, state, request.dataset, request.analyst)
        known = questions.come_again(ledger, view, append, request, holder)
        if known is not None:
            if isinstance(known, Claim):  # left by a dead process, and would be looked at now
                suspensions.check(state, request.analyst, request.dataset)
            return known
        _check_epoch(state, request)
        price = _price(request, budget)
        cost = SampledLoss(request.event, request.delta) if is_sampled(request.event) else price
        stored = questions.best_answer(state, request)
        if request.paid_only and stored is None:
            raise questions.never_charged()
        if stored is not None:
            return questions.paid_before(ledger, view, stored, request.analyst)
        suspensions.check(state, request.analyst, request.dataset)
        running = _running(state, request)
        if running is not None:
            other, fence = derived.holder_of(connection, running)
            if not questions.is_dead(other):
                return Waiting(running.number, other)
            return questions.take_over(connection, running, holder, fence + 1)
        _check_cover(request, budget, allotment, price)
        guards = _guards(state, request, budget, allotment)
        _check_ceiling(state, request, guards)
        source = sharing.source(state, request)
        payers = [guard for guard in guards if source is None or guard[1]]  # the data set has paid for a source
        if not all(guard.admits(cost) for _, _, guard in payers):
            raise _refusal(request, guards)  # the same words whether there is a source or not
        if source is None and (waiting := sharing.in_flight(view, request)) is not None:
            return waiting
        body = _charge_body(request, price) | _losses_member(cost, payers) | sharing.share_member(source)
        entry = append("charge", body)
        _spend(connection, state, request, body["units"], payers)
        connection.execute(
            "INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, 'claimed', ?, ?, 1, NULL)",
            (
                *(entry.number, request.dataset, request.stored_key, request.analyst, request.epsilon, request.delta),
                *(holder, time.time() + questions.LEASE_SECONDS),
            ),
        )
        questions.remember(connection, request, entry.number)
        sampled = cost.event if isinstance(cost, SampledLoss) else None
        return Claim(entry.number, holder, 1, request.epsilon, request.delta, source, sampled)


def answer(ledger: Ledger, claim: Claim, content: bytes) -> Answered:
    """Stores a release under its claim."""
    with ledger.turn() as (view, append):
        _check_claim(view, claim)
        charged = questions.charge_of(ledger, view, claim.number)  # proved before anything is signed
        _check_price(claim, content, charged)
        data = {"charge": claim.number, "release": digest(content), "epsilon": claim.epsilon, "delta": claim.delta}
        entry = append("answer", data)
        view.connection.execute("INSERT INTO releases VALUES (?, ?)", (claim.number, content))
        view.connection.execute(
            "UPDATE questions SET state = 'answered', answer = ? WHERE number = ?", (entry.number, claim.number)
        )
    questions.let_go(claim.holder)
    return Answered(content, receipts.write(ledger.keys, receipts.content(entry, charged)), free=False)


def fail(ledger: Ledger, claim: Claim) -> None:
    """Ends a question without a release; what it cost stays spent."""
    with ledger.turn() as (view, append):
        _check_claim(view, claim)
        questions.end(view.connection, append, claim.number)
    questions.let_go(claim.holder)


def ask(
    ledger: Ledger,
    request: Request,
    work: Callable[[Claim], bytes],
    *,
    patience: float,
    waited: Callable[[], None] = lambda: None,
    goes_on: bool = False,
) -> Answered:
    """Charge, look, store; or wait for whoever does. ``waited`` is called each time such a wait has ended.

    ``goes_on``: what is stopped by hand is left as a killed process leaves it, and the same request takes it up.
    """
    deadline, pause = time.monotonic() + patience, _FIRST_PAUSE
    while True:
        step = charge(ledger, request)
        if isinstance(step, Answered):
            return step
        if isinstance(step, Claim):
            return _work(ledger, step, work, goes_on)
        if not _wait_for(ledger, step, deadline, pause):
            if step.own:
                raise _still_running()
            request = replace(request, shareable=False)  # a question of its own, rather than tell of another's
        waited()
        pause = min(2 * pause, _LONGEST_PAUSE)


def _work(ledger: Ledger, claim: Claim, work: Callable[[Claim], bytes], goes_on: bool) -> Answered:
    try:
        try:
            content = work(claim)
        except BaseException as broken:
            interrupted = goes_on and isinstance(broken, KeyboardInterrupt | SystemExit)
            if interrupted or getattr(broken, "resumable", False):  # open, without a holder: who asks again takes it up
                raise
            with suppress(DaleniusError):  # what went wrong first is what the asker must hear
                fail(ledger, claim)  # never a refund: that it failed may itself tell about the data
            raise
        return answer(ledger, claim, content)
    except DaleniusError as error:
        if error.charge == NOTHING:
            error.charge = Charge(claim.epsilon, claim.delta)  # it was charged before it failed
        raise
    except Exception as error:
        error.charge = Charge(claim.epsilon, claim.delta)  # type: ignore[attr-defined]  # for `InternalError`s
        raise
    finally:
        questions.let_go(claim.holder)


def _wait_for(ledger: Ledger, step: Waiting, deadline: float, pause: float) -> bool:
    """Waits until the question is no longer held by a living process; whether that came before the deadline."""
    while True:
        time.sleep(pause)
        with ledger.view() as view:
            row = view.connection.execute("SELECT holder FROM questions WHERE number = ?", (step.number,)).fetchone()
            state = view.state.questions[step.number].state
        if row is None or state != "claimed" or questions.is_dead(row[0]):
            return True
        if time.monotonic() > deadline:
            return False
        pause = min(2 * pause, _LONGEST_PAUSE)


def _still_running() -> LedgerUnavailableError:
    return LedgerUnavailableError(
        "The same question is still being answered.",
        why="Another process works on it, and two answers would cost twice.",
        fix="Ask again later: there will be one answer, and it is charged once.",
    )


# --- what was asked before


def _check_epoch(state: Projection, request: Request) -> None:
    """In the transaction that charges: who was planned for other people must not be paid for by these."""
    if state.epochs.get(request.dataset, 0) != request.epoch:
        raise SourceChangedError(
            f"The people of {request.dataset!r} are other ones by now.",
            why="The owner declared so after this question was planned.",
            fix="Ask again.",
        )


def _running(state: Projection, request: Request) -> ChargedQuestion | None:
    """The same question of the same analyst: nobody finishes another's, or could be seen to."""
    own = (each for each in questions.suitable(state, request) if each.analyst == request.analyst)
    return next((each for each in own if each.state == "claimed"), None)


# --- deciding and writing


def _price(request: Request, budget: Budget) -> PureDP | ZCDP:
    """The most that the request is charged, if it fits the kind of budget.

    All of it is charged, but for sampled noise, of which each filter is charged what it costs at that filter's order.
    """
    common_neighbors([budget.neighbors, request.event.neighbors])
    if (budget.period is None) != (request.periods == (WHOLE,)):
        raise InputError(
            "The periods of this question do not fit the budget.",
            why="A budget per period charges every period that is read; any other has none.",
            fix=f"List the periods ({budget.period}s) that it reads." if budget.period else "Leave the periods out.",
        )
    price: PureDP | ZCDP = budget.filter().price(request.epsilon, request.delta)
    return price


def _check_cover(request: Request, budget: Budget, allotment: float, price: PureDP | ZCDP) -> None:
    """Refuses an event that costs more than what is about to be charged for it."""
    orders = budget.sampling_orders(request.epsilon, allotment) if is_sampled(request.event) else ()
    if not covers(price, request.event, orders):
        raise InputError(
            "The event costs more than the ε that was given for it.",
            why="What is charged must cover what the mechanism does.",
            fix="Calibrate the noise to the price of the question.",
        )


def _guards(state: Projection, request: Request, budget: Budget, allotment: float) -> list[tuple[str, str, Filter]]:
    """(period, analyst or '', filter) of every total the question is charged to."""
    guards = []
    for period in request.periods:
        # of the owner's own questions there is no second total
        for analyst, cap in {"": budget.epsilon, request.analyst: allotment}.items():
            guards.append((period, analyst, state.filter_of(request.dataset, period, analyst, cap)))
    return guards


def _check_ceiling(state: Projection, request: Request, guards: list[tuple[str, str, Filter]]) -> None:
    """Refuses a price that nobody typed, and that is more than its asker would pay.

    By the balance that the asker is shown, and before it is looked up whether another's answer could serve.
    """
    if request.ceiling is None:
        return
    left = min(state.left(request.dataset, request.analyst, period)[0] for period in request.periods)
    if request.ceiling.allows(request.epsilon, left):
        return
    if request.ceiling.epsilon is None and request.epsilon > left:  # to name it would not help
        raise _refusal(request, guards)
    raise request.ceiling.refusal(request.epsilon, left)


def _charge_body(request: Request, price: PureDP | ZCDP) -> dict[str, Any]:
    """The body of the charge."""
    loss = price.rho if isinstance(price, ZCDP) else price.epsilon
    return {
        "dataset": request.dataset,
        "analyst": request.analyst,
        "key": request.stored_key,
        "epsilon": float(request.epsilon),
        "delta": float(request.delta),
        "rho": price.rho if isinstance(price, ZCDP) else None,
        "units": [str(whole_units(loss)), str(whole_units(request.delta))],
        "event": to_json(request.event),
        "question": digest(request.question.encode()),
        "periods": list(request.periods),
        **({"epoch": request.epoch} if request.epoch else {}),
        **({"kind": request.kind} if request.kind != QUESTION else {}),
        **questions.retry_member(request),
    }


def _losses_member(cost: Any, guards: list[tuple[str, str, Filter]]) -> dict[str, Any]:
    """What sampled noise costs each total, and at which order: nothing to be said of what costs the same everywhere."""
    return {} if not isinstance(cost, SampledLoss) else {"losses": losses(cost, {who: each for _, who, each in guards})}


def _spend(
    connection: sqlite3.Connection,
    state: Projection,
    request: Request,
    units: Sequence[str],
    guards: list[tuple[str, str, Filter]],
) -> None:
    """The running totals, with what was charged."""
    loss, delta = map(int, units)
    derived.spend(connection, state, [(request.dataset, period, analyst, loss, delta) for period, analyst, _ in guards])


def begin_epoch(view: ProvedView, dataset: str, epoch: int, reason: str) -> None:
    """New people in a data set: its budget and all allotments in it are whole again.

    Sound if no unit of the new data is one of the old: then a unit's rows are read in one epoch only, and what was
    spent in another is no loss of it (parallel composition). Nothing here can check that; the owner declares it.
    """
    view.state.budget_of(dataset)
    if epoch != view.state.epochs.get(dataset, 0) + 1:
        raise InputError("An epoch follows the one before.", why="They are counted.", fix="Refresh the table again.")
    if not explains(reason):
        raise InputError("New people need a reason.", why=f"The history must say why. {ENOUGH}", fix="Give one.")
    view.connection.execute("INSERT OR REPLACE INTO epochs VALUES (?, ?)", (dataset, epoch))
    view.connection.execute("DELETE FROM totals WHERE dataset = ?", (dataset,))


def _check_claim(view: ProvedView, claim: Claim) -> None:
    """Whether it is still this claim's question to answer: by the history it has no answer yet, and nobody took over.

    Whoever changes holder or fence in the table can turn a claim away, never let a second answer in.
    """
    question = view.state.questions.get(claim.number)
    if (
        question is None
        or question.state != "claimed"
        or derived.holder_of(view.connection, question) != (claim.holder, claim.fence)
    ):
        raise LedgerUnavailableError(
            "This question is no longer ours to answer.",
            why="It was taken over, answered or ended meanwhile.",
            fix="Ask again; if it was answered, that costs nothing.",
        )


def _check_price(claim: Claim, content: bytes, charged: Mapping[str, Any]) -> None:
    """What is stored was made at what was charged, by the claim and by what the release says itself."""
    paid = {name: charged[name] for name in ("epsilon", "delta", "rho")}
    if (claim.epsilon, claim.delta) != (charged["epsilon"], charged["delta"]) or not made_within(content, paid):
        raise LedgerCorruptError(
            "The answer was made at another price than was charged.",
            why="Its noise is not that of the charge in the history.",
            fix="Run 'dalenius ledger verify'. The answer was not stored and does not leave.",
        )


def _refusal(request: Request, guards: list[tuple[str, str, Filter]]) -> BudgetError:
    """What is left and what would fit, by the tightest of all totals that the question is charged to."""
    left_delta = min(guard.remaining_delta for _, _, guard in guards)
    if request.delta > left_delta:
        least = rounded_down(left_delta, 3)
        smaller = f"Ask with --delta {least:g} or less, or" if least > 0 else "Ask"
        return BudgetError(
            f"There is not enough left for δ = {request.delta:.3g}.",
            why=f"δ ≤ {least:g} would pass." if least > 0 else "Nothing of it is left.",
            fix=f"{smaller} over declared keys, which need none.",
        )
    period, analyst, tightest = min(guards, key=lambda each: each[2].remaining_epsilon)
    fits = tightest.remaining_epsilon
    whose = "Your allotment" if analyst else f"The budget of {request.dataset!r}"
    within = f" in period {period}" if period else ""
    shown = rounded_down(fits)
    return BudgetError(
        f"{whose} does not cover ε = {request.epsilon:.4g}{within}.",
        why=f"ε ≤ {shown:g} would pass." if shown > 0 else "Nothing is left.",
        fix=f"Ask with --epsilon {shown:g} or less, or ask again what was answered before: that is free."
        if shown > 0
        else "Ask again what was answered before (that is free), or ask the owner for more.",
        fits=Fits(fits) if fits > 0 else None,
    )
