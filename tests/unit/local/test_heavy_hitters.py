"""Frequent texts that nobody listed: they are found from the stated share on, and what nobody holds is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dalenius.errors import InputError
from dalenius.local.estimators.heavy_hitters import PrefixPlan, PrefixSearch, search
from dalenius.samples.keyboards import NEW_WORD, spread, typed

ALARM = 1e-7


def test_a_text_of_the_smallest_share_is_found_as_often_as_promised(rounds: Callable[[int], int]) -> None:
    """With power 95%: so few finds, or so many runs in which something is found that nobody holds, have chance 1e-7."""
    plan = PrefixPlan(4.0, length=5, symbols=b"abc", keep=12, step=2)
    people, runs = 6000, max(60, rounds(600))
    share = plan.smallest(people)
    rest = [f"{a}{b}{c}{d}" for a in "ab" for b in "abc" for c in "abc" for d in "abc"]  # many, each below it
    held = round(share * people)
    texts = ["cacb"] * held + [rest[at % len(rest)] for at in range(people - held)]
    assert (people - held) / people / len(rest) < share
    hits, false, shares = 0, 0, []
    for _ in range(runs):
        found = search(plan, texts)
        mine = [each for each in found if each.text == "cacb" and each.whole]
        hits += len(mine)
        shares += [(each.share - share) / each.error for each in mine]
        false += any(each.text not in rest and each.text != "cacb" for each in found)
    assert stats.binom.cdf(hits, runs, 0.95) > ALARM
    assert stats.binom.sf(false - 1, runs, plan.level) > ALARM
    assert abs(np.mean(shares)) < 0.6  # what is found is, for being so, a little high


def test_less_than_the_smallest_share_is_mostly_missed() -> None:
    plan = PrefixPlan(4.0, length=5, symbols=b"abc", keep=12, step=2)
    held = round(plan.smallest(6000) * 6000 / 3)
    texts = ["cacb"] * held + ["b" * (1 + at % 4) + "d" for at in range(6000 - held)]
    assert sum(any(each.text == "cacb" for each in search(plan, texts)) for _ in range(20)) < 10


@pytest.mark.parametrize("step", [1, 2, 3])
def test_texts_of_all_lengths_are_found_and_long_ones_as_beginnings(step: int) -> None:
    plan = PrefixPlan(8.0, length=6, symbols=b"abc", keep=10, step=step, level=1e-7)
    texts = ["a", "ab", "abc", "abca", "cbacbacba"] * 5000
    found = {each.text: each for each in search(plan, texts)}
    assert set(found) == {"a", "ab", "abc", "abca", "cbacba"}
    assert [text for text in found if not found[text].whole] == ["cbacba"]
    assert all(abs(each.share - 0.2) < each.margin(1 - 1e-7) for each in found.values())


def test_any_text_is_found_by_its_bytes() -> None:
    plan = PrefixPlan(8.0, length=6, symbols=bytes(range(1, 256)), keep=4, step=1, level=1e-7)
    found = search(plan, ["höß"] * 9000 + ["é\0"] * 9000)
    assert [(each.text, each.whole) for each in found] == [("höß", True)]  # and a byte 0 is no end


def test_what_a_device_says_is_its_place_or_none() -> None:
    plan = PrefixPlan(1.0, length=4, symbols=b"ab", step=2)
    candidates = PrefixSearch(plan).candidates
    assert candidates == (b"\0\0", b"a\0", b"aa", b"ab", b"b\0", b"ba", b"bb")
    assert plan.places(["a", "abba", "", "c", "ac", "a\0"], candidates).tolist() == [1, 3, 0, 7, 7, 7]
    assert set(plan.draw_rounds(200).tolist()) == {0, 1}


def test_a_new_word_is_seen_when_it_has_spread() -> None:
    plan = PrefixPlan(3.0, length=14, keep=24)
    early, late = search(plan, typed(1, 60_000)), search(plan, typed(12, 60_000))
    assert NEW_WORD not in {each.text for each in early}
    (mine,) = [each for each in late if each.text == NEW_WORD]
    assert spread(12) > 1.5 * plan.smallest(60_000)
    assert abs(mine.share - spread(12)) < mine.margin(1 - 1e-6)


def test_rounds_are_taken_in_order() -> None:
    plan = PrefixPlan(2.0, length=4, symbols=b"ab", keep=3, step=2)
    collector = PrefixSearch(plan)
    other = plan.oracle(3)
    with pytest.raises(InputError, match="round that is open"):
        collector.take(other.fold(other.encode([0, 1])))
    collector.take(collector.oracle.fold(collector.oracle.encode([])))  # nobody reported
    assert collector.candidates == () and collector.found == []


def test_bad_plans_are_refused() -> None:
    for wrong in (
        {"epsilon": 0.0}, {"length": 0}, {"symbols": b""}, {"symbols": b"\0a"}, {"step": 0}, {"step": 4}, {"keep": 0},
        {"level": 0.0}, {"level": 1.0},
    ):  # fmt: skip
        with pytest.raises(InputError):
            PrefixPlan(**({"epsilon": 1.0, "keep": 32} | wrong))
    for people, power in ((1, 0.95), (1000, 1.0)):
        with pytest.raises(InputError):
            PrefixPlan(1.0).smallest(people, power)
