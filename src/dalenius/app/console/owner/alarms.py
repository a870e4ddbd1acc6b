"""Alarms: questions that were late or could not be answered, with what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from dalenius.app.alarms import alarms as all_alarms
from dalenius.app.console.frame import attempt, card, empty
from dalenius.queries.release import shown

if TYPE_CHECKING:
    from dalenius.app.console.sessions import Session

_MOST = 50
_WHAT = {
    "late": "The answer was not ready in time. It left as a refusal at the cap, and was charged.",
    "suspended": "Too many answers were late. New questions are refused until you lift it, under 'Analysts'.",
    "failed": "The engine could not answer. The question was charged.",
    "index failed": "The contribution index could not be read. The question was charged. Protect the table again.",
    "source changed": "The files are not what was protected. The question was charged. Put them back, or refresh.",
}
_ADVICE = (
    "One now and then: the machine is short of memory, disk or processors. Many: raise answer and cap in [time] of the "
    "policy ('Change' on the table), or run fewer questions at once. All from one analyst: somebody may be probing "
    "what makes a question slow; talk to them, or revoke the token."
)


async def alarms(session: Session, tab: ui.tab) -> None:
    """Shows them; how many there are stands on the tab."""
    place, ledger = ui.column().classes("w-full gap-2"), session.service.curator.ledger
    found = await attempt(session, "GET /v1/alarms", lambda: all_alarms(ledger)[::-1], place)
    if found is None:
        return
    with place:
        if not found:
            empty("No alarms: every question was answered in time.", "notifications_none")
            return
        tab.props["label"] = f"Alarms ({len(found)})"
        ui.label(_ADVICE)
        for each in found[:_MOST]:
            with card().classes("gap-0"):
                when = str(each["time"])[:19].replace("T", " ")
                who = f" · {shown(each['analyst'], 60)}" if each["analyst"] else ""
                ui.label(f"{when} UTC · {each.get('dataset', '')} · charge {each.get('charge', '')}{who}").classes(
                    "d-number"
                )
                ui.label(_WHAT.get(str(each["alarm"]), shown(each["alarm"], 80))).classes("d-muted")
        if len(found) > _MOST:
            ui.label(f"{len(found) - _MOST:,} more are in the ledger.").classes("d-muted text-caption")
