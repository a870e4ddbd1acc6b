"""GROUPING SETS, ROLLUP and CUBE: the groups of SQL, and one vector over all of them that one unit can move so far."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from datetime import date
from fractions import Fraction

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.whole import exact_steps

from dalenius.errors import DaleniusError, InputError, QuestionRefusedError, SqlSyntaxError
from dalenius.measuring._exact import exact, exact_lengths
from dalenius.measuring.engines.duckdb import statements
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.duckdb.index import IndexFiles
from dalenius.measuring.engines.duckdb.indexing import build_index
from dalenius.measuring.engines.duckdb.statements import indexed_sums
from dalenius.measuring.engines.duckdb.statements.keys import weights
from dalenius.measuring.estimates import NoisySum, noise_variance, total
from dalenius.measuring.expressions import Key
from dalenius.measuring.limits import ladder
from dalenius.measuring.measures import combine_limits
from dalenius.measuring.plan import Found, Limits, require
from dalenius.queries import postprocess
from dalenius.queries.answering import Answer, measure_plan
from dalenius.queries.plan_words import describe_plan
from dalenius.queries.preview import preview_plan
from dalenius.queries.rules.price import price_plan
from dalenius.queries.rules.sets import MOST_SETS
from dalenius.tables.sources.fingerprint import fingerprint

SALT = "salt"
WIDE = "rows = 100000"
TYPES = {
    "user_id": pa.int64(), "region": pa.string(), "smoker": pa.bool_(), "child": pa.float64(), "age": pa.float64(),
    "amount": pa.float64(), "change": pa.float64(), "note": pa.string(), "when": pa.date32(),
    "free": pa.float64(), "at": pa.timestamp("us"), "odd name": pa.float64(),
}  # fmt: skip
REGIONS = ["north", "south", "east", "west"]


def table(rows):
    return pa.Table.from_pylist([{**dict.fromkeys(TYPES), **row} for row in rows], pa.schema(list(TYPES.items())))


def some_rows(chance, count, users=9):
    return [
        {
            "user_id": chance.randrange(users),
            "region": chance.choice([*REGIONS, None]),
            "smoker": chance.choice([True, False, None]),
            "child": chance.choice([0.0, 1.0, 2.0]),
            "age": float(chance.randint(18, 90)),
            "amount": chance.choice([0.0, 12.5, 4999.99, None]),
            "change": chance.choice([-10.0, -0.5, 3.0, 10.0]),
            "note": chance.choice(["a", "b", "ß", None]),
            "when": date(2025, chance.randint(1, 12), 5),
        }
        for _ in range(count)
    ]


def asked(group, what="COUNT(*)"):
    return f"SELECT {what} FROM visits GROUP BY {group}"


def length(vector, norm):
    return sum(each * each if norm == "l2" else abs(each) for each in vector)


def moved(plan, memory, one, other):
    """For each measure, how far the integers of two tables are apart, in the plan's norm."""
    first, second = (exact(plan, memory(table(each)), SALT) for each in (one, other))
    return [length([a - b for a, b in zip(x, y, strict=True)], plan.norm) for x, y in zip(first, second, strict=True)]


# --- what is one question

ONE_QUESTION = [
    [
        "ROLLUP (region, smoker)",
        "GROUPING SETS ((region, smoker), (region), ())",
        "GROUPING SETS ((), (smoker, region), (region))",
        "GROUPING SETS ((region), ROLLUP (region, smoker), (smoker, region, region))",
        "GROUPING SETS (GROUPING SETS ((region, smoker), ()), region)",
        "rollup (1, (smoker))",
        "ROLLUP (r, smoker)",
    ],
    ["CUBE (region, smoker)", "CUBE (smoker, region)", "ROLLUP (region), ROLLUP (smoker)"],
    ["region, smoker", "GROUPING SETS ((region, smoker))", "(region, smoker)", "GROUPING SETS (region), smoker"],
    ["smoker, ROLLUP (region)", "GROUPING SETS ((smoker, region), smoker)", "ROLLUP (region), smoker"],
    ["ROLLUP ((region, smoker))", "GROUPING SETS ((region, smoker), ())", "CUBE ((smoker, region))"],
    ["ROLLUP (smoker, region)"],
    ["GROUPING SETS (region, smoker)"],
    ["GROUPING SETS (region, ())"],
    ["GROUPING SETS (())", "()", "GROUPING SETS ((), ())", "'a constant'"],
]


def canonical(who, group):
    what = "region AS r, COUNT(*), SUM(age)" if "r" in group.lower().replace("rollup", "") else "COUNT(*), SUM(age)"
    keyed = "region" in group.lower() or "(1" in group or "(r," in group
    return who.plan(asked(group, what if keyed else "COUNT(*), SUM(age)")).canonical()


@pytest.mark.parametrize("groups", ONE_QUESTION, ids=lambda groups: groups[0])
def test_other_words_for_the_same_sets_are_the_same_question(groups, visits):
    assert len({canonical(visits, each) for each in groups}) == 1


def test_other_sets_are_other_questions(visits):
    texts = [canonical(visits, groups[0]) for groups in ONE_QUESTION]
    assert len(set(texts)) == len(texts)
    assert canonical(visits, "()") == visits.plan("SELECT COUNT(*), SUM(age) FROM visits").canonical()


# --- the groups of SQL

KEYS = ("region", "smoker", "child")
GROUPS = [
    "ROLLUP (region, smoker)",
    "CUBE (region, smoker, child)",
    "CUBE (child, (smoker, region))",
    "GROUPING SETS ((smoker, region), (region), (child), (region), ())",
    "GROUPING SETS ((region, smoker), (smoker, region))",
    "child, ROLLUP (region, smoker)",
    "ROLLUP (region), CUBE (smoker, child)",
    "GROUPING SETS (ROLLUP (child, region), CUBE (smoker), (smoker, child))",
    "GROUPING SETS ((region), (smoker))",
]


def of_duckdb(group, rows):
    """What DuckDB says, without groups of NULL, which a release does not have."""
    keys = [each for each in KEYS if each in group]
    counts = ["COUNT(*)", "CAST(SUM(age) AS BIGINT)", "COUNT(DISTINCT user_id)", "COUNT(DISTINCT note)"]
    sql = asked(group, ", ".join([*keys, *(f"GROUPING({each})" for each in keys), *counts]))
    with duckdb.connect() as connection:
        connection.register("visits", table(rows))
        found = connection.execute(sql).fetchall()
    width = len(keys)
    return Counter(
        row for row in found if all(row[at] is not None or row[width + at] for at in range(width)) and row[2 * width]
    )


def of_plan(who, memory, group, rows):
    keys = [each for each in KEYS if each in group]
    marks = [f"GROUPING({each})" for each in keys]
    what = ["COUNT(*)", "SUM(age)", "COUNT(DISTINCT user_id)", "COUNT(DISTINCT note)"]
    plan = who.plan(asked(group, ", ".join([*keys, *marks, *what])), Limits(groups=1000, search=0))
    integers = exact_steps(plan, memory(table(rows)), SALT)
    by_kind = {each.kind: integers[plan.start(at)] for at, each in enumerate(plan.statistics)}
    held = postprocess.key_columns(plan)
    columns = [held[each.expression.number] for each in plan.question.outputs if isinstance(each.expression, Key)]
    columns += [by_kind[kind] for kind in ("rows", "sum", "units", "distinct")]
    shown = [tuple(column[at] for column in columns) for at in postprocess.shown_groups(plan)]
    return Counter(row for row in shown if row[2 * len(keys)])


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("group", GROUPS)
def test_wide_limits_give_the_integers_of_duckdbs_own_grouping_sets(group, accounting, asker, memory):
    who = asker(contribution=WIDE, accounting=accounting)
    rows = some_rows(random.Random(group), 300)
    assert of_plan(who, memory, group, rows) == of_duckdb(group, rows)


@settings(max_examples=25)
@given(
    sets=st.lists(st.lists(st.sampled_from(KEYS), max_size=3), min_size=1, max_size=6),
    seed=st.integers(0, 10**6),
    count=st.sampled_from([0, 1, 7, 60]),
)
def test_any_sets_give_the_integers_of_duckdbs_own(sets, seed, count, asker, memory):
    group = f"GROUPING SETS ({', '.join('(' + ', '.join(each) + ')' for each in sets)})"
    rows = some_rows(random.Random(seed), count)
    assert of_plan(asker(contribution=WIDE), memory, group, rows) == of_duckdb(group, rows)


ALL = [
    "COUNT(*)",
    "COUNT(DISTINCT user_id)",
    "COUNT(DISTINCT note)",
    "SUM(change) FILTER (WHERE age > 40)",
    "AVG(amount)",
    "VAR_SAMP(change)",
    "CORR(age, amount)",
    "MEDIAN(age)",
]


@pytest.mark.parametrize("what", ALL)
def test_a_set_has_the_integers_that_it_has_alone(what, asker, memory):
    who = asker(contribution="rows = 2000")
    engine = memory(table(some_rows(random.Random(what), 200)))
    limits = Limits(groups=1000, search=0)
    whole = who.plan(asked("CUBE (child, region)", what), limits)
    found = exact_steps(whole, engine, SALT)
    assert len(whole.sets) == 4
    for number, keys in enumerate(["child, region", "child", "region", ""]):
        alone = who.plan(asked(keys, what) if keys else f"SELECT {what} FROM visits", limits)
        places = [at for at, cell in enumerate(whole.cells) if cell[0] == number]
        assert [measure.centre for measure in whole.measures] == [measure.centre for measure in alone.measures]
        for vector, own, measure in zip(found, exact_steps(alone, engine, SALT), whole.measures, strict=True):
            width = measure.width
            parts = [vector[at * width : (at + 1) * width] for at in places]
            assert [each for part in parts for each in part] == own


def test_a_row_without_a_key_counts_in_the_sets_that_do_not_have_it(visits, memory):
    rows = [{"user_id": 1, "region": None, "smoker": True}, {"user_id": 2, "region": "north", "smoker": None}]
    plan = visits.plan(asked("CUBE (region, smoker)"))
    (found,) = exact_steps(plan, memory(table(rows)), SALT)
    columns = postprocess.key_columns(plan)
    held = {tuple(column[at] for column in columns): value for at, value in enumerate(found) if value}
    assert held == {("north", None): 1, (None, True): 1, (None, None): 2}


# --- what one unit can change


def test_the_limit_over_all_sets_is_the_least_that_leaves_each_of_them_its_own():
    for limits in ([1], [10], [10, 10], [10] * 3, [7, 1, 30], [2**40] * 5):
        clip = combine_limits(limits, "l2")
        assert (clip - 1) ** 2 < sum(each**2 for each in limits) <= clip**2
        assert combine_limits(limits, "l1") == sum(limits)


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_a_unit_in_one_group_of_each_set_moves_more_than_one_set_and_no_more_than_claimed(
    accounting, neighbors, asker, memory
):
    who = asker(contribution="rows = 10", accounting=accounting, neighbors=neighbors)
    plan = who.plan(asked("ROLLUP (region, smoker)"))
    (measure,) = plan.measures
    assert measure.clip == (30 if accounting == "pure" else math.ceil(10 * math.sqrt(3)))
    others = some_rows(random.Random(4), 30, users=3)
    one = [{"user_id": 70, "region": "north", "smoker": True}] * 1000
    other = [{"user_id": 71, "region": "south", "smoker": False}] * 1000 if neighbors == "substitute" else []
    (seen,) = moved(plan, memory, others + one, others + other)
    one_set = measure.limit / 3 if accounting == "pure" else measure.limit**2 / 3
    # both are in the grand total, where they cancel out
    both = {"add-remove": 3, "substitute": 4}[neighbors]
    assert both * one_set * 0.9999 <= seen <= both * one_set
    assert seen > one_set * (2 if neighbors == "substitute" else 1)
    assert seen <= measure.sensitivity
    if (accounting, neighbors) == ("pure", "add-remove"):
        assert seen == measure.sensitivity


def test_a_unit_within_its_limit_in_each_set_is_left_as_it_is(asker, memory):
    plan = asker(contribution="rows = 10").plan(asked("CUBE (region, smoker)"))
    rows = [{"user_id": 1, "region": "north", "smoker": True}] * 10
    (found,) = exact_steps(plan, memory(table(rows)), SALT)
    assert sorted(found)[-4:] == [10] * 4 and sum(found) == 40
    (more,) = exact_steps(plan, memory(table(rows * 2)), SALT)
    assert more == found


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_ones_of_a_unit_are_limited_in_each_set(accounting, asker, memory):
    who = asker(contribution="rows = 10\ngroups = 2", accounting=accounting)
    plan = who.plan(asked("CUBE (region, smoker)", "COUNT(DISTINCT user_id)"))
    (measure,) = plan.measures
    assert plan.groups == 2
    assert measure.clip == measure.sensitivity == 2 + 2 + 2 + 1  # (region, smoker), (region), (smoker), ()
    rows = [{"user_id": 1, "region": region, "smoker": smoker} for region in REGIONS for smoker in (True, False)]
    (found,) = exact(plan, memory(table(rows)), SALT)
    by_set = Counter(int(cell[0]) for cell, value in zip(plan.cells, found, strict=True) for _ in range(value))
    assert by_set == {0: 2, 1: 2, 2: 2, 3: 1}
    assert moved(plan, memory, rows, []) == [measure.sensitivity]


def test_all_groups_count_where_no_set_has_more_than_the_limit(asker):
    assert asker(contribution="rows = 10\ngroups = 4").plan(asked("GROUPING SETS (region, smoker)")).groups is None


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_pairs_of_a_unit_are_limited_in_each_set(accounting, neighbors, asker, memory):
    who = asker(contribution="rows = 10\ngroups = 3", accounting=accounting, neighbors=neighbors)
    plan = who.plan(asked("GROUPING SETS (region, smoker, ())", "COUNT(DISTINCT note)"))
    (measure,) = plan.measures
    both = 2 if neighbors == "substitute" else 1
    assert measure.clip == 3
    assert measure.sensitivity == both * 3 * (3 if accounting == "pure" else 9)
    rows = [{"user_id": 1, "region": "east", "smoker": True, "note": f"n{at}"} for at in range(20)]
    other = [{"user_id": 2, "region": "west", "smoker": False, "note": f"m{at}"} for at in range(20)]
    assert moved(plan, memory, rows, []) == [measure.sensitivity // both]
    (seen,) = moved(plan, memory, rows, other)
    assert seen <= (measure.sensitivity if neighbors == "substitute" else 2 * measure.sensitivity)
    (note,) = plan.notes
    assert "at most 3 pairs of group and value in each grouping set count" in note


def test_limits_of_columns_and_of_rows_become_those_of_all_sets(visits):
    plan = visits.plan(asked("CUBE (region, smoker)", "SUM(amount), SUM(change), AVG(age)"), Limits(search=0))
    clips = {
        measure.written().split(" ")[0]: measure.clip
        for statistic in plan.statistics
        if statistic.kind == "sum"
        for measure in statistic.measures
    }
    assert clips == {"sum(amount)": 2 * 800_000, "sum(change)": 2 * 10 * 20}  # √4 times what holds for one set
    rows = next(each for each in plan.measures if each.kind == "rows")
    assert (rows.clip, rows.sensitivity) == (20, rows.limit**2)


def test_a_found_norm_holds_for_the_sets_that_have_its_column(asker):
    who = asker(contribution="")
    who = replace(who, table=replace(who.table, found=Found(100, norms={"region": 30, "smoker": 60})))
    alone = Limits(search=0)

    def clip(group):
        return who.plan(asked(group), alone).measures[0].clip

    assert clip("ROLLUP (region)") == math.ceil(math.hypot(30, 100))
    assert clip("GROUPING SETS (region, smoker)") == math.ceil(math.hypot(30, 60))
    assert clip("CUBE (region, smoker)") == math.ceil(math.sqrt(30**2 + 30**2 + 60**2 + 100**2))
    assert clip("GROUPING SETS (region, child)") == math.ceil(math.hypot(30, 100))
    pure = asker(contribution="", accounting="pure")
    pure = replace(pure, table=replace(pure.table, found=who.table.found))
    assert pure.plan(asked("ROLLUP (region)"), alone).measures[0].clip == 200


def test_a_question_looks_for_its_own_limit_where_that_of_some_set_is_not_known(asker):
    who = asker(contribution="")
    who = replace(who, table=replace(who.table, found=Found(100, norms={"region": 30, "smoker": 60})))
    assert not who.plan(asked("ROLLUP (region)")).searched
    assert not who.plan(asked("GROUPING SETS (region, smoker)")).searched
    assert who.plan(asked("ROLLUP (region, smoker)")).searched


AGGREGATES = [*ALL, "SUM(amount)", "COUNT(DISTINCT age)", "COVAR_POP(change, age)", "MAX(amount)"]


@settings(max_examples=40)
@given(
    what=st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=2, unique=True),
    group=st.sampled_from([*GROUPS, "ROLLUP (note)", "CUBE (note, region)", 'ROLLUP ("when", smoker)']),
    accounting=st.sampled_from(["zcdp", "pure"]),
    neighbors=st.sampled_from(["add-remove", "substitute"]),
    limits=st.sampled_from(["rows = 3", "rows = 10\ngroups = 2", "rows = 1\ngroups = 1", "rows = 20\ngroups = 5"]),
    spread=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_no_neighbours_differ_by_more_than_the_plan_claims(
    what, group, accounting, neighbors, limits, spread, seed, asker, memory
):
    who = asker(contribution=limits, accounting=accounting, neighbors=neighbors)
    plan = who.plan(asked(group if accounting == "zcdp" else GROUPS[seed % len(GROUPS)], ", ".join(what)))
    chance = random.Random(seed)
    others = some_rows(chance, 20, users=4)

    def rows(user):
        own = some_rows(chance, 40 if spread else 1)
        return [{**row, "user_id": user} for row in (own if spread else own * 60)]

    one, other = others + rows(70), others + (rows(71) if neighbors == "substitute" else [])
    if plan.selection is not None:
        found, two = (dict(zip(*weights(plan, memory(table(each)), SALT, 60.0), strict=True)) for each in (one, other))
        both = 2 if neighbors == "substitute" else 1
        assert sum((found.get(key, 0) - two.get(key, 0)) ** 2 for key in found | two) <= both * 2**40
        plan = replace(plan, cells=tuple(dict.fromkeys([*plan.cells, *found, *two])))
    for seen, measure in zip(moved(plan, memory, one, other), plan.measures, strict=True):
        assert seen <= measure.sensitivity, measure.written()
    for number, (a, b) in zip(
        plan.searched,
        zip(*(exact_lengths(plan, memory(table(each)), SALT) for each in (one, other)), strict=True),
        strict=True,
    ):
        measure = plan.measures[number]
        both = 2 if neighbors == "substitute" else 1
        if measure.kind == "distinct":
            both = ladder.sensitivity(measure.clip, plan.norm, plan.neighbors, measure.sets)
        assert length([x - y for x, y in zip(a, b, strict=True)], plan.norm) <= both


@pytest.mark.parametrize("most", [1, 2, 7, 10, 99, 2**61])
@pytest.mark.parametrize("sets", [1, 2, 3, 17])
def test_a_unit_that_an_index_calls_light_is_within_the_limit_over_all_sets(most, sets):
    assert combine_limits([indexed_sums.limit_per_set(most, sets, "l2")] * sets, "l2") <= most
    assert combine_limits([indexed_sums.limit_per_set(most, sets, "l1")] * sets, "l1") <= most
    assert combine_limits([indexed_sums.limit_per_set(most, sets, "l2") + 1] * sets, "l2") > most
    assert combine_limits([indexed_sums.limit_per_set(most, sets, "l1") + 1] * sets, "l1") > most


def test_an_index_gives_the_integers_of_the_general_way(asker, tmp_path):
    chance = random.Random(11)
    rows = some_rows(chance, 300, users=80)  # some four rows each, and a few people with many
    rows += [{**row, "user_id": 100 + at % 3} for at, row in enumerate(some_rows(chance, 150))]
    pq.write_table(table(rows), tmp_path / "visits.parquet")
    helped = 0
    for accounting in ("zcdp", "pure"):
        who = asker(contribution="rows = 6", accounting=accounting)
        plain = DuckDB(fingerprint([str(tmp_path / "visits.parquet")]), threads=1)
        layout = IndexFiles(tmp_path / accounting, who.table, plain.fingerprint)
        build_index(layout, plain)
        fast = DuckDB(plain.fingerprint, threads=1, layout=layout)
        for group in GROUPS[1:5]:
            for what in ("COUNT(*)", "AVG(age), SUM(change) FILTER (WHERE smoker)", "COUNT(*), MEDIAN(age)"):
                for limits in (Limits(), Limits(groups=2), Limits(search=0.1)):
                    plan = who.plan(asked(group, what), limits)
                    index = require(statements.valid_index(plan.table, fast))
                    helped += bool(indexed_sums.statement(plan, index, fast, SALT))
                    assert exact(plan, fast, SALT) == exact(plan, plain, SALT), (group, what, limits)
                    if plan.searched:
                        assert exact_lengths(plan, fast, SALT) == exact_lengths(plan, plain, SALT)
    assert helped >= 24


def test_each_period_has_its_own_vector(asker, memory):
    who = asker(period='period = { column = "when", every = "month" }', contribution="rows = 2")
    plan = who.plan(asked("ROLLUP (region)"))
    rows = [{"user_id": 1, "region": "west", "when": date(2025, month, 1)} for month in (1, 2, 3) for _ in range(9)]
    (found,) = exact_steps(plan, memory(table(rows)), SALT)
    # in each month 9 rows in both sets: scaled to the norm 3 = ⌈2√2⌉
    assert sorted(map(float, found)) == pytest.approx([0, 0, 0, *[3 * 3 / math.sqrt(2)] * 2], rel=1e-3)


# --- groups that are not public


def test_keys_are_found_in_the_sets_that_have_hidden_ones_and_all_others_are_answered(asker, memory):
    plan = asker(contribution="rows = 4").plan(asked("CUBE (region, note)", "region, note, GROUPING(note), COUNT(*)"))
    selection = require(plan.selection)
    assert plan.sets == ((0, 1), (0,), (1,), ())  # note, region
    assert [plan.sets[each] for each in selection.sets] == [(0, 1), (0,)]
    assert {plan.sets[int(cell[0])] for cell in plan.cells} == {(1,), ()}
    rows = [{"user_id": at, "region": "north", "note": "often"} for at in range(600)]
    rows.append({"user_id": 9999, "region": "south", "note": "once"})
    engine = memory(table(rows))
    cells, weighed = weights(plan, engine, SALT, 60.0)
    assert {cell[0] for cell in cells} == {0.0, 1.0} and len(cells) == 4
    assert set(weighed) == {600 * math.floor(2**20 / math.sqrt(2)), math.floor(2**20 / math.sqrt(2))}
    answer = Answer.read(plan, measure_plan(plan, price_plan(plan, 40.0, 1e-4), engine, SALT, 60.0), 0.95)
    shown = {tuple(row[:3]): row[3] for row in answer.table().rows}
    assert set(shown) == {
        ("north", "often", 0),
        (None, "often", 0),
        *((region, None, 1) for region in REGIONS),
        (None, None, 1),
    }
    # ε = 40: far from what 100 rows are
    assert all(abs(shown[each] - 600) < 100 for each in [("north", "often", 0), (None, "often", 0), (None, None, 1)])


def test_a_unit_weighs_on_the_keys_of_all_hidden_sets_together(asker):
    who = asker(contribution="rows = 4\ngroups = 3")
    assert require(who.plan(asked("note")).selection).cap == 3
    assert require(who.plan(asked("ROLLUP (note)")).selection).cap == 3
    assert require(who.plan(asked("ROLLUP (note, region)")).selection).cap == 6
    assert require(who.plan(asked("CUBE (note, region, smoker)")).selection).cap == 12


def test_keys_that_are_not_public_are_refused_under_pure(asker):
    error = asker(accounting="pure").error(asked("ROLLUP (note)"))
    assert isinstance(error, QuestionRefusedError) and "note" in error.message


# --- what is shown

SIX = "SELECT region, smoker, COUNT(*) AS n FROM visits GROUP BY ROLLUP (region, smoker)"


def released(who, memory, sql, rows=None):
    plan = who.plan(sql)
    engine = memory(table(rows if rows is not None else some_rows(random.Random(3), 100)))
    return Answer.read(plan, measure_plan(plan, price_plan(plan, 1.0), engine, SALT, 60.0), 0.95).table()


def keys_of(found, width=2):
    return [row[:width] for row in found.rows]


def test_the_answer_is_in_the_order_that_was_asked_for(visits, memory):
    found = keys_of(released(visits, memory, SIX))
    assert found == [
        *((region, smoker) for region in REGIONS for smoker in (False, True)),
        *((region, None) for region in REGIONS),
        (None, None),
    ]
    other = "SELECT region, smoker, COUNT(*) FROM visits GROUP BY GROUPING SETS ((), (smoker, region))"
    assert keys_of(released(visits, memory, other)) == [
        (None, None),
        *((region, smoker) for smoker in (False, True) for region in REGIONS),
    ]


@pytest.mark.parametrize("group", ["GROUPING SETS (region, (), region)", "GROUPING SETS (region, region)"])
def test_a_set_that_is_asked_twice_is_shown_twice_from_one_release(group, visits, memory):
    plan = visits.plan(asked(group, "region, COUNT(*)"))
    found = released(visits, memory, asked(group, "region, COUNT(*)")).rows
    once = group.count("()")
    assert len(found) == 8 + once and len(plan.cells) == 4 + once
    assert found[:4] == found[4 + once :]
    assert preview_plan(plan, (1.0,), 0.95, {}).groups == 8 + once


def test_grouping_tells_a_set_from_a_value(visits, memory):
    sql = (
        "SELECT COALESCE(region, 'all') AS r, smoker, GROUPING(region), GROUPING(smoker, region) AS g, "
        "GROUPING_ID(region, smoker) + 1, COUNT(*) FROM visits GROUP BY CUBE (region, smoker)"
    )
    found = released(visits, memory, sql)
    assert found.keys == (True,) * 5 + (False,)
    marks = {(row[0] == "all", row[1] is None): row[2:5] for row in found.rows}
    assert marks == {
        (False, False): (0, 0, 1.0),
        (False, True): (0, 2, 2.0),
        (True, False): (1, 1, 3.0),
        (True, True): (1, 3, 4.0),
    }
    assert found.noise_error[0][:5] == (None,) * 5


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("HAVING GROUPING(region) = 1", [(None, None)]),
        ("HAVING GROUPING(smoker) = 1 AND GROUPING(region) < 1", [(region, None) for region in REGIONS]),
        ("HAVING region = 'east'", [("east", False), ("east", True), ("east", None)]),
        ("HAVING region IS NULL", [(None, None)]),
        ("ORDER BY GROUPING(region, smoker) DESC LIMIT 2", [(None, None), ("north", None)]),
        ("ORDER BY GROUPING(smoker) DESC, region NULLS FIRST LIMIT 2", [(None, None), ("east", None)]),
        ("HAVING smoker ORDER BY region", [("east", True), ("north", True), ("south", True), ("west", True)]),
    ],
)
def test_having_and_order_see_the_sets(rest, expected, visits, memory):
    assert keys_of(released(visits, memory, f"{SIX} {rest}")) == expected
    assert visits.plan(f"{SIX} {rest}").canonical() == visits.plan(SIX).canonical()


def test_without_sets_grouping_is_zero(visits, memory):
    found = released(visits, memory, asked("region", "region, GROUPING(region), COUNT(*)"))
    assert [row[1] for row in found.rows] == [0] * 4


def test_whole_keys_stay_whole_and_dates_stay_dates(visits, memory):
    found = released(visits, memory, asked('CUBE (child, MONTH("when"))', 'child, MONTH("when"), COUNT(*)'))
    assert {type(each) for row in found.rows for each in row[:2]} == {int, type(None)}
    dates = released(visits, memory, asked("ROLLUP (DATE_TRUNC('month', \"when\"))", "1 AS one, COUNT(*)"))
    assert len(dates.rows) == 13


# --- price and preview


def test_a_preview_tells_the_error_of_every_group(visits):
    plan = visits.plan("SELECT region, COUNT(*), SUM(age), GROUPING(region) FROM visits GROUP BY ROLLUP (region)")
    price = price_plan(plan, 0.5)
    found = preview_plan(plan, (0.5,), 0.95, {})
    by_kind = {
        each.kind: total(NoisySum(0, price.mechanisms[plan.start(at)].noise), measure.step, 0.95, bits=measure.bits)
        for at, each in enumerate(plan.statistics)
        for measure in each.measures
    }
    expected = (None, by_kind["rows"].noise_error, by_kind["sum"].noise_error, None)
    assert found.choices[0].noise_error == expected
    assert found.groups == 5
    assert sum((each.share + each.search for each in plan.measures), Fraction(0)) == 1


def test_more_sets_have_more_noise_by_the_root_of_their_number(asker):
    who = asker(contribution="rows = 1000")

    def deviation(group):
        plan = who.plan(asked(group))
        return math.sqrt(noise_variance(price_plan(plan, 0.5).mechanisms[0].noise)) / 2 ** plan.measures[0].bits

    assert deviation("CUBE (region, smoker)") == pytest.approx(2 * deviation("region"), rel=1e-3)
    assert deviation("ROLLUP (region)") == pytest.approx(math.sqrt(2) * deviation("region"), rel=2e-3)


def test_averages_are_previewed_for_the_set_with_most_groups(visits):
    who = replace(visits, table=replace(visits.table, found=Found(10, units=1000, row_count=8000)))
    assert preview_plan(who.plan(asked("CUBE (region, smoker)", "AVG(age)")), (1.0,), 0.95, {}).rows == 1000
    assert preview_plan(who.plan(asked("region, smoker", "AVG(age)")), (1.0,), 0.95, {}).rows == 1000


def test_a_plan_says_its_sets(visits):
    plan = visits.plan(asked("ROLLUP (region, smoker)", "COUNT(*), COUNT(DISTINCT note)"))
    text = describe_plan(plan, price_plan(plan, 0.5))
    assert "3 sets: (region, smoker), (region), () (13, all public)" in text
    assert "at most 2 of the groups of each set" in text and "pairs of group and value of a unit in each set" in text


# --- what is refused


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        (
            asked("CUBE (region, smoker, child, age, note, amount, change)"),
            QuestionRefusedError,
            "too many grouping sets",
        ),
        (asked(", ".join(["ROLLUP (region)"] * 7)), QuestionRefusedError, "too many grouping"),
        (asked(f"GROUPING SETS ({', '.join(['()'] * (MOST_SETS + 1))})"), QuestionRefusedError, "too many grouping"),
        (asked('CUBE (age, "when", region)'), None, ""),  # too many to be public, so they are found
        (asked('ROLLUP ((age, "when"), child)'), QuestionRefusedError, "too many groups"),
        (asked("ROLLUP (region)", "GROUPING(smoker), COUNT(*)"), QuestionRefusedError, "GROUPING takes keys"),
        (asked("ROLLUP (region)", "GROUPING(region, 1), COUNT(*)"), QuestionRefusedError, "GROUPING takes keys"),
        ("SELECT GROUPING(region), COUNT(*) FROM visits", QuestionRefusedError, "GROUPING takes keys"),
        (asked("ROLLUP (region)", "GROUPING(region)"), QuestionRefusedError, "no aggregate"),
        (asked("ROLLUP (region)", "SUM(GROUPING(region))"), QuestionRefusedError, "inside an aggregate"),
        (asked("ROLLUP (region)", "COUNT(*) FILTER (WHERE GROUPING(region) = 1)"), QuestionRefusedError, "aggregate"),
        (asked("ROLLUP (GROUPING(region))"), QuestionRefusedError, "cannot be a key"),
        (asked("ROLLUP (COUNT(*))"), QuestionRefusedError, "cannot be a key"),
        (asked("ROLLUP (region, ROLLUP (smoker))"), SqlSyntaxError, "not SQL"),
        (asked("ROLLUP (region)", "smoker, COUNT(*)"), QuestionRefusedError, "outside an aggregate"),
        (asked("ROLLUP (region)", f"GROUPING({', '.join(['region'] * 51)}), COUNT(*)"), InputError, "GROUPING takes"),
        (asked("ROLLUP (7)"), InputError, "no column 7"),
        (asked("ROLLUP (region"), SqlSyntaxError, "not SQL"),
        ("SELECT COUNT(*) FROM visits WHERE GROUPING(region) = 1 GROUP BY region", QuestionRefusedError, "in WHERE"),
        (asked("region", "ROLLUP(region), COUNT(*)"), DaleniusError, ""),
    ],
)
def test_what_makes_no_sense_or_too_much_is_refused(sql, kind, said, visits):
    if kind is None:
        assert visits.plan(sql).selection is not None
        return
    error = visits.error(sql)
    assert isinstance(error, kind) and said in error.message and error.why and error.fix
