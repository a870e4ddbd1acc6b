"""Attacks break what is naive, in as many questions as the theory says, and end in front of our curator."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

from dalenius.audit.attacks import NAMES, attack_named
from dalenius.audit.attacks.attack import Lab
from dalenius.audit.attacks.counterexamples import counterexamples
from dalenius.audit.attacks.exhaustive import consistent_table
from dalenius.audit.attacks.posterior import log_odds, median_posterior, probability
from dalenius.audit.attacks.reconstruction import by_least_squares, by_linear_programming
from dalenius.audit.lab import TARGETS, Settings, run
from dalenius.audit.targets.naive import Noisy, Plain, Sticky
from dalenius.audit.targets.scene import LEAST, VICTIM, Scene, made_up
from dalenius.audit.targets.target import Noise
from dalenius.errors import InputError

LONG = os.environ.get("DALENIUS_LONG") == "1"


def chance(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", ["differencing", "intersection"])
@pytest.mark.parametrize("seed", range(10))
def test_two_questions_are_enough_against_a_rule_about_sizes(name, seed):
    finding = attack_named(name).run(Lab(Plain(made_up(200, chance(seed))), chance(seed)))
    assert finding.broke and finding.asked == 2


def test_other_words_defeat_noise_that_sticks_to_the_question():
    """Intersection is right in 19 of 20; a wrong certainty of 1% each makes fewer than 15 rarer than 1e-6."""
    found = [attack_named("intersection").run(Lab(Sticky(made_up(200, c), c), c)) for c in map(chance, range(20))]
    assert sum(each.broke for each in found) >= 15
    assert max(each.asked for each in found) <= 400  # 200 rounds of two questions


@pytest.mark.parametrize("noise", [Noise.LAPLACE, Noise.GAUSSIAN])
def test_the_posterior_follows_its_closed_form(noise):
    """The interval of the median of 4,001 runs (order statistics, 1e-6) holds the closed form, after every question."""
    runs, questions = 4001, 12
    coins = chance(7)
    drawn = coins.laplace(1, 1, (runs, questions)) if noise is Noise.LAPLACE else coins.normal(1, 1, (runs, questions))
    odds = np.cumsum([[log_odds(float(y), noise, 1.0) for y in row] for row in drawn], axis=1)
    low, high = (int(stats.binom.ppf(p, runs, 0.5)) for p in (5e-7, 1 - 5e-7))
    expected = median_posterior(questions, 1.0, noise)
    for at in range(questions):
        ordered = np.sort(odds[:, at])
        # Laplace: values pile up at the ends, and the median of an even split is anything between two of them.
        assert probability(ordered[low]) - 2e-3 <= expected[at] <= probability(ordered[high]) + 2e-3
    if noise is Noise.LAPLACE:
        assert expected[9] > 0.95


def test_averaging_gets_there_in_ten_questions():
    posteriors = []
    for seed in range(200):
        coins = chance(seed)
        scene = made_up(60, coins)
        finding = attack_named("averaging").run(Lab(Noisy(scene, coins, epsilon=1.0), coins, rounds=10))
        given = finding.numbers["posterior"]
        posteriors.append(given if scene.secret[VICTIM] else 1 - given)
    assert np.median(posteriors) > 0.95


@pytest.mark.parametrize(("noise", "least", "most"), [(0.1, 0.95, 1.0), (3.0, 0.0, 0.6)])
def test_reconstruction_depends_on_the_square_root_of_n(noise, least, most):
    size = 1000
    coins = chance(3)
    secret = coins.random(size) < 0.5
    design = (coins.random((2 * size, size)) < 0.5).astype(float)
    answers = design @ secret + coins.normal(0, noise * np.sqrt(size), 2 * size)
    right = float((by_least_squares(design, answers) == secret).mean())
    assert least <= right <= most


def test_linear_programming_reconstructs_too():
    size = 120
    coins = chance(4)
    secret = coins.random(size) < 0.5
    design = (coins.random((3 * size, size)) < 0.5).astype(float)
    answers = design @ secret + coins.normal(0, 0.1 * np.sqrt(size), 3 * size)
    assert (by_linear_programming(design, answers) == secret).mean() >= 0.95


def test_any_consistent_table_is_wrong_in_few_places():
    """Dinur and Nissim: at most 4En bits, on 100 random tables with random errors up to En."""
    size = 8
    for seed in range(100):
        coins = chance(seed)
        truth = int(coins.integers(0, 2**size))
        error = float(coins.choice([0.5, 1.0, 1.5]))
        exact = np.bitwise_count(np.arange(2**size) & truth)
        answers = exact + coins.uniform(-error, error, 2**size)
        found = consistent_table(answers, error, size)
        assert found is not None
        assert (found ^ truth).bit_count() <= 4 * error


@pytest.mark.parametrize("name", NAMES)
def test_our_curator_holds(name):
    """An attacker who is 99% sure is right by luck in e/(1 + e) of the tries at most, and hardly ever that sure."""
    settings = Settings(made_up(60, chance(11)), total=1.0, epsilon=0.25, seed=5)
    finding = run(name, "dalenius", settings)
    assert not finding.broke
    assert finding.price is not None and finding.price <= 1.0
    assert finding.ended or name in {"error-oracle", "rare-key", "race", "timing"}


@pytest.mark.parametrize("target", ["plain", "noisy"])
@pytest.mark.parametrize("name", [each for each in NAMES if each != "overlapping-sums"])
def test_naive_targets_fall(name, target):
    if target not in attack_named(name).against:
        return
    scene = made_up(200, chance(2), share=0.5)
    scene.secret[VICTIM] = True  # whose word is listed
    finding = run(name, target, Settings(scene, seed=8))
    assert finding.broke, finding.learned


def test_counterexamples_fail_as_often_as_they_should():
    """Binomial, 1e-6 each."""
    for each in counterexamples(chance(1), trials=2000):
        if 0 < each.expected < 1:
            half = each.trials // 2
            low, high = (stats.binom.ppf(p, half, each.expected) / half for p in (5e-7, 1 - 5e-7))
            assert low <= each.seen <= high
        else:
            assert each.seen == pytest.approx(each.expected)


def test_what_is_not_there_is_named():
    with pytest.raises(InputError, match="no attack 'averagin'") as error:
        attack_named("averagin")
    assert "averaging" in error.value.fix
    with pytest.raises(InputError, match="no target 'nois'"):
        run("averaging", "nois", Settings(made_up(50, chance())))
    with pytest.raises(InputError, match="nothing to say"):
        run("race", "plain", Settings(made_up(50, chance())))
    with pytest.raises(InputError, match=f"needs {LEAST}"):
        Scene(np.zeros(3, dtype=bool), np.zeros(3, dtype=np.int64), 1)
    assert set(TARGETS) == {"plain", "noisy", "sticky", "dalenius"}
