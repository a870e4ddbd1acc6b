"""Keys and classes that are found through the curator: charged with the rest, and judged by the truth."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.synthesis.test_must_show import charged, made

from dalenius.accounting import events
from dalenius.curator import Curator
from dalenius.errors import BudgetError, NotAllowedError
from dalenius.synthesis.kind import leaving_of
from dalenius.synthesis.request import SynthesisAsk
from dalenius.synthesis.rows import UnitMeasurer
from dalenius.synthesis.seeking import Shares

TOWNS = '[columns.town]\ntype = "category"\n[columns.old]\ntype = "boolean"\ndefault = false\n'


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(10):
        yield


def towns(people: int = 4000) -> pa.Table:
    """Five towns that many are in, one that only one is in, hundreds of small ones, and nobody's."""
    chance = random.Random(5)
    large = [f"Stadt {each}" for each in "äßøł京"]
    names = chance.choices([*large, "few", None], [20, 20, 15, 15, 10, 10, 10], k=people)
    names = [f"Dorf {chance.randrange(400)}" if name == "few" else name for name in names]
    names[0] = "nobody else's"
    return pa.table({"id": range(people), "town": names, "old": [name in large[:2] for name in names]})


@pytest.fixture(scope="module")
def country(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return made(tmp_path_factory.mktemp("country"), towns(), TOWNS)


@pytest.mark.parametrize("method", ["tree", "adaptive"])
def test_found_keys_are_those_that_many_have_and_the_rest_is_one(country: Curator, method: str):
    found = country.analyst("ana").synthesize("t", epsilon=3.0, method=method)
    assert found.left_out == {}
    drawn = Counter(found.to_arrow(4000, seed=1)["town"].to_pylist())
    real = Counter(towns()["town"].to_pylist())
    assert set(drawn) == {*(f"Stadt {each}" for each in "äßøł京"), "other", None}
    for town in drawn:
        truth = real[town] if town != "other" else sum(n for name, n in real.items() if (name or "").startswith("Dorf"))
        assert abs(drawn[town] - truth) < 0.15 * truth
    table = found.to_arrow(4000, seed=1).to_pydict()
    large = [town in {"Stadt ä", "Stadt ß"} for town, old in zip(table["town"], table["old"], strict=True) if old]
    assert sum(large) > 0.8 * len(large)  # what goes with a key that was found is kept


def test_the_ledger_has_the_price_typed_and_the_delta_that_keys_take(country: Curator):
    ana, before = country.analyst("ana"), len(charged(country))
    found = ana.synthesize("t", epsilon=2.0, method="mst")
    (charge,) = charged(country)[before:]
    rho = country.ledger.budget("t").filter().price(2.0).rho
    assert (charge["epsilon"], charge["rho"]) == (2.0, rho) and 0 < charge["delta"] <= 5e-7 / 20
    assert found.charge == {"epsilon": 2.0, "delta": charge["delta"], "rho": rho}
    event = events.from_json(found.receipt["event"])  # type: ignore[index]
    assert event == events.Zcdp(Fraction(rho), charge["delta"])
    again = ana.synthesize("t", epsilon=2.0, method="mst")
    assert again.free and again.stored.content() == found.stored.content()
    plain = ana.synthesize("t", epsilon=2.0, method="tree", columns=["old"])
    assert plain.charge["delta"] == 0.0


def test_all_that_is_spent_is_what_was_charged(country: Curator, monkeypatch: pytest.MonkeyPatch):
    made_of: list[UnitMeasurer] = []
    begin = UnitMeasurer.__init__

    def kept(self: UnitMeasurer, *given: Any) -> None:
        begin(self, *given)
        made_of.append(self)

    monkeypatch.setattr(UnitMeasurer, "__init__", kept)
    asker = country.analyst("ana")._asker
    leaving = leaving_of(asker, SynthesisAsk("t", 1.5, "histogram"))
    country.analyst("ana").synthesize("t", epsilon=1.5, method="histogram")
    rho, share = Fraction(leaving.plan.cost(1.5).rho), Shares.of(leaving.plan.domain)
    (generator,) = made_of
    assert generator.left == 0 and generator.rho + rho * share.keys == rho


def test_what_one_person_alone_has_is_not_shown_whatever_the_others_have(tmp_path: Path):
    rows = pa.table({"id": range(50), "town": [f"Dorf {at}" for at in range(50)], "old": [True] * 50})
    found = made(tmp_path, rows, TOWNS).analyst("ana").synthesize("t", epsilon=20.0, method="tree")
    assert set(found.to_arrow(200)["town"].to_pylist()) == {"other"}
    assert "Dorf" not in str(found.stored.to_json())


def test_a_default_is_a_key_since_it_is_declared(tmp_path: Path):
    columns = '[columns.town]\ntype = "category"\ndefault = "unknown"\n'
    found = made(tmp_path, towns(), columns).analyst("ana").synthesize("t", epsilon=5.0, method="histogram")
    drawn = Counter(found.to_arrow(4000, seed=1)["town"].to_pylist())
    assert None not in drawn and abs(drawn["unknown"] - 400) < 80


def test_with_no_delta_left_it_is_refused_before_the_charge_and_columns_without_keys_to_find_are_not(tmp_path: Path):
    curator = made(tmp_path, towns(200), TOWNS)
    pool = curator.ledger.budget("t").filter().remaining_delta
    ana = curator.analyst("ana")
    ana.ask("SELECT town, COUNT(*) FROM t GROUP BY town", epsilon=1.0, delta=pool)
    before = len(charged(curator))
    with pytest.raises(BudgetError):
        ana.synthesize("t", epsilon=1.0)
    assert len(charged(curator)) == before
    assert ana.synthesize("t", epsilon=1.0, columns=["old"]).charge["epsilon"] == 1.0


def test_a_pure_budget_refuses_found_keys_too(tmp_path: Path):
    (tmp_path / "t.toml").write_text(
        '[table]\nname = "t"\nsource = "t.parquet"\nunit = "id"\n[budget]\nepsilon = 9.0\naccounting = "pure"\n'
        f"[analysts.ana]\nepsilon = 9.0\n[contribution]\nrows = 1\n{TOWNS}"
    )
    pa.parquet.write_table(towns(50), tmp_path / "t.parquet")
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "t.toml")
    with pytest.raises(NotAllowedError, match="pure"):
        curator.analyst("ana").synthesize("t", epsilon=1.0)


AMOUNTS = (
    '[columns.amount]\ntype = "number"\nbounds = [0, 100000]\nstep = 0.01\n'
    '[columns.big]\ntype = "boolean"\ndefault = false\n'
)


def amounts(people: int = 20_000) -> pa.Table:
    chance = np.random.default_rng(6)
    found = np.where(chance.random(people) < 0.3, 0.0, 10 * (chance.pareto(1.2, people) + 1))
    found[chance.random(people) < 0.04] = 99_999
    found = np.round(np.clip(found, 0, 100_000), 2)
    missing = chance.random(people) < 0.1
    return pa.table({"id": range(people), "amount": pa.array(found, mask=missing), "big": (found > 30) & ~missing})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return made(tmp_path_factory.mktemp("shop"), amounts(), AMOUNTS)


@pytest.mark.parametrize("method", ["histogram", "tree", "adaptive"])
def test_a_column_of_amounts_of_all_sizes_has_its_quantiles_spikes_and_absent_values(shop: Curator, method: str):
    drawn = shop.analyst("ana").synthesize("t", epsilon=1.0, method=method).to_arrow(20_000, seed=1)
    real = amounts()
    assert abs(drawn["amount"].null_count - real["amount"].null_count) < 300
    true, found = (table["amount"].drop_null().to_numpy() for table in (real, drawn))
    for share in (0.4, 0.5, 0.6, 0.75, 0.9):
        expected = np.quantile(true, share)
        assert abs(np.quantile(found, share) - expected) <= 0.15 * expected
    ranks = [np.searchsorted(np.sort(each), [50.0, 100.0, 500.0, 5000.0]) / len(each) for each in (true, found)]
    assert np.abs(ranks[0] - ranks[1]).max() < 0.02
    for value in (0.0, 99_999.0):
        assert abs(np.mean(found == value) - np.mean(true == value)) < 0.02
    assert abs(found.mean() / true.mean() - 1) < 0.1
    if method != "histogram":
        held = drawn.filter(pa.compute.is_valid(drawn["amount"])).to_pydict()
        right = [big == (amount > 30) for big, amount in zip(held["big"], held["amount"], strict=True)]
        assert sum(right) > 0.9 * len(right)
