"""A fingerprint sees changes and copies, and costs a stat when nothing happened."""

import os
import shutil

import pytest

from dalenius.errors import InputError, SourceChangedError, SourceUnavailableError
from dalenius.tables import fingerprint as module
from dalenius.tables.fingerprint import Fingerprint, check_unchanged, expand, fingerprint


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
    with pytest.raises(SourceChangedError):  # a footer cannot vouch for the rows
        check_unchanged("t", found, [str(file)])
    file.write_bytes(b"not parquet at all")
    with pytest.raises(SourceUnavailableError):
        fingerprint([str(file)])
