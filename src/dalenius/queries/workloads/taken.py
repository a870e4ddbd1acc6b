"""What limits took from the answers of a workload, and the intervals that allow for it. Post-processing.

A part's limit is one of a unit's vector over all its cells, so what it takes is told for all cells together: from the
noisy counts that it was chosen from (`limits`), which are stored with it, or else from those of `protect`, where these
are about the same vectors or longer ones (`queries.total_intervals`). A unit beyond its limit loses the same share in
all cells, so an answer that shows y misses about y times what is lost for each that was kept. It may miss more, where
those who lose most are in it more than others; not so the answer that has all rows.

What an average is made of is scaled by one factor, the smallest. There a limit takes what one of the others would take
that is lower, by what a row adds to each on average: it is read at that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dalenius._numbers import count_of
from dalenius.measuring.expressions import TRUE, Aggregate, Column, Type, walk
from dalenius.measuring.limits.choosing import share_beyond
from dalenius.measuring.limits.clip_search import clip_notes, report_clips, takes_all
from dalenius.measuring.limits.clipping import Spread
from dalenius.measuring.limits.question_total import total_of
from dalenius.queries.average_intervals import clipped_average
from dalenius.queries.note_words import plain_limits
from dalenius.queries.total_intervals import Clipped, Unknown, clipping_notes, estimate_loss, reach_of_groups

if TYPE_CHECKING:
    from dalenius.measuring.estimates import Estimate
    from dalenius.measuring.limits.clip_search import Clip
    from dalenius.measuring.limits.clipping import Loss
    from dalenius.measuring.plan import Plan
    from dalenius.measuring.strategies.factors import Array
    from dalenius.queries.workloads.showing import StoredPart


@dataclass(frozen=True)
class Taken:
    """What limits took from one question of a workload.

    Attributes:
        plan: The question.
        parts: All that was measured for the workload.
        noisy: For each measure the number of its part, and its numbers in all groups.
        estimates: Every aggregate's number in every group.
        confidence: Of the intervals.
    """

    plan: Plan
    parts: Sequence[StoredPart]
    noisy: Sequence[tuple[int, Array]]
    estimates: Mapping[Aggregate, Sequence[Estimate]]
    confidence: float

    @cached_property
    def clipped(self) -> Mapping[Aggregate, Clipped | Unknown]:
        """Of every aggregate."""
        return {each: self._clipped(each, number) for each, number in self.plan.answers.items()}

    @property
    def known(self) -> Mapping[Aggregate, Clipped]:
        """Of those of which it can be told."""
        return {each: found for each, found in self.clipped.items() if isinstance(found, Clipped)}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Which limits held, and what they took."""
        parts = (part for output in self.plan.question.outputs for part in walk(output.expression))
        shown = [each for each in dict.fromkeys(parts) if isinstance(each, Aggregate)]
        told = {each: self.clipped[each] for each in shown if self.estimates[each]}
        errors = {each: [one.noise_error or 0.0 for one in self.estimates[each]] for each in shown}
        found = [
            each.replace("This question", "This workload", 1) for each in clip_notes(self._as_counted, self._clips)
        ]
        return (*dict.fromkeys(found), *self._standing, *clipping_notes(self.plan, told, errors))

    @property
    def limits(self) -> tuple[dict[str, Any], ...]:
        """The limits that the workload found itself."""
        return plain_limits(self.plan, report_clips(self._as_counted, self._clips))

    @property
    def _standing(self) -> tuple[str, ...]:
        """Which limits held that nobody looked for."""
        unit, limits = " + ".join(self.plan.table.unit), []
        for measure, (number, _) in zip(self.plan.measures, self.noisy, strict=True):
            part = self.parts[number]
            if part.found is None:
                limits.append(
                    count_of(part.clip, "row")
                    if measure.kind == "rows"
                    else f"a total of {float(part.clip * measure.step):,.10g}"
                )
        told = " and ".join(dict.fromkeys(limits))
        held = [f"One {unit} counts with at most {told}, over all groups of the workload together."] if told else []
        groups = "The limit of groups does not hold here: one unit counts in all of its."
        return (*held, *([] if self.plan.groups is None else [groups]))

    def _clipped(self, aggregate: Aggregate, number: int) -> Clipped | Unknown:
        statistic, start = self.plan.statistics[number], self.plan.start(number)
        if aggregate.kind == "avg":
            totals = [[round(part.total * 2**part.bits)] for part in (self.parts[at] for at, _ in self._of(number))]
            rest = (self.estimates[aggregate], self._clips, self.confidence)
            found = clipped_average(self._as_counted, number, totals, *rest)
            return Unknown.LEANING if found is None else found
        if len(statistic.measures) > 1:
            return Unknown.LEANING
        (at, values), part = self.noisy[start], self.parts[self.noisy[start][0]]
        measure = self._as_counted.measures[start]
        if measure.low < 0 < measure.high:
            return Unknown.BOTH_SIGNS
        own = next((each for each in self._clips if each.measure == start), None)
        loss = self._loss(at, start, own)
        if isinstance(loss, Unknown):
            return loss
        if not self.plan.keys and self._has_all(start):
            loss = replace(loss, favour=0.0, chance=0.0)
        sign = -1 if measure.high <= 0 else 1
        released = [sign * float(value) / 2**part.bits for value in values]
        total = max(abs(part.total), math.fsum(max(0.0, each) for each in released))
        totals_, missed = reach_of_groups(loss, measure, released, self.estimates[aggregate], total, self.confidence)
        return Clipped(loss, totals_, missed, measure, part.clip, own is not None)

    def _of(self, number: int) -> Sequence[tuple[int, Array]]:
        start = self.plan.start(number)
        return self.noisy[start : start + len(self.plan.statistics[number].measures)]

    def _has_all(self, measure: int) -> bool:
        return self.plan.where == TRUE and takes_all(self.plan.measures[measure].where)

    def _loss(self, at: int, measure: int, own: Clip | None) -> Loss | Unknown:
        """Of all cells of a part together, for groups like those of this question."""
        part, plan, groups = self.parts[at], self._as_counted, len(self.plan.cells) + 1
        if groups not in part.losses:
            spread = Spread(
                groups=max(1, part.cells),
                scattered=part.norm == "l2" and part.cells > 1,
                total=abs(part.total),
                rows=self.plan.measures[measure].kind == "rows",
                error=part.deviation,
            )
            loss = estimate_loss(plan, plan.measures[measure], own, spread)
            few = replace(spread, groups=groups, scattered=False, error=None)
            beside = estimate_loss(plan, plan.measures[measure], own, few)
            if not isinstance(loss, Unknown) and not isinstance(beside, Unknown):
                # What chance does is a matter of the question's groups: in few of them, single units weigh more.
                longer = max(1.0, loss.kept / max(beside.kept, 1.0))
                loss = replace(loss, chance=max(loss.chance, longer * beside.chance), favour=beside.favour)
            part.losses[groups] = loss
        return part.losses[groups]

    @cached_property
    def _as_counted(self) -> Plan:
        """The plan with its measures as they were counted: over all cells, at the limits before any was found."""
        places = iter(self.noisy)
        statistics = []
        for statistic in self.plan.statistics:
            measures = []
            for measure in statistic.measures:
                part, moved = self.parts[next(places)[0]], 0
                moved = measure.centre - part.centre
                measures.append(
                    replace(
                        measure,
                        clip=part.before or part.clip,
                        bits=part.bits,
                        centre=part.centre,
                        low=measure.low + moved,
                        high=measure.high + moved,
                        search=part.search,
                        where=TRUE if takes_all(measure.where) else measure.where,
                    )
                )
            statistics.append(replace(statistic, measures=tuple(measures)))
        part = self.parts[self.noisy[0][0]]
        norms = sorted(self.plan.table.found.norms) if self.plan.table.found is not None else []
        columns = tuple(Column(norms[at], Type.TEXT) for at in part.keys if at < len(norms))
        return replace(
            self.plan,
            question=replace(self.plan.question, keys=columns),
            where=TRUE if part.whole else self.plan.where,
            cells=((),) * max(1, part.cells),
            groups=None,
            statistics=tuple(statistics),
            norm=part.norm,
        )

    @cached_property
    def _clips(self) -> tuple[Clip, ...]:
        """The limits that were found, by the number of the measure, each at what it takes beside the others."""
        found = []
        for number, (at, _) in enumerate(self.noisy):
            own = self.parts[at].found
            if own is not None:
                clip = self._beside_others(at, own)
                beyond = own.beyond
                if clip != own.clip and own.counts is not None:
                    beyond = share_beyond(own.counts.noisy, own.counts.law, clip)
                found.append(replace(own, measure=number, clip=clip, beyond=beyond))
        return tuple(found)

    def _beside_others(self, at: int, own: Clip) -> int:
        sizes = {each: _size(self.parts[each].found) for each in self.parts[at].together}
        if len(sizes) < 2 or not all(sizes.values()):
            return own.clip
        rows = min(self.parts[each].clip / size for each, size in sizes.items())  # in parts of all that there is
        return max(1, min(own.clip, math.floor(rows * sizes[at])))


def _size(found: Clip | None) -> float:
    """What all units add together, as the counts behind a limit tell; 0 where they do not."""
    total = None if found is None or found.counts is None else total_of(found.counts)
    return 0.0 if total is None else total.mean
