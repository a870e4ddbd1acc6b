"""The fuzzer's check of whole releases: one transcript, on a data set and on its neighbour."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from dalenius.audit.fuzzing.checks import SECONDS, Broken, Sides
from dalenius.audit.fuzzing.engines import SALT
from dalenius.audit.transcripts.loss import Loss, transcript_loss
from dalenius.audit.transcripts.tape import OtherTranscriptError, Step, Tape, TapedEngine, run_taped
from dalenius.queries import answering
from dalenius.queries.rules import price as pricing

if TYPE_CHECKING:
    from dalenius.audit.fuzzing.questions import FuzzedQuestion
    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Plan
    from dalenius.queries.rules.price import Priced

_PRICES = (0.05, 0.5, 2.0)  # ε of a question
_BOLD = 0.5  # of the transcripts
_ROUNDED = 1e-9  # what is charged is a float
_REACHED = 0.99


class TranscriptSides(Sides):
    """Runs a whole release on both sides under one transcript, and compares what it shows with what it costs.

    How many questions show all that they are charged for is counted (``reached``): a check that nothing reaches would
    catch nothing.
    """

    def follow(self, question: FuzzedQuestion) -> Broken | None:  # noqa: ARG002
        """What numbers should be is another check."""
        return None

    def _check_plan(self, plan: Plan, *, all_: bool) -> Broken | None:  # noqa: ARG002
        random = Random(f"transcript {plan.canonical()}")  # noqa: S311
        priced = pricing.price_plan(plan, random.choice(_PRICES))
        common = self._common(plan) if plan.selection is not None else frozenset()
        tape = Tape(common, random, bold=random.random() < _BOLD)
        self._run(plan, priced, self.first, tape)
        again = Tape(common, earlier=tape.steps)
        try:
            self._run(plan, priced, self.second, again)
        except OtherTranscriptError as error:
            return Broken("mechanism", "the same mechanisms", str(error), plan.canonical())
        if len(again.steps) < len(tape.steps):
            wrong = f"{len(again.steps)} steps", f"{len(tape.steps)} steps"
            return Broken("mechanism", wrong[1], wrong[0], plan.canonical())
        return self._compare(plan, priced, tape.steps, again.steps)

    def _common(self, plan: Plan) -> frozenset[Cell]:
        keys = [frozenset(engine.weights(plan, SALT, seconds=SECONDS)[0]) for engine in (self.first, self.second)]
        return keys[0] & keys[1]

    def _run(self, plan: Plan, priced: Priced, engine: Engine, tape: Tape) -> None:
        through: Any = TapedEngine(engine, tape)

        def work() -> None:
            answering.measure_plan(plan, priced, through, SALT, SECONDS)

        run_taped(tape, work)

    def _compare(self, plan: Plan, priced: Priced, first: list[Step], second: list[Step]) -> Broken | None:
        loss = transcript_loss(first, second)
        if self.made.nobody and loss != Loss():
            return Broken("nobody", "0", _words(loss), plan.canonical())
        if priced.rho is None:
            charged, shown, other, name = priced.epsilon, loss.epsilon, loss.rho, "ε"
        else:
            charged, shown, other, name = priced.rho, loss.rho, loss.epsilon, "ρ"
        if shown > charged * (1 + _ROUNDED) or other:
            return Broken("transcript", f"{name} = {charged:.6g}", _words(loss), plan.canonical())
        if loss.delta > priced.delta * (1 + _ROUNDED):
            return Broken("delta", f"δ = {priced.delta:g}", f"δ = {loss.delta:g}", plan.canonical())
        self.reached = shown >= _REACHED * charged
        return None


def _words(loss: Loss) -> str:
    parts = {"ρ": float(loss.rho), "ε": float(loss.epsilon), "δ": loss.delta}
    return ", ".join(f"{name} = {value:.6g}" for name, value in parts.items() if value) or "0"
