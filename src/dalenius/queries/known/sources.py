"""What the asker's own releases have measured about the rows that a question is about.

A release is taken only if it is about the same tables under the same policies at the same data version, and charged to
the same periods: an answer about other data is never the same answer. What it measured is read from what was sealed
with it, and checked against the key that it is stored under.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import LedgerCorruptError
from dalenius.ledger.requests import QUESTION, key_stored
from dalenius.measuring.cache import WeightedCache
from dalenius.measuring.estimates import noise_variance, normal_width
from dalenius.measuring.periods import charged_periods
from dalenius.mechanisms.laws import DiscreteGaussianLaw, SummedLaw
from dalenius.queries.answering import Answer
from dalenius.queries.known.sealed import ASKED, seal, unseal_sized
from dalenius.queries.known.written import can_write, plan_of_json, plan_to_json
from dalenius.queries.total_intervals import Clipped, Unknown
from dalenius.queries.workloads.linear import ROWS, Summed, atoms_of
from dalenius.releasing.leaving import own_charges, own_contents

if TYPE_CHECKING:
    from dalenius.ledger.projection import ChargedQuestion
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.plan import Measure, Plan, Table
    from dalenius.measuring.strategies.factors import Array
    from dalenius.queries.workloads.attributes import Atoms
    from dalenius.releasing.leaving import Asker
    from dalenius.releasing.snapshot import Snapshot

LATEST = 64  # own releases that are looked through
_LARGEST = 2**21  # bytes of one
_MOST_BYTES = 2**22  # of all of them, with what was sealed in them: as JSON, which takes several times that once read
_MOST_GROUPS = 2**14  # in all of them
_LINEAR = frozenset({"rows", "sum", "moments"})
FRESH = "fresh"  # stands beside an answer that was paid for in any case
# What was sealed with a release, by ledger and charge: it never changes. In values of some 80 bytes.
_READ: WeightedCache[Any] = WeightedCache(2**19)
_PER_VALUE = 16  # bytes of JSON that take 80, once they are read
# The same as answers, by the rows that were asked about.
_ANSWERS: WeightedCache[tuple[Table, Answer | None]] = WeightedCache(2**19)
_PER_GROUP = 24  # values for each group and aggregate of an answer, with all that is worked out about it


def frame_of(plan: Plan, data_version: int | str) -> str:
    """What two questions have in common whose rows are the same rows."""
    table = plan.table
    read = charged_periods(table, plan.where)
    parts = (table.relation.titled(), table.meaning, str(data_version), *read, "", *plan.periods)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def asked_to_json(plan: Plan, data_version: int | str) -> dict[str, Any] | None:
    """What is sealed with an answer; None where nothing can follow from it."""
    return {"frame": frame_of(plan, data_version), "plan": plan_to_json(plan)} if can_write(plan) else None


def sealed_with(asker: Asker, plan: Plan, data_version: int | str) -> dict[str, str]:
    """What is stored beside an answer, so that others can follow from it; nothing where none can."""
    found = asked_to_json(plan, data_version)
    return {} if found is None else {ASKED: seal(asker.ledger, found)}


@dataclass(frozen=True, eq=False)
class PaidMeasure:
    """Noisy sums over groups of rows that the asker has paid for.

    Attributes:
        charge: The number of the charge that paid for it.
        epsilon: What that was.
        answer: All that it belongs to.
        statistic: Its statistic there.
        number: Its own number among the measures.
    """

    charge: int
    epsilon: float
    answer: Answer
    statistic: int
    number: int

    @property
    def plan(self) -> Plan:
        """What was asked."""
        return self.answer.plan

    @property
    def measure(self) -> Measure:
        """What was measured."""
        return self.plan.measures[self.number]

    @cached_property
    def summed(self) -> Summed:
        """What is added up."""
        measure = self.measure
        return ROWS if measure.kind == "rows" else Summed(measure.value, measure.step, measure.centre)

    @cached_property
    def atoms(self) -> Atoms:
        """Which rows, in which groups."""
        return atoms_of(self.plan, self.measure)

    @property
    def cells(self) -> tuple[tuple[Any, ...], ...]:
        """The groups."""
        return self.plan.cells

    @property
    def scaled(self) -> bool:
        """Whether its groups were scaled up to their total: then their errors go together."""
        return self.statistic in self.answer.scaled

    @property
    def combines(self) -> bool:
        """Whether its noise is independent of all other answers', and of group to group."""
        return not self.scaled and not self.answer.coarsened

    @property
    def gaussian(self) -> bool:
        """Whether sums of its noise are Gaussian."""
        return self.scaled or _is_gaussian(self.answer.measures[self.number][0])

    @cached_property
    def values(self) -> Array:
        """The noisy sums, in steps."""
        if self.scaled:
            step = float(self.measure.step)
            return np.array([float(each.value or 0.0) / step for each in self._shown])
        _, values = self.answer.measures[self.number]
        return np.array([float(each) for each in values]) / 2.0**self.measure.bits

    @cached_property
    def deviations(self) -> Array:
        """Of each, in steps."""
        if self.scaled:
            wide = normal_width(self.answer.confidence) * float(self.measure.step)
            return np.array([float(each.noise_error or 0.0) / wide for each in self._shown])
        law, _ = self.answer.measures[self.number]
        return np.full(len(self.cells), math.sqrt(noise_variance(law)) / 2.0**self.measure.bits)

    @cached_property
    def reach(self) -> Array | None:
        """How far below and above its noise the truth may lie for what limits took, in steps; None: nobody knows."""
        found = self.clipped
        if found is None:
            return None
        below, above = [], []
        for one, total in zip(self._shown, found.totals, strict=True):
            if total is None or one.low is None or one.high is None:
                return None
            below.append(max(0.0, one.low - total[0]))
            above.append(max(0.0, total[1] - one.high))
        return np.array([below, above]) / float(self.measure.step)

    @property
    def clipped(self) -> Clipped | None:
        """What limits took from it, where that is known."""
        return self.taken if isinstance(self.taken, Clipped) else None

    @cached_property
    def taken(self) -> Clipped | Unknown:
        """What limits took from it, or why nobody knows."""
        found = (
            self.answer.clipped[aggregate]
            for aggregate, number in self.plan.answers.items()
            if number == self.statistic
        )
        taken = next(found, Unknown.OTHER)
        if len(self.plan.statistics[self.statistic].measures) == 1:
            return taken
        # Of an average, what is told is about the quotient, and not about its sums.
        return Unknown.DECLARED if taken is Unknown.DECLARED else Unknown.OTHER

    @property
    def single(self) -> bool:
        """Whether it is limited by itself, and not together with another measure of an average."""
        return len(self.plan.statistics[self.statistic].measures) == 1

    def serves(self, plan: Plan, measure: Measure) -> bool:
        """Whether its limit is no lower than the question's own, or it is known what it took.

        A unit's vector v over groups is scaled to ‖v‖ = C where it is longer. All groups together then keep no less
        than their sum would within C, as ‖v‖₁ ≥ ‖v‖₂; of a part of them that does not hold (`deriving`).
        """
        _, clip, groups = self.limit
        same = self.atoms == atoms_of(plan, measure) and self.cells == plan.cells
        if same and (clip, groups) == (measure.clip, plan.groups):
            return True
        if self.reach is not None:
            return True
        one_sign = not self.measure.low < 0 < self.measure.high or not self.single
        in_norm = self.plan.norm == plan.norm or len(plan.cells) == 1
        return (
            groups is None and in_norm and clip >= measure.clip and self.measure.centre == measure.centre and one_sign
        )

    @property
    def limit(self) -> tuple[str, int, int | None]:
        """In which norm one unit is limited, to how much in steps, and to how many groups."""
        own = next((each.clip for each in self.answer.clips if each.measure == self.number), self.measure.clip)
        return self.plan.norm, own, self.plan.groups

    @cached_property
    def _shown(self) -> Sequence[Any]:
        aggregate = next(each for each, number in self.plan.answers.items() if number == self.statistic)
        return self.answer.estimates[aggregate]


def _is_gaussian(law: Noise) -> bool:
    parts = (law.first, law.second) if isinstance(law, SummedLaw) else (law,)
    return all(isinstance(each, DiscreteGaussianLaw) for each in parts)


# --- reading them


@dataclass(frozen=True)
class OwnRelease:
    """A release of the asker, with what was sealed in it.

    Attributes:
        charge: What paid for it.
        place: The home of its ledger.
        content: Its bytes.
        kind: "joint": of several questions; "question" or "other", such as a workload.
        fresh: What tells it from others of the same question, where it was paid for in any case.
        asked: What was sealed; of a joint one, for each of its parts.
        size: How many bytes all that is, as JSON.
    """

    charge: ChargedQuestion
    place: str
    content: bytes
    kind: str
    fresh: str
    asked: Any
    size: int

    def answer(self, at: int, plan: Plan, snapshot: Snapshot, confidence: float) -> Answer | None:
        """What it says about the rows of a plan, read once for each confidence; None where it is of another version.

        Args:
            at: Its place among the parts of a joint release; 0 of any other.
            plan: A question in the same frame.
            snapshot: Of the data.
            confidence: Of its errors.
        """
        own = self.place, self.charge.number, self.charge.release
        key = *own, frame_of(plan, snapshot.data_version), snapshot.epoch, confidence, at
        table, answer = _ANSWERS.get(key) or (None, None)
        if table != plan.table:  # limits that were found since are another table's
            answer = _read(self, at, plan, snapshot, confidence)
            groups = 1 if answer is None else len(answer.plan.cells) * len(answer.plan.answers)
            _ANSWERS.put(key, (plan.table, answer), _PER_GROUP * groups)
        return answer


def own_sources(asker: Asker, dataset: str, epoch: int, until: int | None = None) -> list[OwnRelease]:
    """The asker's latest releases that say what they measured, newest first, as far as they are not too much to read.

    Args:
        asker: Who has paid for them.
        dataset: What they are about.
        epoch: Whose rows.
        until: Only up to the one whose answer is that entry of the ledger, which is the first of them then.
    """
    charges = [each for each in own_charges(asker, dataset, LATEST, until) if each.epoch == epoch]
    found, left = list[OwnRelease](), _MOST_BYTES
    with closing(_releases(asker, charges)) as releases:
        for release in releases:  # one at a time: what is past the most of all is never read
            left -= release.size
            if left < 0:
                break
            found.append(release)
    return found


def _releases(asker: Asker, charges: Sequence[ChargedQuestion]) -> Generator[OwnRelease, None, None]:
    """Those of these releases from which something may follow."""
    place = str(asker.ledger.home)
    kept = {each.number: _READ.get((place, each.number, each.release)) for each in charges}
    missing = [each for each in charges if kept[each.number] is None]
    contents = own_contents(asker, missing, _LARGEST)
    for each in charges:
        release = kept[each.number]
        if release is None:
            content = next(contents)
            release = False if content is None else _unsealed(asker, each, content)
            weight = release.size // _PER_VALUE if isinstance(release, OwnRelease) else 1
            _READ.put((place, each.number, each.release), release, max(1, weight))
        if isinstance(release, OwnRelease):
            yield release


def _unsealed(asker: Asker, charge: ChargedQuestion, content: bytes) -> OwnRelease | bool:
    """What a release says; False where nothing can follow from it."""
    if f'"{ASKED}"'.encode() not in content:
        return False
    data = json.loads(content)
    joint = data.get("format") == "joint"
    sealed = [each.get(ASKED) for each in data["parts"]] if joint else [data.get(ASKED)]
    read = [(None, 0) if each is None else unseal_sized(asker.ledger, each) for each in sealed]
    asked = [each for each, _ in read]
    if not any(asked):
        return False
    kind = "joint" if joint else "question" if "measures" in data else "other"
    size = len(content) + sum(bytes_ for _, bytes_ in read)
    place, fresh = str(asker.ledger.home), str(data.get(FRESH, ""))
    return OwnRelease(charge, place, content, kind, fresh, asked if joint else asked[0], size)


def paid_measures(
    sources: Sequence[OwnRelease], plan: Plan, snapshot: Snapshot, confidence: float, *, others: bool = False
) -> Iterator[PaidMeasure]:
    """All measures of own questions that are about the same rows as a plan.

    ``others``: not those of the same question. At a higher price that is a new charge, whatever chance made of it.
    """
    frame, left = frame_of(plan, snapshot.data_version), _MOST_GROUPS
    for release in sources:
        for at, asked in enumerate(_asked(release)):
            if not isinstance(asked, dict) or asked.get("frame") != frame:
                continue
            groups = _groups(asked)
            if groups > left:  # who asks waits for it
                continue
            left -= groups
            found = release.answer(at, plan, snapshot, confidence)
            if found is None or (others and found.plan.canonical() == plan.canonical()):
                continue
            for place, statistic in enumerate(found.plan.statistics):
                if statistic.kind in _LINEAR and len(statistic.measures) <= 2:
                    start = found.plan.start(place)
                    for number in range(start, start + len(statistic.measures)):
                        yield PaidMeasure(release.charge.number, release.charge.epsilon, found, place, number)


def _groups(asked: Mapping[str, Any]) -> int:
    """How many groups an answer has, times its aggregates: they are all read."""
    try:
        return max(1, int(asked["plan"]["cells"][0])) * max(1, len(asked["plan"]["answers"]))
    except (KeyError, TypeError, ValueError, IndexError):  # of another version
        return 1


def _asked(release: OwnRelease) -> Sequence[Any]:
    """What each answer in it was asked by."""
    if release.kind == "joint":
        return list(release.asked)
    return [release.asked] if release.kind == "question" else []


def _read(release: OwnRelease, at: int, plan: Plan, snapshot: Snapshot, confidence: float) -> Answer | None:
    """An own answer with its plan, if that is what it is stored for."""
    joint = release.kind == "joint"
    content = json.dumps(json.loads(release.content)["parts"][at]).encode() if joint else release.content
    try:
        own = plan_of_json(_asked(release)[at]["plan"], plan.table)
        answer = Answer.read(own, content, confidence)
    except (ValueError, KeyError, TypeError, IndexError, LedgerCorruptError):  # of another version
        return None
    if not joint:  # of which each part has its frame alone: the key of all is made of plans that may not be sealed
        key = fresh_key(own.key(snapshot.data_version), release.fresh)
        if release.charge.key != key_stored(QUESTION, key, snapshot.epoch):
            return None
    if any(aggregate.limit is not None for aggregate in own.answers):
        return None
    return answer


def fresh_key(key: str, nonce: str) -> str:
    """The key of a question that is paid for in any case."""
    return key if not nonce else hashlib.sha256(f"{FRESH} {nonce} {key}".encode()).hexdigest()
