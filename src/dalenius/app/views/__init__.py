"""What the command line, the server, the web page and the report tell alike: each thing is worked out here, once."""

from __future__ import annotations

NO_BOUND = "no bound"  # where nothing is promised to so many units together


def readable(text: object) -> str:
    """Text from entries and receipts, with everything a terminal would obey rather than show made visible as �."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(text))


def to_minute(time: str) -> str:
    """A time of the ledger, to the minute."""
    return time[:16].replace("T", " ")


def to_second(time: str) -> str:
    """A time of the ledger, to the second."""
    return time[:19].replace("T", " ")


def as_sentence(words: str) -> str:
    """Words of a list, as a sentence of their own."""
    return f"{words[:1].upper()}{words[1:]}."
