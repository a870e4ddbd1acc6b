"""A release with other noise: what it might have been, had chance fallen otherwise. Made up, and free.

To each stored integer noise of its own law is added once more, so many times; every aggregate is then read from the
moved integers as it was from those that were stored. Aggregates of one statistic, such as AVG and VAR of a column,
move together as they do in truth. What is read from a tree of counts (quantiles), and groups that were scaled up to a
total, are moved by themselves: a normal deviate as wide as their noise error.

No row is read, and this chance protects nobody: it is seeded by the stored bytes, so that one answer always shows the
same errors. Post-processing, as all of `outer`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.measuring.estimates import Estimate, normal_width
from dalenius.measuring.expressions import Aggregate, walk
from dalenius.mechanisms.laws import DiscreteGaussianLaw, SummedLaw
from dalenius.queries.postprocess import values_over

if TYPE_CHECKING:
    from dalenius.measuring.estimates import Noise
    from dalenius.queries.answering import Answer
    from dalenius.queries.postprocess import ReleasedTable

MOST_COPIES, FEWEST_COPIES = 400, 100
MOST_DRAWN = 10_000_000  # numbers of all measures of a release: they take half a second
MOST_CELLS = 60_000  # of all copies together: to read so many averages takes a second and a half


@dataclass(frozen=True)
class Copies:
    """Copies of a release's noisy columns.

    Attributes:
        number: How many copies there are; 0: the release has too many cells for them.
        columns: The values of each noisy column by its number: of all rows of the first copy, then of the next …
        alone: Whether some cells were moved by themselves.
    """

    number: int
    columns: Mapping[int, list[Any]]
    alone: bool = False


def copy_count(cells: int, most: int | None = None) -> int:
    """How many copies of so many noisy cells are drawn; 0: too few to tell anything."""
    found = min(MOST_COPIES if most is None else most, MOST_CELLS // max(cells, 1))
    return found if found >= FEWEST_COPIES else 0


def draw_copies(answer: Answer, table: ReleasedTable, content: bytes, number: int) -> Copies:
    """So many copies of a release.

    Args:
        answer: The release.
        table: As the question shows it.
        content: The stored bytes, which seed the chance.
        number: Of copies.
    """
    plan, places = answer.plan, table.places
    noisy = {
        at: output.expression
        for at, output in enumerate(plan.question.outputs)
        if any(isinstance(part, Aggregate) for part in walk(output.expression))
    }
    if not number or not places:
        return Copies(0, {})
    seed = int.from_bytes(hashlib.sha256(content).digest()[:8])
    used = {part for each in noisy.values() for part in walk(each) if isinstance(part, Aggregate)}
    estimates: dict[Aggregate, Sequence[Estimate]] = {}
    alone = False
    for statistic in sorted({plan.answers[each] for each in used}):
        chance = np.random.default_rng([seed, statistic])
        wanted = [each for each in used if plan.answers[each] == statistic]
        trees = any(each.primitive.tree for each in plan.statistics[statistic].measures)
        if trees or statistic in answer.scaled:
            alone = True
            for at, each in enumerate(sorted(wanted, key=repr)):
                own = np.random.default_rng([seed, statistic, at])
                estimates[each] = _moved(own, [answer.estimates[each][place] for place in places], number, answer)
            continue
        reading = _read(answer, statistic, places, number, chance)
        estimates |= {each: reading.estimates(each) for each in wanted}
    keys = [[column[place] for _ in range(number) for place in places] for column in answer.keys]
    return Copies(number, {at: values_over(plan, each, keys, estimates) for at, each in noisy.items()}, alone)


def _read(answer: Answer, statistic: int, places: Sequence[int], number: int, chance: np.random.Generator) -> Any:
    """A statistic of all copies, read as one of so many more groups."""
    plan = answer.plan
    made, start = plan.statistics[statistic], plan.start(statistic)
    # Of all groups, also of those that HAVING leaves out: two parts that read one release move together.
    everywhere = number * len(plan.cells) * len(answer.measures) <= MOST_DRAWN
    groups = len(plan.cells) if everywhere else len(places)
    chosen = np.asarray(places if everywhere else range(groups))
    columns = []
    for law, values in answer.measures[start : start + len(made.measures)]:
        # Only what is used becomes Python's numbers: of many groups few may be shown.
        noise = _noise(law, number * groups, chance).reshape(number, groups)[:, chosen].tolist()
        moved = [values[place] + round(each) for copy in noise for place, each in zip(places, copy, strict=True)]
        columns.append((law, moved))
    return made.family.read(made, columns, number * len(places), answer.confidence)


def _noise(law: Noise, size: int, chance: np.random.Generator) -> Any:
    """Noise as a law says, nearly: a normal deviate that is rounded, or a difference of two geometric numbers.

    An array of whole numbers, as doubles: noise may be larger than 64 bits hold.
    """
    if isinstance(law, SummedLaw):
        return _noise(law.first, size, chance) + _noise(law.second, size, chance)
    if isinstance(law, DiscreteGaussianLaw):
        return np.rint(chance.standard_normal(size) * float(law.variance) ** 0.5)
    if law.scale > 2**40:  # beyond what geometric numbers are drawn of
        return np.rint(chance.laplace(0.0, float(law.scale), size))
    success = float(-np.expm1(-1.0 / float(law.scale)))
    return (chance.geometric(success, size) - chance.geometric(success, size)).astype(float)


def _moved(chance: np.random.Generator, around: Sequence[Estimate], number: int, answer: Answer) -> list[Estimate]:
    """Cells that are moved by themselves."""
    width, found = normal_width(answer.confidence), []
    for deviates in chance.standard_normal((number, len(around))).tolist():
        for each, deviate in zip(around, deviates, strict=True):
            value = each.value
            if value is not None and each.noise_error is not None:
                moved = value + deviate * each.noise_error / width
                value = round(moved) if isinstance(value, int) else moved
            found.append(Estimate(value, None, None, None))
    return found
