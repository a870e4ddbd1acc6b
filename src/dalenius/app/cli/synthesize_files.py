"""What `dalenius synthesize` writes: rows, reports, and rows that become a public table of the home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius._numbers import count_of
from dalenius.app.cli.frame import Frame
from dalenius.errors import Charge, DaleniusError, InputError

if TYPE_CHECKING:
    from dalenius.analyst import Asking
    from dalenius.curator import Curator
    from dalenius.synthesis.comparison_release import Comparison
    from dalenius.synthesis.preview import SyntheticPreview
    from dalenius.synthesis.release import SyntheticTable

ROWS, REPORT = (".csv", ".parquet"), (".html", ".json")


@dataclass(frozen=True)
class Wanted:
    """Which rows are written: how many, from which seed, and like what."""

    rows: int | None = None
    seed: int | None = None
    where: str | None = None


def check_condition(where: str, expected: SyntheticPreview) -> None:
    """Refuses a condition that cannot be read, or is about columns that would not be modelled."""
    from dalenius.tables.condition_reading import read_condition
    from dalenius.tables.policy import Kind

    read_condition(where, {each.name: Kind(each.kind) for each in expected.columns if each.kind})


def check_files(output: Path | None, report: Path | None) -> None:
    """Refuses files that could not be written."""
    from dalenius.releasing.targets import check_target

    for file, endings in ((output, ROWS), (report, REPORT)):
        if file is not None:
            check_target(file, endings)


def home_of(frame: Frame, asker: Asking) -> Curator | None:
    """The curator of the home where the asker is; None: it is a server's."""
    from dalenius.analyst import Analyst
    from dalenius.curator import Curator

    return Curator(frame.home) if isinstance(asker, Analyst) else None


def check_apart(files: Sequence[Path | None], curator: Curator | None) -> None:
    """Refuses to write over a protected table, over what a policy names, or one file over another."""
    from dalenius.anonymity.places import check_apart as apart

    apart([], [each for each in files if each is not None], None if curator is None else curator.registry)


def check_public(name: str | None, table: str, output: Path | None, curator: Curator | None) -> None:
    """Refuses what cannot be opened as a public table, before anything is charged."""
    from dalenius.owner.opening import check_public_name

    if name is None:
        return
    if curator is None:
        raise InputError(
            "--public does not go with a server.",
            why="Which tables are public is the owner's decision.",
            fix="Ask the owner: the console's page “Synthetic rows” opens a table that was made.",
        )
    if output is None:
        raise InputError(
            "--public needs a file.", why="A public table's rows lie in one.", fix="Give -o FILE.parquet too."
        )
    check_public_name(name, table, curator.registry)


def write_rows(
    frame: Frame,
    found: SyntheticTable,
    output: Path,
    wanted: Wanted,
    public: tuple[Curator, str] | None,
) -> int:
    """Writes so many rows, and opens them as a public table if that is wanted; returns how many there are."""
    try:
        rows = wanted.rows
        if public is None:
            written = found.write(output, rows, seed=wanted.seed, where=wanted.where)
        else:
            curator, name = public
            curator.open_synthetic(found, name, output, rows=rows, seed=wanted.seed, where=wanted.where)
            written = found.rows_where(wanted.where) if rows is None else rows
    except DaleniusError as error:
        raise told_after(error, found.charge) from None
    frame.note(f"Wrote {count_of(written, 'row')} in {output}.")
    if public is not None:
        words = f"Opened as {public[1]}: who may ask about {found.stored.table} asks about it too, exactly and free."
        frame.note(words)
        frame.note(f'In your own policy file, keep it under [public] tables: {public[1]} = "{output.absolute()}"')
    return written


def write_report(frame: Frame, target: Path, made: SyntheticTable, compared: Comparison | None) -> None:
    """Writes it; a failure is told with what has been charged."""
    from dalenius.app.report.synthetic import write_synthetic_report

    try:
        write_synthetic_report(target, made, compared)
    except DaleniusError as error:
        raise told_after(error, made.charge if compared is None else compared.charge) from None
    frame.note(f"Wrote {target}.")


def told_after(error: DaleniusError, charge: Mapping[str, Any]) -> DaleniusError:
    """The same error with what was charged before it."""
    error.charge = Charge(charge["epsilon"], charge["delta"])
    error.why += " What was asked for was made, and is stored."
    error.fix += " Then ask the same again: it is free now."
    return error
