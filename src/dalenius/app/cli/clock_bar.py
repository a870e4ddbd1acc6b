"""A bar that fills by the clock: how much of the time is gone that public facts let one expect.

It does not say how far the work is, which would depend on rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dalenius.app.cli.frame import Frame, stderr

_SHOWN = 0.99  # until it is done


@contextmanager
def clock_bar(frame: Frame, words: str, seconds: float) -> Iterator[None]:
    """A bar on stderr, for work that may take so many seconds; none for scripts."""
    if frame.json or frame.quiet:
        yield
        return
    from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn
    from rich.progress_bar import ProgressBar

    class Clock(BarColumn):
        def render(self, task: Task) -> ProgressBar:
            task.completed = min((task.elapsed or 0.0) / max(seconds, 0.1), _SHOWN)
            return super().render(task)

    about = TextColumn(f"of about {max(1, round(seconds)):,} s")
    columns = (TextColumn("{task.description}"), Clock(), TimeElapsedColumn(), about)
    with Progress(*columns, console=stderr(), transient=True) as bar:
        bar.add_task(words, total=1.0)
        yield
