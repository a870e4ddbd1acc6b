"""What tests of workloads share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.queries.workloads.tables import EACH, POLICY, Protected, rows_of

from dalenius.curator import Curator


@pytest.fixture(scope="module")
def protect(tmp_path_factory: pytest.TempPathFactory) -> Protected:
    """Protects that table under some budget."""

    def protected(
        accounting: str = "zcdp",
        rows: int = EACH,
        neighbors: str = "add-remove",
        more: str = "",
        more_limits: str = "",
        table: pa.Table | None = None,
    ) -> Curator:
        folder: Path = tmp_path_factory.mktemp("workload")
        pq.write_table(rows_of() if table is None else table, folder / "people.parquet")
        text = POLICY.format(
            accounting=accounting,
            rows=rows,
            neighbors=neighbors,
            more=more,
            more_limits=more_limits,
            delta=0 if accounting == "pure" else 1e-6,
        )
        (folder / "people.toml").write_text(text)
        curator = Curator(folder / "home")
        with seeded_noise():  # limits that are found by chance would make tests differ
            curator.protect(folder / "people.toml")
        return curator

    return protected


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    """What a test draws itself is the same each time."""
    with seeded_noise(2):
        yield
