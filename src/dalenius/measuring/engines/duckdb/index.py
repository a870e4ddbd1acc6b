"""The contribution index: how much each unit holds, prepared at `protect`, so that few must be clipped one by one.

For every unit (and period, where the budget has one) it holds its number of rows and, in steps, Σ|x| of each column
that can be summed; for a column with keys Σn² of the unit's rows over the keys, and their number; for a category whose
keys are not public also the pairs of unit and key. All of these only grow with the rows that are looked at, and with
coarser groups. So, whatever a question's WHERE, FILTER and GROUP BY leave of a unit, the index bounds it from above: a
unit whose bound is within the clip would be scaled by 1, and need not be looked at alone.

It is speed, never meaning: with and without it a plan has the same integers. And it is personal data, as the table is.

An index belongs to one state of the files and to what the policy says about columns. Each of its files carries that
identity; every question compares it, and goes the general way where anything differs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import DaleniusError
from dalenius.measuring.engines.duckdb.binding import NOTE as SUMS
from dalenius.measuring.engines.duckdb.binding import Binding
from dalenius.measuring.engines.duckdb.files import PATTERN
from dalenius.measuring.engines.duckdb.opening import path_list
from dalenius.measuring.expressions import TRUE, Column
from dalenius.measuring.function_values import column_values
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.statements import RunSelect
    from dalenius.measuring.plan import Measure, Plan, Table
    from dalenius.tables.policy import Policy
    from dalenius.tables.sources.fingerprint import Fingerprint

FORMAT = 4
NOTE = "dalenius"  # the name of the identity among a Parquet file's own notes
MOST_KEYS = 1000  # columns with more public keys are rarely grouped by
FEW_KEYS = 16  # pairs are held of units with more keys than that; of the others their number is enough
CEILING = 2**62  # what is larger is held as this; every clip is below it
ENTRY = 2**57  # of a unit's total in one key: the squares of those in 1,000 keys are below 10³⁸, which a file can hold
SECONDS = 3600.0  # the owner waits


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of an index: "units" (rows and totals), "keys" of a column, "pairs" and their "weights"."""

    kind: str
    column: str
    path: Path
    identity: str

    @property
    def scan(self) -> str:
        """Its rows, in FROM."""
        return f"read_parquet({path_list([self.path])}, hive_partitioning = false)"


class IndexFiles:
    """Where the index of a table lies and what it must say of itself; looks at no file.

    Args:
        storage: The folder.
        table: Whose index it is.
        fingerprint: The state of the files that it is about.
    """

    def __init__(self, storage: Path, table: Table, fingerprint: Fingerprint) -> None:
        self.storage = storage
        self.table = table
        self.fingerprint = fingerprint
        self.digest = index_identity(table, fingerprint)
        # Names say nothing of what the files hold: a hash of that would confirm a guess of the whole table.
        place = "\0".join([_meaning(table), *map(str, fingerprint.paths)])
        self.stem = f"{table.policy.name}-{hashlib.sha256(place.encode()).hexdigest()[:16]}"
        # How many rows DuckDB sees in a CSV file depends on the columns that are read (a line that is no UTF-8, an
        # empty line), so a count made with some columns bounds nothing about others.
        self.usable = fingerprint.form == "parquet" and not PATTERN.search(str(storage))

    @cached_property
    def totals(self) -> tuple[str, ...]:
        """The columns whose totals are held, in order."""
        return summable(self.table.policy)

    @cached_property
    def files(self) -> tuple[IndexFile, ...]:
        """All files; the first holds rows and totals."""
        policy = self.table.policy
        found = [self._file("units", "", "")]
        found += [self._file("keys", name, f"-k{at}") for at, name in enumerate(keyed(policy))]
        for at, name in enumerate(unknown(policy)):
            found += [self._file("pairs", name, f"-p{at}"), self._file("weights", name, f"-w{at}")]
        return tuple(found)

    def file(self, kind: str, column: str = "") -> IndexFile | None:
        """The file of this kind about a column, if the index has one."""
        return next((each for each in self.files if (each.kind, each.column) == (kind, column)), None)

    @property
    def bounded(self) -> tuple[str, ...]:
        """The columns that bounds look at, besides units: those with totals or keys."""
        return tuple(sorted({*self.totals, *(each.column for each in self.files if each.column)}))

    def others(self) -> list[Path]:
        """Files in the folder that are of older indexes of this table, or were left half written."""
        name = re.escape(self.table.policy.name)
        form = rf"{name}-[0-9a-f]{{16}}(?:-[kpw]\d+)?\.parquet"
        old = re.compile(rf"{form}|\.{form}\.(\d+)")  # the second while it is written, by that process
        own, found = {each.path.name for each in self.files}, []
        for path in self.storage.iterdir():
            match = old.fullmatch(path.name)
            if match is not None and path.name not in own and not (match[1] and _alive(int(match[1]))):
                found.append(path)
        return found

    def _file(self, kind: str, column: str, ending: str) -> IndexFile:
        said = json.dumps([self.digest, kind, column], ensure_ascii=True)
        return IndexFile(kind, column, self.storage / f"{self.stem}{ending}.parquet", said)


def _status(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def index_identity(table: Table, fingerprint: Fingerprint) -> str:
    """The hash of all that the numbers in an index depend on: the files, and what the policy says of unit and columns.

    Limits, budgets and analysts are not in it: they decide which units are heavy, not how much a unit holds.
    """
    return hashlib.sha256(f"{_meaning(table)} {_state(fingerprint)}".encode()).hexdigest()


def _meaning(table: Table) -> str:
    import duckdb

    from dalenius.tables.policy import to_tree

    policy = table.policy
    period = [table.budget.period, table.period.column] if table.budget.period and table.period else None
    said = [FORMAT, duckdb.__version__, policy.name, list(policy.unit), period, to_tree(policy).get("columns")]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


@lru_cache(maxsize=64)
def _state(fingerprint: Fingerprint) -> str:
    return hashlib.sha256(json.dumps(fingerprint.to_dict(), sort_keys=True).encode()).hexdigest()


def summable(policy: Policy) -> tuple[str, ...]:
    """The columns whose totals an index holds, in an order that does not depend on the policy's."""
    return tuple(sorted(name for name, each in policy.columns.items() if each.summable))


def keyed(policy: Policy) -> tuple[str, ...]:
    """The columns over whose keys an index holds norms: those with some public keys, and `unknown`."""
    public = [name for name, each in policy.columns.items() if 1 < len(column_values(each) or ()) <= MOST_KEYS]
    return (*sorted(public), *unknown(policy))


def unknown(policy: Policy) -> tuple[str, ...]:
    """The categories whose keys are not public."""
    hidden = (name for name, each in policy.columns.items() if each.kind is Kind.CATEGORY and each.public_keys is None)
    return tuple(sorted(hidden))


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound of what a unit holds: it is light where ``column`` of ``file`` is at most ``most``."""

    file: IndexFile
    column: str
    most: int


class Index:
    """An index as one engine sees it. Every look at it begins with a check of the file that it needs.

    Args:
        layout: Where it lies.
        run: Runs a SELECT on a connection that may read those files.
    """

    def __init__(self, layout: IndexFiles, run: RunSelect) -> None:
        self.layout = layout
        self._run = run
        self._seen: dict[Path, tuple[tuple[int, ...], dict[str, str]]] = {}
        self._known: tuple[Table, str] = (layout.table, layout.digest)
        self._binding = Binding(layout.table, layout.fingerprint, run)

    # --- is it about this table, as it is now?

    def valid(self, table: Table, fingerprint: Fingerprint) -> bool:
        """Whether the file of rows and totals is there and about these files and this policy."""
        return self.matches(self.layout.digest, self._identity(table, fingerprint)) and self.holds(self.layout.files[0])

    def whole(self, table: Table, fingerprint: Fingerprint) -> bool:
        """Whether all of its files are good."""
        return self.valid(table, fingerprint) and all(map(self.holds, self.layout.files))

    def readable(self) -> bool:
        """Whether every value in all of its files can be read: `protect` asks, and builds anew what cannot be."""
        try:
            for file in self.layout.files:
                self._run(f"SELECT count(*), bit_xor(hash(held)) FROM {file.scan} AS held", seconds=SECONDS)  # noqa: S608
        except DaleniusError:
            return False
        return True

    def holds(self, file: IndexFile) -> bool:
        """Whether the file is there, readable, and says of itself what it should."""
        notes = self._notes(file.path)
        return notes is not None and self.matches(notes.get(NOTE, ""), file.identity)

    def matches(self, found: str, expected: str) -> bool:
        """Whether two identities are the same; one of the planted bugs says that all are."""
        return found == expected

    def state(self) -> tuple[tuple[int, ...] | None, ...]:
        """What the files are at this moment; the same before and after a look means that one index was looked at."""
        return tuple(_status(each.path) for each in self.layout.files)

    def check_rows(self, columns: Sequence[str], scan: str, seconds: float) -> tuple[Any, ...]:
        """The state of files whose rows are those of this index, in units and some columns; `check_kept` wants it.

        Raises:
            SourceChangedError: They are others.
        """
        notes = self._notes(self.layout.files[0].path) or {}
        return self._binding.check(notes.get(SUMS, ""), columns, scan, seconds)

    def check_kept(self, state: tuple[Any, ...]) -> None:
        """Refuses rows that were read while the files were exchanged."""
        self._binding.check_kept(state)

    def looked_at(self, bounds: Sequence[Bound]) -> tuple[str, ...]:
        """The columns that some bounds look at, besides units."""
        found = {each.file.column for each in bounds if each.file.column}
        found |= {self.layout.totals[int(each.column[1:])] for each in bounds if each.column.startswith("t")}
        return tuple(sorted(found))

    @property
    def nobody(self) -> bool:
        """Whether the table has rows that belong to nobody, which a question must leave out."""
        return (self._notes(self.layout.files[0].path) or {}).get("nobody") != "0"

    def _identity(self, table: Table, fingerprint: Fingerprint) -> str:
        if fingerprint != self.layout.fingerprint:
            return index_identity(table, fingerprint)
        known, found = self._known
        if known.policy is not table.policy or (known.period, known.budget) != (table.period, table.budget):
            found = index_identity(table, fingerprint)
            self._known = (table, found)
        return found

    def _notes(self, path: Path) -> dict[str, str] | None:
        """What the file says of itself; read again when the file is another one than before."""
        now, seen = _status(path), self._seen.get(path)
        if now is None:
            return None
        try:
            if seen is None or seen[0] != now:
                rows = self._run(f"SELECT decode(key), decode(value) FROM parquet_kv_metadata({path_list([path])})")  # noqa: S608
                seen = self._seen[path] = (now, dict(rows))
        except DaleniusError:
            return None
        return seen[1]

    # --- what it bounds

    def bound(self, plan: Plan, measure: Measure, most: int) -> Bound | None:
        """What shows, for a measure, that a unit's vector is no longer than ``most``; None: nothing does.

        Rows that are left out and groups that are split only shorten a vector, in L1 and in L2. Hence ‖w‖ ≤ Σ|x|, and
        ‖w‖ ≤ n·max|x| with n the number of rows, or in L2 √Σn² over the keys of a column that the groups refine.
        """
        units = self.layout.files[0]
        if measure.kind == "units":
            return None
        value, largest = measure.value, max(abs(measure.low), abs(measure.high), 1)
        if measure.kind == "sum" and isinstance(value, Column) and measure.centre == 0:
            column = plan.table.policy.columns[value.name]
            if column.step == measure.step and value.name in self.layout.totals:
                return Bound(units, f"t{self.layout.totals.index(value.name)}", min(most, CEILING - 1))
        if measure.kind in {"rows", "leaves", "histogram"}:  # the weights of leaves are made for the number of rows
            largest = 1
        elif measure.kind == "square":
            largest = largest**2
        elif measure.kind == "product" and measure.times is not None:
            largest *= max(abs(measure.times.low), abs(measure.times.high), 1)
        elif measure.kind != "sum":
            return None
        keys = self.norms(plan) if plan.norm == "l2" else None
        if keys is not None:
            return Bound(keys, "norm2", min(most * most // (largest * largest), CEILING - 1))
        return Bound(units, "n", min(most // largest, CEILING - 1))

    def groups(self, plan: Plan) -> Bound | None:
        """What shows that a unit is in no more groups than it may be; only where a column is the one key."""
        if plan.groups is None or len(plan.keys) != 1 or not isinstance(plan.keys[0], Column):
            return None
        file = self.layout.file("keys", plan.keys[0].name)
        return Bound(file, "m", plan.groups) if file is not None and self.holds(file) else None

    def norms(self, plan: Plan) -> IndexFile | None:
        """The norms over one of the plan's keys; of several, the one with most of them, which splits rows finest."""
        found = [self.layout.file("keys", key.name) for key in plan.keys if isinstance(key, Column)]
        held = [each for each in found if each is not None and self.holds(each)]
        columns = plan.table.policy.columns
        return max(held, key=lambda file: len(column_values(columns[file.column]) or ()), default=None)

    def length(self, plan: Plan, measure: Measure) -> tuple[IndexFile, str] | None:
        """The file and the column that hold, for every unit, what its vector over the groups is long.

        That is its square where the plan has a key and its norm is L2, else itself. None where the question leaves out
        rows, has other groups, or adds up values of both signs, so that the index only bounds it.
        """
        if plan.where != TRUE or measure.where != TRUE or plan.groups is not None or len(plan.keys) > 1:
            return None
        total = None
        if measure.kind != "rows":
            total = self.bound(plan, measure, CEILING)
            if total is None or not total.column.startswith("t") or measure.low < 0 < measure.high:
                return None
        if not plan.keys:
            return self.layout.files[0], "n" if total is None else total.column
        file = self.norms(plan) if plan.norm == "l2" else None
        if total is not None and file is not None and file.column in unknown(plan.table.policy):
            return None  # totals are not held there
        return None if file is None else (file, "norm2" if total is None else f"s{total.column[1:]}")

    # --- for the search for limits, and for keys that are not public

    def pairs(self, column: str) -> str | None:
        """Pairs of a category without public keys, in FROM: u0, … (period), key, n rows, m keys of that unit.

        Only those of units with more than `FEW_KEYS`; of all others `weights` tells what there is to know.
        """
        file = self.layout.file("pairs", column)
        return file.scan if file is not None and self.holds(file) else None

    def weights(self, column: str) -> str | None:
        """How many units with m keys have a key of such a category, in FROM: key, m, units."""
        file = self.layout.file("weights", column)
        return file.scan if file is not None and self.holds(file) else None

    def sizes(self, kind: str, column: str = "") -> str | None:
        """A SELECT of one `value` (a double) per unit: its "rows", "total", "norm" or "distinct" keys of a column.

        A total counts steps. A unit without any key of the column has no row in "norm" and "distinct".
        """
        file = self.layout.file("units" if kind in {"rows", "total"} else "keys", column if kind != "total" else "")
        if kind == "total":
            if column not in self.layout.totals:
                return None
            value = f"CAST(t{self.layout.totals.index(column)} AS DOUBLE)"
        else:
            value = {
                "rows": "CAST(n AS DOUBLE)",
                "norm": "sqrt(CAST(norm2 AS DOUBLE))",
                "distinct": "CAST(m AS DOUBLE)",
            }[kind]
        return f"SELECT {value} AS value FROM {file.scan}" if file is not None and self.holds(file) else None  # noqa: S608
