"""What those who run a server may see of it: lines in a log, and counters. Nothing per row, nothing per analyst.

The log is one JSON object a line, on stderr: no data, no SQL, no tokens, no paths as they were sent. What is logged of
a request is known beforehand (its route, the token's public id) or leaves anyway (its status). How long a request took
is only seen as the time at which it left, which is fixed for whatever touched data.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

LOGGER = logging.getLogger("dalenius.http")
METRICS_MEDIA = CONTENT_TYPE_LATEST
disable_created_metrics()  # type: ignore[no-untyped-call]


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


class Metrics:
    """The counters of one server process."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter(
            "dalenius_requests_total",
            "Requests, by route and status.",
            ["method", "route", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "dalenius_request_seconds",
            "From a request's first byte until its answer left.",
            ["route"],
            buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100),
            registry=registry,
        )
        self.open = Gauge("dalenius_requests_open", "Requests that are being answered.", registry=registry)
        self.looking = Counter("dalenius_questions_total", "Questions that were charged and looked.", registry=registry)
        self.refused = Counter(
            "dalenius_refusals_total", "Requests that were refused, by code.", ["code"], registry=registry
        )

    def text(self) -> bytes:
        """In Prometheus' format."""
        return bytes(generate_latest(self._registry))
