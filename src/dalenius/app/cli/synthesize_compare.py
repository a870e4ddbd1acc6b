"""`dalenius synthesize --compare`: how far a synthetic table is from the real one, for a price of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.app.cli.clock_bar import clock_bar
from dalenius.app.cli.frame import Frame
from dalenius.app.cli.synthesize_files import write_report
from dalenius.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.analyst import Asking


def compare_with_real(
    frame: Frame,
    asker: Asking,
    table: str,
    asked: Mapping[str, Any],
    predict: str | None,
    report: Path | None,
    *,
    dry_run: bool,
) -> None:
    """Compares the model that the same options made; its own price is ``asked["epsilon"]``."""
    from dalenius.releasing.pacing import probe

    epsilon = asked["epsilon"]
    release = asker.preview_synthetic(table, **asked).release
    if release is None:
        raise InputError(
            "There is no such synthetic table of yours.",
            why="What is compared was made before, with the same columns, method and limits.",
            fix="Make it first: the same without --compare, and with -o FILE.",
        )
    expected = asker.preview_comparison(release, epsilon=epsilon, predict=predict)
    if dry_run:

        def tell(console: Console) -> None:
            from dalenius.app.views.synthetic import print_comparison_preview

            print_comparison_preview(console, expected)

        frame.emit(expected.to_dict(), tell)
        return
    made = None if report is None else asker.synthetic(release)
    with clock_bar(frame, "Comparing with the real table", expected.work * probe()):
        found = asker.compare_synthetic(release, epsilon=epsilon, predict=predict)
    if report is not None and made is not None:
        write_report(frame, report, made, found)

    def human(console: Console) -> None:
        from dalenius.app.views.synthetic import print_comparison

        print_comparison(console, found)

    frame.emit({**found.to_dict(), "report": None if report is None else str(report)}, human)
