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

from dalenius.errors import EngineFailedError
from dalenius.queries.statements import leaves, source
from dalenius.queries.statements.leaves import KINDS, LeafCompiler
from dalenius.queries.statements.light import MANY, Light, checked

if TYPE_CHECKING:
    from dalenius.queries.engines.engine import Engine
    from dalenius.queries.plan import Measure, Part, Plan


def run(plan: Plan, part: Part, engine: Engine, salt: str, seconds: float) -> list[list[int]]:
    """Each measure's exact integers: with the index where there is a valid one, else the general way."""
    try:
        sql = statement(plan, engine, salt)
        if sql is not None:
            return leaves.vectors(plan, part, engine.run(sql, seconds=seconds))
    except EngineFailedError:  # as in `light`
        pass
    return leaves.run(plan, part, engine, salt, seconds)


def statement(plan: Plan, engine: Engine, salt: str) -> str | None:
    """The SELECT that uses the engine's index; None where the index is missing, out of date, or of no help."""
    index = checked(plan.table, engine)
    if index is None or plan.groups is not None:  # which groups count for a unit takes all of its rows
        return None
    own = plan.only(KINDS)
    heavy = Heavy(own, index)
    if heavy.bounds is None:
        return None
    ((over, units),) = engine.run(heavy.how_many())
    if over * MANY > units:
        return None
    return LightLeaves(own, nobody=index.nobody).whole(engine.scan, engine.columns, salt, heavy, none=over == 0)


class Heavy(Light, LeafCompiler):
    """Heavy units with the weights of their rows."""

    def weights_of(self, scan: str, types: Mapping[str, str], salt: str) -> str:
        """The step `weighed`, with all that it needs."""
        body = ",\n".join(f"{name} AS ({text})" for name, text in self.factored(scan, types, salt))
        return f"WITH {body}\n{self.weighed()}"


class LightLeaves(LeafCompiler):
    """All rows, weighed."""

    def __init__(self, plan: Plan, *, nobody: bool) -> None:
        super().__init__(plan)
        self.nobody = nobody

    def whole(self, scan: str, types: Mapping[str, str], salt: str, heavy: Heavy, *, none: bool) -> str:
        """The whole SELECT."""
        weighed = heavy.weights_of(scan, types, salt)
        steps = [
            ("weighed", f"SELECT * FROM ({weighed}) WHERE FALSE" if none else weighed),  # noqa: S608
            ("clean", self.clean()),
            ("kept AS NOT MATERIALIZED", self.kept()),
        ]
        body = ",\n".join(f"{name if ' AS ' in name else f'{name} AS'} ({text})" for name, text in steps)
        selects = "\nUNION ALL ".join(self.counted(number) for number in range(len(self.plan.measures)))
        return f"WITH {source.source_sql(self.plan, scan, types, salt)},\n{body}\n{selects}"

    def integer(self, measure: Measure) -> str:  # noqa: ARG002 (rows are counted by leaf, not summed)
        """Nothing: what a row adds is its weight."""
        return "NULL"
