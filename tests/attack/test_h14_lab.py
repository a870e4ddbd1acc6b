"""H14 by the lab's own attackers: with ε = 1 in all, whoever guesses one bit is hardly better than the theorem allows.

The membership game: a fair coin decides the victim's secret; the attacker asks until the budget ends and guesses. Its
advantage, P(right) − P(wrong), is at most (e^ε − 1 + 2δ)/(e^ε + 1) (Humphries et al. 2023), for a bit that makes a
difference of one person to every answer. The number of right guesses is compared with the binomial law of the largest
chance that is allowed, at a false-alarm rate of 1e-6 for each attack.
"""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.attack.served import QUICK
from tests.serving import serving

from dalenius.audit.attacks import NAMES, attack_named
from dalenius.audit.attacks.attack import Finding, Lab
from dalenius.audit.lab import Settings, run
from dalenius.audit.targets.curators import EVE, Curated, protect
from dalenius.audit.targets.remote import Remote
from dalenius.audit.targets.scene import VICTIM, Scene, made_up
from dalenius.curator import Curator
from dalenius.remote import connect

LONG = os.environ.get("DALENIUS_LONG") == "1"
TRIALS, REMOTE_TRIALS, RUNS = (2000, 100, 20) if LONG else (50, 5, 1)
EPSILON, DELTA = 1.0, 1e-6
FALSE_ALARM = 1e-6
PRICES = {"averaging": 0.999, "differencing": 0.6, "membership": 0.5}


def most_right(trials: int) -> int:
    advantage = (math.exp(EPSILON) - 1 + 2 * DELTA) / (math.exp(EPSILON) + 1)
    return int(stats.binom.isf(FALSE_ALARM, trials, (1 + advantage) / 2))


def guessed(finding: Finding) -> bool:
    numbers = finding.numbers
    return bool(numbers["victim"]) if "victim" in numbers else numbers.get("posterior", 0.5) > 0.5


def scenes(size: int = 40) -> dict[bool, Scene]:
    """Two tables that differ in the victim's bit."""
    scene = made_up(size, np.random.default_rng(0))
    found = {}
    for bit in (False, True):
        secret = scene.secret.copy()
        secret[VICTIM] = bit
        found[bit] = Scene(secret, scene.amount, scene.most)
    return found


@pytest.fixture(scope="module")
def homes(tmp_path_factory) -> dict[bool, Path]:
    found = {}
    for bit, scene in scenes().items():
        folder = tmp_path_factory.mktemp("lab")
        protect(scene, folder, epsilon=EPSILON, delta=DELTA).ledger.database.close()
        found[bit] = folder / "home"
    return found


@pytest.mark.parametrize("name", PRICES)
def test_the_advantage_over_one_person_stays_within_the_theorem(name, homes, tmp_path):
    coins, right = np.random.default_rng(), 0
    for number in range(TRIALS):
        bit = bool(coins.random() < 0.5)
        home = tmp_path / str(number)
        shutil.copytree(homes[bit], home)  # a fresh budget, which no analyst could have
        curator = Curator(home)
        target = Curated(scenes()[bit], curator.analyst(EVE), epsilon=PRICES[name])
        finding = attack_named(name).run(Lab(target, coins))
        assert finding.price is not None and finding.price <= EPSILON
        right += guessed(finding) == bit
        curator.ledger.database.close()
        shutil.rmtree(home)
    assert right <= most_right(TRIALS)


@pytest.mark.parametrize("name", NAMES)
def test_every_attack_ends_and_breaks_nothing(name):
    """20 runs in the long form. That an attacker is 99% sure and right has a chance of far below 1e-6 at ε = 1."""
    for number in range(RUNS):
        scene = made_up(40, np.random.default_rng())
        finding = run(name, "dalenius", Settings(scene, total=EPSILON, epsilon=0.3))
        assert finding.price is not None and finding.price <= EPSILON
        assert not finding.broke, (number, finding)


@pytest.mark.integration
def test_over_http_it_stays_within_the_theorem_too(tmp_path):
    """One table, and one budget, for each trial."""
    coins, bits = np.random.default_rng(), []
    for number in range(REMOTE_TRIALS):
        bits.append(bool(coins.random() < 0.5))
        more = "[time]\nanswer = 0.2\n"
        scene = scenes()[bits[-1]]
        scene.amount[-1] = number  # the same people again would get no budget
        curator = protect(scene, tmp_path, epsilon=EPSILON, delta=DELTA, name=f"t{number}", more=more)
        curator.ledger.database.close()
    right = 0
    with (
        serving(tmp_path / "home", config=QUICK) as server,
        connect(server.url, server.token("analyst", EVE, trusted=True)) as analyst,
    ):
        for number, bit in enumerate(bits):
            name = list(PRICES)[number % 2]
            target = Remote(scenes()[bit], analyst, epsilon=PRICES[name], table=f"t{number}")
            finding = attack_named(name).run(Lab(target, coins))
            assert finding.ended and not finding.broke
            right += guessed(finding) == bit
    assert right <= most_right(REMOTE_TRIALS)
