"""The report on a synthetic table as one HTML file: no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dalenius._numbers import to_digits, to_percent
from dalenius.app.report.drawings import grid, lying_bars
from dalenius.app.report.elements import heading, p, pairs, table, text
from dalenius.app.report.html import whole_page
from dalenius.app.views import to_minute
from dalenius.app.views.synthetic import limit_text, promised

if TYPE_CHECKING:
    from dalenius.app.report.synthetic import ColumnReport, SyntheticReport

WAYS = {1: "one column", 2: "two columns", 3: "three columns"}
_GRID = 40  # columns: more would be too small to be read
_WORST = 8
NOT_SAID = (
    "Nobody is in these rows: one that looks like somebody was made up.",
    "What goes together in three or more columns is true to the real table only as far as pairs tell it.",
    "Rare values are told apart only where the noise lets them be seen; a spike inside a class is spread over it.",
    "Whose rows are is made up: beside how many somebody has, and how alike in single columns, nothing was counted.",
    "Intervals and tests that take the rows for a sample of people are too sure: they do not know of the noise.",
)
SEVERAL = """
.report .several { display: grid; gap: 1rem 2rem; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); }
.report .several h3 { margin: .5rem 0 .3rem; }
.report svg.bars, .report svg.grid { display: block; width: 100%; height: auto; }
.report svg.bars text, .report svg.grid text { font: 12px system-ui, "Segoe UI", Roboto, Arial, sans-serif;
  fill: var(--soft); }
"""


def document(report: SyntheticReport) -> str:
    """The whole file."""
    title = f"Synthetic rows of {report.table}"
    return whole_page(title, f'<main class="report">{heading(1, title)}{body(report)}</main>\n', SEVERAL)


def inside(report: SyntheticReport) -> str:
    """What stands in a page that has its own frame, colours and title."""
    return f'<div class="report inside">{body(report)}</div>'


def body(report: SyntheticReport) -> str:
    """What stands in the file."""
    parts = [
        p(f"Made {to_minute(report.made)} UTC by {report.program}.", "soft"),
        _state(report),
        heading(2, "What it is"),
        _about(report),
        heading(2, "Each column by itself"),
        _columns(report),
        heading(2, "How well the model fits what was measured"),
        _fit(report),
        heading(2, "How far it is from the real table"),
        _comparison(report),
        heading(2, "What it does not say"),
        "<ul>" + "".join(f"<li>{text(each)}</li>" for each in NOT_SAID) + "</ul>",
    ]
    return "\n".join(parts)


def _state(report: SyntheticReport) -> str:
    promise = f"{promised(report.guarantee)}, of all rows together, however many are drawn."
    more = ""
    if report.comparison is not None:
        more = f" The comparison below cost more: {promised(report.comparison['guarantee'])}."
    told = (
        f"<strong>Private.</strong> {text(promise + more)} This report follows from nothing else: it may go wherever "
    )
    notes = "".join(f"<p><strong>{text(each)}</strong></p>" for each in report.notes)
    warned = f'<div class="state broken" role="note">{notes}</div>' if notes else ""
    return f'<div class="state"><p>{told}the rows may.</p></div>{warned}'


def _about(report: SyntheticReport) -> str:
    lines = [
        ("Like", f"table {report.table}"),
        ("Made by", report.method),
        ("Rows of the table, by noisy count", f"{report.rows:,}"),
        ("Columns", f"{len(report.columns)}: {', '.join(each.name for each in report.columns)}"),
        ("What one unit adds", limit_text(report.rows_per_unit)),
        ("Whose the rows are", _whose(report.units)),
        *(("Left out", f"{name}: to have it, {why}") for name, why in report.left_out.items()),
        *([("Release", report.release)] if report.release else []),
    ]
    return pairs("The synthetic table", lines)


def _whose(units: Mapping[str, Any] | None) -> str:
    if units is None:
        return "not said: each is somebody else's, or nobody's"
    return f"{units['column']}: about {units['count']:,} made-up units"


def _columns(report: SyntheticReport) -> str:
    """All columns as bars; of those that were compared the error stands beside the name."""
    errors = _errors_of(report, 1)
    margin = _way(report, 1).get("margin_each")
    drawn = ""
    for each in report.columns:
        error = errors.get((each.name,))
        said = f" error {max(0.0, error):.3f} ± {margin:.3f}" if error is not None and margin is not None else ""
        bars = lying_bars(f"Synthetic rows by {each.name}", list(zip(each.labels, each.shares, strict=True)))
        drawn += f'<div><h3 class="t3">{text(each.name)} <span class="soft small">{text(said)}</span></h3>{bars}'
        drawn += f"{p(_noise_words(each), 'soft small')}</div>"
    return p("Shares of synthetic rows.") + f'<div class="several">{drawn}</div>'


def _noise_words(column: ColumnReport) -> str:
    if column.margin is None:
        return ""
    return f"One value was measured to ± {to_percent(column.margin)} of the rows."


def _fit(report: SyntheticReport) -> str:
    if not report.fit:
        return p("It is not known: an earlier version made the model.")
    rows = [
        (
            WAYS.get(each.columns, f"{each.columns} columns"),
            f"{each.tables:,}",
            f"± {to_digits(each.noise, 3)}",
            to_digits(each.ratio, 2),
            "; ".join(f"{', '.join(names)} ({to_digits(ratio, 2)})" for names, ratio in each.worst),
        )
        for each in report.fit
    ]
    words = (
        "The model was made from noisy tables. Its misfit is how far its rows are from them, by what noise alone would "
        "make of it: about 1 is as good as can be, below that it follows the noise, well above it something is missed."
    )
    names = ("tables of", "measured", "noise in a number of rows", "misfit", "largest misfit")
    return p(words) + table("Noisy tables that the model was made from", names, rows, "hnnnx")


def _comparison(report: SyntheticReport) -> str:
    found = report.comparison
    if found is None:
        told = "It has not been compared: that needs the real rows, and has a price of its own. "
        return p(f"{told}“dalenius synthesize {report.table} --compare --epsilon 0.1” releases it, as noisy counts.")
    rows = [
        (
            WAYS[each["columns"]],
            _of(each["tables"], each["of"]),
            f"{max(0.0, each['error']):.3f} ± {each['margin']:.3f}",
            to_percent(max(0.0, each["error"]) / 2),
        )
        for each in found["ways"]
    ]
    words = (
        "The error is the mean L1 distance of shares, from 0 to 2: half of it is the part of the rows that would have "
        "to be others. ± is the 95% margin for the added noise. Of columns with many values 32 classes are compared."
    )
    names = ("tables of", "compared", "error", "rows that would have to be others")
    parts = [p(words), table("Errors", names, rows, "hnnn"), _pairs(report), _prediction(found)]
    return "".join(parts)


def _of(tables: int, all_: int) -> str:
    return f"{tables:,}" if tables == all_ else f"{tables:,} of {all_:,}"


def _pairs(report: SyntheticReport) -> str:
    """All pairs as a grid, and the worst of them as a table."""
    errors, way = _errors_of(report, 2), _way(report, 2)
    if not errors:
        return ""
    names = [each.name for each in report.columns]
    places = {tuple(sorted((names.index(one), names.index(two)))): error for (one, two), error in errors.items()}
    worst = sorted(errors.items(), key=lambda each: -each[1])[:_WORST]
    rows = [(", ".join(pair), f"{max(0.0, error):.3f} ± {way['margin_each']:.3f}") for pair, error in worst]
    drawn = grid("Errors of pairs of columns", names, places) if len(names) <= _GRID else ""  # type: ignore[arg-type]
    told = p("Darker squares are pairs that are further from the real table.") if drawn else ""
    return heading(3, "Pairs of columns") + told + drawn + table("The largest errors", ("pair", "error"), rows, "hn")


def _prediction(found: Mapping[str, Any]) -> str:
    """What a classifier does that was learned from synthetic rows."""
    told = found["prediction"]
    if told is None:
        return ""
    lines = [
        ("Right on real rows", f"{to_percent(told['accuracy'])} ± {to_percent(min(1.0, told['margin']))}"),
        ("Right who always says the most frequent class", to_percent(told["most_frequent"])),
    ]
    if told["synthetic"] is not None:
        lines.append(("Right on synthetic rows that it was not learned from", to_percent(told["synthetic"])))
    names = [f"said {each}" for each in told["classes"]]
    rows = [
        (f"is {name}", *(to_digits(max(0.0, cell), 3) for cell in row))
        for name, row in zip(told["classes"], told["table"], strict=True)
    ]
    margin = to_digits(1.96 * told["sigma"], 3)
    about = (
        "A logistic regression was learned from synthetic rows alone; real rows were counted by what it says of them."
    )
    return (
        heading(3, f"Predicting {told['column']}")
        + p(about)
        + pairs("How often it is right", lines)
        + table(f"Real rows, each number ± {margin}", ("", *names), rows, "h" + "n" * len(names))
    )


def _way(report: SyntheticReport, columns: int) -> Mapping[str, Any]:
    ways: Sequence[Mapping[str, Any]] = [] if report.comparison is None else report.comparison["ways"]
    return next((each for each in ways if each["columns"] == columns), {})


def _errors_of(report: SyntheticReport, columns: int) -> dict[tuple[str, ...], float]:
    return {tuple(each["columns"]): each["error"] for each in _way(report, columns).get("each") or ()}
