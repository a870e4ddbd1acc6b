"""A policy is taken exactly as written, or refused with the place, the reason and what to do."""

from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import PolicyInvalidError, SourceUnavailableError
from dalenius.tables import Bounds, BudgetSpec, Kind, Period, Time, read_file, read_text


def test_the_policy_of_the_manual_is_accepted_as_written(visits, tmp_path):
    (tmp_path / "visits.toml").write_text(visits)
    policy = read_file(tmp_path / "visits.toml")
    assert policy.name == policy.dataset == "visits"
    assert policy.source == (str(tmp_path / "visits.parquet"),)
    assert policy.unit == ("user_id",) and policy.neighbors is Neighbors.ADD_REMOVE
    assert policy.budget == BudgetSpec(3.0, 1e-6, "zcdp", None)
    assert policy.analysts == {"ana": 1.0}
    assert policy.columns["amount"].step == Fraction(1, 100)  # exact, not the nearest double
    assert policy.columns["age"].step == 1 and policy.columns["age"].summable
    assert policy.columns["when"].bounds == Bounds(date(2025, 1, 1), date(2025, 12, 31))
    assert (policy.contribution.rows, policy.contribution.groups) == (300, 8)
    assert policy.contribution.totals == {"amount": 20000}


def test_everything_beyond_the_example_is_read(visits, tmp_path):
    (tmp_path / "codes.csv").write_text("code,words\nDE,Germany\nFR,France\n,nobody\n")
    policy = read_text(
        visits.replace('neighbors = "add-remove"', 'dataset = "shop"\nneighbors = "substitute"')
        .replace('unit = "user_id"', 'unit = ["user_id", "day"]')
        .replace('accounting = "zcdp"', 'accounting = "zcdp"\nperiod = { column = "when", every = "month" }')
        + """
[columns.country]
type = "category"
keys = { file = "codes.csv", column = "code" }
[columns.smoker]
type = "boolean"
default = false
[columns.at]
type = "datetime"
zone = "Europe/Berlin"
bounds = [2025-01-01T00:00:00, "2025-12-31T23:59:59"]
[columns.note]
type = "text"
[columns.share]
type = "number"
bounds = [0, 1]
default = 0.5
[time]
answer = 1.0
cap = 60
[anonymity]
identifiers = ["name"]
quasi = ["age", "zip", "sex"]
sensitive = ["diagnosis"]
hierarchies = { zip = "zip.csv", age = { width = 5, levels = 4 }, sex = "suppress" }
weights = { age = 2, zip = 0.5 }
""",
        tmp_path,
    )
    assert policy.dataset == "shop" and policy.neighbors is Neighbors.SUBSTITUTE and policy.unit == ("user_id", "day")
    assert policy.budget is not None and policy.budget.period == Period("when", "month")
    assert policy.columns["country"].keys == ("DE", "FR")
    assert policy.columns["smoker"].default is False and policy.columns["smoker"].public_keys == (False, True)
    assert policy.columns["at"].zone == "Europe/Berlin"
    assert policy.columns["at"].bounds == Bounds(
        datetime.fromisoformat("2025-01-01T00:00:00"), datetime.fromisoformat("2025-12-31T23:59:59")
    )
    assert policy.columns["share"].step == Fraction(1, 10**6) and policy.columns["share"].default == Fraction(1, 2)
    assert not policy.columns["note"].summable
    assert policy.time == Time(1.0, 60.0)
    assert policy.anonymity == {
        "identifiers": ["name"],
        "quasi": ["age", "zip", "sex"],
        "sensitive": ["diagnosis"],
        "hierarchies": {"zip": str(tmp_path / "zip.csv"), "age": {"width": 5, "levels": 4}, "sex": "suppress"},
        "weights": {"age": 2, "zip": Fraction(1, 2)},
    }
    (tmp_path / "codes.csv").unlink()
    assert read_text(policy.text) == policy  # the text in force needs no other file


def test_a_table_that_joins_a_data_set_may_leave_the_budget_to_another(visits):
    start, end = visits.index("[budget]"), visits.index("[columns.age]")
    bare = visits[:start] + visits[end:]
    with pytest.raises(PolicyInvalidError, match="budget: this is missing"):
        read_text(bare)
    assert read_text(bare.replace("[table]", '[table]\ndataset = "shop"')).budget is None


MISTAKES = [
    # what to replace, by what, the place, and a word of the fix or reason
    ("bounds = [18, 90]", "bound = [18, 90]", "columns.age.bound", "bounds"),
    ("[contribution]", "[contributions]", "contributions", "contribution"),
    ('unit = "user_id" ', 'untis = "user_id" ', "table.untis", "unit"),
    ("rows = 300", "row = 300", "contribution.row", "rows"),
    ('type = "integer"', 'type = "interger"', "columns.age.type", "integer"),
    ('type = "integer"', "", "columns.age.type", ""),
    ('name = "visits"', "", "table.name", ""),
    ('name = "visits"', 'name = "my visits"', "table.name", "letters"),
    ('name = "visits"', 'name = "../visits"', "table.name", "letters"),
    ('name = "visits"', "name = 3", "table.name", "text"),
    ('source = "visits.parquet"', "source = []", "table.source", ""),
    ('source = "visits.parquet"', 'source = "s3://bucket/x.parquet"', "table.source", "network"),
    ('unit = "user_id"', "unit = []", "table.unit", ""),
    ('unit = "user_id"', 'unit = ["a", "a"]', "table.unit", "twice"),
    ('"add-remove"', '"add-remov"', "table.neighbors", "add-remove"),
    ('accounting = "zcdp"', 'accounting = "rdp"', "budget.accounting", "zcdp"),
    ("epsilon = 3.0", 'epsilon = "3"', "budget.epsilon", ""),
    ("epsilon = 3.0", "epsilon = true", "budget.epsilon", ""),
    ("epsilon = 3.0", "epsilon = nan", "budget.epsilon", ""),
    ("epsilon = 3.0", "epsilon = inf", "budget.epsilon", ""),
    ("epsilon = 3.0", "epsilon = 1e999", "budget.epsilon", ""),
    ("epsilon = 3.0", "epsilon = 0", "budget.epsilon", ""),
    ("epsilon = 3.0", "epsilon = -1", "budget.epsilon", ""),
    ("epsilon = 3.0", "", "budget.epsilon", ""),
    ("epsilon = 3.0", "epsilon = 0.5", "analysts.ana.epsilon", "whole budget"),
    ("delta = 1e-6", "delta = 0", "budget.delta", "pure"),
    ("delta = 1e-6", "delta = 1.0", "budget.delta", ""),
    ("delta = 1e-6", "delta = -1e-6", "budget.delta", ""),
    ("delta = 1e-6", "delta = false", "budget.delta", ""),
    ('"zcdp"', '"pure"', "budget.delta", "never fails"),
    ("delta = 1e-6", "delta = 1e-6\nselection = 0", "budget.selection", "0.5"),
    ("delta = 1e-6", "delta = 1e-6\nselection = 1", "budget.selection", "0.5"),
    ("delta = 1e-6", "delta = 1e-6\nselection = -0.5", "budget.selection", "0.5"),
    ("delta = 1e-6", "delta = 1e-6\nselection = nan", "budget.selection", ""),
    ("delta = 1e-6", "delta = 1e-6\nselection = true", "budget.selection", ""),
    ("delta = 1e-6", 'delta = 1e-6\nselection = "0.5"', "budget.selection", ""),
    ("delta = 1e-6", "delta = 1e-6\nselections = 0.5", "budget.selections", "selection"),
    ('delta = 1e-6\naccounting = "zcdp"', 'selection = 0.5\naccounting = "pure"', "budget.selection", "pure"),
    ("delta = 1e-6", 'delta = 1e-6\nperiod = { column = "age", every = "month" }', "budget.period.column", "date"),
    ("delta = 1e-6", 'delta = 1e-6\nperiod = { column = "when", every = "moon" }', "budget.period.every", "month"),
    ("bounds = [18, 90]", "bounds = [90, 18]", "columns.age.bounds", "smaller"),
    ("bounds = [18, 90]", "bounds = [18]", "columns.age.bounds", "low, high"),
    ("bounds = [18, 90]", "bounds = [18.5, 90]", "columns.age.bounds", "decimal point"),
    ("bounds = [18, 90]", 'bounds = ["18", "90"]', "columns.age.bounds", ""),
    ("bounds = [18, 90]", "bounds = [false, true]", "columns.age.bounds", ""),
    ("bounds = [18, 90]", "bounds = [18, 9999999999999999999999]", "columns.age.bounds", "64"),
    ("bounds = [18, 90]", "bounds = [18, 90]\nstep = 0.5", "columns.age.step", ""),
    ("bounds = [18, 90]", "bounds = [18, 90]\ndefault = 17", "columns.age.default", "outside"),
    ("bounds = [18, 90]", "bounds = [18, 90]\nkeys = [18, 91]", "columns.age.keys", ""),
    ("bounds = [18, 90]", "bounds = [18, 90]\nzone = 'UTC'", "columns.age.zone", "datetimes"),
    ("bounds = [0, 5000]", "bounds = [0, inf]", "columns.amount.bounds", "finite"),
    ("bounds = [0, 5000]", "bounds = [0, 1e200]", "columns.amount.bounds", ""),
    ("bounds = [0, 5000]", "bounds = [0, 1e999999999]", "columns.amount.bounds", ""),
    ("bounds = [0, 5000]", "bounds = [5, 5]", "columns.amount.bounds", "equal"),
    ("bounds = [0, 5000]", "", "columns.amount.step", "bounds"),
    ("step = 0.01", "step = 0", "columns.amount.step", "above 0"),
    ("step = 0.01", "step = -0.01", "columns.amount.step", "above 0"),
    ("step = 0.01", "step = 5001", "columns.amount.step", "larger"),
    ("step = 0.01", "step = 1e-20", "columns.amount.step", "double"),
    ("step = 0.01", 'step = "0.01"', "columns.amount.step", "quotes"),
    ("step = 0.01", "keys = [1.5]", "columns.amount.keys", ""),
    ('"west"]', '"west", "north"]', "columns.region.keys", "twice"),
    ('"west"]', "7]", "columns.region.keys", "quotes"),
    ('keys = ["north", "south", "east", "west"]', "keys = []", "columns.region.keys", "empty"),
    ('keys = ["north", "south", "east", "west"]', "bounds = [1, 2]", "columns.region.bounds", "keys"),
    ('keys = ["north", "south", "east", "west"]', 'keys = ["a"]\ndefault = "b"', "columns.region.default", "keys"),
    ('"2025-01-01"', '"2025-13-01"', "columns.when.bounds", "ISO"),
    ('"2025-01-01"', '"20250101"', "columns.when.bounds", "ISO"),
    ('"2025-01-01"', "5", "columns.when.bounds", ""),
    ('type = "date"', 'type = "datetime"', "columns.when.bounds", "time"),
    ('type = "date"', 'type = "datetime"\nzone = "Berlin"', "columns.when.zone", "IANA"),
    ("rows = 300", "rows = 0", "contribution.rows", ""),
    ("rows = 300", "rows = 1.5", "contribution.rows", ""),
    ("groups = 8", "groups = true", "contribution.groups", ""),
    ("totals = { amount = 20000 }", "totals = { amount = 0 }", "contribution.totals.amount", ""),
    ("totals = { amount = 20000 }", "totals = { region = 3 }", "contribution.totals.region", "age and amount"),
    ("totals = { amount = 20000 }", "totals = { amout = 3 }", "contribution.totals.amout", ""),
    ("totals = { amount = 20000 }", "totals = { age = 3.5 }", "contribution.totals.age", "whole"),
    ("totals = { amount = 20000 }", "[time]\nanswer = 3\ncap = 1", "time.cap", ""),
    ("totals = { amount = 20000 }", "[columns.Age]\ntype = 'text'", "columns.Age", "SQL"),
    ("[columns.age]", "[columns]\nx = 3\n[columns.age]", "columns.x", ""),
]


@pytest.mark.parametrize(("what", "by", "place", "word"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_is_named_with_its_place_and_a_way_out(visits, what, by, place, word):
    assert what in visits
    with pytest.raises(PolicyInvalidError) as caught:
        read_text(visits.replace(what, by))
    error = caught.value
    assert error.message.startswith(f"{place}:")
    assert word in f"{error.message} {error.why} {error.fix}"
    assert error.fix and error.exit_code == 2 and error.cost == "No budget was spent."


def test_text_that_is_not_toml_points_at_the_line(visits):
    with pytest.raises(PolicyInvalidError) as caught:
        read_text("[table]\nname = visits\n")
    assert caught.value.at is not None and caught.value.at.line == 2
    for broken in ("x = " + "[" * 100_000, "x = " + "9" * 10_000, "[table\n"):
        with pytest.raises(PolicyInvalidError, match="not TOML"):
            read_text(broken)


def test_files_that_cannot_be_read_are_named(tmp_path, visits):
    with pytest.raises(SourceUnavailableError, match=r"nowhere\.toml"):
        read_file(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PolicyInvalidError, match="not text"):
        read_file(tmp_path / "binary.toml")
    keys = 'keys = ["north", "south", "east", "west"]'
    with pytest.raises(SourceUnavailableError, match=r"codes\.csv"):
        read_text(visits.replace(keys, 'keys = { file = "codes.csv", column = "code" }'), tmp_path)
    (tmp_path / "codes.csv").write_text("code\nnorth\n")
    with pytest.raises(PolicyInvalidError, match="no column 'cod'") as caught:
        read_text(visits.replace(keys, 'keys = { file = "codes.csv", column = "cod" }'), tmp_path)
    assert "'code'" in caught.value.fix


def test_integer_keys_come_from_a_file_too(visits, tmp_path: Path):
    (tmp_path / "codes.csv").write_text("code\n20\n30\n")
    text = visits.replace("bounds = [18, 90]", 'keys = { file = "codes.csv", column = "code" }')
    assert read_text(text, tmp_path).columns["age"].keys == (20, 30)
    (tmp_path / "codes.csv").write_text("code\n20\nthirty\n")
    with pytest.raises(PolicyInvalidError, match=r"columns\.age\.keys"):
        read_text(text, tmp_path)


def test_every_kind_can_be_declared(visits):
    text = visits + "".join(f'\n[columns.c_{kind.value}]\ntype = "{kind.value}"\n' for kind in Kind)
    assert {column.kind for column in read_text(text).columns.values()} == set(Kind)
