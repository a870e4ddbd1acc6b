"""Publications: rows that left without a guarantee, on record before they did.

A publication is no charge. Whatever ε were written beside it, zero or the whole budget, would be read as a bound on
what the rows reveal, and there is none. So it is an entry of its own that names no ε, adds to no total and leaves every
filter as it was. What it changes is what may be said: of the people whose rows were published, no ε bounds what can be
learned any more, and everybody who is shown a budget of theirs is told so (`PUBLISHED`). People who were declared to
be new ones (an epoch) were not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError
from dalenius.ledger.actions import check_plain

if TYPE_CHECKING:
    from dalenius.ledger.chain import Entry
    from dalenius.ledger.ledger import Ledger

KIND = "publication"
# What a receipt and a list of releases have in the place of a price: null, which is not zero.
NO_GUARANTEE: Mapping[str, float | None] = {"epsilon": None, "delta": None, "rho": None}


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """One publication on record.

    Attributes:
        entry: The entry that records it.
        time: When that was written; the rows left after it.
        dataset: Whose people it is about.
        table: Which table's rows.
        epoch: Of the people.
        key: What identifies it: the same request about the same data is the same publication.
        release: SHA-256 of the published file.
        hash: Of the entry.
    """

    entry: int
    time: str
    dataset: str
    table: str
    epoch: int
    key: str
    release: str
    hash: str

    @property
    def id(self) -> str:
        """That of its receipt."""
        return f"R{self.entry}-{self.hash[:12]}"

    def to_dict(self) -> dict[str, Any]:
        """For `--json` and HTTP."""
        return {"id": self.id, **{name: each for name, each in asdict(self).items() if name not in {"key", "hash"}}}


def read_entry(entry: Entry) -> PublishedRows | None:
    """What an entry of this kind says; None for others, and where it says less, as one that was written by hand."""
    if entry.kind != KIND:
        return None
    data = entry.data
    texts = [data.get(name) for name in ("dataset", "table", "key", "release")]
    epoch = data.get("epoch", 0)
    if not all(isinstance(each, str) for each in texts) or type(epoch) is not int:
        return None
    dataset, table, key, release = map(str, texts)
    return PublishedRows(entry.number, entry.time, dataset, table, epoch, key, release, entry.hash.hex())


def record(
    ledger: Ledger,
    *,
    dataset: str,
    table: str,
    key: str,
    release: str,
    about: Mapping[str, Any],
    epoch: int | None = None,
) -> tuple[PublishedRows, bool]:
    """Puts on record that rows are about to leave; durable when this returns, and only then may they.

    Args:
        ledger: The ledger.
        dataset: Whose people.
        table: Whose rows.
        key: What identifies the publication.
        release: SHA-256 of the file.
        about: What else is to be read there: models, method, sizes, why. Plain JSON, no rows.
        epoch: Of the people whose rows they are; by default of those that the data set is about now.

    Returns:
        The publication, and whether it was on record before: then nothing was written.
    """
    check_plain(about)
    with ledger.turn() as (view, append):
        view.state.budget_of(dataset)
        epoch = view.state.epochs.get(dataset, 0) if epoch is None else epoch
        for known in view.state.published(dataset):
            if (known.key, known.release) == (key, release):
                return known, True
        data = {**about, "dataset": dataset, "table": table, "epoch": epoch, "key": key, "release": release}
        found = read_entry(append(KIND, data))
    if found is None:
        raise InputError("This cannot be recorded.", why="A publication has names and hashes.", fix="Give texts.")
    return found, False


def published(ledger: Ledger, dataset: str) -> tuple[PublishedRows, ...]:
    """What was published of the people that a data set is about now, oldest first."""
    with ledger.state() as state:
        return state.published(dataset)


def warning(found: tuple[PublishedRows, ...]) -> str:
    """What everybody is told who is shown a budget, a price or a guarantee of that data set; "" where none was.

    That rows were published is public: the file is out there. The day and the table are told, never who has the file.
    """
    if not found:
        return ""
    first = found[0]
    again = f", and {len(found) - 1} more since" if len(found) > 1 else ""
    return (
        f"Rows of {first.table} were published on {first.time[:10]} without a guarantee (entry {first.entry}{again}): "
        "ε no longer bounds what can be learned from this data set. It bounds what this and other answers add."
    )
