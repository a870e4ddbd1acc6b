"""From a text to a plan, one pass per file, in this order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dalenius.errors import InputError
from dalenius.measuring import fairness
from dalenius.measuring.plan import Limits, Plan, Table, require
from dalenius.queries.rules.bound import bound
from dalenius.queries.rules.parse import parse
from dalenius.queries.rules.price import price
from dalenius.queries.rules.resolve import resolve
from dalenius.queries.rules.restrict import restrict
from dalenius.queries.rules.search import search
from dalenius.queries.rules.stage import Stage
from dalenius.queries.rules.total import total
from dalenius.queries.rules.work import work

if TYPE_CHECKING:
    from dalenius.measuring.public import PublicTable

RULES: tuple[Callable[[Stage], Stage], ...] = (
    parse,  # text → syntax tree
    restrict,  # only what is in the allow-list
    resolve,  # names, types, one form per meaning
    total,  # no row can make an expression fail
    bound,  # groups, exact integers, what one unit can change
    work,  # no row can make it heavy
    search,  # which of the limits the question finds itself
    price,  # how the question's ε is shared
)


def planned(
    text: str,
    tables: Mapping[str, Table],
    limits: Limits | None = None,
    publics: Mapping[str, PublicTable] | None = None,
) -> Plan:
    """The plan of a question; raises for whatever cannot be asked. Never touches the data."""
    if not isinstance(limits, Limits | None):
        raise InputError("limits must be Limits.", why="Nothing else is read.", fix="Give Limits(rows=3).")
    stage = Stage(text, tables, limits or Limits(), publics or {})
    with fairness.patiently():
        for rule in RULES:
            stage = rule(stage)
            fairness.check_patience()
    return require(stage.plan)
