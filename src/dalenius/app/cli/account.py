"""`dalenius account`: how much privacy a list of mechanisms costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius._fields import once
from dalenius.app.cli.frame import Frame, framed, read_input
from dalenius.app.views import NO_BOUND
from dalenius.errors import InputError, Place

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.accounting.accountant import Account
    from dalenius.accounting.events import Event
    from dalenius.accounting.guarantees import ApproxDP

GROUPS = (2, 5, 10)
_WORDS = {
    "gaussian": "closed form for Gaussian noise alone",
    "basic": "the sum of all ε",
    "advanced": "Dwork, Rothblum & Vadhan 2010",
    "optimal": "the best that (ε, δ) of each part allow",
    "zcdp": "the sum of all ρ, converted",
    "rdp": "Rényi divergences, best order",
    "pld": "the distribution of the privacy loss",
    "fixed-scores": "exact for exponential mechanisms, questions fixed beforehand",
}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("account")(account)


@framed
def account(
    frame: Frame,
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="JSON list of mechanisms; - reads stdin.")] = "-",
    delta: Annotated[float, typer.Option("--delta", help="The δ at which ε is wanted; 0 for pure ε.")] = 1e-6,
    fixed: Annotated[
        bool,
        typer.Option("--fixed", help="All questions were fixed beforehand, none chosen after an answer."),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw ε against repetitions (png or svg).")
    ] = None,
) -> None:
    """Adds up what a list of mechanisms costs, by every method that applies.

    Example: echo '[{"mechanism":"laplace","scale":10,"times":100}]' | dalenius account --delta 1e-6
    """
    from dalenius.accounting.accountant import account as best_bound
    from dalenius.accounting.descriptions import read_events

    if plot is not None:
        from dalenius.releasing.targets import PLOT, check_target

        check_target(plot, PLOT)
    text = read_input(
        None if file == "-" else file, "The input", "Name a file with a JSON list, or - to read it from stdin."
    )
    event = read_events(_parse(text))
    spent = best_bound(event, delta, adaptive=not fixed)
    if plot is not None:
        _draw(event, spent, plot)
        frame.note(f"Drew {plot}.")
    groups = _groups(event, spent)
    written = {str(size): {"epsilon": each.epsilon, "delta": each.delta} for size, each in groups.items()}
    frame.emit(spent.to_dict() | {"groups": written}, lambda console: _print(console, spent, groups))


def _parse(text: str) -> object:
    def refuse(constant: str) -> object:
        raise InputError(f"{constant} is not a number.", why="JSON has none such.", fix="Give a finite number.")

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise InputError(
            "This is not JSON." if text.strip() else "The input is empty.",
            why=f"{error.msg}.",
            fix='Write for example [{"mechanism": "laplace", "scale": 10, "times": 100}].',
            at=Place(error.lineno, error.colno),
        ) from None
    except (RecursionError, ValueError):  # nested past the stack, or a number of thousands of digits
        raise InputError(
            "This JSON is too deep or holds a number too long to read.",
            why="A list of mechanisms needs neither.",
            fix="Write it as a flat list.",
        ) from None


def _number(epsilon: float | None) -> str:
    if epsilon is None:
        return "–"
    return f"{epsilon:.6g}" if epsilon >= 1e6 or 0 < epsilon < 1e-4 else f"{epsilon:,.5f}"


def _groups(event: Event, spent: Account) -> dict[int, ApproxDP]:
    """The guarantee for groups of several units; those for which nothing is promised (δ ≥ 1) are left out."""
    from dalenius.accounting.accountant import group_guarantee

    if spent.method == "none":
        return {}
    larger = {size: group_guarantee(event, spent, size) for size in GROUPS}
    return {size: each for size, each in larger.items() if each.delta < 1}


def _print(console: Console, spent: Account, groups: dict[int, ApproxDP]) -> None:
    from rich.table import Table
    from rich.text import Text

    if spent.method == "none":
        console.print(f"No method gives a finite ε at δ = {spent.delta:g}.")
        return
    console.print(
        Text.assemble(
            ("ε = ", "bold"), (_number(spent.epsilon), "bold green"), f" at δ = {spent.delta:g}",
            (f"   ({_WORDS[spent.method]}; neighbours: {spent.neighbors.value})", "dim"),
        )
    )  # fmt: skip
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("method")
    table.add_column("ε", justify="right")
    table.add_column("how")
    for method, epsilon in spent.bounds.items():
        style = "bold green" if method == spent.method else ("dim" if epsilon is None else "")
        table.add_row(method, _number(epsilon), _WORDS[method], style=style)
    console.print(table)
    for size in GROUPS:
        promise = f"ε = {groups[size].epsilon:.4g}, δ = {groups[size].delta:.1g}" if size in groups else NO_BOUND
        console.print(Text(f"  groups of {size}: {promise}", "dim"))


def _draw(event: Event, spent: Account, target: Path) -> None:
    """ε of the whole list, repeated 1 to 1,000 times, by each method that applies."""
    from dalenius.accounting.accountant import epsilon_by
    from dalenius.accounting.events import Repeated
    from dalenius.queries.charts import axes_in

    times = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)
    with axes_in(target) as axes:
        for method in spent.bounds:
            if method == "fixed-scores" or spent.bounds[method] is None:
                continue
            points = [(n, epsilon_by(method, Repeated(event, n), spent.delta)) for n in times]
            known: list[tuple[int, Any]] = [(n, epsilon) for n, epsilon in points if epsilon]
            if known:
                axes.plot(*zip(*known, strict=True), label=method, linewidth=2.4 if method == spent.method else 1.2)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="repetitions of the whole list",
            ylabel=f"ε at δ = {spent.delta:g}",
        )
        axes.set_title("What the list costs when it is repeated")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
