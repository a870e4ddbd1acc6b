"""The routes, one file per thing. A new router is added to `ROUTERS`."""

from __future__ import annotations

from dalenius.app.http.routes import (
    asking,
    files,
    health,
    ledger,
    models,
    people,
    publications,
    releases,
    synthetic,
    tables,
    workloads,
)

ROUTERS = (
    health.router,
    asking.router,
    workloads.router,
    synthetic.router,
    models.router,
    tables.router,
    releases.spending_router,
    releases.router,
    ledger.router,
    tables.policies_router,
    files.router,
    publications.router,
    people.router,
    people.tokens_router,
)
