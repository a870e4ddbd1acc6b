"""SUM(DISTINCT x) and AVG(DISTINCT x): each value once, and no unit moves them by more than its pairs can hold."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from dalenius.measuring._exact import exact
from dalenius.queries.preview import preview_plan

SALT = "salt"
ARROW = pa.schema([("user_id", pa.int64()), ("region", pa.string()), ("amount", pa.float64()), ("age", pa.int64())])
REGIONS = ["north", "south", "east", "west"]


def table(rows):
    return pa.Table.from_pylist(rows, ARROW)


@pytest.mark.parametrize("keys", [[], ["region"]])
def test_without_a_limit_they_are_what_different_values_add_up_to(keys, asker, memory):
    chance = random.Random(19)
    rows: list[dict[str, Any]] = [
        {
            "user_id": chance.choice([None, 1, 2, 3]),
            "region": chance.choice(REGIONS),
            "age": chance.choice([None, 20, 21, 35, 80]),
        }
        for _ in range(60)
    ]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    plan = asker(contribution="groups = 500").plan(f"SELECT SUM(DISTINCT age), AVG(DISTINCT age) FROM visits{by}")
    found = {
        measure.kind: (measure, vector)
        for statistic in plan.statistics
        if statistic.kind == "distinct_average"
        for measure, vector in zip(plan.measures, exact(plan, memory(table(rows)), SALT), strict=True)
        if measure in statistic.measures
    }
    own = [
        {row["age"] for row in rows if row["user_id"] and row["age"] and (not keys or row["region"] == cell[0])}
        for cell in plan.cells
    ]
    assert found["distinct_count"][1] == [len(each) for each in own]
    measure, vector = found["distinct_sum"]
    assert vector == [sum(each) - measure.centre * len(each) for each in own]


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_the_claimed_sensitivity_is_reached_and_never_passed(accounting, neighbors, asker, memory):
    plan = asker(neighbors=neighbors, accounting=accounting, contribution="groups = 3").plan(
        "SELECT SUM(DISTINCT LEAST(GREATEST(amount - 100, -5), 5)) FROM visits GROUP BY region"
    )
    (measure,) = plan.measures
    step, power = float(measure.step), 2 if accounting == "zcdp" else 1

    def rows(unit, region, values):
        return [{"user_id": unit, "region": region, "amount": 100 + each} for each in values]

    def sums(*parts):
        return exact(plan, memory(table([row for part in parts for row in part])), SALT)[0]

    # Values so near the bound that they round to it are different all the same.
    high, low = ([sign * (5 - at * step / 100) for at in range(9)] for sign in (1, -1))
    one = sums(rows(7, "north", high))
    other = sums(*([rows(8, "north", low)] if neighbors == "substitute" else []))
    assert measure.clip == 3
    assert sum(abs(a - b) ** power for a, b in zip(one, other, strict=True)) == measure.sensitivity
    spread = sums(*(rows(7, region, high[:2] + low[:2]) for region in REGIONS))
    assert sum(abs(each) ** power for each in spread) <= measure.sensitivity


def test_their_number_and_their_sum_are_about_the_same_values(asker, memory):
    plan = asker(contribution="groups = 2").plan("SELECT AVG(DISTINCT age) FROM visits")
    rows = [{"user_id": 1, "age": 20 + at} for at in range(30)]
    counted, summed = exact(plan, memory(table(rows)), SALT)
    alone = asker(contribution="groups = 2").plan("SELECT SUM(DISTINCT age) FROM visits")
    ((value,),) = exact(alone, memory(table(rows)), SALT)
    assert counted == [2]
    assert summed == [value - 2 * plan.measures[1].centre]


@pytest.mark.parametrize("what", ["SUM(DISTINCT age)", "AVG(DISTINCT age)"])
def test_a_preview_reckons_with_different_values(what, asker):
    plan = asker(contribution="groups = 2").plan(f"SELECT {what} FROM visits")
    found = preview_plan(plan, [0.1, 10.0], 0.95, {})
    errors = [each.noise_error[0] or 0.0 for each in found.choices]
    assert 0 < errors[1] < errors[0]
    assert any("DISTINCT age" in each and "left out" in each for each in found.notes)
