"""What the owner's monitoring may see: counts of requests and questions. Nothing per row, nothing per analyst.

How long a question took is only seen as the time at which it left, which was fixed beforehand.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

MEDIA = CONTENT_TYPE_LATEST
disable_created_metrics()  # type: ignore[no-untyped-call]


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
