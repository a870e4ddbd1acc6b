"""Somebody who can write the ledger's file at any time, but has no keys: random changes of tables, and their undoing.

The tables and columns are those that the file has, so that a new one is tampered with as soon as it exists.
"""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]
Change = Callable[[list[Row], random.Random], list[Row]]
Image = dict[Row, Row]  # rows by their primary key
HUGE = {"INTEGER": 2**62, "REAL": 1e12, "TEXT": "9" * 60, "BLOB": b"\xff" * 64}
LOW = {"INTEGER": -1, "REAL": -0.5, "TEXT": "", "BLOB": b""}


@dataclass(frozen=True)
class Table:
    """A table of the ledger's file."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[int, ...]  # the places of its primary key

    def image(self, connection: sqlite3.Connection) -> Image:
        return {self.key_of(row): row for row in connection.execute(f"SELECT * FROM {self.name}")}

    def key_of(self, row: Row) -> Row:
        return tuple(row[at] for at in self.key)

    def remove(self, connection: sqlite3.Connection, key: Row) -> None:
        where = " AND ".join(f"{self.columns[at]} = ?" for at in self.key)
        connection.execute(f"DELETE FROM {self.name} WHERE {where}", key)

    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        connection.execute(f"INSERT INTO {self.name} VALUES ({', '.join('?' * len(row))})", row)


def tables(file: Path) -> list[Table]:
    """Every table of the file."""
    with closing(sqlite3.connect(file)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found = []
        for name in sorted(names):
            columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
            key = sorted((row[5], at) for at, row in enumerate(columns) if row[5])
            texts, types = (tuple(row[at] for row in columns) for at in (1, 2))
            found.append(Table(name, texts, types, tuple(at for _, at in key)))
        return found


@dataclass(frozen=True)
class Tampering:
    """One change of one table: which rows it leaves there."""

    table: Table
    what: str
    change: Change
    seed: int

    @contextmanager
    def done(self, file: Path, *, restored: bool) -> Iterator[None]:
        """Changed while the block runs; then, if asked for, put back wherever nobody else has written meanwhile."""
        with opened(file) as connection:
            before = self.table.image(connection)
            self._write(connection, before, self._after(before))
            after = self.table.image(connection)  # in which SQLite has made a number of a key that is NULL
        yield
        if restored:
            with opened(file) as connection:
                self._restore(connection, before, after)

    def fits(self, file: Path) -> bool:
        """Whether it changes anything and SQLite lets it."""
        with opened(file) as connection:
            before = self.table.image(connection)
            if not before:
                return False
            try:
                after = self._after(before)
                connection.execute("BEGIN")
                self._write(connection, before, after)
            except sqlite3.Error:
                return False
            finally:
                connection.execute("ROLLBACK")
            return after != before

    def _after(self, before: Image) -> Image:
        rows = self.change(sorted(before.values(), key=repr), random.Random(self.seed))
        return {self.table.key_of(row): row for row in rows}

    def _write(self, connection: sqlite3.Connection, before: Image, after: Image) -> None:
        changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        for key in changed:
            if key in before:
                self.table.remove(connection, key)
        for key in changed:
            if key in after:
                self.table.insert(connection, after[key])

    def _restore(self, connection: sqlite3.Connection, before: Image, after: Image) -> None:
        now = self.table.image(connection)
        target = dict(now)
        for key in before.keys() | after.keys():
            old, new, found = before.get(key), after.get(key), now.get(key)
            if old == new:
                continue
            if old is None and found == new:
                del target[key]
            elif new is None and found is None and old is not None:
                target[key] = old
            elif old is not None and new is not None and found is not None:
                target[key] = tuple(
                    was if is_now == became and was != became else is_now
                    for was, became, is_now in zip(old, new, found, strict=True)
                )
        self._write(connection, now, target)


def tampering(table: Table, seed: int) -> Tampering:
    """A random change of a table."""
    chance = random.Random(seed)
    ways: dict[str, Change] = {
        "neighbour": _cell(table, _neighbour),
        "huge": _cell(table, lambda value, kind, chance: HUGE[kind]),
        "low": _cell(table, lambda value, kind, chance: LOW[kind]),
        "null": _cell(table, lambda value, kind, chance: None),
        "another row's value": _borrowed,
        "exchanged values": _exchanged,
        "exchanged rows": _exchanged_rows(table),
        "delete": lambda rows, chance: _without(rows, chance.randrange(len(rows))),
        "delete all": lambda rows, chance: [],
        "duplicate": _duplicated(table),
    }
    what = chance.choice(sorted(ways))
    return Tampering(table, what, ways[what], seed)


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as connection:
        yield connection


def _replaced(row: Row, at: int, value: Any) -> Row:
    return (*row[:at], value, *row[at + 1 :])


def _without(rows: list[Row], at: int) -> list[Row]:
    return rows[:at] + rows[at + 1 :]


def _cell(table: Table, to: Callable[[Any, str, random.Random], Any]) -> Change:
    def change(rows: list[Row], chance: random.Random) -> list[Row]:
        number = chance.randrange(len(rows))
        at = chance.randrange(len(rows[number]))
        value = to(rows[number][at], table.types[at], chance)
        return [*_without(rows, number), _replaced(rows[number], at, value)]

    return change


def _neighbour(value: Any, _: str, chance: random.Random) -> Any:
    if value is None:
        return 1
    if isinstance(value, int):
        return value + chance.choice((-1, 1))
    if isinstance(value, float):
        return value * chance.choice((0.5, 2, 100)) or 1.0
    digits = [at for at, each in enumerate(value) if (chr(each) if isinstance(value, bytes) else each).isdigit()]
    if not digits:
        return value + (b"0" if isinstance(value, bytes) else "0")
    at = chance.choice(digits)
    if isinstance(value, bytes):
        return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
    return value[:at] + chance.choice("0123456789") + value[at + 1 :]


def _two(rows: list[Row], chance: random.Random) -> tuple[int, int]:
    return tuple(chance.sample(range(len(rows)), 2)) if len(rows) > 1 else (0, 0)  # type: ignore[return-value]


def _borrowed(rows: list[Row], chance: random.Random) -> list[Row]:
    one, other = _two(rows, chance)
    at = chance.randrange(len(rows[one]))
    return [*_without(rows, one), _replaced(rows[one], at, rows[other][at])]


def _exchanged(rows: list[Row], chance: random.Random) -> list[Row]:
    one, other = _two(rows, chance)
    at = chance.randrange(len(rows[one]))
    rest = [row for number, row in enumerate(rows) if number not in (one, other)]
    return [*rest, _replaced(rows[one], at, rows[other][at]), _replaced(rows[other], at, rows[one][at])]


def _exchanged_rows(table: Table) -> Change:
    """Two rows with each other's keys."""

    def change(rows: list[Row], chance: random.Random) -> list[Row]:
        one, other = _two(rows, chance)
        rest = [row for number, row in enumerate(rows) if number not in (one, other)]
        first, second = rows[one], rows[other]
        for at in table.key:
            first, second = _replaced(first, at, rows[other][at]), _replaced(second, at, rows[one][at])
        return [*rest, first, second]

    return change


def _duplicated(table: Table) -> Change:
    def change(rows: list[Row], chance: random.Random) -> list[Row]:
        row, at = chance.choice(rows), chance.choice(table.key)
        other = chance.choice(rows)[at]
        fresh = max(each[at] for each in rows) + 1 if isinstance(other, int) else f"{other}x"
        return [*rows, _replaced(row, at, fresh)]

    return change
