"""What attacks found, on a terminal: one by one, or as a scorecard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.audit.attacks.attack import Finding
    from dalenius.audit.lab import Scorecard


def print_card(console: Console, card: Scorecard, *, single: bool) -> None:
    """Each finding in words, or who fell to what."""
    if single:
        for each in card.findings:
            _print_finding(console, each)
        _print_stopping(console, card.findings[0])
        return
    asked = [each for each in card.findings if each.rate is None]
    if asked:
        _print_questions(console, card, asked)
    tables = [each for each in card.findings if each.rate is not None]
    if tables:
        _print_tables(console, tables)


def _print_questions(console: Console, card: Scorecard, asked: list[Finding]) -> None:
    from rich.table import Table

    targets = list(dict.fromkeys(each.target for each in asked))
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    rows.add_column("attack", no_wrap=True, min_width=max(len(each.attack) for each in asked))
    for title in targets:
        rows.add_column(title)
    for name in dict.fromkeys(each.attack for each in asked):
        rows.add_row(name, *(_cell(card.of(name, target)) for target in targets))
    console.print(rows, highlight=False)
    told = "\nA target that fell gave away what the attack was after, in so many questions."
    console.print(told, style="dim", highlight=False)


def _print_tables(console: Console, tables: list[Finding]) -> None:
    from rich.table import Table

    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("on tables and reports", "as they were made", "", "rightly"):
        rows.add_column(title, no_wrap=title != "rightly")
    before = ""
    for each in tables:
        verdict = "[red]fell[/]" if each.broke else "[green]held[/]"
        rows.add_row("" if each.attack == before else each.attack, each.target, verdict, str(each.rate))
        before = each.attack
    console.print()
    console.print(rows, highlight=False)


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return "[dim]–[/]"
    return f"[red]fell in {finding.asked:,}[/]" if finding.broke else "[green]held[/]"


def cost(finding: Finding) -> str:
    """Questions and price, in words."""
    if finding.rate is not None:
        return "no questions: what is published or reported is enough"
    from dalenius.audit.attacks.attack import counted, priced

    price = "nothing is charged" if finding.price is None else f"ε = {priced(finding.price)} charged"
    return f"{counted(finding.asked, 'question')}, {price}"


def _print_stopping(console: Console, finding: Finding) -> None:
    """What stops an attack on tables."""
    from dalenius.audit.attacks import any_named
    from dalenius.audit.attacks.published.attack import TableAttack

    attack = any_named(finding.attack)
    if isinstance(attack, TableAttack):
        console.print(f"\nStopped by: {', '.join(attack.stopped_by)}.", highlight=False)
        for each in attack.about:
            indented(console, f"{each}: {attack.about[each]}.", "dim")


def _print_finding(console: Console, finding: Finding) -> None:
    verdict = "[bold red]fell[/]" if finding.broke else "[bold green]held[/]"
    console.print(f"[bold]{finding.target}[/] {verdict}", highlight=False)
    indented(console, finding.learned)
    indented(console, cost(finding), "dim")
    if finding.ended:
        indented(console, f"ended: {finding.ended}", "dim")


def indented(console: Console, text: str, style: str = "") -> None:
    """Below a heading, also where a line is broken."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(Padding(Text(text, style), (0, 0, 0, 2), expand=False), highlight=False)
