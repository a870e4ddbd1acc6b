"""How a question goes through the ledger: charged → claimed(holder, lease) → answered, or failed.

One transaction looks for a stored answer, checks every filter the question touches, and appends the charge. The same
transaction claims the question for this process. A claim passes to another process only when its holder is provably
dead, and the fencing token is checked in the commit that stores the release: no question has two answers.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dalenius.accounting import costs
from dalenius.accounting.event_json import to_json
from dalenius.accounting.guarantees import ZCDP, PureDP
from dalenius.accounting.neighbors import common_neighbors
from dalenius.errors import (
    NOTHING,
    BudgetError,
    Charge,
    DaleniusError,
    Fits,
    InputError,
    LedgerUnavailableError,
    NotAllowedError,
    SourceChangedError,
    UnknownTableError,
)
from dalenius.ledger import holders, questions, retries, suspensions
from dalenius.ledger.budgets import Budget, Filter, rounded_down
from dalenius.ledger.chain import digest
from dalenius.ledger.reasons import ENOUGH, explains
from dalenius.ledger.requests import OWNER, WHOLE, Answered, Claim, Request, Waiting
from dalenius.ledger.retries import Failed

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger

_TOLERANCE = 1 + 1e-9  # for the rounding of a ρ computed in two ways
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05


def charge(ledger: Ledger, request: Request) -> Claim | Answered | Waiting:
    """One try, in one transaction."""
    ledger.keys.signing  # noqa: B018 (a key that is missing is found before anything is charged)
    holder = holders.me()
    try:
        step = _charge(ledger, request, holder)
    except BaseException:
        holders.let_go(holder)
        raise
    if not isinstance(step, Claim):
        holders.let_go(holder)
    if isinstance(step, Failed):  # only now: what it wrote is on disk
        raise step.error()
    return step


def _charge(ledger: Ledger, request: Request, holder: str) -> Claim | Answered | Waiting | Failed:
    with ledger.transaction() as (connection, append):
        budget = budget_of(connection, request.dataset)
        allotment = allotment_of(connection, request.dataset, request.analyst)
        known = retries.again(ledger.keys, connection, append, request, holder)
        if known is not None:
            if isinstance(known, Claim):  # left by a dead process, and would be looked at now
                suspensions.check(ledger, connection, request.analyst, request.dataset)
            return known
        _check_epoch(connection, request)
        price = _price(request, budget)
        stored = _stored(connection, request)
        if stored is not None:
            given = _given_again(ledger, connection, append, request, stored, budget, allotment)
            if given is not None:
                return given
        suspensions.check(ledger, connection, request.analyst, request.dataset)
        running = _running(connection, request)
        if running is not None:
            number, other, fence = running
            if not holders.is_dead(other):
                return Waiting(number, other)
            return questions.taken_over(connection, number, holder, fence + 1)
        guards = _guards(connection, request, budget, allotment)
        data = _admitted(guards, request, price)
        entry = append("charge", data)
        _spend(connection, request, guards)
        connection.execute(
            "INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, 'claimed', ?, ?, 1, NULL)",
            (
                *(entry.number, request.dataset, request.stored_key, request.analyst, request.epsilon, request.delta),
                *(holder, time.time() + questions.LEASE_SECONDS),
            ),
        )
        retries.remember(connection, request, entry.number)
        return Claim(entry.number, holder, 1, request.epsilon, request.delta)


def answer(ledger: Ledger, claim: Claim, content: bytes) -> Answered:
    """Stores a release under its claim."""
    with ledger.transaction() as (connection, append):
        _check_claim(connection, claim)
        entry = append("answer", {"charge": claim.number, "release": digest(content)})
        connection.execute("INSERT INTO releases VALUES (?, ?)", (claim.number, content))
        connection.execute(
            "UPDATE questions SET state = 'answered', answer = ? WHERE number = ?", (entry.number, claim.number)
        )
        charged = questions.charge_of(connection, claim.number)
    holders.let_go(claim.holder)
    return Answered(content, questions.receipt_of(ledger.keys, entry, charged), free=False)


def fail(ledger: Ledger, claim: Claim) -> None:
    """Ends a question without a release; what it cost stays spent."""
    with ledger.transaction() as (connection, append):
        _check_claim(connection, claim)
        questions.end(connection, append, claim.number)
    holders.let_go(claim.holder)


def ask(
    ledger: Ledger,
    request: Request,
    work: Callable[[Claim], bytes],
    *,
    patience: float,
    waited: Callable[[], None] = lambda: None,
) -> Answered:
    """Charge, look, store; or wait for whoever does. ``waited`` is called each time such a wait has ended."""
    deadline, pause = time.monotonic() + patience, _FIRST_PAUSE
    while True:
        step = charge(ledger, request)
        if isinstance(step, Answered):
            return step
        if isinstance(step, Claim):
            done = _worked(ledger, step, work)
            if done.receipt.analyst == request.analyst:
                return done
            continue  # finished another analyst's question for a dead process; now pay for it
        _wait(ledger, step, deadline, pause)
        waited()
        pause = min(2 * pause, _LONGEST_PAUSE)


def _worked(ledger: Ledger, claim: Claim, work: Callable[[Claim], bytes]) -> Answered:
    try:
        try:
            content = work(claim)
        except BaseException:
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
        holders.let_go(claim.holder)


def _wait(ledger: Ledger, step: Waiting, deadline: float, pause: float) -> None:
    """Until the question is no longer held by a living process."""
    while True:
        time.sleep(pause)
        with ledger.database.reading() as connection:
            row = connection.execute("SELECT state, holder FROM questions WHERE number = ?", (step.number,)).fetchone()
        if row is None or row[0] != "claimed" or holders.is_dead(row[1]):
            return
        if time.monotonic() > deadline:
            raise LedgerUnavailableError(
                "The same question is still being answered.",
                why="Another process works on it, and two answers would cost twice.",
                fix="Ask again later: there will be one answer, and it is charged to the data set once.",
            )
        pause = min(2 * pause, _LONGEST_PAUSE)


# --- reading the derived tables


def budget_of(connection: sqlite3.Connection, dataset: str) -> Budget:
    """The budget of a data set."""
    row = connection.execute("SELECT body FROM budgets WHERE dataset = ?", (dataset,)).fetchone()
    if row is None:
        raise UnknownTableError(
            f"There is no data set {dataset!r}.",
            why="No budget was ever recorded for it.",
            fix="Run 'dalenius tables' for those there are.",
        )
    return Budget.from_json(row[0])


def epoch_of(connection: sqlite3.Connection, dataset: str) -> int:
    """How often the people of a data set were declared to be new ones."""
    row = connection.execute("SELECT number FROM epochs WHERE dataset = ?", (dataset,)).fetchone()
    return int(row[0]) if row else 0


def _check_epoch(connection: sqlite3.Connection, request: Request) -> None:
    """In the transaction that charges: who was planned for other people must not be paid for by these."""
    if epoch_of(connection, request.dataset) != request.epoch:
        raise SourceChangedError(
            f"The people of {request.dataset!r} are other ones by now.",
            why="The owner declared so after this question was planned.",
            fix="Ask again.",
        )


def allotment_of(connection: sqlite3.Connection, dataset: str, analyst: str) -> float:
    """The ε that an analyst may spend; the owner, all of it."""
    if analyst == OWNER:
        return budget_of(connection, dataset).epsilon
    row = connection.execute(
        "SELECT epsilon FROM allotments WHERE dataset = ? AND analyst = ?", (dataset, analyst)
    ).fetchone()
    if row is None:
        raise NotAllowedError(
            f"Analyst {analyst!r} has no allotment in {dataset!r}.",
            why="Who may ask, and how much, is the owner's decision.",
            fix="Ask the owner for an allotment.",
        )
    return float(row[0])


def filter_of(
    connection: sqlite3.Connection, budget: Budget, dataset: str, period: str, analyst: str, cap: float
) -> Filter:
    """The filter of a total, as it stands: ``analyst`` '' is the whole data set."""
    row = connection.execute(
        "SELECT loss, delta FROM totals WHERE dataset = ? AND period = ? AND analyst = ?", (dataset, period, analyst)
    ).fetchone()
    return budget.filter(cap, (int(row[0]), int(row[1])) if row else (0, 0))


def _stored(connection: sqlite3.Connection, request: Request) -> tuple[int, float, float] | None:
    """A stored answer that is at least as accurate as asked.

    Of those this analyst has paid for, the most accurate; else the cheapest, since he pays its price.
    """
    row = connection.execute(
        """SELECT q.number, q.epsilon, q.delta FROM questions q
           WHERE q.dataset = ?1 AND q.key = ?2 AND q.state = 'answered' AND q.epsilon >= ?3 AND q.delta >= ?4
           ORDER BY q.analyst = ?5 OR EXISTS (SELECT 1 FROM grants g WHERE g.question = q.number AND g.analyst = ?5)
                    DESC,
                    CASE WHEN q.analyst = ?5 OR EXISTS (
                        SELECT 1 FROM grants g WHERE g.question = q.number AND g.analyst = ?5
                    ) THEN -q.epsilon ELSE q.epsilon END
           LIMIT 1""",
        (request.dataset, request.stored_key, request.epsilon, request.delta, request.analyst),
    ).fetchone()
    return tuple(row) if row else None


def _running(connection: sqlite3.Connection, request: Request) -> tuple[int, str, int] | None:
    row = connection.execute(
        """SELECT number, holder, fence FROM questions
           WHERE dataset = ? AND key = ? AND state = 'claimed' AND epsilon >= ? AND delta >= ?
           ORDER BY number LIMIT 1""",
        (request.dataset, request.stored_key, request.epsilon, request.delta),
    ).fetchone()
    return tuple(row) if row else None


# --- deciding and writing


def _price(request: Request, budget: Budget) -> PureDP | ZCDP:
    """What the request is charged, if it fits the kind of budget and its event costs no more than that."""
    common_neighbors([budget.neighbors, request.event.neighbors])
    if (budget.period is None) != (request.periods == (WHOLE,)):
        raise InputError(
            "The periods of this question do not fit the budget.",
            why="A budget per period charges every period that is read; any other has none.",
            fix=f"List the periods ({budget.period}s) that it reads." if budget.period else "Leave the periods out.",
        )
    price: PureDP | ZCDP = budget.filter().price(request.epsilon, request.delta)
    if isinstance(price, ZCDP):
        cost = costs.zcdp(request.event)
        fits = cost is not None and cost.rho <= price.rho * _TOLERANCE and cost.delta <= price.delta * _TOLERANCE
    else:
        epsilon = costs.pure_epsilon(request.event)
        fits = epsilon is not None and epsilon <= price.epsilon * _TOLERANCE
    if not fits:
        raise InputError(
            "The event costs more than the ε that was given for it.",
            why="What is charged must cover what the mechanism does.",
            fix="Calibrate the noise to the price of the question.",
        )
    return price


def _guards(
    connection: sqlite3.Connection, request: Request, budget: Budget, allotment: float
) -> list[tuple[str, str, Filter]]:
    """(period, analyst or '', filter) of every total the question is charged to."""
    guards = []
    for period in request.periods:
        # of the owner's own questions there is no second total
        for analyst, cap in {"": budget.epsilon, request.analyst: allotment}.items():
            guards.append((period, analyst, filter_of(connection, budget, request.dataset, period, analyst, cap)))
    return guards


def _admitted(guards: list[tuple[str, str, Filter]], request: Request, price: PureDP | ZCDP) -> dict[str, Any]:
    """The body of the charge, if every filter admits it. The filters move on; nothing is written yet."""
    if not all(guard.admits(price) for _, _, guard in guards):
        raise _refusal(request, guards)
    before = guards[0][2].units
    for _, _, guard in guards:
        guard.charge(price)
    loss, delta = (after - first for after, first in zip(guards[0][2].units, before, strict=True))
    return {
        "dataset": request.dataset,
        "analyst": request.analyst,
        "key": request.stored_key,
        "epsilon": float(request.epsilon),
        "delta": float(request.delta),
        "rho": price.rho if isinstance(price, ZCDP) else None,
        "units": [str(loss), str(delta)],
        "event": to_json(request.event),
        "question": digest(request.question.encode()),
        "periods": list(request.periods),
        **({"epoch": request.epoch} if request.epoch else {}),
        **retries.written(request),
    }


def _spend(connection: sqlite3.Connection, request: Request, guards: list[tuple[str, str, Filter]]) -> None:
    """The filters' new state as the running totals."""
    for period, analyst, guard in guards:
        loss, delta = guard.units
        connection.execute(
            """INSERT INTO totals VALUES (?1, ?2, ?3, ?4, ?5, 1)
               ON CONFLICT DO UPDATE SET loss = ?4, delta = ?5, charges = charges + 1""",
            (request.dataset, period, analyst, str(loss), str(delta)),
        )


def begin_epoch(connection: sqlite3.Connection, dataset: str, epoch: int, reason: str) -> None:
    """New people in a data set: its budget and all allotments in it are whole again.

    Sound if no unit of the new data is one of the old: then a unit's rows are read in one epoch only, and what was
    spent in another is no loss of it (parallel composition). Nothing here can check that; the owner declares it.
    """
    budget_of(connection, dataset)
    if epoch != epoch_of(connection, dataset) + 1:
        raise InputError("An epoch follows the one before.", why="They are counted.", fix="Refresh the table again.")
    if not explains(reason):
        raise InputError("New people need a reason.", why=f"The history must say why. {ENOUGH}", fix="Give one.")
    connection.execute("INSERT OR REPLACE INTO epochs VALUES (?, ?)", (dataset, epoch))
    connection.execute("DELETE FROM totals WHERE dataset = ?", (dataset,))


def _given_again(
    ledger: Ledger,
    connection: sqlite3.Connection,
    append: questions.Append,
    request: Request,
    stored: tuple[int, float, float],
    budget: Budget,
    allotment: float,
) -> Answered | None:
    """A stored release: free for who has paid for it, else for his allotment alone. None if that does not cover it."""
    number, epsilon, delta = stored
    before = questions.paid_before(ledger.keys, connection, number, request.analyst)
    if before is not None:
        return before
    suspensions.check(ledger, connection, request.analyst, request.dataset)
    charged = questions.charge_of(connection, number)
    full = Request(
        request.dataset, request.analyst, request.key, epsilon, request.event, delta, periods=tuple(charged["periods"])
    )
    guards = [guard for guard in _guards(connection, full, budget, allotment) if guard[1]]
    price = budget.filter().price(epsilon, delta)
    if not all(guard.admits(price) for _, _, guard in guards):
        return None
    for _, _, guard in guards:
        guard.charge(price)
    content, answered = questions.release_of(connection, number)
    data = {
        "charge": number,
        "release": answered.data["release"],
        "analyst": request.analyst,
        "question": digest(request.question.encode()),
        **retries.written(request),
    }
    entry = append("grant", data)
    _spend(connection, full, guards)
    connection.execute("INSERT INTO grants VALUES (?, ?, ?)", (number, request.analyst, entry.number))
    retries.remember(connection, request, number)
    return Answered(content, questions.receipt_of(ledger.keys, entry, charged), free=False)


def _check_claim(connection: sqlite3.Connection, claim: Claim) -> None:
    row = connection.execute("SELECT state, holder, fence FROM questions WHERE number = ?", (claim.number,)).fetchone()
    if row != ("claimed", claim.holder, claim.fence):
        raise LedgerUnavailableError(
            "This question is no longer ours to answer.",
            why="It was taken over, answered or ended meanwhile.",
            fix="Ask again; if it was answered, that costs nothing.",
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
