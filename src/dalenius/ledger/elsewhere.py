"""The history of another home, looked at from outside: nothing is written there, waited for, or brought up to date.

Nor is anything proved: the keys of that home are not ours to use. Whoever can write its file can make it name too much
or too little, and could as well delete the home.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dalenius.ledger.database import NAME

_SECONDS = 1.0  # a home that is busy is not waited for


def actions_of(home: Path, kinds: Sequence[str]) -> list[Mapping[str, Any]]:
    """What the owner of a home recorded, of some kinds, oldest first; nothing where there is no ledger to be read."""
    file = home / NAME
    if not os.path.isfile(file):  # noqa: PTH113 (says no where it may not look)
        return []
    # With nobody at it, the file is all there is, and opening it in any other way would leave files beside it.
    mode = "mode=ro" if os.path.exists(f"{file}-wal") else "immutable=1"  # noqa: PTH110
    marks = ", ".join("?" * len(kinds))
    asked = f"SELECT body FROM entries WHERE kind IN ({marks}) ORDER BY number"  # noqa: S608 (marks alone)
    try:
        opened = sqlite3.connect(f"file:{quote(str(file.absolute()))}?{mode}", uri=True, timeout=_SECONDS)
        with closing(opened) as connection:
            bodies = [str(row[0]) for row in connection.execute(asked, tuple(kinds))]
        found = [json.loads(each) for each in bodies]
    except (sqlite3.Error, ValueError, OSError):
        return []
    return [each for each in found if isinstance(each, dict)]
