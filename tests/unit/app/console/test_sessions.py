"""Sessions of the console: how long they live, whose they are, and that pages go no way around `calls`."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dalenius.app import console
from dalenius.app.console import PAGES
from dalenius.app.console import sessions as module
from dalenius.app.console.sessions import Sessions, cookie_of
from dalenius.app.http.service import Service
from dalenius.app.http.settings import Settings
from dalenius.errors import AuthMissingError
from dalenius.ledger import Ledger
from dalenius.ledger.tokens import Role

# --- how long


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Sessions]:
    Ledger.create(tmp_path / "home").database.close()
    service = Service(tmp_path / "home", Settings(), speed=1.0)
    yield Sessions(service)
    service.close()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch):
    """Moves the clock of sessions."""
    moved = [0.0]
    real = time.monotonic

    class Clock:
        monotonic = staticmethod(lambda: real() + moved[0])

    monkeypatch.setattr(module, "time", Clock)

    def move(seconds: float) -> None:
        moved[0] += seconds

    return move


def begun(sessions: Sessions, role: Role = Role.OWNER) -> str:
    return sessions.begin(sessions.service.tokens.create(role, "")[1])


def test_a_session_that_nobody_uses_ends(sessions, later):
    cookie = begun(sessions)
    found = sessions.find(cookie)
    later(module.IDLE - 1)
    assert sessions.find(cookie) is found  # which is a use
    later(module.IDLE - 1)
    assert sessions.known(cookie) is found
    later(2)
    assert sessions.known(cookie) is None and sessions.find(cookie) is None
    with pytest.raises(AuthMissingError):
        found.check()
    assert found.over


def test_a_session_ends_after_its_life_however_much_it_is_used(sessions, later):
    cookie = begun(sessions)
    for _ in range(int(module.LIFE / 3600) - 1):
        later(3600)
        assert sessions.find(cookie) is not None
    later(3601)
    assert sessions.find(cookie) is None


def test_to_look_whether_a_session_is_known_does_not_keep_it_alive(sessions, later):
    cookie = begun(sessions)
    for _ in range(4):
        later(module.IDLE / 4)
        sessions.known(cookie)
    later(1)
    assert sessions.known(cookie) is None


def test_a_session_ends_with_its_token_and_does_not_come_back(sessions):
    cookie = begun(sessions)
    found = sessions.find(cookie)
    sessions.service.tokens.revoke(found.token.id)
    assert sessions.known(cookie) is found  # until somebody looks
    assert sessions.find(cookie) is None
    assert sessions.known(cookie) is None


def test_of_one_token_the_oldest_sessions_end(sessions, monkeypatch):
    monkeypatch.setattr(module, "_MOST_OF_ONE", 3)
    token = sessions.service.tokens.create(Role.OWNER)[1]
    other = begun(sessions)
    cookies = [sessions.begin(token) for _ in range(5)]
    assert [sessions.known(each) is not None for each in cookies] == [False, False, True, True, True]
    assert sessions.known(other) is not None


def test_who_signs_out_ends_this_session_and_no_other(sessions):
    token = sessions.service.tokens.create(Role.OWNER)[1]
    one, other = sessions.begin(token), sessions.begin(token)
    found = sessions.known(one)
    sessions.end(one)
    sessions.end(None)
    sessions.end("no such")
    assert found.ended and sessions.known(one) is None and sessions.known(other) is not None


def test_the_server_keeps_no_cookie_only_its_hash(sessions):
    cookie = begun(sessions)
    assert len(cookie) >= 43
    assert cookie not in repr(vars(sessions))


@pytest.mark.parametrize("text", ["", "a", "dalenius_session", 'dalenius_session="\\', "=;=;", "\xff=\xfe", "a" * 5000])
def test_a_cookie_that_makes_no_sense_is_none(text):
    found = cookie_of({"headers": [(b"cookie", text.encode("latin-1"))]})
    assert found is None or found == '"\\'


# --- no way around


INSIDE = Path(console.__file__).parent
THROUGH = {"attempt", "call", "ask", "put"}  # what takes work to be done, and asks for whom first
# Whatever is called on one of these does something: for that, a page needs one of the above.
OWNERS = {"service", "tokens", "curator", "ledger", "registry", "analyst"}
PLAIN = {"settings", "home", "token"}  # fields that do nothing
WHO = "sessions.service.run(lambda: sessions.find(cookie))"  # where a file comes in: whose it is


def modules() -> list[Path]:
    return sorted(each for part in ("pages", "owner", "analyst") for each in (INSIDE / part).glob("*.py"))


def handed(tree: ast.AST) -> set[ast.AST]:
    """Everything below a callable that is handed to `attempt` or its like, and below plain functions that it calls."""
    known: dict[str, list[ast.FunctionDef]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            known.setdefault(node.name, []).append(node)
    found: set[ast.AST] = set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in THROUGH:
            for each in [*node.args, *(given.value for given in node.keywords)]:
                if isinstance(each, ast.Lambda):
                    found.update(ast.walk(each))
                names.add(_name(each.func if isinstance(each, ast.Call) else each))
    names |= _called(found)
    seen: set[str] = set()
    while names - seen:
        name = (names - seen).pop()
        seen.add(name)
        for work in known.get(name, ()):
            found.update(ast.walk(work))
            names |= _called(ast.walk(work))
    return found


def _called(nodes: Iterable[ast.AST]) -> set[str]:
    return {_name(each.func) for each in nodes if isinstance(each, ast.Call)}


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def ways_around(source: str) -> list[str]:
    """Calls on the service, or on what it holds, that nobody asked `calls` for."""
    tree = ast.parse(source)
    fine = handed(tree)
    wrong = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node in fine:
            continue
        below, at = [], node.func.value
        while isinstance(at, ast.Attribute | ast.Call):
            below.append(at.func if isinstance(at, ast.Call) else at)
            at = at.func if isinstance(at, ast.Call) else at.value
        below.append(at)
        if (
            ast.unparse(node) != WHO
            and any(_name(each) in OWNERS for each in below)
            and not any(_name(each) in PLAIN for each in below)
        ):
            wrong.append(f"{node.lineno}: {ast.unparse(node.func)}")
    return wrong


@pytest.mark.parametrize("file", modules(), ids=lambda each: each.stem)
def test_a_page_does_nothing_but_by_a_call_that_the_api_has_too(file):
    assert ways_around(file.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "await session.service.run(lambda: 1)",
        "await self.session.service.preview(work)",
        "session.service.curator.protect(text)",
        "self.session.service.tokens.revoke(token.id)",
        "curator = session.service.curator; curator.ledger.entries(0)",
        "session.analyst.ask(sql)",
    ],
)
def test_a_way_around_would_be_seen(line):
    assert ways_around(f"async def act(self, session):\n    {line}\n")


def test_what_is_handed_over_is_no_way_around():
    fine = """
async def act(session):
    def work():
        return below(session)
    await attempt(session, "GET /v1/x", work)
    await attempt(session, "GET /v1/x", lambda: session.service.tokens.revoke(1))
def below(session):
    return session.service.curator.tables()
"""
    assert ways_around(fine) == []
    assert ways_around(fine.replace('await attempt(session, "GET /v1/x", work)', "work()"))


def test_every_route_that_a_page_names_is_one_of_the_api():
    from dalenius.app.console.calls import roles

    named: dict[str, str] = {}
    for file in [*modules(), INSIDE / "calls.py"]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                method, _, path = node.value.partition(" ")
                if method in {"GET", "POST", "PUT", "DELETE"} and path.startswith("/v1/"):
                    named[node.value] = file.stem
    assert len(named) > 10
    missing = {route: page for route, page in named.items() if route not in roles()}
    assert not missing
    assert all(place.roles for place in PAGES.values())
