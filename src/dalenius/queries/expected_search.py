"""The limits that a question would find for itself: what it would count, under noise that is made up.

A real question counts units, gets noisy counts and fits limits to them (`in_question`). Here the counts are those that
are expected (`expectations`), so nothing is looked at; the fit is the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalenius.measuring.limits import ladder
from dalenius.measuring.limits.histogram import noise_deviation
from dalenius.measuring.limits.in_question import counts_totals, cut_deviation, cut_limit, fit_clip
from dalenius.measuring.limits.question_total import CutOff
from dalenius.measuring.statistics.distinct import public_values
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian

if TYPE_CHECKING:
    from dalenius.measuring.limits.clip_search import Clip
    from dalenius.measuring.plan import Measure
    from dalenius.mechanisms.laplace import Laplace
    from dalenius.queries.expectations import Expectations
    from dalenius.queries.rules.price import Priced

_SEED = 18


def expected_clips(expectations: Expectations, priced: Priced, draw: int) -> tuple[tuple[Clip, ...], frozenset[int]]:
    """The limits that a price is expected to find, and the numbers of the measures of which nothing is known.

    Args:
        expectations: What is asked, and known.
        priced: At the limits that it is asked with.
        draw: Which noise is made up.
    """
    clips: list[Clip] = []
    unknown: list[int] = []
    past = () if expectations.past is None else expectations.past.clips
    for number, mechanism in priced.searches.items():
        counts = _counts(expectations, number)
        if counts is not None:
            made_up = made_up_noise(mechanism, len(counts), draw)
            noisy = [count + made for count, made in zip(counts, made_up, strict=True)]
            cut_off = _cut_off(expectations, priced, number, noisy, draw)
            clips.append(fit_clip(expectations.known, priced, number, noisy, mechanism, cut_off))
            continue
        own = next((each for each in past if each.measure == number), None)
        if own is None:
            unknown.append(number)
        else:
            clips.append(own)
    return tuple(clips), frozenset(unknown)


def made_up_noise(mechanism: DiscreteGaussian | Laplace, size: int, draw: int) -> list[int]:
    """Noise of that law, the same each time: it hides nothing, for there is nothing in a preview to hide.

    Every second draw is the opposite of the one before, so that few of them are on average as many.
    """
    chance, deviation = np.random.default_rng([_SEED, draw // 2]), noise_deviation(mechanism)
    deviation = -deviation if draw % 2 else deviation
    if isinstance(mechanism, DiscreteGaussian):
        drawn = deviation * chance.standard_normal(size)
    else:
        drawn = deviation / math.sqrt(2) * chance.laplace(size=size)
    return [round(each) for each in drawn.tolist()]


def _counts(expectations: Expectations, number: int) -> list[int] | None:
    """What a question would count to find the limit of a measure, if there were no noise; None: nobody knows."""
    measure = expectations.plan.measures[number]
    if measure.kind == "distinct":
        return _rungs(expectations, measure)
    lengths = expectations.lengths.get(number)
    if lengths is None:
        return None
    # By the total over the groups, too, where groups may be scaled up to that.
    totals = lengths.by_size().counts() if counts_totals(expectations.known, number) else []
    return [*lengths.counts(), *totals]


def _cut_off(expectations: Expectations, priced: Priced, number: int, noisy: Sequence[int], draw: int) -> CutOff | None:
    """The sum of totals that a question would measure after that, with made-up noise; None where it would not."""
    limit = cut_limit(expectations.known, priced, number, noisy, priced.searches[number])
    lengths = expectations.lengths.get(number)
    if limit is None or lengths is None:
        return None
    off = cut_deviation(priced, number, limit)
    chance = float(np.random.default_rng([_SEED, draw // 2, number]).standard_normal())
    return CutOff(limit, lengths.by_size().kept(limit) + off * (-chance if draw % 2 else chance), off)


def _rungs(expectations: Expectations, measure: Measure) -> list[int] | None:
    """Different values at each rung of the ladder, where they are public and units draw them at random."""
    public = expectations.public
    if expectations.past is not None or public.found is None or measure.value is None or not public.counted:
        return None
    values = public_values(measure.value, expectations.plan.table.policy) or public.hidden_values(measure)
    pairs, units = values * public.groups, public.units(measure) * public.groups
    most = max(1.0, public.rows(measure) * public.groups / max(units, 1.0))
    counted = [
        round(pairs * -math.expm1(-units * min(float(rung), most) / pairs)) for rung in ladder.rungs(measure.clip)
    ]
    return ladder.scale_counts(measure.clip, counted)
