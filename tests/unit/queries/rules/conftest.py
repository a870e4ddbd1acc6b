"""One data set of several tables for all who ask about it; hardly anything is charged to it."""

from __future__ import annotations

import pytest
from tests.shop import Shop


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.protected(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="session")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """With room for seven rows of one person in each table."""
    return Shop.protected(tmp_path_factory.mktemp("narrow"), rows=7)
