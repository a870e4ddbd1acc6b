"""How the values of a column become coarser, level by level, up to `*`.

A hierarchy is told by a file as ARX has it (one line for each value: `53711;5371*;537**;*`), by a width, by prefixes,
or as "suppress" (the value or `*`). `build` binds it to the values that a table has. Levels are nested: what has one
label at a level has one label at all levels above. So every set of values has one smallest label that covers it, and
classes of rows only ever grow together.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.table import whole_file
from dalenius.errors import PolicyInvalidError

SUPPRESSED = "*"
_DIGITS = 100  # of numbers in intervals, before the point and after it
_PRECISION = 30_000  # digits of any interval's ends: 64 levels, each at most so many times as wide as a float says
_MOST_LEVELS = 1000
Text = str | None


@dataclass(frozen=True)
class FileSpec:
    """A file with one line for each value: the value, then its label at each level."""

    path: Path


@dataclass(frozen=True)
class WidthSpec:
    """Intervals, each level `factor` times as wide as the one below, then `*`."""

    width: Decimal
    levels: int = 1
    start: Decimal = Decimal(0)
    factor: int = 2


@dataclass(frozen=True)
class PrefixSpec:
    """So many first characters at each level, the rest as `*`; then `*`."""

    lengths: tuple[int, ...]


@dataclass(frozen=True)
class SuppressSpec:
    """The value or `*`."""


Spec = FileSpec | WidthSpec | PrefixSpec | SuppressSpec


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The hierarchy of one column of one table.

    Attributes:
        labels: For each level its labels; level 0 holds the column's values.
        maps: For each level and each value the index of its label.
        rank: For each value its line in the file; None where there is no file.
        counted: Which values count when labels are scored: those of the table, not of others beside it; None: all.
    """

    labels: tuple[tuple[Text, ...], ...]
    maps: tuple[NDArray[np.int32], ...]
    rank: NDArray[np.int64] | None = None
    counted: NDArray[np.bool_] | None = None

    @property
    def total(self) -> int:
        """How many values count."""
        return len(self.labels[0]) if self.counted is None else int(self.counted.sum())

    @cached_property
    def leaves(self) -> tuple[NDArray[np.int64], ...]:
        """For each level and label, how many of the table's values lie under it."""
        counted = slice(None) if self.counted is None else self.counted
        pairs = zip(self.maps, self.labels, strict=True)
        return tuple(np.bincount(own[counted], minlength=len(each)) for own, each in pairs)

    @property
    def levels(self) -> int:
        """How many levels there are, with that of the values themselves."""
        return len(self.labels)

    @property
    def rooted(self) -> bool:
        """Whether one label covers all values."""
        return len(self.labels[-1]) <= 1

    def ncp(self, level: int) -> NDArray[np.float64]:
        """For each label of a level the normalised certainty penalty: 0 for one value, 1 for all of them."""
        return (self.leaves[level] - 1) / max(self.total - 1, 1)

    def covers(self, label: Text) -> NDArray[np.bool_]:
        """Which values a published label may stand for."""
        found = np.full(len(self.labels[0]), label == SUPPRESSED)
        for labels, own in zip(self.labels, self.maps, strict=True):
            for place, each in enumerate(labels):
                if each == label:
                    found |= own == place
        return found

    @cached_property
    def position(self) -> NDArray[np.int64]:
        """For each value its place in an order in which everything under a label stands together."""
        order = np.lexsort((self.maps[0] if self.rank is None else self.rank, *self.maps[1:]))
        found = np.empty(len(order), np.int64)
        found[order] = np.arange(len(order))
        return found

    @cached_property
    def at_position(self) -> tuple[NDArray[np.int32], ...]:
        """For each level the label of the value at each position."""
        order = np.argsort(self.position)
        return tuple(own[order] for own in self.maps)

    def cover(self, low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.int64]:
        """The level of the smallest label over all values between two positions; `levels` where there is none."""
        found = np.full(len(low), self.levels, np.int64)
        for level in range(self.levels - 1, -1, -1):
            own = self.at_position[level]
            found[own[low] == own[high]] = level
        return found


def spec_of(column: str, written: object, folder: Path) -> Spec:
    """A hierarchy as the policy has it.

    >>> spec_of("age", {"width": 5, "levels": 4}, Path())
    WidthSpec(width=Decimal('5'), levels=4, start=Decimal('0'), factor=2)
    >>> spec_of("zip", {"prefix": [4, 2]}, Path()), spec_of("sex", "suppress", Path())
    (PrefixSpec(lengths=(4, 2)), SuppressSpec())
    """
    place = f"anonymity.hierarchies.{column}"
    if written == "suppress":
        return SuppressSpec()
    if isinstance(written, str) and written:
        return FileSpec((folder / written).absolute())
    if isinstance(written, Mapping):
        names = set(written)
        if "prefix" in names and names <= {"prefix"}:
            lengths = written["prefix"] if isinstance(written["prefix"], list | tuple) else [written["prefix"]]
            whole = 0 < len(lengths) <= _MOST_LEVELS and all(type(each) is int and each > 0 for each in lengths)
            if whole and list(lengths) == sorted(set(lengths), reverse=True):
                return PrefixSpec(tuple(lengths))
            raise _invalid(place, "the prefix is not a length.", "Write { prefix = 3 } or { prefix = [4, 2] }.")
        if "width" in names and names <= {"width", "levels", "start", "factor"}:
            return _width(place, written)
    raise _invalid(
        place,
        "this is no hierarchy.",
        'Write the name of a CSV file, { width = 5, levels = 4 }, { prefix = [4, 2] } or "suppress".',
    )


def _width(place: str, written: Mapping[str, Any]) -> WidthSpec:
    def number(name: str, default: object) -> Decimal:
        value = written.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise _invalid(place, f"its {name} is not a number.", "Write { width = 5, levels = 4 }.")
        return Decimal(str(value))

    width, start = number("width", None), number("start", 0)
    levels, factor = number("levels", 1), number("factor", 2)
    if width <= 0 or levels < 1 or factor < 2 or levels % 1 or factor % 1 or levels > 64:
        raise _invalid(
            place,
            "these intervals do not nest.",
            "Take a width above 0, at least one level (at most 64) and a whole factor of at least 2.",
        )
    return WidthSpec(width, int(levels), start, int(factor))


def build(spec: Spec, column: str, values: Sequence[Text]) -> Hierarchy:
    """The hierarchy for the values that a table has.

    Raises:
        PolicyInvalidError: The file cannot be read or is no hierarchy, or a value of the table is not in it.

    >>> build(SuppressSpec(), "sex", ("f", "m")).labels
    (('f', 'm'), ('*',))
    >>> build(WidthSpec(Decimal(5), 2), "age", ("7", "12")).labels
    (('7', '12'), ('5-9', '10-14'), ('0-9', '10-19'), ('*',))
    """
    place = f"anonymity.hierarchies.{column}"
    if isinstance(spec, FileSpec):
        return _from_lines(place, spec.path.name, _lines(place, spec.path), values)
    if isinstance(spec, WidthSpec):
        return _from_levels(values, _intervals(place, spec, values))
    if isinstance(spec, PrefixSpec):
        return _from_levels(values, [[_prefix(value, length) for value in values] for length in spec.lengths])
    return _from_levels(values, [])


def _prefix(value: Text, length: int) -> Text:
    return None if value is None else value[:length] + "*" * (len(value) - length)


def _intervals(place: str, spec: WidthSpec, values: Sequence[Text]) -> list[list[Text]]:
    """The labels of intervals at each level; exact, however many digits a number has."""
    try:
        numbers = [None if value is None else _number(value) for value in values]
    except (ArithmeticError, ValueError):
        raise _invalid(
            place,
            "this column does not hold numbers alone.",
            'Use a CSV file, { prefix = 3 } or "suppress" for texts.',
            why=f"Intervals need numbers, of at most {_DIGITS} digits before the point and as many after it.",
        ) from None
    start, width = Fraction(spec.start), Fraction(spec.width)
    indices = [None if each is None else (each - start) // width for each in numbers]
    found = list[list[Text]]()
    for level in range(spec.levels):
        step = spec.factor**level
        names: dict[int | None, Text] = {None: None}
        for index in {None if each is None else each // step for each in indices}:
            if index is not None:
                names[index] = _interval(spec, step, index)
        found.append([names[None if each is None else each // step] for each in indices])
    return found


def _number(value: str) -> Fraction:
    """Exact. An exponent may ask for more digits than there is room, so it is looked at first."""
    found = Decimal(value)
    exponent = found.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -_DIGITS or found.adjusted() >= _DIGITS:
        raise ValueError
    return Fraction(found)


def _interval(spec: WidthSpec, step: int, index: int) -> str:
    """The label of one interval. It follows from the spec alone: a population beside the table changes no label.

    >>> _interval(WidthSpec(Decimal(10)), 1, 2), _interval(WidthSpec(Decimal(10)), 1, -1)
    ('20-29', '[-10, 0)')
    """
    with localcontext(prec=_PRECISION):
        width = spec.width * step
        low = spec.start + width * index
        if low >= 0 and low % 1 == 0 and width % 1 == 0:
            return f"{int(low)}-{int(low + width) - 1}"
        return f"[{low:f}, {low + width:f})"


def _from_levels(values: Sequence[Text], middle: Sequence[Sequence[Text]]) -> Hierarchy:
    """From the labels of each value at each level between the values and `*`."""
    maps, labels = [np.arange(len(values), dtype=np.int32)], [tuple(values)]
    for level in [*middle, [SUPPRESSED] * len(values)]:
        places: dict[Text, int] = {}
        own = np.fromiter((places.setdefault(each, len(places)) for each in level), np.int32, len(values))
        maps.append(own)
        labels.append(tuple(places))
    return Hierarchy(tuple(labels), tuple(maps))


def _lines(place: str, path: Path) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            delimiter = ";" if ";" in file.readline() else ","
            file.seek(0)
            found = [line for line in csv.reader(file, delimiter=delimiter) if line]
    except OSError as error:
        raise _invalid(
            place,
            f"the file {path.name} cannot be read.",
            "Check its name; it is looked for beside the policy file.",
            why=error.strerror or "It is not there.",
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise _invalid(place, f"the file {path.name} is not CSV in UTF-8.", "Write it anew.") from None
    if not found:
        raise _invalid(place, f"the file {path.name} is empty.", "Write one line for each value: value;level 1;…;*")
    if len(found[0]) > _MOST_LEVELS:
        raise _invalid(place, f"{path.name} has more than {_MOST_LEVELS} levels.", "Keep those that are worth a look.")
    if len({len(line) for line in found}) > 1:
        raise _invalid(
            place, f"the lines of {path.name} are not of one length.", "Give every value a label at every level."
        )
    return found


def _from_lines(place: str, name: str, lines: Sequence[Sequence[str]], values: Sequence[Text]) -> Hierarchy:
    """From all lines of a file; labels are kept that the table needs."""
    known = {line[0]: number for number, line in enumerate(lines)}
    if len(known) < len(lines):
        raise _invalid(place, f"{name} has a value twice.", "Keep one line for each value.")
    missing = sum((value or "") not in known for value in values)
    if missing:
        absent = " A missing cell is a value too: begin its line with an empty cell." if None in values else ""
        raise _invalid(
            place,
            f"{name} misses {missing} of the {len(values)} values that the table has.",
            f"Add a line for each of them.{absent}",
            why="A value without labels cannot be generalised.",
        )
    rows = np.array([known[value or ""] for value in values], np.int64)
    maps, labels = list[NDArray[np.int32]](), list[tuple[Text, ...]]()
    below: NDArray[np.int64] | None = None
    for level in range(len(lines[0])):
        places: dict[str, int] = {}
        whole = np.fromiter((places.setdefault(line[level], len(places)) for line in lines), np.int64, len(lines))
        if below is not None and len(set(zip(below.tolist(), whole.tolist(), strict=True))) > int(below.max()) + 1:
            raise _invalid(
                place,
                f"{name} is not nested at level {level}.",
                "Values that share a label must share all labels above it.",
                why=f"Values with one label at level {level - 1} have several at level {level}.",
            )
        below = whole
        used, own = np.unique(whole[rows], return_inverse=True)
        texts = list(places)
        maps.append(own.astype(np.int32))
        labels.append(tuple(texts[place] or None for place in used))
    maps[0], labels[0] = np.arange(len(values), dtype=np.int32), tuple(values)  # in the order of the codes
    return Hierarchy(tuple(labels), tuple(maps), rows)


def write_hierarchy(hierarchy: Hierarchy, path: Path) -> None:
    """Writes it as ARX has them, with `;`."""
    lines: Iterable[list[str]] = (
        [labels[own[code]] or "" for labels, own in zip(hierarchy.labels, hierarchy.maps, strict=True)]
        for code in range(len(hierarchy.labels[0]))
    )
    with whole_file(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows(lines)


def _invalid(
    place: str, what: str, fix: str, *, why: str = "Hierarchies are told for each column."
) -> PolicyInvalidError:
    return PolicyInvalidError(f"{place}: {what}", why=why, fix=fix)
