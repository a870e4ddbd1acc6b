"""Questions, as a kind of release: from what was typed to a plan that leaves, and from stored bytes to an answer."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius._numbers import count_of
from dalenius.accounting import parameters
from dalenius.errors import DaleniusError, InputError, LedgerCorruptError
from dalenius.ledger.key_delta import Left
from dalenius.ledger.questions import is_sent_again, never_charged
from dalenius.ledger.requests import QUESTION, Ceiling
from dalenius.measuring import pace
from dalenius.measuring.plan import require
from dalenius.queries.accuracy import as_asked, missed_notes, price_notes
from dalenius.queries.ask import Ask
from dalenius.queries.keys_alone import keys_preview, keys_release
from dalenius.queries.outer.asking import OuterPlanned, plan_any
from dalenius.queries.own_answers import about
from dalenius.queries.preview import CHOICES, Preview, preview_expected
from dalenius.queries.public_questions import is_public, public_preview, public_release
from dalenius.releasing.kinds import Kind
from dalenius.releasing.leaving import Leaving, is_paid
from dalenius.releasing.opened import Opened
from dalenius.releasing.pacing import Pace

if TYPE_CHECKING:
    from dalenius.ledger.requests import Answered
    from dalenius.measuring.plan import Plan
    from dalenius.queries.answering import Answer
    from dalenius.queries.explaining import Explanation
    from dalenius.queries.outer.showing import OuterTable
    from dalenius.queries.planning import Planned
    from dalenius.queries.postprocess import ReleasedTable
    from dalenius.queries.release import Release
    from dalenius.queries.rules.price import Priced
    from dalenius.releasing.leaving import Asker, Look

NOT_COMBINED = "It could not be combined with earlier answers of yours, and is shown as it was measured."
CORRUPT = "An earlier answer of yours could not be read. Tell the owner, who can run 'dalenius ledger verify'."


class QuestionKind(Kind):
    """Answers to questions in SQL."""

    name: ClassVar[str] = QUESTION
    verb: ClassVar[str] = "asked"

    def prepare(self, asker: Asker, request: Any) -> Leaving | Release:
        """The question, planned and priced; one over public tables only is answered at once, for nothing."""
        from dalenius.queries.rules.clause import settle_price

        ask = Ask.of(request)
        with asker.own_work():
            epsilon, delta = settle_price(ask.question, ask.epsilon, ask.delta, at_most=ask.error is not None)
            ask = replace(ask, epsilon=epsilon, delta=delta)
            versions = Opened.of(asker).open_versions()
            if not asker.free and is_public(ask.question, versions):
                raise never_charged()
            public = public_release(ask.question, versions)
            if public is None:
                public = keys_release(asker, ask)
                if public is not None and not asker.free:
                    raise never_charged()
            if public is not None:
                return public
            if ask.epsilon is not None:
                ask = replace(ask, epsilon=parameters.epsilon(ask.epsilon))
            if ask.epsilon is not None or ask.error is not None:
                from dalenius.queries.known.deciding import exact_answer, known_answer

                again = bool(asker.again) and is_sent_again(asker.ledger, asker.name, asker.again)
                try:
                    found = plan_any(asker, ask)
                except DaleniusError:
                    # What nobody can price by its error may still be known.
                    exact = None if again else exact_answer(asker, ask)
                    if exact is None:
                        raise
                    return exact
                leaving = _prepared(asker, ask, found)
                if again or is_paid(leaving, asker):
                    return leaving
                return exact_answer(asker, ask) or known_answer(asker, ask, found, leaving) or leaving
        raise _unpriced(preview(asker, ask))

    def show(self, asker: Asker, request: Any, leaving: Leaving, answered: Answered) -> Release:
        """The answer, in the terms of the question."""
        from dalenius.queries.answering import Answer

        ask, plan = Ask.of(request), leaving.plan
        if not isinstance(plan, OuterPlanned):
            from dalenius.queries.known.sharpening import sharpen

            answer = Answer.read(plan, answered.content, ask.confidence)
            try:
                with asker.own_work():
                    sharper = sharpen(asker, leaving.snapshot, answer, answered)
            except Exception as error:  # noqa: BLE001 (whatever is wrong with earlier answers, what was paid for is shown)
                shown = _shown(asker, ask, [answer], answered)
                note = CORRUPT if isinstance(error, LedgerCorruptError) else NOT_COMBINED
                return replace(shown, notes=(*shown.notes, note))
            if sharper is None:
                return _shown(asker, ask, [answer], answered)
            shown = _shown(asker, ask, [answer], answered, table=sharper.table)
            guarantee = {**shown.guarantee, "epsilon": sharper.epsilon}
            return replace(shown, guarantee=guarantee, notes=(*shown.notes, sharper.note))
        from dalenius.queries.outer.joint import parts_of
        from dalenius.queries.outer.showing import show_outer

        contents = parts_of(answered.content) if len(plan.parts) > 1 else [answered.content]
        stored = [contents[each] for each in plan.reads]
        answers = [
            Answer.read(each.plan, content, ask.confidence) for each, content in zip(plan.inners, stored, strict=True)
        ]
        with asker.own_work():
            outer = show_outer(plan, answers, stored, ask.question, ask.confidence)
        finding = sum(each.plan.selection is not None for each in plan.parts)
        return _shown(asker, ask, answers, answered, outer, finding)

    def read(self, content: bytes) -> dict[str, Any]:
        """The noisy integers with the laws of their noise; asked again, the question tells what they mean."""
        found: dict[str, Any] = json.loads(content)
        return found

    def body(self, request: Any) -> str:
        """As `Ask` has it."""
        return Ask.of(request).body

    def echo(self, request: Any) -> dict[str, Any]:
        """The question itself."""
        return {"question": Ask.of(request).question}


KIND = QuestionKind()


def preview(asker: Asker, ask: Ask) -> Preview:
    """Price and expected error, for nothing: at its ε, or at three usual prices. Never touches the data."""
    from dalenius.queries.rules.clause import settle_price

    with asker.own_work():
        epsilon, delta = settle_price(ask.question, ask.epsilon, ask.delta, at_most=ask.error is not None)
        ask = replace(ask, epsilon=None if epsilon is None else parameters.epsilon(epsilon), delta=delta)
        opened = Opened.of(asker)
        public = public_preview(ask.question, opened.open_versions(), ask.confidence)
        public = keys_preview(asker, ask) if public is None else public
        if public is not None:
            return public
        found = plan_any(asker, ask, expecting=True, opened=opened)
        if isinstance(found, OuterPlanned):
            from dalenius.queries.outer.showing import preview_outer

            alone = len(found.parts) == 1
            previews = [_previewed(asker, ask, each, alone=alone) for each in found.inners]
            prices = [(each.known, each.delta) for each in previews[0].choices]
            if not alone:
                leavings = [_outer_leaving(asker, ask, found, each.epsilon) for each in previews[0].choices]
                prices = [(is_paid(each, asker), each.delta) for each in leavings]
            explanation = _explained(asker, ask, found, ask.epsilon)
            return replace(preview_outer(found, previews, prices), explanation=explanation)
        from dalenius.queries.known.deciding import with_known

        told = with_known(asker, ask, found, _previewed(asker, ask, found))
        epsilon = told.choices[0].epsilon if len(told.choices) == 1 else None
        return replace(told, explanation=_explained(asker, ask, found, epsilon))


def explain(asker: Asker, ask: Ask) -> Explanation:
    """What a question was understood to mean, for nothing. Never touches the data: a plan is all that it reads."""
    from dalenius.queries.rules.clause import settle_price

    with asker.own_work():
        epsilon, delta = settle_price(ask.question, ask.epsilon, ask.delta)
        ask = replace(ask, epsilon=None if epsilon is None else parameters.epsilon(epsilon), delta=delta, error=None)
        opened = Opened.of(asker)
        public = public_preview(ask.question, opened.open_versions(), ask.confidence)
        if public is not None:
            return require(public.explanation)
        plan = plan_any(asker, ask, opened=opened)
        told = _explained(asker, ask, plan, ask.epsilon)
        first = plan.inners[0] if isinstance(plan, OuterPlanned) else plan
        return replace(told, notes=(*told.notes, *asker.warnings(first.snapshot.dataset)))


def _explained(asker: Asker, ask: Ask, found: Planned | OuterPlanned, epsilon: float | None) -> Explanation:
    """A plan in words; ``epsilon`` is what would be charged for it."""
    from dalenius.queries.explaining import explain_plan
    from dalenius.queries.outer.explaining import explain_outer
    from dalenius.queries.rules.price import price_plan

    parts = found.parts if isinstance(found, OuterPlanned) else (found,)
    prices: list[Priced] = []
    delta = 0.0
    if epsilon is not None:
        leaving = (
            _outer_leaving(asker, ask, found, epsilon)
            if isinstance(found, OuterPlanned)
            else _leaving(asker, ask, replace(found, epsilon=epsilon))
        )
        delta = leaving.delta
        finding = sum(each.plan.selection is not None for each in parts)
        prices = [price_plan(each.plan, epsilon, delta / finding if finding else None) for each in parts]
    if isinstance(found, OuterPlanned):
        return explain_outer(found, ask.question, prices, delta)
    return explain_plan(found.plan, prices[0] if prices else None)


def _previewed(asker: Asker, ask: Ask, found: Planned, *, alone: bool = True) -> Preview:
    """What one question is expected to give; ``alone``: it is not one of several at one price."""
    expectations = require(found.expectations)
    prices = CHOICES if found.epsilon is None else (parameters.epsilon(found.epsilon),)
    left = asker.remaining(found.snapshot.dataset, found.plan.periods)
    asked = found.own if alone else ()
    known = {each: asked[-1] for each in prices if _is_known(asker, ask, found, each)} if asked else {}
    notes = () if ask.error is None else price_notes(expectations, ask.error, prices[0])
    if ask.error is not None and prices[0] not in known:
        dear = Ceiling(ask.epsilon).note(prices[0], left["analyst"]["epsilon"])
        notes = (*notes, dear) if dear else notes
    told = preview_expected(expectations, prices, left, known, notes)
    return replace(told, notes=(*told.notes, *asker.warnings(found.snapshot.dataset)))


def _is_known(asker: Asker, ask: Ask, found: Planned, epsilon: float) -> bool:
    """Whether asking at this price is free: decided by what would decide it then."""
    return is_paid(_leaving(asker, ask, replace(found, epsilon=epsilon)), asker)


def _prepared(asker: Asker, ask: Ask, found: Planned | OuterPlanned) -> Leaving:
    """What leaves; an outer part is tried on empty tables first, so that nothing is charged for what cannot be run."""
    if not isinstance(found, OuterPlanned):
        return _leaving(asker, ask, found)
    from dalenius.queries.outer.computing import Given, check_outer
    from dalenius.queries.outer.joint import check_ready

    leaving = _outer_leaving(asker, ask, found, require(ask.epsilon))
    if not is_paid(leaving, asker):
        check_ready(asker, found.parts)
        empty = [Given(each.name, each.plan, ()) for each in found.split.inners]
        check_outer(found.split.outer, empty, found.publics, ask.question)
    return leaving


def _outer_leaving(asker: Asker, ask: Ask, found: OuterPlanned, epsilon: float) -> Leaving:
    """The one question that an outer part reads, as it would leave alone; or several at one price."""
    from dalenius.queries.outer.joint import joint_leaving

    if len(found.parts) == 1:
        return replace(_leaving(asker, ask, replace(found.parts[0], epsilon=epsilon)), plan=found)
    fresh = (asker.again or secrets.token_hex(16)) if ask.fresh else ""
    return joint_leaving(asker, found.parts, ask.question, epsilon, ask.delta, found, fresh)


def _leaving(asker: Asker, ask: Ask, found: Planned) -> Leaving:
    from dalenius.queries.answering import coarsen, measure_plan, shareable
    from dalenius.queries.rules.price import price_plan

    if found.epsilon is None:
        raise RuntimeError("A question without a price was planned to leave.")
    from dalenius.queries.known.sources import FRESH, fresh_key, sealed_with

    plan, snapshot = found.plan, found.snapshot
    chosen = plan.selection is not None and ask.delta is None
    left = Left.of(asker.remaining(snapshot.dataset, plan.periods)) if chosen else None
    price = price_plan(plan, found.epsilon, ask.delta, left)
    beside: dict[str, Any] = {"about": about(plan, snapshot.data_version)}
    if ask.error is not None:
        beside["asked"] = as_asked(ask.error, ask.confidence)

    def look(charged: Look) -> bytes:
        # The noise is that of what was charged, which may be more than was asked for now.
        paid = price_plan(plan, charged.epsilon, charged.delta)
        kept = beside | sealed_with(asker, plan, snapshot.data_version)
        return measure_plan(plan, paid, charged.engine, charged.salt, charged.seconds, kept)

    def share(epsilon: float, delta: float, content: bytes) -> bytes:
        kept = beside | sealed_with(asker, plan, snapshot.data_version)
        return coarsen(plan, price_plan(plan, epsilon, delta), content, kept)

    leaving = Leaving(
        QUESTION,
        snapshot,
        plan.key(snapshot.data_version),
        found.epsilon,
        price.event,
        Pace(partial(pace.times, plan), pace.cap(plan), pace.latest(plan)),
        look,
        price.delta,
        ask.question,
        plan.periods,
        share,
        shareable(plan) and _shares(asker, snapshot.dataset),
        plan,
        chosen,
        None if ask.error is None else Ceiling(ask.epsilon),
    )
    if not ask.fresh:
        return leaving
    # Under a key of its own, so that it is paid for, and what is stored stays what it is; sent again, under the same.
    beside[FRESH] = asker.again or secrets.token_hex(16)
    return replace(leaving, key=fresh_key(leaving.key, beside[FRESH]), shareable=False)


def _shares(asker: Asker, dataset: str) -> bool:
    """Whether the owner lets analysts be served from one another's answers."""
    budgets = [each.policy.budget for each in asker.registry.current().values() if each.dataset == dataset]
    return all(each.share_answers for each in budgets if each is not None)


def _unpriced(found: Preview) -> InputError:
    return InputError("The question has no price yet.", why=f"It would give {found}", fix="Ask again with an epsilon.")


def _shown(
    asker: Asker,
    ask: Ask,
    answers: Sequence[Answer],
    answered: Answered,
    outer: OuterTable | None = None,
    finding: int = 1,
    table: ReleasedTable | None = None,
) -> Release:
    """``finding``: how many parts share δ, as each finds its keys. ``table``: what is shown of the one answer."""
    from dalenius.queries.release import Release

    answer = answers[0]
    plan, budget = answer.plan, answer.plan.table.budget
    if table is None:
        table = answer.table() if outer is None else outer.table
    unit = ", ".join([*plan.table.unit, *([budget.period] if budget.period else [])])
    missed = () if ask.error is None else missed_notes(plan, ask.error, table)
    paid = {"epsilon": 0.0, "delta": 0.0, "rho": None if answer.rho is None else 0.0}
    return Release(
        columns=table.columns,
        keys=table.keys,
        rows=table.rows,
        noise_error=table.noise_error,
        interval=table.interval,
        total_interval=table.total_interval,
        clipping=table.clipping,
        confidence=answer.confidence,
        guarantee={
            "kind": "pure" if answer.rho is None else "approx",
            "epsilon": answer.epsilon,
            "delta": budget.delta,
            "unit": unit,
            "neighbors": budget.neighbors.value,
        },
        charge=paid if answered.free else dict(answered.receipt.charge),
        remaining=asker.remaining(answered.receipt.dataset, _periods(answers)),
        free=answered.free,
        receipt=answered.receipt.to_dict(),
        question=ask.question,
        notes=(
            *(answer.notes if outer is None else outer.own_notes),
            *dict.fromkeys(note for each in answers for note in _found(each.plan, answered.receipt.charge, finding)),
            *missed,
            *(() if outer is None else outer.notes),
            *asker.warnings(answered.receipt.dataset),
        ),
        limits=tuple(limit for each in answers for limit in each.limits),
    )


def _periods(answers: Sequence[Answer]) -> tuple[str, ...]:
    return tuple(sorted({period for each in answers for period in each.plan.periods}))


def _found(plan: Plan, charge: Mapping[str, Any], finding: int = 1) -> tuple[str, ...]:
    """What to know about groups that were found: which are missing, and what would show more of them."""
    from dalenius.queries.rules.price import price_plan

    if plan.selection is None:
        return ()
    least = price_plan(plan, charge["epsilon"], charge["delta"] / finding).least_units
    unit = " + ".join(plan.table.unit)
    shown = f"At ε = {charge['epsilon']:g} and δ = {charge['delta']:.3g} a key needs about {count_of(least, 'unit')}"
    if not plan.cells:
        return (f"No key was found: {shown[0].lower()}{shown[1:]}. A larger ε or δ, or coarser keys, find more.",)
    more = f"or more where one {unit} has several keys"
    return (f"Keys were found privately; those of few units are missing. {shown}, {more}.",)
