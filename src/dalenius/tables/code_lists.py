"""Keys from a code list: a CSV file with a header, one key per line in one of its columns."""

from __future__ import annotations

import csv
from pathlib import Path

from dalenius.errors import SourceUnavailableError
from dalenius.tables.homes import check_sources
from dalenius.tables.mistakes import invalid, nearest


def code_list(file: Path, column: str, place: str) -> list[str]:
    """The column of the file, from top to bottom; empty cells are left out.

    A code list is public: it says which values can exist, not which do. It must not be made from the data.
    """
    check_sources([file])
    if file.exists() and not file.is_file():  # a pipe or a device would be read without end
        raise invalid(place, f"{file.name} is no file.", why="A code list is a CSV file.", fix="Name one.")
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            header = reader.fieldnames or []
            if column not in header:
                meant = nearest(column, header)
                raise invalid(
                    place,
                    f"{file.name} has no column {column!r}.",
                    why="Its first line names its columns.",
                    fix=f"Did you mean {meant!r}?" if meant else "Correct the column or the file.",
                )
            return [row[column] for row in reader if row[column]]
    except OSError:
        raise SourceUnavailableError(
            f"{place}: the code list {file.name} cannot be read.",
            why="It is missing, or this user has no access to it.",
            fix="Correct the path; it is relative to the policy file.",
        ) from None
    except (csv.Error, UnicodeError):
        raise invalid(
            place, f"{file.name} is not a CSV file.", why="It does not read as UTF-8 CSV.", fix="Save it as CSV."
        ) from None
