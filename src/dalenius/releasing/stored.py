"""What has left: every release on record, with its kind; and its bytes, for who paid for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dalenius.ledger import publications
from dalenius.ledger.requests import LIMITS, OWNER, QUESTION
from dalenius.releasing.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.publications import PublishedRows


@dataclass(frozen=True)
class Stored:
    """A release on record.

    Attributes:
        id: That of its receipt.
        kind: The name of its kind.
        entry: The entry that records it.
        time: When it left.
        dataset: Whose people it is about.
        analyst: Who paid; "": the owner, from the data set.
        charge: ε, δ and ρ; null where there is no guarantee (a publication), which is not zero.
        question: SHA-256 of what was asked.
    """

    id: str
    kind: str
    entry: int
    time: str
    dataset: str
    analyst: str
    charge: Mapping[str, float | None]
    question: str

    def to_dict(self) -> dict[str, Any]:
        """For `--json` and HTTP."""
        return asdict(self)


def kind_named(charge: Mapping[str, Any]) -> str:
    """The kind that a charge is for. Early charges do not say it: the owner's were for limits."""
    return str(charge.get("kind", LIMITS if charge["analyst"] == OWNER else QUESTION))


def releases_of(ledger: Ledger) -> Iterator[Stored]:
    """Every release, oldest first."""
    charges = {entry.number: entry.data for entry in ledger.records(("charge",))}
    for entry in ledger.records(("answer", "grant", publications.KIND)):
        if entry.kind == publications.KIND:
            published = publications.read_entry(entry)
            if published is not None:
                yield _published(published)
            continue
        charge = charges[entry.data["charge"]]
        own = entry.data if entry.kind == "grant" else charge
        yield Stored(
            id=f"R{entry.number}-{entry.hash.hex()[:12]}",
            kind=kind_named(charge),
            entry=entry.number,
            time=entry.time,
            dataset=charge["dataset"],
            analyst=own["analyst"],
            charge={name: charge[name] for name in ("epsilon", "delta", "rho")},
            question=own["question"],
        )


def _published(found: PublishedRows) -> Stored:
    nothing = publications.NO_GUARANTEE
    return Stored(found.id, publications.KIND, found.entry, found.time, found.dataset, "", nothing, found.key)


def read_release(ledger: Ledger, id_: str, analyst: str | None = None) -> dict[str, Any]:
    """A release with what it holds, as JSON; with ``analyst``, only if it is that analyst's.

    Another analyst's is refused exactly as one that was never given.
    """
    receipt = ledger.receipt(id_, analyst)
    entry = ledger.entry(receipt.entry)
    if entry.kind == publications.KIND:  # its rows are a file of their own
        kind, content = publications.KIND, entry.body.encode()
    else:
        charge, content = ledger.content(receipt)
        kind = kind_named(charge)
    stored = Stored(
        receipt.id,
        kind,
        receipt.entry,
        receipt.time,
        receipt.dataset,
        receipt.analyst,
        receipt.charge,
        receipt.question,
    )
    return stored.to_dict() | {"receipt": receipt.to_dict(), "content": kind_of(kind).read(content)}
