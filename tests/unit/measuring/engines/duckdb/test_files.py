"""The files of a source: names and types, nothing of their rows.

Of a CSV file the header says how it is read, and a row changes nothing but itself.
"""

import csv
import gzip
import io
import tempfile
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import LONG, examples

from dalenius.errors import SourceUnavailableError
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.duckdb.files import Header, header, schema
from dalenius.tables.sources.fingerprint import fingerprint

SMALL = "max_line_size = 128, buffer_size = 512"  # a file of a few lines then has several buffers


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect(config={"threads": 2}) as connection:
        yield connection


def read(connection, content, select="*", more=""):
    """The rows as a multiset."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.csv"
        file.write_bytes(content)
        item = header([file]).scan([file])
        if more:
            item = item.replace("union_by_name = false", f"union_by_name = false, {more}")
        return Counter(connection.execute(f"SELECT {select} FROM {item}").fetchall())


def rows(connection, text):
    return sorted(read(connection, text if isinstance(text, bytes) else text.encode()).elements(), key=repr)


@pytest.mark.parametrize(
    ("line", "names", "delimiter"),
    [
        ("a,b", ["a", "b"], ","),
        ("a;b;c,d", ["a", "b", "c,d"], ";"),
        ("a\tb", ["a", "b"], "\t"),
        ("a|b", ["a", "b"], "|"),
        ("a", ["a"], ","),
        ("a;b,c", ["a;b", "c"], ","),
        ('"a;x;y;z",b', ["a;x;y;z", "b"], ","),
        ('"say ""hi"";;;", b ,it\'s', ['say "hi";;;', "b", "it's"], ","),
        ("#a,b", ["#a", "b"], ","),
        ("größe,x", ["größe", "x"], ","),
    ],
)
def test_the_header_alone_decides(tmp_path, line, names, delimiter):
    for start in ("", "\ufeff"):
        for rest in ("", "\n", "\r\n1;2;3;4;5\r\n", "\n'x';\"y\n", "\r1"):
            for name in ("a.csv", "a.csv.gz"):
                content = (start + line + rest).encode()
                file = tmp_path / name
                file.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
                assert header([file]) == Header(tuple(names), delimiter)
                if LONG or rest in ("", "\n'x';\"y\n"):  # which opens an engine
                    assert schema([file], "csv") == tuple((each, "VARCHAR") for each in names)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "must name"),
        (b"\nTore,b\n", "must name"),
        (b",,\n", "must name"),
        (b"Tore,\n", "without a name"),
        (b"Tore,tore\n", "same name"),
        (b'"Tore,b\n', "quotes"),
        (b'"Tore"x,b\n', "quotes"),
        (b"Tore,\xff\n", "UTF-8"),
        ("Tore,b\n".encode("utf-16"), "UTF-8"),
        (b"Tore\0,b\n", "UTF-8"),
        (b"Tore" * 2**19, "longer"),
    ],
)
def test_headers_that_are_none(tmp_path, content, why):
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    with pytest.raises(SourceUnavailableError, match="no usable header") as caught:
        header([file])
    assert why in str(caught.value.to_dict())
    assert "tore" not in str(caught.value.to_dict()).lower() and caught.value.__cause__ is None


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(b"Tore,b\n1,2\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"Tore,b\n1,2\n")[:15])
    for name in ("a.csv.gz", "b.csv.gz", "none.csv"):
        with pytest.raises(SourceUnavailableError, match="cannot be read") as caught:
            header([tmp_path / name])
        assert "Tore" not in str(caught.value)


def test_files_of_one_source_share_the_header(tmp_path):
    contents = {"a": "a,b\n1,2\n", "b": '"a",b\r\n3,4', "c": "a;b\n1;2\n", "d": "b,a\n1,2\n"}
    for name, content in contents.items():
        (tmp_path / f"{name}.csv").write_bytes(content.encode())
    engine = DuckDB(fingerprint([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]))
    assert sorted(engine.run(f"SELECT * FROM {engine.scan}")) == [("1", "2"), ("3", "4")]
    for other in ("c", "d"):
        files = [tmp_path / "a.csv", tmp_path / f"{other}.csv"]
        with pytest.raises(SourceUnavailableError, match="different columns"):
            schema(files, "csv")
        with pytest.raises(SourceUnavailableError, match="different columns"):
            _ = DuckDB(fingerprint([str(file) for file in files])).scan


def test_a_draft_guesses_types_only(tmp_path):
    file = tmp_path / "a.csv"
    for content in ("a;b\n1;1,5\n2;2,5\n", "a;b\n1;x\n3;4;5\n", "a;b\n1;'x;y'\n#2;3\n"):
        file.write_text(content)
        assert [name for name, _ in schema([file], "csv", guess=True)] == ["a", "b"]
    file.write_text("user_id|amount|day\n1|1.5|2025-01-01\n")
    assert [kind for _, kind in schema([file], "csv", guess=True)] == ["BIGINT", "DOUBLE", "DATE"]


@pytest.mark.parametrize(
    ("row", "read_as"),
    [
        (b"3", [("3", None)]),
        (b"3,4,5", [("3", "4")]),
        (b",", [(None, None)]),
        (b"", []),
        (b"#3,4", [("#3", "4")]),
        (b"'x,y'", [("'x", "y'")]),
        (b"a,b", [("a", "b")]),
        (b"\xff,4", []),
        (b"3;4", [("3;4", None)]),
        (b"x\0,4", [("x\0", "4")]),
        (b"\xef\xbb\xbf3,4", [("\ufeff3", "4")]),
        (b'5" tall,4', [('5" tall', "4")]),
        (b'"3,""\r\n",4', [('3,"\r\n', "4")]),
        (b'"3"x,4', [("3", "4")]),
        (b"NULL,nan", [("NULL", "nan")]),
        (b"3,4\r5,6", [("3", "4"), ("5", "6")]),
        (b"3,4\r", [("3", "4")]),
        (b"x" * 3_000_000 + b",4", []),
        (b"x" * 40_000_000 + b",4", []),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_what_a_row_is_read_as(connection, row, read_as, end):
    others = [("1", "2"), ("8", None), ("9", "9")]
    for place in range(3):
        lines = [b"1,2", b"8,", b"9,9"]
        lines.insert(place, row)
        found = rows(connection, end.join([b"a,b", *lines]) + end)
        assert found == sorted(others + read_as, key=repr)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_single_column(connection, end):
    assert rows(connection, end.join(["a", "1", "", "2", '"x,y"', "3,4", ""])) == [("1",), ("2",), ("3",), ("x,y",)]


def test_an_unclosed_quote_takes_what_follows(connection):
    # Nothing bounds it before the reader's buffer ends. What was read before it stays as it is.
    text = "a,b\n1,2\n" + '3,"4\n' + "5,6\n7,8\n"
    assert rows(connection, text) == [("1", "2"), ("3", "4\n5,6\n7,8")]


def test_more_rows_than_one_buffer(tmp_path):
    file = tmp_path / "a.csv"
    with file.open("w") as opened:
        opened.write("a,b\n")
        for start in range(0, 1_000_000, 1000):
            opened.write("".join(f'{number},"{"x" * 30}\n{number}"\n' for number in range(start, start + 1000)))
            opened.write("z\nz,z,z\n")
    engine = DuckDB(fingerprint([str(file)]), threads=4)
    sql = f"SELECT count(*), count(DISTINCT a), count(b), sum(TRY_CAST(a AS BIGINT))::BIGINT FROM {engine.scan}"
    assert engine.run(sql) == [(1_002_000, 1_000_001, 1_001_000, 499_999_500_000)]


field = st.text(st.sampled_from("ab1 é'#.;|,\t\\\"\n"), max_size=8)
tables = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[field] * width), max_size=25))
bytes_of_a_row = [
    b"a",
    b"1",
    b" ",
    b"'",
    b"#",
    b"\\",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b"\r",
    b";",
    b",",
    b"\t",
    b"|",
]
text_of_a_row = st.lists(st.sampled_from(bytes_of_a_row), max_size=120).map(b"".join)


def lines_of(table, width, delimiter, end, quoting):
    written = []
    for row in [tuple(f"c{number}" for number in range(width)), *table]:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting).writerow(row)
        written.append(out.getvalue().encode())
    return written


@settings(deadline=None, max_examples=examples(150))
@given(
    tables,
    text_of_a_row,
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["", SMALL]),
    st.data(),
)
def test_a_row_changes_nothing_but_itself(connection, table, text, delimiter, end, quoting, more, data):
    width = len(table[0]) if table else 2
    if width == 1:
        delimiter = ","  # a header of one name has none
    lines = lines_of(table, width, delimiter, end, quoting)
    without = read(connection, b"".join(lines), more=more)
    if width > 1:
        assert without == Counter(tuple(value or None for value in row) for row in table)
    place = data.draw(st.integers(1, len(lines)))
    changed = b"".join([*lines[:place], text + end.encode(), *lines[place:]])
    having = read(connection, changed, more=more)
    assert not without - having
    assert (having - without).total() <= 1 + text.count(b"\r")
    # Nor does it matter to the others which columns are asked for.
    for select in ("c0", f"c{width - 1}"):
        column = read(connection, changed, select, more)
        assert not read(connection, b"".join(lines), select, more) - column


# --- names and types


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
