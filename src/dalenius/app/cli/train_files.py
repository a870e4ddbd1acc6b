"""Rows that a model is tested on for nothing: a file that anybody may know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import NotAllowedError, SourceUnavailableError

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.curator import Curator


def check_public_rows(file: Path, curator: Curator | None) -> None:
    """Refuses a file of a protected table, of this home or one around it: what it would tell is not paid for."""
    from dalenius.owner.other_homes import check_unprotected_elsewhere
    from dalenius.tables.sources.fingerprint import file_fingerprint

    known = {} if curator is None else curator.registry.versions()
    found = file_fingerprint(file)
    if any(each.fingerprint.shares(found) for versions in known.values() for each in versions):
        raise NotAllowedError(
            f"{file.name} is a protected table's file.",
            why="How well a model predicts its rows tells about them, and nothing would be charged for it.",
            fix="Train with --held-out 20%, and pay for a score of those units with --score.",
        )
    check_unprotected_elsewhere([file], None if curator is None else curator.home)


def read_rows(file: Path) -> pa.Table:
    """The rows of a CSV or Parquet file."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        if file.suffix.lower() in {".parquet", ".pq"}:
            return parquet.read_table(file)
        return csv.read_csv(file, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    except (pa.ArrowInvalid, OSError):
        raise SourceUnavailableError(
            f"{file.name} cannot be read.", why="It is no CSV or Parquet file.", fix="Name a file of rows."
        ) from None
