"""Where which page is, and who sees it."""

from __future__ import annotations

from typing import NamedTuple

from dalenius.ledger.tokens import Role

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
OVER = f"{SIGN_IN}?say=over"  # where the page of a session that has ended leads


class Place(NamedTuple):
    """One page."""

    name: str
    icon: str
    roles: tuple[Role, ...]


PAGES = {
    "/": Place("Ask", "query_stats", (Role.ANALYST,)),
    "/protect": Place("Protect", "shield", (Role.OWNER,)),
    "/budget": Place("Budget", "savings", tuple(Role)),
    "/ledger": Place("Ledger", "receipt_long", (Role.OWNER, Role.AUDITOR)),
    "/report": Place("Report", "description", (Role.OWNER, Role.AUDITOR)),
    "/about": Place("About this data", "info", tuple(Role)),
}
HOME = {Role.ANALYST: "/", Role.OWNER: "/protect", Role.AUDITOR: "/ledger"}
