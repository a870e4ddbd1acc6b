"""The embedded engine: it runs one SELECT at a time, on its own files, and says nothing of what is in them."""

import hashlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.errors import EngineFailedError, EngineTimeoutError, InternalError, SourceUnavailableError
from dalenius.measuring.engines.duckdb.backend import DuckDBPool
from dalenius.measuring.engines.duckdb.connections import DuckDB, Public, public
from dalenius.measuring.engines.engine import within
from dalenius.tables.sources.fingerprint import fingerprint

CANARY = "Tore Dalenius"
HEAVY = "SELECT sum(a.range * b.range) FROM range(1000000000) a, range(1000000000) b WHERE (a.range + b.range) % 7 = 3"


@pytest.fixture
def parquet(tmp_path):
    file = tmp_path / "it's.parquet"
    pq.write_table(pa.table({"user_id": [1, 2, 3], "name": [CANARY, "a", "b"]}), file)
    return file


@pytest.fixture
def csv(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text(f"user_id,name\n1,{CANARY}\n2,\n")
    return file


@pytest.fixture
def engine(parquet):
    engine = DuckDB(fingerprint([str(parquet)]), threads=2)
    yield engine
    engine.close()


def is_open(engine):
    return engine._connection is not None


def hashed(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_rows_of_parquet(engine):
    assert engine.run(f"SELECT * FROM {engine.scan} ORDER BY 1") == [(1, CANARY), (2, "a"), (3, "b")]
    assert dict(engine.columns) == {"user_id": "BIGINT", "name": "VARCHAR"}
    assert engine.columns is engine.columns


def test_rows_of_csv_are_text(csv):
    engine = DuckDB(fingerprint([str(csv)]))
    assert engine.run(f"SELECT * FROM {engine.scan} ORDER BY 1") == [("1", CANARY), ("2", None)]
    assert dict(engine.columns) == {"user_id": "VARCHAR", "name": "VARCHAR"}


def test_several_files_and_partition_names(tmp_path):
    for year in (2024, 2025):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"x": [year]}), tmp_path / f"year={year}" / "a.parquet")
    engine = DuckDB(fingerprint([str(tmp_path / "*" / "*.parquet")]))
    assert engine.run(f"SELECT * FROM {engine.scan} ORDER BY 1") == [(2024,), (2025,)]


@pytest.mark.parametrize("value", [2**126, -(2**126), 2**127 - 1, -(2**127) + 1, 0, -1])
def test_wide_integers_are_exact(engine, value):
    [(plain, summed)] = engine.run(f"SELECT ({value})::HUGEINT, sum(v) FROM (VALUES (({value})::HUGEINT)) t(v)")
    assert type(plain) is int and type(summed) is int and plain == summed == value


def test_time_is_utc_wherever_the_machine_stands(parquet, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        engine = DuckDB(fingerprint([str(parquet)]))
        [(hour,)] = engine.run("SELECT extract(hour FROM (TIMESTAMPTZ '2025-06-01 00:00:00+00')::TIMESTAMP)")
        assert hour == 0
    finally:
        monkeypatch.undo()
        time.tzset()


# `{file}` is a file that the engine may open, and therefore could write.
REFUSED = [
    "COPY (SELECT 7 AS b) TO '{file}' (USE_TMP_FILE false)",
    "WITH a AS (COPY (SELECT 7 AS b) TO '{file}' (USE_TMP_FILE false)) SELECT * FROM a",
    "with a as materialized (cOpY (select 7 as b) to '{file}' (use_tmp_file false)) select * from a",
    "SELECT * FROM (WITH a AS (COPY (SELECT 7 AS b) TO '{file}') SELECT * FROM a)",
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
    "WITH a AS (INSERT INTO t VALUES (1) RETURNING 1) SELECT * FROM a",
    "WITH a AS (DELETE FROM t RETURNING 1) SELECT * FROM a",
    "WITH a AS (UPDATE t SET x = 1 RETURNING 1) SELECT * FROM a",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM \"QUERY\"('SELECT 1')",
    "SELECT * FROM query_table('t')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "INSERT INTO t VALUES (1)",
    "CREATE TABLE t AS SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "ATTACH '{file}'",
    "ATTACH ':memory:' AS b",
    "EXPORT DATABASE '{file}'",
    "PRAGMA version",
    "CALL pragma_version()",
    "SET threads = 1",
    "SET GLOBAL enable_external_access = true",
    "RESET lock_configuration",
    "LOAD httpfs",
    "INSTALL httpfs",
    "UPDATE EXTENSIONS",
    "EXPLAIN ANALYZE SELECT 1",
    "PREPARE p AS SELECT 1",
    "BEGIN",
    "CHECKPOINT",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY (SELECT 7 AS b) TO '{file}' (USE_TMP_FILE false)",
    "",
    "-- nothing",
    "SELEC 1",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_only_one_select_runs(csv, sql):
    engine = DuckDB(fingerprint([str(csv)]))
    before = hashed(csv)
    with pytest.raises(InternalError) as caught:
        engine.run(sql.replace("{file}", str(csv)))
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert hashed(csv) == before and list(csv.parent.iterdir()) == [csv]
    assert engine.run("SELECT count(*) FROM duckdb_tables()") == [(0,)]


def test_words_that_only_name_something_are_no_writes(engine):
    assert engine.run("SELECT 1 AS \"copy\", 'delete' AS updated_at") == [(1, "delete")]
    recursive = 'WITH RECURSIVE "insert"(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM "insert" WHERE n < 3)'
    assert engine.run(f'{recursive} SELECT n FROM "insert" UNION SELECT 9 ORDER BY 1') == [(1,), (2,), (3,), (9,)]


def test_no_other_file_can_be_read(engine, parquet, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    pq.write_table(pa.table({"user_id": [9]}), tmp_path / "other.parquet")
    for item in (
        f"read_csv('{other}')",
        f"read_text('{other}')",
        f"read_blob(['{other}'])",
        f"sniff_csv('{other}')",
        f"'{other}'",
        f"read_parquet('{tmp_path}/*.parquet')",
        f"read_parquet('{tmp_path}/other.parquet')",
        f"glob('{tmp_path}/*')",
        "read_text('/proc/self/environ')",
        "read_csv('http://127.0.0.1:9/a.csv')",
        "enable_logging(storage = 'file', storage_path = '" + str(parquet).replace("'", "''") + "')",
        "enable_profiling()",
    ):
        with pytest.raises(EngineFailedError):
            engine.run(f"SELECT * FROM {item}")


def test_a_star_in_a_path_stands_for_itself(tmp_path):
    for name in ("a*.csv", "ab.csv"):
        (tmp_path / name).write_text("name\n" + name + "\n")
    engine = DuckDB(fingerprint([str(tmp_path / "a*.csv")]))  # a file of that name is there, so it is no glob
    assert [path.name for path in engine.fingerprint.paths] == ["a*.csv"]
    with pytest.raises(EngineFailedError):
        engine.run(f"SELECT * FROM {engine.scan}")
    with pytest.raises(SourceUnavailableError):
        _ = engine.columns


def test_variables_are_no_tables(engine):
    secrets = pa.table({"x": [1]})
    with pytest.raises(EngineFailedError):
        engine.run("SELECT * FROM secrets")
    assert secrets.num_rows == 1


def test_settings_are_locked(engine):
    names = {
        "enable_external_access": False,
        "lock_configuration": True,
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
        "preserve_insertion_order": False,
        "temp_directory": "",
        "TimeZone": "UTC",
        "threads": 2,
    }
    columns = ", ".join(f"current_setting('{name}')" for name in names)
    assert engine.run(f"SELECT {columns}") == [tuple(names.values())]
    cursor = engine._cursor()
    for setting in ("threads = 1", "memory_limit = '90GB'", "temp_directory = '/tmp'", "allowed_paths = ['/']"):
        with pytest.raises(Exception, match=r"locked|Cannot|disabled"):
            cursor.execute(f"SET {setting}")


def test_errors_say_nothing_of_the_data(engine, csv):
    plain = DuckDB(fingerprint([str(csv)]))
    for each in (engine, plain):
        with pytest.raises(EngineFailedError) as caught:
            each.run(f"SELECT sum(name::INTEGER) FROM {each.scan}")
        error = caught.value
        assert CANARY not in repr(error) + str(error) + str(error.to_dict())
        assert error.__cause__ is None and error.__context__ is None


def test_too_little_memory_is_a_failure(parquet):
    engine = DuckDB(fingerprint([str(parquet)]), memory="40MB", threads=1)
    with pytest.raises(EngineFailedError):
        engine.run("SELECT count(*) FROM (SELECT DISTINCT range FROM range(20000000))")
    assert engine.run("SELECT 1") == [(1,)]


@pytest.mark.parametrize("seconds", [0.2, 0.0])
def test_time_runs_out(engine, seconds):
    start = time.monotonic()
    with pytest.raises(EngineTimeoutError) as caught:
        engine.run(HEAVY, seconds=seconds)
    assert time.monotonic() - start < 30
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "nterrupt" not in str(caught.value)
    assert engine.run(f"SELECT count(*) FROM {engine.scan}") == [(3,)]


def test_statements_share_the_time_of_their_question(engine):
    start = time.monotonic()
    with within(0.3):
        for _ in range(2):
            with pytest.raises(EngineTimeoutError, match="20 seconds"):  # what was allowed, never what was left of it
                engine.run(HEAVY, seconds=20)
    assert time.monotonic() - start < 15
    assert engine.run("SELECT 1", seconds=5) == [(1,)]  # the end is gone with the question


def test_a_late_timer_does_no_harm(engine):
    before = threading.active_count()
    for _ in range(50):
        assert engine.run("SELECT 1", seconds=0.5) == [(1,)]
    time.sleep(0.7)
    assert engine.run("SELECT 1", seconds=5) == [(1,)]
    assert threading.active_count() <= before + 1


def test_one_out_of_time_leaves_the_others_alone(engine):
    with ThreadPoolExecutor(2) as pool:
        heavy = pool.submit(engine.run, HEAVY, seconds=0.3)
        light = [engine.run(f"SELECT count(*) FROM {engine.scan}") for _ in range(20)]
        with pytest.raises(EngineTimeoutError):
            heavy.result(60)
    assert light == [[(3,)]] * 20


def test_many_threads_at_once(engine):
    def ask(number):
        return engine.run(f"SELECT {number}, sum(user_id)::BIGINT FROM {engine.scan}")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(80))) == [[(number, 6)] for number in range(80)]


def test_close_lets_what_runs_end(engine):
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(engine.run, "SELECT sum(range)::HUGEINT FROM range(100000000)")
        time.sleep(0.02)
        engine.close()
        assert running.result(60) == [(4999999950000000,)]
    assert engine.run("SELECT 1") == [(1,)]


def test_the_users_interrupt_passes(parquet):
    code = (
        "import os, signal, sys, threading\n"
        "from dalenius.measuring.engines.duckdb.connections import DuckDB\n"
        "from dalenius.tables.sources.fingerprint import fingerprint\n"
        "engine = DuckDB(fingerprint([sys.argv[1]]))\n"
        "engine.run('SELECT 1')  # so that nothing is loaded when the signal comes\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored\n"
        "threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        f"    engine.run({HEAVY!r})\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', engine.run('SELECT 1'))\n"
    )
    command = [sys.executable, "-c", code, str(parquet)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "interrupted [(1,)]\n", done.stderr


FORK = """
import os, signal, sys, threading
from dalenius.measuring.engines.duckdb.backend import DuckDBPool
from dalenius.measuring.engines.duckdb.connections import DuckDB, public
from dalenius.tables.sources.fingerprint import fingerprint

engines = DuckDBPool()
engine = engines.of(fingerprint([sys.argv[1]]))
ask = f"SELECT count(*) FROM {engine.scan}, range(1000000)"
assert engine.run(ask) == [(3000000,)] and public().run("SELECT 1") == [(1,)]
busy = threading.Thread(target=lambda: [engine.run(ask) for _ in range(20)])
busy.start()
engine._lock.acquire()  # as another thread may hold it
engines._lock.acquire()
child = os.fork()
if child == 0:
    signal.alarm(60)
    assert engine._connection is None
    fresh = engine.run(ask) == [(3000000,)] and public().run("SELECT 2") == [(2,)]
    fresh = fresh and engines.of(engine.fingerprint) is engine
    if sys.argv[2] == "abrupt":
        os._exit(0 if fresh else 1)
    engines.close()
    public().close()
    sys.exit(0 if fresh else 1)
engine._lock.release()
engines._lock.release()
status = os.waitpid(child, 0)[1]
busy.join()
assert engine.run(ask) == [(3000000,)]
print("child", status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("end", ["abrupt", "orderly"])
def test_a_forked_child_opens_its_own(parquet, end):
    # In a process of its own: a child of pytest's would inherit the threads and locks of every other test.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, str(parquet), end]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.stdout == "child 0\n", done.stderr


def test_files_that_are_gone_or_broken(parquet):
    version = fingerprint([str(parquet)])
    engine = DuckDB(version)
    parquet.write_bytes(b"PAR1" + CANARY.encode() * 10)
    for broken, kind in (
        (lambda: DuckDB(version).columns, SourceUnavailableError),
        (lambda: engine.run(f"SELECT * FROM {engine.scan}"), EngineFailedError),
    ):
        with pytest.raises(kind) as caught:
            broken()
        assert CANARY not in str(caught.value) and caught.value.__cause__ is None
    parquet.unlink()
    with pytest.raises(SourceUnavailableError):
        DuckDB(version)
    with pytest.raises(EngineFailedError):
        engine.run(f"SELECT * FROM {engine.scan}")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="whoever may read everything misses nothing")
def test_files_without_access(parquet):
    version = fingerprint([str(parquet)])
    parquet.chmod(0)
    with pytest.raises(SourceUnavailableError):
        DuckDB(version)


def test_the_least_recently_used_engine_is_closed(tmp_path):
    versions = []
    for number in range(3):
        pq.write_table(pa.table({"x": [number]}), tmp_path / f"{number}.parquet")
        versions.append(fingerprint([str(tmp_path / f"{number}.parquet")]))
    engines = DuckDBPool(most=2)
    first, second = engines.of(versions[0]), engines.of(versions[1])
    first.ready()
    second.ready()
    assert engines.of(versions[0]) is first
    third = engines.of(versions[2])
    assert not is_open(third)  # until it has something to do
    third.ready()
    assert [is_open(each) for each in (first, second, third)] == [True, False, True]
    assert second.run(f"SELECT * FROM {second.scan}") == [(1,)]  # whoever still holds it is not left alone
    assert engines.of(versions[1]) is not second
    assert not is_open(first)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda number: engines.of(versions[number % 3]).run("SELECT 1"), range(30))
        assert list(found) == [[(1,)]] * 30
    engines.close()
    assert engines.of(versions[2]) is not third


def test_public_has_tables_for_one_call_only():
    table = pa.table({"key": ["a", "b"], "value": [1, 2]})
    assert public() is public()
    assert public().run("SELECT key, value FROM released ORDER BY 1", {"released": table}) == [("a", 1), ("b", 2)]
    assert public().run('SELECT count(*) FROM "a ""b"', {'a "b': table}) == [(2,)]
    with pytest.raises(EngineFailedError):
        public().run("SELECT * FROM released")


def test_public_opens_no_file_and_writes_nothing(parquet):
    each = Public()
    with pytest.raises(EngineFailedError):
        each.run("SELECT * FROM read_parquet('" + str(parquet).replace("'", "''") + "')")
    for sql in ("COPY (SELECT 1) TO 'a.csv'", "INSERT INTO released VALUES (1)", "SELECT 1; SELECT 2"):
        with pytest.raises(InternalError):
            each.run(sql, {"released": pa.table({"x": [1]})})
    with pytest.raises(EngineTimeoutError):
        each.run(HEAVY, seconds=0.2)
    each.close()


def test_public_from_many_threads():
    def ask(number):
        return public().run("SELECT sum(x)::BIGINT FROM t", {"t": pa.table({"x": [number, 1]})})

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(80))) == [[(number + 1,)] for number in range(80)]
