"""Names that a WITH gives hold where it is in sight, and nowhere else: both readers of a public question agree on it.

Outside of its sight the same name is a table, and for one that is none DuckDB looks for a file of that name.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from random import Random

import duckdb
import pytest

from dalenius.measuring.engines.duckdb import public_checks
from dalenius.measuring.engines.duckdb.opening import open_locked
from dalenius.measuring.engines.duckdb.public_checks import folded
from dalenius.queries.public_questions import PublicQuestion, public_question, rewrite

SECRET = "xyzzyplugh"
PUBLIC = {"regions"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("scopes")
    (made / "regions.csv").write_text("v\n1\n2\n")
    for name in ("secret.csv", "k.csv"):
        (made / name).write_text(f"v\n{SECRET}\n")
    return made


@pytest.fixture(scope="module")
def engine(folder: Path) -> duckdb.DuckDBPyConnection:
    """As the child has it, with nothing looked at: the public table, and no other file."""
    file = folder / "regions.csv"
    connection = open_locked([file])
    connection.execute(f"CREATE VIEW regions AS SELECT * FROM read_csv('{file}', all_varchar = true)")
    return connection


def by_sqlglot(sql: str) -> PublicQuestion | None:
    return public_question(sql, PUBLIC)


def by_duckdb(sql: str) -> str | None:
    tree = duckdb.execute("SELECT json_serialize_sql($sql::VARCHAR)", {"sql": sql}).fetchall()
    return public_checks.refused(json.loads(tree[0][0]), PUBLIC, {"v"})


def told_by(engine: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Rows or an error, in words; what a question does not use of a WITH is not even looked for.

    Some join everything with everything: those are stopped, and have told nothing by then.
    """
    stop = threading.Timer(2.0, engine.interrupt)
    stop.start()
    try:
        return str(engine.execute(sql).fetchall())
    except duckdb.Error as error:
        return str(error)
    finally:
        stop.cancel()


@dataclass
class Writer:
    """Writes nested questions in which it is known at each place which names are in sight."""

    random: Random
    path: str
    plants: bool
    planted: int = 0

    def question(self, depth: int, seen: frozenset[str]) -> str:
        """A query with one column v."""
        if depth > 0 and self.random.random() < 0.6:
            given, seen = self.with_(depth, seen)
        else:
            given = ""
        return f"{given}{self.body(depth, seen)}"

    def body(self, depth: int, seen: frozenset[str]) -> str:
        if depth <= 0:
            return self.leaf(seen)
        deeper = depth - 1
        match self.random.randrange(8):
            case 0:
                return f"SELECT a.v FROM ({self.question(deeper, seen)}) AS a"
            case 1:
                return f"SELECT a.v FROM ({self.leaf(seen)}) AS a, LATERAL ({self.question(deeper, seen)}) AS b"
            case 2:
                return f"{self.leaf(seen)} WHERE v IN ({self.question(deeper, seen)})"
            case 3:
                return f"({self.question(deeper, seen)}) UNION ALL ({self.question(deeper, seen)})"
            case 4:
                return f"SELECT (SELECT max(v) FROM ({self.question(deeper, seen)}) AS c) AS v"
            case 5:
                return f"{self.leaf(seen)} ORDER BY (SELECT min(v) FROM ({self.question(deeper, seen)}) AS d)"
            case 6:
                other = self.question(deeper, seen)
                return f"SELECT a.v FROM ({self.leaf(seen)}) AS a JOIN ({other}) AS b ON a.v = b.v"
            case _:
                return self.leaf(seen)

    def with_(self, depth: int, seen: frozenset[str]) -> tuple[str, frozenset[str]]:
        recursive, parts = self.random.random() < 0.4, []
        for name in self.random.sample(("a", "b", self.path, "regions"), self.random.randint(1, 3)):
            if recursive and self.random.random() < 0.5:
                first = self.question(depth - 1, seen)
                text = f"SELECT v FROM ({first}) AS f UNION {self.leaf(seen | {name})}"
            else:
                text = self.question(depth - 1, seen)
            parts.append(f"{self.spelled(name)} AS ({text})")
            seen |= {name}
        return f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(parts)} ", seen

    def leaf(self, seen: frozenset[str]) -> str:
        """A name in sight, or once in a while the one that is not."""
        if self.plants and self.path not in seen and self.random.random() < 0.25:
            self.planted += 1
            return f"SELECT v FROM {self.spelled(self.path)}"
        return f"SELECT v FROM {self.spelled(self.random.choice(sorted(seen | {'regions'})))}"

    def spelled(self, name: str) -> str:
        other = "".join(self.random.choice((each.lower(), each.upper())) for each in name)
        return f'"{other if name != self.path else name}"'


def test_a_name_out_of_sight_is_refused_by_either_reader_before_the_engine(
    folder: Path, engine: duckdb.DuckDBPyConnection, rounds
) -> None:
    random, path = Random(16), str(folder / "secret.csv")
    seen = {"planted": 0, "taken": 0}
    for _ in range(rounds(6_000)):
        writer = Writer(random, path, plants=random.random() < 0.5)
        sql = writer.question(random.choice((1, 2, 2, 3)), frozenset())
        if not writer.planted:
            question = by_sqlglot(sql)
            if question is not None:  # some read no public table at all
                seen["taken"] += 1
                assert by_duckdb(rewrite(question, 5)) is None, sql
            continue
        seen["planted"] += 1
        assert by_sqlglot(sql) is None, sql
        assert by_duckdb(sql) == "a table that is not public", sql
        if seen["planted"] % 5 == 0:
            assert SECRET not in told_by(engine, sql)
    assert min(seen["planted"], seen["taken"]) > rounds(6_000) / 5


FAIR = [
    "WITH a AS (SELECT v FROM regions) SELECT * FROM A",
    'WITH "x.csv" AS (SELECT v FROM regions) SELECT * FROM "X.CSV"',
    "WITH a AS (SELECT v FROM regions), b AS (SELECT * FROM a) SELECT * FROM b WHERE v IN (SELECT v FROM a)",
    "WITH a AS (WITH b AS (SELECT v FROM regions) SELECT * FROM b) SELECT * FROM a UNION SELECT * FROM a",
    "WITH RECURSIVE r(n) AS (SELECT 1 FROM regions UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
    "WITH RECURSIVE r(n) AS (WITH x AS (SELECT 1 y FROM regions) SELECT y FROM x UNION SELECT n FROM r, x) FROM r",
    "WITH z AS (SELECT v FROM regions), y AS (SELECT * FROM z), x AS (SELECT * FROM y) SELECT * FROM x, z",
    "SELECT * FROM regions, LATERAL (WITH a AS (SELECT regions.v) SELECT * FROM a) t",
    "WITH a AS MATERIALIZED (SELECT v FROM regions) (SELECT * FROM a) ORDER BY (SELECT max(v) FROM a)",
    "WITH regions AS (SELECT 1 AS w) SELECT w, (SELECT count(*) FROM other) FROM regions",
]


@pytest.mark.parametrize("sql", FAIR)
def test_names_in_sight_are_taken(sql: str) -> None:
    question = public_question(sql, {*PUBLIC, "other"})
    assert question is not None
    tree = duckdb.execute("SELECT json_serialize_sql($sql::VARCHAR)", {"sql": rewrite(question, 5)}).fetchall()
    assert public_checks.refused(json.loads(tree[0][0]), {*PUBLIC, "other"}, {"v"}) is None
    assert question.tables == ({"other"} if "other" in sql else {"regions"})


FOUL = [
    # beside, above, before and after
    "SELECT (WITH \"P\" AS (SELECT 1 v) SELECT v FROM \"P\"), * FROM regions, \"P\"",
    "SELECT * FROM regions, (WITH \"P\" AS (SELECT 1 v) SELECT * FROM \"P\") t, \"P\" u",
    "WITH a AS (SELECT * FROM \"P\"), \"P\" AS (SELECT 1 v) SELECT * FROM a, regions",
    "WITH RECURSIVE a AS (SELECT * FROM \"P\"), \"P\" AS (SELECT 1 v) SELECT * FROM a, regions",
    "WITH a AS (WITH \"P\" AS (SELECT 1 v) SELECT * FROM \"P\") SELECT * FROM a, regions, \"P\"",
    "(WITH \"P\" AS (SELECT 1 v) SELECT v FROM \"P\") UNION (SELECT v FROM \"P\") UNION SELECT v FROM regions",
    "SELECT v FROM \"P\" UNION (WITH \"P\" AS (SELECT 1 v) SELECT v FROM \"P\") UNION SELECT v FROM regions",
    # itself, where it is not recursive, or before it is
    "WITH \"P\" AS (SELECT * FROM \"P\") SELECT * FROM regions, \"P\"",
    "WITH RECURSIVE \"P\" AS (SELECT * FROM \"P\" UNION ALL SELECT v FROM regions) SELECT * FROM \"P\"",
    "WITH RECURSIVE \"P\" AS (SELECT * FROM \"P\") SELECT * FROM regions, \"P\"",
    # names in front, functions, texts
    "WITH \"P\" AS (SELECT 1 v) SELECT * FROM regions, main.\"P\"",
    "WITH \"P\" AS (SELECT 1 v) SELECT * FROM regions, memory.main.\"P\"",
    "WITH \"P\" AS (SELECT 1 v) SELECT * FROM regions, read_csv('P')",
    "WITH read_csv AS (SELECT 1 v) SELECT * FROM regions, read_csv('P')",
    "WITH a AS (SELECT 1 v) SELECT * FROM regions, 'P'",
    "WITH a AS (SELECT 1 v) SELECT * FROM regions, \"P\"",
    "WITH regions AS (SELECT 1 v) SELECT * FROM regions, (SELECT * FROM \"P\")",
    "WITH a AS (SELECT v FROM regions) SELECT * FROM a, LATERAL (SELECT * FROM \"P\") t",
    "WITH a AS (SELECT v FROM regions) SELECT v IN (SELECT v FROM \"P\") FROM a",
    "WITH a AS (SELECT v FROM regions) SELECT EXISTS (FROM \"P\") FROM a",
    "WITH a AS (SELECT v FROM regions) SELECT * FROM a WHERE v = ANY (SELECT v FROM \"P\")",
    "WITH a AS (SELECT v FROM regions) SELECT list_transform([1], lambda x: (SELECT max(v) FROM \"P\")) FROM a",
    "SELECT * FROM regions ORDER BY (WITH q AS (SELECT 1) SELECT max(v) FROM \"P\")",
    "SELECT v FROM regions GROUP BY v HAVING count(*) > (SELECT count(*) FROM \"P\")",
    "SELECT sum(count(*)) OVER (ORDER BY (SELECT max(v) FROM \"P\")) FROM regions",
]  # fmt: skip


@pytest.mark.parametrize("sql", FOUL)
def test_a_path_that_is_a_name_elsewhere_is_not_read_here(
    sql: str, folder: Path, engine: duckdb.DuckDBPyConnection
) -> None:
    sql = re.sub(r"(?<=[\"'])P(?=[\"'])", lambda _: str(folder / "secret.csv"), sql)
    assert by_sqlglot(sql) is None
    assert by_duckdb(sql) is not None
    with pytest.raises(duckdb.Error) as caught:  # the second line holds by itself
        engine.execute(sql).fetchall()
    assert SECRET not in str(caught.value)


def test_letters_that_only_python_takes_for_equal_are_different_names(
    folder: Path, engine: duckdb.DuckDBPyConnection
) -> None:
    sql = f'WITH "{folder}/\N{KELVIN SIGN}.csv" AS (SELECT 1 AS v) SELECT * FROM regions, "{folder}/k.csv"'
    assert "\N{KELVIN SIGN}".lower() == "k" and folded("\N{KELVIN SIGN}K") == "\N{KELVIN SIGN}k"
    assert by_sqlglot(sql) is None
    assert by_duckdb(sql) == "a table that is not public"
    with pytest.raises(duckdb.Error):
        engine.execute(sql)
