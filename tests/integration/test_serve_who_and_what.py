"""Who did it, and who may still have it: authors of owner actions, tokens that end meanwhile, keys that stand twice."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.attack.hostile import people, protected
from tests.attack.watched import CONFIG, planting
from tests.serving import Client, Reply, Server

from dalenius.ledger import Ledger, verify
from dalenius.ledger.tokens import Tokens

HELD = 1.5  # seconds until answers leave
MORE = f"[time]\nanswer = {HELD}\ncap = 60"
SQL = "SELECT COUNT(*) AS n FROM visits WHERE amount > {at}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("who")
    who = dict.fromkeys(("eve", "bob"), 40.0)
    curator = protected(folder, people(victim=False), epsilon=100.0, analysts=who, more=MORE)
    curator.ledger.database.close()
    with planting(curator.home, CONFIG + f'data_dir = "{folder}"\n') as (found, _):
        yield found


def ledger_of(server: Server) -> Ledger:
    return Ledger.open(server.home)


def last(server: Server, kind: str) -> dict[str, Any]:
    return list(ledger_of(server).records((kind,)))[-1].data


def fresh(server: Server, analyst: str = "eve") -> tuple[str, str]:
    """A new token of an analyst: its text and its id."""
    made = server.owner().post("/v1/tokens", {"role": "analyst", "analyst": analyst}).json
    return made["token"], made["id"]


def meanwhile(server: Server, id_: str, seconds: float = 0.4) -> threading.Timer:
    """The owner revokes a token a moment from now."""
    timer = threading.Timer(seconds, lambda: Tokens(ledger_of(server)).revoke(id_))
    timer.start()
    return timer


# --- tokens that end while an answer is on its way


def test_an_answer_in_flight_is_not_delivered_once_its_token_is_revoked(server):
    text, id_ = fresh(server)
    timer = meanwhile(server, id_)
    reply = server.client(text).ask(SQL.format(at=1), epsilon=0.5)
    timer.join()
    assert (reply.status, reply.json["code"]) == (401, "auth.missing")
    assert reply.json["charge"]["epsilon"] == 0.5  # it was charged, and it says so
    assert b"rows" not in reply.content and "www-authenticate" in reply.headers
    again = server.analyst("eve").ask(SQL.format(at=1), epsilon=0.5)
    assert again.status == 200 and again.json["free"]  # the answer is stored


def test_nor_once_it_has_expired(server):
    text = server.owner().post("/v1/tokens", {"role": "analyst", "analyst": "eve", "days": 0.9 / 86400}).json["token"]
    reply = server.client(text).ask(SQL.format(at=2), epsilon=0.5)
    assert reply.status == 401 and reply.json["charge"]["epsilon"] in (0.5, 0)  # 0: over before it was asked
    assert b"rows" not in reply.content


def test_nor_what_went_wrong_with_it(server):
    """That an answer failed, or was late, is a bit too."""
    text, id_ = fresh(server)
    client = server.client(text)
    timer = meanwhile(server, id_)
    reply = client.request("POST", "/v1/ask", {"sql": SQL.format(at=20), "epsilon": 0.5, "idempotency_key": "k"})
    timer.join()
    assert reply.status == 401


def test_a_stream_of_events_ends_without_the_answer(server):
    """Also if the token is revoked in the last moment, after the last look of a stream that looks every second."""
    for at in range(4, 14):
        in_time, content, path, client = streamed(server, at)
        if in_time:
            break
    assert in_time, "the machine is too busy to be in time"
    assert b'"done"' not in content and b"rows" not in content
    assert client.get(path).status == 401
    assert server.analyst("eve").get(path).json["state"] == "done"  # to a good token of the same analyst it is


def streamed(server: Server, at: int) -> tuple[bool, bytes, str, Client]:
    """Follows a question whose token is revoked shortly before it ends: whether it was in time, and what came."""
    text, id_ = fresh(server)
    client, eve, parts = server.client(text), server.analyst("eve"), urlsplit(server.url)
    body = {"sql": SQL.format(at=at), "epsilon": 0.5}
    path = client.request("POST", "/v1/ask", body, {"Prefer": "respond-async"}).headers["location"]
    stream = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    stream.request("GET", f"{path}/events", headers={"Authorization": f"Bearer {text}"})
    response = stream.getresponse()
    while (job := eve.get(path).json)["state"] == "running" and (
        job["seconds_left"] is None or job["seconds_left"] > 0.4
    ):
        time.sleep(0.02)
    Tokens(ledger_of(server)).revoke(id_)
    in_time = eve.get(path).json["state"] == "running"
    content = response.read()
    stream.close()
    end = time.monotonic() + 30
    while eve.get(path).json["state"] == "running" and time.monotonic() < end:
        time.sleep(0.05)
    return in_time, content, path, client


def test_who_revokes_the_own_token_is_told_so(server):
    owner = server.owner()
    made = owner.post("/v1/tokens", {"role": "owner"}).json
    own = server.client(made["token"])
    reply = own.request("DELETE", f"/v1/tokens/{made['id']}")
    assert (reply.status, reply.json["state"]) == (200, "revoked")
    assert own.get("/v1/me").status == 401
    assert last(server, "token") == {"action": "revoke", "id": made["id"], "by": f"token:{made['id']}"}


# --- who did it


def test_owner_actions_over_http_name_the_token(server):
    made = server.owner().post("/v1/tokens", {"role": "owner"}).json
    owner, by = server.client(made["token"]), f"token:{made['id']}"
    assert owner.request("PUT", "/v1/datasets/visits/analysts/zoe", {"epsilon": 1.0}).status == 200
    assert last(server, "allotment")["by"] == by
    assert owner.request("DELETE", "/v1/datasets/visits/analysts/zoe").status == 204
    assert last(server, "allotment")["by"] == by
    assert owner.post("/v1/tokens", {"role": "auditor"}).status == 201
    assert last(server, "token")["by"] == by
    policy = owner.get("/v1/policies/visits").json["policy"]
    body = {"policies": [policy.replace("epsilon = 100.0", "epsilon = 101.0")], "yes": True, "reason": "more of it"}
    changed = owner.post("/v1/protect", body)
    assert changed.status == 200, changed.json
    assert last(server, "policy")["by"] == last(server, "budget")["by"] == by
    assert owner.get("/v1/policies/visits").json["versions"][-1]["by"] == by
    (told,) = [each for each in owner.get("/v1/report").json["actions"] if each["kind"] == "budget"][-1:]
    assert told["by"] == by
    verify(ledger_of(server))


def test_on_the_machine_it_is_the_user(server):
    ledger = ledger_of(server)
    ledger.set_allotment("visits", "kim", 1.0)
    assert last(server, "allotment")["by"] == f"cli:{pwd.getpwuid(os.getuid()).pw_name}"
    ledger.end_allotment("visits", "kim")


# --- keys that stand twice


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/ask", '{"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.01, "epsilon": 5}'),
        ("/v1/ask", '{"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.01, "\\u0065psilon": 5}'),
        ("/v1/ask", '{"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 1, "limits": {"rows": 1, "rows": 9}}'),
        ("/v1/preview", '{"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.01, "epsilon": 5}'),
    ],
)
def test_keys_that_stand_twice_are_refused_in_requests(server, path, body):
    eve = server.analyst("eve")
    before = ledger_of(server).head
    reply = eve.request("POST", path, body.encode())
    assert (reply.status, reply.json["code"]) == (400, "input.invalid") and "twice" in reply.json["message"]
    padded = body.replace("visits", "visits" + " " * 5000)
    assert eve.request("POST", path, padded.encode()).status == 400  # in a long one too
    assert ledger_of(server).head == before


def test_and_what_is_no_json_is_told_as_before(server):
    reply: Reply = server.analyst("eve").request("POST", "/v1/preview", b'{"sql": ')
    assert reply.status == 400 and "twice" not in reply.json["message"]
    assert server.analyst("eve").request("POST", "/v1/preview", b"[" * 100_000).status == 400


def test_a_receipt_in_which_a_key_stands_twice_is_refused(tmp_path: Path):
    from dalenius.errors import InputError
    from dalenius.ledger import receipts

    file = tmp_path / "receipt.json"
    fields = dict.fromkeys(receipts.Receipt.__dataclass_fields__, "x")
    text = json.dumps(fields)
    file.write_text(text)
    assert receipts.read(file).dataset == "x"
    file.write_text('{"dataset": "y", ' + text[1:])
    with pytest.raises(InputError, match="twice"):
        receipts.read(file)
