"""The owner's files over HTTP: listed, described and sent, as a whole or not at all; nothing of a row is told."""

from __future__ import annotations

import gzip
import http.client
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.serving import Reply, Server, serving

from dalenius.ledger.ledger import Ledger

pytestmark = pytest.mark.integration

SECRET = "zanzibar"  # a value of the data
MOST, RECEIVE = 20_000, 0.5
CONTENT = f"id,note\n{''.join(f'{each},{SECRET}{chr(10)}' for each in range(300))}".encode()
CONFIG = f"upload = {MOST}\nbody = 1000\nreceive = {RECEIVE}\nrate = 100000\nburst = 100000\nconsole = false"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("files")
    data = folder / "data"
    (data / "deep").mkdir(parents=True)
    (data / "visits.csv").write_bytes(CONTENT)
    (data / "deep" / "a b.csv").write_text("x\n1\n")
    (data / "broken.parquet").write_text(SECRET)
    (folder / "out.csv").write_bytes(CONTENT)
    (data / "link.csv").symlink_to(folder / "out.csv")
    (data / ".hidden.csv").write_bytes(CONTENT)
    Ledger.create(folder / "home")
    with serving(folder / "home", "--data-dir", str(data), config=CONFIG) as found:
        yield found
        text = found.log_file.read_text()
        assert "Traceback" not in text
        assert '"bug"' not in text
        assert SECRET not in text
        assert not [each for each in found.log if each.get("status", 0) >= 500]


@pytest.fixture
def folder(server: Server) -> Iterator[Path]:
    """The data folder; a file that came in only in part is nowhere, at no time after an answer."""
    found = server.home.parent / "data"
    yield found
    assert not list(found.glob(".*.part"))


def put(server: Server, name: str, content: bytes, role: str = "owner", **headers: str) -> Reply:
    client = server.client(server.token(role, "ana" if role == "analyst" else ""))
    sent = {"Content-Type": "text/csv"} | {each.replace("_", "-"): value for each, value in headers.items()}
    try:
        return client.request("PUT", f"/v1/files/{quote(name, safe='')}", content, sent)
    finally:
        client.close()  # who is refused may not have been heard to the end


def in_pieces(server: Server, name: str, pieces: Iterable[bytes]) -> int:
    """Sends a file whose length is not told beforehand."""
    connection = http.client.HTTPConnection(server.url.partition("//")[2], timeout=20)
    headers = {"Authorization": f"Bearer {server.token('owner')}"}
    try:
        connection.request("PUT", f"/v1/files/{name}", iter(pieces), headers, encode_chunked=True)
        return connection.getresponse().status
    finally:
        connection.close()


def begun(server: Server, name: str, token: str, length: int) -> socket.socket:
    """A connection on which a file was announced."""
    parts = server.client(None).parts
    wire = socket.create_connection((parts.hostname, parts.port), timeout=20)
    lines = f"PUT /v1/files/{name} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n"
    wire.sendall(f"{lines}\r\n".encode())
    return wire


def until(server: Server, status: int, seen: int) -> None:
    """Until the server has told in its log of one more request that ended so."""
    end = time.monotonic() + 20
    while count(server, status) <= seen:
        assert time.monotonic() < end
        time.sleep(0.02)


def count(server: Server, status: int) -> int:
    return sum(each.get("route") == "/v1/files/{name:path}" and each["status"] == status for each in server.log)


# --- what is there


def test_the_owner_sees_which_files_there_are(server: Server) -> None:
    found = server.owner().get("/v1/files")
    assert found.status == 200
    assert {"visits.csv", "deep/a b.csv", "broken.parquet"} <= set(found.json["files"])
    assert not {"link.csv", ".hidden.csv"} & set(found.json["files"])


def test_the_owner_sees_columns_and_no_value(server: Server) -> None:
    owner = server.owner()
    found = owner.get("/v1/files/visits.csv")
    columns = [{"name": "id", "type": "BIGINT"}, {"name": "note", "type": "VARCHAR"}]
    assert (found.status, found.json) == (200, {"name": "visits.csv", "columns": columns})
    deep = [owner.get(f"/v1/files/{path}") for path in ("deep/a%20b.csv", "deep%2Fa%20b.csv")]
    assert [each.json["name"] for each in deep] == ["deep/a b.csv"] * 2
    broken = owner.get("/v1/files/broken.parquet")
    assert (broken.status, broken.json["code"]) == (422, "input.invalid")
    assert SECRET.encode() not in found.content + broken.content


TRICKS = [
    "../out.csv",
    "../missing.csv",
    "..%2fout.csv",
    "%2e%2e/out.csv",
    "deep/../../out.csv",
    "deep/../visits.csv",
    "/etc/passwd",
    "%2Fetc%2Fpasswd",
    "%2Fetc%2Fpasswd.csv",
    "link.csv",
    ".hidden.csv",
    "*.csv",
    "v%3Fsits.csv",
    "[v]isits.csv",
    "**/visits.csv",
    "visits.csv%00",
    "visits.csv/",
    "",
]


@pytest.mark.parametrize("name", TRICKS)
def test_tricks_with_names_lead_nowhere(server: Server, name: str) -> None:
    found = server.owner().get(f"/v1/files/{name}")
    assert (found.status, found.json["code"]) == (422, "policy.not-allowed")
    assert b"columns" not in found.content


def test_a_file_outside_is_refused_alike_whether_it_is_there_or_not(server: Server) -> None:
    owner = server.owner()
    paths = ("../out.csv", "../missing.csv", "/etc/missing.csv")
    assert len({owner.get(f"/v1/files/{quote(each, safe='')}").content for each in paths}) == 1
    assert owner.get("/v1/files/missing.csv").status == 404


# --- what comes in


@pytest.mark.parametrize("kind", ["text/csv", "application/octet-stream", "application/json", ""])
def test_a_file_comes_in_as_it_is_of_whatever_kind(server: Server, folder: Path, kind: str) -> None:
    name = f"new-{kind.partition('/')[2] or 'kind'}.csv"
    done = put(server, name, CONTENT, Content_Type=kind)
    assert (done.status, done.json) == (201, {"name": name})
    assert (folder / name).read_bytes() == CONTENT
    assert (folder / name).stat().st_mode & 0o077 == 0
    owner = server.owner()
    assert name in owner.get("/v1/files").json["files"]
    assert [each["name"] for each in owner.get(f"/v1/files/{name}").json["columns"]] == ["id", "note"]


def test_a_file_comes_in_piece_by_piece_as_slowly_as_each_piece_may(server: Server, folder: Path) -> None:
    def pieces() -> Iterator[bytes]:
        for at in range(0, len(CONTENT), 1000):  # each in time, all of them not
            time.sleep(0.6 * RECEIVE)
            yield CONTENT[at : at + 1000]

    assert in_pieces(server, "pieces.csv", pieces()) == 201
    assert (folder / "pieces.csv").read_bytes() == CONTENT


def test_pieces_go_to_the_disk_before_the_last_one_is_there(server: Server, folder: Path) -> None:
    with begun(server, "half.csv", server.token("owner"), len(CONTENT)) as wire:
        wire.sendall(CONTENT[:2000])
        end = time.monotonic() + RECEIVE
        while not (part := next(folder.glob(".*.part"), None)) or part.stat().st_size < 2000:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert not (folder / "half.csv").exists()
        wire.sendall(CONTENT[2000:])
        assert wire.recv(65536).startswith(b"HTTP/1.1 201 ")
    assert (folder / "half.csv").read_bytes() == CONTENT


def test_a_file_is_never_replaced(server: Server, folder: Path) -> None:
    assert put(server, "once.csv", CONTENT).status == 201
    again = put(server, "once.csv", b"id\n1\n")
    assert (again.status, again.json["message"]) == (400, "A file of this name is there already.")
    assert put(server, "link.csv", b"id\n1\n").status == 400
    assert put(server, "visits.csv", b"id\n1\n").status == 400
    assert {(folder / each).read_bytes() for each in ("once.csv", "visits.csv", "link.csv")} == {CONTENT}


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../a.csv", "a.csv"),
        ("/etc/a.csv", "a.csv"),
        ("deep/a.csv", "a.csv"),
        (".a.csv", "a.csv"),
        ("a b.csv", "a_b.csv"),
        ("a.CSV", "a.csv"),
        ("a\0.csv", "a.csv"),
        ("*.csv", None),
        ("a.toml", None),
        ("..", None),
        ("", None),
    ],
)
def test_a_name_is_taken_as_it_is_or_refused(server: Server, folder: Path, name: str, safe: str | None) -> None:
    before = sorted(folder.parent.rglob("*"))
    found = put(server, name, CONTENT)
    assert (found.status, found.json["code"]) == (400, "input.invalid")
    assert safe is None or found.json["fix"] == f"Send it as {safe}."
    assert sorted(folder.parent.rglob("*")) == before


def test_only_the_owner_sees_and_sends_files(server: Server, folder: Path) -> None:
    before = sorted(folder.iterdir())
    for client in (server.analyst("ana"), server.auditor()):
        for path in ("/v1/files", "/v1/files/visits.csv", "/v1/files/missing.csv"):
            assert client.get(path).status == 403
    assert [put(server, "a.csv", CONTENT, role).status for role in ("analyst", "auditor")] == [403, 403]
    nobody = server.client(None)
    assert nobody.get("/v1/files").status == 401
    assert nobody.request("PUT", "/v1/files/a.csv", CONTENT).status == 401
    assert sorted(folder.iterdir()) == before


def test_who_may_not_send_a_file_is_told_before_a_piece_is_taken(server: Server) -> None:
    """Nobody waits for the body: the answer is there while none of it was sent."""
    analyst, auditor, owner = server.token("analyst", "ana"), server.token("auditor"), server.token("owner")
    for token, name, status in (
        (analyst, "a.csv", b"403"),
        (auditor, "a.csv", b"403"),
        (owner, "visits.csv", b"400"),
        (owner, "a.toml", b"400"),
    ):
        with begun(server, name, token, 1000) as wire:
            start = time.monotonic()
            assert wire.recv(65536).split(b" ")[1] == status
            assert time.monotonic() - start < RECEIVE


def test_a_file_that_is_too_large_is_refused(server: Server, folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert put(server, "a.csv", b"1" * (MOST + 1)).status == 413
    with begun(server, "a.csv", server.token("owner"), 10**12) as wire:
        assert wire.recv(65536).split(b" ")[1] == b"413"
    assert in_pieces(server, "a.csv", [b"1" * (MOST // 2)] * 3) == 413
    assert sorted(folder.iterdir()) == before
    assert put(server, "exact.csv", b"id\n" + b"1" * (MOST - 3)).status == 201


def test_a_file_that_breaks_off_is_not_there(server: Server, folder: Path) -> None:
    before, seen = sorted(folder.iterdir()), count(server, 408)
    with begun(server, "a.csv", server.token("owner"), len(CONTENT)) as wire:
        wire.sendall(CONTENT[:1000])
    until(server, 408, seen)
    assert sorted(folder.iterdir()) == before


def test_a_file_that_stops_coming_is_not_there(server: Server, folder: Path) -> None:
    before = sorted(folder.iterdir())
    with begun(server, "a.csv", server.token("owner"), len(CONTENT)) as wire:
        wire.sendall(CONTENT[:1000])
        found = b""
        while more := wire.recv(65536):  # until it hangs up
            found += more
    assert found.startswith(b"HTTP/1.1 408 ")
    assert b"\r\nconnection: close\r\n" in found.lower()
    assert sorted(folder.iterdir()) == before


def test_an_empty_file_is_refused(server: Server, folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert put(server, "a.csv", b"").status == 400
    assert in_pieces(server, "a.csv", []) == 400
    assert sorted(folder.iterdir()) == before


def test_a_file_is_not_unpacked_on_its_way(server: Server, folder: Path) -> None:
    packed = gzip.compress(CONTENT)
    for coding in ("gzip", "deflate", "identity, gzip", "br"):
        assert put(server, "a.csv", packed, Content_Encoding=coding).status == 415
    assert not (folder / "a.csv").exists()
    assert put(server, "packed.csv.gz", packed, Content_Encoding="identity").status == 201
    found = server.owner().get("/v1/files/packed.csv.gz")
    assert [each["name"] for each in found.json["columns"]] == ["id", "note"]


def test_other_routes_still_take_small_json_alone(server: Server) -> None:
    for method, path in (("POST", "/v1/files/a.csv"), ("PUT", "/v1/files"), ("PUT", "/v1/datasets/a/analysts/b")):
        owner = server.owner()
        assert owner.request(method, path, b"1" * 1001).status == 413
        owner.close()
        assert owner.request(method, path, b"id\n", {"Content-Type": "text/csv"}).status == 415
        owner.close()


def test_a_file_that_came_in_can_be_protected(server: Server) -> None:
    assert put(server, "people.csv", b"id,age\n" + b"".join(b"%d,30\n" % each for each in range(100))).status == 201
    policy = """
    [table]
    name = "people"
    source = "people.csv"
    unit = "id"
    [budget]
    epsilon = 1.0
    delta = 1e-6
    [columns.age]
    type = "integer"
    bounds = [0, 100]
    [contribution]
    rows = 1
    """
    assert server.owner().post("/v1/protect", {"policies": [policy], "dry_run": True}).status == 200


def test_without_a_folder_there_are_no_files(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "home")
    with serving(tmp_path / "home", config="console = false") as bare:
        owner = bare.owner()
        found = [owner.get("/v1/files"), owner.get("/v1/files/a.csv"), put(bare, "a.csv", CONTENT)]
        assert {(each.status, each.json["code"]) for each in found} == {(422, "policy.not-allowed")}
        assert {each.json["message"] for each in found} == {"This server takes no files."}
