"""What every randomiser must pass: its law proved by enumeration, and its reports and estimates held against that law.

Each check raises AssertionError; tests of planted bugs show that it does.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dalenius.local import chances
from dalenius.local.estimators.frequencies import estimate
from dalenius.local.randomisers.randomiser import FrequencyOracle, PureOracle, Randomiser

FALSE_ALARM = 1e-7
"""Of each statistical check here; a test makes fewer than ten."""


def named(randomiser: Randomiser) -> str:
    """A test's id."""
    return f"{randomiser.name}-{'-'.join(f'{value:g}' for value in randomiser.fields().values())}"


def publics(randomiser: Randomiser, values: list[Any]) -> list[bytes]:
    """Public parts of some reports; one empty one where there is none.

    A key may be a single bit, under one of whose values nothing is told: all draws are that one with chance 2^−128.
    """
    if not randomiser.public_bytes:
        return [b""]
    drawn = randomiser.encode(values[:1] * 128)
    return list(dict.fromkeys(row.tobytes() for row in drawn[:, : randomiser.public_bytes]))[:8]


def prove_ratio(randomiser: Randomiser, values: list[Any]) -> None:
    """No report is more than e^ε times as likely under one value as under another; the stated ratio is the worst."""
    worst = Fraction(0)
    for public in publics(randomiser, values):
        laws = [randomiser.law(value, public) for value in values]
        for law in laws:
            assert sum(law.values()) == 1
            assert law.keys() == laws[0].keys()
        for report in laws[0]:
            found = [law[report] for law in laws]
            assert min(found) > 0
            worst = max(worst, max(found) / min(found))
    assert chances.within(worst, randomiser.epsilon)
    assert chances.within(worst, randomiser.actual_epsilon)
    assert worst == randomiser.ratio
    assert not chances.within(worst, math.nextafter(randomiser.actual_epsilon, 0.0))
    assert randomiser.actual_epsilon <= randomiser.epsilon


def prove_support(randomiser: PureOracle, keys: list[bytes]) -> None:
    """Over all public parts, a report supports its own value with chance p and each other one with q, exactly."""
    supported = {
        report: supports(randomiser, np.frombuffer(report, np.uint8)[None])
        for key in keys
        for report in randomiser.law(0, key)
    }
    for value in range(randomiser.size):
        expected = [Fraction(0)] * randomiser.size
        for key in keys:
            for report, chance in randomiser.law(value, key).items():
                expected = [e + chance * s / len(keys) for e, s in zip(expected, supported[report], strict=True)]
        assert expected == [randomiser.p if x == value else randomiser.q for x in range(randomiser.size)]


def supports(randomiser: PureOracle, reports: NDArray[np.uint8]) -> list[Fraction]:
    """How many reports support each value, back from the shares."""
    shares = randomiser.shares(randomiser.fold(reports))
    found = shares * float(randomiser.p - randomiser.q) + float(randomiser.q)
    whole = np.rint(found * len(reports))
    assert np.allclose(found * len(reports), whole, atol=1e-6)
    return [Fraction(int(one)) for one in whole]


def check_reports(randomiser: Randomiser, value: Any, values: list[Any], count: int) -> None:
    """Chi-square of reports against the exact law, given each report's public part.

    Where there is a public part, reports are told apart by how likely they are under each value: keys are too many.
    """
    reports = Counter(map(bytes, randomiser.encode([value] * count)))
    of_public: Counter[bytes] = Counter()
    for report, times in reports.items():
        of_public[report[: randomiser.public_bytes]] += times
    seen: dict[tuple[object, ...], float] = defaultdict(float)
    due: dict[tuple[object, ...], float] = defaultdict(float)
    for public, times in of_public.items():
        laws = [randomiser.law(one, public) for one in values]
        for report, chance in laws[values.index(value)].items():
            kind: tuple[object, ...] = tuple(law[report] for law in laws) if public else (report,)
            seen[kind] += reports.pop(report, 0)
            due[kind] += times * float(chance)
    assert not reports, "there are reports that the law does not have"
    kinds = sorted(due, key=due.__getitem__)
    found, expected = [0.0], [0.0]
    for kind in kinds:  # rare kinds together
        if expected[-1] >= 20:
            found.append(0.0)
            expected.append(0.0)
        found[-1] += seen[kind]
        expected[-1] += due[kind]
    statistic = sum((f - e) ** 2 / e for f, e in zip(found, expected, strict=True))
    assert len(found) > 1
    assert stats.chi2.sf(statistic, len(found) - 1) > FALSE_ALARM


def check_estimates(oracle: Callable[[int], FrequencyOracle], values: NDArray[Any], runs: int, within: float) -> float:
    """Over many runs with a fixed population: estimates are unbiased, and their variance is the closed form.

    Args:
        oracle: The randomiser of each run; a sketch has a seed of its own in each.
        values: What people hold.
        runs: How often they report.
        within: The part by which the pooled variance may differ from the closed form.

    Returns:
        Pooled variance over closed form.
    """
    size = oracle(0).size
    truth = np.bincount(values, minlength=size) / len(values)
    z = np.empty((runs, size))
    for run in range(runs):
        one = oracle(run)
        found = estimate(one.fold(one.encode(values)))
        z[run] = (found.shares - truth) / np.sqrt(one.variances(truth, len(values)))
    assert z.size >= 20_000
    bias = np.abs(z.mean(axis=0)) * math.sqrt(runs)
    assert bias.max() < -stats.norm.ppf(FALSE_ALARM / size)
    variance = float((z**2).mean())
    assert abs(variance - 1) < within, variance
    return variance


def skewed(count: int, size: int) -> NDArray[np.int64]:
    """A fixed population: few values are frequent, most are rare."""
    return (size * (np.arange(count) / count) ** 3).astype(np.int64)
