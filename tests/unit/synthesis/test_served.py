"""Over HTTP: the model comes over and rows are drawn by whoever asked."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.serving import serving
from tests.unit.synthesis.made import curator_of, some_rows

from dalenius import connect
from dalenius.app.http.reference import OBJECTS

FREE = {"free": True, "charge": {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}}


def test_a_server_gives_the_model_that_the_curator_would(tmp_path: Path):
    curator = curator_of(tmp_path, some_rows(20))
    with serving(tmp_path / "home") as server:
        remote = connect(server.url, server.token("analyst", "ana", trusted=True))
        asked: dict[str, Any] = {"epsilon": 0.5, "method": "tree", "columns": ["sex", "age"]}
        assert remote.preview_synthetic("people", **asked).left_out == {}
        found = remote.synthesize("people", **asked)
        assert not found.free and remote.synthesize("people", **asked).free
    here = curator.analyst("ana").synthesize("people", **asked)
    assert here.free and here.stored.content() == found.stored.content()
    assert found.to_arrow(100, seed=1).equals(here.to_arrow(100, seed=1))
    assert found.write(tmp_path / "rows.csv", 7) == 7


def test_a_server_compares_as_the_curator_would(tmp_path: Path):
    curator = curator_of(tmp_path, some_rows(40))
    with serving(tmp_path / "home") as server:
        remote = connect(server.url, server.token("analyst", "ana", trusted=True))
        made = remote.synthesize("people", epsilon=1.0, method="tree", columns=["sex", "age", "wave"])
        expected = remote.preview_comparison(made, epsilon=0.5, predict="sex")
        found = remote.compare_synthetic(made, epsilon=0.5, predict="sex")
        assert not found.free and remote.compare_synthetic(made, epsilon=0.4, predict="sex").free
        id_ = made.receipt["id"]  # type: ignore[index]
        assert remote.synthetic(id_).to_arrow(9, seed=1).equals(made.to_arrow(9, seed=1))
        with closing(server.analyst("ana", trusted=True)) as client:
            asked = {"release": id_, "epsilon": 0.5, "predict": "sex"}
            for route in ("/v1/synthetic/compare", "/v1/synthetic/compare/preview"):
                said = re.findall(r"`(\w+)`", re.sub(r":[^;]*", "", OBJECTS[f"POST {route}"]))
                assert set(said) == set(client.post(route, asked).json)
        with closing(server.analyst("bob", trusted=True)) as other:
            assert other.get(f"/v1/synthetic/{id_}").status == 404
            assert other.post("/v1/synthetic/compare", asked).status == 404
            assert other.get(f"/v1/synthetic/{id_}/report").status == 404
        assert [each.to_dict() for each in remote.comparisons(made)] == [found.to_dict() | FREE]
        with closing(server.analyst("ana")) as client:
            report = client.get(f"/v1/synthetic/{id_}/report").json
            assert report["comparison"]["ways"] == found.to_dict()["ways"] and report["release"] == id_
            page = client.get(f"/v1/synthetic/{id_}/report?format=html")
            assert page.headers["content-security-policy"].endswith("sandbox") and b"Synthetic rows of" in page.content
    here = curator.analyst("ana").compare_synthetic(made, epsilon=0.5, predict="sex")
    assert here.free and here.ways == found.ways and here.prediction == found.prediction
    assert expected.margins["1"] > 0


def test_the_owner_opens_rows_below_the_data_folder(tmp_path: Path):
    curator = curator_of(tmp_path / "real", some_rows(20))
    made = curator.analyst("ana").synthesize("people", epsilon=1.0, method="histogram", columns=["sex", "age"])
    id_ = made.receipt["id"]  # type: ignore[index]
    (tmp_path / "data").mkdir()
    with serving(tmp_path / "real" / "home", "--data-dir", str(tmp_path / "data")) as server:
        with closing(server.owner()) as owner:
            opened = owner.post(f"/v1/synthetic/{id_}/open", {"name": "people_like", "rows": 30})
            assert opened.status == 200, opened.content
            said = re.findall(r"`(\w+)`", re.sub(r":[^;]*", "", OBJECTS["POST /v1/synthetic/{id}/open"]))
            assert set(said) == set(opened.json) and opened.json["file"].startswith("synthetic/people_like-R")
            again = owner.post(f"/v1/synthetic/{id_}/open", {"name": "people_like", "rows": 40})
            assert again.json["file"] != opened.json["file"] and (tmp_path / "data" / again.json["file"]).is_file()
            for wrong in ({"name": "people"}, {"name": "../x"}, {"name": "people_like", "rows": -1}):
                assert owner.post(f"/v1/synthetic/{id_}/open", wrong).status in {400, 422}
            assert owner.post("/v1/synthetic/R1-000000000000/open", {"name": "other"}).status == 404
        with closing(server.analyst("ana")) as analyst:
            assert analyst.post(f"/v1/synthetic/{id_}/open", {"name": "mine"}).status == 403
            answer = analyst.post("/v1/ask", {"sql": "SELECT COUNT(*) AS n FROM people_like"}).json
            assert answer["rows"] == [[40]] and answer["charge"]["epsilon"] == 0
        assert len(list((tmp_path / "data" / "synthetic").iterdir())) == 2
    with serving(tmp_path / "real" / "home") as server, closing(server.owner()) as owner:
        assert owner.post(f"/v1/synthetic/{id_}/open", {"name": "other"}).json["code"] == "policy.not-allowed"
