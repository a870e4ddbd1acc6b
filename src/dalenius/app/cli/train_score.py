"""`dalenius train --score`: how well a model predicts units held out, for a price of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dalenius.app.cli.frame import Frame
from dalenius.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.analyst import Asking


def score_held_out(
    frame: Frame, asker: Asking, table: str, target: str, asked: Mapping[str, Any], *, dry_run: bool
) -> None:
    """Scores the model that the same options made; the score's own price is ``asked["epsilon"]``."""
    epsilon = asked["epsilon"]
    release = asker.preview_model(table, target, **asked).release
    if release is None:
        raise InputError(
            "There is no such model of yours.",
            why="What is scored was trained before, with the same columns, options and --held-out.",
            fix="Train it first: the same without --score, and with -o DIR.",
        )
    if dry_run:
        expected = asker.preview_score(release, epsilon=epsilon)

        def tell(console: Console) -> None:
            from dalenius.app.views.models import print_score_preview

            print_score_preview(console, expected)

        frame.emit(expected.to_dict(), tell)
        return
    found = asker.score_model(release, epsilon=epsilon)

    def human(console: Console) -> None:
        from dalenius.app.views.models import print_score

        print_score(console, found, target)

    frame.emit(found.to_dict(), human)
