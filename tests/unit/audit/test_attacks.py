"""Attacks break what is naive, in as many questions as the theory says, and end in front of our curator."""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np
import pytest
from scipy import stats

from dalenius.audit.attacks import NAMES, attack_named
from dalenius.audit.attacks.attack import Lab
from dalenius.audit.attacks.counterexamples import counterexamples
from dalenius.audit.attacks.exhaustive import consistent_table
from dalenius.audit.attacks.membership import roc
from dalenius.audit.attacks.posterior import log_odds, log_odds_of_difference, median_posterior, probability
from dalenius.audit.attacks.reconstruction import by_least_squares, by_linear_programming
from dalenius.audit.lab import TARGETS, Settings, by_noise, run
from dalenius.audit.targets.curators import EVE, Curated, InProcess, protect
from dalenius.audit.targets.naive import Noisy, Plain, Sticky
from dalenius.audit.targets.questions import People, Question, Secret
from dalenius.audit.targets.remote import Columns
from dalenius.audit.targets.scene import LEAST, VICTIM, Scene, made_up
from dalenius.audit.targets.target import Answer, Noise, TargetRefusal
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


@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.0, 3.0)])
def test_whoever_is_so_sure_by_a_difference_is_right_so_often(scales):
    """Calibration: the mean of what is believed is the share that is so (z below 5, about 1e-6)."""
    coins, trials = chance(5), 20_000
    bits = coins.random(trials) < 0.5
    drawn = bits + coins.laplace(0, scales[0], trials) - coins.laplace(0, scales[1], trials)
    believed = np.array([probability(log_odds_of_difference(float(y), Noise.LAPLACE, *scales)) for y in drawn])
    for low, high in ((0.0, 0.45), (0.45, 0.55), (0.55, 1.0)):
        here = (believed > low) & (believed <= high)
        z = (believed[here] - bits[here]).sum() / np.sqrt((believed[here] * (1 - believed[here])).sum())
        assert here.sum() > 100 and abs(z) < 5


def test_gaussian_differences_add_up():
    assert log_odds_of_difference(2.0, Noise.GAUSSIAN, 3.0, 4.0) == pytest.approx(log_odds(2.0, Noise.GAUSSIAN, 5.0))


def test_people_of_one_score_are_one_step_of_the_curve():
    false, true = roc(np.array([1.0, 1.0, 0.0, 0.0]), np.array([True, False, True, False]))
    assert list(false) == list(true) == [0.0, 0.5, 1.0]


def test_a_lucky_guess_is_no_break(monkeypatch):
    """The truth itself, by chance, within an error of many times the largest amount."""
    scene = made_up(40, chance(1))
    target = Plain(scene)
    monkeypatch.setattr(
        Plain, "released", lambda _, question: Answer(question.truth(scene), Noise.GAUSSIAN, 10.0 * scene.most)
    )
    finding = attack_named("overlapping-sums").run(Lab(target, chance()))
    assert finding.numbers["error"] == 0 and finding.numbers["margin"] > scene.most / 10 and not finding.broke


def test_what_everybody_has_is_no_reconstruction():
    scene = made_up(100, chance(1), share=0.0)
    finding = attack_named("reconstruction").run(Lab(Noisy(scene, chance(2), scale=0.1), chance(2)))
    assert finding.numbers["right"] > 0.9 and not finding.broke


def test_colluders_questions_and_prices_are_those_of_both():
    finding = run("collusion", "noisy", Settings(made_up(40, chance()), seed=1))
    assert finding.asked == 22 and finding.price == pytest.approx(2.0)


def test_the_curve_by_noise_goes_down_to_guessing():
    drawn = by_noise("reconstruction", Settings(made_up(100, chance(3)), seed=3))
    assert drawn is not None
    shares = drawn.curves[0].y
    assert shares[0] > 0.95 and shares[-1] < 0.7
    assert by_noise("race", Settings(made_up(40, chance()))) is None


def test_answers_that_were_paid_for_before_are_no_race_won():
    """Other attacks had asked the race's questions, and a server that showed them again was said to have fallen."""
    with InProcess(made_up(40, chance()), total=1.0, epsilon=0.34) as target:
        for number in range(8):
            with suppress(TargetRefusal):
                target.ask(Question((People((39 - number,), named=False), Secret())))
        target._epsilon = 0.9 * max(each.remaining_epsilon for each in target.balances())
        for seed in (1, 1):
            assert not attack_named("race").run(Lab(target, chance(seed))).broke


@pytest.mark.parametrize("name", ["timing", "overlapping-sums"])
def test_a_table_without_words_is_attacked_all_the_same(name):
    """At a server there are none: the clock was never looked at there, and the server had "held"."""
    with InProcess(made_up(40, chance()), total=1.0, epsilon=0.3) as whole:
        table = Columns("(person)", "secret", "amount", "").read_from("people")
        target = Curated(whole.scene, whole.analyst, epsilon=0.3, table=table)
        finding = attack_named(name).run(Lab(target, chance()))
    assert "does not cover" in finding.ended and finding.price and finding.price > 0.5


def test_the_noise_of_a_pure_budget_is_known_for_what_it_is(tmp_path):
    """Taken for Gaussian noise, one far answer made an attacker 99.7% sure, where ε = 3 allows 95%."""
    curator = protect(made_up(40, chance()), tmp_path, epsilon=3.0, accounting="pure")
    target = Curated(made_up(40, chance()), curator.analyst(EVE), epsilon=3.0)
    answer = target.ask(Question((Secret(),)))
    assert answer.noise is Noise.LAPLACE and answer.scale == pytest.approx(1 / 3, abs=0.05)
    assert probability(abs(log_odds(1e9, answer.noise, answer.scale))) < 0.96
    curator.ledger.database.close()
