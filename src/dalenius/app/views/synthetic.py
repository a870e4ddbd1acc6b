"""Synthetic tables on a terminal. Names are text from outside: shown, never obeyed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from dalenius._numbers import count_of, to_percent
from dalenius.ledger.budgets import rounded_down
from dalenius.queries.release import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from dalenius.synthesis.preview import SyntheticPreview
    from dalenius.synthesis.release import SyntheticTable

_LONGEST = 4000  # characters of a note


def print_synthetic(console: Console, found: SyntheticTable) -> None:
    """What was modelled and how, what it cost, what it promises, and what had to be left out."""
    stored = found.stored
    of = f"{count_of(len(found.columns), 'column')}, about {count_of(found.rows, 'row')}"
    console.print(Text(f"A model of {shown(stored.table)} ({of}), made by {stored.method}."))
    _print_left_out(console, found.left_out)
    cost = "free: paid for before" if found.free else f"charged ε = {found.charge['epsilon']:g}"
    promise = promised(found.guarantee)
    left = {who: rounded_down(each["epsilon"]) for who, each in found.remaining.items()}
    rest = f"left: you ε ≤ {left['analyst']:g}, data set ε ≤ {left['dataset']:g}"
    for line in (f"{cost} · {promise} · {rest}", limit_words(found)):
        console.print(Text(line, "dim"))
    for note in found.notes:
        console.print(Text(shown(note, _LONGEST), "bold yellow"))


def print_synthetic_preview(console: Console, expected: SyntheticPreview) -> None:
    """What would be modelled, how noisy, and what is left to pay with."""
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("column", overflow="fold")
    table.add_column("values", justify="right")
    table.add_column("rows of each value", justify="right")
    for each in expected.columns:
        table.add_row(Text(shown(each.name)), f"{each.values:,}", f"± {each.margin:,.4g}")
    console.print(table)
    _print_left_out(console, expected.left_out)
    left = {who: rounded_down(each["epsilon"]) for who, each in expected.remaining.items()}
    known = " · paid for before: free" if expected.known else ""
    rows = "" if expected.rows is None else f" of about {count_of(expected.rows, 'row')}"
    counted = f"{count_of(expected.rows_per_unit, 'row')} of one unit counted in full"
    rest = f"left: you ε ≤ {left['analyst']:g}, data set ε ≤ {left['dataset']:g}"
    console.print(
        Text(f"ε = {expected.epsilon:g} for all{rows} · by {expected.method}: {expected.words}{known}", "dim")
    )
    console.print(Text(f"95% margin for the added noise in single columns · {counted} · {rest}", "dim"))
    for note in expected.notes:
        console.print(Text(shown(note, _LONGEST), "bold yellow"))


def promised(guarantee: Mapping[str, Any]) -> str:
    """A guarantee in a few words."""
    unit, neighbors = shown(str(guarantee["unit"])), shown(str(guarantee["neighbors"]))
    delta = f", δ = {guarantee['delta']:g}" if guarantee["delta"] else ""
    return f"ε = {guarantee['epsilon']:g}{delta} for each {unit} ({neighbors})"


def limit_words(found: SyntheticTable) -> str:
    """What one unit adds to the model, and what the rows do not say."""
    most = count_of(found.stored.limit, "row")
    return f"{most} of one unit counted in full, and more of them less each. The rows do not say whose they are."


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
