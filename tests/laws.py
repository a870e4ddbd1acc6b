"""Whether reports of a local randomiser follow the law that it states: what tests of them share."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy import stats

from dalenius.local.randomisers.randomiser import Randomiser

ALARM = 1e-7  # chance that reports that do follow their law are said not to


def follows_law(randomiser: Randomiser, value: Any, reports: int) -> bool:
    """Pearson's test of drawn reports against the exact law, within each public part; rare reports count as one."""
    drawn = randomiser.encode(np.array([value] * reports))
    seen = Counter(row.tobytes() for row in drawn)
    publics = Counter(row[: randomiser.public_bytes].tobytes() for row in drawn)
    statistic, free = 0.0, 0
    for public, number in publics.items():
        law = randomiser.law(value, public)
        assert sum(law.values()) == 1
        counts = np.array([seen.pop(report, 0) for report in law], np.float64)
        expected = np.array([float(chance) for chance in law.values()]) * number
        common = expected >= 8
        if not common.all():
            counts = np.append(counts[common], counts[~common].sum())
            expected = np.append(expected[common], expected[~common].sum())
        kept = expected > 0
        if counts[~kept].any():
            return False
        statistic += float(((counts - expected)[kept] ** 2 / expected[kept]).sum())
        free += int(kept.sum()) - 1
    return not seen and bool(stats.chi2.sf(statistic, free) > ALARM)
