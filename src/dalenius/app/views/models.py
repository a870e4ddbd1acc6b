"""Models on a terminal. Names are text from outside: shown, never obeyed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dalenius._numbers import about_percent, count_of, to_digits, to_percent
from dalenius.app.views.synthetic import left_words, promised
from dalenius.learning.output import OutputRecipe
from dalenius.queries.release import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from dalenius.learning.preview import ModelPreview
    from dalenius.learning.release import Coefficient, TrainedModel
    from dalenius.learning.score_release import ModelScore, ScorePreview
    from dalenius.learning.scoring import Scored

_LONGEST = 4000  # characters of a note
MOST_SHOWN = 20  # coefficients on a terminal
AT_MOST = "± is at most the 95% margin for the added noise; the actual one may be smaller."


def print_model(console: Console, found: TrainedModel, scored: Scored | None = None) -> None:
    """What was learned and how, what it cost, and what it promises."""
    stored = found.stored
    recipe, target = stored.recipe, shown(stored.recipe.task.target.name)
    console.print(Text(f"A {recipe.task.model} model of {target} in {shown(stored.table)}, {trained_words(found)}."))
    if scored is not None:
        console.print(Text(scored_words(scored, recipe.task.target.name), "bold"))
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    several = len({each.output for each in found.coefficients()}) > 1
    for name in (*(["score of"] if several else []), "feature"):
        table.add_column(name, overflow="fold")
    for name in ("coefficient", "margin"):
        table.add_column(name, justify="right")
    first = largest(found.coefficients(), MOST_SHOWN)
    for each in first:
        outputs = [Text(shown(each.output, 30))] if several else []
        table.add_row(*outputs, Text(shown(each.feature, 60)), to_digits(each.value, 4), margin_words(each))
    console.print(table)
    if len(found.coefficients()) > len(first):
        console.print(Text(f"The {len(first)} largest of {len(found.coefficients()):,}; card.json has all.", "dim"))
    print_left_out(console, found.left_out)
    cost = "free: paid for before" if found.free else f"charged ε = {found.charge['epsilon']:g}"
    console.print(Text(f"{cost} · {promised(found.guarantee)} · {left_words(found.remaining)}", "dim"))
    console.print(Text(f"{alone_words(found)}{AT_MOST}", "dim"))
    for note in found.notes:
        console.print(Text(shown(note, _LONGEST), "bold yellow"))


def print_model_preview(console: Console, expected: ModelPreview) -> None:
    """What would be learned, with how much noise, and what is left to pay with."""
    console.print(
        Text(
            f"A {expected.model} model of {shown(expected.target)} from {count_of(len(expected.features), 'column')}: "
            f"{', '.join(shown(each, 40) for each in expected.features)}."
        )
    )
    console.print(Text(f"Expected: {loss_words(expected)}."))
    print_left_out(console, expected.left_out)
    known = " · paid for before: free" if expected.known else ""
    console.print(Text(f"ε = {expected.epsilon:g} for all of it{known} · {left_words(expected.remaining)}", "dim"))
    for line in recipe_words(expected):
        console.print(Text(line, "dim"))
    for note in expected.notes:
        console.print(Text(shown(note, _LONGEST), "bold yellow"))


def print_score(console: Console, found: ModelScore, target: str) -> None:
    """How well a model predicts units held out, and what that cost."""
    console.print(Text(scored_words(found.scored, target)))
    cost = "free: paid for before" if found.free else f"charged ε = {found.charge['epsilon']:g}"
    console.print(Text("± is the 95% margin for the added noise.", "dim"))
    console.print(Text(f"{cost} · {promised(found.guarantee)} · {left_words(found.remaining)}", "dim"))
    for note in found.notes:
        console.print(Text(shown(note, _LONGEST), "bold yellow"))


def print_score_preview(console: Console, expected: ScorePreview) -> None:
    """How exact a score would be, and what is left to pay with."""
    margin = "not known before" if expected.margin is None else f"at most ± {to_digits(expected.margin, 2)}"
    known = " · paid for before: free" if expected.known else ""
    console.print(Text(f"95% margin for the added noise: {margin}."))
    console.print(Text(f"ε = {expected.epsilon:g} for all of it{known} · {left_words(expected.remaining)}", "dim"))
    for note in expected.notes:
        console.print(Text(shown(note, _LONGEST), "bold yellow"))


# --- words


def trained_words(found: TrainedModel) -> str:
    """How it was trained."""
    recipe = found.stored.recipe
    people = f"about {count_of(round(recipe.people), 'unit')}"
    if isinstance(recipe, OutputRecipe):
        return f"learned from {people}, with noise added once"
    return f"learned from {people} in {count_of(recipe.steps, 'step')}"


def scored_words(scored: Scored, target: str) -> str:
    """How well it predicts."""
    of = f"{scored.count:,} {scored.of}"
    margin = "" if not scored.margin else f" ± {to_digits(scored.margin, 2)}"
    if scored.accuracy is not None:
        return f"Right about {shown(target)}: {scored.accuracy:.3f}{margin} of {of}."
    return f"Off by {to_digits(scored.error or 0.0, 4)}{margin} in {shown(target)} on average, over {of}."


def loss_words(expected: ModelPreview) -> str:
    """What noise is expected to take."""
    if expected.loss is not None:
        return f"{about_percent(expected.loss)} of accuracy lost to noise"
    if expected.people is None:
        return "not known, since no number of units was released; they are counted for a part of the price"
    if expected.steps:
        return f"noise of σ = {to_digits(expected.sigma or 0.0, 4)} clips in each sum of {expected.batch or 0:,} units"
    return f"noise of σ = {to_digits(expected.sigma or 0.0, 4)} in each weight, for features from −1 to 1"


def recipe_words(expected: ModelPreview) -> list[str]:
    """Steps, rate, noise and work."""
    people = "as many units as there are" if expected.people is None else f"about {expected.people:,} units"
    way = "noise added once"
    if expected.steps and expected.sigma is not None:
        rate = "each with all units" if expected.rate == 1 else f"each unit in one of {1 / expected.rate:,.0f} of them"
        sigma = f"noise σ = {to_digits(expected.sigma, 4)} times what one unit adds at most"
        way = f"{count_of(expected.steps, 'step')}, {rate}; {sigma}"
    rows = f"at most {count_of(expected.rows_per_unit, 'row')} of each"
    held = f", {to_percent(expected.held_out)} of all held out" if expected.held_out else ""
    return [f"Method {expected.method}: {way}.", f"From {people}{held}, {rows}. Work: {work_words(expected)}."]


def work_words(expected: ModelPreview) -> str:
    """What it takes."""
    memory = "" if expected.memory is None else f", {max(1, round(expected.memory / 2**20)):,} MiB of memory"
    return f"about {max(1, round(expected.work)):,} s{memory}, as far as public sizes tell"


def expected_words(expected: ModelPreview) -> str:
    """What is about to be done, in a few words."""
    steps = count_of(expected.steps, "step") if expected.steps else "noise added once"
    return f"{steps}, {work_words(expected)}"


def alone_words(found: TrainedModel) -> str:
    """The figure by loss distributions, for comparison."""
    if found.stored.alone is None:
        return ""
    return f"The training alone: ε = {to_digits(found.stored.alone, 4)} at δ = {found.guarantee['delta']:g}. "


def margin_words(each: Coefficient) -> str:
    """± so much."""
    return "" if each.margin is None else f"± {to_digits(each.margin, 2)}"


def largest(found: Sequence[Coefficient], most: int) -> list[Coefficient]:
    """Those that stand out most from their margin first."""
    return sorted(found, key=lambda each: -abs(each.value) / max(each.margin or 0.0, 1e-12))[:most]


def print_left_out(console: Console, left_out: Mapping[str, str]) -> None:
    """Columns that cannot be features."""
    for name, why in left_out.items():
        console.print(Text(f"Left out: {shown(name)}. To have it, ask the owner to {why}.", "yellow"))
