"""A file of values, a few at a time: one a line, or one column of a CSV file. Texts are taken as they stand."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dalenius.errors import InputError

AT_ONCE = 2**16
STDIN = Path("-")


@dataclass(frozen=True)
class Part:
    """Some values in a row.

    Attributes:
        texts: The values.
        lines: On which line of the file each stands (a CSV cell may reach over several), counted from 1.
        done: How many bytes of the file have been read.
    """

    texts: list[str]
    lines: list[int]
    done: int


def parts(path: Path, column: str | None = None) -> Iterator[Part]:
    """The values of a file.

    UTF-8, with or without a byte order mark; lines end with LF or CRLF, the last one with either or neither. Nothing is
    trimmed: " yes" is another value than "yes", and an empty line is an empty value.

    Args:
        path: The file; "-" is what comes in on stdin.
        column: Of a CSV file whose first line has the names; None: each line is a value.

    Raises:
        InputError: With the line, and never with what stands on it.
    """
    if column is None and path.suffix.lower() == ".csv":
        raise InputError(
            "Which column?", why=f"{path.name} is a CSV file; its lines are no values.", fix="Give --column NAME."
        )
    raw = _opened(path)
    with raw:
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="" if column is not None else "\n")
        found = _plain(text) if column is None else _cells(text, column)
        texts, lines, seen = list[str](), list[int](), 0
        while True:
            try:
                line, value = next(found)
            except StopIteration:
                break
            except UnicodeDecodeError:
                raise InputError(
                    f"{path.name} is not UTF-8 after line {max(lines, default=seen):,} or a little further on.",
                    why="Texts are compared character by character.",
                    fix="Save the file as UTF-8.",
                ) from None
            texts.append(value)
            lines.append(line)
            if len(texts) == AT_ONCE:
                seen = line
                yield Part(texts, lines, _place(raw))
                texts, lines = [], []
        if not texts and not seen:
            raise InputError(
                f"{path.name} holds no values.",
                why="There is nothing to report.",
                fix="Give a file with one value on each line" + (" below the names." if column is not None else "."),
            )
        if texts:
            yield Part(texts, lines, _place(raw))


def numbers(part: Part, low: float, high: float) -> list[float]:
    """The values as numbers between two bounds; refused with the line of the first that is none."""
    found = []
    for line, text in zip(part.lines, part.texts, strict=True):
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not low <= number <= high:  # nan, too
            raise InputError(
                f"Line {line:,} holds no number between {low:g} and {high:g}.",
                why="The range is fixed before anybody reports, and what is outside has no report.",
                fix="Correct that line, or collect with a wider range.",
            )
        found.append(number)
    return found


def bits(part: Part, size: int) -> list[list[int]]:
    """The values as rows of zeros and ones, such as 0110; refused with the line of the first that is none."""
    for line, text in zip(part.lines, part.texts, strict=True):
        if len(text) != size or set(text) - {"0", "1"}:
            raise InputError(
                f"Line {line:,} does not hold {size:,} digits 0 or 1.",
                why="Everybody answers the same questions, each with a 0 or a 1.",
                fix="Write each person's answers without anything between them, as 0110.",
            )
    return [[int(each) for each in text] for text in part.texts]


def _opened(path: Path) -> BinaryIO:
    try:
        return sys.stdin.buffer if path == STDIN else path.open("rb")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read.", why=error.strerror or "The system refused.", fix="Check the path."
        ) from None


def _place(raw: BinaryIO) -> int:
    try:
        return raw.tell()
    except OSError:  # a pipe has none
        return 0


def _plain(text: Iterable[str]) -> Iterator[tuple[int, str]]:
    for line, value in enumerate(text, start=1):
        yield line, value.removesuffix("\n").removesuffix("\r")


def _cells(text: Iterable[str], column: str) -> Iterator[tuple[int, str]]:
    rows = csv.reader(text, strict=True)
    try:
        names = next(rows, [])
        if names.count(column) != 1:
            shown = ", ".join(each[:40] for each in names[:12]) or "none"
            raise InputError(
                f"There is no column {column!r}." if column not in names else f"Two columns are called {column!r}.",
                why=f"The first line names: {shown}. Names are separated by commas.",
                fix="Give one of them, spelt as it is there.",
            )
        place = names.index(column)
        for row in rows:
            if not row and len(names) > 1:  # an empty line
                continue
            if len(row) != len(names) and not (not row and len(names) == 1):
                raise InputError(
                    f"Line {rows.line_num:,} has {len(row):,} cells, and the first line {len(names):,}.",
                    why="It is not sure which of them belongs to the column.",
                    fix="Correct that line; a cell with a comma or a line break stands in quotation marks.",
                )
            yield rows.line_num, row[place] if row else ""
    except csv.Error:
        raise InputError(
            f"Line {rows.line_num:,} is not CSV.",
            why="A quotation mark stands where none may, or one is missing.",
            fix="Write cells with commas, quotation marks or line breaks in quotation marks, and inner ones twice.",
        ) from None
