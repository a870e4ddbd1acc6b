"""A question as tokens, for what sqlglot cannot parse: found by word, read, and blanked out where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from dalenius.errors import InputError, Place, QuestionRefusedError, SqlSyntaxError

_NUMBER = re.compile(r"(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?")
_WORD = re.compile(r"[A-Za-z_]\w*")
T = TypeVar("T")


class QuestionTokens:
    """The tokens of one text, by number, and the parts of it that were read and are no longer needed."""

    def __init__(self, text: str, tokens: Sequence[Any]) -> None:
        from sqlglot import TokenType

        self.types = TokenType
        self.text, self.tokens = text, tokens
        self.spans: list[tuple[int, int]] = []

    # --- looking

    def kind(self, at: int) -> Any:
        """What sqlglot takes it for; None past the end."""
        return self.tokens[at].token_type if 0 <= at < len(self.tokens) else None

    def word(self, at: int) -> str | None:
        """An unquoted word in small letters; None for anything else."""
        shown = self.slice(at, at) if 0 <= at < len(self.tokens) else ""
        return shown.lower() if _WORD.fullmatch(shown) else None

    def slice(self, first: int, last: int) -> str:
        """The text from one token to another, both included."""
        return self.text[self.tokens[first].start : self.tokens[last].end + 1]

    def depths(self) -> list[int]:
        """How many parentheses are open before each token."""
        depth, found = 0, []
        for at in range(len(self.tokens)):
            found.append(depth)
            depth += self._opens(at)
        return found

    def end(self, at: int) -> int:
        """The comma or parenthesis that ends the value that begins at ``at``."""
        depth = 0
        for number in range(at, len(self.tokens)):
            if not depth and self.kind(number) in {self.types.COMMA, self.types.R_PAREN}:
                if number == at:
                    raise self.syntax(at, "A value is missing.")
                return number
            depth += self._opens(number)
        raise self.syntax(len(self.tokens) - 1, "A parenthesis is not closed.")

    def number(self, value: range, message: str, *, signed: bool = False) -> Fraction:
        """A number that is written out; exact, as decimals are in policies."""
        sign = 1
        if signed and len(value) > 1 and self.kind(value[0]) in {self.types.DASH, self.types.PLUS}:
            sign, value = (-1 if self.kind(value[0]) is self.types.DASH else 1), value[1:]
        shown = self.slice(value[0], value[-1])
        if not _NUMBER.fullmatch(shown):
            why = "It is written out: no expression, no parameter."
            raise self.invalid(value[0], message, why, "Write for example 0.5.")
        return sign * Fraction(shown)

    def checked(self, at: int, read: Callable[[], T]) -> T:
        """What ``read`` gives; its mistake is told with its place."""
        try:
            return read()
        except InputError as error:
            error.at = self.place(at)
            raise

    def _opens(self, at: int) -> int:
        return {self.types.L_PAREN: 1, self.types.R_PAREN: -1}.get(self.kind(at), 0)

    # --- cutting

    def blank(self, first: int, last: int) -> None:
        """Tokens that `blanked` leaves out."""
        self.spans.append((self.tokens[first].start, self.tokens[last].end + 1))

    def blanked(self) -> str:
        """The text with blanks in place of what was read: lines and columns stay what they are."""
        text = self.text
        for low, high in self.spans:
            text = text[:low] + re.sub(r"[^\r\n\t]", " ", text[low:high]) + text[high:]
        return text

    # --- mistakes

    def place(self, at: int) -> Place:
        """Where a token begins; the last one for those past the end."""
        start = self.tokens[min(at, len(self.tokens) - 1)].start
        return Place(self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start))

    def refused(self, at: int, message: str, why: str, fix: str) -> QuestionRefusedError:
        """The error about something that cannot be asked."""
        return QuestionRefusedError(message, why=why, fix=fix, at=self.place(at))

    def invalid(self, at: int, message: str, why: str, fix: str) -> InputError:
        """The error about a value."""
        return InputError(message, why=why, fix=fix, at=self.place(at))

    def syntax(self, at: int, why: str) -> SqlSyntaxError:
        """The error about what cannot be read."""
        fix = "Write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) …; see docs/how-to/bigquery.md."
        return SqlSyntaxError("The differential privacy clause cannot be read.", why=why, fix=fix, at=self.place(at))
