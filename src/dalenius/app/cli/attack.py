"""`dalenius attack`: breaks naive systems, and tries to break ours."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli.attack_print import cost, indented, print_card
from dalenius.app.cli.frame import Frame, framed, stderr
from dalenius.app.cli.server_option import TokenFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from dalenius.audit.attacks.attack import Drawing, Finding
    from dalenius.audit.lab import Scorecard, Settings
    from dalenius.audit.targets.remote import Remote
    from dalenius.audit.targets.scene import Scene
    from dalenius.remote import RemoteAnalyst

COINS = "coins"  # made-up people
LIST, ALL, TEACH = "list", "all", "counterexamples"
LOCAL = frozenset({"rare-key", "collusion"})  # need a column, or a second analyst, that a server may not have


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What was typed, as far as it says what is attacked and how."""

    name: str
    table: str
    secret: str | None
    amount: str | None
    people: int | None
    total: float
    epsilon: float | None
    seed: int | None
    plot: Path | None


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("attack")(attack)


@framed
def attack(
    frame: Frame,
    name: Annotated[str, typer.Argument(metavar="list | NAME | all | counterexamples", help="Which.")] = LIST,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="TARGET", help="plain, noisy, sticky, dalenius, a server's URL; see list."),
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
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw it; with all: the scorecard (png or svg).")
    ] = None,
    token_file: TokenFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="At a URL: spend the budget there.")] = False,
) -> None:
    """Runs an attack on a target, and says what it learned, from how many questions, at what price.

    Targets: plain (exact answers, none about few people), noisy (fresh noise for ever), sticky (noise seeded by the
    question), dalenius (our curator, in a folder of its own), or a server's URL, which spends a real budget. Attacks on
    published tables have others: see dalenius attack list.

    Example: dalenius attack averaging --against noisy
    """
    if name == LIST:
        _list(frame)
        return
    if name == TEACH:
        _teach(frame, seed)
        return
    from dalenius.audit.attacks import MADE_UP_NAMES, any_named
    from dalenius.audit.targets.scene import check_size

    if people is not None:
        check_size(people)
    if name != ALL:
        any_named(name)  # says which there are
    if name in MADE_UP_NAMES:
        _check_made_up(name, table, against)
    if plot is not None:  # found wrong before anything is asked, or charged
        from dalenius.releasing.targets import PLOT, check_target

        check_target(plot, PLOT)
    wanted = _Wanted(name, table, secret, amount, people, total, epsilon, seed, plot)
    if against is not None and "://" in against:
        _remote(frame, wanted, against, truth, person, token_file, yes=yes)
    else:
        _run(frame, wanted, against)


def _check_made_up(name: str, table: str, against: str | None) -> None:
    """Refuses a table or a server for an attack that publishes made-up people."""
    from dalenius.audit.targets.scene import DEMO
    from dalenius.errors import InputError

    if table not in (DEMO, COINS) or (against is not None and "://" in against):
        raise InputError(
            f"The attack '{name}' is on tables or reports that it makes up itself.",
            why="It asks no questions, and shows on made-up people what each model stops.",
            fix=f"Write dalenius attack {name}; what your own table gives away, dalenius anonymize risk tells.",
        )


def _run(frame: Frame, wanted: _Wanted, against: str | None) -> None:
    from dalenius.audit.attacks import MADE_UP_NAMES, any_named
    from dalenius.audit.lab import TARGETS, Scorecard, by_noise, check_target, run, run_all

    if against is not None and wanted.name not in MADE_UP_NAMES:
        check_target(against)
    settings, name = _settings(wanted), wanted.name
    beside = None
    with _bar(frame) as update:
        if name == ALL:
            card = run_all(settings, TARGETS if against is None else (against,), update)
        else:
            chosen = any_named(name).against if against is None else (against,)
            found = [run(name, each, settings, partial(update, f"{name} against {each}")) for each in chosen]
            card = Scorecard(tuple(found))
            if wanted.plot is not None:
                beside = by_noise(name, settings, partial(update, f"{name} by noise"))
    _show(frame, wanted, card, beside)


def _show(frame: Frame, wanted: _Wanted, card: Scorecard, beside: Drawing | None = None) -> None:
    from dalenius.audit.attacks import any_named
    from dalenius.audit.attacks.published.attack import TableAttack

    single = wanted.name != ALL
    if wanted.plot is not None:
        from dalenius.audit.attacks.drawing import draw, draw_scorecard

        if single:
            draw(card.findings, wanted.plot, beside)
        else:
            draw_scorecard(card.findings, wanted.plot)
        frame.note(f"Drew {wanted.plot}.")
    more: dict[str, Any] = {"by_noise": beside.to_dict()} if beside is not None else {}
    if single and isinstance(attack := any_named(wanted.name), TableAttack):
        more["stopped_by"] = list(attack.stopped_by)
    frame.emit(card.to_dict() | more, lambda console: print_card(console, card, single=single))


def _settings(wanted: _Wanted) -> Settings:
    import numpy as np

    from dalenius.audit.attacks.published.attack import PEOPLE
    from dalenius.audit.lab import Settings
    from dalenius.audit.targets.scene import DEMO, demo_scene, made_up, scene_in

    _check_prices(wanted)
    if wanted.table == DEMO:
        scene = demo_scene(wanted.people)
    elif wanted.table == COINS:
        scene = made_up(1000 if wanted.people is None else wanted.people, np.random.default_rng(wanted.seed))
    else:
        scene = scene_in(Path(wanted.table), wanted.secret, wanted.amount, wanted.people)
    return Settings(scene, wanted.total, wanted.epsilon, wanted.seed, wanted.people or PEOPLE)


def _check_prices(wanted: _Wanted) -> None:
    import math

    from dalenius.errors import InputError

    for option, value in (("--total", wanted.total), ("--epsilon", wanted.epsilon)):
        if value is not None and not (math.isfinite(value) and 0 < value <= 1000):
            raise InputError(
                f"{option} {value:g} is no price.",
                why="A price is above 0 and at most 1,000.",
                fix=f"Write {option} 0.1.",
            )


def _remote(
    frame: Frame, wanted: _Wanted, url: str, truth: Path | None, person: str, token_file: Path | None, *, yes: bool
) -> None:
    """Attacks somebody's server: what it may cost is said first."""
    from dalenius.app.cli.server_option import server_of
    from dalenius.audit.attacks import NAMES, attack_named
    from dalenius.audit.lab import Scorecard, run_on
    from dalenius.audit.targets.scene import scene_in
    from dalenius.errors import DaleniusError, InputError

    if wanted.name in LOCAL:
        raise InputError(
            f"The attack '{wanted.name}' is not for servers.",
            why="It needs a column of words, or a second analyst, that a server may not have.",
            fix=f"Run it in the lab: dalenius attack {wanted.name} --against dalenius.",
        )
    if truth is None:
        raise InputError(
            "An attack on a server needs --truth FILE.",
            why="The rows themselves say what the attacker knows beforehand, and judge what it guessed.",
            fix="Give the file behind the table, with --secret and --person naming its columns.",
        )
    _check_prices(wanted)
    scene = scene_in(truth, wanted.secret, wanted.amount, wanted.people)
    remote = server_of(frame, url, token_file)
    assert remote is not None  # noqa: S101 (there is a URL)
    with remote:
        whole = _target(wanted, ALL, remote, scene, person)
        whole.check()
        left = whole.worst_price()
        if not yes:
            raise InputError(
                f"This attack may spend all that is left there: ε = {left:.3g}.",
                why="An attack on a server pays for its questions like anybody else.",
                fix="Give --yes to spend it.",
            )
        frame.note(f"Attacking {url}: up to ε = {left:.3g} of a real budget.")
        names = [each for each in NAMES if each not in LOCAL] if wanted.name == ALL else [wanted.name]
        found: list[Finding] = []
        with _bar(frame) as update:
            for number, each in enumerate(names):
                try:
                    target = _target(wanted, attack_named(each).name, remote, scene, person, len(names) - number)
                    found.append(run_on(each, target, wanted.seed, partial(update, each)))
                except DaleniusError:
                    _tell_so_far(frame, each, found)
                    raise
    _show(frame, wanted, Scorecard(tuple(found)))


def _tell_so_far(frame: Frame, name: str, found: list[Finding]) -> None:
    """What is paid stays paid: what it bought is said, although the next attack came to nothing."""
    for each in found:
        frame.note(f"{each.attack}: {'fell' if each.broke else 'held'}, {cost(each)}.")
    frame.note(f"The attack '{name}' came to an early end. What its answers cost stays charged: dalenius budget tells.")


def _target(wanted: _Wanted, name: str, remote: RemoteAnalyst, scene: Scene, person: str, among: int = 1) -> Remote:
    """The server, at the price of one question that suits the attack: some are about all that it may spend.

    ``among``: so many attacks are still to share what is left.
    """
    from dalenius.audit.attacks import attack_named
    from dalenius.audit.lab import EPSILON
    from dalenius.audit.targets.remote import Columns, Remote

    columns = Columns(person, scene.secret_sql, scene.amount_sql, "")
    share = None if name == ALL else attack_named(name).price
    epsilon = wanted.epsilon or EPSILON if share is None else share
    return Remote(
        scene, remote, epsilon=epsilon, table=wanted.table, columns=columns, among=among, of_all=share is not None
    )


def _list(frame: Frame) -> None:
    from dalenius.audit.attacks import MADE_UP_NAMES, NAMES, REPORT_NAMES, TABLE_NAMES, any_named
    from dalenius.audit.attacks.published.attack import TableAttack

    def human(console: Console) -> None:
        told = ("on systems that answer", NAMES), ("on published tables", TABLE_NAMES), ("on reports", REPORT_NAMES)
        for heading, names in told:
            _print_list(console, heading, names)
        console.print("\nRun one: dalenius attack averaging. All: dalenius attack all.", style="dim", highlight=False)

    data = [
        {"name": each.name, "title": each.title, "teaches": each.teaches, "against": list(each.against)}
        | ({"stopped_by": list(each.stopped_by)} if isinstance(each, TableAttack) else {})
        for each in map(any_named, (*NAMES, *MADE_UP_NAMES))
    ]
    frame.emit({"attacks": data}, human)


def _print_list(console: Console, heading: str, names: tuple[str, ...]) -> None:
    from rich.table import Table

    from dalenius.audit.attacks import any_named

    rows = Table(box=None, padding=(0, 2), header_style="dim")
    rows.add_column(heading, no_wrap=True)
    for title in ("what it does", "against"):
        rows.add_column(title, overflow="fold")
    for each in map(any_named, names):
        rows.add_row(each.name, each.title, ", ".join(each.against))
    console.print(rows, highlight=False)


def _teach(frame: Frame, seed: int | None) -> None:
    from dataclasses import asdict

    import numpy as np

    from dalenius.audit.attacks.counterexamples import counterexamples

    found = counterexamples(np.random.default_rng(seed))

    def human(console: Console) -> None:
        for each in found:
            console.print(each.name, style="bold", highlight=False)
            indented(console, f"Looks private: {each.looks}")
            indented(console, f"Is not: {each.fails}")
            seen = f"{each.seen:.1%} {each.counted}, in {each.trials:,} trials ({each.expected:.1%} expected)."
            indented(console, seen, "dim")

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
