"""`dalenius policy`, `protect` and `tables`, as an owner meets them."""

import json
import re
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.app.cli import build, run

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
[columns.region]
type = "category"
keys = ["north", "[red]"]
[contribution]
rows = 300
totals = { age = 900 }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    pq.write_table(
        pa.table({"user_id": [1, 2], "age": [424242, 30], "region": ["secret", "north"]}), tmp_path / "visits.parquet"
    )
    (tmp_path / "visits.toml").write_text(POLICY)
    return tmp_path


@pytest.fixture
def call(capsys):
    def calling(*words):
        code = run(build(), [*map(str, words)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return calling


@pytest.fixture
def ask(call):
    def asking(*words):
        code, out, _ = call(*words, "--json")
        return code, json.loads(out)

    return asking


def change(folder, before, after):
    file = folder / "visits.toml"
    file.write_text(file.read_text().replace(before, after))


def test_draft_check_protect_is_the_way(call, ask, folder):
    code, out, _ = call("policy", "draft", "visits.parquet", "-o", "draft.toml")
    text = (folder / "draft.toml").read_text()
    assert code == 0 and "policy check draft.toml" in out
    assert "424242" not in text and "secret" not in text
    code, found = ask("policy", "check", "draft.toml")
    assert (
        code == 2 and found["error"]["code"] == "policy.invalid" and "columns.age.bounds" in found["error"]["message"]
    )
    text = text.replace('["FILL IN: lowest", "FILL IN: highest"]', "[18, 90]")
    blank = '"FILL IN: rows of one unit that count, where you know what is usual; else delete this line"'
    assert blank in text
    text = text.replace(blank, "10")
    (folder / "draft.toml").write_text(text)
    assert ask("policy", "check", "draft.toml")[0] == 0
    code, found = ask("protect", "draft.toml")
    assert code == 0 and found["tables"][0]["recorded"]


def test_only_the_types_of_a_csv_depend_on_its_rows_and_the_help_says_so(call, ask, folder):
    drafts = []
    for rows in ("1,34\n2,57\n", "8,90\n9,18\n" * 3, "1,elderly\n2,57\n"):
        (folder / "people.csv").write_text("user_id,age\n" + rows)
        drafts.append(ask("policy", "draft", "people.csv")[1]["policy"])
    assert drafts[0] == drafts[1] and 'type = "text"' in drafts[2] and "elderly" not in drafts[2]
    said = " ".join(call("policy", "draft", "--help")[1].split())
    assert "types of a CSV's columns are guessed, from its first rows; nothing else comes from a row" in said


def test_draft_prints_without_a_file_and_never_overwrites(call, ask, folder):
    code, out, _ = call("policy", "draft", "visits.parquet")
    assert code == 0 and "[columns.age]" in out and "US Census" in out
    assert ask("policy", "draft", "visits.parquet", "-o", "visits.toml")[0] == 2
    assert (folder / "visits.toml").read_text() == POLICY
    (folder / "sub").mkdir()
    (folder / "codes.csv").write_text("code\nnorth\n")
    code, found = ask("policy", "draft", "visits.parquet", "-o", "sub/p.toml", "--keys", "region=codes.csv:code")
    assert code == 0 and 'source = "../visits.parquet"' in found["policy"]
    assert 'keys = { file = "../codes.csv", column = "code" }' in found["policy"]
    assert ask("policy", "draft", "visits.parquet", "--keys", "region")[0] == 2
    assert ask("policy", "draft", "nowhere.parquet")[1]["error"]["code"] == "source.unavailable"


METADATA = """\
Shop:
  Public:
    Visits:
      max_ids: 3
      user_id: {type: int, private_id: true}
      age: {type: int, lower: 18, upper: 90}
      region: {type: string}
"""


def test_draft_from_smartnoise_is_protected_like_any_other(call, ask, folder):
    (folder / "shop.yaml").write_text(METADATA)
    code, out, _ = call("policy", "draft", "visits.parquet", "--from", "shop.yaml", "-o", "draft.toml")
    assert code == 0 and "policy check draft.toml" in out
    assert ask("policy", "check", "draft.toml")[1]["policy"]["contribution"] == {"rows": 3, "groups": 3}
    assert ask("protect", "draft.toml")[1]["tables"][0]["recorded"]
    code, found = ask("policy", "draft", "--from", "shop.yaml")
    assert code == 0 and "FILL IN: Parquet or CSV" in found["policy"] and found["file"] is None


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        ((), 2, "input.invalid"),
        (("--table", "x"), 2, "input.invalid"),
        (("visits.parquet", "--table", "x"), 2, "input.invalid"),
        (("--from", "none.yaml"), 5, "source.unavailable"),
        (("--from", "visits.toml"), 2, "input.invalid"),
        (("--from", "shop.yaml", "--table", "orders"), 2, "input.invalid"),
        (("--from", "shop.yaml", "--unit", "age"), 2, "input.invalid"),
        (("--from", "shop.yaml", "--keys", "region=codes.csv:code"), 2, "input.invalid"),
        (("none.parquet", "--from", "shop.yaml"), 5, "source.unavailable"),
    ],
)
def test_a_draft_that_cannot_be_made_says_why(words, exit_code, code, ask, folder):
    (folder / "shop.yaml").write_text(METADATA)
    got, found = ask("policy", "draft", *words)
    assert (got, found["error"]["code"]) == (exit_code, code)


def test_check_prints_what_may_be_asked(call, folder):
    code, out, _ = call("policy", "check", "visits.toml")
    assert code == 0 and "18 to 90" in out and "[red]" in out
    assert "limits for one user_id, declared: 300 rows, total of age 900" in " ".join(out.split())
    change(folder, "rows = 300", "rows = 1")
    said = " ".join(call("policy", "check", "visits.toml")[1].split())
    assert "declared: 1 row, total of age 900" in said and "finds limits" not in said
    change(folder, "rows = 1\ntotals = { age = 900 }\n", "")
    said = " ".join(call("policy", "check", "visits.toml")[1].split())
    assert "declared: none without rows, 'protect' finds limits privately" in said


def test_protect_makes_a_home_and_says_so(call, ask, folder):
    code, out, err = call("protect", "visits.toml", "--dry-run")
    assert code == 0 and "Would protect" in out and "no home yet" in err and not (folder / ".dalenius").exists()
    code, _, err = call("protect", "visits.toml")
    assert code == 0 and "Made a home" in err
    code, found = ask("protect", "visits.toml")
    assert code == 0 and found["tables"][0]["state"] == "unchanged"


def test_a_change_is_shown_and_needs_yes_and_a_reason_for_more(call, ask, folder):
    call("protect", "visits.toml")
    change(folder, "epsilon = 3.0", "epsilon = 4.0")
    code, found = ask("protect", "visits.toml")
    assert code == 2 and "--yes and --reason" in found["error"]["fix"]
    assert ask("protect", "visits.toml", "--yes")[1]["error"]["code"] == "policy.not-allowed"
    code, found = ask("policy", "diff", "visits.toml")
    assert code == 0
    assert [(each["place"], each["before"], each["after"]) for each in found["difference"]] == [
        ("budget.epsilon", 3, 4)
    ]
    code, found = ask("protect", "visits.toml", "--yes", "--reason", "a new survey")
    assert code == 0 and found["tables"][0]["recorded"]
    code, found = ask("policy", "history", "visits")
    assert [each["reason"] for each in found["versions"]] == [None, "a new survey"]
    code, out, _ = call("policy", "history", "visits")
    assert code == 0 and "budget.epsilon: 3.0 → 4.0" in out
    code, out, _ = call("policy", "diff", "visits.toml")
    assert code == 0 and "nothing changes" in out


def test_a_change_names_the_home_that_it_would_change(call, ask, folder, monkeypatch):
    assert "home of a folder above" not in call("protect", "visits.toml")[2]
    change(folder, "[18, 90]", "[18, 99]")
    assert ask("protect", "visits.toml")[1]["error"]["message"].endswith("what is in force in the home .dalenius.")
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    code, out, err = call("protect", "../visits.toml")
    assert code == 2 and "Using the home of a folder above: ../.dalenius." in err
    assert "changes what is in force in the home ../.dalenius." in " ".join((out + err).split())
    _, found = ask("protect", "../visits.toml", "--home", "../.dalenius/")
    assert "in the home ../.dalenius." in found["error"]["message"]
    assert "folder above" not in call("protect", "../visits.toml", "--home", "../.dalenius")[2]


def test_a_person_is_asked(call, folder, monkeypatch):
    call("protect", "visits.toml")
    change(folder, "[18, 90]", "[18, 99]")
    monkeypatch.setattr(sys, "stdin", _Terminal("n\n"))
    assert call("protect", "visits.toml")[0] == 130
    monkeypatch.setattr(sys, "stdin", _Terminal("y\n"))
    code, out, err = call("protect", "visits.toml")
    assert code == 0 and "[18, 99]" in err and "changed" in out


class _Terminal:
    def __init__(self, text):
        import io

        self._text = io.StringIO(text)

    def isatty(self):
        return True

    def __getattr__(self, name):
        return getattr(self._text, name)


def test_tables_show_what_may_be_asked_and_not_where_the_data_is(call, ask, folder):
    assert ask("tables")[1]["error"]["code"] == "source.unavailable"
    call("protect", "visits.toml")
    code, found = ask("tables")
    (table,) = found["tables"]
    assert (
        code == 0 and table["columns"]["age"]["bounds"] == [18, 90] and table["contribution"]["totals"] == {"age": 900}
    )
    assert str(folder) not in json.dumps(found) and "ana" not in json.dumps(found)
    for words in (("tables",), ("tables", "visits")):
        code, out, _ = call(*words)
        assert code == 0 and "age" in out and "parquet" not in out
    code, found = ask("tables", "vists")
    assert code == 3 and found["error"]["code"] == "policy.unknown-table"


def test_found_limits_are_shown_with_what_lies_beyond(call, ask, folder):
    people = [person for person in range(5000) for _ in range(1 + person % 4)]
    columns = {"user_id": people, "age": [30] * len(people), "region": ["north"] * len(people)}
    pq.write_table(pa.table(columns), folder / "visits.parquet")
    change(folder, "rows = 300\ntotals = { age = 900 }\n", "")
    code, found = ask("protect", "visits.toml", "--dry-run")
    assert code == 0 and found["tables"][0]["search"]["part"] <= 0.06 and found["tables"][0]["limits"] is None
    code, out, _ = call("protect", "visits.toml")
    said = " ".join(out.split())
    assert code == 0 and re.search(r"limits were found privately \(ε = [\d.]+, [\d.]+% of the budget's ρ, once\)", said)
    begin = r"limits for one user_id, found privately: "
    pattern = begin + r"\d+ rows; (about [\d.]+%|less than 0.1%) of the rows lie beyond"
    assert re.search(pattern, said) and re.search(r"found: about [\d,]+ units \(unit: user_id\) and [\d,]+ rows", said)
    code, out, _ = call("tables", "visits")
    said = " ".join(out.split())
    assert code == 0 and re.search(pattern, said) and "limits for one user_id, declared: none" in said
    assert re.search(
        begin + r"total of age [\d,.]+; (about [\d.]+%|less than 0.1%) of the total of age lies beyond", said
    )
    for words in (("tables", "visits"), ("tables",), ("protect", "visits.toml")):
        code, found = ask(*words)
        limits = found["tables"][0]["limits"]
        assert code == 0 and {"rows", "total age"} <= set(limits["clipped"]) and 4 <= limits["rows"] <= 200
    # it was paid for, so it is not said to cost anything again
    assert found["tables"][0]["search"] is None
    assert "limits were" not in call("protect", "visits.toml")[1]


def test_practice_rows_come_from_the_policy_alone(call, ask, folder):
    call("protect", "visits.toml")
    (folder / "visits.parquet").unlink()
    for name in ("f.csv", "f.parquet"):
        code, found = ask("tables", "visits", "--fake", 50, "-o", name)
        assert code == 0 and found["rows"] == 50 and (folder / name).exists()
    text = (folder / "f.csv").read_text()
    assert text.splitlines()[0] == "user_id,age,region" and "secret" not in text and "424242" not in text
    for words in (
        ("tables", "--fake", 5, "-o", "g.csv"),
        ("tables", "visits", "--fake", 5),
        ("tables", "visits", "-o", "g.csv"),
    ):
        assert ask(*words)[0] == 2


def test_show_prints_a_policy_that_can_be_read_again(call, ask, folder):
    call("protect", "visits.toml")
    code, out, _ = call("policy", "show", "visits")
    (folder / "shown.toml").write_text(out)
    assert code == 0 and ask("policy", "diff", "shown.toml")[1]["difference"] == []
    assert ask("policy", "show", "visits")[1]["policy"]["columns"]["age"]["bounds"] == [18, 90]


@pytest.mark.parametrize(
    ("before", "after", "code", "exit_code"),
    [
        ("bounds = [18, 90]", "bound = [18, 90]", "policy.invalid", 2),
        ("visits.parquet", "nowhere.parquet", "source.unavailable", 5),
        ("[columns.age]", "[columns.aged]", "policy.invalid", 2),
        ('type = "category"', 'type = "date"', "policy.invalid", 2),
        ('unit = "user_id"', "unit = ", "policy.invalid", 2),
    ],
)
def test_bad_policies_charge_nothing_and_show_no_value(ask, folder, before, after, code, exit_code):
    change(folder, before, after)
    for command in (("policy", "check"), ("protect",)):
        got, found = ask(*command, "visits.toml")
        assert (got, found["error"]["code"]) == (exit_code, code)
        assert found["error"]["charge"] == {"epsilon": 0, "delta": 0} and found["error"]["fix"]
        assert "secret" not in json.dumps(found) and "424242" not in json.dumps(found)
    assert not (folder / ".dalenius").exists()


def test_a_small_price_of_the_limits_is_not_shown_as_nothing(call, folder):
    change(folder, "rows = 300\ntotals = { age = 900 }\n", "")
    change(folder, "epsilon = 3.0", "epsilon = 60.0")
    code, out, _ = call("protect", "visits.toml", "--dry-run")
    said = " ".join(out.split())
    assert code == 0 and re.search(
        r"will be found privately \(ε = [\d.]+, less than 0.1% of the budget's ρ, once\)", said
    )
