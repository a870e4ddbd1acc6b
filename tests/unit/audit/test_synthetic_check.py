"""An owner's check of synthetic rows: attacks find what is there to find, and nothing leaves but what is printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.synthesis.made import COLUMNS as SPARE
from tests.unit.synthesis.made import MODELLED, SCHEMA, curator_of, some_rows

from dalenius.app.cli import build, run
from dalenius.audit.synthetic.checking import CheckAsk, SyntheticCheck, check_synthetic
from dalenius.audit.synthetic.nearness import nearness
from dalenius.audit.synthetic.reading import People, claimed, read_synthetic
from dalenius.curator import Curator
from dalenius.errors import InputError, NotAllowedError, SourceUnavailableError, UnknownTableError
from dalenius.releasing.leaving import Asker
from dalenius.synthesis.domain import Column, Domain
from dalenius.synthesis.drawing import Drawing
from dalenius.synthesis.release import SyntheticTable

COLUMNS = ["sex", "région", "bmi", "age", "day", "at", "smoker", "wave", "country"]


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(7):
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checked")
    curator_of(folder, some_rows(400, each=2)).ledger.database.close()
    pq.write_table(pa.Table.from_pylist(some_rows(400, each=2, seed=9), SCHEMA), folder / "others.parquet")
    return folder


@pytest.fixture(scope="module")
def curator(home: Path) -> Curator:
    return Curator(home / "home")


@pytest.fixture(scope="module")
def made(curator: Curator) -> SyntheticTable:
    with seeded_noise(7):
        return curator.analyst("ana").synthesize("people", epsilon=20.0, method="tree")


def files_of(home: Path) -> list[Path]:
    """All but what SQLite keeps beside a ledger that is open."""
    return sorted(path for path in home.rglob("*") if path.is_file() and "sqlite-" not in path.name)


def checked(curator: Curator, **asked: Any) -> SyntheticCheck:
    return check_synthetic(curator, CheckAsk("people", **asked))


# --- what attacks find


def test_a_copy_of_the_table_is_found_out(curator: Curator, home: Path, tmp_path: Path):
    """Rows that are the real ones: every attack says so."""
    real = pq.read_table(home / "people.parquet").select(["sex", "région", "bmi", "age", "day", "at", "wave"])
    pq.write_table(real, tmp_path / "copy.parquet")
    found = checked(curator, rows=tmp_path / "copy.parquet", held_out=home / "others.parquet")
    assert found.errors[1] == found.errors[3] == 0 and found.rows == {"real": 800, "held_out": 800, "synthetic": 800}
    assert found.copies.synthetic == found.copies.singled == 1.0
    assert found.copies.others is not None and found.copies.others < 0.05
    assert found.membership is not None and found.membership.people == 400
    assert found.membership.auc > 0.95 and found.membership.advantage > 0.8
    assert found.most_advantage is None and not found.made_here


def test_rows_with_noise_do_not_say_who_was_there(curator: Curator, home: Path, tmp_path: Path, made: SyntheticTable):
    made.write(tmp_path / "rows.parquet")
    found = checked(curator, rows=tmp_path / "rows.parquet", held_out=home / "others.parquet", secrets=("sex", "age"))
    assert found.membership is not None and abs(found.membership.auc - 0.5) < 3 * found.membership.margin
    assert found.epsilon == 20.0 and found.most_advantage == pytest.approx(1.0, abs=1e-6)
    assert [each.column for each in found.attributes] == ["sex", "age"]
    for each in found.attributes:
        assert abs(each.members - each.others) < 3 * each.margin
    assert found.errors_held_out is not None and found.errors_held_out[1] > 0


def test_rows_that_are_made_here_are_made_from_the_others_and_dropped(
    curator: Curator, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Asker, "salt", lambda *_: "salt")  # who is held out is no chance
    files = files_of(home)
    few = ("région", "age", "sex")  # with more columns, so few rows teach next to nothing
    found = checked(curator, held_out=0.25, epsilon=1.0, method="tree", predict="région", columns=few)
    assert found.made_here and found.most_advantage == pytest.approx(0.4621, abs=1e-3)
    assert found.rows["real"] + found.rows["held_out"] == 800 and 100 < found.rows["held_out"] < 300
    assert found.utility is not None and found.utility.real > 0.4 > found.utility.most_frequent - 0.05
    assert files_of(home) == files


def test_without_others_it_is_said_that_nobody_is_known_who_was_not_there(
    curator: Curator, tmp_path: Path, made: SyntheticTable
):
    made.write(tmp_path / "rows.csv")
    for asked in ({}, {"held_out": 0.2}):  # the people held out were there when the file was made
        found = checked(curator, rows=tmp_path / "rows.csv", **asked)
        assert found.membership is None and not found.attributes and found.copies.others is None
        assert "Nobody is known who was not there" in found.notes[0]
    assert found.epsilon is None


# --- what is charged, kept and told


def test_nothing_is_charged_and_the_ledger_notes_that_it_ran(curator: Curator, tmp_path: Path, made: SyntheticTable):
    made.write(tmp_path / "rows.csv")
    charges, end = len(list(curator.ledger.records(("charge",)))), curator.ledger.head.count
    found = checked(curator, rows=tmp_path / "rows.csv")
    assert len(list(curator.ledger.records(("charge",)))) == charges
    (note,) = list(curator.ledger.entries(end))
    assert note.kind == "note" and note.data["audit"] == "synthetic" and note.data["tables"] == ["people"]
    assert not {"errors", "copies", "membership"} & set(note.data)
    assert found.to_dict()["private"] is False


def test_the_note_stands_before_anybody_reads(curator: Curator, monkeypatch: pytest.MonkeyPatch):
    before = curator.ledger.head.count

    def reading(*_: object) -> People:
        assert curator.ledger.head.count == before + 1
        raise SourceUnavailableError("It is gone.", why="A test.", fix="None.")

    monkeypatch.setattr("dalenius.audit.synthetic.rehearsing.read_people", reading)
    with pytest.raises(SourceUnavailableError):
        checked(curator, held_out=0.5, epsilon=1.0)


def test_a_share_is_of_whole_units_and_the_same_each_time():
    tags = np.repeat(np.random.default_rng(1).integers(0, 2**63, 500, dtype=np.uint64), 3)
    people = People(np.arange(1500, dtype=np.int32)[None, :], tags)
    kept, held = people.split(0.2)
    assert held.rows % 3 == 0 and kept.rows + held.rows == 1500 and 180 < held.rows < 420
    assert not np.isin(held.tags, kept.tags).any()
    assert (people.split(0.2)[1].codes == held.codes).all()
    assert people.one_of_each(1000, np.random.default_rng(0)).shape == (1, 500)
    assert (people.rows_of_units() == 3).all() and repr(people) == "People(…)"


# --- rows from files


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_of_a_file_are_the_rows_that_were_drawn(curator: Curator, made: SyntheticTable, tmp_path: Path, form: str):
    """Every type there is, absent values too, read back as the codes that were drawn."""
    file = tmp_path / f"rows.{form}"
    made.write(file, 500, seed=3)
    domain, codes = read_synthetic(file, made.stored.domain, curator.policy("people").columns)
    assert tuple(each.name for each in domain.columns) == MODELLED
    drawn = Drawing(made.stored).rows(500, np.random.default_rng(3))[0].codes
    for at, column in enumerate(made.stored.domain.columns):
        assert (codes[at] == drawn[:, at]).all(), column.name
    assert claimed(file, "people") == (20.0 if form == "parquet" else None) and claimed(file, "other") is None


@pytest.mark.parametrize("said", ["NaN", '"nan"', "Infinity", "-1", "0", "true", "[]", "1e400", "[" * 50_000])
def test_a_price_that_is_none_is_not_taken_from_a_file(tmp_path: Path, said: str):
    about = f'{{"table": "people", "guarantee": {{"epsilon": {said}}}}}'
    pq.write_table(pa.table({"age": [1]}).replace_schema_metadata({"dalenius": about}), tmp_path / "rows.parquet")
    assert claimed(tmp_path / "rows.parquet", "people") is None


def test_rows_of_other_programs_are_read_or_refused(curator: Curator, made: SyntheticTable, tmp_path: Path):
    domain, file, declared = made.stored.domain, tmp_path / "rows.csv", curator.policy("people").columns
    pc.write_csv(pa.table({"age": [None, "7"], "sex": ["f", "unheard of"], "more": [1, 2]}), file)
    found, codes = read_synthetic(file, domain, declared)
    assert [each.name for each in found.columns] == ["sex", "age"] and codes.tolist() == [[1, 2], [40, 7]]
    pc.write_csv(pa.table({"age": ["young"], "sex": ["f"]}), file)
    with pytest.raises(InputError, match="has other values than the table's"):
        read_synthetic(file, domain, declared)
    pc.write_csv(pa.table({"nothing": ["young"]}), file)
    with pytest.raises(InputError, match="no column of the table"):
        read_synthetic(file, domain, declared)


def test_nearness_counts_columns_and_steps():
    domain = Domain((Column("town", ("a", "b", "c")), Column("age", classes=11, absent=True, ordered=True)))
    synthetic = np.array([[0, 1], [0, 10]], np.int32)
    rows = np.array([[0, 0, 2, 1], [0, 5, 0, 11]], np.int32)  # the last age is absent
    first, mean = nearness(rows, synthetic, domain, lambda _: None)
    assert first == pytest.approx([0.0, 0.5, 1.0, 1.0]) and mean == pytest.approx([1.0, 1.0, 1.5, 1.5])


def test_keys_that_nobody_declared_are_those_of_the_synthetic_rows(tmp_path: Path):
    columns = SPARE.replace('[columns.note]\ntype = "text"', '[columns.note]\ntype = "category"')
    curator = curator_of(tmp_path, some_rows(200), columns=columns)
    pc.write_csv(pa.table({"note": ["abc", "xyz", "abc"], "bmi": [20.0, 30.0, 45.5]}), tmp_path / "rows.csv")
    found = checked(curator, rows=tmp_path / "rows.csv")
    assert found.columns == ("bmi", "note") and found.copies.synthetic >= 0
    assert found.errors[1] > 0.3  # a third of the notes is made up
    made = checked(curator, held_out=0.3, epsilon=20.0, method="tree", columns=("note", "bmi", "age"), predict="age")
    assert made.columns == ("bmi", "age", "note") and made.errors[1] < 0.5 and made.utility is not None


REFUSED = [
    (InputError, {}),
    (InputError, {"held_out": 0.2}),
    (InputError, {"epsilon": 1.0}),
    (InputError, {"held_out": 1.5, "epsilon": 1.0}),
    (InputError, {"held_out": 1e-9, "epsilon": 1.0}),  # nobody
    (InputError, {"held_out": 0.2, "epsilon": 1e-90}),
    (InputError, {"held_out": 0.2, "epsilon": 1.0, "predict": "nothing"}),
    (InputError, {"held_out": 0.2, "epsilon": 1.0, "secrets": ("nothing",)}),
    (SourceUnavailableError, {"rows": Path("nowhere.csv")}),
]


@pytest.mark.parametrize(("error", "asked"), REFUSED)
def test_what_cannot_be_checked_is_refused(curator: Curator, error: type[Exception], asked: dict[str, Any]):
    with pytest.raises(error):
        checked(curator, **asked)


def test_files_of_a_home_and_unknown_tables_are_refused(curator: Curator, home: Path):
    with pytest.raises(NotAllowedError):
        checked(curator, rows=home / "home" / "ledger.sqlite")
    with pytest.raises(UnknownTableError, match="peeple"):
        check_synthetic(curator, CheckAsk("peeple", held_out=0.2, epsilon=1.0))


def test_the_command_prints_that_it_is_not_private(
    home: Path, made: SyntheticTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    made.write(tmp_path / "rows.parquet")
    words = ["audit", "synthetic", "people", str(tmp_path / "rows.parquet"), "--home", str(home / "home")]
    words += ["--held-out", str(home / "others.parquet"), "--predict", "smoker", "--secret", "sex"]
    assert run(build(), words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("Not private: all of this follows from the raw rows, without noise.")
    for part in ("800 real rows", "800 held out", "at ε = 20", "who was there, by nearness", "learned from real rows"):
        assert part in out, part
    assert run(build(), [*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["private"] is False and found["columns"] == COLUMNS and found["utility"]["column"] == "smoker"
    assert run(build(), ["audit", "synthetic", "people", "--home", str(home / "home"), "--held-out", "20"]) == 2
    assert run(build(), ["audit", "synthetic", "people", "--home", str(home / "home")]) == 2
