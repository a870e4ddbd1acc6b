"""The schema of a source: names and types, nothing of its rows."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.errors import SourceUnavailableError
from dalenius.measuring.engines.duckdb.schema import schema


def test_parquet_and_csv_are_described(tmp_path):
    parquet, csv = tmp_path / "it's.parquet", tmp_path / "a.csv"
    pq.write_table(pa.table({"user_id": [1], "amount": [1.5], "name": ["x"]}), parquet)
    csv.write_text("user_id,amount\n1,1.5\n")
    assert schema([parquet], "parquet") == (("user_id", "BIGINT"), ("amount", "DOUBLE"), ("name", "VARCHAR"))
    assert schema([csv], "csv", guess=True) == (("user_id", "BIGINT"), ("amount", "DOUBLE"))


def test_the_schema_of_a_csv_does_not_depend_on_its_rows(tmp_path):
    for number, rows in enumerate(("1,2\n", "1,2\nx,y\n", "")):
        file = tmp_path / f"{number}.csv"
        file.write_text("user_id,amount\n" + rows)
        assert schema([file], "csv") == (("user_id", "VARCHAR"), ("amount", "VARCHAR"))


def test_paths_are_not_columns(tmp_path):
    (tmp_path / "year=2025").mkdir()
    file = tmp_path / "year=2025" / "a.parquet"
    pq.write_table(pa.table({"user_id": [1]}), file)
    assert schema([file], "parquet") == (("user_id", "BIGINT"),)


def test_files_that_cannot_be_read_say_nothing_of_what_is_in_them(tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_text("the secret of Tore Dalenius, and some more bytes")
    headless, empty = tmp_path / "h.csv", tmp_path / "e.csv"
    headless.write_text("Tore,17\nAnna,18\n")
    empty.touch()
    for file, form in ((broken, "parquet"), (headless, "csv"), (empty, "csv"), (tmp_path / "no.csv", "csv")):
        with pytest.raises(SourceUnavailableError) as caught:
            schema([file], form, guess=True)
        assert "Tore" not in str(caught.value) and caught.value.__cause__ is None


def test_files_of_one_source_share_one_schema(tmp_path):
    for name, column in (("a", "x"), ("b", "y")):
        pq.write_table(pa.table({column: [1]}), tmp_path / f"{name}.parquet")
    with pytest.raises(SourceUnavailableError, match="different columns"):
        schema([tmp_path / "a.parquet", tmp_path / "b.parquet"], "parquet")


def test_paths_that_duckdb_takes_for_patterns(tmp_path):
    for odd, other in (("a*", "ab"), ("a?", "ac"), ("a[1]", "a1")):
        for name in (odd, other):
            (tmp_path / f"{name}.csv").write_text("x\n1\n")
            pq.write_table(pa.table({"x": [1]}), tmp_path / f"{name}.parquet")
        for form in ("csv", "parquet"):
            files = [tmp_path / f"{odd}.{form}", tmp_path / f"{other}.{form}"]  # the other would be read twice
            with pytest.raises(SourceUnavailableError, match="cannot be read"):
                schema(files, form)
            assert schema(files[1:], form)
