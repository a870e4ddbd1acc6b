"""The sections about what was done: questions, publications, policies, data, owner actions, alarms, mechanisms."""

from __future__ import annotations

from collections.abc import Sequence

from dalenius.app.report.elements import LONG, Html, cut, many, p, table, text
from dalenius.app.report.model import Action, Report
from dalenius.app.report.words import GLOSSARY, THEOREMS, UNSEEN, Theorem
from dalenius.app.views import to_minute


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
        p("These left without the protection of noise; ε does not bound what they reveal.")
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
