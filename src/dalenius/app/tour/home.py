"""The demo's own home, laid anew at each run, with two made-up tables and their policies, as an owner would lay them.

Nothing else is ever deleted.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from dalenius.errors import InputError, SourceUnavailableError
from dalenius.samples.students import Student, students
from dalenius.samples.visits import Visit, visits

NAME, MARK = ".dalenius-demo", "DEMO"
STUDENTS = 10_000

POLICIES = {
    "students": """\
[table]
name = "students"
source = "students.parquet"
unit = "student_id"          # who is protected

[budget]
epsilon = 2.0                # what may ever be learned about one student
delta = 1e-6

[analysts.ana]
epsilon = 1.0

[columns.editor]
type = "category"
keys = ["emacs", "nano", "notepad", "vim", "vscode"]

[columns.department]
type = "category"
keys = ["biology", "computing", "law", "mathematics", "medicine", "physics"]

[columns.gender]
type = "category"
keys = ["f", "m", "x"]

[columns.birth_date]
type = "date"
bounds = ["1950-01-01", "2010-12-31"]

[columns.scholarship]
type = "integer"
bounds = [0, 6000]

[contribution]
rows = 1                     # a student is one row
groups = 1
""",
    "visits": """\
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"             # all visits of a person together

[budget]
epsilon = 3.0
delta = 1e-6

[analysts.ana]
epsilon = 1.5

[columns.age]
type = "integer"
bounds = [18, 90]

[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]

[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.01

[columns.when]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]

[contribution]
rows = 25                    # of somebody with more visits, so many count
groups = 4
totals = { amount = 1500 }
""",
}


def lay_anew(folder: Path) -> Path:
    """An empty demo home in ``folder``, readable by its owner only."""
    home = folder / NAME
    try:
        if not _is_ours(home):
            raise InputError(
                f"{NAME} is not a demo home.",
                why=f"It has no file {MARK}, so it may hold something of yours.",
                fix="Move it away, or run the demo in another folder.",
            )
        _replace(home)
    except OSError as error:
        raise SourceUnavailableError(
            "The demo home cannot be made here.",
            why=f"{error.strerror or type(error).__name__}.",
            fix="Run the demo in a folder of yours.",
        ) from None
    return home


def _is_ours(home: Path) -> bool:
    """Missing, marked as a demo home, or an empty folder."""
    if home.is_symlink():
        return False
    if not home.exists() or (home / MARK).is_file():
        return True
    return home.is_dir() and not any(home.iterdir())


def _replace(home: Path) -> None:
    """Made complete beside its place, then moved there: a run that is killed leaves no home without its mark."""
    work = Path(tempfile.mkdtemp(prefix=f"{NAME}-", dir=home.parent))
    try:
        work.chmod(0o700)  # whatever the umask
        new = work / "new"
        new.mkdir()
        new.chmod(0o700)
        mark = new / MARK
        mark.touch()
        mark.chmod(0o600)
        mark.write_text("Made by 'dalenius demo', which deletes and remakes this folder at each run.\n")
        if home.exists():
            home.rename(work / "old")
        new.rename(home)
    finally:
        shutil.rmtree(work)


def lay_tables(folder: Path) -> tuple[list[Student], list[Visit], list[Path]]:
    """Writes both tables and their policies into a new folder; returns the rows, and where the policies are."""
    made = students(STUDENTS), visits()
    folder.mkdir(mode=0o700)
    _write(folder / "students.parquet", made[0])
    _write(folder / "visits.parquet", made[1])
    for name, text in POLICIES.items():
        (folder / f"{name}.toml").write_text(text, "utf-8")
    for file in folder.iterdir():
        file.chmod(0o600)
    return *made, [folder / f"{name}.toml" for name in POLICIES]


def _write(file: Path, rows: Sequence[Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {each.name: [getattr(row, each.name) for row in rows] for each in fields(rows[0])}
    pq.write_table(pa.table(columns), file)
