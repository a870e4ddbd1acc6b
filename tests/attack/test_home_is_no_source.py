"""No file of a home can be read as a source or written over: by no path, in process, by command and over HTTP.

With `serve --data-dir .` the home lies below the data folder. A policy that calls `keys/signing.key` a code list, or
an index in `storage` a public table, would hand either to every analyst.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.attack.hostile import people, protected
from tests.serving import Server, serving

from dalenius.app.cli import build, run
from dalenius.curator import Curator
from dalenius.errors import DaleniusError, NotAllowedError
from dalenius.ledger.chain import ANCHOR
from dalenius.ledger.database import NAME
from dalenius.tables.columns import code_list
from dalenius.tables.sources import homes
from dalenius.tables.sources.fingerprint import expand, fingerprint

PEM = "-----BEGIN PRIVATE KEY-----"
POLICY = """
[table]
name = "other"
source = "other.csv"
unit = "id"
[budget]
epsilon = 1.0
delta = 1e-6
[analysts.eve]
epsilon = 1.0
[columns.note]
type = "text"
[contribution]
rows = 1
groups = 1
"""
AS_KEYS = POLICY.replace('type = "text"', 'type = "category"\nkeys = {{ file = "{}", column = "' + PEM + '" }}')
AS_PUBLIC = POLICY + '[public]\ntables = {{ leak = {{ source = "{}" }} }}\n'
AS_SOURCE = POLICY.replace("other.csv", "{}")


@pytest.fixture
def curator(tmp_path: Path) -> Curator:
    """A home below the folder of the data, with an index in it."""
    made = protected(tmp_path / "data dir", people(victim=True))
    (made.home.parent / "other.csv").write_text("id,note\n1,a\n2,b\n")
    assert list(made.home.glob("storage/**/*.parquet"))
    return made


def index_of(home: Path) -> Path:
    return next(iter(home.glob("storage/**/*.parquet")))


def named(home: Path, file: Path) -> dict[str, Path]:
    """A file of the home by all paths that a person could think of; those of the folder itself come first."""
    folder, end = home.parent, "".join(file.suffixes[-1:])
    (folder / f"soft{end}").symlink_to(file)
    (folder / "way").symlink_to(file.parent, target_is_directory=True)
    os.link(file, folder / f"hard{end}")
    (folder / f"soft to hard{end}").symlink_to(folder / f"hard{end}")
    found = {
        "as it is": file,
        "a link": folder / f"soft{end}",
        "a folder that is a link": folder / "way" / file.name,
        "a hard link": folder / f"hard{end}",
        "a link to a hard link": folder / f"soft to hard{end}",
        "up and down": folder / "nowhere" / ".." / file.relative_to(folder),
        "a pattern": file.parent / f"*{end}",
        "a pattern of folders": folder / "ho*" / file.relative_to(home).parent / file.name,
        "a pattern of depth": folder / "**" / file.name,
        "the process's own": Path("/proc/self/cwd") / os.path.relpath(file),
    }
    (folder / "nowhere").mkdir()
    return found


@pytest.mark.parametrize("form", [AS_PUBLIC, AS_SOURCE], ids=["public", "source"])
def test_no_policy_makes_a_table_of_a_homes_file_by_any_path(curator: Curator, form: str) -> None:
    file = index_of(curator.home)
    for words, path in named(curator.home, file).items():
        with pytest.raises(NotAllowedError) as error:
            curator.protect(_written(curator, form.format(path)), yes=True)
        assert "home" in error.value.message, words
    assert [each.table for each in curator.tables()] == ["visits"]


def test_no_policy_reads_keys_from_a_homes_file_by_any_path(curator: Curator) -> None:
    for words, path in named(curator.home, curator.home / "keys" / "signing.key").items():
        if "pattern" in words:
            continue  # a code list is one file
        with pytest.raises(NotAllowedError) as error:
            curator.protect(_written(curator, AS_KEYS.format(path)), yes=True)
        assert "home" in error.value.message, words


def test_an_open_file_of_a_home_is_none_either(curator: Curator) -> None:
    with (curator.home / "keys" / "signing.key").open() as key:
        for path in (f"/proc/self/fd/{key.fileno()}", f"/dev/fd/{key.fileno()}"):
            with pytest.raises(DaleniusError) as error:
                code_list(Path(path), PEM, "columns.note.keys")
            assert error.value.code == "policy.not-allowed", path


def test_a_code_list_that_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "codes.csv")
    with pytest.raises(DaleniusError):
        code_list(tmp_path / "codes.csv", "code", "columns.note.keys")


def test_the_files_of_another_home_are_no_sources_whatever_it_is_called(curator: Curator, tmp_path: Path) -> None:
    other = tmp_path / "innocent"
    shutil.copytree(curator.home, other)
    file = index_of(other)
    (tmp_path / "way").symlink_to(other, target_is_directory=True)
    for path in (file, tmp_path / "way" / file.relative_to(other)):
        with pytest.raises(NotAllowedError):
            expand([str(path)])
    (other / NAME).unlink()  # what is left of one is still one
    with pytest.raises(NotAllowedError):
        expand([str(file)])


def test_a_home_is_known_by_what_the_ledger_writes() -> None:
    assert {NAME, ANCHOR} < set(homes.MARKS)


def test_data_in_a_homes_data_folder_are_data_and_nothing_else_is(curator: Curator) -> None:
    data = curator.home / homes.DATA
    data.mkdir()
    (data / "mine.csv").write_text("id\n1\n")
    assert fingerprint([str(data / "mine.csv")]).paths == (data / "mine.csv",)
    (data / "mine.parquet").symlink_to(index_of(curator.home))
    nested = curator.home / "storage" / homes.DATA
    nested.mkdir()
    shutil.copy(data / "mine.csv", nested / "mine.csv")
    os.link(index_of(curator.home), data / "hard.parquet")
    for path in (data / "mine.parquet", nested / "mine.csv", data / "hard.parquet"):
        with pytest.raises(NotAllowedError):
            expand([str(path)])


def test_a_public_table_that_was_declared_in_a_home_once_is_no_longer_read(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("dalenius.tables.sources.fingerprint.check_sources", lambda _: None)
        before.setattr("dalenius.owner.public_files.check_public", lambda *_: None)
        curator.protect(_written(curator, AS_PUBLIC.format(index_of(curator.home))), yes=True)
    with pytest.raises(NotAllowedError):
        curator.analyst("eve").ask("SELECT COUNT(*) FROM leak", epsilon=0.1)
    with pytest.raises(NotAllowedError):
        curator.analyst("eve").preview("SELECT COUNT(*) FROM leak")


# --- what a home keeps elsewhere, by links


@pytest.fixture
def spread(curator: Curator) -> tuple[Curator, Path]:
    """The same home, with everything of it on another disk, under other names: only links are left of it."""
    elsewhere = curator.home.parent / "big disk"
    (elsewhere / "rest").mkdir(parents=True)
    home = curator.home
    curator.ledger.database.close()
    for name, there in (("storage", "index"), ("keys", "secrets"), ("tables", "rest/texts")):
        (home / name).rename(elsewhere / there)
        (home / name).symlink_to(Path("..") / elsewhere.name / there, target_is_directory=True)
    for name, there in ((NAME, "spent.db"), (ANCHOR, "end.txt")):
        (home / name).rename(elsewhere / "rest" / there)
        (home / name).symlink_to(elsewhere / "rest" / there)
    return Curator(home), elsewhere


def test_what_a_home_keeps_elsewhere_by_links_is_no_source_either(spread: tuple[Curator, Path]) -> None:
    curator, elsewhere = spread
    index = next(iter((elsewhere / "index").glob("*.parquet")))
    os.link(index, elsewhere / "hard.parquet")
    os.link(elsewhere / "secrets" / "signing.key", elsewhere / "hard.csv")
    (elsewhere / "index" / homes.DATA).mkdir()  # which is for data in a home alone
    shutil.copy(index, elsewhere / "index" / homes.DATA / "x.parquet")
    for form in (AS_PUBLIC, AS_SOURCE):
        for path in (index, elsewhere / "hard.parquet", elsewhere / "index/data/x.parquet", elsewhere / "**/*.parquet"):
            with pytest.raises(NotAllowedError) as error:
                curator.protect(_written(curator, form.format(path)), yes=True)
            assert "home" in error.value.message, path
    for path in (elsewhere / "secrets" / "signing.key", elsewhere / "hard.csv"):
        with pytest.raises(NotAllowedError):
            curator.protect(_written(curator, AS_KEYS.format(path)), yes=True)
    assert [each.table for each in curator.tables()] == ["visits"]


def test_the_ledger_and_what_stands_beside_it_are_known_where_a_link_leads_to_them(
    spread: tuple[Curator, Path],
) -> None:
    curator, elsewhere = spread
    assert curator.ledger.balance("visits", "eve").charges == 0
    rest = elsewhere / "rest"
    (curator.home / "config.toml").symlink_to(rest / "not there yet.toml")
    os.link(rest / "spent.db", elsewhere / "hard.json")
    for path in ("rest/spent.db", "rest/spent.db-wal", "rest/end.txt", "rest/not there yet.toml", "hard.json"):
        with pytest.raises(NotAllowedError):
            homes.check_output(elsewhere / path)
    homes.check_output(rest / "mine.csv")  # beside them is not in the home


def test_links_are_followed_as_far_as_they_lead(curator: Curator, tmp_path: Path) -> None:
    deep, deeper = tmp_path / "deep", tmp_path / "deeper"
    deep.mkdir()
    deeper.mkdir()
    (curator.home / "storage" / "more").symlink_to(deep, target_is_directory=True)
    (deep / "more").symlink_to(deeper, target_is_directory=True)
    (deeper / "round").symlink_to(curator.home, target_is_directory=True)
    (deeper / "itself").symlink_to("itself")
    shutil.copy(index_of(curator.home), deeper / "x.parquet")
    os.link(deeper / "x.parquet", tmp_path / "hard.parquet")
    for path in (deeper / "x.parquet", tmp_path / "hard.parquet"):
        with pytest.raises(NotAllowedError):
            expand([str(path)])


def test_data_behind_a_link_are_data(curator: Curator, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "mine.csv").write_text("id\n1\n")
    (curator.home / homes.DATA).symlink_to(tmp_path / "tables", target_is_directory=True)
    for path in (tmp_path / "tables" / "mine.csv", curator.home / homes.DATA / "mine.csv"):
        assert len(fingerprint([str(path)]).paths) == 1


def test_a_public_table_that_lies_where_a_home_keeps_its_index_is_no_longer_read(
    spread: tuple[Curator, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    curator, elsewhere = spread
    with monkeypatch.context() as before:
        before.setattr("dalenius.tables.sources.fingerprint.check_sources", lambda _: None)
        before.setattr("dalenius.owner.public_files.check_public", lambda *_: None)
        curator.protect(_written(curator, AS_PUBLIC.format(next((elsewhere / "index").glob("*.parquet")))), yes=True)
    with pytest.raises(NotAllowedError):
        curator.analyst("eve").ask("SELECT COUNT(*) FROM leak", epsilon=0.1)


def test_the_keys_of_another_home_are_known_by_themselves(curator: Curator, tmp_path: Path) -> None:
    shutil.copytree(curator.home / "keys", tmp_path / "secrets")
    with pytest.raises(DaleniusError) as error:
        code_list(tmp_path / "secrets" / "signing.key", PEM, "columns.note.keys")
    assert error.value.code == "policy.not-allowed"


def _written(curator: Curator, text: str) -> Path:
    policy = curator.home.parent / "other.toml"
    policy.write_text(text)
    return policy


# --- by command


@pytest.fixture
def call(
    curator: Curator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    monkeypatch.chdir(curator.home.parent)

    def called(*words: str) -> tuple[int, str]:
        code = run(build(), [*words, "--home", str(curator.home), "--json"])
        found = capsys.readouterr()
        return code, found.out + found.err

    return called


def test_no_command_reads_a_homes_file(curator: Curator, call: Callable[..., tuple[int, str]]) -> None:
    index = index_of(curator.home)
    os.link(index, "hard.parquet")
    (curator.home / "meta.yaml").write_text("")
    commands = [
        ("policy", "draft", str(index)),
        ("policy", "draft", "hard.parquet"),
        ("policy", "draft", "home/storage/**/*.parquet"),
        ("policy", "draft", "other.csv", "--keys", "note=home/keys/signing.key:x"),
        ("policy", "draft", "other.csv", "--from", "home/meta.yaml"),
    ]
    for form in (AS_PUBLIC, AS_SOURCE, AS_KEYS):
        text = form.format("home/keys/signing.key" if form is AS_KEYS else index)
        policy = _written(curator, text).rename(f"{len(commands)}.toml").name
        commands += [("policy", "check", policy), ("protect", policy, "--yes"), ("protect", policy, "--dry-run")]
    for words in commands:
        code, told = call(*words)
        assert code != 0 and "policy.not-allowed" in told, words
        assert PEM not in told


def test_no_command_writes_into_a_home_or_over_a_file_of_it(
    curator: Curator, call: Callable[..., tuple[int, str]]
) -> None:
    ledger = curator.home / NAME
    for end in ("csv", "parquet", "json", "png", "html"):
        os.link(ledger, f"hard.{end}")
    Path("way").symlink_to(curator.home, target_is_directory=True)
    before = {file: file.read_bytes() for file in curator.home.rglob("*") if file.is_file()}
    ask = ("ask", "SELECT COUNT(*) FROM visits", "--epsilon", "0.1", "--analyst", "eve")
    commands = [
        (*ask, "-o", "home/x.csv"),
        (*ask, "-o", "way/x.csv"),
        (*ask, "-o", "hard.csv"),
        (*ask, "-o", "hard.json"),
        (*ask, "--plot", "hard.png"),
        ("tables", "visits", "--fake", "5", "-o", "hard.parquet"),
        ("tables", "visits", "--fake", "5", "-o", "home/storage/x.csv"),
        ("policy", "draft", "other.csv", "-o", "home/config.toml"),
        ("policy", "draft", "other.csv", "-o", "hard.csv", "--yes"),
        ("ledger", "report", "-o", "hard.html", "--yes"),
        ("ledger", "report", "-o", "home/report.html"),
        ("budget", "--plot", "home/x.png"),
        ("token", "create", "--role", "auditor", "-o", "home/config.toml"),
    ]
    for words in commands:
        code, told = call(*words)
        assert code != 0 and "policy.not-allowed" in told, words
    after = {file: file.read_bytes() for file in curator.home.rglob("*") if file.is_file()}
    kept = {file for file in before if "sqlite" not in file.name}
    assert {file: before[file] for file in kept} == {file: after.get(file) for file in kept}
    assert Curator(curator.home).ledger.balance("visits", "eve").charges == 0


# --- over HTTP


@pytest.fixture
def server(curator: Curator) -> Iterator[Server]:
    curator.ledger.database.close()
    with serving(curator.home, "--data-dir", str(curator.home.parent), config="console = false\nrate = 10000") as found:
        yield found


def test_over_http_nothing_of_a_home_below_the_data_folder_is_reached(server: Server) -> None:
    home, owner = server.home, server.owner()
    index = index_of(home).relative_to(home.parent)
    os.link(home.parent / index, home.parent / "hard.parquet")
    os.link(home / "keys" / "signing.key", home.parent / "hard.csv")
    texts = [
        *(AS_KEYS.format(each) for each in ("home/keys/signing.key", "hard.csv", "x/../home/keys/signing.key")),
        *(AS_PUBLIC.format(each) for each in (index, "home/storage/**/*.parquet", "hard.parquet", "ho*/**/*.parquet")),
        *(AS_SOURCE.format(each) for each in (index, "hard.parquet", "**/*.parquet")),
    ]
    for text in texts:
        for more in ({"yes": True}, {"dry_run": True}):
            reply = owner.post("/v1/protect", {"policies": [text], **more})
            assert (reply.status, reply.json["code"]) == (422, "policy.not-allowed"), text
            assert PEM not in reply.content.decode() and str(home.parent) not in reply.content.decode()
    assert owner.get("/v1/files").json["files"] == ["other.csv", "visits.parquet"]
    for name in (str(index).replace("/", "%2F"), "hard.parquet", str(index)):
        assert owner.get(f"/v1/files/{name}").status in {404, 422}, name
    assert owner.request("PUT", "/v1/files/home%2Fx.csv", b"a\n1\n").status in {400, 404, 422}
    assert not (home / "x.csv").exists()
    reply = server.analyst("eve").ask("SELECT * FROM leak", epsilon=0.1)
    assert reply.json["code"] == "policy.unknown-table"
    assert [each["name"] for each in json.loads(owner.get("/v1/tables").content)["tables"]] == ["visits"]


def test_a_server_whose_data_folder_is_its_home_has_no_files_and_takes_none(curator: Curator) -> None:
    curator.ledger.database.close()
    with serving(curator.home, "--data-dir", str(curator.home), config="console = false") as server:
        owner = server.owner()
        assert owner.get("/v1/files").json == {"files": []}
        reply = owner.request("PUT", "/v1/files/x.csv", b"a\n1\n")
        assert (reply.status, reply.json["code"]) == (422, "policy.not-allowed")
        assert not (curator.home / "x.csv").exists()


def test_over_http_nothing_that_a_home_keeps_elsewhere_is_reached(spread: tuple[Curator, Path]) -> None:
    curator, elsewhere = spread
    curator.ledger.database.close()
    index = next(iter((elsewhere / "index").glob("*.parquet")))
    with serving(curator.home, "--data-dir", str(elsewhere), config="console = false") as server:
        owner = server.owner()
        assert owner.get("/v1/files").json == {"files": []}
        assert owner.request("PUT", "/v1/files/other.csv", b"id,note\n1,a\n").status == 201
        for text in (AS_PUBLIC.format(f"index/{index.name}"), AS_KEYS.format("secrets/signing.key")):
            reply = owner.post("/v1/protect", {"policies": [text], "yes": True})
            assert (reply.status, reply.json["code"]) == (422, "policy.not-allowed"), text


def test_over_http_protected_files_are_no_lists_and_files_beside_them_are_asked_about(server: Server) -> None:
    owner, folder = server.owner(), server.home.parent
    (folder / "codes.csv").write_text("code\na\n")
    (folder / "people.csv").write_text("id,note\n7,x\n")
    person = POLICY.replace('"other', '"people')
    assert owner.post("/v1/protect", {"policies": [person]}).json["tables"][0]["recorded"]
    for form, column in ((AS_KEYS, "note"), (AS_PUBLIC, "")):
        for yes in (False, True):
            text = form.format("people.csv").replace(PEM, column)
            reply = owner.post("/v1/protect", {"policies": [text], "yes": yes})
            assert (reply.status, reply.json["code"]) == (422, "policy.not-allowed")
    text = AS_KEYS.format("codes.csv").replace(PEM, "code")
    (table,) = owner.post("/v1/protect", {"policies": [text]}).json["tables"]
    assert not table["recorded"] and table["needs"] == ["yes"] and "codes.csv" in table["beside"][0]
    assert owner.post("/v1/protect", {"policies": [text], "yes": True}).json["tables"][0]["recorded"]
