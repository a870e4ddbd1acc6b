"""H23: one person's single row must not decide how long a question takes.

A row can be made heavy by functions whose cost grows with a text, a pattern or a number, and by work that only some
rows get to: branches of CASE, conditions behind others. So the work of one row is bounded as a whole before anything
runs (`measuring.work`), and all rows carry a share of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.attack.curators import EVE, curator_of, plan_of
from tests.attack.served import QUICK, behind, charges
from tests.opened import duckdb_of
from tests.serving import serving

from dalenius import Curator
from dalenius.errors import InputError, QuestionRefusedError
from dalenius.measuring import work
from dalenius.measuring.engines.duckdb.connections import public
from dalenius.measuring.engines.duckdb.measuring import selects_of
from dalenius.measuring.engines.duckdb.rendering import Renderer, literal
from dalenius.measuring.engines.duckdb.statements import indexed_sums
from dalenius.measuring.expressions import Call, Column, Type, text

COLUMNS = """
[columns.name]
type = "category"
[columns.diagnosis]
type = "category"
keys = ["flu", "hiv"]
[columns.note]
type = "text"
[columns.age]
type = "integer"
bounds = [0, 120]
[columns.seen]
type = "date"
"""
AT_ONCE = 40  # conditions in one expression
VICTIM = "name = 'bob' AND diagnosis = 'hiv'"


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    rows = 300
    table = pa.table(
        {
            "id": list(range(rows)),
            "name": ["ann", "bob", "eve"] * (rows // 3),
            "diagnosis": ["flu", "hiv"] * (rows // 2),
            "note": ["a note"] * (rows - 1) + ["é" * 10_000_000],
            "age": [30] * rows,
            "seen": pa.array([18000] * rows, pa.int32()).cast(pa.date32()),
        }
    )
    return curator_of(tmp_path_factory.mktemp("h23"), table, COLUMNS)


def any_of(terms: Iterable[str]) -> str:
    """OR, in pairs of pairs: a plain chain would be refused for its depth."""
    found = list(terms)
    if len(found) == 1:
        return found[0]
    half = len(found) // 2
    return f"({any_of(found[:half])} OR {any_of(found[half:])})"


def spread(terms: list[str], source: str) -> str:
    """Counts rows by many conditions: some in WHERE, the rest as keys, each short enough to pass alone."""
    where, *keys = [any_of(terms[at : at + AT_ONCE]) for at in range(0, len(terms), AT_ONCE)]
    shown = ", ".join([*(f"{each} AS k{at}" for at, each in enumerate(keys)), "COUNT(*)"])
    by = f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
    return f"SELECT {shown} FROM ({source}) WHERE {where}{by}"


def attack(terms: int = 480, length: int = 2000, pattern: int = 1000) -> str:
    """The issue's own."""
    long, wild = "ä" * length, "%" + "_" * pattern + "b%"
    source = f"SELECT CASE WHEN {VICTIM} THEN '{long}' ELSE '' END AS x, '{wild}' AS p FROM t"
    return spread([f"LEFT(x, {at}) ILIKE p" for at in range(1, terms + 1)], source)


def direct(condition: str, terms: int) -> str:
    """Terms over a text that is long for one person only."""
    source = f"SELECT CASE WHEN {VICTIM} THEN note ELSE '' END AS x, age FROM t"
    return spread([condition.format(at) for at in range(1, terms + 1)], source)


def doubled(levels: int) -> str:
    """Subqueries each of which names the one before twice."""
    sql = "SELECT note AS x FROM t"
    for _ in range(levels):
        sql = f"SELECT LOWER(x) || UPPER(x) AS x FROM ({sql})"
    return f"SELECT COUNT(*) FROM ({sql}) WHERE x LIKE '%b%'"


HEAVY = {
    "the attack": attack(),
    "its texts and patterns within their limits": direct("LEFT(x, {0}) ILIKE '%____________________b%'", 100),
    "with few and short terms, still by alias": attack(20, 100, 20),
    "a pattern by a constant column": "SELECT COUNT(*) FROM (SELECT note, '%a%' AS p FROM t) WHERE note LIKE p",
    "a pattern by a CTE": "WITH c AS (SELECT note, '%a%' AS p FROM t) SELECT COUNT(*) FROM c WHERE note LIKE p",
    "a long pattern": f"SELECT COUNT(*) FROM t WHERE note LIKE '%{'_' * 120}b%'",
    "wildcards that go back and forth": "SELECT COUNT(*) FROM t WHERE note LIKE '%a_%a_%a_%b'",
    "one long run of _ in a text": "SELECT COUNT(*) FROM t WHERE "
    f"note LIKE '%{'_' * 90}b%' OR note ILIKE '%{'_' * 90}c%'",
    "a needle by alias": "SELECT COUNT(*) FROM (SELECT note, 'a' AS p FROM t) WHERE CONTAINS(note, p)",
    "a needle that is a column": "SELECT COUNT(*) FROM t WHERE STARTS_WITH(note, name)",
    "a long needle": f"SELECT COUNT(*) FROM t WHERE CONTAINS(note, '{'a' * 120}')",
    "a long text in quotes": f"SELECT COUNT(*) FROM t WHERE CASE WHEN {VICTIM} THEN '{'a' * 300}' ELSE '' END = 'x'",
    "LEFT hundreds of times": direct("LEFT(x, {0}) LIKE '%b%'", 300),
    "LOWER under a condition": direct("LOWER(LEFT(x, {0})) = 'b'", 200),
    "casts of odd texts": direct("TRY_CAST(LEFT(x, {0}) AS DATE) = DATE '2020-01-01'", 150),
    "a large CASE for one person": "SELECT COUNT(*) FROM t WHERE "
    f"CASE WHEN {VICTIM} THEN {any_of(f'''TRIM(note) < '{at}' ''' for at in range(120))} ELSE FALSE END",
    "keys of truth values": "SELECT "
    + ", ".join(f"note ILIKE '%{at}%' AS k{at}" for at in range(60))
    + f", COUNT(*) FROM t GROUP BY {', '.join(map(str, range(1, 61)))}",
    "filters of aggregates": "SELECT "
    + ", ".join(f"COUNT(*) FILTER (WHERE LOWER(note) LIKE '%{at}%')" for at in range(60))
    + " FROM t",
    "texts that double": doubled(7),
    "remainders of numbers far apart": "SELECT COUNT(*) FROM t WHERE "
    + any_of(f"(1e300 / (age + {at})) % 3 = 1" for at in range(60)),
    "within a unit": "SELECT AVG(n) FROM (SELECT id, COUNT(*) FILTER (WHERE "
    + any_of(f"note ILIKE '%{at}%'" for at in range(40))
    + ") AS n FROM t GROUP BY id)",
    "in parts of UNION ALL": "SELECT COUNT(*) FROM (SELECT id, CASE WHEN "
    + any_of(f"note ILIKE '%{at}%'" for at in range(40))
    + " THEN 1 ELSE 0 END AS x FROM t UNION ALL SELECT id, 0 AS x FROM t) WHERE x = 1",
}

GROUPS = {
    "any": any_of(f"note LIKE '%word{at}%'" for at in range(20)),
    "number": " ".join(f"WHEN age < {at}0 THEN {at}" for at in range(1, 11)),
    "word": " ".join(f"WHEN note LIKE '%word{at}%' THEN {at}" for at in range(10)),
}
ORDINARY = (
    "SELECT COUNT(*) FROM t WHERE note LIKE '%pain%' AND note NOT LIKE 'no %'",
    f"SELECT COUNT(*) FROM t WHERE {GROUPS['any']}",
    "SELECT COUNT(*) FROM t WHERE note ILIKE '%pain%' OR LOWER(TRIM(note)) = 'none'",
    f"SELECT COUNT(*) FROM t WHERE name IN ({', '.join(repr(f'name{at}') for at in range(1000))})",
    f"SELECT CASE {GROUPS['number']} ELSE 0 END AS g, COUNT(*), AVG(age), VAR_SAMP(age) FROM t GROUP BY 1",
    f"SELECT CASE {GROUPS['word']} END AS g, COUNT(*) FROM t GROUP BY 1",
    "SELECT YEAR(seen), MONTH(seen), MEDIAN(age) FROM t WHERE seen <= DATE '2020-12-31' GROUP BY 1, 2",
    "SELECT COUNT(*) FROM t WHERE note LIKE 'A_%' AND note LIKE '%a_c%' AND age % 10 = 3",
    "SELECT COUNT(*) FROM t WHERE SUBSTRING(note, 1, 3) = 'a n' AND REPLACE(name, 'b', 'p') = 'pop'",
    "SELECT COUNT(DISTINCT LOWER(note)), COUNT(DISTINCT id) FROM t",
)


@pytest.mark.parametrize("case", HEAVY)
def test_a_question_that_can_make_one_row_heavy_is_refused(curator: Curator, case: str) -> None:
    with pytest.raises((QuestionRefusedError, InputError)) as caught:
        plan_of(curator, HEAVY[case])
    assert "too deeply" not in str(caught.value)


@pytest.mark.parametrize("sql", ORDINARY)
def test_ordinary_questions_are_answered(curator: Curator, sql: str) -> None:
    answer = curator.analyst(EVE).ask(sql, epsilon=0.01)
    assert answer.columns and answer.charge["epsilon"] == 0.01


def test_a_text_of_ten_million_characters_is_looked_into_no_further_than_others(curator: Curator) -> None:
    sql = "SELECT COUNT(*) FROM t WHERE LENGTH(note) > 200 OR LENGTH(UPPER(note) || note) > 200"
    answer = curator.analyst(EVE).ask(sql, epsilon=10)
    assert abs(float(answer.rows[0][0])) < 20


def test_with_the_limit_off_the_same_questions_are_planned(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the limit is what refuses them; the fuzzer plants this to see that it would notice."""
    sql = HEAVY["one long run of _ in a text"]
    with pytest.raises(QuestionRefusedError):
        plan_of(curator, sql)
    most = work.MOST
    monkeypatch.setattr(work, "MOST", float("inf"))
    assert work.work_of(plan_of(curator, sql)).worst > most


@pytest.mark.parametrize("sql", ORDINARY)
def test_every_row_carries_a_share_of_what_one_row_could_take(curator: Curator, sql: str) -> None:
    """A hundredth of the rows that does all the work, while the others do none, adds at most half."""
    plan = plan_of(curator, sql)
    found = work.work_of(plan)
    carried = work.ballast(found) + work.BASE
    assert found.worst / 100 <= carried / 2 * (1 + 1e-9)
    if work.ballast(found) > 0 and "DISTINCT" not in sql:
        assert all("random()" in part.sql for part in selects_of(plan))


def test_the_ballast_stands_before_the_conditions_in_one_expression_with_them(curator: Curator) -> None:
    """DuckDB tries conditions in an order of its own, and those that come later only on rows that are left."""
    plan = plan_of(curator, "SELECT COUNT(*) FROM t WHERE name = 'bob' AND note ILIKE '%pain%'")
    (part,) = selects_of(plan)
    assert re.search(r"WHERE CASE WHEN \([^=]*random\(\)[^=]* THEN \(", part.sql)


def test_stored_answers_stay_valid_for_ordinary_questions(curator: Curator) -> None:
    """Cuts and ballast are in what runs, not in what a question means."""
    shown = plan_of(curator, "SELECT COUNT(*) FROM t WHERE note ILIKE '%pain%'").canonical()
    assert "ilike(note, '%pain%')" in shown
    assert "random" not in shown


@pytest.mark.integration
def test_over_http_the_attack_is_refused_for_nothing_and_no_answer_is_late(tmp_path: Path) -> None:
    home = behind(tmp_path, units=60)
    with serving(home, config=QUICK) as server:
        client = server.analyst("eve")
        for terms, length, pattern in ((480, 2000, 1000), (480, 100, 20), (20, 100, 20)):
            sql = attack(terms, length, pattern).replace(VICTIM, "note = 'bob'").replace("FROM t)", "FROM visits)")
            reply = client.post("/v1/ask", {"sql": sql, "epsilon": 0.001})
            assert 400 <= reply.status < 500
            assert "engine" not in reply.json["code"]
        direct_ = "LEFT(CASE WHEN note = 'bob' THEN note ELSE '' END, {0}) ILIKE '%___________________b%'"
        tested = any_of(direct_.format(at) for at in range(1, 60))
        reply = client.post("/v1/ask", {"sql": f"SELECT COUNT(*) FROM visits WHERE {tested}", "epsilon": 0.001})
        assert reply.json["code"] == "sql.refused"
        assert "too much work" in str(reply.json)
    assert charges(home, "eve") == 0


def test_no_part_of_a_file_is_left_out_for_what_it_holds(curator: Curator) -> None:
    """One unit with an extreme value in each part of a file would decide whether any of them is read."""
    (version,) = curator.tables()
    engine = duckdb_of(curator.engines.of(version.fingerprint))
    (shown,) = engine._shaped(  # the engine runs SELECTs alone
        f"SELECT count(*) FROM {engine.scan} WHERE name = 'zzz'",
        {},
        60.0,
        lambda cursor, statement: [cursor.execute("EXPLAIN " + statement.query).fetchall()[0][1]],
    )
    assert "Filters:" not in shown


def test_the_rows_are_read_for_heavy_units_whether_there_are_some_or_not(curator: Curator) -> None:
    """DuckDB does not read the rows to look for nobody: one unit beyond a limit would double the time."""
    plan = plan_of(curator, "SELECT COUNT(*) FROM t WHERE age < 50")
    (version,) = curator.tables()
    engine = duckdb_of(curator.engines.of(version.fingerprint, plan.table))
    assert engine.index is not None
    made = indexed_sums.IndexedSums(plan, engine.index)
    assert made.bounds is not None
    assert engine.run(f"SELECT count(*) FROM ({made.heavy()})") == [(1,)]


def test_ilike_means_what_the_engines_own_does() -> None:
    letters = [
        "a",
        "A",
        "İ",
        "i",
        "I",
        "ı",
        "ß",
        "ẞ",
        "ſ",
        "s",
        "K",
        "k",
        "Ä",
        "ä",
        "Σ",
        "ς",
        "%",
        "_",
        "Ⱥ",
        "\n",
        "😀",
    ]
    texts = pa.table({"x": [*letters, *(one + two for one in letters for two in letters)]})
    patterns = [f"{one}{each}{two}" for each in letters for one in ("", "%", "_") for two in ("", "%", "%a", "_")]
    renderer = Renderer({"x": "x"})
    for pattern in patterns:
        ours = renderer.sql(Call("ilike", (Column("x", Type.TEXT), text(pattern)), Type.BOOLEAN))
        own = f"(x ILIKE {literal(pattern)})"
        sql = f"SELECT count(*) FROM texts WHERE {ours} IS DISTINCT FROM {own}"
        assert public().run(sql, {"texts": texts}) == [(0,)], pattern
