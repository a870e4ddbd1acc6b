"""A curator on another machine: `connect(url, token)`. The standard library is enough for it.

`analyst` is what people use; `calls` tries again, `transport` speaks HTTP, `wire` is what goes there and what comes
back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.remote.analyst import RemoteAnalyst, connect

__all__ = ["RemoteAnalyst", "connect"]
__getattr__, __dir__ = lazy(__name__, {"RemoteAnalyst": "analyst", "connect": "analyst"})
