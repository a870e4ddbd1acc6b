"""The class of a unit depends on its own rows alone, and no size is too large for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.measuring.engines.duckdb.connections import DuckDB, public
from dalenius.measuring.engines.duckdb.statements.sizes import units_sql
from dalenius.measuring.plan import Table
from dalenius.owner.protect import budget_of
from dalenius.tables.reading import read_text
from dalenius.tables.sources.fingerprint import fingerprint

POLICY = """
[table]
name = "t"
source = "{source}"
unit = "u"
[budget]
epsilon = 3
delta = 1e-6
[columns.x]
type = "number"
bounds = [0, 4503599627370496]
step = 1
[columns.k]
type = "integer"
bounds = [0, 3]
keys = [0, 1, 2, 3]
"""
X = 10**6


def table(source: Path | str) -> Table:
    policy = read_text(POLICY.format(source=source))
    budget = budget_of(policy)
    assert budget is not None
    return Table(policy, budget)


def test_rows_of_one_unit_do_not_move_another_to_another_class(tmp_path: Path):
    """Unit X shifts everybody's rows between row groups, hence between threads.

    Each unit has 256 rows of 2⁵² and many of 60. In doubles a 60 is lost beside 2⁶⁰, but not in the partial sum of
    another thread: with sum(double) in place of the integers, six runs gave six different sets of classes.
    """
    units, each = 40, 12_000
    unit = np.concatenate([np.repeat(np.arange(units), 256), np.tile(np.arange(units), each)])
    big = np.full((units, 256), 2.0**52)
    big[:, 0] -= 256 * np.round(
        60 * each * np.linspace(0.05, 0.95, units) / 256
    )  # a share of the 60s decides the class
    values = np.concatenate([big.ravel(), np.full(units * each, 60.0)])
    noise = np.random.default_rng(1).integers(0, 2**62, len(unit))  # past the size that one thread reads
    found = []
    for rows_of_x in (0, 5000):
        file = tmp_path / f"{rows_of_x}.parquet"
        columns = {
            "u": np.concatenate([np.full(rows_of_x, X), unit]),
            "x": np.concatenate([np.full(rows_of_x, 7.0), values]),
            "k": np.zeros(rows_of_x + len(unit), dtype=np.int64),
            "noise": np.concatenate([np.zeros(rows_of_x, dtype=np.int64), noise]),
        }
        pq.write_table(pa.table(columns), file, row_group_size=8192)
        assert file.stat().st_size > 4 * 2**20
        engine = DuckDB(fingerprint(table(file).policy.source), threads=4)
        sql = units_sql(table(file), "total", "x", engine.scan, engine.columns)
        sql = sql.replace("AS value FROM clean", "AS value, u0 FROM clean").replace(
            "value FROM (SELECT", "value, u0 FROM (SELECT"
        )
        found += [engine.run(f"{sql} SELECT u0, size FROM sizes WHERE u0 < {X} ORDER BY u0") for _ in range(2)]
        engine.close()
    assert len(found[0]) == units
    assert all(each == found[0] for each in found)
    assert {size for _, size in found[0]} == {122}  # exactly: all of them are past 2⁶⁰


@pytest.mark.parametrize(("kind", "column"), [("rows", ""), ("norm", "k"), ("distinct", "k"), ("total", "x")])
def test_a_unit_with_billions_of_rows_has_a_class(kind: str, column: str):
    rows = pa.table({"u": [1, 1], "x": [2.0**52] * 2, "k": [1, 1]})
    types = {"u": "BIGINT", "x": "DOUBLE", "k": "BIGINT"}
    sql = units_sql(table("/nowhere/t.parquet"), kind, column, "rows_", types)
    many = sql.replace("count(*)", "(1550000000 * count(*))")  # each row stands for so many
    assert (many == sql) == (kind in {"distinct", "total"})
    ((size, value),) = public().run(f"{many} SELECT size, value FROM sizes", {"rows_": rows})
    # n·n of 3.1e9 rows is past 2⁶³
    expected = {"rows": (65, 3.1e9), "norm": (65, 3.1e9), "distinct": (1, 1.0), "total": (107, 2.0**53)}
    assert (size, value) == expected[kind]
