"""Which files the owner may see and send over the network: plain ones below one folder."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from dalenius.app.http.files import check_listed, check_safe, columns_of, list_files, safe_name, take_in
from dalenius.errors import DaleniusError, InputError, NotAllowedError

WORDS = [
    "a",
    "in",
    "out",
    "loop",
    "home",
    ".",
    "..",
    "",
    ".hid",
    "*",
    "[a]",
    "t.csv",
    "out.csv",
    "in.csv",
    "\0",
    "p.csv",
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """data/ with everything that is not to be listed, beside what is."""
    folder = tmp_path_factory.mktemp("files")
    data = folder / "data"
    for each in (data / "a", data / ".hid", data / "home", data / "[a]", folder / "other"):
        each.mkdir(parents=True)
        (each / "t.csv").write_text("x\n1\n")
    for name in ("t.csv", "B.PARQUET", "c.csv.gz", ".t.csv", "*.csv", "t.toml", "line\nbreak.csv"):
        (data / name).write_text("x\n1\n")
    (Path(os.fsdecode(os.fsencode(data) + b"/\xff.csv"))).write_text("x\n1\n")
    (data / "out").symlink_to(folder / "other")
    (data / "out.csv").symlink_to(folder / "other" / "t.csv")
    (data / "in").symlink_to(data / "a")
    (data / "in.csv").symlink_to(data / "t.csv")
    (data / "loop").symlink_to(data / "loop")
    os.mkfifo(data / "p.csv")
    return data


def passes(name, root):
    try:
        check_listed(name, root, root / "home")
    except DaleniusError:
        return False
    return True


def test_what_is_listed_can_be_named_and_written_as_utf8(root):
    found = list_files(root, root / "home")
    assert found == ["B.PARQUET", "c.csv.gz", "t.csv", "a/t.csv"]
    assert all(passes(each, root) for each in found)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        ".",
        "..",
        "t.toml",
        ".t.csv",
        "./t.csv",
        "a//t.csv",
        "a/../t.csv",
        "../data/t.csv",
        "../other/t.csv",
        "../other/missing.csv",
        "/etc/passwd",
        "//etc/passwd.csv",
        ".hid/t.csv",
        "*.csv",
        "**/t.csv",
        "?.csv",
        "[a]/t.csv",
        "out.csv",
        "out/t.csv",
        "out/missing.csv",
        "in.csv",
        "in/t.csv",
        "loop/t.csv",
        "home/t.csv",
        "t.csv\0",
        "\0.csv",
        "line\nbreak.csv",
        "\udcff.csv",
    ],
)
def test_what_is_not_listed_is_refused_whether_it_is_there_or_not(root, name):
    with pytest.raises(NotAllowedError):
        check_listed(name, root, root / "home")


@pytest.mark.parametrize("name", ["missing.csv", "a/missing.csv", "missing/t.csv", "t.csv/t.csv", "p.csv"])
def test_what_could_be_listed_and_is_not_there_is_not_found(root, name):
    with pytest.raises(InputError) as refused:
        check_listed(name, root, root / "home")
    assert refused.value.status == 404


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("/".join))
def test_whatever_passes_is_listed(root, name):
    assert not passes(name, root) or name in list_files(root, root / "home")


@settings(max_examples=examples(200))
@given(st.text(alphabet="acsv./\\*?[]~ \0\n\ud800\U0001f600é", max_size=20))
def test_any_text_is_checked_without_a_crash(root, name):
    files = list_files(root, root / "home")
    for each in (name, f"{name}.csv"):
        assert passes(each, root) == (each in files)


@pytest.mark.parametrize("name", ["a.csv", "A_b-1.parquet", "a.csv.gz", "a.pq", "a" * 100 + ".csv"])
def test_a_plain_name_is_taken_as_it_is(name):
    check_safe(name)
    assert safe_name(name) == name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../a.csv", "a.csv"),
        ("/etc/a.csv", "a.csv"),
        ("b/a.csv", "a.csv"),
        ("b\\a.csv", "a.csv"),
        (".a.csv", "a.csv"),
        ("a b.csv", "a_b.csv"),
        ("a.CSV", "a.csv"),
        ("a.b.csv", "a_b.csv"),
        ("*a.csv", "a.csv"),
        ("a\0.csv", "a.csv"),
        ("a\n.csv", "a.csv"),
        ("é1.csv", "1.csv"),
        ("a" * 101 + ".csv", "a" * 100 + ".csv"),
    ],
)
def test_another_name_is_refused_with_the_one_that_would_do(name, safe):
    with pytest.raises(InputError) as refused:
        check_safe(name)
    assert refused.value.fix == f"Send it as {safe}."
    check_safe(safe)


def test_of_a_file_its_header_is_told_and_no_value(tmp_path):
    (tmp_path / "t.csv").write_text("id,note\n1,zanzibar\n2,zanzibar\n")
    assert columns_of("t.csv", tmp_path) == (("id", "BIGINT"), ("note", "VARCHAR"))


async def at_once(work):
    return work()


def test_of_two_files_of_one_name_that_come_in_together_one_is_kept(tmp_path):
    """Both begin before either is there: the later one replaces nothing, and leaves nothing."""

    async def both():
        gate = asyncio.Barrier(2)

        async def pieces(content):
            yield content[:1]
            await asyncio.wait_for(gate.wait(), 60)
            yield content[1:]

        return await asyncio.gather(
            *(take_in(pieces(each), "a.csv", tmp_path, at_once) for each in (b"id\n1\n", b"id\n2\n")),
            return_exceptions=True,
        )

    found = asyncio.run(both())
    kept = found.index("a.csv")
    assert isinstance(found[1 - kept], InputError)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a.csv": (b"id\n1\n", b"id\n2\n")[kept]}
