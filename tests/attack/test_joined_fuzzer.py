"""Must show 2 of joins: neighbours of data sets, and the five bugs that the fuzzer has to catch.

Each planted bug takes out all that stands in its way, since the code has two guards against most of them: a question is
refused whose tables are not tied by their units, and the statement compares the units all the same.
"""

from __future__ import annotations

import pytest
from tests.conftest import LONG, NEAR_PLANTED

from dalenius.audit import fuzz as fuzzer
from dalenius.audit.fuzzing import join_writer
from dalenius.audit.fuzzing.checks import Sides
from dalenius.measuring.canonical import call
from dalenius.measuring.engines.duckdb.statements import relation, units
from dalenius.measuring.engines.duckdb.statements.sums import Compiler
from dalenius.measuring.join_fanout import limit_of
from dalenius.measuring.relations import Join, Open, Relation
from dalenius.owner import paths as _paths
from dalenius.queries.rules import joins, resolve

SEED = 2007
NEAR = 16
CLEAN = 2_000 if LONG else 60
FILES = 62  # the first data set that goes through files
BREAKS = {"order", "difference", "unit", "nobody", "lone", "search"}


def test_no_neighbouring_data_sets_differ_by_more_than_the_plan_claims(cases):
    report = fuzzer.fuzz(joins=True, cases=cases, seed=SEED)
    assert not report.violations, report.violations[0]
    assert report.cases == cases
    files = fuzzer.fuzz(joins=True, cases=fuzzer.JOINED_QUESTIONS, seed=SEED, start=FILES)
    assert not files.violations, files.violations[0]
    assert files.drawn["parquet"] > 0
    assert report.compared >= 0.7 * report.cases, report.refused
    # an honest share is what plain DuckDB says; and all kinds of sources, relations and budgets are drawn
    assert report.drawn["followed"] > 0.15 * report.cases
    for drawn in ("joined", "match", "left", "path", "PerUnit", "Stacked", "Numbered", "Open", "found", "search"):
        assert report.drawn[drawn] > 0.02 * report.cases, drawn
    for drawn in ("add-remove", "substitute", "l1", "l2", "memory", "repeated keys"):
        assert report.drawn[drawn] > 0, drawn


# --- planted


def join_multiplicity_ignored(monkeypatch):
    """Each table is limited by itself, and the join is trusted to keep to that."""
    owned = relation.RelationScan.owned

    def limited(self, each):
        if id(each) in self.lenders:  # another table has its unit
            return owned(self, each)
        rows = limit_of(each) or 1
        parts = ", ".join(units.unit_name(at) for at in range(len(each.table.policy.unit)))
        return f"SELECT * FROM ({owned(self, each)}) QUALIFY row_number() OVER (PARTITION BY {parts}) <= {rows}"

    monkeypatch.setattr(relation.RelationScan, "owned", limited)
    monkeypatch.setattr(joins, "_times", lambda join, within: 1)
    monkeypatch.setattr(Compiler, "factor", lambda self, pairs: ("1::HUGEINT", "1::HUGEINT"))


NOBODY = {"BIGINT": "-7777777", "DOUBLE": "-7777.25e0", "VARCHAR": "'nobody'"}
NOBODY |= {"DATE": "DATE '1801-01-01'", "TIMESTAMP": "TIMESTAMP '1801-01-01'"}


def null_units_kept(monkeypatch):
    """Rows of nobody as if they were somebody's."""
    owned = relation.RelationScan.owned

    def kept(self, each):
        text = owned(self, each)
        for at, type_ in enumerate(units.unit_types(each, self.files)):
            own, nobody = f"u{at} AS {units.unit_name(at)}", NOBODY[type_.split("(")[0].upper()]
            text = text.replace(own, f"coalesce(u{at}, {nobody}) AS {units.unit_name(at)}", 1)
        return text

    monkeypatch.setattr(relation, "there", lambda unit, types: "TRUE")
    monkeypatch.setattr(relation.RelationScan, "owned", kept)


def a_path_key_that_is_not_unique(monkeypatch):
    monkeypatch.setattr(_paths, "repeats", lambda fingerprint, key: False)


def an_outer_join_that_keeps_public_rows(monkeypatch):
    """Rows that found nobody get a unit each."""
    sql = relation.RelationScan.sql

    def owner(self):
        return next((each for each in self.sources if not isinstance(each, Open)), None)

    def kept(self, table):
        text, types = sql(self, table)
        if any(each.source is self.relation.owner and each.left for each in self.relation.joins):
            for at, name in enumerate(table.policy.unit):
                unit = self.unit(self.relation.owner, at)
                own = f"CASE WHEN {unit} IS NULL THEN 'row ' || row_number() OVER () ELSE hash({unit})::VARCHAR END"
                text, types[name] = text.replace(f"{unit} AS", f"{own} AS", 1), "VARCHAR"
        return text, types

    monkeypatch.setattr(Relation, "owner", property(owner))
    monkeypatch.setattr(joins, "_check_public", lambda *_: None)
    monkeypatch.setattr(resolve, "keep_public", lambda _: None)  # which makes inner joins of them
    monkeypatch.setattr(relation.RelationScan, "sql", kept)
    conditions = relation.RelationScan.left_conditions

    def left(self, join):
        return conditions(self, join)[:1] if join.source is self.relation.owner else conditions(self, join)

    monkeypatch.setattr(relation.RelationScan, "left_conditions", left)
    limits = joins.limits_of

    def as_if_inner(within):
        where = call("and", within.where, *(each.on for each in within.joins))
        return limits(Relation(tuple(Join(each.source) for each in within.joins), where))

    monkeypatch.setattr(joins, "limits_of", as_if_inner)


def a_second_occurrence_without_a_bound(monkeypatch):
    """Neither the question nor the statement says that joined rows are of one unit."""
    monkeypatch.setattr(joins, "_tied", lambda *_: True)
    monkeypatch.setattr(relation.RelationScan, "same", lambda self, one, other: "TRUE")


def an_exists_about_anybody(monkeypatch):
    def unchecked(inner, outer, identities, parts, at, places):
        if inner.owner is None:
            joins._check_only_public(inner, at)
        else:
            joins.check_relation(inner, identities, parts, at, places)

    monkeypatch.setattr(joins, "check_match", unchecked)
    match = relation.RelationScan.match

    def unbound(self, each):
        body = relation.RelationScan.body
        monkeypatch.setattr(relation.RelationScan, "body", lambda inner, more=(): body(inner))
        try:
            return match(self, each)
        finally:
            monkeypatch.setattr(relation.RelationScan, "body", body)

    monkeypatch.setattr(relation.RelationScan, "match", unbound)


# Each with what the fuzzer draws more often, so that the test is short, and the first data set that shows it.
PLANTED = {
    join_multiplicity_ignored: ({}, 1),
    null_units_kept: ({}, 15),
    a_path_key_that_is_not_unique: ({"repeated": 0.5}, 3),
    an_outer_join_that_keeps_public_rows: ({"public_first": 0.5}, 5),
    a_second_occurrence_without_a_bound: ({"wrong": 0.3}, 1),
    an_exists_about_anybody: ({"wrong": 0.5}, 6),
}


def test_the_short_form_goes_over_every_case_that_shows_a_planted_bug():
    assert fuzzer.JOINED_QUESTIONS * max(number for _, number in PLANTED.values()) + NEAR <= NEAR_PLANTED


def drawn_more_often(monkeypatch, repeated=None, public_first=None, wrong=None):
    monkeypatch.setattr(fuzzer, "REPEATED", repeated or fuzzer.REPEATED)
    monkeypatch.setattr(join_writer, "PUBLIC_FIRST", public_first or join_writer.PUBLIC_FIRST)
    monkeypatch.setattr(join_writer, "WRONG", wrong or join_writer.WRONG)


def by_neighbours_alone(monkeypatch):
    """Without what Python works out, and what DuckDB says to the question."""
    monkeypatch.setattr(Sides, "work_out", lambda self, plan: None)
    monkeypatch.setattr(Sides, "follow", lambda self, question: None)


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_shows_on_neighbours(plant, monkeypatch):
    by_neighbours_alone(monkeypatch)
    monkeypatch.setattr(fuzzer, "shrink", lambda made, _: made)  # which takes most of the time
    more, number = PLANTED[plant]
    drawn_more_often(monkeypatch, **more)
    plant(monkeypatch)
    # From the start, should another generator draw other data sets by now.
    report = fuzzer.fuzz(joins=True, cases=NEAR, seed=SEED, start=number)
    report = report if report.violations else fuzzer.fuzz(joins=True, cases=2 * NEAR_PLANTED, seed=SEED)
    assert report.violations, f"not seen in {report.cases} cases"
    (found,) = report.violations
    assert found.kind in BREAKS, found
    assert found.sql and found.policies


def test_what_is_drawn_more_often_is_clean_without_the_bugs(monkeypatch):
    drawn_more_often(monkeypatch, repeated=0.5, public_first=0.5, wrong=0.3)
    report = fuzzer.fuzz(joins=True, cases=CLEAN, seed=SEED)
    assert not report.violations, report.violations[0]
    assert 0 < report.drawn["repeated keys"] <= report.refused["policy.not-allowed"]  # and other reasons


def test_refusals_are_no_part_of_the_proof(monkeypatch):
    """Questions that do not say whose rows meet, were they asked, still meet rows of one unit only."""
    by_neighbours_alone(monkeypatch)
    monkeypatch.setattr(joins, "_tied", lambda *_: True)
    drawn_more_often(monkeypatch, wrong=0.5)
    report = fuzzer.fuzz(joins=True, cases=CLEAN, seed=SEED)
    assert not report.violations, report.violations[0]


def test_rows_that_a_limit_cuts_are_chosen_by_their_unit_alone_however_it_is_spelled(monkeypatch):
    """0.0 and -0.0 are one unit: rows that differ in nothing else tied, and other people's rows chose between them."""
    monkeypatch.setattr(fuzzer, "shrink", lambda made, _: made)
    report = fuzzer.fuzz(joins=True, cases=10, seed=701, start=101)
    assert not report.violations, report.violations[0]
    assert report.compared > 5
