"""From a text to a plan, one pass per file, in this order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError
from dalenius.measuring import fairness
from dalenius.measuring.plan import Limits, Plan, Table, require
from dalenius.queries.rules.bound import bound_measures
from dalenius.queries.rules.parse import parse_question
from dalenius.queries.rules.price import share_price
from dalenius.queries.rules.resolve import resolve_names
from dalenius.queries.rules.restrict import restrict_tree
from dalenius.queries.rules.search import share_searches
from dalenius.queries.rules.spelling import respell_tree
from dalenius.queries.rules.total import guard_question
from dalenius.queries.rules.work import limit_work

if TYPE_CHECKING:
    from sqlglot.expressions import Select

    from dalenius.measuring.plan import Question, Safe
    from dalenius.measuring.public import PublicTable
    from dalenius.queries.rules.clause import Options


@dataclass(frozen=True, slots=True)
class Stage:
    """A question on its way to a plan: what the passes hand on, each with its own part filled in."""

    text: str
    tables: Mapping[str, Table]
    limits: Limits = field(default_factory=Limits)
    publics: Mapping[str, PublicTable] = field(default_factory=dict)
    tree: Select | None = None
    question: Question | None = None
    safe: Safe | None = None
    plan: Plan | None = None
    options: Options | None = None

    def with_(self, **changes: Any) -> Stage:
        """The stage with some parts filled in."""
        return replace(self, **changes)


RULES: tuple[Callable[[Stage], Stage], ...] = (
    parse_question,  # text → syntax tree
    respell_tree,  # what people type elsewhere, in the words that are read here
    restrict_tree,  # only what is in the allow-list
    resolve_names,  # names, types, one form per meaning
    guard_question,  # no row can make an expression fail
    bound_measures,  # groups, exact integers, what one unit can change
    limit_work,  # no row can make it heavy
    share_searches,  # which of the limits the question finds itself
    share_price,  # how the question's ε is shared
)


def plan_question(
    text: str,
    tables: Mapping[str, Table],
    limits: Limits | None = None,
    publics: Mapping[str, PublicTable] | None = None,
    tree: Select | None = None,
) -> Plan:
    """The plan of a question; raises for whatever cannot be asked. Never touches the data.

    ``tree`` is what is asked of the text, where that is a part of it (`queries.outer`).
    """
    if not isinstance(limits, Limits | None):
        raise InputError("limits must be Limits.", why="Nothing else is read.", fix="Give Limits(rows=3).")
    stage = Stage(text, tables, limits or Limits(), publics or {}, tree)
    with fairness.patiently():
        for rule in RULES:
            stage = rule(stage)
            fairness.check_patience()
    return require(stage.plan)
