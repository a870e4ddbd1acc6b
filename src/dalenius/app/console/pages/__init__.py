"""The pages, one file each; `PAGES` puts them into a server."""

from __future__ import annotations

from dalenius.app.console.pages import about, ask, budget, ledger, report, sign_in

INSTALL = (sign_in.install, ask.install, budget.install, ledger.install, report.install, about.install)
