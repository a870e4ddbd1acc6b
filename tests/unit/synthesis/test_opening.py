"""A synthetic table as a public one: questions on it are free and exact, and nothing about the real table changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.synthesis.made import curator_of, some_rows
from tests.unit.synthesis.test_synthetic_tables import charges

from dalenius.curator import Curator
from dalenius.errors import DaleniusError, InputError, NotAllowedError, PolicyInvalidError
from dalenius.synthesis.release import SyntheticTable

COUNT = "SELECT COUNT(*) AS n FROM "


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(8):
        yield


@pytest.fixture
def curator(tmp_path: Path) -> Curator:
    return curator_of(tmp_path / "real", some_rows(60), contribution="")


@pytest.fixture
def made(curator: Curator) -> SyntheticTable:
    return curator.analyst("ana").synthesize("people", epsilon=2.0, method="tree")


def test_questions_on_it_are_free_and_exact_for_everyone_who_may_ask(
    curator: Curator, made: SyntheticTable, tmp_path: Path
):
    file = tmp_path / "rows.parquet"
    done = curator.open_synthetic(made, "people_like", file, rows=250)
    assert done.recorded and done.state == "changed" and "Opened synthetic rows of R" in done.version.reason
    before = len(charges(curator))
    for name in ("ana", "bob"):
        release = curator.analyst(name).ask(f"{COUNT}people_like")
        assert release.public and release.value == 250 and release.charge["epsilon"] == 0
    assert len(charges(curator)) == before
    rows = pq.read_table(file)
    assert rows.num_rows == 250 and rows.column_names == list(made.columns)


def test_nothing_about_the_real_table_changes(curator: Curator, made: SyntheticTable, tmp_path: Path):
    """Stored answers stay free, limits are those that were found, and nothing is charged."""
    ana = curator.analyst("ana")
    ana.ask(f"{COUNT}people", epsilon=0.5)
    head, paid = curator.ledger.head.count, len(list(curator.ledger.records(("charge",))))
    found = curator.registry.limits(curator.history("people")[-1])
    curator.open_synthetic(str(made.receipt["id"]), "people_like", tmp_path / "rows.parquet")  # type: ignore[index]
    assert {each.kind for each in curator.ledger.entries(head)} == {"policy", "limits"}
    assert found is not None and curator.registry.limits(curator.history("people")[-1]) == found
    assert len(list(curator.ledger.records(("charge",)))) == paid
    assert ana.ask(f"{COUNT}people", epsilon=0.5).free
    assert ana.synthesize("people", epsilon=2.0, method="tree").free
    before, after = curator.history("people")[-2:]
    assert after.policy.public.keys() == {"people_like"} and before.policy.meaning == after.policy.meaning
    assert after.policy.analysts == before.policy.analysts and after.data_version == before.data_version


def test_a_name_can_be_given_to_other_rows_but_a_file_is_never_written_over(
    curator: Curator, made: SyntheticTable, tmp_path: Path
):
    ana = curator.analyst("ana")
    curator.open_synthetic(made, "people_like", tmp_path / "a.parquet", rows=10)
    for place in (tmp_path / "a.parquet", tmp_path / "real" / "people.parquet"):
        kept = place.read_bytes()
        with pytest.raises(InputError):
            curator.open_synthetic(made, "people_like", place, rows=20)
        assert place.read_bytes() == kept
    curator.open_synthetic(made, "people_like", tmp_path / "b.parquet", rows=20)
    assert ana.ask(f"{COUNT}people_like").value == 20


REFUSED: list[tuple[type[DaleniusError], str, str]] = [
    (PolicyInvalidError, "people", "rows.parquet"),
    (PolicyInvalidError, "PEOPLE", "rows.parquet"),
    (PolicyInvalidError, "not a name", "rows.parquet"),
    (PolicyInvalidError, "", "rows.parquet"),
    (InputError, "people_like", "rows.txt"),
    (NotAllowedError, "people_like", "real/home/rows.parquet"),
]


@pytest.mark.parametrize(("error", "name", "file"), REFUSED)
def test_what_cannot_be_opened_is_refused_before_a_file_is_written(
    curator: Curator, made: SyntheticTable, tmp_path: Path, error: type[DaleniusError], name: str, file: str
):
    head = curator.ledger.head.count
    with pytest.raises(error):
        curator.open_synthetic(made, name, tmp_path / file)
    assert not (tmp_path / file).exists() and curator.ledger.head.count == head


def test_the_owner_sees_any_and_an_analyst_the_own_ones(curator: Curator, made: SyntheticTable):
    id_: Any = made.receipt["id"]  # type: ignore[index]
    found = curator.synthetic(id_)
    assert found.free and found.to_arrow(9, seed=1).equals(made.to_arrow(9, seed=1))
    assert found.remaining["dataset"] == found.remaining["analyst"]
    with pytest.raises(DaleniusError):
        curator.analyst("bob").synthetic(id_)
    with pytest.raises(DaleniusError):
        curator.synthetic("R999-000000000000")
