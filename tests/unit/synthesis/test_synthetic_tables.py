"""Synthetic tables through the curator: charged once, before the look, at just what was typed; rows are free."""

from __future__ import annotations

import base64
import json
import re
import tracemalloc
import zlib
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.synthesis.made import COLUMNS, MODELLED, curator_of, some_rows

from dalenius.curator import Curator
from dalenius.errors import (
    BudgetError,
    DaleniusError,
    EngineFailedError,
    InputError,
    NotAllowedError,
    UnknownColumnError,
    UnknownTableError,
)
from dalenius.releasing.kinds import kind_of
from dalenius.releasing.opened import Opened, tables_of
from dalenius.releasing.stored import read_release
from dalenius.synthesis.methods import METHODS
from dalenius.synthesis.release import SyntheticTable
from dalenius.synthesis.rows import read_rows
from dalenius.synthesis.stored import StoredModel


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(2):
        yield


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator_of(tmp_path_factory.mktemp("people"), some_rows())


def charges(curator: Curator) -> list[dict[str, Any]]:
    return [entry.data for entry in curator.ledger.records(("charge",)) if entry.data["analyst"]]


def test_the_ledger_has_one_charge_of_just_the_price(people: Curator):
    before = len(charges(people))
    found = people.analyst("ana").synthesize("people", epsilon=1.25, method="tree")
    (charge,) = charges(people)[before:]
    rho = people.ledger.budget("people").filter().price(1.25).rho
    assert (charge["epsilon"], charge["delta"], charge["rho"], charge["kind"]) == (1.25, 0.0, rho, "synthetic")
    assert found.charge == {"epsilon": 1.25, "delta": 0.0, "rho": rho}
    assert Fraction(found.receipt["event"]["event"]["rho"]) == Fraction(rho)  # type: ignore[index]
    assert found.guarantee == {
        "kind": "approx",
        "epsilon": 1.25,
        "delta": 1e-6,
        "unit": "person",
        "neighbors": "add-remove",
    }


def test_the_same_again_is_free_and_gives_the_same_model_and_more_rows_are_free(people: Curator):
    ana = people.analyst("ana")
    found = ana.synthesize("people", epsilon=1.5, method="tree")
    before = len(charges(people))
    again = ana.synthesize("people", epsilon=1.5, method="tree")
    cheaper = ana.synthesize("people", epsilon=0.5, method="tree")
    assert (found.free, again.free, cheaper.free) == (False, True, True)
    assert again.charge == {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}
    assert again.stored.content() == found.stored.content() == cheaper.stored.content()
    assert cheaper.guarantee["epsilon"] == 1.5
    assert again.to_arrow(5000, seed=7).equals(found.to_arrow(5000, seed=7))
    assert len(charges(people)) == before


def test_another_analyst_and_another_request_pay(people: Curator):
    people.analyst("ana").synthesize("people", epsilon=1.75, method="tree", columns=["sex", "age"])
    before = len(charges(people))
    assert not people.analyst("bob").synthesize("people", epsilon=1.75, method="tree", columns=["sex", "age"]).free
    for other in ({"columns": ["age", "wave"]}, {"rows_per_unit": 1}, {"method": "histogram"}):
        asked: dict[str, Any] = {"columns": ["sex", "age"], "method": "tree", **other}
        assert not people.analyst("bob").synthesize("people", epsilon=1.75, **asked).free
    assert len(charges(people)) == before + 4


def test_the_order_of_the_columns_is_free_and_kept(people: Curator):
    ana = people.analyst("ana")
    found = ana.synthesize("people", epsilon=1.75, method="tree", columns=["wave", "sex", "age"])
    before = len(charges(people))
    again = ana.synthesize("people", epsilon=1.75, method="tree", columns=["age", "wave", "sex"])
    assert again.free and len(charges(people)) == before
    assert found.columns == ("wave", "sex", "age") and again.columns == ("age", "wave", "sex")
    rows = again.to_arrow(50, seed=3)
    assert rows.column_names == ["person", "age", "wave", "sex"]
    assert rows.equals(found.to_arrow(50, seed=3).select(["person", "age", "wave", "sex"]))
    over = SyntheticTable.from_dict(again.to_dict())
    assert over.to_arrow(50, seed=3).equals(rows)
    with pytest.raises(InputError):
        SyntheticTable.from_dict(again.to_dict() | {"columns": ["age", "wave", "note"]})


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_rows_of_the_policys_types_and_its_model_comes_back(people: Curator, method: str):
    found = people.analyst("ana").synthesize("people", epsilon=20.0, method=method)
    assert found.columns == MODELLED and found.left_out == {"note": "declare its keys"}
    assert 250 < found.rows < 350
    rows = found.to_arrow(seed=1)
    assert rows.num_rows == found.rows
    again = SyntheticTable.from_dict(found.to_dict())
    assert again.to_dict() == found.to_dict() and again.to_arrow(seed=1).equals(rows)
    drawn = rows.to_pydict()
    assert set(drawn["région"]) <= {"nörd", "süd", "北", "it's"} and set(drawn["sex"]) <= {"m", "f", None}
    assert set(drawn["country"]) == {"only"} and set(drawn["wave"]) <= {1, 2, 3, None}
    assert all(0 <= each <= 100 for each in drawn["age"]) and None in drawn["bmi"]
    assert all(each is None or 10 <= each <= 60 for each in drawn["bmi"])
    assert all(each is None or date(2025, 1, 1) <= each <= date(2025, 12, 31) for each in drawn["day"])
    last = datetime.fromisoformat("2025-01-01T23:59:59")
    assert all(each is None or each <= last for each in drawn["at"])
    assert found.to_arrow(0).num_rows == 0


def test_what_goes_together_in_the_rows_goes_together_in_the_model(people: Curator):
    drawn = people.analyst("ana").synthesize("people", epsilon=200.0, method="tree").to_arrow(20_000).to_pydict()
    ages: dict[str, list[int]] = {}
    for place, age in zip(drawn["région"], drawn["age"], strict=True):
        ages.setdefault(place, []).append(age)
    means = {place: sum(each) / len(each) for place, each in ages.items()}
    assert means["nörd"] + 10 < means["北"]  # 30 and 70, of which a quarter are the default, 40


@pytest.mark.parametrize("epsilon", [0.01, 50.0])
@pytest.mark.parametrize("method", ["tree", "adaptive"])
def test_very_small_and_very_large_prices_work(people: Curator, epsilon: float, method: str):
    columns = ["sex", "age"] if epsilon < 1 else []
    found = people.analyst("bob").synthesize("people", epsilon=epsilon, method=method, columns=columns)
    assert found.to_arrow(10).num_rows == 10


@pytest.mark.parametrize("method", METHODS)
def test_a_price_of_noise_alone_is_refused_before_it_is_charged(people: Curator, method: str):
    before = len(charges(people))
    for ask in (people.analyst("ana").synthesize, people.analyst("ana").preview_synthetic):
        with pytest.raises(InputError, match="too small"):
            ask("people", epsilon=1e-80, method=method)
    assert len(charges(people)) == before


def test_what_would_take_too_long_is_refused_before_it_is_charged(people: Curator, monkeypatch: pytest.MonkeyPatch):
    ana, before = people.analyst("ana"), len(charges(people))
    seconds = ana.preview_synthetic("people", epsilon=1.0, method="privbayes").seconds
    monkeypatch.setattr("dalenius.synthesis.kind._MOST_SECONDS", seconds - 0.01)
    with pytest.raises(InputError, match="more than a day"):
        ana.synthesize("people", epsilon=1.0, method="privbayes")
    assert len(charges(people)) == before
    assert ana.preview_synthetic("people", epsilon=1.0, method="privbayes", columns=["sex", "age"]).seconds < seconds


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_table_has_a_model_too(tmp_path: Path, method: str):
    curator = curator_of(tmp_path, [])
    found = curator.analyst("ana").synthesize("people", epsilon=0.5, method=method)
    assert found.to_arrow(20).num_rows == 20 and found.charge["epsilon"] == 0.5


def test_one_column_and_few_people_work(tmp_path: Path):
    curator = curator_of(tmp_path, some_rows(7))
    for method in ("histogram", "tree", "mst", "privbayes"):
        found = curator.analyst("ana").synthesize("people", epsilon=1.0, method=method, columns=["country"])
        assert set(found.to_arrow(3).to_pydict()["country"]) == {"only"}
    assert curator.analyst("ana").synthesize("people", epsilon=1.0).to_arrow(3).num_rows == 3


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_the_events_neighbours_are_the_budgets(tmp_path: Path, neighbors: str):
    curator = curator_of(tmp_path, some_rows(20), neighbors=neighbors)
    found = curator.analyst("ana").synthesize("people", epsilon=1.0, method="histogram")
    assert found.receipt["event"]["neighbors"] == neighbors == found.guarantee["neighbors"]  # type: ignore[index]


REFUSED: list[tuple[type[DaleniusError], dict[str, Any]]] = [
    (UnknownTableError, {"table": "peeple"}),
    (UnknownColumnError, {"columns": ["nothing"]}),
    (NotAllowedError, {"columns": ["person"]}),
    (InputError, {"columns": ["note"]}),
    (InputError, {"method": "magic"}),
    (InputError, {"epsilon": 0.0}),
    (InputError, {"epsilon": float("nan")}),
    (InputError, {"rows_per_unit": 0}),
    (InputError, {"target": "nothing", "method": "adaptive"}),
    (InputError, {"target": "sex", "method": "tree"}),
    (BudgetError, {"epsilon": 10_000.0}),
]


@pytest.mark.parametrize(("error", "asked"), REFUSED)
def test_what_is_refused_costs_nothing(people: Curator, error: type[DaleniusError], asked: dict[str, Any]):
    before = len(charges(people))
    asked = {"table": "people", "epsilon": 1.0, **asked}
    with pytest.raises(error) as told:
        people.analyst("ana").synthesize(asked.pop("table"), **asked)
    assert told.value.charge.epsilon == 0 and len(charges(people)) == before


def test_a_pure_budget_refuses_with_words(tmp_path: Path):
    curator = curator_of(tmp_path, some_rows(5), accounting="pure")
    with pytest.raises(NotAllowedError, match="pure"):
        curator.analyst("ana").synthesize("people", epsilon=1.0)
    assert not charges(curator)


def test_limits_are_chosen_by_what_is_public(tmp_path: Path):
    ana = curator_of(tmp_path / "declared", some_rows(20), contribution="[contribution]\nrows = 5").analyst("ana")
    for asked, holds, notes in ((None, 5, 0), (2, 2, 0), (9, 5, 1)):
        found = ana.preview_synthetic("people", epsilon=1.0, rows_per_unit=asked)
        assert (found.rows_per_unit, len(found.notes)) == (holds, notes)
    curator = curator_of(tmp_path / "found", some_rows(400, each=3), contribution="")
    asker = curator.analyst("ana")._asker
    limits = tables_of(asker, Opened.of(asker).versions)["people"].found
    assert limits is not None
    found = curator.analyst("ana").preview_synthetic("people", epsilon=1.0)
    assert found.rows_per_unit == min(limits.rows, -(-2 * limits.row_count // limits.units))


def test_it_is_said_where_far_fewer_rows_are_counted_than_there_are(tmp_path: Path):
    ana = curator_of(tmp_path, some_rows(400, each=3), contribution="").analyst("ana")
    asked: dict[str, Any] = {"epsilon": 50.0, "columns": ["sex"], "method": "histogram"}
    cut = ana.synthesize("people", rows_per_unit=1, **asked)
    assert 300 < cut.stored.counted < 500 and any("about 1," in note for note in cut.notes)
    assert 1100 < cut.rows < 1300  # units and their rows are counted apart
    assert any("count less each" in note for note in ana.preview_synthetic("people", rows_per_unit=1, **asked).notes)
    full = ana.synthesize("people", rows_per_unit=3, **asked)
    assert full.rows > 1100 and not any("of about" in note for note in full.notes)


def test_a_preview_says_the_noise_that_is_drawn(people: Curator):
    """The noise of single columns; ± 1.96 deviations of it."""
    found = people.analyst("ana").preview_synthetic("people", epsilon=1.0, method="histogram", columns=["sex"])
    rho = people.ledger.budget("people").filter().price(1.0).rho
    assert found.columns[0].margin == pytest.approx(1.96 * 2 / (2 * rho) ** 0.5, rel=1e-3)
    assert type(found).from_dict(found.to_dict()) == found


def test_history_and_stored_releases_know_the_kind(people: Curator):
    ana = people.analyst("ana")
    found = ana.synthesize("people", epsilon=2.5, method="histogram")
    stored = read_release(people.ledger, found.receipt["id"], "ana")  # type: ignore[index]
    assert stored["kind"] == "synthetic" and stored["content"] == found.stored.to_json()
    assert ana.history()[-1]["kind"] == "synthetic" and ana.releases()[-1].kind == "synthetic"
    assert kind_of("synthetic").verb == "made a synthetic table of"


def test_a_model_of_another_format_is_not_guessed_at(people: Curator):
    data = people.analyst("ana").synthesize("people", epsilon=2.5, method="histogram").stored.to_json()
    for wrong in ({"format": "synthetic 2"}, {"model": {"form": "other"}}):
        with pytest.raises(InputError, match="cannot be read"):
            StoredModel.of_json(data | wrong)


def test_a_model_takes_no_more_memory_than_its_shapes_say(people: Curator):
    """A few bytes that unpack into gigabytes: refused before they do, as is a shape that asks for as much."""
    data = people.analyst("ana").synthesize("people", epsilon=2.5, method="adaptive").stored.to_json()
    zeros = base64.b64encode(zlib.compress(bytes(50_000_000))).decode()
    for packed in (
        {"shape": [3], "type": "<u1", "data": zeros},
        {"shape": [2**31, 2**31], "type": "<u1", "data": zeros},
        {"shape": [-1, -50_000_000], "type": "<u1", "data": zeros},
        {"shape": [50_000_000], "type": "<u1", "data": zeros[:100] + "AAAA"},
        {"shape": [1], "type": "<u1", "data": ""},
    ):
        tracemalloc.start()
        with pytest.raises(InputError, match="cannot be read"):
            StoredModel.of_json(data | {"model": data["model"] | {"weights": packed}})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20_000_000, packed["shape"]
    wide = {"shape": [2], "type": "<u2", "data": base64.b64encode(zlib.compress(b"\0\0\xff\xff")).decode()}
    view = {"columns": [0, 1], "groups": [wide, wide]}
    with pytest.raises(InputError, match="numbers"):
        StoredModel.of_json(data | {"model": data["model"] | {"views": [view]}})


def test_nothing_but_numbers_that_are_noise_depends_on_rows(tmp_path: Path):
    """H6, H20: a victim whose every value is strange changes no status, no shape, no word and no price."""
    strange = {
        "person": 999,
        "sex": "\x00'\"; DROP",
        "région": "🜁" * 3000,
        "bmi": float("inf"),
        "age": 2**62,
        "day": None,
        "at": datetime.fromisoformat("9999-12-31T23:59:59"),
        "smoker": None,
        "wave": -(2**62),
        "country": None,
        "note": "canary",
    }
    told = []
    for name, rows in (("without", []), ("with", [strange, {**strange, "bmi": float("nan")}] * 500)):
        curator = curator_of(tmp_path / name, some_rows(10) + rows)
        found = curator.analyst("ana").synthesize("people", epsilon=0.5, method="tree")
        about = {key: each for key, each in found.to_dict().items() if key not in {"model", "rows", "units", "receipt"}}
        assert found.to_dict()["units"]["column"] == "person"
        shapes = [(each["column"], each["parents"]) for each in found.stored.to_json()["model"]["steps"][:1]]
        told.append((about, len(shapes), repr(found.stored.domain)))
        assert "canary" not in str(found.stored.to_json()) and "DROP" not in str(found.to_arrow(500).to_pydict())
    assert told[0] == told[1]


def test_the_column_of_made_up_units_has_a_name_of_its_own(tmp_path: Path):
    """Of two columns that make the unit it would be a_b, which is there."""
    rows = pa.table({"a": [at // 2 for at in range(200)], "b": [1] * 200, "A_b": ["x", "y"] * 100})
    pq.write_table(rows, tmp_path / "t.parquet")
    (tmp_path / "t.toml").write_text(
        """
        [table]
        name = "t"
        source = "t.parquet"
        unit = ["a", "b"]
        [budget]
        epsilon = 50.0
        delta = 1e-6
        [analysts.ana]
        epsilon = 50.0
        [contribution]
        rows = 2
        [columns.A_b]
        type = "category"
        keys = ["x", "y"]
        default = "x"
        """
    )
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "t.toml")
    found = curator.analyst("ana").synthesize("t", epsilon=20.0, method="tree")
    drawn = found.to_arrow(50, seed=1)
    assert drawn.column_names == ["a_b_", "A_b"] and found.to_dict()["units"]["column"] == "a_b_"
    assert set(drawn["A_b"].to_pylist()) == {"x", "y"}


def test_a_failing_look_is_charged_and_says_nothing_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    curator = curator_of(tmp_path, some_rows(5))

    def failing(*_: object, **__: object) -> None:
        raise EngineFailedError("It failed.", why="A test.", fix="None.")

    monkeypatch.setattr("dalenius.synthesis.kind.read_rows", failing)
    with pytest.raises(EngineFailedError):
        curator.analyst("ana").synthesize("people", epsilon=0.5)
    assert [each["epsilon"] for each in charges(curator)] == [0.5]


def test_nobody_looks_before_the_charge_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from dalenius.synthesis import kind

    curator, seen, read = curator_of(tmp_path, some_rows(5)), [], read_rows

    def looking(*arguments: Any) -> Any:
        seen.append(len(charges(curator)))
        return read(*arguments)

    monkeypatch.setattr(kind, "read_rows", looking)
    curator.analyst("ana").preview_synthetic("people", epsilon=0.5)
    assert seen == []
    curator.analyst("ana").synthesize("people", epsilon=0.5, method="histogram")
    assert seen == [1]


def test_files_are_whole_or_not_there(people: Curator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = people.analyst("ana").synthesize("people", epsilon=2.5, method="histogram")
    assert found.write(tmp_path / "rows.parquet", 40, seed=1) == 40
    assert pq.read_table(tmp_path / "rows.parquet").equals(found.to_arrow(40, seed=1))
    about = pq.read_schema(tmp_path / "rows.parquet").metadata[b"dalenius"]
    told = json.loads(about)
    assert told["guarantee"] == found.guarantee and told["release"] == found.receipt["id"]  # type: ignore[index]
    assert b"ana" not in about and "remaining" not in told  # anybody may have the file
    assert found.write(tmp_path / "rows.csv", 3) == 3
    assert (tmp_path / "rows.csv").read_text().count("\n") == 4

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.csv.write_csv", full)
    with pytest.raises(DaleniusError, match="No space"):
        found.write(tmp_path / "rows.csv", 5)
    assert (tmp_path / "rows.csv").read_text().count("\n") == 4
    assert sorted(each.name for each in tmp_path.iterdir()) == ["rows.csv", "rows.parquet"]
    with pytest.raises(InputError, match="ending"):
        found.write(tmp_path / "rows.txt")


def test_periods_are_all_charged(tmp_path: Path):
    folder = tmp_path / "monthly"
    curator = _monthly(folder)
    found = curator.analyst("ana").synthesize("people", epsilon=0.5, method="histogram")
    (charge,) = charges(curator)
    assert len(charge["periods"]) == 12 and re.search("month", found.guarantee["unit"])


def _monthly(folder: Path) -> Curator:
    folder.mkdir()
    rows = [{**each, "day": each["day"]} for each in some_rows(20)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "people.parquet")
    (folder / "people.toml").write_text(
        '[table]\nname = "people"\nsource = "people.parquet"\nunit = "person"\n[budget]\nepsilon = 10.0\n'
        'delta = 1e-6\nperiod = { column = "day", every = "month" }\n[analysts.ana]\nepsilon = 10.0\n'
        + COLUMNS
        + "[contribution]\nrows = 2\n"
    )
    curator = Curator(folder / "home")
    curator.protect(folder / "people.toml")
    return curator
