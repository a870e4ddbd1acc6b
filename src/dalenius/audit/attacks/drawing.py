"""Findings as a picture. Needs the extra `plot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dalenius._extras import require_extra
from dalenius.audit.attacks.attack import Drawing, Finding
from dalenius.queries.charts import save

_STYLES = ("-", ":", "--", "-.")
# Of the fallen, the holding and what was not tried, told apart by their words, too.
_FELL, _HELD, _NOT = "#f3c6c2", "#cfe3cf", "#f4f4f4"


def draw(findings: Sequence[Finding], target: Path, beside: Drawing | None = None) -> None:
    """The curves of all findings that have some, and what is drawn beside them; png or svg by the file's ending.

    An attack without a curve is drawn as its line of the scorecard, or by its rate.
    """
    drawn = [each for each in findings if each.drawing is not None]
    if not drawn:
        draw_scorecard(findings, target)
        return
    require_extra("plot", "matplotlib")
    from matplotlib.figure import Figure

    panels = 1 if beside is None else 2
    figure: Any = Figure(figsize=(7.2 if panels == 1 else 10.4, 4.4), layout="constrained")
    first, *rest = figure.subplots(1, panels, squeeze=False)[0]
    _label(first, next(each.drawing for each in reversed(drawn) if each.drawing))
    named: set[str] = set()
    for number, finding in enumerate(drawn):
        assert finding.drawing is not None  # noqa: S101 (they were chosen by that)
        _curves(first, finding, f"C{number}", named, alone=len(drawn) == 1)
    first.legend(frameon=False)
    for axes in rest:
        assert beside is not None  # noqa: S101 (else there is one panel)
        _label(axes, beside)
        for number, curve in enumerate(beside.curves):
            axes.plot(
                curve.x, curve.y, _STYLES[number], label=curve.label, color="black", marker="o" if not number else ""
            )
        axes.legend(frameon=False)
    save(figure, target)


def _label(axes: Any, drawing: Drawing) -> None:
    axes.set_title(drawing.title, loc="left")
    axes.set_xlabel(drawing.across)
    axes.set_ylabel(drawing.up)
    if drawing.log_x:
        axes.set_xscale("log")
    elif all(x == int(x) < 20 for curve in drawing.curves for x in curve.x):  # things that are counted
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if drawing.log_y:
        axes.set_yscale("log")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, alpha=0.25)


def _curves(axes: Any, finding: Finding, color: str, named: set[str], *, alone: bool) -> None:
    """One colour for each target; a curve that bears no target's name is a comparison, or one of several of it."""
    curves = finding.drawing.curves if finding.drawing else ()
    own = any(each.label == finding.target for each in curves)
    for number, curve in enumerate(curves):
        label = curve.label if own or alone else f"{finding.target}: {curve.label}"
        axes.plot(
            *(curve.x, curve.y, _STYLES[number % len(_STYLES)]),
            label="" if label in named else label,
            color="black" if own and curve.label != finding.target else f"C{number}" if alone else color,
            marker="o" if len(curve.x) < 3 else "",
        )
        named.add(label)


def draw_rates(findings: Sequence[Finding], target: Path) -> None:
    """How often attacks on published tables were right, as bars: on what each breaks, and on what stops it."""
    require_extra("plot", "matplotlib")
    from matplotlib.figure import Figure

    rated = [each for each in findings if each.rate is not None]
    figure: Any = Figure(figsize=(7.6, 0.9 + 0.3 * len(rated)), layout="constrained")
    axes = figure.subplots()
    _bars(axes, rated)
    save(figure, target)


def _bars(axes: Any, rated: Sequence[Finding]) -> None:
    names = []
    for place, each in enumerate(rated):
        assert each.rate is not None  # noqa: S101 (they were chosen by that)
        share = each.rate.share
        axes.barh(place, max(share, 0.004), color="#c0564c" if each.broke else "#5f9a63", height=0.7)
        words = f"{'fell' if each.broke else 'held'}: {each.rate.hits:,} of {each.rate.of:,}"
        inside = share > 0.6
        at, color = (share - 0.01, "white") if inside else (share + 0.015, "black")
        axes.text(at, place, words, ha="right" if inside else "left", va="center", fontsize=8.5, color=color)
        first = place == 0 or rated[place - 1].attack != each.attack
        if first and place:
            axes.axhline(place - 0.5, color="#dddddd", linewidth=0.8)
        names.append(f"{each.attack}:  {each.target}" if first else each.target)
    axes.set_yticks(range(len(rated)), names, fontsize=8.5)
    axes.set_ylim(len(rated) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    axes.set_xlabel("guessed rightly, of all")
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def draw_scorecard(findings: Sequence[Finding], target: Path) -> None:
    """Who fell to what, as a picture; attacks on tables are drawn by their rates, where there are no others."""
    if all(each.rate is not None for each in findings):
        draw_rates(findings, target)
        return
    require_extra("plot", "matplotlib")
    from matplotlib.figure import Figure

    rated = [each for each in findings if each.rate is not None]
    findings = [each for each in findings if each.rate is None]
    attacks = list(dict.fromkeys(each.attack for each in findings))
    targets = list(dict.fromkeys(each.target for each in findings))
    found = {(each.attack, each.target): each for each in findings}
    wide, high = 1.8 + 1.5 * len(targets), 0.8 + 0.32 * len(attacks)
    if rated:
        figure: Any = Figure(figsize=(wide + 7.6, max(high, 0.9 + 0.3 * len(rated))), layout="constrained")
        axes, beside = figure.subplots(1, 2, width_ratios=(wide, 7.6))
        _bars(beside, rated)
    else:
        figure = Figure(figsize=(wide, high), layout="constrained")
        axes = figure.subplots()
    axes.set_xlim(0, len(targets))
    axes.set_ylim(len(attacks), 0)
    for row, attack in enumerate(attacks):
        for column, name in enumerate(targets):
            finding = found.get((attack, name))
            color, words = (_NOT, "–") if finding is None else (_HELD, "held")
            if finding is not None and finding.broke:
                color, words = _FELL, f"fell in {finding.asked:,}"
            axes.add_patch(_square(column, row, color))
            axes.text(column + 0.5, row + 0.5, words, ha="center", va="center", fontsize=9)
    axes.set_xticks([each + 0.5 for each in range(len(targets))], targets)
    axes.set_yticks([each + 0.5 for each in range(len(attacks))], attacks)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    save(figure, target)


def _square(column: int, row: int, color: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column + 0.02, row + 0.04), 0.96, 0.92, color=color)
