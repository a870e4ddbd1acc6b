"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

import pytest
import typer.main
from hypothesis import settings

from dalenius.app import cli

LONG = os.environ.get("DALENIUS_LONG") == "1"

# Derandomised by default, so that a red build means a change; DALENIUS_EXPLORE=1 looks for new examples.
# No deadline: shared machines stutter, and speed has tests of its own.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100 if LONG else 40)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("explore" if os.environ.get("DALENIUS_EXPLORE") == "1" else "fixed")


# A process builds its command line once; the many calls of one test process share theirs.
_SHARED = pytest.MonkeyPatch()
_SHARED.setattr("dalenius.app.cli.build", cache(cli.build))
_SHARED.setattr("typer.main.get_command", cache(typer.main.get_command))


@pytest.fixture(scope="session")
def rounds() -> Callable[[int], int]:
    """`rounds(full)` is `full` in `make test-long`, a twentieth of it in `make test`."""
    return lambda full: full if LONG else max(1, full // 20)
