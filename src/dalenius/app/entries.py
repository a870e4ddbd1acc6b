"""Entries of the ledger, in words; the command line and the web page tell the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.ledger.chain import canonical
from dalenius.releasing.kinds import verb_of
from dalenius.releasing.stored import kind_named

if TYPE_CHECKING:
    from dalenius.ledger.chain import Entry


def details(entry: Entry) -> str:
    """What an entry says, in words."""
    try:
        return _told(entry.kind, entry.data) + by(entry)
    except (KeyError, TypeError, ValueError):  # an owner action may hold anything
        pass
    try:
        return canonical({key: value for key, value in entry.data.items() if key != "by"})[:100] + by(entry)
    except ValueError:
        return entry.body[:100]


def by(entry: Entry) -> str:
    """Who did it, behind what was done; nothing where the entry does not say."""
    who = entry.data.get("by") if entry.kind not in {"charge", "grant", "answer", "failure"} else None
    return f", by {who}" if who and isinstance(who, str) else ""


def _told(kind: str, data: dict[str, Any]) -> str:
    match kind:
        case "charge":
            periods = f" for {', '.join(data['periods'])}" if data["periods"] != [""] else ""
            who = data["analyst"] or "the owner"
            made = (
                f", made from the answer to entry {data['shares']}: the allotment alone pays"
                if "shares" in data
                else ""
            )
            verb = verb_of(kind_named(data))
            return f"{who} {verb} {data['dataset']} with ε = {data['epsilon']:g}{periods}{made}"
        case "answer":
            return f"answered entry {data['charge']}"
        case "failure":
            return f"entry {data['charge']} ended without an answer"
        case "grant":
            return f"{data['analyst']} got the answer to entry {data['charge']} from the allotment alone"
        case "budget":
            budget = data["budget"]
            return f"{data['dataset']}: ε = {budget['epsilon']:g}, δ = {budget['delta']:g} ({budget['accounting']})"
        case "allotment" if data["epsilon"] == 0:
            return f"{data['analyst']} may spend no more of {data['dataset']}"
        case "allotment":
            return f"{data['analyst']} may spend ε = {data['epsilon']:g} of {data['dataset']}"
        case "policy":
            return f"{data['table']}: version {data['version'][:12]}, data version {data['data_version']}"
        case "refresh":
            why = f" ({data['reason']})" if data["reason"] else ""
            return f"{data['table']}: data version {data['data_version']}{why}"
        case "closed":
            return f"{data['table']} is closed to everyone: {data['why']}"
        case "epoch":
            return (
                f"NEW PEOPLE in {data['dataset']}, epoch {data['epoch']}: the budget starts afresh ({data['reason']})"
            )
        case "token" if data["action"] == "revoke":
            return f"token {data['id']} is revoked"
        case "token":
            whose = data["analyst"] or f"the {data['role']}"
            return f"token {data['id']} for {whose}, until {data['expires'][:16].replace('T', ' ')} UTC"
        case "suspension":
            who = data["analyst"] if "analyst" in data else f"data set {data['dataset']}"
            return f"{who} {'is suspended' if data['action'] == 'suspend' else 'may go on'} ({data['reason']})"
        case "limits":
            return f"{data['table']}: limits found for data version {data['data_version']}"
        case _:
            return ", ".join(f"{key}: {value}" for key, value in data.items() if key != "by")[:100]
