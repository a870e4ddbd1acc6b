"""Odd tables and odd prices: a sensible table, or a clear refusal before the charge; and never a hidden budget."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.synthesis.made import COLUMNS, MODELLED, curator_of, some_rows

from dalenius.curator import Curator
from dalenius.errors import DaleniusError, InputError
from dalenius.synthesis.methods import METHODS


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(8):
        yield


def made(folder: Path, rows: pa.Table, columns: str, limit: int = 1) -> Curator:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / "t.parquet")
    (folder / "t.toml").write_text(
        '[table]\nname = "t"\nsource = "t.parquet"\nunit = "id"\n[budget]\nepsilon = 900.0\ndelta = 1e-6\n'
        f"[analysts.ana]\nepsilon = 900.0\n[contribution]\nrows = {limit}\n{columns}"
    )
    curator = Curator(folder / "home")
    curator.protect(folder / "t.toml")
    return curator


def charged(curator: Curator) -> list[dict[str, Any]]:
    return [entry.data for entry in curator.ledger.records(("charge",)) if entry.data["analyst"]]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator_of(tmp_path_factory.mktemp("odd"), some_rows(45, each=2))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("method", METHODS)
def test_ninety_rows_at_every_price_are_a_table_within_its_domain_at_that_price(
    people: Curator, method: str, epsilon: float
):
    before = len(charged(people))
    found = people.analyst("ana").synthesize("people", epsilon=epsilon, method=method)
    (charge,) = charged(people)[before:]
    rho = people.ledger.budget("people").filter().price(epsilon).rho
    assert (charge["epsilon"], charge["delta"], charge["rho"]) == (epsilon, 0.0, rho) and not found.free
    assert found.columns == MODELLED
    drawn = found.to_arrow(400, seed=1).to_pydict()
    allowed: dict[str, set[Any]] = {
        "sex": {"m", "f", None},
        "région": {"nörd", "süd", "北", "it's"},
        "wave": {1, 2, 3, None},
    }
    assert all(set(drawn[name]) <= values for name, values in allowed.items())
    assert set(drawn["smoker"]) <= {True, False, None} and set(drawn["country"]) == {"only"}
    assert all(0 <= age <= 100 for age in drawn["age"])
    assert all(each is None or date(2025, 1, 1) <= each <= date(2025, 12, 31) for each in drawn["day"])
    if epsilon == 50.0:
        assert 80 < found.rows < 100


def test_few_people_at_a_large_price_are_nearly_as_they_are(people: Curator):
    """ρ = 26 or so: noise below one row in each count."""
    drawn = people.analyst("ana").synthesize("people", epsilon=50.0, method="histogram").to_arrow(seed=1)
    real = Counter(each["sex"] if each["sex"] in {"m", "f"} else None for each in some_rows(45, each=2))
    found = Counter(drawn["sex"].to_pylist())
    assert set(found) == set(real) and all(abs(found[each] - real[each]) < 8 for each in real)


def test_no_null_comes_of_noise_where_no_row_has_one(tmp_path: Path):
    """Ten columns without `default`, none with an absent value; a count of noise is above its margin with 2.5%.

    With this seed none is. The promise itself is held to in test_doubtful.
    """
    chance, names = random.Random(3), [f"c{at}" for at in range(10)]
    rows = pa.table({"id": range(300), **{name: [chance.choice("ab") for _ in range(300)] for name in names}})
    columns = "\n".join(f'[columns.{name}]\ntype = "category"\nkeys = ["a", "b"]' for name in names)
    found = made(tmp_path, rows, columns).analyst("ana").synthesize("t", epsilon=0.5, method="tree")
    assert sum(found.to_arrow(3000)[name].null_count for name in names) == 0


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    """Three rows of each of forty people: 10⁴ keys that are declared, some that are not, and amounts of all sizes."""
    folder, chance = tmp_path_factory.mktemp("words"), random.Random(6)
    keys = [f"{chr(0x4E00 + at)}·{at}" for at in range(10_000)]
    (folder / "lists").mkdir()
    (folder / "lists" / "words.csv").write_text("word\n" + "\n".join(keys) + "\n")
    drawn = [chance.choice(keys[:3]) for _ in range(120)]
    rows = {"id": [at // 3 for at in range(120)], "word": drawn, "open": [chance.choice("äb") for _ in drawn]}
    columns = (
        '[columns.word]\ntype = "text"\nkeys = { file = "lists/words.csv", column = "word" }\n[columns.open]\n'
        'type = "category"\n[columns.x]\ntype = "number"\nbounds = [-1e12, 1e12]\n'
    )
    return made(folder, pa.table(rows | {"x": [chance.gauss(0, 1e6) for _ in drawn]}), columns, limit=3)


@pytest.mark.parametrize("epsilon", [0.01, 50.0])
@pytest.mark.parametrize("method", METHODS)
def test_forty_people_and_ten_thousand_keys_are_a_table_at_every_price(words: Curator, method: str, epsilon: float):
    before = len(charged(words))
    found = words.analyst("ana").synthesize("t", epsilon=epsilon, method=method)
    (charge,) = charged(words)[before:]
    rho = words.ledger.budget("t").filter().price(epsilon).rho
    assert (charge["epsilon"], charge["rho"]) == (epsilon, rho) and 0 < charge["delta"] < 1e-6
    assert found.charge == {"epsilon": epsilon, "delta": charge["delta"], "rho": rho}
    drawn = found.to_arrow(300, seed=1).to_pydict()
    keys = {f"{chr(0x4E00 + at)}·{at}" for at in range(10_000)}
    assert set(drawn["word"]) <= {*keys, None} and set(drawn["open"]) <= {"ä", "b", "other", None}
    assert all(each is None or abs(each) <= 1e12 for each in drawn["x"]) and min(drawn["id"]) == 1
    if epsilon == 50.0:
        assert 100 < found.rows < 140 and 30 <= len(set(found.to_arrow(seed=1)["id"].to_pylist())) <= 50


@pytest.mark.parametrize("method", METHODS)
def test_ten_thousand_keys_of_all_alphabets_are_a_column_like_others(tmp_path: Path, method: str):
    keys = [f"{chr(0x4E00 + at)}·{at}" for at in range(10_000)]
    chance = random.Random(4)
    drawn = [chance.choice(keys[:5]) if chance.random() < 0.9 else chance.choice(keys) for _ in range(3000)]
    sides = ["left" if key in keys[:2] else "right" for key in drawn]
    rows = pa.table({"id": range(3000), "word": drawn, "side": sides})
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "words.csv").write_text("word\n" + "\n".join(keys) + "\n")
    columns = (
        '[columns.word]\ntype = "text"\nkeys = { file = "lists/words.csv", column = "word" }\n'
        '[columns.side]\ntype = "category"\nkeys = ["left", "right"]\ndefault = "left"\n'
    )
    found = made(tmp_path, rows, columns).analyst("ana").synthesize("t", epsilon=8.0, method=method)
    table = found.to_arrow(3000, seed=1).to_pydict()
    assert set(table["word"]) <= {*keys, None}
    often = Counter(table["word"])
    assert all(abs(often[key] - drawn.count(key)) < 120 for key in keys[:5])
    alike = [word in keys[:2] for word, side in zip(table["word"], table["side"], strict=True) if side == "left"]
    assert sum(alike) > 0.8 * len(alike) or method == "histogram"  # which measures no pair


def test_columns_that_have_one_value_alone_have_it_alone(tmp_path: Path):
    rows = pa.table(
        {
            "id": range(80),
            "year": [2025] * 80,
            "day": pa.array([date(2025, 1, 1)] * 80, pa.date32()),
            "at": pa.array([datetime.fromisoformat("2025-01-01T12:00:00")] * 80, pa.timestamp("us")),
            "one": ["북"] * 80,
        }
    )
    columns = (
        '[columns.year]\ntype = "integer"\nbounds = [2025, 2025]\ndefault = 2025\n'
        '[columns.day]\ntype = "date"\nbounds = ["2025-01-01", "2025-01-01"]\ndefault = "2025-01-01"\n'
        '[columns.at]\ntype = "datetime"\nbounds = ["2025-01-01T12:00:00", "2025-01-01T12:00:00"]\n'
        'default = "2025-01-01T12:00:00"\n[columns.one]\ntype = "text"\nkeys = ["북"]\ndefault = "북"\n'
    )
    ana = made(tmp_path, rows, columns).analyst("ana")
    for method in METHODS:
        found = ana.synthesize("t", epsilon=1.0, method=method).to_arrow(50)
        assert all(found[name].unique().to_pylist() == [rows[name][0].as_py()] for name in rows.column_names[1:])


def test_equal_bounds_of_a_number_are_refused_when_the_policy_is_read(tmp_path: Path):
    rows = pa.table({"id": [1], "x": [5.0]})
    with pytest.raises(DaleniusError, match="equal"):
        made(tmp_path, rows, '[columns.x]\ntype = "number"\nbounds = [5, 5]')


def test_what_cannot_be_modelled_is_named_with_what_to_declare(tmp_path: Path):
    rows = pa.table({"id": range(20), "words": ["abc"] * 20, "x": [1.5] * 20, "n": range(20), "sex": ["m"] * 20})
    columns = (
        '[columns.words]\ntype = "text"\n[columns.x]\ntype = "number"\n[columns.n]\ntype = "integer"\n'
        '[columns.sex]\ntype = "category"\nkeys = ["m", "f"]\n'
    )
    curator = made(tmp_path, rows, columns)
    ana = curator.analyst("ana")
    told = {"words": "declare its keys", "x": "declare its bounds", "n": "declare its bounds"}
    assert ana.preview_synthetic("t", epsilon=1.0).left_out == told
    for name, what in told.items():
        with pytest.raises(InputError, match=what) as refused:
            ana.synthesize("t", epsilon=1.0, columns=["sex", name])
        assert name in str(refused.value) and refused.value.charge.epsilon == 0
    with pytest.raises(InputError, match="declare"):
        made(tmp_path / "b", rows, '[columns.words]\ntype = "text"\n').analyst("ana").synthesize("t", epsilon=1.0)
    assert not charged(curator)
    found = ana.synthesize("t", epsilon=1.0)
    assert found.left_out == told and found.columns == ("sex",)


def test_an_empty_table_is_a_table_of_its_domain_at_every_price(tmp_path: Path):
    ana = curator_of(tmp_path, [], columns=COLUMNS).analyst("ana")
    for epsilon in (0.01, 50.0):
        for method in METHODS:
            found = ana.synthesize("people", epsilon=epsilon, method=method)
            assert found.columns == MODELLED and found.to_arrow(20).num_rows == 20
        assert epsilon < 1 or found.rows < 10
