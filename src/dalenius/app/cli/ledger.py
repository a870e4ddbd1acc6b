"""`dalenius ledger`: the history, and whether it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli.frame import Frame, check_free, framed, group, stderr
from dalenius.app.views import readable, to_second
from dalenius.app.views.history import details
from dalenius.errors import LedgerCorruptError, SourceUnavailableError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.app.report import Report
    from dalenius.ledger.chain import Entry
    from dalenius.ledger.receipts import Receipt


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = group("Shows the history of budgets, charges and owner actions, and checks it.", show)
    commands.command("show")(framed(show))
    commands.command("verify")(verify)
    commands.command("report")(report)
    commands.command("receipt")(receipt)
    app.add_typer(commands, name="ledger")


def show(
    frame: Frame,
    last: Annotated[int, typer.Option("--last", min=1, help="So many entries, the newest.")] = 50,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw what was left over time (png or svg).")
    ] = None,
) -> None:
    """Shows the newest entries and every balance.

    Example: dalenius ledger show --last 20 --plot burn-down.png
    """
    from dalenius.app.views.balances import balances_json, print_totals, totals

    if plot is not None:
        from dalenius.releasing.targets import PLOT, check_target

        check_target(plot, PLOT)
    ledger = frame.open_ledger()
    head = ledger.head
    entries = list(ledger.entries(after=max(0, head.count - last)))
    balances = totals(ledger)
    if plot is not None:
        from dalenius.app.views.burn_down import draw_burn_down

        draw_burn_down(ledger, plot)
        frame.note(f"Drew {plot}.")
    data = {
        "entries": [_entry_json(entry) for entry in entries],
        "count": head.count,
        "head": head.hash.hex(),
        "datasets": balances_json(balances),
    }

    def human(console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2), header_style="dim")
        for column in ("entry", "time (UTC)", "what", "details"):
            table.add_column(column, justify="right" if column == "entry" else "left", no_wrap=column != "details")
        for entry in entries:
            cells = (entry.number, to_second(entry.time), entry.kind, details(entry))
            table.add_row(*(Text(readable(each)) for each in cells))  # text, never markup: others wrote it
        console.print(table, highlight=False)
        print_totals(console, balances)
        console.print(f"head {head.hash.hex()}  ({head.count} entries)", style="dim", highlight=False)

    frame.emit(data, human)


@framed
def verify(
    frame: Frame,
    files: Annotated[list[Path] | None, typer.Argument(metavar="[RECEIPT]...", help="Receipts that must fit.")] = None,
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="HEAD", help="A head seen earlier, which must be part of it.")
    ] = None,
) -> None:
    """Reads the whole history and names the first entry that does not hold.

    Example: dalenius ledger verify --expect 9f86d08… receipt.json
    """
    from dalenius.ledger import receipts, verification

    ledger = frame.open_ledger()
    given = [receipts.read(file) for file in files or []]
    with _progress(frame, ledger.anchor.read().count) as advance:
        found = verification.verify(ledger, expect=expect, given=given, progress=advance)
    data = {
        "verified": True,
        "entries": found.entries,
        "head": found.head,
        "charges": found.charges,
        "releases": found.releases,
        "receipts": found.receipts,
    }

    def human(console: Console) -> None:
        words = f"{found.entries:,} entries, {found.charges:,} charges, {found.releases:,} releases"
        also = f", {found.receipts} receipt{'s' if found.receipts != 1 else ''}" if given else ""
        console.print(f"[bold green]The history holds[/]: {words}{also}.", highlight=False)
        console.print(f"head {found.head}", style="dim", highlight=False)
        console.print("Keep the head elsewhere: with --expect it shows a history that was put back.", style="dim")

    frame.emit(data, human)


@framed
def report(
    frame: Frame,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there, as one HTML file.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Overwrite the file.")] = False,
) -> None:
    """Reports to an outside reader: what was promised, spent and done, and whether the history holds.

    Example: dalenius ledger report -o report.html
    """
    from dalenius.app.report import document
    from dalenius.app.report import report as gathered
    from dalenius.releasing.targets import unwritable

    if output is not None:
        _check_output(output, yes=yes)
    ledger = frame.open_ledger()
    frame.note("Reading the whole history …")
    found = gathered(ledger)
    if output is not None:
        try:
            output.write_text(document(found), encoding="utf-8")
        except OSError as error:
            raise unwritable(output, error) from None

    def human(console: Console) -> None:
        from rich.text import Text

        checked = found.verification
        if checked.holds:
            console.print(f"[bold green]The history holds[/]: {checked.entries:,} entries.", highlight=False)
        else:
            bad = ("The history does not hold", "bold red")
            console.print(Text.assemble(bad, f": {checked.message} {checked.why} {checked.fix}"))
        _print_promises(console, found)
        console.print(f"head {checked.head}", style="dim", highlight=False)
        words = f"Wrote {output}." if output is not None else "With -o report.html all of it goes into a file."
        console.print(Text(words), style="" if output is not None else "dim")

    data = {**found.to_dict(), "file": None if output is None else str(output)}
    frame.emit(data, human, 0 if found.verification.holds else LedgerCorruptError.exit_code)


def _check_output(output: Path, *, yes: bool) -> None:
    """Refuses a file that may be somebody's, before any work is done."""
    from dalenius.tables.sources.homes import check_output

    check_output(output)
    check_free(output, yes=yes)
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise SourceUnavailableError(
            f"{output.name} cannot be written.",
            why="It is a folder, or its folder is missing.",
            fix="Name a file in a folder that is there.",
        )


def _print_promises(console: Console, found: Report) -> None:
    from rich.text import Text

    for each in found.promises:
        spent = max((one.epsilon for one in found.spent(each.dataset)), default=0.0)
        every = f" in each {each.period}" if each.period else ""
        words = f"each {each.unit}{every} is protected with ε = {each.epsilon:g}; spent at most {spent:.3g}"
        console.print(Text.assemble((readable(each.dataset), "bold"), f": {readable(words)}"))


@framed
def receipt(
    frame: Frame,
    file: Annotated[Path, typer.Argument(help="A receipt, as `ask --json` gave it.")],
    key: Annotated[
        Path | None, typer.Option("--public-key", metavar="FILE", help="The owner's keys/signing.pub.")
    ] = None,
) -> None:
    """Checks a receipt with the public key alone; no ledger is needed.

    Example: dalenius ledger receipt receipt.json --public-key signing.pub
    """
    from dalenius.ledger import receipts
    from dalenius.ledger.home import KEYS, public_key

    found = receipts.read(file)
    receipts.check(found, public_key(key or frame.require_home() / KEYS / "signing.pub"))
    frame.emit({"genuine": True, "receipt": found.to_dict()}, lambda console: _print_receipt(console, found))


def _print_receipt(console: Console, found: Receipt) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print("[bold green]The receipt is genuine.[/]")
    rows = Table.grid(padding=(0, 2))
    for name, value in (
        ("data set", found.dataset),
        ("analyst", found.analyst),
        ("charge", f"ε = {_number(found.charge.get('epsilon'))}, δ = {_number(found.charge.get('delta'))}"),
        ("time", found.time),
        ("entry", f"{found.entry}, chain {found.chain}"),
        ("question", found.question),
        ("release", found.release),
    ):
        rows.add_row(Text(name, "dim"), Text(readable(value)))  # text, never markup: others wrote it
    console.print(rows, highlight=False)


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "kind": entry.kind,
        "time": entry.time,
        "data": entry.data,
        "hash": entry.hash.hex(),
    }


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _progress(frame: Frame, total: int) -> Any:
    """A bar on stderr for histories that take a while."""
    from contextlib import contextmanager, nullcontext

    if frame.quiet or frame.json or total < 20_000:
        return nullcontext(lambda _: None)

    @contextmanager
    def bar() -> Any:
        from rich.progress import Progress

        with Progress(console=stderr(), transient=True) as progress:
            task = progress.add_task("Reading the history", total=total)
            yield lambda read: progress.update(task, completed=read)

    return bar()
