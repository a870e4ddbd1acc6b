"""Questions over public tables: all of SELECT, exact; and nothing but those tables, however it is asked."""

from __future__ import annotations

import json
import os
import random
import subprocess
import threading
import time as clock
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.errors import EngineFailedError, EngineTimeoutError, QuestionRefusedError, RateLimitedError
from dalenius.measuring.engines.duckdb import child, confined, public_checks
from dalenius.measuring.engines.duckdb.public_checks import FUNCTIONS, nodes_of
from dalenius.measuring.public import public_table
from dalenius.queries.public_questions import MOST_ROWS, answer_public, preview_public, public_question, rewrite
from dalenius.tables.policy import PublicSpec

REGIONS = "code,name,pop\n1,north,10\n2,south,20\n3,east,\n"
SECRET = "secretcanary"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("public")
    (made / "regions.csv").write_text(REGIONS)
    (made / "secret.csv").write_text(f"name\n{SECRET}\n")
    return made


@pytest.fixture(scope="module")
def regions(folder):
    return public_table(PublicSpec("regions", (str(folder / "regions.csv"),)))


def taken(sql, known):
    question = public_question(sql, known)
    assert question is not None, "not taken for a public question"
    return question


@pytest.fixture
def ask(regions):
    def asked(sql, **options):
        return answer_public(taken(sql, {"regions"}), [regions], **options)

    return asked


# --- what is answered


def test_an_answer_is_exact_and_costs_nothing(ask):
    release = ask("SELECT name, pop FROM Regions AS r WHERE pop > 5 ORDER BY r.name DESC")
    assert release.columns == ("name", "pop") and release.rows == (("south", 20), ("north", 10))
    assert release.noise_error == release.interval == ((None, None), (None, None))
    assert release.charge == {"epsilon": 0.0, "delta": 0.0, "rho": None} and release.receipt is None
    assert release.public and release.free and release.guarantee["kind"] == "public"
    assert str(release).splitlines()[-1] == release.summary == "public, exact, free" and "±" not in str(release)
    assert release.to_dict()["rows"] == [["south", 20], ["north", 10]]
    assert release.to_arrow().column_names == ["name", "pop"]


def test_one_number_is_the_value(ask):
    assert ask("SELECT sum(pop) FROM regions").value == 30


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM regions r WHERE EXISTS (SELECT 1 FROM regions q WHERE q.pop > r.pop)", [(1,)]),
        ("SELECT sum(pop) OVER (ORDER BY code), lag(name) OVER (ORDER BY code) FROM regions ORDER BY code LIMIT 2",
         [(10, None), (30, "north")]),
        ("WITH a AS (SELECT code FROM regions), b AS (SELECT max(code) m FROM a) SELECT m FROM b", [(3,)]),
        ("WITH regions AS (SELECT name FROM regions) SELECT min(name) FROM regions", [("east",)]),
        ("WITH visits AS (SELECT * FROM regions) SELECT count(*) FROM visits", [(3,)]),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT max(n) FROM r, regions",
         [(9,)]),
        ("SELECT d FROM regions JOIN (VALUES (1, 'a')) v(c, d) ON c = code", [("a",)]),
        ("SELECT 1 FROM regions UNION SELECT 2 FROM regions ORDER BY 1", [(1,), (2,)]),
        ("(SELECT code FROM regions) EXCEPT (SELECT 1 FROM regions) ORDER BY 1 DESC", [(3,), (2,)]),
        ("(SELECT code FROM regions ORDER BY code DESC)", [(3,), (2,), (1,)]),
        ("SELECT name FROM regions ORDER BY code FETCH FIRST 1 ROWS ONLY", [("north",)]),
        ("SELECT count(pop), grouping(name) FROM regions GROUP BY ROLLUP (name) ORDER BY 2 DESC, 1",
         [(2, 1), (0, 0), (1, 0), (1, 0)]),
        ("SELECT name FROM regions QUALIFY row_number() OVER (ORDER BY pop DESC NULLS LAST) = 1", [("south",)]),
        ("SELECT x FROM regions, UNNEST([7]) u(x) LIMIT 1", [(7,)]),
        ("SELECT string_agg(upper(left(name, 1)), '' ORDER BY code) /* remark */ FROM regions -- and more", [("NSE",)]),
        ("SELECT CASE WHEN name LIKE 'n%' THEN pop ELSE -1 END FROM regions ORDER BY code", [(10,), (-1,), (-1,)]),
        ("SELECT * EXCLUDE (pop) FROM regions WHERE code NOT IN (SELECT code FROM regions WHERE pop > 10) ORDER BY 1",
         [(1, "north"), (3, "east")]),
    ],
)  # fmt: skip
def test_any_select_is_answered(ask, sql, rows):
    assert list(ask(sql).rows) == rows


def test_values_of_all_types_come_back_as_they_are(ask):
    sql = (
        "SELECT 1.50::DECIMAL(9,2), 1::HUGEINT, DATE '2024-02-29', TIMESTAMP '2024-01-01 10:00:00', TIME '10:30', "
        "'nan'::DOUBLE, 0.1::DOUBLE, true, NULL, [1, 2] MOMENT FROM regions LIMIT 1"
    )
    expected = (Decimal("1.50"), 1, date(2024, 2, 29), datetime.fromisoformat("2024-01-01T10:00:00"), time(10, 30))
    for more in ((), (datetime(2024, 1, 1, 10, tzinfo=UTC),)):  # points in time take another way out of DuckDB
        moment = ", TIMESTAMPTZ '2024-01-01 10:00:00+00'" if more else ""
        (row,) = ask(sql.replace("MOMENT", moment)).rows
        assert row[:5] == expected and type(row[1]) is int
        assert row[5] != row[5] and row[6:] == (0.1, True, None, "[1, 2]", *more)


def test_an_answer_has_an_end_and_says_so(ask):
    release = ask("SELECT unnest(range(20000)) FROM regions")
    assert len(release.rows) == MOST_ROWS and "first 10,000 rows" in release.notes[0]
    assert ask(f"SELECT unnest(range(20000)) FROM regions LIMIT {MOST_ROWS}").notes == ()
    assert len(ask("SELECT unnest(range(20000)) FROM regions LIMIT 7").rows) == 7


def test_a_preview_gives_the_columns_and_no_price(regions):
    found = preview_public(
        taken("SELECT name, sum(pop) AS people FROM regions GROUP BY 1", {"regions"}), [regions], 0.9
    )
    assert (found.columns, found.choices, found.public) == (("name", "people"), (), True)
    assert str(found) == "name, people: public, exact, free"


def test_the_same_question_is_worked_out_once_until_the_files_change(tmp_path, monkeypatch):
    file, runs, real = tmp_path / "t.csv", [], confined.run

    def total():
        return answer_public(taken("SELECT sum(a) FROM t", {"t"}), [public_table(PublicSpec("t", (str(file),)))]).value

    def counted(*args, **options):
        runs.append(1)
        return real(*args, **options)

    monkeypatch.setattr(confined, "run", counted)
    file.write_text("a\n1\n2\n")
    assert (total(), total(), len(runs)) == (3, 3, 1)
    file.write_text("a\n1\n2\n3\n")
    assert (total(), len(runs)) == (6, 2)


# --- TPC-H

Q2 = """
select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from part, supplier, partsupp, nation, region
where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS'
  and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE'
  and ps_supplycost = (
    select min(ps_supplycost) from partsupp, supplier, nation, region
    where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
      and n_regionkey = r_regionkey and r_name = 'EUROPE')
order by s_acctbal desc, n_name, s_name, p_partkey limit 100
"""
Q11 = """
select ps_partkey, sum(ps_supplycost * ps_availqty) as value
from partsupp, supplier, nation
where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY'
group by ps_partkey
having sum(ps_supplycost * ps_availqty) > (
    select sum(ps_supplycost * ps_availqty) * 0.0001000000 from partsupp, supplier, nation
    where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY')
order by value desc, ps_partkey
"""
Q16 = """
select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt
from partsupp, part
where p_partkey = ps_partkey and p_brand <> 'Brand#45' and p_type not like 'MEDIUM POLISHED%'
  and p_size in (49, 14, 23, 45, 19, 3, 36, 9)
  and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
group by p_brand, p_type, p_size
order by supplier_cnt desc, p_brand, p_type, p_size
"""


@pytest.fixture(scope="module")
def tpch(tmp_path_factory):
    """A small TPC-H: the tables that are about nobody."""
    folder, chance = tmp_path_factory.mktemp("tpch"), random.Random(7)
    money = pa.decimal128(15, 2)
    types = ["LARGE BRASS", "SMALL BRASS", "MEDIUM POLISHED TIN", "ECONOMY STEEL"]
    parts, suppliers = range(1, 201), range(1, 41)
    pairs = [(part, supplier) for part in parts for supplier in chance.sample(list(suppliers), 4)]
    prices = [Decimal(chance.randint(100, 100_000)) / 100 for _ in pairs]
    tables = {
        "region": {"r_regionkey": [0, 1], "r_name": ["EUROPE", "ASIA"]},
        "nation": {"n_nationkey": [0, 1, 2], "n_name": ["GERMANY", "FRANCE", "CHINA"], "n_regionkey": [0, 0, 1]},
        "supplier": {
            "s_suppkey": list(suppliers),
            "s_name": [f"Supplier#{each}" for each in suppliers],
            "s_address": ["road"] * 40,
            "s_nationkey": [each % 3 for each in suppliers],
            "s_phone": ["1"] * 40,
            "s_acctbal": pa.array([Decimal(chance.randint(-9999, 99_999)) / 100 for _ in suppliers], money),
            "s_comment": ["Customer some Complaints" if each % 9 == 0 else "good" for each in suppliers],
        },
        "part": {
            "p_partkey": list(parts),
            "p_mfgr": ["Manufacturer#1"] * 200,
            "p_brand": [f"Brand#{chance.choice([13, 45, 55])}" for _ in parts],
            "p_type": [chance.choice(types) for _ in parts],
            "p_size": [chance.choice([15, 49, 14, 3]) for _ in parts],
        },
        "partsupp": {
            "ps_partkey": [part for part, _ in pairs],
            "ps_suppkey": [supplier for _, supplier in pairs],
            "ps_availqty": [chance.randint(1, 9999) for _ in pairs],
            "ps_supplycost": pa.array(prices, money),
        },
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize("sql", [Q2, Q11, Q16], ids=["Q2", "Q11", "Q16"])
def test_tpch_questions_about_nobody_are_answered_as_duckdb_does(tpch, sql):
    names = {file.stem for file in tpch.iterdir()}
    question = taken(sql, names)
    tables = [public_table(PublicSpec(name, (str(tpch / f"{name}.parquet"),))) for name in sorted(question.tables)]
    plain = duckdb.connect()
    for name in names:
        plain.execute(f"CREATE VIEW {name} AS FROM '{tpch / name}.parquet'")
    expected = plain.execute(sql).fetchall()
    assert len(expected) > 2 and list(answer_public(question, tables).rows) == expected


# --- hostile texts


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM visits",
        "SELECT * FROM regions, visits",
        "SELECT (SELECT count(*) FROM visits) FROM regions",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM regions, information_schema.tables",
        "SELECT * FROM regions, duckdb_settings()",
        "SELECT * FROM regions, duckdb_tables",
        "SELECT * FROM regions, sqlite_master",
        "SELECT * FROM regions, pragma_version()",
        "SELECT * FROM read_csv('SECRET')",
        "SELECT * FROM regions, read_csv_auto('SECRET')",
        "SELECT * FROM regions, read_text('SECRET')",
        "SELECT * FROM regions, 'SECRET'",
        'SELECT * FROM regions, "SECRET"',
        "SELECT * FROM regions, glob('/*')",
        "SELECT * FROM regions, query('SELECT 1')",
        "SELECT * FROM regions, query_table(['regions'])",
        "SELECT * FROM regions, range(3)",
        "SELECT (WITH sqlite_master AS (SELECT 1 x) SELECT x FROM sqlite_master), sql FROM regions, sqlite_master",
        "SELECT (WITH pg_settings AS (SELECT 1 x) SELECT x FROM pg_settings), * FROM regions, pg_settings",
        "COPY regions TO 'out.csv'",
        "WITH x AS (COPY regions TO 'out.csv') SELECT * FROM regions",
        "PIVOT regions ON name USING sum(pop)",
        "SELECT 1; SELECT * FROM regions",
        "SELECT * FROM regions; DROP VIEW regions",
        "ATTACH 'SECRET'",
        "SET memory_limit = '100GB'",
        "PRAGMA version",
        "EXPLAIN SELECT * FROM regions",
        "DESCRIBE regions",
        "CREATE TABLE x AS SELECT * FROM regions",
        "SELECT 1",
        "",
        "not SQL at all (",
    ],
)
def test_whatever_reads_more_than_public_tables_is_no_public_question(folder, sql):
    assert public_question(sql.replace("SECRET", str(folder / "secret.csv")), {"regions"}) is None


@pytest.mark.parametrize(
    "expression",
    [
        "getenv('HOME')", "current_setting('allowed_paths')", "getvariable('x')", "version()", "current_database()",
        "current_schemas(true)", "current_query()", "pg_get_viewdef(1)", "txid_current()", "pg_postmaster_start_time()",
        "current_user", "session_user", "user", "current_schema", "in_search_path('a', 'b')",
        "now()", "current_date", "current_timestamp", "localtime", "today()", "get_current_timestamp()",
        "current_localtime()", "age(DATE '2020-01-01')", "AGE(TIMESTAMP '2020-01-01')", '"age"(pop)',
        "list_transform([DATE '2020-01-01'], lambda x: age(x))", "max(age(DATE '2020-01-01')) OVER ()",
        "random()", "setseed(0.5)", "uuid()", "gen_random_uuid()", "nextval('s')", "currval('s')",
        "json_execute_serialized_sql('x')", "json_serialize_sql('SELECT 1')", "json_deserialize_sql('x')",
        "sleep_ms(99999)", "pg_sleep(99)", "write_log('x')", "error('x')", "hive_partition_component('a', 'b')",
        "read_text('SECRET')", "finalize(1)", "combine(1, 2)", "list_aggregate([1], 'sum')", "invoke(lambda x: x, 1)",
        "stats(pop)", "vector_type(pop)", "main.lower(name)", "system.main.lower(name)", "name.upper()",
        "no_such_function(1)", "__internal_compress_string_ubigint(name)", "$1", "?",
        "CAST(name AS main.integer)",
    ],
)  # fmt: skip
def test_functions_of_the_session_files_time_and_chance_are_refused(ask, folder, expression):
    with pytest.raises(QuestionRefusedError) as caught:
        ask(f"SELECT {expression} FROM regions".replace("SECRET", str(folder / "secret.csv")))
    assert str(folder) not in str(caught.value).replace(expression, "")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM regions TABLESAMPLE 50%",
        "SELECT * FROM regions USING SAMPLE 1",
        "FROM regions PIVOT (sum(pop) FOR name IN ('north'))",
        "SELECT * FROM regions UNPIVOT (x FOR n IN (code, pop))",
        "SELECT * FROM (DESCRIBE regions)",
        "SELECT * FROM (SUMMARIZE regions)",
        "SELECT * FROM regions FOR UPDATE",
        "SELECT * FROM regions, LATERAL read_text('regions.csv')",
        "SELECT * FROM regions CROSS JOIN LATERAL glob('*')",
        "SELECT * FROM regions AT (VERSION => 1)",
        "SELECT * FROM regions LIMIT (SELECT 1)",
        "SELECT * FROM regions LIMIT 50%",
        "WITH x AS (INSERT INTO regions VALUES (1) RETURNING *) SELECT * FROM x",
        "WITH x AS (DELETE FROM regions RETURNING *) SELECT * FROM x, regions",
        "WITH duckdb_settings AS (SELECT 1) SELECT * FROM regions",
        "SELECT filename FROM regions",
        "SELECT rowid FROM regions",
        "SELECT nowhere FROM regions",
        "SELECT CAST(name AS INTEGER) FROM regions",
    ],
)
def test_other_constructs_are_refused(ask, sql):
    with pytest.raises(QuestionRefusedError) as caught:
        ask(sql)
    # neither paths nor DuckDB's own words
    assert "/" not in caught.value.message + caught.value.fix and "Exception" not in str(caught.value)


def test_a_refusal_points_at_its_place(ask):
    with pytest.raises(QuestionRefusedError, match="The function now") as caught:
        ask("SELECT name,\n  now() FROM regions")
    assert caught.value.at == (2, 3)
    with pytest.raises(QuestionRefusedError, match="The function random") as caught:
        ask("SELECT name,\n  random() FROM regions")
    assert caught.value.at == (2, 3)


def test_a_column_that_is_called_like_a_function_of_the_session_can_be_read(tmp_path):
    (tmp_path / "people.csv").write_text("user,current_date\n1,2\n")
    table = public_table(PublicSpec("people", (str(tmp_path / "people.csv"),)))
    question = taken('SELECT p.user, p."current_date" FROM people p', {"people"})
    assert answer_public(question, [table]).rows == ((1, 2),)


def test_remarks_do_not_come_with_the_statement():
    question = taken("SELECT 1 /* one */, /*+ hint */ 2 -- two\nFROM regions", {"regions"})
    assert "/*" not in rewrite(question, 5) and "--" not in rewrite(question, 5)


# --- what holds even if a check failed


@pytest.fixture
def unchecked(folder, regions, monkeypatch):
    """The child's work, in this process, with nothing looked at."""
    monkeypatch.setattr(public_checks, "refused", lambda *_: None)
    monkeypatch.setattr(child, "confine", lambda *_: None)

    def run(sql):
        task = {
            "sql": sql.replace("FOLDER", str(folder)),
            "views": {"regions": regions.lookup.scan},
            "files": [str(path) for path in regions.fingerprint.paths],
            "columns": [],
            "most": 10,
            "seconds": 10.0,
            "memory": confined.MEMORY,
        }
        return json.loads(child._found(task))

    return run


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('FOLDER/secret.csv')",
        "SELECT * FROM 'FOLDER/secret.csv'",
        "SELECT * FROM read_text('FOLDER/*')",
        "SELECT * FROM glob('FOLDER/*')",
        "COPY (SELECT 1) TO 'FOLDER/out.csv'",
        "ATTACH 'FOLDER/x.db'",
        "SET memory_limit = '100GB'",
        "RESET allowed_paths",
        "INSTALL httpfs",
    ],
)
def test_no_other_file_can_be_opened_and_no_setting_changed(unchecked, folder, sql):
    found = unchecked(sql)
    assert found["failed"] in {"PermissionException", "InvalidInputException", "IOException", "BinderException"}
    assert SECRET not in str(found) and sorted(file.name for file in folder.iterdir()) == ["regions.csv", "secret.csv"]


def test_the_child_has_no_environment(monkeypatch, ask):
    monkeypatch.setenv("DALENIUS_TOKEN", SECRET)
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    seen = {}
    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **options: (seen.update(options), real(*args, **options))[1])
    assert ask("SELECT count(*) FROM regions").value == 3
    assert SECRET not in str(seen["env"]) and set(seen["env"]) <= set(confined._KEPT)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE r(n) AS (SELECT code FROM regions UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
        "WITH a AS (SELECT unnest(range(1000000)) x FROM regions) SELECT sum(a.x - b.x) FROM a, a b, a c",
    ],
)
def test_a_question_that_never_ends_is_stopped(ask, sql):
    with pytest.raises(EngineTimeoutError) as caught:
        ask(sql, seconds=0.5)
    assert caught.value.charge.epsilon == 0


@pytest.mark.parametrize(
    "sql",
    [
        # DuckDB's own limit does not count long texts
        "SELECT repeat(name, 200000000) FROM regions",
        "WITH a AS (SELECT repeat(name, 9999999) s FROM regions), b AS (SELECT s||s||s||s||s||s||s||s||s||s s FROM a) "  # noqa: ISC004
        "SELECT max(length(s || s || s || s)) FROM b",
        "SELECT list(x) FROM (SELECT unnest(range(200000000)) x FROM regions)",
    ],
)
def test_a_question_that_wants_all_memory_ends_alone(ask, sql):
    with pytest.raises(EngineFailedError, match="could not compute"):
        ask(sql, seconds=60)


def test_an_answer_of_long_texts_is_cut(ask):
    release = ask("SELECT repeat('x', 300000), i FROM (SELECT unnest(range(100)) i FROM regions)")
    assert 10 < len(release.rows) < 15 and "4 MiB" in release.notes[0]


@pytest.mark.parametrize("text", ["chr(128512)", "'ä'", "chr(1)", "chr(34)", "'x'"])
def test_an_answers_end_is_one_of_bytes_as_they_are_sent(ask, text):
    """Characters of four bytes, or of six once they are written in JSON, are no way around it."""
    release = ask(f"SELECT repeat({text}, 100000 + i) AS s FROM (SELECT unnest(range(60)) i FROM regions)")
    assert 1 < len(release.rows) < 60
    assert len(json.dumps(release.to_dict()["rows"], ensure_ascii=False).encode()) <= child.LONGEST
    whole = ask(f"SELECT repeat({text}, 3900000) AS s FROM regions")
    assert len(whole.rows) <= 1 and len(json.dumps(whole.to_dict()["rows"], ensure_ascii=False)) <= child.LONGEST


def test_a_long_answer_is_not_kept_for_the_next_who_asks(ask):
    from dalenius.queries.public_questions import _KEPT

    before = set(_KEPT)
    assert len(ask("SELECT repeat('y', 50000) FROM regions LIMIT 1").value) == 50_000
    assert set(_KEPT) == before


LEVENSHTEIN = "SELECT max(levenshtein(repeat(name, 150000), repeat('ba', 300000))) FROM regions"  # minutes of it


def children():
    """The processes that were started from here, by whichever thread; one that ends meanwhile has none."""
    found = set[str]()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            found.update((task / "children").read_text().split())
    return found


def test_what_cannot_be_interrupted_is_killed_when_its_seconds_are_over(ask):
    before, start = children(), clock.monotonic()
    with pytest.raises(EngineTimeoutError, match="too long"):
        ask(LEVENSHTEIN, seconds=0.5)
    assert clock.monotonic() - start < 15 and children() <= before  # it ran for twenty seconds more, and longer


def test_a_child_for_whom_nobody_waits_is_killed(ask):
    gone, before = threading.Event(), children()
    threading.Timer(0.5, gone.set).start()
    with (
        confined.on_behalf(confined.Room(), "eve", gone=gone.is_set),
        pytest.raises(EngineFailedError, match="stopped"),
    ):
        ask(LEVENSHTEIN)
    assert children() <= before


def test_one_analyst_leaves_room_for_the_others(regions):
    """Of two places one is enough for whoever asks eight times at once; waiting has an end."""
    room, asked = confined.Room(places=2, seconds=6.0), taken(LEVENSHTEIN, {"regions"})

    def work(who, question):
        with confined.on_behalf(room, who):
            return answer_public(question, [regions]).value

    with ThreadPoolExecutor(9) as pool:
        eves = [pool.submit(work, "eve", asked) for _ in range(8)]
        bob = pool.submit(work, "bob", taken("SELECT sum(pop * 2) FROM regions", {"regions"}))
        assert bob.result(timeout=30) == 60
        assert any(not each.done() for each in eves)
        room.close()
        errors = {type(each.exception(timeout=30)) for each in eves}
    assert errors <= {EngineTimeoutError, EngineFailedError, RateLimitedError}


def test_who_finds_no_place_in_time_is_told_to_wait(ask):
    room = confined.Room(places=1, seconds=0.2)
    with room.turns.place("bob"), confined.on_behalf(room, "eve"), pytest.raises(RateLimitedError, match="public"):
        ask("SELECT sum(pop * 3) FROM regions")


def test_a_thread_that_is_not_for_children_starts_none(ask):
    with confined.on_behalf(confined.Room(), "eve", elsewhere=True), pytest.raises(confined.ElsewhereError):
        ask("SELECT sum(pop * 5) FROM regions")


def test_a_preview_works_nothing_out(regions):
    found = preview_public(taken(LEVENSHTEIN.replace("max(", "count("), {"regions"}), [regions], 0.95)
    assert len(found.columns) == 1 and "LIMIT 0" in rewrite(taken(LEVENSHTEIN, {"regions"}), 0)


def functions_in(expression):
    """The functions that DuckDB's parser sees in an expression."""
    sql = "SELECT json_serialize_sql($sql::VARCHAR)"
    tree = json.loads(duckdb.execute(sql, {"sql": f"SELECT {expression}"}).fetchall()[0][0])
    nodes = [node for node, _ in nodes_of(tree)]
    return {node["function_name"].lower() for node in nodes if node.get("class") == "FUNCTION"}


def test_allowed_functions_are_duckdbs_and_of_values_alone():
    rows = (
        duckdb.connect()
        .execute(
            "SELECT lower(function_name), bool_and(coalesce(stability = 'CONSISTENT', true)), "
            "bool_or(coalesce(has_side_effects, false)), list(macro_definition) "
            "FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate', 'window', 'macro') GROUP BY 1"
        )
        .fetchall()
    )
    known = {name: (consistent and not effects, macros) for name, consistent, effects, macros in rows}
    syntax = {"coalesce", "ifnull", "unnest", "grouping", "grouping_id", "!", "count_star"}
    assert {name for name in FUNCTIONS - syntax if name not in known} == set()
    assert {name for name in FUNCTIONS if not known.get(name, (True,))[0]} == set()
    # A macro has no stability of its own: what it is made of has.
    waiting: list[str] = list(FUNCTIONS - syntax)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        for macro in known.get(name, (True, []))[1]:
            inside = functions_in(macro) if macro else set()
            assert all(known.get(each, (True,))[0] for each in inside), name
            waiting += inside - seen
            seen |= inside


def test_age_is_of_two_times_and_never_of_the_clock(ask):
    assert ask("SELECT max(age(DATE '2020-01-02', DATE '2020-01-01')) = INTERVAL 1 DAY FROM regions").value
    sql = "SELECT age(DATE '2020-01-01') FROM regions"
    with pytest.raises(QuestionRefusedError, match="age"):
        rewrite(taken(sql, {"regions"}), 5)
    tree = duckdb.execute("SELECT json_serialize_sql($sql::VARCHAR)", {"sql": sql}).fetchall()
    assert "age" in str(public_checks.refused(json.loads(tree[0][0]), {"regions"}, set()))
