"""Files of values: what counts as a value, and where a bad one stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.errors import InputError
from dalenius.local import values


def read(path: Path, data: bytes, column: str | None = None) -> list[str]:
    path.write_bytes(data)
    return [text for part in values.parts(path, column) for text in part.texts]


@pytest.mark.parametrize(
    "data",
    [b"yes\nno\n", b"yes\nno", b"yes\r\nno\r\n", b"yes\r\nno", b"\xef\xbb\xbfyes\nno\n", b"\xef\xbb\xbfyes\r\nno"],
)
def test_marks_and_line_ends_are_no_part_of_a_value(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path / "v.txt", data) == ["yes", "no"]


def test_nothing_else_is_trimmed(tmp_path: Path) -> None:
    data = b" yes\nno \n\nold\rline\n" + "a\u2028b\x0cc\n".encode()
    assert read(tmp_path / "v.txt", data) == [" yes", "no ", "", "old\rline", "a\u2028b\x0cc"]


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_a_file_without_values_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError, match="holds no values"):
        read(tmp_path / "v.txt", data)
    with pytest.raises(InputError, match="holds no values"):
        read(tmp_path / "v.csv", b"id,answer\r\n", "answer")


def test_a_column_is_read_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(b'\xef\xbb\xbfanswer,id\r\n"a,b",1\r\n"two\r\nlines",2\r\n\r\nlast,3')
    (part,) = values.parts(path, "answer")
    assert part.texts == ["a,b", "two\r\nlines", "last"]
    assert part.lines == [2, 4, 6]


@pytest.mark.parametrize(
    ("data", "column", "match"),
    [
        (b"id,answer\n1,yes\n", "answr", "no column 'answr'"),
        (b"id,id\n1,2\n", "id", "Two columns"),
        (b"id,answer\n1,yes\n2\n", "answer", "Line 3 has 1 cells"),
        (b"id,answer\n1,yes,no\n", "answer", "Line 2 has 3 cells"),
        (b'id,answer\n1,"yes\n', "answer", "not CSV"),
        (b"", "answer", "no column"),
        (b"id,answer\n1,yes\n", None, "Which column"),
    ],
)
def test_a_bad_csv_is_refused_with_its_line(tmp_path: Path, data: bytes, column: str | None, match: str) -> None:
    with pytest.raises(InputError, match=match):
        read(tmp_path / "v.csv", data, column)


def test_bytes_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not UTF-8"):
        read(tmp_path / "v.txt", b"yes\n\xff\xfe\n")


def test_long_files_come_in_parts_that_go_on_counting(tmp_path: Path) -> None:
    path, many = tmp_path / "v.txt", 2 * values.AT_ONCE + 5
    path.write_text("x\n" * many)
    found = list(values.parts(path))
    assert [len(part.texts) for part in found] == [values.AT_ONCE, values.AT_ONCE, 5]
    assert found[-1].lines[-1] == many and found[-1].done == path.stat().st_size


@pytest.mark.parametrize("text", ["", "four", "nan", "inf", "101", "-1"])
def test_a_number_outside_the_range_is_refused_by_its_line(text: str) -> None:
    with pytest.raises(InputError, match="Line 7 ") as caught:
        values.numbers(values.Part(["1", text], [6, 7], 0), 0, 100)
    assert not text or text not in caught.value.message.replace("100", "").replace("Line 7", "")


def test_bits_are_read_and_refused_by_their_line() -> None:
    assert values.bits(values.Part(["01", "10"], [1, 2], 0), 2) == [[0, 1], [1, 0]]
    for bad in ("0", "011", "0x", "٠١"):
        with pytest.raises(InputError, match="Line 2 "):
            values.bits(values.Part(["01", bad], [1, 2], 0), 2)
