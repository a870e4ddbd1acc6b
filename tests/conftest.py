"""What all tests share."""

from __future__ import annotations

import gc
import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
import typer.main
from hypothesis import settings

from dalenius.app import cli
from dalenius.measuring.engines.duckdb import confined

LONG = os.environ.get("DALENIUS_LONG") == "1"

# Derandomised by default, so that a red build means a change; DALENIUS_EXPLORE=1 looks for new examples.
# No deadline: shared machines stutter, and speed has tests of its own.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100 if LONG else 40)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("explore" if os.environ.get("DALENIUS_EXPLORE") == "1" else "fixed")


def examples(full: int) -> int:
    """How many examples a test takes that needs more than others: all in `make test-long`, else a fifth, or 40."""
    return full if LONG else min(full, max(40, full // 5))


# A process builds its command line once; the many calls of one test process share theirs.
_SHARED = pytest.MonkeyPatch()
_SHARED.setattr("dalenius.app.cli.build", cache(cli.build))
_SHARED.setattr("typer.main.get_command", cache(typer.main.get_command))

# Each of the test processes has a core to itself, and tables here are small: one thread for each DuckDB, where the code
# does not ask for more.
_connect = duckdb.connect


def _on_one_thread(
    database: str | Path = ":memory:", read_only: bool = False, config: dict[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    return _connect(database, read_only, {"threads": 1, **(config or {})})


_SHARED.setattr("duckdb.connect", _on_one_thread)

# The child that works out what is public gives way to all other work: where other tests keep the cores busy, a fifth of
# a second of it would take ten.
_SHARED.setattr(confined, "_CHILD", f"import os; os.nice = lambda _: 0; {confined._CHILD}")


# Next to nothing of what is loaded and collected is rubbish, and to look for it takes a seventh of the time.
gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays to the end: nobody need look through it for rubbish again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def rounds() -> Callable[[int], int]:
    """`rounds(full)` is `full` in `make test-long`, a twentieth of it in `make test`."""
    return lambda full: full if LONG else max(1, full // 20)


# Tests in these files share a home, and each looks at the error of its own question: what others there have asked must
# not make it known, or more exact, by the order in which they happen to run.
_BY_THEMSELVES = re.compile(
    r"tests/unit/(queries/(outer/test_splitting|test_(average|total)_intervals|test_scaled_answers|test_accuracy"
    r"|test_preview_by_error|test_found_keys|test_quantile_lists)|test_analyst(_limits)?)\.py$"
)


@pytest.fixture(autouse=True)
def _by_itself(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions of some tests are answered as if nothing else had been asked (`dalenius.queries.known`)."""
    if _BY_THEMSELVES.search(str(request.path)):
        monkeypatch.setattr("dalenius.queries.known.deciding.candidates", lambda *_: [])
        monkeypatch.setattr("dalenius.queries.known.sharpening.sharpen", lambda *_: None)


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty folder, at the same path for every test of this process (`tests.kept`)."""
    found = tmp_path_factory.getbasetemp() / "place"
    found.mkdir()
    yield found
    shutil.rmtree(found)


# Cases of a fuzzer's short form. All planted bugs but one show within them (`test_planted_bugs`, `test_joined_fuzzer`),
# so a clean run of just these, and of those about that one, says that none of those bugs is there.
NEAR_PLANTED = 170


@pytest.fixture(scope="session")
def cases() -> int:
    """How many cases a clean run of a fuzzer takes: 20,000 in `make test-long`."""
    return 20_000 if LONG else NEAR_PLANTED
