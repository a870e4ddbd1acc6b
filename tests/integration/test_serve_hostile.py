"""Must show 5 of Serve: bad tokens, headers, paths, methods, bodies and connections; policies that reach elsewhere.

All of it happens to one server, which at the end has told nobody anything, broken nothing and logged no secret.
"""

import gzip
import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from tests.attack.served import behind, charges, count
from tests.serving import serving

from dalenius.app.http.limits import connection_room
from dalenius.ledger import Ledger
from dalenius.ledger.tokens import Role, Tokens

pytestmark = pytest.mark.integration

MARK = "zanzibar"  # stands in every literal, path and body that must not be logged
RECEIVE = 1.0
CONFIG = f"receive = {RECEIVE}\nrate = 100000\nburst = 100000\nconcurrency = 50\nwait = 60\nbody = 100000"
SQL = f"SELECT COUNT(*) AS n FROM visits WHERE note = '{MARK}'"
BODY = json.dumps({"sql": SQL, "epsilon": 0.01}).encode()
TEXTS: list[str] = []  # every token that was ever sent


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server that all of this happens to, and what must hold of it afterwards."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "data").mkdir()
    home = behind(folder, epsilon=100.0, analysts={"eve": 50.0, "bob": 50.0})
    with serving(home, "--data-dir", str(folder / "data"), config=CONFIG) as server:
        yield server
        assert server.analyst("bob", trusted=True).ask(count(1), epsilon=0.01).status == 200
        metrics = server.owner().get("/metrics").content.decode()
        assert server.stop() == 0
        text = server.log_file.read_text()
        assert "Traceback" not in text and '"bug"' not in text
        assert not [each for each in server.log if each.get("status", 0) >= 500]
        assert not [line for line in text.splitlines() if not line.startswith(("{", "Stopped"))]
        assert MARK not in text and MARK not in metrics
        for token in {*TEXTS, *server.tokens.values()}:
            assert token not in text and token[-43:] not in text
        charges(home)  # it verifies


def head(server, *, token=True, **more):
    """Header lines of a good request; None leaves one out."""
    lines: dict[str, str | None] = {"Host": "x", "Connection": "close"}
    if token:
        lines["Authorization"] = f"Bearer {server.token('analyst', 'eve', trusted=True)}"
    lines |= {name.replace("_", "-"): value for name, value in more.items()}
    return b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in lines.items() if value is not None)


def connected(server):
    found = socket.create_connection((server.client(None).parts.hostname, server.client(None).parts.port))
    found.settimeout(20)
    return found


def raw(server, *parts):
    """Sends bytes as they are; all that comes back until the server closes."""
    with connected(server) as wire:
        found = b""
        try:
            wire.sendall(b"".join(parts))
            while more := wire.recv(65536):
                found += more
        except ConnectionError:
            pass
        return found


def statuses(content):
    """The status of every response in there."""
    return [int(part.split(b" ", 1)[0]) for part in content.split(b"HTTP/1.1 ")[1:]]


def get(server, path, *lines, method=b"GET", token=True):
    return raw(server, method, b" ", path, b" HTTP/1.1\r\n", head(server, token=token), *lines, b"\r\n")


# --- tokens


def bad_tokens(server, folder):
    """Tokens that are none: expired, revoked, of another home, guessed."""
    tokens = Tokens(Ledger.open(server.home))
    expired, _ = tokens.create(Role.OWNER, expires=timedelta(milliseconds=1))
    revoked, known = tokens.create(Role.OWNER)
    tokens.revoke(known.id)
    foreign, _ = Tokens(Ledger.create(folder / "other")).create(Role.OWNER)
    good = server.token("owner")
    wrong = good[:-1] + ("A" if good[-1] != "A" else "B")
    time.sleep(0.005)
    return {
        "expired": expired,
        "revoked": revoked,
        "foreign": foreign,
        "wrong end": wrong,
        "id alone": good[:22],
        "guess": f"dalenius_{'0' * 12}_{'a' * 43}",
        "upper": good.upper(),
        "empty": "",
        "spaces": f" {good}",
        "twice": f"{good} {good}",
        "sql": "' OR 1=1 --",
    }


def test_bad_tokens_get_one_answer_whatever_is_wrong_with_them(server, tmp_path):
    bodies, headers = set(), set()
    for text in bad_tokens(server, tmp_path).values():
        TEXTS.extend([text] if len(text) > 43 else [])
        reply = server.client(text).get("/v1/ledger")
        assert reply.status == 401
        bodies.add(reply.content)
        headers.add((reply.headers["www-authenticate"], reply.headers["content-type"]))
    assert len(bodies) <= 2  # an empty one is none; the others are told apart by nothing
    assert len(headers) == 1


def test_a_token_that_is_revoked_elsewhere_is_refused_at_once(server):
    owner = server.owner()
    here = owner.post("/v1/tokens", {"role": "auditor"}).json
    there, known = Tokens(Ledger.open(server.home)).create(Role.AUDITOR)
    TEXTS.extend([here["token"], there])
    clients = [server.client(here["token"]), server.client(there)]
    assert [each.get("/v1/me").status for each in clients] == [200, 200]
    assert owner.request("DELETE", f"/v1/tokens/{here['id']}").status == 200
    Tokens(Ledger.open(server.home)).revoke(known.id)  # as another process would
    assert [each.get("/v1/me").status for each in clients] == [401, 401]  # on the connections that were open


def test_guessing_is_slowed_and_locks_nobody_out(server):
    guess = f"dalenius_{'1' * 12}_{'b' * 43}"
    TEXTS.append(guess)
    client = server.client(guess)
    replies = [client.get("/v1/me") for _ in range(60)]
    assert {each.status for each in replies} == {401, 429}
    last = replies[-1]
    assert last.status == 429 and int(last.headers["retry-after"]) >= 1 and last.json["code"] == "rate.limited"
    assert server.analyst("eve", trusted=True).get("/v1/me").status == 200
    fresh = server.token("auditor", note="never seen before")  # nor one that comes from there for the first time
    assert server.client(fresh).get("/v1/me").status == 200


# --- headers


def test_header_tricks(server):
    eve, owner = server.token("analyst", "eve", trusted=True), server.token("owner")
    both = f"Authorization: Bearer {eve}\r\nAuthorization: Bearer {owner}\r\n".encode()
    plain = head(server, token=False)

    def me(*lines):
        return statuses(raw(server, b"GET /v1/me HTTP/1.1\r\n", plain, *lines, b"\r\n"))

    assert me(both) == [401]
    assert me(f"Authorization: bearer {eve}\r\n".encode()) == [200]  # RFC 9110: a scheme's case does not matter
    assert me(f"Authorization: Bearer\t{eve}\r\n".encode()) == [401]
    assert me(f"Authorization: Basic {eve}\r\n".encode()) == [401]
    assert me(f"Authorization: {eve}\r\n".encode()) == [401]
    assert me(f"Authorization: Bearer {eve}, Bearer {owner}\r\n".encode()) in ([401], [429])
    assert me(f"Authorization: Bearer {eve}\0\r\n".encode()) == [400]
    assert me(b"Authorization: Bearer \xff\xfe\xe2\x82\xac\r\n") in ([401], [429])
    assert me(f"Authorization:\r\n Bearer {eve}\r\n".encode()) == [400]
    assert me(f"Authorization : Bearer {eve}\r\n".encode()) == [400]
    assert me(f"Cookie: token={eve}\r\nX-Api-Key: {eve}\r\nProxy-Authorization: Bearer {eve}\r\n".encode()) == [401]
    query = f"/v1/me?token={eve}&access_token={eve}&authorization=Bearer%20{eve}".encode()
    assert statuses(get(server, query, token=False)) == [401]


def test_headers_that_claim_to_be_somebody_else_change_nothing(server):
    lines = (
        b"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-User: owner\r\nX-Real-IP: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\n"
    )
    assert statuses(get(server, b"/v1/ledger", lines)) == [403]
    assert statuses(get(server, b"/v1/ledger", lines, token=False)) == [401]
    for name in (b"X-HTTP-Method-Override", b"X-HTTP-Method", b"X-Method-Override"):
        before = charges(server.home)
        assert statuses(get(server, b"/v1/ask", name + b": POST\r\n")) == [405]
        assert charges(server.home) == before
    for name in (b"X-Original-URL", b"X-Rewrite-URL"):
        assert b'"role": "analyst"' in get(server, b"/v1/me", name + b": /v1/ledger\r\n")


def test_headers_without_end_are_cut_off(server):
    """However they are long: one of them, many, or the path. The server holds little of it."""
    for lines in (b"X: " + b"a" * 1_000_000 + b"\r\n", b"X: a\r\n" * 200_000):
        with connected(server) as wire:
            sent = 0
            try:
                wire.sendall(b"GET /v1/me HTTP/1.1\r\n")
                for at in range(0, len(lines), 8192):
                    wire.sendall(lines[at : at + 8192])
                    sent = at
                    time.sleep(0.001)
                wire.sendall(b"\r\n")
                answered = wire.recv(65536)
            except ConnectionError:
                answered = b""
            assert statuses(answered) in ([], [400], [431]), sent


def test_no_request_hides_behind_another(server):
    """Content-Length against Transfer-Encoding, twice, negative, without end: one refusal, and nothing charged."""
    before = charges(server.home)
    post = b"POST /v1/ask HTTP/1.1\r\n" + head(server, Content_Type="application/json", Connection="keep-alive")
    hidden = b"GET /v1/me HTTP/1.1\r\n" + head(server) + b"\r\n"
    chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    length = b"Content-Length: %d\r\n" % len(BODY)
    for lines in (
        length + b"Transfer-Encoding: chunked\r\n\r\n" + chunk,
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
        b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + hidden,
        length + b"Transfer-Encoding: xchunked\r\n\r\n" + BODY,
        length + b"Content-Length: 3\r\n\r\n" + BODY + hidden,
        b"Content-Length: -1\r\n\r\n" + hidden,
        b"Content-Length: +5\r\n\r\n" + hidden,
        b"Content-Length: 0x10\r\n\r\n" + hidden,
        b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n" + hidden,
        b"Transfer-Encoding: chunked\r\n\r\n-5\r\n" + hidden,
        b"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n" + hidden,
        b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + hidden,
    ):
        found = statuses(raw(server, post, lines))
        assert len(found) <= 1 and set(found) <= {400, 408}, (lines[:80], found)
    assert charges(server.home) == before


# --- paths and methods

PATHS = [
    b"//v1/me",
    b"/v1//me",
    b"/v1/me/",
    b"/v1/../v1/me",
    b"/v1/%2e%2e/v1/me",
    b"/healthz/../v1/me",
    b"/healthz/..%2fv1%2fme",
    b"/./v1/me",
    b"/v1/me%00",
    b"/v1/me;x=1",
    b"/V1/ME",
    b"/v1/me%20",
    b"/v1/%6de%2f",
    b"/v1/jobs/..%2f..%2fledger.db",
    b"/v1/jobs/" + b"0" * 32,
    b"/v1/tables/%ff",
    b"/v1/tables/%ed%a0%80",
    b"/v1/receipts/R99999999999999999999999999-f974f0e46379",
    b"/v1/docs",
    b"/docs",
    b"/openapi.json",
    b"/redoc",
    b"/static/x",
    b"*",
]


@pytest.mark.parametrize("path", PATHS)
def test_path_tricks_lead_nowhere(server, path):
    assert statuses(get(server, path)) == [404]
    assert statuses(get(server, path, token=False)) == [401]


@pytest.mark.parametrize("path", [b"/v1%2Fme", b"/%76%31/me", b"http://evil.example/v1/me", b"/v1/me#/healthz"])
def test_other_spellings_of_a_path_need_the_same_token(server, path):
    assert statuses(get(server, path)) == [200]
    assert statuses(get(server, path, token=False)) == [401]
    ledger = path.replace(b"me", b"ledger")
    assert statuses(get(server, ledger)) == [403]


@pytest.mark.parametrize("path", [b"/\xff", b"v1/me", b"", b"/v1/me HTTP/1.1\r\nX: y", b"/a b", b"/\0"])
def test_what_is_no_path_is_no_request(server, path):
    assert set(statuses(get(server, path))) <= {400, 200}  # a line break in a "path" is just another header line
    assert set(statuses(get(server, path, token=False))) <= {400, 401}


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "CONNECT", "PATCH", "PROPFIND", "BREW", "get", "PRI"])
def test_method_tricks(server, method):
    before = charges(server.home)
    for path in (b"/v1/ask", b"/v1/ledger", b"/v1/tokens", b"/healthz"):
        with_token = statuses(get(server, path, method=method.encode()))
        assert set(with_token) <= {400, 405}, (path, with_token)
        without = statuses(get(server, path, method=method.encode(), token=False))
        assert set(without) <= ({400, 405} if path == b"/healthz" else {400, 401})
    assert charges(server.home) == before


def test_other_protocols_get_nothing(server):
    upgrade = b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    plain = head(server, token=False, Connection="close, Upgrade")
    assert set(statuses(raw(server, b"GET /v1/ledger HTTP/1.1\r\n", plain, upgrade, b"\r\n"))) <= {400, 401, 403, 426}
    assert set(statuses(raw(server, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))) <= {400}
    assert set(statuses(raw(server, bytes.fromhex("160301020001000001fc0303"), os.urandom(200)))) <= {400}
    assert statuses(raw(server, b"GET /v1/me\r\n\r\n")) in ([], [400], [401])


# --- bodies

BODIES = {
    "gzip": (gzip.compress(BODY), {"Content-Encoding": "gzip"}, {415}),
    "gzip unsaid": (gzip.compress(BODY), {}, {400}),
    "deflate": (BODY, {"Content-Encoding": "deflate"}, {415}),
    "plain": (BODY, {"Content-Type": "text/plain"}, {415}),
    "form": (b"sql=a&epsilon=1", {"Content-Type": "application/x-www-form-urlencoded"}, {415}),
    "multipart": (b"--a\r\n\r\n--a--", {"Content-Type": "multipart/form-data; boundary=a"}, {415}),
    "no kind": (BODY, {"Content-Type": ""}, {415}),
    "UTF-16": (BODY.decode().encode("utf-16"), {}, {200, 400}),
    "UTF-7": (BODY.replace(b"S", b"+AFM-"), {"Content-Type": "application/json; charset=utf-7"}, {400, 404, 422}),
    "byte order mark": (b"\xef\xbb\xbf" + BODY, {}, {200, 400}),
    "not UTF-8": (b'{"sql": "\xff", "epsilon": 1}', {}, {400}),
    "keys twice": (BODY[:-1] + b', "epsilon": 0.01}', {}, {200, 400}),
    "deep lists": (b"[" * 90_000, {}, {400}),
    "deep objects": (b'{"error":' * 9000 + b"1" + b"}" * 9000, {}, {400}),
    "deep but whole": (b'{"sql":"a","error":' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}", {}, {400}),
    "long number": (b'{"sql":"x","epsilon":' + b"9" * 5000 + b"}", {}, {400}),
    "large number": (b'{"sql":"x","epsilon":' + b"9" * 400 + b"}", {}, {400}),
    "NaN": (BODY.replace(b"0.01", b"NaN"), {}, {400}),
    "infinity": (BODY.replace(b"0.01", b"-Infinity"), {}, {400}),
    "1e999": (BODY.replace(b"0.01", b"1e999"), {}, {400}),
    "true": (BODY.replace(b"0.01", b"true"), {}, {400}),
    "text": (BODY.replace(b"0.01", b'"0.01"'), {}, {400}),
    "nothing": (b"", {}, {400}),
    "null": (b"null", {}, {400}),
    "list": (b"[" + BODY + b"]", {}, {400}),
    "two": (BODY + BODY, {}, {400}),
    "half a character": (b'{"sql": "SELECT \\ud800", "epsilon": 1}', {}, {400, 422}),
    "half a key": (BODY[:-1] + b', "idempotency_key": "\\ud800"}', {}, {400}),
    "half a member": (b'{"\\ud800' + MARK.encode() + b'": 1}', {}, {400}),
    "unknown member": (BODY[:-1] + b', "seed": 1, "' + MARK.encode() + b'": 2}', {}, {400}),
    "NUL": (b'{"sql": "SELECT \\u0000", "epsilon": 1}', {}, {400, 422}),
    "long key": (BODY[:-1] + b', "idempotency_key": "' + b"k" * 201 + b'"}', {}, {400}),
    "prototype": (BODY[:-1] + b', "__proto__": {"role": "owner"}}', {}, {400}),
    "other analyst": (BODY[:-1] + b', "analyst": "bob"}', {}, {400}),
}


@pytest.mark.parametrize("name", BODIES)
def test_body_tricks(server, name):
    body, headers, wanted = BODIES[name]
    client = server.analyst("eve", trusted=True)
    before = charges(server.home)
    for path in ("/v1/ask", "/v1/preview"):
        reply = client.request("POST", path, body, headers)
        assert reply.status in wanted, reply.content
        assert MARK.encode() not in reply.content or reply.status == 200 or name in {"half a member", "unknown member"}
        assert reply.status == 200 or reply.json["charge"] == {"epsilon": 0, "delta": 0}
    assert charges(server.home) <= before + 1


def test_large_bodies_are_refused_before_they_are_read(server):
    client = server.analyst("eve", trusted=True)
    assert client.request("POST", "/v1/ask", b"a" * 100_001).status == 413
    post = b"POST /v1/ask HTTP/1.1\r\n" + head(server, Content_Type="application/json")
    assert statuses(raw(server, post, b"Content-Length: 1000000000000\r\n\r\nabc")) == [413]
    chunks = (b"4000\r\n" + b"a" * 0x4000 + b"\r\n") * 20
    assert set(statuses(raw(server, post, b"Transfer-Encoding: chunked\r\n\r\n", chunks))) <= {413}
    nobody = b"POST /v1/ask HTTP/1.1\r\n" + head(server, token=False)  # who need not send one at all
    assert statuses(raw(server, nobody, b"Content-Length: 1000000000\r\n\r\n", b"a" * 1000)) == [401]


# --- slow, half-open and deaf connections


def test_half_open_connections_do_not_keep_others_waiting(server):
    """A hundred that send a byte now and then, or nothing, or half a body; honest requests go on beside them."""
    post = b"POST /v1/ask HTTP/1.1\r\n" + head(server, Content_Type="application/json") + b"Content-Length: 500\r\n\r\n"
    starts = [b"", b"G", b"GET /v1/me HTTP/1.1\r\nX-Slow: ", post + b"{"]
    wires = [connected(server) for _ in range(100)]
    stop = threading.Event()

    def trickle():
        for at, wire in enumerate(wires):
            wire.sendall(starts[at % 4])
        while not stop.wait(0.2):
            for at, wire in enumerate(wires):
                if at % 4:
                    try:
                        wire.sendall(b"a")
                    except OSError:
                        continue

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        bob = server.analyst("bob", trusted=True)
        took = []
        end = time.monotonic() + RECEIVE + 1
        while time.monotonic() < end:
            start = time.monotonic()
            assert bob.get("/v1/me").status == 200
            took.append(time.monotonic() - start)
            time.sleep(0.02)
        assert len(took) > 5 and sorted(took)[len(took) // 2] < 1
        assert bob.ask(count(77), epsilon=0.01).status == 200
        for at, wire in enumerate(wires):  # every one of them was closed
            wire.settimeout(15)
            found = b""
            try:
                while more := wire.recv(65536):
                    found += more
            except ConnectionError:
                pass
            assert set(statuses(found)) <= ({408, 429} if at % 4 == 3 else {400, 408})
    finally:
        stop.set()
        thread.join()
        for wire in wires:
            wire.close()


def test_a_thousand_idle_connections_turn_nobody_away(server):
    """More than there is room for, from one address, and honest requests beside them on new connections."""
    wires = [connected(server) for _ in range(connection_room() + 100)]
    try:
        for _ in range(20):
            fresh = server.client(server.token("analyst", "bob", trusted=True))
            assert fresh.get("/v1/me").status == 200
            fresh.close()
    finally:
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("digits", [b"0" * 5000, b"0" * 5000 + b"7", b"1" * 30])
def test_a_length_of_thousands_of_digits_is_refused_and_no_bug(server, digits):
    for line in (b"POST /v1/ask", b"POST /sign-in", b"GET /healthz", b"PUT /v1/files/x.csv"):
        post = line + b" HTTP/1.1\r\n" + head(server, Content_Type="application/json")
        found = statuses(raw(server, post, b"Content-Length: " + digits + b"\r\n\r\n"))
        assert len(found) <= 1 and set(found) <= {400, 403, 413}, (line, found)


def test_numbers_of_thousands_of_digits_in_a_body_are_refused(server):
    for member in (b'"epsilon": ' + b"1" * 5000, b'"epsilon": 0.' + b"1" * 5000 + b', "rows": ' + b"9" * 5000):
        body = b'{"sql": "SELECT COUNT(*) FROM visits", ' + member + b"}"
        assert server.analyst("eve", trusted=True).post("/v1/ask", body).status in {400, 422}
    assert server.auditor().get("/v1/ledger?after=" + "9" * 5000).status in {400, 422}


def test_who_never_reads_is_hung_up_on(server):
    """A thousand requests and more on one connection, and not one answer taken."""
    wire = socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.connect((server.client(None).parts.hostname, server.client(None).parts.port))
    wire.settimeout(15)
    one = b"GET /v1/openapi.json HTTP/1.1\r\n" + head(server, Connection="keep-alive") + b"\r\n"
    with wire, ThreadPoolExecutor(1) as pool:
        gone = pool.submit(_until_gone, wire, one)
        assert server.analyst("bob", trusted=True).get("/v1/me").status == 200
        assert gone.result(timeout=30)
    assert server.analyst("eve", trusted=True).get("/v1/me").status == 200  # its token is not used up


def _until_gone(wire, one):
    end = time.monotonic() + 20
    try:
        while time.monotonic() < end:
            wire.sendall(one * 20)
            time.sleep(0.1)
    except TimeoutError:  # the server takes no more
        return wire.recv(1) == b""
    except ConnectionError:
        return True
    return False


# --- policies that reach elsewhere

POLICY = """
[table]
name = "elsewhere"
source = {source}
unit = "user_id"
[budget]
epsilon = 1.0
delta = 1e-6
[analysts.eve]
epsilon = 1.0
[columns.age]
type = "integer"
bounds = [18, 90]
{more}
[contribution]
rows = 5
"""
KEYS = '[columns.region]\ntype = "category"\nkeys = {{ file = "{file}" }}'
PUBLIC = '[public.regions]\nsource = "{file}"\n'


@pytest.fixture(scope="module")
def outside(server):
    """A folder beside data_dir with a table, a list and a pipe; whoever opened the pipe would wait for ever."""
    folder: Path = server.home.parent
    data, out = folder / "data", folder / f"out {MARK}"
    out.mkdir()
    (out / "table.parquet").write_bytes((folder / "visits.parquet").read_bytes())
    (out / "list.csv").write_text(f"{MARK}\n")
    os.mkfifo(out / "pipe.parquet")
    (data / "link.parquet").symlink_to(out / "table.parquet")
    (data / "nothing.parquet").symlink_to(out / "missing.parquet")
    (data / "pipe.parquet").symlink_to(out / "pipe.parquet")
    (data / "loop.parquet").symlink_to(data / "loop.parquet")
    (data / "folder").symlink_to(out)
    (data / "hop").symlink_to(data / "folder")
    (data / "inside.parquet").write_bytes((folder / "visits.parquet").read_bytes()[:100])
    return out


def reaching(out):
    """Paths that lead out of data_dir."""
    return [
        str(out / "table.parquet"),
        str(out / "missing.parquet"),
        str(out / "pipe.parquet"),
        str(out / "*.parquet"),
        "../visits.parquet",
        "../nowhere.parquet",
        "./../data/../visits.parquet",
        "x/../../visits.parquet",
        "link.parquet",
        "nothing.parquet",
        "pipe.parquet",
        "loop.parquet",
        "folder/table.parquet",
        "folder/missing.parquet",
        "folder/pipe.parquet",
        "hop/table.parquet",
        "hop/*.parquet",
        "l*.parquet",
        "[l]ink.parquet",
        "**/table.parquet",
        "fold*/t*.parquet",
        "/etc/passwd",
        "/etc/missing",
        "/etc/**",
        "/dev/zero",
        "/proc/self/environ",
        "~/../../etc/passwd",
        "//etc/passwd",
        "/",
        "..",
        "inside.parquet\\u0000",
    ]


def test_a_policy_cannot_name_files_outside_whether_they_are_there_or_not(server, outside):
    owner = server.owner()
    seen = {path: path.stat().st_atime_ns for path in outside.iterdir()}
    bodies = set()
    for path in reaching(outside):
        for text in (
            POLICY.format(source=f'"{path}"', more=""),
            POLICY.format(source=f'["inside.parquet", "{path}"]', more=""),
            POLICY.format(source='"inside.parquet"', more=KEYS.format(file=path)),
            POLICY.format(source='"inside.parquet"', more=PUBLIC.format(file=path)),
        ):
            for more in ({"dry_run": True}, {"yes": True, "reason": "r"}):
                reply = owner.post("/v1/protect", {"policies": [text], **more}, seconds=20)
                assert reply.status == 422, (path, reply.content)
                assert MARK.encode() not in reply.content
                bodies.add(reply.content)
    assert len(bodies) == 1, bodies  # not even whether a file is there is told
    assert {path: path.stat().st_atime_ns for path in outside.iterdir()} == seen
    assert [each["name"] for each in owner.get("/v1/tables").json["tables"]] == ["visits"]
    refused = [each for each in server.log if each.get("route") == "/v1/protect"]
    assert len(refused) == 8 * len(reaching(outside))
    assert {(each["status"], each["code"]) for each in refused} == {(422, "policy.not-allowed")}


def test_only_the_owner_uploads_policies(server):
    text = POLICY.format(source='"inside.parquet"', more="")
    for client in (server.analyst("eve"), server.auditor()):
        assert client.post("/v1/protect", {"policies": [text]}).status == 403
