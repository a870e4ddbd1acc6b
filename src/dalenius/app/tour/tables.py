"""The two made-up tables of the tour, with their policies, as an owner would lay them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dalenius.samples.students import Student, students
from dalenius.samples.visits import Visit, visits

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

    pq.write_table(pa.Table.from_pylist([asdict(row) for row in rows]), file)
