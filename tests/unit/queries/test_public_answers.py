"""An analyst and public tables: exact, free, without a trace in the ledger; and for those only who may ask at all."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kept import laid

from dalenius import Curator
from dalenius.errors import (
    DaleniusError,
    InputError,
    NotAllowedError,
    QuestionRefusedError,
    SourceChangedError,
)

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.ana]
epsilon = 1.0
[columns.age]
type = "integer"
bounds = [18, 90]
[contribution]
rows = 5
[public]
tables = { regions = { source = "regions.csv", key = "code" } }
"""
OTHER = """
[table]
name = "orders"
source = "orders.parquet"
unit = "user_id"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.ben]
epsilon = 1.0
[columns.age]
type = "integer"
bounds = [18, 90]
[contribution]
rows = 5
"""
TOTAL = "SELECT sum(pop) AS people FROM regions"


@pytest.fixture
def curator(place, monkeypatch):
    monkeypatch.chdir(place)
    return laid(place, "test_public_answers", lay)


def lay(folder):
    for name, ages in (("visits", [20, 30]), ("orders", [40, 50])):
        pq.write_table(pa.table({"user_id": [1, 2], "age": ages}), folder / f"{name}.parquet")
        (folder / f"{name}.toml").write_text(POLICY if name == "visits" else OTHER)
    (folder / "regions.csv").write_text("code,name,pop\n1,north,10\n2,south,20\n")
    found = Curator(folder / "home")
    found.protect(folder / "visits.toml", folder / "orders.toml", yes=True)
    return found


def state(curator):
    return [entry.number for entry in curator.ledger.entries()], curator.ledger.balance("visits").remaining_epsilon


def test_a_public_question_needs_no_price_and_leaves_no_trace(curator):
    before = state(curator)
    ana = curator.analyst("ana")
    release = ana.ask(TOTAL)
    assert (release.value, release.charge["epsilon"], release.public) == (30, 0.0, True)
    assert ana.ask(TOTAL, epsilon=0.5).charge["epsilon"] == 0.0
    assert ana.preview(TOTAL).public and ana.preview(TOTAL).columns == ("people",)
    assert state(curator) == before and ana.history() == []


@pytest.mark.parametrize("named", ["user_id", "code", "nobody"])
def test_nobody_is_a_unit_of_public_tables(curator, named):
    ana = curator.analyst("ana")
    clause = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, privacy_unit_column = {named})"
    for asked in (ana.ask, ana.preview):
        with pytest.raises(NotAllowedError, match=named) as caught:
            asked(f"{clause} sum(pop) AS people FROM regions")
        assert "public tables only" in caught.value.why and caught.value.at is not None
    assert ana.ask("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5) sum(pop) FROM regions").value == 30


def test_a_question_about_people_still_has_its_price(curator):
    ana = curator.analyst("ana")
    with pytest.raises(InputError, match="no price yet"):
        ana.ask("SELECT COUNT(*) FROM visits")
    assert ana.ask("SELECT COUNT(*) FROM visits", epsilon=0.1).charge["epsilon"] == 0.1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM regions, read_parquet('visits.parquet')",
        "SELECT * FROM regions, 'visits.parquet'",
        "SELECT age FROM visits, regions",
        "SELECT (SELECT max(age) FROM visits) FROM regions",
        "SELECT name FROM regions UNION ALL SELECT age::VARCHAR FROM visits",
        "WITH v AS (SELECT age FROM visits) SELECT v.age FROM v, regions",
        "SELECT * FROM regions, information_schema.tables",
        "SELECT * FROM orders",
    ],
)
def test_what_touches_anything_else_goes_the_usual_way_and_is_refused_without_a_price(curator, sql):
    before = state(curator)
    with pytest.raises(DaleniusError):
        curator.analyst("ana").ask(sql)
    assert state(curator) == before


def test_public_tables_are_for_those_who_have_an_allotment_beside_them(curator):
    for name in ("ben", "eve"):
        with pytest.raises((NotAllowedError, DaleniusError)) as caught:
            curator.analyst(name).ask(TOTAL, epsilon=0.1)
        assert caught.value.code in {"policy.not-allowed", "policy.unknown-table"}


def test_a_public_table_that_changed_is_not_read(curator, place):
    (place / "regions.csv").write_text("code,name,pop\n1,north,11\n2,south,20\n")
    with pytest.raises(SourceChangedError, match="'regions'"):
        curator.analyst("ana").ask(TOTAL)
    curator.protect("visits.toml", yes=True)
    assert curator.analyst("ana").ask(TOTAL).value == 31


def test_refusals_cost_nothing_and_say_so(curator):
    with pytest.raises(QuestionRefusedError) as caught:
        curator.analyst("ana").ask("SELECT now() FROM regions")
    assert caught.value.cost == "No budget was spent."
