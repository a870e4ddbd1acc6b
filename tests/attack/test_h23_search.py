"""H23: a search over all constructs finds no question that one person makes slow; and it finds a planted one.

The exact limits (a ratio of 1.5, fixed times, memory) are for a quiet machine: `bench/work_search.py`. Here only
processor time counts, with a generous ratio, so that other work on the machine fails nothing.
"""

from __future__ import annotations

import importlib
import math
from random import Random

import pyarrow.compute as pc
import pytest
from tests.attack import slowed

from dalenius.audit import work
from dalenius.audit.fuzzing import arenas, heavy, terms
from dalenius.errors import DaleniusError, EngineFailedError
from dalenius.measuring.engines import engine
from dalenius.measuring.engines.duckdb import rendering
from dalenius.measuring.engines.duckdb.statements import relation, source
from dalenius.measuring.expressions import Type
from dalenius.measuring.functions import FUNCTIONS
from dalenius.queries.rules import plan_question

SIZES = (4_000, 40_000)
GENEROUS = 3.0


def test_every_function_that_can_be_asked_for_is_searched():
    assert terms.FORMS.keys() == FUNCTIONS.keys()


def test_questions_of_the_search_are_mostly_taken_and_use_all_functions():
    tables, chance, used, taken = arenas.arena_tables(1000), Random(3), set(), 0
    for _ in range(120):
        try:
            plan = plan_question(heavy.draw_question(chance).text(), tables, None, {})
        except DaleniusError:
            continue
        taken += 1
        used |= {name for each in work._expressions(plan) for name in each}
    assert taken > 40
    assert len(used) > 0.6 * len(FUNCTIONS), FUNCTIONS.keys() - used


def test_the_victim_is_the_only_difference_and_owns_a_hundredth():
    for victim in arenas.VICTIMS:
        first, second = (each["visits"] for each in arenas.make_neighbours(victim, 1000, 1))
        own = sum(person == 0 for person in first["person"].to_pylist())
        assert own == (1 if victim.single else 10)
        assert first.num_rows - second.num_rows == (0 if victim.replaced else own)
        others = [each.filter(pc.field("person") != 0) for each in (first, second)]
        assert others[0].equals(others[1])


def test_no_person_makes_a_question_far_slower(rounds):
    report = work.search_for_work(cases=rounds(500), seed=23, sizes=SIZES, ratio=GENEROUS, quiet=False)
    assert not report.violations, report.violations[0]
    assert report.cases == rounds(500)
    assert report.large > 0


def limits_off(monkeypatch):
    """No limit on the work of a row, and nothing that all rows do alike (there were none before `queries.work`)."""
    try:
        module = importlib.import_module("dalenius.measuring.work")
    except ModuleNotFoundError:
        return
    for name in ("MOST", "MOST_MEETING", "MOST_MATCHED", "RATIO"):
        monkeypatch.setattr(module, name, math.inf)


def test_work_without_a_limit_is_found(monkeypatch):
    limits_off(monkeypatch)
    monkeypatch.setattr(work.Judge, "shrink", lambda self, question, arena, found: found)
    seeds = [each for each in heavy.SEEDS if each.where]
    monkeypatch.setattr(heavy, "SEEDS", seeds)
    monkeypatch.setattr(heavy, "ARENAS", arenas.ARENAS[:2])
    # So many rows that it takes well above `work.LONG`, on a quick machine too; it ends with the first finding.
    report = work.search_for_work(cases=20 * len(seeds), seed=23, sizes=(4_000, 100_000), ratio=GENEROUS, quiet=False)
    assert report.violations, report.worst
    assert report.violations[0].kind == "ratio"
    assert report.violations[0].first > GENEROUS * report.violations[0].second


ALONE = next(each for each in arenas.ARENAS if each.victim.alone and not each.indexed)
SAME = (
    "SELECT COUNT(*) FROM visits WHERE CAST(note AS DATE) > DATE '2020-01-01'",
    "SELECT COUNT(*) FROM visits WHERE CAST(CASE WHEN name = 'victim' THEN '' ELSE 'x' END AS DATE) IS NULL",
    "SELECT SUM(CAST(EXP(LN(SQRT(EXP(LN(CASE WHEN name = 'victim' THEN 2 ELSE 3 END))))) < 9 AS INTEGER)) FROM visits",
)


ABSENT = next(each for each in arenas.ARENAS if each.name == "nothing at all")
LOGIC = " OR ".join(f"(level > {at} AND salary = {at + 1})" for at in range(60))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The tables, made once."""
    return arenas.Places(tmp_path_factory.mktemp("h23"), 1)


def ratio_of(sql, places, arena=ALONE, rows=400_000):
    """Most questions need that many rows to take a while."""
    return slowed.ratio_of(sql, places, arena, rows)


@pytest.mark.parametrize("sql", SAME)
def test_one_other_value_among_two_thousand_does_not_cost_what_they_would(sql, places):
    """The search found it: DuckDB works out once what all of 2,048 rows share, until one of them does not."""
    assert ratio_of(sql, places) < 2


def test_what_all_rows_share_is_found_to_be_slow_to_lose(monkeypatch, places):
    def plain(shown, type_, longest=2**20):
        return f"left({shown}, {longest})" if type_ is Type.TEXT else shown

    monkeypatch.setattr(rendering, "each_row", plain)
    monkeypatch.setattr(source, "each_row", plain)
    monkeypatch.setattr(importlib.import_module("dalenius.measuring.work"), "RATIO", math.inf)
    assert any(ratio_of(sql, places) > 2 for sql in SAME)


def test_one_null_among_two_thousand_does_not_make_logic_slow(places):
    """Found by hand: DuckDB's AND and OR take ten times as long for 2,048 rows as soon as one of them is NULL."""
    assert ratio_of(f"SELECT COUNT(*) FROM visits WHERE {LOGIC}", places, ABSENT) < 2


WITHIN = "SELECT 1 FROM people p WHERE p.person = s.person AND LOWER(p.title) LIKE '%a%b%'"


@pytest.mark.parametrize("exists", ["EXISTS", "NOT EXISTS"])
def test_one_person_is_not_paired_with_everybody(exists, places):
    """The search found it: with a random number within EXISTS, DuckDB pairs all rows that are left with all others."""
    sql = f"SELECT COUNT(*) FROM visits s WHERE name = 'victim' AND {exists} ({WITHIN})"
    assert ratio_of(sql, places, rows=40_000) < 2


AFTER_NULL = (
    "SELECT COUNT(*) FROM visits WHERE NULLIF(born, born) <> CAST(raw AS DATE)",
    "SELECT COUNT(*) FROM visits WHERE DATE_DIFF('day', NULLIF(born, born), CAST(raw AS DATE)) > 3",
    "SELECT COUNT(*) FROM visits WHERE NULLIF(note, note) || LOWER(UPPER(raw)) = 'x'",
)


@pytest.mark.parametrize("sql", AFTER_NULL)
def test_what_comes_after_a_null_is_not_left_out(sql, places):
    """The search found it: where the first argument is NULL in 2,048 rows, DuckDB does not work out the others."""
    assert ratio_of(sql, places, ABSENT) < 2


def test_what_is_left_out_after_a_null_is_found(monkeypatch, places):
    monkeypatch.setattr(rendering, "awaits", lambda arguments, at: False)
    monkeypatch.setattr(importlib.import_module("dalenius.measuring.work"), "RATIO", math.inf)
    assert any(ratio_of(sql, places, ABSENT) > 2 for sql in AFTER_NULL)


JOINED = {
    "a join": "visits s JOIN people p ON p.person = s.person WHERE {} AND p.title LIKE '%zzq%'",
    "three tables": "visits s JOIN visits t ON t.person = s.person JOIN people p ON p.person = s.person "
    "WHERE {} AND p.title LIKE '%zzq%'",
    "EXISTS": "visits s WHERE {} "
    "AND EXISTS (SELECT 1 FROM people p WHERE p.person = s.person AND p.title LIKE '%zzq%')",
}
ONLY_THEIRS = "s.name = 'victim' AND s.note LIKE '%a%' AND LOWER(s.name) LIKE '%v%'"


def empty_sided(joined, places):
    ratio = ratio_of(f"SELECT COUNT(*) FROM {JOINED[joined].format(ONLY_THEIRS)}", places, rows=40_000)
    return max(ratio, 1 / ratio)


@pytest.mark.parametrize("joined", JOINED)
def test_nobody_on_one_side_does_not_end_reading_the_other(joined, places):
    """The search found it: DuckDB stops once a row reaches a join whose other side is empty, and one person's does."""
    assert empty_sided(joined, places) < 2


def test_a_join_with_nobody_on_one_side_is_found(monkeypatch, places):
    from dalenius.measuring.engines.duckdb.statements.conditions import with_spare

    monkeypatch.setattr(
        relation, "with_spare", lambda rows: with_spare(rows).split(" UNION ALL BY NAME SELECT TRUE")[0]
    )
    assert any(empty_sided(joined, places) > 2 for joined in JOINED)


def test_logic_that_a_null_makes_slow_is_found(monkeypatch, places):
    module = importlib.import_module("dalenius.measuring.work")
    monkeypatch.setattr(module, "_BATCH", {})
    monkeypatch.setattr(module, "_BATCH_ELSE", 0.0)
    assert ratio_of(f"SELECT COUNT(*) FROM visits WHERE {LOGIC}", places, ABSENT) > 2


def test_a_failure_of_the_engine_is_found(monkeypatch):
    from dalenius.audit.fuzzing.meters import MeteredSide

    def failing(self, plan):
        raise EngineFailedError("It failed.", why="Planted.", fix="None.")

    monkeypatch.setattr(MeteredSide, "look", failing)
    monkeypatch.setattr(work.Judge, "shrink", lambda self, question, arena, found: found)
    report = work.search_for_work(cases=1, seed=23, sizes=SIZES, quiet=False)
    assert [each.kind for each in report.violations] == ["engine"]


def test_a_statement_that_fails_unnoticed_is_found(monkeypatch):
    from dalenius.audit.fuzzing.meters import MeteredSide

    look = MeteredSide.look

    def detour(self, plan):
        engine.note("SELECT 1", "failed")
        look(self, plan)

    monkeypatch.setattr(MeteredSide, "look", detour)
    monkeypatch.setattr(work.Judge, "shrink", lambda self, question, arena, found: found)
    report = work.search_for_work(cases=1, seed=23, sizes=SIZES, quiet=False)
    assert [each.kind for each in report.violations] == ["traces"]


@pytest.mark.parametrize("seed", [1, 2])
def test_children_are_questions_too(seed):
    chance, tables = Random(seed), arenas.arena_tables(1000)
    question, taken = heavy.SEEDS[2], 0
    for _ in range(60):
        question = heavy.breed(chance, question, chance.choice(heavy.SEEDS))
        try:
            plan_question(question.text(), tables, None, {})
            taken += 1
        except DaleniusError:
            question = chance.choice(heavy.SEEDS)
    assert taken > 20


@pytest.mark.parametrize("function", ["LEAST", "GREATEST"])
def test_a_column_named_twice_does_not_make_the_engine_fail(function, tmp_path):
    """The search found it: DuckDB 2.0 cannot copy a plan with such a call, and a failure is charged."""
    inner = f"LEAST(salary, {function}(level, salary, salary, level), 2.5)"
    sql = f"SELECT MEDIAN(LEAST(GREATEST({inner}, 0), 100)) FROM visits"
    rows = 400
    side, _ = arenas.Places(tmp_path, 1).pair(arenas.ARENAS[0], rows)
    failed = []
    for shown in (sql, sql.replace("MEDIAN", "COUNT(UPPER(code)), MEDIAN", 1)):
        try:
            side.run(plan_question(shown, arenas.arena_tables(rows), None, {}))
        except EngineFailedError as error:
            failed.append((shown, error))
    assert failed == []
