"""Groups of joined tables: those that the question and the public tables in it allow, and no others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.measuring.plan import Table
from dalenius.measuring.public import PublicTable, public_table
from dalenius.owner.protect import budget_of
from dalenius.queries import public_facts
from dalenius.queries.rules import plan_question
from dalenius.tables.policy import PublicSpec
from dalenius.tables.reading import read_text

POLICY = """
[table]
name = "people"
source = "/data/people.parquet"
unit = "person"
[budget]
epsilon = 3.0
delta = 1e-6
[columns.nation]
type = "integer"
bounds = [1, 9]
[columns.born]
type = "date"
bounds = ["1950-01-01", "1999-12-31"]
[columns.job]
type = "category"
keys = ["smith", "clerk"]
[contribution]
rows = 1
"""
NATIONS = {
    "code": [1, 2, 3, 4, 5],
    "name": ["Peru", "Kenya", "Chile", "Japan", None],
    "continent": [10, 20, 10, 30, 30],
    "tongue": ["Spanish", "Swahili", "Spanish", "Japanese", "Japanese"],
}
CONTINENTS = {"number": [10, 20, 30], "called": ["America", "Africa", "Asia"]}
JOINED = "FROM people JOIN nations ON nation = code"
BOTH = f"{JOINED} JOIN continents ON continent = number"


@pytest.fixture(scope="module")
def publics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PublicTable]:
    folder: Path = tmp_path_factory.mktemp("public")
    found = {}
    for name, columns in (("nations", NATIONS), ("continents", CONTINENTS)):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        found[name] = public_table(PublicSpec(name, (str(folder / f"{name}.parquet"),)))
    return found


def groups(publics: dict[str, PublicTable], rest: str, keys: str) -> list[tuple[object, ...]]:
    policy = read_text(POLICY)
    budget = budget_of(policy)
    assert budget is not None
    found = plan_question(
        f"SELECT {keys}, COUNT(*) {rest} GROUP BY {keys}", {"people": Table(policy, budget)}, None, publics
    )
    return list(found.cells)


@pytest.mark.parametrize(
    ("rest", "keys", "found"),
    [
        (JOINED, "name", [("Chile",), ("Japan",), ("Kenya",), ("Peru",)]),
        (f"{JOINED} WHERE tongue = 'Spanish'", "name", [("Chile",), ("Peru",)]),
        (f"{BOTH} WHERE called = 'America'", "name", [("Chile",), ("Peru",)]),
        (f"{BOTH} WHERE called <> 'America' AND job = 'smith'", "name", [("Japan",), ("Kenya",)]),
        # combinations that the public tables have, not all of them
        (BOTH, "name, called", [("Chile", "America"), ("Japan", "Asia"), ("Kenya", "Africa"), ("Peru", "America")]),
        (f"{JOINED} WHERE name = 'Peru' OR job = 'smith'", "name, job", [
            ("Chile", "smith"), ("Japan", "smith"), ("Kenya", "smith"), ("Peru", "clerk"), ("Peru", "smith"),
        ]),
        (f"{BOTH} WHERE called = 'Africa' AND born < DATE '1952-06-01'", "name, YEAR(born)", [
            ("Kenya", 1950.0), ("Kenya", 1951.0), ("Kenya", 1952.0),
        ]),
        # LEFT JOIN keeps people of nations that are not listed; their name is NULL, and that is no group
        ("FROM people LEFT JOIN nations ON nation = code AND tongue = 'Spanish'", "COALESCE(name, 'other')", [
            ("Chile",), ("Japan",), ("Kenya",), ("Peru",), ("other",),
        ]),
    ],
)  # fmt: skip
def test_only_possible_groups_are_answered(rest, keys, found, publics):
    assert sorted(groups(publics, rest, keys)) == sorted(found)


def test_two_occurrences_of_a_public_table_are_told_apart(publics):
    rest = """FROM people JOIN nations a ON nation = a.code JOIN nations b ON b.continent = a.continent
        WHERE (a.name = 'Peru' AND b.name = 'Chile') OR (a.name = 'Kenya' AND b.name = 'Kenya')"""
    assert groups(publics, rest, "a.name, b.name") == [("Kenya", "Kenya"), ("Peru", "Chile")]


def test_tables_that_would_make_too_many_rows_are_left_out(publics, monkeypatch):
    """Then a condition on them rules out nothing."""
    rest = f"{BOTH} WHERE called = 'America'"
    monkeypatch.setattr(public_facts, "MOST_ROWS", 4)
    assert len(groups(publics, rest, "tongue")) == 3
