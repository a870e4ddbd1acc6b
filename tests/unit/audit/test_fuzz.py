from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from random import Random

import pytest
from tests.conftest import LONG

from dalenius.app.cli import build, run
from dalenius.audit import fuzz as fuzzer
from dalenius.audit.fuzz import fuzz, shrink
from dalenius.audit.fuzzing.checks import vector_length
from dalenius.audit.fuzzing.data_sets import draw_joined_rows, draw_table_rows, owners
from dalenius.audit.fuzzing.engines import InMemory, MemoryEngine, MemoryTables, open_data
from dalenius.audit.fuzzing.expected import expected_integers
from dalenius.audit.fuzzing.questions import write_question
from dalenius.audit.fuzzing.schemas import MOST_ROWS, NAME, draw_table, draw_tables
from dalenius.errors import DaleniusError, InputError
from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.backend import DuckDBPool
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.duckdb.statements.sums import Compiler
from dalenius.queries.rules import plan_question

TRIES = 200 if LONG else 25  # to make a case small takes most of the time


@pytest.mark.parametrize(("joins", "cases"), [(False, 10), (True, 6)], ids=["one table", "several"])
def test_the_same_seed_draws_the_same_cases(joins, cases):
    one, other = (fuzz(cases=cases, seed=7, joins=joins).to_dict() for _ in range(2))
    assert one | {"seconds": 0} == other | {"seconds": 0}
    assert one["cases"] == cases and one["violations"] == []


def test_minutes_end_a_run():
    report = fuzz(minutes=0.01, seed=7)
    assert report.cases > 0 and report.seconds >= 0.6


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cases": 1, "minutes": 1.0},
        {"cases": 0},
        {"minutes": float("nan")},
        {"minutes": -1},
        {"cases": 1, "seed": -1},
    ],
)
def test_a_run_without_a_sensible_length_is_refused(options):
    with pytest.raises(InputError):
        fuzz(**options)


def test_lengths_are_those_of_the_norm():
    assert vector_length([3, -4], "l2") == 25
    assert vector_length([3, -4], "l1") == 7


def test_most_questions_can_be_asked_and_all_kinds_are_drawn():
    refused, kinds, drawn = 0, set(), set()
    for number in range(40):
        random = Random(number)
        schema = draw_table(random)
        policy, budget = schema.first.policy, schema.first.budget
        drawn |= {policy.neighbors, budget.accounting, budget.period is None}
        drawn |= set(policy.unit) | {column.kind for column in policy.columns.values()}
        for _ in range(10):
            try:
                plan = plan_question(write_question(random, schema).text, schema.tables)
            except DaleniusError:
                refused += 1
                continue
            kinds |= {(each.kind, bool(plan.keys)) for each in plan.statistics}
    assert refused < 100  # a quarter
    asked = (
        "rows",
        "units",
        "sum",
        "moments",
        "distinct",
        "distinct_sum",
        "distinct_average",
        "covariance",
        "quantiles",
        "shape",
        "mode",
    )
    assert kinds == {(kind, keyed) for kind in asked for keyed in (False, True)}
    assert len(drawn) == 2 + 2 + 2 + 2 + 7


def test_neighbours_differ_in_one_unit_only():
    for number in range(60):
        random = Random(number)
        made = draw_table_rows(random, draw_table(random))
        width = len(made.schema.first.policy.unit)
        victims, others, instead = (
            {row[:width] for row in part[NAME]} for part in (made.victim, made.others, made.instead)
        )
        assert made.nobody or len({str(tuple(map(abs_zero, each))) for each in victims}) == 1
        assert made.nobody or not victims & (others | instead)
        assert bool(instead) == (made.substitutes and not made.nobody)


def abs_zero(value):
    return 0.0 if value == 0 else value


@pytest.mark.parametrize("form", ["memory", "parquet", "csv"])
def test_a_made_up_table_reads_back_in_every_form(form, tmp_path: Path):
    random = Random(3)
    made = draw_table_rows(random, draw_table(random, form))
    opened = open_data(made.schema, made.first, tmp_path, MemoryTables({}, {}, "public"), DuckDBPool())
    found = opened.of(made.schema.first)
    assert isinstance(found, MemoryEngine | DuckDB)
    assert dict(found.columns) == dict(made.schema.storages[NAME])
    assert found.run(f"SELECT count(*) FROM {found.scan}") == [(len(made.first[NAME]),)]


def test_simple_plans_are_worked_out_as_they_are_defined():
    seen = 0
    for number in range(200):
        random = Random(number)
        made = draw_table_rows(random, draw_table(random))
        schema, policy = made.schema, made.schema.first.policy
        try:
            plan = plan_question("SELECT COUNT(*), COUNT(DISTINCT person) FROM made", schema.tables)
        except DaleniusError:
            continue
        if len(policy.unit) == 1 and plan.periods == ("",) and (rows := policy.contribution.rows):
            victim = made.victim if not made.nobody else {NAME: ()}
            amount = len(victim[NAME])
            counts = {"rows": min(rows, amount), "units": min(1, amount)}
            by_hand = [counts[each.kind] for each in plan.statistics]
            assert expected_integers(plan, schema, victim) == by_hand
            assert exact(plan, InMemory(schema, victim).of(plan.table), "salt") == [[each] for each in by_hand]
            seen += 1
    assert seen > 20


def test_shrinking_leaves_only_what_is_needed():
    random = Random(5)
    made = draw_table_rows(random, draw_table(random))
    for part in ("victim", "others"):
        made = made.with_rows(part, NAME, getattr(made, part)[NAME] * 3)
    smaller = shrink(made, lambda candidate: len(candidate.victim[NAME]) >= 2)
    assert len(smaller.victim[NAME]) == 2 and not smaller.others[NAME]
    assert not smaller.schema.first.policy.columns


def test_shrinking_goes_over_all_tables():
    random = Random(5)
    made = draw_joined_rows(random, draw_tables(random))
    (first, *_), left = made.schema.tables, 0
    made = made.with_rows("victim", first, made.others[first] * 2)
    smaller = shrink(made, lambda candidate: len(candidate.victim[first]) >= 2, tries=1000)
    for part in (smaller.others, smaller.victim, smaller.instead, smaller.loose, smaller.publics):
        left += sum(map(len, part.values()))
    assert left == 2
    assert not any(table.policy.columns for table in smaller.schema.tables.values())


def test_a_violation_is_printed_whole_and_exits_with_6(monkeypatch, capsys):
    monkeypatch.setattr(Compiler, "factor", lambda self, pairs: ("1::HUGEINT", "1::HUGEINT"))
    monkeypatch.setattr(fuzzer, "shrink", partial(shrink, tries=TRIES))
    small, whole = {}, fuzzer._violation  # both runs find the same case, and to make it small takes most of the time

    def once(report, *rest):
        if report.cases not in small:
            small[report.cases] = whole(report, *rest)
        return small[report.cases]

    monkeypatch.setattr(fuzzer, "_violation", once)
    assert run(build(), ["audit", "fuzz", "--cases", "400", "--seed", "5", "--json"]) == 6
    answer = json.loads(capsys.readouterr().out)
    (found,) = answer["violations"]
    assert found["seen"] != found["claimed"]
    assert "[contribution]" in found["policy"] and found["sql"].startswith("SELECT")

    assert run(build(), ["audit", "fuzz", "--cases", str(found["case"] + 1), "--seed", "5"]) == 6
    out = capsys.readouterr().out
    for part in (found["sql"], "[contribution]", "its neighbour", found["claimed"], found["seen"]):
        assert part in out
    assert len(small) == 1


def test_a_clean_run_exits_with_0_and_prints_its_seed(capsys):
    assert run(build(), ["audit", "fuzz", "--cases", "8", "--seed", "4"]) == 0
    out = capsys.readouterr().out
    assert "No violation" in out and "seed" in out


# --- several tables


def test_neighbouring_data_sets_differ_in_one_unit_only():
    dangling = 0
    for number in range(80):
        random = Random(number)
        made = draw_joined_rows(random, draw_tables(random))
        one, other = (by_owner(made.schema, rows) for rows in (made.first, made.second))
        changed = {owner for owner in {*one, *other} - {None} if one.get(owner) != other.get(owner)}
        most = 2 if made.substitutes else 1
        assert len(changed) <= (0 if made.nobody else most)
        assert all(len(each) < MOST_ROWS * len(made.schema.tables) for owner, each in one.items() if owner is not None)
        dangling += None in one
    assert dangling > 20


def by_owner(made, rows):
    found: dict[object, list[tuple[str, tuple[str, ...]]]] = {}
    for name, whose in owners(made, rows).items():
        for row, owner in zip(rows.get(name, ()), whose, strict=True):
            found.setdefault(owner, []).append((name, tuple(map(str, row))))
    return {owner: sorted(each) for owner, each in found.items()}


def test_all_kinds_of_data_sets_are_drawn():
    made = [draw_tables(Random(number)) for number in range(60)]
    assert {len(each.tables) for each in made} == {2, 3, 4}
    assert {len(each.publics) for each in made} == {0, 1, 2}
    hops = {len(table.policy.path) for each in made for table in each.tables.values()}
    assert hops >= {0, 1, 2}
    assert {len(each.first.policy.unit) for each in made} == {1, 2}


def test_a_violation_of_joined_tables_is_printed_whole(monkeypatch, capsys):
    monkeypatch.setattr(Compiler, "factor", lambda self, pairs: ("1::HUGEINT", "1::HUGEINT"))
    monkeypatch.setattr(fuzzer, "shrink", partial(shrink, tries=TRIES))
    assert run(build(), ["audit", "fuzz", "--joins", "--cases", "60", "--seed", "5"]) == 6
    out = capsys.readouterr().out
    for part in ("SELECT", "[contribution]", "its neighbour: ", "claimed at most"):
        assert part in out
