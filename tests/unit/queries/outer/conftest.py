"""The shop's tables, protected once for all tests here; each test has its own price, so that nothing is free before."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.shop import BUDGET, Shop

from dalenius.measuring.engines.duckdb import child, confined

# enough for many questions, and for such as have hardly any noise
WIDE = BUDGET.replace("epsilon = 50.0", "epsilon = 100000.0")


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Rows of one person are limited to 30 in orders: none has more, so nothing is cut off."""
    return Shop.protected(tmp_path_factory.mktemp("shop"), rows=30, budget=WIDE)


@pytest.fixture
def charged(shop: Shop) -> Callable[[], int]:
    """How many charges there are."""
    return lambda: sum(1 for _ in shop.ana._asker.ledger.records(("charge",)))


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `run_inside`."""
    run_inside(monkeypatch)


def run_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child's work in this process, and without its limits: a process takes a third of a second to start."""

    def answered(task: Any, *_: Any) -> bytes:
        return child._found(json.loads(json.dumps(task)))

    monkeypatch.setattr(child, "confine", lambda *_: None)
    monkeypatch.setattr(confined, "_answered", answered)
