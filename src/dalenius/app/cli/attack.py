"""`dalenius attack`: breaks naive systems, and tries to break ours."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli.frame import Frame, framed, stderr
from dalenius.app.cli.server_option import TokenFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from dalenius.audit.attacks.attack import Finding
    from dalenius.audit.lab import Scorecard, Settings

LIST, ALL, TEACH = "list", "all", "counterexamples"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("attack")(attack)


@framed
def attack(
    frame: Frame,
    name: Annotated[str, typer.Argument(metavar="list | NAME | all | counterexamples", help="Which.")] = LIST,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="TARGET", help="plain, noisy, sticky, dalenius, or a server's URL."),
    ] = None,
    table: Annotated[
        str, typer.Option("--table", metavar="T", help="students, coins, or a CSV or Parquet file; at a URL its name.")
    ] = "students",
    secret: Annotated[
        str | None, typer.Option("--secret", metavar="COLUMN", help="Of a file: what the attack is after.")
    ] = None,
    amount: Annotated[str | None, typer.Option("--amount", metavar="COLUMN", help="Of a file: a number.")] = None,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", metavar="FILE", help="At a URL: the rows themselves, by which the attack is judged."),
    ] = None,
    person: Annotated[
        str, typer.Option("--person", metavar="COLUMN", help="At a URL: counts the people from 0, in the file's order.")
    ] = "person",
    people: Annotated[int | None, typer.Option("--people", metavar="N", help="Only the first N people.")] = None,
    total: Annotated[float, typer.Option("--total", metavar="E", help="The budget of our curator in the lab.")] = 1.0,
    epsilon: Annotated[float | None, typer.Option("--epsilon", metavar="E", help="The price of one question.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="S", help="Of the attacker's coins.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw it (png or svg).")] = None,
    token_file: TokenFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="At a URL: spend the budget there.")] = False,
) -> None:
    """Runs an attack on a target, and says what it learned, from how many questions, at what price.

    Targets: plain (exact answers, none about few people), noisy (fresh noise for ever), sticky (noise seeded by the
    question), dalenius (our curator, in a folder of its own), or a server's URL, which spends a real budget.

    Example: dalenius attack averaging --against noisy
    """
    if name == LIST:
        _list(frame)
        return
    if name == TEACH:
        _teach(frame, seed)
        return
    from dalenius.audit.attacks import NAMES, attack_named

    if name not in (ALL, *NAMES):
        attack_named(name)  # says which there are
    if against is not None and "://" in against:
        _remote(
            frame, name, against, table, truth, secret, amount, person, people, epsilon, seed, plot, token_file, yes
        )
        return
    settings = _settings(table, secret, amount, people, total, epsilon, seed)
    _run(frame, name, against, settings, plot)


def _run(frame: Frame, name: str, against: str | None, settings: Settings, plot: Path | None) -> None:
    from dalenius.audit.attacks import attack_named
    from dalenius.audit.lab import TARGETS, Scorecard, check_target, run, run_all

    chosen = TARGETS if against is None else (against,)
    if against is not None:
        check_target(against)
    with _bar(frame) as update:
        if name == ALL:
            card = run_all(settings, chosen, update)
        else:
            made_for = attack_named(name).against if against is None else chosen
            found = [run(name, each, settings, partial(update, f"{name} against {each}")) for each in made_for]
            card = Scorecard(tuple(found))
    if plot is not None and name != ALL:
        from dalenius.audit.attacks.drawing import draw

        draw(card.findings, plot)
    frame.emit(card.to_dict(), lambda console: _print(console, card, single=name != ALL))


def _settings(
    table: str,
    secret: str | None,
    amount: str | None,
    people: int | None,
    total: float,
    epsilon: float | None,
    seed: int | None,
) -> Settings:
    import math

    import numpy as np

    from dalenius.audit.lab import Settings
    from dalenius.audit.targets.scene import DEMO, demo_scene, made_up, scene_in
    from dalenius.errors import InputError

    for option, value in (("--total", total), ("--epsilon", epsilon)):
        if value is not None and not (math.isfinite(value) and 0 < value <= 1000):
            raise InputError(
                f"{option} {value:g} is no price.", why="A price is above 0 and finite.", fix="Write --epsilon 0.1."
            )
    if table == DEMO:
        scene = demo_scene(people)
    elif table == "coins":
        scene = made_up(people or 1000, np.random.default_rng(seed))
    else:
        scene = scene_in(Path(table), secret, amount, people)
    return Settings(scene, total, epsilon, seed)


def _remote(
    frame: Frame,
    name: str,
    url: str,
    table: str,
    truth: Path | None,
    secret: str | None,
    amount: str | None,
    person: str,
    people: int | None,
    epsilon: float | None,
    seed: int | None,
    plot: Path | None,
    token_file: Path | None,
    yes: bool,
) -> None:
    from dalenius.app.cli.server_option import server_of
    from dalenius.audit.attacks import NAMES
    from dalenius.audit.lab import EPSILON, Scorecard, run_on
    from dalenius.audit.targets.remote import Columns, Remote
    from dalenius.audit.targets.scene import scene_in
    from dalenius.errors import InputError

    if truth is None:
        raise InputError(
            "An attack on a server needs --truth FILE.",
            why="The rows themselves say what the attacker knows beforehand, and judge what it guessed.",
            fix="Give the file behind the table, with --secret and --person naming its columns.",
        )
    scene = scene_in(truth, secret, amount, people)
    remote = server_of(frame, url, token_file)
    if remote is None:
        raise InputError("There is no server.", why="--against names none.", fix="Write --against https://….")
    with remote:
        columns = Columns(person, secret or "secret", amount or "amount", "")
        target = Remote(scene, remote, epsilon=epsilon or EPSILON, table=table, columns=columns)
        left = target.worst_price()
        if not yes:
            raise InputError(
                f"This attack may spend all that is left there: ε = {left:.3g}.",
                why="An attack on a server pays for its questions like anybody else.",
                fix="Give --yes to spend it.",
            )
        frame.note(f"Attacking {url}: up to ε = {left:.3g} of a real budget.")
        names = [each for each in NAMES if each not in LOCAL] if name == ALL else [name]
        with _bar(frame) as update:
            card = Scorecard(tuple(run_on(each, target, seed, partial(update, each)) for each in names))
    if plot is not None and name != ALL:
        from dalenius.audit.attacks.drawing import draw

        draw(card.findings, plot)
    frame.emit(card.to_dict(), lambda console: _print(console, card, single=name != ALL))


LOCAL = frozenset({"rare-key", "collusion"})  # need a column, or a second analyst, that a server may not have


def _list(frame: Frame) -> None:
    from dalenius.audit.attacks import NAMES, attack_named

    attacks = [attack_named(each) for each in NAMES]

    def human(console: Console) -> None:
        from rich.table import Table

        rows = Table(box=None, padding=(0, 2), header_style="dim")
        for title in ("attack", "what it does", "against"):
            rows.add_column(title, overflow="fold")
        for each in attacks:
            rows.add_row(each.name, each.title, ", ".join(each.against))
        console.print(rows, highlight=False)
        console.print("\nRun one: dalenius attack averaging. All: dalenius attack all.", style="dim", highlight=False)

    data = [
        {"name": each.name, "title": each.title, "teaches": each.teaches, "against": list(each.against)}
        for each in attacks
    ]
    frame.emit({"attacks": data}, human)


def _teach(frame: Frame, seed: int | None) -> None:
    from dataclasses import asdict

    import numpy as np

    from dalenius.audit.attacks.counterexamples import counterexamples

    found = counterexamples(np.random.default_rng(seed))

    def human(console: Console) -> None:
        for each in found:
            console.print(each.name, style="bold", highlight=False)
            console.print(f"  Looks private: {each.looks}", highlight=False, markup=False)
            console.print(f"  Is not: {each.fails}", highlight=False, markup=False)
            seen = f"  Exposed {each.seen:.1%} of the time in {each.trials:,} trials (expected {each.expected:.1%})."
            console.print(seen, highlight=False, style="dim")

    frame.emit({"counterexamples": [asdict(each) for each in found]}, human)


@contextmanager
def _bar(frame: Frame) -> Iterator[Callable[[str, float], None]]:
    """A bar on stderr."""
    if frame.quiet or frame.json:
        yield lambda _, __: None
        return
    from rich.progress import Progress

    with Progress(console=stderr(), transient=True) as progress:
        task = progress.add_task("attacking", total=1.0)
        yield lambda text, done: progress.update(task, completed=done, description=text)


def _print(console: Console, card: Scorecard, *, single: bool) -> None:
    from rich.table import Table

    if single:
        for each in card.findings:
            _print_finding(console, each)
        return
    targets = list(dict.fromkeys(each.target for each in card.findings))
    rows = Table(box=None, padding=(0, 2), header_style="dim")
    for title in ("attack", *targets):
        rows.add_column(title)
    for name in dict.fromkeys(each.attack for each in card.findings):
        rows.add_row(name, *(_cell(card.of(name, target)) for target in targets))
    console.print(rows, highlight=False)
    console.print("\nA target that fell is red, with the questions it took.", style="dim", highlight=False)


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return "[dim]–[/]"
    return f"[red]fell in {finding.asked:,}[/]" if finding.broke else "[green]held[/]"


def _print_finding(console: Console, finding: Finding) -> None:
    verdict = "[bold red]fell[/]" if finding.broke else "[bold green]held[/]"
    console.print(f"[bold]{finding.target}[/] {verdict}", highlight=False)
    console.print(f"  {finding.learned}", highlight=False, markup=False)
    price = "no price" if finding.price is None else f"ε = {finding.price:.3g} in all"
    console.print(f"  {finding.asked:,} questions, {price}", style="dim", highlight=False, markup=False)
    if finding.ended:
        console.print(f"  ended: {finding.ended}", style="dim", highlight=False, markup=False)
