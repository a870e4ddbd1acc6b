"""The checkpoint: what the history said at some entry, so that a new process need not read all of it.

A cache and nothing more. It is authenticated with the chain's key, and good only if the entry it stopped at still has
the hash it had; a missing, forged, foreign or unreadable one means reading from the first entry, and an old one means
reading more. It is written by the process that had to read many entries, when it has: a server that runs for months
writes none, and no question waits for one.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import sqlite3
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

from dalenius.ledger.budgets import Budget
from dalenius.ledger.chain import canonical
from dalenius.ledger.projection import HASH, Projection, Question

NAME = "ledger.checkpoint"
FORMAT = 1  # of a projection: another one is not read
_WORTH = 500  # entries: fewer are read faster than a checkpoint is written
_MAC = 64
_NAMES = Question.__slots__
_VALUES = attrgetter(*_NAMES)


class Checkpoint:
    """The file in which a projection is kept."""

    def __init__(self, home: Path, key: bytes) -> None:
        self._file = home / NAME
        self._key = key

    def load(self, connection: sqlite3.Connection) -> Projection | None:
        """The projection that was kept, if it is authentic and of this history."""
        try:
            content = self._file.read_bytes()
        except OSError:
            return None
        mac, text = content[:_MAC], content[_MAC:]
        if not hmac.compare_digest(mac, self._mac(text)):
            return None
        data = json.loads(text)
        if data["format"] != FORMAT:
            return None
        state = _read(data)
        row = connection.execute("SELECT hash FROM entries WHERE number = ?", (state.count,)).fetchone()
        return state if row is not None and row[0] == state.head else None

    def save(self, state: Projection, read: int) -> None:
        """Keeps a projection for whose making so many entries were read. Where that fails, it is done without."""
        if read < _WORTH:
            return
        text = canonical(_written(state)).encode()
        new = self._file.with_name(f"{NAME}.{os.getpid()}.new")
        with suppress(OSError):
            try:
                with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                    out.write(self._mac(text) + text)
                new.replace(self._file)
            finally:
                new.unlink(missing_ok=True)

    def _mac(self, text: bytes) -> bytes:
        return hmac.digest(self._key, b"checkpoint " + text, "sha256").hex().encode()


def _written(state: Projection) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "hashes": base64.b64encode(bytes(state.hashes)).decode(),
        "kinds": state.kinds,
        "budgets": {name: budget.to_dict() for name, budget in state.budgets.items()},
        "allotments": [[*place, epsilon] for place, epsilon in state.allotments.items()],
        "totals": [[*place, str(loss), str(delta), charges] for place, (loss, delta, charges) in state.totals.items()],
        "epochs": state.epochs,
        "questions": [_question(each) for each in state.questions.values()],
        "grants": [[*place, number] for place, number in state.grants.items()],
        "retries": [[*place, *known] for place, known in state.retries.items()],
    }


def _question(question: Question) -> list[Any]:
    values = list(_VALUES(question))
    values[_NAMES.index("units")] = list(map(str, question.units))
    return values


def _read(data: dict[str, Any]) -> Projection:
    hashes = bytearray(base64.b64decode(data["hashes"]))
    state = Projection(
        bytes(hashes[-HASH:]),
        hashes,
        data["kinds"],
        {name: Budget.from_dict(each) for name, each in data["budgets"].items()},
        {(dataset, analyst): epsilon for dataset, analyst, epsilon in data["allotments"]},
        {
            (dataset, period, analyst): (int(loss), int(delta), charges)
            for dataset, period, analyst, loss, delta, charges in data["totals"]
        },
        data["epochs"],
        grants={(question, analyst): number for question, analyst, number in data["grants"]},
        retries={(analyst, key): (body, question) for analyst, key, body, question in data["retries"]},
    )
    units, periods = _NAMES.index("units"), _NAMES.index("periods")
    for each in data["questions"]:
        each[units], each[periods] = tuple(map(int, each[units])), tuple(each[periods])
        state.keep(Question(*each))
    return state
