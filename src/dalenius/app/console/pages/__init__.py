"""The pages, one file each; `INSTALL` puts them into a server."""

from __future__ import annotations

from dalenius.app.console.pages import (
    about,
    ask,
    budget,
    lab,
    ledger,
    protect,
    publish,
    report,
    synthesize,
    synthetic,
    train,
    workload,
)

INSTALL = tuple(
    each.install
    for each in (ask, workload, synthesize, train, budget, protect, synthetic, publish, ledger, report, lab, about)
)
