"""Plots for people: one figure per file, png or svg by its ending. Needs the extra `plot`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dalenius._extras import require_extra
from dalenius.errors import InputError, SourceUnavailableError


def check_target(target: Path) -> None:
    """Refuses a file that could not be drawn, before any work is done."""
    if target.suffix.lower() not in {".png", ".svg"}:
        raise InputError(
            f"A plot cannot be written as {target.suffix or 'a file without ending'}.",
            why="The ending says which format is meant.",
            fix="Name a file that ends in .png or .svg.",
        )
    if not target.absolute().parent.is_dir():
        raise SourceUnavailableError(
            f"The folder of {target.name} does not exist.",
            why="A plot is a file.",
            fix="Make the folder first.",
        )
    require_extra("plot", "matplotlib")


@contextmanager
def figure(target: Path) -> Iterator[Any]:
    """Axes to draw on; saved when the block ends."""
    import matplotlib as mpl

    mpl.use("Agg")  # no window, whatever the machine has
    from matplotlib import pyplot as plt

    drawing, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    try:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, alpha=0.25)
        yield axes
        drawing.savefig(target, dpi=150)
    finally:
        plt.close(drawing)
