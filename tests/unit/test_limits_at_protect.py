"""`protect` finds limits that are not declared: charged to the data set, recorded, used by questions."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.curator import Curator
from dalenius.errors import BudgetError, NotAllowedError
from dalenius.ledger.verification import verify

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "person"
[budget]
epsilon = 6.0
delta = 1e-6
[analysts.ana]
epsilon = 3.0
[columns.age]
type = "integer"
bounds = [18, 90]
[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chance = random.Random(5)
    people = [person for person in range(20_000) for _ in range(min(60, 1 + int(chance.paretovariate(1.8))))]
    rows = {
        "person": people,
        "age": [18 + person % 60 for person in people],
        "region": [chance.choice(["north", "south", "east", "west"]) for _ in people],
    }
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(POLICY)
    return tmp_path


def test_limits_are_found_charged_and_used(folder: Path):
    curator = Curator(folder / "home")
    (planned,) = curator.protect(folder / "visits.toml", dry_run=True)
    assert planned.search is not None and planned.limits is None
    assert not (folder / "home").exists()
    (done,) = curator.protect(folder / "visits.toml")
    assert done.limits is not None
    assert 10 <= done.limits["rows"] <= 250
    assert abs(done.limits["units"] - 20_000) < 2_000
    spent = curator.ledger.balance("visits")
    assert spent.spent.rho == pytest.approx(planned.search["rho"])  # type: ignore[union-attr]
    assert spent.charges == 1
    # no analyst has paid for it
    assert curator.ledger.balance("visits", "ana").charges == 0
    release = curator.analyst("ana").ask("SELECT COUNT(*) FROM visits", epsilon=1.0)
    truth = pq.read_table(folder / "visits.parquet").num_rows
    assert abs(release.value / truth - 1) < 0.2
    assert verify(curator.ledger).entries == curator.ledger.head.count


def test_protecting_again_finds_nothing_new_and_pays_nothing(folder: Path):
    curator = Curator(folder / "home")
    (first,) = curator.protect(folder / "visits.toml")
    (again,) = Curator(folder / "home").protect(folder / "visits.toml")
    assert again.limits == first.limits
    assert curator.ledger.balance("visits").charges == 1


def test_another_analyst_in_the_policy_does_not_pay_for_the_search_again(folder: Path):
    curator = Curator(folder / "home")
    (first,) = curator.protect(folder / "visits.toml")
    (folder / "visits.toml").write_text(POLICY + "[analysts.ben]\nepsilon = 1.0\n")
    (second,) = curator.protect(folder / "visits.toml", yes=True)
    assert second.limits == first.limits
    assert curator.ledger.balance("visits").charges == 1


def test_a_budget_that_is_gone_leaves_the_table_closed_to_counts(folder: Path, monkeypatch: pytest.MonkeyPatch):
    curator = Curator(folder / "home")
    from dalenius import _limiting

    def refused(*_: object) -> object:
        raise BudgetError("gone", why="gone", fix="none")

    with monkeypatch.context() as patch:
        patch.setattr(_limiting, "find", refused)
        with pytest.raises(BudgetError):
            curator.protect(folder / "visits.toml")
    with pytest.raises(NotAllowedError, match="not declared"):
        curator.analyst("ana").ask("SELECT COUNT(*) FROM visits", epsilon=0.1)
    (done,) = curator.protect(folder / "visits.toml")
    assert done.limits is not None


def test_nobody_is_an_analyst_without_a_name(folder: Path):
    curator = Curator(folder / "home")
    curator.protect(folder / "visits.toml")
    with pytest.raises(NotAllowedError):
        curator.analyst("").ask("SELECT COUNT(*) FROM visits", epsilon=0.1)
