"""Asking a server: the same answers as at home, charged once whatever the network does."""

from __future__ import annotations

import json
import math
import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.remote.server import TOKEN, Server, problem, says
from tests.unit.test_analyst import protected

import dalenius
import dalenius.remote.wire
from dalenius import Release, RemoteAnalyst, connect
from dalenius._fields import Fields
from dalenius.errors import (
    AuthMissingError,
    BudgetError,
    Charge,
    DaleniusError,
    EngineFailedError,
    EngineTimeoutError,
    InputError,
    InternalError,
    LedgerUnavailableError,
    RateLimitedError,
    SourceUnavailableError,
    SqlSyntaxError,
    UnknownTableError,
)
from dalenius.ledger.budgets import Accounting, Balance, Budget
from dalenius.ledger.ledger import Ledger
from dalenius.measuring.plan import Limits
from dalenius.queries.preview import Preview
from dalenius.remote import calls, transport

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_REGION = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY region"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    server = Server(protected(tmp_path_factory.mktemp("home"), budget='delta = 1e-6\naccounting = "zcdp"'))
    yield server
    server.stop()


@pytest.fixture
def server(served, monkeypatch):
    """The tables are laid once; what a test changes of the server is undone."""
    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.005)
    served.seen.clear()
    served.tricks.clear()
    served.later = 0
    return served


@pytest.fixture
def remote(server):
    with connect(server.url, TOKEN, timeout=5) as analyst:
        yield analyst


def charges(server):
    return server.curator.ledger.balance("visits", "ana").charges


def asked(server):
    return [body["idempotency_key"] for method, path, _, body in server.seen if path == "/v1/ask"]


_fresh = iter(range(18, 90))


def new_question():
    """One that was not asked before, so that it is charged."""
    return f"SELECT COUNT(*) AS n FROM visits WHERE age > {next(_fresh)}"


# --- the same as at home


def test_a_server_answers_as_the_curator_at_home(server, remote):
    at_home = server.analyst
    release = remote.ask(BY_REGION, epsilon=0.05)
    assert isinstance(release, Release) and not release.free
    again = at_home.ask(BY_REGION, epsilon=0.05)
    assert again.free and release.rows == again.rows and release.interval == again.interval
    assert remote.ask(BY_REGION, epsilon=0.05).summary == again.summary
    assert str(remote.preview(BY_REGION)) == str(at_home.preview(BY_REGION))
    assert remote.preview(BY_REGION) == at_home.preview(BY_REGION)
    assert remote.preview(COUNT, error={"n": 90}, limits=Limits(rows=1, totals={"age": Fraction(1, 10)})) == (
        at_home.preview(COUNT, error={"n": 90}, limits=Limits(rows=1, totals={"age": Fraction(1, 10)}))
    )
    for wish in (200, {"n": 200}, "40%", {"n": "40%"}):  # the own answer says how large groups are
        by_accuracy = remote.preview(BY_REGION, error=wish if isinstance(wish, dict) else {"n": wish})
        assert by_accuracy == at_home.preview(BY_REGION, error=wish if isinstance(wish, dict) else {"n": wish})
    assert remote.preview(BY_REGION, epsilon=0.05).choices[0].known
    assert remote.budget() == at_home.budget() and remote.history() == at_home.history()
    assert remote.name == "ana" and len(remote.history()) >= 1


def test_what_is_computed_from_a_release_comes_over_too(server, remote):
    question = (
        "SELECT region, COUNT(*) AS n, n * 1.0 / SUM(n) OVER () AS share, AVG(age) AS age FROM visits GROUP BY region"
    )
    remote.ask(BY_REGION, epsilon=0.05)
    release, at_home = remote.ask(question, epsilon=0.05), server.analyst.ask(question, epsilon=0.05)
    assert release.free and release.rows == at_home.rows and release.noise_error == at_home.noise_error
    assert str(release) == str(at_home) and release.total_interval == at_home.total_interval
    assert remote.preview(question, epsilon=0.05) == server.analyst.preview(question, epsilon=0.05)


def test_history_is_read_page_by_page(server, remote):
    for _ in range(3):
        remote.ask(new_question(), epsilon=0.001)
    assert remote.history() == server.analyst.history() and len(remote.history()) >= 3


def test_tables_and_receipts(remote):
    (table,) = remote.tables()
    assert table["name"] == "visits" and "source" not in json.dumps(table) and remote.table("visits") == table
    assert remote.receipt("R1-abc") == {"id": "R1-abc"}
    with pytest.raises(UnknownTableError):
        remote.table("a/../b")


def test_a_refusal_is_the_error_that_it_is_at_home(server, remote):
    for question, price in (("SELEC", 0.1), ("SELECT COUNT(*) FROM payroll", 0.1), (COUNT, 50.0)):
        with pytest.raises(DaleniusError) as at_home:
            server.analyst.ask(question, epsilon=price)
        with pytest.raises(DaleniusError) as found:
            remote.ask(question, epsilon=price)
        assert type(found.value) is type(at_home.value) and found.value.to_dict() == at_home.value.to_dict()
        assert str(found.value) == str(at_home.value) and found.value.at == at_home.value.at


@pytest.mark.parametrize("wish", [{"epsilon": math.nan}, {"epsilon": "1"}, {"delta": 2}, {"error": math.inf}])
def test_numbers_are_checked_before_anything_is_sent(server, remote, wish):
    with pytest.raises(InputError):
        remote.ask(COUNT, **wish)
    assert not server.seen


def test_a_total_is_sent_exactly_or_not_at_all(server, remote):
    for total in (
        Fraction(1, 10),
        Fraction(5),
        Fraction(0.1),
        Fraction(1, 1 << 20),
        Fraction("12.000000000000000000001"),
    ):
        remote.preview(COUNT, limits=Limits(totals={"age": total}))
        sent = server.seen[-1][3]["limits"]["totals"]["age"]
        assert Fraction(sent) == Fraction(total)
    with pytest.raises(InputError, match="decimal"):
        remote.preview(COUNT, limits=Limits(totals={"age": Fraction(1, 3)}))


# --- charged once


@pytest.mark.parametrize(
    "tricks",
    [
        ["drop"],
        ["cut"],
        ["drop", "cut", "drop", "drop"],
        [says(502), says(504)],
        [says(503, problem(LedgerUnavailableError("Busy.", why="Locked.", fix="Wait.")), Retry_After="0")],
        [says(429, problem(RateLimitedError("Slow down.", why="Too many.", fix="Wait.")), Retry_After="0")],
    ],
)
def test_what_is_lost_is_asked_for_again_under_the_same_key_and_charged_once(server, remote, tricks):
    before = charges(server)
    server.tricks += tricks
    release = remote.ask(new_question(), epsilon=0.001)
    assert release.charge["epsilon"] == 0.001 and charges(server) == before + 1
    assert len(asked(server)) == len(tricks) + 1 and len(set(asked(server))) == 1


def test_every_question_has_a_key_of_its_own(server, remote):
    for _ in range(3):
        remote.ask(BY_REGION, epsilon=0.05)
    assert len(set(asked(server))) == 3 and all(len(key) >= 32 for key in asked(server))


@pytest.mark.parametrize("kind", [EngineFailedError, EngineTimeoutError])
@pytest.mark.parametrize("charge", [Charge(0.2, 0.0), Charge()])
def test_what_an_engine_failed_at_is_not_asked_again(server, remote, kind, charge):
    server.tricks += [says(503, problem(kind("It failed.", why="So it is.", fix="See.", charge=charge)))]
    with pytest.raises(kind) as found:
        remote.ask(new_question(), epsilon=0.001)
    assert found.value.charge == charge and len(asked(server)) == 1


def test_a_charge_is_told_and_not_risked_again(server, remote):
    failed = LedgerUnavailableError("The disk is full.", why="Full.", fix="Free space.", charge=Charge(0.3, 1e-9))
    server.tricks += [says(503, problem(failed))]
    with pytest.raises(LedgerUnavailableError) as found:
        remote.ask(new_question(), epsilon=0.001)
    assert found.value.charge == Charge(0.3, 1e-9) and len(server.seen) == 1


def test_when_all_tries_fail_the_cost_is_not_known_and_the_next_ask_goes_under_the_same_key(server, remote):
    before, question = charges(server), new_question()
    server.tricks += ["drop"] * calls.TRIES
    with pytest.raises(SourceUnavailableError) as found:
        remote.ask(question, epsilon=0.001)
    assert found.value.cost == "Whether it was charged is not known."
    assert found.value.to_dict()["error"]["charge"] == {"epsilon": None, "delta": None}
    assert remote.ask(question, epsilon=0.001).rows and charges(server) == before + 1
    assert len(asked(server)) == calls.TRIES + 1 and len(set(asked(server))) == 1
    remote.ask(question, epsilon=0.001)
    assert len(set(asked(server))) == 2  # settled


def test_a_bug_of_the_server_leaves_the_cost_open(server, remote):
    server.tricks += [says(500, problem(InternalError("A bug.", why="Ours.", fix="Report.")))]
    with pytest.raises(InternalError) as found:
        remote.ask(new_question(), epsilon=0.001)
    assert math.isnan(found.value.charge.epsilon) and len(server.seen) == 1


def test_a_key_of_the_callers_own_does_not_make_the_kept_one_forgotten(server, remote):
    question = new_question()
    server.tricks += ["drop"] * calls.TRIES
    with pytest.raises(SourceUnavailableError):
        remote.ask(question, epsilon=0.001)
    kept = asked(server)[0]
    server.tricks += ["drop"] * calls.TRIES
    with pytest.raises(SourceUnavailableError):
        remote.ask(question, epsilon=0.001, idempotency_key="mine")
    remote.ask(question, epsilon=0.001)
    assert asked(server)[-1] == kept


def test_a_try_that_came_in_too_slowly_is_repeated_and_says_nothing_of_one_before(server, remote):
    before = charges(server)
    slow = says(408, problem(InputError("The request did not come in in time.", why="So.", fix="Send it again.")))
    server.tricks += [slow]
    assert remote.ask(new_question(), epsilon=0.001).rows and charges(server) == before + 1
    for warm in (True, False):
        if not warm:
            remote.close()
        server.tricks += ["drop", *[slow] * (calls.TRIES - (not warm))]
        with pytest.raises(InputError) as found:
            remote.ask(new_question(), epsilon=0.001)
        assert math.isnan(found.value.charge.epsilon) and not server.tricks


def test_a_refusal_after_a_warm_connection_broke_leaves_the_cost_open(server, remote):
    remote.tables()  # the connection is warm now
    denied = says(401, problem(AuthMissingError("No token.", why="Revoked.", fix="Ask.")))
    server.tricks += ["drop", denied]  # charged, lost; and the token ends meanwhile
    with pytest.raises(AuthMissingError) as found:
        remote.ask(new_question(), epsilon=0.001)
    assert math.isnan(found.value.charge.epsilon)


def test_a_refusal_after_a_lost_try_cost_nothing(server, remote):
    server.tricks += ["drop"]
    with pytest.raises(BudgetError, match="No budget was spent"):
        remote.ask(COUNT, epsilon=50.0)


LATE = 60.0  # seconds that an answer takes which is not waited for: far more than a busy machine may add


def test_tries_end_when_the_time_is_over(server, monkeypatch):
    over = threading.Event()
    with connect(server.url, TOKEN, timeout=0.3) as hasty:
        server.tricks += [lambda *_: over.wait(LATE) and None]
        began = time.monotonic()
        with pytest.raises(SourceUnavailableError, match="in time"):
            hasty.preview(COUNT)
        assert time.monotonic() - began < LATE / 2
        over.set()
        server.tricks.clear()
        server.tricks += [says(429, problem(RateLimitedError("Slow.", why="Fast.", fix="Wait.")), Retry_After="60")]
        naps: list[float] = []
        monkeypatch.setattr("dalenius.remote.calls.time.sleep", naps.append)
        with pytest.raises(RateLimitedError):
            hasty.preview(COUNT)
        assert naps == []  # it does not sleep for nothing


def test_an_answer_that_drips_does_not_outlast_the_time(server):
    over = threading.Event()

    def drip(_, handler, body):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        end = time.monotonic() + LATE
        while not over.wait(0.05) and time.monotonic() < end:
            handler.wfile.write(b" ")
            handler.wfile.flush()

    server.tricks += [drip]
    began = time.monotonic()
    with connect(server.url, TOKEN, timeout=0.3) as hasty, pytest.raises(SourceUnavailableError):
        hasty.preview(COUNT)
    assert time.monotonic() - began < LATE / 2
    over.set()


# --- jobs


def test_an_answer_that_takes_its_time_is_waited_for(server):
    server.later, told = 0.6, []
    with connect(server.url, TOKEN, timeout=0.5, progress=lambda share, text: told.append((share, text))) as analyst:
        release = analyst.ask(new_question(), epsilon=0.001)
    assert release.charge["epsilon"] == 0.001 and len(asked(server)) == 1
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[-1] == 1.0 and all("leaves in" in text for _, text in told[:-1])


def test_a_job_that_the_server_forgot_is_asked_for_again_under_the_same_key(server, remote):
    server.later, before = 0.05, charges(server)

    def forget(server, handler, body):
        server.jobs.clear()
        return "go on"

    server.tricks += [None, forget]
    assert remote.ask(new_question(), epsilon=0.001).rows and charges(server) == before + 1
    assert len(asked(server)) == 2 and len(set(asked(server))) == 1


def test_a_job_that_failed_is_the_error_of_its_problem(server, remote):
    failed = problem(EngineTimeoutError("Late.", why="The cap.", fix="Ask less.", charge=Charge(0.2, 0.0)))
    job = {"id": "ab", "state": "failed", "seconds_left": 0, "leaves": "", "result": None, "problem": failed}
    server.tricks += [says(202, {**job, "state": "running", "problem": None}), says(200, job)]
    with pytest.raises(EngineTimeoutError) as found:
        remote.ask(new_question(), epsilon=0.001)
    assert found.value.charge == Charge(0.2, 0.0)


def test_a_job_whose_time_is_not_known_yet_or_over_is_read_as_the_server_sends_it():
    job = {"id": "ab", "state": "running", "leaves": None, "seconds_left": None, "result": None, "problem": None}
    assert dalenius.remote.wire.RemoteJob.from_dict(job).seconds_left == 0
    assert dalenius.remote.wire.RemoteJob.from_dict({**job, "state": "done", "result": {}}).result == {}


@pytest.mark.parametrize("job", [{"id": "../me"}, {"state": "odd"}, {"seconds_left": "soon"}, {"state": "done"}])
def test_a_job_of_another_form_is_refused_and_the_cost_left_open(server, remote, job):
    server.tricks += [says(202, {"id": "ab", "state": "running", "seconds_left": 0, **job})]
    with pytest.raises(SourceUnavailableError) as found:
        remote.ask(new_question(), epsilon=0.001)
    assert math.isnan(found.value.charge.epsilon)


# --- what others answer


@pytest.mark.parametrize(
    "content",
    [
        b"<html>Please log in</html>",
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"columns": 3}',
        b"{" * 100_000,
        b"[" * 100_000,
        b'{"a": NaN}',
        b"9" * 5000,
        b"\xff\xfe",
    ],
)
def test_an_answer_that_is_none_of_ours_is_told_as_that(server, remote, content):
    for call in (
        lambda: remote.preview(COUNT),
        lambda: remote.ask(COUNT, epsilon=0.001),
        remote.budgets,
        remote.budget,
        remote.history,
        remote.tables,
        lambda: remote.table("visits"),
    ):
        server.tricks += [says(200, content)]
        with pytest.raises(SourceUnavailableError, match="proxy"):
            call()


def spoilt(value):
    """Every way to put a wrong type into one place of a JSON object."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield {key: old for key, old in value.items() if key != name}
            for other in spoilt(each):
                yield {**value, name: other}
    elif isinstance(value, list) and value:
        for other in spoilt(value[0]):
            yield [other, *value[1:]]
    for other in (None, True, -3, 1e308, "text \x1b[2J", [], {}, [[[]]], {"a": {"b": 1}}):
        if type(other) is not type(value):
            yield other


def test_no_wrong_type_anywhere_makes_anything_but_our_error(server, remote):
    release = server.analyst.ask(BY_REGION, epsilon=0.05)
    preview = server.analyst.preview(BY_REGION)
    balance = server.analyst.budget()["visits"]
    (version,) = server.curator.tables()
    readers = [
        (lambda data: str(Release.from_dict(data)), {**release.to_dict(), "question": "q"}),
        (lambda data: Release.from_dict(data)._repr_html_(), {**release.to_dict(), "question": "q"}),
        (lambda data: str(Preview.from_dict(data)), preview.to_dict()),
        (lambda data: Balance.from_dict(data).to_dict(), balance.to_dict()),
        (dalenius.remote.wire.summary, server.table(version)),
        (DaleniusError.from_dict, InputError("a", why="b", fix="c").to_dict()),
    ]
    for read, data in readers:
        assert read(json.loads(json.dumps(data)))
        for wrong in spoilt(json.loads(json.dumps(data))):
            if isinstance(wrong, dict) or read is not DaleniusError.from_dict:
                with suppress(InputError):
                    read(wrong)


def test_a_redirect_is_not_followed(server, remote):
    server.tricks += [says(307, b"", Location="http://127.0.0.1:1/v1/ask")]
    with pytest.raises(SourceUnavailableError, match="elsewhere"):
        remote.ask(COUNT, epsilon=0.001)
    assert len(server.seen) == 1


def test_an_answer_without_end_is_not_read_to_it(server, remote, monkeypatch):
    monkeypatch.setattr(transport.Transport.request, "__kwdefaults__", {"longest": 100_000})
    server.tricks += [says(200, b" " * 1_000_000)]
    with pytest.raises(SourceUnavailableError, match="too long"):
        remote.preview(COUNT)
    assert remote.preview(COUNT).choices  # on a new connection


def test_an_error_of_a_server_cannot_steer_the_terminal(server, remote):
    error = problem(InputError("a\x1b[2Jb", why="c\rd", fix="e\nf"))
    server.tricks += [says(400, error), says(400, {**error, "code": "of.tomorrow"}), says(418, {"code": 3})]
    with pytest.raises(InputError) as found:
        remote.preview(COUNT)
    assert "\x1b" not in str(found.value) and "\r" not in str(found.value) and found.value.fix == "e\nf"
    with pytest.raises(InputError):
        remote.preview(COUNT)
    with pytest.raises(SourceUnavailableError, match="418"):
        remote.preview(COUNT)


# --- connections, addresses, tokens


def test_a_connection_is_kept_and_opened_again_when_it_went_stale(server, remote):
    remote.preview(COUNT)
    before = server.opened
    for _ in range(3):
        remote.preview(COUNT)
    assert server.opened == before
    server.tricks += ["drop"]
    requests = len(server.seen)
    remote.preview(COUNT)
    assert server.opened == before + 1 and len(server.seen) == requests + 2


def test_threads_have_connections_of_their_own(server, remote):
    found = []
    threads = [threading.Thread(target=lambda: found.append(remote.preview(COUNT))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 4 and all(each == found[0] for each in found)


def test_nobody_at_the_address(monkeypatch):
    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.001)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        with connect(f"http://127.0.0.1:{taken.getsockname()[1]}", TOKEN, timeout=5) as nobody:
            with pytest.raises(SourceUnavailableError, match="No budget was spent") as found:
                nobody.ask(COUNT, epsilon=0.1)
            assert "5 times" in found.value.why


@pytest.mark.parametrize(
    "url",
    [
        "curator.example.org",
        "ftp://curator.example.org",
        "https://",
        "https://me:secret@curator.example.org",
        "https://curator.example.org/?token=x",
        "https://curator.example.org:0",
        "https://curator.example.org:99999",
        "https://curator\r\n.example.org",
        "http://curator.example.org",
        "http://10.0.0.1",
        "",
        None,
    ],
)
def test_addresses_that_are_refused(url):
    with pytest.raises(InputError):
        connect(url, TOKEN)


@pytest.mark.parametrize("url", ["http://localhost:1", "http://127.8.8.8", "http://[::1]:8400", "https://a.example/x/"])
def test_addresses_that_are_taken(url):
    for analyst in (connect(url, TOKEN), connect("http://10.0.0.1", TOKEN, insecure=True)):
        assert isinstance(analyst, RemoteAnalyst)
        analyst.close()


@pytest.mark.parametrize("token", ["", "two words", "line\r\nX: y", "ä", None, 7])
def test_a_token_that_cannot_be_sent_is_refused(token):
    with pytest.raises(InputError) as found:
        connect("https://curator.example.org", token)
    assert not token or str(token) not in str(found.value)


def test_the_token_shows_nowhere(server):
    wrong = "dalenius_0123456789ab_wr0ng"
    analyst = connect(server.url, wrong, timeout=1)
    with pytest.raises(AuthMissingError) as found:
        analyst.ask(COUNT, epsilon=0.1)
    shown = [repr(analyst), repr(analyst._calls.transport), str(found.value), repr(found.value.to_dict())]
    server.tricks += ["drop"] * 6  # a warm connection is tried once more at once
    with pytest.raises(SourceUnavailableError) as lost:
        analyst.ask(COUNT, epsilon=0.1)
    shown += [str(lost.value), repr(lost.value.__context__), repr(lost.value.__cause__)]
    assert not any("wr0ng" in each for each in shown)
    analyst.close()


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path, server, monkeypatch):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*made, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    secure = Server(server.curator)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    secure.http.socket = context.wrap_socket(secure.http.socket, server_side=True)
    monkeypatch.setattr(secure.http, "handle_error", lambda *_: None)
    url = secure.url.replace("http://127.0.0.1", "https://localhost")
    try:
        with connect(url, TOKEN, timeout=5) as stranger, pytest.raises(SourceUnavailableError, match="not trusted"):
            stranger.preview(COUNT)
        assert not secure.seen
        with connect(url, TOKEN, ca=cert, timeout=5) as known:
            assert known.preview(COUNT) == server.analyst.preview(COUNT)
    finally:
        secure.stop()
    with pytest.raises(SourceUnavailableError, match="authorities"):
        connect(url, TOKEN, ca=key)


# --- there and back

finite = st.floats(allow_nan=False, allow_infinity=False)
cells = st.one_of(st.none(), st.integers(), finite, st.text(), st.dates(), st.booleans(), st.decimals(-1e6, 1e6))
ends = st.one_of(st.none(), st.tuples(st.floats(max_value=0, allow_nan=False), st.floats(min_value=0, allow_nan=False)))
amounts = st.fixed_dictionaries({"epsilon": st.floats(0, 10), "delta": st.floats(0, 1)})


@st.composite
def releases(draw):
    width, height = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    keys = draw(st.lists(st.booleans(), min_size=width, max_size=width))
    rows = [
        [draw(cells if key else st.one_of(st.none(), st.integers(), finite)) for key in keys] for _ in range(height)
    ]
    errors = [[None if key else draw(st.one_of(st.none(), st.floats(0, 1e9))) for key in keys] for _ in rows]
    return Release(
        columns=tuple(draw(st.lists(st.text(min_size=1), min_size=width, max_size=width))),
        keys=tuple(keys),
        rows=tuple(map(tuple, rows)),
        noise_error=tuple(map(tuple, errors)),
        interval=tuple(tuple(None if key else draw(ends) for key in keys) for _ in rows),
        confidence=draw(st.floats(0.5, 0.9999)),
        guarantee={"kind": "approx", **draw(amounts), "unit": draw(st.text()), "neighbors": "add-remove"},
        charge={**draw(amounts), "rho": None},
        remaining={"analyst": draw(amounts), "dataset": draw(amounts)},
        free=draw(st.booleans()),
        receipt=draw(st.none() | st.fixed_dictionaries({"analyst": st.text()})),
        question=draw(st.text()),
        notes=tuple(draw(st.lists(st.text(), max_size=2))),
    )


@settings(max_examples=40)
@given(releases())
def test_a_release_prints_the_same_after_the_way_through_json(release):
    data = json.loads(json.dumps({"question": release.question, **release.to_dict()}, allow_nan=False))
    back = Release.from_dict(data)
    assert back.to_dict() == release.to_dict() and str(back) == str(release) and back.question == release.question
    assert back._repr_html_() == release._repr_html_() and back.interval == release.interval


@pytest.mark.parametrize(
    "budget",
    [
        Budget(3.0, 1e-6, unit="user_id"),
        Budget(3.0, 1e-6, selection=0.8),
        Budget(3.0, accounting=Accounting.PURE),
        Budget(2.0, 1e-6, period="month", neighbors=dalenius.Neighbors.SUBSTITUTE),
    ],
)
def test_a_balance_is_equal_after_the_way_through_json(tmp_path, budget):
    ledger = Ledger.create(tmp_path)
    ledger.set_budget("visits", budget)
    ledger.set_allotment("visits", "ana", 1.3)
    for spent in ((0, 0), (1 << 126, 1 << 100), ((1 << 125) + 7, 3)):
        units = spent if budget.accounting is Accounting.ZCDP else (spent[0], 0)
        guard = budget.filter(1.3, units)
        first = Balance(budget, 1.3, guard.spent, guard.remaining_epsilon, guard.remaining_delta, 4, "2025-01")
        assert Balance.from_dict(json.loads(json.dumps(first.to_dict()))) == first
        assert first.untouched() == ledger.balance("visits", "ana")


@pytest.mark.parametrize(
    "error",
    [
        SqlSyntaxError("a", why="b", fix="c", at=dalenius.errors.Place(1, 7)),
        BudgetError("a", why="b", fix="c", fits=dalenius.errors.Fits(0.25)),
        EngineFailedError("a", why="b", fix="c", charge=Charge(0.5, 1e-7)),
        SourceUnavailableError("a", why="b", fix="c", charge=dalenius.errors.UNKNOWN),
    ],
)
def test_an_error_is_the_same_after_the_way_through_json(error):
    for data in (error.to_dict(), problem(error)):
        back = DaleniusError.from_dict(json.loads(json.dumps(data)))
        assert type(back) is type(error) and back.to_dict() == error.to_dict() and str(back) == str(error)


def test_fields_tell_which_is_wrong_and_never_its_value():
    with pytest.raises(InputError) as found:
        Fields({"a": "xyzzy"}, "thing").number("a")
    assert "'a'" in str(found.value) and "xyzzy" not in str(found.value)
