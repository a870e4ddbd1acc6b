"""Who asks, with all that an asker's releases go through."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalenius.ledger.requests import OWNER

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.measuring.engines.sources import Engines
    from dalenius.releasing.pacing import Pacer
    from dalenius.tables.registry import Registry


@dataclass(frozen=True)
class Asker:
    """One analyst, or the owner.

    Attributes:
        name: Whose allotment pays; `OWNER`: the data set alone.
        ledger: Where it is charged.
        registry: The tables.
        engines: Where they are read.
        pacer: When releases leave (`pacing`); None: as soon as they are ready.
        resumes: Only what was paid for before is taken up, and nothing is charged.
        free: Whether what is free is answered too.
    """

    name: str
    ledger: Ledger
    registry: Registry
    engines: Engines
    pacer: Pacer | None = None
    resumes: bool = False
    free: bool = True

    @property
    def is_owner(self) -> bool:
        """Whether it is the owner, who pays from the data set and is never suspended."""
        return self.name == OWNER

    @property
    def whose(self) -> str:
        """By what name work is counted as this asker's own (`metering`)."""
        return f"{self.ledger.home}\0{self.name}"

    @contextmanager
    def own_work(self) -> Iterator[None]:
        """Reading, planning and previews, public questions as well: for a server, within this asker's share.

        It counts as the asker's: who makes an own question late by more of them is no victim of others.
        """
        from dalenius.measuring.engines.duckdb.confined import planning
        from dalenius.measuring.engines.duckdb.metering import metered

        with planning(), metered(self.whose):
            yield

    def remaining(self, dataset: str, periods: tuple[str, ...]) -> dict[str, dict[str, float]]:
        """The largest ε and δ that one more release like this may type: in the scarcest of its periods."""
        found = {}
        for who, analyst in (("analyst", self.name), ("dataset", "")):
            balances = [self.ledger.balance(dataset, analyst, period) for period in periods]
            found[who] = {
                "epsilon": min(each.remaining_epsilon for each in balances),
                "delta": min(each.remaining_delta for each in balances),
            }
        return found

    def salt(self, dataset: str) -> str:
        """The key of the hash that chooses groups: fixed for a data set, unknown to analysts."""
        return hmac.new(self.ledger.keys.chain, b"groups " + dataset.encode(), hashlib.sha256).hexdigest()
