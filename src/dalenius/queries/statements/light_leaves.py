"""Trees of values with a contribution index: only the units that the index calls heavy are weighed one by one.

weighed   the steps of `leaves` up to the weights, on the rows of heavy units alone
kept      all rows that count, with their groups and leaves
…         weights summed over rows, by group and leaf: 2²⁰ for a row of any other unit

A unit that the index bounds within the limit has the factor 1, and is not in `weighed` by the general way either. So
the integers are the same, to the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dalenius.queries.statements import leaves, source
from dalenius.queries.statements.leaves import KINDS, LeafCompiler
from dalenius.queries.statements.light import Light, looked_up

if TYPE_CHECKING:
    from dalenius.queries.engines.engine import Engine
    from dalenius.queries.index import Index
    from dalenius.queries.plan import Measure, Part, Plan


def run(plan: Plan, part: Part, engine: Engine, salt: str, seconds: float) -> list[list[int]]:
    """Each measure's exact integers: with the index where there is a valid one, else the general way."""
    rows = looked_up(plan.table, engine, lambda index: statement(plan, index, engine, salt), seconds)
    return leaves.run(plan, part, engine, salt, seconds) if rows is None else leaves.vectors(plan, part, rows)


def statement(plan: Plan, index: Index, engine: Engine, salt: str) -> str | None:
    """The SELECT that uses an index; None where that is of no help."""
    own = plan.only(KINDS)
    heavy = Heavy(own, index)
    if plan.groups is not None or heavy.bounds is None:  # which groups count for a unit takes all of its rows
        return None
    return LightLeaves(own).whole(engine.scan, engine.columns, salt, heavy)


class Heavy(Light, LeafCompiler):
    """Heavy units with the weights of their rows."""

    def weights_of(self, scan: str, types: Mapping[str, str], salt: str) -> str:
        """The step `weighed`, with all that it needs."""
        body = ",\n".join(f"{name} AS ({text})" for name, text in self.factored(scan, types, salt))
        return f"WITH {body}\n{self.weighed()}"


class LightLeaves(LeafCompiler):
    """All rows, weighed."""

    def whole(self, scan: str, types: Mapping[str, str], salt: str, heavy: Heavy) -> str:
        """The whole SELECT."""
        steps = [
            ("weighed", heavy.weights_of(scan, types, salt)),
            ("clean", self.clean()),
            ("kept AS NOT MATERIALIZED", self.kept()),
        ]
        body = ",\n".join(f"{name if ' AS ' in name else f'{name} AS'} ({text})" for name, text in steps)
        selects = "\nUNION ALL ".join(self.counted(number) for number in range(len(self.plan.measures)))
        return f"WITH {source.source_sql(self.plan, scan, types, salt)},\n{body}\n{selects}"

    def integer(self, measure: Measure) -> str:  # noqa: ARG002 (rows are counted by leaf, not summed)
        """Nothing: what a row adds is its weight."""
        return "NULL"
