from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.errors import HomeMissingError
from dalenius.ledger.home import find_home


@pytest.fixture(autouse=True)
def _no_home_in_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DALENIUS_HOME", raising=False)


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path.resolve()


def test_the_nearest_folder_upwards_is_found(tmp_path: Path):
    far, near = folder(tmp_path / ".dalenius"), folder(tmp_path / "a/.dalenius")
    below = folder(tmp_path / "a/b/c")
    assert find_home(start=below) == near
    assert find_home(start=tmp_path) == far


def test_the_option_beats_the_variable_and_the_variable_beats_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    by_option, by_variable = folder(tmp_path / "option"), folder(tmp_path / "variable")
    folder(tmp_path / ".dalenius")
    monkeypatch.setenv("DALENIUS_HOME", str(by_variable))
    assert find_home(start=tmp_path) == by_variable
    assert find_home(by_option, start=tmp_path) == by_option


def test_a_named_home_that_is_missing_is_never_replaced_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder(tmp_path / ".dalenius")
    with pytest.raises(HomeMissingError, match="--home"):
        find_home(tmp_path / "missing", start=tmp_path)
    monkeypatch.setenv("DALENIUS_HOME", str(tmp_path / "missing"))
    with pytest.raises(HomeMissingError, match="DALENIUS_HOME"):
        find_home(start=tmp_path)


def test_without_a_home_the_error_names_the_folders_tried(tmp_path: Path):
    start = folder(tmp_path / "a")
    with pytest.raises(HomeMissingError) as caught:
        find_home(start=start)
    assert caught.value.exit_code == 5
    assert caught.value.looked_in[:2] == (str(start / ".dalenius"), str(tmp_path.resolve() / ".dalenius"))
    assert all(tried in caught.value.why for tried in caught.value.looked_in)
