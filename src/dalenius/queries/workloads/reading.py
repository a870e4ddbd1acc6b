"""The questions of a workload, as people hand them over: a text with `;` between them, or a list.

A `;` within a text, a name or a remark ends nothing: the text is cut by SQL's own tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dalenius.errors import DaleniusError, InputError, Place, SqlSyntaxError

MOST_QUESTIONS = 10_000
LONGEST = 10_000_000  # characters of a file
_FIX = "Write one SELECT after another, with ; between them."


@dataclass(frozen=True, slots=True)
class Numbered:
    """One question of a workload.

    Attributes:
        text: SQL.
        number: Its place, from 1.
        line: The line of the file on which it begins; 0 where it did not come from one.
    """

    text: str
    number: int
    line: int = 0

    @property
    def name(self) -> str:
        """How errors call it."""
        return f"Question {self.number}" + (f" (line {self.line})" if self.line else "")

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors within say which question they are about, and lines are those of the file."""
        try:
            yield
        except DaleniusError as error:
            error.message = f"{self.name}: {error.message}"
            if self.line and error.at is not None:
                error.at = Place(error.at.line + self.line - 1, error.at.column)
            raise


def split_questions(text: str) -> tuple[Numbered, ...]:
    """The questions of a file, in order, without what stands between them.

    >>> [(each.number, each.line, each.text) for each in split_questions("SELECT ';' -- a; b" + chr(10) + "; SELECT 2")]
    [(1, 1, "SELECT ';'"), (2, 2, 'SELECT 2')]
    """
    from sqlglot import TokenType, tokenize
    from sqlglot.errors import SqlglotError

    from dalenius.queries.rules.parse import DIALECT

    if len(text) > LONGEST:
        raise InputError("The workload is too long.", why=f"It has more than {LONGEST:,} characters.", fix="Part it.")
    try:
        tokens = tokenize(text, dialect=DIALECT)
    except SqlglotError:
        raise SqlSyntaxError(
            "The workload is not SQL that can be read.", why="A quote or a remark is never closed.", fix=_FIX
        ) from None
    found: list[tuple[int, int]] = []
    start: int | None = None
    end = 0
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            if start is not None:
                found.append((start, end))
            start = None
            continue
        start, end = token.start if start is None else start, token.end + 1
    if start is not None:
        found.append((start, end))
    _check_number(len(found))
    return tuple(
        Numbered(text[first:last], number, text.count("\n", 0, first) + 1)
        for number, (first, last) in enumerate(found, 1)
    )


def list_questions(given: Any) -> tuple[Numbered, ...]:
    """The questions of a list, as Python or JSON has it; one text is read as a file is; what was read stays."""
    if isinstance(given, str):
        return split_questions(given)
    if isinstance(given, Sequence) and given and all(isinstance(each, Numbered) for each in given):
        return tuple(given)
    if not isinstance(given, Sequence) or not all(isinstance(each, str) for each in given):
        raise InputError("These are no questions.", why="They are a list of texts, or one text.", fix=_FIX)
    _check_number(len(given))
    for number, each in enumerate(given, 1):
        if not each.strip():
            raise InputError(f"Question {number} is empty.", why="There is no SQL in it.", fix="Leave it out.")
    return tuple(Numbered(each, number) for number, each in enumerate(given, 1))


def _check_number(questions: int) -> None:
    if not questions:
        raise InputError("The workload is empty.", why="There is no question in it.", fix=_FIX)
    if questions > MOST_QUESTIONS:
        raise InputError(
            f"The workload has {questions:,} questions.",
            why=f"At most {MOST_QUESTIONS:,} are asked at once.",
            fix="GROUP BY asks for many numbers in one question; or ask in several workloads.",
        )
