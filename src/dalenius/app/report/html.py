"""The report as HTML: one file that needs nothing else, for screens and paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dalenius.app.report import sections
from dalenius.app.report.elements import heading, p, text
from dalenius.app.report.model import EVERYBODY, Report, Spending
from dalenius.app.views import to_minute

# Nothing is loaded and nothing runs, whoever opens the file.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# The document's own policy, and what a policy inside of a document cannot say.
SERVED = f"{POLICY}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"

STYLE = """
.report { --ink: #1c2530; --soft: #55606d; --rule: #d5dae0; --paper: #fff; --mark: #24557f;
  --good: #2d6a3e; --goodwash: #edf6ef; --bad: #a3211a; --badwash: #fcefee; color: var(--ink);
  background: var(--paper); font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; overflow-wrap: anywhere; width: 100%;
  box-sizing: border-box; }
@media screen and (prefers-color-scheme: dark) { .report:not(.inside) { --ink: #e3e8ee;
  --soft: #a3adb8; --rule: #3a434e;
  --paper: #14181d; --mark: #6fa8d8; --good: #7cc48f; --goodwash: #17261b; --bad: #f0938c;
  --badwash: #2e1917; } }
@media screen { body.body--dark .report.inside { --ink: #e3e8ee; --soft: #a3adb8; --rule: #3a434e;
  --paper: #14181d; --mark: #6fa8d8; --good: #7cc48f; --goodwash: #17261b; --bad: #f0938c;
  --badwash: #2e1917; } }
.report.inside { background: none; font-family: inherit; margin: 0; padding: 0; }
.report h1, .report h2, .report h3, .report h4 { line-height: 1.25; letter-spacing: 0; margin: 0; color: inherit; }
.report .t1 { font-size: 2rem; font-weight: 650; }
.report .t2 { font-size: 1.35rem; font-weight: 650; margin-top: 2.75rem; padding-top: .9rem;
  border-top: 1px solid var(--rule); }
.report .t3 { font-size: 1.08rem; font-weight: 650; margin-top: 1.75rem; }
.report p { margin: .6rem 0; max-width: 46rem; }
.report .soft { color: var(--soft); }
.report .small { font-size: .875em; }
.report code { font: .85em/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.report a { color: var(--mark); text-decoration: underline; }
.report nav { margin: 1.25rem 0 0; font-size: .9rem; }
.report nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; margin: 0; padding: 0; }
.report .state { border: 1px solid var(--good); border-left-width: 6px; background: var(--goodwash);
  border-radius: 6px; padding: .6rem 1rem; margin: 1.25rem 0; }
.report .state.broken { border-color: var(--bad); background: var(--badwash); }
.report .state strong { color: var(--good); }
.report .state.broken strong { color: var(--bad); }
.report .wide { overflow-x: auto; margin: .9rem 0 1.1rem; }
.report table { border-collapse: collapse; min-width: min(100%, 46rem); max-width: 100%;
  font-size: .9rem; font-variant-numeric: tabular-nums; }
.report caption { text-align: left; color: var(--soft); font-size: .97em; padding: 0 0 .35rem; }
.report caption span { position: sticky; left: 0; display: inline-block; max-width: min(46rem, 80vw); }
.report th, .report td { text-align: left; vertical-align: top; padding: .4rem .9rem .4rem 0;
  border-bottom: 1px solid var(--rule); min-width: 3rem; }
.report thead th { overflow-wrap: normal; }
.report thead th { color: var(--soft); font-weight: 600; font-size: .82rem; border-bottom: 2px solid var(--rule); }
.report thead .n { white-space: normal; }
.report tbody th { font-weight: 600; min-width: 8rem; }
.report .pairs th { width: 16rem; }
.report .n { text-align: right; white-space: nowrap; }
.report .n:first-child { text-align: left; }
.report .w { white-space: nowrap; }
.report .long { min-width: 14rem; }
.report .l { min-width: 6rem; }
.report tr > :last-child { padding-right: 0; }
.report ul.plain { margin: 0; padding-left: 1.05rem; }
.report dl { margin: .9rem 0; }
.report dt { font-weight: 650; margin-top: .7rem; }
.report dt .soft { font-weight: 400; }
.report dd { margin: 0; max-width: 46rem; }
.report svg.chart { display: block; width: 100%; max-width: 46rem; height: auto; margin: .9rem 0; }
.report svg.chart text { font: 12px system-ui, "Segoe UI", Roboto, Arial, sans-serif; fill: var(--soft); }
.report svg .grid { stroke: var(--rule); fill: none; }
.report svg .line { stroke: var(--mark); stroke-width: 2.2; fill: none; }
.report svg .cap { stroke: var(--bad); stroke-width: 1.4; stroke-dasharray: 6 4; fill: none; }
.report svg .mark { fill: var(--mark); }
.report svg .rail { fill: var(--rule); }
.report svg.meter { display: inline-block; width: 6rem; height: .5rem; vertical-align: middle; }
@media (max-width: 640px) { .report .pairs th { width: auto; min-width: 7rem; }
  .report:not(.inside) { padding: 1.25rem 1rem 3rem; } .report .t1 { font-size: 1.6rem; }
  .report svg.chart { min-width: 32rem; } }
@media print { @page { size: A4; margin: 18mm 16mm; @bottom-right { content: counter(page) " / " counter(pages);
    font: 8pt system-ui, Arial, sans-serif; color: #444; } }
  body { background: #fff !important; color: #000 !important; }
  .q-layout, .q-page-container, .q-page, .nicegui-content { padding: 0 !important; max-width: none !important;
    min-height: 0 !important; }
  .report { --ink: #000; --soft: #444; --rule: #bbb; --paper: #fff; --mark: #24557f; --good: #2d6a3e;
    --goodwash: #fff; --bad: #a3211a; --badwash: #fff; padding: 0; max-width: none; font-size: 10.5pt;
    background: none; }
  .report nav { display: none; } .report .wide { overflow: visible; } .report .long { min-width: 0; width: 30%; }
  .report .l { min-width: 15mm; }
  .report .t2, .report .t3, .report .lead, .report caption { break-after: avoid; }
  .report tr, .report .short, .report .state, .report svg, .report dt, .report dd { break-inside: avoid; }
  .report dt { break-after: avoid; } .report thead { display: table-header-group; }
  .report table { font-size: 8.5pt; } .report thead th { font-size: 8pt; } .report svg.meter { width: 3rem; }
  .report th, .report td { padding-right: .6rem; }
  .report svg.chart { min-width: 0; max-width: 150mm; } .report a { color: inherit; text-decoration: none; } }
"""
PAGE = """html { background: #fff; } body { margin: 0; }
@media (prefers-color-scheme: dark) { html { background: #14181d; } }
@media print { html { background: #fff; } }
"""


class Section(NamedTuple):
    """A section: its anchor, its title, and who writes it."""

    key: str
    title: str
    write: Callable[[Report], str]


SECTIONS = (
    Section("promised", "What was promised", sections.promised),
    Section("spent", "What was spent", sections.spent),
    Section("questions", "Questions", sections.questions),
    Section("publications", "Published without guarantee", sections.publications),
    Section("policies", "Policies and their changes", sections.policies),
    Section("data", "Data versions and epochs", sections.data),
    Section("actions", "What the owner did", sections.actions),
    Section("alarms", "Alarms", sections.alarms),
    Section("mechanisms", "How answers are protected", sections.mechanisms),
    Section("history", "Whether this can be relied on", sections.history),
    Section("glossary", "Glossary", sections.glossary),
)


def document(report: Report) -> str:
    """The whole file."""
    return whole_page(f"Privacy report, {to_minute(report.made)}", f"{body(report)}\n")


def whole_page(title: str, inside: str, style: str = "") -> str:
    """One file that needs nothing else: ``inside`` is what stands in its body."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{text(title)}</title>\n<style>{PAGE}{STYLE}{style}</style>\n</head>\n"
        f"<body>\n{inside}</body>\n</html>\n"
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
    since = f", about the time since {to_minute(report.begun)}" if report.begun else ""
    return p(f"Made {to_minute(report.made)} UTC by {report.program}{since}.", "soft")


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
    bare = [each.dataset for each in names if each.published]
    warned = (
        f'<div class="state broken" role="alert"><p><strong>Rows were published without a guarantee</strong> of '
        f"{text(', '.join(bare))}. ε no longer bounds what can be learned from "
        f"{'this data set' if len(bare) == 1 else 'these data sets'}.</p></div>"
        if bare
        else ""
    )
    return (
        f'<div class="state"><p><strong>The history holds.</strong> {text(words)} {checked.entries:,} entries were '
        f"checked, {checked.charges:,} of them charges.</p></div>{warned}"
    )


def _cap(spent: Spending, report: Report) -> float:
    return next(each.epsilon for each in report.promises if each.dataset == spent.dataset) * (1 + 1e-9)
