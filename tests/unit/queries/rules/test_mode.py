"""MODE(x): one noisy histogram per group, of which the largest count is shown."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dalenius.measuring._exact import exact
from dalenius.measuring.statistics.mode import keys_of
from dalenius.measuring.trees import SCALE
from dalenius.queries.answering import Answer, coarsen, measure_plan
from dalenius.queries.rules.price import price_plan

SALT = "salt"
ARROW = pa.schema(
    [
        ("user_id", pa.int64()),
        ("region", pa.string()),
        ("age", pa.int64()),
        ("smoker", pa.bool_()),
        ("child", pa.int64()),
    ]
)
REGIONS = ["north", "south", "east", "west"]


def drawn(seed: int, size: int = 300) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {
            "user_id": at,
            "region": chance.choice([None, "mars", *REGIONS]),
            "age": chance.choice([None, 18, 40, 41, 90]),
            "smoker": chance.choice([None, True, False]),
            "child": chance.choice([0, 1, 2, 9]),
        }
        for at in range(size)
    ]


def table(rows):
    return pa.Table.from_pylist(rows, ARROW)


@pytest.mark.parametrize("what", ["region", "age", "smoker", "LEFT(region, 1)", "age // 10", "child"])
@pytest.mark.parametrize("keys", ["", "smoker"])
def test_counts_are_those_of_each_value(what, keys, asker, memory):
    rows = drawn(3)
    plan = asker(contribution="rows = 5").plan(
        f"SELECT MODE({what}) FROM visits" + (f" GROUP BY {keys}" if keys else "")
    )
    found = np.array(exact(plan, memory(table(rows)), SALT)[0]).reshape(len(plan.cells), -1)
    places = keys_of(plan.statistics[0])

    def value(row):
        region = row["region"] if row["region"] in REGIONS else None
        return {
            "region": region,
            "LEFT(region, 1)": region and region[:1],
            "age": row["age"],
            "age // 10": row["age"] and row["age"] // 10,
            "smoker": row["smoker"],
            "child": row["child"] if row["child"] in (0, 1, 2) else 0,
        }[what]

    for cell, counts in zip(plan.cells, found, strict=True):
        expected = Counter(value(row) for row in rows if not keys or row["smoker"] == cell[0])
        del expected[None]
        shown = {key: count // SCALE for key, count in zip(places, counts.tolist(), strict=True) if count}
        assert shown == dict(expected)


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_a_unit_changes_the_counts_by_no_more_than_is_claimed(accounting, neighbors, asker, memory):
    plan = asker(neighbors=neighbors, accounting=accounting, contribution="rows = 3").plan(
        "SELECT MODE(region) FROM visits GROUP BY smoker"
    )
    power = 2 if accounting == "zcdp" else 1
    (measure,) = plan.measures
    lengths = []
    for rows in (drawn(1), drawn(2, 3), [{"region": "north", "smoker": True}] * 40):
        one = table([{**row, "user_id": 7} for row in rows])
        lengths.append(sum(abs(each) ** power for each in exact(plan, memory(one), SALT)[0]))
    claimed = (3 * SCALE) ** power
    assert max(lengths) <= claimed <= 1.001 * max(lengths)
    # entries are not negative, so that exchanging a unit moves at most twice that, as a square or a sum
    assert measure.sensitivity == claimed * (2 if neighbors == "substitute" else 1)


def test_with_an_earlier_answer_of_somebody_else_it_is_still_a_histogram(asker, memory):
    rows = [{"user_id": at, "region": REGIONS[at % 5 % 4], "smoker": at % 2 == 0} for at in range(2000)]
    plan = asker(contribution="rows = 1").plan("SELECT smoker, MODE(region) FROM visits GROUP BY smoker")
    content = measure_plan(plan, price_plan(plan, 1.0), memory(table(rows)), SALT, 60.0)
    other = coarsen(plan, price_plan(plan, 0.5), content)
    for each in (content, other):
        answer = Answer.read(plan, each, 0.95)
        assert [row[1] for row in answer.table().rows] == ["north", "north"]
        assert answer.table().noise_error == ((None, None), (None, None))
        assert any("MODE(region)" in note and "row" in note for note in answer.notes)


def test_equal_counts_go_to_the_first_key_and_none_to_nothing(asker, memory):
    plan = asker(contribution="rows = 1").plan("SELECT MODE(region) FROM visits GROUP BY smoker")
    rows = [{"user_id": at, "region": ["west", "south"][at % 2], "smoker": True} for at in range(40)]
    (counts,), price = exact(plan, memory(table(rows)), SALT), price_plan(plan, 1000.0)
    found = Answer(plan, 1000.0, None, ((price.mechanisms[0].noise, tuple(counts)),), 0.95).table()
    assert dict(zip((cell[0] for cell in plan.cells), (row[0] for row in found.rows), strict=True)) == {
        False: None,
        True: "south",
    }


def test_the_right_value_is_shown_nearly_always_where_it_leads_by_more_than_the_note_says(asker, memory):
    """By 95%: of 200 draws fewer than 170 have a chance below 1e-8."""
    plan = asker(contribution="rows = 1").plan("SELECT MODE(region) FROM visits")
    price = price_plan(plan, 0.5)
    note = Answer(plan, 0.5, None, ((price.mechanisms[0].noise, (0,) * 4),), 0.95).notes[-1]
    lead = int(note.split("by up to about ")[1].split(" ")[0])
    counts = [SCALE * each for each in (1000, 1000 + lead, 5, 0)]
    right = 0
    for _ in range(200):
        noisy = tuple(price.mechanisms[0].release(counts).value.tolist())
        table_ = Answer(plan, 0.5, None, ((price.mechanisms[0].noise, noisy),), 0.95).table()
        right += table_.rows[0][0] == "south"
    assert right >= 170


def test_what_a_person_writes_as_places_is_not_taken_for_keys(asker):
    plan = asker(contribution="rows = 1").plan(
        "SELECT MODE(CASE WHEN region = 'north' THEN 0 WHEN region = 'south' THEN 1 END) FROM visits"
    )
    assert keys_of(plan.statistics[0]) == (0, 1)


def test_long_values_are_not_compared_with_many_keys(visits):
    error = visits.error('SELECT MODE(UPPER(LOWER(UPPER(LOWER(CAST("when" AS VARCHAR)))))) FROM visits')
    assert "GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1" in error.fix
