"""What attacks find in synthetic rows: who was there, what a column says of somebody, which rows are there again.

Members are people whose rows the synthetic ones were made from, others people of the same kind whose rows were not.
What an attack finds of members and of others alike is knowledge about everybody, which synthetic rows are for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.audit.metrics.classification import area_under_curve
from dalenius.audit.synthetic.nearness import nearness
from dalenius.synthesis.predicting import classes_of, learned

if TYPE_CHECKING:
    from collections.abc import Callable

    from dalenius.audit.synthetic.reading import People
    from dalenius.synthesis.domain import Codes, Domain
    from dalenius.synthesis.policy_domain import PolicyDomain

PEOPLE = 1_000  # members, and as many others
SYNTHETIC = 20_000  # synthetic rows that they are compared with
_TWO_SIDED_95 = 1.96


@dataclass(frozen=True)
class Membership:
    """How well nearness to synthetic rows tells members from others.

    Attributes:
        people: On each side.
        auc: Chance that a member is nearer than somebody else; one half is guessing.
        margin: 95% margin of that by chance alone.
        advantage: TPR − FPR of a threshold that was chosen on other people.
    """

    people: int
    auc: float
    margin: float
    advantage: float


@dataclass(frozen=True)
class Attribute:
    """How often a column of somebody is guessed, from all others and the synthetic rows.

    Attributes:
        column: Which one.
        members: How often of members.
        others: The same of people who were not there; what is more of members is about them alone.
        most_frequent: How often who always says what is most frequent among synthetic rows.
        margin: 95% margin by chance of members − others.
    """

    column: str
    members: float
    others: float
    most_frequent: float
    margin: float


@dataclass(frozen=True)
class Copies:
    """Rows that are there again, value for value, where values of a class count as one.

    Attributes:
        synthetic: The share of synthetic rows that equal a real one.
        singled: Of real rows that no other real row equals, the share that stands in the synthetic rows.
        others: Of rows held out that no real row equals, the share that does; None: none are.
    """

    synthetic: float
    singled: float | None
    others: float | None


def membership(
    members: People,
    others: People,
    synthetic: Codes,
    domain: Domain,
    rng: np.random.Generator,
    told: Callable[[float], object],
) -> Membership:
    """Two scores are tried, on half of the people; the better one is told of the other half."""
    first, second = (each.one_of_each(PEOPLE, rng) for each in (members, others))
    count = min(first.shape[1], second.shape[1])
    rows = np.concatenate([first[:, :count], second[:, :count]], axis=1)
    some = synthetic[:, rng.choice(synthetic.shape[1], min(SYNTHETIC, synthetic.shape[1]), replace=False)]
    scores = [-each.astype(np.float64) for each in nearness(rows, some, domain, told)]
    truth = np.repeat([1.0, 0.0], count)
    learning = np.tile(rng.permutation(count) % 2 == 0, 2)
    best = max(scores, key=lambda each: area_under_curve(each[learning], truth[learning]))
    tested = ~learning
    side = int(truth[tested].sum())
    threshold = _best_threshold(best[learning], truth[learning])
    guess = best[tested] >= threshold
    advantage = float(guess[truth[tested] == 1].mean() - guess[truth[tested] == 0].mean())
    # of the rank sum of two samples of m and n from one law: (m + n + 1)/12mn
    margin = _TWO_SIDED_95 * math.sqrt((2 * side + 1) / (12 * side**2))
    return Membership(count, area_under_curve(best[tested], truth[tested]), margin, advantage)


def _best_threshold(scores: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Where TPR − FPR is largest."""
    tried = np.unique(scores)
    gains = [(scores[truth == 1] >= each).mean() - (scores[truth == 0] >= each).mean() for each in tried]
    return float(tried[int(np.argmax(gains))])


def attributes(
    members: People,
    others: People,
    synthetic: Codes,
    domain: PolicyDomain,
    columns: Sequence[int],
    rng: np.random.Generator,
) -> list[Attribute]:
    """Each column in turn is the secret; a classifier that learned from synthetic rows guesses it from all others."""
    found = []
    for at in columns:
        if len(classes_of(domain.columns[at], synthetic[at]).names) < 2:
            continue
        predictor = learned(synthetic, domain.columns, at)
        often = int(np.bincount(predictor.truth(synthetic)).argmax())
        sides = [each.one_of_each(10 * PEOPLE, rng) for each in (members, others)]
        right = [predictor.predict(each) == predictor.truth(each) for each in sides]
        spread = math.sqrt(sum(float(each.var()) / len(each) for each in right))
        base = float((predictor.truth(sides[0]) == often).mean())
        rates = [float(each.mean()) for each in right]
        found.append(Attribute(domain.columns[at].name, rates[0], rates[1], base, _TWO_SIDED_95 * spread))
    return found


def copies(real: People, held: People | None, synthetic: Codes) -> Copies:
    """Which rows are there again."""
    here, made = _keys(real.codes), _keys(synthetic)
    values, counts = np.unique(here, return_counts=True)
    alone = values[counts == 1]
    others = None
    if held is not None:
        new = np.unique(_keys(held.codes))
        new = new[~np.isin(new, values)]
        others = float(np.isin(new, made).mean()) if len(new) else None
    return Copies(
        float(np.isin(made, values).mean()), float(np.isin(alone, made).mean()) if len(alone) else None, others
    )


def _keys(rows: Codes) -> NDArray[np.void]:
    """Each row as one value."""
    plain = np.ascontiguousarray(rows.T.astype(np.int32))
    return plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1]))).ravel()
