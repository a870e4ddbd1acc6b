"""Keys alone: `SELECT DISTINCT region FROM people`, or GROUP BY without an aggregate.

Where the groups are public, they follow from the policy, public tables and the question itself (`domains`): all that
are possible are listed, exactly and for nothing, and no row is read. Which of them anybody is in is not said; a note
tells so. Where they are not, keys can only be found privately, at a price, and come with a count: the refusal says
what to type.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionError, QuestionRefusedError
from dalenius.queries.outer.cutting import aggregates, has_windows
from dalenius.queries.planning import plan_ask
from dalenius.queries.postprocess import key_columns, tabulate
from dalenius.queries.preview import Preview
from dalenius.queries.release import PUBLIC, Release
from dalenius.queries.rules.parse import parse_sql, place

if TYPE_CHECKING:
    from dalenius.queries.ask import Ask
    from dalenius.queries.planning import Planned
    from dalenius.releasing.leaving import Asker

_MAY_BE = re.compile(r"\b(distinct|group)\b", re.IGNORECASE)
_IS_NOT = re.compile(r"\b(count\w*|sum|avg|over)\s*\(", re.IGNORECASE)  # most questions are not even parsed for it
_COUNT = "number of rows"
NOTE = "These are all groups that the policy allows. Which of them anybody is in was not looked at, so this is free."


def keys_release(asker: Asker, ask: Ask) -> Release | None:
    """The possible groups, where a question asks for keys alone and they are public; None: it is another question."""
    planned = keys_planned(asker, ask)
    if planned is None:
        return None
    plan = planned.plan
    shown = tabulate(plan, key_columns(plan), {})
    size = len(shown.columns)
    return Release(
        columns=shown.columns,
        keys=(True,) * size,
        rows=shown.rows,
        noise_error=((None,) * size,) * len(shown.rows),
        interval=((None,) * size,) * len(shown.rows),
        confidence=1.0,
        guarantee={"kind": PUBLIC, "epsilon": 0.0, "delta": 0.0, "unit": None, "neighbors": None},
        charge={"epsilon": 0.0, "delta": 0.0, "rho": None},
        remaining={},
        free=True,
        receipt=None,
        question=ask.question,
        notes=(NOTE,),
    )


def keys_preview(asker: Asker, ask: Ask) -> Preview | None:
    """The same for `preview`."""
    planned = keys_planned(asker, ask)
    if planned is None:
        return None
    names = tuple(each.name for each in planned.plan.question.outputs)
    words = "lists the groups that the policy allows, without a look at any row: exact, charges nothing"
    return Preview(
        columns=names, groups=None, choices=(), confidence=ask.confidence, plan=words, remaining={}, public=True
    )


def keys_planned(asker: Asker, ask: Ask) -> Planned | None:
    """The plan whose groups are the answer; None: the question asks for something else, or the usual way says why not.

    Raises:
        QuestionRefusedError: The groups are not public.
    """
    if not _MAY_BE.search(ask.question) or _IS_NOT.search(ask.question):
        return None
    try:
        tree = parse_sql(ask.question)
    except QuestionError:
        return None  # told there
    counted = _counted(tree)
    if counted is None:
        return None
    planned = plan_ask(asker, replace(ask, error=None, epsilon=None), tree=counted.copy())
    plan = planned.plan
    if plan.selection is not None:
        raise QuestionRefusedError(
            "Which of these keys people have is not public.",
            why="The policy lists no keys or bounds for them. They can be found privately, at a price, with a count.",
            fix=f"Ask for {_typed(counted)}: keys that enough people share are shown.",
            at=place(tree, ask.question),
        )
    *outputs, _ = plan.question.outputs
    return replace(planned, plan=replace(plan, question=replace(plan.question, outputs=tuple(outputs))))


def _counted(tree: Any) -> Any:
    """The question with GROUP BY and a count, which is what it is planned as; None: it asks for more than keys."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or has_windows(tree):
        return None
    parts = [tree.args.get("having"), tree.args.get("order"), *tree.expressions]
    gathers = tree.copy()
    for part in ("group", "having"):
        gathers.set(part, None)
    if aggregates(gathers) or any(each is not None and each.find(exp.AggFunc, exp.Star) for each in parts):
        return None
    distinct, group = tree.args.get("distinct"), tree.args.get("group")
    if tree.args.get("qualify") or tree.args.get("from_") is None:
        return None
    if distinct is not None and (distinct.args.get("on") is not None or group is not None):
        return None
    if distinct is None and (group is None or group.args.get("all")):
        return None
    found = tree.copy()
    if distinct is not None:
        keys = [each.unalias().copy() for each in tree.expressions if each.find(exp.Column)]
        if not keys:
            return None
        found.set("distinct", None)
        found.set("group", exp.Group(expressions=keys))
    found.append("expressions", exp.alias_(exp.Count(this=exp.Star(), big_int=True), _COUNT, quoted=True))
    return found


def _typed(counted: Any) -> str:
    """As somebody would type it."""
    shown = counted.copy()
    shown.expressions[-1].replace(counted.expressions[-1].this.copy())
    return str(shown.sql(dialect="duckdb", comments=False))
