"""The API is what its description says, whatever is sent: schemathesis over every route, with every role's token."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.conftest import LONG
from tests.serving import Server, serving

from dalenius.curator import Curator

with warnings.catch_warnings():  # of libraries that it loads
    warnings.simplefilter("ignore")
    import requests
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        negative_data_rejection,
        response_headers_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

pytestmark = pytest.mark.integration

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BAD = schemathesis.GenerationMode.NEGATIVE
EXAMPLES = 200 if LONG else 6  # for each route, role and way of generating
ROLES = ("owner", "auditor", "analyst", "nobody")
POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 1000
delta = 1e-6
[analysts.ana]
epsilon = 500
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.01
[columns.region]
type = "category"
keys = ["north", "south"]
[contribution]
rows = 30
groups = 2
"""
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT region, SUM(amount) AS s FROM visits GROUP BY region",
    "SELECT amount FROM visits",
    "SELECT COUNT(*) FROM nothing",
)


@dataclass
class Place:
    """A server, its description, and what is there to be named."""

    server: Server
    schema: Any
    tokens: dict[str, str]
    known: dict[str, list[str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("serve")
    rows = {
        "user_id": [each % 100 for each in range(500)],
        "amount": [float(each * 7 % 4000) for each in range(500)],
        "region": [("north", "south")[each % 2] for each in range(500)],
    }
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    (folder / "visits.toml").write_text(POLICY)
    Curator(folder / "home").protect(folder / "visits.toml")
    config = "rate = 100000\nburst = 100000\nconcurrency = 100\nwait = 60"
    with serving(folder / "home", "--data-dir", str(folder), config=config) as server:
        yield described(server, folder)


def described(server: Server, folder: Path) -> Place:
    """The server with a question that was answered, a job, and a token that may be revoked."""
    ana, owner = server.analyst("ana", trusted=True), server.owner()
    answered = ana.ask(QUESTIONS[0], epsilon=0.1).json
    job = ana.request("POST", "/v1/ask", {"sql": QUESTIONS[1], "epsilon": 0.1}, {"Prefer": "respond-async"})
    extra = owner.post("/v1/tokens", {"role": "auditor"}).json["id"]
    description = owner.get("/v1/openapi.json").json
    ana.close()
    owner.close()
    job_id = job.json["id"] if job.status == 202 else "0" * 32
    known = {
        "table": ["visits"],
        "dataset": ["visits"],
        "analyst": ["ana", "bob"],
        "id": [answered["receipt"]["id"], job_id, extra],
        "name": ["visits.parquet", "new.csv", "../visits.toml"],
        "sql": list(QUESTIONS),
        "policies": [POLICY, POLICY.replace("visits.parquet", "/etc/passwd")],
    }
    tokens = {
        "owner": server.token("owner"),
        "auditor": server.token("auditor"),
        "analyst": server.token("analyst", "ana", trusted=True),
        "nobody": "dalenius_000000000000_" + "0" * 43,
    }
    config = schemathesis.Config.from_dict({"generation": {"deterministic": True, "with-security-parameters": False}})
    return Place(server, schemathesis.openapi.from_dict(description, config=config), tokens, known)


def operations(place: Place, mode: schemathesis.GenerationMode) -> list[Any]:
    """All of them; for bad requests, those with something in them that can be bad, which bytes of a file cannot."""
    found = [each.ok() for each in place.schema.get_all_operations()]
    return [each for each in found if mode is not BAD or each.query or _takes_json(each)]


def _takes_json(operation: Any) -> bool:
    return any(each.media_type == "application/json" for each in operation.body)


def named(case: Any, known: dict[str, list[str]], draw: Any) -> bool:
    """Puts what is really there in the place of what was made up, mostly; whether it did."""
    done = False
    for holder in (case.path_parameters, case.body):
        for name in ("table", "dataset", "analyst", "id", "name", "sql", "policies"):
            if isinstance(holder, dict) and name in holder and draw(st.integers(0, 3)):
                value = draw(st.sampled_from(known[name]))
                holder[name] = [value] if name == "policies" else value
                done = True
    return done


def checked(place: Place, session: requests.Session, role: str, mode: Any, operation: Any) -> set[int]:
    """Sends examples of one operation; the statuses that came back, all of them as described."""
    seen: set[int] = set()

    @settings(
        max_examples=1 if role == "nobody" else EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        changed = named(case, place.known, data.draw)
        headers = {"Authorization": f"Bearer {place.tokens[role]}"}
        response = case.call(base_url=place.server.url, session=session, headers=headers, timeout=60)
        seen.add(response.status_code)
        case.validate_response(response, checks=CHECKS)
        if response.status_code >= 400:
            told = response.json()
            assert told["status"] == response.status_code and told["code"] and told["message"]
        elif not changed:
            case.validate_response(response, checks=[negative_data_rejection])

    check()
    return seen


@pytest.mark.parametrize(
    ("role", "mode"),
    [(role, mode) for role in ROLES for mode in schemathesis.GenerationMode if (role, mode) != ("nobody", BAD)],
)
def test_every_answer_is_one_that_is_described(place: Place, role: str, mode: schemathesis.GenerationMode):
    seen: set[int] = set()
    wrong = {}
    with requests.Session() as session:
        for operation in operations(place, mode):
            try:
                seen |= checked(place, session, role, mode, operation)
            except Exception as error:  # noqa: BLE001 (all routes are looked at, then all that is wrong is told)
                wrong[operation.label] = str(error)
    assert not wrong, "\n\n".join(f"{label}: {told}" for label, told in wrong.items())
    assert place.server.process.poll() is None
    assert all(line["event"] != "bug" for line in place.server.log)
    assert 401 in seen if role == "nobody" else 200 in seen
