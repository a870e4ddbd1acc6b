"""Files that people name: whether one can be written, and a release as csv, parquet or json, by its ending."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius._extras import require_extra
from dalenius.errors import InputError, SourceUnavailableError
from dalenius.tables.sources.homes import check_output

if TYPE_CHECKING:
    from dalenius.queries.release import Release

ANSWER, PLOT = (".csv", ".parquet", ".json"), (".png", ".svg")


def check_target(target: Path, endings: Sequence[str] = ANSWER) -> None:
    """Refuses a file that could not be written, before anything is charged or drawn.

    Args:
        target: The file.
        endings: `ANSWER` or `PLOT`.
    """
    what, why = ("A plot", "A plot is a file.") if endings is PLOT else ("This", "It is written to a file.")
    if endings is ANSWER:
        what, why = "An answer", "An answer is written to a file."
    if target.suffix.lower() not in endings:
        raise InputError(
            f"{what} cannot be written as {target.suffix or 'a file without ending'}.",
            why="The ending says which format is meant.",
            fix=f"Name a file that ends in {', '.join(endings[:-1])} or {endings[-1]}.",
        )
    check_output(target)
    try:
        place = target.resolve()
        folder, missing = place.is_dir(), not place.parent.is_dir()
        writable = os.access(place if place.exists() else place.parent, os.W_OK)
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        raise unwritable(target, error) from None
    if folder or missing:
        raise SourceUnavailableError(
            f"{target.name} is a folder." if folder else f"The folder of {target.name} does not exist.",
            why=why,
            fix="Name a file in a folder that exists.",
        )
    if not writable:
        raise unwritable(target, PermissionError(13, "Permission denied"))
    if endings is PLOT:
        require_extra("plot", "matplotlib")


def write(release: Release, target: Path) -> None:
    """Writes a release; a file that is there is replaced."""
    check_target(target)
    try:
        _WRITERS[target.suffix.lower()](release, target)
    except OSError as error:
        raise unwritable(target, error) from None


def _write_csv(release: Release, target: Path) -> None:
    from pyarrow import csv

    csv.write_csv(_flat(release.to_arrow()), target, csv.WriteOptions(quoting_style="needed"))


def _flat(table: Any) -> Any:
    """The table with lists as texts, [1.0, null]: csv has none."""
    import pyarrow as pa

    for at, each in enumerate(table.schema):
        if pa.types.is_list(each.type):
            texts = [None if cell is None else json.dumps(cell) for cell in table.column(at).to_pylist()]
            table = table.set_column(at, each.name, pa.array(texts, pa.string()))
    return table


def _write_parquet(release: Release, target: Path) -> None:
    from pyarrow import parquet

    about = {name: value for name, value in _tree(release).items() if name not in {"rows", "noise_error", "columns"}}
    parquet.write_table(release.to_arrow().replace_schema_metadata({"dalenius": json.dumps(about)}), target)


def _write_json(release: Release, target: Path) -> None:
    target.write_text(json.dumps(_tree(release), ensure_ascii=False, allow_nan=False, indent=1) + "\n", "utf-8")


def _tree(release: Release) -> dict[str, Any]:
    return {"question": release.question, **release.to_dict()}


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet, ".json": _write_json}


def unwritable(target: Path, error: Exception) -> SourceUnavailableError:
    """Says why a file cannot be written."""
    reason = error.strerror if isinstance(error, OSError) else None
    return SourceUnavailableError(
        f"{target.name} cannot be written.",
        why=f"{reason or type(error).__name__}.",
        fix="Name a file in a folder of yours, on a disk with room.",
    )
