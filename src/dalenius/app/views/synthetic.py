"""Synthetic tables on a terminal. Names are text from outside: shown, never obeyed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rich.table import Table
from rich.text import Text

from dalenius._numbers import count_of, to_percent
from dalenius.ledger.budgets import rounded_down
from dalenius.queries.release import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from dalenius.synthesis.comparison_release import Comparison, ComparisonPreview, Prediction
    from dalenius.synthesis.preview import SyntheticPreview
    from dalenius.synthesis.release import SyntheticTable
    from dalenius.synthesis.stored import StoredModel
    from dalenius.tables.policy import Facts

_LONGEST = 4000  # characters of a note
_WAYS = {1: "one column", 2: "two columns", 3: "three columns"}
_ERROR = "An error is the L1 distance of shares, from 0 to 2."


def print_synthetic(console: Console, found: SyntheticTable) -> None:
    """What was modelled and how, what it cost, what it promises, and what had to be left out."""
    stored = found.stored
    of = f"{count_of(len(found.columns), 'column')}, about {count_of(found.rows, 'row')}"
    console.print(Text(f"A model of {shown(stored.table)} ({of}), made by {shown(stored.method)}."))
    _print_left_out(console, found.left_out)
    cost = "free: paid for before" if found.free else f"charged ε = {found.charge['epsilon']:g}"
    promise = promised(found.guarantee)
    for line in (f"{cost} · {promise} · {left_words(found.remaining)}", limit_words(found), facts_words(found.facts)):
        if line:
            console.print(Text(line, "dim"))
    for note in found.notes:
        console.print(Text(shown(note, _LONGEST), "bold yellow"))


def print_synthetic_preview(console: Console, expected: SyntheticPreview) -> None:
    """What would be modelled, how noisy, and what is left to pay with."""
    table = _grid(("column", "left"), ("values", "right"), ("rows of each value", "right"))
    for each in expected.columns:
        table.add_row(Text(shown(each.name)), f"{each.values:,}", f"± {each.margin:,.4g}")
    console.print(table)
    _print_left_out(console, expected.left_out)
    known = " · paid for before: free" if expected.known else ""
    rows = "" if expected.rows is None else f" of about {count_of(expected.rows, 'row')}"
    counted = f"{count_of(expected.rows_per_unit, 'row')} of one unit counted in full"
    console.print(
        Text(
            f"ε = {expected.epsilon:g} for all{rows} · by {shown(expected.method)}: {shown(expected.words)}{known}",
            "dim",
        )
    )
    console.print(
        Text(f"95% margin for the added noise in single columns · {counted} · {left_words(expected.remaining)}", "dim")
    )
    console.print(Text(f"Work: {work_in_words(expected, expected.work)}, as far as public sizes tell.", "dim"))
    for note in expected.notes:
        console.print(Text(shown(note, _LONGEST), "bold yellow"))


def work_in_words(expected: SyntheticPreview, seconds: float) -> str:
    """What it takes, in words."""
    return f"about {max(1, round(seconds)):,} s, and {expected.memory / 2**30:,.1f} GiB of memory at most"


def print_comparison(console: Console, found: Comparison) -> None:
    """How far the synthetic table is from the real one, what a classifier does, and what it cost."""
    table = _grid(("tables of", "left"), ("compared", "right"), ("error", "right"), ("rows to be changed", "right"))
    for way in found.ways:
        count = f"{way.tables:,}" if way.tables == way.of else f"{way.tables:,} of {way.of:,}"
        error = max(0.0, way.error)
        table.add_row(_way_words(way.columns), count, f"{error:.3f} ± {way.margin:.3f}", to_percent(error / 2))
    console.print(table)
    for line in _worst(found):
        console.print(Text(line))
    if found.prediction is not None:
        for line in prediction_words(found.prediction):
            console.print(Text(line))
    cost = "free: paid for before" if found.free else f"charged ε = {found.charge['epsilon']:g}"
    console.print(Text(f"{_ERROR} ± is the 95% margin for the added noise.", "dim"))
    console.print(Text(f"{cost} · {promised(found.guarantee)} · {left_words(found.remaining)}", "dim"))
    for note in found.notes:
        console.print(Text(shown(note, _LONGEST), "bold yellow"))


def print_comparison_preview(console: Console, expected: ComparisonPreview) -> None:
    """How exact a comparison would be, and what is left to pay with."""
    table = _grid(("tables of", "left"), ("error", "right"))
    for way, margin in expected.margins.items():
        table.add_row(_WAYS.get(int(way) if way.isdecimal() else 0, shown(way)), f"± {margin:.4f}")
    console.print(table)
    if expected.predict is not None:
        console.print(Text(f"And how well {shown(expected.predict)} is predicted on real rows."))
    known = " · paid for before: free" if expected.known else ""
    console.print(Text(f"{_ERROR} ± is the 95% margin for the added noise.", "dim"))
    console.print(Text(f"ε = {expected.epsilon:g} for all of it{known} · {left_words(expected.remaining)}", "dim"))
    for note in expected.notes:
        console.print(Text(shown(note, _LONGEST), "bold yellow"))


def prediction_words(found: Prediction) -> list[str]:
    """What a classifier does that was learned from synthetic rows."""
    right = f"{to_percent(found.accuracy)} ± {to_percent(min(1.0, found.margin))}"
    often = to_percent(found.most_frequent)
    first = (
        f"A classifier learned from the synthetic rows is right about {shown(found.column)} in {right} of the real ones"
    )
    lines = [f"{first}; who always says the most frequent class would be in {often}."]
    if found.synthetic is not None:
        lines.append(f"On synthetic rows that it was not learned from: {to_percent(found.synthetic)}.")
    return lines


def _way_words(columns: int) -> str:
    return _WAYS.get(columns, f"{columns:,} columns")


def _worst(found: Comparison) -> list[str]:
    """The tables that are furthest from the real ones, of those that are told one by one."""
    lines = []
    for way in found.ways:
        worst = sorted(way.each or (), key=lambda each: -each["error"])[:3]
        if worst and way.margin_each is not None:
            told = ", ".join(
                f"{shown(' and '.join(each['columns']), 80)} {max(0.0, each['error']):.3f}" for each in worst
            )
            lines.append(f"Largest errors of {_way_words(way.columns)}: {told} (each ± {way.margin_each:.3f}).")
    return lines


def _grid(*columns: tuple[str, Literal["left", "right"]]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for name, justify in columns:
        table.add_column(name, justify=justify, overflow="fold")
    return table


def left_words(remaining: Mapping[str, Any]) -> str:
    """What is left to spend."""
    left = {who: rounded_down(each["epsilon"]) for who, each in remaining.items()}
    return f"left: you ε ≤ {left['analyst']:g}, data set ε ≤ {left['dataset']:g}"


def promised(guarantee: Mapping[str, Any]) -> str:
    """A guarantee in a few words."""
    unit, neighbors = shown(str(guarantee["unit"])), shown(str(guarantee["neighbors"]))
    delta = f", δ = {guarantee['delta']:g}" if guarantee["delta"] else ""
    return f"ε = {guarantee['epsilon']:g}{delta} for each {unit} ({neighbors})"


def facts_words(facts: Facts) -> str:
    """What everybody knows of all rows, by the policy; "" where nothing is declared."""
    told = [shown(rule, 120) for rule in facts.rules]
    told += [f"{shown(name)} follows from {shown(of)}" for name, of in facts.follows.items()]
    told += [f"known totals of {shown(name)}" for name in facts.totals]
    return f"Rows keep to what the policy says of all: {'; '.join(told)}." if told else ""


def limit_words(found: SyntheticTable) -> str:
    """What one unit adds to the model, and what the rows say of units."""
    return f"{limit_text(found.stored.limit)}. {whose_words(found.stored)}"


def whose_words(stored: StoredModel) -> str:
    """What the rows say of whose they are."""
    if stored.units is None:
        return "The rows do not say whose they are."
    count = count_of(round(stored.units.count), "made-up unit")
    return f"{shown(stored.units.name)} says whose a row is: about {count}."


def limit_text(rows: int) -> str:
    """What one unit adds."""
    return f"{count_of(rows, 'row')} of one unit counted in full, and more of them less each"


def expected_words(expected: SyntheticPreview) -> str:
    """How noisy the rows of an average value would be, of the columns for which that is least and most."""
    if not expected.rows:
        return ""
    several = [each for each in expected.columns if each.values > 1] or expected.columns
    shares = sorted((each.margin * each.values / expected.rows, shown(each.name, 30)) for each in several)
    if shares[0][0] >= 1:
        return "mostly noise: at this price no column's values can be told apart"
    told = [
        f"± {to_percent(share)} ({name})" if share < 1 else f"more than ± 100% ({name})"
        for share, name in dict.fromkeys((shares[0], shares[-1]))
    ]
    return f"an average value's rows {' to '.join(told)}"


def _print_left_out(console: Console, left_out: Mapping[str, str]) -> None:
    for name, why in left_out.items():
        console.print(Text(f"Left out: {shown(name)}. To have it, ask the owner to {why}.", "yellow"))
