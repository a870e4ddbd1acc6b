"""The console's door on a real server, without a browser: who is not signed in gets nothing, and nothing leaks."""

from __future__ import annotations

import json
import re
import secrets
import time
from contextlib import closing, contextmanager
from datetime import timedelta
from importlib.metadata import version
from urllib.parse import urlsplit

import pytest
from tests.serving import serving
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from dalenius.app.console import PAGES
from dalenius.app.http.guard import CONSOLE, UPLOAD
from dalenius.ledger import Ledger
from dalenius.ledger.tokens import Role, Tokens

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ELSEWHERE = "http://elsewhere.example"


def send(server, method, path, body=None, **headers):
    """One request of a stranger; a header is left out by None."""
    with closing(server.client(None)) as client:
        given = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        return client.request(method, path, body, given)


def enter(server, token, **headers):
    return send(server, "POST", "/sign-in", f"token={token}".encode(), **{"Origin": server.url} | FORM | headers)


def cookie_of(server, token):
    reply = enter(server, token)
    assert reply.status == 303
    return reply.headers["set-cookie"].partition(";")[0]


@pytest.fixture
def eve(server):
    """A cookie of eve's."""
    return cookie_of(server, server.token("analyst", "eve"))


def line(server, cookie, page="", origin=None, handshake=True):
    """A socket, as the framework's own script opens it for a page."""
    query = f"EIO=4&transport=websocket&client_id={page}"
    if handshake:
        query += "&implicit_handshake=true&tab_id=t&document_id=d&next_message_id=0"
    where = f"ws://{urlsplit(server.url).netloc}/_nicegui_ws/socket.io/?{query}"
    headers = {"Cookie": cookie} if cookie else {}
    return connect(where, origin=origin or server.url, additional_headers=headers, proxy=None, open_timeout=10)


@contextmanager
def driving(server, cookie, page, **how):
    """A socket that has been let in or not; gives what the server said."""
    with line(server, cookie, page, **how) as socket:
        socket.recv(5)
        socket.send("40")
        said = socket.recv(5)
        while said == "2":
            said = socket.recv(5)
        yield socket, said


def page_of(server, cookie, path="/"):
    """Opens a page; its number, which only its browser should know."""
    html = send(server, "GET", path, Cookie=cookie).content.decode()
    (found,) = set(re.findall(r"client_id': '([0-9a-f-]{36})'", html))
    return found


def test_the_guard_and_the_map_name_the_same_pages():
    assert set(PAGES) | {"/sign-in", "/sign-out"} == CONSOLE


def test_without_a_cookie_every_page_leads_to_the_sign_in_and_everything_else_is_refused(server):
    for cookie in (None, "dalenius_session=" + "A" * 43, "dalenius_session=", "a=b", '"; =;;'):
        for path in PAGES:
            reply = send(server, "GET", path, Cookie=cookie)
            assert (reply.status, reply.headers["location"]) == (303, f"/sign-in?to={path}")
            assert reply.headers["cache-control"] == "no-store" and not reply.content
        files = "/_nicegui/3.0.0/static/vue.js"
        for path in (files, "/_nicegui/", "/_nicegui_ws/socket.io/?EIO=4&transport=polling", "/_nicegui/auto/x"):
            assert send(server, "GET", path, Cookie=cookie).status == 401
        assert send(server, "POST", UPLOAD, b"id\n1\n", Cookie=cookie, Origin=server.url).status == 401


def test_nothing_but_files_and_sockets_lies_below_the_framework(server, eve):
    for path in ("/_nicegui/", "/_nicegui/x", "/_nicegui/client/1", "/_nicegui/auto/static/x", "/_nicegui/../v1/me"):
        assert send(server, "GET", path, Cookie=eve).status in {401, 404}, path
    assert send(server, "GET", "/_nicegui/x", Cookie=eve).status == 404


def test_files_that_are_not_there_build_no_page(server, eve):
    """The framework would keep a page of what is not there in memory, for each that is asked for, uncounted."""
    mine = f"/_nicegui/{version('nicegui')}"
    assert send(server, "GET", f"{mine}/static/nicegui.js", Cookie=eve).status == 200
    for path in ("static/x", "libraries/x", "components/x", "resources/x/y", "dynamic_resources/x", "esm/x/y"):
        for where in (f"{mine}/{path}", f"/_nicegui/auto/{path}", f"/_nicegui/0.0.0/{path}"):
            reply = send(server, "GET", where, Cookie=eve)
            assert reply.status == 404 and b"<html" not in reply.content.lower(), where
            assert reply.json["type"] == "urn:dalenius:input.invalid", where


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/"])
def test_a_long_form_is_refused_before_it_is_read(server, path):
    """Parsing it would hold up everybody, whether or not its sender is throttled."""
    for body in (b"&" * 2**18, b"a=1&" * 2**10, b"token=" + b"%41" * 2**10):
        reply = send(server, "POST", path, body, Origin=server.url, **FORM)
        assert reply.status == 413, (path, body[:10])
    assert enter(server, "&".join(["x=1"] * 100)).status == 401  # more fields than the form has


def test_a_cookie_opens_no_route_of_the_api_and_a_token_no_page(server, eve):
    for path in ("/v1/me", "/v1/tables", "/v1/history", "/v1/openapi.json", "/metrics"):
        assert send(server, "GET", path, Cookie=eve, Origin=server.url).status == 401
    mine = f"Bearer {server.token('analyst', 'eve')}"
    for path in PAGES:
        assert send(server, "GET", path, Authorization=mine).status == 303
    assert send(server, "GET", "/_nicegui/x", Authorization=mine).status == 401


def test_every_role_reaches_its_pages_and_is_led_home_from_the_others(server):
    for role in Role:
        cookie = cookie_of(server, server.token(role.value, "eve" if role is Role.ANALYST else ""))
        for path, place in PAGES.items():
            reply = send(server, "GET", path, Cookie=cookie)
            assert reply.status == (200 if role in place.roles else 303), (role, path)


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", UPLOAD])
@pytest.mark.parametrize("origin", [None, ELSEWHERE, "null", "http://127.0.0.1", "http://"])
def test_what_another_site_sends_is_refused(server, path, origin):
    cookie = cookie_of(server, server.token("owner"))
    body = f"token={server.token('owner')}".encode()
    assert send(server, "POST", path, body, Cookie=cookie, Origin=origin, X_File_Name="x.csv", **FORM).status == 403
    assert send(server, "GET", "/protect", Cookie=cookie).status == 200  # nobody was signed out by it


def test_the_sign_in_page_runs_nothing_and_the_cookie_is_for_this_server_alone(server):
    for page in (send(server, "GET", "/sign-in?say=over&to=/budget"), enter(server, "wrong")):
        assert b"<script" not in page.content and b" on" not in re.sub(
            rb"<style>.*?</style>|>[^<]*<", b"", page.content
        )
        assert page.headers["cache-control"] == "no-store"
    policies = [value for name, value in raw_headers(server, "/sign-in") if name.lower() == "content-security-policy"]
    assert any("default-src 'none'" in each and "script-src" not in each for each in policies)
    assert b"alert(1)" not in send(server, "GET", "/sign-in?to=%22%3E%3Cscript%3Ealert(1)&say=%3Cb%3E").content
    flags = enter(server, server.token("analyst", "eve")).headers["set-cookie"].lower()
    assert "httponly" in flags and "samesite=strict" in flags and "max-age" not in flags and "expires" not in flags


def raw_headers(server, path):
    import http.client

    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=10)) as connection:
        connection.request("GET", path)
        return connection.getresponse().getheaders()


def test_where_one_is_led_after_the_sign_in_is_a_page_of_the_role(server):
    token = server.token("analyst", "eve")
    for to, where in (("/budget", "/budget"), ("/protect", "/"), ("//elsewhere.example", "/"), (ELSEWHERE, "/")):
        reply = send(server, "POST", f"/sign-in?to={to}", f"token={token}".encode(), Origin=server.url, **FORM)
        assert (reply.status, reply.headers["location"]) == (303, where)


# --- sockets


@pytest.mark.parametrize("case", ["nobody", "made up", "elsewhere", "signed out", "signed in again"])
def test_a_socket_is_refused_to_who_is_not_signed_in_here(server, eve, case):
    page = page_of(server, eve)
    cookie: str | None = eve
    if case == "nobody":
        cookie = None
    elif case == "made up":
        cookie = "dalenius_session=" + secrets.token_urlsafe(32)
    elif case == "signed out":
        assert send(server, "POST", "/sign-out", b"", Cookie=eve, Origin=server.url).status == 303
    elif case == "signed in again":  # the cookie before ends with it
        assert enter(server, server.token("analyst", "eve"), Cookie=eve).status == 303
    with (
        pytest.raises(InvalidStatus) as refused,
        line(server, cookie, page, origin=ELSEWHERE if case == "elsewhere" else None),
    ):
        pass
    assert refused.value.response.status_code == 403


def test_a_page_cannot_be_driven_by_anybody_elses_socket(server, eve):
    page, mallory = page_of(server, eve), cookie_of(server, server.token("analyst", "ada"))
    before = len(server.log)
    with driving(server, mallory, page) as (_, said):
        assert said.startswith("44")  # refused
    own = page_of(server, mallory)
    with driving(server, mallory, own) as (socket, said):
        assert said.startswith("40")
        # Signed in, with a socket of a page of its own, and what would press every button of eve's page.
        socket.send("42" + json.dumps(["handshake", {"client_id": page, "tab_id": "t", "document_id": "d"}]))
        for element in range(100):
            event = {"client_id": page, "id": element, "listener_id": "1", "args": []}
            socket.send("42" + json.dumps(["event", event]))
        socket.send("42" + json.dumps(["ack", {"client_id": own, "next_message_id": 0}]))
        heard = drained(socket)
    assert page not in heard
    assert not [each for each in server.log[before:] if each["event"] == "bug"]
    with driving(server, eve, page) as (_, said):
        assert said.startswith("40")  # it is still eve's


def test_a_page_of_a_session_that_has_ended_only_leads_away(server):
    cookie = cookie_of(server, server.token("analyst", "bob"))
    page = page_of(server, cookie)
    with driving(server, cookie, page) as (socket, said):
        assert said.startswith("40")
        assert send(server, "POST", "/sign-out", b"", Cookie=cookie, Origin=server.url).status == 303
        socket.send("42" + json.dumps(["event", {"client_id": page, "id": 1, "listener_id": "1", "args": []}]))
        assert "/sign-in?say=over" in drained(socket, until="/sign-in")


def listeners_of(server, cookie, path="/"):
    """A page's number, and who listens on it: element, kind and number of the listener."""
    html = send(server, "GET", path, Cookie=cookie).content.decode()
    (page,) = set(re.findall(r"client_id': '([0-9a-f-]{36})'", html))
    (written,) = re.findall(r"parseElements\(String\.raw`(.*?)`\)", html, re.DOTALL)
    for sign, name in (("$", "&#36;"), ("`", "&#96;"), ("<", "&lt;"), (">", "&gt;"), ("&", "&amp;")):
        written = written.replace(name, sign)
    found = json.loads(written).items()
    return page, [(int(at), e["type"], e["listener_id"]) for at, each in found for e in each.get("events", ())]


def listening_to_values(server, cookie, *, least):
    """The same of those who listen to values; a page that is made while the machine is busy has none for tables yet."""
    until = time.monotonic() + 20
    while True:
        page, found = listeners_of(server, cookie)
        listening = [(at, name) for at, kind, name in found if kind == "update:modelValue"]
        if len(listening) >= least or time.monotonic() > until:
            return page, listening
        time.sleep(0.5)


def tell(socket, page, element, listener, *args):
    event = {"id": element, "client_id": page, "listener_id": listener, "args": [json.dumps(each) for each in args]}
    socket.send("42" + json.dumps(["event", event]))


def is_cut(socket):
    """Whether the server ends a line soon, without being asked to."""
    try:
        while True:
            socket.recv(5)
    except TimeoutError:
        return False
    except ConnectionClosed:
        return True


def test_what_is_said_to_the_frameworks_own_listeners_goes_nowhere(server, eve):
    """Its router, for one, would say it again, twice, and keep that."""
    page, found = listeners_of(server, eve)
    own = [(element, name) for element, kind, name in found if "sub_pages" in kind]
    assert own
    with driving(server, eve, page) as (socket, said):
        assert said.startswith("40")
        for element, name in own:
            tell(socket, page, element, name, "/planted")
        assert "planted" not in drained(socket)
        # the first is the switch between price and accuracy
        _, (slider, name), *_ = [(at, name) for at, kind, name in found if kind == "update:modelValue" and at > 20]
        tell(socket, page, slider, name, 3)  # and the page is as it was
        assert "= 0.012" in drained(socket, until="= 0.012")


@pytest.mark.parametrize("said", ["a" * 200_000, [[]] * 1000, {"a": "b" * 3000}], ids=["text", "lists", "object"])
def test_a_line_on_which_too_much_is_said_at_once_is_cut(server, eve, said):
    for place in range(3):  # the head, the slider, a table that unfolds
        page, listening = listening_to_values(server, eve, least=3)
        element, name = listening[place]
        with driving(server, eve, page) as (socket, _):
            tell(socket, page, element, name, said)
            assert is_cut(socket), element


def test_a_long_question_can_be_typed(server, eve):
    page, found = listeners_of(server, eve)
    ((element, name),) = [(element, name) for element, kind, name in found if kind == "update:value"]
    with driving(server, eve, page) as (socket, _):
        tell(socket, page, element, name, {"sections": [0, 30_000], "inserted": [["a" * 30_000]]})
        assert "This text can have up to" in drained(
            socket, until="characters"
        )  # it was looked at: the text is another
    assert not [each for each in server.log if each["event"] == "bug"]


@pytest.mark.parametrize("kind", ["event", "ack", "bare", "encoded"])
def test_a_line_on_which_something_binary_is_said_is_cut(server, eve, kind):
    """The framework would keep each piece, until all that were announced have come."""
    page = page_of(server, eve)
    with driving(server, eve, page) as (socket, said):
        assert said.startswith("40")
        if kind == "event":
            socket.send('459999999-["event",{"_placeholder":true,"num":0}]')
        elif kind == "ack":
            socket.send('469999999-1[{"_placeholder":true,"num":0}]')
        else:
            socket.send(b"abcdef" if kind == "bare" else "bYWJjZGVm")
        assert is_cut(socket)
    with driving(server, eve, page) as (_, said):
        assert said.startswith("40")  # a browser would be let in again


def test_more_at_once_than_a_line_takes_is_not_taken_in(server, eve):
    with driving(server, eve, page_of(server, eve)) as (socket, _):
        socket.send("42" + json.dumps(["log", {"message": "a" * 300_000}]))
        assert is_cut(socket) and socket.close_code == 1009


def test_what_a_page_was_told_is_not_kept_without_end(server, eve):
    """Who comes back after more than is kept loads the page anew."""
    page, found = listeners_of(server, eve)
    element, name = next((at, name) for at, kind, name in reversed(found) if kind == "update:modelValue")
    with driving(server, eve, page) as (socket, _):
        for at in range(250):
            tell(socket, page, element, name, bool(at % 2))
            drained(socket, until=f'"{element}"')
    with driving(server, eve, page) as (socket, _):
        assert "rewind failed" in drained(socket, until="rewind failed")


def drained(socket, until="never"):
    """What a socket hears, until something, or nothing more."""
    heard = ""
    try:
        while until not in heard:
            heard += str(socket.recv(0.3 if until == "never" else 5))
            if heard.endswith("2"):
                socket.send("3")
    except (TimeoutError, ConnectionClosed):
        pass
    return heard


# --- how often


def test_many_wrong_tokens_are_throttled_and_a_page_is_not_loaded_without_end(home):
    with serving(home) as server:
        cookie = cookie_of(server, server.token("analyst", "eve"))
        statuses = [send(server, "GET", "/about", Cookie=cookie).status for _ in range(75)]
        assert statuses[:50] == [200] * 50 and 429 in statuses[50:]
        other = cookie_of(server, server.token("analyst", "ada"))
        assert send(server, "GET", "/about", Cookie=other).status == 200  # the limit is of one token
        tried = [enter(server, f"dalenius_{'0' * 12}_{secrets.token_urlsafe(32)}").status for _ in range(30)]
        assert tried[:20] == [401] * 20 and tried[-1] == 429
        page = enter(server, "wrong")
        assert (page.status, b"Too many tries" in page.content) == (429, True)


# --- tokens stay where they are


def test_no_token_is_in_a_page_a_cookie_an_address_the_log_or_a_file(server):
    tokens = [server.token(role, "eve" if role == "analyst" else "") for role in ("analyst", "owner", "auditor")]
    tokens.append(Tokens(Ledger.open(server.home)).create(Role.ANALYST, "eve", expires=timedelta(days=1))[0])
    seen = []
    for token in tokens:
        entered = enter(server, token)
        seen.append(repr(entered.headers).encode())
        cookie = entered.headers["set-cookie"].partition(";")[0]
        for path in PAGES:
            page = send(server, "GET", path, Cookie=cookie)
            seen += [page.content, repr(page.headers).encode()]
    seen += [each.read_bytes() for each in server.home.rglob("*") if each.is_file()]
    seen.append(server.log_file.read_bytes())
    for token in tokens:
        secret = token.split("_", 2)[2].encode()  # which may hold more of them
        assert len(secret) > 20 and not any(secret in each for each in seen)
        assert not any(token.partition("_")[2].encode() in each for each in seen)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("HEAD", "/sign-in"),
        ("PUT", "/sign-in"),
        ("DELETE", "/sign-in"),
        ("GET", "/sign-out"),
        ("OPTIONS", "/sign-out"),
        ("GET", UPLOAD),
        ("HEAD", "/"),
        ("POST", "/"),
        ("PUT", "/budget"),
    ],
)
def test_no_odd_method_reaches_the_framework(server, eve, method, path):
    """It would build a page of what is not there, in memory, for anybody."""
    for cookie in (None, eve):
        reply = send(server, method, path, Origin=server.url, Cookie=cookie)
        assert reply.status == 405 and b"nicegui" not in reply.content.lower()


def test_a_tab_cannot_call_itself_what_it_likes(server, eve):
    """The framework keeps the name of each tab for a month."""
    page = page_of(server, eve)
    query = f"EIO=4&transport=websocket&client_id={page}&implicit_handshake=true&document_id=d&next_message_id=0"
    where = f"ws://{urlsplit(server.url).netloc}/_nicegui_ws/socket.io/?{query}&tab_id={'t' * 5000}"
    with connect(where, origin=server.url, additional_headers={"Cookie": eve}, proxy=None) as socket:
        socket.recv(5)
        socket.send("40")
        assert str(socket.recv(5)).startswith("44")  # refused
    with driving(server, eve, page) as (_, said):
        assert str(said).startswith("40")


def test_pages_have_no_other_way_in_than_sockets(server, eve):
    path = f"/_nicegui_ws/socket.io/?EIO=4&transport=polling&client_id={page_of(server, eve)}"
    assert send(server, "GET", path, Cookie=eve).status == 404
    assert send(server, "POST", path, b"40", Cookie=eve, Origin=server.url).status in {404, 405}


@pytest.mark.parametrize("other", ['a={"x":1}', "na[me]=1", "a=é", "flag", 'a="b', "=", ";;"])
def test_cookies_of_others_on_the_same_host_do_no_harm(server, eve, other):
    for cookie in (f"{other}; {eve}", f"{eve}; {other}"):
        assert send(server, "GET", "/about", Cookie=cookie).status == 200


def test_a_good_token_is_let_in_whatever_others_tried_from_the_same_address(home):
    with serving(home) as server:
        bad = [enter(server, f"dalenius_{'0' * 12}_{secrets.token_urlsafe(32)}").status for _ in range(25)]
        assert bad.count(401) == 20 and bad[-1] == 429
        assert enter(server, server.token("auditor")).status == 303


def test_behind_a_proxy_the_address_that_browsers_see_counts(home):
    seen = "https://curator.example.org"
    with serving(home, "--public-url", seen) as server:
        token = server.token("auditor")
        assert enter(server, token).status == 403  # where it listens is not where pages come from
        reply = enter(server, token, Origin=seen)
        assert reply.status == 303 and "Secure" in reply.headers["set-cookie"]


def test_nothing_can_be_loaded_from_or_sent_elsewhere(server, eve):
    policy = send(server, "GET", "/about", Cookie=eve).headers["content-security-policy"]
    said = dict(each.strip().partition(" ")[::2] for each in policy.split(";"))
    assert said["default-src"] == said["connect-src"] == said["form-action"] == "'self'"
    assert said["frame-ancestors"] == "'none'" and "http" not in policy and "ws:" not in policy


def test_what_a_proxy_would_say_of_paths_is_not_believed(server, eve):
    reply = send(server, "GET", "/about", Cookie=eve, X_Forwarded_Prefix="/planted")
    assert reply.status == 200 and b"planted" not in reply.content
