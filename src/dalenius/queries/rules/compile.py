"""The last pass: the plan as SELECTs. The analyst's text has no part in them; names of the policy and constants do."""

from __future__ import annotations

from dataclasses import replace

from dalenius.queries.plan import Part, Plan, Stage, needed
from dalenius.queries.statements import distinct
from dalenius.queries.statements.leaves import KINDS, LeafCompiler
from dalenius.queries.statements.sums import LINEAR, Compiler


def compile_(stage: Stage) -> Stage:
    """The plan with its SQL, all but the source."""
    return stage.with_(plan=compiled(needed(stage.plan)))


def compiled(plan: Plan) -> Plan:
    """The plan with the SELECTs that give its measures; statistics of one kind share a SELECT."""
    parts = []
    if numbers := plan.numbers(LINEAR):
        parts.append(Part("sums", numbers, Compiler(plan.only(LINEAR)).sql()))
    if numbers := plan.numbers(KINDS):
        parts.append(Part("leaves", numbers, LeafCompiler(plan.only(KINDS)).sql()))
    parts += [distinct.part(plan, number) for number in plan.numbers({"distinct"})]
    return replace(plan, parts=tuple(parts))
