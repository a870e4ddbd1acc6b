"""Plots for people: one figure per file, png or svg by its ending. Needs the extra `plot`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dalenius._extras import require_extra
from dalenius.errors import InputError, SourceUnavailableError
from dalenius.tables.sources.homes import check_output


def check_target(target: Path) -> None:
    """Refuses a file that could not be drawn, before any work is done."""
    if target.suffix.lower() not in {".png", ".svg"}:
        raise InputError(
            f"A plot cannot be written as {target.suffix or 'a file without ending'}.",
            why="The ending says which format is meant.",
            fix="Name a file that ends in .png or .svg.",
        )
    check_output(target)
    try:
        _check_writable(target.resolve())
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        raise _unwritable(target, error) from None
    require_extra("plot", "matplotlib")


def _check_writable(target: Path) -> None:
    if not target.parent.is_dir():
        raise SourceUnavailableError(
            f"The folder of {target.name} does not exist.",
            why="A plot is a file.",
            fix="Make the folder first.",
        )
    if target.is_dir():
        raise SourceUnavailableError(
            f"{target.name} is a folder.",
            why="A plot is a file.",
            fix="Name a file in it, or another one.",
        )
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise PermissionError(None, "Permission denied")


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
        try:
            drawing.savefig(target, dpi=150)
        except OSError as error:
            raise _unwritable(target, error) from None
    finally:
        plt.close(drawing)


def _unwritable(target: Path, error: Exception) -> SourceUnavailableError:
    reason = error.strerror if isinstance(error, OSError) else None
    return SourceUnavailableError(
        f"{target.name} cannot be written.",
        why=f"{reason or type(error).__name__}.",
        fix="Name a file in a folder of yours, on a disk with room.",
    )
