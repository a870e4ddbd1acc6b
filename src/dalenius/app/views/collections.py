"""Local privacy on a terminal and in files: a plan, and what reports tell. Values are text from outside: shown only."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from dalenius.queries.release import shown
from dalenius.releasing.targets import unwritable

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.local.planner import Plan

_ROWS = 40  # of a table on a terminal, unless --top says otherwise
_BARS = 40
TWICE = "A person who reports twice spends twice this; nobody here counts who has."
COLUMNS = ("value", "share", "low", "high", "band_low", "band_high", "count")


def print_plan(console: Console, plan: Plan) -> None:
    """All randomisers, the best first, and what the central model would have."""
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("randomiser", no_wrap=True)
    for name in ("95% margin", "people", "bytes each", "bytes in all"):
        table.add_column(name, justify="right")
    for place, each in enumerate(plan.choices):
        cells = (
            each.name,
            f"± {100 * each.margin:.3g}%",
            f"± {each.margin * plan.people:,.0f}",
            f"{each.report_bytes:,}",
            _bytes(each.report_bytes * plan.people),
        )
        table.add_row(*cells, style="bold" if not place else None)
    console.print(table)
    off = 1.959963984540054 * plan.central * plan.people
    epsilon = plan.best.randomiser.actual_epsilon
    taken = f"Take {plan.best.name}: ε = {epsilon:.9g} for each report, {plan.people:,} people, {plan.size:,} values."
    central = (
        f"In the central model, where a curator sees the values, a count would be off by ± {off:,.3g} at the same "
        f"ε, however many people there are. Here it is {plan.penalty:,.0f} times that, and grows with √people."
    )
    console.print(Text(taken, "bold"))
    console.print(Text(central, "dim"))
    if plan.best.margin > 1:
        console.print(Text("With so few people no share can be told: the margin is larger than 100%.", "bold yellow"))
    for name, why in plan.refused:
        console.print(Text(f"Not ranked: {name}. {why}", "dim"))


def plan_data(plan: Plan) -> dict[str, Any]:
    """The same for `--json`."""
    return {
        "people": plan.people,
        "size": plan.size,
        "epsilon": plan.epsilon,
        "best": plan.best.name,
        "choices": [
            {
                "randomiser": each.name,
                "settings": settings(each.randomiser.fields()),
                "epsilon": each.randomiser.actual_epsilon,
                "error": each.error,
                "error_rare": each.rare,
                "margin": each.margin,
                "report_bytes": each.report_bytes,
            }
            for each in plan.choices
        ],
        "refused": [{"randomiser": name, "why": why} for name, why in plan.refused],
        "central": {"error": plan.central, "ratio": plan.penalty},
    }


def settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What was settled beyond ε and the size."""
    return {key: value for key, value in fields.items() if key not in {"epsilon", "size"}}


def print_estimates(console: Console, data: Mapping[str, Any], *, every: bool) -> None:
    """A table of shares with their intervals, or one mean, and under what guarantee."""
    if "mean" in data:
        found = data["mean"]
        console.print(Text(f"mean {found['value']:,.6g} ± {found['margin']:,.3g}", "bold"))
    else:
        _print_shares(console, data, every=every)
    level = f"{100 * data['confidence']:.10g}%"
    files = f" in {data['files']:,} files" if data["files"] > 1 else ""
    guarantee = f"each is ε = {data['epsilon']:.9g} locally private (asked for {data['asked_epsilon']:g})"
    reports = f"{data['reports']:,} {'report' if data['reports'] == 1 else 'reports'}"
    lines = [f"{reports}{files} · {data['randomiser']} · {guarantee}"]
    if "daily_epsilon" in data:
        lines.append(_kept(data["epsilon"], data["daily_epsilon"]))
    if "mean" in data:
        lines.append(f"± {level}, from how much the reports differ")
    else:
        lines.append(f"± {level} for each value alone, of those who reported: from the randomiser's coins alone")
        lines.append(f"band: {level} for all {data['tested']:,} values at once")
    if data.get("tidy"):
        lines.append("tidy: shares are at least 0 and add up to 1; small ones come out too large, intervals stay")
    lines.append(TWICE)
    for line in lines:
        console.print(Text(line, "dim"))


def print_encoded(console: Console, data: Mapping[str, Any]) -> None:
    """How many reports there are, and what each says of a person: alone, and together with all others."""
    from dalenius.local.memory import Spending

    size = "1 byte" if data["report_bytes"] == 1 else f"{data['report_bytes']:,} bytes"
    reports = f"{data['reports']:,} {'report' if data['reports'] == 1 else 'reports'} of {size}"
    memory, daily = data.get("memory"), data.get("daily_epsilon", data["epsilon"])
    console.print(Text(f"{reports}, each ε = {daily:.9g} locally private ({data['randomiser']}): {data['output']}"))
    if memory is None:
        if "daily_epsilon" in data:
            lifetime = f"ε = {data['epsilon']:.9g} for all reports of one permanent answer, if it is kept"
            console.print(Text(f"{lifetime} (--memory FILE); nothing keeps it here", "dim"))
        console.print(Text(TWICE, "dim"))
        return
    spent = Spending(
        memory["daily_epsilon"], memory["lifetime_epsilon"], memory["without_memory"], memory["days"], memory["values"]
    )
    console.print(Text(f"day {memory['days']:,}: {spent}", "dim"))
    console.print(
        Text(f"{memory['file']} is secret: it holds values and answers. Keep it, and show it to nobody.", "dim")
    )


def _kept(lifetime: float, daily: float) -> str:
    """What RAPPOR's ε is about: all reports of one permanent answer, or one report, where these differ."""
    if daily == lifetime:
        return "every report repeats the permanent answer as it is: keep it, or each new one spends ε again"
    return f"ε is of all reports of one permanent answer; a single report alone has ε = {daily:.9g}"


def _print_shares(console: Console, data: Mapping[str, Any], *, every: bool) -> None:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("value", overflow="fold")
    for name in ("share", "", "people", "band"):
        table.add_column(name, justify="right")
    rows = data["estimates"]
    for each in rows if every else rows[:_ROWS]:
        half, wide = (each["high"] - each["low"]) / 2, (each["band_high"] - each["band_low"]) / 2
        table.add_row(
            Text(shown(each["value"])),
            f"{100 * each['share']:.2f}%",
            f"± {100 * half:.2f}%",
            f"{each['count']:,.0f}",
            f"± {100 * wide:.2f}%",
        )
    console.print(table)
    if not every and len(rows) > _ROWS:
        console.print(Text(f"… and {len(rows) - _ROWS:,} more; --top N, --json or -o FILE.csv show them.", "dim"))
    if data.get("found") is not None:
        console.print(Text(f"{data['found']:,} of {data['tested']:,} candidates were found; the others are not shown."))


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table of estimates."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([each[name] for name in COLUMNS] for each in rows)
    return text.getvalue()


def write_whole(target: Path, text: str) -> None:
    """Write a text file; a crash leaves either the old file or the new one."""
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(target, error) from None


def draw_plan(target: Path, plan: Plan) -> None:
    """Error by people and by ε, side by side."""
    from matplotlib.figure import Figure

    from dalenius.local.planner import draw
    from dalenius.queries.charts import save

    figure: Any = Figure(figsize=(11.6, 4.4), layout="constrained")
    for axes, along in zip(figure.subplots(1, 2), ("people", "epsilon"), strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, alpha=0.25)
        draw(axes, plan, along=along)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", frameon=False)
    save(figure, target)


def draw_estimates(target: Path, data: Mapping[str, Any]) -> None:
    """Shares as bars, with the interval of each (thick) and the band (thin); as high as there are bars."""
    from dalenius.queries.charts import axes_in

    rows = data["estimates"][:_BARS]
    level = f"{100 * data['confidence']:.10g}%"
    thin = f"band: {level} for all {data['tested']:,} values at once"
    spans = (("band_low", "band_high", 1.0, thin), ("low", "high", 2.6, f"{level} for each value alone"))
    left_out = len(data["estimates"]) - len(rows)
    with axes_in(target, height=max(4.4, 1.4 + 0.2 * len(rows))) as axes:
        places = range(len(rows))
        axes.barh(places, [100 * each["share"] for each in rows], color="#4477aa", alpha=0.75, height=0.7)
        for low, high, width, name in spans:
            axes.hlines(
                places,
                [100 * each[low] for each in rows],
                [100 * each[high] for each in rows],
                color="#333333",
                linewidth=width,
                label=name,
            )
        axes.set_yticks(places, [_short(each["value"]) for each in rows])
        for text in axes.get_yticklabels():
            text.set_parse_math(False)
        axes.invert_yaxis()
        axes.axvline(0, color="#aaaaaa", linewidth=0.8)
        axes.set_xlabel(f"share of {data['reports']:,} reports, %")
        shown_of = f"; {len(rows):,} values, {left_out:,} more are not drawn" if left_out else ""
        axes.set_title(f"{data['randomiser']}, ε = {data['epsilon']:.4g}{shown_of}", loc="left")
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)


def _short(text: str) -> str:
    words = shown(text)
    return words if len(words) <= 28 else words[:27] + "…"


def _bytes(count: float) -> str:
    """As people say it.

    >>> _bytes(900), _bytes(4_600_000), _bytes(5e15)
    ('900 B', '4.6 MB', '5,000 TB')
    """
    units = ["B", "kB", "MB", "GB", "TB"]
    while count >= 1000 and len(units) > 1:
        count /= 1000
        units.pop(0)
    return f"{count:,.3g} {units[0]}" if count < 1000 else f"{count:,.0f} {units[0]}"
