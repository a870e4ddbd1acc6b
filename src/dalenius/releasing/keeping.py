"""Where a long look keeps how far it is, so that a process that ends in the middle loses no charge.

A claim whose process has ended is taken over when the same is asked again (`ledger.charging`), and is looked at anew:
from what was kept, where something was. It is a file of the home for each charge, sealed under a key of the home, bound
to its charge and to what was asked, and gone when the release is on disk.

What may be kept is what could leave: noisy numbers that the charge pays for and what follows from them. So the file
says nothing that the release may not say. It holds no row, no sample, no sum without noise, and no noise alone.
Whoever puts an old file back makes the look repeat some steps; only one end of it is ever stored.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.ledger.sealing import seal, unseal

if TYPE_CHECKING:
    from pathlib import Path

    from dalenius.ledger.ledger import Ledger

FOLDER = "unfinished"
_PURPOSE = b"dalenius: how far a look is, 1"
_CLAIMED = "claimed"
_CHARGE = re.compile(r"\.?([0-9]{1,18})(?:\.[0-9a-f]{12})?")


@dataclass(frozen=True)
class Kept:
    """What one charge has kept.

    Attributes:
        ledger: Whose home.
        charge: The number of the charge.
        key: What identifies what was asked.
    """

    ledger: Ledger
    charge: int
    key: str

    def read(self) -> Any:
        """What was kept last, as JSON; None where nothing was, or what is there is not ours."""
        try:
            sealed = self._file.read_bytes()
        except OSError:
            return None
        plain = unseal(self.ledger, sealed, _PURPOSE, self._about)
        return None if plain is None else json.loads(plain)

    def write(self, data: Any) -> None:
        """Keeps this in the place of what was kept before: all of it, or what was there stays.

        A disk that is full stops no look: it goes on, and would begin earlier if it were taken up.
        """
        sealed = seal(self.ledger, json.dumps(data, separators=(",", ":")).encode(), _PURPOSE, self._about)
        beside = self._file.with_name(f".{self.charge}.{secrets.token_hex(6)}")
        try:
            self._file.parent.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(sealed)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._file)
        except OSError:
            with suppress(OSError):
                beside.unlink(missing_ok=True)

    def drop(self) -> None:
        """The look has ended."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    @property
    def _file(self) -> Path:
        return self.ledger.home / FOLDER / str(self.charge)

    @property
    def _about(self) -> bytes:
        return f"{self.charge} {self.key}".encode()


def drop_ended(ledger: Ledger) -> None:
    """Removes what was kept of charges that nobody will take up: of a process that ended just before it did so."""
    try:
        files = list((ledger.home / FOLDER).iterdir())
    except OSError:
        return
    charges = {each: _CHARGE.fullmatch(each.name) for each in files}  # also what was being written at the end
    numbers = {each: int(found[1]) for each, found in charges.items() if found}
    if not numbers:
        return
    with ledger.state() as state:
        questions = {number: state.questions.get(number) for number in numbers.values()}
    for file, number in numbers.items():
        question = questions[number]
        if question is None or question.state != _CLAIMED:
            with suppress(OSError):
                file.unlink(missing_ok=True)
