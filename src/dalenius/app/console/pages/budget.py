"""Budget: what is left, how it went, and what the rest would buy."""

from __future__ import annotations

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.balances import Total, totals, what_it_buys
from dalenius.app.burn_down import Name, points
from dalenius.app.console.charts import burn_down
from dalenius.app.console.frame import attempt, empty, page
from dalenius.app.console.sessions import Session, Sessions
from dalenius.ledger.budgets import rounded_down
from dalenius.ledger.tokens import Role


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/budget", "Budget", sessions)
    async def budget(session: Session) -> None:
        found = await attempt(session, lambda: _found(session)) or []
        if not found:
            empty("No data set has a budget that you may see.", "savings")
        for total, line in found:
            _shown(total, line)


def _found(session: Session) -> list[tuple[Total, list[tuple[str, float]]]]:
    ledger = session.service.curator.ledger
    mine = session.token.analyst if session.token.role is Role.ANALYST else None
    found = totals(ledger, mine)
    if mine is not None:
        open_ = {each.dataset for each in found if each.analyst}
        found = [each for each in found if each.dataset in open_]
    lines = points(ledger, mine or "")
    return [(each, [(when.isoformat(), left) for when, left in lines.get(_name(each), ())]) for each in found]


def _name(total: Total) -> Name:
    every = total.balance.budget.period
    return Name(total.dataset, total.balance.period or (f"each {every}" if every else ""), total.analyst)


def _shown(total: Total, line: list[tuple[str, float]]) -> None:
    balance = total.balance
    left = rounded_down(balance.remaining_epsilon)
    share = max(0.0, min(1.0, left / balance.epsilon if balance.epsilon else 0.0))
    with ui.column().classes("w-full d-line q-pa-md gap-2"):
        with ui.row().classes("w-full items-baseline gap-3"):
            ui.label(total.name).classes("text-subtitle1 text-weight-medium")
            ui.label(f"one more question of ε ≤ {left:g}, of {balance.epsilon:g}").classes("d-muted d-number")
        ui.linear_progress(share, show_value=False).props(
            f'size=12px color={"negative" if share < 0.1 else "primary"} aria-label="share of the budget that is left"'
        )
        buys = {each: count for each, count in what_it_buys(balance.budget, total.guards).items() if count}
        words = ", or ".join(f"{count:,} of ε = {each:g}" for each, count in buys.items())
        ui.label(
            f"That buys about {words}." if words else "Nothing is left; asking the same again stays free."
        ).classes("d-muted d-number")
        if len(line) > 1:
            ui.echart(burn_down(line, balance.epsilon)).classes("w-full").style("height: 200px").props(
                'role=img aria-label="What was left over time"'
            )
