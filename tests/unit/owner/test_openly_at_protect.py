"""Code lists and public tables at `protect`: never a protected file, and asked about where protected data lie."""

import os
from pathlib import Path

import pytest

from dalenius import Curator
from dalenius.app.cli import build, run
from dalenius.errors import NotAllowedError
from dalenius.tables.reading import read_file

POLICY = """
[table]
name = "NAME"
source = "SOURCE"
unit = "user_id"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.ana]
epsilon = 1.0
[columns.region]
type = "category"
KEYS
[contribution]
rows = 5
groups = 1
PUBLIC
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("data", "lists", "more"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "visits.csv").write_text("user_id,region\n1,north\n2,south\n")
    (tmp_path / "more" / "orders.csv").write_text("user_id,region\n8,north\n9,south\n")
    (tmp_path / "lists" / "codes.csv").write_text("region\nnorth\nsouth\nwest\n")
    return tmp_path


def policy(name="visits", source="data/visits.csv", keys="", public=""):
    text = POLICY.replace("NAME", name).replace("SOURCE", source)
    text = text.replace("KEYS", f'keys = {{ file = "{keys}", column = "region" }}' if keys else "")
    text = text.replace("PUBLIC", f'[public]\ntables = {{ regions = "{public}" }}' if public else "")
    Path(f"{name}.toml").write_text(text)
    return f"{name}.toml"


def both(**more):
    """A policy with a file as its code list, and one with it as its public table."""
    (file,) = (value for key, value in more.items() if key == "file")
    rest = {key: value for key, value in more.items() if key != "file"}
    for use in ("keys", "public"):
        yield policy(**rest, **{use: file})


def test_a_list_in_a_folder_of_its_own_needs_no_question(folder):
    (done,) = Curator().protect(policy(keys="lists/codes.csv", public="lists/codes.csv"))
    assert done.recorded and done.needs == () and done.beside == ()
    assert [file.path for file in Curator().tables()[0].lists["region"].files] == [str(folder / "lists/codes.csv")]
    assert [each.state for each in Curator().protect("visits.toml")] == ["unchanged"]


def test_the_protected_file_itself_is_never_a_list_or_public_whatever_is_said(folder):
    (folder / "data" / "soft.csv").symlink_to(folder / "data" / "visits.csv")
    os.link(folder / "data" / "visits.csv", folder / "lists" / "hard.csv")
    (folder / "lists" / "copy.csv").write_bytes((folder / "data" / "visits.csv").read_bytes())
    for file in ("data/visits.csv", "data/soft.csv", "lists/hard.csv", "lists/copy.csv", "lists/../data/visits.csv"):
        for each in both(file=file):
            for yes in (False, True):
                with pytest.raises(NotAllowedError, match="protected table 'visits'"):
                    Curator().protect(each, yes=yes)
    Curator().protect(policy(keys="lists/codes.csv"))
    for file in ("data/visits.csv", "data/soft.csv", "lists/hard.csv", "lists/copy.csv"):
        for each in both(name="orders", source="more/orders.csv", file=file):
            with pytest.raises(NotAllowedError, match="protected table 'visits'"):
                Curator().protect(each, yes=True)


def test_a_hard_link_to_protected_data_that_changed_since_is_still_known(folder):
    Curator().protect(policy())
    with (folder / "data" / "visits.csv").open("a") as file:
        file.write("3,east\n")
    os.link(folder / "data" / "visits.csv", folder / "lists" / "hard.csv")
    for each in both(name="orders", source="more/orders.csv", file="lists/hard.csv"):
        with pytest.raises(NotAllowedError, match="protected table 'visits'"):
            Curator().protect(each, yes=True)


def test_what_is_or_was_a_code_list_cannot_be_protected(folder):
    (folder / "lists" / "people.csv").write_text("user_id,region\n5,north\n")
    Curator().protect(policy(keys="lists/people.csv"))
    for yes in (False, True):
        with pytest.raises(NotAllowedError, match="is the code list of 'region' in 'visits'"):
            Curator().protect(policy("people", "lists/people.csv"), yes=yes)
    Curator().protect(policy(keys="lists/codes.csv"), yes=True)
    (folder / "more" / "again.csv").write_bytes((folder / "lists" / "people.csv").read_bytes())
    with pytest.raises(NotAllowedError, match="was the code list of 'region' in 'visits'"):
        Curator().protect(policy("people", "more/again.csv"), yes=True)


def test_a_file_beside_protected_data_is_asked_about_once(folder):
    (folder / "data" / "codes.csv").write_text("region\nnorth\n")
    for each in both(file="data/codes.csv"):
        (planned,) = Curator().protect(each)
        assert not planned.recorded and planned.needs == ("yes",)
        assert len(planned.beside) == 1 and planned.beside[0].startswith("codes.csv (")
        assert planned.to_dict()["beside"] == list(planned.beside)
    (done,) = Curator().protect("visits.toml", yes=True)
    assert done.recorded
    Path("visits.toml").write_text(Path("visits.toml").read_text() + "[time]\nanswer = 2\n")
    (planned,) = Curator().protect("visits.toml")
    assert planned.state == "changed" and planned.beside == ()  # it was asked about then
    (folder / "data" / "codes.csv").write_text("region\nnorth\neast\n")
    assert len(Curator().protect("visits.toml")[0].beside) == 1  # another content


def test_a_file_beside_the_data_of_another_table_is_asked_about_too(folder):
    Curator().protect(policy())
    (folder / "data" / "patients.csv").write_text("region\nnorth\n")
    for each in both(name="orders", source="more/orders.csv", file="data/patients.csv"):
        (planned,) = Curator().protect(each)
        assert not planned.recorded and "where the data of visits lie" in planned.beside[0]


def test_a_file_that_a_protected_pattern_means_is_asked_about(folder):
    (folder / "data" / "deep").mkdir()
    Curator().protect(policy(source="data/**/*.csv"))
    (folder / "data" / "deep" / "late.csv").write_text("region\nnorth\n")  # came after it was protected
    for each in both(name="orders", source="more/orders.csv", file="data/deep/late.csv"):
        (planned,) = Curator().protect(each)
        assert not planned.recorded and planned.beside


def test_protecting_data_beside_what_everyone_may_read_is_asked_about(folder):
    for number, each in enumerate(both(file="lists/codes.csv")):
        curator = Curator(folder / f"home{number}")
        curator.protect(each)
        (folder / "lists" / "orders.csv").write_text("user_id,region\n3,north\n")
        (planned,) = curator.protect(policy("orders", "lists/orders.csv"))
        assert not planned.recorded and "where the data of orders lie" in planned.beside[0]
        assert curator.protect("orders.toml", yes=True)[0].recorded


def test_a_policy_that_was_read_elsewhere_is_asked_about_as_well(folder):
    (folder / "data" / "codes.csv").write_text("region\nnorth\n")
    (planned,) = Curator().protect(read_file(folder / policy(keys="data/codes.csv")))
    assert planned.beside and not planned.recorded
    with pytest.raises(NotAllowedError):
        Curator().protect(read_file(folder / policy(keys="data/visits.csv")), yes=True)


def test_the_command_asks_or_wants_yes(folder, capsys, monkeypatch):
    (folder / "data" / "codes.csv").write_text("region\nnorth\n")
    policy(keys="data/codes.csv")
    assert run(build(), ["protect", "visits.toml"]) != 0
    told = capsys.readouterr().err
    assert "codes.csv" in told and "--yes" in told
    assert run(build(), ["protect", "visits.toml", "--dry-run"]) == 0
    assert "needs --yes" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr("typer.confirm", lambda words, **_: asked.append(words))
    assert run(build(), ["protect", "visits.toml"]) == 0
    assert "Everyone who may ask can read such files" in asked[0]
    assert Curator().tables()[0].lists
