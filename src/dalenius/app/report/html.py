"""The report as HTML: one file that needs nothing else, for screens and paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dalenius.app.report import promises, record
from dalenius.app.report.elements import heading, p, text, when
from dalenius.app.report.model import EVERYBODY, Report, Spending
from dalenius.app.report.style import PAGE, STYLE

# Nothing is loaded and nothing runs, whoever opens the file.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Section(NamedTuple):
    """A section: its anchor, its title, and who writes it."""

    key: str
    title: str
    write: Callable[[Report], str]


SECTIONS = (
    Section("promised", "What was promised", promises.promised),
    Section("spent", "What was spent", promises.spent),
    Section("questions", "Questions", record.questions),
    Section("publications", "Published without guarantee", record.publications),
    Section("policies", "Policies and their changes", record.policies),
    Section("data", "Data versions and epochs", record.data),
    Section("actions", "What the owner did", record.actions),
    Section("alarms", "Alarms", record.alarms),
    Section("mechanisms", "How answers are protected", record.mechanisms),
    Section("history", "Whether this can be relied on", record.history),
    Section("glossary", "Glossary", record.glossary),
)


def document(report: Report) -> str:
    """The whole file."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>Privacy report, {text(when(report.made))}</title>\n<style>{PAGE}{STYLE}</style>\n</head>\n"
        f"<body>\n{body(report)}\n</body>\n</html>\n"
    )


def body(report: Report, *, inside: bool = False) -> str:
    """What stands in the file; with ``inside``, in a page that has its own frame, colours and title."""
    links = "".join(f'<li><a href="#report-{each.key}">{each.title}</a></li>' for each in SECTIONS)
    parts = [
        "" if inside else heading(1, "Privacy report"),
        _about(report),
        _state(report),
        f'<nav aria-label="Sections of the report"><ul>{links}</ul></nav>',
    ]
    for each in SECTIONS:
        name = f"report-{each.key}"
        head = heading(2, each.title, name)
        parts.append(f'<section aria-labelledby="{name}">{head}{each.write(report)}</section>')
    told = "\n".join(parts)
    return f'<div class="report inside">{told}</div>' if inside else f'<main class="report">{told}</main>'


def _about(report: Report) -> str:
    since = f", about the time since {when(report.begun)}" if report.begun else ""
    return p(f"Made {when(report.made)} UTC by {report.program}{since}.", "soft")


def _state(report: Report) -> str:
    checked, names = report.verification, report.promises
    if not checked.holds:
        return (
            f'<div class="state broken" role="alert"><p><strong>The history does not hold.</strong> '
            f"{text(checked.message)} {text(checked.why)}</p><p>{text(checked.fix)} What follows is what can still "
            "be read; do not rely on it.</p></div>"
        )
    kept = all(each.epsilon <= _cap(each, report) for each in report.spending if each.role == EVERYBODY)
    words = (
        f"{len(names)} data set{'s are' if len(names) != 1 else ' is'} protected, and no budget was exceeded."
        if kept
        else "A budget was made smaller than what had been spent before; nothing more is answered from it."
    )
    return (
        f'<div class="state"><p><strong>The history holds.</strong> {text(words)} {checked.entries:,} entries were '
        f"checked, {checked.charges:,} of them charges.</p></div>"
    )


def _cap(spent: Spending, report: Report) -> float:
    return next(each.epsilon for each in report.promises if each.dataset == spent.dataset) * (1 + 1e-9)
