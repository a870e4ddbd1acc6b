"""The rules by which attacks on peers are judged: each must be able to say "fell" and "held"."""

from __future__ import annotations

import json
import math
import random
import secrets
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from bench import attacks
from bench.peers import attacking, attacking_noise
from bench.peers.attacking import FELL, HELD, OUT, PLAIN, TOTAL, Finding
from bench.peers.environments import PINS

DRAWS = 4000


def in_floating_point(value):
    return (value + np.random.default_rng(1).laplace(size=DRAWS)).tolist()


def on_the_integers(value):
    return (value + np.random.default_rng(int(value)).geometric(0.5, DRAWS) - 1.0).tolist()


def spread_out(value):
    """Two-sided geometric, which is ε-DP at ε = 1."""
    chance = np.random.default_rng(7 + int(value))
    return (value + chance.geometric(1 - math.exp(-1), DRAWS) - chance.geometric(1 - math.exp(-1), DRAWS)).tolist()


def test_float_noise_falls_to_the_precision_attack_and_integer_noise_does_not():
    found = attacking_noise.precision({"good": spread_out, "float": in_floating_point})
    assert (found.verdict, found.figure.split(":")[0]) == (FELL, "float")
    assert attacking_noise.precision({"good": spread_out}).verdict == HELD


def test_an_event_of_one_side_only_is_seen_on_the_integers_too():
    found = attacking_noise.precision({"one-sided": on_the_integers})
    assert found.verdict == FELL and "exactly 0" in found.figure


def test_the_tail_is_that_of_a_binomial():
    for least, tries in ((40, 40), (75, 100), (731, 1000), (900, 1000)):
        assert attacking_noise._log_tail(least, tries, 0.7) == pytest.approx(
            stats.binom.logsf(least - 1, tries, 0.7), rel=1e-6
        )


def test_the_correlation_is_spearman_s():
    chance = np.random.default_rng(3)
    one, other = chance.integers(0, 20, 500).tolist(), chance.normal(size=500).tolist()
    assert attacking_noise.correlation(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert attacking_noise.correlation(one, [1.0] * 500) == 0


@pytest.mark.parametrize(("grows", "verdict"), [(True, FELL), (False, HELD)])
def test_a_sampler_whose_time_grows_with_its_noise_falls(monkeypatch, grows, verdict):
    """On a clock that goes on by what a draw is said to take."""
    now, chance = [0], random.Random(5)
    monkeypatch.setattr(time, "thread_time_ns", lambda: now[0])
    monkeypatch.setattr(attacking_noise, "DRAWS", DRAWS)

    def draw():
        noise = chance.expovariate(1)
        now[0] += 1000 + chance.randrange(500) + (int(100 * noise) if grows else 0)
        return noise

    assert attacking_noise.timing({"it": draw}).verdict == verdict


def test_a_question_that_fails_only_with_the_victim_falls():
    questions = attacking.faulting("t")
    found = attacking.data_errors(questions, lambda question, victim: "Oops" if victim and "SQRT" in question else "")
    assert found == Finding(FELL, "SQRT(x - 9) → Oops, only with the victim", "2 of 16 questions tell")
    assert attacking.data_errors(questions, lambda *_: "Refused").verdict == HELD


def test_failures_that_cost_less_than_answers_fall():
    paid, free = (lambda: ("Error", 1.0)), (lambda: ("Error", 0.5))
    assert attacking.failures({"a": paid}, 1.0).verdict == HELD
    assert attacking.failures({"a": paid, "b": free}, 1.0).verdict == FELL
    assert attacking.failures({"a": lambda: ("", 1.0)}, 1.0).verdict == OUT


def answered(moved):
    """A system that answers with these in place of special values."""
    return lambda value, aggregate: 0.5 if value == PLAIN else moved


def test_special_values_must_give_finite_answers_that_move_little():
    assert attacking.special_values(answered(0.501)).verdict == HELD
    for moved in (math.nan, math.inf, 3.0, None):
        assert attacking.special_values(answered(moved)).verdict == FELL

    def failing(value, aggregate):
        if value == "NULL":
            raise ValueError
        return 0.5

    assert attacking.special_values(failing).verdict == FELL
    assert attacking.special_values(lambda *_: 1 / 0).verdict == OUT


def priced(epsilon, *, strict):
    if strict and (isinstance(epsilon, (str, bool)) or not 0 < epsilon < math.inf):
        raise ValueError
    if not isinstance(epsilon, float) or not 1e-300 < epsilon < math.inf:
        return TOTAL
    return TOTAL + random.expovariate(1) / epsilon


def test_an_answer_without_noise_at_a_bad_epsilon_falls():
    assert attacking.bad_epsilon(lambda epsilon: priced(epsilon, strict=False)).verdict == FELL
    assert attacking.bad_epsilon(lambda epsilon: 1 / 0).verdict == OUT

    def sound(epsilon):
        if epsilon == 1e-320:
            raise OverflowError
        return priced(epsilon, strict=True)

    assert attacking.bad_epsilon(sound).verdict == HELD


def test_an_answer_at_a_bad_delta_falls():
    def strict(delta):
        if not 0 <= delta < 1:
            raise ValueError
        return TOTAL

    assert attacking.bad_delta(strict).verdict == HELD
    assert attacking.bad_delta(lambda delta: TOTAL) == Finding(
        FELL, "δ = -1: 500; δ = nan: 500; δ = 1: 500; δ = 2: 500", "4 of 4 answered"
    )


def test_a_session_that_forgets_what_was_spent_falls():
    def yes():
        return True

    def no():
        return False

    assert attacking.fresh_budget(yes, no, {"again": no}).verdict == HELD
    assert attacking.fresh_budget(yes, no, {"again": no, "anew": yes}).verdict == FELL
    assert attacking.fresh_budget(yes, yes, {}).verdict == FELL
    assert attacking.fresh_budget(no, no, {}).verdict == OUT


def test_noise_that_a_fork_repeats_falls():
    repeated = random.Random(9)
    assert attacking_noise.forked(lambda: [repeated.random() for _ in range(5)]).verdict == FELL
    assert attacking_noise.forked(lambda: [float(secrets.randbits(50)) for _ in range(5)]).verdict == HELD


def test_a_value_at_the_end_of_a_range_is_no_repeated_noise():
    assert attacking_noise.forked(lambda: [9.0, 9.0, float(secrets.randbits(50))]).verdict == HELD


def test_the_worst_of_several_ways_counts():
    held, fell = Finding(HELD, "fine"), Finding(FELL, "not fine", "1")
    assert attacking.worst({"a": held, "b": fell}) == Finding(FELL, "b: not fine", "b: 1")
    assert attacking.worst({"a": held, "b": held}).why == "a, b: fine"


# --- the matrix


def test_every_system_has_a_file_and_all_attacks():
    folder = Path(attacks.__file__).parent / "peers"
    for name, (own, _) in attacks.SYSTEMS.items():
        text = (folder / f"attack_{name}.py").read_text(encoding="utf-8")
        assert all(f'"{attack}": ' in text for attack in attacking.ATTACKS)
        assert not own or own in PINS


def test_an_attack_on_ours_runs_through_the_same_door(tmp_path):
    cell = attacks.system("dalenius", ["H13"], tmp_path)["H13"]
    assert (cell.verdict, cell.figure) == (HELD, "0 of 4 answered")


def test_what_does_not_run_or_install_is_said(monkeypatch, tmp_path):
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho 'ImportError: no such thing' >&2\nexit 1\n")
    failing.chmod(0o755)
    assert attacks.attacked("opendp", "H1", failing) == attacks.Cell("not run", "ImportError: no such thing")
    failing.write_text("#!/bin/sh\nexec sleep 5\n")
    monkeypatch.setattr(attacks, "SECONDS", 0.1)
    assert attacks.attacked("opendp", "H1", failing).why == "not done after 0.1 s"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    cells = attacks.system("opendp", ["H1", "H3"], tmp_path)
    assert {each.verdict for each in cells.values()} == {"not run"}
    assert cells["H1"].why.startswith("not installable here (")


FOUND = {
    "dalenius": {"H1": attacks.Cell(HELD, "fine", "0 of 1", 1.0, {"duckdb": "2"})},
    "opendp": {"H1": attacks.Cell(FELL, "a | b", "1 of 1")},
}


def test_the_matrix_shows_verdicts_reasons_and_figures():
    text = attacks.matrix(FOUND, ["H1"]) + attacks.reasons(FOUND)
    assert "| | dalenius | opendp |\n|---|---|---|\n| H1 precision | held | **fell** |" in text
    assert "**dalenius** (duckdb 2): 1 held, 0 fell" in text
    assert "- H1 fell: a \\| b (1 of 1)" in text
    found = json.loads(json.dumps(attacks.as_json(FOUND)))
    assert found["systems"]["opendp"]["H1"]["verdict"] == FELL


def test_results_are_written_in_place_of_the_last_ones(tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text("# Results\n\nothers\n", encoding="utf-8")
    attacks.written(page, "old")
    page.write_text(page.read_text(encoding="utf-8") + "\n## More\n", encoding="utf-8")
    attacks.written(page, "new")
    text = page.read_text(encoding="utf-8")
    assert "old" not in text and text.count("new") == 1
    assert text.startswith("# Results\n\nothers\n\n") and text.endswith("-->\n\n## More\n")
