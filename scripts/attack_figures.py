"""Makes the figures and tables of docs/attacks again: `python scripts/attack_figures.py`, about two minutes.

`python scripts/attack_figures.py tables` makes those of the attacks on published tables alone, in some seconds, and
`python scripts/attack_figures.py reports` those of the attacks on reports of local privacy.

The attackers' coins and the naive targets' noise are seeded. Our curator's noise cannot be: what is drawn of it differs
a little each time.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from PIL import Image

from dalenius.audit.attacks import NAMES, REPORT_NAMES, TABLE_NAMES, any_named, attack_named
from dalenius.audit.attacks.attack import Finding, counted, priced
from dalenius.audit.attacks.drawing import draw, draw_rates, draw_scorecard
from dalenius.audit.lab import TARGETS, Settings, by_noise, run
from dalenius.audit.targets.scene import demo_scene

PAGES = Path(__file__).parents[1] / "docs" / "attacks"
SEED = 1
BEGIN, END = "<!-- made by scripts/attack_figures.py -->", "<!-- until here -->"


def main() -> None:
    """All of them."""
    settings = Settings(demo_scene(), seed=SEED)
    found: list[Finding] = []
    for name in NAMES:
        print(name, file=sys.stderr)
        mine = [run(name, target, settings) for target in attack_named(name).against]
        figure = PAGES / "figures" / f"{name}.png"
        draw(mine, figure, by_noise(name, settings))
        _shrink(figure)
        found += mine
    draw_scorecard(found, PAGES / "figures" / "scorecard.png")
    _shrink(PAGES / "figures" / "scorecard.png")
    _renew(PAGES / "index.md", _scorecard(found))
    _renew(PAGES / "RESULTS.md", _results(found))


def tables() -> None:
    """Those on published tables: one figure of all, and one of each that has a curve."""
    settings = Settings(demo_scene(), seed=SEED)
    found: list[Finding] = []
    for name in TABLE_NAMES:
        print(name, file=sys.stderr)
        mine = [run(name, target, settings) for target in any_named(name).against]
        if any(each.drawing is not None for each in mine):
            figure = PAGES / "figures" / f"{name}.png"
            draw(mine, figure)
            _shrink(figure)
        found += mine
    draw_rates(found, PAGES / "figures" / "published-tables.png")
    _shrink(PAGES / "figures" / "published-tables.png")
    rows = [
        f"| {each.attack} | {each.target} | {'**fell**' if each.broke else 'held'} | {each.learned} |" for each in found
    ]
    heads = ["| attack | published as | | what it learned |", "|---|---|---|---|"]
    _renew(PAGES / "published-tables.md", "\n".join([*heads, *rows]))


def reports() -> None:
    """Those on reports of local privacy: a figure and a table each."""
    settings = Settings(demo_scene(), seed=SEED)
    for name in REPORT_NAMES:
        print(name, file=sys.stderr)
        found = [run(name, target, settings) for target in any_named(name).against]
        figure = PAGES / "figures" / f"{name}.png"
        draw(found, figure)
        _shrink(figure)
        rows = [f"| {each.target} | {'**fell**' if each.broke else 'held'} | {each.learned} |" for each in found]
        _renew(PAGES / f"{name}.md", "\n".join(["| reports | | what it learned |", "|---|---|---|", *rows]))


def _shrink(file: Path) -> None:
    """Few colours are enough for lines."""
    Image.open(file).convert("RGB").quantize(64).save(file, optimize=True)


def _scorecard(found: list[Finding]) -> str:
    cells = {(each.attack, each.target): f"**fell in {each.asked:,}**" if each.broke else "held" for each in found}
    rows = [
        f"| [{name}]({name}.md) | " + " | ".join(cells.get((name, target), "–") for target in TARGETS) + " |"
        for name in NAMES
    ]
    return "\n".join([f"| attack | {' | '.join(TARGETS)} |", "|---" * (len(TARGETS) + 1) + "|", *rows])


def _results(found: list[Finding]) -> str:
    rows = []
    for each in found:
        price = "" if each.price is None else priced(each.price)
        verdict, asked = "**fell**" if each.broke else "held", counted(each.asked, "question")
        rows.append(f"| {each.attack} | {each.target} | {verdict} | {each.learned} | {asked} | {price} |")
    return "\n".join(
        ["| attack | target | | what it learned | asked | ε charged |", "|---|---|---|---|---|---|", *rows]
    )


def _renew(page: Path, table: str) -> None:
    text = page.read_text(encoding="utf-8")
    parts = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    page.write_text(parts.sub(lambda _: f"{BEGIN}\n\n{table}\n\n{END}", text), encoding="utf-8")


if __name__ == "__main__":
    chosen = sys.argv[1:]
    for name, make in (("questions", main), ("tables", tables), ("reports", reports)):
        if not chosen or name in chosen:
            make()
