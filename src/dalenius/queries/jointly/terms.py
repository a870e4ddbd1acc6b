"""What all parties must say alike: all that decides which integers are added, and which noise hides them.

A difference is refused before anything is charged, and the key that differs is told. So keys are named as the places
of a policy are, and nothing stands in here but what policies and the question say.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import columns_of, written
from dalenius.tables.policy import to_plain, to_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dalenius.measuring.plan import Plan
    from dalenius.queries.jointly.planning import JointPlan

TASK = "statistics"


def terms_of(planned: JointPlan) -> dict[str, Any]:
    """The task of the run, in JSON's terms; equal at parties whose policies fit each other."""
    ask, plan = planned.ask, planned.plan
    found: dict[str, Any] = {
        "name": TASK,
        "question": ask.question,
        "epsilon": ask.epsilon,
        "rho (ε under the budget's δ)": repr(planned.rho),
        "overlap": planned.overlap,
        "neighbors": plan.neighbors.value,
        "rows": [plan.table.relation.titled(), written(plan.where)],
        "keys": [*map(written, plan.keys), _digest(repr(plan.cells))],
        "periods": list(plan.periods),
        "groups of one unit": plan.groups,
        "bounds": [[each.low, each.high, each.centre] for each in _parts(plan)],
        "steps": [[str(each.step), each.bits] for each in _parts(plan)],
        "limits of one unit": [each.clip for each in plan.measures],
        "measures": [f"{each.written()} {each.bits}" for each in plan.measures],
        "noise": [str(each.part) for each in planned.mechanisms],
    }
    for table in plan.table.relation.tables():
        columns = to_plain(to_tree(table.policy)).get("columns", {})
        for name in sorted(_read(plan) & set(columns)):
            found[f"{table.policy.name}.{name}"] = _short(columns[name])
    for public in plan.table.relation.publics():
        found[f"public table {public.name}"] = public.fingerprint.content
    return found


def digest_terms(terms: dict[str, Any], parties: tuple[str, ...], threshold: int) -> str:
    """By what a question to the same parties is known again."""
    return _digest(json.dumps([terms, list(parties), threshold], sort_keys=True))


def _parts(plan: Plan) -> Iterator[Any]:
    for each in plan.measures:
        yield each
        if each.times is not None:
            yield each.times


def _read(plan: Plan) -> set[str]:
    """The columns that the question reads, by the names of their policies."""
    read = set(columns_of(plan.where)).union(*map(columns_of, plan.keys))
    for each in _parts(plan):
        read |= columns_of(each.where) | (frozenset() if each.value is None else columns_of(each.value))
    return {part for name in read for part in (name, name.rpartition(".")[2])}


def _short(column: dict[str, Any]) -> dict[str, Any]:
    """A column of a policy; a list of keys, which may be long, by its hash."""
    keys = column.get("keys")
    return column if keys is None else {**column, "keys": _digest(json.dumps(keys, ensure_ascii=False, default=str))}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
