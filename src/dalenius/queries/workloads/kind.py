"""Workloads, as a kind of release: one price, one charge, one look, one receipt; a release for each question."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius.accounting import parameters
from dalenius.errors import InputError, QuestionRefusedError
from dalenius.ledger.key_delta import Left, default_delta
from dalenius.measuring import pace
from dalenius.measuring.pace import Times
from dalenius.queries.ask import Ask
from dalenius.queries.outer.asking import OuterPlanned, plan_any
from dalenius.queries.outer.joint import together
from dalenius.queries.planning import OpenTables
from dalenius.queries.public_questions import is_public
from dalenius.queries.workloads.marginals import Weighed, seconds_for
from dalenius.queries.workloads.pricing import price_workload, share_plan
from dalenius.queries.workloads.request import WorkloadAsk
from dalenius.releasing.kinds import Kind
from dalenius.releasing.leaving import Leaving, is_paid
from dalenius.releasing.opened import Opened
from dalenius.releasing.pacing import Pace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalenius.ledger.requests import Answered
    from dalenius.measuring.plan import Plan
    from dalenius.queries.planning import Planned
    from dalenius.queries.release import Release
    from dalenius.queries.workloads.blocks import WorkloadPlan
    from dalenius.queries.workloads.reading import Numbered
    from dalenius.queries.workloads.release import Expected, WorkloadPreview, WorkloadRelease
    from dalenius.queries.workloads.showing import StoredWorkload
    from dalenius.releasing.leaving import Asker, Look

WORKLOAD = "workload"
_PLANNING = 120.0  # seconds of processor time, for all questions of a workload, and for what is expected of them
_EACH = 1e-6  # seconds for a cell, and for an integer that is measured, on the machine of bench/RESULTS.md


class WorkloadKind(Kind):
    """Answers to many questions at once."""

    name: ClassVar[str] = WORKLOAD
    verb: ClassVar[str] = "asked a workload of"

    def prepare(self, asker: Asker, request: Any) -> Leaving:
        """All questions, planned and priced; one that is refused refuses all of them, for nothing."""
        ask = WorkloadAsk.of(request)
        if ask.epsilon is None:
            raise InputError(
                "The workload has no price.", why="All its questions share one.", fix="Ask again with an epsilon."
            )
        with asker.own_work():
            asked = plan_asked(asker, ask)
            leaving = _leaving(asker, ask, asked)
            if not is_paid(leaving, asker):
                _check_determined(asked.plan)
            return leaving

    def show(self, asker: Asker, request: Any, leaving: Leaving, answered: Answered) -> WorkloadRelease:
        """One release per question, in order."""
        from dalenius.queries.workloads.release import WorkloadRelease
        from dalenius.queries.workloads.showing import StoredWorkload

        ask, asked = WorkloadAsk.of(request), leaving.plan
        stored = StoredWorkload.read(answered.content)
        with asker.own_work():
            expected = _expected(asked, stored.epsilon, leaving.delta, ask.confidence)
            remaining = asker.remaining(answered.receipt.dataset, leaving.periods)
            charge = _charge(stored, answered)
            # What is measured alike can be shown in different ways: each question is read by its own plan.
            known: dict[str, Release] = {}
            for place, each in enumerate(ask.questions):
                if each.text not in known:
                    found = _release(asked, place, stored, answered, ask, charge, remaining)
                    notes = (*found.notes, *asker.warnings(answered.receipt.dataset))
                    known[each.text] = replace(found, question=each.text, notes=notes)
            releases = [known[each.text] for each in ask.questions]
        return WorkloadRelease(tuple(releases), charge, remaining, answered.free, answered.receipt.to_dict(), expected)

    def read(self, content: bytes) -> dict[str, Any]:
        """The noisy integers with the laws of their noise and their strategies."""
        found: dict[str, Any] = json.loads(content)
        return found

    def body(self, request: Any) -> str:
        """All of it as one text."""
        return json.dumps([self.name, WorkloadAsk.of(request).to_json()], sort_keys=True)

    def echo(self, request: Any) -> dict[str, Any]:  # noqa: ARG002
        """Nothing: each release has its question."""
        return {"kind": self.name}


KIND = WorkloadKind()


class AskedWorkload:
    """A workload that was planned.

    Attributes:
        plan: What is measured.
        own: Each question as it was planned, in the order in which they were asked.
        numbers: Of each question, in the order in which they were asked, which of the different ones it is.
        epsilon: At which price.
    """

    def __init__(self, plan: WorkloadPlan, own: Sequence[Planned], numbers: Sequence[int], epsilon: float) -> None:
        self.plan, self.own, self.numbers, self.epsilon = plan, tuple(own), tuple(numbers), epsilon

    def at(self, epsilon: float) -> AskedWorkload:
        """The same at another price, for which other things may be measured."""
        from dalenius.queries.workloads.choosing import settle_workload

        if epsilon == self.epsilon:
            return self
        plan = settle_workload(self.plan.plans, self.plan.keys, self.plan.weights, epsilon)
        return AskedWorkload(plan, self.own, self.numbers, epsilon)


def plan_asked(asker: Asker, ask: WorkloadAsk, began: float | None = None) -> AskedWorkload:
    """The questions, each planned as if it were asked alone. Never touches the data.

    ``began``: when, in this thread's processor time; now, where nobody says.
    """
    from dalenius.measuring.strategies.strategy import UndeterminedError
    from dalenius.queries.workloads.choosing import settle_workload

    opened = Opened.of(asker)
    among = OpenTables.of(asker, opened)
    found: list[Planned] = []
    began = time.thread_time() if began is None else began
    for each in ask.questions:
        with each.named():
            found.append(_planned(asker, ask, each, opened, among))
            _check_patience(began)
            if found[-1].snapshot.dataset != found[0].snapshot.dataset:
                raise InputError(
                    f"It reads {found[-1].snapshot.dataset!r}, the first one {found[0].snapshot.dataset!r}.",
                    why="A workload is charged to one data set.",
                    fix="Ask a workload for each data set.",
                )
    keys = [each.plan.key(each.snapshot.data_version) for each in found]
    order = sorted(set(keys))
    places = {key: at for at, key in enumerate(order)}
    weights = [0.0] * len(order)
    for at, key in enumerate(keys):  # errors of a question that is asked twice count twice, in squares
        weights[places[key]] += ask.weight(at) ** 2
    first = [found[keys.index(key)] for key in order]
    epsilon = parameters.epsilon(ask.epsilon)
    try:
        plan = settle_workload(first, order, [each**0.5 for each in weights], epsilon, lambda: _check_patience(began))
    except UndeterminedError:
        raise _undetermined() from None
    return AskedWorkload(plan, found, [places[key] for key in keys], epsilon)


def _check_patience(began: float) -> None:
    """Refuses a workload whose questions take too long to plan, in processor time: others want to ask, too."""
    if time.thread_time() - began > _PLANNING:
        raise QuestionRefusedError(
            "The workload takes too long to plan.",
            why=f"Its questions, and what is expected of them, took more than {_PLANNING:.0f} s.",
            fix="Ask in several workloads.",
        )


def _planned(asker: Asker, ask: WorkloadAsk, each: Numbered, opened: Opened, among: OpenTables) -> Planned:
    from dalenius.queries.rules.clause import cut_clause, settle_price

    own, delta = settle_price(each.text, None, None)
    if own is not None or delta is not None:
        raise InputError(
            "It has a price of its own.", why="All questions of a workload share one.", fix="Leave OPTIONS(…) out."
        )
    _, options = cut_clause(each.text)
    if any(limit is not None for limit in (options.rows, options.groups, options.units)):
        raise InputError(
            "It has limits of its own.",
            why="What one unit adds is limited for all questions of a workload together.",
            fix="Leave max_rows_contributed and the like out; or ask it alone.",
        )
    if is_public(each.text, opened.open_versions()):
        raise QuestionRefusedError(
            "It is about public tables only.", why="Its answer is exact, and free.", fix="Ask it alone."
        )
    found = plan_any(asker, Ask(each.text, ask.epsilon, None, ask.confidence, ask.delta), among=among)
    if isinstance(found, OuterPlanned):
        raise QuestionRefusedError(
            "It computes with released values, by windows, an outer SELECT or UNION.",
            why="A workload has plain questions only.",
            fix="Ask for the aggregates here, and compute with them afterwards; or ask it alone.",
        )
    return found


def _check_determined(workload: WorkloadPlan) -> None:
    """Refuses, before anything is charged, what could not be read afterwards. There should be nothing of that kind."""
    for block in workload.blocks:
        for _, part, sums in block.terms:
            if not sums.empty and not block.parts[part].strategy.determines(sums.product()):
                raise _undetermined()


def _undetermined() -> QuestionRefusedError:
    return QuestionRefusedError(
        "A question of the workload does not follow from what would be measured.",
        why="The strategy that was chosen for all of them leaves it out.",
        fix="Ask fewer of them at once, and tell the makers of dalenius.",
    )


def preview(asker: Asker, ask: WorkloadAsk) -> WorkloadPreview:
    """Price and expected errors, for nothing. Never touches the data."""
    from dalenius.queries.workloads.release import WorkloadPreview

    if ask.epsilon is None:
        raise InputError("The workload has no price.", why="Errors depend on it.", fix="Give an epsilon.")
    with asker.own_work():
        began = time.thread_time()
        asked = plan_asked(asker, ask, began)
        leaving = _leaving(asker, ask, asked)
        expected = _expected(asked, leaving.epsilon, leaving.delta, ask.confidence, began)
        remaining = asker.remaining(leaving.snapshot.dataset, leaving.periods)
        warnings = asker.warnings(leaving.snapshot.dataset)
        return WorkloadPreview(expected, remaining, leaving.delta, is_paid(leaving, asker), warnings)


def _expected(
    asked: AskedWorkload, epsilon: float, delta: float, confidence: float, began: float | None = None
) -> Expected:
    """What is expected; where somebody waits for nothing but that since it ``began``, not for long."""
    from dalenius.queries.workloads.expecting import Expecting
    from dalenius.queries.workloads.release import Expected

    asked = asked.at(epsilon)
    found = Expecting(asked.plan, price_workload(asked.plan, epsilon, delta), confidence)
    questions = []
    for number, own in zip(asked.numbers, asked.own, strict=True):
        questions.append(found.question(number, own.plan))
        if began is not None:
            _check_patience(began)
    return Expected(epsilon, confidence, tuple(questions), tuple(found.parts()))


def _leaving(asker: Asker, ask: WorkloadAsk, asked: AskedWorkload) -> Leaving:
    from dalenius.queries.workloads.measuring import measure_workload

    workload = asked.plan
    epsilon = parameters.epsilon(ask.epsilon)
    snapshot = together(workload.plans)
    plans = [each.plan for each in workload.plans]
    periods = tuple(sorted({period for plan in plans for period in plan.periods}))
    finds = any(plan.selection is not None for plan in plans)
    delta = (ask.delta or 0.0) if finds else 0.0
    if finds and ask.delta is None:
        left = Left.of(asker.remaining(snapshot.dataset, periods))
        delta = default_delta(plans[0].table.budget, epsilon, left)
    price = price_workload(workload, epsilon, delta)

    def look(charged: Look) -> bytes:
        # The noise is that of what was charged, which may be more than was asked for now.
        settled = asked.at(charged.epsilon).plan
        paid = price_workload(settled, charged.epsilon, charged.delta)
        return measure_workload(settled, paid, asker, charged.salt, charged.seconds)

    counted = _counted(workload)

    def times(speed: float) -> Times:
        own = [pace.times(plan, speed) for plan in counted]
        answer = sum(each.answer for each in own) + pace.SAFETY * speed * _EACH * _numbers(workload)
        answer += _reading(workload, speed)
        return Times(answer, max(answer, sum(each.cap for each in own)))

    weighed = [f"{key} {weight!r}" for key, weight in zip(workload.keys, workload.weights, strict=True)]
    return Leaving(
        WORKLOAD,
        snapshot,
        hashlib.sha256("\0".join(weighed).encode()).hexdigest(),
        epsilon,
        price.event,
        Pace(times, sum(map(pace.cap, counted)) + _reading(workload, 1.0), min(map(pace.latest, counted))),
        look,
        price.delta,
        ";\n".join(each.text for each in ask.questions),
        periods,
        plan=asked,
        delta_chosen=finds and ask.delta is None,
    )


def _numbers(workload: WorkloadPlan) -> int:
    """How many cells there are, and integers that are measured: both are public."""
    cells = sum(len(each.plan.cells) for block in workload.blocks for each in block.counted)
    return cells + sum(part.strategy.rows for part in workload.parts)


def _reading(workload: WorkloadPlan, speed: float) -> float:
    """Seconds for rows that are read and counted in tables."""
    return sum(
        seconds_for(each, sum(len(part.strategy.tables) for part in block.parts), speed)
        for block in workload.blocks
        for each in block.counted
        if isinstance(each, Weighed)
    )


def _counted(workload: WorkloadPlan) -> list[Plan]:
    """All that the engine goes through rows for."""
    beside = [share_plan(workload.plans[number].plan, share) for number, (share, _) in workload.beside.items()]
    return [*(each.plan for block in workload.blocks for each in block.counted), *beside]


# --- releases


def _charge(stored: StoredWorkload, answered: Answered) -> dict[str, Any]:
    if answered.free:
        return {"epsilon": 0.0, "delta": 0.0, "rho": None if stored.rho is None else 0.0}
    return dict(answered.receipt.charge)


def _release(
    asked: AskedWorkload,
    place: int,
    stored: StoredWorkload,
    answered: Answered,
    ask: WorkloadAsk,
    charge: dict[str, Any],
    remaining: dict[str, Any],
) -> Release:
    """One question's answer, in its own terms."""
    from dalenius.queries.workloads.showing import shown_release

    plan, key = asked.own[place].plan, asked.plan.keys[asked.numbers[place]]
    table, notes, limits = stored.shown(key, plan, ask.confidence)
    return shown_release(plan, stored, table, notes, limits, answered, ask.confidence, charge, remaining)
