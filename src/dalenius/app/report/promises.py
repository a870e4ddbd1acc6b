"""The sections about the promise and what was spent of it."""

from __future__ import annotations

from dalenius.app.report.charts import bars, meter, steps
from dalenius.app.report.elements import (
    LONG,
    Html,
    Page,
    chance,
    factor,
    p,
    percent,
    rounded_up,
    table,
    text,
    when,
    wide,
)
from dalenius.app.report.model import ANALYST, EVERYBODY, OWNER, Group, Promise
from dalenius.ledger.budgets import GROUPS, rounded_down

_PERIODS = 24  # rows of each data set, the newest; the facts have all
_CAPS = 12  # sizes of a budget, the newest; the owner actions have all


def promised(page: Page) -> str:
    """What was promised about each data set."""
    if not page.report.promises:
        return p("Nothing is protected yet.")
    intro = p(
        "Through this software, analysts get no rows of protected tables. They ask questions, and each answer is "
        "changed at random, so that it would be almost as likely if any one protected unit were not in the data, or "
        "had other data. How much all answers together may reveal about one unit is bounded by ε and δ: nothing that "
        "leaves becomes more than e^ε times likelier because of it, but for a chance of δ on top."
    ) + p(
        "Each data set has a promise of its own. What is lost about somebody who is in several of them adds up.",
        "soft small",
    )
    return intro + "".join(_promise(page, each) for each in page.report.promises)


def _promise(page: Page, promise: Promise) -> str:
    every = f", in each {promise.period}" if promise.period else ""
    other = (
        "the same data without that unit"
        if promise.neighbors == "add-remove"
        else "the same data with another in the place of that unit"
    )
    top = f"{promise.delta:g}: no chance is higher than the factor allows by more than this"
    rows = [
        ("Protected", f"each {promise.unit}{every}: all its rows together"),
        ("Tables", ", ".join(promise.tables) or "none now"),
        ("Compared with", f"{other} ({promise.neighbors})"),
        ("ε, at most", f"{promise.epsilon:g}{every}: a factor of {factor(promise.epsilon)}"),
        ("δ, on top of the factor", top if promise.delta else "0: the factor always holds"),
        ("Added up in", "ρ (zCDP)" if promise.accounting == "zcdp" else "ε (pure)"),
        ("Since", f"{when(promise.since)} UTC"),
    ]
    if promise.period:
        rows.insert(4, ("In the long run", f"what is lost about the same {promise.unit} in several periods adds up"))
    if len(promise.caps) > 1:
        earlier = "; ".join(f"{epsilon:g} from {when(time)} on" for time, epsilon in promise.caps[-_CAPS:])
        rows.append(("ε was changed", earlier))
    cells = "".join(f'<tr><th scope="row">{text(a)}</th><td>{text(b)}</td></tr>' for a, b in rows)
    caption = f"The promise for {promise.dataset}"
    pairs = f'<table class="pairs"><caption>{text(caption)}</caption><tbody>{cells}</tbody></table>'
    return page.heading(3, promise.dataset) + wide(caption, pairs) + _groups(page, promise)


def _groups(page: Page, promise: Promise) -> str:
    """What the whole budget, and what was spent of it, mean for several units together."""
    spent = [each for each in page.report.spent(promise.dataset) if each.questions]
    worst = max(spent, key=lambda each: each.epsilon, default=None)
    whole = {each.size: each for each in promise.groups}
    gone = {each.size: each for each in worst.groups} if worst else {}
    rows = [
        _group(1, Group(1, promise.epsilon, promise.delta), Group(1, worst.epsilon, worst.delta) if worst else None)
    ]
    rows += [_group(size, whole.get(size), gone.get(size) if worst else None) for size in GROUPS]
    if worst is None:
        rows = [(*row[:4], "0", "1", "0") for row in rows]
    period = f"; so far: in {worst.period}, the {promise.period} with the most" if worst and worst.period else ""
    names = ("units together", "ε at most", "factor", "δ", "ε so far", "factor so far", "δ so far")
    return table(
        f"What the whole budget, and what was spent of it so far, mean for groups of several units{period}",
        names,
        rows,
        "nnnnnnn",
    ) + p(
        "A family or a team is protected less than one unit alone; small factors still protect it. “No bound” means "
        "that nothing is promised to so many together.",
        "soft small",
    )


def _group(size: int, whole: Group | None, gone: Group | None) -> tuple[str, ...]:
    """One row; what has no δ below 1 is no promise."""
    cells = [str(size)]
    for each in (whole, gone):
        bound = (rounded_up(each.epsilon), factor(each.epsilon), chance(each.delta)) if each else ("no bound", "", "")
        cells += bound
    return tuple(cells)


def spent(page: Page) -> str:
    """Who spent how much, and when."""
    if not page.report.promises:
        return p("Nothing.")
    parts = [
        p(
            "Each question is charged before the data is looked at, and nothing is ever refunded. Where losses are "
            "added up in ρ, many small questions cost less than the sum of their ε, and a question of twice the ε takes "
            "about four times the share."
        )
    ]
    for promise in page.report.promises:
        parts += [page.heading(3, promise.dataset), _chart(page, promise), _spenders(page, promise)]
    return "".join(parts) + _earlier(page)


def _chart(page: Page, promise: Promise) -> str:
    spent = page.report.spent(promise.dataset)
    if not any(each.questions for each in spent):
        return p("Nothing has been spent.")
    if promise.period is None:
        return wide("Chart", steps(promise.dataset, promise.line, promise.caps, page.report.made))
    rows = [(each.period, each.epsilon) for each in spent][-_PERIODS:]
    return wide("Chart", bars(promise.dataset, rows, promise.epsilon))


def _spenders(page: Page, promise: Promise) -> str:
    found = [each for role in (EVERYBODY, OWNER, ANALYST) for each in page.report.spent(promise.dataset, role)]
    periods = sorted({each.period for each in found})
    shown = set(periods[-_PERIODS:])
    found = sorted((each for each in found if each.period in shown), key=lambda each: each.period)
    rows = []
    for each in found:
        who = {EVERYBODY: "everybody together", OWNER: "the owner, for limits"}.get(each.role, each.analyst)
        rows.append(
            (
                *((each.period or f"each {promise.period}",) if promise.period else ()),
                who,
                f"{each.questions:,}",
                rounded_up(each.epsilon),
                "" if each.cap is None else f"{each.cap:g}",
                "" if each.left is None else f"{rounded_down(each.left):g}",
                Html(f"{meter(each.share)} {percent(each.share)}"),
            )
        )
    names = ("who", "questions", "ε spent", "may spend", "next question ≤", "share of the budget")
    told = table(
        f"Who spent how much of {promise.dataset}",
        (("period", *names) if promise.period else names),
        rows,
        "whnnnnw" if promise.period else "hnnnnw",
    )
    if len(periods) > _PERIODS:
        told += p(f"The newest {_PERIODS} of {len(periods)} periods.", "soft small")
    if any(each.role == ANALYST and each.cap is None for each in found):
        told += p("Who has nothing in “may spend” has no allotment any more; what was spent stays.", "soft small")
    return told


def _earlier(page: Page) -> str:
    current = {each.dataset: each.epoch for each in page.report.promises}
    past = [each for each in page.report.spending if each.role == EVERYBODY and each.epoch < current[each.dataset]]
    if not past:
        return ""
    rows = [
        (
            each.dataset,
            str(each.epoch),
            each.period,
            f"{each.questions:,}",
            rounded_up(each.epsilon),
            f"{each.delta:.2g}",
        )
        for each in past[-LONG:]
    ]
    return page.heading(3, "People of earlier epochs") + table(
        "What was spent on people who were in the data before",
        ("data set", "epoch", "period", "questions", "ε spent", "δ"),
        rows,
        "hnwnnn",
    )
