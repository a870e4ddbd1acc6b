"""A draft shows names and types, and leaves to the owner what only the owner knows."""

import tomllib

import pytest

from dalenius.errors import InputError, PolicyInvalidError
from dalenius.tables import Kind, read_text
from dalenius.tables.compatibility import check_columns
from dalenius.tables.draft import EPSILONS, draft_policy, guess_kind, guess_unit
from dalenius.tables.practice import practice_rows, write_rows

SCHEMA = (
    ("visit_id", "BIGINT"),
    ("patient_id", "VARCHAR"),
    ("age", "UTINYINT"),
    ("region", "VARCHAR"),
    ("amount", "DECIMAL(10,2)"),
    ("admitted on", "DATE"),
    ("seen_at", "TIMESTAMP WITH TIME ZONE"),
    ("smoker", "BOOLEAN"),
    ("tags", "VARCHAR[]"),
    ("grade", "ENUM('secret value', 'b')"),
)


def test_a_draft_is_toml_that_check_refuses_until_it_is_filled_in():
    text = draft_policy("visits 2025.parquet", SCHEMA)
    tree = tomllib.loads(text)
    assert tree["table"]["name"] == "visits_2025" and tree["table"]["unit"] == "patient_id"
    assert set(tree["columns"]) == {name for name, _ in SCHEMA} - {"patient_id", "tags"}
    assert "secret value" not in text
    assert all(who in text and epsilon in text for who, epsilon, _ in EPSILONS)
    with pytest.raises(PolicyInvalidError, match=r"columns\.age\.bounds") as caught:
        read_text(text)
    assert "contribution.rows" in caught.value.message and "contribution.groups" not in caught.value.message


def test_a_draft_says_what_came_from_rows_and_that_limits_may_be_left_out():
    text = draft_policy("visits.csv", SCHEMA)
    words = " ".join(text.replace("#", " ").split())
    assert "(Of a CSV, the types are guessed from its first rows; nothing else comes from a row.)" in words
    assert "Without rows, 'dalenius protect' finds limits privately: once, for a part of the budget" in words
    assert "With fewer than some 2,000 units it cannot see much: then declare rows." in words


def test_a_filled_in_draft_is_accepted():
    text = draft_policy("visits.parquet", SCHEMA, keys={})
    for blank, value in (
        ('["FILL IN: lowest", "FILL IN: highest"]', "[0, 100]"),
        ('"FILL IN: rows of one unit that count, where you know what is usual; else delete this line"', "100"),
    ):
        text = text.replace(blank, value)
    days = '["FILL IN: earliest", "FILL IN: latest"]'
    text = text.replace(days, '["2025-01-01", "2025-12-31"]', 1)
    text = text.replace(days, '["2025-01-01T00:00:00", "2025-12-31T23:59:59"]')
    policy = read_text(text)
    assert policy.budget is not None and policy.budget.selection == 0.5
    assert read_text(text.replace("# selection = 0.5", "selection = 0.5")).version == policy.version
    check_columns(policy, SCHEMA)
    assert policy.columns["seen_at"].zone == "UTC" and policy.columns["grade"].kind is Kind.CATEGORY


def test_units_and_times_are_guessed_by_name_and_type():
    assert guess_unit(SCHEMA) == "patient_id"
    assert guess_unit((("x", "BIGINT"), ("id", "BIGINT"))) == "id"
    assert guess_unit((("user_id", "DATE"), ("x", "DOUBLE"))) is None
    assert guess_kind("date_of_visit", "VARCHAR") is Kind.DATE
    assert guess_kind("created_at", "VARCHAR") is Kind.DATETIME
    assert guess_kind("l", "INTEGER[]") is None
    assert 'unit = "FILL IN' in draft_policy("t.csv", (("x", "DOUBLE"),))


def test_the_owner_names_the_unit_and_code_lists():
    text = draft_policy("t.csv", SCHEMA, unit="visit_id", keys={"region": ("codes.csv", "code")})
    tree = tomllib.loads(text)
    assert tree["table"]["unit"] == "visit_id"
    assert tree["columns"]["region"]["keys"] == {"file": "codes.csv", "column": "code"}
    with pytest.raises(InputError, match="patientid") as caught:
        draft_policy("t.csv", SCHEMA, unit="patientid")
    assert "'patient_id'" in caught.value.fix


@pytest.mark.parametrize(
    ("replaced", "place"),
    [
        ((("user_id", "BIGINT"), ("userid", "BIGINT")), "table.unit"),
        ((("user_id", "BIGINT"), ("user_id", "STRUCT(a INTEGER)")), "table.unit"),
        ((("age", "BIGINT"), ("Age", "BIGINT")), "columns.age"),
        ((("age", "BIGINT"), ("age", "DATE")), "columns.age.type"),
        ((("region", "VARCHAR"), ("region", "DOUBLE")), "columns.region.type"),
        ((("when", "DATE"), ("when", "TIMESTAMP WITH TIME ZONE")), "columns.when.type"),
    ],
)
def test_a_policy_is_held_against_the_schema(visits, replaced, place):
    schema = (
        ("user_id", "BIGINT"),
        ("age", "BIGINT"),
        ("region", "VARCHAR"),
        ("amount", "DOUBLE"),
        ("when", "DATE"),
    )
    policy = read_text(visits)
    check_columns(policy, schema)
    before, after = replaced
    with pytest.raises(PolicyInvalidError) as caught:
        check_columns(policy, [after if each == before else each for each in schema])
    assert caught.value.message.startswith(place + ":")


def test_points_in_time_need_a_zone(visits):
    text = visits.replace('type = "date"', 'type = "datetime"').replace("-01-01", "-01-01T00:00:00")
    policy = read_text(text.replace("-12-31", "-12-31T00:00:00"))
    schema = dict.fromkeys(["user_id", "age", "region", "amount"], "VARCHAR") | {"when": "TIMESTAMP WITH TIME ZONE"}
    with pytest.raises(PolicyInvalidError, match=r"columns\.when\.zone"):
        check_columns(policy, schema.items())


def test_practice_rows_obey_the_policy(visits, tmp_path):
    policy = read_text(visits + '\n[columns.s]\ntype = "boolean"\n[columns.n]\ntype = "number"\n')
    rows = practice_rows(policy, 200)
    assert next(iter(rows)) == "user_id" and {len(each) for each in rows.values()} == {200}
    assert all(18 <= age <= 90 for age in rows["age"]) and set(rows["region"]) <= {"north", "south", "east", "west"}
    assert all(0 <= amount <= 5000 for amount in rows["amount"]) and 20 < len(set(rows["user_id"])) <= 66
    for name in ("p.csv", "p.parquet"):
        write_rows(rows, tmp_path / name)
    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "p.parquet").num_rows == 200
    for count in (0, -1, 10**9):
        with pytest.raises(InputError):
            practice_rows(policy, count)
    with pytest.raises(InputError, match=r"p\.xlsx"):
        write_rows(rows, tmp_path / "p.xlsx")
