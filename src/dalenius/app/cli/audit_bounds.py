"""`dalenius audit mechanism` and `audit question`: lower bounds on ε from samples."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli.frame import Frame, framed, stderr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Console

    from dalenius.audit.lower_bounds.bounding import LowerBound
    from dalenius.audit.mechanisms import Subject

FOUND = 6  # a check failed

Samples = Annotated[int, typer.Option("--samples", metavar="N", help="Runs on each of the two inputs.")]
Confidence = Annotated[float, typer.Option("--confidence", metavar="C", help="That ε is above what is printed.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="The trade-off curve, .png or .svg.")]


def register(commands: typer.Typer) -> None:
    """Adds the commands."""
    commands.command("mechanism")(mechanism)
    commands.command("question")(question)


@framed
def mechanism(
    frame: Frame,
    name: Annotated[str, typer.Argument(metavar="NAME|list", help="A mechanism, or 'list'.")],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The ε that it claims.")] = 1.0,
    samples: Samples = 1_000_000,
    confidence: Confidence = 0.999,
    delta: Annotated[float | None, typer.Option("--delta", metavar="D", help="Look at this δ alone.")] = None,
    plot: Plot = None,
) -> None:
    """Samples a mechanism on two neighbouring inputs and says which ε the samples show.

    Half of the samples serve to find an event that tells the inputs apart, the rest to count it. Exits with 6 when the
    ε shown is above the one claimed. No home, no budget and no data of yours are touched.

    Example: dalenius audit mechanism laplace --samples 100000
    """
    from dalenius.audit.lower_bounds import bounding
    from dalenius.audit.mechanisms import subject

    if name == "list":
        _list(frame)
        return
    chosen = subject(name, epsilon)
    bounding.check_sampling(samples, confidence)
    if plot is not None:
        from dalenius.audit.lower_bounds.charts import check_plot

        check_plot(plot)
    with progress_bar(frame, "sampling") as update:
        found = bounding.lower_bound(
            chosen.draw, chosen.claim, samples=samples, confidence=confidence, delta=delta, progress=update
        )
    if plot is not None:
        from dalenius.audit.lower_bounds.charts import plot_trade_off

        plot_trade_off(found, chosen.name, plot)
    data = {"mechanism": chosen.name, "ours": not chosen.broken, **found.to_dict(), "plot": plot}
    frame.emit(data, lambda console: _print(console, chosen, found), FOUND if found.broken else 0)


@framed
def question(
    frame: Frame,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT over one protected table.")],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The price it is asked at.")] = 1.0,
    delta: Annotated[float | None, typer.Option("--delta", metavar="D", help="For finding keys.")] = None,
    samples: Samples = 20_000,
    confidence: Confidence = 0.999,
) -> None:
    """For owners: samples a question on the real table with and without a unit, and says which ε the answers show.

    Charges nothing, because nothing leaves: the answers are dropped, and only the claim, the ε shown and the number of
    samples are printed, here. What is printed follows from the raw rows: do not pass it on. The ledger notes that an
    audit ran. Exits with 6 when the claim is broken.

    Example: dalenius audit question "SELECT COUNT(*) FROM visits" --epsilon 1
    """
    from dalenius.audit.questions.auditing import audit_question
    from dalenius.curator import Curator
    from dalenius.queries.ask import Ask

    curator = Curator(frame.require_home())
    with progress_bar(frame, "sampling") as update:
        found = audit_question(
            curator, Ask(sql, epsilon, delta=delta), samples=samples, confidence=confidence, progress=update
        )
    shown = found.to_dict()

    def human(console: Console) -> None:
        at = f" at δ = {shown['delta']:g}" if shown["delta"] else ""
        rows = {
            "claimed": f"ε ≤ {shown['claimed']:.4g}{at}",
            "shown": f"ε ≥ {shown['epsilon']:.4g}{at}, with confidence {_chance(confidence)}",
            "samples": f"{samples:,} on each side, half of them to learn from",
        }
        _print_rows(console, rows)
        _print_verdict(console, broken=found.bound.broken)
        console.print("Nothing was charged. This follows from the raw rows: keep it to yourself.", style="dim")

    frame.emit(shown, human, FOUND if found.bound.broken else 0)


def _list(frame: Frame) -> None:
    from dalenius.audit.mechanisms import BROKEN, OURS

    every = [made(1.0) for made in (OURS | BROKEN).values()]
    data = {
        "mechanisms": [
            {"name": each.name, "about": each.about, "ours": not each.broken, "wrong": each.wrong} for each in every
        ]
    }

    def human(console: Console) -> None:
        from rich.table import Table

        for title, broken in (("ours", False), ("known to be broken, to learn from", True)):
            console.print(title, style="bold", highlight=False)
            rows = Table.grid(padding=(0, 2))
            for each in every:
                if each.broken is broken:
                    rows.add_row(f"  {each.name}", each.about)
            console.print(rows, highlight=False)

    frame.emit(data, human)


def _print(console: Console, subject: Subject, found: LowerBound) -> None:
    print_bound(console, f"{subject.name}: {subject.about}", found)
    if subject.wrong:
        console.print(f"What is wrong with it: {subject.wrong}", highlight=False, markup=False, soft_wrap=True)


def print_bound(console: Console, title: str, found: LowerBound) -> None:
    """Claim, ε̂, confidence, event and verdict, in plain words."""
    worst = found.worst
    (low, _), (_, high) = worst.rates
    at = f" at δ = {worst.delta:g}" if worst.delta else ""
    claimed = f"ε ≤ {worst.claimed:.4g}{at}" + ("" if worst is found.main else f" (it claims {found.claim.words})")
    rows = {
        "what": title,
        "claimed": claimed,
        "shown": f"ε ≥ {worst.epsilon:.4g}{at}, with confidence {_chance(found.confidence)}",
        "event found": worst.event,
        "how often": f"at least {low:.4g} on one input, at most {high:.4g} on the other",
        "samples": f"{found.samples:,} on each input, half of them to learn from, in {found.seconds:.1f} s",
    }
    _print_rows(console, rows)
    _print_verdict(console, broken=found.broken)


def _print_rows(console: Console, facts: Mapping[str, str]) -> None:
    from rich.table import Table

    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column(overflow="fold")
    for name, fact in facts.items():
        rows.add_row(name, fact)
    console.print(rows, highlight=False)


def _print_verdict(console: Console, *, broken: bool) -> None:
    if broken:
        console.print("[bold red]The claim is broken.[/] The inputs can be told apart more often than it allows.")
    else:
        console.print("[bold green]Within its claim.[/] This is no proof: no event that was tried breaks it.")


def _chance(confidence: float) -> str:
    missed = 1 - confidence
    return f"{confidence * 100:.10g}%" if missed > 1e-5 else f"1 − {missed:.1g}"


@contextmanager
def progress_bar(frame: Frame, words: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr: how many of how many are done."""
    if frame.quiet or frame.json:
        yield lambda done, total: None  # noqa: ARG005
        return
    from rich.progress import Progress

    with Progress(console=stderr(), transient=True) as progress:
        task = progress.add_task(words, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
