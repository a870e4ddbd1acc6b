"""A privacy curator: it stands between sensitive tables and the people who ask about them.

Public names load on first use, so that `import dalenius` stays cheap however large the library grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy
from dalenius._version import __version__

if TYPE_CHECKING:
    from dalenius.accounting.accountant import account
    from dalenius.accounting.guarantees import RDP, ZCDP, ApproxDP, PureDP
    from dalenius.accounting.neighbors import Neighbors
    from dalenius.accounting.pld import PLD
    from dalenius.analyst import Analyst, Asking
    from dalenius.curator import Curator
    from dalenius.errors import DaleniusError
    from dalenius.learning.folder import load_model
    from dalenius.learning.release import TrainedModel
    from dalenius.ledger.budgets import Balance, Budget
    from dalenius.measuring.plan import Limits
    from dalenius.owner.protect import Protected
    from dalenius.owner.refresh import Refreshed
    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release
    from dalenius.releasing.stored import Stored
    from dalenius.remote.analyst import RemoteAnalyst, connect
    from dalenius.tables.policy import Policy
    from dalenius.tables.registry import Version

# Public name → the module that defines it. A name stands in three places, which a contract test keeps equal:
# here, in the imports above (for type checkers) and in __all__ (for readers and linters).
_EXPORTS = {
    "Analyst": "analyst",
    "ApproxDP": "accounting.guarantees",
    "Asking": "analyst",
    "Balance": "ledger.budgets",
    "Budget": "ledger.budgets",
    "Curator": "curator",
    "DaleniusError": "errors",
    "Limits": "measuring.plan",
    "Neighbors": "accounting.neighbors",
    "PLD": "accounting.pld",
    "Policy": "tables.policy",
    "Preview": "queries.preview",
    "Protected": "owner.protect",
    "PureDP": "accounting.guarantees",
    "RDP": "accounting.guarantees",
    "Refreshed": "owner.refresh",
    "Release": "queries.release",
    "RemoteAnalyst": "remote.analyst",
    "Stored": "releasing.stored",
    "TrainedModel": "learning.release",
    "Version": "tables.registry",
    "ZCDP": "accounting.guarantees",
    "account": "accounting.accountant",
    "connect": "remote.analyst",
    "load_model": "learning.folder",
}

__all__ = [
    "PLD",
    "RDP",
    "ZCDP",
    "Analyst",
    "ApproxDP",
    "Asking",
    "Balance",
    "Budget",
    "Curator",
    "DaleniusError",
    "Limits",
    "Neighbors",
    "Policy",
    "Preview",
    "Protected",
    "PureDP",
    "Refreshed",
    "Release",
    "RemoteAnalyst",
    "Stored",
    "TrainedModel",
    "Version",
    "__version__",
    "account",
    "connect",
    "load_model",
]

__getattr__, _ = lazy(__name__, _EXPORTS)


def __dir__() -> list[str]:
    return sorted(__all__)
