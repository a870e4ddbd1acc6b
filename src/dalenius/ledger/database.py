"""The file: SQLite, one connection per thread, schema by migrations, errors in our words."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from dalenius.errors import LedgerCorruptError, LedgerUnavailableError

NAME = "ledger.sqlite"
BUSY_SECONDS = 60.0

# One script per version, applied in order. A script that has been released is never edited.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE entries (
        number INTEGER PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL, body TEXT NOT NULL, hash BLOB NOT NULL
    ) STRICT;
    -- What follows is derived from the entries and compared with them by `ledger verify`.
    CREATE TABLE budgets (dataset TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
    CREATE TABLE allotments (
        dataset TEXT NOT NULL, analyst TEXT NOT NULL, epsilon REAL NOT NULL, PRIMARY KEY (dataset, analyst)
    ) STRICT, WITHOUT ROWID;
    -- analyst '' is the whole data set; loss (ε or ρ) and delta are whole units of 2^-128, too wide for an INTEGER.
    CREATE TABLE totals (
        dataset TEXT NOT NULL, period TEXT NOT NULL, analyst TEXT NOT NULL, loss TEXT NOT NULL, delta TEXT NOT NULL,
        charges INTEGER NOT NULL, PRIMARY KEY (dataset, period, analyst)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE questions (
        number INTEGER PRIMARY KEY, dataset TEXT NOT NULL, key TEXT NOT NULL, analyst TEXT NOT NULL,
        epsilon REAL NOT NULL, delta REAL NOT NULL, state TEXT NOT NULL, holder TEXT NOT NULL, lease REAL NOT NULL,
        fence INTEGER NOT NULL, answer INTEGER
    ) STRICT;
    CREATE INDEX questions_by_key ON questions (dataset, key, state);
    CREATE TABLE grants (
        question INTEGER NOT NULL, analyst TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (question, analyst)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE releases (question INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT;
    """,
    """
    -- How often the people of a data set were declared to be new ones; a data set that is not here: never.
    CREATE TABLE epochs (dataset TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT;
    """,
    """
    -- Owner actions are looked for at every question: without it, past every charge ever made.
    CREATE INDEX entries_by_kind ON entries (kind, number);
    -- Requests that their client named: who comes again with the same key is not charged again.
    CREATE TABLE retries (
        analyst TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, question INTEGER NOT NULL,
        PRIMARY KEY (analyst, key)
    ) STRICT, WITHOUT ROWID;
    """,
)


class _Connection(sqlite3.Connection):
    """A connection that remembers which file it opened, and which schema it was shown."""

    inode: tuple[int, int]
    schema_version: int

    def close(self) -> None:
        """Closes it, and forgets that it was open."""
        _LIVE.pop(self, None)
        super().close()


# A forked child inherits SQLite's table of locks: it would believe to hold its parent's, and take none of its own.
_LIVE: weakref.WeakKeyDictionary[_Connection, str] = weakref.WeakKeyDictionary()
_INHERITED: dict[str, list[_Connection]] = {}


def _forked() -> None:
    for connection, file in list(_LIVE.items()):
        _INHERITED.setdefault(file, []).append(connection)  # kept: closing one here would meddle with the parent's
    _LIVE.clear()


os.register_at_fork(after_in_child=_forked)


class Database:
    """Connections to one file, one per thread."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._local = threading.local()

    @property
    def connection(self) -> _Connection:
        """This thread's connection, in this process."""
        if getattr(self._local, "process", None) != os.getpid():
            self._local.connection = self._opened()
            self._local.process = os.getpid()
        connection: _Connection = self._local.connection
        return connection

    def create(self, fill: Callable[[sqlite3.Connection], None]) -> None:
        """A new file with the newest schema and its first content, all there or not at all."""
        new = self.file.with_suffix(".new")
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with translated():
            connection = _connected(new)
            self._migrate(connection)
            connection.execute("BEGIN")
            fill(connection)
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.close()
        new.rename(self.file)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its start, and is on disk when the block has ended."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the file, from its first SELECT on."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_Connection]:
        with translated():
            connection = self.connection
            try:
                if connection.in_transaction:  # left over from an interrupt
                    connection.execute("ROLLBACK")
                connection.execute(begin)
                self._check(connection)
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _check(self, connection: _Connection) -> None:
        """The file is still the one that was opened, and its schema ours: no trigger, no view, nothing more."""
        if _inode(self.file) != connection.inode:
            self._local.process = None  # the next use connects anew
            raise LedgerCorruptError(
                "The ledger's file was replaced or removed while in use.",
                why="What is charged now would go to a file that nobody finds again.",
                fix="Put the file back, or restore it together with its anchor; then open it anew.",
            )
        version = int(connection.execute("PRAGMA schema_version").fetchone()[0])
        if version != connection.schema_version:
            if _schema(connection) != expected_schema():
                self._local.process = None  # SQLite has read that schema, and would still run a trigger of it
                raise LedgerCorruptError(
                    "The ledger's tables are not as they were made.",
                    why="A table, view, trigger or index was added, changed or removed.",
                    fix="Restore the newest good copy of ledger and anchor; do not answer questions from this one.",
                )
            connection.schema_version = version

    def close(self) -> None:
        """Closes this thread's connection."""
        if getattr(self._local, "process", None) == os.getpid():
            self._local.connection.close()
            self._local.process = None

    def _opened(self) -> _Connection:
        if str(self.file.absolute()) in _INHERITED:
            raise LedgerUnavailableError(
                "The ledger was open when this process was forked.",
                why="The child shares its parent's locks and could lose what either of them charges.",
                fix="Close the ledger before forking, or start the process with spawn.",
            )
        if not self.file.exists():
            raise LedgerUnavailableError(
                "There is no ledger here.",
                why=f"{NAME} is missing from the home.",
                fix="Restore it from your backup, or start a new home with 'dalenius protect'.",
            )
        with translated():
            connection = _connected(self.file)
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if version > len(MIGRATIONS):
                connection.close()
                raise LedgerUnavailableError(
                    f"This ledger has schema {version}, newer than this release knows ({len(MIGRATIONS)}).",
                    why="It was written by a later release of dalenius.",
                    fix="Upgrade dalenius.",
                )
            if version < len(MIGRATIONS):
                self._migrate(connection)
            self._check(connection)
            return connection

    @staticmethod
    def _migrate(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        for script in MIGRATIONS[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")


@contextmanager
def translated() -> Iterator[None]:
    """SQLite's errors as ours: what to do, and nothing of what was in the file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if any(words in str(error) for words in ("no such", "already exists", "malformed", "has no column")):
            raise _damaged() from error
        raise _unavailable(error) from error
    except (sqlite3.DatabaseError, ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        # Inside a transaction only rows are read and written: a value that makes no sense was put there by somebody.
        raise _damaged() from error


def _damaged() -> LedgerCorruptError:
    return LedgerCorruptError(
        "The ledger's file is damaged.",
        why="It holds what this release never writes.",
        fix="Restore it from your backup, then run 'dalenius ledger verify'.",
    )


def _connected(file: Path) -> _Connection:
    # rw, not rwc: a missing file is an error, never a new empty ledger
    connection = sqlite3.connect(
        f"file:{quote(str(file.absolute()))}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        factory=_Connection,
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.inode, connection.schema_version = _inode(file), -1
    _LIVE[connection] = str(file.absolute())
    return connection


def _inode(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_dev, found.st_ino


def _schema(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()


@lru_cache(maxsize=1)
def expected_schema() -> list[tuple[str, ...]]:
    """What the migrations make."""
    connection = sqlite3.connect(":memory:")
    for script in MIGRATIONS:
        connection.executescript("".join(f"{statement};" for statement in _statements(script)))
    found = _schema(connection)
    connection.close()
    return found


def _unavailable(error: sqlite3.OperationalError) -> LedgerUnavailableError:
    words = str(error)
    if "locked" in words or "busy" in words:
        why, fix = "Another process holds it.", "Try again; end the process that holds it if it hangs."
    elif "readonly" in words or "read-only" in words:
        why, fix = "It cannot be written.", "Give this user write access to the home and its files."
    elif "full" in words:
        why, fix = "There is no room left for it.", "Free disk space; what was charged so far is safe."
    else:
        why, fix = "SQLite could not open or write it.", "Check that the home and its files belong to this user."
    return LedgerUnavailableError("The ledger cannot be used.", why=why, fix=fix)


def _statements(script: str) -> Iterator[str]:
    without_comments = "\n".join(line for line in script.splitlines() if not line.strip().startswith("--"))
    for statement in without_comments.split(";"):
        if statement.strip():
            yield statement
