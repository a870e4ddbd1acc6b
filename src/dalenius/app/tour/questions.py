"""The tour's questions, asked of a real curator, in SQL, by an analyst whom nobody trusts; and how far a budget goes.

The true answers stand beside the private ones only because the people in the tables are made up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.accounting import calibration, composition, conversions
from dalenius.accounting.events import Event, Laplace, Pure, Repeated
from dalenius.accounting.pld import PLD
from dalenius.app.tour.home import lay_anew, lay_tables
from dalenius.curator import Curator
from dalenius.errors import DaleniusError
from dalenius.ledger.verification import Verified, verify

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Balance
    from dalenius.queries.release import Release
    from dalenius.samples.students import Student
    from dalenius.samples.visits import Visit

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
