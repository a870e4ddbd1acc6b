"""No whole release shows more of one unit than it is charged for; a release that does is caught.

The same noisy transcript runs on a made-up table and on its neighbour (`audit.transcripts`).
"""

from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from tests.conftest import LONG

from dalenius.audit import fuzz as fuzzer
from dalenius.audit.fuzz import fuzz
from dalenius.audit.transcripts.loss import Loss, step_loss, transcript_loss
from dalenius.audit.transcripts.sides import TranscriptSides
from dalenius.audit.transcripts.tape import OtherTranscriptError, Step, Tape, run_taped
from dalenius.mechanisms import DiscreteGaussian, KeySelection, Laplace
from dalenius.mechanisms.discrete_gaussian import widened
from dalenius.mechanisms.key_selection import WEIGHT
from dalenius.queries.rules import price

SEED = 1977
CASES, JOINED = (20_000, 5_000) if LONG else (16, 3)
NEAR = 8


@pytest.mark.parametrize(("joins", "cases"), [(False, CASES), (True, JOINED)], ids=["one table", "several"])
def test_no_release_shows_more_than_it_is_charged(joins, cases):
    report = fuzz(cases=cases, seed=SEED, joins=joins, sides=TranscriptSides)
    assert not report.violations, report.violations[0]
    assert report.cases == cases and report.compared >= 0.6 * cases
    if not joins:
        assert report.drawn["reached"] > 0.02 * cases  # some show all that they are charged for
    if LONG:
        sets = () if joins else ("sets",)  # of several tables nobody asks for grouping sets
        for drawn in ("found", "search", *sets, "l1", "l2", "add-remove", "substitute"):
            assert report.drawn[drawn] > 0.01 * cases, drawn


# --- planted: each alone must be caught, by the number of the first pair of tables that shows it


def half_the_variance(monkeypatch):
    """Histograms and all else with the noise of twice the ρ that is charged."""
    monkeypatch.setattr(price, "widened", lambda value: widened(value / 2))


def half_the_scale(monkeypatch):
    monkeypatch.setattr(price, "Laplace", lambda epsilon, *rest: Laplace(2 * epsilon, *rest))


def a_search_for_nothing(monkeypatch):
    """The histogram that limits are found from is not in the price."""
    search = price._search

    def cheap(plan, number, *, rho=None, epsilon=None):
        return search(plan, number, rho=rho and 40 * rho, epsilon=epsilon and 40 * epsilon)

    monkeypatch.setattr(price, "_search", cheap)


def a_low_threshold(monkeypatch):
    threshold = vars(KeySelection)["threshold"].func
    monkeypatch.setattr(KeySelection, "threshold", property(lambda self: threshold(self) - WEIGHT))


def a_selection_for_nothing(monkeypatch):
    monkeypatch.setattr(price, "KeySelection", lambda rho, *rest: KeySelection(50 * rho, *rest))


PLANTED = {
    half_the_variance: (1, "transcript"),
    half_the_scale: (2, "transcript"),
    a_search_for_nothing: (5, "transcript"),
    a_low_threshold: (1, "delta"),
    a_selection_for_nothing: (1, "transcript"),
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_release_that_shows_more_than_its_charge_is_caught(plant, monkeypatch):
    plant(monkeypatch)
    monkeypatch.setattr(fuzzer, "shrink", lambda made, _: made)
    start, kind = PLANTED[plant]
    report = fuzz(cases=NEAR, seed=SEED, start=start, sides=TranscriptSides)
    if not report.violations:  # should another generator draw other tables by now
        report = fuzz(cases=400, seed=SEED, sides=TranscriptSides)
    assert [each.kind for each in report.violations] == [kind]


# --- the parts


def test_losses_are_those_of_the_theorems():
    gaussian, laplace = DiscreteGaussian(50, 4, 2), Laplace(0.5, 3, 2)
    first = [Step(gaussian, (1, 2), None), Step(laplace, (5, 5), None)]
    second = [Step(gaussian, (3, 2), None), Step(laplace, (4, 7), None)]
    assert transcript_loss(first, second) == Loss(Fraction(4, 100), Fraction(3, 6))


def test_keys_of_one_side_cost_a_chance_and_the_others_a_distance():
    selection = KeySelection(rho=0.5, delta=1e-3, cap=4)
    lone = selection.weight(1)
    one = Step(selection, (lone, 10 * WEIGHT), None, (("a",), ("b",)), selection.threshold)
    other = Step(selection, (9 * WEIGHT,), None, (("b",),), selection.threshold)
    found = step_loss(one, other)
    assert found.rho <= Fraction(1, 2) and found.rho > Fraction(49, 100)
    assert 0 < found.delta <= 1e-3
    assert step_loss(replace(one, threshold=lone), replace(other, threshold=lone)).delta == 1.0


def released(tape, mechanism, *values):
    """What comes out for each."""
    found: list[Any] = []

    def work():
        found.extend(mechanism.release(each).value for each in values)

    run_taped(tape, work)
    return found


def test_on_the_neighbour_mechanisms_give_what_they_gave_before():
    mechanism, tape = Laplace(1.0, 1, 2), Tape(random=Random(1))
    (before,) = released(tape, mechanism, [10, 20])
    (after,) = released(Tape(earlier=tape.steps), mechanism, [11, 20])
    assert (after == before).all()
    for other, values in (
        (mechanism, ([11, 20], [11, 20])),
        (Laplace(2.0, 1, 2), ([11, 20],)),
        (Laplace(1.0, 1, 3), ([11, 20, 3],)),
    ):
        with pytest.raises(OtherTranscriptError):
            released(Tape(earlier=tape.steps), other, *values)


def test_a_tape_is_for_its_own_thread_and_leaves_nothing_behind():
    mechanism, before = Laplace(1.0), Laplace.release
    tape = Tape()

    def work():
        other = threading.Thread(target=mechanism.release, args=(7,))
        other.start()
        other.join()
        assert not tape.steps
        mechanism.release(7)
        assert len(tape.steps) == 1

    run_taped(tape, work)
    assert Laplace.release is before
    with pytest.raises(ZeroDivisionError):
        run_taped(Tape(), lambda: 1 / 0)
    assert Laplace.release is before


def test_a_curator_that_serves_meanwhile_adds_its_own_noise():
    """Many threads release while one replays: none of theirs is given again (by chance: 10⁻⁷)."""
    wide, tape = Laplace(1e-12), Tape()
    released(tape, wide, *[0] * 50)
    stop = threading.Event()
    others: list[int] = []

    def serve():
        while not stop.is_set() or not others:
            others.append(int(wide.release(0).value))

    threads = [threading.Thread(target=serve) for _ in range(3)]
    for each in threads:
        each.start()
    again = released(Tape(earlier=tape.steps), wide, *[0] * 50)
    stop.set()
    for each in threads:
        each.join()
    given = {int(step.given.value) for step in tape.steps}
    assert {int(each) for each in again} == given and not given & set(others)


def test_nothing_taped_goes_on_after_its_call():
    """Between the steps of a coroutine its thread serves others."""

    async def waits():
        pytest.fail("It ran.")

    before, going = Laplace.release, waits()
    with pytest.raises(TypeError):
        run_taped(Tape(), lambda: going)
    going.close()
    assert Laplace.release is before
