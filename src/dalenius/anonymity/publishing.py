"""Publishing rows of a protected table: made, stored in the home, on record, and only then handed over.

There is no price, and so no charge to come before the look; what must come first is the record. The published file is
written in the home, where nobody is served from; the entry that names it and its hash is durable; after that its bytes
may leave, to a file that the owner named or over HTTP. Who is interrupted in between asks again: the same request about
the same data is the same publication, and gives the same bytes without a new look or a new entry.

Guarantee:
    None. What the models promise holds against those who know no more than they assume (docs/sharp-edges.md).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius.anonymity.options import Options, Progress, make
from dalenius.anonymity.places import check_apart, check_leaving
from dalenius.anonymity.sources import Rows, files_rows, table_rows
from dalenius.anonymity.telling import for_record, told
from dalenius.anonymity.transformers.republish_state import State
from dalenius.errors import InputError, LedgerCorruptError, NotAllowedError, SourceUnavailableError
from dalenius.ledger import publications
from dalenius.ledger.chain import canonical
from dalenius.ledger.questions import never_charged
from dalenius.releasing.kinds import Kind
from dalenius.tables.sources.fingerprint import check_unchanged, identities, source_changed
from dalenius.tables.sources.homes import check_output

if TYPE_CHECKING:
    from dalenius.anonymity.options import Made
    from dalenius.anonymity.table import Table
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.publications import PublishedRows
    from dalenius.ledger.requests import Answered
    from dalenius.releasing.leaving import Asker, Leaving
    from dalenius.tables.registry import Registry

FOLDER = "publications"  # in the home
FORMS = (".csv", ".parquet")
WHY = (
    "Rows that have left cannot be taken back, and no ε bounds what they reveal: from then on the ledger, the console "
    "and the report say that ε no longer bounds what can be learned from this data set."
)
_CURVE = (2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Published:
    """A publication: on record, and ready to be handed over; or, of a dry run, what it would be like.

    Attributes:
        table: Whose rows.
        dataset: Whose people they are.
        facts: rows, classes, suppressed, models, loss, seconds, method …
        record: What stands in the ledger; None: nothing was recorded.
        file: Its bytes; None: nothing was written.
        receipt: Proof of the record.
        free: It was on record before.
        made: The rows themselves, where they were made just now.
        curve: Loss by k, where that was asked for.
    """

    table: str
    dataset: str
    facts: Mapping[str, Any]
    record: PublishedRows | None = None
    file: Path | None = None
    receipt: Mapping[str, Any] | None = None
    free: bool = False
    made: Made | None = field(default=None, compare=False, repr=False)
    curve: Sequence[Mapping[str, Any]] = ()

    def write(self, output: Path) -> None:
        """Hands the rows over: the file is there whole or not at all."""
        from dalenius.anonymity.table import whole_file, write_table

        if self.file is not None:
            with whole_file(output) as part:
                shutil.copyfile(self.file, part)
        elif self.made is not None:
            write_table(self.made.table, output)

    def to_dict(self) -> dict[str, Any]:
        """For `--json` and HTTP. There is no guarantee, and the price is null: that is not zero."""
        return {
            "table": self.table,
            "dataset": self.dataset,
            "published": self.record is not None,
            "id": None if self.record is None else self.record.id,
            "guarantee": None,
            "charge": dict(publications.NO_GUARANTEE),
            **self.facts,
            "sha256": None if self.record is None else self.record.release,
            "file": None if self.file is None else f"/v1/publications/{self.file.name}",
            "free": self.free,
            "receipt": self.receipt,
            "curve": [dict(each) for each in self.curve],
        }


class PublicationKind(Kind):
    """Rows without a guarantee. Only the owner publishes."""

    name: ClassVar[str] = publications.KIND
    verb: ClassVar[str] = "published rows of"

    def prepare(self, asker: Asker, request: Any) -> Published:
        """Publishes, or with ``dry_run`` tells what would be: nothing of it is priced, so nothing is left to do."""
        if not asker.is_owner:
            raise NotAllowedError(
                "Rows are published by the owner.",
                why="They leave without a guarantee, whoever pays.",
                fix="Ask questions instead, or ask the owner.",
            )
        wanted = Wanted.of(request)
        if wanted.source is None:
            rows = table_rows(wanted.table, asker.registry, wanted.section)
        else:
            rows = files_rows(wanted.table, wanted.source, wanted.section or {}, asker.registry)
        check_leaving(rows, wanted.options, asker.registry, asker.ledger.home)
        if wanted.dry_run:
            before = () if rows.version is None else asker.ledger.published(rows.version.dataset)
            return preview(rows, wanted.options, wanted.curve, before=before)
        if rows.version is None:
            found = preview(rows, wanted.options)
            if found.made is None:
                raise RuntimeError("Nothing was made.")
            keep_state(found.made, wanted.options)  # first: a series that forgot a release would tell who is who
            return replace(found, file=_store(asker.ledger.home, found.made, wanted)[0])
        return publish(asker.ledger, rows, wanted, resumes=asker.resumes)

    def show(
        self,
        asker: Asker,  # noqa: ARG002
        request: Any,  # noqa: ARG002
        leaving: Leaving,  # noqa: ARG002
        answered: Answered,  # noqa: ARG002
    ) -> Published:
        """Nothing: it is never charged."""
        raise RuntimeError("A publication has no charge.")

    def read(self, content: bytes) -> dict[str, Any]:
        """What the entry says of it; the rows are a file."""
        found: dict[str, Any] = json.loads(content)
        return found

    def echo(self, request: Any) -> dict[str, Any]:  # noqa: ARG002
        """Its kind."""
        return {"kind": self.name}


KIND = PublicationKind()


@dataclass(frozen=True)
class Wanted:
    """A request to publish.

    Attributes:
        table: The protected table.
        options: What is asked of its rows.
        form: .csv or .parquet.
        yes: The owner knows what it means.
        dry_run: Only tell what it would be like.
        reason: Why, for the history.
        section: Roles, where the policy in force says none, or others are meant.
        source: Files that nobody has protected, instead of a protected table; absolute paths.
        curve: With a dry run: tell the loss for these k as well; True: for usual ones.
    """

    table: str
    options: Options = field(default_factory=Options)
    form: str = FORMS[0]
    yes: bool = False
    dry_run: bool = False
    reason: str = ""
    section: Mapping[str, Any] | None = None
    curve: Sequence[int] = ()
    source: Sequence[str] | None = None

    @classmethod
    def of(cls, request: Any) -> Wanted:
        """From JSON, or as it is."""
        if isinstance(request, Wanted):
            return request
        given = dict(request)
        names = ("table", "form", "yes", "dry_run", "reason", "curve", "section", "source")
        own = {name: given.pop(name) for name in names if name in given}
        curve = tuple(own.pop("curve", None) or ())
        if not isinstance(own.get("table"), str) or not all(isinstance(each, int) for each in curve):
            raise InputError("No table is named.", why="Its rows are to be published.", fix="Name one.")
        if own.get("form", FORMS[0]) not in FORMS:
            raise InputError("This is no form.", why=f"Known: {', '.join(FORMS)}.", fix="Use one of them.")
        return cls(options=Options.of(given), curve=curve, **own)


def preview(
    rows: Rows,
    options: Options,
    curve: Sequence[int] = (),
    progress: Progress | None = None,
    before: Sequence[PublishedRows] = (),
) -> Published:
    """What the table would be like. Nothing is written, and nothing leaves but to the owner, whose rows they are.

    Args:
        rows: The rows.
        options: What is asked of them.
        curve: Tell the loss for these k as well.
        progress: Told how far it is.
        before: What was published of the same people before.
    """
    version = rows.version
    if version is not None:
        check_asks(options)
    table, roles = rows.read(), rows.roles
    made = _with_words(make(table, roles, options, progress), table, rows, options, before)
    found = loss_curve(table, rows, options, curve) if curve else ()
    dataset = "" if version is None else version.dataset
    return Published(rows.name, dataset, plain(made.facts), made=made, curve=found)


def _with_words(made: Made, table: Table, rows: Rows, options: Options, before: Sequence[PublishedRows]) -> Made:
    return replace(made, facts={**made.facts, **told(table, rows, options, made.facts, before)})


def loss_curve(table: Table, rows: Rows, options: Options, ks: Sequence[int] = _CURVE) -> list[dict[str, Any]]:
    """What is lost at each k, with all else as asked; k that cannot be reached are left out."""
    found, roles = [], rows.roles
    for k in sorted({each for each in ks if 2 <= each <= table.rows}):
        with suppress(InputError):
            facts = plain(make(table, roles, options.with_k(k)).facts)
            found.append({"k": k, **{name: facts.get(name) for name in ("classes", "suppressed", "loss")}})
    return found


def publish(
    ledger: Ledger, rows: Rows, wanted: Wanted, *, resumes: bool = False, progress: Progress | None = None
) -> Published:
    """Makes the rows, stores them and puts that on record; only what it returns may leave.

    Raises:
        NotAllowedError: The owner has not said yes.
        SourceChangedError: The files are not what was protected.
    """
    version = rows.version
    if version is None:
        raise RuntimeError("Only a protected table's rows are on record.")
    if not wanted.yes:
        raise InputError(
            f"Publishing rows of {version.table!r} cannot be undone.",
            why=WHY,
            fix="If that is meant, say so with --yes (yes = true). With --dry-run you see what it would be like.",
        )
    wanted.options.check()
    check_asks(wanted.options)
    if not set(rows.paths) <= set(version.fingerprint.paths):
        raise RuntimeError("Rows of other files than those on record.")
    key = _key(rows, wanted)
    for known in ledger.published(version.dataset):
        if known.key == key:
            return _again(ledger, known, wanted)
    if resumes:
        raise never_charged()
    check_unchanged(version.table, version.fingerprint, version.policy.source)
    before = identities(version.fingerprint.paths)
    table = rows.read()
    made = make(table, rows.roles, wanted.options, progress)
    made = _with_words(made, table, rows, wanted.options, ledger.published(version.dataset))
    check_unchanged(version.table, version.fingerprint, version.policy.source)
    if identities(version.fingerprint.paths) != before:
        raise source_changed(version.table)
    file, content = _store(ledger.home, made, wanted)
    if made.state is not None and wanted.options.previous is not None:
        made.state.write(_staged(ledger.home, content))  # whoever is interrupted after the record finds it there
    facts = plain(made.facts)
    about = {
        "words": wanted.options.words,
        "options": plain(wanted.options.to_json()),
        "data_version": version.data_version,
        "form": wanted.form,
        "facts": for_record(facts),
        **({"reason": wanted.reason} if wanted.reason else {}),
    }
    found, free = publications.record(
        ledger,
        dataset=version.dataset,
        table=version.table,
        key=key,
        release=content,
        about=about,
        epoch=version.epoch,
    )
    keep_state(made, wanted.options)
    receipt = ledger.receipt(found.id).to_dict()
    return Published(version.table, version.dataset, facts, found, file, receipt, free, made)


def check_asks(options: Options) -> None:
    """Refuses models that every table satisfies: a protected one would leave as it is.

    Raises:
        InputError: Nothing that is asked for hides anybody.
    """
    if options.asks_nothing:
        raise InputError(
            f"Every table has {options.words}: this one would leave as it is.",
            why="Rows of a protected table are published only if something is asked of them.",
            fix="Ask for more: --k 10, say; and --l, --t or --beta for what is sensitive.",
        )


def check_output_of(output: Path, rows: Rows, options: Options, registry: Registry) -> None:
    """Refuses an output that is of no known form, lies in a home, or is one of the files that are read."""
    if output.suffix.lower() not in FORMS:
        raise InputError(
            f"Rows cannot be written as {output.suffix or 'a file without ending'}.",
            why="The ending says which form is meant.",
            fix=f"Name a file that ends in {' or '.join(FORMS)}.",
        )
    check_output(output)
    check_apart([*rows.inputs(), *options.reads()], [output, *options.writes()], registry)


def keep_state(made: Made, options: Options) -> None:
    """Writes what the next release must know, where it was asked for."""
    if made.state is not None and options.previous is not None:
        made.state.write(Path(options.previous))


def _again(ledger: Ledger, known: PublishedRows, wanted: Wanted) -> Published:
    file = stored_file(ledger.home, known.release + wanted.form)
    staged = _staged(ledger.home, known.release)
    if wanted.options.previous is not None and staged.exists():
        # The request is the same, so what it remembers is what was there before: interrupted, or lost since.
        State.read(staged).write(Path(wanted.options.previous))
    facts = ledger.entry(known.entry).data["facts"]
    return Published(known.table, known.dataset, facts, known, file, ledger.receipt(known.id).to_dict(), free=True)


def _staged(home: Path, content: str) -> Path:
    """Where the state of a publication is kept in the home, by the hash of its file; never served."""
    return home / FOLDER / f"{content}.state"


def stored_file(home: Path, name: str) -> Path:
    """The bytes of a publication in the home, by their SHA-256 and form; refuses what is not there, or was changed."""
    stem, dot, form = name.partition(".")
    file = home / FOLDER / name
    known = len(stem) == 64 and set(stem) <= set("0123456789abcdef") and dot + form in FORMS
    if not known or not file.is_file():
        raise SourceUnavailableError(
            "There is no such file.", why="Nothing of that name was published from here.", fix="See the ledger."
        )
    if _sha256(file) != stem:
        raise LedgerCorruptError(
            "The published file was changed.", why="It is not the one that was recorded.", fix="Restore a good copy."
        )
    return file


def _store(home: Path, made: Made, wanted: Wanted) -> tuple[Path, str]:
    """The rows in a file of the home, under their hash; durable."""
    from dalenius.anonymity.table import write_table

    folder, form = home / FOLDER, wanted.form
    folder.mkdir(mode=0o700, exist_ok=True)
    part = folder / f".{secrets.token_hex(8)}{form}"
    try:
        write_table(made.table, part)
        content = _sha256(part)
        with part.open("rb") as written:
            os.fsync(written.fileno())
        file = folder / f"{content}{form}"
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return file, content


def _key(rows: Rows, wanted: Wanted) -> str:
    """What makes it the same publication: the data, the roles with all that files say, and what was asked."""
    version = rows.version
    if version is None:
        raise RuntimeError("Only a protected table's rows are on record.")
    files = {str(path): _sha256(path) for path in (*rows.beside(), *wanted.options.files())}
    recorded = {file.path: file.complete or file.hash for file in version.fingerprint.files}
    read = {str(path): recorded[str(path)] for path in rows.paths}
    about = [version.table, version.data_version, version.epoch, read, plain(rows.section), files]
    asked = {"about": about, "options": plain(wanted.options.to_json()), "form": wanted.form}
    return hashlib.sha256(canonical(asked).encode()).hexdigest()


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SourceUnavailableError(
            f"{path.name} cannot be read.",
            why=error.strerror or "It is not there.",
            fix="Put it back, or name another.",
        ) from None


def plain(value: Any) -> Any:
    """In JSON's terms: no NaN, no infinity, no numpy."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    number = float(value)
    return number if math.isfinite(number) else None
