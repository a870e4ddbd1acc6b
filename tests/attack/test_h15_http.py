"""H15 over HTTP: races and crashes. Room for one charge admits one; no answer is seen whose charge is not on disk."""

import http.client
import secrets
import threading
import time
from collections import Counter
from typing import Any

import pytest
from tests.attack.served import QUICK, at_once, behind, charges, count
from tests.serving import serving, start

pytestmark = pytest.mark.integration
ASKERS = 64
KILLS = 2


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Two server processes on one home; each of four analysts has room for one question at ε = 0.8."""
    analysts = dict.fromkeys(("own", "same", "apart", "both"), 1.0)
    home = behind(tmp_path_factory.mktemp("race"), epsilon=4.0, analysts=analysts)
    with serving(home, config=QUICK) as one, serving(home) as two:
        two.tokens = one.tokens
        yield one, two


def clients(analyst, *servers):
    """So many connections with one token."""
    token = servers[0].token("analyst", analyst, trusted=True)
    return [servers[at % len(servers)].client(token) for at in range(ASKERS)]


@pytest.mark.parametrize(("name", "both"), [("own", False), ("apart", True)])
def test_of_64_questions_at_once_one_passes(servers, name, both):
    found = clients(name, *servers[: 2 if both else 1])
    replies = at_once(ASKERS, lambda at: found[at].ask(count(at), epsilon=0.8))
    assert Counter(each.status for each in replies) == {200: 1, 402: ASKERS - 1}
    assert charges(servers[0].home, name) == 1
    (passed,) = [each.json for each in replies if each.status == 200]
    assert not passed["free"] and passed["charge"]["epsilon"] == 0.8
    refused = [each.json for each in replies if each.status == 402]
    assert all(each["code"] == "budget.exhausted" and each["charge"]["epsilon"] == 0 for each in refused)


@pytest.mark.parametrize(("name", "both", "at"), [("same", False, 101), ("both", True, 102)])
def test_one_question_64_times_at_once_has_one_answer_and_one_charge(servers, name, both, at):
    found = clients(name, *servers[: 2 if both else 1])
    replies = at_once(ASKERS, lambda place: found[place].ask(count(at), epsilon=0.8))
    assert Counter(each.status for each in replies) == {200: ASKERS}
    assert len({str(each.json["rows"]) for each in replies}) == 1
    assert sum(not each.json["free"] for each in replies) == 1
    assert charges(servers[0].home, name) == 1


def load(server, answers, sent, seconds):
    """Four clients ask what nobody asked before, each under a key of its own, until the server is gone."""
    client = server.client(server.token("analyst", "eve", trusted=True))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        key = secrets.token_hex(8)
        body = {"sql": count(int(key[:8], 16)), "epsilon": 0.001, "idempotency_key": key}
        sent[key] = body
        try:
            reply = client.post("/v1/ask", body)
        except (OSError, http.client.HTTPException):
            return
        assert reply.status == 200, reply.content
        answers[key] = reply.json["rows"]


def test_no_answer_is_seen_without_its_charge_however_the_server_dies(tmp_path):
    home = behind(tmp_path, epsilon=100.0)
    answers: dict[str, list[Any]] = {}
    sent: dict[str, dict[str, Any]] = {}
    tokens: dict[str, str] = {}
    wait = secrets.SystemRandom().uniform
    for _ in range(KILLS):
        server = start(home, config=QUICK)
        try:
            server.tokens = tokens
            server.token("analyst", "eve", trusted=True)
            threads = [threading.Thread(target=load, args=(server, answers, sent, 30.0)) for _ in range(4)]
            before = len(answers)
            for thread in threads:
                thread.start()
            while len(answers) == before:  # it is at work
                time.sleep(0.01)
            time.sleep(wait(0.0, 0.7))
        finally:
            server.kill()
        for thread in threads:
            thread.join()
        assert len(answers) <= charges(home) <= len(sent)
        assert "Traceback" not in server.log_file.read_text()
    lost = set(sent) - set(answers)
    assert lost, "no kill met an open question"
    with serving(home, config=QUICK) as server:
        server.tokens = tokens
        client = server.client(server.token("analyst", "eve", trusted=True))
        before = charges(home)
        for key in list(answers)[:10] + list(answers)[-10:]:  # the same question, then the same request
            plain = client.post("/v1/ask", {**sent[key], "idempotency_key": None})
            again = client.post("/v1/ask", sent[key])
            assert plain.status == again.status == 200
            assert plain.json["rows"] == again.json["rows"] == answers[key]
            assert plain.json["free"] and again.json["free"]
        assert charges(home) == before
        first = {key: client.post("/v1/ask", sent[key]) for key in lost}
        second = {key: client.post("/v1/ask", sent[key]) for key in lost}
        assert all(each.status == 200 for each in first.values())
        assert all(second[key].json["rows"] == first[key].json["rows"] and second[key].json["free"] for key in lost)
    assert charges(home) == len(sent)  # each question once, whether it was answered, lost or retried
