"""Risks of the three attackers, by hand and by brute force; unicity of trails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.anonymity.risk import expected_inverse, risk
from dalenius.anonymity.table import Table
from dalenius.anonymity.unicity import trails, unicity
from dalenius.errors import InputError

# classes of 3, 2 and 1; in the population 6, 2 and 4
TABLE = Table.of({"age": ["30", "30", "30", "40", "40", None], "sex": ["f", "f", "f", "m", "m", "m"]})
POPULATION = Table.of({"sex": ["f"] * 6 + ["m"] * 6, "age": ["30"] * 6 + ["40"] * 2 + [None] * 4})


def test_the_prosecutor_has_one_in_as_many_as_look_alike():
    found = risk(TABLE, ["age", "sex"])
    assert (found.rows, found.classes, found.smallest, found.unique) == (6, 3, 1, 1)
    assert found.prosecutor.highest == 1 and found.prosecutor.average == pytest.approx(3 / 6)
    assert found.prosecutor.above == 1  # all above 0.2
    assert risk(TABLE, ["age", "sex"], threshold=0.4).prosecutor.above == pytest.approx(3 / 6)
    assert found.journalist is None and found.marketer == pytest.approx(3 / 6) and not found.estimated


def test_the_journalist_has_one_in_as_many_of_the_population():
    found = risk(TABLE, ["age", "sex"], population=POPULATION)
    assert found.journalist is not None
    assert found.journalist.highest == pytest.approx(1 / 2)
    assert found.marketer == found.journalist.average == pytest.approx((3 / 6 + 2 / 2 + 1 / 4) / 6)
    assert found.absent == 0 and not found.estimated
    strangers = risk(TABLE, ["age", "sex"], population=POPULATION.take(np.arange(8)))
    assert strangers.absent == 1  # the row without an age is nobody of these


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(cells, chance):
    mixed = list(cells)
    chance.shuffle(mixed)
    assert risk(Table.of({"q": cells}), ["q"]).to_dict() == risk(Table.of({"q": mixed}), ["q"]).to_dict()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.7, 0.95, 1.0])
@pytest.mark.parametrize("f", [1, 2, 3, 10, 50])
def test_the_estimate_is_the_mean_over_the_negative_binomial(f, share):
    others = np.arange(0, int(60 * (f + 5) / share))
    logs = [math.lgamma(f + j) - math.lgamma(f) - math.lgamma(j + 1) for j in others]
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.where(others > 0, others * np.log1p(-share) if share < 1 else -np.inf, 0)
    weights = np.exp(np.array(logs) + f * math.log(share) + tail)
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert expected_inverse(f, share) == pytest.approx(float((weights / (f + others)).sum()), rel=1e-8)


def test_an_estimated_risk_says_so():
    found = risk(TABLE, ["age", "sex"], share=0.1)
    assert found.estimated and found.journalist is not None and found.journalist.highest < found.prosecutor.highest
    assert found.journalist.highest == pytest.approx(0.1 * math.log(10) / 0.9)
    assert found.to_dict()["journalist"]["highest"] == found.journalist.highest


@pytest.mark.parametrize(
    ("table", "quasi", "options"),
    [
        (Table.of({"q": []}), ["q"], {}),
        (TABLE, [], {}),
        (TABLE, ["age"], {"share": 0.0}),
        (TABLE, ["age"], {"share": math.nan}),
        (TABLE, ["age"], {"share": 0.1, "population": POPULATION}),
        (TABLE, ["age"], {"threshold": 2}),
    ],
)
def test_what_makes_no_sense_is_refused(table, quasi, options):
    with pytest.raises(InputError):
        risk(table, quasi, **options)


EVENTS = Table.of(
    {
        "who": ["a", "a", "a", "b", "b", "b", "c", "c", None],
        "place": ["x", "y", "z", "x", "y", "w", "x", "x", "q"],
        "hour": ["1", "2", "3", "1", "2", "3", "1", "1", "1"],
    }
)


def test_who_shares_points():
    found = trails(EVENTS, "who", ["place", "hour"])
    assert found.count == 3 and [len(found.of(each)) for each in range(3)] == [3, 3, 1]
    assert list(found.sharing(found.of(0))) == [0] and list(found.sharing(found.of(2))) == [0, 1, 2]


def test_unicity_by_hand():
    """Known by all their points: a and b are alone, c is one of three."""
    found = unicity(EVENTS, "who", ["place", "hour"], known=3, seed=1)
    assert (found.tried, found.unique, found.crowd) == (3, 2, 1.0)
    assert found.share == pytest.approx(2 / 3) and found.error == pytest.approx(math.sqrt(2 / 27))


def test_more_points_find_more_people():
    chance = np.random.default_rng(3)
    who = np.repeat(np.arange(400), 20)
    events = Table.of({"who": map(str, who), "at": (f"{each}" for each in chance.integers(0, 60, len(who)))})
    shares = [unicity(events, "who", ["at"], known=p, seed=2).share for p in (1, 3, 5, 7)]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] > 0.5


def test_a_trail_needs_people_and_points():
    wrong: tuple[dict[str, Any], ...] = ({"points": []}, {"points": ["place"], "known": 0})
    for bad in wrong:
        with pytest.raises(InputError):
            unicity(EVENTS, "who", **bad)
    with pytest.raises(InputError):
        unicity(Table.of({"who": [None], "at": ["x"]}), "who", ["at"])
