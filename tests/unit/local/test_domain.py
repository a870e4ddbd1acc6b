"""A domain numbers distinct texts, has a name that nothing else has, and refuses foreign values by their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.errors import InputError
from dalenius.local.domain import Domain


def test_a_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "words"
    for data in (b"ab\n c \n\xc3\xa4\n", b"ab\r\n c \r\n\xc3\xa4", b"\xef\xbb\xbfab\n c \n\xc3\xa4\n"):
        path.write_bytes(data)
        assert Domain.read(path).texts == ("ab", " c ", "ä")


@pytest.mark.parametrize("data", [b"", b"a\n", b"a\n\nb\n", b"a\nb\na\n", b"a\n\xff\n"])
def test_a_file_that_is_no_list_of_distinct_texts_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "words").write_bytes(data)
    with pytest.raises(InputError):
        Domain.read(tmp_path / "words")
    with pytest.raises(InputError):
        Domain.read(tmp_path / "none")


def test_a_foreign_value_is_refused_by_its_line_and_never_shown() -> None:
    domain = Domain(("yes", "no"))
    with pytest.raises(InputError, match="Line 4 ") as caught:
        domain.index(["yes", "no", "secret"], first_line=2)
    assert "secret" not in str(caught.value)


def test_domains_of_other_texts_or_another_order_have_another_name() -> None:
    texts = [("a", "b"), ("b", "a"), ("ab", "c"), ("a", "bc"), ("a", "b", "c")]
    assert len({Domain(one).sha256 for one in texts}) == len(texts)
    assert Domain.numbered(2) == Domain(("0", "1"))
    for size in (1, 0, 2**24 + 1):
        with pytest.raises(InputError):
            Domain.numbered(size)
