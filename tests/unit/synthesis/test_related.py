"""Parents and children: every child has a parent, as many as there were, and is like those of such parents."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise
from tests.serving import serving

from dalenius import connect
from dalenius.curator import Curator
from dalenius.errors import DaleniusError, InputError
from dalenius.measuring.expressions import TRUE
from dalenius.releasing.snapshot import Snapshot
from dalenius.releasing.stored import read_release
from dalenius.synthesis.related_kind import RelatedAsk, leaving_of
from dalenius.synthesis.related_release import RelatedModels, RelatedTables, matched_rows
from dalenius.synthesis.rows import UnitMeasurer, read_rows
from dalenius.synthesis.views import whole

ASK: dict[str, Any] = {"parents": "visits", "children": "drugs", "epsilon": 20.0, "method": "tree"}
VISITS = """
[table]
name = "visits"
source = "visits.parquet"
unit = "person"
[budget]
epsilon = 500.0
delta = 1e-6
[analysts.ana]
epsilon = 400.0
[columns.sex]
type = "category"
keys = ["f", "m"]
default = "f"
[columns.old]
type = "boolean"
default = false
[columns.ward]
type = "category"
keys = ["a", "b", "c"]
[contribution]
rows = 4
"""
DRUGS = """
[table]
name = "drugs"
source = "drugs.parquet"
dataset = "visits"
unit = { path = "visit_id -> visits.visit_id -> visits.person" }
[columns.drug]
type = "category"
keys = ["x", "y", "z"]
default = "x"
[columns.dose]
type = "number"
bounds = [0, 1000]
step = 0.01
default = 0
[columns.note]
type = "text"
[contribution]
rows = 12
"""


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(14):
        yield


Visit = tuple[int, int, str, bool, str]
Drug = tuple[int, str, float]


def rows_of(people: int, seed: int = 3) -> tuple[list[Visit], list[Drug]]:
    """Old ones get more drugs than others, and drug x in ward a alone."""
    chance = random.Random(seed)
    visits, drugs = list[Visit](), list[Drug]()
    for person in range(people):
        sex, old = chance.choice("fm"), chance.random() < 0.4
        for _ in range(chance.choice([1, 1, 2, 3])):
            ward = chance.choice("abc")
            visits.append((len(visits) + 1, person, sex, old, ward))
            for _ in range(chance.choice([2, 3, 4] if old else [0, 0, 1])):
                kind = chance.choices("xyz", [8, 1, 1] if ward == "a" else [0, 5, 5])[0]
                drugs.append((len(visits), kind, round(chance.lognormvariate(3, 1), 2)))
    return visits, drugs


def home(folder: Path, visits: list[Visit], drugs: list[Drug], more: str = "") -> Curator:
    folder.mkdir(parents=True, exist_ok=True)
    names = ("visit_id", "person", "sex", "old", "ward")
    types = (pa.int64(), pa.int64(), pa.string(), pa.bool_(), pa.string())
    columns = {name: pa.array([row[at] for row in visits], types[at]) for at, name in enumerate(names)}
    pq.write_table(pa.table(columns), folder / "visits.parquet")
    told = [(*row, "abc") for row in drugs]
    kinds = {"visit_id": pa.int64(), "drug": pa.string(), "dose": pa.float64(), "note": pa.string()}
    own = {name: pa.array([row[at] for row in told], kind) for at, (name, kind) in enumerate(kinds.items())}
    pq.write_table(pa.table(own), folder / "drugs.parquet")
    (folder / "visits.toml").write_text(VISITS + more)
    (folder / "drugs.toml").write_text(DRUGS + more)
    curator = Curator(folder / "home")
    curator.protect(folder / "visits.toml", folder / "drugs.toml")
    return curator


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return home(tmp_path_factory.mktemp("hospital"), *rows_of(3000))


def made(curator: Curator, **more: Any) -> RelatedTables:
    found = curator.analyst("ana").obtain("related", {**ASK, **more})
    assert isinstance(found, RelatedTables)
    return found


@pytest.mark.parametrize("method", ["tree", "adaptive"])
def test_children_belong_to_parents_and_are_like_those_of_such_parents(hospital: Curator, method: str):
    visits, drugs = rows_of(3000)
    parents, children = made(hospital, method=method).to_arrow(seed=1)
    assert parents.column_names == ["visit_id", "person", "sex", "old", "ward"]
    assert children.column_names == ["visit_id", "drug", "dose"]
    ids = parents["visit_id"].to_pylist()
    assert len(set(ids)) == len(ids) and set(children["visit_id"].to_pylist()) <= set(ids)
    assert abs(len(ids) - len(visits)) < 0.05 * len(visits) and abs(len(children) - len(drugs)) < 0.1 * len(drugs)
    held = Counter(children["visit_id"].to_pylist())
    counts, old = np.array([held[each] for each in ids]), np.array(parents["old"].to_pylist())
    assert counts[old].mean() == pytest.approx(3.0, abs=0.3) and counts[~old].mean() == pytest.approx(1 / 3, abs=0.15)
    real = Counter(visit for visit, _, _ in drugs)
    true = np.array([real[each[0]] for each in visits])
    for most in range(5):
        assert abs(np.mean(counts <= most) - np.mean(true <= most)) < 0.05
    wards = dict(zip(ids, parents["ward"].to_pylist(), strict=True))
    table = Counter((wards[visit] == "a", drug == "x") for visit, drug in zip(
        children["visit_id"].to_pylist(), children["drug"].to_pylist(), strict=True
    ))  # fmt: skip
    assert table[True, True] / (table[True, True] + table[True, False]) == pytest.approx(0.8, abs=0.1)
    assert table[False, True] / (table[False, True] + table[False, False]) < 0.1
    dose = np.array([each[2] for each in drugs])
    for share in (0.25, 0.5, 0.75):
        expected = np.quantile(dose, share)
        assert abs(np.quantile(children["dose"].to_numpy(), share) - expected) < 0.15 * expected


def test_one_person_stays_one_person_in_all_visits(hospital: Curator):
    parents, _ = made(hospital).to_arrow(seed=1)
    of_person: dict[int, set[Any]] = {}
    for person, sex in zip(parents["person"].to_pylist(), parents["sex"].to_pylist(), strict=True):
        of_person.setdefault(person, set()).add(sex)
    assert abs(len(of_person) - 3000) < 150
    assert np.mean([len(each) == 1 for each in of_person.values()]) == 1.0


def test_both_are_one_charge_of_just_the_price_and_the_same_again_is_free(hospital: Curator):
    before = [entry.data for entry in hospital.ledger.records(("charge",))]
    found = made(hospital, epsilon=3.0, method="histogram")
    (charge,) = [entry.data for entry in hospital.ledger.records(("charge",))][len(before) :]
    rho = hospital.ledger.budget("visits").filter().price(3.0).rho
    assert (charge["epsilon"], charge["delta"], charge["rho"], charge["kind"]) == (3.0, 0.0, rho, "related")
    assert found.charge == {"epsilon": 3.0, "delta": 0.0, "rho": rho}
    again = made(hospital, epsilon=2.0, method="histogram")
    assert again.free and again.models.content() == found.models.content()
    assert found.models.parents.rho + found.models.children.rho == pytest.approx(rho)
    assert found.left_out == {"drugs.note": "declare its keys"}
    assert not made(hospital, epsilon=3.0, method="histogram", match=["sex"]).free


def test_all_that_is_measured_is_what_was_charged(hospital: Curator, monkeypatch: pytest.MonkeyPatch):
    kept: list[UnitMeasurer] = []
    begin = UnitMeasurer.__init__

    def keeping(self: UnitMeasurer, *given: Any) -> None:
        begin(self, *given)
        kept.append(self)

    monkeypatch.setattr(UnitMeasurer, "__init__", keeping)
    made(hospital, epsilon=4.0, method="mst")
    rho = Fraction(hospital.ledger.budget("visits").filter().price(4.0).rho)
    spent = sum((each.rho - each.left for each in kept), Fraction(0))
    assert spent == rho


def test_models_come_back_and_give_the_same_rows(hospital: Curator, tmp_path: Path):
    found = made(hospital)
    again = RelatedModels.read(found.models.content())
    assert again.to_json() == found.models.to_json()
    first, second = found.to_arrow(200, seed=4), found.to_arrow(200, seed=4)
    assert first[0].equals(second[0]) and first[1].equals(second[1]) and first[0].num_rows == 200
    assert found.write(tmp_path / "v.parquet", tmp_path / "d.csv", 50, seed=1)[0] == 50
    assert pq.read_table(tmp_path / "v.parquet").num_rows == 50
    assert [each.num_rows for each in found.to_arrow(0)] == [0, 0]
    stored = read_release(hospital.ledger, found.receipt["id"], "ana")  # type: ignore[index]
    assert stored["kind"] == "related" and stored["content"] == found.models.to_json()
    with pytest.raises(InputError, match="cannot be read"):
        RelatedModels.of_json({**found.models.to_json(), "format": "related 2"})


def exact_tables(curator: Curator) -> list[tuple[np.ndarray, int]]:
    """All tables of pairs of columns of both relations, exactly, and the limit of each."""
    asker = curator.analyst("ana")._asker
    planned = leaving_of(asker, RelatedAsk.of(ASK)).plan
    versions, found = curator.registry.current(), []
    for side in (planned.parents, planned.children):
        names = [each.name for each in side.domain.columns if not each.sought]
        domain = type(side.domain)(tuple(each for each in side.domain.columns if each.name in names))
        engine = Snapshot.of(side.table, versions).engine(asker.engines)
        codes, weights = read_rows(side.table, domain, TRUE, side.limit, engine, "salt", 60.0)
        measurer = UnitMeasurer(domain.domain, codes, weights, side.limit, Fraction(1))
        sizes = domain.domain.sizes
        found += [
            (measurer.exact(whole(pair, sizes)), side.limit.length) for pair in combinations(range(len(sizes)), 2)
        ]
    return found


def test_a_person_with_a_thousand_visits_and_drugs_moves_no_table_by_more_than_its_limit(tmp_path: Path):
    visits, drugs = rows_of(40)
    more = [(10_000 + at, 999, "m", True, "c") for at in range(1000)]
    theirs = [(10_000 + at % 300, "z", 5.0) for at in range(3000)]
    without = exact_tables(home(tmp_path / "without", visits, drugs))
    with_ = exact_tables(home(tmp_path / "with", [*visits, *more], [*drugs, *theirs]))
    assert len(without) == len(with_) > 5
    for (before, limit), (after, _) in zip(without, with_, strict=True):
        assert (after >= before).all() and 0 < (after - before).sum() <= limit


def test_children_of_nobody_count_nowhere_and_parents_without_children_are_there(tmp_path: Path):
    visits, drugs = rows_of(60)
    stray = [(77_777, "z", 5.0)] * 500
    alone, with_ = (exact_tables(home(tmp_path / name, visits, each)) for name, each in
                    (("alone", drugs), ("stray", [*drugs, *stray])))  # fmt: skip
    assert all((one == other).all() for (one, _), (other, _) in zip(alone, with_, strict=True))
    parents, children = made(home(tmp_path / "none", visits, []), epsilon=50.0).to_arrow(seed=1)
    assert parents.num_rows > 80 and children.num_rows < 20


REFUSED: list[tuple[type[DaleniusError], dict[str, Any]]] = [
    (InputError, {"children": "visits"}),
    (InputError, {"parents": "drugs", "children": "visits"}),
    (DaleniusError, {"parents": "nothing"}),
    (InputError, {"match": ["weight"]}),
    (InputError, {"match": "sex"}),
    (InputError, {"match": 5}),
    (InputError, {"match": {"sex": 1}}),
    (InputError, {"method": ["tree"]}),
    (InputError, {"method": 1}),
    (InputError, {"epsilon": 1e-80}),
    (InputError, {"epsilon": 0}),
    (InputError, {"rows": 5}),
]


@pytest.mark.parametrize(("error", "asked"), REFUSED)
def test_what_is_refused_costs_nothing(hospital: Curator, error: type[DaleniusError], asked: dict[str, Any]):
    before = len(list(hospital.ledger.records(("charge",))))
    with pytest.raises(error) as told:
        made(hospital, **asked)
    assert told.value.charge.epsilon == 0 and len(list(hospital.ledger.records(("charge",)))) == before


def test_what_would_take_days_is_refused_as_for_one_table(hospital: Curator, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dalenius.synthesis.kind._MOST_SECONDS", 1.0)
    with pytest.raises(InputError, match="would take more than a day"):
        made(hospital, epsilon=7.0)


def test_too_many_children_are_refused_before_there_are_any(hospital: Curator, monkeypatch: pytest.MonkeyPatch):
    found = made(hospital)
    monkeypatch.setattr("dalenius.synthesis.stored.MOST_ROWS", 100)
    repeat = np.repeat

    def short(values: Any, times: Any, *more: Any, **named: Any) -> Any:
        assert np.sum(times) <= 100  # nothing becomes as long as there would be children
        return repeat(values, times, *more, **named)

    monkeypatch.setattr(np, "repeat", short)
    with pytest.raises(InputError, match="no number of rows"):
        found.to_arrow(100, seed=1)


def test_a_server_gives_the_models_too(tmp_path: Path):
    curator = home(tmp_path, *rows_of(50), "[time]\nanswer = 0.01\n")
    with serving(tmp_path / "home") as server:
        remote = connect(server.url, server.token("analyst", "ana", trusted=True))
        found = remote.obtain("related", {**ASK, "epsilon": 1.0, "method": "histogram"}).to_dict()
    models = RelatedModels.of_json(found["models"])
    here = made(curator, epsilon=1.0, method="histogram")
    assert here.free and here.models.content() == models.content()


def test_each_spare_row_is_given_once_and_to_its_like_first():
    rng = np.random.default_rng(1)
    wanted, spare = rng.integers(0, 20, 500), rng.integers(0, 20, 1100)
    found = matched_rows(wanted, spare, rng)
    assert len(set(found.tolist())) == 500
    short = sum(max(0, count - Counter(spare.tolist())[each]) for each, count in Counter(wanted.tolist()).items())
    assert int((spare[found] != wanted).sum()) == short
    assert matched_rows(np.zeros(0, np.int64), spare, rng).tolist() == []
