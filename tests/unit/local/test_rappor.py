"""RAPPOR: its two losses by exact enumeration, and the bug that a popular client has."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.laws import follows_law

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local import chances, coins
from dalenius.local.hashing import fingerprints
from dalenius.local.randomisers.randomiser import Reports, Values
from dalenius.local.randomisers.rappor import KEY, Rappor

LN_9 = chances.stated(Fraction(9))
TEXTS = [f"text {number}" for number in range(25)]


class NeverClears(Rappor):
    """What a popular client does: it sets bits by chance, but a bit that the text sets stays set."""

    def _encode(self, values: Values, reports: Reports) -> None:
        cohorts = coins.uniform(self.cohorts, len(values))
        reports[:, 0] = cohorts
        wanted = coins.coins(self.flip, len(values) * self.bits).reshape(-1, self.bits).copy()
        np.put_along_axis(wanted, self.places(values, cohorts), values=True, axis=1)
        self._send(wanted, reports)


def worst(rappor: Rappor) -> Fraction:
    """The largest ratio of any report, over all pairs of texts."""
    found = Fraction(0)
    for cohort in range(rappor.cohorts):
        laws = [rappor.law(text, bytes([cohort])) for text in TEXTS]
        assert all(sum(law.values()) == 1 for law in laws)
        for report in laws[0]:
            each = [law[report] for law in laws]
            found = max(found, max(each) / min(each))
    return found


@pytest.mark.parametrize("epsilon", [0.1, 1.0, LN_9, 6.0])
@pytest.mark.parametrize(("bits", "hashes", "cohorts"), [(2, 1, 2), (5, 1, 2), (4, 2, 3), (6, 2, 2)])
def test_the_permanent_response_keeps_its_epsilon(epsilon: float, bits: int, hashes: int, cohorts: int) -> None:
    rappor = Rappor(epsilon, bits, hashes, cohorts)
    assert worst(rappor) == rappor.ratio == rappor.daily_ratio
    assert chances.within(rappor.ratio, epsilon)
    assert 0.99 * epsilon <= rappor.actual_epsilon <= epsilon


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.75), (0.0, 0.75), (0.1, 1.0)])
def test_one_report_costs_the_daily_epsilon_and_no_more_than_the_permanent_one(p: float, q: float) -> None:
    rappor = Rappor(3.0, bits=4, hashes=2, cohorts=3, p=p, q=q)
    assert worst(rappor) == rappor.daily_ratio < rappor.ratio
    assert rappor.daily_epsilon < rappor.actual_epsilon


def test_the_loss_is_of_the_bits_of_both_texts() -> None:
    """Erratum 16: 2h·ln, where half of it would be the loss of a single text's bits."""
    one, two = Rappor(LN_9, hashes=1), Rappor(2 * LN_9, bits=128, hashes=2)
    assert one.flip == 2**30 and one.ratio == 9  # f = ½
    assert two.flip in (2**30, 2**30 + 1) and two.ratio <= 81


def test_reports_follow_the_law_and_one_that_never_clears_a_bit_is_caught() -> None:
    for rappor in (Rappor(2.0, 4, 1, 2), Rappor(2.0, 4, 2, 2, p=0.5, q=0.75)):
        assert follows_law(rappor, "tea", 60_000)
        kept = rappor.permanent.encode(["tea"] * 60_000)
        assert (kept.tolist() != rappor.again(kept).tolist()) == (rappor.p > 0)
    assert not follows_law(NeverClears(2.0, 4, 1, 2), "tea", 60_000)
    assert not follows_law(NeverClears(2.0, 4, 2, 2, 0.5, 0.75), "tea", 60_000)


def test_reports_of_what_is_kept_follow_the_same_law() -> None:
    class Daily(Rappor):
        def _encode(self, values: Values, reports: Reports) -> None:
            reports[:] = self.again(self.permanent.encode(values))

    assert follows_law(Daily(2.0, 4, 1, 2, p=0.5, q=0.75), "tea", 60_000)


def test_a_tally_counts_bits_by_cohort() -> None:
    rappor = Rappor(LN_9, bits=13, cohorts=300)
    reports = rappor.encode(TEXTS * 40)
    assert reports.shape == (1000, 4)  # a cohort takes two bytes, and 13 bits two more
    tally = rappor.fold(reports[:1]) + rappor.fold(reports[1:])
    expected = np.zeros((300, 14), int)
    for row in reports.tolist():
        bits = row[2] | row[3] << 8
        expected[row[0] | row[1] << 8] += [*(bits >> at & 1 for at in range(13)), 1]
    assert tally.counts.tolist() == expected.tolist()


def test_hashes_are_as_they_are_specified() -> None:
    rappor = Rappor(LN_9, bits=100, hashes=2, cohorts=3)
    (value,) = fingerprints(["tea"], KEY).tolist()
    assert rappor.checked(["tea", "tea"]).tolist() == [value, value]
    assert rappor.checked([7, 2**40]).tolist() == [7, 2**40]
    a, b, c = map(int, rappor.seeds[2, 1])
    state = (a * (value % 2**32) + b * (value >> 32) + c) % 2**64
    assert rappor.places(rappor.checked(["tea"]), np.array([2]))[0, 1] == (state >> 32) * 100 >> 32
    known = [[15, 4], [88, 15], [35, 49]]  # what other languages must find, too
    assert [rappor.places(rappor.checked(["tea"]), np.array([at]))[0].tolist() for at in range(3)] == known


def test_what_cannot_be_is_refused() -> None:
    for wrong in (
        {"epsilon": 0.0}, {"epsilon": 1e-11}, {"epsilon": 50.0}, {"bits": 1}, {"hashes": 0}, {"cohorts": 0},
        {"bits": 3, "hashes": 2}, {"p": 0.75, "q": 0.75}, {"p": -0.1}, {"q": 1.5}, {"q": float("nan")},
    ):  # fmt: skip
        with pytest.raises(InputError):
            Rappor(**({"epsilon": 1.0} | wrong))
    rappor = Rappor(LN_9, bits=13, cohorts=3)
    for values in ([1.5], [-1], ["tea", 3.0], [["tea"]], np.array(["tea", 5], object)):
        with pytest.raises(InputError):
            rappor.encode(values)
    with pytest.raises(ReportInvalidError, match=r"Report 2 .*cohort.*byte 3\)"):
        rappor.fold(np.array([[2, 0, 0], [3, 0, 0]], np.uint8))
    with pytest.raises(ReportInvalidError, match=r"Report 1 .*after its last.*byte 2\)"):
        rappor.fold(np.array([[2, 0, 32], [1, 0, 0]], np.uint8))


def test_another_report_of_the_same_person_follows_the_law_of_the_kept_cohort() -> None:
    """Chi-square over all reports of a cohort; false-alarm rate 1e-7."""
    rappor = Rappor(2.0, bits=4, cohorts=3)
    earlier = rappor.permanent.encode(["rum"] * 60_000)
    found = rappor.encode_beside(["tea"] * 60_000, earlier)
    assert (found[:, 0] == earlier[:, 0]).all()
    for cohort in range(3):
        law = rappor.law("tea", bytes([cohort]))
        drawn = np.bincount(found[found[:, 0] == cohort, 1], minlength=16)
        expected = [float(law[bytes([cohort, bits])]) * drawn.sum() for bits in range(16)]
        assert stats.chisquare(drawn, expected).pvalue > 3e-8


def test_counters_for_all_cohorts_fit_into_memory() -> None:
    with pytest.raises(InputError, match=r"2\^24 cells"):
        Rappor(1.0, bits=2**16, cohorts=2**16)
