"""H9: a key that one unit alone has is released with chance at most δ_q, however many such keys the unit has.

Draws of the selection step on fixed integers, and questions end to end. False alarms: a binomial test rejects below
1e-7, which is its rate.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from tests.attack.curators import curator_of

from dalenius.mechanisms.key_selection import KeySelection

ALARM = 1e-7
DELTA = 1e-3
DRAWS = 100_000
CAP = 32
RHO = Fraction(1, 50)


class Planted(KeySelection):
    """Its threshold gives a lone unit with ``keys`` keys exactly twice the chance that it may have."""

    keys = 1

    @property
    def threshold(self) -> int:
        double = KeySelection(self.rho, 2 * self.delta, self.cap, self.neighbors)
        return double._least(self.keys, 1)


def seen(selection: KeySelection, keys: int, draws: int) -> int:
    """In how many of so many draws any key of a lone unit appears."""
    weights = np.full(draws * keys, KeySelection.weight(keys))
    return len({at // keys for at in selection.release(weights).value})


def rejected(count: int, draws: int) -> bool:
    """So many or more would be too rare, were the chance δ."""
    return float(stats.binom.sf(count - 1, draws, DELTA)) < ALARM


@pytest.mark.parametrize("keys", [1, 8, CAP])
@pytest.mark.parametrize("rho", [RHO, Fraction(5)])
def test_a_lone_units_keys_appear_no_more_often_than_promised(keys, rho, rounds):
    draws = rounds(DRAWS)
    assert not rejected(seen(KeySelection(rho, DELTA, CAP), keys, draws), draws)


@pytest.mark.parametrize("keys", [1, 8, CAP])
def test_twice_the_promised_chance_is_noticed(keys):
    """Teeth; always in full and twice over, since fewer draws could not tell for sure."""
    draws = 2 * DRAWS
    planted = type("Planted", (Planted,), {"keys": keys})(RHO, DELTA, CAP)
    most = int(stats.binom.isf(ALARM, draws, DELTA)) + 1  # beyond it, it is rejected
    assert stats.binom.cdf(most, draws, 2 * DELTA) < 1e-6, "the test has too few draws to see the error"
    assert rejected(seen(planted, keys, draws), draws)


def test_the_promise_is_used_up_and_not_far_exceeded():
    """At the number of keys that is the worst case the chance is δ, not a fraction of it."""
    chances = [float(lone_chance(KeySelection(RHO, DELTA, CAP), keys)) for keys in range(1, CAP + 1)]
    assert 0.999 * DELTA < max(chances) <= DELTA * (1 + 1e-5)


def lone_chance(selection: KeySelection, keys: int) -> float:
    """The chance that any key of a lone unit with so many appears, by the normal law: wide noise is that, nearly."""
    sigma = math.sqrt(selection.noise.variance)
    one = math.erfc((selection.threshold - 2**20 / math.sqrt(keys)) / sigma / math.sqrt(2)) / 2
    return -math.expm1(keys * math.log1p(-one))


# --- end to end

COLUMNS = """
[columns.note]
type = "text"
[columns.size]
type = "integer"
bounds = [0, 1000]
"""


def table(lone: int) -> pa.Table:
    """Three hundred people who share three notes, and one with notes of their own."""
    ids, notes = list(range(300)), [f"shared {at % 3}" for at in range(300)]
    ids += [300] * lone
    notes += [f"lone {at}" for at in range(lone)]
    return pa.table({"id": ids, "note": notes, "size": [0] * len(ids)})


def asked(folder, lone: int, times: int) -> tuple[int, int]:
    """In how many of so many questions a lone key was shown; and a shared one."""
    curator = curator_of(
        folder, table(lone), COLUMNS, epsilon=900.0, contribution=f"rows = 1\ngroups = {CAP}", delta=0.6
    )
    eve, own, shared = curator.analyst("eve"), 0, 0
    for at in range(times):
        # another question each time: the same one would be answered from what is stored
        question = f"SELECT note, COUNT(*) FROM t WHERE size < {at + 1} GROUP BY note"
        release = eve.ask(question, epsilon=2, delta=DELTA)
        assert not release.free and release.charge["delta"] == DELTA
        notes = [row[0] for row in release.rows]
        own += any(note.startswith("lone") for note in notes)
        shared += any(note.startswith("shared") for note in notes)
    return own, shared


@pytest.mark.parametrize("lone", [1, 8, CAP, 4 * CAP])
def test_asked_end_to_end_lone_keys_stay_away_and_shared_ones_show(tmp_path, rounds, lone):
    times = rounds(200)
    own, shared = asked(tmp_path, lone, times)
    assert not rejected(own, times)
    assert shared == times  # a hundred units, where about fifteen are needed: no accident hides them


def test_end_to_end_a_threshold_that_lets_everything_pass_is_noticed(tmp_path, monkeypatch):
    """Teeth."""
    monkeypatch.setattr(KeySelection, "threshold", 1)
    own, _ = asked(tmp_path, 8, 10)
    assert rejected(own, 10)
