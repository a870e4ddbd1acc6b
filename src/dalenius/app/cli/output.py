"""How things are printed: one JSON object, or Rich for people."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, time
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, NoReturn

from rich.console import Console

if TYPE_CHECKING:
    from dalenius.errors import DaleniusError


class _PipeConsole(Console):
    """Leaves a closed pipe to the caller instead of ending the process with 1, our code for a bug."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def stdout() -> Console:
    """The console for answers."""
    return _PipeConsole()


def stderr() -> Console:
    """The console for everything else."""
    return _PipeConsole(stderr=True)


def print_json(data: Mapping[str, object]) -> None:
    """Prints the one object that `--json` promises."""
    # The real stdout, not a redirected one; allow_nan=False because `plain` has replaced them all.
    print(json.dumps(plain(data), allow_nan=False, ensure_ascii=False), file=sys.stdout, flush=True)


def print_error(error: DaleniusError) -> None:
    """Prints an error for people: what, why, what to do, what it cost."""
    from rich.table import Table
    from rich.text import Text

    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(overflow="fold")
    rows.add_row("why", Text(error.why))
    if error.at is not None:
        rows.add_row("where", f"line {error.at.line}, column {error.at.column}")
    rows.add_row("what to do", Text(error.fix, style="bold"))
    if error.fits is not None:
        rows.add_row("would fit", f"epsilon = {error.fits.epsilon:g}")
    rows.add_row("cost", error.cost)

    console = stderr()
    console.print(Text.assemble(("Error ", "bold red"), (error.code, "red")), Text(error.message))
    console.print(rows)


def plain(value: object) -> object:
    """The value in JSON's terms: NaN and infinity become null, dates ISO 8601, numpy scalars plain numbers.

    >>> plain({"epsilon": float("inf"), "when": date(2024, 5, 1), "bounds": (0, 1.5)})
    {'epsilon': None, 'when': '2024-05-01', 'bounds': [0, 1.5]}
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, AbstractSet):
        return [plain(each) for each in sorted(value, key=repr)]  # sorted, so that equal answers print equal
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    # numpy's scalars and arrays, recognised without importing numpy
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no form in JSON.")
