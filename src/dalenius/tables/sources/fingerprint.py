"""What the files of a source are: enough to see that they changed, or that they are known under another name.

A file is known by its path and by a hash of its content. Of Parquet past 1 GiB the hash by which it is found again is
that of its footer (schema, sizes, offsets and statistics of all row groups) and size; a hash of all its bytes stands
beside it, since a footer cannot vouch for every value.

To read everything at every question would be too slow, so a file also has an identity: device, inode, size, and the
times of its last modification and of its last change of any kind. A modification time can be set back, which `cp -p`,
a restored backup and an attacker all do; the change time cannot, but by who sets the clock or writes past the file
system. While the identity is what was recorded, nothing is read. When any part of it is another one, the content
decides: the same bytes are no change, and are not read again by this process until the identity changes once more.

Fingerprints of earlier versions say less. Without an inode and a change time, a file is read once by each process. A
large file of which only the footer was hashed passes while size and modification time are the same, the footer is, and
the rest of its identity is what this process saw first; `refresh` or `protect` of a new state record the rest.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dalenius.errors import InputError, SourceChangedError, SourceUnavailableError
from dalenius.tables.sources.homes import check_sources

FORMS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv"}
LARGE = 2**30
Identity = tuple[int, int, int, int, int]  # device, inode, size, modification time, change time
_TAIL = 8  # a Parquet file ends with the footer's length in four bytes, and PAR1


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: where, how large, when written, and the hash of its content ("sha256") or footer ("footer").

    Attributes:
        whole: Beside the hash of a footer, that of all bytes; "" in records that were made before there was one.
        device, inode, ctime_ns: The rest of the identity that it had then; -1 where it was not recorded.
    """

    path: str
    size: int
    mtime_ns: int
    method: str
    hash: str
    whole: str = ""
    device: int = -1
    inode: int = -1
    ctime_ns: int = -1

    @property
    def complete(self) -> str:
        """The hash of all bytes, where it is known."""
        return self.hash if self.method == "sha256" else self.whole

    @property
    def identity(self) -> Identity:
        """What `stat` said of it."""
        return self.device, self.inode, self.size, self.mtime_ns, self.ctime_ns


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """All files of a source, frozen: what the glob meant when the owner protected the table."""

    form: str
    files: tuple[SourceFile, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the files are."""
        return tuple(Path(file.path) for file in self.files)

    @property
    def content(self) -> str:
        """One hash for all of it, wherever it lies."""
        return hashlib.sha256("\n".join(sorted(file.hash for file in self.files)).encode()).hexdigest()

    def same_content(self, other: Fingerprint) -> bool:
        """Whether they hold the same, wherever it lies: by all bytes, where those of both were hashed."""
        one, two = ([file.complete for file in each.files] for each in (self, other))
        return sorted(one) == sorted(two) if all((*one, *two)) else self.content == other.content

    def shares(self, other: Fingerprint) -> bool:
        """Whether they have a file in common, by place or by content."""
        mine = {file.path for file in self.files} | {file.hash for file in self.files}
        return any(file.path in mine or file.hash in mine for file in other.files)

    def holds_of(self, other: Fingerprint) -> bool:
        """Whether they have a file's content in common, wherever it lies."""
        return not {file.hash for file in self.files}.isdisjoint(file.hash for file in other.files)

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the ledger."""
        return {"form": self.form, "files": [asdict(file) for file in self.files]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Fingerprint:
        """As `to_dict` wrote it."""
        return cls(data["form"], tuple(SourceFile(**file) for file in data["files"]))


def fingerprint(source: Sequence[str]) -> Fingerprint:
    """The fingerprint of a source; reads every file once."""
    paths = expand(source)
    form = form_of(paths)
    return Fingerprint(form, tuple(_file(path, form) for path in paths))


def fingerprint_of(file: Path) -> Fingerprint:
    """The same for a code list: one CSV file, whatever it is called."""
    return Fingerprint("csv", (_file(file.resolve(), "csv"),))


def file_fingerprint(file: Path) -> Fingerprint:
    """That of one file, whatever it is called: as a source's where its ending says a form, else as text."""
    place = file.resolve()
    form = next((form for end, form in FORMS.items() if place.name.lower().endswith(end)), "csv")
    return Fingerprint(form, (_file(place, form),))


def expand(source: Sequence[str]) -> tuple[Path, ...]:
    """All files that paths and globs mean now: absolute, links followed, sorted, each once; none of a home."""
    found = _match_files(source)
    check_sources(found)
    return found


def _match_files(source: Sequence[str]) -> tuple[Path, ...]:
    found: set[Path] = set()
    for pattern in source:
        # Not Path.glob, which takes no absolute patterns
        matched = [pattern] if Path(pattern).is_file() else glob.glob(pattern, recursive=True)  # noqa: PTH207
        files = {Path(each).resolve() for each in matched if Path(each).is_file()}
        if not files:
            raise SourceUnavailableError(
                f"There is no file at {pattern}.",
                why="The source names it, and nothing there is a file that this user can see.",
                fix="Correct the source; relative paths are relative to the policy file.",
            )
        found |= files
    return tuple(sorted(found))


def form_of(paths: Sequence[Path]) -> str:
    """What kind of files they are, by their endings; all must be of one kind."""
    forms = {next((form for end, form in FORMS.items() if path.name.lower().endswith(end)), "") for path in paths}
    if len(forms) != 1 or "" in forms:
        raise InputError(
            "The source mixes forms." if len(forms) > 1 else "The source is of no known form.",
            why=f"Files end in {', '.join(FORMS)}, and all of one source are of one form.",
            fix="Convert or rename them.",
        )
    return forms.pop()


def check_unchanged(table: str, before: Fingerprint, source: Sequence[str]) -> None:
    """Refuses a source that is no longer what was protected. Costs one `stat` per file as long as nothing changed."""
    if not unchanged(before, source):
        raise source_changed(table)


def source_changed(table: str) -> SourceChangedError:
    """The error about a source that is not what was protected."""
    return SourceChangedError(
        f"The data of {table!r} changed since it was protected.",
        why="Files were added, removed or rewritten; answers and limits belong to the data as it was.",
        fix=f"Put the files back, or record their new state with 'dalenius refresh {table}'.",
    )


def unchanged(before: Fingerprint, source: Sequence[str]) -> bool:
    """Whether a source is still what it was. One that is gone is not; where it was is not for all who ask to hear."""
    try:
        found = _match_files(source)
    except SourceUnavailableError:
        return False
    return found == before.paths and all(_same(file) for file in before.files)


def _same(file: SourceFile) -> bool:
    path = Path(file.path)
    try:
        found = file_identity(path)
        if found == file.identity:
            return True
        _, _, size, mtime_ns, _ = found
        if size != file.size:
            return False
        if file.complete:  # copied back, moved or touched
            return _remembered(file.path, found) == file.complete
        first = _FIRST.setdefault(file, found)
        return mtime_ns == file.mtime_ns and first == found and _remembered_footer(file.path, found) == file.hash
    except (OSError, SourceUnavailableError):
        return False


def file_identity(path: Path) -> Identity:
    """Changes with every write, wherever a modification time is set back."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def identities(paths: Sequence[Path]) -> tuple[Identity | None, ...]:
    """Those of several files; None for one that is not there."""
    found: list[Identity | None] = []
    for path in paths:
        try:
            found.append(file_identity(path))
        except OSError:
            found.append(None)
    return tuple(found)


def _file(path: Path, form: str) -> SourceFile:
    try:
        before = file_identity(path)
        device, inode, size, mtime_ns, ctime_ns = before
        large = form == "parquet" and size > LARGE
        found, whole = _footer(path, size) if large else "", _sha256(path)
        after = file_identity(path)
    except OSError:
        raise SourceUnavailableError(
            f"{path.name} cannot be read.",
            why="This user has no access to it, or it vanished.",
            fix="Give this user read access.",
        ) from None
    if before != after:
        raise SourceChangedError(
            f"{path.name} is being written.",
            why="It changed while it was read.",
            fix="Try again when it is complete.",
        )
    method, known, rest = ("footer", found, whole) if large else ("sha256", whole, "")
    return SourceFile(str(path), size, mtime_ns, method, known, rest, device, inode, ctime_ns)


_FIRST: dict[SourceFile, Identity] = {}  # of files that were recorded without an identity and a whole hash


@lru_cache(maxsize=100_000)  # else a file that was touched would be read again at every question
def _remembered(path: str, found: Identity) -> str:
    """The hash of a file that has this identity before it is read, and after."""
    hashed = _sha256(Path(path))
    if file_identity(Path(path)) != found:
        raise OSError  # which is not remembered
    return hashed


@lru_cache(maxsize=100_000)
def _remembered_footer(path: str, found: Identity) -> str:
    return _footer(Path(path), found[2])


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _footer(path: Path, size: int) -> str:
    with path.open("rb") as file:
        file.seek(-_TAIL, 2)
        tail = file.read()
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != b"PAR1" or length + _TAIL > size:
            raise SourceUnavailableError(
                f"{path.name} cannot be read.",
                why="It does not end as a Parquet file does.",
                fix="Check that it is complete.",
            )
        file.seek(-_TAIL - length, 2)
        return hashlib.sha256(size.to_bytes(8, "big") + file.read()).hexdigest()
