"""A file that one home protects gets no second budget in another, as far as that home can be known."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius import Curator
from dalenius.app.cli import build, run
from dalenius.app.http.responses import problem
from dalenius.errors import NotAllowedError, OtherHomeError
from dalenius.ledger import elsewhere
from dalenius.ledger.database import NAME
from dalenius.ledger.elsewhere import actions_of

POLICY = """
[table]
name = "{name}"
source = "{source}"
unit = "user_id"
[budget]
epsilon = 3.0
delta = 1e-6
[columns.age]
type = "integer"
bounds = [18, 90]
[contribution]
rows = 5
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a home as usual, in which `data/a.parquet` is protected; the working folder is another one."""
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    found = tmp_path / "project"
    (found / "data").mkdir(parents=True)
    write(found / "data" / "a.parquet", range(20))
    protect(found / ".dalenius", found / "data" / "a.parquet", "visits")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return found


def write(file: Path, people: range) -> None:
    pq.write_table(pa.table({"user_id": list(people), "age": [20 + each % 60 for each in people]}), file)


def protect(home: Path, source: Path, name: str, *, yes: bool = False, dry_run: bool = False) -> Curator:
    policy = source.parents[1] / f"{name}.toml"
    policy.write_text(POLICY.format(name=name, source=source))
    curator = Curator(home)
    curator.protect(policy, yes=yes, dry_run=dry_run)
    return curator


@pytest.mark.parametrize("yes", [False, True])
def test_a_second_home_for_the_same_file_is_refused_and_says_where_the_first_is(project, yes):
    with pytest.raises(OtherHomeError, match="another home") as caught:
        protect(Path("second"), project / "data" / "a.parquet", "again", yes=yes)
    assert caught.value.home == project / ".dalenius" and "dataset = " in caught.value.fix
    assert not Path("second").exists()
    with pytest.raises(NotAllowedError, match="another home"):
        protect(Path("second"), project / "data" / "a.parquet", "again", dry_run=True)


def test_the_first_home_takes_it_as_before(project):
    curator = protect(project / ".dalenius", project / "data" / "a.parquet", "visits")
    assert [each.data_version for each in curator.history("visits")] == [1]
    (project / "link").symlink_to(project / ".dalenius")  # another way to the same home
    assert protect(project / "link", project / "data" / "a.parquet", "visits").tables()


def test_a_copy_beside_it_is_known_by_its_content(project):
    shutil.copy(project / "data" / "a.parquet", project / "data" / "copy.parquet")
    with pytest.raises(NotAllowedError, match="another home"):
        protect(Path("second"), project / "data" / "copy.parquet", "again")


def test_another_file_of_the_same_folder_may_have_another_home(project):
    write(project / "data" / "b.parquet", range(50, 90))
    assert protect(Path("second"), project / "data" / "b.parquet", "others").tables()


def test_a_home_that_was_deleted_stops_nobody(project):
    shutil.rmtree(project / ".dalenius")
    assert protect(Path("second"), project / "data" / "a.parquet", "again").tables()


def test_a_home_that_was_moved_is_known_again_where_it_is(project, monkeypatch):
    (project / ".dalenius").rename(project.parent / "moved")
    write(project / "data" / "b.parquet", range(50, 90))
    protect(Path("second"), project / "data" / "b.parquet", "others")
    monkeypatch.setenv("DALENIUS_HOME", str(project.parent / "moved"))
    with pytest.raises(NotAllowedError, match="another home"):
        protect(Path("second"), project / "data" / "a.parquet", "again")


def test_the_home_that_is_nearest_to_the_working_folder_is_known(tmp_path, project, monkeypatch):
    far = tmp_path / "far" / "data"
    far.mkdir(parents=True)
    write(far / "c.parquet", range(100, 130))
    protect(project / ".dalenius", far / "c.parquet", "distant")
    protect_elsewhere = Path("second").absolute()
    monkeypatch.chdir(project / "data")
    with pytest.raises(NotAllowedError, match="another home"):
        protect(protect_elsewhere, far / "c.parquet", "again")


def test_the_home_in_which_the_data_lie_is_known(tmp_path, project):
    home = tmp_path / "kept"
    (home / "data").mkdir(parents=True)
    write(home / "data" / "d.parquet", range(200, 230))
    protect(home, home / "data" / "d.parquet", "inside")
    with pytest.raises(NotAllowedError, match="another home"):
        protect(Path("second"), home / "data" / "d.parquet", "again")
    (home / "DEMO").touch()  # whose people are made up
    assert protect(Path("second"), home / "data" / "d.parquet", "again").tables()


def test_a_mark_makes_no_demo_of_a_home_that_protects_what_lies_elsewhere(project):
    (project / ".dalenius" / "DEMO").touch()
    with pytest.raises(NotAllowedError, match="another home"):
        protect(Path("second"), project / "data" / "a.parquet", "again")


def test_a_file_that_a_refresh_brings_is_looked_at_too(project):
    write(project / "data" / "b-1.parquet", range(50, 90))
    curator = protect(Path("second"), project / "data" / "b-*.parquet", "others")
    shutil.copy(project / "data" / "a.parquet", project / "data" / "b-2.parquet")
    with pytest.raises(NotAllowedError, match="another home"):
        curator.refresh("others")


@pytest.mark.parametrize("how", ["refresh", "protect"])
def test_a_path_of_its_own_does_not_open_a_home_to_what_another_has_protected(project, how):
    write(project / "data" / "b.parquet", range(50, 60))
    curator = protect(Path("second"), project / "data" / "b.parquet", "others")
    shutil.copy(project / "data" / "a.parquet", project / "data" / "b.parquet")
    with pytest.raises(NotAllowedError, match="another home"):
        curator.refresh("others", yes=True) if how == "refresh" else protect(
            Path("second"), project / "data" / "b.parquet", "others", yes=True
        )
    assert [each.data_version for each in curator.history("others")] == [1]


def test_a_known_content_does_not_open_a_home_to_the_path_that_another_protects(project):
    write(project / "data" / "b.parquet", range(50, 60))
    protect(Path("second"), project / "data" / "b.parquet", "others")
    shutil.copy(project / "data" / "b.parquet", project / "data" / "a.parquet")
    with pytest.raises(NotAllowedError, match="another home"):
        protect(Path("second"), project / "data" / "a.parquet", "others", yes=True)


def test_a_table_that_two_homes_have_since_long_ago_can_still_be_changed(project, monkeypatch):
    monkeypatch.setattr("dalenius.owner.protect.check_first_home", lambda *_: None)
    second = protect(Path("second"), project / "data" / "a.parquet", "again")
    monkeypatch.undo()
    policy = project / "again.toml"
    policy.write_text(policy.read_text().replace("rows = 5", "rows = 6"))
    assert second.protect(policy, yes=True)[0].recorded


def test_another_home_is_only_looked_at(project):
    home = project / ".dalenius"
    Curator(home).ledger.database.close()
    before = {each.name: each.stat().st_mtime_ns for each in home.iterdir()}
    assert [each["table"] for each in actions_of(home, ("policy",))] == ["visits"]
    assert {each.name: each.stat().st_mtime_ns for each in home.iterdir()} == before


@pytest.mark.parametrize("content", [b"", b"no ledger at all, but long enough to be taken for one" * 100])
def test_what_is_no_ledger_is_no_home(project, content):
    (project / ".dalenius" / NAME).write_bytes(content)
    assert not list(actions_of(project / ".dalenius", ("policy",)))
    assert protect(Path("second"), project / "data" / "a.parquet", "again").tables()


# --- who hears of which home


def test_what_is_sent_far_away_names_nothing_of_the_other_home(project):
    shutil.copy(project / "data" / "a.parquet", project / "data" / "copy.parquet")
    with pytest.raises(OtherHomeError) as caught:
        protect(Path("second"), project / "data" / "copy.parquet", "again")
    for told in (json.dumps(problem(caught.value)), json.dumps(caught.value.to_dict()), str(caught.value)):
        assert str(project) not in told and "visits" not in told


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_the_command_line_says_where_the_other_home_is(project, capsys, monkeypatch, how):
    monkeypatch.setenv("COLUMNS", "500")
    policy = project / "again.toml"
    policy.write_text(POLICY.format(name="again", source=project / "data" / "a.parquet"))
    assert run(build(), ["--home", "second", "protect", str(policy), "--yes", *how]) == NotAllowedError.exit_code
    assert f"That home is {project / '.dalenius'}" in "".join(capsys.readouterr())


# --- what somebody may have put there

TABLE = "CREATE TABLE entries (number INTEGER, kind TEXT, body TEXT)"
ENDLESS = "WITH RECURSIVE n(number) AS (VALUES (1) UNION ALL SELECT number + 1 FROM n)"
NO_LEDGERS = {
    "an endless one": f"CREATE VIEW entries AS {ENDLESS} SELECT number, 'policy' kind, '' body FROM n WHERE number < 0",
    "a virtual table": "CREATE VIRTUAL TABLE entries USING fts5(number, kind, body)",
    "other columns": "CREATE TABLE entries (a, b)",
}
BODIES = {
    "nested for ever": "[" * 200_000,
    "not JSON": "{",
    "a number without end": "9" * 10_000,
    "too long": " " * 5000,
}
ODD = [
    "{}",
    "[]",
    '{"fingerprint": "abc"}',
    '{"fingerprint": {"files": 7}}',
    '{"fingerprint": {"files": [{"path": [1]}, 8]}}',
]


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A folder with data, and beside them a home that nobody made with dalenius."""
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    data = tmp_path / "project" / "data"
    (data / ".dalenius").mkdir(parents=True)
    write(data / "a.parquet", range(20))
    monkeypatch.chdir(tmp_path)
    return data


def plant(folder: Path, schema: str, *bodies: str) -> None:
    connection = sqlite3.connect(folder / ".dalenius" / NAME)
    connection.execute(schema)
    for each in bodies:
        connection.execute("INSERT INTO entries VALUES (1, 'policy', ?)", (each,))
    connection.commit()
    connection.close()


@pytest.mark.parametrize("what", NO_LEDGERS)
def test_what_cannot_be_a_ledger_neither_runs_nor_stops_anybody(planted, what):
    plant(planted, NO_LEDGERS[what])
    assert protect(Path("second"), planted / "a.parquet", "visits").tables()


def test_records_of_another_shape_name_no_files(planted):
    plant(planted, TABLE, *ODD)
    assert len(list(actions_of(planted / ".dalenius", ("policy",)))) == len(ODD) - 1
    assert protect(Path("second"), planted / "a.parquet", "visits").tables()


@pytest.mark.parametrize("what", BODIES)
def test_a_ledger_that_cannot_be_read_stops_and_says_what_to_do(planted, monkeypatch, what):
    monkeypatch.setattr(elsewhere, "_LENGTH", 4000 if what == "too long" else 2**26)
    plant(planted, TABLE, BODIES[what])
    with pytest.raises(OtherHomeError, match="cannot be read") as caught:
        protect(Path("second"), planted / "a.parquet", "visits")
    assert caught.value.home == planted / ".dalenius" and "move away" in caught.value.fix
    assert str(planted) not in str(caught.value)


def test_more_records_than_anybody_makes_are_not_read(planted, monkeypatch):
    monkeypatch.setattr(elsewhere, "_ROWS", 3)
    plant(planted, TABLE, *["{}"] * 3)
    assert len(list(actions_of(planted / ".dalenius", ("policy",)))) == 3
    plant(planted, "CREATE TABLE more (a)", "{}")
    with pytest.raises(OtherHomeError):
        list(actions_of(planted / ".dalenius", ("policy",)))


def test_what_takes_long_is_given_up(planted, monkeypatch):
    plant(planted, TABLE)
    connection = sqlite3.connect(planted / ".dalenius" / NAME)
    connection.execute(f"INSERT INTO entries {ENDLESS} SELECT number, 'other', '' FROM n LIMIT 100000")
    connection.commit()
    connection.close()
    monkeypatch.setattr(elsewhere, "_STEPS", 100)
    monkeypatch.setattr(elsewhere, "_SECONDS", 0.001)
    begun = time.monotonic()
    with pytest.raises(OtherHomeError):
        list(actions_of(planted / ".dalenius", ("policy",)))
    assert time.monotonic() - begun < 5


def test_a_home_of_somebody_else_is_not_looked_at(project, monkeypatch):
    monkeypatch.setattr(elsewhere, "trusted_owners", lambda: frozenset({2**31}))
    assert not list(actions_of(project / ".dalenius", ("policy",)))
    assert protect(Path("second"), project / "data" / "a.parquet", "again").tables()


def test_a_home_that_is_locked_is_not_taken_for_one_that_has_nothing(planted, monkeypatch):
    monkeypatch.setattr(elsewhere, "_BUSY", 0.05)
    plant(planted, TABLE, "{}")
    connection = sqlite3.connect(planted / ".dalenius" / NAME, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("INSERT INTO entries VALUES (2, 'policy', '{}')")
    with pytest.raises(OtherHomeError, match="cannot be read"):
        protect(Path("second"), planted / "a.parquet", "visits")
    connection.close()
    assert protect(Path("second"), planted / "a.parquet", "visits").tables()
