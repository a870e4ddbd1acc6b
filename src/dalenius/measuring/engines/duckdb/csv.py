"""How a CSV file is read: its header line alone decides, never its rows.

DuckDB would guess delimiter, quotes and comments from the rows, so that one person's row could change how everybody's
are read. Here all of that is fixed or follows from the header, and a malformed row is repaired or dropped by itself.
What remains is quoting: a quoted field may hold line breaks, so a quote that is never closed takes the lines after it
along. A table is what its files say when read this way.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dalenius.errors import SourceUnavailableError
from dalenius.measuring.engines.duckdb.locked import listed, quoted

_DELIMITERS = ",;\t|"
_LONGEST = 2**20  # bytes of a header; DuckDB takes lines up to twice that
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_LINE_END = re.compile(rb"[\r\n]")

# Not strict: otherwise a carriage return within a row is an error for the whole file, whatever `ignore_errors` says.
# `new_line` is what DuckDB would otherwise guess; with "\n" it takes "\r\n" and "\r" as well. Not parallel: such a
# reader guesses where rows begin, and fails at a quoted line break.
_DIALECT = r"""quote = '"', escape = '"', comment = '', new_line = '\n', encoding = 'utf-8', strict_mode = false"""
_ROWS = "nullstr = '', null_padding = true, ignore_errors = true, parallel = false"


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line of a file says: the names of its columns, and what separates them."""

    names: tuple[str, ...]
    delimiter: str

    @property
    def dialect(self) -> str:
        """Options of `read_csv` that say how fields and lines are told apart."""
        return f"delim = {quoted(self.delimiter)}, {_DIALECT}"

    def scan(self, files: Sequence[Path]) -> str:
        """All rows of files with this header, as an item of FROM. Every column is VARCHAR; empty is NULL."""
        # In a file of one column an empty line would count as a row, even the one between "\r" and "\n".
        names = self.names if len(self.names) > 1 else (self.names[0], self.names[0] + "_")
        columns = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in names)
        call = (
            f"read_csv({listed(files)}, auto_detect = false, columns = {{{columns}}}, header = true, {self.dialect}, "
            f"{_ROWS}, hive_partitioning = false, union_by_name = false)"
        )
        if names == self.names:
            return call
        name = '"' + self.names[0].replace('"', '""') + '"'
        return f"(SELECT {name} FROM {call})"  # noqa: S608


def header(files: Sequence[Path]) -> Header:
    """The header that all files share. No more than the first line of each is looked at.

    Raises:
        SourceUnavailableError: A file cannot be read, has no usable header, or another one than the first file.
    """
    first = _header(files[0])
    for file in files[1:]:
        if _header(file) != first:
            raise different(file, files[0])
    return first


def different(file: Path, first: Path) -> SourceUnavailableError:
    """The error about files that do not belong together."""
    return SourceUnavailableError(
        "The files of the source have different columns.",
        why=f"{file.name} does not have the columns of {first.name}, in the same order and form.",
        fix="Bring them to one schema, or protect them as tables of one data set.",
    )


def no_header(file: Path, why: str = "The first line of a CSV file must name its columns.") -> SourceUnavailableError:
    """The error about a file whose first line is no header. It quotes nothing, since that line may be a row."""
    return SourceUnavailableError(
        f"{file.name} has no usable header.", why=why, fix="Give it a first line that names each column once, in UTF-8."
    )


def _header(file: Path) -> Header:
    line = _first_line(file)
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise no_header(file, "Its first line is not in UTF-8.")
    plain = _QUOTED.sub("", text)
    delimiter = max(_DELIMITERS, key=plain.count)  # the first of equals
    try:
        found = list(csv.reader([text], delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error:
        raise no_header(file, "The quotes in its first line do not match.") from None
    names = tuple(name.strip() for name in found[0]) if found else ()
    if not any(names):
        raise no_header(file)
    if not all(names):
        raise no_header(file, "Its first line leaves a column without a name.")
    if len({name.casefold() for name in names}) < len(names):
        raise no_header(file, "Its first line gives two columns the same name; upper and lower case are the same.")
    return Header(names, delimiter)


def _first_line(file: Path) -> bytes:
    try:
        with gzip.open(file) if file.name.lower().endswith(".gz") else file.open("rb") as opened:
            start = opened.read(_LONGEST)
    except (OSError, EOFError, zlib.error):
        raise SourceUnavailableError(
            f"{file.name} cannot be read.",
            why="This user has no access to it, it vanished, or it is not of the form that its ending says.",
            fix="Check that it is there, complete and readable.",
        ) from None
    line = _LINE_END.split(start, maxsplit=1)[0]
    if len(line) == _LONGEST:
        raise no_header(file, "Its first line is longer than a mebibyte.")
    return line
