"""The report on published rows as one HTML file: no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dalenius._numbers import count_of, to_digits, to_percent
from dalenius.app.report.elements import heading, p, paired_bars, pairs, table, text
from dalenius.app.report.html import whole_page
from dalenius.app.views import to_minute
from dalenius.app.views.publications import LIMITS, asked_words, bin_name, how_made

if TYPE_CHECKING:
    from dalenius.app.report.rows import RowsReport

# What no model here says anything about, for who reads the report and not the manual.
NOT_PROTECTED = (
    "Who knows more about somebody than the quasi-identifiers (a colleague, a hospital) can still find the row.",
    "Two tables about the same people, each of them fine, can be intersected: the models speak of one table alone.",
    "A class in which nearly all have the same sensitive value tells it of everybody in it; k does not look at values.",
    "How the rows were made is public. Who knows that a method generalises no more than it must can undo a part of it.",
    "Columns that are named in no role are published as they are.",
    "What was learned stays learned: rows cannot be taken back, and later tables can be compared with them.",
)
_LOSSES = {
    "ncp": "NCP (0 nothing, 1 everything)",
    "entropy": "non-uniform entropy (0 nothing, 1 everything)",
    "class_size": "rows in a class, on average",
    "discernibility": "discernibility",
}


def document(report: RowsReport) -> str:
    """The whole file."""
    title = f"Published rows of {report.table}"
    return whole_page(title, f'<main class="report">{heading(1, title)}{_body(report)}</main>\n')


def _body(report: RowsReport) -> str:
    parts = [
        p(
            f"Made {to_minute(report.made)} UTC by {report.program}. For the owner: it is computed from the rows.",
            "soft",
        ),
        _state(report),
        heading(2, "What was asked, and what the table reaches"),
        _models(report),
        heading(2, "What was lost"),
        _losses(report),
        heading(2, "Class sizes"),
        _sizes(report),
        heading(2, "Risk of being found again"),
        _risks(report),
        heading(2, "Attacks that were tried on this table"),
        _attacks(report),
        heading(2, "What the same statistics would cost with a guarantee"),
        _noise(report),
        heading(2, "What such a table does not protect"),
        "<ul>" + "".join(f"<li>{text(each)}</li>" for each in NOT_PROTECTED) + "</ul>",
    ]
    return "\n".join(parts)


def _state(report: RowsReport) -> str:
    if report.protected:
        words = "Once it is published, ε no longer bounds what can be learned from this data set."
    else:
        words = "No ε bounds what it reveals."
    told = f"<strong>No guarantee.</strong> {text(words)} {text(LIMITS.partition(': ')[2].capitalize())}"
    more = "".join(f"<p><strong>{text(each)}</strong></p>" for each in report.facts.get("warnings") or ())
    return f'<div class="state broken" role="alert"><p>{told}</p>{more}</div>'


def _models(report: RowsReport) -> str:
    facts = report.facts
    rows = [
        (
            each["model"],
            each.get("column") or "",
            asked_words(each["asked"]),
            "" if each["reached"] is None else to_digits(each["reached"], 4),
            "met" if each["met"] else "not met",
        )
        for each in facts.get("models") or ()
    ]
    gone = facts.get("suppressed") or 0
    lines = [
        ("Rows", f"{facts['rows']:,} in {facts['classes']:,} classes"),
        ("Suppressed", f"{count_of(gone, 'row')} ({to_percent(gone / facts['rows']) if gone else 'none'})"),
        *(("Made by", line) for line in how_made(facts)),
        ("Published as they are, in no role", ", ".join(facts.get("as_they_are") or ()) or "none"),
    ]
    return pairs("The table", lines) + table("Models", ("model", "of", "asked", "reached", ""), rows, "hllnl")


def _losses(report: RowsReport) -> str:
    before, after = report.losses["before"] or {}, report.losses["after"]
    if after is None:
        return p("Made-up rows were added, so that losses row by row are not defined.")
    rows = [(words, to_digits(before[name], 4), to_digits(after[name], 4)) for name, words in _LOSSES.items()]
    return table("Loss", ("", "before", "after"), rows, "hnn")


def _sizes(report: RowsReport) -> str:
    before, after = ({(low, high): rows for low, high, rows in report.sizes[each]} for each in ("before", "after"))
    bins = sorted({*before, *after})
    rows = [(bin_name(*each), before.get(each, 0), after.get(each, 0)) for each in bins]
    drawn = paired_bars("Rows by the size of their class, before and after", rows, ("before", "after"), "rows")
    told = [(name, f"{first:,}", f"{second:,}") for name, first, second in rows]
    return drawn + table("Rows by the size of their class", ("rows that look alike", "before", "after"), told, "hnn")


def _risks(report: RowsReport) -> str:
    def cells(found: Mapping[str, Any], name: str) -> tuple[str, str]:
        own = found[name]
        return (to_percent(own["highest"]), to_percent(own["average"])) if own else ("", "")

    before, after = report.risks["before"], report.risks["after"]
    rows = [
        ("prosecutor: knows that somebody is in it", *cells(before, "prosecutor"), *cells(after, "prosecutor")),
        ("marketer: links everybody", "", to_percent(before["marketer"]), "", to_percent(after["marketer"])),
    ]
    names = ("attacker", "highest, before", "average, before", "highest, after", "average, after")
    unique = (
        f"{count_of(before['unique'], 'row')} looked like no other before, {count_of(after['unique'], 'row')} after."
    )
    return table("How likely a guess is right", names, rows, "hnnnn") + p(unique)


def _attacks(report: RowsReport) -> str:
    if not report.attacks:
        return p("None applies to this table.")
    rows = [(each["attack"], "works" if each["broke"] else "fails", each["learned"]) for each in report.attacks]
    works = sum(bool(each["broke"]) for each in report.attacks)
    told = p(
        f"{works} of {len(rows)} worked. One that fails says nothing about cleverer ones, or about who knows more."
    )
    return told + table("What each found", ("attack", "", "what it found"), rows, "hwx")


def _noise(report: RowsReport) -> str:
    noise = report.noise
    rows = [(f"{epsilon:g}", f"± {to_digits(error, 3)}") for epsilon, error in noise.errors]
    words = (
        f"The table can be read as {noise.what}: {noise.cells:,} counts of {to_digits(noise.average, 3)} rows on "
        "average. With noise they would be differentially private, whatever anybody knows, and the next table would be "
        "covered by the same budget."
    )
    useful = (
        p(f"95% of the counts would be within a tenth of an average count at ε = {to_digits(noise.useful, 2)}.")
        if noise.useful is not None
        else ""
    )
    return (
        p(words)
        + table("Error of a count", ("ε of all counts", "95% of counts"), rows, "nn")
        + useful
        + p(f"By {noise.basis}.", "soft small")
    )
