"""`protect` finds limits that are not declared: charged to the data set, recorded, used by questions."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.curator import Curator
from dalenius.errors import BudgetError, NotAllowedError
from dalenius.ledger.verification import verify
from dalenius.measuring.limits.choosing import share_beyond
from dalenius.measuring.limits.histogram import CLASSES, noise_deviation
from dalenius.releasing.snapshot import found_of

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
    (planned,) = curator.protect(folder / "visits.toml", dry_run=True)
    (second,) = curator.protect(folder / "visits.toml", yes=True)
    assert second.limits == first.limits
    assert curator.ledger.balance("visits").charges == 1
    assert first.search is not None and planned.search is None and second.search is None


SMALL = POLICY.replace("epsilon = 6.0", "epsilon = 0.5").replace("epsilon = 3.0", "epsilon = 0.25")


def test_a_raised_budget_does_not_pay_for_the_search_again(folder: Path):
    # a twentieth of ε = 0.5 is below what the search costs at most, so that the larger budget could buy a finer one
    (folder / "visits.toml").write_text(SMALL)
    curator = Curator(folder / "home")
    (first,) = curator.protect(folder / "visits.toml")
    (folder / "visits.toml").write_text(SMALL.replace("epsilon = 0.5", "epsilon = 5.0"))
    (planned,) = curator.protect(folder / "visits.toml", dry_run=True, reason="more people ask")
    (second,) = curator.protect(folder / "visits.toml", yes=True, reason="more people ask")
    assert planned.search is None and second.search is None
    assert second.limits == first.limits
    assert curator.ledger.balance("visits").charges == 1
    assert Curator(folder / "home").registry.limits(second.version) == first.limits


def test_the_price_that_is_shown_is_the_price_that_is_charged(folder: Path):
    # rows are declared first, so nothing was searched under the small budget
    (folder / "visits.toml").write_text(SMALL + "[contribution]\nrows = 60\n")
    curator = Curator(folder / "home")
    curator.protect(folder / "visits.toml")
    (folder / "visits.toml").write_text(SMALL.replace("epsilon = 0.5", "epsilon = 5.0"))
    (planned,) = curator.protect(folder / "visits.toml", dry_run=True, reason="more people ask")
    (done,) = curator.protect(folder / "visits.toml", yes=True, reason="more people ask")
    assert planned.search is not None and planned.search == done.search
    spent = curator.ledger.balance("visits").spent
    assert spent.rho == pytest.approx(planned.search["rho"])  # type: ignore[union-attr]
    assert planned.search["rho"] == pytest.approx(0.005)


def test_a_declared_total_takes_a_limit_away_and_nothing_is_searched_again(folder: Path):
    curator = Curator(folder / "home")
    (first,) = curator.protect(folder / "visits.toml")
    assert first.limits is not None and set(first.limits["totals"]) == {"age"}
    (folder / "visits.toml").write_text(POLICY + "[contribution]\ntotals = { age = 900 }\n")
    (second,) = curator.protect(folder / "visits.toml", yes=True)
    assert second.limits is not None and second.limits["totals"] == {}
    assert second.limits["rows"] == first.limits["rows"]
    # and back: what was found once stays found
    (folder / "visits.toml").write_text(POLICY + "[analysts.ben]\nepsilon = 1.0\n")
    (third,) = curator.protect(folder / "visits.toml", yes=True)
    assert third.limits == first.limits
    assert curator.ledger.balance("visits").charges == 1


def test_other_bounds_mean_other_totals_and_are_searched(folder: Path):
    curator = Curator(folder / "home")
    curator.protect(folder / "visits.toml")
    (folder / "visits.toml").write_text(POLICY.replace("[18, 90]", "[18, 40]"))
    (planned,) = curator.protect(folder / "visits.toml", dry_run=True)
    (done,) = curator.protect(folder / "visits.toml", yes=True)
    assert planned.search is not None and done.search == planned.search
    assert curator.ledger.balance("visits").charges == 2


def test_limits_found_before_a_crash_are_not_paid_for_again(folder: Path, monkeypatch: pytest.MonkeyPatch):
    from dalenius.owner import limits

    curator = Curator(folder / "home")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(limits, "_record", killed)
        with pytest.raises(KeyboardInterrupt):
            curator.protect(folder / "visits.toml")
    (done,) = curator.protect(folder / "visits.toml")
    assert done.limits is not None and done.search is None
    assert curator.ledger.balance("visits").charges == 1


def test_who_waits_for_another_search_waits_as_long_as_it_may_take(folder: Path, monkeypatch: pytest.MonkeyPatch):
    from dalenius.ledger.ledger import Ledger
    from dalenius.owner import limits

    ask, patience = Ledger.ask, []

    def watched(self: Ledger, *given: Any, **named: Any) -> Any:
        patience.append(named.get("patience", 300.0))
        return ask(self, *given, **named)

    monkeypatch.setattr(Ledger, "ask", watched)
    Curator(folder / "home").protect(folder / "visits.toml")
    assert patience and patience[0] > limits.SECONDS


def test_the_share_beyond_each_limit_is_told_and_kept(folder: Path):
    curator = Curator(folder / "home")
    (done,) = curator.protect(folder / "visits.toml")
    assert done.limits is not None
    assert set(done.limits["clipped"]) == {"rows", "total age", "norm age", "norm region"}
    assert all(0 <= share < 0.5 for share in done.limits["clipped"].values())
    found = found_of(curator.registry, done.version)
    assert found is not None and found.clipped == done.limits["clipped"]


def test_the_noisy_counts_that_limits_were_chosen_from_are_public_too(folder: Path):
    curator = Curator(folder / "home")
    (done,) = curator.protect(folder / "visits.toml")
    found = found_of(curator.registry, done.version)
    assert found is not None and set(found.sizes) == {"rows", "total age", "norm age", "norm region"}
    for name, counts in found.sizes.items():
        assert len(counts.noisy) == CLASSES
        assert abs(sum(counts.noisy) - found.units) < 20 * CLASSES**0.5 * noise_deviation(counts.law), name
        assert share_beyond(counts.noisy, counts.law, 1) is not None, name


def test_a_budget_that_is_gone_leaves_the_table_closed_to_counts(folder: Path, monkeypatch: pytest.MonkeyPatch):
    curator = Curator(folder / "home")
    from dalenius.owner import limits

    def refused(*_: object) -> object:
        raise BudgetError("gone", why="gone", fix="none")

    with monkeypatch.context() as patch:
        patch.setattr(limits, "find", refused)
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
