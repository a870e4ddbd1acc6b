"""That a contribution index is about the very rows that a question reads: by sums over those rows, not by file names.

With a wrong index units pass for light that are not, and nobody clips them. So an index keeps, beside its numbers, sums
of keyed hashes over all rows: of the unit (and what tells its period), and of the unit with each column that a bound
looks at. Before an index is first used on files in some state, those sums are taken again from the rows; where they
differ, the question fails. States are what the file system says of the source and of the index: device, inode, size,
times of modification and of change. They are compared before and after every statement that uses the index, so what
was read is what was summed.

To take the sums anew in every question would be the safest, and makes a grouped count slower by a third (a pass over
the units, 60 ms for 10⁷ rows beside 180); once for each state and column costs nothing that lasts.

Neighbours. Whether sums are taken depends on what this process has seen, and whether they agree on whether somebody
exchanged files. No row of a table that is as it was protected can change either.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dalenius.errors import SourceChangedError
from dalenius.measuring.engines.duckdb.opening import quoted
from dalenius.measuring.engines.duckdb.rendering import identifier
from dalenius.measuring.expressions import columns_of
from dalenius.measuring.periods import unit_part
from dalenius.tables.sources.fingerprint import identities

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.statements import RunSelect
    from dalenius.measuring.plan import Table
    from dalenius.tables.sources.fingerprint import Fingerprint

NOTE = "sums"  # their name among the notes of the index's first file
UNITS = ""  # the name of the sum over units alone


def sums_note(table: Table, columns: Iterable[str], scan: str, run: RunSelect) -> str:
    """The sums of a table's rows under a new key, for a note."""
    key, names = secrets.token_hex(16), [UNITS, *columns]
    (found,) = run(_sql(table, names, key, scan))
    return json.dumps({"key": key, "sums": dict(zip(names, map(str, found), strict=True))})


class Binding:
    """What this process has seen of one table's rows.

    Args:
        table: Whose rows.
        fingerprint: Its files.
        run: Runs a SELECT on a connection that may read them.
    """

    def __init__(self, table: Table, fingerprint: Fingerprint, run: RunSelect) -> None:
        self._table = table
        self._paths = fingerprint.paths
        self._run = run
        self._seen: dict[tuple[Any, ...], set[str]] = {}

    def state(self) -> tuple[Any, ...]:
        """What the file system says of the source at this moment."""
        return identities(self._paths)

    def check(self, noted: str, columns: Sequence[str], scan: str, seconds: float) -> tuple[Any, ...]:
        """The state in which the rows are those of the index, as far as some columns go.

        Raises:
            SourceChangedError: They are others.
        """
        state = self.state()
        seen = self._seen.get((noted, state), set())
        wanted = [name for name in dict.fromkeys([UNITS, *columns]) if name not in seen]
        if wanted:
            sums = _read(noted)
            (found,) = self._run(_sql(self._table, wanted, sums.get("key", ""), scan), seconds=seconds)
            if any(sums.get(f"sum {name}") != str(each) for name, each in zip(wanted, found, strict=True)):
                raise self.changed()
            if self.state() != state:
                raise self.changed()
            self._seen = {(noted, state): seen | set(wanted)}  # of other states nothing needs to be known
        return state

    def check_kept(self, state: tuple[Any, ...]) -> None:
        """Refuses rows that were read from files that are no longer in this state."""
        if self.state() != state:
            raise self.changed()

    def changed(self) -> SourceChangedError:
        """The error about rows that the index does not know."""
        name = self._table.policy.name
        return SourceChangedError(
            f"The data of {name!r} changed since it was protected.",
            why="Its rows are not those of which its contribution index was made, so that it bounds nothing.",
            fix=f"Put the files back, or record their new state with 'dalenius refresh {name}'.",
        )


def _read(noted: str) -> Mapping[str, str]:
    """A note, flat; of one that is none, nothing."""
    try:
        data = json.loads(noted)
        return {"key": str(data["key"]), **{f"sum {name}": str(each) for name, each in data["sums"].items()}}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def _sql(table: Table, names: Sequence[str], key: str, scan: str) -> str:
    """One sum for each name: of the unit, and of the unit with a column. HUGEINT holds those of 2⁶³ rows."""
    part = unit_part(table)
    own = [*table.policy.unit, *(sorted(columns_of(part)) if part is not None else ())]
    sums = []
    for name in names:
        hashed = ", ".join([*map(identifier, dict.fromkeys([*own, *([name] if name else [])])), quoted(key)])
        sums.append(f"coalesce(sum(hash({hashed})), 0)")
    return f"SELECT {', '.join(sums)} FROM {scan}"  # noqa: S608
