"""Format-preserving tokens: a telephone number becomes a telephone number, `AB-1234-c` becomes `QX-8071-h`.

Digits become digits, large letters large ones, small letters small ones, and all else stays in its place. All values of
one format (the same kinds in the same places) are numbered, and FF1 permutes the numbers with a key; column and format
are its tweak. So two values never share a token, and with the key a token can be turned back.

A format with fewer than a million values is refused: its whole code book would be small, and FF1 is not meant for it
(SP 800-38G revision 1). What stays in its place is published as it is; so is the length.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase, digits

from dalenius.anonymity.pseudonyms.ff1 import LEAST, permuted, unpermuted
from dalenius.anonymity.pseudonyms.keys import derived
from dalenius.errors import InputError

_ALPHABETS = (digits, ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True, slots=True)
class _Format:
    """The alphabet of each place; what is no letter and no digit stands for itself, as an alphabet of one."""

    alphabets: tuple[str, ...]

    @classmethod
    def of(cls, column: str, value: str) -> _Format:
        found = []
        for letter in value:
            alphabet = next((each for each in _ALPHABETS if letter in each), "")
            if not alphabet and letter.isalnum():
                raise InputError(
                    f"A value of column '{column}' has a letter or digit that is not among A–Z, a–z, 0–9.",
                    why="A token keeps such characters as they are, and would show a part of the value.",
                    fix="Use --method keyed or lookup for this column.",
                )
            found.append(alphabet or letter)
        return cls(tuple(found))

    @property
    def size(self) -> int:
        """How many values have it."""
        size = 1
        for each in self.alphabets:
            size *= len(each)
        return size

    @property
    def tweak(self) -> bytes:
        """What it is, apart from all others: kinds, and what stays."""
        kinds = dict(zip(_ALPHABETS, "9Aa", strict=True))
        return "".join(kinds.get(each) or f"\\{each}" for each in self.alphabets).encode()

    def number(self, value: str) -> int:
        """The place of a value among all of this format."""
        found = 0
        for letter, alphabet in zip(value, self.alphabets, strict=True):
            found = found * len(alphabet) + alphabet.index(letter)
        return found

    def value(self, number: int) -> str:
        """The value at a place."""
        letters = []
        for alphabet in reversed(self.alphabets):
            number, at = divmod(number, len(alphabet))
            letters.append(alphabet[at])
        return "".join(reversed(letters))


def token(key: bytes, column: str, value: str) -> str:
    """The token of a value.

    >>> made = token(bytes(32), "phone", "030-1234567")
    >>> made[3], len(made), made.replace("-", "").isdigit()
    ('-', 11, True)

    Raises:
        InputError: Too few values have its format.
    """
    form = _fit(column, value)
    return form.value(permuted(derived(key, "tokens"), _tweak(column, form), form.number(value), form.size))


def check_fit(column: str, value: str) -> None:
    """Refuses a value that gets no token.

    Raises:
        InputError: Too few values have its format, or it has letters that would stay.
    """
    _fit(column, value)


def _fit(column: str, value: str) -> _Format:
    form = _Format.of(column, value)
    if form.size < LEAST:
        raise InputError(
            f"A value of column '{column}' is too short for a token.",
            why=f"Only {form.size:,} values have its format: fewer than {LEAST:,} can be tried out.",
            fix="Use --method keyed or lookup for this column.",
        )
    return form


def original(key: bytes, column: str, made: str) -> str:
    """The value of a token.

    >>> original(bytes(32), "phone", token(bytes(32), "phone", "030-1234567"))
    '030-1234567'
    """
    form = _Format.of(column, made)
    return form.value(unpermuted(derived(key, "tokens"), _tweak(column, form), form.number(made), form.size))


def _tweak(column: str, form: _Format) -> bytes:
    name = column.encode()
    return len(name).to_bytes(4, "big") + name + form.tweak
