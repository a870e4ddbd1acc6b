"""A file that one home protects gets no second budget in another, as far as that home can be known."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius import Curator
from dalenius.errors import NotAllowedError
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
    with pytest.raises(NotAllowedError, match="another home, as table 'visits'") as caught:
        protect(Path("second"), project / "data" / "a.parquet", "again", yes=yes)
    assert f"--home {project / '.dalenius'}" in caught.value.fix and 'dataset = "visits"' in caught.value.fix
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
    with pytest.raises(NotAllowedError, match="another home, as table 'distant'"):
        protect(protect_elsewhere, far / "c.parquet", "again")


def test_the_home_in_which_the_data_lie_is_known(tmp_path, project):
    home = tmp_path / "kept"
    (home / "data").mkdir(parents=True)
    write(home / "data" / "d.parquet", range(200, 230))
    protect(home, home / "data" / "d.parquet", "inside")
    with pytest.raises(NotAllowedError, match="another home, as table 'inside'"):
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
    with pytest.raises(NotAllowedError, match="another home, as table 'visits'"):
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
    assert actions_of(project / ".dalenius", ("policy",)) == []
    assert protect(Path("second"), project / "data" / "a.parquet", "again").tables()
