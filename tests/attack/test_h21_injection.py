"""H21: nothing of a question is ever run as SQL, and no file but those of the table is read or written.

A question is refused at parse time, or what it says is a constant in quotes.
"""

from __future__ import annotations

import json
import random
import re

import pytest
from tests.attack.hostile import files_under, nothing_charged, people, protected, ran, state
from tests.conftest import LONG

from dalenius.errors import (
    NOTHING,
    BudgetError,
    DaleniusError,
    EngineError,
    InputError,
    InternalError,
    PolicyError,
    QuestionError,
)
from dalenius.measuring.engines.duckdb.connections import DuckDB

REFUSED = [
    # stacked
    "SELECT COUNT(*) FROM visits; SELECT * FROM visits",
    "SELECT COUNT(*) FROM visits; DROP TABLE visits",
    "SELECT COUNT(*) FROM visits;;; COPY visits TO 'out.csv'",
    "SELECT COUNT(*) FROM visits /* ; */ ; -- \n ATTACH 'x.db'",
    "SELECT COUNT(*) FROM visits WHERE note = '\\'; DROP TABLE visits; --'",
    "SELECT COUNT(*) FROM visits WHERE note = 'a' UNION SELECT * FROM visits --'",
    # statements
    "COPY visits TO 'out.csv'",
    "COPY (SELECT * FROM visits) TO 'out.parquet'",
    "COPY visits FROM 'in.csv'",
    "ATTACH 'x.db' AS x",
    "DETACH x",
    "USE x",
    "PRAGMA database_list",
    "PRAGMA table_info('visits')",
    "CALL pragma_version()",
    "SET threads = 1",
    "SET enable_external_access = true",
    "RESET threads",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL httpfs FROM 'x'",
    "EXPORT DATABASE 'out'",
    "IMPORT DATABASE 'out'",
    "CREATE TABLE t AS SELECT * FROM visits",
    "CREATE VIEW v AS SELECT * FROM visits",
    "CREATE MACRO f(x) AS x",
    "CREATE SECRET s (TYPE s3)",
    "INSERT INTO visits VALUES (1)",
    "UPDATE visits SET age = 3",
    "DELETE FROM visits",
    "MERGE INTO visits USING visits ON true",
    "TRUNCATE visits",
    "ALTER TABLE visits ADD COLUMN x INT",
    "VACUUM",
    "CHECKPOINT",
    "BEGIN",
    "COMMIT",
    "EXECUTE x",
    "PREPARE x AS SELECT 1",
    "DEALLOCATE x",
    "WITH x AS (COPY visits TO 'out.csv') SELECT COUNT(*) FROM visits",
    "WITH x AS (INSERT INTO visits VALUES (1) RETURNING 1) SELECT COUNT(*) FROM visits",
    # functions that read
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT COUNT(*) FROM read_csv_auto('/etc/passwd')",
    "SELECT COUNT(*) FROM read_parquet('*.parquet')",
    "SELECT COUNT(*) FROM read_json('x.json')",
    "SELECT COUNT(*) FROM read_text('/etc/passwd')",
    "SELECT COUNT(*) FROM read_blob('/etc/passwd')",
    "SELECT COUNT(*) FROM parquet_metadata('visits.parquet')",
    "SELECT COUNT(*) FROM parquet_schema('visits.parquet')",
    "SELECT COUNT(*) FROM sniff_csv('/etc/passwd')",
    "SELECT COUNT(*) FROM glob('/etc/*')",
    "SELECT COUNT(*) FROM query('SELECT 1')",
    "SELECT COUNT(*) FROM query_table('visits')",
    "SELECT COUNT(*) FROM json_execute_serialized_sql('{}')",
    "SELECT COUNT(*) FROM duckdb_settings()",
    "SELECT COUNT(*) FROM duckdb_secrets()",
    "SELECT COUNT(*) FROM pragma_database_list()",
    "SELECT COUNT(*) FROM iceberg_scan('x')",
    "SELECT COUNT(*) FROM sqlite_scan('x', 'y')",
    "SELECT COUNT(*) FROM postgres_query('x', 'y')",
    "SELECT COUNT(*) FROM visits WHERE getenv('HOME') = note",
    "SELECT GETENV('HOME'), COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE GETVARIABLE('x') = note",
    "SELECT CURRENT_SETTING('threads'), COUNT(*) FROM visits",
    "SELECT CURRENT_USER, COUNT(*) FROM visits",
    "SELECT VERSION(), COUNT(*) FROM visits",
    "SELECT CURRENT_DATABASE(), COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE NEXTVAL('s') > 3",
    "SELECT COUNT(*) FROM visits WHERE WRITE_LOG('x') IS NULL",
    "SELECT COUNT(*) FROM visits WHERE PG_SLEEP(1) IS NULL",
    "SELECT COUNT(*) FROM visits WHERE JSON_SERIALIZE_SQL('SELECT 1') IS NULL",
    # names that are files
    "SELECT COUNT(*) FROM '/etc/passwd'",
    'SELECT COUNT(*) FROM "/etc/passwd"',
    "SELECT COUNT(*) FROM 'x.parquet'",
    'SELECT COUNT(*) FROM "visits.parquet"',
    "SELECT COUNT(*) FROM 'visits.parquet'",
    "SELECT COUNT(*) FROM 'https://example.org/x.parquet'",
    "SELECT COUNT(*) FROM 's3://x/y.parquet'",
    "SELECT COUNT(*) FROM '*.parquet'",
    'SELECT COUNT(*) FROM "visits""; DROP TABLE x; --"',
    # names of ours
    "SELECT COUNT(*) FROM source",
    "SELECT COUNT(*) FROM clean",
    "SELECT COUNT(*) FROM visits WHERE c0 = 3",
    "SELECT COUNT(*) FROM visits WHERE u0 = 3",
    "SELECT COUNT(*) FROM visits WHERE seed = 'x'",
    "SELECT COUNT(*) FROM {scan}",
    "SELECT COUNT(*) FROM visits WHERE {scan} = 3",
    "SELECT COUNT(*) FROM $$visits$$",
    # odd characters
    "SELECT COUNT(*) FROM visits\x00",
    "SELECT COUNT(*) FROM visits WHERE note = 'a\x00b'",
    "SELECT COUNT(*) FROM visits WHERE note = '\x1b[31m'",
    "SELECT COUNT(*) FROM visits WHERE note = '\ud800'",
    "SELECT COUNT(*) FROM visits WHERE note = 'open",
    'SELECT COUNT(*) AS "open FROM visits',
    "SELECT COUNT(*) FROM visits WHERE note = $$open",
    "SELECT COUNT(*) FROM visits /* open",
    "SELECT COUNT(*) FROM visits WHERE note LIKE 'x\\' ESCAPE '\\'",
    "\\copy visits TO 'x'",
    ".shell ls",
    "!ls",
    "SELECT COUNT(*) FROM visits WHERE " + "(" * 5000 + "true" + ")" * 5000,
    "SELECT COUNT(*) FROM visits WHERE " + " AND ".join(["age > 3"] * 4000),
    "SELECT COUNT(*) FROM visits WHERE age > " + "9" * 15_000,
    "SELECT COUNT(*) FROM visits GROUP BY " + "1" * 5000,
    "SELECT COUNT(*) FROM visits ORDER BY " + "1" * 5000,
    "SELECT COUNT(*) FROM visits LIMIT " + "1" * 5000,
    "SELECT SUM(1e308) FROM visits",
    "SELECT VAR_POP(age * 1e200) FROM visits",
]
# Every one of these is a text that no row has: the truth is 0 or all rows, and the statement runs as one SELECT.
LITERALS = [
    "'",
    "''",
    "' OR 1=1 --",
    "'); DROP TABLE visits; --",
    "\\",
    "\\'",
    "\\' OR true --",
    "{scan}",
    "{0}{1}{}",
    "{{",
    "%s %(x)s %d",
    "$$",
    "$1 ? :x @x",
    "/*",
    "*/",
    "--",
    ";",
    '"',
    "`",
    "\t\r\n",
    "\u202e\u200bé\u0301ß漢字🙂",
    "\uff07 OR 1=1",
    "copy insert pragma query json_execute",
    "E'\\x27'",
    "U&'\\0027'",
    "x' || (SELECT 1) || 'y",
]


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    return protected(tmp_path_factory.mktemp("h21"), people(victim=True), epsilon=50.0)


def unchanged(before, after):
    """Only the ledger's own files may differ."""
    ours = ("home/ledger", "home/anchor", "home/head")
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return {name for name in changed if not name.startswith(ours)}


@pytest.mark.parametrize("question", REFUSED, ids=lambda text: ascii(text)[:50])
def test_it_is_refused_before_the_data_is_touched(curator, monkeypatch, question):
    monkeypatch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
    before = files_under(curator.home.parent)
    with nothing_charged(curator), pytest.raises(DaleniusError) as refusal:
        curator.analyst("eve").ask(question, epsilon=0.1)
    assert refusal.value.exit_code in (2, 3)
    assert not isinstance(refusal.value, InternalError)
    assert not unchanged(before, files_under(curator.home.parent))
    assert not files_under(curator.home.parent).keys() - before.keys()


def in_quotes(text):
    return "'" + text.replace("'", "''") + "'"


def outside_of_quotes(sql):
    """The statement without its texts and quoted names."""
    return re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", " ", sql)


@pytest.mark.parametrize("text", LITERALS, ids=ascii)
@pytest.mark.parametrize("shape", ["note = {}", "CONTAINS(note, {})", "note IN ('x', {})", "note || {} = {}"])
def test_a_hostile_text_is_a_constant_and_nothing_more(curator, monkeypatch, text, shape):
    marker = f"zq7{text}7qz"
    seen = ran(monkeypatch)
    before = files_under(curator.home.parent)
    condition = shape.replace("{}", in_quotes(marker))
    question = f"SELECT COUNT(*) FROM visits WHERE {condition}"
    release = curator.analyst("eve").ask(question, epsilon=0.01)
    assert not release.free and len(seen) == 1
    bare = outside_of_quotes(seen[0])
    assert in_quotes(marker) in seen[0]
    assert "zq7" not in bare and "7qz" not in bare
    assert not unchanged(before, files_under(curator.home.parent))


@pytest.mark.parametrize("name", [each for each in LITERALS if each.strip()], ids=ascii)
def test_a_hostile_name_of_a_column_reaches_no_engine(curator, monkeypatch, name):
    marker = f"zq7{name}7qz"
    seen = ran(monkeypatch)
    quoted = '"' + marker.replace('"', '""') + '"'
    for number, question in enumerate(
        (
            f"SELECT COUNT(*) AS {quoted} FROM visits WHERE age > 60 ORDER BY {quoted}",
            f"SELECT region AS {quoted}, COUNT(*) FROM visits {quoted} GROUP BY {quoted} HAVING COUNT(*) > 0",
        )
    ):
        release = curator.analyst("eve").ask(question, epsilon=0.01)
        assert release.columns[0] == marker, number
    assert all("zq7" not in each and "7qz" not in each for each in seen)
    with nothing_charged(curator), pytest.raises(DaleniusError):
        curator.analyst("eve").ask(f"SELECT COUNT(*) FROM visits WHERE {quoted} = 3", epsilon=0.01)


def test_what_is_run_is_free_of_the_question(curator, monkeypatch):
    """Names, comments, aliases and numbers in odd spellings: none is copied."""
    seen = ran(monkeypatch)
    question = (
        "/* zq71 */ SELECT /* zq72 */ regIOn AS zq73, COUNT(*) AS zq74 -- zq75\n"
        "FROM viSITs zq76 WHERE zq76.aGe > 0020.50e0 AND note = 'zq77' GROUP BY zq73 HAVING zq74 > 3 ORDER BY zq74"
    )
    curator.analyst("eve").ask(question, epsilon=0.05)
    bare = outside_of_quotes(seen[0])
    assert "zq7" not in bare and "0020" not in bare
    assert not re.search("regIOn|viSITs|aGe", seen[0])
    # The constant alone; with an index a condition stands twice, for all rows and for those of heavy units.
    assert set(re.findall("zq7.", seen[0])) == {"zq77"}


def test_a_text_that_was_copied_would_be_seen():
    """Teeth: a marker that stands outside of quotes is found, also behind a text with doubled quotes."""
    assert "zq7" in outside_of_quotes("SELECT 'a''b' zq7 FROM \"x\"\"y\"")
    assert "zq7" in outside_of_quotes("WHERE note = 'zq7' OR zq7 = 1")
    assert "zq7" not in outside_of_quotes("WHERE note = 'it''s zq7' AND \"zq7\" = 1")


def test_the_engine_itself_would_refuse_what_slips_through(curator, tmp_path):
    """The second wall: even SQL of an attacker's own, run directly, writes nothing and reads no other file."""
    engine = curator.engines.of(curator.tables()[0].fingerprint)
    target = tmp_path / "out.csv"
    for sql in (
        f"COPY (SELECT 1) TO '{target}'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT 1; SELECT 2",
        "SET threads = 1",
        "SELECT * FROM query('SELECT 1')",
        f"ATTACH '{target}'",
    ):
        with pytest.raises((InternalError, EngineError)):
            engine.run(sql)
    assert not target.exists()


# --- token soup and byte noise

VALID = [
    "SELECT COUNT(*) FROM visits",
    "SELECT region, COUNT(*) AS n, SUM(amount) FROM visits GROUP BY region HAVING n > 3 ORDER BY n DESC LIMIT 2",
    "SELECT AVG(age), STDDEV(amount) FROM visits WHERE day BETWEEN '2025-01-01' AND '2025-06-30' AND smoker",
    "SELECT DATE_TRUNC('month', day) AS m, COUNT(DISTINCT user_id) FROM visits GROUP BY m ORDER BY 1",
    "SELECT CASE WHEN age > 50 THEN 'old' ELSE 'young' END AS g, COUNT_IF(note LIKE 'w%') FROM visits GROUP BY g",
    "SELECT ROUND(100.0 * COUNT(*) FILTER (WHERE region IN ('north', 'west')) / COUNT(*), 1) FROM visits",
    "SELECT SUM(COALESCE(TRY_CAST(LEFT(note, 2) AS DOUBLE), 0) * 0 + LEAST(age, 30)) FROM visits v WHERE v.age % 2 = 0",
    "SELECT EXTRACT(dow FROM day + INTERVAL 1 MONTH) AS d, VAR_POP(age) FROM visits GROUP BY ALL",
]
SOUP = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET AS AND OR NOT IN IS NULL LIKE ILIKE BETWEEN CASE WHEN THEN
ELSE END FILTER DISTINCT ALL COUNT(*) COUNT SUM AVG MIN MAX VAR_POP STDDEV COUNT_IF COALESCE NULLIF LEAST GREATEST ABS
SIGN FLOOR CEIL ROUND TRUNC SQRT LN LOG LOG2 EXP POWER LOWER UPPER TRIM LENGTH LEFT RIGHT SUBSTRING REPLACE CONCAT
EXTRACT DATE_TRUNC DATE_DIFF DATE_PART STRFTIME YEAR MONTH DAY HOUR CAST TRY_CAST INTERVAL DATE TIMESTAMP INTEGER
DOUBLE VARCHAR BOOLEAN TRUE FALSE visits region age amount day smoker note user_id ( ) ( ) , . ; + - * / % // || = <> <
<= > >= == != ^ ** :: : ? $1 @ # ! ~ & | [ ] { } ' " '' "" ` \\ -- /* */ 0 1 -1 2 1.5 1e3 1e308 1e-308 1e400 0x1F .5 5.
99999999999999999999 'a' 'month' '2025-01-01' '9999-12-31' '%Y' '{scan}' 'x''y' "age" "a b" $$a$$ E'a' UNION JOIN ON
USING WITH OVER PARTITION QUALIFY PIVOT UNNEST VALUES EXISTS ANY SOME LATERAL COLLATE RETURNING COPY ATTACH PRAGMA SET
read_csv('x') glob('*') query('x') getenv('x') EXCLUDE COLUMNS NULLS FIRST LAST DESC ASC ROWS RANGE ARRAY STRUCT MAP
INTERVAL 1 YEAR MONTHS FOR OF x -> LAMBDA AT POSITION OVERLAY SYMMETRIC ESCAPE SIMILAR TO GLOB"""
TOKENS = SOUP.split()
BYTES = [*map(chr, range(256)), "\u2028", "\ufeff", "\u0660", "\u00b2", "é", "漢", "🙂", "\ud800", "\udfff", "\u202e"]


def mutated(chance: random.Random) -> str:
    """A valid question with some of its tokens exchanged, doubled, dropped or moved, or some of its bytes."""
    parts = re.findall(r"'(?:[^']|'')*'|\w+|\s+|[^\w\s]", chance.choice(VALID))
    for _ in range(chance.choice((1, 1, 2, 3, 6, 12))):
        at = chance.randrange(len(parts) + 1)
        what = chance.randrange(7)
        if what == 0:
            parts.insert(at, f" {chance.choice(TOKENS)} ")
        elif what == 1 and at < len(parts):
            parts[at] = f" {chance.choice(TOKENS)} "
        elif what == 2:
            del parts[at : at + chance.randrange(1, 4)]
        elif what == 3:
            parts[at:at] = parts[at : at + chance.randrange(1, 9)]
        elif what == 4:
            parts.insert(at, chance.choice(BYTES))
        elif what == 5:
            other = re.findall(r"\w+|\s+|[^\w\s]", chance.choice(VALID))
            start = chance.randrange(len(other))
            parts[at:at] = other[start : start + chance.randrange(1, 9)]
        elif parts:
            chance.shuffle(parts) if chance.random() < 0.1 else parts.reverse() if chance.random() < 0.1 else None
        parts = parts or [""]
    return "".join(parts)[:20_001]


def failure(analyst, question) -> Exception | None:
    """What comes out of asking, showing and writing the answer; None where all went well."""
    try:
        release = analyst.ask(question, epsilon=1e-6)
        str(release)
        json.dumps(release.to_dict(), allow_nan=False)
    except Exception as error:  # noqa: BLE001 (whatever else comes out is what these tests look for)
        return error
    return None


def test_mutated_questions_are_answered_or_refused_and_nothing_else(tmp_path):
    """Only our own errors come out; what is refused costs nothing; no file appears or changes but the ledger's."""
    curator = protected(tmp_path, people(victim=True, units=20, rows=60), epsilon=1e6, analysts={"eve": 1e6})
    eve = curator.analyst("eve")
    eve.ask("SELECT COUNT(*) FROM visits", epsilon=1e-6)
    before = files_under(tmp_path)
    chance = random.Random(21)
    refused = answered = 0
    last = state(curator)
    many = 40_000 if LONG else 800
    for number in range(many):
        question = mutated(chance)
        error = failure(eve, question)
        if error is None:
            answered += 1
            last = state(curator)
            continue
        assert isinstance(error, DaleniusError), (number, question, repr(error))
        assert not isinstance(error, InternalError | EngineError | BudgetError), (number, question)
        assert error.charge == NOTHING and error.exit_code in (2, 3), (number, question)
        refused += 1
        if number % 50 == 0:
            assert state(curator) == last
    assert state(curator) == last
    assert not unchanged(before, files_under(tmp_path))
    assert files_under(tmp_path).keys() == before.keys()
    assert refused > answered > many / 50  # teeth: the soup is not so thin that all is refused at once


FUNCTIONS = """COUNT SUM AVG VAR_POP STDDEV COUNT_IF CORR COVAR_POP WIDTH_BUCKET TIME_BUCKET
COALESCE NULLIF LEAST GREATEST ABS SIGN FLOOR CEIL ROUND TRUNC SQRT
LN LOG LOG2 LOG10 EXP POWER LOWER TRIM LTRIM LENGTH LEFT RIGHT SUBSTRING REPLACE CONCAT CONTAINS STARTS_WITH ENDS_WITH
PREFIX EXTRACT DATE_TRUNC DATE_DIFF DATE_PART STRFTIME YEAR WEEKDAY HOUR CAST TRY_CAST IF INTERVAL DATE"""


@pytest.mark.parametrize("function", FUNCTIONS.split())
def test_any_function_with_any_number_of_arguments_is_priced_or_refused(curator, function):
    arguments = ("*", "age", "note", "day", "'a'", "1", "NULL", "DISTINCT age", "COUNT(*)", "(age, 1)", "x -> x")
    few = [
        (),
        *((each,) for each in arguments),
        *((one, "1") for one in arguments),
        *(("note", one) for one in arguments),
    ]
    many = [("note", "'a'", each) for each in arguments] + [("note", "'a'", "'b'", "1"), ("1",) * 5]
    refused = 0
    places = ("SELECT COUNT(*) FROM visits WHERE {} IS NULL", "SELECT {} FROM visits")
    with nothing_charged(curator):
        for at, some in enumerate((*few, *many)):
            # In the short form half of them, at one of the places: both, by turns.
            for where in places if LONG else [places[at // 2 % 2]] if (at + len(function)) % 2 else ():
                question = where.format(f"{function}({', '.join(some)})")
                try:
                    curator.analyst("eve").preview(question, epsilon=0.1)
                except (InputError, PolicyError, QuestionError):
                    refused += 1
    assert refused


def test_the_mutations_would_find_a_pass_that_lets_an_exception_through(tmp_path, monkeypatch):
    """Teeth: a reader of whole numbers that is broken is found in half of the short run."""
    from dalenius.queries.rules.scope import SelectScope

    def broken(*_):
        raise KeyError

    curator = protected(tmp_path, people(victim=False, units=20, rows=60))
    eve = curator.analyst("eve")
    chance = random.Random(21)
    monkeypatch.setattr(SelectScope, "whole_number", broken)
    assert any(isinstance(failure(eve, mutated(chance)), KeyError) for _ in range(400))
