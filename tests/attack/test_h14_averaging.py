"""H14: averaging, differencing, intersection and reconstruction, each until the budget says no.

The reconstruction attacks guess n secret bits, one per unit, drawn fairly. Given the answers and all other bits, the
odds of one bit are within e^ε of even, so the number of right guesses is at most binomial(n, e^ε/(1 + e^ε)), up to 2nδ
in probability (Steinke, Nasr and Jagielski 2023, theorem 5.2). All questions count people whose bit is set: a bit that
is not set and a person who is not there give the same answers, so ε is that of adding or removing one person.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from tests.attack.hostile import integers_of, people, protected, state, until_refused

from dalenius.curator import Curator
from dalenius.errors import BudgetError

PEOPLE = 200
FALSE_ALARM = 1e-6
DELTA = 1e-12  # 2nδ is small beside the false-alarm rate
POLICY = """
[table]
name = "{name}"
source = "{source}"
unit = "user_id"
neighbors = "{neighbors}"
{more}
[budget]
epsilon = {epsilon}
delta = {delta}
accounting = "{accounting}"
{analysts}
[columns.bucket]
type = "integer"
bounds = [0, 199]
[columns.secret]
type = "boolean"
[contribution]
rows = 1
groups = 1
"""


def bits() -> np.ndarray[Any, Any]:
    """Fair and fresh at each run: the bound is about chance that the attacker does not know."""
    return np.random.default_rng().integers(0, 2, PEOPLE)


def curator_of(folder, secret, **more) -> Curator:
    ids = np.arange(PEOPLE)
    table = pa.table({"user_id": ids + 1000, "bucket": ids, "secret": secret.astype(bool)})
    return protected(folder, table, policy=POLICY, delta=DELTA, **more)


def most_right(epsilon: float) -> int:
    """More right guesses than this come by chance with probability below the false-alarm rate."""
    chance = math.exp(epsilon) / (1 + math.exp(epsilon))
    return int(stats.binom.isf(FALSE_ALARM - 2 * PEOPLE * DELTA, PEOPLE, chance))


def subset(number: int) -> np.ndarray[Any, Any]:
    """The attacker's own random subsets of the people."""
    return np.random.default_rng(number).integers(0, 2, PEOPLE).astype(bool)


def about(chosen: np.ndarray[Any, Any]) -> str:
    listed = ", ".join(map(str, np.flatnonzero(chosen)))
    return f"SELECT COUNT(*) FROM visits WHERE secret AND bucket IN ({listed})"


def solved(answers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Dinur and Nissim's attack: least squares (with a little weight on ½), then rounding."""
    design = np.array([subset(number) for number in range(len(answers))], dtype=float)
    right = design.T @ (answers - design.sum(axis=1) / 2)
    centred = np.linalg.solve(design.T @ design + 1e-3 * np.eye(PEOPLE), right)
    return (centred > 0).astype(int)


def within_budget(curator: Curator) -> None:
    ledger = curator.ledger
    for who in ("", "eve"):
        balance = ledger.balance("visits", who)
        assert balance.spent_guarantee.epsilon <= balance.epsilon
        assert balance.spent_guarantee.delta <= balance.budget.delta
    verify(curator)


def verify(curator: Curator) -> None:
    """The sum of all charges, added up here, is what the ledger says was spent."""
    charges = [entry.data for entry in curator.ledger.records(("charge",))]
    spent: Any = curator.ledger.balance("visits").spent
    if charges and charges[0]["rho"] is not None:
        assert math.fsum(each["rho"] for each in charges) == pytest.approx(spent.rho)
    else:
        assert math.fsum(each["epsilon"] for each in charges) == pytest.approx(spent.epsilon)


# --- reconstruction


@pytest.mark.parametrize(("accounting", "price"), [("pure", 0.02), ("zcdp", 0.1)])
def test_random_subset_counts_reconstruct_no_more_bits_than_the_budget_allows(tmp_path, accounting, price):
    secret = bits()
    curator = curator_of(tmp_path, secret, epsilon=1.0, accounting=accounting)
    questions = (about(subset(number)) for number in itertools.count())
    releases = until_refused(curator.analyst("eve"), questions, price)
    assert len(releases) >= 40
    within_budget(curator)
    answers = np.array([release.value for release in releases], dtype=float)
    assert (solved(answers) == secret).sum() <= most_right(1.0)


@pytest.mark.parametrize("accounting", ["pure", "zcdp"])
@pytest.mark.parametrize("times", [1, 10])
def test_histograms_of_all_people_reconstruct_no_more_bits_than_the_budget_allows(tmp_path, accounting, times):
    """The strongest attack: everybody's own cell, with all of the budget, at once or in noisy copies to average.

    Under pure accounting at once it reaches e^ε/(1 + e^ε) in the mean: there is no slack in the bound.
    """
    secret = bits()
    curator = curator_of(tmp_path, secret, epsilon=1.0, accounting=accounting)
    whole = curator.ledger.balance("visits").remaining_epsilon
    price = whole if times == 1 else whole / times if accounting == "pure" else whole / times**0.5 * 0.9
    # The same count in questions that are not the same, or the second would be the stored answer.
    questions = (
        f"SELECT bucket, COUNT(*) FROM visits WHERE secret AND bucket >= 0 - {number}.5 GROUP BY bucket"
        if number
        else "SELECT bucket, COUNT(*) FROM visits WHERE secret GROUP BY bucket"
        for number in itertools.count()
    )
    releases = until_refused(curator.analyst("eve"), questions, price)
    assert 1 <= len(releases) <= times + 3
    within_budget(curator)
    mean = np.mean([[row[1] for row in release.rows] for release in releases], axis=0)
    assert mean.shape == (PEOPLE,)
    assert ((mean > 0.5).astype(int) == secret).sum() <= most_right(1.0)


def test_the_same_attack_on_exact_answers_recovers_nearly_all_bits(tmp_path):
    """Teeth: without noise, 400 subset counts give more than 95% of the bits, and the bound above is broken."""
    secret = bits()
    curator = curator_of(tmp_path, secret)
    exact = np.array([secret[subset(number)].sum() for number in range(400)])
    for number in (0, 1, 399):  # these are what the engine computes, before noise
        assert integers_of(curator, about(subset(number))) == [[exact[number]]]
    right = (solved(exact.astype(float)) == secret).sum()
    assert right > 0.95 * PEOPLE
    assert right > most_right(1.0)


def test_the_bound_tells_a_budget_of_1_from_one_of_5(tmp_path):
    """Teeth: what an ε of 5 gives breaks the bound for 1.

    False alarm: binomial(200, 0.9933) at or below 178 has probability far below 10⁻⁶.
    """
    secret = bits()
    curator = curator_of(tmp_path, secret, epsilon=5.0, accounting="pure")
    question = "SELECT bucket, COUNT(*) FROM visits WHERE secret GROUP BY bucket"
    release = curator.analyst("eve").ask(question, epsilon=5.0)
    guessed = np.array([row[1] > 0.5 for row in release.rows])
    assert stats.binom.cdf(most_right(1.0), PEOPLE, math.exp(5) / (1 + math.exp(5))) < 1e-6
    assert most_right(1.0) < (guessed == secret).sum() <= most_right(5.0)


# --- averaging


def test_asking_again_averages_nothing_out(tmp_path):
    curator = protected(tmp_path, people(victim=True))
    eve = curator.analyst("eve")
    question = "SELECT region, COUNT(*) FROM visits GROUP BY region"
    first = eve.ask(question, epsilon=0.5)
    before = state(curator)
    for number in range(40):
        again = eve.ask(question + " " * number, epsilon=0.5 / (1 + number % 3))
        assert again.rows == first.rows and again.free and again.charge["epsilon"] == 0
    assert state(curator).spent == before.spent


def test_other_questions_with_the_same_truth_are_paid_each_time(tmp_path):
    """What cannot be seen to be the same is a new question: fresh noise, and a new charge."""
    curator = protected(tmp_path, people(victim=True), epsilon=1.0)
    eve = curator.analyst("eve")
    questions = (f"SELECT COUNT(*) FROM visits WHERE age * {number} > 0" for number in itertools.count(2))
    releases = until_refused(eve, questions, 0.2)
    assert not any(release.free for release in releases)
    assert len({release.value for release in releases}) > 1
    within_budget(curator)
    filter_ = curator.ledger.budget("visits").filter()
    assert len(releases) == math.floor(filter_.price(1.0).rho / filter_.price(0.2).rho + 1e-9)


@pytest.mark.parametrize("accounting", ["pure", "zcdp"])
def test_differencing_is_charged_for_both_sides_every_time(tmp_path, accounting):
    curator = protected(tmp_path, people(victim=True), epsilon=1.0, accounting=accounting)
    eve = curator.analyst("eve")
    everybody, others = "SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits WHERE note <> 'a rare word'"
    charges = []
    for question in (everybody, others, everybody, others):
        before = curator.ledger.balance("visits").charges
        eve.ask(question, epsilon=0.1)
        charges.append(curator.ledger.balance("visits").charges - before)
    assert charges == [1, 1, 0, 0]
    pairs = (f"{question} {word} age < {age}" for age in range(20, 90) for question, word in _sides(everybody, others))
    until_refused(eve, pairs, 0.1)
    within_budget(curator)


def _sides(everybody, others):
    return ((everybody, "WHERE"), (others, "AND"))


def test_intersections_are_charged_one_by_one(tmp_path):
    curator = protected(tmp_path, people(victim=True), epsilon=1.0)
    eve = curator.analyst("eve")
    parts = [
        "note = 'a rare word'",
        "age = 90",
        "region = 'west'",
        "amount > 4000",
        "smoker IS NULL",
        "day > '2025-12-01'",
    ]
    wanted = [
        f"SELECT COUNT(*) FROM visits WHERE {f' {word} '.join(some)}"
        for size in range(1, len(parts))
        for some in itertools.combinations(parts, size)
        for word in (("AND", "OR") if size > 1 else ("AND",))
    ]
    releases = until_refused(eve, iter(wanted), 0.15)
    assert 5 < len(releases) < len(wanted)
    assert curator.ledger.balance("visits").charges == len(releases)
    within_budget(curator)


def test_when_the_budget_is_gone_it_stays_gone(tmp_path):
    curator = protected(tmp_path, people(victim=True), epsilon=0.5)
    eve = curator.analyst("eve")
    eve.ask("SELECT COUNT(*) FROM visits", epsilon=0.5)
    for number in range(5):
        for price in (0.5, 1e-3, 1e-9):
            with pytest.raises(BudgetError) as refusal:
                eve.ask(f"SELECT COUNT(*) FROM visits WHERE age > {number + 20}", epsilon=price)
            assert refusal.value.exit_code == 4
    assert eve.ask("SELECT COUNT(*) FROM visits", epsilon=0.5).free
    within_budget(curator)
