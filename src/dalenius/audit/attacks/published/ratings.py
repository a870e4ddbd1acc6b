"""Ratings: eight films and about when are as good as a name (Narayanan and Shmatikov 2008).

A film service published ratings with a number instead of a name. The attacker knows some ratings of the victim, with
errors: stars off by one, dates by two weeks, some of them wrong. Everybody is scored by the ratings that fit, rare
films above popular ones: Σ w(film)·(e^(−Δstars/1.5) + e^(−Δdays/30)) with w = 1/ln(number of its ratings). The best is
taken only if it stands out: eccentricity (best − second)/σ of at least 1.5. So the attack says when it does not know.

Groups of k people who are published with the same ratings, those of the whole group, score alike: the best never stands
out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.audit.attacks.attack import Curve, Drawing, Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.samples.films import DAYS, FILMS, Rating, ratings

K, KNOWN, WRONG, TRIED = 5, 8, 2, 100
ECCENTRICITY = 1.5
STARS, WEEKS = 1.5, 30.0  # how fast a score falls with an error


@dataclass(frozen=True, eq=False)
class Ratings:
    """Published ratings: person × film, NaN where there is none."""

    stars: NDArray[np.float64]
    days: NDArray[np.float64]

    @staticmethod
    def of(made: Sequence[Rating], people: int) -> Ratings:
        """As they are."""
        stars, days = (np.full((people, FILMS), np.nan) for _ in range(2))
        for each in made:
            stars[each.person, each.film], days[each.person, each.film] = each.stars, each.day
        return Ratings(stars, days)

    def grouped(self, k: int) -> Ratings:
        """People of like taste together, at least k, each published with the means of the group."""
        order, stars, days = _neighbours(self.stars), self.stars.copy(), self.days.copy()
        cuts = [order[at : at + k] for at in range(0, len(order) - k + 1, k)]
        cuts[-1] = order[(len(cuts) - 1) * k :]  # who is left over joins the last
        for group in cuts:
            for own in (stars, days):
                there = ~np.isnan(own[group])
                count = there.sum(axis=0)
                means = np.where(there, own[group], 0).sum(axis=0) / np.maximum(count, 1)
                own[group] = np.round(np.where(count > 0, means, np.nan), 1)
        return Ratings(stars, days)

    def scores(self, known: Mapping[int, tuple[float, float]]) -> NDArray[np.float64]:
        """Everybody's, for what is known: film to stars and day."""
        films = np.array(list(known))
        stars, days = (np.array([each[at] for each in known.values()]) for at in (0, 1))
        seen = (~np.isnan(self.stars[:, films])).sum(axis=0)
        weight = 1 / np.log(np.maximum(seen, 2) + math.e - 2)
        with np.errstate(invalid="ignore"):
            fit = np.exp(-np.abs(self.stars[:, films] - stars) / STARS)
            fit += np.exp(-np.abs(self.days[:, films] - days) / WEEKS)
        return np.asarray(np.nan_to_num(fit) @ weight)


def best(scores: NDArray[np.float64], least: float = ECCENTRICITY) -> int | None:
    """Who stands out; None where nobody does.

    >>> best(np.array([1.0, 9.0, 2.0, 1.5])), best(np.array([9.0, 9.0, 2.0, 1.0]))
    (1, None)
    """
    second, first = np.sort(scores)[-2:]
    spread = float(scores.std())
    if spread == 0 or (first - second) / spread < least:
        return None
    return int(scores.argmax())


def run(lab: TableLab) -> Finding:
    """Looks for some people by what is known of them."""
    true = Ratings.of(ratings(lab.people), lab.people)
    shown = true.grouped(K) if lab.target == "grouped" else true
    rates = []
    for known in range(2, KNOWN + 1, 2):
        who = lab.chance.permutation(lab.people)[:TRIED]
        named = [(int(each), best(shown.scores(_known(true, int(each), known, lab.chance)))) for each in who]
        hits, wrong = sum(a == b for a, b in named), sum(b is not None and a != b for a, b in named)
        rates.append((Rate(hits, len(who)), wrong))
        lab.progress(known / KNOWN)
    rate, wrong = rates[-1]
    learned = (
        f"All ratings of {rate}, from {KNOWN} films of which {WRONG} are wrong, dates within two weeks; {wrong:,} were "
        "taken for somebody else."
    )
    ys = tuple(each.share for each, _ in rates)
    curve = Curve(lab.target, tuple(float(each) for each in range(2, KNOWN + 1, 2)), ys)
    drawing = Drawing("By what is known", "films known", "share of people found", (curve,))
    return lab.found(
        ATTACK.name, rate, broke=rate.share > 1 / K, learned=learned, drawing=drawing, wrong=wrong / rate.of
    )


def _known(true: Ratings, person: int, count: int, chance: np.random.Generator) -> dict[int, tuple[float, float]]:
    """What the attacker has: a quarter of it is about films that the victim never rated."""
    own = np.flatnonzero(~np.isnan(true.stars[person]))
    wrong = WRONG * count // KNOWN
    chosen = chance.choice(own, min(count - wrong, len(own)), replace=False)
    found = {
        int(film): (
            float(true.stars[person, film] + chance.integers(-1, 2)),
            float(true.days[person, film] + chance.integers(-14, 15)),
        )
        for film in chosen
    }
    for film in chance.choice(FILMS, wrong, replace=False):
        found.setdefault(int(film), (float(chance.integers(1, 6)), float(chance.integers(DAYS))))
    return found


def _neighbours(stars: NDArray[np.float64]) -> NDArray[np.intp]:
    """People in the order of their taste: by the first direction in which who saw what differs most."""
    seen = (~np.isnan(stars)).astype(float)
    seen -= seen.mean(axis=0)
    direction = np.ones(seen.shape[1])
    for _ in range(20):  # power iteration
        direction = seen.T @ (seen @ direction)
        direction /= np.linalg.norm(direction)
    return np.argsort(seen @ direction, kind="stable")


ATTACK = TableAttack(
    "ratings",
    "Finds somebody's film ratings by eight films that they talked about.",
    "Nobody else has seen these eight films.",
    {
        "numbered": "a number instead of a name",
        "grouped": f"groups of {K} people, each published with the mean ratings of the group",
    },
    ("grouped",),
    run,
)
