"""What a plan needs of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Engine(Protocol):
    """What computes: it knows its files and runs one SELECT."""

    @property
    def scan(self) -> str:
        """The files, in FROM."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The types of their columns."""

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """Runs generated SQL."""
