"""A privacy curator: it stands between sensitive tables and the people who ask about them.

Public names load on first use, so that `import dalenius` stays cheap however large the library grows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dalenius._version import __version__

if TYPE_CHECKING:
    from dalenius.accounting.accountant import account
    from dalenius.accounting.guarantees import RDP, ZCDP, ApproxDP, PureDP
    from dalenius.accounting.neighbors import Neighbors
    from dalenius.accounting.pld import PLD
    from dalenius.errors import DaleniusError

# Public name → the module that defines it. A name stands in three places, which a contract test keeps equal:
# here, in the imports above (for type checkers) and in __all__ (for readers and linters).
_EXPORTS = {
    "ApproxDP": "dalenius.accounting.guarantees",
    "DaleniusError": "dalenius.errors",
    "Neighbors": "dalenius.accounting.neighbors",
    "PLD": "dalenius.accounting.pld",
    "PureDP": "dalenius.accounting.guarantees",
    "RDP": "dalenius.accounting.guarantees",
    "ZCDP": "dalenius.accounting.guarantees",
    "account": "dalenius.accounting.accountant",
}

__all__ = [
    "PLD",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "DaleniusError",
    "Neighbors",
    "PureDP",
    "__version__",
    "account",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value  # the next access no longer comes here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
