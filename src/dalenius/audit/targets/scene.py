"""The people of an attack: everybody's place is known, a secret of each is not.

An attacker who knows a birthday, a postcode and a job can name almost anybody in WHERE. The lab writes all of that as
one number, `person`, which is known for everybody, so that attacks can be read; what they want is `secret`, yes or no,
or `amount`, a number. The truth stands beside it, to say afterwards how much an attack got right: no attack reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

Bits = NDArray[np.bool_]
Whole = NDArray[np.int64]
LEAST = 12  # people, below which there is nothing to hide among
MOST = 100_000
DEMO = "students"
VICTIM = 0  # the place of who is attacked
RARE = "a word of one"


@dataclass(frozen=True, slots=True)
class Scene:
    """Who is in the table, and the truth about them.

    Attributes:
        secret: One bit of everybody.
        amount: One number of everybody, not below 0.
        most: What no amount exceeds; public.
        about: What the secret is, in words.
        secret_sql: The secret as a condition on the table's own columns.
        amount_sql: The column with the amount; "" where there is none.
    """

    secret: Bits
    amount: Whole
    most: int
    about: str = "the secret"
    secret_sql: str = "secret"  # noqa: S105 (a column)
    amount_sql: str = "amount"

    def __post_init__(self) -> None:
        """Attacks need somebody to hide among."""
        check_size(len(self.secret))

    @property
    def words(self) -> list[str]:
        """One word of each: ten that many share, and one of the victim's own if the secret is so."""
        common = [f"word {place % 10}" for place in range(self.size)]
        return [RARE if self.secret[VICTIM] else common[VICTIM], *common[1:]]

    @property
    def size(self) -> int:
        """How many people there are."""
        return len(self.secret)


def check_size(size: int) -> None:
    """Refuses too few people, and too many."""
    if not LEAST <= size <= MOST:
        raise InputError(
            f"An attack needs {LEAST} to {MOST:,} people; here are {size:,}.",
            why="Among fewer there is nothing to hide in; more only take longer.",
            fix="Take another table, or other people with --people N.",
        )


def made_up(size: int, chance: np.random.Generator, share: float = 0.5) -> Scene:
    """People whose secrets are fair coins: nothing but the answers can tell them."""
    amounts = np.minimum(chance.lognormal(7.5, 0.7, size), 6000).astype(np.int64)
    return Scene(chance.random(size) < share, amounts, 6000, "a coin of each")


def demo_scene(size: int | None = None) -> Scene:
    """The students of the demo: who has a scholarship, and how much."""
    from dalenius.samples.students import MOST_SCHOLARSHIP, students

    rows = students(size or 1000)
    amounts = np.array([each.scholarship for each in rows], dtype=np.int64)
    amounts = np.roll(amounts, -int(np.argmax(amounts > 0)))  # the victim has something to hide
    return Scene(amounts > 0, amounts, MOST_SCHOLARSHIP, "who has a scholarship")


def scene_in(file: Path, secret: str | None, amount: str | None, size: int | None) -> Scene:
    """The people of a CSV or Parquet file, one row each.

    Args:
        file: The table.
        secret: A column of two values, or of numbers: then the secret is whether one is above the median.
        amount: A column of numbers; by default the first that is not the secret.
        size: Only the first so many rows.
    """
    table = _read(file).slice(0, size)
    numbers = [name for name in table.column_names if _is_number(table, name)]
    chosen = secret or next((name for name in table.column_names if _is_binary(table, name)), None)
    chosen = chosen or next(iter(numbers), None)
    if chosen is None:
        raise InputError(
            f"{file} has no column that could be a secret.",
            why="A secret is a column of two values, or of numbers.",
            fix="Name one with --secret COLUMN, or take another table.",
        )
    bits, about, condition = _secret(table, chosen, file)
    counted = amount or next((name for name in numbers if name != chosen), next(iter(numbers), None))
    amounts, most = _amounts(table, counted, file)
    return Scene(bits, amounts, most, about, condition, quoted(counted) if counted else "")


def _read(file: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    try:
        return pq.read_table(file) if file.suffix == ".parquet" else pa.csv.read_csv(file)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{file} cannot be read ({type(error).__name__}).",
            why="Attacks take tables from CSV and Parquet files.",
            fix=f"Give such a file, or --table {DEMO}.",
        ) from None


def _is_number(table: pa.Table, name: str) -> bool:
    import pyarrow as pa

    kind = table.schema.field(name).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_binary(table: pa.Table, name: str) -> bool:
    import pyarrow.compute as pc

    return len(pc.unique(table[name]).drop_null()) == 2


def _column(table: pa.Table, name: str, file: Path) -> list[Any]:
    if name not in table.column_names:
        raise InputError(
            f"{file} has no column '{name}'.",
            why=f"It has: {', '.join(table.column_names)}.",
            fix="Name one of these.",
        )
    return list(table[name].to_pylist())


def quoted(name: str) -> str:
    """A column's name, as SQL takes any.

    >>> quoted("a b")
    '"a b"'
    """
    return '"' + name.replace('"', '""') + '"'


def _secret(table: pa.Table, name: str, file: Path) -> tuple[Bits, str, str]:
    """Everybody's bit, what it means in words, and in SQL."""
    values = _column(table, name, file)
    known = sorted({each for each in values if each is not None}, key=str)
    if len(known) == 2:
        one, column = known[1], quoted(name)
        text = "'" + str(one).replace("'", "''") + "'"
        condition = column if one is True else f"{column} = {one if _is_number(table, name) else text}"
        return np.array([each == one for each in values], dtype=bool), f"who has {name} = {one}", condition
    if known and _is_number(table, name):
        middle = float(np.median([each for each in values if each is not None]))
        above = [each is not None and each > middle for each in values]
        return np.array(above, dtype=bool), f"who has {name} above {middle:g}", f"{quoted(name)} > {middle!r}"
    raise InputError(
        f"Column '{name}' cannot be a secret.",
        why=f"It has {len(known):,} different values that are no numbers; a secret is yes or no.",
        fix="Name a column of two values, or of numbers.",
    )


def _amounts(table: pa.Table, name: str | None, file: Path) -> tuple[Whole, int]:
    if name is None:
        return np.zeros(table.num_rows, dtype=np.int64), 1
    values: Sequence[Any] = _column(table, name, file)
    if not _is_number(table, name):
        raise InputError(
            f"Column '{name}' has no numbers.",
            why="An amount is a number of each person.",
            fix="Name another with --amount COLUMN.",
        )
    numbers = np.nan_to_num(np.array([0 if each is None else each for each in values], dtype=float))
    whole = np.clip(np.rint(numbers), 0, 2**31).astype(np.int64)
    return whole, max(1, int(whole.max(initial=0)))
