"""Budget: what is left, how it went, and what the rest would buy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fastapi import FastAPI
from nicegui import ui

from dalenius._numbers import count_of
from dalenius.app.console.charts import burn_down
from dalenius.app.console.frame import attempt, card, empty, heading, later, page, warn
from dalenius.app.console.sessions import Session, Sessions
from dalenius.app.views.balances import Total, keys_words, what_it_buys
from dalenius.app.views.burn_down import visible_lines
from dalenius.errors import DaleniusError
from dalenius.ledger.budgets import rounded_down
from dalenius.ledger.tokens import Role
from dalenius.queries.release import shown_error
from dalenius.queries.rules.parse import as_written

Line = list[tuple[str, float]]
_BUYS = 3  # data sets and periods for which errors are worked out


@dataclass
class _Found:
    """One data set in one period: everybody together first, then each analyst that may be seen."""

    name: str
    totals: list[Total] = field(default_factory=list)
    lines: dict[str, Line] = field(default_factory=dict)
    table: str = ""
    errors: dict[float, str] = field(default_factory=dict)  # of a count of its rows, by ε


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/budget")
    async def budget(session: Session) -> None:
        place = ui.column().classes("w-full gap-4")

        async def build() -> None:
            found = await attempt(session, "GET /v1/budget/over-time", lambda: _found(session), place)
            if found is None:
                return
            if not found:
                empty("No data set has a budget that you may see.", "savings")
            for each in found:
                _show(each, mine=session.token.analyst if session.token.role is Role.ANALYST else "")

        later(build, place)


def _found(session: Session) -> list[_Found]:
    curator = session.service.curator
    mine = session.token.analyst if session.token.role is Role.ANALYST else None
    tables = {each.dataset: each.table for each in reversed(curator.tables())}
    found: dict[tuple[str, str], _Found] = {}
    for total, line in visible_lines(curator.ledger, mine):
        place = (total.dataset, total.balance.period)
        if not total.analyst:
            found[place] = _Found(total.name)
        found[place].totals.append(total)
        if len(line) > 1:
            name = "you" if mine else total.analyst
            found[place].lines[name if total.analyst else "everybody"] = [(at.isoformat(), left) for at, left in line]
    for (dataset, _), each in list(found.items())[:_BUYS]:
        whose = mine or next((total.analyst for total in each.totals if total.analyst), None)
        if whose is not None and dataset in tables:
            each.table = tables[dataset]
            each.errors = _errors(session, whose, each.table)
    return list(found.values())


def _errors(session: Session, analyst: str, table: str) -> dict[float, str]:
    """The expected error of a count of a table's rows at usual prices; from the policy alone."""
    try:
        sql = f"SELECT COUNT(*) FROM {as_written(table)}"  # noqa: S608 (goes through the same rules as any question)
        found = session.service.curator.analyst(analyst).preview(sql)
    except DaleniusError:  # a closed table, say
        return {}
    errors = {each.epsilon: each.noise_error[0] for each in found.choices}
    return {each: shown_error(error) for each, error in errors.items() if error is not None}


def _show(found: _Found, mine: str) -> None:
    with card():
        heading(found.name, 2).classes("text-subtitle1 text-weight-medium")
        for total in found.totals:
            whose = ("You" if mine else total.analyst) if total.analyst else "Everybody together"
            _meter(whose, total)
        if found.totals and found.totals[0].published:
            warn(found.totals[0].published)
        last = found.totals[-1] if mine else found.totals[0]
        ui.label(_buys(found, last)).classes("d-tip")
        if found.lines:
            drawn = ui.echart(burn_down(found.lines, found.totals[0].balance.epsilon), renderer="svg")
            drawn.classes("w-full").style("height: 220px")
            drawn.props["role"], drawn.props["aria-label"] = "img", f"What was left of {found.name} over time"


def _meter(whose: str, total: Total) -> None:
    left = rounded_down(total.balance.remaining_epsilon)
    share = max(0.0, min(1.0, left / total.balance.epsilon if total.balance.epsilon else 0.0))
    with ui.column().classes("w-full gap-1"):
        with ui.row().classes("w-full items-baseline justify-between gap-2"):
            ui.label(whose).style("overflow-wrap: anywhere")
            ui.label(f"one more question may cost ε ≤ {left:g}, of {total.balance.epsilon:g}").classes(
                "d-muted d-number"
            )
        bar = ui.linear_progress(share, show_value=False)
        bar.props(f"size=10px rounded color={'negative' if share < 0.1 else 'primary'}")
        bar.props["aria-label"] = f"Share that is left: {whose}"


def _buys(found: _Found, total: Total) -> str:
    """As in "about 40 more counts at ± 30"."""
    buys = {each: count for each, count in what_it_buys(total.balance.budget, total.filters).items() if count}
    if not buys:
        return "Nothing is left. What was paid for before stays free."
    keys = f" And {words}." if (words := keys_words(total)) else ""
    priced = {each: count for each, count in buys.items() if each in found.errors}
    if not priced:
        questions = _or(f"{count_of(count, 'question')} of ε = {each:g}" for each, count in buys.items())
        return f"What is left buys {questions}.{keys}"
    counts = _or(f"{count:,} at ± {found.errors[each]} (ε = {each:g} each)" for each, count in priced.items())
    return f"What is left buys more counts of the rows of {found.table}: about {counts}.{keys}"


def _or(parts: Iterable[str]) -> str:
    return ", or ".join(parts)
