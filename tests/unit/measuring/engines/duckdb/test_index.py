"""The contribution index: the same integers as without it, and never used for what it is not about."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import LONG

from dalenius.audit.fuzzing.data_sets import draw_table_rows
from dalenius.audit.fuzzing.engines import OnDisk, with_index, write_data
from dalenius.audit.fuzzing.questions import write_question
from dalenius.audit.fuzzing.schemas import draw_table
from dalenius.curator import Curator
from dalenius.errors import DaleniusError, EngineFailedError
from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb import indexing, statements
from dalenius.measuring.engines.duckdb.backend import DuckDBPool
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.duckdb.index import IndexFiles
from dalenius.measuring.engines.duckdb.indexing import build_index
from dalenius.measuring.engines.duckdb.statements import indexed_sums, keys
from dalenius.measuring.engines.duckdb.statements.indexed_sums import IndexedSums
from dalenius.measuring.engines.duckdb.statements.sizes import units_sql
from dalenius.measuring.plan import Found, Limits, Plan
from dalenius.queries.rules import plan_question
from dalenius.tables.sources.fingerprint import fingerprint

QUESTIONS = (
    "SELECT COUNT(*) FROM visits",
    "SELECT SUM(amount), COUNT(*), COUNT(DISTINCT user_id) FROM visits",
    "SELECT SUM(change) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE amount > 100",
    "SELECT SUM(change), SUM(amount) FILTER (WHERE smoker) FROM visits WHERE age < 60",
    "SELECT region, COUNT(*), AVG(amount) FROM visits GROUP BY region",
    "SELECT region, COUNT(*) FROM visits WHERE region <> 'east' GROUP BY region",
    "SELECT region, smoker, SUM(change), VARIANCE(age) FROM visits GROUP BY 1, 2",
    "SELECT child, SUM(age) FROM visits GROUP BY child",
    "SELECT COALESCE(region, 'none'), COUNT(*) FROM visits GROUP BY 1",
    "SELECT region, COUNT(DISTINCT user_id) FROM visits GROUP BY region",
    "SELECT AVG(change), STDDEV(amount) FROM visits",
)


def rows(seed: int = 1, users: int = 60, nobody: bool = True) -> pa.Table:
    """Some with few rows, some with many; NULL everywhere, and values past their bounds."""
    chance = Random(seed)
    counts = [1 if user % 7 else chance.randrange(1, 60) for user in range(users)]
    owners: list[int | None] = [user for user, count in enumerate(counts) for _ in range(count)]
    owners += [None] * 5 if nobody else []

    def some(*values):
        return [chance.choice(values) for _ in owners]

    return pa.table(
        {
            "user_id": pa.array(owners, pa.int64()),
            "age": pa.array(some(None, 3, 18, 40, 59, 90, 200), pa.int32()),
            "child": some(0, 1, 2, None, 9),
            "region": some("north", "south", "east", "west", "nowhere", None),
            "amount": some(None, 0.0, 12.345, 5000.0, 99999.0, -3.0, float("nan"), float("inf")),
            "change": some(-10.0, -7.25, 0.0, 3.3, 10.0, None),
            "free": some(1.0, 2.0),
            "smoker": some(True, False, None),
            "when": pa.array(some(None, 20100, 20200, 20300, 20450), pa.int32()).view(pa.date32()),
            "at": pa.array([1_739_000_000_000_000] * len(owners), pa.int64()).view(pa.timestamp("us")),
            "note": some("x", "y"),
            "odd name": some(-3, 0, 3),
        }
    )


@pytest.fixture
def table(asker, tmp_path):
    pq.write_table(rows(), tmp_path / "visits.parquet")
    return asker().table


def engines(table, folder: Path) -> tuple[Any, Any]:
    """Without an index, and with one."""
    plain = DuckDB(fingerprint([str(folder / "visits.parquet")]), threads=1)
    layout = IndexFiles(folder / "storage", table, plain.fingerprint)
    build_index(layout, plain)
    return plain, DuckDB(plain.fingerprint, threads=1, layout=layout)


def way(plan: Plan, engine: DuckDB) -> str | None:
    """The statement that uses the index, if it may be used."""
    index = statements.valid_index(plan.table, engine)
    found = None if index is None else indexed_sums.statement(plan, index, engine, "salt")
    return None if found is None else found.sql


PERIOD = 'period = { column = "when", every = "month" }'


# In the short form half of all combinations: any three of the four still meet in all of theirs.
SHAPES = [
    (unit, accounting, period, nobody)
    for unit in ('"user_id"', '["user_id", "note"]')
    for accounting in ("zcdp", "pure")
    for period in ("", PERIOD)
    for nobody in (True, False)
    if LONG or ("note" in unit) ^ (accounting == "pure") ^ bool(period) ^ nobody
]


@pytest.mark.parametrize(("unit", "accounting", "period", "nobody"), SHAPES)
def test_the_integers_are_the_same_with_and_without_an_index(asker, tmp_path, unit, accounting, period, nobody):
    pq.write_table(rows(nobody=nobody), tmp_path / "visits.parquet")
    table = asker(unit=unit, accounting=accounting, period=period).table
    plain, fast = engines(table, tmp_path)
    ways: Counter[str] = Counter()
    whose = "DISTINCT (user_id, note)" if "note" in unit else "DISTINCT user_id"
    every = (Limits(), Limits(rows=1), Limits(groups=1))
    turn = SHAPES.index((unit, accounting, period, nobody))
    for at, sql in enumerate(QUESTIONS):
        for limits in every if LONG else [every[(at + turn) % 3]]:  # in the short form by turns
            plan = plan_question(sql.replace("DISTINCT user_id", whose), {"visits": table}, limits)
            statement = way(plan, fast)
            ways["general" if statement is None else "light" if "heavy" in statement else "alone"] += 1
            assert exact(plan, fast, "salt") == exact(plan, plain, "salt"), sql
    assert ways["light"] >= (10 if LONG else 3) and ways["general"] and (ways["alone"] or period)


def test_some_units_are_heavy_and_most_are_not(table, tmp_path):
    _, fast = engines(table, tmp_path)
    plan = plan_question(QUESTIONS[3], {"visits": table})
    heavy = fast.run(f"SELECT count(*) FROM ({IndexedSums(plan, fast.index).heavy()})")[0][0]
    assert 0 < heavy < 15  # of sixty


@pytest.mark.parametrize("seed", range(5))
def test_drawn_questions_have_the_same_integers_both_ways(seed, tmp_path):
    chance = Random(f"index {seed}")
    made = draw_table_rows(chance, draw_table(chance, "parquet"))
    table = made.schema.first
    plain = OnDisk(write_data(made.schema, made.first, tmp_path), DuckDBPool()).of(table)
    fast = with_index(table, plain, tmp_path / "storage")
    asked = 0
    while asked < 8:
        try:
            plan = plan_question(write_question(chance, made.schema).text, made.schema.tables)
        except DaleniusError:
            continue
        asked += 1
        assert exact(plan, fast, "salt") == exact(plan, plain, "salt"), plan.canonical()


# --- validity


def broken_by_a_new_source(table, fast, folder):
    pq.write_table(rows(seed=2), folder / "visits.parquet")
    layout = IndexFiles(folder / "storage", table, fingerprint([str(folder / "visits.parquet")]))
    assert layout.stem == fast.index.layout.stem  # names tell nothing of the content, so the check must
    return table, DuckDB(layout.fingerprint, threads=1, layout=layout)


def broken_by_another_policy(table, fast, folder):
    columns = dict(table.policy.columns)
    columns["age"] = replace(columns["age"], default=20)
    return replace(table, policy=replace(table.policy, columns=columns)), fast


def broken_by_truncation(table, fast, folder):
    file = fast.index.layout.files[0].path
    file.write_bytes(file.read_bytes()[:-20])
    return table, fast


def broken_by_removal(table, fast, folder):
    fast.index.layout.files[0].path.unlink()
    return table, fast


def broken_by_another_tables_file(table, fast, folder):
    other = replace(table, policy=replace(table.policy, name="others"))
    layout = IndexFiles(folder / "storage", other, fast.fingerprint)
    build_index(layout, fast)
    shutil.copyfile(layout.files[0].path, fast.index.layout.files[0].path)
    return table, fast


def broken_by_another_kind_of_file(table, fast, folder):
    layout = fast.index.layout
    shutil.copyfile(layout.files[1].path, layout.files[0].path)
    return table, fast


BREAKS = (
    broken_by_a_new_source,
    broken_by_another_policy,
    broken_by_truncation,
    broken_by_removal,
    broken_by_another_tables_file,
    broken_by_another_kind_of_file,
)


@pytest.mark.parametrize("seen", [True, False], ids=["after a question", "before any"])
@pytest.mark.parametrize("breaks", BREAKS, ids=lambda each: each.__name__)
def test_an_index_that_is_not_about_this_is_never_used(breaks, seen, table, tmp_path):
    _, fast = engines(table, tmp_path)
    plan = plan_question(QUESTIONS[3], {"visits": table})
    assert not seen or way(plan, fast) is not None
    table, fast = breaks(table, fast, tmp_path)
    plan = plan_question(QUESTIONS[3], {"visits": table})
    assert way(plan, fast) is None
    assert exact(plan, fast, "salt") == exact(plan, DuckDB(fast.fingerprint, threads=1), "salt")


def test_an_index_that_goes_bad_in_the_middle_ends_the_question(table, tmp_path):
    _, fast = engines(table, tmp_path)
    plan = plan_question(QUESTIONS[3], {"visits": table})
    file = fast.index.layout.files[0].path
    content = bytearray(file.read_bytes())
    content[4:200] = b"\xff" * 196  # its end, which says what it is, is as it was
    file.write_bytes(content)
    assert way(plan, fast) is not None
    with pytest.raises(EngineFailedError) as caught:  # not the general way, which whoever has a watch could tell
        exact(plan, fast, "salt")
    assert caught.value.alarm == "index failed"


def test_an_index_that_is_exchanged_during_a_question_does_not_count(table, tmp_path, monkeypatch):
    plain, fast = engines(table, tmp_path)
    plan = plan_question(QUESTIONS[0], {"visits": table})
    run = fast.run

    def exchanged(sql, *, seconds=60.0):
        if "storage" in sql and "kv_metadata" not in sql:
            file = fast.index.layout.files[0]
            pq.write_table(pq.read_table(file.path).slice(0, 3), file.path)
        return run(sql, seconds=seconds)

    monkeypatch.setattr(fast, "run", exchanged)
    assert exact(plan, fast, "salt") == exact(plan, plain, "salt")


# --- what it holds


def test_sizes_are_those_that_the_search_for_limits_counts(table, tmp_path):
    plain, fast = engines(table, tmp_path)
    for kind, column in (("rows", ""), ("total", "amount"), ("total", "change"), ("norm", "region"), ("norm", "child")):
        general = units_sql(table, kind, column, plain.scan, plain.columns)
        expected = plain.run(f"{general} SELECT value FROM sizes")
        assert sorted(fast.run(fast.index.sizes(kind, column))) == sorted(expected)
    assert fast.index.sizes("total", "note") is None and fast.index.sizes("norm", "amount") is None


def test_pairs_are_units_and_keys_with_their_rows(asker, tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "FEW_KEYS", 2)
    pq.write_table(rows(), tmp_path / "visits.parquet")
    text = (asker().table.policy.text).replace('keys = ["north", "south", "east", "west"]\n', "")
    table = asker(text).table
    plain, fast = engines(table, tmp_path)
    counted = "SELECT user_id, region, count(*) AS n, count(*) OVER (PARTITION BY user_id) AS m "
    counted += f"FROM {plain.scan} WHERE user_id IS NOT NULL AND region IS NOT NULL GROUP BY user_id, region"
    many = sorted(row for row in plain.run(counted) if row[3] > 2)
    assert many and sorted(fast.run(f"SELECT u0, key, n, m FROM {fast.index.pairs('region')}")) == many
    weights = fast.run(f"SELECT key, m, units FROM {fast.index.weights('region')}")
    assert sorted(weights) == sorted(plain.run(f"SELECT region, m, count(*) FROM ({counted}) GROUP BY region, m"))
    assert fast.index.pairs("amount") is None
    keys = fast.run(fast.index.sizes("distinct", "region"))
    assert sorted(keys) == sorted(plain.run(f"SELECT max(m)::DOUBLE FROM ({counted}) GROUP BY user_id"))


@pytest.mark.parametrize("unit", ["user_id", "user_id, region"])
def test_keys_that_are_found_weigh_the_same_with_and_without_an_index(asker, tmp_path, unit):
    chance = Random(8)
    held = [(user, f"n{chance.randrange(60)}") for user in range(40) for _ in range(chance.choice((1, 3, 40, 90)))]
    users, notes = zip(*held, strict=True)
    regions = [("north", "south")[at % 2] for at in range(len(held))]
    columns = {"user_id": pa.array(users, pa.int64()), "note": notes, "region": regions}
    pq.write_table(pa.table(columns), tmp_path / "visits.parquet")
    text = POLICY.format(source="visits.parquet", rows=5).replace('"user_id"', json.dumps(unit.split(", ")), 1)
    table = asker(text).table
    plain, fast = engines(table, tmp_path)
    for groups in (5, 16, 20, 200):
        sql = "SELECT note, COUNT(*) FROM visits GROUP BY note"
        plan = plan_question(sql, {"visits": table}, Limits(groups=groups))
        used = keys.indexed_statement(plan, fast.index, fast, "salt")
        assert (used is None) == (groups < 16)
        one, two = (dict(zip(*keys.weights(plan, each, "salt", 60.0), strict=True)) for each in (fast, plain))
        assert one == two and len(one) > 50


def test_totals_too_large_for_a_file_are_beyond_every_limit(asker, tmp_path):
    text = asker().table.policy.text.replace("bounds = [18, 90]", f"bounds = [{-(2**63)}, {2**63 - 1}]")
    table = replace(asker(text).table, found=Found(10))
    column = pa.array([2**63 - 1] * 3 + [5], pa.int64())
    pq.write_table(rows(users=4, nobody=False).slice(0, 4).set_column(1, "age", column), tmp_path / "visits.parquet")
    plain, fast = engines(table, tmp_path)
    assert max(fast.run("SELECT max(t0) FROM " + fast.index.layout.files[0].scan)) == (2**62,)
    plan = plan_question("SELECT SUM(age) FROM visits", {"visits": table}, Limits(totals={"age": Fraction(1000)}))
    assert exact(plan, fast, "salt") == exact(plan, plain, "salt")


# --- what a review found

WIDE = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 3
delta = 1e-6
{columns}
[contribution]
rows = 3
"""


def column(name: str, low: int, high: int) -> str:
    return f'[columns.{name}]\ntype = "integer"\nbounds = [{low}, {high}]\n'


def both_ways(asker, tmp_path, sql: str, columns: str, **values: list[int | None]) -> list[list[list[int]]]:
    """The integers with and without an index; one row a unit."""
    size = len(next(iter(values.values())))
    arrays = {"user_id": pa.array(range(size), pa.int64())}
    arrays |= {name: pa.array(each, pa.int64()) for name, each in values.items()}
    pq.write_table(pa.table(arrays), tmp_path / "visits.parquet")
    table = asker(WIDE.format(columns=columns)).table
    plan = plan_question(sql, {"visits": table})
    return [exact(plan, each, "salt") for each in engines(table, tmp_path)]


@pytest.mark.parametrize("high", [2**31 - 1, 10**10, 2**58])
@pytest.mark.parametrize("sql", ["SUM(x) FROM visits", "SUM(x) FROM visits WHERE y < 8", "AVG(x) FROM visits"])
def test_a_null_adds_nothing_however_wide_the_bounds(asker, tmp_path, sql, high):
    columns = column("x", 0, high) + column("y", 0, 9)
    values: dict[str, list[int | None]] = {"x": [None] * 20 + [5] * 10, "y": [1] * 30}
    plain, fast = both_ways(asker, tmp_path, f"SELECT {sql}", columns, **values)
    assert plain == fast
    assert "AVG" in sql or fast[0] == [50]


@pytest.mark.parametrize("name", ["n", "N", "l0", "c0", "key", "m"])
def test_a_column_may_have_the_name_of_one_of_ours(asker, tmp_path, name):
    columns = column(name, 0, 9)
    values: dict[str, list[int | None]] = {name: [3] * 10 + [10**12] + [None] * 3}
    for aggregate in (f"MEDIAN({name})", f"SUM({name})", "COUNT(*)"):
        plain, fast = both_ways(asker, tmp_path, f"SELECT {aggregate} FROM visits", columns, **values)
        assert plain == fast


def test_a_quantile_of_a_constant_reads_no_column(asker, tmp_path):
    plain, fast = both_ways(asker, tmp_path, "SELECT MEDIAN(5) FROM visits", column("x", 0, 9), x=[1] * 7)
    assert plain == fast


def test_the_order_of_columns_in_a_policy_does_not_swap_totals(asker, tmp_path):
    values: dict[str, list[int | None]] = {"x": [10 for _ in range(20)], "y": [*(0 for _ in range(19)), 9]}
    orders = [column("x", 0, 99) + column("y", 0, 99), column("y", 0, 99) + column("x", 0, 99)]
    found = []
    for columns in orders:
        for sql in ("SELECT SUM(x) FROM visits", "SELECT SUM(y) FROM visits WHERE y >= 0"):
            plain, fast = both_ways(asker, tmp_path, sql, columns, **values)
            assert plain == fast
            found.append(fast[0])
    assert found == [[200], [9]] * 2
    tables = [asker(WIDE.format(columns=columns)).table for columns in orders]
    layouts = [IndexFiles(tmp_path, table, fingerprint([str(tmp_path / "visits.parquet")])) for table in tables]
    assert layouts[0].totals == layouts[1].totals == ("x", "y")


# --- how it is written

POLICY = """
[table]
name = "visits"
source = "{source}"
unit = "user_id"
[budget]
epsilon = 3
delta = 1e-6
[columns.region]
type = "category"
keys = ["north", "south"]
[columns.note]
type = "category"
[contribution]
rows = {rows}
"""


@pytest.fixture
def protect(tmp_path):
    """`protect(rows=…)`: protects the table, and gives the curator and what it says of the index."""
    pq.write_table(rows(), tmp_path / "visits.parquet")

    def done(rows: int = 5, source: str = "visits.parquet", extra: str = ""):
        file = tmp_path / "visits.toml"
        file.write_text(POLICY.format(rows=rows, source=source) + extra)
        curator = Curator(tmp_path / "home")
        (each,) = curator.protect(file, yes=True)
        return curator, each

    return done


def stored(curator) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in (curator.home / "storage").iterdir()}


def test_protect_builds_it_once_for_the_owner_alone(protect):
    curator, first = protect()
    assert first.index["state"] == "built" and first.to_dict()["index"]["bytes"] > 0
    assert (curator.home / "storage").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (curator.home / "storage").iterdir()} == {0o600}
    before = stored(curator)
    assert len(before) == 5 and all(name.startswith("visits-") for name in before)
    curator, again = protect()
    assert again.index == {"state": "kept"} and stored(curator) == before
    curator, limits = protect(rows=6)  # limits decide who is heavy, not how much a unit holds
    assert limits.state == "changed" and limits.index == {"state": "kept"} and stored(curator) == before


def test_another_meaning_of_a_column_replaces_it(protect):
    curator, _ = protect()
    before = stored(curator)
    curator, changed = protect(extra='[columns.child]\ntype = "integer"\nbounds = [0, 3]\n')
    assert changed.index["state"] == "built"
    assert not set(stored(curator)) & set(before) and len(stored(curator)) == 6


def test_what_others_keep_in_the_folder_stays(protect):
    curator, _ = protect()
    folder = curator.home / "storage"
    kept = {"other-0123456789abcdef.parquet", "notes.txt", f".visits-0123456789abcdef.parquet.{os.getpid()}"}
    for name in {*kept, "visits-0123456789abcdef-k3.parquet", ".visits-0123456789abcdef.parquet.999999999"}:
        (folder / name).touch()
    curator, _ = protect(extra='[columns.child]\ntype = "integer"\nbounds = [0, 3]\n')
    assert len(stored(curator)) == 6 + len(kept) and kept <= set(stored(curator))


def test_protect_succeeds_without_it_where_it_cannot_be_written(protect, monkeypatch):
    def full(self, file, sql, notes=None):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(indexing._Writer, "copy", full)
    curator, done = protect()
    assert done.recorded and done.index["state"] == "failed" and "disk" in done.index["why"]
    assert stored(curator) == {}  # nothing half written stays


def test_a_csv_source_has_none(protect, tmp_path):
    (tmp_path / "visits.csv").write_text("user_id,region,note\n1,north,x\n")
    curator, done = protect(source="visits.csv")
    assert done.recorded and done.index == {"state": "none"}
    assert not (curator.home / "storage").exists()


def test_a_unit_whose_type_a_file_cannot_keep_has_none(table, tmp_path, monkeypatch):
    plain = DuckDB(fingerprint([str(tmp_path / "visits.parquet")]), threads=1)
    monkeypatch.setitem(plain.__dict__, "columns", {**plain.columns, "user_id": "HUGEINT"})
    with pytest.raises(EngineFailedError, match="type"):
        build_index(IndexFiles(tmp_path / "storage", table, plain.fingerprint), plain)
    assert list((tmp_path / "storage").iterdir()) == []


def test_progress_names_what_comes_next(table, tmp_path):
    plain = DuckDB(fingerprint([str(tmp_path / "visits.parquet")]), threads=1)
    told: list[tuple[int, int, str]] = []
    layout = IndexFiles(tmp_path / "storage", table, plain.fingerprint)
    built = build_index(layout, plain, lambda *each: told.append(each))
    assert [done for done, _, _ in told] == list(range(len(layout.files) + 1))
    assert told[0][2] == "rows and totals" and told[-1][2] == ""
    assert set(built.seconds) == {name for _, _, name in told[:-1]}
