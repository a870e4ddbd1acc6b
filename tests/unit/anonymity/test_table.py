"""Tables in and out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.anonymity.checking import check
from dalenius.anonymity.models import DistinctDiversity
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.run import anonymize
from dalenius.anonymity.table import Column, Table, read_table, whole_file, write_table
from dalenius.errors import DaleniusError, InputError, SourceUnavailableError, UnknownColumnError

CELLS: dict[str, list[str | None]] = {
    "age": ["31", "7", None, "31"],
    "city": ['Bonn, "the" old', "Köln", "a\nb", None],
    "semi": ["x;y", "", "1", "2"],
}


def cells(table: Table) -> dict[str, list[str | None]]:
    return {name: column.cells() for name, column in table.columns.items()}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path):
    table = Table.of({key: [value or None for value in own] for key, own in CELLS.items()})
    write_table(table, tmp_path / name)
    assert cells(read_table(tmp_path / name)) == cells(table)
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "text", ["a;b\n1;x,y\n;z\n", '\ufeffa;b\r\n1;"x,y"\r\n;z\r\n', 'a,b\n1,"x,y"\n,z\n', '"a","b"\n"1","x,y"\n"","z"\n']
)
def test_either_delimiter_is_found(text: str, tmp_path: Path):
    (tmp_path / "t.csv").write_text(text)
    assert cells(read_table(tmp_path / "t.csv")) == {"a": ["1", None], "b": ["x,y", "z"]}


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_an_empty_text_is_a_missing_cell_before_it_is_counted(name: str, tmp_path: Path):
    pq.write_table(pa.table({"age": ["1"] * 4, "ill": ["", None, "", None]}), tmp_path / "in.parquet")
    table, roles = read_table(tmp_path / "in.parquet"), Roles(quasi=("age",), sensitive=("ill",))
    assert table["ill"].values == Table.of({"ill": ["", None]})["ill"].values == Column.of([""]).values == (None,)
    assert not check(table, roles, [DistinctDiversity(2)]).met
    write_table(table, tmp_path / name)
    assert not check(read_table(tmp_path / name), roles, [DistinctDiversity(2)]).met
    with pytest.raises(InputError):
        anonymize(table, roles, [DistinctDiversity(2)])


@pytest.mark.parametrize("names", [["a;b"], ["a;b;c", "d"], ["a,b", "c"]])
def test_a_header_with_delimiters_is_read_again(names: list[str], tmp_path: Path):
    table = Table.of({name: ["x;y", "1,2"] for name in names})
    write_table(table, tmp_path / "t.csv")
    assert cells(read_table(tmp_path / "t.csv")) == cells(table)


def test_one_column_with_missing_cells_keeps_its_rows(tmp_path: Path):
    table = Table.of({"a": ["1", None, "2"]})
    write_table(table, tmp_path / "t.csv")
    assert cells(read_table(tmp_path / "t.csv")) == {"a": ["1", None, "2"]}


def test_values_stand_in_order_whatever_the_rows():
    assert Column.of(["10", "9", None, "2"]).values == ("2", "9", "10", None)
    assert Column.of(["10", "9", "x"]).values == ("10", "9", "x")
    assert Column.of(["1", "1.0"]).values == ("1", "1.0")
    numbers = Column.of(["10", None]).numbers
    assert numbers is not None and numbers[0] == 10 and np.isnan(numbers[1])
    assert Column.of(["1_0"]).numbers is None


def test_parquet_keeps_the_types_of_what_was_not_generalised(tmp_path: Path):
    typed = pa.table({"n": [1, 2, None], "x": [0.5, 1.5, 2.5], "b": [True, False, None]})
    pq.write_table(typed, tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table["n"].cells() == ["1", "2", None] and table["b"].cells() == ["true", "false", None]
    write_table(table.replace({"x": Column.of(["*", "*", "*"])}), tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")
    assert [str(each) for each in found.schema.types] == ["int64", "string", "bool"]
    assert found.column("n").to_pylist() == [1, 2, None]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("gone.csv", None, SourceUnavailableError),
        ("ragged.csv", b"a,b\n1,2\n3\n", InputError),
        ("latin.csv", "a,b\nK\xf6ln,2\n".encode("latin-1"), InputError),
        ("empty.csv", b"", InputError),
        ("unnamed.csv", b"a,\n1,2\n", InputError),
        ("twice.csv", b"a,a\n1,2\n", InputError),
        ("torn.parquet", b"PAR1 and no more", DaleniusError),
    ],
)
def test_what_is_no_table_is_refused_without_a_value(
    tmp_path: Path, name: str, content: bytes | None, kind: type[DaleniusError]
):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(kind) as caught:
        read_table(tmp_path / name)
    assert name in str(caught.value) and "ln" not in caught.value.why.split()
    assert caught.value.fix


def test_a_folder_is_no_table(tmp_path: Path):
    with pytest.raises(SourceUnavailableError):
        read_table(tmp_path)


def test_no_part_of_a_file_is_left_behind(tmp_path: Path):
    (tmp_path / "t.csv").write_text("before")

    def fails() -> None:
        with whole_file(tmp_path / "t.csv") as part:
            part.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]
    assert (tmp_path / "t.csv").read_text() == "before"
    with pytest.raises(SourceUnavailableError):
        write_table(Table.of({"a": ["1"]}), tmp_path / "nowhere" / "t.csv")


def test_an_unknown_column_is_named():
    with pytest.raises(UnknownColumnError, match="'b'"):
        Table.of({"a": ["1"]})["b"]
    with pytest.raises(InputError):
        Table.of({"a": ["1"], "b": []})
