"""All statements of a question share one end; what is told of it is what was allowed, not what was left."""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.errors import EngineTimeoutError
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.engine import left, within
from dalenius.tables.sources.fingerprint import fingerprint

LONG = "SELECT count(*) FROM range(4000000) a, range(4000000) b"


def test_what_is_left_shrinks_and_never_ends():
    assert left(60) == 60
    with within(0.05):
        first = left(60)
        assert 0 < first <= 0.05
        assert left(0.01) == 0.01
        time.sleep(0.06)
        assert left(60) == 0
    assert left(60) == 60


def test_several_statements_end_together(tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "t.parquet")
    engine = DuckDB(fingerprint([str(tmp_path / "t.parquet")]))
    start = time.monotonic()
    with within(0.6):
        for _ in range(4):
            with pytest.raises(EngineTimeoutError) as caught:
                engine.run(LONG, seconds=60)
            assert "60 seconds" in caught.value.why
    assert time.monotonic() - start < 10  # not four times 60
    assert engine.run("SELECT 1") == [(1,)]
