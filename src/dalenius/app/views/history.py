"""What stands in the ledger, for people: entries in words, alarms, and who is suspended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dalenius.accounting.units import BITS
from dalenius.app.views import to_minute
from dalenius.ledger.chain import canonical
from dalenius.ledger.suspensions import ANALYST, DATASET, Standing, known_subjects, standings
from dalenius.releasing.kinds import verb_of
from dalenius.releasing.stored import kind_named

if TYPE_CHECKING:
    from dalenius.ledger.chain import Entry
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.suspensions import Subject


def details(entry: Entry) -> str:
    """What an entry says, in words."""
    try:
        return _tell(entry.kind, entry.data) + by(entry)
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


def _tell(kind: str, data: dict[str, Any]) -> str:
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
            return f"{who} {verb} {data['dataset']} with ε = {data['epsilon']:g}{periods}{made}{_sampled(data)}"
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
            return f"token {data['id']} for {whose}, until {to_minute(data['expires'])} UTC"
        case "suspension":
            who = data["analyst"] if "analyst" in data else f"data set {data['dataset']}"
            return f"{who} {'is suspended' if data['action'] == 'suspend' else 'may go on'} ({data['reason']})"
        case "publication" if "release" in data:
            return (
                f"ROWS PUBLISHED of {data['table']}, without a guarantee ({data['words']}): "
                f"ε no longer bounds what can be learned from {data['dataset']}"
            )
        case "limits":
            return f"{data['table']}: limits found for data version {data['data_version']}"
        case _:
            return ", ".join(f"{key}: {value}" for key, value in data.items() if key != "by")[:100]


def _sampled(charge: dict[str, Any]) -> str:
    """What sampled noise took of each total, which may be less than its price."""
    if "losses" not in charge:
        return ""
    taken = {whose or charge["dataset"]: int(each["units"]) / 2**BITS for whose, each in dict(charge["losses"]).items()}
    listed = " and ".join(f"{rho:.3g} from {whose}" for whose, rho in taken.items())
    return f"; its sampled noise took ρ = {listed}, at most {charge['rho']:.3g}"


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


def list_standings(ledger: Ledger) -> dict[str, list[dict[str, Any]]]:
    """Every analyst and every data set, by name, with how it stands."""
    found = standings(ledger)
    everybody = [standing_shown(each, found.get(each, Standing())) for each in known_subjects(ledger)]
    return {
        "analysts": [each for each in everybody if ANALYST in each],
        "datasets": [each for each in everybody if DATASET in each],
    }


def standing_shown(subject: Subject, standing: Standing) -> dict[str, Any]:
    """One of them, as JSON."""
    kind, name = subject
    return {kind: name, **standing.to_dict()}
