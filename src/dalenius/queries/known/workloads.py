"""What follows from a workload: sums over the classes that it told apart, by the strategy that it was measured with.

A workload is stored with the atoms of its attributes and what each of them is in each class (`describe`). A later
question's classes are compared with these: where each of its groups is made of whole classes, attribute by attribute,
it is read as the questions of the workload themselves are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import LedgerCorruptError
from dalenius.measuring.expression_json import (
    expression_of_json,
    expression_to_json,
    optional_of_json,
    optional_to_json,
    scalar_of_json,
    scalar_to_json,
)
from dalenius.queries.known.following import Attributes, part_in_part
from dalenius.queries.known.sources import frame_of
from dalenius.queries.workloads.attributes import Atoms, Attribute
from dalenius.queries.workloads.linear import Sums, atoms_of, sums_of
from dalenius.queries.workloads.showing import QuestionReading, StoredWorkload

if TYPE_CHECKING:
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.plan import Measure, Plan
    from dalenius.queries.known.sources import OwnRelease
    from dalenius.queries.workloads.blocks import Block, WorkloadPlan
    from dalenius.releasing.snapshot import Snapshot

_MOST_TOLD = 2**17  # values of atoms in classes that are kept
_MOST_ROWS = 2**20  # numbers times classes of one attribute
_MOST_CELLS = 2**14  # groups of a question


# --- what is kept


def describe(workload: WorkloadPlan, common: Sequence[Sequence[Expression]]) -> dict[str, Any] | None:
    """What a workload measured, block by block; None where there is too much of it.

    Args:
        workload: As it was measured.
        common: For each block the conditions that all of its questions have.
    """
    told = sum(len(each.values) * each.size for block in workload.blocks for each in block.attributes)
    if told > _MOST_TOLD or not workload.blocks:
        return None
    first, blocks = 0, []
    for block, conditions in zip(workload.blocks, common, strict=True):
        blocks.append(_block_to_json(block, conditions, first))
        first += len(block.parts)
    return {"blocks": blocks}


def _block_to_json(block: Block, common: Sequence[Expression], first: int) -> dict[str, Any]:
    keys = {key for term, _, _ in block.terms for key in term.atoms.keys}
    return {
        "frame": frame_of(block.planned.plan, block.planned.snapshot.data_version),
        "common": list(map(expression_to_json, common)),
        "attributes": [
            [
                [expression_to_json(atom), atom in keys, list(map(scalar_to_json, values))]
                for atom, values in each.values.items()
            ]
            for each in block.attributes
        ],
        "parts": [
            [first + at, optional_to_json(each.summed.value), str(each.summed.step)]
            for at, each in enumerate(block.parts)
        ],
    }


@dataclass(frozen=True)
class _Block:
    """A block of a stored workload: its atoms, the classes, and what was measured over them."""

    common: tuple[Expression, ...]
    attributes: tuple[Mapping[Expression, tuple[Any, ...]], ...]
    keys: frozenset[Expression]
    parts: Mapping[tuple[Expression | None, Fraction], int]

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> _Block:
        attributes, keys = [], set()
        for each in data["attributes"]:
            own = {}
            for written, is_key, values in each:
                atom = expression_of_json(written)
                own[atom] = tuple(scalar_of_json(value, atom.type) for value in values)
                if is_key:
                    keys.add(atom)
            attributes.append(own)
        parts = {(optional_of_json(value), Fraction(step)): at for at, value, step in data["parts"]}
        return cls(tuple(map(expression_of_json, data["common"])), tuple(attributes), frozenset(keys), parts)

    @property
    def atoms(self) -> Atoms:
        """All that it tells rows apart by."""
        every = [atom for each in self.attributes for atom in each]
        conditions = [*(atom for atom in every if atom not in self.keys), *self.common]
        return Atoms(tuple(atom for atom in every if atom in self.keys), tuple(dict.fromkeys(conditions)))

    def sums(self, atoms: Atoms, plan: Plan, attributes: Attributes) -> Sums | None:
        """Which of its classes go into which numbers of a question; None where that does not follow."""
        refined = attributes.of(self.atoms, atoms)
        if refined is None:
            return None
        wanted = sums_of(atoms, plan.cells, refined)
        if wanted.empty:
            return None
        parts: dict[int, tuple[int, ...]] = {}
        sizes: dict[int, int] = {}
        owner: dict[int, int] = {}  # which of its attributes is in one of the refined ones
        for at, attribute in enumerate(refined):
            own = [
                number for number, each in enumerate(self.attributes) if any(one in attribute.values for one in each)
            ]
            if len(own) > 1:
                return None
            classes = self._classes(attribute, own[0] if own else None)
            way = part_in_part(classes, wanted.parts.get(at), attribute.size)
            if way is None:
                return None
            size = wanted.sizes.get(at, 1)
            if not own:
                if size > 1:
                    return None
                continue
            owner[at] = own[0]
            length = len(next(iter(self.attributes[own[0]].values())))
            # A class that no row can be in may count or not; where all others do, it does.
            rest = 0 if set(way.values()) == {0} else -1
            parts[own[0]] = tuple(way.get(each, rest) for each in range(length))
            sizes[own[0]] = size
            if size * length > _MOST_ROWS:
                return None
        return Sums(dict(sorted(parts.items())), dict(sorted(sizes.items())), _places(wanted, len(refined), owner))

    def _classes(self, attribute: Attribute, own: int | None) -> list[int]:
        """Of each refined class, in which own class it lies; −1: rows that were not counted."""
        holds = [each for each in self.common if each in attribute.values]
        atoms = [] if own is None else list(self.attributes[own])
        known: dict[tuple[Any, ...], int] = {(): 0}
        if own is not None:
            known = {vector: at for at, vector in enumerate(zip(*self.attributes[own].values(), strict=True))}
        found = []
        for at in range(attribute.size):
            counted = all(attribute.values[each][at] is True for each in holds)
            vector = tuple(attribute.values[atom][at] for atom in atoms)
            found.append(known.get(vector, -1) if counted else -1)
        return found


def _places(wanted: Sums, attributes: int, owner: Mapping[int, int]) -> tuple[int, ...]:
    """The places of a question's groups among all combinations of parts, in the order of the block's attributes."""
    left = np.array(wanted.places, dtype=np.int64)
    digits: dict[int, tuple[Any, int]] = {}
    for at in reversed(range(attributes)):
        size = wanted.sizes.get(at, 1)
        if at in owner:
            digits[owner[at]] = left % size, size
        left = left // size
    place = np.zeros(len(wanted.places), dtype=np.int64)
    for number in sorted(digits):
        digit, size = digits[number]
        place = place * size + digit
    return tuple(place.tolist())


# --- what follows


def readings(
    sources: Sequence[OwnRelease], plan: Plan, snapshot: Snapshot, confidence: float
) -> Iterator[tuple[OwnRelease, QuestionReading]]:
    """A question as each own workload tells it, where one does."""
    if len(plan.cells) > _MOST_CELLS:
        return
    frame, attributes = frame_of(plan, snapshot.data_version), Attributes(plan.table.policy.columns)
    for release in sources:
        if not isinstance(release.asked, dict) or "blocks" not in release.asked:
            continue
        try:
            blocks = [_Block.of_json(each) for each in release.asked["blocks"] if each["frame"] == frame]
            stored = StoredWorkload.read(release.content) if blocks else None
        except (ValueError, KeyError, TypeError, LedgerCorruptError):  # of another version
            continue
        for block in blocks:
            terms = [_term(block, each, plan, stored, attributes) for each in plan.measures]
            found = [each for each in terms if each is not None]
            if stored is not None and len(found) == len(terms):
                yield release, QuestionReading(stored, plan, found, confidence)
                break


def _term(
    block: _Block, measure: Measure, plan: Plan, stored: StoredWorkload | None, attributes: Attributes
) -> dict[str, Any] | None:
    """Where the numbers of a measure come from; None where they do not follow."""
    summed = (None, Fraction(1)) if measure.kind == "rows" else (measure.value, measure.step)
    number = block.parts.get(summed)
    if number is None or stored is None:
        return None
    part = stored.parts[number]
    average = any(len(each.measures) > 1 for each in plan.statistics if measure in each.measures)
    if measure.kind != "rows" and part.centre != measure.centre and not average:
        return None
    sums = block.sums(atoms_of(plan, measure), plan, attributes)
    if sums is None or sums.empty or not part.strategy.determines(sums.product()):
        return None
    return {"part": number, **sums.to_json()}
