"""How long units' vectors are in one question: what its own search for limits looks at (`limits.in_question`).

source … roots   as for sums, up to the length ⌈‖w‖⌉ of each unit's vector over the groups that count
lengths          the class of each length, by factors of √2, as at `protect`
…                units counted by class, for each measure
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import EngineFailedError
from dalenius.measuring.engines.duckdb.index import ENTRY
from dalenius.measuring.engines.duckdb.statements import distinct, source
from dalenius.measuring.engines.duckdb.statements.light import Indexed, looked_up
from dalenius.measuring.engines.duckdb.statements.sums import Compiler
from dalenius.measuring.limits.histogram import CLASSES
from dalenius.measuring.limits.ladder import scale_counts

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.index import Index
    from dalenius.measuring.engines.duckdb.runner import Runner
    from dalenius.measuring.plan import Plan


def histograms(plan: Plan, engine: Runner, salt: str, seconds: float) -> list[list[int]]:
    """For each measure that is searched, in order: how many units are in each class; of distinct values, a ladder.

    A unit is in one class of each histogram, whatever its rows hold, and no other unit moves it: adding or removing
    one changes one count by 1.
    """
    found = [[0] * CLASSES for _ in plan.searched]
    rest = []
    for at, number in enumerate(plan.searched):
        measure = plan.measures[number]
        if measure.kind == "distinct":  # no vector: values at several limits instead
            found[at] = scale_counts(measure.clip, distinct.ladder(plan, number, engine, salt, seconds))
            continue
        rows = _from_index(plan, number, engine, seconds)
        if rows is None:
            rest.append((at, number))
        else:
            _count(found[at], rows)
    if rest:
        own = Lengths(plan, [number for _, number in rest])
        rows = engine.run(own.statement(engine.scan, engine.columns, salt), seconds=seconds)
        for place, (at, _) in enumerate(rest):
            _count(found[at], [(class_, count) for which, class_, count in rows if which == place])
    return found


def _count(classes: list[int], rows: Sequence[tuple[Any, ...]]) -> None:
    for class_, count in rows:
        if class_ is None or count is None:
            raise EngineFailedError(
                "The engine failed.", why="It gave no number where one was expected.", fix="Report it as a bug."
            )
        classes[int(class_)] += int(count)


def _from_index(plan: Plan, number: int, engine: Runner, seconds: float) -> Sequence[tuple[Any, ...]] | None:
    """Units by class from a contribution index, where it holds the very lengths; None: it does not.

    Whether it does is a matter of the question alone. What the index cannot hold of a length (a total beyond 2⁵⁷ steps)
    the general way does not count either.
    """

    def sql(index: Index) -> Indexed | None:
        held = index.length(plan, plan.measures[number])
        return None if held is None else Indexed(Lengths(plan, [number]).from_index(held[0].scan, held[1]))

    return looked_up(plan.table, engine, sql, seconds)


class Lengths(Compiler):
    """The steps of sums, up to the lengths of the vectors that are searched; entries end where the index's do."""

    WIDE = True

    def __init__(self, plan: Plan, numbers: Sequence[int]) -> None:
        kept = [
            replace(each, measures=tuple(m for at, m in enumerate(each.measures, plan.start(place)) if at in numbers))
            for place, each in enumerate(plan.statistics)
        ]
        statistics = tuple(each for each in kept if each.measures)
        super().__init__(replace(plan, statistics=statistics, answers={}))
        self.most = min(self.most, ENTRY)

    def statement(self, scan: str, types: Mapping[str, str], salt: str) -> str:
        """All steps."""
        grouped = self.plan.groups is not None
        steps = [
            ("clean", self.clean()),
            ("kept", self.kept()),
            ("sums", self.sums()),
            *([("chosen", self.chosen())] if grouped else []),
            ("norms", self.norms("chosen" if grouped else "sums")),
            *self.roots(),
        ]
        body = ",\n".join(f"{name} AS ({text})" for name, text in steps)
        classes = ", ".join(f"{self.class_of(each)} AS {each}" for each in self.weights)
        lengths = f"SELECT {classes} FROM {'roots' if self.joint else 'norms'}"  # noqa: S608
        counted = "\nUNION ALL ".join(
            f"SELECT {at}, {each}, count(*) FROM lengths GROUP BY {each}"  # noqa: S608
            for at, each in enumerate(self.weights)
        )
        read = source.source_sql(self.plan, scan, types, salt)
        return f"WITH {read},\n{body},\nlengths AS MATERIALIZED ({lengths})\n{counted}"

    def from_index(self, scan: str, column: str) -> str:
        """Class, and how many units: the steps after `norms`, of one measure."""
        length = f"least({column}, {ENTRY})" if column.startswith("t") else column
        norms = f"SELECT {', '.join(self.units)}, CAST(nullif({length}, 0) AS HUGEINT) AS w0 FROM {scan}"  # noqa: S608
        body = ",\n".join(f"{name} AS ({text})" for name, text in [("norms", norms), *self.roots()])
        last = "roots" if self.joint else "norms"
        return f"WITH {body}\nSELECT {self.class_of('w0')} AS class, count(*) FROM {last} GROUP BY class"

    def norms(self, source: str) -> str:
        """As for sums, but nothing at all is NULL, which stays so up to its class; there, it must not be a 1."""
        length = "{0} * {0}" if self.joint else "abs({0})"
        parts = [*self.units, *(f"nullif(sum({length.format(each)}), 0) AS {each}" for each in self.weights)]
        by = f" GROUP BY {', '.join(self.units)}"
        return f"SELECT {', '.join(parts)} FROM {source}{by}"  # noqa: S608

    def class_of(self, length: str) -> str:
        """0 for nothing, else 1 + ⌈2·log₂ k⌉. The double is of one unit's own integer: no other unit can move it."""
        double = f"CAST({length} AS DOUBLE)"
        size = f"least({CLASSES - 1}, 1 + CAST(ceil(2 * log2({double})) AS INTEGER))"
        return f"CASE WHEN {length} IS NULL THEN 0 ELSE {size} END"
