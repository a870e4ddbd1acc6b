"""One analyst's way through the curator: preview, ask, what is left, what was asked."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from dalenius._limiting import found_of
from dalenius._paths import texts_of, through
from dalenius._public_answers import is_public, public_preview, public_release
from dalenius._reading import Reading
from dalenius.accounting import parameters
from dalenius.errors import NOTHING, Charge, DaleniusError, EngineError, InputError, NotAllowedError, UnknownTableError
from dalenius.ledger import suspensions
from dalenius.ledger.authors import CURATOR
from dalenius.ledger.requests import Answered, Claim, Request
from dalenius.ledger.retries import never_charged
from dalenius.pacing import CAP, held, latest, paced
from dalenius.queries.plan import Limits, Plan, Table
from dalenius.queries.preview import CHOICES, Preview, previewed

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Balance
    from dalenius.ledger.ledger import Ledger
    from dalenius.pacing import Pacer
    from dalenius.queries.engines.duckdb import Engines
    from dalenius.queries.public import PublicTable
    from dalenius.queries.release import Release
    from dalenius.tables.registry import Registry, Version
_LONGEST_KEY = 200


class Analyst:
    """What one analyst may do. Made by `Curator.analyst`.

    The way of a question: it is planned and priced without the data; the ledger charges it; only then does the engine
    look; the release is on disk before it is returned.

    Args:
        name: Whose allotment pays.
        ledger: Where it is charged.
        registry: The tables.
        engines: Where they are read.
        pacer: When answers leave (`pacing`); None: as soon as they are ready.
    """

    def __init__(
        self, name: str, ledger: Ledger, registry: Registry, engines: Engines, pacer: Pacer | None = None
    ) -> None:
        self.name = name
        self._ledger = ledger
        self._registry = registry
        self._engines = engines
        self._pacer = pacer
        self._resumes, self._public = False, True

    def preview(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        error: float | Mapping[str, float] | None = None,
        confidence: float = 0.95,
        delta: float | None = None,
        limits: Limits | None = None,
    ) -> Preview:
        """Price and expected error, for nothing: at ``epsilon``, or at three usual prices. Never touches the data."""
        from dalenius.queries.rules.clause import agreed

        with self._own_work():
            epsilon, delta = agreed(question, epsilon, delta)
            public = public_preview(question, self._open(), confidence)
            if public is not None:
                return public
            plan, reading = self._planned(question, confidence, delta, limits, searches=error is None)
            if error is not None:
                epsilon = self._by_error(plan, epsilon, error, confidence)
            prices = CHOICES if epsilon is None else (parameters.epsilon(epsilon),)
            remaining = self._remaining(reading.dataset, plan.periods)
            return previewed(plan, prices, confidence, remaining, delta)

    def ask(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        error: float | Mapping[str, float] | None = None,
        confidence: float = 0.95,
        delta: float | None = None,
        limits: Limits | None = None,
        idempotency_key: str | None = None,
    ) -> Release:
        """Asks. The whole question, taken alone, is (ε, δ)-DP; the same question again is free.

        A question over public tables only needs no price: its answer is exact, and charges nothing.

        Args:
            question: SQL, one SELECT over a protected table, or over public ones.
            epsilon: The price, where the question's own OPTIONS(epsilon = …) do not say it; or
            error: the noise error that is good enough, for all columns or by name: the least ε that gives it is paid.
            confidence: Of the noise errors.
            delta: For finding keys that are not public; by default a fortieth of the budget's. Not used otherwise.
            limits: Tighter limits of what one unit adds, for this question; or which share of the price goes into
                finding some (`Limits.search`), by default a tenth where limits of the whole table are likely too wide.
            idempotency_key: For who may have to ask again without knowing what became of the first time: the same key
                is charged once, also if the question failed or the data changed meanwhile.
        """
        from dalenius.queries.rules.clause import agreed

        retry = self._retry(idempotency_key, question, (epsilon, error, confidence, delta, limits))
        with self._own_work():
            epsilon, delta = agreed(question, epsilon, delta)
            if not self._public and is_public(question, self._open()):
                raise never_charged()
            public = public_release(question, self._open())
            if public is not None:
                return public
            if epsilon is not None:
                epsilon = parameters.epsilon(epsilon)
            if epsilon is not None or error is not None:
                plan, reading = self._planned(question, confidence, delta, limits, searches=error is None)
                price = epsilon if error is None else self._by_error(plan, epsilon, error, confidence)
        if epsilon is None and error is None:
            raise self._unpriced(question, confidence, delta, limits)
        return self._release(question, plan, reading, cast("float", price), delta, confidence, retry)

    def budget(self) -> dict[str, Balance]:
        """What is left of this analyst's allotments, by data set."""
        return {
            dataset: self._ledger.balance(dataset, self.name)
            for dataset in self._ledger.datasets()
            if self.name in self._ledger.allotments(dataset)
        }

    def history(self) -> list[dict[str, Any]]:
        """Every charge of this analyst, oldest first."""
        found = []
        for entry in self._ledger.records(("charge", "grant")):
            data = entry.data
            if data["analyst"] == self.name:
                paid = data if entry.kind == "charge" else self._charge(data["charge"])
                charge = {key: paid[key] for key in ("epsilon", "delta", "rho")}
                found.append(
                    {
                        "entry": entry.number,
                        "time": entry.time,
                        "dataset": paid["dataset"],
                        "charge": charge,
                        "question": data["question"],
                    }
                )
        return found

    @property
    def _whose(self) -> str:
        """By what name work is counted as this analyst's own (`metering`)."""
        return f"{self._ledger.home}\0{self.name}"

    @contextmanager
    def _own_work(self) -> Iterator[None]:
        """Reading, planning and previews, public questions as well: for a server, within this analyst's share.

        It counts as the analyst's: who makes an own question late by more of them is no victim of others.
        """
        from dalenius.queries.engines.confined import planning
        from dalenius.queries.engines.metering import metered

        with planning(), metered(self._whose):
            yield

    # --- the way of a question

    def _planned(
        self, question: str, confidence: float, delta: float | None, limits: Limits | None, *, searches: bool = True
    ) -> tuple[Plan, Reading]:
        from dalenius.queries.rules import planned

        _check_confidence(confidence)
        if delta is not None:
            parameters.delta(delta)
        versions = self._registry.current()
        if not searches and (limits is None or limits.search is None):
            # Priced by its error, a question costs the least at the limits that are known.
            limits = replace(limits or Limits(), search=0)
        tables = self._tables(versions)
        plan = planned(question, tables, limits, self._publics(versions, tables))
        if plan.selection is not None and delta == 0:
            raise InputError(
                "delta must be above 0.", why="Keys cannot be found without any.", fix="Give a δ such as 1e-7."
            )
        self._check_open(*plan.table.reads)
        return plan, Reading.of(plan.table, versions)

    def _open(self) -> list[Version]:
        """The tables of data sets in which this analyst has an allotment."""
        datasets = {each for each in self._ledger.datasets() if self.name in self._ledger.allotments(each)}
        return [version for version in self._registry.current().values() if version.dataset in datasets]

    def _check_open(self, *tables: str) -> None:
        """Refuses a closed table, whoever asks and whatever is asked."""
        for name in tables:
            why = self._registry.closed(name)
            if why is not None:
                raise NotAllowedError(f"Table {name!r} is closed.", why=why, fix="Ask the owner to refresh it.")

    def _by_error(
        self, plan: Plan, epsilon: float | None, error: float | Mapping[str, float], confidence: float
    ) -> float:
        from dalenius.queries.accuracy import epsilon_for

        if epsilon is not None:
            raise InputError("There are two prices.", why="An error is a price too.", fix="Give ε or the error.")
        return epsilon_for(plan, error, confidence)

    def _tables(self, versions: Mapping[str, Version]) -> dict[str, Table]:
        """The tables that this analyst may ask about: those of data sets in which there is an allotment."""
        open_ = {dataset for dataset in self._ledger.datasets() if self.name in self._ledger.allotments(dataset)}
        if not open_:
            raise NotAllowedError(
                f"Analyst {self.name!r} has no allotment.",
                why="Who may ask, and how much, is the owner's decision.",
                fix="Ask the owner for one, or check the name.",
            )
        budgets = {dataset: self._ledger.budget(dataset) for dataset in open_}
        periods = {
            version.dataset: version.policy.budget.period
            for version in versions.values()
            if version.policy.budget is not None
        }
        seen = {name: each for name, each in versions.items() if each.dataset in open_}
        found = {
            name: Table(
                version.policy,
                budgets[version.dataset],
                periods.get(version.dataset),
                found_of(self._registry, version),
                texts=texts_of(version.fingerprint),
            )
            for name, version in seen.items()
        }
        return {
            name: replace(table, through={each: found[way.table] for each, way in through(table.policy, seen).items()})
            for name, table in found.items()
        }

    def _publics(self, versions: Mapping[str, Version], tables: Mapping[str, Table]) -> Mapping[str, PublicTable]:
        """The public tables that the policies of these tables declare; each is looked up when it is asked about."""
        from dalenius.queries.public import Publics

        specs = {
            name: (spec, versions[table].public.get(name))
            for table in tables
            for name, spec in versions[table].policy.public.items()
        }
        return Publics(specs)

    def _release(
        self,
        question: str,
        plan: Plan,
        reading: Reading,
        epsilon: float,
        delta: float | None,
        confidence: float,
        retry: tuple[str, str] | None,
    ) -> Release:
        from dalenius.queries.answering import Answer, measured
        from dalenius.queries.coarsening import coarsened, shareable
        from dalenius.queries.engines.deadline import within
        from dalenius.queries.rules.price import priced

        policy, price = plan.table.policy, priced(plan, epsilon, delta)
        reading.check_unchanged()
        engine = reading.engine(self._engines)
        engine.columns  # noqa: B018 (an unreadable file is found before anything is charged)
        engine.ready()  # and so is an engine that cannot begin

        def work(claim: Claim) -> bytes:
            # The noise is that of what was charged, which may be more than was asked for now.
            same = (claim.epsilon, claim.delta) == (epsilon, price.delta)
            paid = price if same else priced(plan, claim.epsilon, claim.delta)

            def look(seconds: float) -> bytes:
                if claim.shares is not None:
                    return coarsened(plan, paid, self._ledger.shared(claim))
                before = reading.state()
                try:
                    with within(seconds):  # all statements together
                        content = measured(plan, paid, engine, self._salt(reading.dataset), seconds)
                except EngineError:
                    reading.check_kept(before)  # a file that was exchanged under the look says why
                    raise
                reading.check_kept(before)  # what was read is what was protected
                return content

            def alarm(what: str, own: bool) -> None:
                number, dataset = claim.number, reading.dataset
                if what == "late":
                    suspensions.record_late(
                        self._ledger, charge=number, analyst=self.name, dataset=dataset, own=own, most=latest(plan)
                    )
                else:
                    self._ledger.record("note", {"alarm": what, "charge": number, "dataset": dataset, "by": CURATOR})

            def allowed() -> None:
                suspensions.check_now(self._ledger, self.name, reading.dataset)

            # Who has waited for another's answer until the own time leaves then: noise alone is added, nobody looks.
            pacer = None if claim.shares is not None and waits else self._pacer
            return paced(pacer, plan, look, alarm, policy.time.cap or CAP, whose=self._whose, allowed=allowed)

        hold, waits = held(self._pacer, plan), []

        def waited() -> None:
            hold()
            waits.append(True)

        request = Request(
            reading.dataset,
            self.name,
            plan.key(reading.data_version),
            epsilon,
            price.event,
            price.delta,
            question=question,
            periods=plan.periods,
            epoch=reading.epoch,
            retry=retry,
            paid_only=self._resumes,
            shareable=shareable(plan) and self._shares(reading.dataset),
        )
        answered = self._ledger.ask(request, work, waited=waited)
        try:
            answer = Answer.read(plan, answered.content, confidence)
            return self._shown(question, plan, answer, answered)
        except DaleniusError as error:  # such as an allotment that ended meanwhile
            if not answered.free and error.charge == NOTHING:
                error.charge = Charge(answered.receipt.charge["epsilon"], answered.receipt.charge["delta"])
            raise

    def _shares(self, dataset: str) -> bool:
        """Whether the owner lets analysts be served from one another's answers."""
        budgets = [each.policy.budget for each in self._registry.current().values() if each.dataset == dataset]
        return all(each.share_answers for each in budgets if each is not None)

    def _shown(self, question: str, plan: Plan, answer: Any, answered: Answered) -> Release:
        from dalenius.queries.release import Release

        notes = _found(answer.plan, answered.receipt.charge)
        plan = answer.plan
        table, budget = answer.table(), plan.table.budget
        unit = ", ".join([*plan.table.unit, *([budget.period] if budget.period else [])])
        paid = {"epsilon": 0.0, "delta": 0.0, "rho": None if answer.rho is None else 0.0}
        return Release(
            columns=table.columns,
            keys=table.keys,
            rows=table.rows,
            noise_error=table.noise_error,
            interval=table.interval,
            confidence=answer.confidence,
            guarantee={
                "kind": "pure" if answer.rho is None else "approx",
                "epsilon": answer.epsilon,
                "delta": budget.delta,
                "unit": unit,
                "neighbors": budget.neighbors.value,
            },
            charge=paid if answered.free else dict(answered.receipt.charge),
            remaining=self._remaining(answered.receipt.dataset, plan.periods),
            free=answered.free,
            receipt=answered.receipt.to_dict(),
            question=question,
            notes=(*answer.notes, *notes),
            limits=answer.limits,
        )

    def _unpriced(self, question: str, confidence: float, delta: float | None, limits: Limits | None) -> InputError:
        found = self.preview(question, confidence=confidence, delta=delta, limits=limits)
        return InputError(
            "The question has no price yet.", why=f"It would give {found}", fix="Ask again with an epsilon."
        )

    def _remaining(self, dataset: str, periods: tuple[str, ...]) -> dict[str, dict[str, float]]:
        """The largest ε and δ that one more question like this may type: in the scarcest of its periods."""
        found = {}
        for who, analyst in (("analyst", self.name), ("dataset", "")):
            balances = [self._ledger.balance(dataset, analyst, period) for period in periods]
            found[who] = {
                "epsilon": min(each.remaining_epsilon for each in balances),
                "delta": min(each.remaining_delta for each in balances),
            }
        return found

    def _retry(self, key: str | None, question: str, parts: tuple[Any, ...]) -> tuple[str, str] | None:
        """What the ledger knows a retry by: hashes of who asks with which key, and of all that was asked."""
        if key is None:
            return None
        if not 0 < len(key) <= _LONGEST_KEY or not key.isprintable():
            raise InputError(
                "This is no idempotency key.",
                why=f"It is a text of 1 to {_LONGEST_KEY} printable characters.",
                fix="Use a random one for each question, and the same when you ask again.",
            )
        body = repr((question, *parts))
        return tuple(  # type: ignore[return-value]
            hashlib.sha256(each.encode("utf-8", "surrogatepass")).hexdigest() for each in (f"{self.name}\0{key}", body)
        )

    def _salt(self, dataset: str) -> str:
        """The key of the hash that chooses groups: fixed for a data set, unknown to analysts."""
        return hmac.new(self._ledger.keys.chain, b"groups " + dataset.encode(), hashlib.sha256).hexdigest()

    def _charge(self, number: int) -> dict[str, Any]:
        for entry in self._ledger.records(("charge",), number - 1):
            if entry.number == number:
                return entry.data
        raise UnknownTableError("There is no such charge.", why="It is not in the history.", fix="Verify the ledger.")


def resuming(analyst: Analyst, *, public: bool) -> Analyst:
    """The same analyst, who only takes up what was paid for before; for a server that was started again.

    Asked again under its idempotency key, a question gives the stored answer, or is finished if its process died; one
    that was never charged is refused, and costs nothing.

    Args:
        analyst: Whose question it is.
        public: Whether questions over public tables only, which are never charged, are answered.
    """
    found = copy(analyst)
    found._resumes, found._public = True, public  # noqa: SLF001 (beside the class)
    return found


def _found(plan: Plan, charge: Mapping[str, Any]) -> tuple[str, ...]:
    """What to know about groups that were found: which are missing, and what would show more of them."""
    from dalenius.queries.rules.price import priced

    if plan.selection is None:
        return ()
    least = priced(plan, charge["epsilon"], charge["delta"]).least_units
    shown = f"At ε = {charge['epsilon']:g} and δ = {charge['delta']:.3g} a key needs about {least:,} units"
    if not plan.cells:
        return (f"No key was found: {shown[0].lower()}{shown[1:]}. A larger ε or δ, or coarser keys, find more.",)
    return (f"Keys were found privately; those of few units are missing. {shown}, or more where units have many.",)


def _check_confidence(confidence: object) -> None:
    value = parameters.real(confidence, "confidence", fix="Give a confidence such as 0.95.")
    if not 0.5 <= value <= 0.9999:
        raise InputError(
            "confidence must lie between 0.5 and 0.9999.",
            why="It is how often the truth lies within the noise error.",
            fix="Give a confidence such as 0.95.",
        )
