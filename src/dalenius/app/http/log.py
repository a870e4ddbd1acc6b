"""The server's log: one JSON object a line, on stderr. No data, no SQL, no tokens, no paths as they were sent.

What is logged of a request is known beforehand (its route, the token's public id) or leaves anyway (its status). The
time that it took is the time at which it left, which is fixed for whatever touched data.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("dalenius.http")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "told", {}),
        }
        return json.dumps(told, ensure_ascii=True)


def start_log(*, quiet: bool = False) -> None:
    """Lines go to stderr from now on; when ``quiet``, only warnings do."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(logging.WARNING if quiet else logging.INFO)
    LOGGER.propagate = False
    # What uvicorn complains of is a line like any other; what an exception says is not told.
    below = logging.getLogger("uvicorn")
    below.handlers[:], below.propagate = [handler], False
    below.setLevel(logging.WARNING)
    # Libraries would write to stderr where nobody listens, and may quote: the SQL parser does.
    logging.getLogger().addHandler(logging.NullHandler())


def tell(event: str, *, level: int = logging.INFO, **told: Any) -> None:
    """One line. What is told must be known beforehand or public."""
    LOGGER.log(level, event, extra={"told": told})
