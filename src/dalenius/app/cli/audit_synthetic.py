"""`dalenius audit synthetic`: synthetic rows against the real ones, for the owner of these alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius._numbers import count_of, to_percent
from dalenius.app.cli.anonymity_options import share_of
from dalenius.app.cli.frame import Frame, framed
from dalenius.app.cli.rows_option import working
from dalenius.app.cli.synthesize import names_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from dalenius.audit.synthetic.checking import SyntheticCheck

_WAYS = {1: "one column", 2: "two columns", 3: "three columns"}
WARNING = (
    "Not private: all of this follows from the raw rows, without noise. It is for you alone; do not pass it on. "
    "It was printed, and is kept nowhere."
)


def register(commands: typer.Typer) -> None:
    """Adds the command."""
    commands.command("synthetic")(synthetic)


@framed
def synthetic(
    frame: Frame,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A protected table of yours.")],
    rows: Annotated[
        Path | None, typer.Argument(metavar="[ROWS]", help="Synthetic rows (csv or parquet); else they are made here.")
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(
            "--held-out", metavar="FILE|20%", help="People who were not there: a file, or a share of the units."
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", metavar="E", help="The price of rows that are made here.")
    ] = None,
    method: Annotated[str, typer.Option("--method", metavar="M", help="The generator of rows made here.")] = "auto",
    columns: Annotated[str | None, typer.Option("--columns", metavar="C,C", help="Compare these alone.")] = None,
    predict: Annotated[
        str | None, typer.Option("--predict", metavar="C", help="A column that is predicted in rows held out.")
    ] = None,
    secret: Annotated[
        str | None, typer.Option("--secret", metavar="C,C", help="What an attacker does not know; each column in turn.")
    ] = None,
) -> None:
    """For owners: compares synthetic rows with the real ones, predicts from them, and attacks them.

    Charges nothing, because nothing leaves: what is found is printed here, follows from the raw rows without noise, and
    is kept nowhere. Without ROWS a table is made in memory from the people who are not held out, with the noise of a
    real one. The ledger notes that a check ran.

    Example: dalenius audit synthetic visits --held-out 20% --epsilon 1 --predict region
    """
    from dalenius.audit.synthetic.checking import CheckAsk, check_synthetic
    from dalenius.curator import Curator

    part: Path | float | None = None
    if held_out is not None:
        part = share_of(held_out, "--held-out") if held_out.strip().endswith("%") else Path(held_out)
    ask = CheckAsk(
        table, rows, part, epsilon, method, tuple(names_of(columns)), predict, tuple(names_of(secret, "--secret"))
    )
    curator = Curator(frame.require_home())
    with working(frame, "Checking") as told:
        found = check_synthetic(curator, ask, told or (lambda share, words: None))  # noqa: ARG005
    frame.emit(found.to_dict(), lambda console: _print(console, found))


def _print(console: Console, found: SyntheticCheck) -> None:
    from rich.text import Text

    console.print(Text(WARNING, "bold red"))
    counts = [count_of(found.rows["real"], "real row"), count_of(found.rows["synthetic"], "synthetic row")]
    if found.rows["held_out"]:
        counts.append(f"{found.rows['held_out']:,} held out")
    made = ", made for this check and dropped" if found.made_here else ""
    price = f" at ε = {found.epsilon:g}" if found.epsilon is not None else ""
    console.print(Text(f"{', '.join(counts)}; {count_of(len(found.columns), 'column')}{price}{made}."))
    for title, facts in (
        ("how far from the real rows", dict(_errors(found))),
        ("what they are good for", dict(_utility(found))),
        ("what attacks find", dict(_attacks(found))),
    ):
        _print_facts(console, title, facts)
    _print_attributes(console, found)
    for note in found.notes:
        console.print(Text(note, "yellow"))


def _errors(found: SyntheticCheck) -> Iterator[tuple[str, str]]:
    for way, error in found.errors.items():
        beside = found.errors_held_out[way] if found.errors_held_out else None
        told = "" if beside is None else f"; rows held out are {beside:.3f} off"
        yield f"tables of {_WAYS[way]}", f"{error:.3f}{told}"


def _utility(found: SyntheticCheck) -> Iterator[tuple[str, str]]:
    told = found.utility
    if told is None:
        return
    for who, right, auc in (
        ("real", told.real, told.auc_real),
        ("synthetic", told.synthetic, told.auc_synthetic),
    ):
        words = f"right in {to_percent(right)}" + ("" if auc is None else f", AUC {auc:.3f}")
        yield f"{told.column}, learned from {who} rows", words
    yield "always the most frequent class", f"right in {to_percent(told.most_frequent)}"


def _attacks(found: SyntheticCheck) -> Iterator[tuple[str, str]]:
    copies, member = found.copies, found.membership
    yield "synthetic rows equal to a real one", _share(copies.synthetic)
    if copies.singled is not None:
        beside = "" if copies.others is None else f"; of rows held out {_share(copies.others)}"
        yield "rows like no other that are there again", f"{_share(copies.singled)}{beside}"
    if member is not None:
        most = "" if found.most_advantage is None else f" (ε allows {found.most_advantage:.2f})"
        auc = f"AUC {member.auc:.3f}, by chance 0.5 ± {member.margin:.3f}"
        yield "who was there, by nearness", f"{auc}; advantage {member.advantage:.2f}{most}"


def _print_attributes(console: Console, found: SyntheticCheck) -> None:
    """A column of somebody, guessed from all others."""
    from rich.table import Table
    from rich.text import Text

    if not found.attributes:
        return
    console.print(Text("what they say of somebody whose other columns are known", "bold"))
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for name, side in (
        ("  column", "left"),
        ("right of members", "right"),
        ("of others", "right"),
        ("more, in points", "right"),
        ("most frequent", "right"),
    ):
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for each in found.attributes:
        more = f"{100 * (each.members - each.others):+.1f} ± {100 * each.margin:.1f}"
        shares = (to_percent(part) for part in (each.members, each.others))
        table.add_row(Text(f"  {each.column}"), *shares, more, to_percent(each.most_frequent))
    console.print(table)


def _share(part: float) -> str:
    return "none" if part == 0 else to_percent(part)


def _print_facts(console: Console, title: str, facts: Mapping[str, str]) -> None:
    from rich.table import Table
    from rich.text import Text

    if not facts:
        return
    console.print(Text(title, "bold"))
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", overflow="fold", max_width=46)
    rows.add_column(overflow="fold")
    for name, fact in facts.items():
        rows.add_row(Text(f"  {name}"), Text(fact))
    console.print(rows)
