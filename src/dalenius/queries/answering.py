"""From a plan to the bytes that the ledger keeps, and from those bytes to numbers: look once, then only post-process.

What is stored are the noisy integers with the laws of their noise. Averages, HAVING, ORDER BY, LIMIT, names and
arithmetic on aggregates are done with them each time, so other wordings of one question share one stored answer.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import LedgerCorruptError
from dalenius.measuring._exact import exact
from dalenius.measuring.domains import in_order
from dalenius.measuring.estimates import Estimate, noise_variance
from dalenius.measuring.expressions import Aggregate, Scalar, Type, walk
from dalenius.measuring.limits.clip_search import Clip, clip_notes, report_clips
from dalenius.measuring.limits.in_question import apply_clips, search_limits
from dalenius.measuring.measures import count_in
from dalenius.measuring.plan import Plan, require
from dalenius.mechanisms import noise
from dalenius.mechanisms.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw, SummedLaw
from dalenius.queries.average_intervals import clipped_average
from dalenius.queries.note_words import plain_limits, plain_notes
from dalenius.queries.postprocess import ReleasedTable, key_columns, tabulate
from dalenius.queries.rules.price import Priced, price_plan
from dalenius.queries.scaled_estimates import ScaledAggregate, Stored, scale_aggregate
from dalenius.queries.total_intervals import Clipped, Unknown, clipped_aggregate, clipping_notes

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine, Held
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.plan import Plan
    from dalenius.measuring.statistics.family import Reading
    from dalenius.mechanisms.interface import IntArray
    from dalenius.mechanisms.key_selection import KeySelection
    from dalenius.mechanisms.laws import Law
    from dalenius.queries.rules.price import Priced

# As measured; made from another answer, so that its noise is a sum (`coarsen`). Before measures were counted in parts
# of a step (`measures`) these were 1 and 2, and what was stored then is read as ever.
FORMAT, COARSENED = 3, 4
_MEASURED, _SUMMED = {1, FORMAT}, {2, COARSENED}
SHARED = (
    "This was asked before: the noise of your ε was added to that answer, so the margin is wider than a preview says. "
    "Only your allotment paid for it."
)
_BITS = 10  # of the noise's standard deviation are kept in `pack`: rounding adds 10⁻⁷ of its variance


def measure_plan(
    plan: Plan, priced: Priced, engine: Engine, salt: str, seconds: float, beside: Mapping[str, Any] | None = None
) -> bytes:
    """Looks at the data: exact integers, exact noise, bytes. To be called once the charge is on disk, and only then.

    ``beside`` is stored with them; it is made of the question alone.

    Guarantee:
        That of ``priced``: every measure's vector gets the noise of its own mechanism, drawn under a fresh key.
    """
    noise.fresh_key()
    # What it was made at, so that the ledger can compare it with what was charged.
    content: dict[str, Any] = {"format": FORMAT, "epsilon": priced.epsilon, "delta": priced.delta, "rho": priced.rho}
    content |= beside or {}
    held = None
    if priced.selection is not None:
        held = engine.hold(plan, salt, seconds=seconds)
        plan = select_keys(plan, priced.selection, held, engine, salt, seconds)
        priced = price_plan(plan, priced.epsilon, priced.delta)  # the same noise, on as many groups as were found
        content |= {"cells": [[_key_to_json(value) for value in cell] for cell in plan.cells]}
    if priced.searches:
        clips = search_limits(plan, priced, engine, salt, seconds)
        plan = apply_clips(plan, clips)
        priced = price_plan(plan, priced.epsilon, priced.delta)  # the same price, on what one unit adds here
        content["limits"] = [each.to_json() for each in clips]
    content["measures"] = []
    integers = exact(plan, engine, salt, seconds=seconds, held=held)
    for measure, mechanism, vector in zip(plan.measures, priced.mechanisms, integers, strict=True):
        values = mechanism.release(vector).value if vector else np.empty(0, dtype=np.int64)
        stored = pack(values, mechanism.noise) if measure.primitive.tree else list(map(str, values.tolist()))
        content["measures"].append({"law": law_to_json(mechanism.noise), "values": stored, "bits": measure.bits})
    return json.dumps(content, separators=(",", ":")).encode()


def select_keys(plan: Plan, selection: KeySelection, held: Held, engine: Engine, salt: str, seconds: float) -> Plan:
    """The plan with the groups that are released, in the order of their keys."""
    cells, weights = engine.weights(plan, salt, seconds=seconds, held=held)
    passed = selection.release(weights, units=require(plan.selection).units).value
    # beside the groups of grouping sets that are public
    return replace(plan, cells=in_order([*plan.cells, *(cells[at] for at in passed)]))


# --- an answer from another one


def shareable(plan: Plan) -> bool:
    """Whether nothing in a question's answer depends on an earlier draw of noise but the noise itself.

    Found keys and limits do: the noise has chosen what was measured. So do the counts of quantiles, which are stored
    rounded (`pack`): rounded after the noise they move in larger steps than one unit moves them, and what is added
    for one unit's step would not hide those.
    """
    trees = any(each.primitive.tree for each in plan.measures)
    return plan.selection is None and not plan.searched and not trees


def coarsen(plan: Plan, priced: Priced, content: bytes, beside: Mapping[str, Any] | None = None) -> bytes:
    """The bytes of an answer at ``priced``, from those of another analyst's. Never looks at the data.

    Guarantee:
        Every measure's stored integers get noise of its own mechanism at the price that the asker typed, in full, as
        fresh integers would, for what one unit changes in the parts of a step that they were counted in. Towards this
        asker the answer is as private as that mechanism, whatever noise is there already; towards all together it is
        post-processing of what was released before. Why, and when: `dalenius.ledger.sharing`.

    What an interval covers is another matter: there both noises count.
    """
    data = json.loads(content)
    stored = data["measures"]
    sizes = [len(plan.cells) * each.width for each in plan.measures]
    plain = data["format"] in _MEASURED and not {"cells", "limits"} & set(data) and shareable(plan)
    if not plain or [len(each["values"]) for each in stored] != sizes:
        raise LedgerCorruptError(
            "A stored answer cannot be read.", why="It has another form.", fix="Update dalenius, or ask the owner."
        )
    noise.fresh_key()
    measures: list[dict[str, Any]] = []
    priced = price_plan(_as_stored(plan, data), priced.epsilon, priced.delta)
    for mechanism, each in zip(priced.mechanisms, stored, strict=True):
        integers = [int(value) for value in each["values"]]
        values = mechanism.release(integers).value.tolist() if integers else []
        law = law_to_json(mechanism.noise) | {"beside": each["law"]}
        measures.append({"law": law, "values": [str(value) for value in values], "bits": each.get("bits", 0)})
    found = {"format": COARSENED, "epsilon": priced.epsilon, "rho": priced.rho, **(beside or {}), "measures": measures}
    return json.dumps(found, separators=(",", ":")).encode()


# --- reading


@dataclass(frozen=True)
class Answer:
    """A stored release, read in the terms of one question."""

    plan: Plan
    epsilon: float
    rho: float | None
    measures: tuple[tuple[Noise, tuple[int, ...]], ...]
    confidence: float
    clips: tuple[Clip, ...] = ()
    again: Mapping[int, Stored] = field(default_factory=dict)  # at a higher limit, by the measure's number
    coarsened: bool = False  # made from an answer to somebody else

    @classmethod
    def read(cls, plan: Plan, content: bytes, confidence: float) -> Answer:
        """As `measure_plan` or `coarsen` wrote it."""
        data = json.loads(content)
        if plan.selection is not None:
            types = [key.type for key in plan.keys]
            cells = (tuple(map(_key_of_json, cell, types)) for cell in data["cells"])
            plan = replace(plan, cells=tuple(cells))
        clips = tuple(map(Clip.of_json, data.get("limits", ())))
        # in the order in which they were measured
        twice = sorted(each.measure for each in clips if each.rescaled is not None and each.rescaled.heavy is not None)
        stored, second = data["measures"][: len(plan.measures)], data["measures"][len(plan.measures) :]
        measures = tuple(map(read_measure, stored))
        sizes = [len(values) for _, values in measures]
        found = tuple(each.measure for each in clips) == plan.searched
        known = data["format"] in _MEASURED | _SUMMED
        found &= [len(each["values"]) for each in second] == [len(plan.cells) for _ in twice]
        if not known or not found or sizes != [len(plan.cells) * each.width for each in plan.measures]:
            raise LedgerCorruptError(
                "A stored answer cannot be read.", why="It has another form.", fix="Update dalenius, or ask the owner."
            )
        again = {
            number: Stored(read_law(each["law"]), _values(each["values"]), each["bits"])
            for number, each in zip(twice, second, strict=True)
        }
        plan, coarsened = _as_stored(plan, data), data["format"] in _SUMMED
        return cls(plan, data["epsilon"], data["rho"], measures, confidence, clips, again, coarsened)

    @property
    def limits(self) -> tuple[dict[str, Any], ...]:
        """The limits that the question found itself."""
        return plain_limits(self.plan, report_clips(self.plan, self.clips))

    @cached_property
    def estimates(self) -> Mapping[Aggregate, list[Estimate]]:
        """Every aggregate's number in every group."""
        return {
            each: self.scaled[number].estimates if number in self.scaled else self.readings[number].estimates(each)
            for each, number in self.plan.answers.items()
        }

    @cached_property
    def scaled(self) -> Mapping[int, ScaledAggregate]:
        """The statistics whose groups are scaled up to their total, by their numbers."""
        found = {}
        for each in self.clips:
            if each.rescaled is not None:
                law, values = self.measures[each.measure]
                tight = Stored(law, values, self.plan.measures[each.measure].bits)
                number = next(at for at in self.plan.answers.values() if self.plan.start(at) == each.measure)
                again = self.again.get(each.measure)
                found[number] = scale_aggregate(self.plan, number, each, tight, again, self.confidence)
        return found

    @cached_property
    def clipped(self) -> Mapping[Aggregate, Clipped | Unknown]:
        """What clipping took from every aggregate, as far as what is stored or public can tell."""
        return {each: self._clipped(each, number) for each, number in self.plan.answers.items()}

    def _clipped(self, aggregate: Aggregate, number: int) -> Clipped | Unknown:
        if number in self.scaled:
            return self.scaled[number].clipped
        start, rest = self.plan.start(number), (self.estimates[aggregate], self.clips, self.confidence)
        if aggregate.kind == "avg":
            values = [each for _, each in self.measures[start : start + len(self.plan.statistics[number].measures)]]
            found = clipped_average(self.plan, number, values, *rest)
            if found is not None:
                return found
        return clipped_aggregate(self.plan, number, self.measures[start][1], *rest)

    @cached_property
    def readings(self) -> Mapping[int, Reading]:
        """The statistics, by their numbers, each read once."""
        found = {}
        for number in set(self.plan.answers.values()):
            statistic, start = self.plan.statistics[number], self.plan.start(number)
            columns = self.measures[start : start + len(statistic.measures)]
            found[number] = statistic.family.read(statistic, columns, len(self.plan.cells), self.confidence)
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know besides, at this price."""
        parts = (part for output in self.plan.question.outputs for part in walk(output.expression))
        shown = [part for part in parts if isinstance(part, Aggregate)]
        own = (note for each in shown for note in self.readings[self.plan.answers[each]].notes(each))
        clips = clip_notes(self.plan, self.clips, self._shares)
        errors = {each: [one.noise_error or 0.0 for one in self.estimates[each]] for each in shown}
        clipped = {each: self.clipped[each] for each in shown if self.estimates[each]}  # where any group was found
        losses = clipping_notes(self.plan, clipped, errors)
        shared = (SHARED,) if self.coarsened else ()
        return plain_notes(self.plan, (*self.plan.notes, *dict.fromkeys(own), *clips, *losses, *shared))

    @property
    def _shares(self) -> Mapping[int, float]:
        """What is reckoned to be lost of each measure, by its number."""
        found = ((self.plan.answers[each], clipped) for each, clipped in self.clipped.items())
        return {self.plan.start(number): each.loss.share for number, each in found if isinstance(each, Clipped)}

    def table(self) -> ReleasedTable:
        """What the question asked to see."""
        known = {each: clipped for each, clipped in self.clipped.items() if isinstance(clipped, Clipped)}
        return tabulate(self.plan, self.keys, self.estimates, known)

    @cached_property
    def keys(self) -> list[list[Any]]:
        """The groups' keys, column by column, as people write them."""
        return key_columns(self.plan)


def read_measure(stored: Mapping[str, Any]) -> tuple[Noise, tuple[int, ...]]:
    """The law of a measure's noise, and its noisy integers."""
    return read_law(stored["law"]), _values(stored["values"])


def _as_stored(plan: Plan, data: Mapping[str, Any]) -> Plan:
    """The plan with its measures counted in the parts of a step that the stored integers are counted in."""
    return count_in(plan, [each.get("bits", 0) for each in data["measures"]][: len(plan.measures)])


def _key_to_json(value: Scalar) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _key_of_json(value: Any, type_: Type) -> Scalar:
    if type_ is Type.DATE:
        return date.fromisoformat(value)
    return datetime.fromisoformat(value) if type_ is Type.DATETIME else value


def _values(stored: Any) -> tuple[int, ...]:
    return unpack(stored) if isinstance(stored, dict) else tuple(map(int, stored))


def law_to_json(law: Law) -> dict[str, Any]:
    """The law of one noise, as it is stored."""
    if isinstance(law, DiscreteGaussianLaw):
        return {"gaussian": str(law.variance)}
    return {"laplace": str(law.scale)}


def read_law(data: Mapping[str, Any]) -> Noise:
    """As `law_to_json` wrote it; of an answer that was made from another, both laws."""
    own = _one_law(data)
    return SummedLaw(own, _one_law(data["beside"])) if "beside" in data else own


def _one_law(data: Mapping[str, str]) -> Law:
    if "gaussian" in data:
        return DiscreteGaussianLaw(Fraction(data["gaussian"]))
    return DiscreteLaplaceLaw(Fraction(data["laplace"]))


# --- many noisy integers in few bytes


def pack(values: Sequence[int] | IntArray, law: Noise) -> dict[str, Any]:
    """The integers, rounded to a small part of their noise: ``shift`` bits are dropped. That is post-processing.

    >>> from fractions import Fraction
    >>> from dalenius.mechanisms.laws import DiscreteGaussianLaw
    >>> unpack(pack([3, -70000, 2**80], DiscreteGaussianLaw(Fraction(100))))
    (3, -70000, 1208925819614629174706176)
    """
    shift = max(0, int(noise_variance(law) ** 0.5).bit_length() - 1 - _BITS)
    # Of int64 as a whole; of larger integers one by one.
    exact = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    short = exact >> (min(shift, 63) if exact.dtype == np.int64 else shift)
    if len(short) and max(-int(short.min()), int(short.max())) >= 2**62:
        return {"shift": shift, "texts": " ".join(map(str, short))}
    # The sign goes into the lowest bit, and bytes of one rank lie together: the upper ones are nearly all 0. Past level
    # 1 zlib is slow, and gains little.
    signed = short.astype("<i8")
    planes = ((signed << 1) ^ (signed >> 63)).view(np.uint8).reshape(-1, 8).T.tobytes()
    return {"shift": shift, "zlib": base64.b64encode(zlib.compress(planes, 1)).decode()}


def unpack(stored: Mapping[str, Any]) -> tuple[int, ...]:
    """As `pack` wrote them; the middle of what was rounded."""
    shift = int(stored["shift"])
    half = 1 << shift >> 1
    if "texts" in stored:
        return tuple((int(each) << shift) + half for each in stored["texts"].split())
    planes = np.frombuffer(zlib.decompress(base64.b64decode(stored["zlib"])), np.uint8)
    mixed = np.ascontiguousarray(planes.reshape(8, -1).T).view("<i8").reshape(-1)
    short = (mixed >> 1) ^ -(mixed & 1)
    return tuple((value << shift) + half for value in short.tolist())
