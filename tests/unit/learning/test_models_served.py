"""Over HTTP: the model comes over and predicts here; steps are told to those alone whom the owner trusts."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.serving import serving, start
from tests.unit.learning.taught import curator_of, some_people
from tests.unit.learning.test_model_kind import charges

from dalenius import connect
from dalenius.app.http.reference import OBJECTS
from dalenius.releasing.keeping import FOLDER

ASKED: dict[str, Any] = {"features": ["age", "region"], "held_out": 0.2, "rows_per_unit": 1}


def said(route: str) -> set[str]:
    """The members that the reference names."""
    return set(
        re.findall(r"`(\w+)`", re.sub(r":[^;]*", "", re.sub(r"\([^)]*\)|\[[^]]*\]\([^)]*\)", "", OBJECTS[route])))
    )


def test_a_server_gives_the_model_that_the_curator_would(tmp_path: Path):
    curator = curator_of(tmp_path, some_people(400))
    seen = list[tuple[int, int]]()
    with serving(tmp_path / "home") as server:
        remote = connect(server.url, server.token("analyst", "ana", trusted=True))
        expected = remote.preview_model("people", "income", epsilon=2.0, **ASKED)
        found = remote.train("people", "income", epsilon=2.0, progress=lambda *each: seen.append(each), **ASKED)
        assert not found.free and remote.train("people", "income", epsilon=2.0, **ASKED).free
        id_ = str(found.receipt["id"])  # type: ignore[index]
        margin = remote.preview_score(found, epsilon=2.0).margin
        scored = remote.score_model(found, epsilon=2.0)
        assert remote.model(id_).stored.content() == found.stored.content()
        assert remote.score_model(id_, epsilon=1.0).free
        with closing(server.analyst("ana", trusted=True)) as client:
            body = {"table": "people", "target": "income", "epsilon": 2.0, **ASKED}
            again = client.post("/v1/models", body)
            assert said("POST /v1/models") <= set(again.json), again.json.keys()
            preview = client.post("/v1/models/preview", body).json
            assert said("POST /v1/models/preview") == set(preview)
            for route in ("/v1/models/score", "/v1/models/score/preview"):
                assert said(f"POST {route}") == set(client.post(route, {"release": id_, "epsilon": 2.0}).json)
            assert client.post("/v1/models", body | {"features": ["income"]}).status == 400
            assert client.post("/v1/models", body | {"model": "forest"}).status == 400
            assert client.post("/v1/models", body | {"seed": 1}).status == 400
        with closing(server.analyst("bob", trusted=True)) as other:
            assert other.get(f"/v1/models/{id_}").status == 404
            assert other.post("/v1/models/score", {"release": id_, "epsilon": 1.0}).status == 404
    here = curator.analyst("ana").train("people", "income", epsilon=2.0, **ASKED)
    assert here.free and here.stored.content() == found.stored.content()
    assert (
        expected.steps == found.to_dict()["training"]["steps"]
        and margin is not None
        and scored.scored.margin <= margin * 1.5
    )
    assert list(here.predict(some_people(9))) == list(found.predict(some_people(9)))


def test_steps_are_told_to_those_alone_whom_the_owner_trusts(tmp_path: Path):
    curator_of(tmp_path, some_people(400))
    body = {"table": "people", "target": "income", "epsilon": 1.0, "steps": 600, "rows_per_unit": 1}
    told = {}
    with serving(tmp_path / "home", config="wait = 0.01\nrate = 100000\nburst = 100000") as server:
        for who, trusted in (("ana", True), ("bob", False)):
            with closing(server.analyst(who, trusted=trusted)) as client:
                job = client.post("/v1/models", body)
                assert job.status == 202
                states = list[dict[str, Any]]()
                while (state := client.get(f"/v1/jobs/{job.json['id']}").json)["state"] == "running":
                    states.append(state)
                    time.sleep(0.005)
                assert state["state"] == "done", state
                told[who] = [each["steps"] for each in states if each["steps"] is not None]
    assert told["bob"] == [] and told["ana"]
    assert all(of == 600 and 0 <= done <= 600 for done, of in told["ana"]) and told["ana"] == sorted(told["ana"])


def test_a_training_goes_on_in_the_next_server_after_a_crash(tmp_path: Path):
    curator = curator_of(tmp_path, some_people(400))
    home: Path = tmp_path / "home"
    more: dict[str, Any] = {"config": "wait = 0.01\nrate = 100000\nburst = 100000"}
    body = {"table": "people", "target": "income", "epsilon": 1.0, "steps": 8000, "rows_per_unit": 1}
    server = start(home, **more)
    token = server.token("analyst", "ana", trusted=True)
    with closing(server.client(token)) as client:
        job = client.post("/v1/models", body).json["id"]
        while not (home / FOLDER).is_dir() or not list((home / FOLDER).iterdir()):
            time.sleep(0.02)
        reached = client.get(f"/v1/jobs/{job}").json
    server.kill()
    assert reached["state"] == "running" and reached["steps"] is not None
    first = None
    with serving(home, config="rate = 100000\nburst = 100000") as server, closing(server.client(token)) as client:
        while (state := client.get(f"/v1/jobs/{job}").json)["state"] == "running":
            first = first or state["steps"]
            time.sleep(0.02)
        assert state["state"] == "done", state
        assert first is not None and first[0] >= 160  # not from the beginning
        assert client.post("/v1/models", body).json["free"]
    assert len(charges(curator)) == 1
