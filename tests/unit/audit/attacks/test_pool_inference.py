"""Pool inference: it succeeds against fresh daily answers, and no further than the lifetime ε against kept ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dalenius.audit.attacks import MADE_UP_NAMES, NAMES, REPORT_NAMES, any_named
from dalenius.audit.attacks.collected import pool_inference, report_attack_named
from dalenius.audit.attacks.collected.pool_inference import DAYS, EACH, EPSILON, POOLS, bound, from_fresh, from_kept
from dalenius.audit.attacks.published.attack import TableLab
from dalenius.local.randomisers.k_ary import KAry

ALARM = 1e-7
ORACLE = KAry(EPSILON, POOLS * EACH)


def attacked(target: str, people: int = 2000):
    finding = report_attack_named("pool-inference").run(TableLab(target, np.random.default_rng(3), people))
    assert finding.rate is not None and finding.drawing is not None
    return finding


def test_fresh_daily_answers_give_nearly_everybody_away() -> None:
    """99% are guessed; fewer than 97.5% of 2,000 would have chance below 1e-7 then."""
    finding = attacked("fresh")
    assert finding.broke and finding.rate.share > 0.975
    assert finding.numbers["lifetime"] == pytest.approx(DAYS * EPSILON)
    drawn = finding.drawing.curves[0].y
    first, last = drawn[0], drawn[-1]
    assert first < 0.4 < last  # one report alone is as good as nothing


@pytest.mark.parametrize(("target", "kept"), [("kept", EACH), ("kept-one", 1)])
def test_kept_answers_stay_within_the_bound_of_the_lifetime(target: str, kept: int) -> None:
    finding = attacked(target)
    assert not finding.broke and finding.numbers["lifetime"] == pytest.approx(kept * EPSILON)
    assert finding.numbers["bound"] == pytest.approx(bound(kept * EPSILON))
    assert stats.binom.sf(finding.rate.hits - 1, finding.rate.of, bound(kept * EPSILON)) > ALARM


def test_one_kept_answer_gives_away_what_bayes_says() -> None:
    """(p + q)/2 for each code, of which each pool has two: exactly the attacker's chance, and days change nothing."""
    share = float(ORACLE.p + ORACLE.q)
    finding = attacked("kept-one")
    of, hits = finding.rate.of, finding.rate.hits
    assert stats.binom.cdf(hits, of, share) > ALARM and stats.binom.sf(hits - 1, of, share) > ALARM
    assert len(set(finding.drawing.curves[0].y)) == 1


def test_the_likelihoods_are_those_of_all_lives() -> None:
    """By enumeration over which emoji was used on each of three days, and of what is kept about both."""
    laws = pool_inference._laws(ORACLE)
    for reports in itertools.product((0, 3, 8), repeat=3):
        seen = np.array([reports])
        for pool in range(POOLS):
            fresh = kept = one = 0.0
            for used in itertools.product(range(EACH), repeat=3):
                fresh += math.prod(laws[pool, emoji, report] for emoji, report in zip(used, reports, strict=True)) / 8
                one += laws[pool, used[0], reports[0]] / 8
                answers = dict(zip(used, reports, strict=True))
                if all(answers[emoji] == report for emoji, report in zip(used, reports, strict=True)):
                    kept += math.prod(laws[pool, emoji, report] for emoji, report in answers.items()) / 8
            assert math.exp(from_fresh(laws, seen)[0, -1, pool]) == pytest.approx(fresh)
            assert math.exp(from_kept(laws, seen, 1)[0, -1, pool]) == pytest.approx(one)
            if len(set(reports)) < 3:  # three answers are never kept
                scale = 1 / 8 if len(set(reports)) == 2 else 1  # a factor that is the same for all pools is left out
                assert math.exp(from_kept(laws, seen, 2)[0, -1, pool]) * scale == pytest.approx(kept)


def test_it_is_listed_with_what_is_made_up() -> None:
    assert REPORT_NAMES == ("pool-inference",) and set(REPORT_NAMES) < set(MADE_UP_NAMES)
    assert not set(NAMES) & set(MADE_UP_NAMES)
    attack = report_attack_named("pool-inference")
    assert any_named("pool-inference") is attack
    assert set(attack.stopped_by) < set(attack.against) == {"fresh", "kept", "kept-one"}
