"""The last pass: the plan as SELECTs. The analyst's text has no part in them; names of the policy and constants do."""

from __future__ import annotations

from dataclasses import replace

from dalenius.measuring.engines.duckdb.statements import distinct
from dalenius.measuring.engines.duckdb.statements.leaves import KINDS, LeafCompiler
from dalenius.measuring.engines.duckdb.statements.sums import LINEAR, Compiler
from dalenius.measuring.plan import Part, Plan, needed
from dalenius.queries.rules.stage import Stage


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
