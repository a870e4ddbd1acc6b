"""Who is suspended; command line, server and web page tell the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.ledger.suspensions import ANALYST, DATASET, Standing, known_subjects, standings

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.suspensions import Subject


def listed(ledger: Ledger) -> dict[str, list[dict[str, Any]]]:
    """Every analyst and every data set, by name, with how it stands."""
    found = standings(ledger)
    everybody = [shown(each, found.get(each, Standing())) for each in known_subjects(ledger)]
    return {
        "analysts": [each for each in everybody if ANALYST in each],
        "datasets": [each for each in everybody if DATASET in each],
    }


def shown(subject: Subject, standing: Standing) -> dict[str, Any]:
    """One of them, as JSON."""
    kind, name = subject
    return {kind: name, **standing.to_dict()}
