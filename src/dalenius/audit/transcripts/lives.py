"""Whole lives of made-up homes: what all releases together show of one unit, and what the ledger says they cost.

A home protects a table, answers questions, gets new data under the same name, other limits, and new people. It lives
twice, under the same keys and the same noisy transcript: once with a unit in its data, once without. What the
transcript shows of that unit must be within the charges of the epoch, and of the period, that the unit's rows are in;
and each step must end alike.

Questions here have public groups; `sides` has those whose keys are found. Chance is seeded: it is no noise.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dalenius.audit.fuzz import check_length
from dalenius.audit.transcripts.loss import Loss, transcript_loss
from dalenius.audit.transcripts.tape import OtherTranscriptError, Step, Tape, run_taped
from dalenius.curator import Curator
from dalenius.errors import DaleniusError
from dalenius.ledger.ledger import Ledger

if TYPE_CHECKING:
    from dalenius.ledger.chain import Entry

Row = tuple[str, int, str | None, date]
_QUESTIONS = (
    "SELECT COUNT(*) FROM visits",
    "SELECT region, COUNT(*), SUM(amount) FROM visits GROUP BY region",
    "SELECT AVG(amount) FROM visits WHERE region <> 'south'",
    "SELECT COUNT(DISTINCT person) FROM visits",
    "SELECT MEDIAN(amount) FROM visits",
    "SELECT region, VAR_POP(amount) FROM visits GROUP BY region",
    "SELECT COUNT(*) FROM visits WHERE day >= DATE '2025-03-01'",
    "SELECT SUM(amount) FROM visits WHERE day < DATE '2025-02-01' AND amount > 20",
)
_STEPS = ("ask",) * 6 + ("again", "refresh", "refresh", "policy", "people")
_PRICES = (0.05, 0.3, 1.0)
_FIRST = date(2025, 1, 1)
_ROUNDED = 1e-9


@dataclass(frozen=True)
class BrokenLife:
    """A life that shows more than it is charged for.

    Attributes:
        kind: "transcript", "mechanism", or "outcome": a step ends otherwise without the unit.
        life: Its number in the run with this ``seed``.
        policy: The first policy.
        steps: What was done.
        claimed: The most that is charged.
        seen: What is shown.
    """

    kind: str
    seed: int
    life: int
    policy: str
    steps: tuple[str, ...]
    claimed: str
    seen: str

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        names = ("kind", "seed", "life", "policy", "steps", "claimed", "seen")
        return {name: getattr(self, name) for name in names}


@dataclass
class LivesReport:
    """What a run did."""

    seed: int
    cases: int = 0
    done: Counter[str] = field(default_factory=Counter)
    violations: list[BrokenLife] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "seed": self.seed,
            "cases": self.cases,
            "done": dict(sorted(self.done.items())),
            "seconds": round(self.seconds, 3),
            "violations": [each.to_dict() for each in self.violations],
        }


def fuzz_lives(
    *,
    cases: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    progress: Callable[[LivesReport], None] | None = None,
) -> LivesReport:
    """Lives so many lives, or for so long; stops at the first that is broken."""
    check_length(cases, minutes, seed)
    report, began = LivesReport(secrets.randbits(32) if seed is None else seed), time.monotonic()
    while not report.violations and (
        report.cases < cases if cases is not None else report.seconds < (minutes or 0.0) * 60
    ):
        with TemporaryDirectory() as folder:
            _live_twice(report, Path(folder))
        report.cases += 1
        report.seconds = time.monotonic() - began
        if progress is not None:
            progress(report)
    return report


@dataclass(frozen=True)
class _Plot:
    """What is drawn once for both lives."""

    number: str
    accounting: str
    neighbors: str
    monthly: bool
    found: bool
    epoch: int  # in which the unit is there
    month: int  # and, where the budget is per month, in which of them

    @classmethod
    def draw(cls, number: str) -> _Plot:
        random = Random(f"plot {number}")  # noqa: S311
        accounting, neighbors = random.choice(("zcdp", "pure")), random.choice(("add-remove", "substitute"))
        monthly = random.random() < 0.35
        return cls(
            number,
            accounting,
            neighbors,
            monthly,
            random.random() < 0.5,
            random.choice((1, 1, 2)),
            random.randint(1, 4),
        )

    def policy(self, rows: int) -> str:
        """The policy, with so many rows of each unit; or with limits that are found."""
        period = '\nperiod = { column = "day", every = "month" }' if self.monthly else ""
        delta = "\ndelta = 1e-6" if self.accounting == "zcdp" else ""
        limits = "" if self.found else f"\n[contribution]\nrows = {rows}\n"
        return (
            '[table]\nname = "visits"\nsource = "visits.parquet"\nunit = "person"\n'
            f'neighbors = "{self.neighbors}"\n'
            f'[budget]\nepsilon = 40.0{delta}\naccounting = "{self.accounting}"{period}\n'
            "[analysts.ana]\nepsilon = 30.0\n"
            '[columns.amount]\ntype = "integer"\nbounds = [0, 100]\n'
            '[columns.region]\ntype = "category"\nkeys = ["north", "south"]\n'
            f'[columns.day]\ntype = "date"\nbounds = ["2025-01-01", "2025-04-30"]\n{limits}'
        )

    @property
    def period(self) -> str:
        """The one that the unit's rows are in; "" where there is one budget."""
        return f"2025-{self.month:02}" if self.monthly else ""

    def rows(self, random: Random, epoch: int, side: int) -> list[Row]:
        """All rows of one data version; sides differ in the unit's alone."""
        people = [f"{epoch} {at}" for at in range(random.randint(0, 25))]
        others = [self._row(random, each) for each in people for _ in range(random.randint(1, 5))]
        own = [self._row(random, f"{epoch} victim", own=True) for _ in range(random.choice((1, 2, 5, 40)))]
        instead = [self._row(random, f"{epoch} other", own=True) for _ in range(random.choice((1, 2, 5, 40)))]
        if epoch != self.epoch:
            return others
        if side == 0:
            return [*others, *own]
        return [*others, *instead] if self.neighbors == "substitute" else others

    def _row(self, random: Random, who: str, *, own: bool = False) -> Row:
        day = _FIRST + timedelta(days=random.randrange(120))
        if own and self.monthly:
            day = date(2025, self.month, random.randint(1, 28))
        return who, random.choice((0, 7, 50, 100, 900, -3)), random.choice(("north", "south", "mars", None)), day


class _Life:
    """One home, on one side."""

    def __init__(self, plot: _Plot, side: int, folder: Path, tape: Tape) -> None:
        self._plot, self._side, self._folder, self._tape = plot, side, folder, tape
        self._random = Random(f"life {plot.number}")  # noqa: S311 (the same on both sides)
        self._curator = Curator(folder / "home")
        self._epoch, self._asked = 1, list[tuple[str, float]]()
        self.done: list[str] = []
        self.epochs: list[int] = [0]  # the first step of the transcript in each

    def live(self) -> None:
        """From protection to the last question."""
        self._write()
        self._protect(5)
        for _ in range(self._random.randint(4, 12)):
            step = self._random.choice(_STEPS)
            try:
                getattr(self, f"_{step}")()
                self.done.append(step)
            except DaleniusError as error:
                self.done.append(f"{step}: {error.code}")

    @property
    def charges(self) -> list[Entry]:
        """All entries that charge, and those that begin an epoch."""
        return list(self._curator.ledger.records(("charge", "epoch")))

    def _write(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        seed = Random(self._random.random())  # noqa: S311
        rows = self._plot.rows(seed, self._epoch, self._side)
        names = ("person", "amount", "region", "day")
        types = (pa.string(), pa.int64(), pa.string(), pa.date32())
        columns = {
            name: pa.array([row[at] for row in rows], type_)
            for at, (name, type_) in enumerate(zip(names, types, strict=True))
        }
        pq.write_table(pa.table(columns), self._folder / "visits.parquet")

    def _protect(self, rows: int) -> None:
        path = self._folder / "visits.toml"
        path.write_text(self._plot.policy(rows))
        self._curator.protect(path, yes=True, reason="a made-up life goes on")

    def _ask(self) -> None:
        question = self._random.choice(_QUESTIONS), self._random.choice(_PRICES)
        self._asked.append(question)
        self._curator.analyst("ana").ask(question[0], epsilon=question[1])

    def _again(self) -> None:
        if self._asked:
            question, epsilon = self._random.choice(self._asked)
            self._curator.analyst("ana").ask(question, epsilon=epsilon)

    def _refresh(self) -> None:
        self._write()
        self._curator.refresh("visits", reason="a made-up life goes on")

    def _policy(self) -> None:
        self._protect(self._random.choice((1, 3, 20)))

    def _people(self) -> None:
        if self._epoch == 2:
            return
        self._epoch = 2
        self._write()
        self._curator.refresh("visits", new_people=True, yes=True, reason="other people were drawn for this wave")
        self.epochs.append(len(self._tape.steps))


def _live_twice(report: LivesReport, folder: Path) -> None:
    plot = _Plot.draw(f"{report.seed} {report.cases}")
    sides = [folder / "first", folder / "second"]
    Ledger.create(sides[0] / "home")
    shutil.copytree(sides[0], sides[1])  # the same keys, by which the groups of units are chosen
    tape = Tape()
    first = _Life(plot, 0, sides[0], tape)
    run_taped(tape, first.live)
    again = Tape(earlier=tape.steps)
    second = _Life(plot, 1, sides[1], again)

    def broken(kind: str, claimed: str, seen: str) -> None:
        steps = tuple(first.done)
        report.violations.append(BrokenLife(kind, report.seed, report.cases, plot.policy(5), steps, claimed, seen))

    try:
        run_taped(again, second.live)
    except OtherTranscriptError as error:
        broken("mechanism", "the same mechanisms", str(error))
        return
    if first.done != second.done or len(again.steps) != len(tape.steps):
        broken("outcome", ", ".join(first.done), ", ".join(second.done))
        return
    report.done.update(each.split(":")[0] if ":" not in each else each for each in first.done)
    report.done.update([plot.accounting, plot.neighbors, *(["monthly"] if plot.monthly else [])])
    _compare(report, plot, first, (tape.steps, again.steps), broken)


def _compare(
    report: LivesReport,
    plot: _Plot,
    life: _Life,
    steps: tuple[list[Step], list[Step]],
    broken: Callable[[str, str, str], None],
) -> None:
    """The loss of each epoch against what was charged in it."""
    ends = [*life.epochs[1:], len(steps[0])]
    for at, (start, end) in enumerate(zip(life.epochs, ends, strict=True)):
        loss = transcript_loss(steps[0][start:end], steps[1][start:end])
        rho, epsilon = _charged(life.charges, at + 1, plot.period)
        shown, charged = (loss.rho, rho) if plot.accounting == "zcdp" else (loss.epsilon, epsilon)
        other = loss.epsilon if plot.accounting == "zcdp" else loss.rho
        if (at + 1 != plot.epoch and loss != Loss()) or shown > charged * (1 + _ROUNDED) or other:
            broken("transcript", f"{charged:.6g} in epoch {at + 1}", f"{float(shown):.6g}")
            return
        report.done.update(["reached"] if shown and shown > 0.5 * charged else [])


def _charged(entries: list[Entry], epoch: int, period: str) -> tuple[float, float]:
    """Σρ and Σε of the charges of one epoch that are about one period."""
    rho = epsilon = 0.0
    now = 1
    for entry in entries:
        if entry.kind == "epoch":
            now += 1
        elif now == epoch and period in entry.data["periods"]:
            rho += entry.data["rho"] or 0.0
            epsilon += entry.data["epsilon"]
    return rho, epsilon
