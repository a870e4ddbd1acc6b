"""H23, where rows meet: what one person's rows can make of a join is paid for by every row, or refused."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.attack.slowed import ratio_of

from dalenius.audit.fuzzing import arenas
from dalenius.errors import QuestionRefusedError
from dalenius.measuring import join_fanout, pace, work
from dalenius.measuring.engines.duckdb.backend import MultiTable
from dalenius.measuring.engines.duckdb.connections import public as engine
from dalenius.measuring.engines.duckdb.rendering import heavier
from dalenius.measuring.public import public_table
from dalenius.queries.rules import plan_question
from dalenius.tables.policy import PublicSpec
from dalenius.tables.sources.fingerprint import fingerprint

LONG = next(each for each in arenas.ARENAS if each.name == "long texts")
ABSENT = next(each for each in arenas.ARENAS if each.name == "nothing at all")
ITSELF = "SELECT COUNT(*) FROM visits s JOIN visits t ON s.person = t.person WHERE s.name = 'victim'"
ROWS = 400_000


def public(folder, called="zones", **columns):
    """A public table."""
    path = str(folder / f"{called}.parquet")
    pq.write_table(pa.table(columns), path)
    return {called: public_table(PublicSpec(called, (path,)), fingerprint([path]))}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The tables, made once."""
    return arenas.Places(tmp_path_factory.mktemp("h23"), 1)


def test_rows_that_meet_all_of_their_own_are_paid_for_by_everybody(places):
    """A reviewer found it: n rows of one person made n × 10,000 pairs, before anything was clipped."""
    assert ratio_of(ITSELF, places, LONG, ROWS) < 2


def test_pairs_that_nobody_pays_for_are_found(monkeypatch, places):
    monkeypatch.setattr(join_fanout, "ABOVE", join_fanout.MOST)
    monkeypatch.setattr(work, "times", lambda relation: 1)
    assert ratio_of(ITSELF, places, LONG, ROWS) > 2


WHICH = "CASE WHEN s.name = 'victim' THEN 'common' ELSE 'none' END"
COMMON = f"SELECT COUNT(*) FROM visits s JOIN zones z ON z.zone = {WHICH}"
COSTLY = " AND ".join(f"UPPER(LOWER(LEFT(s.note, {at}) || z.label)) NOT LIKE '%x%y%'" for at in range(10, 20))


def test_a_row_that_a_public_table_repeats_is_as_much_work_as_all_of_its_copies(tmp_path):
    """A reviewer found it: three rows of one person made an answer late, by 10,000 rows of a public table each."""
    zones = public(tmp_path, zone=["common"] * 5000, label=[f"label {at}" for at in range(5000)])
    tables = arenas.arena_tables(4000)
    plan = plan_question(COMMON, tables, None, zones)
    assert work.times(plan.table.relation) == 5000
    assert plan.table.work >= 5000 * work.MEETING
    assert (
        pace.times(plan).answer > pace.times(plan_question("SELECT COUNT(*) FROM visits s", tables, None, zones)).answer
    )
    with pytest.raises(QuestionRefusedError) as caught:
        plan_question(f"{COMMON} WHERE {COSTLY}", tables, None, zones)
    assert "too much work" in caught.value.message
    once = public(tmp_path, zone=[f"zone {at}" for at in range(5000)], label=[f"label {at}" for at in range(5000)])
    assert work.times(plan_question(f"{COMMON} WHERE {COSTLY}", tables, None, once).table.relation) == 1


def test_rows_without_a_key_do_not_meet_all_others_without_one(tmp_path, places):
    """A reviewer found it: of a LEFT join DuckDB tries conditions on the first side only once rows have met."""
    count = 20_000
    zones = public(tmp_path, zone=[None] * count + ["a"], label=[f"label {at}" for at in range(count + 1)])
    sql = "SELECT COUNT(*), COUNT(z.label) FROM visits s LEFT JOIN zones z ON z.zone = s.note"
    assert ratio_of(sql, places, ABSENT, 20_000, publics=zones) < 2


@pytest.mark.parametrize(
    ("joined", "copies"),
    [
        (f"LEFT JOIN zones z ON z.zone = {WHICH} WHERE z.label = s.note", 5000),
        (f"LEFT JOIN zones z ON z.zone = {WHICH} AND z.label = s.note", 1),
        (f"JOIN zones z ON z.zone = {WHICH} WHERE z.label = s.note", 1),
    ],
)
def test_a_condition_that_comes_after_a_join_keeps_no_rows_from_meeting(joined, copies, tmp_path):
    """A reviewer found it: an equality in WHERE was taken for a key of a LEFT join, and one row made an answer late."""
    zones = public(tmp_path, zone=["common"] * 5000, label=[f"label {at}" for at in range(5000)])
    plan = plan_question(f"SELECT COUNT(*) FROM visits s {joined}", arenas.arena_tables(4000), None, zones)
    assert work.times(plan.table.relation) == copies


def test_the_largest_share_that_a_row_can_carry_is_still_a_statement():
    """The search found it: DuckDB reads 1,000 levels, and a share may be no deeper. `rules.work` refuses more."""
    most = work.Work(10 * work.MOST_MEETING + join_fanout.MOST * work.MEETING)
    assert engine().run(f"SELECT 1 WHERE {heavier(most)}") == [(1,)]


@pytest.mark.parametrize("called", ["areas", "zones"])
def test_what_is_joined_to_a_left_joined_table_does_not_meet_everything_first(called, tmp_path, places):
    """A reviewer found it: whether DuckDB saw that a LEFT join had to find somebody depended on the order of names."""
    names = public(tmp_path, called, label=[f"label {at}" for at in range(100)])
    joined = f"visits s LEFT JOIN people p ON p.person = s.person JOIN {called} z ON z.label = p.title"
    plan = plan_question(f"SELECT COUNT(*) FROM {joined}", arenas.arena_tables(4000), None, names)
    side, _ = places.pair(LONG, 4000)
    found = side.tables.of(plan.table)
    assert isinstance(found, MultiTable)
    scan = found.scan
    assert scan.count('"title" IS NOT NULL') == 1 and '"label" IS NOT NULL' not in scan
