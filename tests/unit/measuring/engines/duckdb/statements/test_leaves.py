"""The statement of quantiles gives exactly the trees that a plain model says, and one unit moves them by no more."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from typing import Any, ClassVar

import pytest
from tests.unit.measuring.engines.duckdb.statements.test_compile import (
    CONDITIONS,
    KEYS,
    POLICY,
    SALT,
    chosen,
    cleaned,
    length,
    random_asker,
    random_rows,
    table_of,
    value,
)

from dalenius.errors import EngineFailedError, NotAllowedError, QuestionRefusedError
from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.engines.duckdb.statements.leaves import LeafCompiler
from dalenius.measuring.plan import Found, Limits, Table
from dalenius.measuring.trees import SCALE, TreeLayout, largest
from dalenius.queries.rules import plan_question

ASKED = [
    "MEDIAN(age)",
    "QUANTILE_CONT(change, 0.9)",
    "MIN(change) FILTER (WHERE age > 40)",
    "MAX(big)",
    "MEDIAN(-2 * odd)",
    "QUANTILE(age, 0.1) FILTER (WHERE smoker)",
]


def model(plan, rows):
    """For each measure its trees, one row at a time."""
    policy = plan.table.policy
    held: Any = defaultdict(lambda: defaultdict(list))  # unit → group → rows
    for raw in rows:
        unit = tuple(raw[name] for name in policy.unit)
        if None in unit:
            continue
        row = {name: cleaned(column, raw[name]) for name, column in policy.columns.items()}
        group = tuple(value(key, row) for key in plan.keys)
        if value(plan.where, row) is True and None not in group:
            held[unit][group].append(row)
    found = []
    for measure in plan.measures:
        layout = TreeLayout.of(measure)
        leaves = [[0] * layout.leaves for _ in plan.cells]
        for unit, groups in held.items():
            kept = chosen(unit, groups, plan.groups, SALT)
            counted = {group: [row for row in groups[group] if counts(measure, row)] for group in kept}
            k = max(1, length([len(each) for each in counted.values()], plan.norm))
            weight = SCALE * min(measure.clip, k) // k
            for group, own in counted.items():
                for row in own:
                    leaves[plan.cells.index(group)][leaf(measure, layout, row)] += weight
        found.append([node for each in leaves for node in tree(each)])
    return found


def counts(measure, row):
    return value(measure.where, row) is True and value(measure.value, row) is not None


def leaf(measure, layout, row):
    steps = math.floor(value(measure.value, row) / float(measure.step) + 0.5)
    return (min(max(steps, layout.low), layout.high) - layout.low) // layout.size


def tree(leaves):
    levels = [leaves]
    while len(levels[0]) > 1:
        levels.insert(0, [a + b for a, b in zip(levels[0][::2], levels[0][1::2], strict=True)])
    return [node for level in levels for node in level]


def size(vector, norm):
    return sum(each * each if norm == "l2" else abs(each) for each in vector)


@pytest.mark.parametrize("block", range(4))
def test_the_engines_trees_are_those_of_the_plain_model(block, asker, memory, rounds):
    seen = 0
    for case in range(max(12, rounds(200))):
        chance = random.Random(f"leaves {block} {case}")
        who, _ = random_asker(chance, asker)
        keys = chance.choice(KEYS)
        asked = ", ".join(chance.sample(ASKED, chance.randint(1, 3)))
        sql = f"SELECT {asked} FROM visits{chance.choice(CONDITIONS)}" + (f" GROUP BY {keys}" if keys else "")
        plan = who.plan(sql)
        rows = random_rows(chance, huge=case % 4 == 0)
        found = exact(plan, memory(table_of(rows)), SALT)
        assert found == model(plan, rows), (block, case, sql)
        seen += any(map(any, found))
    assert seen > 6  # most cases are not empty


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("keys", ["", " GROUP BY region", " GROUP BY odd"])
def test_one_unit_moves_a_tree_by_no_more_than_the_plan_says_and_a_heavy_one_by_nearly_that(
    accounting, neighbors, keys, asker, memory
):
    plan = asker(POLICY, accounting=accounting, neighbors=neighbors, contribution="rows = 7").plan(
        f"SELECT MEDIAN(age) FROM visits{keys}"
    )
    (measure,) = plan.measures
    base = {"day": 1, "odd": 1, "region": "north", "change": 0.0, "big": 0.0, "smoker": True}
    others = [{**base, "user_id": at, "age": 20.0 + at} for at in range(30)]
    young = [{**base, "user_id": 99, "age": 18.0}] * 1000
    old = [{**base, "user_id": 99, "age": 90.0}] * 1000
    without = [] if neighbors == "add-remove" else old
    one, other = (exact(plan, memory(table_of(others + more)), SALT)[0] for more in (young, without))
    moved = size([a - b for a, b in zip(one, other, strict=True)], plan.norm)
    # Two exchanged units share at least the root, so that what they move is a level or so below the bound.
    assert (0.8 if neighbors == "substitute" else 0.999) * measure.sensitivity < moved <= measure.sensitivity
    alone = exact(plan, memory(table_of(young)), SALT)[0]
    assert 0.999 * largest(measure, plan.norm) < size(alone, plan.norm) <= largest(measure, plan.norm)


def test_an_unbounded_weight_would_be_seen(asker, memory, monkeypatch):
    """Teeth: heavy units that pass for light ones."""
    weighed = LeafCompiler.weighed
    monkeypatch.setattr(LeafCompiler, "weighed", lambda self: f"SELECT * FROM ({weighed(self)}) WHERE FALSE")
    plan = asker(POLICY, contribution="rows = 7").plan("SELECT MEDIAN(age) FROM visits")
    rows = [{"user_id": 1, "day": 1, "age": 30.0, "odd": 0, "region": None, "change": None, "big": 0.0, "smoker": None}]
    found = exact(plan, memory(table_of(rows * 50)), SALT)[0]
    assert size(found, "l2") > plan.measures[0].sensitivity


def test_with_one_row_per_unit_every_unit_weighs_the_same(asker, memory):
    plan = asker(POLICY, contribution="rows = 40").plan("SELECT MEDIAN(age) FROM visits", Limits(rows=1))
    row = {"day": 1, "odd": 0, "region": None, "change": None, "big": 0.0, "smoker": None}
    rows = [{**row, "user_id": 1, "age": 30.0}] * 32 + [{**row, "user_id": 2, "age": 50.0}]
    layout = TreeLayout.of(plan.measures[0])
    leaves = exact(plan, memory(table_of(rows)), SALT)[0][-layout.leaves :]
    assert leaves[30 - 18] == leaves[50 - 18] == SCALE


def test_several_quantiles_of_a_column_share_one_tree_and_one_stored_answer(visits):
    one = visits.plan("SELECT MEDIAN(age), QUANTILE_CONT(age, 0.9), MIN(age), MAX(age) FROM visits")
    other = visits.plan("SELECT PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY age) FROM visits")
    assert len(one.measures) == 1 and one.measures[0].share == 1
    assert one.key(1) == other.key(1)
    assert (
        len(visits.plan("SELECT MEDIAN(age), MEDIAN(amount), MAX(age) FILTER (WHERE smoker) FROM visits").measures) == 3
    )


def test_words_for_one_quantile_are_one_aggregate(visits):
    words = [
        "MEDIAN(age)",
        "QUANTILE_CONT(age, 0.5)",
        "QUANTILE(age, 0.5)",
        "QUANTILE_DISC(age, 0.5)",
        "APPROX_QUANTILE(age, 0.5)",
        "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age)",
        "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age DESC)",
    ]
    assert len({visits.question(f"SELECT {each} FROM visits").aggregates for each in words}) == 1
    (ninth,) = visits.question("SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age DESC) FROM visits").aggregates
    assert ninth.parameter == 0.75


@pytest.mark.parametrize(
    "what",
    [
        "QUANTILE_CONT(age, 1.5)",
        "QUANTILE_CONT(age, -0.1)",
        "QUANTILE_CONT(age, amount)",
        "QUANTILE_CONT(age, [0.1, 2])",
        "QUANTILE(age)",
        "MEDIAN(DISTINCT age)",
        "MAX(age, 3)",
        "MAX(region)",
        'MIN("when")',
        "MEDIAN(smoker)",
        "MEDIAN(COUNT(*))",
        "QUANTILE_CONT(age, 0.5 ORDER BY age)",
        "PERCENTILE_CONT(0.5)",
        "PERCENTILE_CONT(age, 0.5) WITHIN GROUP (ORDER BY age)",
        "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, amount)",
        "MEDIAN(free)",
    ],
)
def test_what_is_no_quantile_of_a_bounded_number_is_refused_for_nothing(what, visits):
    error = visits.error(f"SELECT {what} FROM visits")
    assert error.exit_code in (2, 3) and "No budget was spent." in str(error)


def test_a_quantile_needs_a_limit_of_rows(asker):
    assert isinstance(asker(contribution="").error("SELECT MEDIAN(age) FROM visits"), NotAllowedError)


def test_leaves_get_fewer_with_more_groups_and_too_many_groups_are_refused(visits):
    alone = visits.plan("SELECT MEDIAN(amount) FROM visits").measures[0]
    by_day = visits.plan('SELECT MEDIAN(amount) FROM visits GROUP BY "when"').measures[0]
    assert TreeLayout.of(alone).leaves == 2**16 and TreeLayout.of(by_day).leaves == 2**8
    error = visits.error('SELECT MEDIAN(amount) FROM visits GROUP BY "when", age')
    assert isinstance(error, QuestionRefusedError) and "26,645" in error.message


def test_found_limits_are_lowered_for_trees_and_given_ones_are_not(asker):
    who = asker(contribution="")
    found = Found(rows=400, units=1000, row_count=5000)
    table = Table(who.table.policy, who.table.budget, None, found)
    ask = "SELECT MEDIAN(age) FROM visits"
    assert plan_question(ask, {"visits": table}).measures[0].clip == math.ceil(400 / math.sqrt(8))
    assert plan_question(ask, {"visits": table}, Limits(rows=300)).measures[0].clip == 300
    busy = Table(who.table.policy, who.table.budget, None, Found(rows=400, units=10, row_count=1500))
    assert plan_question(ask, {"visits": busy}).measures[0].clip == 300  # twice the average
    assert asker(contribution="rows = 400").plan(ask).measures[0].clip == 400


def test_an_engine_that_gives_a_leaf_that_is_none_fails_instead_of_answering(visits):
    class Broken(Measuring):
        scan = "rows"
        columns: ClassVar[dict[str, str]] = {}
        index = None

        def __init__(self, row):
            self.row = row

        def run(self, sql, *, seconds=60.0):
            return [self.row]

    plan = visits.plan("SELECT MEDIAN(age) FROM visits")
    for row in ((0, None, 1), (0, 3, None), (0, 128, 1), (0, -1, 1)):
        with pytest.raises(EngineFailedError):
            exact(plan, Broken(row), SALT)
