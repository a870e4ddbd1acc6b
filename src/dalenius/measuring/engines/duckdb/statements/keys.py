"""The weights of keys that are not public: what `mechanisms.key_selection` needs to find them.

pairs    each unit with each of its keys, once, and the seed of its hash where equal units can be different texts
held     how many keys a unit has
chosen   of a unit with more keys than the cap, those that a keyed hash puts first
…        ⌊2²⁰/√m⌋ summed over the units of each key, m = min(number of keys, cap)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.index import FEW_KEYS
from dalenius.measuring.engines.duckdb.statements import IndexedSelect, no_number, run_indexed, source
from dalenius.measuring.engines.duckdb.statements.pairs import HeldPairs
from dalenius.measuring.engines.duckdb.statements.sums import Compiler
from dalenius.measuring.expressions import TRUE, Column
from dalenius.measuring.plan import Plan, require
from dalenius.mechanisms.key_selection import KeySelection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.duckdb.index import Index
    from dalenius.measuring.engines.duckdb.statements import Runner

# Types of units whose equal values are equal texts. Floats (0.0, -0.0) and intervals (1 month, 30 days) are not.
_ONE_TEXT = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "VARCHAR", "DATE", "TIMESTAMP", "UUID"})
_ONE_TEXT |= frozenset({"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "DECIMAL", "BOOLEAN"})


def weights(
    plan: Plan, engine: Runner, salt: str, seconds: float, held: HeldPairs | None = None
) -> tuple[list[Cell], list[int]]:
    """All keys that occur, each with its weight, in no order that says anything; ``held`` keeps pairs for later."""
    rows = run_indexed(plan.table, engine, lambda index: indexed_statement(plan, index, engine, salt), seconds)
    pairs = (held or HeldPairs(plan, engine, salt, seconds)).pairs if rows is None else None
    if pairs is not None:
        order = KeyStatement(plan, seeded=False).order(engine.columns, salt)
        found = zip(pairs.cells, pairs.weights(require(plan.selection).cap, order), strict=True)
        weighed = {cell: weight for cell, weight in found if weight}  # a key that no unit chose is not there
        return list(weighed), list(weighed.values())
    if rows is None:
        rows = engine.run(statement(plan, engine.scan, engine.columns, salt), seconds=seconds)
    if any(row[-1] is None for row in rows):
        raise no_number()
    return [tuple(row[:-1]) for row in rows], [int(row[-1]) for row in rows]


def statement(plan: Plan, scan: str, types: Mapping[str, str], salt: str) -> str:
    """The whole SELECT."""
    return KeyStatement(plan, seeded=not _one_text(plan, types)).statement(scan, types, salt)


def indexed_statement(plan: Plan, index: Index, engine: Runner, salt: str) -> IndexedSelect | None:
    """The same from the pairs of a contribution index; None where there are none for this very question."""
    if require(plan.selection).cap < FEW_KEYS:
        return None
    if plan.where != TRUE or len(plan.keys) != 1 or not _one_text(plan, engine.columns):
        return None
    (key,) = plan.keys
    held = (index.pairs(key.name), index.weights(key.name)) if isinstance(key, Column) else (None, None)
    if held[0] is None or held[1] is None:
        return None
    return IndexedSelect(KeyStatement(plan, seeded=False).from_index(held[0], held[1], engine.columns, salt))


def _one_text(plan: Plan, types: Mapping[str, str]) -> bool:
    return all(types.get(name, "").upper().split("(")[0] in _ONE_TEXT for name in plan.table.policy.unit)


class KeyStatement(Compiler):
    """The rows are kept as for sums, but nothing of them is measured.

    ``seeded``: every row brings the seed of its unit's hash, and the least of them counts. Which of the texts of a
    unit (0.0 and -0.0 are one) stands for a group is chance, and other units' rows could move it. Where a unit has one
    text, the seed is worked out for units with too many keys alone.
    """

    def __init__(self, plan: Plan, *, seeded: bool = True) -> None:
        self.cap, self.seeded = require(plan.selection).cap, seeded
        # Conditions of single aggregates do not matter: a key is there where a row counts at all.
        super().__init__(replace(plan.only(()), groups=self.cap if seeded else None))

    def counted_sets(self) -> Sequence[int]:
        """Only those whose keys are not public: a unit's weight is not spent on what is known."""
        return require(self.plan.selection).sets

    def statement(self, scan: str, types: Mapping[str, str], salt: str) -> str:
        """All steps."""
        units, keys = ", ".join(self.units), ", ".join(self.keys)
        same = " AND ".join(f"p.{unit} = h.{unit}" for unit in self.units)
        there = " AND ".join(f"{each} IS NOT NULL" for each in self.required)
        read = source.source_sql(self.plan, scan, types, salt)
        least = ", min(seed) AS seed" if self.seeded else ""
        kept, own = (", ".join(f"p.{each}" for each in names) for names in (self.keys, self.units))
        return f"""WITH {read},
clean AS ({self.clean()}),
kept AS ({self.kept()}),
pairs AS MATERIALIZED (SELECT {units}, {keys}{least} FROM kept WHERE {there} GROUP BY {units}, {keys}),
held AS MATERIALIZED (SELECT {units}, count(*) AS m FROM pairs GROUP BY {units}),
chosen AS (SELECT {kept}, {self.cap} AS m FROM pairs p JOIN held h ON {same} WHERE h.m > {self.cap}
QUALIFY row_number() OVER (PARTITION BY {own} ORDER BY {self.order(types, salt)}) <= {self.cap}),
light AS (SELECT {kept}, h.m AS m FROM pairs p JOIN held h ON {same} WHERE h.m <= {self.cap}),
counted AS (SELECT {keys}, m, count(*) AS n FROM (SELECT * FROM light UNION ALL SELECT * FROM chosen)
GROUP BY {keys}, m)
{self.summed()}"""  # noqa: S608

    def from_index(self, pairs: str, weights: str, types: Mapping[str, str], salt: str) -> str:
        """The steps after `pairs` with what an index holds: counts for most units, pairs for those with many keys."""
        units, own = (", ".join(f"{before}{each}" for each in self.units) for before in ("", "p."))
        return f"""WITH pairs AS (SELECT {units}, key AS k0 FROM {pairs} WHERE m > {self.cap}),
chosen AS (SELECT p.k0 FROM pairs p
QUALIFY row_number() OVER (PARTITION BY {own} ORDER BY {self.order(types, salt)}) <= {self.cap}),
counted AS (SELECT key AS k0, m, units AS n FROM {weights} WHERE m <= {self.cap}
UNION ALL SELECT k0, {self.cap} AS m, count(*) AS n FROM chosen GROUP BY k0)
{self.summed()}"""  # noqa: S608

    def summed(self) -> str:
        """The weights, by how many units give how much."""
        keys = ", ".join(self.keys)
        listed = ", ".join(str(KeySelection.weight(m)) for m in range(1, self.cap + 1))
        return f"SELECT {keys}, sum(n * list_extract([{listed}], m)) AS weight FROM counted GROUP BY {keys}"  # noqa: S608

    def order(self, types: Mapping[str, str], salt: str) -> str:
        """By the same keyed hash as in sums, so that a unit counts in the groups in which it weighed."""
        policy = self.plan.table.policy
        own = [f"p.u{at}" for at in range(len(policy.unit))]
        seed = "p.seed" if self.seeded else source.seed(policy, types, salt, own)
        return source.hash_order(seed, [f"p.{key}" for key in self.keys])
