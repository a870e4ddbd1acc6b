"""The tour that `dalenius demo` gives: what is computed for it. How it is shown is the command's business.

Its home is laid anew at each run, with two made-up tables and their policies, as an owner would lay them; nothing else
is ever deleted. Its questions are asked of a real curator, in SQL, by an analyst whom nobody trusts. The true answers
stand beside the private ones only because the people in the tables are made up.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.accounting import calibration, composition, conversions
from dalenius.accounting.events import Event, Laplace, Pure, Repeated
from dalenius.accounting.pld import PLD
from dalenius.curator import Curator
from dalenius.errors import DaleniusError, InputError, SourceUnavailableError
from dalenius.ledger.verification import Verified, verify
from dalenius.samples.students import Student, students
from dalenius.samples.visits import Visit, visits

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Balance
    from dalenius.queries.release import Release

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


ANALYST = "ana"
COUNTS = (1, 10, 100, 1000)
_NORMAL = 1.959964  # 95% of a normal are within so many standard deviations
_LAPLACE = math.log(20)  # … of a Laplace within so many scales
Truth = dict[Any, tuple[float, ...]]


@dataclass(frozen=True)
class TourQuestion:
    """A question of the tour: what for, its SQL, its price, and the true answer by key."""

    why: str
    sql: str
    epsilon: float
    true: Callable[[Sequence[Student], Sequence[Visit]], Truth] | None = None
    chart: bool = False


def _editors(students: Sequence[Student], _: Sequence[Visit]) -> Truth:
    return {key: (count,) for key, count in Counter(row.editor for row in students).items()}


def _scholarships(students: Sequence[Student], _: Sequence[Visit]) -> Truth:
    found: dict[str, list[int]] = {}
    for row in students:
        found.setdefault(row.department, []).append(row.scholarship)
    return {key: (sum(each) / len(each),) for key, each in found.items()}


def _regions(_: Sequence[Student], visits: Sequence[Visit]) -> Truth:
    people = Counter(region for _, region in {(row.user_id, row.region) for row in visits})
    return {key: (people[key], count) for key, count in Counter(row.region for row in visits).items()}


QUESTIONS = (
    TourQuestion(
        "Groups, with a chart",
        "SELECT editor, COUNT(*) AS students FROM students GROUP BY editor ORDER BY students DESC",
        0.3,
        _editors,
        chart=True,
    ),
    TourQuestion(
        "Averages",
        "SELECT department, AVG(scholarship) AS scholarship FROM students GROUP BY department ORDER BY scholarship",
        0.6,
        _scholarships,
    ),
    TourQuestion(
        "People with many rows: at most 25 visits of one person count",
        "SELECT region, COUNT(DISTINCT user_id) AS people, COUNT(*) AS visits FROM visits GROUP BY region",
        1.0,
        _regions,
    ),
    TourQuestion("A question about one person", "SELECT FIRST(amount) FROM visits", 0.2),
    TourQuestion(
        "The first one again, in other words",
        "SELECT s.Editor, COUNT(*) AS n FROM Students AS s GROUP BY 1 HAVING n > 1000 ORDER BY n DESC LIMIT 2",
        0.3,
        _editors,
    ),
    TourQuestion("More than is left", "SELECT AVG(age) FROM visits WHERE region = 'north'", 1.4),
)


@dataclass(frozen=True)
class TourAnswer:
    """What came of a question: a release with the true cells beside it, or a refusal."""

    question: TourQuestion
    release: Release | None = None
    true: tuple[tuple[Any, ...], ...] | None = None
    refusal: DaleniusError | None = None

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        asked = {"question": self.question.sql, "epsilon": self.question.epsilon}
        if self.release is None:
            return asked | (self.refusal.to_dict() if self.refusal else {})
        return asked | self.release.to_dict() | {"true": self.true}


@dataclass(frozen=True)
class Tour:
    """What happened, and the history that remembers it."""

    home: Path
    people: tuple[int, int]
    shown: list[TourAnswer]
    history: Verified
    balances: dict[str, tuple[Balance, Balance]]  # ana's and all analysts', by data set

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "home": self.home,
            "questions": [each.to_dict() for each in self.shown],
            "verified": {"entries": self.history.entries, "head": self.history.head},
            "remaining": {
                name: {"analyst": own.remaining_epsilon, "dataset": whole.remaining_epsilon}
                for name, (own, whole) in self.balances.items()
            },
        }


def take_tour(folder: Path) -> Tour:
    """Lays the demo home in ``folder``, protects both tables and asks."""
    home = lay_anew(folder)
    students, visits, policies = lay_tables(home / "data")
    curator = Curator(home)
    curator.protect(*policies)
    shown = [_ask(curator, each, students, visits) for each in QUESTIONS]
    ledger = curator.ledger
    balances = {name: (ledger.balance(name, ANALYST), ledger.balance(name)) for name in ledger.datasets()}
    people = len(students), len({row.user_id for row in visits})
    curator.engines.close()
    return Tour(home, people, shown, verify(ledger), balances)


def _ask(curator: Curator, question: TourQuestion, students: Sequence[Student], visits: Sequence[Visit]) -> TourAnswer:
    try:
        release = curator.analyst(ANALYST).ask(question.sql, epsilon=question.epsilon)
    except DaleniusError as refusal:
        return TourAnswer(question, refusal=refusal)
    true = question.true(students, visits) if question.true else {}
    return TourAnswer(question, release, tuple((row[0], *true[row[0]]) for row in release.rows))


@dataclass(frozen=True)
class CountErrors:
    """The noise error of each of n counts that together cost (ε, δ), by method of adding up."""

    epsilon: float
    delta: float
    counts: tuple[int, ...]
    errors: dict[str, tuple[float, ...]]
    words: dict[str, str]

    @property
    def gain(self) -> float:
        """How much better the best does than basic composition, at the most counts."""
        return self.errors["basic"][-1] / min(errors[-1] for errors in self.errors.values())

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "epsilon": self.epsilon, "delta": self.delta, "counts": list(self.counts),
            "noise_error": {method: list(errors) for method, errors in self.errors.items()},
        }  # fmt: skip


def errors_of_counts(epsilon: float, delta: float) -> CountErrors:
    """Works out the least noise per count under each method."""
    errors = {
        "basic": tuple(_LAPLACE * n / epsilon for n in COUNTS),
        "advanced": tuple(_LAPLACE * _advanced_scale(n, epsilon, delta) for n in COUNTS),
        "zcdp": tuple(_NORMAL * math.sqrt(n / (2 * conversions.zcdp_rho(epsilon, delta))) for n in COUNTS),
        "pld": tuple(_pld_error(n, epsilon, delta) for n in COUNTS),
    }
    words = {
        "basic": "basic (Σε, Laplace)",
        "advanced": "advanced (Laplace)",
        "zcdp": "zCDP (Σρ, Gaussian)",
        "pld": "PLD (the better noise)",
    }
    return CountErrors(epsilon, delta, COUNTS, errors, words)


def _advanced_scale(n: int, epsilon: float, delta: float) -> float:
    def fits(each: float) -> bool:
        total = composition.advanced({Pure(each): n}, delta)
        return total is not None and total <= epsilon

    return 1 / conversions.largest(fits, epsilon / n)


def _pld_error(n: int, epsilon: float, delta: float) -> float:
    def laplace(scale: float) -> Event:
        return Repeated(Laplace(scale), n)

    scale = calibration.least_noise(laplace, epsilon, delta, by=lambda event: PLD.of(event).epsilon(delta))
    gaussian = calibration.analytic_gaussian(epsilon, delta) * math.sqrt(n)
    return min(_LAPLACE * scale, _NORMAL * gaussian)
