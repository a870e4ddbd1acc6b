"""Over HTTP: the model comes over and rows are drawn by whoever asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.serving import serving
from tests.unit.synthesis.made import curator_of, some_rows

from dalenius import connect


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
