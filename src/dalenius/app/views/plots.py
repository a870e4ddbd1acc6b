"""Plots for people: one figure per file, png or svg by its ending. Needs the extra `plot`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.app.views.burn_down import SHOWN_PERIODS, points
from dalenius.queries.files import unwritable

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger


@contextmanager
def axes_in(target: Path) -> Iterator[Any]:
    """Axes to draw on; saved when the block ends."""
    import matplotlib as mpl

    mpl.use("Agg")  # no window, whatever the machine has
    from matplotlib import pyplot as plt

    drawing, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    try:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, alpha=0.25)
        yield axes
        try:
            drawing.savefig(target, dpi=150)
        except OSError as error:
            raise unwritable(target, error) from None
    finally:
        plt.close(drawing)


def draw_burn_down(ledger: Ledger, target: Path, analyst: str = "") -> None:
    """What was left of every budget over time, and of an analyst's allotments."""
    with axes_in(target) as axes:
        from matplotlib import dates as untyped

        dates: Any = untyped
        color = ""
        found = points(ledger, analyst)
        for name, line in found.items():
            style: dict[str, Any] = {"linewidth": 2}
            if name.who:  # beside the line of its data set
                style = {"linewidth": 2, "color": color}
            elif analyst:
                style = {"linewidth": 1.2, "linestyle": "--"}
            label = f" {', '.join(filter(None, name))}"  # one that starts with _ would be left out of the legend
            [drawn] = axes.step(*zip(*line, strict=True), where="post", label=label, **style)
            color = drawn.get_color()
        axes.set_xlabel("time (UTC)", loc="left")  # the date stands at the right
        axes.set_ylabel("largest ε one more question may type")
        axes.set_ylim(bottom=0)
        axes.set_title("What is left of each budget", loc="left")
        places = dates.AutoDateLocator(tz=UTC)
        axes.xaxis.set_major_locator(places)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(places, tz=UTC))
        if lines := axes.get_lines():
            # beside the lines, never over them
            legend = axes.legend(
                frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize="small", ncols=1 + len(lines) // 20
            )
            if any(name.period for name in found):
                legend.set_title(f"at most the {SHOWN_PERIODS} newest periods", prop={"size": "small"})
            for text in legend.get_texts():
                text.set_parse_math(False)  # a $ in a name is a $
