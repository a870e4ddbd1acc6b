"""The sections of the report: what was promised and spent of it, and what was done."""

from __future__ import annotations

from collections.abc import Sequence

from dalenius.app.report.elements import (
    LONG,
    Html,
    bars,
    chance,
    cut,
    factor,
    heading,
    many,
    meter,
    p,
    pairs,
    percent,
    rounded_up,
    steps,
    table,
    text,
    wide,
)
from dalenius.app.report.model import ANALYST, EVERYBODY, OWNER, Action, Group, Promise, Report
from dalenius.app.report.words import GLOSSARY, THEOREMS, UNSEEN, Theorem
from dalenius.app.views import NO_BOUND, to_minute
from dalenius.ledger.budgets import GROUPS, rounded_down

_BARS = 24  # periods in a chart, the newest
_PERIODS = 12  # in a table, the newest; the facts have all
_CAPS = 12  # sizes of a budget, the newest; the owner actions have all


def promised(report: Report) -> str:
    """What was promised about each data set."""
    if not report.promises:
        return p("Nothing is protected yet.")
    intro = p(
        "Through this software, analysts get no rows of protected tables. They ask questions, and each answer is "
        "changed at random, so that it would be almost as likely if any one protected unit were not in the data, or "
        "had other data. How much all answers together may reveal about one unit is bounded by ε and δ: nothing that "
        "leaves becomes more than e^ε times likelier because of it, but for a chance of δ on top."
    ) + p(
        "Each data set has a promise of its own. What is lost about somebody who is in several of them adds up. A "
        "family or a team is protected less than one unit alone; small factors still protect it, and “no bound” means "
        "that nothing is promised to so many together."
    )
    return intro + "".join(_promise(report, each) for each in report.promises)


def _promise(report: Report, promise: Promise) -> str:
    every = f", in each {promise.period}" if promise.period else ""
    other = (
        "the same data without that unit"
        if promise.neighbors == "add-remove"
        else "the same data with another in the place of that unit"
    )
    top = f"{chance(promise.delta)}: no chance is higher than the factor allows by more than this"
    rows = [
        ("Protected", f"each {promise.unit}{every}: all its rows together"),
        ("Tables", ", ".join(promise.tables) or "none now"),
        ("Compared with", f"{other} ({promise.neighbors})"),
        ("ε, at most", f"{promise.epsilon:g}{every}: a factor of {factor(promise.epsilon)}"),
        ("δ, on top of the factor", top if promise.delta else "0: the factor always holds"),
        ("Added up in", "ρ (zCDP)" if promise.accounting == "zcdp" else "ε (pure)"),
        ("Since", f"{to_minute(promise.since)} UTC"),
    ]
    if promise.period:
        rows.insert(4, ("In the long run", f"what is lost about the same {promise.unit} in several periods adds up"))
    if len(promise.caps) > 1:
        earlier = "; ".join(f"{epsilon:g} from {to_minute(time)} on" for time, epsilon in promise.caps[-_CAPS:])
        rows.append(("ε was changed", earlier))
    warned = f'<div class="state broken" role="alert">{p(promise.published)}</div>' if promise.published else ""
    return (
        heading(3, promise.dataset)
        + warned
        + pairs(f"The promise for {promise.dataset}", rows)
        + _groups(report, promise)
    )


def _groups(report: Report, promise: Promise) -> str:
    """What the whole budget, and what was spent of it, mean for several units together."""
    spent = [each for each in report.spent(promise.dataset) if each.questions]
    worst = max(spent, key=lambda each: each.epsilon, default=None)
    whole = {each.size: each for each in promise.groups}
    gone = {each.size: each for each in worst.groups} if worst else {}
    whole[1] = Group(1, promise.epsilon, promise.delta)
    if worst:
        gone[1] = Group(1, worst.epsilon, worst.delta)
    nothing = None if worst else Group(0, 0.0, 0.0)
    rows = [(str(size), *_bound(whole.get(size)), *_bound(gone.get(size, nothing))) for size in (1, *GROUPS)]
    period = f"; so far: in {worst.period}, the {promise.period} with the most" if worst and worst.period else ""
    names = ("units together", "ε at most", "factor", "δ", "ε so far", "factor so far", "δ so far")
    return table(
        f"What the whole budget, and what was spent of it so far, mean for groups of several units{period}",
        names,
        rows,
        "nnnnnnn",
    )


def _bound(of: Group | None) -> tuple[str, str, str]:
    """ε, its factor, and δ; none where no δ below 1 can be promised."""
    return (rounded_up(of.epsilon), factor(of.epsilon), chance(of.delta)) if of else (NO_BOUND, "", "")


def spent(report: Report) -> str:
    """Who spent how much, and when."""
    if not report.promises:
        return p("Nothing.")
    parts = [
        p(
            "Each question is charged before the data is looked at, and nothing is ever refunded. Where losses are "
            "added up in ρ, many small questions cost less than the sum of their ε, and a question of twice the ε "
            "takes about four times the share."
        )
    ]
    for promise in report.promises:
        parts += [heading(3, promise.dataset), _chart(report, promise), _spenders(report, promise)]
    return "".join(parts) + _earlier(report)


def _chart(report: Report, promise: Promise) -> str:
    spent = report.spent(promise.dataset)
    if not any(each.questions for each in spent):
        return p("Nothing has been spent.")
    if promise.period is None:
        return wide("Chart", steps(promise.dataset, promise.line, promise.caps, report.made))
    rows = [(each.period, each.epsilon) for each in spent][-_BARS:]
    return wide("Chart", bars(promise.dataset, rows, promise.epsilon))


def _spenders(report: Report, promise: Promise) -> str:
    found = [each for role in (EVERYBODY, OWNER, ANALYST) for each in report.spent(promise.dataset, role)]
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


def _earlier(report: Report) -> str:
    current = {each.dataset: each.epoch for each in report.promises}
    past = [each for each in report.spending if each.role == EVERYBODY and each.epoch < current[each.dataset]]
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
    return heading(3, "People of earlier epochs") + table(
        "What was spent on people who were in the data before",
        ("data set", "epoch", "period", "questions", "ε spent", "δ"),
        rows,
        "hnwnnn",
    )


def questions(report: Report) -> str:
    """How questions ended."""
    found = report.questions
    words = f"{many(found.charged, 'question was', 'questions were')} charged; {found.answered:,} of them answered"
    if found.failed:
        words += f", {found.failed:,} ended without an answer"
    words += f", {found.open:,} still open. " if found.open else ". "
    if found.shared:
        words += (
            f"{many(found.shared, 'of them was', 'of them were')} answered from what another analyst had been told "
            "before, with more noise: the own allotment alone pays, since nothing new about anybody left. "
        )
    if found.granted:
        words += (
            f"{many(found.granted, 'time', 'times')} an analyst got an answer that another had paid for: it counts "
            "against the own allotment alone, since nothing new left. "
        )
    words += "The same question asked again by the same analyst is free while the data is the same, and not counted."
    if not report.failures:
        return p(words)
    rows = [
        (str(each.entry), to_minute(each.time), each.dataset, each.analyst or "the owner", f"{each.epsilon:g}")
        for each in report.failures
    ]
    return p(words) + table(
        "Charged, and ended without an answer", ("entry", "time (UTC)", "data set", "who", "ε"), rows, "nwlln"
    )


def publications(report: Report) -> str:
    """What left without guarantee."""
    if not report.publications:
        return p("No such publication is on record. What was published by other means is not known here.")
    return (
        p(
            "These left without the protection of noise; ε does not bound what they reveal. From the first of them on, "
            "ε no longer bounds what can be learned about the people in that data set: it bounds what answers add."
        )
        + table(
            "On record",
            ("entry", "time (UTC)", "what", "reason"),
            [(str(e.entry), to_minute(e.time), e.what, e.reason) for e in report.publications[-LONG:]],
            "nwxx",
        )
        + cut(len(report.publications))
    )


def policies(report: Report) -> str:
    """Every version of every policy, with its difference."""
    if not report.policies:
        return p("There is no policy.")
    intro = p("A policy says what may be asked about a table, and for how much. Every version is kept.")
    rows = []
    for each in report.policies:
        items = "".join(
            f"<li><code>{text(change.place)}</code>: {text(change.what)}"
            + (f' <span class="soft">({text(change.note)})</span>' if change.note else "")
            + "</li>"
            for change in each.changes
        )
        said = "first version" if each.first else "nothing that it says"
        what = Html(f'<ul class="plain">{items}</ul>') if items else said
        rows.append((str(each.entry), to_minute(each.time), each.table, each.version[:12], what, each.by, each.reason))
    columns = ("entry", "time (UTC)", "table", "version", "what changed", "by", "reason")
    return intro + table("Every version of every policy", columns, rows, "nwlwxlx")


def data(report: Report) -> str:
    """Which data was asked about, and when its people were new ones."""
    if not report.data:
        return p("There is no data.")
    rows = [
        (
            str(each.entry),
            to_minute(each.time),
            each.table,
            str(each.data_version),
            str(each.epoch),
            str(each.files),
            each.by,
            each.reason,
        )
        for each in report.data
    ]
    columns = ("entry", "time (UTC)", "table", "version", "epoch", "files", "by", "reason")
    parts = table("The data behind each table", columns, rows, "nwlnnnlx")
    if not report.epochs:
        return parts + p("Nobody declared people to be new ones: no budget was started afresh.")
    fresh = [
        (str(each.entry), to_minute(each.time), each.dataset, str(each.epoch), each.by, each.reason)
        for each in report.epochs
    ]
    return (
        parts
        + p("A new epoch starts a budget afresh. It is right only if nobody in the new data was in the old.")
        + table("New people", ("entry", "time (UTC)", "data set", "epoch", "declared by", "reason"), fresh, "nwlnlx")
    )


def actions(report: Report) -> str:
    """What the owner did."""
    if not report.actions:
        return p("Nothing is on record.")
    return p(
        "Budgets, allotments, tokens (with which a server is used), suspensions, limits and notes."
    ) + _action_table("Owner actions", report.actions)


def alarms(report: Report) -> str:
    """What went wrong."""
    if not report.alarms:
        return p("There was no alarm.")
    rows = [
        (str(e.entry), to_minute(e.time), e.dataset, "" if e.charge is None else str(e.charge), e.what)
        for e in report.alarms
    ]
    columns = ("entry", "time (UTC)", "data set", "charge", "what")
    return table("Alarms while questions were answered", columns, rows[-LONG:], "nwlnx") + cut(len(rows))


def mechanisms(report: Report) -> str:
    """The mechanisms that were charged, with their theorems."""
    if not report.mechanisms:
        return p("No mechanism has been used yet.")
    intro = p(
        "These are all ways in which charged questions were answered. Each has a published proof. Noise is drawn "
        "exactly, without rounding that could give it away, from cryptographic random bits."
    )
    parts = []
    for each in report.mechanisms:
        told = THEOREMS.get(each.mechanism, Theorem(each.mechanism, "Not known to this release.", ""))
        count = many(each.charges, "question", "questions")
        parts.append(
            f'<dt>{text(told.name)} <span class="soft">in {count}</span></dt>'
            f'<dd>{text(told.does)}</dd><dd class="soft small">{text(told.proved)}</dd>'
        )
    return f"{intro}<dl>{''.join(parts)}</dl>"


def history(report: Report) -> str:
    """The verification, and what it does not show."""
    checked = report.verification
    parts = p(
        "Every charge and every owner action is an entry in a history in which each entry is sealed together with "
        "the one before it. For this report, all of it was read again: whether anything was changed, removed or added "
        "without the keys of the home, and whether every charge fitted into what was left at its time."
    )
    if checked.holds:
        parts += p(f"It holds: {checked.entries:,} entries, {checked.charges:,} charges, {checked.releases:,} answers.")
    else:
        parts += p(f"It does not hold. {checked.message} {checked.why} {checked.fix}")
        if report.unreadable:
            parts += p(f"Entries that cannot be read: {', '.join(map(str, report.unreadable[:50]))}.")
    parts += f"<p>Head: <code>{text(checked.head)}</code></p>"
    return (
        parts
        + p(
            "Keep the head elsewhere. “dalenius ledger verify --expect HEAD” shows later whether this history is still "
            "part of the one there is then; without a head or a receipt from outside, an older copy that was put back "
            "whole would not show."
        )
        + p("What this report cannot show:", "lead")
        + '<ul class="plain">'
        + "".join(f"<li>{text(each)}</li>" for each in UNSEEN)
        + "</ul>"
    )


def glossary(report: Report) -> str:  # noqa: ARG001
    """The words, for who does not know them."""
    return "<dl>" + "".join(f"<dt>{text(word)}</dt><dd>{text(means)}</dd>" for word, means in GLOSSARY) + "</dl>"


def _action_table(caption: str, actions: Sequence[Action]) -> str:
    rows = [(str(e.entry), to_minute(e.time), e.kind, e.what, e.by, e.reason) for e in actions]
    return table(caption, ("entry", "time (UTC)", "kind", "what", "by", "reason"), rows[-LONG:], "nwwxlx") + cut(
        len(rows)
    )
