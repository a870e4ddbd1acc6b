"""An answer made from another's: the added noise alone has the full scale of the price, and ± covers both.

Each run draws an answer of 64 groups, and one that is made from it, through the bytes that are stored: 2,560 draws of
each noise in the short form, 51,200 in the long one.

*The added part* is what the second answer's integers have more than the first's. The deviation of a sample variance is
√((κ − 1)/n) of it, κ = 3 for Gaussian and 6 for Laplace noise: 2.8% and 4.4% in the short form. It is accepted within 5
of those, which is a false-alarm rate below 1e-6; a scale that is 20% too small has 36% less variance, and is rejected.

*Coverage* at 95%: a deviation of 0.43% in the short form and 0.10% in the long one. Widths of Laplace noises together
cover up to 0.5% more than asked; with tolerances of 3% and 1.5% false alarms are below 1e-6. Both answers have the same
price, so errors in which only one of the two noises counted are too small by √2 (Gaussian) or 1.37 (Laplace): they
cover 83% to 88%, and are rejected.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import LONG
from tests.statistical import test_ask_noise_error as fresh
from tests.statistical.test_ask_noise_error import QUESTIONS, Case, case

from dalenius.measuring.estimates import noise_variance
from dalenius.queries.answering import FORMAT, Answer, coarsen, law_to_json, shareable

pytestmark = pytest.mark.statistical
source = fresh.source  # a fixture

RUNS = 800
WAYS = [("zcdp", "add-remove"), ("pure", "substitute")]
ASKED = [*QUESTIONS.values()] if LONG else [["COUNT(*)", "SUM(x)"], ["AVG(x)"]]


def stored(found: Case) -> bytes:
    """The bytes that `answering.measure_plan` would store, of another analyst's answer at the same price."""
    measures = [
        {
            "law": law_to_json(mechanism.noise),
            "values": list(map(str, mechanism.release(vector).value)),
            "bits": each.bits,
        }
        for each, mechanism, vector in zip(found.plan.measures, found.price.mechanisms, found.integers, strict=True)
    ]
    content = {"format": FORMAT, "epsilon": found.price.epsilon, "rho": found.price.rho, "measures": measures}
    return json.dumps(content).encode()


def integers(content: bytes) -> list[np.ndarray]:
    return [np.array(each["values"], dtype=np.float64) for each in json.loads(content)["measures"]]


@pytest.mark.parametrize(("accounting", "neighbors"), WAYS)
def test_the_added_noise_alone_has_the_full_scale_and_one_a_fifth_too_small_is_noticed(
    source: Path, accounting: str, neighbors: str, rounds: Callable[[int], int]
) -> None:
    found = case(source, accounting, neighbors, ["COUNT(*)", "SUM(x)"])
    added: list[list[np.ndarray]] = [[] for _ in found.integers]
    for _ in range(rounds(RUNS)):
        before = stored(found)
        after = coarsen(found.plan, found.price, before)
        for parts, one, two in zip(added, integers(before), integers(after), strict=True):
            parts.append(two - one)
    for parts, mechanism in zip(added, found.price.mechanisms, strict=True):
        drawn, expected = np.concatenate(parts), noise_variance(mechanism.noise)
        tolerance = 5 * np.sqrt((2 if accounting == "zcdp" else 5) / drawn.size)
        assert np.mean(drawn**2) / expected == pytest.approx(1, abs=tolerance)
        assert np.mean((0.8 * drawn) ** 2) / expected < 1 - tolerance
        assert abs(np.mean(drawn)) <= 5 * np.sqrt(expected / drawn.size)


@pytest.mark.parametrize(("accounting", "neighbors"), WAYS)
@pytest.mark.parametrize("asked", ASKED, ids=lambda each: each[0])
def test_the_noise_error_covers_both_noises_and_one_of_them_alone_is_noticed(
    source: Path, accounting: str, neighbors: str, asked: list[str], rounds: Callable[[int], int]
) -> None:
    found, runs = case(source, accounting, neighbors, asked), rounds(RUNS)
    assert shareable(found.plan)
    truth = np.array(found.answer(noisy=False).table().rows, dtype=float)
    inside, planted, ends = (np.zeros(truth.shape) for _ in range(3))
    for _ in range(runs):
        content = coarsen(found.plan, found.price, stored(found))
        table = Answer.read(found.plan, content, 0.95).table()
        data = json.loads(content)
        for each in data["measures"]:
            del each["law"]["beside"]
        alone = Answer.read(found.plan, json.dumps(data).encode(), 0.95).table()
        off = abs(np.array(table.rows, dtype=float) - truth)
        inside += off <= np.array(table.noise_error, dtype=float)
        planted += off <= np.array(alone.noise_error, dtype=float)
        interval = np.array(table.interval, dtype=float)
        ends += (interval[..., 0] <= truth) & (truth <= interval[..., 1])
    tolerance = 0.015 if runs == RUNS else 0.03
    assert inside.mean(axis=0) / runs == pytest.approx(0.95, abs=tolerance)
    assert ends.mean(axis=0) / runs == pytest.approx(0.95, abs=tolerance)
    assert all(planted.mean(axis=0) / runs < 0.95 - tolerance)
