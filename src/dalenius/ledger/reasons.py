"""Reasons that the history must hold: words that somebody can read later, not a keystroke."""

from __future__ import annotations

from dalenius.errors import InputError

WORDS, CHARACTERS, LONGEST = 3, 10, 2000
ENOUGH = f"A reason has at least {WORDS} words and {CHARACTERS} characters."


def explains(reason: str) -> bool:
    """Whether a reason says something: of at least three words and ten characters.

    >>> explains("wave 2, drawn from people not in wave 1"), explains("new"), explains(". . . . . . . .")
    (True, False, False)
    """
    words = [each for each in reason.split() if any(letter.isalnum() for letter in each)]
    return len(words) >= WORDS and len(" ".join(words)) >= CHARACTERS


def given(reason: str) -> str:
    """A reason for a small step, which must be there; without blanks around it."""
    found = reason.strip()
    if not found or len(found) > LONGEST or not found.isprintable():
        raise InputError(
            "This needs a reason.",
            why=f"It stays in the history: one line of up to {LONGEST:,} printable characters.",
            fix="Give one (--reason): what happened, or what was agreed.",
        )
    return found
