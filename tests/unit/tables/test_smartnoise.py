"""SmartNoise's metadata as drafts: what carries over, what becomes a remark, and nothing that runs or hides."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from dalenius.errors import DaleniusError, ExtraMissingError, InputError, PolicyInvalidError, SourceUnavailableError
from dalenius.tables import read_text
from dalenius.tables.policy import Kind
from dalenius.tables.smartnoise import ATTRIBUTES, LARGEST, SETTINGS, draft_from_metadata, read_metadata

VISITS = """\
# a comment
"":
  Clinic:
    Visits:
      max_ids: 12
      rows: 271828
      censor_dims: False
      clamp_counts: true
      clamp_columns: true
      sample_max_ids: true
      use_dpsu: false
      patient_id:
        type: string
        private_id: True
      age:
        type: int
        lower: 0
        upper: 120
      weight:
        type: float
        lower: 0.10
        upper: 2.5e2
        missing_value: 70.05
        sensitivity: 250
      smoker:
        type: boolean
        nullable: false
        missing_value: no
      ward:
        type: string
        cardinality: 12
      code:
        type: int
      '"odd name"':
        type: int
        lower: -5
        upper: 5
      seen:
        type: datetime
      blob:
        type: unknown
"""
FILLED = {
    '"FILL IN: Parquet or CSV, a path or a glob"': '"/data/visits.parquet"',
    '["FILL IN: earliest", "FILL IN: latest"]': '["2025-01-01T00:00:00", "2025-12-31T00:00:00"]',
}


@pytest.fixture
def drafted(tmp_path):
    def making(text, table=None, source=None, schema=None):
        file = tmp_path / "metadata.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return draft_from_metadata(read_metadata(file, table), source, schema, file="visits.toml")

    return making


def filled(text):
    for blank, value in FILLED.items():
        text = text.replace(blank, value)
    return read_text(text)


def test_a_draft_holds_what_the_metadata_says(drafted):
    text = drafted(VISITS)
    policy = filled(text)
    assert (policy.name, policy.unit, policy.dataset) == ("visits", ("patient_id",), "visits")
    assert (policy.contribution.rows, policy.contribution.groups) == (12, 12)
    columns = policy.columns
    assert list(columns) == ["age", "weight", "smoker", "ward", "code", "odd name", "seen"]
    assert [columns[name].kind for name in columns] == [
        Kind.INTEGER, Kind.NUMBER, Kind.BOOLEAN, Kind.CATEGORY, Kind.INTEGER, Kind.INTEGER, Kind.DATETIME,
    ]  # fmt: skip
    bounds = columns["weight"].bounds
    assert bounds is not None and (str(bounds.low), str(bounds.high)) == ("1/10", "250")  # exact decimals
    assert str(columns["weight"].default) == "1401/20" and columns["smoker"].default is False
    assert columns["code"].bounds is None and columns["odd name"].bounds is not None


def test_the_owner_still_fills_in_what_smartnoise_does_not_know(drafted):
    with pytest.raises(PolicyInvalidError, match=r"table\.source.*columns\.seen\.bounds") as caught:
        read_text(drafted(VISITS))
    assert "2 places" in caught.value.message


def test_what_has_no_counterpart_is_a_remark(drafted):
    text = drafted(VISITS)
    remarks = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    for name in ("rows", "censor_dims: False", "clamp_counts: true", "clamp_columns", "sample_max_ids", "use_dpsu"):
        assert name in remarks
    for name in ("cardinality: 12", "sensitivity: 250", "nullable: false", "[columns.blob]"):
        assert name in remarks
    assert "271828" not in text  # how many rows there are is no one's business


@pytest.mark.parametrize("name", [name for name, why in SETTINGS.items() if why])
def test_every_setting_is_explained(name, drafted):
    text = drafted(f"a: {{b: {{c: {{{name}: 3, id: {{type: int, private_id: true}}, x: {{type: int}}}}}}}}")
    assert SETTINGS[name] in text


@pytest.mark.parametrize("name", [name for name, why in ATTRIBUTES.items() if why])
def test_every_attribute_is_explained(name, drafted):
    text = drafted(f"a: {{b: {{c: {{id: {{type: int, private_id: true}}, x: {{type: int, {name}: 3}}}}}}}}")
    assert f"# {name}: 3 ({ATTRIBUTES[name]})" in text


def test_a_source_spells_the_columns_and_tells_their_types(drafted):
    schema = (("PATIENT_ID", "VARCHAR"), ("Age", "INTEGER"), ("seen", "DATE"))
    text = drafted(VISITS, source="visits.parquet", schema=schema)
    tree = tomllib.loads(text)
    assert tree["table"]["unit"] == "PATIENT_ID" and tree["table"]["source"] == "visits.parquet"
    assert set(tree["columns"]) == {"Age", "seen"} and tree["columns"]["seen"]["type"] == "date"
    assert "# [columns.ward]  is not in the source" in text


def test_rows_as_people_need_a_column_that_names_them(drafted):
    text = drafted("PUMS: {PUMS: {PUMS: {row_privacy: True, age: {type: int, lower: 0, upper: 100}}}}")
    assert tomllib.loads(text)["table"]["unit"].startswith("FILL IN: row_privacy")
    assert tomllib.loads(text)["contribution"] == {"rows": 1, "groups": 1}
    nobody = drafted("PUMS: {PUMS: {PUMS: {age: {type: int, lower: 0, upper: 100}}}}")
    assert tomllib.loads(nobody)["table"]["unit"].startswith("FILL IN: the column")


def test_several_private_ids_are_one_unit(drafted):
    text = drafted("a: {b: {c: {x: {type: int, private_id: yes}, y: {type: int, private_id: true}, z: {type: int}}}}")
    assert tomllib.loads(text)["table"]["unit"] == ["x", "y"]


TWO = """\
engine: postgres
Devices:
  Telemetry:
    Crashes: {DeviceID: {type: int, private_id: True}, n: {type: int, lower: 0, upper: 10}}
    Census: {deviceid: {type: int, private_id: true}, disk: {type: int, lower: 1, upper: 9}}
    Alone: {who: {type: int, private_id: true}, disk: {type: int, lower: 1, upper: 9}}
  Other:
    Census: {row_privacy: true, x: {type: int}}
"""


def test_tables_with_the_same_private_id_share_a_data_set(drafted):
    crashes = drafted(TWO, "crashes")
    tree = tomllib.loads(crashes)
    assert (tree["table"]["name"], tree["table"]["dataset"]) == ("crashes", "devices")
    assert "leave [budget]" in crashes and "engine: postgres" in crashes
    assert tomllib.loads(drafted(TWO, "telemetry.census"))["table"]["dataset"] == "devices"
    assert "dataset" not in tomllib.loads(drafted(TWO, "Alone"))["table"]


@pytest.mark.parametrize(
    ("table", "words"),
    [(None, "Telemetry.Crashes, Telemetry.Census"), ("census", "several tables"), ("Crashs", "mean 'Crashes'")],
)
def test_which_table_is_asked_for_by_name(table, words, drafted):
    with pytest.raises(InputError) as caught:
        drafted(TWO, table)
    assert words in str(caught.value)


@pytest.mark.parametrize(("lower", "upper"), [("0", ""), ("low", "9"), ("1e400", "1e500"), (".nan", ".inf")])
def test_bounds_that_are_no_numbers_are_left_to_the_owner(lower, upper, drafted):
    text = drafted(
        f"a: {{b: {{c: {{id: {{type: int, private_id: true}}, x: {{type: int, lower: {lower}, upper: '{upper}'}}}}}}}}"
    )
    assert any("FILL IN" in str(each) for each in tomllib.loads(text)["columns"]["x"]["bounds"])


@pytest.mark.parametrize("given", ["0", "-1", "many", "1.5", "9" * 30])
def test_a_limit_that_is_no_count_is_left_to_the_owner(given, drafted):
    text = drafted(f"a: {{b: {{c: {{max_ids: {given}, x: {{type: int, private_id: true}}}}}}}}")
    assert tomllib.loads(text)["contribution"]["rows"].startswith("FILL IN: max_ids")


def test_words_stay_words(drafted):
    text = drafted("a: {b: {c: {no: {type: string}, 007: {type: string}, id: {type: int, private_id: on}}}}")
    assert list(tomllib.loads(text)["columns"]) == ["no", "007"]


NASTY = 'x\\"]\\n[analysts.eve]\\nepsilon = 9 # '  # as YAML writes quotes and line breaks in quotes


@pytest.mark.parametrize("where", ["column", "type", "attribute", "value", "table", "schema", "setting", "default"])
def test_no_text_of_the_file_becomes_a_line_of_the_policy(where, drafted):
    parts = {
        each: f'"{NASTY}"' if each == where else each for each in ("column", "attribute", "table", "schema", "value")
    }
    type_ = f'"{NASTY}"' if where == "type" else "string"
    setting = f'"{NASTY}"' if where == "setting" else "true"
    default = f', missing_value: "{NASTY}"' if where == "default" else ""
    text = drafted(
        f"a: {{{parts['schema']}: {{{parts['table']}: {{use_dpsu: {setting}, id: {{type: int, private_id: true}}, "
        f"{parts['column']}: {{type: {type_}{default}, {parts['attribute']}: {parts['value']}}}}}}}}}"
    )
    tree = tomllib.loads(text)
    assert set(tree["analysts"]) == {"ana"} and set(tree) <= {"table", "budget", "analysts", "columns", "contribution"}


HOSTILE = [
    "",
    "just words",
    "[1, 2]",
    "a: 1",
    "a: {b: 1}",
    "a: {b: {c: 1}}",
    "a: {b: {}}",
    "a: {}",
    "a: {b: {c: {max_idz: 3, x: {type: int}}}}",
    "a: {b: {c: {x: {type: [int]}}}}",
    "a: {b: {c: {x: {type: int, lower: {y: 1}}}}}",
    "a: {b: {c: {max_ids: [1]}}}",
    "a: {b: {c: {x: {type: int}}}}\nz: {b: {c: {x: {type: int}}}}",
    "a: {b: {c: {x: {type: int, lower: 0}, x: {type: int, lower: 9}}}}",
    "a: &x {b: {c: {d: {type: int}}}}\ne: *x",
    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]",
    "a: {b: {c: {? [x] : {type: int}}}}",
    "a: {b: {c: {x: {type: int}}",
    "a: 'open",
    "\tb: 1",
    "a: \x00",
    "--- 1\n--- 2",
    "[" * 20_000,
    "{a: " * 20_000,
    b"\xff\xfe\x00",
    b"a" * (LARGEST + 1),
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_not_metadata_is_refused_with_a_reason(text, drafted):
    with pytest.raises(InputError) as caught:
        drafted(text)
    assert caught.value.why and caught.value.fix and len(str(caught.value)) < 1500


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system ['touch ran']", "!!python/name:os.system ''", "!x y"])
def test_tags_build_nothing(tag, drafted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        text = drafted(
            f"a: {{b: {{c: {{id: {{type: int, private_id: true}}, x: {{type: string, missing_value: {tag}}}}}}}}}"
        )
        assert "default" in text
    except DaleniusError:
        pass
    assert not (tmp_path / "ran").exists()


def test_a_missing_file_and_a_missing_extra_say_so(tmp_path, monkeypatch):
    with pytest.raises(SourceUnavailableError):
        read_metadata(tmp_path / "none.yaml")
    (tmp_path / "some.yaml").write_text(VISITS)
    monkeypatch.setattr("dalenius._extras.find_spec", lambda _: None)
    with pytest.raises(ExtraMissingError, match="smartnoise"):
        read_metadata(tmp_path / "some.yaml")


def test_yaml_is_loaded_only_where_it_is_read():
    import subprocess

    code = "import sys, dalenius.tables.smartnoise; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=False).returncode == 0
