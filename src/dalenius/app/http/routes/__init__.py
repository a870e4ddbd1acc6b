"""The routes, one file per thing. A new file is added to `ROUTERS`."""

from __future__ import annotations

from dalenius.app.http.routes import (
    analysts,
    asking,
    files,
    health,
    ledger,
    policies,
    releases,
    report,
    spending,
    suspensions,
    tables,
    tokens,
)

ROUTERS = (
    health.router,
    asking.router,
    tables.router,
    spending.router,
    releases.router,
    ledger.router,
    report.router,
    policies.router,
    files.router,
    analysts.router,
    suspensions.router,
    tokens.router,
)
