"""What the files of a source are: enough to see that they changed, or that they are known under another name.

A file is known by its path and by a hash of its content. Large Parquet files are hashed by their footer (schema, sizes,
offsets and statistics of all row groups) and size: reading terabytes at every `protect` would be too slow. A footer
cannot vouch for every value, so for those a new modification time alone already counts as a change.
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
from dalenius.tables.homes import check_sources

FORMS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv"}
LARGE = 2**30
_TAIL = 8  # a Parquet file ends with the footer's length in four bytes, and PAR1


@dataclass(frozen=True, slots=True)
class File:
    """One file: where, how large, when written, and the hash of its content ("sha256") or footer ("footer")."""

    path: str
    size: int
    mtime_ns: int
    method: str
    hash: str


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """All files of a source, frozen: what the glob meant when the owner protected the table."""

    form: str
    files: tuple[File, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the files are."""
        return tuple(Path(file.path) for file in self.files)

    @property
    def content(self) -> str:
        """One hash for all of it, wherever it lies."""
        return hashlib.sha256("\n".join(sorted(file.hash for file in self.files)).encode()).hexdigest()

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
        return cls(data["form"], tuple(File(**file) for file in data["files"]))


def fingerprint(source: Sequence[str]) -> Fingerprint:
    """The fingerprint of a source; reads every file once, Parquet past 1 GiB only at its end."""
    paths = expand(source)
    form = form_of(paths)
    return Fingerprint(form, tuple(_file(path, form) for path in paths))


def fingerprint_of(file: Path) -> Fingerprint:
    """The same for a code list: one CSV file, whatever it is called."""
    return Fingerprint("csv", (_file(file.resolve(), "csv"),))


def expand(source: Sequence[str]) -> tuple[Path, ...]:
    """All files that paths and globs mean now: absolute, links followed, sorted, each once; none of a home."""
    found = _matched(source)
    check_sources(found)
    return found


def _matched(source: Sequence[str]) -> tuple[Path, ...]:
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
        raise SourceChangedError(
            f"The data of {table!r} changed since it was protected.",
            why="Files were added, removed or rewritten; answers and limits belong to the data as it was.",
            fix=f"Put the files back, or record their new state with 'dalenius refresh {table}'.",
        )


def unchanged(before: Fingerprint, source: Sequence[str]) -> bool:
    """Whether a source is still what it was. One that is gone is not; where it was is not for all who ask to hear."""
    try:
        found = _matched(source)
    except SourceUnavailableError:
        return False
    return found == before.paths and all(_same(file) for file in before.files)


def _same(file: File) -> bool:
    path = Path(file.path)
    try:
        status = path.stat()
        if (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns):
            return True
        # Copied back or touched: the content decides, where it was hashed as a whole.
        place = str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns
        return file.method == "sha256" and status.st_size == file.size and _remembered(*place) == file.hash
    except OSError:
        return False


def _file(path: Path, form: str) -> File:
    try:
        before = path.stat()
        large = form == "parquet" and before.st_size > LARGE
        found = _footer(path, before.st_size) if large else _sha256(path)
        after = path.stat()
    except OSError:
        raise SourceUnavailableError(
            f"{path.name} cannot be read.",
            why="This user has no access to it, or it vanished.",
            fix="Give this user read access.",
        ) from None
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise SourceChangedError(
            f"{path.name} is being written.",
            why="It changed while it was read.",
            fix="Try again when it is complete.",
        )
    return File(str(path), before.st_size, before.st_mtime_ns, "footer" if large else "sha256", found)


@lru_cache(maxsize=1000)  # else a large file that was touched would be read again at every question
def _remembered(path: str, _size: int, _mtime_ns: int, _ctime_ns: int) -> str:
    return _sha256(Path(path))


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
