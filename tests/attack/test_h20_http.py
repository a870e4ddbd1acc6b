"""H20 over HTTP: nothing that the server shows, but noisy numbers, depends on the victim.

Every route that an analyst, an auditor or somebody who sees metrics and logs can reach is read on a server with the
victim's 500 rows and on one without them, in the same order, and compared letter by letter: byte for byte where nothing
random is in it, and without keys, hashes and moments elsewhere.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.attack.hostile import RARE, VICTIM, people, protected
from tests.attack.test_h20_metadata import ASKED, REFUSED, differing
from tests.attack.watched import CONFIG, both, log_of, masked, seen
from tests.serving import Reply, Server, serving

EPSILON = 0.1
FOUND = "SELECT note, COUNT(*) FROM visits GROUP BY note"  # the victim's note is nobody else's
BAD: list[tuple[str, str, Any]] = [
    ("GET", "/v1/tables/nobody", None),
    ("GET", f"/v1/tables/{VICTIM}", None),
    ("GET", "/v1/receipts/R1-aaaaaaaaaaaa", None),
    ("GET", "/v1/jobs/0123456789abcdef0123456789abcdef", None),
    ("GET", "/v1/nothing", None),
    ("GET", "/v1/ledger", None),
    ("PUT", "/v1/ask", {}),
    ("POST", "/v1/ask", b"{"),
    ("POST", "/v1/ask", {"sql": ASKED[0], "epsilon": "much"}),
    ("POST", "/v1/ask", {"sql": ASKED[0]}),
    ("POST", "/v1/ask", {"sql": "SELECT COUNT(*) FROM visits WHERE age = 90", "epsilon": 99}),
    ("POST", "/v1/preview", {"sql": f"SELECT COUNT(*) FROM visits WHERE note = '{RARE}'", "error": 1e-9}),
    ("POST", "/v1/protect", {"policies": []}),
]


def whole(reply: Reply) -> str:
    """A response in which nothing is random."""
    headers = {name: value for name, value in reply.headers.items() if name not in {"date", "x-request-id"}}
    return f"{reply.status}\n{sorted(headers.items())}\n{reply.content.decode()}"


def noisy(reply: Reply) -> str:
    """One that has noise and moments in it."""
    return masked(json.dumps(seen(reply), sort_keys=True))


def counts(reply: Reply) -> str:
    """Metrics without the histogram of times, whose fixed ones are H4's."""
    lines = reply.content.decode().splitlines()
    return "\n".join(each for each in lines if "_seconds_sum" not in each and "_seconds_bucket" not in each)


def observed(server: Server) -> dict[str, str]:
    """All that is to be seen of a server."""
    eve, owner, auditor = server.analyst("eve"), server.owner(), server.auditor()
    found: dict[str, str] = {}
    for path in ("/healthz", "/readyz", "/v1/openapi.json", "/v1/budget"):
        found[f"GET {path}"] = whole(eve.get(path))
    for path in ("/v1/tables", "/v1/tables/visits"):
        found[f"GET {path}"] = masked(whole(eve.get(path)))  # the policy's hash: their files lie in two places
    found["me"] = noisy(eve.get("/v1/me"))
    for sql in [*ASKED, *REFUSED, FOUND]:
        found[f"preview: {sql}"] = whole(eve.post("/v1/preview", {"sql": sql, "epsilon": EPSILON, "plan": True}))
        found[f"explain: {sql}"] = whole(eve.post("/v1/explain", {"sql": sql, "epsilon": EPSILON}))
    for sql in ASKED[:3]:
        for more in ({}, {"error": 100.0}):
            found[f"preview {more}: {sql}"] = whole(eve.post("/v1/preview", {"sql": sql, **more}))
    for sql in set(REFUSED) - {FOUND}:
        found[f"refusal: {sql}"] = whole(eve.ask(sql, epsilon=EPSILON))
    for method, path, body in BAD:
        found[f"{method} {path} {body}"] = whole(eve.request(method, path, body))
    receipts = []
    soon = server.analyst("eve", trusted=True)  # when they are ready: their times are H4's
    for sql in [*ASKED, FOUND]:
        reply = soon.ask(sql, epsilon=EPSILON)
        assert reply.status == 200, reply.content
        found[f"answer: {sql}"] = noisy(reply)
        found[f"again: {sql}"] = noisy(eve.ask(sql, epsilon=EPSILON / 2))
        receipts.append(reply.json["receipt"]["id"])
    found["receipts"] = "\n".join(noisy(eve.get(f"/v1/receipts/{each}")) for each in receipts)
    job = eve.request("POST", "/v1/ask", {"sql": JOB, "epsilon": EPSILON}, {"Prefer": "respond-async"})
    found["job"] = progress(job.content.decode())
    path = job.headers["location"]
    found["events"] = "\n".join(map(progress, eve.get(f"{path}/events").content.decode().split("\n\n")))
    done = eve.get(path).json
    found["job at its end"] = masked(json.dumps({**done, "result": sorted(done["result"])}))
    found["history"] = masked(eve.get("/v1/history").content.decode())
    found["budget afterwards"] = whole(eve.get("/v1/budget"))
    rows = auditor.get("/v1/ledger?limit=1000").json["entries"]
    about = [each for each in rows if each["kind"] in {"charge", "answer", "failure", "grant", "note"}]
    found["ledger"] = masked(json.dumps([(each["kind"], each["number"], each["data"]) for each in about]))
    found["alarms"] = whole(owner.get("/v1/alarms"))
    found["metrics"] = counts(owner.get("/metrics"))
    totals = re.findall(r"^dalenius_requests_total\{.*\} (\d+)\.0$", found["metrics"], re.MULTILINE)
    found["log"] = "\n".join(map(json.dumps, log_of(server, sum(map(int, totals)) + 1)))
    return found


JOB = "SELECT COUNT(*) FROM visits WHERE amount > 4500"


def progress(text: str) -> str:
    """A job without the moments in it."""
    text = re.sub(r'"result": \{.*\}, "problem"', '"result": {}, "problem"', masked(text))
    return re.sub(r'"(leaves|seconds_left)": [^,]*', r'"\1": "<time>"', text)


@pytest.fixture(scope="module")
def homes(tmp_path_factory) -> dict[bool, Path]:
    """Without the victim, and with."""
    folder = tmp_path_factory.mktemp("h20")
    more = "[time]\nanswer = 1.2\ncap = 60"
    return {
        victim: protected(folder / str(victim), people(victim=victim), epsilon=20.0, more=more).home
        for victim in (False, True)
    }


@pytest.fixture(scope="module")
def pair(homes) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    with ExitStack() as stack:
        one, other = (stack.enter_context(serving(home, config=CONFIG)) for home in homes.values())
        yield both(lambda: observed(one), lambda: observed(other))


def test_nothing_but_noisy_numbers_depends_on_the_victim(pair):
    without, with_ = pair
    assert len(with_) > 75
    assert {name: (without[name], with_[name]) for name in differing(without, with_)} == {}


def test_the_version_that_tables_show_is_of_the_policy_alone(tmp_path):
    """The hash that is masked above: equal where the files lie in the same place."""
    found = []
    for victim in (True, False):
        curator = protected(tmp_path / "here", people(victim=victim))
        found.append([(each.version, each.data_version) for each in curator.tables()])
        shutil.move(tmp_path / "here", tmp_path / f"gone {victim}")
    assert found[0] == found[1]


def test_no_value_of_a_row_is_in_anything_that_is_shown(pair):
    """The victim's rare word shows only where the question itself said it."""
    _, with_ = pair
    for name, text in with_.items():
        if RARE not in name and name not in {"history", "ledger"}:  # which hold the texts of questions
            said = text.replace(f"user_id = {VICTIM}", "")
            assert RARE not in said and str(VICTIM) not in said, name


def test_every_route_for_analysts_was_looked_at(pair):
    _, with_ = pair
    described = json.loads(with_["GET /v1/openapi.json"].split("\n", 2)[2])
    assert len(described["paths"]) > 15
    assert '"/v1/ask",status="200"' in with_["metrics"] and '"event": "request"' in with_["log"]
    known = {"level", "event", "method", "route", "status", "token", "code", "exception", "at"}
    assert all(set(json.loads(line)) <= known for line in with_["log"].splitlines())
