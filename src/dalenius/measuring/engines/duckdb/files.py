"""How the files of a source are read: names and types of their columns, never a value, a count or an extreme.

DuckDB describes the files on a connection that can open nothing else. Its own error messages may quote a row, so none
of them is passed on.

In a CSV file the header line alone decides how it is read, never its rows. DuckDB would guess delimiter, quotes and
comments from the rows, so that one person's row could change how everybody's are read. Here all of that is fixed or
follows from the header, and a malformed row is repaired or dropped by itself. What remains is quoting: a quoted field
may hold line breaks, so a quote that is never closed takes the lines after it along. A table is what its files say when
read this way.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import SourceUnavailableError
from dalenius.measuring.cache import WeightedCache
from dalenius.measuring.engines.duckdb.opening import open_locked, path_list, quoted
from dalenius.measuring.engines.duckdb.rendering import identifier
from dalenius.tables.sources.fingerprint import file_identity

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from dalenius.measuring.engines.sources import Columns
    from dalenius.tables.sources.fingerprint import Fingerprint

_NO_HEADER = re.compile(r"column\d+")
PATTERN = re.compile(r"[*?\[]")  # DuckDB takes such a path for a pattern, and knows no escape
# To open a connection takes longer than all the rest, and to protect a table asks three times.
_KEPT: WeightedCache[Columns] = WeightedCache(20_000)  # names

_DELIMITERS = ",;\t|"
_LONGEST = 2**20  # bytes of a header; DuckDB takes lines up to twice that
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_LINE_END = re.compile(rb"[\r\n]")

# Not strict: otherwise a carriage return within a row is an error for the whole file, whatever `ignore_errors` says.
# `new_line` is what DuckDB would otherwise guess; with "\n" it takes "\r\n" and "\r" as well. Not parallel: such a
# reader guesses where rows begin, and fails at a quoted line break.
_DIALECT = r"""quote = '"', escape = '"', comment = '', new_line = '\n', encoding = 'utf-8', strict_mode = false"""
_ROWS = "nullstr = '', null_padding = true, ignore_errors = true, parallel = false"


def scan_of_files(fingerprint: Fingerprint) -> str:
    """All rows, as an item of FROM. Partition names in paths are not columns; files match by position."""
    if fingerprint.form == "parquet":
        return f"read_parquet({path_list(fingerprint.paths)}, hive_partitioning = false, union_by_name = false)"
    return header(fingerprint.paths).scan(fingerprint.paths)


def check_readable(fingerprint: Fingerprint) -> None:
    """Refuses files that are not there, or that this user may not read."""
    for file in fingerprint.paths:
        if not (file.is_file() and os.access(file, os.R_OK)):
            raise SourceUnavailableError(
                f"{file.name} cannot be read.",
                why="This user has no access to it, or it vanished.",
                fix="Put it back, or give this user read access.",
            )


def schema(
    files: Sequence[Path], form: str, *, guess: bool = False, opened: Callable[[], DuckDBPyConnection] | None = None
) -> Columns:
    """Names and DuckDB types of the columns that all files share; read once while the files stay as they are.

    Args:
        files: Absolute paths, all of one form.
        form: "parquet" or "csv".
        guess: Let DuckDB guess the types of CSV columns, for a draft. Otherwise they are all VARCHAR: a guess depends
            on the rows, and what may be asked must not.
        opened: A cursor on a locked connection that can open these files, where one is open anyway; it is closed here.
    """
    _check_paths(files)
    try:
        key = None if guess else (tuple(files), tuple(map(file_identity, files)), form)
    except OSError:
        key = None
    found = None if key is None else _KEPT.get(key)
    if found is None:
        found = _read(files, form, guess, opened)
        if key is not None:
            _KEPT.put(key, found, len(files) + len(found))
    return found


def _read(files: Sequence[Path], form: str, guess: bool, opened: Callable[[], DuckDBPyConnection] | None) -> Columns:
    import duckdb

    found: Columns | None = None
    shared = header(files) if form == "csv" and files else None
    connection = open_locked(files, threads=1) if opened is None else opened()
    try:
        for file in files:
            if shared is None:
                # Partition names in paths are not columns: what a table has must not depend on where it lies.
                each = _described(connection, "read_parquet([$file], hive_partitioning = false)", {"file": str(file)})
            elif guess:
                each = _guessed(connection, file, shared)
            else:
                # DESCRIBE would not open the file.
                connection.execute(f"SELECT 1 FROM {shared.scan([file])} LIMIT 1").fetchall()  # noqa: S608
                each = _described(connection, shared.scan([file]), {})
            if found is not None and shared is None and each != found:
                raise different_columns(file, files[0])
            found = found or each
    except duckdb.Error:
        raise _unreadable(file, form) from None
    finally:
        connection.close()
    return found or ()


def _check_paths(files: Sequence[Path]) -> None:
    # Taken for a pattern, another file of the source would be read twice.
    for file in files:
        if PATTERN.search(str(file)):
            raise SourceUnavailableError(
                f"{file.name} cannot be read.",
                why="Its path contains one of * ? [, which DuckDB takes for a pattern.",
                fix="Rename the file or its folder.",
            )


def _described(connection: DuckDBPyConnection, item: str, values: dict[str, str]) -> Columns:
    rows = connection.execute(f"DESCRIBE SELECT * FROM {item}", values).fetchall()  # noqa: S608
    return tuple((row[0], row[1]) for row in rows)


def _guessed(connection: DuckDBPyConnection, file: Path, shared: Header) -> Columns:
    options = f"{shared.dialect}, null_padding = true, ignore_errors = true, parallel = false"
    guess = f"read_csv([$file], {options}, hive_partitioning = false)"
    found = _described(connection, guess, {"file": str(file)})
    if all(_NO_HEADER.fullmatch(name) for name, _ in found):
        raise no_header(file)
    types = [kind for _, kind in found] + ["VARCHAR"] * len(shared.names)
    return tuple(zip(shared.names, types, strict=False))


def _unreadable(file: Path, form: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"{file.name} cannot be read.",
        why=f"DuckDB does not take it for a {'Parquet' if form == 'parquet' else 'CSV'} file.",
        fix="Check that it is complete and of the form that its ending says.",
    )


# --- CSV


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
            f"read_csv({path_list(files)}, auto_detect = false, columns = {{{columns}}}, header = true, "
            f"{self.dialect}, {_ROWS}, hive_partitioning = false, union_by_name = false)"
        )
        if names == self.names:
            return call
        return f"(SELECT {identifier(self.names[0])} FROM {call})"  # noqa: S608


def header(files: Sequence[Path]) -> Header:
    """The header that all files share. No more than the first line of each is looked at.

    Raises:
        SourceUnavailableError: A file cannot be read, has no usable header, or another one than the first file.
    """
    first = _header(files[0])
    for file in files[1:]:
        if _header(file) != first:
            raise different_columns(file, files[0])
    return first


def different_columns(file: Path, first: Path) -> SourceUnavailableError:
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
