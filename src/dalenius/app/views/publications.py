"""Tables of rows on a terminal and in drawings: what they keep, what was lost, what they risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table as Grid
from rich.text import Text

from dalenius._numbers import count_of, to_digits, to_percent
from dalenius.app.views import readable

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.anonymity.checking import CheckResult
    from dalenius.anonymity.options import Made, Options
    from dalenius.anonymity.pseudonyms import Pseudonymized
    from dalenius.anonymity.publishing import Published
    from dalenius.anonymity.risk import AttackerRisk, Risk
    from dalenius.anonymity.sources import Rows
    from dalenius.anonymity.table import Table
    from dalenius.anonymity.unicity import Unicity

LIMITS = (
    "No guarantee: whoever knows more about somebody than the quasi-identifiers, or has another release of the same "
    "people, learns more than these models say (docs/sharp-edges.md)."
)
SUPPRESSED = "*"
_NAMES = {"ncp": "NCP", "discernibility": "discernibility", "class-size": "class size", "entropy": "entropy"}
_QUICK = 5.0  # seconds: a table that took longer is not made again at other k for a drawing
_BINS = 30


def print_publication(console: Console, done: Published, output: Path | None, beside: Sequence[Path] = ()) -> None:
    """What was made, or would be, and where it lies; ``beside``: what else was written, for the owner."""
    facts = done.facts
    _print(console, f"{count_of(facts['rows'], 'row')} in {_classes(facts['classes'])}", "bold")
    _print_sizes(console, facts)
    _print_models(console, facts.get("models") or ())
    _print_loss(console, facts)
    for line in how_made(facts):
        _print(console, line, "dim")
    if done.record is not None:
        again = " before: nothing new left" if done.free else ""
        _print(console, f"On record{again} as {done.record.id}, entry {done.record.entry} of the ledger.", "dim")
        _print(console, f"ε no longer bounds what can be learned from {done.dataset}.", "bold yellow")
    if facts.get("as_they_are"):
        _print(console, as_they_are(facts), "yellow")
    for line in facts.get("warnings") or ():
        _print(console, line, "bold yellow")
    _print(console, LIMITS, "yellow")
    if output is not None:
        _print(console, f"Wrote {output}.")
    elif beside:
        _print(console, "No rows were written. What was drawn and reported is for you.", "dim")
    else:
        _print(console, "Nothing was written.", "dim")


def as_they_are(facts: Mapping[str, Any]) -> str:
    """The columns that no role names."""
    return f"Published as they are, in no role: {', '.join(facts['as_they_are'])}."


def how_made(facts: Mapping[str, Any]) -> list[str]:
    """Method and time, and how far it may be from the optimum; what a series of releases says."""
    lines = []
    if facts.get("method"):
        near = ""
        if facts.get("optimal"):
            near = ", proved optimal"
        elif facts.get("gap") is not None:
            name = _NAMES.get(facts.get("optimised", ""), "loss")
            near = f", {name} at most {to_digits(facts['gap'], 2)} above the optimum"
        levels = ", ".join(f"{name} {level}" for name, level in (facts.get("levels") or {}).items())
        lines.append(f"{facts['method']}, {facts['seconds']:.1f} s{near}" + (f"; levels: {levels}" if levels else ""))
    if "counterfeits" in facts:
        made_up = count_of(facts["counterfeits"], "made-up row")
        lines.append(f"release {facts['release']} of its series, {made_up}, {facts['seconds']:.1f} s")
    return lines


def _print_sizes(console: Console, facts: Mapping[str, Any]) -> None:
    gone = facts.get("suppressed", 0)
    if gone:
        share = to_percent(gone / facts["rows"])
        _print(console, f"{count_of(gone, 'row')} suppressed ({share}): * in every quasi-identifier")


def print_check(console: Console, found: CheckResult) -> None:
    """Whether a table is what was asked."""
    words = ("Met", "bold green") if found.met else ("Not met", "bold red")
    about = f": {count_of(found.rows, 'row')} in {_classes(found.classes)}"
    console.print(Text.assemble(words, about))
    _print_models(console, [each.to_dict() for each in found.findings])


def _print_models(console: Console, models: Sequence[Mapping[str, Any]]) -> None:
    if not models:
        return
    table = Grid(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for title, justify in (("model", "left"), ("of", "left"), ("asked", "left"), ("reached", "right"), ("", "left")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    for each in models:
        failing = each.get("failing") or {}
        failed = f"fails in {_classes(failing.get('classes', 0))}, {count_of(failing.get('rows', 0), 'row')}"
        table.add_row(
            each["model"],
            Text(readable(each.get("column") or "")),
            asked_words(each["asked"]),
            "–" if each["reached"] is None else to_digits(each["reached"], 4),
            Text("met", "green") if each["met"] else Text(failed, "red"),
        )
    console.print(table)


def asked_words(asked: Any) -> str:
    """What was asked of a model.

    >>> asked_words({"l": 3, "c": 2.0})
    'l = 3, c = 2'
    """
    if not isinstance(asked, Mapping):
        return str(asked)
    return ", ".join(
        f"{name} = {each:g}" if isinstance(each, int | float) else str(each) for name, each in asked.items()
    )


def _print_loss(console: Console, facts: Mapping[str, Any]) -> None:
    loss = facts.get("loss")
    if loss:
        _print(console, f"lost: {loss_words(loss)}")


def loss_words(loss: Mapping[str, float]) -> str:
    """All four losses."""
    return (
        f"NCP {to_digits(loss['ncp'], 3)}, entropy {to_digits(loss['entropy'], 3)} (0 nothing, 1 everything); "
        f"{to_digits(loss['class_size'], 4)} rows a class, discernibility {to_digits(loss['discernibility'], 4)}"
    )


def print_profile(console: Console, reached: Mapping[str, Any]) -> None:
    """What a table reaches, without being asked for anything."""
    unique = count_of(reached["unique"], "row")
    _print(
        console, f"{count_of(reached['rows'], 'row')} in {_classes(reached['classes'])}; {unique} like no other", "bold"
    )
    _print(console, f"k = {reached['k']}")
    names = {
        "l_distinct": "distinct l",
        "l_probabilistic": "probabilistic l",
        "l_entropy": "entropy l",
        "c_recursive_2": "recursive c at l = 2",
        "t_equal": "t, equal distance",
        "t_ordered": "t, ordered distance",
        "t_hierarchy": "t, hierarchical distance",
        "beta": "β",
    }
    for column, values in reached["sensitive"].items():
        _print(console, f"of {column}:", "dim")
        for name, words in names.items():
            if name in values:
                value = values[name]
                _print(console, f"    {words} = {'–' if value is None else to_digits(value, 4)}")


def print_risk(console: Console, found: Risk) -> None:
    """How likely somebody is found again."""
    _print(
        console,
        f"{count_of(found.rows, 'row')} in {_classes(found.classes)}; the smallest has {found.smallest}, "
        f"{count_of(found.unique, 'row')} are like no other",
        "bold",
    )
    table = Grid(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for title in ("attacker", "highest", "average", f"rows above {found.threshold:g}"):
        table.add_column(title, justify="left" if title == "attacker" else "right")
    for name, each in (
        ("prosecutor: knows that somebody is in it", found.prosecutor),
        ("journalist: does not know who is in it", found.journalist),
    ):
        table.add_row(name, *_risks(each))
    table.add_row("marketer: links everybody", "", to_percent(found.marketer), "")
    console.print(table)
    if found.journalist is None:
        _print(console, "For the journalist give --population FILE, or --share S for an estimate.", "dim")
    if found.estimated:
        _print(console, "The journalist's and the marketer's risks are estimates, from the share.", "dim")
    if found.absent:
        words = f"{count_of(found.absent, 'row')} look like nobody in the population: it must be generalised alike."
        _print(console, words, "yellow")


def _risks(each: AttackerRisk | None) -> tuple[str, str, str]:
    if each is None:
        return "–", "–", "–"
    return to_percent(each.highest), to_percent(each.average), to_percent(each.above)


def print_unicity(console: Console, found: Unicity) -> None:
    """How many people a few points give away."""
    margin = to_percent(1.96 * found.error)
    _print(
        console,
        f"{to_percent(found.share)} of people (± {margin}) are the only one with {count_of(found.points, 'point')}",
        "bold",
    )
    _print(console, f"{found.tried:,} people were tried; such points fit {found.crowd:g} of them (median)", "dim")


def print_pseudonyms(console: Console, found: Pseudonymized, output: Path, secret: Path) -> None:
    """What was replaced, and what that does not do."""
    from dalenius.anonymity.pseudonyms import METHODS

    columns = ", ".join(f"{name} ({count:,} values)" for name, count in found.distinct.items())
    _print(console, f"Replaced in {count_of(found.table.rows, 'row')}: {columns}.", "bold")
    _print(console, METHODS[found.method], "dim")
    _print(console, f"Wrote {output}; the secret is in {secret}.")
    _print(console, "What this does not do:", "yellow")
    for line in found.not_done:
        _print(console, f"  - {line}", "yellow")


def _classes(count: int) -> str:
    return f"{count:,} class{'' if count == 1 else 'es'}"


def _print(console: Console, words: str, style: str = "") -> None:
    console.print(Text(readable(words), style))


# --- drawings


def class_sizes(table: Table, quasi: Sequence[str]) -> list[int]:
    """Rows in each class."""
    from dalenius.anonymity.classes import classes

    return [int(each) for each in classes(table, list(quasi)).sizes]


def binned(sizes: Sequence[int], bins: int = _BINS) -> list[tuple[int, int, int]]:
    """Classes by size: from, to, how many rows are in classes of such a size. Bins double, so that few tell all.

    >>> binned([1, 1, 2, 3, 9])
    [(1, 1, 2), (2, 3, 5), (4, 7, 0), (8, 15, 9)]
    """
    found: dict[int, int] = {}
    for each in sizes:
        found[each.bit_length()] = found.get(each.bit_length(), 0) + each
    top = max(found, default=0)
    return [(2 ** (at - 1), 2**at - 1, found.get(at, 0)) for at in range(1, min(top, bins) + 1)]


def bin_name(low: int, high: int) -> str:
    """A bin, for an axis."""
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def draw_classes(target: Path, table: Table, quasi: Sequence[str]) -> None:
    """Rows by the size of their class."""
    from dalenius.queries.charts import axes_in

    with axes_in(target) as axes:
        _bars(axes, [("", binned(class_sizes(table, quasi)))])


def draw_publication(target: Path, original: Table, made: Made, rows: Rows, options: Options) -> None:
    """Class sizes before and after; beside them, where making it was quick, the loss at other k."""
    from matplotlib.figure import Figure

    from dalenius.anonymity.publishing import loss_curve
    from dalenius.queries.charts import save

    quasi = rows.roles.quasi
    curve = []
    if options.k is not None and made.facts.get("seconds", _QUICK) < _QUICK:
        curve = loss_curve(original, rows, options, curve_ks(options.k, original.rows))
    drawing: Any = Figure(figsize=(10.4 if curve else 7.2, 4.4), layout="constrained")
    found = drawing.subplots(1, 2 if curve else 1, squeeze=False)[0]
    for axes in found:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, alpha=0.25)
    names = [(name, binned(class_sizes(each, quasi))) for name, each in (("before", original), ("after", made.table))]
    _bars(found[0], names)
    if curve:
        axes = found[1]
        axes.plot([each["k"] for each in curve], [each["loss"]["ncp"] for each in curve], marker="o", color="#4477aa")
        here = [each for each in curve if each["k"] == options.k]
        axes.plot([each["k"] for each in here], [each["loss"]["ncp"] for each in here], "o", color="#ee6677", ms=9)
        axes.set_xscale("log")
        axes.set_xticks([each["k"] for each in curve], [str(each["k"]) for each in curve])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel("k")
        axes.set_ylabel("NCP (0 nothing lost, 1 everything)")
        axes.set_title("What is lost at each k", loc="left")
    save(drawing, target)


def curve_ks(k: int, rows: int) -> list[int]:
    """Usual k around one, none above the number of rows.

    >>> curve_ks(10, 1000), curve_ks(7, 20)
    ([2, 5, 10, 20, 50, 100], [2, 5, 7, 10, 20])
    """
    return sorted(each for each in {2, 5, 10, 20, 50, 100, k} if 2 <= each <= rows)


def _bars(axes: Any, found: Sequence[tuple[str, Sequence[tuple[int, int, int]]]]) -> None:
    longest = max((bins for _, bins in found), key=len)
    width = 0.8 / len(found)
    for number, (name, bins) in enumerate(found):
        places = [at + (number - (len(found) - 1) / 2) * width for at in range(len(bins))]
        axes.bar(
            places, [each[2] for each in bins], width, label=name, color=("#bbbbbb", "#4477aa")[number - len(found)]
        )
    axes.set_xticks(range(len(longest)), [bin_name(low, high) for low, high, _ in longest], rotation=30, ha="right")
    axes.set_xlabel("rows that look alike")
    axes.set_ylabel("rows")
    axes.set_title("In how large a crowd each row is", loc="left")
    if len(found) > 1:
        axes.legend(frameon=False)
