"""Dictionary: a plain hash is no pseudonym where the values can be listed.

There are few telephone numbers. Whoever hashes them all has a table to look every hash up in, once and for all; a salt
that stands in the file only makes it necessary to do so for that file. With a key that only the owner has (HMAC), the
attacker can hash nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from dalenius.anonymity.pseudonyms import pseudonymize
from dalenius.anonymity.table import Table
from dalenius.audit.attacks.attack import Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.samples.patients import patients

SALT = "1997-"


def looked_up(hashes: Iterable[str], words: Iterable[str], hashed: Callable[[str], str]) -> dict[str, str]:
    """The word behind each hash that one of the words has.

    >>> looked_up([plain("bo")], ["al", "bo"], plain)[plain("bo")]
    'bo'
    """
    wanted = set(hashes)
    return {found: word for word in words if (found := hashed(word)) in wanted}


def plain(word: str) -> str:
    """SHA-256, as half the world does it."""
    return hashlib.sha256(word.encode()).hexdigest()


def _salted(word: str) -> str:
    return plain(SALT + word)


def run(lab: TableLab) -> Finding:
    """Hashes all numbers there are, and looks up everybody's."""
    phones = [each.phone for each in patients(lab.people)]
    hashed = _salted if lab.target == "salted-hash" else plain
    if lab.target == "keyed-hash":
        with TemporaryDirectory() as folder:
            table = pseudonymize(Table.of({"phone": phones}), ["phone"], secret=Path(folder) / "key").table
        shown = [str(each) for each in table["phone"].cells()]
    else:
        shown = [hashed(each) for each in phones]
    words = [f"0{number:05d}" for number in range(100_000)]
    found = looked_up(shown, words, hashed)
    rate = Rate(sum(found.get(each) == phone for each, phone in zip(shown, phones, strict=True)), len(phones))
    learned = f"The telephone numbers of {rate}, by hashing all {len(words):,} there are."
    return lab.found(ATTACK.name, rate, broke=rate.hits > 0, learned=learned)


ATTACK = TableAttack(
    "dictionary",
    "Hashes every telephone number there is, and looks up who has which.",
    "A hash of what can be listed is the thing itself.",
    {
        "plain-hash": "SHA-256 of the telephone number",
        "salted-hash": "the same with a salt that stands in the file",
        "keyed-hash": "HMAC-SHA256 with a key that only the owner has",
    },
    ("keyed-hash",),
    run,
)
