"""A fingerprint sees changes and copies, and costs a stat when nothing happened."""

import os
import shutil
from pathlib import Path

import pytest

from dalenius.errors import InputError, SourceChangedError, SourceUnavailableError
from dalenius.tables.sources import fingerprint as module
from dalenius.tables.sources.fingerprint import Fingerprint, check_unchanged, expand, fingerprint


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"user_id,x\n1,{name}\n")
    return tmp_path


def test_globs_lists_and_links_are_frozen_as_absolute_files(folder):
    (folder / "link.csv").symlink_to(folder / "a.csv")
    (folder / "odd[1].csv").write_text("x\n")
    assert expand([str(folder / "[ab].csv")]) == (folder / "a.csv", folder / "b.csv")
    assert expand([str(folder / "link.csv"), str(folder / "a.csv")]) == (folder / "a.csv",)
    assert expand([str(folder / "odd[1].csv")]) == (folder / "odd[1].csv",)
    with pytest.raises(SourceUnavailableError, match="no file"):
        expand([str(folder / "*.parquet")])


def test_a_source_is_of_one_known_form(folder):
    (folder / "c.parquet").touch()
    (folder / "d.xlsx").touch()
    for source in ([str(folder / "*")], [str(folder / "d.xlsx")]):
        with pytest.raises(InputError, match="form"):
            fingerprint(source)


def test_a_fingerprint_round_trips_and_knows_copies(folder):
    found = fingerprint([str(folder / "*.csv")])
    assert Fingerprint.from_dict(found.to_dict()) == found and found.form == "csv"
    shutil.copy(folder / "a.csv", folder / "copy.csv")
    copy = fingerprint([str(folder / "copy.csv")])
    assert copy.shares(found) and copy.content != found.content
    (folder / "copy.csv").write_text("user_id,x\n2,c\n")
    assert not fingerprint([str(folder / "copy.csv")]).shares(found)


def test_changes_are_seen_and_a_touch_is_none(folder):
    source = [str(folder / "*.csv")]
    found = fingerprint(source)
    check_unchanged("t", found, source)
    os.utime(folder / "a.csv", ns=(1, 1))
    check_unchanged("t", found, source)
    (folder / "a.csv").write_text("user_id,x\n1,z\n")  # the same size
    with pytest.raises(SourceChangedError) as caught:
        check_unchanged("t", found, source)
    assert caught.value.exit_code == 5 and "refresh t" in caught.value.fix and "z" not in caught.value.message
    shutil.rmtree(folder / "sub", ignore_errors=True)


def test_a_file_that_comes_or_goes_is_a_change(folder):
    source = [str(folder / "*.csv")]
    found = fingerprint(source)
    (folder / "c.csv").write_text("user_id,x\n")
    with pytest.raises(SourceChangedError):
        check_unchanged("t", found, source)
    (folder / "c.csv").unlink()
    (folder / "b.csv").unlink()
    with pytest.raises(SourceChangedError):
        check_unchanged("t", found, source)


def test_large_parquet_is_known_by_its_footer(folder, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr(module, "LARGE", 10)
    file = folder / "big.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3]}), file)
    found = fingerprint([str(file)])
    assert found.files[0].method == "footer"
    shutil.copy(file, folder / "again.parquet")
    assert fingerprint([str(folder / "again.parquet")]).shares(found)
    os.utime(file, ns=(1, 1))
    check_unchanged("t", found, [str(file)])  # all of its bytes are the same
    other = folder / "other.parquet"
    content = bytearray(file.read_bytes())
    content[4] ^= 1  # not in the footer, which cannot vouch for the rows
    other.write_bytes(content)
    assert fingerprint([str(other)]).shares(found) and not fingerprint([str(other)]).same_content(found)
    file.write_bytes(content)
    with pytest.raises(SourceChangedError):
        check_unchanged("t", found, [str(file)])
    file.write_bytes(b"not parquet at all")
    with pytest.raises(SourceUnavailableError):
        fingerprint([str(file)])


# --- size and modification time can be set back


def rewritten(file: Path, content: bytes, how: str) -> None:
    """Other content of the same size, with the same modification time."""
    before = file.stat()
    assert len(content) == before.st_size
    if how == "in place":
        with file.open("r+b") as opened:
            opened.write(content)
    else:
        fresh = file.with_suffix(".new")
        fresh.write_bytes(content)
        fresh.replace(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.mark.parametrize("how", ["in place", "by rename"])
def test_a_file_rewritten_with_its_old_size_and_time_is_a_change(folder, how):
    source = [str(folder / "a.csv")]
    found = fingerprint(source)
    rewritten(folder / "a.csv", (folder / "a.csv").read_bytes().replace(b"1", b"9"), how)
    with pytest.raises(SourceChangedError):
        check_unchanged("t", found, source)


def counting(monkeypatch) -> list[Path]:
    """Every file whose content is hashed from now on."""
    read: list[Path] = []
    hashed = module._sha256

    def noted(path: Path) -> str:
        read.append(path)
        return hashed(path)

    monkeypatch.setattr(module, "_sha256", noted)
    return read


@pytest.mark.parametrize("how", ["in place", "by rename"])
def test_the_same_bytes_written_anew_are_no_change_and_are_read_once(folder, how, monkeypatch):
    source = [str(folder / "a.csv")]
    found = fingerprint(source)
    read = counting(monkeypatch)
    check_unchanged("t", found, source)
    assert not read
    rewritten(folder / "a.csv", (folder / "a.csv").read_bytes(), how)
    for _ in range(3):
        check_unchanged("t", found, source)
    assert len(read) == 1


def test_a_fingerprint_of_an_earlier_version_is_checked_by_content_once(folder, monkeypatch):
    source = [str(folder / "a.csv")]
    told = fingerprint(source).to_dict()
    for file in told["files"]:
        for name in ("whole", "device", "inode", "ctime_ns"):
            del file[name]
    found = Fingerprint.from_dict(told)
    read = counting(monkeypatch)
    for _ in range(3):
        check_unchanged("t", found, source)
    assert len(read) == 1
    rewritten(folder / "a.csv", (folder / "a.csv").read_bytes().replace(b"1", b"9"), "in place")
    with pytest.raises(SourceChangedError):
        check_unchanged("t", found, source)


def test_a_large_file_of_an_earlier_version_may_not_change_while_a_process_runs(folder, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr(module, "LARGE", 10)
    file = folder / "big.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3]}), file)
    told = fingerprint([str(file)]).to_dict()
    for name in ("whole", "device", "inode", "ctime_ns"):
        del told["files"][0][name]
    found = Fingerprint.from_dict(told)
    check_unchanged("t", found, [str(file)])
    content = bytearray(file.read_bytes())
    content[4] ^= 1
    rewritten(file, bytes(content), "in place")
    with pytest.raises(SourceChangedError):
        check_unchanged("t", found, [str(file)])
