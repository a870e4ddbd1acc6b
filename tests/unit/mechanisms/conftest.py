from __future__ import annotations

from collections.abc import Iterator

import pytest

from dalenius.mechanisms.noise import bits


class NoWords:
    """A source of random words that has none: whoever draws, fails."""

    def words(self, count: int):
        raise AssertionError(f"{count} random words were drawn")


@pytest.fixture
def nothing_drawn() -> Iterator[None]:
    """Within the test, every draw is an error."""
    with bits._injected(NoWords()):
        yield
