"""Which files a policy from the network may name: those below one folder, whatever links and dots are on the way."""

import glob
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from dalenius.app.http.files import check_inside, paths_in, policy_from
from dalenius.errors import NotAllowedError

WORDS = ["a", "b", "..", ".", "", "in", "out", "loop", "hop", "*", "**", "[io]n", "t.parquet", "~", "é", "\0", "in\n"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """data/ with links that stay inside, that lead out, and that lead nowhere."""
    folder = tmp_path_factory.mktemp("places")
    data, other = folder / "data", folder / "other"
    for each in (data / "a" / "b", other / "b"):
        each.mkdir(parents=True)
    for each in (data, data / "a", data / "a" / "b", other, other / "b", folder):
        (each / "t.parquet").write_bytes(b"")
    (data / "in").symlink_to(data / "a")
    (data / "out").symlink_to(other)
    (data / "hop").symlink_to(data / "out")
    (data / "loop").symlink_to(data / "loop")
    return data.resolve()


def passes(path, root):
    try:
        check_inside(path, root)
    except NotAllowedError:
        return False
    return True


@pytest.mark.parametrize(
    "path",
    ["t.parquet", "a/t.parquet", "a/b/*.parquet", "in/t.parquet", "in/b/t.parquet", "missing", "./a/t.parquet", "a//b"],
)
def test_what_stays_inside_passes(root, path):
    assert passes(path, root) and passes(str(root / path), root)


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../t.parquet",
        "a/../t.parquet",
        "out",
        "out/t.parquet",
        "out/missing",
        "hop/b/t.parquet",
        "loop",
        "loop/x",
        "*",
        "o*/t.parquet",
        "**/t.parquet",
        "/",
        "/etc/passwd",
        "/etc/*",
        "//etc/passwd",
        "a\0b",
        "\0",
    ],
)
def test_what_leads_out_does_not(root, path):
    assert not passes(path, root)


def test_a_folder_that_only_begins_alike_is_outside(root):
    beside = root.parent / f"{root.name} more"
    beside.mkdir(exist_ok=True)
    assert not passes(str(beside / "t.parquet"), root)


def test_no_folder_outside_is_listed(root, monkeypatch):
    listed: list[str] = []
    scan = os.scandir

    def noted(path="."):
        listed.append(str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", noted)
    for path in ("/etc/*", "/**", "../*", str(root.parent / "other" / "*")):
        assert not passes(path, root)
    assert not listed


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), st.booleans())
def test_whatever_passes_ends_inside(root, parts, absolute):
    path = "/".join(parts)
    path = str(root.parent / path) if absolute and "\0" not in path else path
    if passes(path, root):
        for each in (str(root / path), *glob.glob(str(root / path), recursive=True)):  # noqa: PTH207 (absolute)
            assert Path(os.path.realpath(each)).is_relative_to(root)


@settings(max_examples=examples(200))
@given(st.text(alphabet="abiou./\\*?[]!~ \0\n\ud800\U0001f600é", max_size=20))
def test_any_text_is_checked_without_a_crash(root, path):
    assert not passes(path, root) or Path(os.path.realpath(root / path)).is_relative_to(root)


TEXT = """
[table]
name = "t"
source = ["one", "two"]
unit = "id"
[columns.a]
type = "category"
keys = { file = "three" }
[public.p]
source = "four"
[public.q]
source = ["five"]
"""


def test_every_path_of_a_policy_is_named():
    assert sorted(paths_in(TEXT)) == ["five", "four", "one", "three", "two"]


@pytest.mark.parametrize("text", ["", "[table", "table = 1", "columns = [1]", "[columns]\na = 1", "public = 'x'"])
def test_what_is_no_policy_names_nothing(text):
    assert list(paths_in(text)) == []


def test_without_a_folder_no_policy_is_taken():
    with pytest.raises(NotAllowedError, match="takes no policies"):
        policy_from(TEXT, None)


def test_each_place_of_a_path_is_checked(root):
    for place in ("one", "two", "three", "four", "five"):
        with pytest.raises(NotAllowedError, match="outside"):
            policy_from(TEXT.replace(f'"{place}"', '"../x"'), root)
