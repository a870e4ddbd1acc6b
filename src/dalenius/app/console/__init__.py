"""The console: a web page for owners, analysts and auditors, in the same server. Needs the extra `serve`.

Everything it does is also in the HTTP API; pages call the same service, in threads, under the same time rules. Text
from data or policies is only ever shown as text.

`PAGES` says where which page is, and who sees it.
"""

from __future__ import annotations

from typing import NamedTuple

from dalenius.ledger.tokens import Role

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
OVER = f"{SIGN_IN}?say=over"  # where the page of a session that has ended leads


class PageInfo(NamedTuple):
    """One page."""

    name: str
    icon: str
    roles: tuple[Role, ...]


PAGES = {
    "/": PageInfo("Ask", "query_stats", (Role.ANALYST,)),
    "/protect": PageInfo("Protect", "shield", (Role.OWNER,)),
    "/budget": PageInfo("Budget", "savings", tuple(Role)),
    "/ledger": PageInfo("Ledger", "receipt_long", (Role.OWNER, Role.AUDITOR)),
    "/report": PageInfo("Report", "description", (Role.OWNER, Role.AUDITOR)),
    "/about": PageInfo("About this data", "info", tuple(Role)),
}
HOME = {Role.ANALYST: "/", Role.OWNER: "/protect", Role.AUDITOR: "/ledger"}
