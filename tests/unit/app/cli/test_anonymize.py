"""`dalenius anonymize`, as an owner meets it: without a home, on a protected table, and where something is wrong."""

from __future__ import annotations

import json
import re

import pytest
from tests.published import BARE, ROLES, laid_out, protected_in

from dalenius.app.cli import build, run


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DALENIUS_HOME", raising=False)

    def calling(*words):
        code = run(build(), ["anonymize", *map(str, words)])
        captured = capsys.readouterr()
        return code, " ".join(captured.out.split()), " ".join(captured.err.split())

    return calling


@pytest.fixture
def people(tmp_path):
    return laid_out(tmp_path)


def left(folder):
    """What is there that was not laid out, by any beginning of its name."""
    return sorted(each.name for each in folder.iterdir() if re.search(r"out|^\.\w+\.csv", each.name))


def test_a_table_is_made_and_checked_without_a_home(call, people, tmp_path):
    code, out, _ = call("run", people, "--k", 5, "--suppress", "5%", "-o", "out.csv", "--json")
    found = json.loads(out)
    assert code == 0 and found["rows"] == 300 and found["published"] is False
    assert set(found["loss"]) == {"ncp", "discernibility", "class_size", "entropy"}
    assert found["models"][0]["met"] and found["suppressed"] <= 15 and found["seconds"] > 0
    text = (tmp_path / "out.csv").read_text().splitlines()
    assert text[0] == "name,age,zip,sex,diagnosis" and len(text) == 301
    assert all(line.startswith("*,") for line in text[1:])
    assert call("check", "out.csv", "--policy", people, "--k", 5)[0] == 0
    code, out, _ = call("check", "out.csv", "--policy", people, "--k", 300)
    assert code == 6 and "Not met" in out
    assert not (tmp_path / ".dalenius").exists()


def test_parquet_comes_out_and_goes_in(call, people):
    assert call("run", people, "--k", 5, "-o", "out.parquet")[0] == 0
    assert call("run", "out.parquet", "--quasi", "sex", "--k", 5, "-o", "out2.parquet")[0] == 0
    assert call("check", "out2.parquet", "--quasi", "sex", "--k", 5)[0] == 0


def test_a_dry_run_writes_nothing(call, people, tmp_path):
    code, out, _ = call("run", people, "--k", 5, "--dry-run")
    assert code == 0 and "Nothing was written." in out and not left(tmp_path)


def test_the_profile_risk_and_unicity_are_told(call, people):
    code, out, _ = call("check", people, "--json")
    found = json.loads(out)
    assert code == 0 and found["k"] == 1 and "l_entropy" in found["sensitive"]["diagnosis"]
    code, out, _ = call("risk", people, "--share", "10%")
    assert code == 0 and "prosecutor" in out and "estimates" in out
    code, out, _ = call("risk", "people.csv", "--person", "name", "--at", "age,zip", "--points", 1, "--json")
    assert code == 0 and 0 <= json.loads(out)["share"] <= 1


def test_pseudonyms_replace_the_identifiers_and_say_what_they_do_not(call, people, tmp_path):
    code, out, err = call("pseudonymize", people, "--secret", "k.key", "-o", "out.csv")
    assert code == 0 and "What this does not do" in out and "Made k.key" in err
    assert (tmp_path / "k.key").stat().st_mode & 0o777 == 0o600
    text = (tmp_path / "out.csv").read_text()
    assert "P0001" not in text and text.count("\n") == 301


def test_drawings_and_reports_are_written(call, people, tmp_path):
    words = ("run", people, "--k", 5, "-o", "out.csv", "--plot", "p.svg", "--report")
    assert call(*words, "r.html")[0] == 0
    page = (tmp_path / "r.html").read_text()
    assert "No guarantee." in page and "homogeneity" in page and "<script" not in page
    assert "loss" in (tmp_path / "p.svg").read_text() or (tmp_path / "p.svg").stat().st_size > 1000
    assert call(*words, "r.json", "--overwrite")[0] == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["guarantee"] is None and found["losses"]["before"]["ncp"] == 0 < found["losses"]["after"]["ncp"]
    assert {each["attack"] for each in found["attacks"]} >= {"homogeneity", "skewness"}
    assert found["noise"]["errors"][0][0] == 0.1 and found["noise"]["cells"] > 1


ONE = "name,age,zip,sex,diagnosis\nAnn,30,53711,F,flu\n"


@pytest.mark.parametrize(
    ("what", "change", "options", "code", "says"),
    [
        ("k above the rows", {}, ["--k", "301"], 2, r"k = 301 is larger than the table.*Write --k 300 or less"),
        ("a value is missing", {"zip.csv": (r"53711;.*\n", "")}, ["--k", "5"], 2, r"hierarchies\.zip.*misses 1 of"),
        ("both roles", {"people.toml": (r'\["diagnosis"\]', '["age"]')}, ["--k", "5"], 2, "'age' is among quasi too"),
        ("unreachable l", {}, ["--k", "5", "--l", "9"], 2, r"l = 9.*Ask for less"),
        (
            "unreachable t",
            {"zip.csv": (r";\*\n", "\n")},
            ["--k", "2", "--t", "0.0001"],
            2,
            r"t-closeness.*Ask for less",
        ),
        ("no rows", {"people.csv": (r"P\d+.*\n", "")}, ["--k", "2"], 2, "no rows"),
        ("one row", {"people.csv": (r"(?s).*", ONE)}, ["--k", "2"], 2, "one row"),
        ("nothing asked", {}, [], 2, "Nothing is asked of the table"),
        ("no such column", {"people.toml": ('"sex"', '"sexx"')}, ["--k", "2"], 2, "sexx"),
        ("misspelled key", {"people.toml": ("quasi", "qausi")}, ["--k", "2"], 2, "Did you mean 'quasi'"),
        ("c alone", {}, ["--k", "2", "--c", "3"], 2, "c is for recursive"),
        ("share", {}, ["--k", "2", "--suppress", "200%"], 2, "--suppress cannot be read"),
        ("method", {}, ["--k", "2", "--method", "best"], 2, "optimal"),
        ("m without id", {}, ["--m", "3"], 2, "--m needs --id"),
        ("id without m", {}, ["--k", "3", "--id", "name"], 2, "--id needs --m"),
        ("no file", {"people.toml": (r"people\.csv", "nobody.csv")}, ["--k", "2"], 5, "There is no file"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_change_and_no_file_is_left(
    call, people, tmp_path, what, change, options, code, says
):
    for name, (before, after) in change.items():
        file = tmp_path / name
        text, count = re.subn(before, after, file.read_text(), count=0 if "P" in before else 1 if "?s" in before else 0)
        assert count, what
        file.write_text(text if "?s" not in before else after)
    found, out, err = call("run", people, *options, "-o", "out.csv")
    assert found == code, err
    assert re.search(says, err) and "Traceback" not in err and not out
    assert not left(tmp_path)


def test_a_file_that_is_no_table_is_unreadable(call, tmp_path):
    (tmp_path / "noise.parquet").write_bytes(bytes(range(256)) * 10)
    code, _, err = call("check", "noise.parquet", "--quasi", "a", "--k", 2)
    assert code == 5 and "cannot be read" in err


def test_who_stops_it_finds_no_part_of_a_file(call, people, tmp_path, monkeypatch):
    from dalenius.anonymity import table

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(table, "_write_csv", interrupted)
    assert call("run", people, "--k", 5, "-o", "out.csv")[0] == 130
    assert not left(tmp_path)


def test_what_is_there_is_not_replaced_without_a_word_and_the_source_never(call, people, tmp_path):
    (tmp_path / "out.csv").write_text("mine")
    code, _, err = call("run", people, "--k", 5, "-o", "out.csv")
    assert code == 2 and "is there already" in err and (tmp_path / "out.csv").read_text() == "mine"
    before = (tmp_path / "people.csv").read_text()
    for name in ("people.csv", "zip.csv"):
        code, _, err = call("run", people, "--k", 5, "-o", name, "--overwrite")
        assert code == 2 and "one of the files that are read" in err
    assert (tmp_path / "people.csv").read_text() == before


def test_a_protected_table_asks_for_yes_and_its_file_is_that_table(call, tmp_path):
    curator = protected_in(tmp_path)
    for target in ("people", "people.csv", "people.toml"):
        words = ("run", target, "--k", 5, "-o", "out.csv", *(("--policy", "people.toml") if "csv" in target else ()))
        code, _, err = call(*words)
        assert code == 2 and "cannot be undone" in err and "--yes" in err
    assert not left(tmp_path)
    code, out, _ = call("run", "people.csv", "--policy", "people.toml", "--k", 5, "-o", "out.csv", "--yes", "--json")
    found = json.loads(out)
    assert code == 0 and found["published"] and found["charge"]["epsilon"] is None
    assert [each.kind for each in curator.ledger.entries()].count("publication") == 1
    code, _, err = call("pseudonymize", "people", "--column", "name", "--secret", "k.key", "-o", "out2.csv")
    assert code == 3 and "protected" in err


def test_rows_of_another_home_are_not_published_off_its_record(call, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    protected_in(other)
    (tmp_path / "p.toml").write_text((BARE + ROLES).replace('"people.csv"', '"other/people.csv"'))
    (tmp_path / "zip.csv").write_text((other / "zip.csv").read_text())
    code, _, err = call("run", "p.toml", "--k", 5, "-o", "out.csv")
    assert code == 3 and "another home" in err and not left(tmp_path)


def test_ledger_budget_and_report_say_it(call, capsys, tmp_path):
    curator = protected_in(tmp_path)
    assert call("run", "people", "--k", 5, "-o", "out.csv", "--yes")[0] == 0
    for words in (["ledger"], ["budget"], ["tables", "people"], ["preview", "SELECT COUNT(*) FROM people"]):
        run(build(), [*words, *(["--analyst", "ana"] if words[0] == "preview" else [])])
        assert "ε no longer bounds what can be learned" in " ".join(capsys.readouterr().out.split()), words
    assert run(build(), ["ledger", "report", "-o", "report.html"]) == 0
    assert "Rows were published without a guarantee" in (tmp_path / "report.html").read_text()
    assert run(build(), ["ledger", "verify"]) == 0
    del curator


def test_no_output_is_another_or_what_is_read_by_any_path(call, people, tmp_path):
    (tmp_path / "sub").mkdir()
    words = ("run", people, "--m", 2, "--id", "name")
    code, _, err = call(*words, "--previous", "sub/../out.csv", "-o", "out.csv")
    assert code == 2 and "named for two things" in err
    code, _, err = call("run", people, "--k", 5, "-o", "out.csv", "--report", "x.html", "--plot", "sub/../x.svg")
    assert code == 0, err
    code, _, err = call(*words, "--previous", ".dalenius/state.json", "-o", "out2.csv")
    assert code == 3 and "would lie in a home" in err
    code, _, err = call(
        "pseudonymize", people, "--method", "lookup", "--secret", "sub/../k.csv", "-o", "k.csv", "--yes"
    )
    assert code == 2 and "named for two things" in err and not (tmp_path / "k.csv").exists()


def test_yes_is_about_publishing_and_overwrites_nothing(call, tmp_path):
    protected_in(tmp_path)
    (tmp_path / "out.csv").write_text("mine")
    code, _, err = call("run", "people", "--k", 5, "-o", "out.csv", "--yes")
    assert code == 2 and "--overwrite" in err and (tmp_path / "out.csv").read_text() == "mine"
    assert call("run", "people", "--k", 5, "-o", "out.csv", "--yes", "--overwrite")[0] == 0


def test_columns_in_no_role_and_people_with_several_rows_are_named(call, people, tmp_path):
    file = tmp_path / "people.csv"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[1]]) + "\n")
    words = ("run", "people.csv", "--quasi", "sex", "--identifiers", "name", "--k", 5)
    code, out, _ = call(*words, "--dry-run", "--report", "r.html", "--plot", "p.svg")
    assert code == 0 and "Published as they are, in no role: age, zip, diagnosis." in out
    assert "2 rows belong to somebody who has another: k counts rows, not people" in out
    assert "Nothing was written" not in out and "No rows were written." in out
    page = (tmp_path / "r.html").read_text()
    assert "age, zip, diagnosis" in page and "2 rows belong to somebody who has another" in page
    assert {(tmp_path / each).stat().st_mode & 0o777 for each in ("r.html", "p.svg")} == {0o600}
    found = json.loads(call(*words, "--dry-run", "--json")[1])
    assert found["as_they_are"] == ["age", "zip", "diagnosis"] and len(found["warnings"]) == 1


def test_a_person_with_several_visits_is_told_though_each_visit_has_a_number(call, tmp_path):
    rows = "".join(f"{at},p{at // 2},{20 + at % 3}\n" for at in range(12))
    (tmp_path / "visits.csv").write_text(f"visit,person,age\n{rows}")
    words = ("run", "visits.csv", "--quasi", "age", "--k", 2, "--dry-run", "--json", "--identifiers")
    (told,) = json.loads(call(*words, "visit,person")[1])["warnings"]
    assert "12 rows have the same 'person' as another" in told and "k counts rows" in told
    assert json.loads(call(*words, "visit")[1])["warnings"] == []


def test_a_series_keeps_its_state_before_its_rows_leave(call, people, tmp_path, monkeypatch):
    from dalenius.anonymity import table

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(table, "_write_csv", interrupted)
    assert call("run", people, "--m", 2, "--id", "name", "--previous", "series.state", "-o", "out.csv")[0] == 130
    assert (tmp_path / "series.state").exists() and not left(tmp_path)


def test_a_release_of_a_series_is_checked_and_shows_no_other_column(call, people, tmp_path):
    code, out, _ = call("run", people, "--m", 2, "--id", "name", "-o", "out.csv", "--json")
    made = json.loads(out)
    assert code == 0 and made["as_they_are"] == [] and 0 < made["loss"]["ncp"] <= 1
    asked = ("check", "out.csv", "--policy", people, "--id", "name", "--m")
    assert call(*asked, 2)[0] == 0 and call(*asked, 3)[0] == 6
    assert call("check", "out.csv", "--policy", people, "--m", 2)[0] == 2


def test_a_spreadsheet_says_what_to_save_it_as(call, tmp_path):
    protected_in(tmp_path)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    code, _, err = call("run", "a.xlsx", "--quasi", "age", "--k", 2, "--dry-run")
    assert code == 2 and "Save the sheet as CSV UTF-8" in err


def test_help_and_errors_name_what_to_write(call, people):
    assert "anonymity has the roles" in call("run", "--help")[1]
    code, _, err = call("run", "people.csv", "--quasi", "City", "--k", 5, "--dry-run")
    assert code == 2 and "name, age, zip, sex, diagnosis" in err
    code, _, err = call("run", "people.csv", "--quasi", "age", "--l", 2, "--dry-run")
    assert code == 2 and "--sensitive COLUMN" in err


def test_how_far_from_the_optimum_is_told_in_the_loss_itself():
    from dalenius.app.views.publications import how_made

    facts = {"method": "optimal", "seconds": 1.0, "gap": 0.009, "optimised": "ncp", "optimal": False}
    assert "NCP at most 0.009 above the optimum" in how_made(facts)[0]


def test_a_protected_table_is_no_hierarchy_of_another(call, tmp_path):
    protected_in(tmp_path)
    (tmp_path / "free.csv").write_text("sex,zip\nF,P0001\nM,P0002\n")
    roles = '[table]\nname = "free"\nsource = "free.csv"\n[anonymity]\nquasi = ["zip"]\n'
    (tmp_path / "free.toml").write_text(roles + 'hierarchies = { zip = "people.csv" }\n')
    code, _, err = call("run", "free.toml", "--k", 2, "-o", "out.csv")
    assert code == 3 and "people.csv is a protected table's file" in err and not left(tmp_path)
