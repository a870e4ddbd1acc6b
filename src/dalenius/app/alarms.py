"""Alarms: questions that were late or could not be answered; the server and the web page tell the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger


def alarms(ledger: Ledger, after: int = 0) -> list[dict[str, Any]]:
    """All since an entry, oldest first, each with whose question it was."""
    notes = [each for each in ledger.records(("note",), after) if "alarm" in each.data]
    charges = {each.data.get("charge") for each in notes}
    entries = ledger.records(("charge",), 0) if charges else ()
    whose = {each.number: each.data.get("analyst", "") for each in entries if each.number in charges}
    return [
        {"entry": each.number, "time": each.time, **each.data, "analyst": _whose(each.data, whose)} for each in notes
    ]


def _whose(data: Mapping[str, Any], charged: Mapping[int, str]) -> str:
    return str(data.get("analyst") or charged.get(data.get("charge", 0), ""))
