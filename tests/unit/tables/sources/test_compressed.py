"""Compressed sources: whole, and of bounded size, or not protected at all; whatever they hold, in little memory."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from dalenius.curator import Curator
from dalenius.errors import InputError, SourceUnavailableError
from dalenius.tables.sources.compressed import FREE, VARIABLE, check_compressed

ROWS = b"user_id,x\n" + b"".join(b"%d,%d\n" % (at, 7 * at % 1000) for at in range(3000))
MORE = b"".join(b"%d,%d\n" % (at, 7 * at % 1000) for at in range(3000, 6000))
BOMB = gzip.compress(b"user_id,x\n") + gzip.compress(bytes(2**24)) * 64  # a gibibyte of zeros in a mebibyte
POLICY = """
[table]
name = "visits"
source = "visits.csv.gz"
unit = "user_id"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.eve]
epsilon = 3.0
[columns.x]
type = "integer"
bounds = [0, 1000]
[contribution]
rows = 2
"""
WHOLE = gzip.compress(ROWS)
BROKEN = {
    "cut off in the middle": WHOLE[: len(WHOLE) // 2],
    "cut off in its last eight bytes": WHOLE[:-3],
    "without its last eight bytes": WHOLE[:-8],
    "followed by garbage": WHOLE + b"garbage",
    "followed by zeros": WHOLE + bytes(512),
    "with a second file that is cut off": WHOLE + gzip.compress(MORE)[:-20],
    "damaged": WHOLE[:200] + b"\xff\xff" + WHOLE[202:],
    "with another checksum": WHOLE[:-8] + b"1234" + WHOLE[-4:],
    "empty": b"",
    "not compressed": ROWS,
}


@pytest.fixture
def file(tmp_path):
    (tmp_path / "visits.toml").write_text(POLICY)
    return tmp_path / "visits.csv.gz"


def protect(file):
    return Curator(file.parent / "home").protect(file.parent / "visits.toml")


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_not_gzip_to_its_end_is_not_protected(file, what):
    file.write_bytes(BROKEN[what])
    with pytest.raises(SourceUnavailableError) as caught:
        protect(file)
    assert caught.value.exit_code == 5 and str(file.parent) not in str(caught.value)


@pytest.mark.parametrize("content", [WHOLE, WHOLE + gzip.compress(MORE)], ids=["one member", "several members"])
def test_a_whole_file_is_protected_and_all_of_it_counts(file, content):
    file.write_bytes(content)
    protect(file)
    asked = Curator(file.parent / "home").analyst("eve").ask("SELECT COUNT(*) FROM visits", epsilon=2.0)
    assert abs(asked.rows[0][0] - (3000 if content == WHOLE else 6000)) < 100


def test_a_bomb_is_refused_in_little_memory_before_it_is_read_to_its_end(file):
    file.write_bytes(BOMB)
    tracemalloc.start()
    try:
        with pytest.raises(SourceUnavailableError, match="too much") as caught:
            check_compressed([file])
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()
    assert "Parquet" in caught.value.fix
    with pytest.raises(SourceUnavailableError, match="too much"):
        protect(file)


def test_a_bomb_is_refused_at_refresh_too(file):
    file.write_bytes(WHOLE)
    protect(file)
    file.write_bytes(BOMB)
    with pytest.raises(SourceUnavailableError, match="too much"):
        Curator(file.parent / "home").refresh("visits")


def test_the_owner_sets_the_most_bytes(file, monkeypatch):
    file.write_bytes(WHOLE)
    monkeypatch.setenv(VARIABLE, str(len(ROWS)))
    check_compressed([file])
    monkeypatch.setenv(VARIABLE, str(len(ROWS) - 1))
    with pytest.raises(SourceUnavailableError, match="too much"):
        check_compressed([file])
    for wrong in ("-1", "0", "lots", "1e9"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(InputError):
            check_compressed([file])


def test_well_packed_but_short_is_fine(file):
    file.write_bytes(gzip.compress(b"user_id,x\n" + b"1,1\n" * 2**20))
    assert FREE > 4 * 2**20
    check_compressed([file])


def test_a_public_table_is_checked_alike(file):
    file.write_bytes(WHOLE)
    (file.parent / "codes.csv.gz").write_bytes(gzip.compress(b"code,name\n1,a\n")[:-4])
    policy = POLICY + '[public]\ntables = { codes = "codes.csv.gz" }\n'
    (file.parent / "visits.toml").write_text(policy)
    with pytest.raises(SourceUnavailableError, match="codes"):
        protect(file)
