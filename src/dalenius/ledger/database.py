"""The file: SQLite, one connection per thread, schema by migrations, errors in our words."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
)


# Connections that a fork left behind. Closing one in the child would meddle with the parent's.
_ABANDONED: list[sqlite3.Connection] = []


class Database:
    """Connections to one file. Safe to share between threads, and dropped in a forked child."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._local = threading.local()

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection, in this process."""
        if getattr(self._local, "process", None) != os.getpid():
            if hasattr(self._local, "connection") and self._local.process is not None:
                _ABANDONED.append(self._local.connection)
            self._local.connection = self._opened()
            self._local.process = os.getpid()
        connection: sqlite3.Connection = self._local.connection
        return connection

    def create(self) -> None:
        """A new file with the newest schema, readable by its owner only."""
        os.close(os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with translated():
            connection = self._connected()
            connection.execute("PRAGMA journal_mode = WAL")
            self._migrate(connection)
            connection.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its start, and is on disk when the block has ended."""
        with translated():
            connection = self.connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the file."""
        with translated():
            connection = self.connection
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        """Closes this thread's connection."""
        if getattr(self._local, "process", None) == os.getpid():
            self._local.connection.close()
            self._local.process = None

    def _connected(self) -> sqlite3.Connection:
        # rw, not rwc: a missing file is an error, never a new empty ledger
        connection = sqlite3.connect(
            f"file:{_quoted(self.file)}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None
        )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    def _opened(self) -> sqlite3.Connection:
        if not self.file.exists():
            raise LedgerUnavailableError(
                "There is no ledger here.",
                why=f"{NAME} is missing from the home.",
                fix="Restore it from your backup, or start a new home with 'dalenius protect'.",
            )
        with translated():
            connection = self._connected()
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
        raise _unavailable(error) from error
    except sqlite3.DatabaseError as error:
        raise LedgerCorruptError(
            "The ledger's file is damaged.",
            why="SQLite cannot read it.",
            fix="Restore it from your backup, then run 'dalenius ledger verify'.",
        ) from error


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


def _quoted(file: Path) -> str:
    from urllib.parse import quote

    return quote(str(file.absolute()))
