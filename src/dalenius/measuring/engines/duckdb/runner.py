"""What a statement needs to run: files, the types of their columns, and somebody who runs one SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.index import Index


class Runner(Protocol):
    """Knows its files and runs one SELECT on them."""

    @property
    def scan(self) -> str:
        """The files, in FROM."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The types of their columns."""

    @property
    def index(self) -> Index | None:
        """How much each unit holds, where that was prepared; it may be out of date, which its user checks."""
        return None

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """Runs generated SQL."""
