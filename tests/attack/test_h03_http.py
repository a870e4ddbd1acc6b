"""H3 over HTTP: when an answer comes says nothing about its noise, neither at a fixed time nor as soon as it is ready.

If noise and times are independent, every order of the noise is as likely as any other, whatever the machine does to
the times. Spearman's rank correlation then has standard deviation 1/√(n−1) and tails no heavier than the normal law's:
5.3 of them are exceeded with probability below 1.2e-7.
"""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.attack.hostile import people, protected
from tests.attack.watched import Planted, planting, timed
from tests.serving import Server

pytestmark = pytest.mark.alone

ROWS = 480  # of the table: what the answer would be without noise
BATCHES = 5  # a planted leak may take so many times as many calls to be seen, on a busy machine
AT_ONCE = 6  # questions that wait for their time


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    more = "[time]\nanswer = 0.3\ncap = 10\nlate = 1000"  # what stalls on a busy machine suspends nobody
    return protected(tmp_path_factory.mktemp("h3"), people(victim=False), epsilon=1000.0, more=more).home


@pytest.fixture(scope="module")
def served(home):
    with planting(home) as found:
        yield found


class Asking:
    """New questions whose answers without noise are known: the noise of each answer, and the time it took."""

    def __init__(self, served: tuple[Server, Planted], series: int) -> None:
        (self.server, self.planted), self.series = served, series
        self.asked = 0
        self.noise: list[float] = []
        self.times: list[float] = []

    def more(self, calls: int, *, trusted: bool, **plant: Any) -> float:
        """Asks so often; the correlation of |noise| and time over all calls so far, in standard deviations."""
        self.planted(**plant)
        self.server.token("analyst", "eve", trusted=trusted)
        held = threading.local()

        def one(number: int) -> tuple[float, float] | None:
            if not hasattr(held, "client"):
                held.client = self.server.analyst("eve", trusted=trusted)
            sql = f"SELECT COUNT(*) FROM visits WHERE amount < {1000 + 200 * self.series + number / 100}"
            took, reply = timed(lambda: held.client.ask(sql, epsilon=0.1))
            if reply.status == 503 and reply.json["code"] == "engine.timeout":
                return None  # the machine stalled
            assert reply.status == 200 and not reply.json["free"], reply.content
            return abs(reply.json["rows"][0][0] - ROWS), took

        with ThreadPoolExecutor(1 if trusted else AT_ONCE) as pool:
            done = list(pool.map(one, range(self.asked, self.asked + calls)))
        self.asked += calls
        for each in done:
            if each is not None:
                self.noise.append(each[0])
                self.times.append(each[1])
        self.planted()
        assert np.median(self.noise) > 50  # so it is noise
        assert len(self.noise) >= 0.8 * self.asked
        found = abs(float(stats.spearmanr(self.noise, self.times).statistic))
        print(f"correlation {found:.3f} over {len(self.noise)} answers")
        return found * math.sqrt(len(self.noise) - 1)


@pytest.mark.parametrize("trusted", [False, True], ids=["fixed", "trusted"])
def test_the_time_of_an_answer_does_not_depend_on_its_noise(served, rounds, trusted):
    assert Asking(served, 1 + trusted).more(rounds(2000), trusted=trusted) < 5.3


@pytest.mark.quiet
def test_a_sampler_whose_time_grows_with_its_value_is_seen_where_answers_leave_at_once(served, rounds):
    asking, calls = Asking(served, 3), rounds(2000)
    assert any(asking.more(calls, trusted=True, grow=2e-5) >= 5.3 + BATCHES / 10 for _ in range(BATCHES))


def test_and_is_not_seen_where_they_leave_at_fixed_times(served, rounds):
    assert Asking(served, 4).more(rounds(2000), trusted=False, grow=2e-5) < 5.3
