"""The report as HTML: one file that needs nothing else, for screens and paper; every text in it is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, Context

from dalenius.app.report import ANALYST, EVERYBODY, OWNER, Action, Promise, Report, Spending
from dalenius.app.report_charts import bars, meter, steps, text
from dalenius.app.report_words import GLOSSARY, THEOREMS
from dalenius.ledger.budgets import rounded_down

_PERIODS = 24  # rows of each data set, the newest; the facts have all
_LONG = 500  # rows of any other table, the newest

STYLE = """
.report { --ink: #1c2530; --soft: #55606d; --rule: #d5dae0; --paper: #fff; --wash: #f4f6f8; --mark: #24557f;
  --good: #2d6a3e; --goodwash: #edf6ef; --bad: #a3211a; --badwash: #fcefee; color: var(--ink);
  background: var(--paper); font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; overflow-wrap: anywhere; width: 100%;
  box-sizing: border-box; }
@media (prefers-color-scheme: dark) { .report { --ink: #e3e8ee; --soft: #a3adb8; --rule: #3a434e; --paper: #14181d;
  --wash: #1d232a; --mark: #6fa8d8; --good: #7cc48f; --goodwash: #17261b; --bad: #f0938c; --badwash: #2e1917; } }
.report h1, .report h2, .report h3, .report h4 { line-height: 1.25; letter-spacing: 0; margin: 0; color: inherit; }
.report .t1 { font-size: 2rem; font-weight: 650; }
.report .t2 { font-size: 1.35rem; font-weight: 650; margin-top: 2.75rem; padding-top: .9rem;
  border-top: 1px solid var(--rule); }
.report .t3 { font-size: 1.08rem; font-weight: 650; margin-top: 1.75rem; }
.report p { margin: .6rem 0; max-width: 46rem; }
.report .soft { color: var(--soft); }
.report .small { font-size: .875rem; }
.report code { font: .85em/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.report a { color: var(--mark); }
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
.report caption { text-align: left; color: var(--soft); font-size: .875rem; padding: 0 0 .35rem; }
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
.report tr > :last-child { padding-right: 0; }
.report ul.plain { margin: 0; padding-left: 1.05rem; }
.report dl { margin: .9rem 0; }
.report dt { font-weight: 650; margin-top: .7rem; }
.report dd { margin: 0; max-width: 46rem; }
.report svg.chart { display: block; width: 100%; max-width: 46rem; height: auto; margin: .9rem 0; }
.report svg.chart text { font: 12px system-ui, "Segoe UI", Roboto, Arial, sans-serif; fill: var(--soft); }
.report svg .grid { stroke: var(--rule); fill: none; }
.report svg .line { stroke: var(--mark); stroke-width: 2.2; fill: none; }
.report svg .cap { stroke: var(--bad); stroke-width: 1.4; stroke-dasharray: 6 4; fill: none; }
.report svg .mark { fill: var(--mark); }
.report svg .rail { fill: var(--rule); }
.report svg.meter { width: 6rem; height: .5rem; vertical-align: middle; }
@media (max-width: 640px) { .report .pairs th { width: auto; min-width: 7rem; }
  .report { padding: 1.25rem 1rem 3rem; } .report .t1 { font-size: 1.6rem; }
  .report svg.chart { min-width: 32rem; } }
@media print { @page { size: A4; margin: 18mm 16mm; }
  .report { --ink: #000; --soft: #444; --rule: #bbb; --paper: #fff; --mark: #24557f; --good: #2d6a3e;
    --goodwash: #fff; --bad: #a3211a; --badwash: #fff; padding: 0; max-width: none; font-size: 10.5pt;
    background: none; }
  .report nav { display: none; } .report .wide { overflow: visible; } .report .long { min-width: 0; }
  .report .t2, .report .t3, .report caption { break-after: avoid; }
  .report tr, .report .state, .report svg, .report dt, .report dd { break-inside: avoid; }
  .report dt { break-after: avoid; } .report thead { display: table-header-group; }
  .report table { font-size: 8.5pt; } .report thead th { font-size: 8pt; } .report svg.meter { width: 3rem; }
  .report th, .report td { padding-right: .6rem; }
  .report svg.chart { min-width: 0; max-width: 150mm; } .report a { color: inherit; text-decoration: none; } }
"""
_PAGE = """html { background: #fff; } body { margin: 0; }
@media (prefers-color-scheme: dark) { html { background: #14181d; } }
@media print { html { background: #fff; } }
"""


def document(report: Report) -> str:
    """The whole file."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>Privacy report, {text(_when(report.made))}</title>\n<style>{_PAGE}{STYLE}</style>\n</head>\n"
        f"<body>\n{body(report)}\n</body>\n</html>\n"
    )


def body(report: Report, *, level: int = 1) -> str:
    """What stands in the file, or in a page whose own heading is above ``level``."""
    page = _Body(report, level)
    tag = "main" if level == 1 else "div"  # a page has a main of its own
    return f'<{tag} class="report">{page.rendered()}</{tag}>'


class _Body:
    """One rendering."""

    def __init__(self, report: Report, level: int) -> None:
        self.report, self.level = report, level

    def rendered(self) -> str:
        sections: tuple[tuple[str, str, Callable[[], str]], ...] = (
            ("promised", "What was promised", self._promised),
            ("spent", "What was spent", self._spent),
            ("questions", "Questions", self._questions),
            ("publications", "Published without guarantee", self._publications),
            ("policies", "Policies and their changes", self._policies),
            ("data", "Data versions and epochs", self._data),
            ("actions", "What the owner did", self._actions),
            ("alarms", "Alarms", self._alarms),
            ("mechanisms", "How answers are protected", self._mechanisms),
            ("history", "Whether this can be relied on", self._history),
            ("glossary", "Glossary", self._glossary),
        )
        links = "".join(f'<li><a href="#report-{key}">{title}</a></li>' for key, title, _ in sections)
        parts = [
            self._heading(1, "Privacy report"),
            self._about(),
            self._state(),
            f'<nav aria-label="Sections of the report"><ul>{links}</ul></nav>',
        ]
        for key, title, write in sections:
            head = self._heading(2, title, f"report-{key}")
            parts.append(f'<section aria-labelledby="report-{key}">{head}{write()}</section>')
        return "\n".join(parts)

    def _heading(self, step: int, words: str, name: str = "") -> str:
        tag = f"h{self.level + step - 1}"
        mark = f' id="{name}"' if name else ""
        return f'<{tag} class="t{step}"{mark}>{text(words)}</{tag}>'

    def _about(self) -> str:
        report = self.report
        since = f", about the time since {_when(report.begun)}" if report.begun else ""
        return _p(f"Made {_when(report.made)} UTC by {report.program}{since}.", "soft")

    def _state(self) -> str:
        checked, names = self.report.verification, self.report.promises
        if not checked.holds:
            return (
                f'<div class="state broken" role="alert"><p><strong>The history does not hold.</strong> '
                f"{text(checked.message)} {text(checked.why)}</p><p>{text(checked.fix)} What follows is what can still "
                "be read; do not rely on it.</p></div>"
            )
        kept = all(each.epsilon <= _cap(each, self.report) for each in self.report.spending if each.role == EVERYBODY)
        words = (
            f"{len(names)} data set{'s are' if len(names) != 1 else ' is'} protected, and no budget was exceeded."
            if kept
            else "A budget was made smaller than what had been spent before; nothing more is answered from it."
        )
        return (
            f'<div class="state"><p><strong>The history holds.</strong> {text(words)} {checked.entries:,} entries were '
            f"checked, among them {checked.charges:,} charges.</p></div>"
        )

    # --- sections

    def _promised(self) -> str:
        if not self.report.promises:
            return _p("Nothing is protected yet.")
        intro = _p(
            "Analysts never see rows. They ask questions, and each answer is changed at random, so that it would be "
            "almost as likely without any one protected unit in the data. How much all answers together may reveal "
            "about one unit is bounded by ε: nothing that leaves becomes more than e^ε times likelier because of it."
        )
        return intro + "".join(self._promise(each) for each in self.report.promises)

    def _promise(self, promise: Promise) -> str:
        every = f", in each {promise.period}" if promise.period else ""
        other = (
            "the same data without that unit"
            if promise.neighbors == "add-remove"
            else "the same data with another in the place of that unit"
        )
        delta = f"{promise.delta:g}" if promise.delta else "0: the bound always holds"
        rows = [
            ("Protected", f"each {promise.unit}{every}: all its rows together"),
            ("Tables", ", ".join(promise.tables) or "none now"),
            ("Compared with", f"{other} ({promise.neighbors})"),
            ("ε, at most", f"{promise.epsilon:g}{every}: a factor of {_factor(promise.epsilon)}"),
            ("δ, the chance of an exception", delta),
            ("Added up in", "ρ (zCDP)" if promise.accounting == "zcdp" else "ε (pure)"),
            ("Since", f"{_when(promise.since)} UTC"),
        ]
        cells = "".join(f'<tr><th scope="row">{text(a)}</th><td>{text(b)}</td></tr>' for a, b in rows)
        head = self._heading(3, promise.dataset)
        caption = f"The promise for {promise.dataset}"
        table = f'<table class="pairs"><caption>{text(caption)}</caption><tbody>{cells}</tbody></table>'
        return head + _wide(caption, table) + self._groups(promise)

    def _groups(self, promise: Promise) -> str:
        spent = [each for each in self.report.spent(promise.dataset) if each.groups]
        if not spent:
            return _p("Nothing has been spent, so groups are protected as single units are.", "soft small")
        worst = max(spent, key=lambda each: each.epsilon)
        period = f" (in {worst.period}, the period with the most)" if worst.period else ""
        rows = [("1", _up(worst.epsilon), _factor(worst.epsilon), f"{worst.delta:.2g}")]
        rows += [(str(g.size), _up(g.epsilon), _factor(g.epsilon), f"{g.delta:.2g}") for g in worst.groups]
        return _table(
            f"What was spent so far means, for groups of several units ({promise.unit}) together{period}",
            ("units together", "ε so far", "factor", "δ"),
            rows,
            "nnnn",
        ) + _p(
            "A family or a team is protected less than one unit alone. Small factors still protect it.", "soft small"
        )

    def _spent(self) -> str:
        if not self.report.promises:
            return _p("Nothing.")
        parts = [
            _p(
                "Each question is charged before the data is looked at, and nothing is ever refunded. Where losses are "
                "added up in ρ, many small questions cost less than the sum of their ε, and a question of twice the ε "
                "takes four times the share."
            )
        ]
        for promise in self.report.promises:
            parts += [self._heading(3, promise.dataset), self._chart(promise), self._spenders(promise)]
        return "".join(parts) + self._earlier()

    def _chart(self, promise: Promise) -> str:
        spent = self.report.spent(promise.dataset)
        if not any(each.questions for each in spent):
            return _p("Nothing has been spent.")
        if promise.period is None:
            return _wide("Chart", steps(promise.dataset, promise.line, promise.caps, self.report.made))
        rows = [(each.period, each.epsilon) for each in spent][-_PERIODS:]
        return _wide("Chart", bars(promise.dataset, rows, promise.epsilon))

    def _spenders(self, promise: Promise) -> str:
        found = [each for role in (EVERYBODY, OWNER, ANALYST) for each in self.report.spent(promise.dataset, role)]
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
                    _up(each.epsilon),
                    "" if each.cap is None else f"{each.cap:g}",
                    "" if each.left is None else f"{rounded_down(each.left):g}",
                    _Html(f"{meter(each.share)} {_percent(each.share)}"),
                )
            )
        names = ("who", "questions", "ε spent", "may spend", "next question ≤", "share of the budget")
        table = _table(
            f"Who spent how much of {promise.dataset}",
            (("period", *names) if promise.period else names),
            rows,
            "whnnnnw" if promise.period else "hnnnnw",
        )
        if len(periods) > _PERIODS:
            table += _p(f"The newest {_PERIODS} of {len(periods)} periods.", "soft small")
        if any(each.role == ANALYST and each.cap is None for each in found):
            table += _p("Who has nothing in “may spend” has no allotment any more; what was spent stays.", "soft small")
        return table

    def _earlier(self) -> str:
        current = {each.dataset: each.epoch for each in self.report.promises}
        past = [each for each in self.report.spending if each.role == EVERYBODY and each.epoch < current[each.dataset]]
        if not past:
            return ""
        rows = [
            (each.dataset, str(each.epoch), each.period, f"{each.questions:,}", _up(each.epsilon), f"{each.delta:.2g}")
            for each in past[-_LONG:]
        ]
        return self._heading(3, "People of earlier epochs") + _table(
            "What was spent on people who were in the data before",
            ("data set", "epoch", "period", "questions", "ε spent", "δ"),
            rows,
            "hnwnnn",
        )

    def _questions(self) -> str:
        found = self.report.questions
        words = (
            f"{found.charged:,} questions were charged; {found.answered:,} were answered, {found.failed:,} ended "
            f"without an answer, {found.open:,} are open. {_times(found.granted)} an analyst got an answer that "
            "another had paid for: it counts against the own allotment alone, since nothing new left. The same "
            "question asked again by the same analyst is free and not counted."
        )
        if not self.report.failures:
            return _p(words)
        rows = [
            (str(each.entry), _when(each.time), each.dataset, each.analyst or "the owner", f"{each.epsilon:g}")
            for each in self.report.failures
        ]
        return _p(words) + _table(
            "Charged, and ended without an answer", ("entry", "time (UTC)", "data set", "who", "ε"), rows, "nwlln"
        )

    def _publications(self) -> str:
        if not self.report.publications:
            return _p("Nothing was published without a guarantee.")
        return _p("These left without the protection of noise; ε does not bound what they reveal.") + _acted(
            "Published without guarantee", self.report.publications
        )

    def _policies(self) -> str:
        if not self.report.policies:
            return _p("There is no policy.")
        intro = _p("A policy says what may be asked about a table, and for how much. Every version is kept.")
        rows = []
        for each in self.report.policies:
            items = "".join(
                f"<li><code>{text(change.place)}</code>: {text(change.what)}"
                + (f' <span class="soft">({text(change.note)})</span>' if change.note else "")
                + "</li>"
                for change in each.changes
            )
            said = "first version" if each.first else "nothing that it says"
            what = _Html(f'<ul class="plain">{items}</ul>') if items else said
            rows.append((str(each.entry), _when(each.time), each.table, each.version[:12], what, each.reason))
        columns = ("entry", "time (UTC)", "table", "version", "what changed", "reason")
        return intro + _table("Every version of every policy", columns, rows, "nwlwxl")

    def _data(self) -> str:
        if not self.report.data:
            return _p("There is no data.")
        rows = [
            (
                str(each.entry),
                _when(each.time),
                each.table,
                str(each.data_version),
                str(each.epoch),
                str(each.files),
                each.by,
                each.reason,
            )
            for each in self.report.data
        ]
        columns = ("entry", "time (UTC)", "table", "version", "epoch", "files", "by", "reason")
        parts = _table("The data behind each table", columns, rows, "nwlnnnll")
        if not self.report.epochs:
            return parts + _p("Nobody declared people to be new ones: no budget was ever started afresh.")
        fresh = [
            (str(each.entry), _when(each.time), each.dataset, str(each.epoch), each.by, each.reason)
            for each in self.report.epochs
        ]
        return (
            parts
            + _p("A new epoch starts a budget afresh. It is right only if nobody in the new data was in the old.")
            + _table(
                "New people", ("entry", "time (UTC)", "data set", "epoch", "declared by", "reason"), fresh, "nwlnll"
            )
        )

    def _actions(self) -> str:
        if not self.report.actions:
            return _p("Nothing is on record.")
        return _p("Budgets, allotments, tokens (with which a server is used), limits and notes.") + _acted(
            "Owner actions", self.report.actions
        )

    def _alarms(self) -> str:
        if not self.report.alarms:
            return _p("There was no alarm.")
        rows = [
            (str(e.entry), _when(e.time), e.dataset, "" if e.charge is None else str(e.charge), e.what)
            for e in self.report.alarms
        ]
        columns = ("entry", "time (UTC)", "data set", "charge", "what")
        return _table("Alarms while questions were answered", columns, rows[-_LONG:], "nwlnx") + _cut(len(rows))

    def _mechanisms(self) -> str:
        if not self.report.mechanisms:
            return _p("No mechanism has been used yet.")
        rows = []
        for each in self.report.mechanisms:
            told = THEOREMS.get(each.mechanism)
            name, does, proved = told or (each.mechanism, "Not known to this release.", "See its documentation.")
            rows.append((name, f"{each.charges:,}", does, proved))
        return _p(
            "These are all ways in which answers were made. Each comes with a proof; noise is drawn exactly, from "
            "cryptographic random bits."
        ) + _table("Mechanisms that were used", ("mechanism", "questions", "does", "proved"), rows, "hnxx")

    def _history(self) -> str:
        checked = self.report.verification
        parts = _p(
            "Every charge and every owner action is an entry in a history in which each entry is sealed together with "
            "the one before it. For this report, all of it was read again: that nothing was changed, removed or added, "
            "and that every charge fitted into what was left at its time."
        )
        if checked.holds:
            parts += _p(
                f"It holds: {checked.entries:,} entries, {checked.charges:,} charges, {checked.releases:,} answers."
            )
        else:
            parts += _p(f"It does not hold. {checked.message} {checked.why} {checked.fix}")
            if self.report.unreadable:
                parts += _p(f"Entries that cannot be read: {', '.join(map(str, self.report.unreadable[:50]))}.")
        parts += f"<p>Head: <code>{text(checked.head)}</code></p>"
        return parts + _p(
            "Keep the head. “dalenius ledger verify --expect HEAD” shows later whether this history is still part of "
            "the one there is then. What this report cannot show: whether the policies are right about the data, and "
            "what those who run the server see of it."
        )

    def _glossary(self) -> str:
        return "<dl>" + "".join(f"<dt>{text(word)}</dt><dd>{text(means)}</dd>" for word, means in GLOSSARY) + "</dl>"


class _Html(str):
    """HTML that was made here, of texts that were escaped."""

    __slots__ = ()


_CLASSES = {"n": "n", "w": "w", "x": "long"}


def _table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], kinds: str) -> str:
    """A table; of each column, ``kinds`` says: n number, w one line, x long, h head of its row, l anything else."""
    marks = [f' class="{_CLASSES[kind]}"' if kind in _CLASSES else "" for kind in kinds]
    head = "".join(f'<th scope="col"{mark}>{text(each)}</th>' for each, mark in zip(columns, marks, strict=True))
    lines = []
    for row in rows:
        cells = ""
        for cell, kind, mark in zip(row, kinds, marks, strict=True):
            shown = cell if isinstance(cell, _Html) else text(cell)
            cells += f'<th scope="row">{shown}</th>' if kind == "h" else f"<td{mark}>{shown}</td>"
        lines.append(f"<tr>{cells}</tr>")
    inside = f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return _wide(caption, f"<table>{inside}</table>")


def _wide(name: str, inside: str) -> str:
    """What may be wider than a phone: it scrolls by itself, also from the keyboard."""
    return f'<div class="wide" tabindex="0" role="group" aria-label="{text(name)}">{inside}</div>'


def _acted(caption: str, actions: Sequence[Action]) -> str:
    rows = [(str(e.entry), _when(e.time), e.kind, e.what, e.reason) for e in actions]
    return _table(caption, ("entry", "time (UTC)", "kind", "what", "reason"), rows[-_LONG:], "nwwxl") + _cut(len(rows))


def _cut(count: int) -> str:
    return _p(f"The newest {_LONG} of {count:,}; the ledger has all.", "soft small") if count > _LONG else ""


def _cap(spent: Spending, report: Report) -> float:
    return next(each.epsilon for each in report.promises if each.dataset == spent.dataset) * (1 + 1e-9)


def _p(words: str, classes: str = "") -> str:
    return f'<p class="{classes}">{text(words)}</p>' if classes else f"<p>{text(words)}</p>"


def _percent(share: float) -> str:
    return "under 1%" if 0 < share < 0.01 else f"{100 * share:.0f}%"


def _times(count: int) -> str:
    return "Once" if count == 1 else f"{count:,} times"


def _when(time: str) -> str:
    return time[:16].replace("T", " ")


def _up(value: float) -> str:
    """Three digits, rounded up: never less than what was spent."""
    return f"{Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(value)).normalize():f}"


def _factor(epsilon: float) -> str:
    """e^ε, for people."""
    from math import exp

    if epsilon > 13.8:
        return "more than a million"
    found = exp(epsilon)
    return f"{found:,.0f}" if found >= 100 else f"{found:.3g}"
