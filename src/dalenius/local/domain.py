"""The public list of values that a survey is about, in order, and its name: a SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError

_LARGEST_NUMBERED = 2**24
_WHY = "Everybody who reports must number the values alike, and nobody may choose them after seeing answers."


@dataclass(frozen=True)
class Domain:
    """Distinct texts in order; a value's place, counted from 0, is what a randomiser takes.

    Texts are compared character by character, as they stand: nothing is trimmed, folded or normalised.

    >>> domain = Domain(("red", "green", "blue"))
    >>> domain.size, domain.index(["blue", "red"]).tolist()
    (3, [2, 0])
    >>> domain.sha256[:16]
    'fae464a177cbc6b9'
    """

    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(self.texts))
        if len(self.texts) < 2:
            _refuse("The domain has fewer than two values.", "List at least two, one a line.")
        seen: dict[str, int] = {}
        for place, text in enumerate(self.texts, start=1):
            if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
                _refuse(f"Value {place:,} of the domain has half of a surrogate pair in it.", "Correct it.")
            if not text:
                _refuse(f"Value {place:,} of the domain is empty.", "Write one value on each line.")
            if (first := seen.setdefault(text, place)) != place:
                _refuse(f"Values {first:,} and {place:,} of the domain are the same.", "Leave one of them out.")

    @classmethod
    def read(cls, path: Path) -> Domain:
        """The lines of a UTF-8 file; the last one may end the line or not."""
        return cls(tuple(lines(path)))

    @classmethod
    def numbered(cls, size: int) -> Domain:
        """The texts "0", "1", …, for values that are numbers already."""
        if not 2 <= size <= _LARGEST_NUMBERED:
            _refuse("A numbered domain has between 2 and 16,777,216 values.", "Choose such a size.")
        return cls(tuple(map(str, range(size))))

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.texts)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over the number of texts and then each text's length in bytes and its UTF-8 bytes, in hex.

        Numbers are 8 bytes, high byte first, so that no two lists of texts share what is hashed.
        """
        digest = hashlib.sha256(self.size.to_bytes(8, "big"))
        for text in self.texts:
            data = text.encode()
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()

    @cached_property
    def _places(self) -> dict[str, int]:
        return {text: place for place, text in enumerate(self.texts)}

    def index(self, values: Sequence[str], *, first_line: int = 1) -> NDArray[np.uint32]:
        """The place of each value.

        Args:
            values: Texts.
            first_line: On which line of its file the first one stands, for the place in an error.

        Raises:
            InputError: If one is not in the domain; it names the line, never the value.
        """
        places = self._places
        try:
            return np.fromiter(map(places.__getitem__, values), np.uint32, len(values))
        except (KeyError, TypeError):
            line = next(at for at, value in enumerate(values, first_line) if value not in places)
        raise InputError(
            f"Line {line:,} holds a value that is not in the domain.",
            why="A value outside the list cannot be reported: no report stands for it.",
            fix="Correct that line, or use the domain that all who report agreed on.",
        )


def lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text file, without their ends."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read.", why=error.strerror or "The system refused.", fix="Check the path."
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 (byte {error.start:,}).",
            why="Texts are compared character by character.",
            fix="Save the file as UTF-8.",
        ) from None
    found = text.replace("\r\n", "\n").split("\n")
    return found[:-1] if found[-1] == "" else found


def _refuse(what: str, fix: str) -> NoReturn:
    raise InputError(what, why=_WHY, fix=fix)
