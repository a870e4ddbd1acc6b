"""Classes of many values each: told apart by runs and by short lists, of which DuckDB makes no joins."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, timedelta
from typing import Any

import pytest

from dalenius.curator import Curator
from dalenius.measuring.expressions import Call, Column, Type, walk
from dalenius.queries.workloads import attributes
from dalenius.queries.workloads.kind import plan_asked
from dalenius.queries.workloads.request import WorkloadAsk

FIRST, DAYS = date(2020, 1, 1), 1096
CODES = [f"{at % 30:02}-{at:03}" for at in range(300)]
WEEKS = "SELECT DATE_TRUNC('week', day) AS k, COUNT(*) AS n FROM stays GROUP BY ALL"
TENS = "SELECT LEFT(code, 2) AS k, COUNT(*) AS n FROM stays GROUP BY ALL"
DAYS_OF_WEEKS = "SELECT EXTRACT(dow FROM day) AS k, COUNT(*) AS n FROM stays GROUP BY ALL"
POLICY = f"""
[table]
name = "stays"
source = "stays.csv"
unit = "person"
[budget]
epsilon = 1e6
delta = 1e-6
[contribution]
rows = 1
[columns.day]
type = "date"
bounds = ["{FIRST}", "{FIRST + timedelta(DAYS - 1)}"]
[columns.code]
type = "category"
keys = {CODES}
[analysts.ana]
epsilon = 1e6
"""


@pytest.fixture(scope="module")
def stays(tmp_path_factory) -> tuple[Any, list[tuple[int, date, str]]]:
    folder, chance = tmp_path_factory.mktemp("classes"), random.Random(5)
    rows = [(at, FIRST + timedelta(chance.randrange(DAYS)), chance.choice(CODES)) for at in range(1000)]
    lines = [",".join(map(str, each)) for each in rows]
    (folder / "stays.csv").write_text("\n".join(["person,day,code", *lines, "1000,,", "1001,2020-05-05,?"]) + "\n")
    (folder / "stays.toml").write_text(POLICY)
    curator = Curator(folder / "home")
    curator.protect(folder / "stays.toml")
    return curator.analyst("ana"), rows


def told(release) -> dict[Any, int]:
    """Counts that are not 0; at this price they have no noise to speak of."""
    found = {row[0]: round(row[1]) for row in release.rows if row[0] is not None}
    return {key: count for key, count in found.items() if count}


def test_they_are_counted_as_they_are(stays):
    ana, rows = stays
    weeks, tens, days = ana.ask_many([WEEKS, TENS, DAYS_OF_WEEKS], epsilon=3e5).releases
    absent = 1  # a row without a code
    by_week = Counter(day - timedelta(day.weekday()) for _, day, _ in rows)
    by_week[date(2020, 5, 4)] += absent
    assert told(weeks) == by_week
    assert told(tens) == Counter(code[:2] for *_, code in rows)
    by_day = Counter((day.weekday() + 1) % 7 for _, day, _ in rows)
    by_day[2] += absent
    assert told(days) == by_day


@pytest.mark.parametrize("sql", [WEEKS, TENS])
def test_no_list_is_long_enough_for_a_join(stays, sql):
    ana, _ = stays
    plan = plan_asked(ana._asker, WorkloadAsk.of({"questions": [sql], "epsilon": 1.0})).plan
    keys = [key for block in plan.blocks for each in block.counted for key in each.plan.keys]
    lists = [
        len(part.arguments) - 1
        for key in keys
        for part in walk(key)
        if isinstance(part, Call) and part.function == "in"
    ]
    assert keys and all(length <= 4 for length in lists)


def test_a_class_of_scattered_days_is_a_list():
    column, domain = Column("x", Type.NUMBER), [float(each) for each in range(40)]
    one = attributes._held(column, [3.0, 4.0, 5.0, 9.0, None], domain)
    assert isinstance(one, Call) and {part.function for part in walk(one) if isinstance(part, Call)} == {
        "or", "and", "le", "eq", "is_null",
    }  # fmt: skip
    many = attributes._held(column, domain[::2], domain)
    lists = [part for part in walk(many) if isinstance(part, Call) and part.function == "in"]
    assert [len(each.arguments) for each in lists] == [5] * 5
