"""What the joined fuzzer found, each as small as it gets: names that hide others, and units that are hard to print."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import PolicyInvalidError, QuestionRefusedError
from dalenius.ledger.budgets import Accounting, Budget
from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.connections import Public
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.engines.duckdb.public_values import DuckDBLookup
from dalenius.measuring.engines.duckdb.statements.relation import scan_of
from dalenius.measuring.engines.duckdb.statements.units import Files
from dalenius.measuring.plan import Table
from dalenius.measuring.public import looked_up
from dalenius.queries.rules import plan_question
from dalenius.tables.reading import read_tree
from dalenius.tables.sources.fingerprint import Fingerprint


class Memory(Measuring):
    """Tables in memory, seen as a plan's table sees them."""

    index = None

    def __init__(self, **tables):
        self.tables, self.engine = tables, Public(threads=1)

    def run(self, sql, *, seconds=60.0):
        return self.engine.run(sql, self.tables, seconds=seconds)

    def types(self, name):
        return {row[0]: row[1] for row in self.run(f"SELECT column_name, column_type FROM (DESCRIBE {name})")}

    def of(self, table):
        self.scan, self.columns = scan_of(table, Files({each: (each, self.types(each)) for each in self.tables}))
        return self


def table(name, unit, columns, through=(), **contribution):
    tree = {
        "table": {"name": name, "source": f"{name}.parquet", "unit": unit, "dataset": "people"},
        "columns": columns,
        "contribution": {"rows": 10, **contribution},
    }
    budget = Budget(1.0, 1e-6, Accounting.ZCDP, "person", Neighbors.ADD_REMOVE, None)
    return Table(read_tree(tree, Path("/")), budget, through={each.policy.name: each for each in through})


def integers(sql, tables, memory, publics=None):
    plan = plan_question(sql, {each.policy.name: each for each in tables}, publics=publics or {})
    return exact(plan, memory.of(plan.table), "salt")


@pytest.mark.parametrize("name", ["u0", "U0", "who as it is", "c0", "s0_0", "t0"])
def test_a_column_may_be_called_as_statements_call_things(name):
    visits = table("visits", "who", {name: {"type": "integer", "bounds": [0, 100]}})
    memory = Memory(visits=pa.table({"who": [70, 70, 80], name: [1, 2, 4]}))
    sql = f'SELECT SUM(a."{name}") FROM visits a WHERE EXISTS (SELECT 1 FROM visits b WHERE a.who = b.who)'
    assert integers(sql, [visits], memory) == [[7]]


def test_people_behind_a_public_table_in_exists_are_refused():
    visits = table("visits", "who", {"region": {"type": "text"}})
    memory = Memory(visits=pa.table({"who": [1], "region": ["a"]}), regions=pa.table({"code": ["a"]}))
    regions = looked_up("regions", Fingerprint("parquet", ()), DuckDBLookup({"code": "VARCHAR"}, "regions", memory.run))
    tail = (
        "SELECT 1 FROM regions r LEFT JOIN visits w ON w.region = r.code WHERE r.code = v.region",
        "SELECT 1 FROM regions r WHERE r.code = v.region AND EXISTS (SELECT 1 FROM visits w WHERE w.region = r.code)",
    )
    for inner in tail:
        with pytest.raises(QuestionRefusedError, match="stand behind a public table"):
            integers(f"SELECT COUNT(*) FROM visits v WHERE EXISTS ({inner})", [visits], memory, {"regions": regions})


def test_a_table_with_a_path_has_no_column_of_the_unit_s_name():
    orders = table("orders", "who", {"x": {"type": "integer", "bounds": [0, 9]}})
    path = {"path": "ref -> orders.key -> orders.who"}
    with pytest.raises(PolicyInvalidError, match="same name"):
        table("items", path, {"Who": {"type": "integer", "bounds": [0, 9]}}, [orders])


def test_a_subquery_may_say_that_nobody_is_nobody():
    visits = table("visits", "who", {"x": {"type": "integer", "bounds": [0, 9]}})
    memory = Memory(visits=pa.table({"who": [1, 2, None], "x": [1, 2, 4]}))
    for null, expected in (("NOT NULL", 3), ("NULL", 0)):
        sql = f"SELECT SUM(x) FROM (SELECT who, x FROM visits WHERE who IS {null}) AS a"
        assert integers(sql, [visits], memory) == [[expected]]


def test_a_time_that_says_who_somebody_is_need_not_be_printable():
    # DuckDB fails fatally when it prints such a time: an error that would tell who is there.
    times = pa.array([-(2**63), 2**63 - 1, None], pa.int64()).view(pa.timestamp("us"))
    visits = table("visits", "who", {"x": {"type": "integer", "bounds": [0, 9]}})
    memory = Memory(visits=pa.table({"who": times, "x": [1, 2, 4]}))
    sql = "SELECT COUNT(a.who), COUNT(*) FILTER (WHERE a.who = b.who) FROM visits a JOIN visits b ON a.who = b.who"
    assert integers(sql, [visits], memory) == [[2], [2]]
    inner = "(SELECT who AS w, COUNT(*) AS n FROM visits GROUP BY who)"
    assert integers(f"SELECT COUNT(w) FROM {inner} AS a", [visits], memory) == [[2]]


def test_a_huge_public_number_makes_no_key_that_cannot_be_written():
    visits = table("visits", "who", {"region": {"type": "text"}})
    memory = Memory(visits=pa.table({"who": [1], "region": ["a"]}), regions=pa.table({"code": ["a"], "far": [1e300]}))
    types = {"code": "VARCHAR", "far": "DOUBLE"}
    regions = looked_up("regions", Fingerprint("parquet", ()), DuckDBLookup(types, "regions", memory.run))
    sql = "SELECT r.far - r.far % 2e-13, COUNT(*) FROM visits v JOIN regions r ON v.region = r.code GROUP BY 1"
    plan = plan_question(sql, {"visits": visits}, publics={"regions": regions})
    assert plan.cells == ((1e300,),)  # all that the public table has
    left = plan_question(sql.replace("JOIN", "LEFT JOIN"), {"visits": visits}, publics={"regions": regions})
    assert left.selection is not None  # as other keys that nobody can list
