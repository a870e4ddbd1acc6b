"""Each part of a workload finds the limit that fits it: how, at what price, and which one. Never touches the data.

A limit that was found at `protect` is for all questions. What a workload measures has noise in proportion to its limit,
and few units come near that, so a lower one is mostly better: what it cuts off matters less than the noise that it
saves. It is chosen from noisy counts of units by the length of their vector over the cells, in the norm in which that
is clipped (`blocks`), as a question's own is (`measuring.limits.clip_search`). What is weighed are the answers of the
part: the mean of their squared errors from noise, which follows from the strategy, and from what is cut off, of which
each has a part as large as its part of all rows.

The counts are *public* where `protect` has counted just these units: in L1 a vector is as long as its total, so it has
counted rows and totals of all units, if nobody asks for fewer rows. Then the limit costs nothing. Else they are
*searched* with a part of the part's own price; not so where that is not expected to pay, and `protect` tells what the
limit cuts off.

What an average is made of is scaled by one factor, the smallest (`measures`). So that it is the limit of rows which
decides, those of sums are brought up to what so many rows add on average.

Guarantee:
    Public counts were released before, and a limit chosen from them is post-processing. In searched ones a unit is in
    one class: adding or removing it changes one count by 1, exchanging it two, so Δ1 = Δ2² = 1, or 2
    (`clip_search.LengthSearch`); their noise makes them ρ₁-zCDP (ε₁-DP). For every limit that may be chosen, what is
    measured changes by no more than `Part.change` says for that limit, and its noise is made for it: ρ₂-zCDP (ε₂-DP).
    It is chosen by looking at what was released before, so the part is (ρ₁ + ρ₂)-zCDP by adaptive composition (Bun &
    Steinke 2016, Lemma 2.3; for ε-DP Dwork & Roth 2014, appendix B). No limit is ever raised above that of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from dalenius.measuring.expressions import TRUE, Column, columns_of
from dalenius.measuring.limits.choosing import MEDIAN, choose_limit, share_beyond
from dalenius.measuring.limits.clip_search import Clip, search_of, searchable
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.limits.histogram import guess_size
from dalenius.measuring.limits.in_question import is_thinned, known_lengths
from dalenius.measuring.limits.question_total import total_of
from dalenius.measuring.measures import clip_measure, refine
from dalenius.measuring.strategies.strategy import sensitivity
from dalenius.queries.expected_search import made_up_noise
from dalenius.queries.public_knowledge import PublicKnowledge
from dalenius.queries.workloads.blocks import Counted

if TYPE_CHECKING:
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.limits.expected_lengths import Lengths
    from dalenius.measuring.plan import Plan
    from dalenius.queries.workloads.blocks import Block, Part, WorkloadPlan
    from dalenius.queries.workloads.linear import Summed, Term
    from dalenius.queries.workloads.pricing import Cost

_LOOKED_AT = 60  # terms, by which it is told how large answers are
_DRAWS = 6  # of made-up noise: pairs that are each other's opposite
_CAUTION = 0.6  # of the draws find no higher limit than the one that is reckoned with


@dataclass(frozen=True)
class Matters:
    """What matters to the answers of a part.

    Attributes:
        noise: The root of their mean variance, for noise of variance 1 on each integer that is measured.
        part: The root of the mean square of their parts of all that is added up.
    """

    noise: float
    part: float


class Limiting:
    """The limits of a workload's parts at one price.

    Args:
        workload: With the shares of its parts.
        cost: What all of it costs.
        asked: What is public of its questions, by their numbers, as far as that is known by now.
    """

    def __init__(self, workload: WorkloadPlan, cost: Cost, asked: dict[int, PublicKnowledge] | None = None) -> None:
        self.workload, self.cost = workload, cost
        self._asked = {} if asked is None else asked
        self._cells: dict[tuple[tuple[int, ...], int], PublicKnowledge] = {}
        self._matters: dict[tuple[tuple[int, ...], Summed], Matters] = {}

    # --- what is searched

    def planned(self) -> WorkloadPlan:
        """The workload with limits that are public, and a part of the price for each that is to be searched."""
        blocks = []
        for block in self.workload.blocks:
            clips: dict[int, Clip] = {}
            searches: dict[int, Fraction] = {}
            for place, part in enumerate(block.parts):
                if not may_be_lower(block, part):
                    continue
                counts = public_counts(block, part)
                if counts is not None:
                    clips[place] = self.fit(block, part, counts, public=True)
                elif self._is_searched(block, part):
                    searches[place] = part.share * search_of(part.measure).share
            blocks.append(_with_searches(lower_block(block, clips), searches))
        return replace(self.workload, blocks=tuple(blocks))

    def _is_searched(self, block: Block, part: Part) -> bool:
        """Whether its limit is looked for: where cells are counted, unless that costs more than it is worth."""
        if not isinstance(block.counted[part.counted], Counted):
            return False
        return not is_told(block, part) or self._pays(block, part)

    def _pays(self, block: Block, part: Part) -> bool:
        """Whether a search is expected to save more than it costs; where nothing is known, it may."""
        if self.lengths(block, part) is None:
            return True
        search = part.share * search_of(part.measure).share
        searching = replace(part, share=part.share - search, search=search)
        clip = self.expected(block, searching)
        if clip is None:
            return True
        with_it = self.error(block, searching, clip.clip)
        return with_it < self.error(block, part, part.measure.clip)

    # --- which one

    def fit(self, block: Block, part: Part, counts: LengthCounts, *, public: bool = False) -> Clip:
        """The limit that fits noisy counts, which are ``public``, or a search's own. Public post-processing."""
        plan, measure, matters = block.counted[part.counted].plan, part.measure, self.matters(block, part)
        best = counts if public else known_lengths(plan, measure, counts)
        hidden, most = counts.law.noise_error(0.95), measure.clip
        if share_beyond(counts.noisy, counts.law, most) is None:
            little = measure.one_row if is_thinned(plan) else most
            clip = min(most, guess_size(counts.noisy, counts.law) or little)
            return Clip(part.number, clip, None, hidden, counts)
        noise = MEDIAN * self.cost.deviation(_at_one(part, plan)) * matters.noise
        chosen = choose_limit(best.noisy, best.law, lambda limit: noise * limit, 1 / max(matters.part, 1e-9))
        clip = min(most, chosen.limit)
        return Clip(part.number, clip, share_beyond(counts.noisy, counts.law, clip), hidden, counts)

    def matters(self, block: Block, part: Part) -> Matters:
        """What matters to its answers."""
        place = block.questions, part.summed
        if place not in self._matters:
            norm, products = self.cost.norm, part.workload.products
            answers = sum(each.weight**2 * each.answers for each in products)
            variance = part.strategy.expected(part.workload, norm) / sensitivity(part.strategy.change(norm), norm)
            squares = whole = 0.0
            for term, at, sums in block.terms[:_LOOKED_AT]:
                if block.parts[at].summed == part.summed:
                    weight, groups = self.workload.weights[term.question] ** 2, len(sums.places)
                    squares += weight * groups * self.part_of(block, part, term, groups) ** 2
                    whole += weight * groups
            share = math.sqrt(squares / whole) if whole else 1.0
            self._matters[place] = Matters(math.sqrt(variance / answers), share)
        return self._matters[place]

    def part_of(self, block: Block, part: Part, term: Term, groups: int) -> float:
        """About which part of all that is added up one answer of a question has, as far as anybody may know."""
        if term.question not in self._asked:
            self._asked[term.question] = PublicKnowledge(self.workload.plans[term.question].plan)
        known, whole = self._asked[term.question], self._model(block, part)
        where = known.plan.statistics[term.statistic].measures[-1].where
        return min(1.0, known.kept(where).share / max(whole.kept(TRUE).share, 1e-9)) / groups

    # --- what is expected

    def expected_workload(self) -> WorkloadPlan:
        """The workload with the limits that its searches are expected to find."""
        blocks = []
        for block in self.workload.blocks:
            found = {place: self.expected(block, part) for place, part in enumerate(block.parts) if part.search}
            blocks.append(lower_block(block, {place: each for place, each in found.items() if each is not None}))
        return replace(self.workload, blocks=tuple(blocks))

    def expected(self, block: Block, part: Part) -> Clip | None:
        """The limit that a search is expected to find, rather too high than too low; None where nothing is known."""
        lengths = self.lengths(block, part)
        if lengths is None:
            return None
        mechanism = self.cost.search(part)
        exact, clips = lengths.counts(), []
        for draw in range(_DRAWS):
            made_up = made_up_noise(mechanism, len(exact), draw)
            noisy = [count + made for count, made in zip(exact, made_up, strict=True)]
            clips.append(self.fit(block, part, LengthCounts.of(noisy, mechanism)))
        return sorted(clips, key=lambda each: each.clip)[int(_CAUTION * _DRAWS)]

    def lengths(self, block: Block, part: Part) -> Lengths | None:
        """How long units' vectors over its cells are, as far as `protect` tells."""
        return self._model(block, part).lengths(part.measure)

    def lost(self, block: Block, part: Part) -> float:
        """What its limit is expected to cut off, in steps; 0 where nothing is known."""
        lengths = self.lengths(block, part)
        return 0.0 if lengths is None else lost_of(lengths, part.measure.clip)

    def error(self, block: Block, part: Part, clip: int) -> float:
        """The mean squared error of its answers at a limit, in squared steps, as far as it is known."""
        plan, matters = block.counted[part.counted].plan, self.matters(block, part)
        noise = clip * self.cost.deviation(_at_one(part, plan)) * matters.noise
        at = replace(part, measure=replace(part.measure, clip=clip))
        return noise**2 + (self.lost(block, at) * matters.part) ** 2

    def _model(self, block: Block, part: Part) -> PublicKnowledge:
        """What is public of the cells that a part is counted in."""
        place = block.questions, part.counted
        if place not in self._cells:
            self._cells[place] = PublicKnowledge(model_plan(block, part.counted))
        return self._cells[place]


def lost_of(lengths: Lengths, clip: int) -> float:
    """What a limit is expected to cut off, in steps: the mean over all tails that may be there."""
    return max(0.0, lengths.total - lengths.kept(clip))


def may_be_lower(block: Block, part: Part) -> bool:
    """Whether a limit is one that nobody chose, and could be lower."""
    table = block.planned.plan.table
    declared, found = table.policy.contribution, table.found
    if found is None or declared.rows is not None or not searchable(part.measure):
        return False
    summed = frozenset() if part.measure.value is None else columns_of(part.measure.value)
    return not summed & frozenset(declared.totals)


def public_counts(block: Block, part: Part) -> LengthCounts | None:
    """What `protect` counted, where that is units by the length of just these vectors; None: it did not."""
    counted, measure = block.counted[part.counted], part.measure
    table, plan = counted.plan.table, counted.plan
    found = table.found
    if found is None or found.carried or not table.direct or plan.periods != ("",) or plan.where != TRUE:
        return None
    if plan.norm != "l1" or not all(block.attributes[at].whole for at in counted.attributes):
        return None
    if measure.value is None:
        return found.sizes.get("rows")
    if not isinstance(measure.value, Column) or measure.centre or measure.low < 0 < measure.high:
        return None
    same = measure.step == table.policy.columns[measure.value.name].step
    return found.sizes.get(f"total {measure.value.name}") if same else None


def is_told(block: Block, part: Part) -> bool:
    """Whether `protect` found the limit of rows over the values of a column, all of which are told apart by cells.

    Then it has counted vectors that are no shorter, and what it tells of these holds (`taken`).
    """
    plan, found = block.counted[part.counted].plan, block.planned.plan.table.found
    if found is None or found.carried or part.measure.kind != "rows" or plan.where != TRUE or plan.norm != "l2":
        return False
    names = [each.name for each in model_keys(block, part.counted) if isinstance(each, Column)]
    return any(found.norms.get(each) == part.measure.clip and f"norm {each}" in found.sizes for each in names)


def model_plan(block: Block, number: int) -> Plan:
    """A plan whose groups are the cells of a block, with one key for each attribute: for what is public of them."""
    counted = block.counted[number]
    if counted.plan.norm == "l1":  # where a vector is as long as its total, over whatever cells
        question = replace(counted.plan.question, keys=(), sets=())
        return replace(counted.plan, question=question, keys=(), cells=((),), sets=())
    keys = model_keys(block, number)
    question = replace(counted.plan.question, keys=keys, sets=())
    cells = tuple(product(*(range(block.sizes[at]) for at in counted.attributes)))
    return replace(counted.plan, question=question, keys=keys, cells=cells, sets=())


def model_keys(block: Block, number: int) -> tuple[Expression, ...]:
    """One key for each attribute of what is counted: its column, where that alone tells its classes apart."""
    own = (block.attributes[at] for at in block.counted[number].attributes)
    return tuple(next((key for key in each.values if isinstance(key, Column)), each.keys[0]) for each in own)


# --- lower limits


def lower_block(block: Block, clips: Mapping[int, Clip]) -> Block:
    """The block at lower limits, by the number of the part; the limits of sums fit those of the rows of an average.

    Adding or removing a unit (exchanging one) then changes what is measured by what `Part.change` says.
    """
    if not clips:
        return block
    clips = _fitting(block, clips)
    counted = []
    for at, each in enumerate(block.counted):
        lower = {
            part.number: clips[place].clip
            for place, part in enumerate(block.parts)
            if part.counted == at and place in clips
        }
        counted.append(replace(each, plan=_lower_plan(each.plan, lower, finer=isinstance(each, Counted))))
    parts = tuple(
        replace(
            part,
            measure=counted[part.counted].plan.measures[part.number],
            found=clips.get(place, part.found),
            before=part.before or part.measure.clip,
        )
        for place, part in enumerate(block.parts)
    )
    return replace(block, counted=tuple(counted), parts=parts)


def _lower_plan(plan: Plan, clips: Mapping[int, int], *, finer: bool) -> Plan:
    """At lower limits, and in as many parts of a step as these need where cells are counted (``finer``)."""
    statistics, number = [], 0
    for statistic in plan.statistics:
        measures = []
        for measure in statistic.measures:
            clip = min(clips.get(number, measure.clip), measure.clip)
            measures.append(clip_measure(measure, clip, plan.norm, plan.neighbors, measure.bits))
            number += 1
        statistics.append(replace(statistic, measures=tuple(measures)))
    lowered = replace(plan, statistics=tuple(statistics))
    return refine(lowered) if finer else lowered


def _fitting(block: Block, clips: Mapping[int, Clip]) -> dict[int, Clip]:
    """The limits of sums, no lower than what as many rows add on average as count."""
    found = dict(clips)
    for group in together(block):
        known = {place: found.get(place, block.parts[place].found) for place in group}
        rows = next((known[place] for place in group if block.parts[place].measure.value is None), None)
        total = _total(rows)
        if rows is None or not total:
            continue
        for place in group:
            own, part = found.get(place), block.parts[place]
            if own is None or part.measure.value is None:
                continue
            least = math.ceil(rows.clip * _total(own) / total)
            clip = min(part.measure.clip, max(own.clip, least))
            if clip != own.clip and own.counts is not None:
                beyond = share_beyond(own.counts.noisy, own.counts.law, clip)
                found[place] = replace(own, clip=clip, beyond=beyond)
    return found


def _total(clip: Clip | None) -> float:
    """What all units add together, as the counts behind a limit tell; 0 where they do not."""
    total = None if clip is None or clip.counts is None else total_of(clip.counts)
    return 0.0 if total is None else total.mean


def together(block: Block) -> list[list[int]]:
    """The numbers of parts that are limited together, as their measures belong to one statistic."""
    found = []
    for at, counted in enumerate(block.counted):
        for number, statistic in enumerate(counted.plan.statistics):
            start = counted.plan.start(number)
            own = range(start, start + len(statistic.measures))
            found.append([place for place, part in enumerate(block.parts) if part.counted == at and part.number in own])
    return found


def _with_searches(block: Block, searches: Mapping[int, Fraction]) -> Block:
    if not searches:
        return block
    parts = tuple(
        replace(part, share=part.share - searches[place], search=searches[place]) if place in searches else part
        for place, part in enumerate(block.parts)
    )
    counted = []
    for at, each in enumerate(block.counted):
        shares = {part.number: part.search for part in parts if part.counted == at}
        numbers = iter(range(len(each.plan.measures)))
        statistics = tuple(
            replace(one, measures=tuple(replace(measure, search=shares[next(numbers)]) for measure in one.measures))
            for one in each.plan.statistics
        )
        counted.append(replace(each, plan=replace(each.plan, statistics=statistics)))
    parts = tuple(replace(part, measure=counted[part.counted].plan.measures[part.number]) for part in parts)
    return replace(block, counted=tuple(counted), parts=parts)


def _at_one(part: Part, plan: Plan) -> Part:
    """The part at a limit of one step."""
    return replace(part, measure=clip_measure(part.measure, 1, plan.norm, plan.neighbors))
