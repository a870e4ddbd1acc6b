"""What the asker has been told before, about the same question or parts of it: own answers only, at whatever price.

Another analyst's answers are never read, nor whether there are any: what a preview says, or what a price by accuracy
comes to, would else tell what they asked.

An answer says with each of its measures what that is about, as a hash: the data, the condition, the groups, what is
added up. The same measure in another question is about the same, whatever its limit and its price are. So what was
asked column by column is known for a question that has them all, and the other way round; and who has counted the rows
of some groups knows how many there are to average.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.errors import LedgerCorruptError
from dalenius.ledger.requests import QUESTION
from dalenius.measuring.expressions import TRUE
from dalenius.measuring.limits.clip_search import Clip
from dalenius.measuring.measures import count_in
from dalenius.measuring.plan import Measure
from dalenius.queries.answering import Answer, read_measure
from dalenius.releasing.leaving import paid_answers, recent_answers

if TYPE_CHECKING:
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.plan import Plan
    from dalenius.releasing.leaving import Asker
    from dalenius.releasing.snapshot import Snapshot

_LATEST = 32  # answers that are looked through for parts of a question
_LARGEST = 2**21  # bytes; larger ones, of many quantiles, would take too long to look through
_ROWS = Measure("rows", None, TRUE, Fraction(1), 0, 0, 1, 1, 1)
_DIGITS = 20


@dataclass(frozen=True)
class OwnAnswer:
    """An answer that the asker has paid for.

    Attributes:
        epsilon: The price at which it was made.
        answer: What it says.
        asked: The accuracy that it was asked for by, as `accuracy.as_asked` writes it; None where a price was typed.
    """

    epsilon: float
    answer: Answer
    asked: Mapping[str, Any] | None


def own_answers(asker: Asker, plan: Plan, snapshot: Snapshot, confidence: float) -> list[OwnAnswer]:
    """The asker's answers to this plan on this data, the most accurate last."""
    found = []
    for each in paid_answers(asker, QUESTION, snapshot, plan.key(snapshot.data_version)):
        with suppress(LedgerCorruptError):  # of a form that only a newer version reads: as if it were not there
            answer = Answer.read(plan, each.content, confidence)
            found.append(OwnAnswer(each.epsilon, answer, json.loads(each.content).get("asked")))
    return sorted(found, key=lambda each: each.epsilon)


# --- parts of other answers


def about(plan: Plan, data_version: int | str) -> list[str]:
    """What each measure of a plan is about. Where groups have to be found, others are found each time: nothing."""
    return [] if plan.selection is not None else [_about(plan, data_version, each) for each in plan.measures]


def _about(plan: Plan, data_version: int | str, measure: Measure) -> str:
    """Whatever decides its exact integers but its limit: that may be another one each time."""
    same = replace(measure, clip=0, sensitivity=0, share=Fraction(0), search=Fraction(0), bits=0)
    parts = (replace(plan, statistics=()).canonical(), plan.table.meaning, str(data_version), same.written())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True)
class KnownParts:
    """What own answers to other questions say of this one.

    Attributes:
        answer: An answer put together from measures of others; None where one of them is missing.
        rows: How many rows its groups have together, where they were counted.
    """

    answer: Answer | None = None
    rows: float | None = None


def known_parts(asker: Asker, plan: Plan, snapshot: Snapshot, confidence: float) -> KnownParts:
    """From the asker's latest answers, the newest first."""
    wanted = about(plan, snapshot.data_version)
    if not wanted:
        return KnownParts()
    counted = _about(plan, snapshot.data_version, _ROWS)
    found: dict[str, _Part] = {}
    for part in _parts(asker, snapshot, [*wanted, counted]):
        if part.about in {*wanted, counted} and (part.about not in found or part.epsilon > found[part.about].epsilon):
            found[part.about] = part
    rows = None if counted not in found else max(0.0, sum(found[counted].values) / 2.0 ** found[counted].bits)
    if not all(each in found for each in wanted):
        return KnownParts(None, rows)
    parts = [found[each] for each in wanted]
    sizes = [len(plan.cells) * each.width for each in plan.measures]
    if [len(each.values) for each in parts] != sizes:
        return KnownParts(None, rows)
    clips = tuple(
        replace(each.clip, measure=at) for at, each in enumerate(parts) if each.clip is not None and at in plan.searched
    )
    levelled = count_in(plan, [each.bits for each in parts])
    measures = tuple((each.law, each.values) for each in parts)
    return KnownParts(Answer(levelled, min(each.epsilon for each in parts), None, measures, confidence, clips), rows)


@dataclass(frozen=True)
class _Part:
    """One measure of an answer."""

    about: str
    epsilon: float
    law: Noise
    values: tuple[int, ...]
    bits: int
    clip: Clip | None


def _parts(asker: Asker, snapshot: Snapshot, wanted: Sequence[str]) -> Iterator[_Part]:
    for each in recent_answers(asker, snapshot, _LATEST, _LARGEST):
        if not any(name.encode() in each.content for name in wanted):
            continue  # sooner known than read
        with suppress(ValueError, KeyError, TypeError):  # another kind of release, or one of an earlier version
            data = json.loads(each.content)
            if not isinstance(data, dict):
                continue
            clips = {clip.measure: replace(clip, rescaled=None) for clip in map(Clip.of_json, data.get("limits", ()))}
            for at, (name, stored) in enumerate(zip(data["about"], data["measures"], strict=False)):
                law, values = read_measure(stored)
                yield _Part(name, each.epsilon, law, values, stored.get("bits", 0), clips.get(at))
