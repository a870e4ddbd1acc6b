"""What an analyst may do, near or far: `Analyst` and `RemoteAnalyst` are both such."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Balance
    from dalenius.measuring.plan import Limits
    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release
    from dalenius.releasing.kinds import Shown
    from dalenius.releasing.stored import Stored


class Asking(Protocol):
    """Whoever asks questions: write programs against this, and they run on a home of their own or against a server."""

    @property
    def name(self) -> str:
        """Whose allotment pays."""
        ...

    def preview(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        error: float | Mapping[str, float] | None = None,
        confidence: float = 0.95,
        delta: float | None = None,
        limits: Limits | None = None,
    ) -> Preview:
        """Price and expected error, for nothing."""
        ...

    def ask(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        error: float | Mapping[str, float] | None = None,
        confidence: float = 0.95,
        delta: float | None = None,
        limits: Limits | None = None,
        idempotency_key: str | None = None,
    ) -> Release:
        """Asks; charged before the data is looked at."""
        ...

    def obtain(self, kind: str, request: Any, *, idempotency_key: str | None = None) -> Shown:
        """A release of any kind."""
        ...

    def releases(self) -> list[Stored]:
        """What this analyst has paid for and was given, oldest first."""
        ...

    def budget(self) -> dict[str, Balance]:
        """What is left of this analyst's allotments, by data set."""
        ...

    def history(self) -> list[dict[str, Any]]:
        """Every charge of this analyst, oldest first."""
        ...
