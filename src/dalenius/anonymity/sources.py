"""The rows that are to be published, and whose they are: a protected table, or files that nobody has protected.

Whoever names a file by its path has not thereby named another table: where the home knows it, or another home around
the file does, it is the protected table's rows that would leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError, NotAllowedError
from dalenius.tables.anonymity import ROLES
from dalenius.tables.mistakes import invalid
from dalenius.tables.sources.fingerprint import expand, fingerprint
from dalenius.tables.sources.homes import check_sources

if TYPE_CHECKING:
    from dalenius.anonymity.roles import Roles
    from dalenius.anonymity.table import Table
    from dalenius.tables.registry import Registry, Version

_SHEETS = (".xlsx", ".xlsm", ".xls", ".ods")


@dataclass(frozen=True)
class Rows:
    """What is to be published.

    Attributes:
        name: Of the table.
        paths: Its files.
        section: [anonymity], as a policy has it.
        version: The protected table that they are; None: nobody has protected them.
    """

    name: str
    paths: tuple[Path, ...]
    section: Mapping[str, Any]
    version: Version | None = None

    @property
    def roles(self) -> Roles:
        """The roles of its columns. What says whose a protected row is names people, unless it has a role."""
        section = dict(self.section)
        named = {name for role in ROLES for name in section.get(role, ())}
        section["identifiers"] = [*section.get("identifiers", ()), *(each for each in self.owner if each not in named)]
        return roles_of(section)

    @property
    def owner(self) -> tuple[str, ...]:
        """The columns that say whose a protected row is; none where nobody has protected them."""
        return () if self.version is None else self.version.policy.owner

    def read(self) -> Table:
        """All rows."""
        return read_files(self.paths)

    def beside(self) -> list[Path]:
        """The hierarchy files."""
        from dalenius.tables.anonymity import files_of

        return list(map(Path, files_of(self.section)))

    def inputs(self) -> list[Path]:
        """Every file that is read: none of them may be written over."""
        return [*self.paths, *self.beside()]


def roles_of(section: Mapping[str, Any]) -> Roles:
    """The roles that a section says, which was checked; its paths are absolute."""
    from dalenius.anonymity.roles import Roles
    from dalenius.tables.anonymity import files_of

    check_sources(map(Path, files_of(section)))
    return Roles.from_dict(_floats(section), Path.cwd())


def files_rows(name: str, source: Sequence[str], section: Mapping[str, Any], registry: Registry | None) -> Rows:
    """The rows of files; of a protected table where this home knows one of them, now or at any time before.

    Raises:
        NotAllowedError: They are of more than one data set, or some are of a protected table and others are not.
    """
    paths = expand(source)
    for each in paths:
        _check_form(each)
    version = None if registry is None else _protected(paths, registry)
    return Rows(name, paths, section, version)


def _protected(paths: Sequence[Path], registry: Registry) -> Version | None:
    """The protected table that files are; None where nobody has protected any of them.

    What is put on record is one table of one data set. So all files must be that table's: with a file of another, or a
    copy, rows would leave of which the record says nothing.
    """
    found = fingerprint([escape(str(each)) for each in paths])
    known = (each for versions in registry.versions().values() for each in reversed(versions))
    shared = [each for each in known if each.fingerprint.shares(found)]
    if not shared:
        return None
    if len({each.dataset for each in shared}) > 1:
        raise NotAllowedError(
            "These files are protected in several data sets.",
            why="What leaves is on record for one data set; the others' people would leave unrecorded.",
            fix="Publish each table by itself, by its name.",
        )
    covering = next((each for each in shared if set(paths) <= set(each.fingerprint.paths)), None)
    if covering is None:
        raise NotAllowedError(
            f"These files are only in part those of {shared[0].table!r}, which is protected.",
            why="The others, or copies, were not there when it was protected: the record would not say what left.",
            fix=f"Name the table: {shared[0].table}. Publish other files by themselves.",
        )
    return covering


def table_rows(name: str, registry: Registry, section: Mapping[str, Any] | None = None) -> Rows:
    """The rows of a protected table.

    Args:
        name: The table.
        registry: All tables.
        section: Roles, where its policy says none.
    """
    version = registry.history(name)[-1]
    section = section or version.policy.anonymity
    if not section:
        raise invalid(
            "anonymity",
            f"the policy of {version.table!r} has no such section.",
            why="It says which columns name people, which could give them away, and which are secret.",
            fix="Add it and protect the table again, or name a policy file that has it with --policy.",
        )
    return Rows(version.table, version.fingerprint.paths, section, version)


def read_files(paths: Sequence[Path]) -> Table:
    """The rows of one file, or of several with the same header, one after the other."""
    from dalenius.anonymity.table import Table, read_table

    check_sources(paths)
    tables = [_read(each, read_table) for each in paths]
    first = tables[0]
    if len(tables) == 1:
        return first
    for path, each in zip(paths, tables, strict=True):
        if set(each.names) != set(first.names):
            raise InputError(
                f"{path.name} has other columns than {paths[0].name}.",
                why="The files of one table have one header.",
                fix="Name files of one kind as the source.",
            )
    return Table.of({name: [cell for each in tables for cell in each[name].cells()] for name in first.names})


def _read(path: Path, read: Callable[[Path], Table]) -> Table:
    """One file; where it cannot be read, what is wrong with it if that can be told."""
    _check_form(path)
    try:
        return read(path)
    except InputError:
        line = _not_utf8(path)
        if line is None:
            raise
        raise InputError(
            f"Line {line:,} of {path.name} is not UTF-8.",
            why="Letters beyond ASCII are read as UTF-8; this file has them in another code, such as Latin-1.",
            fix="Save it as CSV UTF-8.",
        ) from None


def _check_form(path: Path) -> None:
    if path.suffix.lower() in _SHEETS:
        raise InputError(
            f"{path.name} is a spreadsheet, which cannot be read.",
            why="Rows are read from CSV and Parquet.",
            fix="Save the sheet as CSV UTF-8.",
        )


def _not_utf8(path: Path) -> int | None:
    """The first line of a text that is not UTF-8."""
    if path.suffix.lower() in {".parquet", ".pq"}:
        return None
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None


def _floats(value: Any) -> Any:
    """Exact decimals as the numbers that roles take."""
    if isinstance(value, Mapping):
        return {name: _floats(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_floats(each) for each in value]
    return float(value) if isinstance(value, Fraction) else value
