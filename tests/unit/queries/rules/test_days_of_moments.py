"""A moment that begins a day meets a day: in joins with public tables of days, and in conditions."""

from __future__ import annotations

import pytest

from dalenius import Curator
from dalenius.errors import QuestionRefusedError

POLICY = """[table]
name = "trips"
source = "trips.csv"
unit = "rider"
[budget]
epsilon = 1e12
delta = 1e-6
[analysts.ana]
epsilon = 1e12
[columns.began]
type = "datetime"
bounds = ["2024-01-01T00:00:00", "2024-12-31T23:59:59"]
[columns.joined]
type = "date"
bounds = ["2024-01-01", "2024-12-31"]
[contribution]
rows = 2
[public]
tables = { holidays = "public/holidays.csv" }
"""
TRIPS = """rider,began,joined
1,2024-02-29 09:00:00,2024-02-01
1,2024-02-29 00:00:00,2024-02-01
2,2024-03-01 00:00:00,2024-03-01
3,2024-03-01 23:59:59,2024-02-29
4,,2024-03-01
"""


@pytest.fixture(scope="module")
def ana(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trips")
    (folder / "public").mkdir()
    (folder / "public/holidays.csv").write_text("day,name\n2024-02-29,leap\n2024-12-25,christmas\n")
    (folder / "trips.csv").write_text(TRIPS)
    (folder / "trips.toml").write_text(POLICY)
    curator = Curator(folder / "home")
    curator.protect(folder / "trips.toml")
    return curator.analyst("ana")


@pytest.mark.parametrize(
    "condition", ["h.day = DATE_TRUNC('day', t.began)", "DATE_TRUNC('day', t.began) = h.day", "h.day = t.began::DATE"]
)
def test_a_public_table_of_days_is_joined_on_the_day_of_a_moment(condition, ana):
    sql = f"SELECT h.name, COUNT(*) AS n FROM trips t JOIN holidays h ON {condition} GROUP BY h.name"
    assert sorted(ana.ask(sql, epsilon=1e9).rows) == [("christmas", 0), ("leap", 2)]


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("DATE_TRUNC('month', began) = joined", 3),
        ("DATE_TRUNC('hour', began) = joined", 1),
        ("began = joined", 1),
        ("DATE_TRUNC('day', began) = DATE '2024-03-01'", 2),
    ],
)
def test_a_moment_and_a_day_are_equal_at_midnight(condition, count, ana):
    assert ana.ask(f"SELECT COUNT(*) FROM trips WHERE {condition}", epsilon=1e9).value == count


def test_a_join_of_a_moment_with_days_is_refused_with_the_cast_that_works(ana):
    with pytest.raises(QuestionRefusedError, match=r"CAST\(a\.t AS DATE\) = holidays\.day"):
        ana.explain("SELECT COUNT(*) FROM trips t JOIN holidays h ON t.began = h.day")
